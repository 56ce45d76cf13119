"""Records of scatters: each operation, in every mode."""

from __future__ import annotations

import numpy as np

from minijax import lax
from tests.lax.records import Arg, ErrorSample, Record

_X = np.zeros((5, 6), np.float32)
_I = np.zeros((3, 1), np.int32)
_U = np.zeros((3, 6), np.float32)
_ROWS = lax.ScatterDimensionNumbers((1,), (0,), (0,))
_POINTS = lax.ScatterDimensionNumbers((), (0,), (0,))
_NUMBERS = ("float32", "int8", "uint16", "int32", "float16", "bfloat16", "complex64")
_ORDERED = ("float32", "bool", "int8", "uint16", "int32", "float16", "bfloat16", "complex64")


def scattered(combine, x, indices, updates, numbers, mode=None):
    """A scatter, window by window."""
    n = lax.ScatterDimensionNumbers(*numbers)
    single = (*n.inserted_window_dims, *n.operand_batching_dims)
    lead = indices.shape[:-1]
    updates = np.moveaxis(updates, n.update_window_dims, range(len(lead), updates.ndim))
    window = iter(updates.shape[len(lead) :])
    sizes = [1 if d in single else next(window) for d in range(x.ndim)]
    limits = np.array(x.shape) - sizes
    x = x.copy()
    for place in np.ndindex(*lead):
        starts = np.zeros(x.ndim, np.int64)
        starts[list(n.scatter_dims_to_operand_dims)] = indices[place]
        for d, along in zip(n.operand_batching_dims, n.scatter_indices_batching_dims, strict=True):
            starts[d] = place[along]
        if mode == "clip":
            starts = np.clip(starts, 0, limits)
        if np.any(starts < 0) or np.any(starts > limits):
            continue
        box = tuple(slice(a, a + m) for a, m in zip(starts, sizes, strict=True))
        x[box] = combine(x[box], updates[place].reshape(sizes))
    return x


_OPERATIONS = {
    "scatter": (lax.scatter, lambda old, new: new),
    "scatter-add": (lax.scatter_add, np.add),
    "scatter-sub": (lax.scatter_sub, np.subtract),
    "scatter-mul": (lax.scatter_mul, np.multiply),
    "scatter-min": (lax.scatter_min, np.minimum),
    "scatter-max": (lax.scatter_max, np.maximum),
}


def _record(name, case, numbers, shapes, high, mode=None, low=0, grad=(0, 2), **options):
    function, combine = _OPERATIONS[name]
    numbers = lax.ScatterDimensionNumbers(*numbers)
    x_shape, indices_shape, updates_shape = shapes
    unique = options.pop("unique", False)
    return Record(
        name=name,
        case=case,
        call=lambda x, i, u: function(x, i, u, numbers, mode=mode, unique_indices=unique),
        oracle=lambda x, i, u: scattered(combine, x, i, u, numbers, mode),
        args=(
            Arg(x_shape),
            Arg(indices_shape, "int32", low=low, high=high, distinct=unique or name == "scatter"),
            Arg(updates_shape),
        ),
        grad=grad,
        **options,
    )


def _records(name, dtypes, grad=(0, 2)):
    """Of an operation for which it does not matter that elements are written repeatedly."""
    shapes = (5, 6), (7, 1), (7, 6)
    batched = ((2,), (), (1,), (0,), (1,))
    return [
        _record(name, "rows", _ROWS, shapes, 9, None, -3, grad, dtypes=dtypes),
        _record(name, "clip", _ROWS, shapes, 9, "clip", -3, grad),
        _record(name, "batched", batched, ((4, 6), (3, 4, 1), (3, 4, 2)), 5, None, -1, grad),
        _record(
            name, "windows", ((0, 2), (), (1, 0)), ((5, 6), (4, 2), (2, 4, 3)), 5, None, -1, grad
        ),
    ]


def _faulty(text, x=_X, i=_I, u=_U, numbers=_ROWS, error=TypeError, function=lax.scatter_add, **kw):
    return ErrorSample(
        lambda *args: function(*args, lax.ScatterDimensionNumbers(*numbers), **kw),
        (x, i, u),
        error,
        text,
    )


_ERRORS = (
    _faulty("indices must be integers", i=_X[:3, :1], error=ValueError),
    _faulty("unknown mode 'foo'", mode="foo", error=ValueError),
    _faulty("different dtypes", u=_U.astype(np.int32)),
    _faulty("one component for each entry", i=np.zeros((3, 2), np.int32)),
    _faulty("update_window_dims must hold ascending", numbers=((1, 1), (0,), (0,))),
    _faulty("inserted_window_dims must hold ascending", numbers=((1,), (0, 0), (0,))),
    _faulty("scatter_dims_to_operand_dims must hold distinct", numbers=((1,), (0,), (5,))),
    _faulty("must make up the operand's", numbers=((1,), (), (0,))),
    _faulty("must pair up dimensions", numbers=((1,), (), (1,), (0,), (0,))),
    _faulty("the rank of the updates", u=_U[0]),
    _faulty("the indices' leading dimensions", u=_X[:, :6]),
    _faulty("the window of the updates must fit", u=np.zeros((3, 7), np.float32)),
    _faulty("does not accept dtype bool", x=_X > 0, u=_U > 0),
    _faulty("does not accept dtype bool", x=_X > 0, u=_U > 0, function=lax.scatter_sub),
)

_SHAPES = (5, 6), (3, 1), (3, 6)

RECORDS = [
    _record("scatter", "rows", _ROWS, _SHAPES, 5, None, -1, dtypes=(*_NUMBERS, "bool")),
    _record("scatter", "unique", _ROWS, _SHAPES, 5, None, 3, unique=True),
    _record("scatter", "clip", _ROWS, _SHAPES, 4, "clip", 2),
    _record(
        "scatter",
        "windows",
        ((1,), (0,), (1, 0)),
        ((5, 6), (2, 2), (2, 3)),
        3,
        None,
        0,
        unique=True,
    ),
    _record("scatter", "nothing", _ROWS, ((5, 6), (0, 1), (0, 6)), 4),
    *_records("scatter-add", _NUMBERS),
    *_records("scatter-sub", _NUMBERS),
    *_records("scatter-mul", _NUMBERS, grad=(0,)),
    *_records("scatter-min", _ORDERED),
    *_records("scatter-max", _ORDERED),
    _record("scatter-mul", "unique", _ROWS, _SHAPES, 5, None, 3, unique=True),
    Record(
        name="scatter-add",
        case="errors",
        call=lambda x: lax.scatter_add(x, _I, _U, _ROWS),
        oracle=lambda x: x,
        args=(Arg((5, 6)),),
        errors=_ERRORS,
    ),
    Record(
        name="scatter",
        case="apply",
        call=lambda x, i: lax.scatter_apply(
            x, i, lambda v: lax.mul(v, v), _POINTS, update_shape=(4,)
        ),
        oracle=lambda x, i: scattered(lambda v, _: v * v, x, i, np.zeros(4), _POINTS),
        args=(Arg((5,)), Arg((4, 1), "int32", low=-2, high=6)),
        dtypes=("float32", "int32", "complex64"),
        errors=(
            ErrorSample(
                lambda x: lax.scatter_apply(x, _I, lambda v: (v, v), _POINTS, update_shape=(3,)),
                (_X[0],),
                ValueError,
                "the result of the computation must have the tree structure",
            ),
            ErrorSample(
                lambda x: lax.scatter_apply(x, _I, lambda v: lax.lt(v, v), _POINTS),
                (_X[0],),
                TypeError,
                "the function changes the dtype",
            ),
            ErrorSample(
                lambda x: lax.scatter_apply(x, _I, lambda v: v, _POINTS),
                (_X[0],),
                TypeError,
                "the rank of the updates",
            ),
        ),
    ),
]
