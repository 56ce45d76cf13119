"""Records of operations that stand for compositions, and of sinks."""

from __future__ import annotations

import functools

import ml_dtypes
import numpy as np

from minijax import lax
from tests.lax.records import Arg, ErrorSample, Record

_SIZES = np.array([1, 0, 2], np.int32)
_OF_EACH = np.array([[1, 0, 2], [0, 4, 0]], np.int32)
_STAYS = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
_SUMS = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ())
_BATCHED = lax.RaggedDotDimensionNumbers((((2,), (2,)), ((0,), (0,))), (1,), (1,))
_SUMS_BATCHED = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((0,), (0,))), (1,), ())
_OF_BATCH = lax.RaggedDotDimensionNumbers((((2,), (1,)), ((0,), (0,))), (0,), ())
_X, _W = np.ones((4, 3), np.float32), np.ones((3, 3, 2), np.float32)


def _groups(sizes):
    ends = np.cumsum(sizes)
    return [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]


def _rows(x, w, sizes):
    """Each row times the matrix of its group."""
    out = np.zeros((x.shape[0], w.shape[2]), np.result_type(x, w))
    for rows, matrix in zip(_groups(sizes), w, strict=True):
        out[rows] = x[rows] @ matrix
    return out


def _sums(x, y, sizes):
    """Products of the rows of each group."""
    return np.stack([x[rows].T @ y[rows] for rows in _groups(sizes)])


def _each(oracle, axis, x, y, sizes):
    return np.stack([oracle(*args) for args in zip(x, y, sizes, strict=True)], axis)


def _scaled(x, y, x_scale, y_scale):
    x = x.astype(np.float32) * np.repeat(x_scale.astype(np.float32), 2, 1)
    y = y.astype(np.float32) * np.repeat(y_scale.astype(np.float32), 4, 0)
    return (x @ y).astype(ml_dtypes.bfloat16)


def _sine_plus(x, y, *, factor):
    return {"sum": lax.add(lax.sin(x), lax.mul(y, np.asarray(factor, lax.dtype(y))))}


def _read(x):
    lax.dce_sink({"sine": lax.sin(x)}, prevent_mlir_dce=True)
    return lax.mul(x, x)


def _general(numbers):
    return lambda x, y, sizes: lax.ragged_dot_general(x, y, sizes, numbers)


RECORDS = [
    Record(
        name="ragged_dot_general",
        call=lax.ragged_dot,
        oracle=_rows,
        args=(Arg((4, 3)), Arg((3, 3, 2)), _SIZES),
        dtypes=("float32", "int32", "complex64"),
        grad=(0, 1),
        errors=(
            ErrorSample(lax.ragged_dot, (_X, _W, _SIZES[:2]), TypeError, "as many groups"),
            ErrorSample(lax.ragged_dot, (_X, _W, _X[0]), TypeError, "must be integers"),
            ErrorSample(lax.ragged_dot, (_X, _W[:, :2], _SIZES), TypeError, "paired dimensions"),
            ErrorSample(lax.ragged_dot, (_X[0], _W, _SIZES), TypeError, "no such pairs"),
            ErrorSample(_general(_STAYS), (_X, _W, _SIZES[None, None]), TypeError, "wrong shape"),
            ErrorSample(
                functools.partial(lax.ragged_dot, group_offset=1),
                (_X, _W, _SIZES),
                NotImplementedError,
                "group_offset",
            ),
        ),
    ),
    Record(
        name="ragged_dot_general",
        case="sums",
        call=_general(_SUMS),
        oracle=_sums,
        args=(Arg((4, 3)), Arg((4, 2)), _SIZES),
        grad=(0, 1),
    ),
    Record(
        name="ragged_dot_general",
        case="batched",
        call=_general(_BATCHED),
        oracle=functools.partial(_each, _rows, 0),
        args=(Arg((2, 4, 3)), Arg((2, 3, 3, 2)), _OF_EACH),
        grad=(0, 1),
    ),
    Record(
        name="ragged_dot_general",
        case="sums_batched",
        call=_general(_SUMS_BATCHED),
        oracle=functools.partial(_each, _sums, 1),
        args=(Arg((2, 4, 3)), Arg((2, 4, 2)), _OF_EACH),
        grad=(0, 1),
    ),
    Record(
        name="ragged_dot_general",
        case="of_batch",
        call=_general(_OF_BATCH),
        oracle=lambda x, y, sizes: x @ y,
        args=(Arg((4, 2, 3)), Arg((4, 3, 2)), _SIZES),
        grad=(0, 1),
    ),
    Record(
        name="scaled_dot",
        call=lambda x, y, s, t: lax.scaled_dot(x, y, lhs_scale=s, rhs_scale=t),
        oracle=_scaled,
        args=(
            Arg((2, 4), "float8_e4m3fn"),
            Arg((4, 3), "float8_e4m3fn"),
            Arg((2, 2), "float8_e8m0fnu", low=1, high=4),
            Arg((1, 3), "float8_e8m0fnu", low=1, high=4),
        ),
        tolerance=2e-2,
        errors=(
            ErrorSample(
                lambda x, s: lax.scaled_dot(x, x, lhs_scale=s),
                (_X[:3], _X[:3]),
                TypeError,
                "two elements at least",
            ),
            ErrorSample(
                lambda x, s: lax.scaled_dot(x, x, lhs_scale=s),
                (_X[:3], _X[:3, :2]),
                TypeError,
                "into blocks",
            ),
            ErrorSample(lambda x: lax.scaled_dot(x, x), (_X[0],), TypeError, "dimension_numbers"),
        ),
    ),
    Record(
        name="composite",
        call=functools.partial(lax.composite(_sine_plus, "tests.sine_plus", 2), factor=3.0),
        oracle=lambda x, y: {"sum": np.sin(x) + 3 * y},
        args=(Arg((3,)), Arg((3,))),
        grad=(0, 1),
        errors=(
            ErrorSample(lax.composite(_sine_plus, "a.b"), (_X,), TypeError, "missing"),
            ErrorSample(
                lambda x: lax.composite(_sine_plus, "a.b")(x, x, factor=object()),
                (_X,),
                TypeError,
                "'factor'",
            ),
            ErrorSample(lambda: lax.composite(_sine_plus, "b"), (), ValueError, "its library"),
        ),
    ),
    Record(
        name="dce_sink",
        call=_read,
        oracle=np.square,
        args=(Arg((3,)),),
        grad=(0,),
    ),
]
