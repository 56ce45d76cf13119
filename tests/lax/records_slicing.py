"""Records of slices, static and dynamic, and of their updates."""

from __future__ import annotations

import numpy as np

from minijax import lax
from tests.lax.records import Arg, ErrorSample, Record

_EVERY = ("float32", "bool", "int8", "uint16", "int32", "float16", "bfloat16", "complex64")
_X = np.zeros((5, 6), np.float32)
_STARTS = Arg((2,), "int32", low=-7, high=7)


def _place(shape, sizes, starts):
    """Where a dynamic slice lies: negative starts count from the end, then all are clamped."""
    places = []
    for n, m, start in zip(shape, sizes, starts, strict=True):
        first = min(max(start + n if start < 0 else start, 0), n - m)
        places.append(slice(first, first + m))
    return tuple(places)


def _updated(x, update, starts):
    x = x.copy()
    x[_place(x.shape, update.shape, starts)] = update
    return x


RECORDS = [
    Record(
        name="slice",
        call=lambda x: lax.slice(x, (1, 2), (4, 6)),
        oracle=lambda x: x[1:4, 2:6],
        args=(Arg((5, 6)),),
        dtypes=_EVERY,
        grad=(0,),
        errors=(
            ErrorSample(lax.slice, (_X, (0,), (1,)), TypeError, "for each dimension"),
            ErrorSample(lax.slice, (_X, (0, 0), (1, 1), (1,)), TypeError, "for each dimension"),
            ErrorSample(lax.slice, (_X, (0, 0), (6, 1)), TypeError, "do not lie inside"),
            ErrorSample(lax.slice, (_X, (3, 0), (2, 1)), TypeError, "do not lie inside"),
            ErrorSample(lax.slice, (_X, (-1, 0), (2, 1)), TypeError, "do not lie inside"),
            ErrorSample(lax.slice, (_X, (0, 0), (2, 1), (0, 1)), TypeError, "strides of at least"),
            ErrorSample(lax.slice, (_X, (0.0, 0), (2, 1)), TypeError, "start_indices must be a"),
        ),
    ),
    Record(
        name="slice",
        case="strided",
        call=lambda x: lax.slice(x, (0, 1, 1), (5, 6, 1), (2, 3, 1)),
        oracle=lambda x: x[::2, 1::3, 1:1],
        args=(Arg((5, 6, 2)),),
        grad=(0,),
    ),
    Record(
        name="slice",
        case="uneven",
        call=lambda x: lax.slice(x, (1, 0), (5, 6), (3, 5)),
        oracle=lambda x: x[1::3, ::5],
        args=(Arg((5, 6)),),
        grad=(0,),
    ),
    Record(
        name="slice",
        case="in_dim",
        call=lambda x: lax.slice_in_dim(x, -5, -1, 2, axis=-1),
        oracle=lambda x: x[:, -5:-1:2],
        args=(Arg((5, 6)),),
        grad=(0,),
        errors=(
            ErrorSample(lax.slice_in_dim, (_X, 0, 9), TypeError, "do not lie inside"),
            ErrorSample(lax.slice_in_dim, (_X, 0, 1, 1, 5), ValueError, "5 is out of range"),
        ),
    ),
    Record(
        name="slice",
        case="index_in_dim",
        call=lambda x: lax.index_in_dim(x, -2, 1, keepdims=False),
        oracle=lambda x: x[:, -2],
        args=(Arg((5, 6)),),
        grad=(0,),
        errors=(ErrorSample(lax.index_in_dim, (_X, 5), IndexError, "index 5 is out of range"),),
    ),
    Record(
        name="dynamic_slice",
        call=lambda x, starts: lax.dynamic_slice(x, starts, (2, 3)),
        oracle=lambda x, starts: x[_place(x.shape, (2, 3), starts)],
        args=(Arg((5, 6)), _STARTS),
        dtypes=_EVERY,
        grad=(0,),
        errors=(
            ErrorSample(lax.dynamic_slice, (_X, (0,), (1, 1)), ValueError, "for each dimension"),
            ErrorSample(lax.dynamic_slice, (_X, (0, 0), (1,)), TypeError, "does not fit into"),
            ErrorSample(lax.dynamic_slice, (_X, (0, 0), (6, 1)), TypeError, "does not fit into"),
            ErrorSample(lax.dynamic_slice, (_X, (0, 1.5), (1, 1)), TypeError, "integer scalars"),
            ErrorSample(
                lax.dynamic_slice,
                (_X, (np.int8(0), np.int16(0)), (1, 1)),
                TypeError,
                "of one dtype",
            ),
        ),
    ),
    Record(
        name="dynamic_slice",
        case="scalars",
        call=lambda x, i, j: lax.dynamic_slice(x, (i, -4, j), (1, 3, 2)),
        oracle=lambda x, i, j: x[_place(x.shape, (1, 3, 2), (i, -4, j))],
        args=(Arg((2, 5, 6)), Arg((), "int32"), Arg((), "int32")),
        grad=(0,),
    ),
    Record(
        name="dynamic_slice",
        case="index_in_dim",
        call=lambda x, i: lax.dynamic_index_in_dim(x, i, 1, keepdims=False),
        oracle=lambda x, i: x[:, _place((6,), (1,), (i,))[0].start],
        args=(Arg((5, 6)), Arg((), "int32", low=-6, high=9)),
        grad=(0,),
        errors=(
            ErrorSample(lax.dynamic_index_in_dim, (_X, 0, 2), ValueError, "2 is out of range"),
        ),
    ),
    Record(
        name="dynamic_update_slice",
        call=lax.dynamic_update_slice,
        oracle=_updated,
        args=(Arg((5, 6)), Arg((2, 3)), _STARTS),
        dtypes=_EVERY,
        grad=(0, 1),
        errors=(
            ErrorSample(lax.dynamic_update_slice, (_X, _X, (0,)), ValueError, "for each dimension"),
            ErrorSample(
                lax.dynamic_update_slice, (_X, _X[0], (0, 0)), TypeError, "does not fit into"
            ),
            ErrorSample(
                lax.dynamic_update_slice, (_X[:4], _X, (0, 0)), TypeError, "does not fit into"
            ),
            ErrorSample(
                lax.dynamic_update_slice,
                (_X, _X.astype(np.int32), (0, 0)),
                TypeError,
                "different dtypes",
            ),
        ),
    ),
    Record(
        name="dynamic_update_slice",
        case="index_in_dim",
        call=lambda x, update, i: lax.dynamic_update_index_in_dim(x, update, i, 1),
        oracle=lambda x, update, i: _updated(x, update[:, None], (0, i)),
        args=(Arg((5, 6)), Arg((5,)), Arg((), "int32", low=-6, high=9)),
        grad=(0, 1),
    ),
]
