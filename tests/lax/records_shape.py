"""Records of operations that move elements, and of those that make arrays."""

from __future__ import annotations

import numpy as np

from minijax import lax
from minijax.lax.shape import copy
from tests.lax.records import Arg, ErrorSample, Record

_EVERY = ("float32", "bool", "int8", "uint16", "int32", "float16", "bfloat16", "complex64")
_X = np.zeros((3, 4), np.float32)


def _padded(x, value, config):
    """NumPy's way to `pad`: spreads the elements, then sets and cuts the edges."""
    for axis, (low, high, interior) in enumerate(config):
        n = x.shape[axis]
        sizes = list(x.shape)
        sizes[axis] = n + max(n - 1, 0) * interior
        spread = np.full(sizes, value, x.dtype)
        places = [slice(None)] * x.ndim
        places[axis] = slice(None, None, interior + 1)
        spread[tuple(places)] = x
        edges = [(0, 0)] * x.ndim
        edges[axis] = (max(low, 0), max(high, 0))
        x = np.pad(spread, edges, constant_values=value)
        cut = [slice(None)] * x.ndim
        cut[axis] = slice(max(-low, 0), x.shape[axis] - max(-high, 0))
        x = x[tuple(cut)]
    return x


def _pad_record(case, config, shape_=(3, 4), **options):
    return Record(
        name="pad",
        case=case,
        call=lambda x, v: lax.pad(x, v, config),
        oracle=lambda x, v: _padded(x, v, config),
        args=(Arg(shape_), Arg(())),
        grad=(0, 1),
        **options,
    )


RECORDS = [
    Record(
        name="broadcast_in_dim",
        call=lambda x: lax.broadcast_in_dim(x, (3, 2, 4), (0, 2)),
        oracle=lambda x: np.broadcast_to(x[:, None, :], (3, 2, 4)),
        args=(Arg((3, 1)),),
        dtypes=_EVERY,
        grad=(0,),
        errors=(
            ErrorSample(lax.broadcast_in_dim, (_X, (3, 5), (0, 1)), TypeError, "does not fit into"),
            ErrorSample(
                lax.broadcast_in_dim, (_X, (3, 4), (-2, -1)), TypeError, "does not fit into"
            ),
            ErrorSample(lax.broadcast_in_dim, (_X, (3, 4), 0), TypeError, "must be a sequence"),
        ),
    ),
    Record(
        name="broadcast_in_dim",
        case="permuting",
        call=lambda x: lax.broadcast_in_dim(x, (4, 2, 3), (2, 0)),
        oracle=lambda x: np.broadcast_to(x.T[:, None, :], (4, 2, 3)),
        args=(Arg((3, 4)),),
        grad=(0,),
    ),
    Record(
        name="broadcast_in_dim",
        case="leading",
        call=lambda x: lax.broadcast(x, (2, 3)),
        oracle=lambda x: np.broadcast_to(x, (2, 3, 4)),
        args=(Arg((4,)),),
        grad=(0,),
    ),
    Record(
        name="broadcast_in_dim",
        case="expand_dims",
        call=lambda x: lax.expand_dims(x, (-1, 0)),
        oracle=lambda x: x[None, :, :, None],
        args=(Arg((3, 4)),),
        grad=(0,),
        errors=(
            ErrorSample(lax.expand_dims, (_X, (0, 0)), ValueError, "named twice"),
            ErrorSample(lax.expand_dims, (_X, (5,)), ValueError, "out of range"),
        ),
    ),
    Record(
        name="transpose",
        call=lambda x: lax.transpose(x, (2, 0, 1)),
        oracle=lambda x: x.transpose(2, 0, 1),
        args=(Arg((2, 3, 4)),),
        dtypes=_EVERY,
        grad=(0,),
        errors=(
            ErrorSample(lax.transpose, (_X, (-1, 0)), TypeError, "permutation does not fit"),
            ErrorSample(lax.transpose, (_X, (1,)), TypeError, "permutation does not fit"),
        ),
    ),
    Record(
        name="reshape",
        call=lambda x: lax.reshape(x, (2, 6)),
        oracle=lambda x: x.reshape(2, 6),
        args=(Arg((3, 4)),),
        dtypes=_EVERY,
        grad=(0,),
        errors=(
            ErrorSample(lax.reshape, (_X, (5,)), TypeError, "whose product is 12"),
            ErrorSample(lax.reshape, (_X, (-1,)), TypeError, "must not be negative"),
            ErrorSample(lax.reshape, (_X, (12,), (0, 0)), TypeError, "must be a permutation"),
        ),
    ),
    Record(
        name="reshape",
        case="permuting",
        call=lambda x: lax.reshape(x, (8, 3), (2, 0, 1)),
        oracle=lambda x: x.transpose(2, 0, 1).reshape(8, 3),
        args=(Arg((2, 3, 4)),),
        grad=(0,),
    ),
    Record(
        name="reshape",
        case="collapse",
        call=lambda x: lax.collapse(x, 1, 3),
        oracle=lambda x: x.reshape(2, 12),
        args=(Arg((2, 3, 4)),),
        grad=(0,),
        errors=(ErrorSample(lax.collapse, (_X, 1, 0), ValueError, "ends before it starts"),),
    ),
    Record(
        name="squeeze",
        call=lambda x: lax.squeeze(x, (0, -2)),
        oracle=lambda x: x.reshape(3, 4),
        args=(Arg((1, 3, 1, 4)),),
        dtypes=_EVERY,
        grad=(0,),
        errors=(
            ErrorSample(lax.squeeze, (_X, (0,)), ValueError, "only dimensions of size 1"),
            ErrorSample(lax.squeeze, (_X, (5,)), ValueError, "out of range"),
        ),
    ),
    Record(
        name="concatenate",
        call=lambda x, y, z: lax.concatenate([x, y, z], 1),
        oracle=lambda x, y, z: np.concatenate([x, y, z], 1),
        args=(Arg((2, 3)), Arg((2, 0)), Arg((2, 4))),
        dtypes=_EVERY,
        grad=(0, 2),
        errors=(
            ErrorSample(lax.concatenate, ([], 0), ValueError, "nothing to join"),
            ErrorSample(lax.concatenate, ([_X, _X], -1), TypeError, "-1 is out of range"),
            ErrorSample(lax.concatenate, ([_X, _X.T], 0), TypeError, "differ elsewhere"),
            ErrorSample(
                lax.concatenate, ([_X, _X.astype("int32")], 0), TypeError, "different dtypes"
            ),
        ),
    ),
    Record(
        name="split",
        call=lambda x: lax.split(x, (1, 0, 4), -1),
        oracle=lambda x: [x[:, :1], x[:, 1:1], x[:, 1:]],
        args=(Arg((3, 5)),),
        dtypes=_EVERY,
        grad=(0,),
        errors=(
            ErrorSample(lax.split, (_X, (1, 1)), ValueError, "do not add up"),
            ErrorSample(lax.split, (_X, (4, -1)), ValueError, "do not add up"),
            ErrorSample(lax.split, (_X, (3,), 5), ValueError, "out of range"),
        ),
    ),
    Record(
        name="stack",
        call=lambda x, y: lax.stack([x, y, x], -1),
        oracle=lambda x, y: np.stack([x, y, x], -1),
        args=(Arg((2, 3)), Arg((2, 3))),
        dtypes=_EVERY,
        grad=(0, 1),
        errors=(
            ErrorSample(lax.stack, ([],), ValueError, "nothing to join"),
            ErrorSample(lax.stack, ([_X], 3), ValueError, "3 is out of range"),
            ErrorSample(lax.stack, ([_X, _X[0]],), ValueError, "must have one shape"),
            ErrorSample(lax.stack, ([_X, _X > 0],), TypeError, "different dtypes"),
        ),
    ),
    Record(
        name="unstack",
        call=lambda x: lax.unstack(x, 1),
        oracle=lambda x: tuple(np.moveaxis(x, 1, 0)),
        args=(Arg((2, 3, 4)),),
        dtypes=_EVERY,
        grad=(0,),
        errors=(ErrorSample(lax.unstack, (_X, 2), ValueError, "2 is out of range"),),
    ),
    Record(
        name="broadcast_in_dim",
        case="like",
        call=lambda x: lax.broadcast_like(x, np.zeros((2, 3, 4))),
        oracle=lambda x: np.broadcast_to(x, (2, 3, 4)),
        args=(Arg((3, 1)),),
        grad=(0,),
        errors=(ErrorSample(lax.broadcast_like, (_X, _X[:1]), ValueError, "would not fit"),),
    ),
    _pad_record("edges", ((1, 2, 0), (0, 3, 0)), dtypes=_EVERY),
    _pad_record("interior", ((1, 0, 2), (0, 1, 1))),
    _pad_record("negative", ((-1, 2, 0), (1, -2, 2))),
    _pad_record("empty", ((1, 2, 3), (1, 1, 0)), shape_=(0, 2)),
    Record(
        name="pad",
        case="errors",
        call=lambda x: lax.pad(x, 0.0, ((0, 0, 0),)),
        oracle=lambda x: x,
        args=(Arg((3,)),),
        errors=(
            ErrorSample(lax.pad, (_X, 0.0, [(1, 1, 0)]), ValueError, "for each dimension"),
            ErrorSample(lax.pad, (_X, 0.0, [(1, 1)] * 2), ValueError, "low, high, interior"),
            ErrorSample(lax.pad, (_X, 0.0, [(0, 0, -1)] * 2), ValueError, "interior >= 0"),
            ErrorSample(lax.pad, (_X, 0.0, [(-9, 0, 0)] * 2), ValueError, "too much is cut off"),
            ErrorSample(lax.pad, (_X, _X, [(0, 0, 0)] * 2), ValueError, "must be a scalar"),
            ErrorSample(lax.pad, (_X, True, [(0, 0, 0)] * 2), TypeError, "different dtypes"),
        ),
    ),
    Record(
        name="rev",
        call=lambda x: lax.rev(x, (0, 2)),
        oracle=lambda x: x[::-1, :, ::-1],
        args=(Arg((2, 3, 4)),),
        dtypes=_EVERY,
        grad=(0,),
        errors=(
            ErrorSample(lax.rev, (_X, (2,)), TypeError, "do not fit"),
            ErrorSample(lax.rev, (_X, (0, 0)), TypeError, "do not fit"),
        ),
    ),
    Record(
        name="tile",
        call=lambda x: lax.tile(x, (2, 3)),
        oracle=lambda x: np.tile(x, (2, 3)),
        args=(Arg((3, 2)),),
        dtypes=_EVERY,
        grad=(0,),
        errors=(
            ErrorSample(lax.tile, (_X, (2,)), TypeError, "reps does not fit"),
            ErrorSample(lax.tile, (_X, (2, -1)), TypeError, "reps does not fit"),
        ),
    ),
    Record(
        name="tile",
        case="nothing",
        call=lambda x: lax.tile(x, (0, 2)),
        oracle=lambda x: np.tile(x, (0, 2)),
        args=(Arg((3, 2)),),
        grad=(0,),
    ),
    Record(
        name="copy",
        call=copy,
        oracle=lambda x: x,
        args=(Arg((3, 2)),),
        dtypes=_EVERY,
        grad=(0,),
    ),
    Record(
        name="broadcast_in_dim",
        case="full",
        call=lambda v: lax.full((2, 3), v),
        oracle=lambda v: np.full((2, 3), v),
        args=(Arg(()),),
        dtypes=_EVERY,
        grad=(0,),
        errors=(
            ErrorSample(lax.full, ((2,), [1, 2]), TypeError, "must be a scalar"),
            ErrorSample(lax.full, ((-2,), 1), TypeError, "must not be negative"),
        ),
    ),
    Record(
        name="broadcast_in_dim",
        case="full_like",
        call=lambda x, v: lax.full_like(x, v, shape=(3,)),
        oracle=lambda x, v: np.full((3,), v),
        args=(Arg((2, 2)), Arg(())),
        grad=(1,),
        errors=(ErrorSample(lax.full_like, (_X, _X), TypeError, "must be a scalar"),),
    ),
    Record(
        name="iota",
        call=lambda: lax.broadcasted_iota(np.int32, (2, 3), 1),
        oracle=lambda: np.broadcast_to(np.arange(3, dtype=np.int32), (2, 3)),
        args=(),
        batch=False,
        errors=(
            ErrorSample(lax.iota, (bool, 2), TypeError, "does not accept dtype bool"),
            ErrorSample(lax.iota, (int, -1), TypeError, "must not be negative"),
            ErrorSample(lax.iota, (int, 2.0), TypeError, "concrete integers"),
            ErrorSample(lax.broadcasted_iota, (int, (2, 2), 2), ValueError, "2 is out of range"),
        ),
    ),
    *[
        Record(
            name="iota",
            case=dtype,
            call=lambda dtype=dtype: lax.iota(dtype, 4),
            oracle=lambda: np.arange(4),
            args=(),
            batch=False,
        )
        for dtype in ("uint8", "float32", "bfloat16", "complex64")
    ],
    Record(
        name="empty",
        call=lambda: lax.empty((2, 3), "float32"),
        oracle=lambda: np.zeros((2, 3)),
        args=(),
        batch=False,
        errors=(ErrorSample(lax.empty, ((-1,), int), TypeError, "must not be negative"),),
    ),
]
