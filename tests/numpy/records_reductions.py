"""Records of reductions, statistics and running totals."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tests.numpy.records import FULL, RANKED, Record

NONEMPTY = (*FULL, ())
INTEGERS = "its values are integers or bools"


def reduction(
    name: str, kinds: str = "fiubc", shapes: Any = (*RANKED, ()), **options: Any
) -> Record:
    """A record of a reduction over any axes."""
    draw = lambda d: d.call(
        x := d.array(kinds, shapes, special=True),
        axis=d.axes(x),
        keepdims=d.of(False, True),
    )
    return Record(f"numpy.{name}", draw, **options)


def along(name: str, kinds: str = "fiub", shapes: Any = NONEMPTY, **options: Any) -> Record:
    """A record of a function along one axis, or of all elements in a row."""
    draw = lambda d: d.call(x := d.array(kinds, shapes, special=True), axis=d.axis(x, none=True))
    return Record(f"numpy.{name}", draw, **options)


def masked(name: str, kinds: str = "fi", **options: Any) -> Record:
    """A record of a reduction of those elements that a mask selects."""
    given = options.pop("given", {})
    draw = lambda d: d.call(
        d.array(kinds, [(2, 3)]),
        d.array("b", [(2, 3), (3,), (2, 1)]),
        axis=d.of(None, 0, -1, ()),
        **given,
    )
    call = lambda f, x, mask, **options: f(x, where=mask, **options)
    return Record(f"numpy.{name}", draw, call=call, case="where", **options)


def nearest_is_lower(quantile: Any, x: Any, q: Any, method: str, **options: Any) -> Any:
    """NumPy's quantiles, but halfway between two elements the nearest one is the lower."""
    return quantile(x, q * (1 - 1e-9) if method == "nearest" else q, method=method, **options)


def quantile(name: str, unit: float, **options: Any) -> Record:
    """A record of a quantile, where 1 is written as `unit`."""
    draw = lambda d: d.call(
        x := d.array("fi", NONEMPTY, special=name.startswith("nan")),
        d.array("float32", [(2,), ()], (0.25, 0.75)) * np.float32(unit),
        axis=d.of(None, *range(x.ndim)),
        method=d.of("linear", "lower", "higher", "midpoint", "nearest"),
        keepdims=d.of(False, True),
    )
    return Record(
        f"numpy.{name}",
        draw,
        functools.partial(nearest_is_lower, getattr(np, name)),
        tolerance=10,
        kinds="quantiles of integers are floats",
        **options,
    )


REDUCTIONS = [
    *(reduction(name, "fiu") for name in ("sum", "prod", "nansum", "nanprod")),
    *(reduction(name, "bc", case="others") for name in ("sum", "prod")),
    *(reduction(name, "fiu") for name in ("mean",)),
    *(reduction(name, "fiub", FULL, tolerance=4) for name in ("var", "std")),
    reduction("var", "c", FULL, case="complex"),
    *(reduction(name, "fi", FULL, tolerance=4) for name in ("nanmean", "nanvar", "nanstd")),
    *(reduction(name, "fiu", NONEMPTY) for name in ("max", "min", "amax", "amin", "ptp")),
    *(reduction(name, "fi", NONEMPTY) for name in ("nanmax", "nanmin")),
    *(reduction(name, "fiubc", grad=INTEGERS) for name in ("all", "any", "count_nonzero")),
    *(reduction(name, "fi", NONEMPTY) for name in ("median", "nanmedian")),
    *(masked(name) for name in ("sum", "prod", "mean", "var", "std", "nansum", "nanmean")),
    *(masked(name, grad=INTEGERS) for name in ("all", "any")),
    *(masked(name, given={"initial": 1}) for name in ("max", "min", "nanmax", "nanmin")),
    quantile("quantile", 1),
    quantile("percentile", 100),
    quantile("nanquantile", 1),
    quantile("nanpercentile", 100),
]

RUNNING = [
    *(along(name, "fiuc") for name in ("cumsum", "cumprod")),
    *(along(name, "fi") for name in ("nancumsum", "nancumprod")),
    *(
        Record(
            f"numpy.{name}",
            lambda d: d.call(
                x := d.array("fiu", FULL), axis=d.axis(x), include_initial=d.of(True, False)
            ),
        )
        for name in ("cumulative_sum", "cumulative_prod")
    ),
    *(along(name, grad=INTEGERS) for name in ("argmax", "argmin")),
    *(
        Record(
            f"numpy.{name}",
            lambda d: d.call(x := d.array("fi", FULL), axis=d.axis(x), keepdims=d.of(True, False)),
            grad=INTEGERS,
        )
        for name in ("nanargmax", "nanargmin")
    ),
]

STATISTICS = [
    Record(
        "numpy.average",
        lambda d: d.call(
            d.array("fi", [(2, 3)]), d.array("f", [(3,), (2, 3)][:1], (0.5, 2)), axis=d.of(1, -1)
        ),
        call=lambda f, x, weights, axis: f(x, axis, weights, returned=True),
        grad=(0, 1),
    ),
    Record(
        "numpy.cov",
        lambda d: d.call(
            d.array("fic", [(2, 4), (5,)]), ddof=d.of(None, 0), rowvar=d.of(True, False)
        ),
        tolerance=4,
    ),
    Record(
        "numpy.cov",
        lambda d: d.call(
            d.array("f", [(4,)]), d.array("i", [(4,)], (1, 3)), bias=d.of(False, True)
        ),
        call=lambda f, x, n, **options: f(x, -x, fweights=n, **options),
        case="weighted",
        tolerance=4,
    ),
    Record("numpy.corrcoef", lambda d: d.call(d.array("fi", [(2, 4)])), tolerance=4),
]

RECORDS = [*REDUCTIONS, *RUNNING, *STATISTICS]
