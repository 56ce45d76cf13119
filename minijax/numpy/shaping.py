"""Functions that rearrange dimensions: reshape, transpose, broadcast, flip, roll, repeat.

Input: arrays.  Output: the same elements in another arrangement.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import AbstractValue, Shape, aval_of, canonicalize_shape, whole_number
from minijax.core.errors import ConcretizationTypeError, error
from minijax.core.native import Buffer
from minijax.core.trace import Tracer
from minijax.lax import binary, creation, families, shape, slicing, unary, window_reduction
from minijax.lax.creation import full
from minijax.lowering import relocation
from minijax.numpy.creation import asarray
from minijax.numpy.promotion import check_array, check_choice, check_that, known, one_program
from minijax.runtime.annotations import ArrayLike, Axis, ShapeLike, ShardingLike
from minijax.runtime.array import Array
from minijax.transforms import explicit

_INT32 = np.dtype(np.int32)


def array_argument(name: str, x: Any) -> Array:
    """An argument of the public function `name` as an array of ours.

    Raises:
        TypeError: it is neither an array nor a number.
    """
    if type(x) is Buffer:
        return x
    x = check_array(name, x)
    return x if hasattr(x, "aval") else asarray(x)


def with_axis(name: str, a: ArrayLike, axis: int | None) -> tuple[Array, int]:
    """An argument of a public function and its dimension; without one, its elements in a row."""
    a = array_argument(name, a)
    if axis is None:
        return ravel(a), 0
    return a, families.canonicalize_axis(axis, a.aval.ndim, f"numpy.{name}")


def canonical_axes(name: str, axes: Axis, ndim: int) -> tuple[int, ...]:
    """One axis or several as distinct non-negative ints."""
    given = axes if isinstance(axes, (tuple, list)) else (axes,)
    return families.canonicalize_axes(given, ndim, name)


def shape_argument(x: ArrayLike, dims: ShapeLike, name: str) -> Shape:
    """A shape with at most one -1 as the dimensions that fit the size of `x`.

    Raises:
        TypeError: the sizes do not fit, or -1 stands twice.
    """
    if isinstance(dims, (int, np.integer)) or not np.iterable(dims):
        dims = (dims,)
    try:
        sizes = tuple(map(whole_number, dims))
    except ConcretizationTypeError:
        raise
    except TypeError:
        error(TypeError, name, "the shape must hold integers.", got=repr(dims), cause=None)
    if -1 not in sizes:
        return sizes
    size = aval_of(x).size
    known = math.prod(d for d in sizes if d != -1)
    fits = sizes.count(-1) <= 1 and known != 0 and size % known == 0
    problem = "the size of the array does not fit the shape."
    expected = "one -1 at most, and sizes whose product divides the array's size"
    check_that(
        fits, name, problem, error=TypeError, array=aval_of(x), shape=sizes, expected=expected
    )
    return tuple(size // known if d == -1 else d for d in sizes)


def reshape(
    a: ArrayLike,
    shape: ShapeLike,
    order: str = "C",
    *,
    copy: bool | None = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Gives an array a new shape without changing its elements; one size may be -1.

    Shapes:     a: T[s] -> T[shape].
    Derivative: transposes to a reshape back.
    Lowers to:  stablehlo.reshape, after stablehlo.transpose for order "F".

    Raises:
        TypeError: the sizes do not fit.
        NotImplementedError: the order is "A".
        ValueError: the order is not known.

    Example:
        >>> jnp.reshape(jnp.arange(6), (2, -1))
        Array([[0, 1, 2],
               [3, 4, 5]], dtype=int32)
        >>> jnp.reshape(jnp.arange(6), (2, 3), order="F")
        Array([[0, 2, 4],
               [1, 3, 5]], dtype=int32)
    """
    a = check_array("reshape", a)
    dims = shape_argument(a, shape, "numpy.reshape")
    return reshape_array(a, dims, order, out_sharding=out_sharding)


def reshape_array(
    a: Array, dims: Shape, order: str = "C", *, out_sharding: ShardingLike = None
) -> Array:
    """`reshape` for a shape of known non-negative sizes."""
    if order == "C":
        return shape.reshape(a, dims, out_sharding=out_sharding)
    if order == "F":
        rank = aval_of(a).ndim
        turned = shape.reshape(a, dims[::-1], range(rank)[::-1])
        found = shape.transpose(turned, range(len(dims))[::-1])
        return explicit.placed(found, out_sharding, "numpy.reshape")
    check_choice("reshape", "order", order, ("C", "F", "A"))
    problem = "order 'A' needs memory layouts, which arrays do not show."
    error(NotImplementedError, "numpy.reshape", problem)


def ravel(a: ArrayLike, order: str = "C", *, out_sharding: ShardingLike = None) -> Array:
    """Flattens an array to one dimension.

    Shapes:     a: T[s] -> T[prod(s)].

    Example:
        >>> jnp.ravel(jnp.array([[1, 2], [3, 4]]))
        Array([1, 2, 3, 4], dtype=int32)
    """
    a = array_argument("ravel", a)
    return reshape_array(a, (a.aval.size,), order, out_sharding=out_sharding)


def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """Permutes the axes of an array; without `axes`, reverses them.

    Shapes:     a: T[s] -> T[s[axes]].
    Derivative: transposes to the inverse permutation.
    Lowers to:  stablehlo.transpose.

    Raises:
        ValueError: an axis is out of range.
        TypeError: `axes` is not a permutation.

    Example:
        >>> jnp.transpose(jnp.array([[1, 2, 3], [4, 5, 6]]))
        Array([[1, 4],
               [2, 5],
               [3, 6]], dtype=int32)
        >>> jnp.transpose(jnp.ones((2, 3, 4)), (1, 0, 2)).shape
        (3, 2, 4)
    """
    a = array_argument("transpose", a)
    rank = a.aval.ndim
    if axes is None:
        return shape.transpose(a, range(rank)[::-1])
    return shape.transpose(
        a, [families.canonicalize_axis(axis, rank, "numpy.transpose") for axis in axes]
    )


def permute_dims(a: ArrayLike, /, axes: tuple[int, ...]) -> Array:
    """Permutes the axes of an array.

    Shapes:     a: T[s] -> T[s permuted].

    Example:
        >>> jnp.permute_dims(jnp.ones((2, 3, 4)), (2, 0, 1)).shape
        (4, 2, 3)
    """
    return transpose(a, axes)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """Transposes the matrices in the last two dimensions.

    Shapes:     x: T[..., m, n] -> T[..., n, m].

    Raises:
        ValueError: `x` has fewer than two dimensions.

    Example:
        >>> jnp.matrix_transpose(jnp.ones((5, 2, 3))).shape
        (5, 3, 2)
    """
    x = array_argument("matrix_transpose", x)
    check_that(x.aval.ndim >= 2, "matrix_transpose", "needs two dimensions.", x=x)
    return swapaxes(x, -1, -2)


def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """Interchanges two axes of an array.

    Shapes:     a: T[s] -> T[s with two sizes exchanged].

    Example:
        >>> jnp.swapaxes(jnp.ones((2, 3, 4)), 0, -1).shape
        (4, 3, 2)
    """
    a = array_argument("swapaxes", a)
    order = list(range(a.aval.ndim))
    i = families.canonicalize_axis(axis1, len(order), "numpy.swapaxes")
    j = families.canonicalize_axis(axis2, len(order), "numpy.swapaxes")
    order[i], order[j] = order[j], order[i]
    return shape.transpose(a, order)


@one_program(static=("source", "destination"))
def moveaxis(a: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """Moves axes of an array to new positions; the others keep their order.

    Raises:
        ValueError: there are not as many destinations as sources.

    Example:
        >>> jnp.moveaxis(jnp.ones((2, 3, 4)), 0, -1).shape
        (3, 4, 2)
    """
    a = array_argument("moveaxis", a)
    rank = a.aval.ndim
    sources = canonical_axes("numpy.moveaxis", source, rank)
    targets = canonical_axes("numpy.moveaxis", destination, rank)
    problem = "source and destination must be equally many."
    fit = len(sources) == len(targets)
    check_that(fit, "moveaxis", problem, source=source, destination=destination)
    order = [d for d in range(rank) if d not in sources]
    for target, d in sorted(zip(targets, sources, strict=True)):
        order.insert(target, d)
    return shape.transpose(a, order)


def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """Rolls an axis backwards until it lies before position `start`.

    Shapes:     a: T[s] -> T[s permuted].

    Raises:
        ValueError: axis or start is out of range.

    Example:
        >>> jnp.rollaxis(jnp.ones((2, 3, 4)), 2).shape
        (4, 2, 3)
    """
    a = array_argument("rollaxis", a)
    rank = a.aval.ndim
    axis = families.canonicalize_axis(axis, rank, "numpy.rollaxis")
    if not -rank <= start <= rank:
        error(ValueError, "numpy.rollaxis", "start is out of range.", got=str(start))
    start = start + rank if start < 0 else start
    return moveaxis(a, axis, start - 1 if start > axis else start)


def expand_dims(a: ArrayLike, axis: int | Sequence[int]) -> Array:
    """Inserts new axes of size 1 at the given positions.

    Shapes:     a: T[s] -> T[s with ones at axis].
    Lowers to:  stablehlo.broadcast_in_dim.

    Raises:
        ValueError: an axis is out of range, or named twice.

    Example:
        >>> jnp.expand_dims(jnp.ones((2, 3)), (0, -1)).shape
        (1, 2, 3, 1)
    """
    a = array_argument("expand_dims", a)
    return shape.expand_dims(a, axis if isinstance(axis, (tuple, list)) else (axis,))


def squeeze(a: ArrayLike, axis: Axis = None) -> Array:
    """Removes axes of size 1: all of them, or the given ones.

    Shapes:     a: T[s] -> T[s without axis].

    Raises:
        ValueError: a dimension to drop has another size.

    Example:
        >>> jnp.squeeze(jnp.ones((1, 3, 1))).shape, jnp.squeeze(jnp.ones((1, 3, 1)), axis=0).shape
        ((3,), (3, 1))
    """
    a = array_argument("squeeze", a)
    dims = a.aval.shape
    if axis is None:
        return shape.squeeze(a, [i for i, n in enumerate(dims) if n == 1])
    return shape.squeeze(a, canonical_axes("numpy.squeeze", axis, len(dims)))


def broadcast_to(array: ArrayLike, shape: ShapeLike, *, out_sharding: ShardingLike = None) -> Array:
    """Broadcasts an array to a new shape.

    Shapes:     array: T[s] -> T[shape], where s, aligned at the end, is equal to it or 1.
    Derivative: transposes to a sum.

    Raises:
        ValueError: the shapes do not fit.

    Example:
        >>> jnp.broadcast_to(jnp.array([1, 2, 3]), (2, 3))
        Array([[1, 2, 3],
               [1, 2, 3]], dtype=int32)
    """
    dims = canonicalize_shape(shape, "numpy.broadcast_to")
    return broadcast_array(array_argument("broadcast_to", array), dims, out_sharding)


def broadcast_array(array: Any, dims: Shape, out_sharding: ShardingLike = None) -> Array:
    """`broadcast_to` for a shape given as a tuple of ints."""
    own = aval_of(array).shape
    if own == dims and out_sharding is None:
        return array
    lead = len(dims) - len(own)
    fits = lead >= 0 and all(a in (1, b) for a, b in zip(own, dims[lead:], strict=True))
    check_that(fits, "broadcast_to", "the array does not fit the shape.", array=array, shape=dims)
    kept = range(lead, len(dims))
    return shape.broadcast_in_dim(array, dims, kept, out_sharding=out_sharding)


def broadcast_arrays(*args: ArrayLike) -> list[Array]:
    """Broadcasts arrays against each other.

    Shapes:     T[s] each -> T[broadcast of all s] each.

    Raises:
        ValueError: there is none.

    Example:
        >>> [x.shape for x in jnp.broadcast_arrays(jnp.ones((2, 1)), jnp.ones(3))]
        [(2, 3), (2, 3)]
    """
    arrays = [array_argument("broadcast_arrays", x) for x in args]
    dims = broadcast_shapes(*(x.aval.shape for x in arrays))
    return [relocation.beside(broadcast_array(x, dims), x, *arrays) for x in arrays]


def broadcast_shapes(*shapes: ShapeLike) -> Shape:
    """Broadcasts shapes into a single shape.

    Raises:
        ValueError: there is none.

    Example:
        >>> jnp.broadcast_shapes((2, 1), (3,), ())
        (2, 3)
    """
    return shape.broadcast_shapes(*cast(Sequence[Shape], shapes))


def _at_least(name: str, rank: int, arrays: Sequence[Any]) -> Any:
    made = []
    for x in arrays:
        array = array_argument(name, x)
        own = array.aval.ndim
        if own >= rank:
            made.append(array)
        elif rank == 3 and own:
            made.append(shape.expand_dims(array, (2,) if own == 2 else (0, 2)))
        else:
            made.append(shape.expand_dims(array, range(rank - own)))
    return made[0] if len(made) == 1 else made


def atleast_1d(*arys: ArrayLike) -> Array:
    """Converts inputs to arrays with at least one dimension.

    Shapes:     T[] -> T[1]; others pass.

    Example:
        >>> jnp.atleast_1d(5)
        Array([5], dtype=int32, weak_type=True)
    """
    return _at_least("atleast_1d", 1, arys)


def atleast_2d(*arys: ArrayLike) -> Array:
    """Converts inputs to arrays with at least two dimensions.

    Shapes:     T[n] -> T[1, n]; T[] -> T[1, 1]; others pass.

    Example:
        >>> jnp.atleast_2d(jnp.array([1, 2]))
        Array([[1, 2]], dtype=int32)
    """
    return _at_least("atleast_2d", 2, arys)


def atleast_3d(*arys: ArrayLike) -> Array:
    """Converts inputs to arrays with at least three dimensions.

    Shapes:     T[m, n] -> T[m, n, 1]; T[n] -> T[1, n, 1]; T[] -> T[1, 1, 1]; others pass.

    Example:
        >>> jnp.atleast_3d(jnp.ones((2, 3))).shape
        (2, 3, 1)
    """
    return _at_least("atleast_3d", 3, arys)


@one_program(static=("axis",))
def flip(m: ArrayLike, axis: Axis = None) -> Array:
    """Reverses the order of the elements along the given axes.

    Shapes:     m: T[s] -> T[s].
    Lowers to:  stablehlo.reverse.

    Raises:
        ValueError: an axis is out of range, or named twice.

    Example:
        >>> jnp.flip(jnp.array([[1, 2], [3, 4]]))
        Array([[4, 3],
               [2, 1]], dtype=int32)
        >>> jnp.flip(jnp.array([[1, 2], [3, 4]]), axis=1)
        Array([[2, 1],
               [4, 3]], dtype=int32)
    """
    m = array_argument("flip", m)
    rank = m.aval.ndim
    axes = range(rank) if axis is None else canonical_axes("numpy.flip", axis, rank)
    return shape.rev(m, axes)


def fliplr(m: ArrayLike) -> Array:
    """Reverses the order of the elements along axis 1.

    Shapes:     m: T[m, n, ...] -> T[m, n, ...].

    Example:
        >>> jnp.fliplr(jnp.array([[1, 2], [3, 4]]))
        Array([[2, 1],
               [4, 3]], dtype=int32)
    """
    return flip(m, 1)


def flipud(m: ArrayLike) -> Array:
    """Reverses the order of the elements along axis 0.

    Shapes:     m: T[m, ...] -> T[m, ...].

    Example:
        >>> jnp.flipud(jnp.array([[1, 2], [3, 4]]))
        Array([[3, 4],
               [1, 2]], dtype=int32)
    """
    return flip(m, 0)


@one_program(static=("k", "axes"))
def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """Rotates an array by 90 degrees, `k` times, in the plane of two axes.

    Raises:
        ValueError: the axes are the same, or out of range.

    Example:
        >>> jnp.rot90(jnp.array([[1, 2], [3, 4]]))
        Array([[2, 4],
               [1, 3]], dtype=int32)
    """
    m = array_argument("rot90", m)
    first, second = canonical_axes("numpy.rot90", tuple(axes), m.aval.ndim)
    turns = k % 4
    if turns == 0:
        return m
    if turns == 2:
        return flip(m, (first, second))
    if turns == 1:
        return swapaxes(flip(m, second), first, second)
    return flip(swapaxes(m, first, second), second)


@one_program(static=("axis",))
def roll(a: ArrayLike, shift: ArrayLike | Sequence[int], axis: Axis = None) -> Array:
    """Rolls the elements along `axis`; those beyond the end come back at the start.

    Args:
        a: the array.
        shift: by how many places, one number or one for each axis; may be traced.
        axis: one dimension or several.

    Shapes:     a: T[s] -> T[s].

    Raises:
        ValueError: shifts and axes are not equally many, or an axis is out of range.
        TypeError: a shift is not an integer.

    Example:
        >>> jnp.roll(jnp.array([1, 2, 3, 4]), 1)
        Array([4, 1, 2, 3], dtype=int32)
        >>> jnp.roll(jnp.array([[1, 2, 3], [4, 5, 6]]), -1, axis=1)
        Array([[2, 3, 1],
               [5, 6, 4]], dtype=int32)
    """
    a = array_argument("roll", a)
    dims = a.aval.shape
    if axis is None:
        return reshape_array(roll(ravel(a), shift, 0), dims)
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    if isinstance(shift, (tuple, list)):
        shifts = list(shift)
    elif aval_of(shift).ndim:
        shifts = list(asarray(shift))
    else:
        shifts = [shift]
    counts = {len(shifts), len(axes)} - {1}
    problem = "shift and axis must be equally many."
    check_that(len(counts) <= 1, "roll", problem, got=f"{len(shifts)} shifts, {len(axes)} axes")
    for i in range(*counts or {1}):
        dim = families.canonicalize_axis(axes[i % len(axes)], len(dims), "numpy.roll")
        a = _rolled(a, shifts[i % len(shifts)], dim)
    return a


def _rolled(a: Array, shift: Any, axis: int) -> Array:
    size = aval_of(a).shape[axis]
    if not dtypes.issubdtype(aval_of(shift).dtype, np.integer):
        error(TypeError, "numpy.roll", "shifts must be integers.", got=str(aval_of(shift)))
    if size == 0:
        return a
    if hasattr(shift, "aval"):
        if shift.dtype.itemsize == 8 or shift.dtype == dtypes.uint32:
            shift = binary.rem(shift, size)
        # From 1 to 2 * size - 1 places behind the start of the first copy.
        shift = binary.rem(creation.convert_element_type(shift, _INT32), np.int32(size))
        start: Any = binary.select_n(
            binary.lt(np.int32(0), shift), unary.neg(shift), binary.sub(np.int32(size), shift)
        )
        doubled = shape.concatenate([a, a], axis)
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


@one_program(static=("reps",))
def tile(A: ArrayLike, reps: ShapeLike) -> Array:
    """Repeats an array `reps` times along each axis.

    Shapes:     A: T[s] -> T[s * reps], where the shorter of both is filled up with ones in front.

    Raises:
        TypeError: a number of repeats is not an integer, or is negative.

    Example:
        >>> jnp.tile(jnp.array([1, 2]), (2, 2))
        Array([[1, 2, 1, 2],
               [1, 2, 1, 2]], dtype=int32)
    """
    A = array_argument("tile", A)
    counts = canonicalize_shape(reps, "numpy.tile reps")
    dims = A.aval.shape
    rank = max(len(counts), len(dims))
    counts = (1,) * (rank - len(counts)) + counts
    dims = (1,) * (rank - len(dims)) + dims
    # Each dimension n becomes (1, n), which is repeated to (count, n).
    wide = [n for pair in zip(counts, dims, strict=True) for n in pair]
    places = [2 * d + 1 for d in range(rank - A.aval.ndim, rank)]
    split = shape.broadcast_in_dim(A, tuple(wide), places)
    return shape.reshape(split, tuple(c * n for c, n in zip(counts, dims, strict=True)))


def repeat(
    a: ArrayLike,
    repeats: ArrayLike,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Repeats each element of an array along `axis`, or of the flattened array.

    Args:
        a: the array.
        repeats: how often, one number or one for each position.
        axis: the dimension.
        total_repeat_length: the size of the result; needed where `repeats` is traced.  What is
            missing is filled up with the last element.
        out_sharding: of the result.

    Raises:
        ConcretizationTypeError: `repeats` is traced and `total_repeat_length` is not given.
        TypeError: repeats are not integers.
        ValueError: there are not as many repeats as positions.

    Example:
        >>> jnp.repeat(jnp.array([1, 2, 3]), 2)
        Array([1, 1, 2, 2, 3, 3], dtype=int32)
        >>> jnp.repeat(jnp.array([1, 2, 3]), jnp.array([0, 1, 2]))
        Array([2, 3, 3], dtype=int32)
    """
    a = array_argument("repeat", a)
    if axis is None or not a.aval.ndim:
        a, axis = ravel(a), axis or 0
    axis = families.canonicalize_axis(axis, a.aval.ndim, "numpy.repeat")
    size = a.aval.shape[axis]
    is_traced = isinstance(repeats, Tracer) and repeats.concrete() is None
    if is_traced and total_repeat_length is not None:
        check_repeats(aval_of(repeats), size)
        return _repeated_to(a, repeats, axis, total_repeat_length)
    problem = "the number of repeats is traced, so the shape of the result is unknown."
    counts = known("repeat", repeats, "give total_repeat_length", problem)
    check_repeats(counts, size)
    if counts.size == 1 and total_repeat_length is None:
        return _repeated_equally(a, int(counts.reshape(())), axis)
    positions = np.repeat(np.arange(size, dtype=np.int32), counts.ravel())
    if total_repeat_length is not None:
        missing = max(total_repeat_length - positions.size, 0)
        last = np.full(missing, size - 1, np.int32)
        positions = np.concatenate([positions, last])[:total_repeat_length]
    return slicing_take(a, positions, axis)


def check_repeats(counts: np.ndarray[Any, Any] | AbstractValue, size: int) -> None:
    """Refuses numbers of repeats that are not integers, or do not fit `size` positions.

    Raises:
        TypeError: they are not integers.
        ValueError: there are too few or too many.
    """
    if counts.dtype != dtypes.bool_ and not dtypes.issubdtype(counts.dtype, np.integer):
        error(TypeError, "numpy.repeat", "repeats must be integers.", got=str(counts.dtype))
    fits = counts.size in (1, size)
    problem = "there must be one number of repeats, or one for each position."
    check_that(fits, "repeat", problem, got=f"{counts.size} numbers for {size} positions")


@one_program(static=("count", "axis"))
def _repeated_equally(a: Array, count: int, axis: int) -> Any:
    dims = aval_of(a).shape
    wide = canonicalize_shape((*dims[: axis + 1], count, *dims[axis + 1 :]), "numpy.repeat")
    kept = [d + (d > axis) for d in range(len(dims))]
    out = shape.broadcast_in_dim(a, wide, kept)
    return shape.reshape(out, (*dims[:axis], dims[axis] * count, *dims[axis + 1 :]))


def _repeated_to(a: Array, repeats: ArrayLike, axis: int, total: int) -> Any:
    """Repeats known at run time only: the i-th one ends where the first i sum up to."""
    size = aval_of(a).shape[axis]
    each = creation.convert_element_type(ravel(repeats), _INT32)
    ends = window_reduction.cumsum(broadcast_array(each, (size,)))
    passed = full((total,), 0, _INT32).at[ends].add(1, mode="drop")
    positions = window_reduction.cumsum(passed)
    return slicing_take(a, binary.min(positions, np.int32(size - 1)), axis)


def slicing_take(a: Any, positions: Any, axis: int) -> Array:
    """Elements of `a` at positions along one dimension."""
    return array_argument("take", a)[(*(slice(None),) * axis, positions)]


@one_program(static=("new_shape",))
def resize(a: ArrayLike, new_shape: ShapeLike) -> Array:
    """Returns an array of a new shape, repeating the elements if it is larger.

    Raises:
        ValueError: a dimension is negative.

    Example:
        >>> jnp.resize(jnp.array([1, 2, 3]), (2, 4))
        Array([[1, 2, 3, 1],
               [2, 3, 1, 2]], dtype=int32)
    """
    a = array_argument("resize", a)
    dims = tuple(map(whole_number, new_shape if np.iterable(new_shape) else (new_shape,)))
    if any(n < 0 for n in dims):
        error(ValueError, "numpy.resize", "dimensions must not be negative.", got=str(dims))
    size, wanted = a.aval.size, math.prod(dims)
    if size == 0 or wanted == 0:
        return full(dims, 0, a.aval.dtype)
    flat = tile(ravel(a), -(-wanted // size))
    return shape.reshape(slicing.slice_in_dim(flat, 0, wanted), dims)
