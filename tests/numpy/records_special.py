"""Records of the special functions, whose oracles are SciPy's."""

from __future__ import annotations

from typing import Any


from tests.numpy.records import FULL, Record

ANYWHERE = (-3, 3)
POSITIVE = (0.25, 5)
UNIT = (0.25, 0.75)
NO_ARRAYS = {"grad": "it takes no arrays", "vmap": "it takes no arrays"}
# Series and recurrences are not exact to the last bits, and their arguments are rounded.
LOOSE = 20


def record(name: str, draw: Any, oracle: Any = None, **options: Any) -> Record:
    return Record(f"scipy.special.{name}", draw, oracle, **{"tolerance": LOOSE, **options})


def unary(name: str, values: Any = ANYWHERE, kinds: str = "fi", **options: Any) -> Record:
    """A record of a function of one array."""
    return record(name, lambda d: d.call(d.array(kinds, values=values)), **options)


def several(name: str, *values: Any, **options: Any) -> Record:
    """A record of a function of arrays that broadcast, with elements between given bounds."""
    shapes = ((2, 3), (3,), (2, 1), ())

    def draw(d: Any) -> Any:
        first = d.array("r", shapes[:1], values[0])
        return d.call(first, *(d.array(first.dtype.name, shapes, v) for v in values[1:]))

    return record(name, draw, **{"grad": tuple(range(len(values))), **options})


def ordered(name: str, orders: Any, values: Any, **options: Any) -> Record:
    """A record of a function of an integral order and a number."""
    draw = lambda d: d.call(d.array("i", [(3,), ()], orders), d.array("r", [(2, 3), (3,)], values))
    return record(name, draw, **{"grad": (1,), **options})


SMOOTH = (
    *("erf", "erfc", "erfcx", "expit", "dawsn", "i0", "i0e", "i1", "i1e", "entr"),
    *("gammaln", "loggamma", "gamma", "digamma", "exp1", "expi"),
)
RECORDS = [
    *(unary(name, POSITIVE) for name in SMOOTH),
    *(unary(name, kinds="r", case="negative") for name in ("erf", "erfcx", "dawsn", "i1", "i0e")),
    *(unary(name, kinds="r") for name in ("ndtr", "log_ndtr")),
    *(unary(name, UNIT, "r") for name in ("erfinv", "logit", "ndtri")),
    unary("spence", POSITIVE, "r"),
    *(unary(name, POSITIVE, "r") for name in ("fresnel", "sici")),
    *(unary(name, kinds="c", case="complex") for name in ("wofz",)),
    unary("gammasgn", kinds="r", grad="its values are signs"),
    unary("factorial", (0, 6), "r"),
    *(several(name, POSITIVE, POSITIVE) for name in ("beta", "betaln", "xlogy", "xlog1py")),
    *(several(name, POSITIVE, POSITIVE) for name in ("kl_div", "rel_entr", "boxcox", "boxcox1p")),
    *(several(name, POSITIVE, POSITIVE) for name in ("gammainc", "gammaincc", "poch")),
    several("comb", (3, 6), (0, 3)),
    several("betainc", POSITIVE, POSITIVE, UNIT, grad=(2,)),
    several("owens_t", ANYWHERE, ANYWHERE),
    several("zeta", (1.5, 4), POSITIVE, grad=(1,)),
    several("hyp1f1", POSITIVE, POSITIVE, ANYWHERE, grad=(2,)),
    several("hyp2f1", POSITIVE, POSITIVE, POSITIVE, (-0.5, 0.5), grad=(3,)),
    ordered("polygamma", (1, 3), POSITIVE),
    ordered("expn", (1, 4), POSITIVE),
    *(
        record(name, lambda d: d.call(x := d.array("f", FULL), axis=d.axis(x, none=True)))
        for name in ("softmax", "log_softmax")
    ),
    record(
        "logsumexp",
        lambda d: d.call(x := d.array("fi", FULL), axis=d.axes(x), keepdims=d.of(False, True)),
    ),
    record("bernoulli", lambda d: d.call(n=d.of(5, 0, 1, 8)), **NO_ARRAYS),
]
