"""Functions that rearrange dimensions: reshape, transpose, broadcast, flip, roll, repeat.

Input: arrays.  Output: the same elements in another arrangement.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core.aval import Shape, aval_of, canonicalize_shape
from minijax.core.errors import ConcretizationTypeError, message
from minijax.core.trace import Tracer
from minijax.lax import arguments, binary, creation, shape, slicing
from minijax.numpy.promotion import check_array


def check_arraylike(name: str, *args: Any) -> None:
    """Refuses arguments of the public function `name` that are no arrays and no numbers.

    Raises:
        TypeError: one is not.
    """
    for x in args:
        check_array(name, x)


def canonical_axes(name: str, axes: Any, ndim: int) -> tuple[int, ...]:
    """One axis or several as distinct non-negative ints."""
    given = axes if isinstance(axes, (tuple, list)) else (axes,)
    return arguments.canonicalize_axes(given, ndim, name)


def shape_argument(x: Any, dims: Any, name: str) -> Shape:
    """A shape with at most one -1 as the dimensions that fit the size of `x`.

    Raises:
        TypeError: the sizes do not fit, or -1 stands twice.
    """
    if isinstance(dims, (int, np.integer)) or not np.iterable(dims):
        dims = (dims,)
    try:
        sizes = tuple(operator.index(d) for d in dims)
    except ConcretizationTypeError:
        raise
    except TypeError:
        raise TypeError(
            message(name, "the shape must hold integers.", got=repr(dims))
        ) from None
    if -1 not in sizes:
        return sizes
    size = aval_of(x).size
    known = math.prod(d for d in sizes if d != -1)
    if sizes.count(-1) > 1 or known == 0 or size % known:
        raise TypeError(
            message(
                name,
                "the size of the array does not fit the shape.",
                got={"array": aval_of(x), "shape": sizes},
                expected="one -1 at most, and sizes whose product divides the array's size",
            )
        )
    return tuple(size // known if d == -1 else d for d in sizes)


def reshape(
    a: Any, shape: Any = None, order: str = "C", *, copy: bool | None = None, out_sharding: Any = None
) -> Any:
    """`a` in another shape of as many elements; one dimension may be -1.

    Shapes: a: T[s] -> T[shape].
    Source: mirrors jax.numpy.reshape (0.10).

    Raises:
        TypeError: the sizes do not fit.
        NotImplementedError: the order is "A".
    """
    check_arraylike("reshape", a)
    return reshape_array(a, shape_argument(a, shape, "numpy.reshape"), order)


def reshape_array(a: Any, dims: Shape, order: str = "C") -> Any:
    """`reshape` for a shape of known non-negative sizes."""
    if order == "C":
        return shape.reshape(a, dims)
    if order == "F":
        rank = aval_of(a).ndim
        turned = shape.reshape(shape.transpose(a, range(rank)[::-1]), dims[::-1])
        return shape.transpose(turned, range(len(dims))[::-1])
    if order == "A":
        raise NotImplementedError(
            message("numpy.reshape", "order 'A' needs memory layouts, which arrays do not show.")
        )
    raise ValueError(message("numpy.reshape", f"unknown order {order!r}.", expected="'C' or 'F'"))


def ravel(a: Any, order: str = "C", *, out_sharding: Any = None) -> Any:
    """`a` as one dimension.  Mirrors jax.numpy.ravel (0.10)."""
    check_arraylike("ravel", a)
    return reshape_array(a, (aval_of(a).size,), order)


def transpose(a: Any, axes: Sequence[int] | None = None) -> Any:
    """`a` with its dimensions permuted; reversed without `axes`.

    Shapes: a: T[s] -> T[s[axes]].
    Source: mirrors jax.numpy.transpose (0.10).
    """
    check_arraylike("transpose", a)
    rank = aval_of(a).ndim
    order = tuple(range(rank))[::-1] if axes is None else canonical_axes(
        "numpy.transpose", tuple(axes), rank
    )
    return shape.transpose(a, order)


permute_dims = transpose


def matrix_transpose(x: Any, /) -> Any:
    """`x` with its last two dimensions exchanged.  Mirrors jax.numpy.matrix_transpose (0.10).

    Raises:
        ValueError: `x` has fewer than two dimensions.
    """
    check_arraylike("matrix_transpose", x)
    rank = aval_of(x).ndim
    if rank < 2:
        raise ValueError(
            message("numpy.matrix_transpose", "needs two dimensions.", got=str(aval_of(x)))
        )
    return swapaxes(x, -1, -2)


def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    """`a` with two dimensions exchanged.  Mirrors jax.numpy.swapaxes (0.10)."""
    check_arraylike("swapaxes", a)
    order = list(range(aval_of(a).ndim))
    i = arguments.canonicalize_axis(axis1, len(order), "numpy.swapaxes")
    j = arguments.canonicalize_axis(axis2, len(order), "numpy.swapaxes")
    order[i], order[j] = order[j], order[i]
    return shape.transpose(a, order)


def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """`a` with dimensions moved to other places.  Mirrors jax.numpy.moveaxis (0.10).

    Raises:
        ValueError: there are not as many destinations as sources.
    """
    check_arraylike("moveaxis", a)
    rank = aval_of(a).ndim
    sources = canonical_axes("numpy.moveaxis", source, rank)
    targets = canonical_axes("numpy.moveaxis", destination, rank)
    if len(sources) != len(targets):
        raise ValueError(
            message(
                "numpy.moveaxis",
                "source and destination must be equally many.",
                got={"source": source, "destination": destination},
            )
        )
    order = [d for d in range(rank) if d not in sources]
    for target, d in sorted(zip(targets, sources, strict=True)):
        order.insert(target, d)
    return shape.transpose(a, order)


def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    """`a` with one dimension moved before `start`.  Mirrors jax.numpy.rollaxis (0.10)."""
    check_arraylike("rollaxis", a)
    rank = aval_of(a).ndim
    axis = arguments.canonicalize_axis(axis, rank, "numpy.rollaxis")
    if not -rank <= start <= rank:
        raise ValueError(message("numpy.rollaxis", "start is out of range.", got=str(start)))
    start = start + rank if start < 0 else start
    return moveaxis(a, axis, start - 1 if start > axis else start)


def expand_dims(a: Any, axis: Any) -> Any:
    """`a` with new dimensions of size 1 at `axis`.  Mirrors jax.numpy.expand_dims (0.10)."""
    check_arraylike("expand_dims", a)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    return shape.expand_dims(a, tuple(axes))


def squeeze(a: Any, axis: Any = None) -> Any:
    """`a` without dimensions of size 1: all of them, or those at `axis`.

    Source: mirrors jax.numpy.squeeze (0.10).

    Raises:
        ValueError: a dimension to drop has another size.
    """
    check_arraylike("squeeze", a)
    dims = aval_of(a).shape
    if axis is None:
        axis = tuple(i for i, n in enumerate(dims) if n == 1)
    axes = canonical_axes("numpy.squeeze", axis, len(dims))
    return shape.squeeze(a, axes) if axes else a


def broadcast_to(array: Any, shape: Any, *, out_sharding: Any = None) -> Any:
    """`array` repeated to a shape.  Mirrors jax.numpy.broadcast_to (0.10).

    Raises:
        ValueError: the shapes do not fit.
    """
    check_arraylike("broadcast_to", array)
    return broadcast_array(array, canonicalize_shape(shape, "numpy.broadcast_to"))


def broadcast_array(array: Any, dims: Shape) -> Any:
    """`broadcast_to` for a shape given as a tuple of ints."""
    own = aval_of(array).shape
    if own == dims:
        return array
    lead = len(dims) - len(own)
    if lead < 0 or any(a not in (1, b) for a, b in zip(own, dims[lead:], strict=True)):
        raise ValueError(
            message(
                "numpy.broadcast_to",
                "the array does not fit the shape.",
                got={"array": aval_of(array), "shape": dims},
            )
        )
    return shape.broadcast_in_dim(array, dims, tuple(range(lead, len(dims))))


def broadcast_arrays(*args: Any) -> list[Any]:
    """Arrays repeated to their common shape.  Mirrors jax.numpy.broadcast_arrays (0.10)."""
    check_arraylike("broadcast_arrays", *args)
    dims = broadcast_shapes(*(aval_of(x).shape for x in args))
    return [broadcast_array(x, dims) for x in args]


def broadcast_shapes(*shapes: Sequence[int] | int) -> Shape:
    """The common shape of arrays of some shapes.  Mirrors jax.numpy.broadcast_shapes (0.10).

    Raises:
        ValueError: there is none.
    """
    return shape.broadcast_shapes(
        *((s,) if isinstance(s, (int, np.integer)) else tuple(s) for s in shapes)
    ) if shapes else ()


def _at_least(rank: int, name: str, arrays: Sequence[Any]) -> Any:
    check_arraylike(name, *arrays)
    made = []
    for x in arrays:
        own = aval_of(x).ndim
        if own >= rank:
            made.append(x if hasattr(x, "aval") else shape.copy(x))
        elif rank == 3 and own == 2:
            made.append(shape.expand_dims(x, (2,)))
        elif rank == 3 and own == 1:
            made.append(shape.expand_dims(x, (0, 2)))
        else:
            made.append(shape.expand_dims(x, tuple(range(rank - own))))
    return made[0] if len(made) == 1 else made


def atleast_1d(*arys: Any) -> Any:
    """Arrays with one dimension at least.  Mirrors jax.numpy.atleast_1d (0.10)."""
    return _at_least(1, "atleast_1d", arys)


def atleast_2d(*arys: Any) -> Any:
    """Arrays with two dimensions at least.  Mirrors jax.numpy.atleast_2d (0.10)."""
    return _at_least(2, "atleast_2d", arys)


def atleast_3d(*arys: Any) -> Any:
    """Arrays with three dimensions at least.  Mirrors jax.numpy.atleast_3d (0.10)."""
    return _at_least(3, "atleast_3d", arys)


def flip(m: Any, axis: Any = None) -> Any:
    """`m` in reverse order along `axis`, or along all dimensions.

    Source: mirrors jax.numpy.flip (0.10).
    """
    check_arraylike("flip", m)
    rank = aval_of(m).ndim
    return shape.rev(m, tuple(range(rank)) if axis is None else canonical_axes(
        "numpy.flip", axis, rank
    ))


def fliplr(m: Any) -> Any:
    """`m` in reverse order along dimension 1.  Mirrors jax.numpy.fliplr (0.10)."""
    return flip(m, 1)


def flipud(m: Any) -> Any:
    """`m` in reverse order along dimension 0.  Mirrors jax.numpy.flipud (0.10)."""
    return flip(m, 0)


def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Any:
    """`m` turned by `k` quarter turns in the plane of `axes`.  Mirrors jax.numpy.rot90 (0.10).

    Raises:
        ValueError: the axes are the same.
    """
    check_arraylike("rot90", m)
    first, second = canonical_axes("numpy.rot90", tuple(axes), aval_of(m).ndim)
    k %= 4
    if k == 0:
        return m
    if k == 2:
        return flip(m, (first, second))
    if k == 1:
        return swapaxes(flip(m, second), first, second)
    return flip(swapaxes(m, first, second), second)


def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """`a` shifted round along `axis`, or as if it were one dimension.

    Source: mirrors jax.numpy.roll (0.10).

    Raises:
        ValueError: shifts and axes are not equally many.
    """
    check_arraylike("roll", a)
    dims = aval_of(a).shape
    if axis is None:
        return reshape_array(roll(ravel(a), shift, 0), dims)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    shifts = shift if isinstance(shift, (tuple, list)) else [shift] * len(axes)
    if np.ndim(shifts) and len(shifts) != len(axes):
        if len(axes) == 1:
            axes = tuple(axes) * len(shifts)
        else:
            raise ValueError(
                message(
                    "numpy.roll",
                    "shift and axis must be equally many.",
                    got={"shift": shift, "axis": axis},
                )
            )
    for step, dim in zip(shifts, axes, strict=True):
        a = _rolled(a, step, arguments.canonicalize_axis(dim, len(dims), "numpy.roll"))
    return a


def _rolled(a: Any, shift: Any, axis: int) -> Any:
    size = aval_of(a).shape[axis]
    if size == 0:
        return a
    if isinstance(shift, Tracer) or hasattr(shift, "aval"):
        offset = binary.rem(shift, np.asarray(size, aval_of(shift).dtype)[()])
        start = binary.sub(np.asarray(size, aval_of(shift).dtype)[()], offset)
        doubled = shape.concatenate([a, a, a], axis)
        return slicing.dynamic_slice_in_dim(doubled, start, size, axis)
    start = -int(shift) % size
    if start == 0:
        return a
    return shape.concatenate(
        [
            slicing.slice_in_dim(a, start, size, axis=axis),
            slicing.slice_in_dim(a, 0, start, axis=axis),
        ],
        axis,
    )


def tile(A: Any, reps: Any) -> Any:  # noqa: N803  NumPy's name
    """`A` repeated whole `reps` times along each dimension.  Mirrors jax.numpy.tile (0.10)."""
    check_arraylike("tile", A)
    counts = canonicalize_shape(reps, "numpy.tile reps")
    dims = aval_of(A).shape
    rank = max(len(counts), len(dims))
    counts = (1,) * (rank - len(counts)) + counts
    dims = (1,) * (rank - len(dims)) + dims
    spread = [n for pair in zip([1] * rank, dims, strict=True) for n in pair]
    wide = [n for pair in zip(counts, dims, strict=True) for n in pair]
    split = broadcast_array(shape.reshape(A, tuple(spread)), tuple(wide))
    return shape.reshape(split, tuple(c * n for c, n in zip(counts, dims, strict=True)))


def repeat(
    a: Any,
    repeats: Any,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: Any = None,
) -> Any:
    """Each element of `a` repeated along `axis`, or of `a` as one dimension.

    Args:
        a: the array.
        repeats: how often, one number or one for each position.
        axis: the dimension.
        total_repeat_length: the size of the result; needed where `repeats` is traced.

    Source: mirrors jax.numpy.repeat (0.10).

    Raises:
        TypeError: `repeats` is traced and `total_repeat_length` is not given.
        ValueError: there are not as many repeats as positions.
    """
    check_arraylike("repeat", a)
    if axis is None:
        a, axis = ravel(a), 0
    axis = arguments.canonicalize_axis(axis, aval_of(a).ndim, "numpy.repeat")
    size = aval_of(a).shape[axis]
    if isinstance(repeats, Tracer) and repeats.concrete() is None:
        return _repeat_traced(a, repeats, axis, size, total_repeat_length)
    counts = np.atleast_1d(np.asarray(repeats))
    if counts.size not in (1, size):
        raise ValueError(
            message(
                "numpy.repeat",
                "there must be one number of repeats, or one for each position.",
                got=f"{counts.size} numbers for {size} positions",
            )
        )
    if counts.size == 1 and total_repeat_length is None:
        wide = shape.expand_dims(a, (axis + 1,))
        dims = list(aval_of(wide).shape)
        dims[axis + 1] = int(counts.flat[0])
        out = broadcast_array(wide, tuple(dims))
        dims[axis : axis + 2] = [size * int(counts.flat[0])]
        return shape.reshape(out, tuple(dims))
    positions = np.repeat(np.arange(size), counts)
    if total_repeat_length is not None:
        last = positions[-1:] if positions.size else np.zeros(1, int)
        missing = max(total_repeat_length - positions.size, 0)
        positions = np.concatenate([positions, np.repeat(last, missing)])[:total_repeat_length]
    return slicing_take(a, positions.astype(np.int32), axis)


def _repeat_traced(a: Any, repeats: Any, axis: int, size: int, total: int | None) -> Any:
    if total is None:
        raise ConcretizationTypeError(
            message(
                "numpy.repeat",
                "the number of repeats is traced, so the shape of the result is unknown.",
                got=str(repeats.aval),
                fix="give total_repeat_length",
            )
        )
    from_each = broadcast_array(repeats, (size,))
    ends = _cumulated(from_each)
    places = creation.iota(np.dtype(np.int32), total)
    passed = binary.le(
        shape.broadcast_in_dim(ends, (total, size), (1,)),
        shape.broadcast_in_dim(places, (total, size), (0,)),
    )
    index = _count(passed)
    return slicing_take(a, binary.min(index, np.int32(size - 1)), axis)


def _cumulated(x: Any) -> Any:
    """Running sums of a vector, by one masked matrix."""
    n = aval_of(x).shape[0]
    mask = np.tri(n, dtype=np.int32)
    wide = shape.broadcast_in_dim(x.astype(np.int32), (n, n), (1,))
    return _sum_last(binary.mul(wide, mask))


def _count(mask: Any) -> Any:
    return _sum_last(mask.astype(np.int32))


def _sum_last(x: Any) -> Any:
    return x.sum(-1)


def slicing_take(a: Any, positions: Any, axis: int) -> Any:
    """Elements of `a` at positions along one dimension."""
    index: list[Any] = [slice(None)] * aval_of(a).ndim
    index[axis] = positions
    return a[tuple(index)] if hasattr(a, "aval") else shape.copy(a)[tuple(index)]


def resize(a: Any, new_shape: Any) -> Any:
    """`a` cut or repeated to fill a shape.  Mirrors jax.numpy.resize (0.10).

    Raises:
        ValueError: a dimension is negative.
    """
    check_arraylike("resize", a)
    dims = tuple(map(operator.index, new_shape if np.iterable(new_shape) else (new_shape,)))
    if any(n < 0 for n in dims):
        raise ValueError(
            message("numpy.resize", "dimensions must not be negative.", got=str(dims))
        )
    flat = ravel(a)
    size, wanted = aval_of(flat).size, math.prod(dims)
    if size == 0 or wanted == 0:
        return creation.full(dims, 0, aval_of(a).dtype)
    copies = -(-wanted // size)
    if copies > 1:
        flat = shape.concatenate([flat] * copies, 0)
    return shape.reshape(slicing.slice_in_dim(flat, 0, wanted), dims)
