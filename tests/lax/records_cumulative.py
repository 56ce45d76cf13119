"""Records of cumulative operations."""

from __future__ import annotations

import numpy as np

from minijax import lax
from tests.lax.records import Arg, ErrorSample, Record

_X = np.zeros((3, 4), np.float32)
_NUMBERS = ("float32", "int8", "uint16", "int32", "float16", "bfloat16", "complex64")
_REALS = _NUMBERS[:-1]
_FLOATS = ("float32", "float16", "bfloat16")


def _wide(x):
    """Small floats in double precision, since NumPy would round after each step."""
    return x.astype(np.float64) if x.dtype.itemsize == 2 and x.dtype.kind in "fV" else x


def _records(name, oracle, dtypes, *, distinct=False, scale=2.0, **options):
    function = getattr(lax, name)
    bool_error = ErrorSample(function, (_X > 0,), TypeError, "does not accept dtype bool")
    axis_errors = tuple(
        ErrorSample(function, (_X, axis), ValueError, "out of range") for axis in (-1, 2)
    )

    def arg(*shape):
        return Arg(shape, low=-scale, high=scale, distinct=distinct)

    return [
        Record(
            name=name,
            call=lambda x: function(x, 1),
            oracle=lambda x: oracle(_wide(x), axis=1).astype(x.dtype),
            args=(arg(2, 7, 2),),
            dtypes=dtypes,
            grad=(0,),
            errors=(bool_error, *axis_errors),
            **options,
        ),
        Record(
            name=name,
            case="reverse",
            call=lambda x: function(x, 0, reverse=True),
            oracle=lambda x: oracle(x[::-1], axis=0)[::-1],
            args=(arg(5, 2),),
            grad=(0,),
        ),
        Record(
            name=name,
            case="blocks",
            call=lambda x: (function(x), function(x, reverse=True)),
            oracle=lambda x: (oracle(x, axis=0), oracle(x[::-1], axis=0)[::-1]),
            args=(arg(75),),
            batch=False,
            tolerance=1e-4,
        ),
        Record(
            name=name,
            case="nothing",
            call=lambda x: function(x, 0),
            oracle=lambda x: x,
            args=(arg(0, 2),),
        ),
    ]


def _special(name, oracle, values):
    function = getattr(lax, name)
    return Record(
        name=name,
        case="special",
        call=function,
        oracle=lambda x: oracle(x, axis=0),
        args=(np.float32(values),),
    )


RECORDS = [
    *_records("cumsum", np.cumsum, _NUMBERS, tolerance={"bfloat16": 4e-2}),
    *_records("cumprod", np.cumprod, _NUMBERS, scale=1.3, tolerance={"bfloat16": 4e-2}),
    *_records("cummax", np.maximum.accumulate, _REALS, distinct=True),
    *_records("cummin", np.minimum.accumulate, _REALS, distinct=True),
    *_records("cumlogsumexp", np.logaddexp.accumulate, _FLOATS),
    Record(
        name="cumprod",
        case="zeros",
        call=lax.cumprod,
        oracle=np.cumprod,
        args=(np.float32([2, 0, 3, 0, 5, 7]),),
        grad=(0,),
    ),
    _special("cummax", np.maximum.accumulate, [-np.inf, 1, 0, np.nan, 3]),
    _special("cummin", np.minimum.accumulate, [np.inf, 1, 2, np.nan, 3]),
    _special(
        "cumlogsumexp",
        np.logaddexp.accumulate,
        [-np.inf, -np.inf, 1, 90, -3, np.inf, np.inf, 1, np.nan],
    ),
]
