"""Sums and products of the elements up to each one, along an axis.

Without an axis, `cumsum` and `cumprod` take the array as if it were flat.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.lax import arguments, binary, cumulative
from minijax.lax.convert import convert_to_type
from minijax.lax.shape import concatenate, reshape
from minijax.numpy.one_program import one_program
from minijax.numpy.promotion import broadcast_to, check_array, check_out
from minijax.numpy.reductions import widened_integer
from minijax.runtime.annotations import ArrayLike, DTypeLike
from minijax.runtime.array import Array

_Operation = Callable[[Any, int], Array]


def _cumulated(
    name: str, a: ArrayLike, axis: int | None, dtype: DTypeLike | None, operation: _Operation
) -> Array:
    a = check_array(name, a, "a")
    if axis is None or not aval_of(a).ndim:
        a, axis = reshape(a, (aval_of(a).size,)), axis or 0
    axis = arguments.canonicalize_axis(axis, aval_of(a).ndim, f"numpy.{name}")
    result = aval_of(a).dtype
    if dtype is not None:
        result = dtypes.canonicalize_user_dtype(dtype, f"numpy.{name}")
    elif result == dtypes.bool_:
        result = dtypes.default_int_dtype()
    if result == dtypes.bool_:
        summed = operation(convert_to_type(a, dtypes.int32, weak_type=False), axis)
        return binary.ne(summed, 0)
    return operation(convert_to_type(a, result, weak_type=False), axis)


@one_program(static=("axis", "dtype", "out"))
def cumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Computes the cumulative sum of the elements along `axis`.

    Shapes:     a: T[s] -> T[s]; without an axis, T[n] of the flat array.
    Dtypes:     all; booleans are counted.
    Source:     mirrors jax.numpy.cumsum.

    Raises:
        ValueError: the axis is out of range.
        NotImplementedError: `out` is given.

    Example:
        >>> jnp.cumsum(jnp.array([[1, 2], [3, 4]]), axis=0)
        Array([[1, 2],
               [4, 6]], dtype=int32)
    """
    check_out("cumsum", out)
    return _cumulated("cumsum", a, axis, dtype, cumulative.cumsum)


@one_program(static=("axis", "dtype", "out"))
def cumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Computes the cumulative product of the elements along `axis`.

    Shapes:     a: T[s] -> T[s]; without an axis, T[n] of the flat array.
    Dtypes:     all; booleans become integers.
    Source:     mirrors jax.numpy.cumprod.

    Raises:
        ValueError: the axis is out of range.
        NotImplementedError: `out` is given.

    Example:
        >>> jnp.cumprod(jnp.array([1, 2, 3, 4]))
        Array([ 1,  2,  6, 24], dtype=int32)
    """
    check_out("cumprod", out)
    return _cumulated("cumprod", a, axis, dtype, cumulative.cumprod)


def _check_has_axis(name: str, x: ArrayLike, axis: int | None) -> None:
    """Refuses scalars, and arrays of which it is unclear what to go along."""
    aval = aval_of(check_array(name, x))
    if aval.ndim == 0 or (axis is None and aval.ndim > 1):
        error(
            ValueError,
            f"numpy.{name}",
            "the array has no dimension, or several and none is named.",
            got={"x": aval},
            fix="axis=... (it may be omitted for arrays of one dimension)",
        )


def _after(first: int, totals: Array, axis: int | None) -> Array:
    """The totals, and before them that of no elements."""
    axis = arguments.canonicalize_axis(axis or 0, totals.ndim, "numpy.cumulative_sum")
    shape = tuple(1 if d == axis else n for d, n in enumerate(aval_of(totals).shape))
    start = broadcast_to(np.asarray(first, aval_of(totals).dtype)[()], shape)
    return concatenate([start, totals], axis)


@one_program(static=("axis", "dtype", "include_initial"))
def cumulative_sum(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """Computes the cumulative sum along `axis`, starting with 0 if wanted.

    Shapes:     x: T[.., n, ..] -> T[.., n, ..], or [.., n + 1, ..] with `include_initial`.
    Dtypes:     all; narrow integers are widened, booleans counted.
    Source:     mirrors jax.numpy.cumulative_sum.

    Raises:
        ValueError: there are several dimensions and no axis, or none at all.

    Example:
        >>> jnp.cumulative_sum(jnp.array([1, 2, 3]), include_initial=True)
        Array([0, 1, 3, 6], dtype=int32)
    """
    _check_has_axis("cumulative_sum", x, axis)
    dtype = widened_integer(aval_of(x).dtype) if dtype is None else dtype
    totals = _cumulated("cumulative_sum", x, axis, dtype, cumulative.cumsum)
    return _after(0, totals, axis) if include_initial else totals


@one_program(static=("axis", "dtype", "include_initial"))
def cumulative_prod(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """Computes the cumulative product along `axis`, starting with 1 if wanted.

    Shapes:     x: T[.., n, ..] -> T[.., n, ..], or [.., n + 1, ..] with `include_initial`.
    Dtypes:     all; booleans become integers.
    Source:     mirrors jax.numpy.cumulative_prod.

    Raises:
        ValueError: there are several dimensions and no axis, or none at all.

    Example:
        >>> jnp.cumulative_prod(jnp.array([1, 2, 3]), include_initial=True)
        Array([1, 1, 2, 6], dtype=int32)
    """
    _check_has_axis("cumulative_prod", x, axis)
    totals = _cumulated("cumulative_prod", x, axis, dtype, cumulative.cumprod)
    return _after(1, totals, axis) if include_initial else totals
