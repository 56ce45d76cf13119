"""Matrices and indices by position: identity, triangles, diagonals, `meshgrid`, `mgrid`, `r_`.

Functions of indices convert between coordinates and flat indices in row-major order.  Input:
integers.  Output: coordinates, flat indices, or index arrays for the open mesh of several.

`mgrid`, `ogrid`, `r_` and `c_` are objects that build arrays when they are indexed.  Slices in the
brackets are ranges: `0:5` counts, `0:1:5j` divides into five samples.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of, canonicalize_shape
from minijax.core.errors import error
from minijax.lax import binary, creation, families, shape, slicing
from minijax.lax.creation import broadcasted_iota, convert_element_type, full, full_like
from minijax.lax.padding import pad
from minijax.numpy import elementary, reductions, shaping
from minijax.numpy.creation import asarray, dtype_argument, made_on_host, on_device, zeros
from minijax.numpy.elementary import power
from minijax.numpy.joining import concatenate, stack
from minijax.numpy.promotion import (
    broadcast_to,
    check_array,
    check_that,
    known,
    one_program,
    pick,
    promote_dtypes,
    strong,
)
from minijax.numpy.ranges import arange, linspace
from minijax.numpy.selection import nonzero
from minijax.numpy.shaping import array_argument, expand_dims, moveaxis
from minijax.runtime.annotations import ArrayLike, DTypeLike, Placement, ShapeLike
from minijax.runtime.array import Array, array_from_host

_INDEX = dtypes.int32


def eye(
    N: int,
    M: int | None = None,
    k: ArrayLike = 0,
    dtype: DTypeLike | None = None,
    *,
    device: Placement = None,
) -> Array:
    """Creates a matrix with ones on a diagonal and zeros elsewhere.

    Args:
        N: how many rows.
        M: how many columns; as many by default.
        k: which diagonal: 0 is the main one, positive ones lie above.
        dtype: the dtype; float32, or float64 with x64, by default.
        device: where the matrix is placed.

    Shapes:     -> dtype[N, M].

    Raises:
        TypeError: a size is not an integer of at least 0.

    Example:
        >>> jnp.eye(2, 3, k=1, dtype=int)
        Array([[0, 1, 0],
               [0, 0, 1]], dtype=int32)
    """
    rows, columns = _sizes("eye", N, N if M is None else M)
    dtype = dtype_argument("eye", dtype, dtypes.default_float_dtype())
    if isinstance(k, (int, np.integer)) and made_on_host(rows * columns, dtype):
        return on_device(array_from_host(np.eye(rows, columns, int(k), dtype)), device)
    return on_device(_eye(rows, columns, k, dtype), device)


def _sizes(name: str, *sizes: Any) -> tuple[int, ...]:
    found = tuple(families.an_integer(n, f"numpy.{name}", "a size") for n in sizes)
    if min(found) < 0:
        error(ValueError, f"numpy.{name}", "sizes must not be negative.", got=str(found))
    return found


@one_program(static=("rows", "columns", "dtype"))
def _eye(rows: int, columns: int, k: Any, dtype: Any) -> Any:
    return convert_element_type(_compared(binary.eq, (rows, columns), k), dtype)


def _compared(comparison: Callable[..., Any], dims: tuple[int, ...], k: ArrayLike) -> Any:
    """How the row of each place, moved by k, compares with its column."""
    row = broadcasted_iota(_INDEX, dims, len(dims) - 2)
    column = broadcasted_iota(_INDEX, dims, len(dims) - 1)
    if isinstance(k, (int, np.integer)):
        return comparison(binary.add(row, int(k)) if k else row, column)
    return comparison(binary.add(row, convert_element_type(k, _INDEX)), column)


def identity(n: int, dtype: DTypeLike | None = None) -> Array:
    """Creates the identity matrix with n rows.

    Shapes:     -> dtype[n, n].

    Example:
        >>> jnp.identity(2)
        Array([[1., 0.],
               [0., 1.]], dtype=float32)
    """
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Creates a matrix with ones on and below a diagonal, and zeros above.

    Shapes:     -> dtype[N, M].
    Dtypes:     float32 by default.

    Raises:
        TypeError: a size is not an integer of at least 0.

    Example:
        >>> jnp.tri(2, 3)
        Array([[1., 0., 0.],
               [1., 1., 0.]], dtype=float32)
    """
    rows, columns = _sizes("tri", N, N if M is None else M)
    dtype = dtype_argument("tri", dtype, dtypes.float32)
    if made_on_host(rows * columns, dtype):
        return array_from_host(np.tri(rows, columns, operator.index(k), dtype))
    return _tri(rows, columns, operator.index(k), dtype)


@one_program(static=("rows", "columns", "k", "dtype"))
def _tri(rows: int, columns: int, k: int, dtype: Any) -> Any:
    return convert_element_type(_compared(binary.ge, (rows, columns), k), dtype)


@one_program(static=("k",))
def tril(m: ArrayLike, k: int = 0) -> Array:
    """Returns the lower triangle of matrices: zeros above diagonal k.

    Shapes:     m: T[.., n, m] -> T[.., n, m].

    Raises:
        ValueError: `m` has fewer than two dimensions.

    Example:
        >>> jnp.tril(jnp.array([[1, 2], [3, 4]]))
        Array([[1, 0],
               [3, 4]], dtype=int32)
    """
    return _triangle("tril", m, k, keep_below=True)


@one_program(static=("k",))
def triu(m: ArrayLike, k: int = 0) -> Array:
    """Returns the upper triangle of matrices: zeros below diagonal k.

    Shapes:     m: T[.., n, m] -> T[.., n, m].

    Raises:
        ValueError: `m` has fewer than two dimensions.

    Example:
        >>> jnp.triu(jnp.array([[1, 2], [3, 4]]), k=1)
        Array([[0, 2],
               [0, 0]], dtype=int32)
    """
    return _triangle("triu", m, k - 1, keep_below=False)


def _triangle(name: str, m: ArrayLike, k: int, *, keep_below: bool) -> Any:
    m = check_array(name, m, "m")
    aval = aval_of(m)
    _check_is_matrix(name, m)
    below = broadcast_to(_compared(binary.ge, aval.shape[-2:], k), aval.shape)
    nothing = full_like(m, 0)
    return pick(below, m, nothing) if keep_below else pick(below, nothing, m)


def _check_is_matrix(name: str, x: Array) -> None:
    check_that(aval_of(x).ndim >= 2, name, "an array of two dimensions or more is needed.", x=x)


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Returns the indices of the lower triangle of an n by m matrix.

    Example:
        >>> jnp.tril_indices(2)
        (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    return _indices_on_host(np.tril_indices(n, k, m))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Returns the indices of the upper triangle of an n by m matrix.

    Example:
        >>> jnp.triu_indices(2, k=1)
        (Array([0], dtype=int32), Array([1], dtype=int32))
    """
    return _indices_on_host(np.triu_indices(n, k, m))


def _indices_on_host(places: Any) -> tuple[Any, Any]:
    rows, columns = (asarray(x.astype(dtypes.default_int_dtype())) for x in places)
    return rows, columns


def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """Returns the indices of the lower triangle of a given matrix.

    Raises:
        ValueError: `arr` is not a matrix.

    Example:
        >>> x = jnp.array([[1, 2], [3, 4]])
        >>> x[jnp.tril_indices_from(x)]
        Array([1, 3, 4], dtype=int32)
    """
    rows, columns = _matrix_shape("tril_indices_from", arr)
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """Returns the indices of the upper triangle of a given matrix.

    Raises:
        ValueError: `arr` is not a matrix.

    Example:
        >>> x = jnp.array([[1, 2], [3, 4]])
        >>> x[jnp.triu_indices_from(x)]
        Array([1, 2, 4], dtype=int32)
    """
    rows, columns = _matrix_shape("triu_indices_from", arr)
    return triu_indices(rows, k, columns)


def _matrix_shape(name: str, arr: ArrayLike) -> tuple[int, int]:
    dims = np.shape(arr)
    if len(dims) != 2:
        error(ValueError, f"numpy.{name}", "a matrix is needed.", got=f"an array of shape {dims}")
    rows, columns = dims
    return rows, columns


def mask_indices(
    n: int, mask_func: Callable[..., Any], k: int = 0, *, size: int | None = None
) -> tuple[Array, Array]:
    """Returns the indices of an n by n matrix that `mask_func(matrix, k)` keeps.

    Example:
        >>> jnp.mask_indices(2, jnp.triu)
        (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    ones = full((n, n), 1, _INDEX)
    rows, columns = nonzero(mask_func(ones, k), size=size)
    return rows, columns


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """Returns the indices of the main diagonal of an array of `ndim` dimensions of size n.

    Raises:
        ValueError: n or `ndim` is negative.

    Example:
        >>> jnp.zeros((2, 2)).at[jnp.diag_indices(2)].set(5.0)
        Array([[5., 0.],
               [0., 5.]], dtype=float32)
    """
    _sizes("diag_indices", n, ndim)
    return (arange(n, dtype=int),) * ndim


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """Returns the indices of the main diagonal of an array whose dimensions are equal.

    Raises:
        ValueError: `arr` has fewer than two dimensions, or unequal ones.

    Example:
        >>> jnp.diag_indices_from(jnp.ones((3, 3)))[0]
        Array([0, 1, 2], dtype=int32)
    """
    dims = np.shape(arr)
    fits = len(dims) >= 2 and len(set(dims)) <= 1
    problem = "an array of two equal dimensions or more is needed."
    check_that(fits, "diag_indices_from", problem, got=f"shape {dims}")
    return diag_indices(dims[0], len(dims))


@one_program(static=("offset", "axis1", "axis2"))
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Returns the diagonals of the matrices in two axes, as the last dimension.

    Shapes:     a: T[n, m, ..] -> T[.., k], where k is the length of the diagonal.

    Raises:
        ValueError: `a` has fewer than two dimensions, or the axes are equal or out of range.

    Example:
        >>> jnp.diagonal(jnp.array([[1, 2], [3, 4]]))
        Array([1, 4], dtype=int32)
        >>> jnp.diagonal(jnp.ones((5, 2, 3)), axis1=1, axis2=2).shape
        (5, 2)
    """
    a = strong(check_array("diagonal", a, "a"))
    _check_is_matrix("diagonal", a)
    ndim = aval_of(a).ndim
    axes = families.canonicalize_axes((axis1, axis2), ndim, "numpy.diagonal")
    others = [d for d in range(ndim) if d not in axes]
    a = shape.transpose(a, (*others, *axes))
    *outer, rows, columns = aval_of(a).shape
    first = offset if offset >= 0 else -offset * columns
    length = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
    if length == 0:
        return full((*outer, 0), 0, aval_of(a).dtype)
    # In row-major order, neighbours on a diagonal are one row and one column apart.
    flat = shape.reshape(a, (*outer, rows * columns))
    last = first + (length - 1) * (columns + 1)
    return slicing.slice_in_dim(flat, first, last + 1, columns + 1, len(outer))


@one_program(static=("k",))
def diag(v: ArrayLike, k: int = 0) -> Array:
    """Extracts the diagonal of a matrix, or constructs a diagonal matrix from a vector.

    Shapes:     v: T[n, m] -> T[length of diagonal k]; v: T[n] -> T[n + |k|, n + |k|].

    Raises:
        ValueError: `v` has neither one nor two dimensions.

    Example:
        >>> jnp.diag(jnp.array([1, 2]))
        Array([[1, 0],
               [0, 2]], dtype=int32)
        >>> jnp.diag(jnp.array([[1, 2], [3, 4]]), k=1)
        Array([2], dtype=int32)
    """
    v = check_array("diag", v, "v")
    aval = aval_of(v)
    if aval.ndim == 2:
        return diagonal(v, k)
    if aval.ndim != 1:
        error(ValueError, "numpy.diag", "a vector or a matrix is needed.", got={"v": aval})
    size = aval.size + abs(k)
    padding = [(max(-k, 0), max(k, 0), 0)]
    rows = pad(v, full_like(v, 0, shape=()), padding)
    rows = shape.broadcast_in_dim(rows, (size, size), (0,))
    return pick(_compared(binary.eq, (size, size), k), rows, full_like(rows, 0))


@one_program(static=("k",))
def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """Creates a matrix with the flattened input on diagonal k.

    Shapes:     v: T[s] -> T[n + |k|, n + |k|] for n elements.

    Example:
        >>> jnp.diagflat(jnp.array([[1], [2]]))
        Array([[1, 0],
               [0, 2]], dtype=int32)
    """
    return strong(diag(shaping.ravel(check_array("diagflat", v, "v")), k))


@one_program(static=("offset", "axis1", "axis2", "dtype", "out"))
def trace(
    a: ArrayLike,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """Sums the diagonals of the matrices in two axes.

    Shapes:     a: T[n, m, ..] -> T[..].
    Dtypes:     all; narrow integers are widened, booleans counted.

    Raises:
        ValueError: `a` has fewer than two dimensions, or the axes are equal or out of range.
        NotImplementedError: `out` is given.

    Example:
        >>> jnp.trace(jnp.array([[1, 2], [3, 4]]))
        Array(5, dtype=int32)
    """
    if aval_of(check_array("trace", a, "a")).split is None:
        return reductions.sum(diagonal(a, offset, axis1, axis2), -1, dtype, out)
    # A diagonal is rarely split evenly: zeros are put beside it.
    band = triu(tril(moveaxis(a, (axis1, axis2), (-2, -1)), offset), offset)
    return reductions.sum(band, (-2, -1), dtype, out)


def meshgrid(
    *xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> list[Array]:
    """Returns the coordinate matrices of a grid, from vectors of coordinates.

    Args:
        xi: for each dimension, the coordinates along it.
        copy: must be True: arrays do not share memory.
        sparse: whether other dimensions than its own have size 1 in each result.
        indexing: "ij": dimensions in the order given; "xy": with the first two exchanged.

    Shapes:     T_i[n_i] for each -> T_i[n_0, n_1, ..] for each.

    Raises:
        ValueError: an array does not have one dimension, `copy` is False, or `indexing` unknown.

    Example:
        >>> jnp.meshgrid(jnp.array([1, 2]), jnp.array([7, 8, 9]), sparse=True)
        [Array([[1, 2]], dtype=int32), Array([[7],
               [8],
               [9]], dtype=int32)]
    """
    fits = copy and indexing in {"xy", "ij"}
    problem = "an option does not exist."
    expected = "copy=True, and indexing 'xy' or 'ij'"
    check_that(fits, "meshgrid", problem, copy=copy, indexing=repr(indexing), expected=expected)
    arrays = [asarray(check_array("meshgrid", x)) for x in xi]
    if any(aval_of(x).ndim != 1 for x in arrays):
        got = " ".join(str(aval_of(x)) for x in arrays)
        error(ValueError, "numpy.meshgrid", "arrays of one dimension are needed.", got=got)
    return list(_meshgrid(*arrays, sparse=sparse, swapped=indexing == "xy"))


@one_program(static=("sparse", "swapped"))
def _meshgrid(*arrays: Any, sparse: bool, swapped: bool) -> tuple[Any, ...]:
    places = list(range(len(arrays)))
    if swapped and len(arrays) > 1:
        places[:2] = [1, 0]
    sizes = [0] * len(arrays)
    for place, x in zip(places, arrays, strict=True):
        sizes[place] = aval_of(x).size
    grids = []
    for place, x in zip(places, arrays, strict=True):
        dims = [1] * len(arrays) if sparse else sizes
        dims = [sizes[place] if d == place else n for d, n in enumerate(dims)]
        grids.append(shape.broadcast_in_dim(x, tuple(dims), (place,)))
    return tuple(grids)


@overload
def indices(
    dimensions: Sequence[int], dtype: DTypeLike | None = ..., sparse: Literal[False] = ...
) -> Array: ...
@overload
def indices(
    dimensions: Sequence[int], dtype: DTypeLike | None = ..., *, sparse: Literal[True]
) -> tuple[Array, ...]: ...
@overload
def indices(
    dimensions: Sequence[int], dtype: DTypeLike | None = ..., sparse: bool = ...
) -> Array | tuple[Array, ...]: ...


def indices(
    dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: bool = False
) -> Array | tuple[Array, ...]:
    """Returns an array of the indices of a grid, for each of its dimensions.

    Shapes:     -> dtype[rank, *dimensions]; a tuple of arrays if `sparse`.
    Dtypes:     int32, or int64 with x64, by default.

    Example:
        >>> rows, columns = jnp.indices((2, 3))
        >>> rows
        Array([[0, 0, 0],
               [1, 1, 1]], dtype=int32)
    """
    dtype = dtype_argument("indices", dtype, dtypes.default_int_dtype())
    dims = families.int_tuple(dimensions, "numpy.indices", "dimensions")
    grids = meshgrid(*(arange(n, dtype=dtype) for n in dims), sparse=sparse, indexing="ij")
    if sparse:
        return tuple(grids)
    return stack(grids) if grids else zeros((0,), dtype)


@one_program(static=("N", "increasing"))
def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """Creates a Vandermonde matrix: its columns are powers of a vector, the highest first.

    Shapes:     x: T[n] -> T[n, N].
    Dtypes:     numeric.

    Raises:
        ValueError: `x` does not have one dimension, or N is negative.

    Example:
        >>> jnp.vander(jnp.array([2, 3]), 3)
        Array([[4, 2, 1],
               [9, 3, 1]], dtype=int32)
    """
    x = check_array("vander", x)
    if aval_of(x).ndim != 1:
        error(ValueError, "numpy.vander", "a vector is needed.", got={"x": aval_of(x)})
    (columns,) = _sizes("vander", aval_of(x).size if N is None else N)
    exponents = arange(columns) if increasing else arange(columns - 1, -1, -1)
    powers = power(shape.expand_dims(x, (1,)), shape.expand_dims(exponents, (0,)))
    return convert_element_type(powers, dtypes.to_numeric_dtype(aval_of(x).dtype))


def ix_(*args: ArrayLike) -> tuple[Array, ...]:
    """Makes an open mesh of index arrays, which selects the product of the given positions.

    Shapes:     int[n_i] for each of k vectors -> int[1, .., n_i, .., 1], with k dimensions.

    Raises:
        ValueError: an argument is not a vector.
        NotImplementedError: an argument is a mask.

    Example:
        >>> x = jnp.arange(12).reshape(3, 4)
        >>> x[jnp.ix_(jnp.array([0, 2]), jnp.array([1, 3]))]
        Array([[ 1,  3],
               [ 9, 11]], dtype=int32)
    """
    vectors = [array_argument("ix_", x) for x in args]
    found = []
    for i, x in enumerate(vectors):
        if x.aval.ndim != 1:
            error(ValueError, "numpy.ix_", "needs vectors.", got=str(x.aval))
        fits = x.dtype != dtypes.bool_
        problem = "masks are not understood."
        check_that(fits, "ix_", problem, error=NotImplementedError, fix="numpy.flatnonzero(mask)")
        default = dtypes.default_int_dtype()
        positions = x if x.aval.size else creation.convert_element_type(x, default)
        found.append(shape.expand_dims(positions, [d for d in range(len(vectors)) if d != i]))
    return tuple(found)


@one_program(static=("shape",))
def unravel_index(indices: ArrayLike, shape: ShapeLike) -> tuple[Array, ...]:
    """Converts flat indices, in row-major order, to a tuple of coordinate arrays.

    Args:
        indices: the numbers; negative ones count from the end, others are clamped.
        shape: of the array.

    Shapes:     indices: int[s] -> int[s] for each dimension.

    Example:
        >>> jnp.unravel_index(jnp.array([5, 0]), (2, 3))
        (Array([1, 0], dtype=int32), Array([2, 0], dtype=int32))
    """
    indices = array_argument("unravel_index", indices)
    dims = canonicalize_shape(shape, "numpy.unravel_index")
    total = math.prod(dims)
    indices = elementary.clip(indices, -total, total - 1)
    place = elementary.remainder(indices, max(total, 1))
    found = []
    for size in dims[::-1]:
        place, coordinate = elementary.divmod(place, max(size, 1))
        found.append(coordinate)
    return tuple(found[::-1])


def ravel_multi_index(
    multi_index: Sequence[Any],
    dims: Sequence[int],
    mode: str = "raise",
    order: str = "C",
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """Converts a tuple of coordinate arrays to flat indices.

    Args:
        multi_index: integers, one array for each dimension.
        dims: the shape of the array.
        mode: what happens out of range: "raise", "clip" or "wrap".
        order: "C" for row-major order, "F" for column-major order.
        dtype: of the result.

    Shapes:     int[s] for each dimension -> int[s].

    Raises:
        ValueError: the arguments do not fit, or a place is out of range.
        ConcretizationTypeError: the mode is "raise", and coordinates are traced.

    Example:
        >>> jnp.ravel_multi_index((jnp.array([1, 0]), jnp.array([2, 0])), (2, 3))
        Array([5, 0], dtype=int32)
    """
    name = "numpy.ravel_multi_index"
    sizes = canonicalize_shape(dims, name)
    arrays = [array_argument("ravel_multi_index", x) for x in multi_index]
    if len(arrays) != len(sizes) or mode not in ("raise", "clip", "wrap") or order not in "CF":
        problem = "the arguments do not fit together."
        got = f"{len(arrays)} arrays for {len(sizes)} dimensions, {mode=}, {order=}"
        modes = "a mode of 'raise', 'clip' or 'wrap'"
        expected = f"an array for each dimension, {modes}, and order 'C' or 'F'"
        error(ValueError, name, problem, got=got, expected=expected)
    if not all(dtypes.issubdtype(x.dtype, np.integer) for x in arrays):
        error(ValueError, name, "coordinates must be integers.", got=", ".join(map(str, arrays)))
    if mode == "raise":
        _check_coordinates(arrays, sizes)
    return _raveled(arrays, sizes, mode, order, dtype_argument(name, dtype, None))


def _check_coordinates(arrays: Sequence[Any], sizes: Sequence[int]) -> None:
    for x, size in zip(arrays, sizes, strict=True):
        problem = "mode 'raise' needs known coordinates."
        host = known("ravel_multi_index", x, "mode='clip' or mode='wrap'", problem)
        if ((host < 0) | (host >= size)).any():
            got = f"{host} for a dimension of size {size}"
            error(ValueError, "numpy.ravel_multi_index", "a coordinate is out of range.", got=got)


@one_program(static=("sizes", "mode", "order", "dtype"))
def _raveled(arrays: Any, sizes: tuple[int, ...], mode: str, order: str, dtype: Any) -> Any:
    pairs = list(zip(arrays, sizes, strict=True))
    number: Any = creation.full((), 0, dtypes.default_int_dtype())
    for x, size in pairs if order == "C" else pairs[::-1]:
        coordinate = x
        if mode == "clip":
            coordinate = elementary.clip(x, 0, size - 1)
        elif mode == "wrap":
            coordinate = elementary.remainder(x, size)
        number = number * size + coordinate
    return number if dtype is None else creation.convert_element_type(number, dtype)


def _range(item: slice, name: str) -> Any:
    start = 0 if item.start is None else item.start
    if item.stop is None:
        error(
            ValueError, f"numpy.{name}", "a range needs an end.", got=repr(item), fix=f"{name}[0:n]"
        )
    if isinstance(item.step, complex):
        return linspace(start, item.stop, int(abs(item.step)))
    return arange(start, item.stop, 1 if item.step is None else item.step)


class Grid:
    """`mgrid` and `ogrid`: the coordinates of all points of a grid, in full or broadcastable.

    Source:     mirrors jax.numpy.mgrid and jax.numpy.ogrid.

    Example:
        >>> jnp.mgrid[0:2, 0:3]
        Array([[[0, 0, 0],
                [1, 1, 1]],
        <BLANKLINE>
               [[0, 1, 2],
                [0, 1, 2]]], dtype=int32)
        >>> jnp.ogrid[0:1:5j]  # as `linspace` does
        Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """

    def __init__(self, name: str, *, sparse: bool) -> None:
        self.name = name
        self.sparse = sparse

    def __getitem__(self, key: slice | tuple[slice, ...]) -> Any:
        if isinstance(key, slice):
            return _range(key, self.name)
        ranges = promote_dtypes(self.name, *(_range(item, self.name) for item in key))
        grids = meshgrid(*ranges, indexing="ij", sparse=self.sparse)
        return grids if self.sparse else stack(grids)

    def __repr__(self) -> str:
        return f"minijax.numpy.{self.name}"


# Where a vector gets its second dimension.
_MATRICES = {"r": 0, "c": 1}


class Joiner:
    """`r_` and `c_`: what stands in the brackets, joined along one axis.

    A text in front, such as "0,2,1", names the axis, the least number of dimensions, and where
    dimensions of arrays with fewer go; "r" or "c" makes a vector a row or a column.

    Source:     mirrors jax.numpy.r_ and jax.numpy.c_.

    Example:
        >>> jnp.r_[0, 5:8, jnp.array([1, 2])]
        Array([0, 5, 6, 7, 1, 2], dtype=int32)
        >>> jnp.c_[jnp.array([1, 2]), jnp.array([3, 4])]
        Array([[1, 3],
               [2, 4]], dtype=int32)
    """

    def __init__(self, name: str, axis: int, ndmin: int, place: int) -> None:
        self.name = name
        self.settings = axis, ndmin, place

    def __getitem__(self, key: Any) -> Any:
        items = list(key) if isinstance(key, tuple) else [key]
        axis, ndmin, place = self.settings
        text = items.pop(0) if items and isinstance(items[0], str) else ""
        if text and text not in _MATRICES:
            axis, ndmin, place = self._parse(text)
        parts = []
        for item in items:
            if isinstance(item, str):
                problem = "a directive stands in front of all arrays."
                error(ValueError, f"numpy.{self.name}", problem, got=repr(item))
            part = _range(item, self.name) if isinstance(item, slice) else asarray(item)
            parts.append(self._raised(part, max(ndmin, 1), place))
        joined = concatenate(parts, axis)
        return (
            expand_dims(joined, _MATRICES[text])
            if text in _MATRICES and joined.ndim == 1
            else joined
        )

    def _parse(self, text: str) -> tuple[int, int, int]:
        try:
            numbers = [int(number) for number in text.split(",")]
        except ValueError:
            numbers = []
        fits = 0 < len(numbers) <= 3
        problem = "the directive is not understood."
        expected = "up to three integers, such as '0,2,1', or 'r' or 'c' for a matrix"
        check_that(fits, f"numpy.{self.name}", problem, got=repr(text), expected=expected)
        return (*numbers, *self.settings[len(numbers) :])  # type: ignore[return-value]

    def _raised(self, x: Any, ndmin: int, place: int) -> Any:
        """`x` with new dimensions up to `ndmin`; its own ones start at `place`."""
        missing = ndmin - x.ndim
        if missing <= 0:
            return x
        own = place if place >= 0 else missing + 1 + place
        raised = expand_dims(x, tuple(range(missing)))
        return moveaxis(
            raised, tuple(range(missing, ndmin)), tuple(range(own, own + ndmin - missing))
        )

    def __repr__(self) -> str:
        return f"minijax.numpy.{self.name}"


mgrid = Grid("mgrid", sparse=False)
ogrid = Grid("ogrid", sparse=True)
r_ = Joiner("r_", 0, 1, -1)
c_ = Joiner("c_", -1, 2, 0)
