"""Order statistics and moments: averages, quantiles, and reductions without NaN.

The functions `nan…` ignore elements that are NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, overload

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.lax import binary, families, reduction, shape, unary
from minijax.lax.creation import convert_element_type, convert_to_type
from minijax.numpy import ordering, reductions, selection, shaping
from minijax.numpy.creation import on_device
from minijax.numpy.elementary import check_not_complex, is_kind
from minijax.numpy.logic import isnan, logical_and
from minijax.numpy.promotion import (
    broadcast_to,
    check_array,
    check_mask,
    check_out,
    check_that,
    inexact,
    one_program,
    pick,
    promote_inexact,
    strong,
)
from minijax.numpy.reductions import axes_of
from minijax.runtime.annotations import ArrayLike, Axis, DTypeLike, ShardingLike
from minijax.runtime.array import Array

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")
_QUANTILE = ("axis", "out", "overwrite_input", "method", "keepdims")


@overload
def average(
    a: ArrayLike,
    axis: Axis = ...,
    weights: ArrayLike | None = ...,
    returned: Literal[False] = ...,
    keepdims: bool = ...,
) -> Array: ...
@overload
def average(
    a: ArrayLike,
    axis: Axis = ...,
    weights: ArrayLike | None = ...,
    *,
    returned: Literal[True],
    keepdims: bool = ...,
) -> tuple[Array, Array]: ...
@overload
def average(
    a: ArrayLike,
    axis: Axis = ...,
    weights: ArrayLike | None = ...,
    returned: bool = ...,
    keepdims: bool = ...,
) -> Array | tuple[Array, Array]: ...


@one_program(static=("axis", "returned", "keepdims"))
def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Array | tuple[Array, Array]:
    """Computes the weighted average over the given axes.

    Args:
        a: the array.
        axis: an axis, several, or None for all.
        weights: one weight for each element, or for each place along the axis.
        returned: whether the sums of the weights are returned too.
        keepdims: whether reduced dimensions stay, with size 1.

    Shapes:     a: T[s] -> T[s without axis]; with `returned`, two of these.
    Dtypes:     inexact; integers and booleans become floats.

    Raises:
        ValueError: the shapes of `a` and the weights do not fit, or an axis is out of range.

    Example:
        >>> jnp.average(jnp.array([1.0, 3.0]), weights=jnp.array([3, 1]))
        Array(1.5, dtype=float32)
    """
    a = check_array("average", a)
    axes = axes_of("average", a, axis)
    if weights is None:
        a = strong(inexact("average", a))
        mean = reductions.mean(a, axes, keepdims=keepdims)
        count = math.prod(aval_of(a).shape[axis] for axis in axes)
        total: Any = np.asarray(count, aval_of(mean).dtype)[()]
    else:
        weights = _weights_like(a, check_array("average", weights, "weights"), axis, axes)
        a, weights = map(strong, promote_inexact("average", a, weights))
        total = reductions.sum(weights, axes, keepdims=keepdims)
        mean = binary.div(reductions.sum(binary.mul(a, weights), axes, keepdims=keepdims), total)
    return (mean, broadcast_to(total, aval_of(mean).shape)) if returned else mean


def _weights_like(a: Any, weights: Any, axis: Any, axes: tuple[int, ...]) -> Any:
    """The weights in the shape of `a`."""
    dims, given = aval_of(a).shape, aval_of(weights).shape
    if given == dims:
        return weights
    if axis is not None:
        named = axis if isinstance(axis, (tuple, list)) else (axis,)
        order = families.canonicalize_axes(named, len(dims), "numpy.average")
    if axis is None or given != tuple(dims[axis] for axis in order):
        got = {"a": aval_of(a), "weights": aval_of(weights), "axis": axis}
        expected = "weights of the shape of a, or of its dimensions along `axis`"
        error(ValueError, "numpy.average", "the weights do not fit.", got=got, expected=expected)
    weights = shape.transpose(weights, [order.index(axis) for axis in axes])
    return shape.broadcast_in_dim(weights, dims, axes)


@one_program(static=_QUANTILE)
def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """Computes the q-th quantile of the elements over the given axes.

    Args:
        a: the array.
        q: one fraction from 0 to 1, or a vector of them.
        axis: an axis, several, or None for all.
        out: must be None.
        overwrite_input: must be False.
        method: what to take between two elements: "linear", "lower", "higher", "midpoint" or
            "nearest"; or "inverted_cdf", the first element that reaches the fraction.
        keepdims: whether reduced dimensions stay, with size 1.
        weights: what each element counts; for "inverted_cdf" only.

    Shapes:     a: T[s], q: T[k] or T[] -> T[k, *s without axis], or T[s without axis].
    Dtypes:     real; integers and booleans become floats.  NaN makes NaN.

    Raises:
        ValueError: `a` is complex, q has several dimensions, or the method is not known.
        NotImplementedError: `out` is given.

    Example:
        >>> jnp.quantile(jnp.array([0.0, 1.0, 2.0, 4.0]), jnp.array([0.5, 1.0]))
        Array([1.5, 4. ], dtype=float32)
        >>> jnp.quantile(jnp.array([0.0, 1.0, 2.0, 4.0]), 0.5, method="lower")
        Array(1., dtype=float32)
    """
    check_out("quantile", out)
    return _quantile("quantile", a, q, axis, method, keepdims, weights, skip_nan=False)


@one_program(static=_QUANTILE)
def nanquantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """Computes the q-th quantile over the given axes, ignoring NaN.

    Shapes:     a: T[s], q: T[k] or T[] -> T[k, *s without axis], or T[s without axis].
    Dtypes:     real; integers and booleans become floats.

    Raises:
        ValueError: `a` is complex, q has several dimensions, or the method is not known.
        NotImplementedError: `out` is given.

    Example:
        >>> jnp.nanquantile(jnp.array([0.0, jnp.nan, 2.0]), 0.5)
        Array(1., dtype=float32)
    """
    check_out("nanquantile", out)
    return _quantile("nanquantile", a, q, axis, method, keepdims, weights, skip_nan=True)


@one_program(static=(*_QUANTILE, "out_sharding"))
def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Computes the q-th percentile of the elements over the given axes.

    Shapes:     a: T[s], q: T[k] or T[] -> T[k, *s without axis], or T[s without axis].
    Dtypes:     real; integers and booleans become floats.

    Raises:
        ValueError: `a` is complex, q has several dimensions, or the method is not known.
        NotImplementedError: `out` is given.

    Example:
        >>> jnp.percentile(jnp.array([0.0, 1.0, 2.0, 3.0]), 50)
        Array(1.5, dtype=float32)
    """
    fraction = binary.div(inexact("percentile", q), 100.0)
    found = quantile(a, fraction, axis, out, overwrite_input, method, keepdims, weights=weights)
    return on_device(found, None, out_sharding, name="percentile")


@one_program(static=_QUANTILE)
def nanpercentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """Computes the q-th percentile over the given axes, ignoring NaN.

    Shapes:     a: T[s], q: T[k] or T[] -> T[k, *s without axis], or T[s without axis].
    Dtypes:     real; integers and booleans become floats.

    Raises:
        ValueError: `a` is complex, q has several dimensions, or the method is not known.
        NotImplementedError: `out` is given.

    Example:
        >>> jnp.nanpercentile(jnp.array([0.0, jnp.nan, 2.0]), 50)
        Array(1., dtype=float32)
    """
    fraction = binary.div(inexact("nanpercentile", q), 100.0)
    return nanquantile(a, fraction, axis, out, overwrite_input, method, keepdims, weights=weights)


@one_program(static=("axis", "out", "overwrite_input", "keepdims"))
def median(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """Computes the median over the given axes.

    Shapes:     a: T[s] -> T[s without axis].
    Dtypes:     real; integers and booleans become floats.

    Raises:
        ValueError: `a` is complex, or an axis is out of range.
        NotImplementedError: `out` is given.

    Example:
        >>> jnp.median(jnp.array([[1, 9, 2], [4, 6, 5]]), axis=1)
        Array([2., 5.], dtype=float32)
    """
    return quantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


@one_program(static=("axis", "out", "overwrite_input", "keepdims"))
def nanmedian(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """Computes the median over the given axes, ignoring NaN.

    Shapes:     a: T[s] -> T[s without axis].
    Dtypes:     real; integers and booleans become floats.

    Raises:
        ValueError: `a` is complex, or an axis is out of range.
        NotImplementedError: `out` is given.

    Example:
        >>> jnp.nanmedian(jnp.array([1.0, jnp.nan, 2.0]))
        Array(1.5, dtype=float32)
    """
    return nanquantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


def _quantile(
    name: str,
    a: Any,
    q: Any,
    axis: Axis,
    method: str,
    keepdims: bool,
    weights: Any,
    *,
    skip_nan: bool,
) -> Any:
    a, q = _quantile_operands(name, a, q)
    _check_quantile(name, a, q, method, weights)
    axes = axes_of(name, a, axis)
    if weights is not None:
        weights = _weights_like(a, check_array(name, weights, "weights"), axis, axes)
        weights = _flattened(convert_to_type(weights, aval_of(q).dtype, weak_type=False), axes)
    rows = _flattened(a, axes)
    fractions = q if aval_of(q).ndim else shape.reshape(q, (1,))
    found = _quantile_of_rows(rows, fractions, method, weights, skip_nan)
    found = shaping.moveaxis(found, -1, 0)
    if keepdims:
        found = shape.expand_dims(found, [d + 1 for d in axes])
    return found if aval_of(q).ndim else shape.squeeze(found, (0,))


def _quantile_operands(name: str, a: ArrayLike, q: ArrayLike) -> tuple[Any, Any]:
    """The array, and the fractions in the dtype of positions: short floats cannot count far."""
    a, q = check_array(name, a, "a"), check_array(name, q, "q")
    dtype = dtypes.to_inexact_dtype(aval_of(a).dtype)
    # Not by the user's promotion, which may be strict.
    wide = np.promote_types(dtype, np.float32)
    if is_kind(q, np.floating) and not aval_of(q).weak_type:
        wide = np.promote_types(wide, aval_of(q).dtype)
    return convert_to_type(a, dtype, weak_type=False), convert_to_type(q, wide, weak_type=False)


def _check_quantile(name: str, a: Array, q: Array, method: str, weights: ArrayLike | None) -> None:
    check_not_complex(name, a, ValueError)
    check_that(aval_of(q).ndim <= 1, name, "q must be a number or a vector.", q=q)
    if method not in _METHODS or (weights is not None and method != "inverted_cdf"):
        problem = "the method is not known, or does not take weights."
        expected = f"one of {', '.join(_METHODS)}; the last one with weights"
        error(ValueError, f"numpy.{name}", problem, got={"method": repr(method)}, expected=expected)


def _flattened(x: Array, axes: tuple[int, ...]) -> Any:
    """`x` with `axes` joined into a last dimension."""
    dims = aval_of(x).shape
    outer = [d for d in range(len(dims)) if d not in axes]
    x = shape.transpose(x, (*outer, *axes))
    return shape.reshape(x, (*(dims[d] for d in outer), math.prod(dims[d] for d in axes)))


def _quantile_of_rows(
    rows: Array, fractions: Array, method: str, weights: ArrayLike | None, skip_nan: bool
) -> Any:
    """For each row, the quantiles at all fractions, in a new last dimension."""
    outer, n = aval_of(rows).shape[:-1], aval_of(rows).shape[-1]
    dims = (*outer, aval_of(fractions).size)
    fractions = shape.broadcast_in_dim(fractions, dims, (len(outer),))
    dtype = aval_of(fractions).dtype
    missing = isnan(rows)
    counts = reductions.sum(unary.bitwise_not(missing), -1, keepdims=True)
    if method == "inverted_cdf":
        ordered, places = _inverted_cdf(rows, fractions, weights)
        found = selection.take_along_axis(ordered, places, -1)
    else:
        ordered = ordering.sort(rows, -1)
        last = binary.sub(convert_element_type(counts, dtype), 1.0) if skip_nan else float(n - 1)
        # Fractions below 0 and above 1 are those of the first and the last element.
        position = binary.min(binary.max(binary.mul(fractions, last), 0.0), last)
        found = convert_element_type(_between(ordered, position, method), aval_of(rows).dtype)
    invalid = binary.eq(counts, 0) if skip_nan or not n else binary.ne(counts, n)
    return pick(shape.broadcast_in_dim(invalid, dims, range(len(dims))), np.nan, found)


def _between(ordered: Array, position: Array, method: str) -> Any:
    """The elements at positions of sorted rows that may lie between two places."""

    def at(place: Array) -> Any:
        place = binary.max(convert_element_type(place, dtypes.int32), 0)
        element = selection.take_along_axis(ordered, place, -1)
        return convert_element_type(element, aval_of(position).dtype)

    low, high = unary.floor(position), unary.ceil(position)
    if method == "nearest":
        # Halfway between two elements, the lower one is taken.
        return at(unary.ceil(binary.sub(position, 0.5)))
    if method in {"lower", "higher"}:
        return at(low if method == "lower" else high)
    below, above = at(low), at(high)
    if method == "midpoint":
        return binary.mul(binary.add(below, above), 0.5)
    share = binary.sub(position, low)
    return binary.add(binary.mul(below, binary.sub(1.0, share)), binary.mul(above, share))


def _inverted_cdf(rows: Array, fractions: Array, weights: ArrayLike | None) -> tuple[Any, Any]:
    """Sorted rows, and the first places at which the weights reach the fractions of their sum."""
    if weights is None:
        weights = broadcast_to(np.ones((), aval_of(fractions).dtype)[()], aval_of(rows).shape)
    weights = pick(isnan(rows), 0.0, weights)
    order = ordering.argsort(rows, -1)
    ordered = selection.take_along_axis(rows, order, -1)
    reached = reductions.cumsum(selection.take_along_axis(weights, order, -1), -1)
    rank = aval_of(rows).ndim
    total = reductions.max(reached, -1, keepdims=True)
    wanted = shape.expand_dims(binary.mul(fractions, total), (rank,))
    short = binary.lt(shape.expand_dims(reached, (rank - 1,)), wanted)
    places = reductions.sum(short, -1)
    return ordered, binary.min(places, aval_of(rows).shape[-1] - 1)


def _without_nan(a: Array, identity: Callable[[np.dtype[Any]], Any]) -> Any:
    """`a` with a value in place of NaN."""
    return pick(isnan(a), identity(aval_of(a).dtype), a) if is_kind(a, np.inexact) else a


@one_program(static=("axis", "dtype", "out", "keepdims"))
def nansum(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Sums the elements over the given axes, treating NaN as zero.

    Shapes:     a: T[s] -> T[s without axis].

    Example:
        >>> jnp.nansum(jnp.array([1.0, jnp.nan, 2.0]))
        Array(3., dtype=float32)
    """
    a = _without_nan(check_array("nansum", a, "a"), lambda _: 0)
    return reductions.sum(a, axis, dtype, out, keepdims, initial, where)


@one_program(static=("axis", "dtype", "out", "keepdims"))
def nanprod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Multiplies the elements over the given axes, treating NaN as one.

    Shapes:     a: T[s] -> T[s without axis].

    Example:
        >>> jnp.nanprod(jnp.array([3.0, jnp.nan, 2.0]))
        Array(6., dtype=float32)
    """
    a = _without_nan(check_array("nanprod", a, "a"), lambda _: 1)
    return reductions.prod(a, axis, dtype, out, keepdims, initial, where)


def _unless_all_missing(found: Array, a: Array, axis: Any, keepdims: bool, otherwise: Any) -> Any:
    """What was found among the elements of `a` that are numbers, where there are some."""
    if not is_kind(a, np.inexact):
        return found
    return pick(reductions.all(isnan(a), axis, keepdims=keepdims), otherwise, found)


@one_program(static=("axis", "out", "keepdims"))
def nanmax(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Returns the maximum over the given axes, ignoring NaN; NaN if all elements are NaN.

    Shapes:     a: T[s] -> T[s without axis].

    Example:
        >>> jnp.nanmax(jnp.array([1.0, jnp.nan, 2.0]))
        Array(2., dtype=float32)
    """
    a = check_array("nanmax", a, "a")
    present = _without_nan(a, reduction.lowest)
    found = reductions.max(present, axis, out, keepdims, initial, where)
    return found if initial is not None else _unless_all_missing(found, a, axis, keepdims, np.nan)


@one_program(static=("axis", "out", "keepdims"))
def nanmin(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Returns the minimum over the given axes, ignoring NaN; NaN if all elements are NaN.

    Shapes:     a: T[s] -> T[s without axis].

    Example:
        >>> jnp.nanmin(jnp.array([[1.0, jnp.nan], [jnp.nan, jnp.nan]]), axis=1)
        Array([ 1., nan], dtype=float32)
    """
    a = check_array("nanmin", a, "a")
    present = _without_nan(a, reduction.highest)
    found = reductions.min(present, axis, out, keepdims, initial, where)
    return found if initial is not None else _unless_all_missing(found, a, axis, keepdims, np.nan)


def _present(a: Array, where: ArrayLike | None) -> Any:
    """Which elements count: those that are numbers and that `where` selects."""
    present = unary.bitwise_not(isnan(a))
    if where is None:
        return present
    return logical_and(present, check_mask("where", where))


@one_program(static=("axis", "dtype", "out", "keepdims"))
def nanmean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:
    """Computes the mean over the given axes, ignoring NaN; NaN if all elements are NaN.

    Shapes:     a: T[s] -> T[s without axis].

    Example:
        >>> jnp.nanmean(jnp.array([1.0, jnp.nan, 2.0]))
        Array(1.5, dtype=float32)
    """
    a = check_array("nanmean", a, "a")
    if not is_kind(a, np.inexact):
        return reductions.mean(a, axis, dtype, out, keepdims, where=where)
    return reductions.mean(a, axis, dtype, out, keepdims, where=_present(a, where))


@one_program(static=("axis", "dtype", "out", "ddof", "keepdims"))
def nanvar(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """Computes the variance over the given axes, ignoring NaN.

    Shapes:     a: T[s] -> float[s without axis].

    Example:
        >>> jnp.nanvar(jnp.array([1.0, jnp.nan, 3.0]))
        Array(1., dtype=float32)
    """
    a = check_array("nanvar", a, "a")
    if is_kind(a, np.inexact):
        where = _present(a, where)
    return reductions.var(a, axis, dtype, out, ddof, keepdims, where=where, mean=mean)


@one_program(static=("axis", "dtype", "out", "ddof", "keepdims"))
def nanstd(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """Computes the standard deviation over the given axes, ignoring NaN.

    Shapes:     a: T[s] -> float[s without axis].

    Example:
        >>> jnp.nanstd(jnp.array([1.0, jnp.nan, 5.0]))
        Array(2., dtype=float32)
    """
    return unary.sqrt(nanvar(a, axis, dtype, out, ddof, keepdims, where, mean))


@one_program(static=("axis", "dtype", "out"))
def nancumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Computes the cumulative sum along `axis`, treating NaN as zero.

    Shapes:     a: T[s] -> T[s]; without an axis, T[n] of the flat array.

    Example:
        >>> jnp.nancumsum(jnp.array([1.0, jnp.nan, 2.0]))
        Array([1., 1., 3.], dtype=float32)
    """
    return reductions.cumsum(
        _without_nan(check_array("nancumsum", a, "a"), lambda _: 0), axis, dtype, out
    )


@one_program(static=("axis", "dtype", "out"))
def nancumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Computes the cumulative product along `axis`, treating NaN as one.

    Shapes:     a: T[s] -> T[s]; without an axis, T[n] of the flat array.

    Example:
        >>> jnp.nancumprod(jnp.array([3.0, jnp.nan, 2.0]))
        Array([3., 3., 6.], dtype=float32)
    """
    return reductions.cumprod(
        _without_nan(check_array("nancumprod", a, "a"), lambda _: 1), axis, dtype, out
    )


@one_program(static=("axis", "out", "keepdims"))
def nanargmax(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Returns the index of the maximum along `axis`, ignoring NaN; -1 if all are NaN.

    Shapes:     a: T[s] -> int[s without axis]; without an axis, an index of the flat array.

    Example:
        >>> jnp.nanargmax(jnp.array([1.0, jnp.nan, 2.0]))
        Array(2, dtype=int32)
    """
    a = check_array("nanargmax", a, "a")
    found = reductions.argmax(_without_nan(a, lambda _: -np.inf), axis, out, keepdims)
    return _unless_all_missing(found, a, axis, bool(keepdims), -1)


@one_program(static=("axis", "out", "keepdims"))
def nanargmin(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Returns the index of the minimum along `axis`, ignoring NaN; -1 if all are NaN.

    Shapes:     a: T[s] -> int[s without axis]; without an axis, an index of the flat array.

    Example:
        >>> jnp.nanargmin(jnp.array([jnp.nan, jnp.nan]))
        Array(-1, dtype=int32)
    """
    a = check_array("nanargmin", a, "a")
    found = reductions.argmin(_without_nan(a, lambda _: np.inf), axis, out, keepdims)
    return _unless_all_missing(found, a, axis, bool(keepdims), -1)
