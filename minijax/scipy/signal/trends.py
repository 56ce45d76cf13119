"""Trends of series, and series without them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.errors import error
from minijax.lax.arguments import canonicalize_axis
from minijax.numpy.creation import asarray
from minijax.numpy.joining import concatenate
from minijax.numpy.one_program import one_program
from minijax.numpy.shaping import moveaxis
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array


def _breaks(bp: Any, length: int) -> tuple[int, ...]:
    """Where pieces start and the last one ends."""
    given = np.unique(np.append(np.asarray(bp), [0, length])).astype(int)
    if given[0] < 0 or given[-1] > length:
        error(
            ValueError,
            "scipy.signal.detrend",
            "breaks are places in the series.",
            got=f"bp: {bp!r}",
            expected=f"numbers from 0 to {length}",
        )
    return tuple(given.tolist())


def _without_line(x: Any) -> Any:
    """What is left of values along the last axis without the line of least squares."""
    x = x - x.mean(-1, keepdims=True)
    size = x.shape[-1]
    if size < 2:
        return x
    place = np.arange(size) - (size - 1) / 2
    place = asarray((place / np.sqrt(np.sum(place**2))).astype(x.dtype))
    return x - (x * place).sum(-1, keepdims=True) * place


@one_program(static=("axis", "type", "breaks"))
def _detrended(data: Any, axis: int, type: str, breaks: tuple[int, ...]) -> Any:
    data = data.astype(dtypes.to_inexact_dtype(data.dtype))
    if type == "constant":
        return data - data.mean(axis, keepdims=True)
    x = moveaxis(data, axis, -1)
    pieces = [_without_line(x[..., a:b]) for a, b in itertools.pairwise(breaks)]
    return moveaxis(concatenate(pieces, -1) if len(pieces) > 1 else pieces[0], -1, axis)


def detrend(
    data: ArrayLike,
    axis: int = -1,
    type: str = "linear",
    bp: int | Sequence[int] | Any = 0,
    overwrite_data: None = None,
) -> Array:
    """A series without its trend: without the line of least squares, or without its mean.

    Args:
        data: the values.
        axis: the axis.
        type: "linear", or "constant" for the mean.
        bp: where a new line begins, once or several times; must be known.
        overwrite_data: must be None.

    Shapes:     data: T[s] -> T[s].
    Dtypes:     inexact; integers become floats.
    Derivative: linear.
    Source:     mirrors jax.scipy.signal.detrend (0.10).

    Raises:
        ValueError: the type is not known, a break lies outside of the series, or the axis is out
            of range.
        NotImplementedError: `overwrite_data` is given.

    Example:
        >>> minijax.scipy.signal.detrend(np.float32([1, 2, 3]), type="constant")
        Array([-1.,  0.,  1.], dtype=float32)
    """
    name = "scipy.signal.detrend"
    if overwrite_data is not None:
        error(
            NotImplementedError,
            name,
            "arrays are never overwritten.",
            fix="leave overwrite_data= away",
        )
    if type not in ("linear", "constant"):
        error(
            ValueError,
            name,
            "unknown trend.",
            got=f"type: {type!r}",
            expected='"linear" or "constant"',
        )
    data = asarray(data)
    dim = canonicalize_axis(axis, data.ndim, name)
    breaks = _breaks(bp, data.shape[dim]) if type == "linear" and data.size else (0, 0)
    return data if data.size == 0 else _detrended(data, dim, type, breaks)
