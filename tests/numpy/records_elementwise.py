"""Records of functions that compute each element of their result from one of each operand."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.numpy.records import Record

STEPS = "its values are integers or bools"
LARGE = (-60, 60)
BEYOND_ONE = (1.25, 6)
WITHIN_ONE = (-0.75, 0.75)
POSITIVE = (0.25, 6)


def unary(name: str, kinds: str = "fiubc", values: Any = (-3, 3), **options: Any) -> Record:
    """A record of a function of one array, whose elements may be special unless it says not."""
    special = options.pop("special", True)
    draw = lambda d: d.call(d.array(kinds, values=values, special=special))
    return Record(f"numpy.{name}", draw, **options)


def binary(name: str, kinds: str = "fiubc", values: Any = (-3, 3), **options: Any) -> Record:
    """A record of a function of two arrays that broadcast, differentiable by both."""
    special = options.pop("special", True)
    draw = lambda d: d.call(*d.pair(kinds, values=values, special=special))
    return Record(f"numpy.{name}", draw, **{"grad": (0, 1), **options})


def question(name: str, kinds: str = "fiubc", **options: Any) -> Record:
    """A record of a function of one array that answers yes or no."""
    return unary(name, kinds, grad=STEPS, **options)


def comparison(name: str, kinds: str = "fiub", **options: Any) -> Record:
    """A record of a function of two arrays that answers yes or no."""
    return binary(name, kinds, grad=STEPS, **options)


UNARY = [
    *(unary(name, "fiub") for name in ("sin", "cos", "sinh", "arctan", "arcsinh")),
    *(unary(name, "c", case="complex", special=False) for name in ("sin", "cos", "sinh", "cosh")),
    *(unary(name, "fiub") for name in ("cosh", "tanh", "exp", "exp2", "expm1", "cbrt")),
    *(unary(name, "c", case="complex", special=False) for name in ("tanh", "exp", "expm1")),
    unary("tan", "fiub", WITHIN_ONE),
    unary("tan", "c", WITHIN_ONE, case="complex", special=False),
    *(unary(name, "fiub", POSITIVE) for name in ("log", "log2", "log10", "log1p", "sqrt")),
    *(
        unary(name, "c", case="complex", special=False)
        for name in ("log", "log2", "log10", "log1p", "sqrt")
    ),
    *(unary(name, "fiub", WITHIN_ONE) for name in ("arcsin", "arccos", "arctanh")),
    unary("arccosh", "fiub", BEYOND_ONE),
    *(
        unary(name, "c", (0.25, 3), case="complex", special=False)
        for name in ("arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh")
    ),
    *(unary(name, "fiub", WITHIN_ONE) for name in ("asin", "acos", "atan", "asinh", "atanh")),
    unary("acosh", "fiub", BEYOND_ONE),
    *(unary(name, "fiub", LARGE) for name in ("degrees", "radians", "deg2rad", "rad2deg")),
    unary("sinc", "fiub", tolerance=2),
    unary("i0", "fiub", tolerance=2),
    *(unary(name, "fiub", LARGE, grad=STEPS) for name in ("floor", "ceil", "trunc", "rint")),
    unary("rint", "c", grad=STEPS, case="complex", special=False),
    *(unary(name, "fiu") for name in ("absolute", "abs", "square", "positive")),
    *(unary(name, "c", case="complex", special=False) for name in ("absolute", "square")),
    unary("sign", "fiuc", special=False, grad="it is taken to be constant, of complex numbers too"),
    unary("negative", "fiuc", special=False),
    unary("negative", "f", case="special"),
    unary("fabs", "fi"),
    unary("reciprocal", "fc", POSITIVE, special=False),
    unary("real"),
    *(unary(name, "fiuc") for name in ("conj", "conjugate")),
    unary("imag", grad="of real operands it is zero"),
    unary("angle", "c", special=False),
    unary("nan_to_num", "iub", grad="integers have no derivative"),
    Record(
        "numpy.nan_to_num",
        lambda d: d.call(d.array("f", special=True), nan=1.5, posinf=2.0, neginf=-2.0),
        case="floats",
    ),
    unary("modf", "fi", LARGE),
    unary("frexp", "f", LARGE),
    unary("spacing", "f", grad=STEPS, special=False),
    Record(
        "numpy.round",
        lambda d: d.call(d.array("fc", special=False), decimals=d.of(1, 0, 2)),
        grad=STEPS,
    ),
    Record("numpy.around", lambda d: d.call(d.array("fc"), decimals=d.of(1, -1)), grad=STEPS),
    Record(
        "numpy.clip",
        lambda d: d.call(d.array("fiu", special=True), d.of(0.5, -1, None), d.of(2, 1.25, None)),
        lambda x, low, high: np.minimum(
            np.maximum(x, -np.inf if low is None else low), np.inf if high is None else high
        ),
    ),
]

TESTS = [
    *(question(name) for name in ("isfinite", "isinf", "isnan", "logical_not")),
    *(question(name, "fiub") for name in ("isneginf", "isposinf")),
    *(question(name) for name in ("iscomplex", "isreal")),
    question("signbit", "fiu"),
    *(question(name, "biu") for name in ("invert", "bitwise_not", "bitwise_invert")),
    question("bitwise_count", "iu", values=LARGE),
]

COMPARISONS = [
    *(
        comparison(name, "fiubc")
        for name in ("equal", "not_equal", "logical_and", "logical_or", "logical_xor")
    ),
    *(comparison(name, "fiub") for name in ("less", "less_equal", "greater", "greater_equal")),
    comparison("isclose"),
    *(comparison(name) for name in ("array_equal", "array_equiv", "allclose")),
]

BITS = [
    *(binary(name, "iu", LARGE, grad=STEPS) for name in ("bitwise_and", "bitwise_or")),
    *(binary(name, "biu", grad=STEPS, case="bool") for name in ("bitwise_and", "bitwise_xor")),
    binary("bitwise_xor", "iu", LARGE, grad=STEPS),
    *(binary(name, "iu", (0, 7), grad=STEPS) for name in ("left_shift", "right_shift")),
    *(
        binary(name, "iu", (0, 7), grad=STEPS)
        for name in ("bitwise_left_shift", "bitwise_right_shift")
    ),
    *(binary(name, "iu", LARGE, grad=STEPS) for name in ("gcd", "lcm")),
]

ARITHMETIC = [
    *(binary(name, "fiubc") for name in ("add", "multiply")),
    binary("subtract", "fiuc"),
    *(binary(name, "fiu", POSITIVE) for name in ("divide", "true_divide")),
    binary("divide", "c", POSITIVE, case="complex", special=False),
    binary("floor_divide", "fiu", (1, 9), grad=STEPS),
    *(binary(name, "fiu", (1, 9)) for name in ("remainder", "mod", "fmod")),
    binary("divmod", "fiu", (1, 9)),
    binary("power", "f", POSITIVE, tolerance=4),
    binary("pow", "iu", (0, 4), grad=STEPS),
    binary("float_power", "fiu", POSITIVE, tolerance=4, special=False),
    *(binary(name, "fiub") for name in ("maximum", "minimum")),
    *(binary(name, "fiu") for name in ("fmax", "fmin")),
    binary("hypot", "fi"),
    binary("heaviside", "f", grad=STEPS),
    binary("copysign", "f"),
    binary("nextafter", "f", grad=STEPS, special=False),
    *(binary(name, "fi") for name in ("arctan2", "atan2", "logaddexp", "logaddexp2")),
    Record("numpy.ldexp", lambda d: d.call(d.array("f", [(3,), (2, 3)]), d.array("i", [(3,)]))),
]

RECORDS = [*UNARY, *TESTS, *COMPARISONS, *BITS, *ARITHMETIC]
