"""`pad`: arrays with a border.

Input: an array and the widths of its border.  Output: the larger array.  A border is one value,
or elements of the array by their position, or something computed from the array.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.lax import creation, padding, shape, slicing
from minijax.numpy import elementary, reductions, shaping, statistics, ufuncs
from minijax.numpy.promotion import check_choice, check_that, known, one_program
from minijax.numpy.ranges import linspace
from minijax.numpy.shaping import array_argument
from minijax.runtime.annotations import ArrayLike, ArrayOrLists
from minijax.runtime.array import Array

Widths = tuple[tuple[int, int], ...]

_OPTIONS: dict[str, dict[str, Any]] = {
    "constant": {"constant_values": 0},
    **{mode: {} for mode in ("empty", "edge", "wrap")},
    **{mode: {"reflect_type": "even"} for mode in ("reflect", "symmetric")},
    "linear_ramp": {"end_values": 0},
    **{mode: {"stat_length": None} for mode in ("maximum", "minimum", "mean", "median")},
}
_STATISTICS: dict[str, Callable[..., Any]] = {
    "maximum": reductions.max,
    "minimum": reductions.min,
    "mean": reductions.mean,
    "median": statistics.median,
}


def pad(
    array: ArrayLike,
    pad_width: ArrayOrLists | Mapping[int, int | tuple[int, int]],
    mode: str | Callable[..., Any] = "constant",
    **kwargs: Any,
) -> Array:
    """Pads an array.

    Args:
        array: what is padded.
        pad_width: (before, after) for each dimension, or one pair for all, or one number.
        mode: "constant" (with `constant_values`), "edge", "wrap", "empty", "linear_ramp" (with
            `end_values`), "reflect" and "symmetric" (with `reflect_type`), "maximum", "minimum",
            "mean" and "median" (with `stat_length`); or a function of a padded vector, its
            widths, the dimension, and further arguments, that returns the vector.
        kwargs: what the mode takes.

    Shapes:     array: T[s] -> T[s + before + after].

    Raises:
        TypeError: a width is not an integer.
        ValueError: a width is negative or does not fit, or the mode does not take an argument.
        NotImplementedError: the mode is not known.

    Example:
        >>> jnp.pad(jnp.array([1, 2, 3]), (1, 2))
        Array([0, 1, 2, 3, 0, 0], dtype=int32)
        >>> jnp.pad(jnp.array([1, 2, 3]), 2, mode="reflect")
        Array([3, 2, 1, 2, 3, 2, 1], dtype=int32)
    """
    array = array_argument("pad", array)
    widths = _widths(pad_width, array.aval.ndim)
    if not widths:
        return array
    if callable(mode):
        return _pad_by_function(array, widths, mode, kwargs)
    if mode not in _OPTIONS:
        problem = f"unknown mode {mode!r}."
        error(NotImplementedError, "numpy.pad", problem, expected=", ".join(_OPTIONS))
    options = _OPTIONS[mode] | kwargs
    if len(options) > len(_OPTIONS[mode]):
        problem = f"mode {mode!r} does not take all these arguments."
        expected = ", ".join(sorted(_OPTIONS[mode])) or "none"
        error(ValueError, "numpy.pad", problem, got=", ".join(sorted(kwargs)), expected=expected)
    if mode in ("constant", "empty"):
        return _pad_constant(array, _values(options.get("constant_values", 0)), widths)
    if mode == "linear_ramp":
        return _pad_ramp(array, _values(options["end_values"]), widths)
    if mode in _STATISTICS:
        given = options["stat_length"]
        lengths = None if given is None else _pairs("stat_length", given, len(widths))
        return _pad_statistic(array, widths, mode, lengths)
    return _pad_by_position(array, widths, mode, options.get("reflect_type", "even"))


def _widths(pad_width: Any, rank: int) -> Widths:
    widths = _pairs("pad_width", pad_width, rank)
    if any(n < 0 for pair in widths for n in pair):
        error(ValueError, "numpy.pad", "widths must not be negative.", got=repr(pad_width))
    return widths


def _pairs(argument: str, given: Any, rank: int) -> Widths:
    """An integer, a pair, or a pair for each dimension as the last."""
    try:
        host = known("pad", given, problem=f"{argument} must be known.")
        table = np.broadcast_to(host, (rank, 2))
    except ValueError:
        problem = f"{argument} does not fit the array."
        expected = f"a number, a pair, or {rank} pairs"
        error(ValueError, "numpy.pad", problem, got=repr(given), expected=expected, cause=None)
    if host.size and not np.issubdtype(host.dtype, np.integer):
        error(TypeError, "numpy.pad", f"{argument} must hold integers.", got=repr(given))
    return tuple((int(before), int(after)) for before, after in table)


def _values(given: Any) -> Any:
    return np.asarray(given) if isinstance(given, (tuple, list)) else given


@one_program(static=("widths",))
def _pad_constant(array: Array, values: Any, widths: Widths) -> Any:
    aval = aval_of(array)
    values = creation.convert_to_type(values, aval.dtype, aval.weak_type)
    if aval_of(values).ndim == 0:
        return padding.pad(array, values, [(before, after, 0) for before, after in widths])
    values = shaping.broadcast_to(values, (len(widths), 2))
    for dim, (before, after) in enumerate(widths):
        for side, wide in enumerate(((before, 0, 0), (0, after, 0))):
            config = [(0, 0, 0)] * len(widths)
            config[dim] = wide
            array = padding.pad(array, values[dim, side], config)
    return array


@one_program(static=("widths", "mode", "reflect_type"))
def _pad_by_position(array: Array, widths: Widths, mode: str, reflect_type: str) -> Any:
    """A border of the array's own elements, or of their reflections at the ends."""
    check_choice("pad", "reflect_type", reflect_type, ("even", "odd"))
    for dim, (before, after) in enumerate(widths):
        if not before and not after:
            continue
        size = aval_of(array).shape[dim]
        check_that(size != 0, "pad", f"cannot pad the empty dimension {dim} with mode {mode!r}.")
        places = np.arange(-before, size + after)
        if mode == "edge":
            array = shaping.slicing_take(array, _int32(np.clip(places, 0, size - 1)), dim)
        elif mode == "wrap":
            array = shaping.slicing_take(array, _int32(places % size), dim)
        else:
            array = _reflected(array, dim, places, mode, reflect_type)
    return array


def _reflected(array: Any, dim: int, places: Any, mode: str, reflect_type: str) -> Any:
    """Elements at places within the array and beyond, where it is reflected again and again."""
    size = aval_of(array).shape[dim]
    if mode == "reflect" and size == 1:
        return shaping.slicing_take(array, _int32(places * 0), dim)
    # There and back again: after a period the same elements come.
    period = 2 * size - 2 if mode == "reflect" else 2 * size
    periods, within = np.divmod(places, period)
    is_back = within >= size
    back = (period if mode == "reflect" else period - 1) - within
    out = shaping.slicing_take(array, _int32(np.where(is_back, back, within)), dim)
    if reflect_type == "even":
        return out
    # Oddly reflected at an end e, x becomes 2 e - x.
    dtype = aval_of(array).dtype
    first = slicing.slice_in_dim(array, 0, 1, axis=dim)
    last = slicing.slice_in_dim(array, size - 1, size, axis=dim)
    column = [-1 if d == dim else 1 for d in range(aval_of(array).ndim)]

    def along(values: Any) -> Any:
        return values.reshape(column).astype(dtype)

    rise = along(2 * periods) * (last - first)
    return out * along(np.where(is_back, -1, 1)) + along(2 * is_back) * last + rise


def _int32(positions: Any) -> Any:
    return positions.astype(np.int32)


@one_program(static=("widths",))
def _pad_ramp(array: Array, ends: ArrayLike, widths: Widths) -> Any:
    """A border that runs evenly from the edge to given values."""
    ends = shaping.broadcast_to(ends, (len(widths), 2))
    for dim, pair in enumerate(widths):
        aval = aval_of(array)
        borders = []
        for side, width in enumerate(pair):
            place = side * (aval.shape[dim] - 1)
            if width:
                edge = slicing.index_in_dim(array, place, dim, keepdims=False)
                ramp = linspace(
                    ends[dim, side], edge, width, endpoint=False, dtype=aval.dtype, axis=dim
                )
                borders.append((side, ramp))
        array = _with_borders(array, dim, borders)
    return array


@one_program(static=("widths", "mode", "lengths"))
def _pad_statistic(array: Array, widths: Widths, mode: str, lengths: Widths | None) -> Any:
    """A border of a statistic of the elements next to it."""
    for dim, pair in enumerate(widths):
        aval = aval_of(array)
        size = aval.shape[dim]
        borders = []
        for side, width in enumerate(pair):
            if not width:
                continue
            length = size if lengths is None else min(lengths[dim][side], size)
            start = side * (size - length)
            part = slicing.slice_in_dim(array, start, start + length, axis=dim)
            found = _STATISTICS[mode](part, axis=dim, keepdims=True)
            if not dtypes.issubdtype(aval.dtype, np.inexact):
                found = elementary.round(found)
            found = creation.convert_element_type(found, aval.dtype)
            dims = (*aval.shape[:dim], width, *aval.shape[dim + 1 :])
            borders.append((side, shaping.broadcast_array(found, dims)))
        array = _with_borders(array, dim, borders)
    return array


def _with_borders(array: Array, dim: int, borders: list[tuple[int, Any]]) -> Any:
    """Joins an array with what comes before (0) and after (1); ramps run outwards after it."""
    parts = [array]
    for side, border in borders:
        parts = [*parts, shape.rev(border, (dim,))] if side else [border, *parts]
    return shape.concatenate(parts, dim) if borders else array


def _pad_by_function(
    array: Array, widths: Widths, function: Callable[..., Any], kwargs: dict[str, Any]
) -> Any:
    array = _pad_constant(array, 0, widths)
    for dim, pair in enumerate(widths):
        array = ufuncs.apply_along_axis(function, dim, array, pair, dim, kwargs)
    return array
