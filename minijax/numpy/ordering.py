"""Functions of order: sort, argsort, partition, search.

Input: arrays.  Output: their elements in order, the positions that bring them there, or the
places of others among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np

from minijax import lax
from minijax.core import dtypes
from minijax.core.errors import error
from minijax.lax import binary, creation, families, shape, sorting
from minijax.numpy import logic, promotion, selection, shaping
from minijax.numpy.elementary import is_kind
from minijax.numpy.promotion import check_that, one_program
from minijax.numpy.shaping import array_argument
from minijax.runtime.annotations import ArrayLike, ArrayOrLists, DTypeLike
from minijax.runtime.array import Array

_SORT_OPTIONS = ("axis", "kind", "order", "stable", "descending")
_METHODS = ("default", "scan", "scan_unrolled", "sort", "compare_all")
# Up to so many elements, comparing with all of them is faster than searching by halves.
_FEW = 32


def _check_sort_options(name: str, kind: object, order: object) -> None:
    if kind is not None or order is not None:
        problem = "kind and order are not understood: sorts are stable, and arrays have no fields."
        error(TypeError, f"numpy.{name}", problem, got=f"kind={kind!r}, order={order!r}")


@one_program(static=_SORT_OPTIONS)
def sort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Array:
    """Sorts an array along `axis`, or flattened; NaN is sorted to the end.

    Shapes:     a: T[s] -> T[s].
    Dtypes:     all; complex numbers are ordered by real parts, then imaginary ones.
    Derivative: the tangents are permuted as the elements.
    Lowers to:  stablehlo.sort.

    Raises:
        ValueError: the axis is out of range.
        TypeError: `kind` or `order` is given.

    Example:
        >>> jnp.sort(jnp.array([[3, 1], [2, 4]]))
        Array([[1, 3],
               [2, 4]], dtype=int32)
        >>> jnp.sort(jnp.array([1.0, jnp.nan, 2.0]), descending=True)
        Array([nan,  2.,  1.], dtype=float32)
    """
    _check_sort_options("sort", kind, order)
    a, axis = shaping.with_axis("sort", a, axis)
    out = sorting.sort(a, dimension=axis, is_stable=stable)
    return shape.rev(out, (axis,)) if descending else out


@one_program(static=(*_SORT_OPTIONS, "dtype"))
def argsort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: DTypeLike | None = None,
) -> Array:
    """Returns the indices that would sort an array along `axis`.

    Shapes:     a: T[s] -> int[s].
    Lowers to:  stablehlo.sort.

    Raises:
        ValueError: the axis is out of range.
        TypeError: `kind` or `order` is given.

    Example:
        >>> jnp.argsort(jnp.array([30, 10, 20]))
        Array([1, 2, 0], dtype=int32)
    """
    _check_sort_options("argsort", kind, order)
    a, axis = shaping.with_axis("argsort", a, axis)
    places = creation.broadcasted_iota(dtypes.default_int_dtype(), a.aval.shape, axis)
    if descending:
        # Reversed before and after, equal elements keep their order.
        a, places = shape.rev(a, (axis,)), shape.rev(places, (axis,))
    _, found = sorting.sort((a, places), dimension=axis, is_stable=stable, num_keys=1)
    if descending:
        found = shape.rev(found, (axis,))
    if dtype is None:
        return found
    return creation.convert_element_type(
        found, dtypes.canonicalize_user_dtype(dtype, "numpy.argsort")
    )


@one_program(static=("axis",))
def lexsort(keys: ArrayLike | Sequence[ArrayLike], axis: int = -1) -> Array:
    """Returns the indices that sort by several keys; the last key is the primary one.

    Shapes:     keys: T[s] each -> int[s].
    Lowers to:  stablehlo.sort.

    Raises:
        TypeError: there are no keys.
        ValueError: their shapes differ, or the axis is out of range.

    Example:
        >>> surnames, names = jnp.array([2, 1, 2]), jnp.array([7, 9, 5])
        >>> jnp.lexsort([names, surnames])  # by surname, then name
        Array([1, 2, 0], dtype=int32)
    """
    arrays = [array_argument("lexsort", key) for key in cast(Iterable[Any], keys)]
    if not arrays:
        error(TypeError, "numpy.lexsort", "needs at least one key.")
    dims = arrays[0].aval.shape
    if any(x.aval.shape != dims for x in arrays):
        problem = "all keys must have the same shape."
        error(ValueError, "numpy.lexsort", problem, got=", ".join(str(x.aval) for x in arrays))
    dtype = dtypes.default_int_dtype()
    if not dims:
        return creation.full((), 0, dtype)
    axis = families.canonicalize_axis(axis, len(dims), "numpy.lexsort")
    places = creation.broadcasted_iota(dtype, dims, axis)
    return sorting.sort((*arrays[::-1], places), dimension=axis, num_keys=len(arrays))[-1]


def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """Partitions an array so that the element at `kth` is where sorting would put it.

    Raises:
        ValueError: `kth` or the axis is out of range.

    Example:
        >>> jnp.partition(jnp.array([5, 1, 4, 2, 3]), 1)[:2]
        Array([1, 2], dtype=int32)
    """
    _check_kth("partition", a, kth, axis)
    return sort(a, axis)


def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """Returns the indices that would partition an array.

    Raises:
        ValueError: `kth` or the axis is out of range.

    Example:
        >>> jnp.argpartition(jnp.array([50, 10, 40, 20]), 1)[:2]
        Array([1, 3], dtype=int32)
    """
    _check_kth("argpartition", a, kth, axis)
    # JAX's are of 32 bits, with 64-bit types too.
    return creation.convert_element_type(argsort(a, axis), np.int32)


def _check_kth(name: str, a: Any, kth: int, axis: int) -> None:
    a, axis = shaping.with_axis(name, a, axis)
    size = a.aval.shape[axis]
    fits = -size <= families.an_integer(kth, f"numpy.{name}", "`kth`") < size
    problem = "`kth` is out of range."
    expected = f"a position from {-size} to {size - 1}" if size else "elements"
    check_that(fits, name, problem, got=f"kth: {kth}   size: {size}", expected=expected)


def sort_complex(a: ArrayLike) -> Array:
    """Sorts an array as complex numbers: by the real parts, then by the imaginary ones.

    Example:
        >>> jnp.sort_complex(jnp.array([2 - 1j, 1, 2 - 3j]))
        Array([1.+0.j, 2.-3.j, 2.-1.j], dtype=complex64)
    """
    a = array_argument("sort_complex", a)
    return sort(creation.convert_element_type(a, dtypes.to_complex_dtype(a.dtype)))


@one_program(static=("side", "method"))
def searchsorted(
    a: ArrayLike,
    v: ArrayLike,
    side: str = "left",
    sorter: ArrayLike | None = None,
    *,
    method: str = "scan",
) -> Array:
    """Finds the indices at which elements would be inserted into a sorted array.

    Args:
        a: a sorted vector; NaN comes last.
        v: what to insert.
        side: before ("left") or after ("right") equal elements.
        sorter: positions that sort `a`.
        method: "compare_all" compares each element with all others; the other names, "default",
            "scan", "scan_unrolled" and "sort", mean a search by halves.

    Shapes:     a: T[n], v: T[s] -> int[s].

    Raises:
        ValueError: the side or method is not known, or `a` is not a vector.

    Example:
        >>> jnp.searchsorted(jnp.array([10, 20, 30]), jnp.array([5, 20, 99]))
        Array([0, 1, 3], dtype=int32)
        >>> jnp.searchsorted(jnp.array([10, 20, 30]), 20, side="right")
        Array(2, dtype=int32)
    """
    promotion.check_choice("searchsorted", "side", side, ("left", "right"))
    promotion.check_choice("searchsorted", "method", method, _METHODS)
    a, v = array_argument("searchsorted", a), array_argument("searchsorted", v)
    if a.aval.ndim != 1:
        error(ValueError, "numpy.searchsorted", "a must be a vector.", got=str(a.aval))
    if sorter is not None:
        a = shaping.slicing_take(a, sorter, 0)
    a, v = promotion.promote_dtypes("searchsorted", a, v)
    if a.aval.size <= _FEW or method == "compare_all":
        return _count_before(a, v, side)
    return _halving_search(a, v, side)


def _comes_before(x: Array, y: Array, side: str) -> Any:
    """Whether `x` stays before `y` where that is inserted; all floats have an order."""
    if is_kind(x, np.floating):
        primitive = binary.lt_to_p if side == "left" else binary.le_to_p
        return primitive.bind(_with_one_zero_and_nan(x), _with_one_zero_and_nan(y))
    return logic.less(x, y) if side == "left" else logic.less_equal(x, y)


def _with_one_zero_and_nan(x: Array) -> Any:
    kind = x.dtype.type
    x = selection.where(x == kind(0), kind(0), x)
    return selection.where(logic.isnan(x), kind(np.nan), x)


def _count_before(a: Array, v: Array, side: str) -> Any:
    dims = (*v.aval.shape, a.aval.size)
    rank = len(dims) - 1
    before = _comes_before(
        shape.broadcast_in_dim(a, dims, (rank,)), shape.broadcast_in_dim(v, dims, range(rank)), side
    )
    return before.sum(-1, dtype=_dtype_of_places(a))


def _dtype_of_places(a: Array) -> np.dtype[Any]:
    """A dtype that numbers all places of a vector: int32 unless it is huge."""
    return np.dtype(np.int32 if a.aval.size < 2**31 else np.int64)


def _halving_search(a: Array, v: Array, side: str) -> Any:
    """The number of elements that come before, bit by bit from the highest."""
    size = a.aval.size
    dtype = _dtype_of_places(a)
    bits = np.array([1 << bit for bit in reversed(range(size.bit_length()))], dtype)

    def step(found: Array, bit: Array) -> Any:
        wanted = found + bit
        last = a.at[wanted - 1].get(mode="clip")
        reached = (wanted <= size) & _comes_before(last, v, side)
        return selection.where(reached, wanted, found), None

    return lax.scan(step, creation.full(v.aval.shape, 0, dtype), bits)[0]


def digitize(
    x: ArrayLike, bins: ArrayOrLists, right: bool = False, *, method: str | None = None
) -> Array:
    """Returns the indices of the bins to which the elements belong.

    Args:
        x: the elements.
        bins: the edges of the bins, ascending or descending.
        right: whether an element equal to an edge belongs to the bin before it.
        method: how to search, see `searchsorted`.

    Shapes:     x: T[s], bins: T[n] -> int[s].

    Raises:
        ValueError: `bins` is not a vector.

    Example:
        >>> jnp.digitize(jnp.array([-1.0, 0.0, 5.0, 20.0]), jnp.array([0.0, 10.0]))
        Array([0, 1, 1, 2], dtype=int32)
    """
    x, bins = array_argument("digitize", x), array_argument("digitize", bins)
    if bins.aval.ndim != 1:
        error(ValueError, "numpy.digitize", "bins must be a vector.", got=str(bins.aval))
    return _digitized(x, bins, "left" if right else "right", method or "scan")


@one_program(static=("side", "method"))
def _digitized(x: Array, bins: Array, side: str, method: str) -> Any:
    count = bins.aval.size
    if not count:
        return creation.full(x.aval.shape, 0, np.dtype(np.int32))
    ascends = bins[-1] >= bins[0]
    found = searchsorted(selection.where(ascends, bins, bins[::-1]), x, side, method=method)
    return selection.where(ascends, found, count - found)
