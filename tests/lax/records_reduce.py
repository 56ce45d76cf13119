"""Records of reductions."""

from __future__ import annotations

import numpy as np

from minijax import lax
from tests.lax.records import Arg, ErrorSample, Record

_X = np.zeros((3, 4), np.float32)
_I = _X.astype("int32")
_NUMBERS = ("float32", "int8", "uint16", "int32", "float16", "bfloat16", "complex64", "float64")
_ORDERED = ("float32", "bool", "int8", "uint16", "int32", "float16", "bfloat16", "complex64")
_BITS = ("int32", "bool", "uint8", "int16")
_WITH_NAN = np.array([[1, np.nan, 3], [-np.inf, -np.inf, -np.inf], [2, 2, np.inf]], np.float32)
_AXIS_ERRORS = (
    ((-1,), ValueError, "out of range"),
    ((2,), ValueError, "out of range"),
    ((0, 0), ValueError, "named twice"),
    (0, TypeError, "must be a sequence"),
)


def _wide(x):
    """Small floats in double precision, since NumPy would round after each step."""
    return x.astype(np.float64) if x.dtype.itemsize == 2 and x.dtype.kind in "fV" else x


def _reduction(name, oracle, dtypes, **options):
    function = getattr(lax, name)
    sample = _I if dtypes is _BITS else _X
    return Record(
        name=name,
        call=lambda x: function(x, (0, 2)),
        oracle=lambda x: oracle(_wide(x), axis=(0, 2)).astype(x.dtype),
        args=(Arg((2, 3, 4), distinct="float32" in dtypes and "bool" in dtypes),),
        dtypes=dtypes,
        errors=tuple(ErrorSample(function, (sample, a), t, m) for a, t, m in _AXIS_ERRORS),
        **options,
    )


def _of_nan(name, oracle):
    function = getattr(lax, name)
    return Record(
        name=name,
        case="nan",
        call=lambda x: function(x, (1,)),
        oracle=lambda x: oracle(x, axis=1),
        args=(_WITH_NAN,),
    )


def _of_nothing(name, value, dtype):
    function = getattr(lax, name)
    return Record(
        name=name,
        case=f"nothing-{dtype}",
        call=lambda x: function(x, (0,)),
        oracle=lambda x: np.full((2,), value, dtype),
        args=(Arg((0, 2), dtype),),
    )


def _place(name, oracle):
    function = getattr(lax, name)
    return [
        Record(
            name=name,
            call=lambda x: function(x, 1, np.int32),
            oracle=lambda x: oracle(_wide(x), axis=1),
            args=(Arg((3, 5, 2)),),
            dtypes=_ORDERED[:-1],
            errors=(
                ErrorSample(function, (_X, -1, int), ValueError, "out of range"),
                ErrorSample(function, (_X, 0, np.float32), TypeError, "must be an integer dtype"),
                ErrorSample(function, (_X[:0], 0, int), ValueError, "nothing to choose from"),
                ErrorSample(function, (_X + 1j, 0, int), TypeError, "does not accept dtype"),
            ),
        ),
        Record(
            name=name,
            case="nan",
            call=lambda x: function(x, 1, np.uint8),
            oracle=lambda x: oracle(x, axis=1),
            args=(_WITH_NAN,),
        ),
    ]


def _sum_and_product(left, right):
    return lax.add(left[0], right[0]), lax.mul(left[1], right[1])


def _larger_magnitude(x, y):
    return lax.max(lax.abs(x), lax.abs(y))


RECORDS = [
    _reduction("reduce_sum", np.sum, _NUMBERS, grad=(0,), tolerance={"bfloat16": 4e-2}),
    _reduction(
        "reduce_prod",
        np.prod,
        _NUMBERS,
        grad=(0,),
        tolerance={"bfloat16": 8e-2, "float16": 1e-2},
    ),
    _reduction("reduce_max", np.max, _ORDERED, grad=(0,)),
    _reduction("reduce_min", np.min, _ORDERED, grad=(0,)),
    _reduction("reduce_and", np.bitwise_and.reduce, _BITS),
    _reduction("reduce_or", np.bitwise_or.reduce, _BITS),
    _reduction("reduce_xor", np.bitwise_xor.reduce, _BITS),
    Record(
        name="reduce_prod",
        case="zeros",
        call=lambda x: lax.reduce_prod(x, (1,)),
        oracle=lambda x: x.prod(1),
        args=(np.array([[1, 0, 2, 3, 4], [0, 0, 1, 2, 3], [5, 1, 2, 3, 4]], np.float32),),
        grad=(0,),
    ),
    _of_nan("reduce_max", np.max),
    _of_nan("reduce_min", np.min),
    _of_nothing("reduce_sum", 0, "float32"),
    _of_nothing("reduce_prod", 1, "int32"),
    _of_nothing("reduce_max", -np.inf, "float32"),
    _of_nothing("reduce_max", np.iinfo(np.int32).min, "int32"),
    _of_nothing("reduce_min", True, "bool"),
    _of_nothing("reduce_and", -1, "int32"),
    *_place("argmax", np.argmax),
    *_place("argmin", np.argmin),
    Record(
        name="reduce",
        call=lambda x, y: lax.reduce((x, y), (0.0, 1), _sum_and_product, (1,)),
        oracle=lambda x, y: (x.sum(1), y.prod(1)),
        args=(Arg((3, 5)), Arg((3, 5), "int32")),
        grad=(0,),
        errors=(
            ErrorSample(
                lax.reduce, ((_X, _I), (0.0,), _sum_and_product, (0,)), ValueError, "structure"
            ),
            ErrorSample(lax.reduce, (_X, _X[0], lax.mul, (0,)), ValueError, "must be scalars"),
            ErrorSample(
                lax.reduce,
                ((_X, _I[0]), (0.0, 1), _sum_and_product, (0,)),
                ValueError,
                "one shape",
            ),
            ErrorSample(
                lax.reduce,
                (_X, 0.0, lambda x, y: (x, y), (0,)),
                ValueError,
                "result of the computation",
            ),
            ErrorSample(
                lax.reduce,
                (_X, 0.0, lambda x, y: np.float32([1, 2]), (0,)),
                ValueError,
                "must return what it is given",
            ),
            ErrorSample(lax.reduce, (_X, 1.0, lax.add, (0, 0)), ValueError, "named twice"),
        ),
    ),
    Record(
        name="reduce",
        case="magnitude",
        call=lambda x, start: lax.reduce(x, start, _larger_magnitude, (0, 1)),
        oracle=lambda x, start: np.maximum(np.abs(x).max((0, 1)), np.abs(start)),
        args=(Arg((3, 2, 4), distinct=True, high=1.9), np.float32(0.5)),
        grad=(0,),
    ),
    Record(
        name="reduce",
        case="start",
        call=lambda x, start: lax.reduce(x, start, lax.add, (0,)),
        oracle=lambda x, start: np.full(x.shape[1:], start),
        args=(Arg((0, 4)), Arg(())),
        grad=(1,),
    ),
]
