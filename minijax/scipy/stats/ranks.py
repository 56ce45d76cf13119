"""Ranks, modes, and standard errors along a dimension."""

from __future__ import annotations

import math
import operator
from typing import Any, NamedTuple

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.lax import cumulative
from minijax.lax.binary import add, ne
from minijax.lax.convert import convert_element_type
from minijax.lax.creation import broadcasted_iota
from minijax.numpy import (
    arithmetic,
    creation,
    logic,
    ordering,
    promotion,
    reductions,
    selection,
    shaping,
    statistics,
)
from minijax.numpy.one_program import one_program
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array


class ModeResult(NamedTuple):
    """The most frequent values, and how often they occur."""

    mode: Array
    count: Array  # type: ignore[assignment]


def _refuse_policy(name: str, policy: str, *known: str) -> None:
    if policy in known:
        return
    kind = NotImplementedError if policy in ("omit", "raise") else ValueError
    error(
        kind,
        f"scipy.stats.{name}",
        f"nan_policy {policy!r} is not supported.",
        expected=" or ".join(map(repr, known)),
        fix="look for NaNs before the call, outside of compiled functions",
    )


def _along(name: str, a: Any, axis: Any) -> tuple[Any, int]:
    """An array and the dimension to go along: None stands for that of the raveled array."""
    if axis is None:
        return shaping.ravel(a), 0
    axes = shaping.canonical_axes(f"scipy.stats.{name}", operator.index(axis), aval_of(a).ndim)
    return a, axes[0]


def _run_bounds(ordered: Any, axis: int) -> tuple[Any, Any, Any]:
    """Of sorted values: which begin a run of equal ones, and where their runs begin and end."""
    aval = aval_of(ordered)
    count = aval.shape[axis]
    places = broadcasted_iota(np.int32, aval.shape, axis)
    before = shaping.roll(ordered, 1, axis)
    begins = logic.logical_or(logic.equal(places, 0), ne(ordered, before))
    first = cumulative.cummax(selection.where(begins, places, 0), axis)
    ends = shaping.roll(begins, -1, axis)
    ends = logic.logical_or(ends, logic.equal(places, count - 1))
    last = cumulative.cummin(selection.where(ends, places, count), axis, reverse=True)
    return begins, first, last


@one_program(static=("method", "axis", "nan_policy"))
def rankdata(
    a: ArrayLike, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate"
) -> Array:
    """The ranks of elements, from 1 on; with NaNs among them, all are NaN.

    Shapes: a: T[s] -> F[s], or raveled where there is no axis.
    Dtypes: real; ranks are of the default float dtype.
    Source: mirrors jax.scipy.stats.rankdata (0.10).

    Args:
        a: what is ranked.
        method: the rank of equal elements: "average" of what they would have, "min", "max",
            "dense" without gaps, or "ordinal" by their order.
        axis: the dimension to rank along; all elements where None.
        nan_policy: "propagate" alone.

    Raises:
        NotImplementedError: another nan_policy is asked for.
        ValueError: the method is not known.

    Example:
        >>> minijax.scipy.stats.rankdata(jnp.array([30, 10, 20, 20]))
        Array([4. , 1. , 2.5, 2.5], dtype=float32)
    """
    a = promotion.check_array("scipy.stats.rankdata", a, "a")
    _refuse_policy("rankdata", nan_policy, "propagate")
    if method not in ("average", "min", "max", "dense", "ordinal"):
        error(
            ValueError,
            "scipy.stats.rankdata",
            "the method is not known.",
            got={"method": repr(method)},
            expected="'average', 'min', 'max', 'dense' or 'ordinal'",
        )
    a, axis = _along("rankdata", creation.asarray(a), axis)
    aval = aval_of(a)
    # Not that of the elements: short floats cannot count far.
    dtype = dtypes.default_float_dtype()
    if not math.prod(aval.shape):
        return creation.zeros(aval.shape, dtype)
    order = ordering.argsort(a, axis=axis)
    ordered = selection.take_along_axis(a, order, axis=axis)
    inverse = ordering.argsort(order, axis=axis)
    ranks = convert_element_type(_ranks(ordered, method, axis), dtype)
    found = selection.take_along_axis(ranks, inverse, axis=axis)
    if not dtypes.issubdtype(aval.dtype, np.inexact):
        return found
    unknown = reductions.any(logic.isnan(a), axis=axis, keepdims=True)
    return selection.where(unknown, np.nan, found)


def _ranks(ordered: Any, method: str, axis: int) -> Any:
    """The ranks of sorted elements."""
    begins, first, last = _run_bounds(ordered, axis)
    if method == "ordinal":
        return add(broadcasted_iota(np.int32, aval_of(ordered).shape, axis), 1)
    if method == "dense":
        return cumulative.cumsum(convert_element_type(begins, np.int32), axis)
    if method == "min":
        return add(first, 1)
    if method == "max":
        return add(last, 1)
    return arithmetic.add(arithmetic.multiply(add(first, last), 0.5), 1)


@one_program(static=("axis", "nan_policy", "keepdims"))
def mode(
    a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False
) -> ModeResult:
    """The most frequent values along a dimension, the smallest of them, and their counts.

    Shapes: a: T[s] -> (T[s without axis], I[s without axis]).
    Dtypes: any; counts are integers.  Nothing at all has the mode NaN.
    Source: mirrors jax.scipy.stats.mode (0.10).

    Args:
        a: values.
        axis: the dimension to go along; all elements where None.
        nan_policy: "propagate" alone.
        keepdims: whether the reduced dimension stays, of size 1.

    Raises:
        NotImplementedError: another nan_policy is asked for.

    Example:
        >>> minijax.scipy.stats.mode(jnp.array([3, 1, 2, 2])).count
        Array(2, dtype=int32)
    """
    a = promotion.check_array("scipy.stats.mode", a, "a")
    _refuse_policy("mode", nan_policy, "propagate")
    given = creation.asarray(a)
    rank = aval_of(given).ndim
    a, along = _along("mode", shaping.ravel(given) if not rank else given, axis)
    aval = aval_of(a)
    if not aval.shape[along]:
        rest = aval.shape[:along] + aval.shape[along + 1 :]
        dtype = dtypes.to_inexact_dtype(aval.dtype)
        value, count = creation.full(rest, np.nan, dtype), creation.zeros(rest, dtype)
    else:
        ordered = ordering.sort(a, axis=along)
        _, first, last = _run_bounds(ordered, along)
        counts = add(arithmetic.subtract(last, first), 1)
        place = reductions.argmax(counts, axis=along, keepdims=True)
        value = shaping.squeeze(selection.take_along_axis(ordered, place, along), along)
        count = reductions.max(counts, axis=along)
    if keepdims:
        axes = tuple(range(rank)) if axis is None else (along,)
        value, count = shaping.expand_dims(value, axes), shaping.expand_dims(count, axes)
    return ModeResult(value, count)


@one_program(static=("axis", "ddof", "nan_policy", "keepdims"))
def sem(
    a: ArrayLike,
    axis: int | None = 0,
    ddof: int = 1,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Array:
    """The standard error of the mean: the deviation divided by the root of the count.

    Shapes: a: T[s] -> T[s without axis].
    Dtypes: inexact; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.sem (0.10).

    Args:
        a: values.
        axis: the dimension to go along; all elements where None.
        ddof: what the count is less by in the deviation.
        nan_policy: "propagate", or "omit" to leave NaNs out.
        keepdims: whether the reduced dimension stays, of size 1.

    Raises:
        ValueError: another nan_policy is asked for.

    Example:
        >>> minijax.scipy.stats.sem(jnp.array([1.0, 3.0]))
        Array(0.99999994, dtype=float32)
    """
    a = promotion.inexact("scipy.stats.sem", a)
    if nan_policy == "omit":
        deviation = statistics.nanstd(a, axis, ddof=ddof, keepdims=keepdims)
        known = logic.logical_not(logic.isnan(a))
        count = reductions.sum(known, axis, keepdims=keepdims, dtype=aval_of(deviation).dtype)
        return arithmetic.divide(deviation, arithmetic.sqrt(count))
    if nan_policy != "propagate":
        error(
            ValueError,
            "scipy.stats.sem",
            "the nan_policy is not known.",
            got={"nan_policy": repr(nan_policy)},
            expected="'propagate' or 'omit'",
        )
    aval = aval_of(a)
    count = math.prod(aval.shape) if axis is None else aval.shape[axis]
    deviation = reductions.std(a, axis, ddof=ddof, keepdims=keepdims)
    return arithmetic.divide(deviation, math.sqrt(count))
