"""Records of differences, integrals, interpolation, polynomials, histograms, windows, bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.numpy.records import Record

INTEGERS = "its values are integers or bools"
FLOATS = "the result is of floats where operands are integers"
COUNTED = "counts are integers, in NumPy floats"
NO_ARRAYS = {"grad": "it takes no arrays", "vmap": "it takes no arrays"}


def record(name: str, draw: Any, oracle: Any = None, **options: Any) -> Record:
    return Record(f"numpy.{name}", draw, oracle, **options)


def lists(name: str, *sizes: int, dtypes: str = "fi", **options: Any) -> Record:
    """A record of a function of vectors of certain sizes."""
    draw = lambda d: d.call(*(d.array(dtypes, [(n,)], (1, 5)) for n in sizes))
    return record(name, draw, **{"grad": tuple(range(len(sizes))), "tolerance": 4, **options})


def window(name: str, *args: Any, **options: Any) -> Record:
    """A record of a window, of several lengths; the last bits may be those of its sines."""
    draw = lambda d: d.call(size=d.of(6, 1, 0, 3))
    return record(
        name, draw, call=lambda f, size: f(size, *args), tolerance=4, **NO_ARRAYS, **options
    )


CALCULUS = [
    record(
        "diff",
        lambda d: d.call(
            x := d.array("fib", [(2, 3), (4,), (0, 3)]), n=d.of(1, 2, 0, 5), axis=d.axis(x)
        ),
    ),
    record("ediff1d", lambda d: d.call(d.array("fi", [(2, 3), (1,)]))),
    record(
        "gradient",
        lambda d: d.call(d.array("fi", [(4,), (2, 3)])),
        call=lambda f, x: list(f(x)) if x.ndim > 1 else f(x),
    ),
    record(
        "gradient",
        lambda d: d.call(d.array("f", [(3, 4)]), d.array("f", [()], (1, 2)), axis=d.of(0, -1)),
        grad=(0, 1),
        case="spacing",
    ),
    record(
        "trapezoid",
        lambda d: d.call(x := d.array("fi", [(2, 3), (4,)]), dx=d.of(2.0, 1), axis=d.axis(x)),
    ),
    record(
        "trapezoid",
        lambda d: d.call(d.array("fi", [(2, 3)]), np.sort(d.array("f", [(3,)]))),
        grad=(0, 1),
        case="places",
    ),
    record(
        "interp",
        lambda d: d.call(
            d.array("f", [(5,), ()], (-4, 4)),
            np.sort(d.array("f", [(4,)])) + np.arange(4, dtype=d.of("float32")),
            d.array("f", [(4,)]),
        ),
        grad=(0, 1, 2),
        tolerance=1e4,
    ),
    record(
        "unwrap",
        lambda d: d.call(x := d.array("f", [(2, 4), (5,)], (-9, 9)), axis=d.axis(x)),
        tolerance=2,
    ),
    record(
        "convolve",
        lambda d: d.call(d.array("f", [(4,)])),
        lambda x: np.convolve(x, [1, -2, 0.5]),
        call=lambda f, x: f(x, np.array([1, -2, 0.5], np.float32).astype(x.dtype)),
        case="kernel",
        tolerance=4,
    ),
]

POLYNOMIALS = [
    record(
        "polyval",
        lambda d: d.call(d.array("fi", [(3,), (1,)]), d.array("fi", [(2, 3), ()])),
        grad=(0, 1),
        tolerance=4,
    ),
    lists("polyadd", 4, 2),
    lists("polysub", 2, 4),
    lists("polymul", 4, 3, kinds=FLOATS),
    record(
        "polydiv",
        lambda d: d.call(d.array("f", [(4,)]), d.array("f", [(2,)], (1, 2))),
        call=lambda f, u, v: f(u, v)[0],
        grad=(0, 1),
        tolerance=20,
    ),
    record("polyder", lambda d: d.call(d.array("fi", [(4,)]), m=d.of(1, 2)), kinds=FLOATS),
    record(
        "polyint",
        lambda d: d.call(d.array("fi", [(4,)]), m=d.of(1, 2, 0)),
        tolerance=2,
        kinds=FLOATS,
    ),
    record(
        "polyfit",
        lambda d: d.call(
            np.arange(5, dtype="float64" if d.x64 else "float32"), d.array("r", [(5,), (5, 2)])
        ),
        call=lambda f, x, y: f(x, y, 2),
        grad=(1,),
        tolerance=100,
    ),
    record(
        "roots",
        lambda d: d.call(d.array("r", [(4,)], (1, 4))),
        call=lambda f, p: [f(p).sum(), f(p).prod()],
        tolerance=100,
        kinds="roots are complex",
        jit="zeros are taken off",
        vmap="zeros are taken off",
    ),
    lists("poly", 3, dtypes="f", tolerance=10),
]

COUNTS = [
    record(
        "histogram",
        lambda d: d.call(d.array("fi", [(2, 3), (5,)]), bins=d.of(3, 1), range=d.of(None, (-2, 2))),
        grad=INTEGERS,
        kinds=FLOATS,
    ),
    record(
        "histogram",
        lambda d: d.call(
            d.array("f", [(6,)]), d.array("f", [(6,)], (0.25, 2)), density=d.of(False, True)
        ),
        call=lambda f, x, w, density: f(x, 4, (-3, 3), weights=w, density=density),
        grad=(1,),
        case="weights",
        tolerance=2,
    ),
    record(
        "histogram_bin_edges",
        lambda d: d.call(d.array("fi", [(2, 3)]), bins=d.of(3, 10), range=d.of(None, (-2, 2))),
    ),
    record(
        "histogram2d",
        lambda d: d.call(d.array("f", [(6,)]), d.array("f", [(6,)])),
        call=lambda f, x, y: f(x, y, [2, 3], [(-3, 3), (-3, 3)]),
        grad=INTEGERS,
        kinds=COUNTED,
    ),
    record(
        "histogramdd",
        lambda d: d.call(d.array("f", [(6, 2)])),
        call=lambda f, x: f(x, 2, [(-3, 3), (-3, 3)])[0],
        grad=INTEGERS,
        kinds=COUNTED,
    ),
    record(
        "bincount",
        lambda d: d.call(d.array("iu", [(6,), (1,)], (0, 5)), minlength=d.of(0, 8)),
        grad=INTEGERS,
        jit="the values decide the shape",
        vmap="the values decide the shape",
    ),
    record(
        "bincount",
        lambda d: d.call(d.array("iu", [(4,)], (0, 5)), d.array("f", [(4,)])),
        lambda x, w: np.bincount(x, w, 6),
        call=lambda f, x, w: f(x, w, length=6),
        grad=(1,),
        case="weights",
    ),
    record(
        "packbits",
        lambda d: d.call(
            d.array("b", [(10,), (2, 3)]), axis=d.of(None, 0, -1), bitorder=d.of("big", "little")
        ),
        grad=INTEGERS,
    ),
    record(
        "unpackbits",
        lambda d: d.call(
            d.array("uint8", [(3,), (2, 1)], (0, 255)),
            axis=d.of(None, 0, -1),
            bitorder=d.of("big", "little"),
            count=d.of(None, 5),
        ),
        grad=INTEGERS,
    ),
]

MAPPED = [
    record(
        "apply_along_axis",
        lambda d: d.call(x := d.array("fi", [(2, 3), (2, 1, 3)]), axis=d.axis(x)),
        call=lambda f, x, axis: f(lambda v: v * v.sum(), axis, x),
        tolerance=4,
    ),
    record(
        "apply_over_axes",
        lambda d: d.call(d.array("fi", [(2, 1, 3)]), axes=d.of((0, 2), (1,))),
        call=lambda f, x, axes: f(lambda y, axis: y.sum(axis), x, axes),
    ),
    record(
        "vectorize",
        lambda d: d.call(*d.pair("fi")),
        np.multiply,
        call=lambda f, x, y: f(lambda a, b: a * b)(x, y),
        grad=(0, 1),
    ),
]

WINDOWS = [
    *(window(name) for name in ("bartlett", "blackman", "hamming", "hanning")),
    window("kaiser", 2.0),
]

RECORDS = [*CALCULUS, *POLYNOMIALS, *COUNTS, *MAPPED, *WINDOWS]
