"""Functions of arrays as sets: unique elements, membership, unions, differences.

Input: arrays.  Output: sorted vectors without repetitions.  Their length depends on the elements;
where these are traced, `size` gives the length, and `fill_value` what fills it up.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, overload

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import ConcretizationTypeError, error
from minijax.core.trace import Tracer
from minijax.lax import creation, families, shape, sorting
from minijax.numpy import logic, ordering, promotion, reductions, selection, shaping
from minijax.numpy.joining import concatenate
from minijax.numpy.promotion import one_program
from minijax.numpy.ranges import arange
from minijax.numpy.selection import where
from minijax.numpy.shaping import array_argument
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array

_METHODS = ("auto", "compare_all", "binary_search", "sort")


class UniqueAllResult(NamedTuple):
    """What `unique_all` returns."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCountsResult(NamedTuple):
    """What `unique_counts` returns."""

    values: Array
    counts: Array


class UniqueInverseResult(NamedTuple):
    """What `unique_inverse` returns."""

    values: Array
    inverse_indices: Array


@overload
def unique(
    ar: ArrayLike,
    return_index: Literal[False] = ...,
    return_inverse: Literal[False] = ...,
    return_counts: Literal[False] = ...,
    axis: int | None = ...,
    *,
    equal_nan: bool = ...,
    size: int | None = ...,
    fill_value: ArrayLike | None = ...,
    sorted: bool = ...,
) -> Array: ...
@overload
def unique(
    ar: ArrayLike,
    return_index: Literal[True],
    return_inverse: bool = ...,
    return_counts: bool = ...,
    axis: int | None = ...,
    *,
    equal_nan: bool = ...,
    size: int | None = ...,
    fill_value: ArrayLike | None = ...,
    sorted: bool = ...,
) -> tuple[Array, ...]: ...
@overload
def unique(
    ar: ArrayLike,
    return_index: bool = ...,
    *,
    return_inverse: Literal[True],
    return_counts: bool = ...,
    axis: int | None = ...,
    equal_nan: bool = ...,
    size: int | None = ...,
    fill_value: ArrayLike | None = ...,
    sorted: bool = ...,
) -> tuple[Array, ...]: ...
@overload
def unique(
    ar: ArrayLike,
    return_index: bool = ...,
    return_inverse: bool = ...,
    *,
    return_counts: Literal[True],
    axis: int | None = ...,
    equal_nan: bool = ...,
    size: int | None = ...,
    fill_value: ArrayLike | None = ...,
    sorted: bool = ...,
) -> tuple[Array, ...]: ...
@overload
def unique(
    ar: ArrayLike,
    return_index: bool = ...,
    return_inverse: bool = ...,
    return_counts: bool = ...,
    axis: int | None = ...,
    *,
    equal_nan: bool = ...,
    size: int | None = ...,
    fill_value: ArrayLike | None = ...,
    sorted: bool = ...,
) -> Array | tuple[Array, ...]: ...


def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Array | tuple[Array, ...]:
    """Finds the sorted unique elements of an array, or its unique slices along `axis`.

    Args:
        ar: the array.
        return_index: whether to return the position of the first of each, too.
        return_inverse: whether to return the number of each element in the result, too.
        return_counts: whether to return how often each occurs, too.
        axis: the dimension; None for the elements.
        equal_nan: whether all NaN count as one.
        size: how many to return; needed where `ar` is traced.
        fill_value: what fills the result up; the least element.
        sorted: accepted for compatibility; results are sorted.

    Raises:
        ConcretizationTypeError: `ar` is traced and `size` is not given.
        ValueError: the array is empty, and no `fill_value` given to fill the result up.

    Example:
        >>> jnp.unique(jnp.array([3, 1, 3, 2]))
        Array([1, 2, 3], dtype=int32)
        >>> jnp.unique(jnp.array([3, 1, 3, 2]), size=4, fill_value=0)  # what `jit` needs
        Array([1, 2, 3, 0], dtype=int32)
    """
    ar = array_argument("unique", ar)
    dims = ar.aval.shape
    flat = axis is None
    rows = shaping.ravel(ar) if flat else ar
    axis = 0 if flat else families.canonicalize_axis(axis, len(dims), "numpy.unique")
    order, number = _ranked(rows, axis, equal_nan)
    if size is None:
        last = number.concrete() if isinstance(number, Tracer) else number
        if last is None:
            problem = "the array is traced, so the number of its unique elements is unknown."
            fix = "give size"
            error(ConcretizationTypeError, "numpy.unique", problem, got=str(ar.aval), fix=fix)
        size = int(last[-1]) + 1 if number.aval.size else 0
    elif fill_value is None and size and not number.aval.size:
        problem = "an empty array needs a fill_value to fill up the result."
        error(ValueError, "numpy.unique", problem)
    values, first, inverse, counts = _collected(rows, order, number, fill_value, axis, size)
    inverse = shaping.reshape_array(inverse, dims) if flat else inverse
    chosen = ((return_index, first), (return_inverse, inverse), (return_counts, counts))
    extras = [x for wanted, x in chosen if wanted]
    return (values, *extras) if extras else values


@one_program(static=("axis", "equal_nan"))
def _ranked(rows: Array, axis: int, equal_nan: bool) -> tuple[Any, Any]:
    """A stable order of the slices along `axis`, and, in it, the number of each unique one."""
    rows = shaping.moveaxis(rows, axis, 0)
    count = rows.aval.shape[0]
    dtype = dtypes.default_int_dtype()
    table = shape.reshape(rows, (count, rows.aval.size // max(count, 1)))
    places = creation.iota(dtype, count)
    keys = [table[:, i] for i in range(table.aval.shape[1])]
    *ordered, order = sorting.sort((*keys, places), dimension=0, num_keys=max(len(keys), 1))
    differs = np.zeros(max(count - 1, 0), bool)
    for key in ordered:
        a, b = key[1:], key[:-1]
        change = a != b
        if equal_nan and dtypes.issubdtype(key.dtype, np.inexact):
            change &= ~(logic.isnan(a) & logic.isnan(b))
        differs = differs | change
    is_first = concatenate([np.zeros(min(count, 1), bool), differs])
    return order, reductions.cumsum(is_first, dtype=dtype)


@one_program(static=("axis", "size"))
def _collected(
    rows: Array, order: Array, number: Array, fill_value: ArrayLike | None, axis: int, size: int
) -> tuple[Any, Any, Any, Any]:
    """Values, first positions, inverse and counts, all of `size` but the inverse."""
    rows = shaping.moveaxis(rows, axis, 0)
    count, dtype = aval_of(number).size, aval_of(number).dtype
    counts = creation.full((size,), 0, dtype).at[number].add(1, mode="drop")
    inverse = creation.full((count,), 0, dtype).at[order].set(number, unique_indices=True)
    first = creation.full((size,), count, dtype).at[number].min(order, mode="drop")
    # What is missing repeats the first entry, unless a value is given.
    is_missing = counts == 0
    first = where(is_missing, first[:1], first) if size and count else first
    if count:
        values = shaping.slicing_take(rows, first, 0)
    else:
        values = creation.full((size, *rows.aval.shape[1:]), 0, rows.dtype)
    if fill_value is not None:
        mask = is_missing[(slice(None), *(None,) * (values.ndim - 1))]
        fill = shaping.array_argument("unique", fill_value).astype(values.dtype)
        values = where(mask, fill, values)
    return shaping.moveaxis(values, 0, axis), first, inverse, counts


def unique_all(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueAllResult:
    """Finds unique elements, their first indices, the inverse indices, and the counts.

    Shapes:     x: T[s] -> T[k], int[k], int[s], int[k].

    Example:
        >>> jnp.unique_all(jnp.array([5, 1, 5])).inverse_indices
        Array([1, 0, 1], dtype=int32)
    """
    found = unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueAllResult(*found)


def unique_counts(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueCountsResult:
    """Finds the unique elements of an array, and how often each occurs.

    Shapes:     x: T[s] -> T[k], int[k].

    Example:
        >>> jnp.unique_counts(jnp.array([5, 1, 5])).counts
        Array([1, 2], dtype=int32)
    """
    found = unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueCountsResult(*found)


def unique_inverse(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueInverseResult:
    """Finds the unique elements of an array, and the indices that reconstruct it.

    Shapes:     x: T[s] -> T[k], int[s].

    Example:
        >>> values, inverse = jnp.unique_inverse(jnp.array([5, 1, 5]))
        >>> values[inverse]
        Array([5, 1, 5], dtype=int32)
    """
    found = unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueInverseResult(*found)


def unique_values(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """Finds the unique elements of an array.

    Shapes:     x: T[s] -> T[k].

    Example:
        >>> jnp.unique_values(jnp.array([[5, 1], [5, 5]]))
        Array([1, 5], dtype=int32)
    """
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


@one_program(static=("assume_unique", "invert", "method"))
def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Array:
    """Tests whether each element occurs in `test_elements`.

    Args:
        element: the elements.
        test_elements: the others.
        assume_unique: accepted for compatibility.
        invert: whether to tell which elements do not occur.
        method: "compare_all" compares all pairs; "auto", "binary_search" and "sort" sort.

    Shapes:     element: T[s], test_elements: T[t] -> bool[s].

    Raises:
        ValueError: the method is not known.

    Example:
        >>> jnp.isin(jnp.array([1, 2, 3]), jnp.array([3, 1, 9]))
        Array([ True, False,  True], dtype=bool)
    """
    promotion.check_choice("isin", "method", method, _METHODS)
    element, others = array_argument("isin", element), array_argument("isin", test_elements)
    element, others = promotion.promote_dtypes("isin", element, shaping.ravel(others))
    dims, count = element.aval.shape, others.aval.size
    if not count:
        found = creation.full(dims, False, dtypes.bool_)
    elif method == "compare_all" or element.aval.is_extended:
        found = (shape.expand_dims(element, (-1,)) == others).any(-1)
    else:
        ordered = ordering.sort(others)
        place = ordering.searchsorted(ordered, element)
        found = ordered.at[place].get(mode="clip") == element
    return ~found if invert else found


def _vectors(name: str, ar1: ArrayLike, ar2: ArrayLike) -> tuple[Any, Any]:
    """Two operands as vectors of one dtype."""
    a, b = shaping.ravel(array_argument(name, ar1)), shaping.ravel(array_argument(name, ar2))
    a, b = promotion.promote_dtypes(name, a, b)
    return a, b


def _without_others(
    kept: Array, values: Array, size: int | None, fill_value: ArrayLike | None
) -> Any:
    """The values that are kept, cut or filled up to a size."""
    if fill_value is None:
        fill_value = 0
    return selection.extract(kept, values, size=size, fill_value=fill_value)


def _without_others_or_least(
    kept: Array, values: Array, size: int | None, fill_value: ArrayLike | None
) -> Any:
    """As `_without_others` of sorted values, of which the least fills up unless another does."""
    found = _without_others(kept, values, size, fill_value)
    if not size or fill_value is not None:
        return found
    return where(arange(size) < reductions.sum(kept), found, found[0])


def union1d(
    ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """Finds the sorted union of two arrays.

    Raises:
        ConcretizationTypeError: an array is traced and `size` is not given.

    Example:
        >>> jnp.union1d(jnp.array([3, 1]), jnp.array([2, 3]))
        Array([1, 2, 3], dtype=int32)
    """
    a, b = _vectors("union1d", ar1, ar2)
    return unique(concatenate([a, b]), size=size, fill_value=fill_value)


def setdiff1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Finds the sorted set difference: the elements of `ar1` that are not in `ar2`.

    Dtypes:     that of `ar1`.

    Raises:
        ConcretizationTypeError: an array is traced and `size` is not given.

    Example:
        >>> jnp.setdiff1d(jnp.array([3, 1, 2]), jnp.array([2]))
        Array([1, 3], dtype=int32)
    """
    a, b = (shaping.ravel(array_argument("setdiff1d", x)) for x in (ar1, ar2))
    if size is None:
        a = a if assume_unique else unique(a)
        return _without_others(isin(a, b, invert=True), a, None, fill_value)
    order, kept = _firsts(a)
    a = a[order]
    return _without_others(kept & isin(a, b, invert=True), a, size, fill_value)


@one_program()
def _firsts(a: Array) -> tuple[Any, Any]:
    """An order of a vector, and, in it, which elements are the first of their kind."""
    order, number = _ranked(a, 0, equal_nan=True)
    changes = number[1:] != number[:-1]
    return order, concatenate([np.ones(min(a.aval.size, 1), bool), changes])


def setxor1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Finds the sorted symmetric difference of two arrays.

    Raises:
        ConcretizationTypeError: an array is traced and `size` is not given.

    Example:
        >>> jnp.setxor1d(jnp.array([1, 2]), jnp.array([2, 3]))
        Array([1, 3], dtype=int32)
    """
    a, b = map(promotion.strong, _vectors("setxor1d", ar1, ar2))
    both = concatenate([a, b])
    order, kept = _firsts(both)
    both = both[order]
    # A NaN is in neither array, as it equals nothing, and so it is kept.
    shared = isin(both, a) & isin(both, b)
    return _without_others_or_least(kept & ~shared, both, size, fill_value)


@overload
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = ...,
    return_indices: Literal[False] = ...,
    *,
    size: int | None = ...,
    fill_value: ArrayLike | None = ...,
) -> Array: ...
@overload
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = ...,
    *,
    return_indices: Literal[True],
    size: int | None = ...,
    fill_value: ArrayLike | None = ...,
) -> tuple[Array, Array, Array]: ...
@overload
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = ...,
    return_indices: bool = ...,
    *,
    size: int | None = ...,
    fill_value: ArrayLike | None = ...,
) -> Array | tuple[Array, Array, Array]: ...


def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array | tuple[Array, Array, Array]:
    """Finds the sorted intersection of two arrays.

    Args:
        ar1: an array.
        ar2: another one.
        assume_unique: accepted for compatibility.
        return_indices: whether to return the first positions in both arrays, too.
        size: how many to return; needed where an array is traced.
        fill_value: what fills the result up; the least element of it by default.

    Raises:
        ConcretizationTypeError: an array is traced and `size` is not given.

    Example:
        >>> jnp.intersect1d(jnp.array([1, 2, 3]), jnp.array([3, 2, 9]))
        Array([2, 3], dtype=int32)
    """
    a, b = map(promotion.strong, _vectors("intersect1d", ar1, ar2))
    order, kept = _firsts(a)
    ordered = a[order]
    kept &= isin(ordered, b)
    values = _without_others_or_least(kept, ordered, size, fill_value)
    if not return_indices:
        return values
    first = _without_others(kept, order, size, a.aval.size)
    places = ordering.argsort(b)
    second = selection.take(places, ordering.searchsorted(b[places], values), mode="clip")
    if size is not None:
        second = where(first < a.aval.size, second, b.aval.size)
    return values, first, second
