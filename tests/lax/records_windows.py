"""Records of reductions over windows."""

from __future__ import annotations

import itertools

import numpy as np

from minijax import lax
from minijax.lax.windows import select_and_scatter
from tests.lax.records import Arg, ErrorSample, Record

_X = np.zeros((5, 6), np.float32)
_PADS = ((1, 0), (0, 2))


def _dilated(x, value, pads, dilation):
    for axis, ((low, high), d) in enumerate(zip(pads, dilation, strict=True)):
        n = x.shape[axis]
        sizes = list(x.shape)
        sizes[axis] = low + (n - 1) * d + 1 + high
        spread = np.full(sizes, value, x.dtype)
        places = [slice(None)] * x.ndim
        places[axis] = slice(low, low + (n - 1) * d + 1, d)
        spread[tuple(places)] = x
        x = spread
    return x


def _windows(x, value, dims, strides, pads, base=(1, 1), dilation=(1, 1)):
    """For each window its place in the result, and the places of its elements in the operand."""
    padded = _dilated(x, value, pads, base)
    extent = [(n - 1) * d + 1 for n, d in zip(dims, dilation, strict=True)]
    count = [(n - e) // s + 1 for n, e, s in zip(padded.shape, extent, strides, strict=True)]
    for out in itertools.product(*map(range, count)):
        start = [i * s for i, s in zip(out, strides, strict=True)]
        ranges = [slice(a, a + e, d) for a, e, d in zip(start, extent, dilation, strict=True)]
        yield out, padded[tuple(ranges)], count


def _pooled(function, value, dims, strides, pads, base=(1, 1), dilation=(1, 1)):
    def oracle(x):
        x = x.astype(np.float64) if x.dtype.itemsize == 2 and x.dtype.kind in "fV" else x
        lowest = np.iinfo(x.dtype) if x.dtype.kind in "iu" else None
        start = value
        if lowest is not None and not np.isfinite(value):
            start = lowest.min if value < 0 else lowest.max
        found = {
            o: (function(w), n)
            for o, w, n in _windows(x, start, dims, strides, pads, base, dilation)
        }
        result = np.zeros(next(iter(found.values()))[1], x.dtype)
        for place, (element, _) in found.items():
            result[place] = element
        return result

    return oracle


def _chosen(select, source, x, dims, strides, pads):
    """Adds the source to the chosen place of each window, by brute force."""
    result = np.zeros_like(x)
    places = np.arange(x.size).reshape(x.shape) + 1
    worst = -np.inf if select is lax.ge else np.inf
    values = _windows(x, worst, dims, strides, pads)
    indices = _windows(places, 0, dims, strides, pads)
    for (out, w, _), (_, i, _) in zip(values, indices, strict=True):
        order = w.ravel().argmax() if select is lax.ge else w.ravel().argmin()
        result.ravel()[i.ravel()[order] - 1] += source[out]
    return result


def _gathered(select, tangents, x, dims, strides, pads):
    count = next(_windows(x, 0, dims, strides, pads))[2]
    result = np.zeros(count, x.dtype)
    worst = -np.inf if select is lax.ge else np.inf
    values = _windows(x, worst, dims, strides, pads)
    moving = _windows(tangents, 0, dims, strides, pads)
    for (out, w, _), (_, t, _) in zip(values, moving, strict=True):
        order = w.ravel().argmax() if select is lax.ge else w.ravel().argmin()
        result[out] = t.ravel()[order]
    return result


_POOLS = {
    "reduce_window_sum": (lax.add, 0.0, np.sum),
    "reduce_window_max": (lax.max, -np.inf, np.max),
    "reduce_window_min": (lax.min, np.inf, np.min),
}


def _identity(value, dtype):
    if np.dtype(dtype).kind in "iu" and not np.isfinite(value):
        info = np.iinfo(dtype)
        return info.min if value < 0 else info.max
    return value


def _pool(name, case, dims, strides, pads, base=(1, 1), dilation=(1, 1), **options):
    combine, value, oracle = _POOLS[name]

    def call(x):
        start = _identity(value, x.dtype)
        return lax.reduce_window(x, start, combine, dims, strides, pads, base, dilation)

    return Record(
        name=name,
        case=case,
        call=call,
        oracle=_pooled(oracle, value, dims, strides, pads, base, dilation),
        args=(Arg((5, 6), distinct=True),),
        grad=(0,),
        **options,
    )


def _pools(name):
    return [
        _pool(
            name,
            "plain",
            (2, 3),
            (1, 2),
            _PADS,
            dtypes=("float32", "int32", "uint16", "float16", "bfloat16"),
            tolerance={"bfloat16": 4e-2},
        ),
        _pool(name, "dilated", (2, 3), (2, 1), _PADS, (2, 1), (1, 2)),
    ]


def _refused(message, *args, error=TypeError, operand=_X, init=0.0):
    return ErrorSample(lax.reduce_window, (operand, init, lax.add, *args), error, message)


def _average(x):
    total = lax.reduce_window(x, 0.0, lax.add, (2, 2), (2, 2), "SAME")
    return lax.mul(total, np.asarray(0.25, x.dtype))


def _two(left, right):
    return lax.add(left[0], right[0]), lax.mul(left[1], right[1])


_CHOICE = ((2, 3), (1, 2), _PADS)
_PARAMS = {"window_dimensions": (2, 3), "window_strides": (1, 2), "padding": _PADS}
_ONES = {"base_dilation": (1, 1), "window_dilation": (1, 1)}

RECORDS = [
    *_pools("reduce_window_sum"),
    *_pools("reduce_window_max"),
    *_pools("reduce_window_min"),
    Record(
        name="reduce_window_sum",
        case="average-pool",
        call=_average,
        oracle=lambda x: np.pad(x, ((0, 1), (0, 0))).reshape(3, 2, 3, 2).sum((1, 3)) / 4,
        args=(Arg((5, 6)),),
        grad=(0,),
        errors=(
            _refused("window_dimensions does not fit", (2,)),
            _refused("window_dimensions does not fit", (2, 0)),
            _refused("window_strides does not fit", (2, 2), (1,)),
            _refused("window_strides does not fit", (2, 2), (1, 0)),
            _refused("padding does not fit", (2, 2), None, [(0, 0)]),
            _refused("base_dilation does not fit", (2, 2), None, "VALID", (1, 0)),
            _refused("unknown kind of padding", (2, 2), None, "ALL", error=RuntimeError),
            _refused("must be scalars", (2, 2), init=_X[0]),
            _refused("structure", (2, 2), init=(0.0, 0.0), error=ValueError),
        ),
    ),
    Record(
        name="reduce_window",
        case="product",
        call=lambda x: lax.reduce_window(x, 1.0, lax.mul, (2, 2), (1, 2), _PADS),
        oracle=_pooled(np.prod, 1.0, (2, 2), (1, 2), _PADS),
        args=(Arg((5, 6)),),
        dtypes=("float32", "float64"),
        grad=(0,),
    ),
    Record(
        name="reduce_window",
        case="magnitude",
        call=lambda x, start: lax.reduce_window(
            x,
            start,
            lambda a, b: lax.max(lax.abs(a), lax.abs(b)),
            (2, 2),
            padding="SAME_LOWER",
        ),
        oracle=lambda x, start: _pooled(
            lambda w: np.maximum(np.abs(w).max(), start), 0.0, (2, 2), (1, 1), ((1, 0), (1, 0))
        )(x),
        args=(Arg((3, 4), distinct=True, high=1.9), np.float32(0.25)),
        grad=(0,),
    ),
    Record(
        name="reduce_window",
        case="pair",
        call=lambda x, y: lax.reduce_window((x, y), (0.0, 1), _two, (2, 2)),
        oracle=lambda x, y: (
            _pooled(np.sum, 0.0, (2, 2), (1, 1), ((0, 0),) * 2)(x),
            _pooled(np.prod, 1, (2, 2), (1, 1), ((0, 0),) * 2)(y),
        ),
        args=(Arg((3, 4)), Arg((3, 4), "int32")),
        grad=(0,),
    ),
    Record(
        name="select_and_scatter_add",
        case="max",
        call=lambda s, x: lax.select_and_scatter_add_p.bind(s, x, select_prim=lax.ge_p, **_PARAMS),
        oracle=lambda s, x: _chosen(lax.ge, s, x, *_CHOICE),
        args=(Arg((5, 3)), Arg((5, 6), distinct=True)),
        dtypes=("float32", "int32"),
        grad=(0, 1),
    ),
    Record(
        name="select_and_scatter_add",
        case="min",
        call=lambda s, x: lax.select_and_scatter_add_p.bind(s, x, select_prim=lax.le_p, **_PARAMS),
        oracle=lambda s, x: _chosen(lax.le, s, x, *_CHOICE),
        args=(Arg((5, 3)), Arg((5, 6), distinct=True)),
    ),
    Record(
        name="select_and_gather_add",
        case="max",
        call=lambda t, x: lax.select_and_gather_add_p.bind(
            t, x, select_prim=lax.ge_p, **_PARAMS, **_ONES
        ),
        oracle=lambda t, x: _gathered(lax.ge, t, x, *_CHOICE),
        args=(Arg((5, 6)), Arg((5, 6), distinct=True)),
        dtypes=("float32", "bfloat16"),
        grad=(0, 1),
    ),
    Record(
        name="select_and_gather_add",
        case="min",
        call=lambda t, x: lax.select_and_gather_add_p.bind(
            t, x, select_prim=lax.le_p, **_PARAMS, **_ONES
        ),
        oracle=lambda t, x: _gathered(lax.le, t, x, *_CHOICE),
        args=(Arg((5, 6)), Arg((5, 6), distinct=True)),
    ),
    Record(
        name="select_and_scatter",
        call=lambda x, s: select_and_scatter(
            x, lax.ge, (2, 3), (1, 2), _PADS, s, np.zeros((), x.dtype), lax.add
        ),
        oracle=lambda x, s: _chosen(lax.ge, s, x, *_CHOICE),
        args=(Arg((5, 6), distinct=True), Arg((5, 3))),
        errors=(
            ErrorSample(
                select_and_scatter,
                (_X, lax.ge, (2, 2), (1, 1), "VALID", _X, 0.0, lax.add),
                TypeError,
                "source does not fit",
            ),
        ),
    ),
]
