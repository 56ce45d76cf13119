"""Joining and splitting arrays, inserting and deleting elements, and flattening pytrees of arrays.

Input: arrays.  Output: one array of several, or several of one.  `ravel_pytree` makes one vector of
a pytree of arrays, and gives the function that restores the tree.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import dtypes, source, tree
from minijax.core.aval import AbstractValue, Shape, aval_of
from minijax.core.errors import IncompatibleShapesError, error
from minijax.core.sequences import ByValue
from minijax.core.trace import Tracer
from minijax.lax import binary, creation, families, shape, sorting
from minijax.lax.creation import convert_element_type
from minijax.lax.unary import real
from minijax.numpy import indexing, shaping
from minijax.numpy.creation import zeros
from minijax.numpy.promotion import (
    check_array,
    check_out,
    check_that,
    known,
    one_program,
    promote_dtypes,
)
from minijax.numpy.shaping import array_argument, ravel, reshape
from minijax.runtime.annotations import ArrayLike, ArrayOrLists, Axis, DTypeLike
from minijax.runtime.array import Array


def _sequence(name: str, arrays: Any) -> list[Any]:
    """The arrays of a sequence, or the rows of one array, of which there is at least one.

    Raises:
        ValueError: there are none.
        IncompatibleShapesError: it is not a sequence.
        TypeError: it holds something else.
    """
    if isinstance(arrays, (list, tuple)):
        items = [check_array(name, x) for x in arrays]
    elif hasattr(arrays, "shape") and aval_of(arrays).ndim:
        items = list(unstack(arrays))
    else:
        problem = "needs a sequence of arrays."
        error(IncompatibleShapesError, f"numpy.{name}", problem, got=repr(arrays))
    if not items:
        error(ValueError, f"numpy.{name}", "needs at least one array.")
    return items


def _of_one_dtype(name: str, items: Sequence[Any], dtype: DTypeLike | None) -> Sequence[Any]:
    if dtype is None:
        return promote_dtypes(name, *items)
    dtype = dtypes.canonicalize_user_dtype(dtype, f"numpy.{name}")
    return [creation.convert_element_type(x, dtype) for x in items]


@one_program(static=("axis", "dtype"))
def concatenate(
    arrays: ArrayLike | Sequence[ArrayLike], axis: int | None = 0, dtype: DTypeLike | None = None
) -> Array:
    """Joins arrays along an existing axis; flattened ones where `axis` is None.

    Shapes:     T[s], T[t], … alike but along `axis` -> T[s with the sizes along axis added].
    Dtypes:     promoted to a common one.
    Derivative: transposes to a split.
    Lowers to:  stablehlo.concatenate.

    Raises:
        ValueError: there are no arrays, or they are scalars.
        TypeError: the shapes do not fit.

    Example:
        >>> jnp.concatenate([jnp.zeros((1, 2)), jnp.ones((2, 2))])
        Array([[0., 0.],
               [1., 1.],
               [1., 1.]], dtype=float32)
    """
    items = _sequence("concatenate", arrays)
    if axis is None:
        items, axis = [shaping.ravel(x) for x in items], 0
    fits = not any(aval_of(x).ndim == 0 for x in items)
    fix = "numpy.stack joins scalars"
    if families.is_array(arrays):
        fix = f"a sequence of arrays, as in numpy.concatenate([x, y]); {fix}"
    check_that(fits, "concatenate", "cannot join scalars.", fix=fix)
    axis = families.canonicalize_axis(axis, aval_of(items[0]).ndim, "numpy.concatenate")
    joined = _of_one_dtype("concatenate", items, dtype)
    if len(joined) == 1:
        return array_argument("concatenate", joined[0])
    return shape.concatenate(joined, axis)


@source.hands_over
def concat(arrays: ArrayLike | Sequence[ArrayLike], /, *, axis: int | None = 0) -> Array:
    """Joins arrays along an existing axis; see `concatenate`.

    Shapes:     as of `concatenate`.

    Example:
        >>> jnp.concat([jnp.array([[1], [2]]), jnp.array([[3], [4]])], axis=1)
        Array([[1, 3],
               [2, 4]], dtype=int32)
    """
    return concatenate(arrays, axis)


@one_program(static=("axis", "out", "dtype"))
def stack(
    arrays: ArrayLike | Sequence[ArrayLike],
    axis: int = 0,
    out: None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Joins arrays of one shape along a new axis.

    Shapes:     T[s], T[s], … -> T[s with their number at axis].
    Dtypes:     promoted to a common one.

    Raises:
        ValueError: there are no arrays, or their shapes differ.
        NotImplementedError: `out` is given.

    Example:
        >>> jnp.stack([jnp.array([1, 2]), jnp.array([3, 4])])
        Array([[1, 2],
               [3, 4]], dtype=int32)
        >>> jnp.stack([jnp.array([1, 2]), jnp.array([3, 4])], axis=1)
        Array([[1, 3],
               [2, 4]], dtype=int32)
    """
    check_out("stack", out)
    items = _sequence("stack", arrays)
    dims = aval_of(items[0]).shape
    if any(aval_of(x).shape != dims for x in items):
        problem = "all arrays must have the same shape."
        error(ValueError, "numpy.stack", problem, got=", ".join(str(aval_of(x)) for x in items))
    if families.is_array(axis) and aval_of(axis).ndim:
        problem = "the axis must be an integer."
        fix = "a sequence of arrays, as in numpy.stack([x, y])"
        error(TypeError, "numpy.stack", problem, got=f"axis: {aval_of(axis)}", fix=fix)
    axis = families.canonicalize_axis(axis, len(dims) + 1, "numpy.stack")
    return shape.stack(_of_one_dtype("stack", items, dtype), axis)


@one_program(static=("axis",))
def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Splits an array into its slices along an axis, which is removed.

    Shapes:     x: T[.., n, ..] -> n times T[.., ..].

    Raises:
        ValueError: `x` is a scalar, or the axis is out of range.

    Example:
        >>> jnp.unstack(jnp.array([[1, 2], [3, 4]]), axis=1)
        (Array([1, 3], dtype=int32), Array([2, 4], dtype=int32))
    """
    x = array_argument("unstack", x)
    if x.aval.ndim == 0:
        error(ValueError, "numpy.unstack", "a scalar has no dimension to unstack.")
    return shape.unstack(x, axis)


@one_program(static=("dtype",))
def vstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Stacks arrays vertically, as rows.

    Shapes:     T[n] or T[k, n] each -> T[total, n].

    Example:
        >>> jnp.vstack([jnp.array([1, 2]), jnp.array([[3, 4], [5, 6]])])
        Array([[1, 2],
               [3, 4],
               [5, 6]], dtype=int32)
    """
    items = [shaping.atleast_2d(x) for x in _sequence("vstack", tup)]
    return concatenate(items, 0, dtype)


@one_program(static=("dtype",))
def hstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Stacks arrays horizontally: along axis 1, vectors along axis 0.

    Shapes:     T[n] each -> T[total]; or T[m, n, ...] each -> T[m, total, ...].

    Example:
        >>> jnp.hstack([jnp.array([1, 2]), jnp.array([3])])
        Array([1, 2, 3], dtype=int32)
    """
    items = [shaping.atleast_1d(x) for x in _sequence("hstack", tup)]
    return concatenate(items, 0 if items[0].aval.ndim == 1 else 1, dtype)


@one_program(static=("dtype",))
def dstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Stacks arrays depth-wise, along axis 2.

    Shapes:     T[n], T[m, n] or T[m, n, k] each -> T[m, n, total], where vectors have m = 1.

    Example:
        >>> jnp.dstack([jnp.array([1, 2]), jnp.array([3, 4])])
        Array([[[1, 3],
                [2, 4]]], dtype=int32)
    """
    return concatenate([shaping.atleast_3d(x) for x in _sequence("dstack", tup)], 2, dtype)


@one_program()
def column_stack(tup: ArrayLike | Sequence[ArrayLike]) -> Array:
    """Stacks vectors as the columns of a matrix.

    Shapes:     T[m] or T[m, n] each -> T[m, total].

    Example:
        >>> jnp.column_stack([jnp.array([1, 2]), jnp.array([[3, 4], [5, 6]])])
        Array([[1, 3, 4],
               [2, 5, 6]], dtype=int32)
    """
    items = _sequence("column_stack", tup)
    return concatenate([x if aval_of(x).ndim > 1 else shaping.atleast_2d(x).T for x in items], 1)


@one_program()
def block(arrays: ArrayOrLists) -> Array:
    """Assembles an array from nested lists of blocks.

    Raises:
        ValueError: the lists are not equally deep, or empty.

    Example:
        >>> eye, zeros = jnp.eye(2, dtype=int), jnp.zeros((2, 1), int)
        >>> jnp.block([[eye, zeros], [7, 8, 9]])
        Array([[1, 0, 0],
               [0, 1, 0],
               [7, 8, 9]], dtype=int32)
    """
    depths = set(_depths(arrays))
    problem = "all blocks must be nested equally deep, in lists that are not empty."
    check_that(len(depths) == 1, "block", problem, got=f"depths {sorted(depths)}")
    (depth,) = depths
    return _joined_blocks(arrays, max(depth, _largest_rank(arrays)), depth)


def _depths(arrays: object) -> list[int]:
    if isinstance(arrays, tuple):
        error(ValueError, "numpy.block", "blocks come in lists.", got=repr(arrays))
    if not isinstance(arrays, list):
        return [0]
    return [1 + depth for x in arrays for depth in _depths(x)]


def _largest_rank(arrays: object) -> int:
    if isinstance(arrays, list):
        return max(_largest_rank(x) for x in arrays)
    return int(aval_of(check_array("block", arrays)).ndim)


def _joined_blocks(arrays: object, rank: int, depth: int) -> Any:
    if not isinstance(arrays, list):
        x = array_argument("block", arrays)
        return shape.expand_dims(x, range(rank - x.aval.ndim))
    return concatenate([_joined_blocks(x, rank, depth - 1) for x in arrays], rank - depth)


def split(
    ary: ArrayLike, indices_or_sections: ArrayLike | Sequence[int], axis: int = 0
) -> list[Array]:
    """Splits an array into equal parts, or before the given positions.

    Shapes:     ary: T[.., n, ..] -> T[.., n / sections, ..], or parts that add up to n.

    Raises:
        ValueError: the dimension does not divide, or the positions do not ascend.

    Example:
        >>> jnp.split(jnp.arange(4), 2)
        [Array([0, 1], dtype=int32), Array([2, 3], dtype=int32)]
        >>> jnp.split(jnp.arange(4), [1])
        [Array([0], dtype=int32), Array([1, 2, 3], dtype=int32)]
    """
    return _split("split", ary, indices_or_sections, axis, uneven=False)


def array_split(
    ary: ArrayLike, indices_or_sections: ArrayLike | Sequence[int], axis: int = 0
) -> list[Array]:
    """Splits an array into parts of nearly equal size, or before the given positions.

    Shapes:     ary: T[s] -> a list of T[s but for axis].

    Example:
        >>> jnp.array_split(jnp.arange(5), 2)
        [Array([0, 1, 2], dtype=int32), Array([3, 4], dtype=int32)]
    """
    return _split("array_split", ary, indices_or_sections, axis, uneven=True)


def _split(name: str, ary: ArrayLike, where: Any, axis: int, *, uneven: bool) -> list[Any]:
    ary = array_argument(name, ary)
    axis = families.canonicalize_axis(axis, ary.aval.ndim, f"numpy.{name}")
    size = ary.aval.shape[axis]
    if isinstance(where, (tuple, list)) or np.ndim(where):
        positions = families.int_tuple(where, f"numpy.{name}", "indices_or_sections")
        bounds = [0, *positions, size]
        sizes = [stop - start for start, stop in itertools.pairwise(bounds)]
        problem = "the positions must ascend, within the dimension."
        valid = min(sizes) >= 0
    else:
        parts = families.an_integer(where, f"numpy.{name}", "indices_or_sections")
        each, rest = divmod(size, parts) if parts > 0 else (0, 1)
        sizes = [each + 1] * rest + [each] * (parts - rest)
        problem = "the dimension cannot be cut into so many equal parts."
        valid = parts > 0 and (uneven or not rest)
    fix = "numpy.array_split cuts unevenly"
    check_that(valid, name, problem, got=f"size {size}, {where}", fix=fix)
    return _split_program(ary, tuple(sizes), axis)


_split_program = one_program(static=("sizes", "axis"))(shape.split)


def _split_at(name: str, ary: ArrayLike, where: Any, axis: int, least_rank: int) -> list[Any]:
    ary = array_argument(name, ary)
    check_that(ary.aval.ndim >= least_rank, name, f"needs {least_rank} dimensions.", ary=ary)
    return split(ary, where, axis)


def hsplit(ary: ArrayLike, indices_or_sections: ArrayLike | Sequence[int]) -> list[Array]:
    """Splits an array horizontally: along axis 1, vectors along axis 0.

    Shapes:     ary: T[m, n, ...] -> a list of T[m, parts of n, ...]; of vectors, T[parts of m].

    Example:
        >>> jnp.hsplit(jnp.array([[1, 2], [3, 4]]), 2)
        [Array([[1],
               [3]], dtype=int32), Array([[2],
               [4]], dtype=int32)]
    """
    axis = 0 if aval_of(check_array("hsplit", ary)).ndim == 1 else 1
    return _split_at("hsplit", ary, indices_or_sections, axis, 1)


def vsplit(ary: ArrayLike, indices_or_sections: ArrayLike | Sequence[int]) -> list[Array]:
    """Splits an array vertically, along axis 0.

    Shapes:     ary: T[m, n, ...] -> a list of T[parts of m, n, ...].

    Example:
        >>> jnp.vsplit(jnp.array([[1, 2], [3, 4]]), 2)
        [Array([[1, 2]], dtype=int32), Array([[3, 4]], dtype=int32)]
    """
    return _split_at("vsplit", ary, indices_or_sections, 0, 1)


def dsplit(ary: ArrayLike, indices_or_sections: ArrayLike | Sequence[int]) -> list[Array]:
    """Splits an array depth-wise, along axis 2.

    Shapes:     ary: T[m, n, k, ...] -> a list of T[m, n, parts of k, ...].

    Example:
        >>> [part.shape for part in jnp.dsplit(jnp.ones((2, 3, 4)), [1])]
        [(2, 3, 1), (2, 3, 3)]
    """
    return _split_at("dsplit", ary, indices_or_sections, 2, 3)


@source.hands_over
def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """Appends values to the end of an array.

    Shapes:     arr: T[s], values: U[t] -> V[size of both], or joined along `axis`.

    Example:
        >>> jnp.append(jnp.array([[1, 2]]), 3)
        Array([1, 2, 3], dtype=int32)
        >>> jnp.append(jnp.array([[1, 2]]), jnp.array([[3, 4]]), axis=0)
        Array([[1, 2],
               [3, 4]], dtype=int32)
    """
    return concatenate([arr, values], axis)


def _known_integers(name: str, obj: Any, size: int) -> np.ndarray[Any, Any]:
    """Positions given by a number, an array, a mask or a slice, counted from the front."""
    if isinstance(obj, slice):
        return np.arange(size)[obj]
    problem = "the positions are traced, so the shape of the result is unknown."
    host = known(name, check_array(name, obj), problem=problem)
    if host.dtype == np.bool_:
        fits = host.shape == (size,)
        check_that(fits, name, f"the mask must have shape ({size},).", got=str(host.shape))
        return np.nonzero(host)[0]
    if not np.issubdtype(host.dtype, np.integer):
        error(ValueError, f"numpy.{name}", "positions must be integers.", got=repr(obj))
    return host


def delete(
    arr: ArrayLike,
    obj: ArrayLike | slice | Sequence[int],
    axis: int | None = None,
    *,
    assume_unique_indices: bool = False,
) -> Array:
    """Returns an array without the given positions along `axis`.

    Args:
        arr: the array.
        obj: positions: a number, an array, a mask or a slice.
        axis: the dimension.
        assume_unique_indices: a promise, with which positions may be traced.

    Raises:
        ConcretizationTypeError: positions are traced.
        IndexError: a position is out of range.
        ValueError: positions are not integers.

    Example:
        >>> jnp.delete(jnp.array([10, 11, 12, 13]), jnp.array([0, -1]))
        Array([11, 12], dtype=int32)
    """
    arr, axis = shaping.with_axis("delete", arr, axis)
    size = arr.aval.shape[axis]
    if assume_unique_indices and isinstance(obj, Tracer) and obj.concrete() is None:
        return _without_traced(arr, obj, axis)
    gone = _known_integers("delete", obj, size)
    if ((gone < -size) | (gone >= size)).any():
        problem = "a position is out of range."
        got = f"{obj}, size {size}"
        error(IndexError if gone.ndim else ValueError, "numpy.delete", problem, got=got)
    kept = np.delete(np.arange(size, dtype=np.int32), gone)
    return shaping.slicing_take(arr, kept, axis)


def _without_traced(arr: Array, obj: Array, axis: int) -> Any:
    """`arr` without traced positions, all different: a stable sort brings them to the end."""
    size = arr.aval.shape[axis]
    gone = creation.full((size,), 0, np.dtype(np.int32)).at[shaping.ravel(obj)].set(1)
    places = creation.iota(np.dtype(np.int32), size)
    _, order = sorting.sort((gone, places), num_keys=1)
    return shaping.slicing_take(arr, order[: size - aval_of(obj).size], axis)


def insert(
    arr: ArrayLike,
    obj: ArrayLike | slice | Sequence[int],
    values: ArrayLike,
    axis: int | None = None,
) -> Array:
    """Inserts values along `axis` before the given positions.

    Args:
        arr: the array.
        obj: positions in `arr`: a number, an array or a slice; may be traced.
        values: what is put in; takes the array's dtype, and broadcasts.
        axis: the dimension.

    Raises:
        ValueError: positions are not integers, or the values do not fit.

    Example:
        >>> jnp.insert(jnp.array([1, 2, 3]), 1, 9)
        Array([1, 9, 2, 3], dtype=int32)
    """
    arr, axis = shaping.with_axis("insert", arr, axis)
    values = array_argument("insert", values)
    size = arr.aval.shape[axis]
    rows = creation.convert_element_type(values, arr.aval.dtype)
    rows = shape.expand_dims(rows, range(max(arr.aval.ndim - rows.aval.ndim, 0)))
    if not (isinstance(obj, Tracer) and obj.concrete() is None):
        obj = _known_integers("insert", obj, size)
    if aval_of(obj).ndim == 0:
        # One position takes as many values as there are, as if they were one block.
        obj = array_argument("insert", obj)
        rows = shaping.moveaxis(rows, 0, axis)
        positions = shaping.broadcast_array(shaping.ravel(obj), (rows.aval.shape[axis],))
    else:
        positions = shaping.ravel(obj)
    count = aval_of(positions).shape[0]
    dims = list(arr.aval.shape)
    dims[axis] = count
    return _inserted(arr, positions, shaping.broadcast_array(rows, tuple(dims)), axis)


@one_program(static=("axis",))
def _inserted(arr: Array, positions: Array, rows: Array, axis: int) -> Any:
    """Rows put in before positions; those for one position keep their order."""
    size, count = aval_of(arr).shape[axis], aval_of(positions).shape[0]
    int32 = np.dtype(np.int32)
    positions = indexing.as_positions(positions).clip(-size, size).astype(int32)
    positions = binary.add(positions, (positions < 0) * np.int32(size))
    places = creation.iota(int32, count)
    _, order = sorting.sort((positions, places), num_keys=1)
    # The k-th smallest position moves by k, because k rows stand before it.
    new = creation.full((count,), 0, int32).at[order].set(positions[order] + places)
    is_new = creation.full((size + count,), 0, int32).at[new].set(1)
    _, old = sorting.sort((is_new, creation.iota(int32, size + count)), num_keys=1)
    dims = list(aval_of(arr).shape)
    dims[axis] = size + count
    lead = (slice(None),) * axis
    out = creation.full_like(arr, 0, shape=tuple(dims))
    return out.at[(*lead, old[:size])].set(arr).at[(*lead, new)].set(rows)


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: Axis = None) -> Array:
    """Trims the zeros at the ends of an array, along all axes or some.

    Args:
        filt: the array, which must be known.
        trim: which ends: "f" for the front, "b" for the back.
        axis: the dimensions.

    Raises:
        ConcretizationTypeError: the array is traced.

    Example:
        >>> jnp.trim_zeros(jnp.array([0, 1, 0, 2, 0, 0]))
        Array([1, 0, 2], dtype=int32)
    """
    filt = array_argument("trim_zeros", filt)
    places = np.argwhere(known("trim_zeros", filt) != 0)
    rank = filt.aval.ndim
    axes = range(rank) if axis is None else shaping.canonical_axes("numpy.trim_zeros", axis, rank)
    index = [slice(None)] * rank
    for d in axes:
        size = filt.aval.shape[d]
        first, last = (places[:, d].min(), places[:, d].max()) if len(places) else (size, -1)
        start = int(first) if "f" in trim.lower() else 0
        stop = int(last) + 1 if "b" in trim.lower() else size
        index[d] = slice(start, max(start, stop))
    return filt[tuple(index)]


class Unravel(ByValue):
    """The way back from a vector to the tree that it was made of; equal for equal trees.

    Shapes: vector: T[n] -> the tree's leaves.
    """

    __slots__ = ("dtype", "dtypes", "shapes", "treedef")

    def __init__(
        self,
        treedef: Any,
        shapes: Sequence[Shape],
        kinds: Sequence[Any],
        dtype: np.dtype[Any] | None,
    ) -> None:
        self.treedef = treedef
        self.shapes = tuple(shapes)
        self.dtypes = tuple(kinds)
        self.dtype = dtype

    def __call__(self, vector: ArrayLike) -> Any:
        """The tree whose leaves, one after another, are the vector's elements."""
        if not self.shapes:
            return tree.unflatten(self.treedef, ())
        vector = array_argument("flatten_util.ravel_pytree", vector)
        self._check(aval_of(vector))
        sizes = [math.prod(shape) for shape in self.shapes]
        parts = shape.split(vector, sizes) if len(sizes) > 1 else [vector]
        return tree.unflatten(self.treedef, map(self._leaf, parts, self.shapes, self.dtypes))

    def _leaf(self, part: Array, shape: Shape, dtype: np.dtype[Any]) -> Any:
        leaf = reshape(part, shape)
        if self._is_uniform:
            return leaf
        if dtypes.issubdtype(self.dtype, np.complexfloating) and dtype != self.dtype:
            # The imaginary parts are those that the promotion added.
            leaf = real(leaf)
        return convert_element_type(leaf, dtype)

    @property
    def _is_uniform(self) -> bool:
        return all(dtype == self.dtype for dtype in self.dtypes)

    def _check(self, aval: AbstractValue) -> None:
        size = sum(math.prod(shape) for shape in self.shapes)
        fits = aval.shape == (size,)
        problem = "the vector does not fit the tree."
        expected = f"{size} elements, one for each of the tree's"
        check_that(fits, "flatten_util.ravel_pytree", problem, vector=aval, expected=expected)
        if not self._is_uniform and aval.dtype != self.dtype:
            problem = "the vector's dtype is not the one that the tree's dtypes promote to."
            got, wanted = {"vector": aval}, str(self.dtype)
            fix = f"vector.astype({wanted!r})"
            name = "flatten_util.ravel_pytree"
            error(TypeError, name, problem, got=got, expected=wanted, fix=fix)


def ravel_pytree(pytree: Any) -> tuple[Array, Callable[[Array], Any]]:
    """Flattens a pytree of arrays into a vector, and returns the function that restores it.

    Args:
        pytree: the tree of arrays and numbers.

    Shapes:     leaves T[s], U[t], .. -> V[sum of the sizes].
    Dtypes:     the leaves' dtypes promoted.  The function takes this dtype and gives each leaf its
                own; a vector for a tree of one dtype may have any, which its leaves then have.
    Derivative: linear, as is the function.

    Raises:
        TypeError: a leaf is neither an array nor a number; the function is given another dtype.
        ValueError: the function is given a vector of another size.

    Example:
        >>> vector, unravel = minijax.flatten_util.ravel_pytree({"b": 2.0, "w": np.ones(2)})
        >>> vector
        Array([2., 1., 1.], dtype=float32)
        >>> unravel(2 * vector)["w"]
        Array([2., 2.], dtype=float32)
    """
    leaves, treedef = tree.flatten(pytree)
    if not leaves:
        return zeros(0, dtypes.default_float_dtype()), Unravel(treedef, (), (), None)
    avals = [aval_of(array_argument("flatten_util.ravel_pytree", leaf)) for leaf in leaves]
    promoted = promote_dtypes("flatten_util.ravel_pytree", *leaves)
    vectors = [ravel(leaf) for leaf in promoted]
    vector = concatenate(vectors) if len(vectors) > 1 else vectors[0]
    kinds = [aval.dtype for aval in avals]
    return vector, Unravel(treedef, [a.shape for a in avals], kinds, np.dtype(vector.dtype))
