"""Records of gathers, in every mode."""

from __future__ import annotations

import numpy as np

from minijax import lax
from tests.lax.records import Arg, ErrorSample, Record

_EVERY = ("float32", "bool", "int8", "uint16", "int32", "float16", "bfloat16", "complex64")
_X = np.zeros((5, 6), np.float32)
_I = np.zeros((3, 1), np.int32)
_ROWS = lax.GatherDimensionNumbers((1,), (0,), (0,))


def gathered(x, indices, numbers, sizes, mode="promise_in_bounds", fill=0):
    """A gather, window by window."""
    n = lax.GatherDimensionNumbers(*numbers)
    gone = (*n.collapsed_slice_dims, *n.operand_batching_dims)
    window = [m for d, m in enumerate(sizes) if d not in gone]
    lead = indices.shape[:-1]
    out = np.empty((*lead, *window), x.dtype)
    for place in np.ndindex(*lead):
        starts = np.zeros(x.ndim, np.int64)
        starts[list(n.start_index_map)] = indices[place]
        for d, along in zip(n.operand_batching_dims, n.start_indices_batching_dims, strict=True):
            starts[d] = place[along]
        limits = np.array(x.shape) - sizes
        if mode == "clip":
            starts = np.clip(starts, 0, limits)
        if np.any(starts < 0) or np.any(starts > limits):
            out[place] = fill
            continue
        box = tuple(slice(a, a + m) for a, m in zip(starts, sizes, strict=True))
        out[place] = x[box].reshape(window)
    return np.moveaxis(out, range(len(lead), out.ndim), n.offset_dims)


def _extreme(x):
    if x.dtype == np.bool_:
        return True
    if x.dtype.kind == "u":
        return np.iinfo(x.dtype).max
    return np.iinfo(x.dtype).min if x.dtype.kind == "i" else np.nan


def _record(
    case, numbers, sizes, shapes, high, mode="promise_in_bounds", low=0, fill=None, **options
):
    numbers = lax.GatherDimensionNumbers(*numbers)
    x_shape, indices_shape = shapes

    def oracle(x, i):
        return gathered(x, i, numbers, sizes, mode, _extreme(x) if fill is None else fill)

    return Record(
        name="gather",
        case=case,
        call=lambda x, i: lax.gather(x, i, numbers, sizes, mode=mode, fill_value=fill),
        oracle=oracle,
        args=(Arg(x_shape), Arg(indices_shape, "int32", low=low, high=high)),
        # Finite differences of NaN are none.
        grad=() if mode == "fill" and fill is None else (0,),
        **options,
    )


def _faulty(text, i=_I, numbers=_ROWS, sizes=(1, 6), error=TypeError, **options):
    return ErrorSample(
        lambda x, i: lax.gather(x, i, lax.GatherDimensionNumbers(*numbers), sizes, **options),
        (_X, i),
        error,
        text,
    )


_ERRORS = (
    _faulty("indices must be integers", i=_X[:, :1], error=ValueError),
    _faulty("unknown mode 'foo'", mode="foo", error=ValueError),
    _faulty("one component for each entry", i=np.zeros((), np.int32)),
    _faulty("one component for each entry", i=np.zeros((3, 2), np.int32)),
    _faulty("offset_dims must hold ascending", numbers=((1, 1), (0,), (0,))),
    _faulty("offset_dims must hold ascending", numbers=((2,), (0,), (0,))),
    _faulty("offset_dims must hold ascending", numbers=((1, 0), (), (0,))),
    _faulty("collapsed_slice_dims must hold", numbers=((1,), (5,), (0,))),
    _faulty("start_index_map must hold distinct", numbers=((1,), (0,), (5,))),
    _faulty("must make up the operand's", numbers=((1,), (), (0,))),
    _faulty("must have no dimension in common", numbers=((1,), (), (0,), (0,), (0,))),
    _faulty("must pair up dimensions", numbers=((), (1,), (1,), (0,), (0,))),
    _faulty("must pair up dimensions", numbers=((), (1,), (1,), (0,), ())),
    _faulty("one entry for each dimension", sizes=(1,)),
    _faulty("must have slice size 1", sizes=(2, 6)),
    _faulty("the window must fit", sizes=(1, 7)),
    _faulty("the window must fit", sizes=(1, -1)),
)

RECORDS = [
    _record("rows", _ROWS, (1, 6), ((5, 6), (4, 1)), 4, dtypes=_EVERY, errors=_ERRORS),
    _record("clip", _ROWS, (1, 6), ((5, 6), (4, 1)), 9, "clip", -9),
    _record("fill", _ROWS, (1, 6), ((5, 6), (4, 1)), 9, "fill", -9, dtypes=_EVERY),
    _record("windows", ((0, 2), (), (1, 0)), (2, 3), ((5, 6), (4, 2)), 6, "clip", -2),
    _record("windows_fill", ((1, 2), (), (1, 0)), (2, 3), ((5, 6), (7, 2)), 4, "fill", -1, 3),
    _record("points", ((), (0, 1), (0, 1)), (1, 1), ((5, 6), (2, 3, 2)), 4),
    _record("one", ((0,), (1,), (1,)), (5, 1), ((5, 6), (1,)), 5),
    _record("batched", ((1,), (), (1,), (0,), (0,)), (1, 2), ((4, 6), (4, 1)), 4),
    _record(
        "batched_twice",
        ((2,), (2,), (2,), (0, 1), (1, 0)),
        (1, 1, 1, 2),
        ((3, 4, 5, 2), (4, 3, 1)),
        7,
        "fill",
        -2,
        0,
    ),
    _record("nothing", _ROWS, (1, 6), ((5, 6), (0, 1)), 4),
    Record(
        name="gather",
        case="fill_value",
        call=lambda x, i: lax.gather(x, i, _ROWS, (1, 6), mode="fill", fill_value=7),
        oracle=lambda x, i: gathered(x, i, _ROWS, (1, 6), "fill", 7),
        args=(Arg((5, 6)), Arg((4, 1), "int8", low=-9, high=9)),
        dtypes=("float32", "int32", "bfloat16"),
        grad=(0,),
    ),
    Record(
        name="gather",
        case="index_take",
        call=lambda x, i, j: lax.index_take(x, (i, j), (0, 2)),
        oracle=lambda x, i, j: np.moveaxis(x, 1, 2)[i % 3, j % 4],
        args=(Arg((3, 2, 4)), Arg((5,), "int32", low=-9, high=9), Arg((5,), "int32")),
        grad=(0,),
    ),
]
