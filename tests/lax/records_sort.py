"""Records of sorting, of the largest elements, and of the barrier."""

from __future__ import annotations

import numpy as np

from minijax import lax
from tests.lax.records import Arg, ErrorSample, Record

_X = np.zeros((3, 4), np.float32)
_EVERY = (
    "float32",
    "bool",
    "int8",
    "uint16",
    "int32",
    "float16",
    "bfloat16",
    "float64",
    "complex64",
)
_SPECIAL = np.float32([[3, np.nan, -np.inf, 0, 1], [-np.nan, np.inf, 2, -1, 0]])


def _sorted_together(keys, value):
    order = np.lexsort(keys[::-1])
    return [np.take(x, order) for x in (*keys, value)]


def _largest(x, k):
    order = np.argsort(-x.astype(np.float64), axis=-1, kind="stable")[..., :k]
    return [np.take_along_axis(x, order, -1), order]


def _smallest(x, k):
    order = np.argsort(x, axis=-1, kind="stable")[..., :k]
    return [np.take_along_axis(x, order, -1), order]


RECORDS = [
    Record(
        name="sort",
        call=lambda x: lax.sort(x, 0),
        oracle=lambda x: np.sort(x, 0),
        args=(Arg((5, 3)),),
        dtypes=_EVERY,
        grad=(0,),
        errors=(
            ErrorSample(lax.sort, (_X, 2), ValueError, "out of range"),
            ErrorSample(lax.sort, ((),), TypeError, "nothing to sort"),
            ErrorSample(lax.sort, ((_X, _X[0]),), TypeError, "one shape"),
            ErrorSample(
                lambda x: lax.sort(x, num_keys=2), (_X,), ValueError, "num_keys is out of range"
            ),
            ErrorSample(lambda x: lax.sort((x, x), num_keys=0), (_X,), ValueError, "out of range"),
        ),
    ),
    Record(
        name="sort",
        case="special",
        call=lax.sort,
        oracle=np.sort,
        args=(_SPECIAL,),
        dtypes=("float32", "float64"),
    ),
    Record(
        name="sort",
        case="keys",
        call=lambda a, b, c: lax.sort((a, b, c), num_keys=2),
        oracle=lambda a, b, c: _sorted_together((a, b), c),
        args=(Arg((9,), "int32", low=0, high=2), Arg((9,)), Arg((9,))),
        grad=(1, 2),
    ),
    Record(
        name="sort",
        case="key_val",
        call=lax.sort_key_val,
        oracle=lambda k, v: [
            np.sort(k),
            np.take_along_axis(v, np.argsort(k, axis=-1, kind="stable"), -1),
        ],
        args=(Arg((3, 7), low=0, high=3), Arg((3, 7), "int32")),
        dtypes=("int32", "bool", "float32", "bfloat16", "complex64"),
    ),
    Record(
        name="top_k",
        call=lambda x: lax.top_k(x, 3),
        oracle=lambda x: _largest(x, 3),
        args=(Arg((2, 6), distinct=True),),
        dtypes=("float32", "int8", "uint16", "int32", "float16", "bfloat16"),
        grad=(0,),
        errors=(
            ErrorSample(lax.top_k, (_X, 5), ValueError, "k is out of range"),
            ErrorSample(lax.top_k, (_X, -1), ValueError, "k is out of range"),
            ErrorSample(lax.top_k, (_X + 1j, 2), ValueError, "no largest"),
            ErrorSample(
                lambda x: lax.top_k(x, 1, axis=3), (_X,), ValueError, "axis 3 is out of range"
            ),
        ),
    ),
    Record(
        name="top_k",
        case="axis",
        call=lambda x: lax.top_k(x, 2, axis=1),
        oracle=lambda x: [y.transpose(0, 2, 1) for y in _largest(x.transpose(0, 2, 1), 2)],
        args=(Arg((2, 4, 3), distinct=True),),
        grad=(0,),
    ),
    Record(
        name="top_k",
        case="ties",
        call=lambda x: lax.top_k(x, 6),
        oracle=lambda x: _largest(x, 6),
        args=(Arg((3, 6), low=0, high=1),),
        dtypes=("int32", "bool"),
    ),
    Record(
        name="approx_top_k",
        case="max",
        call=lambda x: lax.approx_max_k(x, 2),
        oracle=lambda x: _largest(x, 2),
        args=(Arg((3, 6), distinct=True),),
        dtypes=("float32", "bfloat16"),
        grad=(0,),
        errors=(
            ErrorSample(lax.approx_max_k, (_X, 5), ValueError, "out of range"),
            ErrorSample(lax.approx_max_k, (_X, 0), ValueError, "out of range"),
            ErrorSample(lax.approx_max_k, (_X.astype(int), 2), ValueError, "floating dtype"),
            ErrorSample(lax.approx_min_k, (_X, 2, 3), ValueError, "out of range"),
        ),
    ),
    Record(
        name="approx_top_k",
        case="min",
        call=lambda x: lax.approx_min_k(x, 2, 0),
        oracle=lambda x: [y.T for y in _smallest(x.T, 2)],
        args=(Arg((6, 3), distinct=True),),
        grad=(0,),
    ),
    Record(
        name="optimization_barrier",
        call=lambda x, y: lax.optimization_barrier({"x": x, "y": (y, 2.0)}),
        oracle=lambda x, y: {"x": x, "y": (y, 2.0)},
        args=(Arg((2, 3)), Arg((4,), "int32")),
        dtypes=("float32", "bool", "bfloat16"),
        grad=(0,),
    ),
]
