"""Functions that pick elements: where, take, sort, search.

Input: arrays.  Output: chosen elements, their order, or their places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import ConcretizationTypeError, message
from minijax.core.trace import Tracer
from minijax.lax import arguments, binary, convert, creation, choice, shape
from minijax.lax import sorting
from minijax.numpy import shaping
from minijax.numpy.joining import concatenate
from minijax.numpy.promotion import promote_dtypes
from minijax.numpy.shaping import check_arraylike

_INT32 = np.dtype(np.int32)


def where(
    condition: Any,
    x: Any = None,
    y: Any = None,
    /,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """Elements of `x` where `condition` holds, and of `y` elsewhere.

    With a condition alone: the indices where it holds, as `nonzero`.

    Shapes: bool[s], T[s], T[s] -> T[s]; shapes are broadcast.
    Dtypes: of the values: promoted; of the condition: any, not zero counts as true.
    Source: mirrors jax.numpy.where (0.10).

    Raises:
        ValueError: only one of `x` and `y` is given.
    """
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        raise ValueError(
            message("numpy.where", "needs both x and y, or neither.", got={"x": x, "y": y})
        )
    check_arraylike("where", condition, x, y)
    x, y = promote_dtypes("where", x, y)
    if aval_of(condition).dtype != dtypes.bool_:
        zero = np.zeros((), aval_of(condition).dtype)[()]
        condition = binary.ne(condition, zero)
    if aval_of(condition).shape == () and aval_of(x).shape == aval_of(y).shape:
        return choice.select_n(condition, y, x)
    dims = shaping.broadcast_shapes(*(aval_of(v).shape for v in (condition, x, y)))
    condition, x, y = (shaping.broadcast_array(v, dims) for v in (condition, x, y))
    return choice.select_n(condition, y, x)


def nonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> tuple[Any, ...]:
    """The indices of elements that are not zero, one array for each dimension.

    Args:
        a: the array.
        size: how many indices to return; needed where `a` is traced.
        fill_value: what stands for missing indices, one number or one for each dimension; 0.

    Source: mirrors jax.numpy.nonzero (0.10).

    Raises:
        ConcretizationTypeError: `a` is traced and `size` is not given.
    """
    check_arraylike("nonzero", a)
    known = a.concrete() if isinstance(a, Tracer) else a
    if size is None:
        if known is None:
            raise ConcretizationTypeError(
                message(
                    "numpy.nonzero",
                    "the array is traced, so the number of its non-zero elements is unknown.",
                    got=str(aval_of(a)),
                    fix="give size, or use the form numpy.where(condition, x, y)",
                )
            )
        found = np.nonzero(np.atleast_1d(np.asarray(known)))
        return tuple(shape.copy(index.astype(_int_dtype())) for index in found)
    return _nonzero_of_size(a, size, fill_value)


def _int_dtype() -> np.dtype[Any]:
    return dtypes.default_int_dtype()


def _nonzero_of_size(a: Any, size: int, fill_value: Any) -> tuple[Any, ...]:
    a = shaping.atleast_1d(a)
    dims = aval_of(a).shape
    dtype = _int_dtype()
    mask = shaping.ravel(a if aval_of(a).dtype == dtypes.bool_ else a != 0)
    total = aval_of(mask).size
    fills = np.broadcast_to(np.asarray(0 if fill_value is None else fill_value), (len(dims),))
    if total == 0 or size == 0:
        return tuple(creation.full((size,), int(f), dtype) for f in fills)
    # A stable sort brings the true places to the front, in order.
    places = creation.iota(dtype, total)
    _, order = sorting.sort((~mask, places), num_keys=1)
    if size > total:
        order = shape.pad(order, np.zeros((), dtype)[()], [(0, size - total, 0)])
    chosen = order[:size]
    valid = creation.iota(dtype, size) < mask.sum()
    outs = []
    for d, fill in enumerate(fills):
        stride = int(np.prod(dims[d + 1 :], dtype=np.int64))
        index = (chosen // stride) % dims[d]
        outs.append(where(valid, index, np.asarray(fill, dtype)[()]))
    return tuple(outs)


def flatnonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """`nonzero` of an array as one dimension.  Mirrors jax.numpy.flatnonzero (0.10)."""
    return nonzero(shaping.ravel(a), size=size, fill_value=fill_value)[0]


def argwhere(a: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """`nonzero` as rows of indices.  Mirrors jax.numpy.argwhere (0.10)."""
    check_arraylike("argwhere", a)
    found = nonzero(a, size=size, fill_value=fill_value)
    if not aval_of(a).ndim:
        return found[0].reshape(-1, 1)[:, :0]
    return concatenate([shape.expand_dims(index, (1,)) for index in found], 1)


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Any:
    """For each element the choice of the first condition that holds.

    Source: mirrors jax.numpy.select (0.10).

    Raises:
        ValueError: there are no conditions, or not as many choices.
    """
    if len(condlist) != len(choicelist) or not condlist:
        raise ValueError(
            message(
                "numpy.select",
                "needs as many choices as conditions, one at least.",
                got=f"{len(condlist)} conditions, {len(choicelist)} choices",
            )
        )
    *choices, out = promote_dtypes("select", *choicelist, default)
    for condition, choice in zip(condlist[::-1], choices[::-1], strict=True):
        out = where(condition, choice, out)
    return out


def choose(a: Any, choices: Any, out: None = None, mode: str = "raise") -> Any:
    """For each element the one of `choices` that its number names.

    Source: mirrors jax.numpy.choose (0.10).

    Raises:
        ValueError: a number is out of range (mode "raise", known numbers only).
    """
    check_arraylike("choose", a, *choices)
    if not dtypes.issubdtype(aval_of(a).dtype, np.integer):
        raise ValueError(
            message("numpy.choose", "the numbers must be integers.", got=str(aval_of(a)))
        )
    count = len(choices)
    if mode == "raise":
        known = a.concrete() if isinstance(a, Tracer) else a
        if known is None:
            raise ConcretizationTypeError(
                message(
                    "numpy.choose",
                    "mode 'raise' needs known numbers.",
                    fix="mode='clip' or mode='wrap'",
                )
            )
        host = np.asarray(known)
        if host.size and (host.min() < 0 or host.max() >= count):
            raise ValueError(
                message("numpy.choose", "a number is out of range.", got=f"{count} choices")
            )
    elif mode == "clip":
        a = a.clip(0, count - 1)
    elif mode == "wrap":
        a = a % count
    else:
        raise ValueError(message("numpy.choose", f"unknown mode {mode!r}."))
    arrays = promote_dtypes("choose", *choices)
    dims = shaping.broadcast_shapes(aval_of(a).shape, *(aval_of(x).shape for x in arrays))
    which = shaping.broadcast_array(a, dims)
    result = shaping.broadcast_array(arrays[0], dims)
    for i, x in enumerate(arrays[1:], 1):
        result = where(which == i, x, result)
    return result


def take(
    a: Any,
    indices: Any,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: Any = None,
) -> Any:
    """Elements of `a` at `indices` along `axis`, or of `a` as one dimension.

    Args:
        a: the array.
        indices: integers of any shape, which takes the place of the dimension.
        axis: the dimension.
        mode: what happens out of range: "fill" (the default), "clip", "wrap".
        fill_value: what "fill" puts there: NaN, or the lowest or highest integer.

    Source: mirrors jax.numpy.take (0.10).
    """
    check_arraylike("take", a, indices)
    if axis is None:
        a, axis = shaping.ravel(a), 0
    a = a if hasattr(a, "aval") else shape.copy(a)
    axis = arguments.canonicalize_axis(axis, aval_of(a).ndim, "numpy.take")
    if mode == "raise":
        raise NotImplementedError(
            message("numpy.take", "mode 'raise' is not possible in compiled code.")
        )
    if mode == "wrap":
        size = aval_of(a).shape[axis]
        indices = (indices if hasattr(indices, "aval") else np.asarray(indices)) % size
        mode = "promise_in_bounds"
    index = (slice(None),) * axis + (indices if hasattr(indices, "aval") else np.asarray(indices),)
    return a.at[index].get(
        mode=mode or "fill",
        fill_value=fill_value,
        unique_indices=unique_indices,
        indices_are_sorted=indices_are_sorted,
    )


def take_along_axis(
    arr: Any,
    indices: Any,
    axis: int | None = -1,
    mode: Any = None,
    fill_value: Any = None,
) -> Any:
    """For each place, the element of `arr` whose position along `axis` `indices` gives.

    Shapes: T[s], int[t] -> T[t], where s and t agree, or are 1, but along `axis`.
    Source: mirrors jax.numpy.take_along_axis (0.10).

    Raises:
        TypeError: indices are no integers.
        ValueError: the ranks differ.
    """
    check_arraylike("take_along_axis", arr, indices)
    if not dtypes.issubdtype(aval_of(indices).dtype, np.integer):
        raise TypeError(
            message(
                "numpy.take_along_axis", "indices must be integers.", got=str(aval_of(indices))
            )
        )
    if axis is None:
        arr, axis = shaping.ravel(arr), 0
    rank = aval_of(arr).ndim
    if aval_of(indices).ndim != rank:
        raise ValueError(
            message(
                "numpy.take_along_axis",
                "array and indices must have the same rank.",
                got={"arr": aval_of(arr), "indices": aval_of(indices)},
            )
        )
    axis = arguments.canonicalize_axis(axis, rank, "numpy.take_along_axis")
    arr = arr if hasattr(arr, "aval") else shape.copy(arr)
    index: list[Any] = []
    for d, (n, m) in enumerate(zip(aval_of(arr).shape, aval_of(indices).shape, strict=True)):
        if d == axis:
            index.append(indices)
            continue
        size = 1 if n == 1 else max(n, m)
        grid = np.arange(size, dtype=np.int32)
        index.append(grid.reshape([-1 if i == d else 1 for i in range(rank)]))
    return arr.at[tuple(index)].get(mode=mode or "fill", fill_value=fill_value)


def put_along_axis(
    arr: Any,
    indices: Any,
    values: Any,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: Any = None,
) -> Any:
    """`arr` with elements replaced at positions along `axis`; a new array.

    Source: mirrors jax.numpy.put_along_axis (0.10).

    Raises:
        ValueError: `inplace` is true.
    """
    if inplace:
        raise ValueError(
            message(
                "numpy.put_along_axis",
                "arrays cannot be written in place.",
                fix="inplace=False, and use the result",
            )
        )
    flat = axis is None
    dims = aval_of(arr).shape
    work = shaping.ravel(arr) if flat else arr
    axis = arguments.canonicalize_axis(0 if axis is None else axis, aval_of(work).ndim, "numpy.put_along_axis")
    rank = aval_of(work).ndim
    index: list[Any] = []
    for d, n in enumerate(aval_of(work).shape):
        if d == axis:
            index.append(indices)
        else:
            grid = np.arange(n, dtype=np.int32)
            index.append(grid.reshape([-1 if i == d else 1 for i in range(rank)]))
    out = work.at[tuple(index)].set(values, mode=mode)
    return out.reshape(dims) if flat else out


def compress(
    condition: Any, a: Any, axis: int | None = None, *, size: int | None = None,
    fill_value: Any = 0, out: None = None,
) -> Any:
    """The elements along `axis` where a condition holds.  Mirrors jax.numpy.compress (0.10)."""
    check_arraylike("compress", condition, a)
    if axis is None:
        a, axis = shaping.ravel(a), 0
    a = a if hasattr(a, "aval") else shape.copy(a)
    moved = shaping.moveaxis(a, axis, 0)
    (places,) = nonzero(condition, size=size, fill_value=aval_of(moved).shape[0])
    picked = moved.at[places].get(mode="fill", fill_value=fill_value)
    return shaping.moveaxis(picked, 0, axis)


def extract(
    condition: Any, arr: Any, *, size: int | None = None, fill_value: Any = 0
) -> Any:
    """The elements where a condition holds.  Mirrors jax.numpy.extract (0.10)."""
    return compress(
        shaping.ravel(condition), shaping.ravel(arr), 0, size=size, fill_value=fill_value
    )


def sort(
    a: Any,
    axis: int | None = -1,
    *,
    kind: Any = None,
    order: Any = None,
    stable: bool = True,
    descending: bool = False,
) -> Any:
    """`a` sorted along `axis`, or as one dimension; NaNs come last.

    Source: mirrors jax.numpy.sort (0.10).
    """
    check_arraylike("sort", a)
    _refuse_order("sort", order)
    if axis is None:
        a, axis = shaping.ravel(a), 0
    axis = arguments.canonicalize_axis(axis, aval_of(a).ndim, "numpy.sort")
    out = sorting.sort(a, dimension=axis, is_stable=stable)
    return shape.rev(out, (axis,)) if descending else out


def _refuse_order(name: str, order: Any) -> None:
    if order is not None:
        raise ValueError(
            message(f"numpy.{name}", "arrays have no fields to order by.", got=f"order={order!r}")
        )


def argsort(
    a: Any,
    axis: int | None = -1,
    *,
    kind: Any = None,
    order: Any = None,
    stable: bool = True,
    descending: bool = False,
) -> Any:
    """The positions that sort `a` along `axis`.  Mirrors jax.numpy.argsort (0.10)."""
    check_arraylike("argsort", a)
    _refuse_order("argsort", order)
    if axis is None:
        a, axis = shaping.ravel(a), 0
    axis = arguments.canonicalize_axis(axis, aval_of(a).ndim, "numpy.argsort")
    dims = aval_of(a).shape
    places = creation.broadcasted_iota(_int_dtype(), dims, axis)
    if not descending:
        return sorting.sort((a, places), dimension=axis, is_stable=stable, num_keys=1)[1]
    # Reversed before and after, equal elements keep their order.
    pair = (shape.rev(a, (axis,)), shape.rev(places, (axis,)))
    ordered = sorting.sort(pair, dimension=axis, is_stable=stable, num_keys=1)[1]
    return shape.rev(ordered, (axis,))


def lexsort(keys: Any, axis: int = -1) -> Any:
    """The positions that sort by several keys, the last first.  Mirrors jax.numpy.lexsort."""
    arrays = list(keys)
    if not arrays:
        raise TypeError(message("numpy.lexsort", "needs at least one key."))
    check_arraylike("lexsort", *arrays)
    if aval_of(arrays[0]).ndim == 0:
        return creation.full((), 0, _int_dtype())
    axis = arguments.canonicalize_axis(axis, aval_of(arrays[0]).ndim, "numpy.lexsort")
    places = creation.broadcasted_iota(_int_dtype(), aval_of(arrays[0]).shape, axis)
    operands = (*arrays[::-1], places)
    return sorting.sort(operands, dimension=axis, num_keys=len(arrays))[-1]


def partition(a: Any, kth: int, axis: int = -1) -> Any:
    """`a` with the `kth` smallest element in its place.  Mirrors jax.numpy.partition (0.10)."""
    _check_kth("partition", a, kth, axis)
    return sort(a, axis)


def argpartition(a: Any, kth: int, axis: int = -1) -> Any:
    """The positions that partition `a`.  Mirrors jax.numpy.argpartition (0.10)."""
    _check_kth("argpartition", a, kth, axis)
    return argsort(a, axis)


def _check_kth(name: str, a: Any, kth: int, axis: int) -> None:
    check_arraylike(name, a)
    axis = arguments.canonicalize_axis(axis, aval_of(a).ndim, f"numpy.{name}")
    arguments.canonicalize_axis(kth, aval_of(a).shape[axis], f"numpy.{name} kth")


def searchsorted(
    a: Any,
    v: Any,
    side: str = "left",
    sorter: Any = None,
    *,
    method: str = "scan",
) -> Any:
    """Where elements of `v` would be inserted into the sorted vector `a`.

    Args:
        a: a sorted vector.
        v: what to insert.
        side: before ("left") or after ("right") equal elements.
        sorter: positions that sort `a`.
        method: accepted for compatibility; the search compares all pairs.

    Source: mirrors jax.numpy.searchsorted (0.10).

    Raises:
        ValueError: the side is not known, or `a` is no vector.
    """
    check_arraylike("searchsorted", a, v)
    if side not in ("left", "right"):
        raise ValueError(
            message("numpy.searchsorted", f"unknown side {side!r}.", expected="'left' or 'right'")
        )
    if aval_of(a).ndim != 1:
        raise ValueError(
            message("numpy.searchsorted", "a must be a vector.", got=str(aval_of(a)))
        )
    a, v = promote_dtypes("searchsorted", a, v)
    if sorter is not None:
        a = shaping.slicing_take(a, sorter, 0)
    size = aval_of(a).shape[0]
    dims = aval_of(v).shape
    wide_a = shape.broadcast_in_dim(a, (*dims, size), (len(dims),))
    wide_v = shape.broadcast_in_dim(v, (*dims, size), tuple(range(len(dims))))
    compare = (binary.lt_to_p if side == "left" else binary.le_to_p).bind
    before = compare(*_one_zero(wide_a, wide_v)) if _is_float(a) else (
        binary.lt(wide_a, wide_v) if side == "left" else binary.le(wide_a, wide_v)
    )
    return convert.convert_element_type(before, _int_dtype()).sum(-1, dtype=_int_dtype())


def _is_float(x: Any) -> bool:
    return dtypes.issubdtype(aval_of(x).dtype, np.floating)


def _one_zero(*arrays: Any) -> list[Any]:
    """Floats with -0 as 0 and every NaN positive, so that their total order is the usual one."""
    out = []
    for x in arrays:
        zero = np.zeros((), aval_of(x).dtype)[()]
        x = where(x == zero, zero, x)
        out.append(where(x != x, np.asarray(np.nan, aval_of(x).dtype)[()], x))
    return out


def digitize(x: Any, bins: Any, right: bool = False, *, method: str | None = None) -> Any:
    """The number of the bin that each element falls into.  Mirrors jax.numpy.digitize (0.10)."""
    check_arraylike("digitize", x, bins)
    bins = bins if hasattr(bins, "aval") else shape.copy(bins)
    if aval_of(bins).ndim != 1:
        raise ValueError(message("numpy.digitize", "bins must be a vector.", got=str(aval_of(bins))))
    if aval_of(bins).shape[0] == 0:
        return creation.full(aval_of(x).shape, 0, _INT32)
    side = "right" if not right else "left"
    increasing = bins[-1] >= bins[0]
    up = searchsorted(bins, x, side)
    down = aval_of(bins).shape[0] - searchsorted(bins[::-1], x, "left" if side == "right" else "right")
    return where(increasing, up, down)

