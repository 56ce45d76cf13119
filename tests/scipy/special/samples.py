"""Where the functions of `scipy.special` are tried: ranges of arguments, and how exact they are.

Tolerances are in units of the dtype's precision; most of them is the conditioning of the function,
or what SciPy's own is off by.
"""

from __future__ import annotations

from typing import Any, NamedTuple


def uniform(low: float, high: float) -> Any:
    return lambda rng, n: rng.uniform(low, high, n)


def scales(low: float, high: float) -> Any:
    """Numbers of all sizes from 10^low to 10^high."""
    return lambda rng, n: 10 ** rng.uniform(low, high, n)


def whole(low: int, high: int) -> Any:
    return lambda rng, n: rng.integers(low, high, n).astype(float)


def signed(values: Any) -> Any:
    return lambda rng, n: values(rng, n) * rng.choice([-1.0, 1.0], n)


class Sample(NamedTuple):
    """A function and its arguments; `differentiable` are those with a derivative."""

    name: str
    arguments: tuple[Any, ...]
    tolerance: float = 50.0
    differentiable: tuple[int, ...] | None = None
    # Beside the relative tolerance: where the function has roots.
    near_zero: float = 0.0


SAMPLES = [
    Sample("bessel_jn_2", (uniform(-10, 10),), 50, None, 50),
    Sample("beta", (scales(-1, 1.5), scales(-1, 1.5)), 300),
    Sample("betainc", (scales(-1, 1), scales(-1, 1), uniform(0.01, 0.99)), 2000, (2,)),
    Sample("betaln", (scales(-1, 2), scales(-1, 2)), 200, None, 500),
    Sample("boxcox", (scales(-2, 2), uniform(-3, 3)), 50, None, 5),
    Sample("boxcox1p", (scales(-2, 2), uniform(-3, 3)), 50, None, 5),
    Sample("comb", (uniform(3, 60), uniform(0, 3)), 200),
    Sample("dawsn", (signed(scales(-3, 2)),), 100),
    Sample("digamma", (uniform(0.1, 20),), 50, None, 10),
    Sample("entr", (scales(-5, 1),), 20, None, 5),
    Sample("erf", (uniform(-4, 4),)),
    Sample("erfc", (uniform(-3, 5),), 100),
    Sample("erfcx", (uniform(-5, 100),)),
    Sample("erfinv", (uniform(-0.99, 0.99),), 100),
    Sample("exp1", (scales(-4, 1.8),)),
    Sample("expi", (signed(scales(-4, 1.8)),), 200, None, 10),
    Sample("expit", (uniform(-30, 30),)),
    Sample("expn", (whole(0, 20), scales(-3, 1.8)), 100, (1,)),
    Sample("factorial", (uniform(0, 12),), 100),
    Sample("fresnel", (signed(scales(-2, 1)),), 50, None, 20),
    Sample("gamma", (signed(uniform(0.1, 9.9)),), 100),
    Sample("gammainc", (scales(-1, 1), scales(-1, 1)), 1000),
    Sample("gammaincc", (scales(-1, 1), scales(-1, 1)), 1000),
    Sample("gammaln", (scales(-3, 5),), 50, None, 20),
    Sample("hyp1f1", (uniform(-3, 3), uniform(0.5, 5), uniform(-150, 30)), 500, None, 500),
    Sample(
        "hyp2f1",
        (uniform(-2, 2), uniform(-2, 2), uniform(0.5, 5), uniform(-3, 0.98)),
        2000,
        (2,),
        500,
    ),
    Sample("i0", (uniform(-20, 20),)),
    Sample("i0e", (uniform(-500, 500),)),
    Sample("i1", (uniform(-20, 20),)),
    Sample("i1e", (uniform(-500, 500),)),
    Sample("kl_div", (scales(-2, 1), scales(-2, 1)), 50, None, 50),
    Sample("log_ndtr", (uniform(-200, 8),), 100),
    Sample("loggamma", (scales(-3, 5),), 50, None, 20),
    Sample("logit", (uniform(0.001, 0.999),), 50, None, 2),
    Sample("ndtr", (uniform(-6, 6),), 100),
    Sample("ndtri", (uniform(0.001, 0.999),)),
    Sample("owens_t", (signed(uniform(0, 4)), signed(uniform(0, 4))), 100),
    Sample("poch", (uniform(0.1, 9), uniform(0, 9)), 300),
    Sample("polygamma", (whole(1, 5), scales(-1, 2)), 100, (1,)),
    Sample("rel_entr", (scales(-2, 1), scales(-2, 1)), 50, None, 20),
    Sample("sici", (scales(-3, 2),), 50, None, 20),
    Sample("spence", (scales(-4, 3),), 50, None, 5),
    Sample("xlog1py", (uniform(-3, 3), scales(-5, 3)), 20),
    Sample("xlogy", (uniform(-3, 3), scales(-5, 3)), 20, None, 20),
    Sample("zeta", (uniform(1.5, 10), uniform(0.3, 10)), 50),
]
