"""The frequencies that Fourier transforms tell about, and their order."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.errors import error
from minijax.lax.arguments import canonicalize_axis
from minijax.numpy.creation import asarray, dtype_argument, on_device
from minijax.numpy.ranges import arange
from minijax.numpy.selection import where
from minijax.numpy.shaping import array_argument, roll
from minijax.runtime.annotations import ArrayLike, Axis, DTypeLike, Placement
from minijax.runtime.array import Array


def fftfreq(
    n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: Placement = None
) -> Array:
    """The frequencies of the results of `fft`, in cycles per unit: `k / (n d)`.

    Those that are not negative come first, in ascending order, then the negative ones.

    Args:
        n: the number of samples.
        d: the distance of two samples.
        dtype: the dtype of the result.
        device: where the result is placed.

    Shapes:     -> T[n].
    Dtypes:     float32, or float64 with x64, by default.
    Source:     mirrors jax.numpy.fft.fftfreq (0.10).

    Raises:
        ValueError: `n` or `d` is not a single number.

    Example:
        >>> minijax.numpy.fft.fftfreq(4)
        Array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)
    """
    size = _size("fftfreq", n)
    k = arange(size)
    return _frequencies("fftfreq", where(k < (size + 1) // 2, k, k - size), size, d, dtype, device)


def rfftfreq(
    n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: Placement = None
) -> Array:
    """The frequencies of the results of `rfft`, in cycles per unit: `k / (n d)` up to half of 1/d.

    Args:
        n: the number of samples.
        d: the distance of two samples.
        dtype: the dtype of the result.
        device: where the result is placed.

    Shapes:     -> T[n//2 + 1].
    Dtypes:     float32, or float64 with x64, by default.
    Source:     mirrors jax.numpy.fft.rfftfreq (0.10).

    Raises:
        ValueError: `n` or `d` is not a single number.

    Example:
        >>> minijax.numpy.fft.rfftfreq(4, d=0.5)
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    size = _size("rfftfreq", n)
    return _frequencies("rfftfreq", arange(size // 2 + 1), size, d, dtype, device)


def _size(name: str, n: Any) -> int:
    if np.ndim(n):
        error(
            ValueError,
            f"numpy.fft.{name}",
            "the number of samples is one integer.",
            got=f"n: {n!r}",
        )
    whole = isinstance(n, (float, np.floating)) and float(n).is_integer()
    return int(n) if whole else operator.index(n)


def _frequencies(name: str, k: Any, size: int, d: Any, dtype: Any, device: Any) -> Any:
    if np.ndim(d):
        error(
            ValueError,
            f"numpy.fft.{name}",
            "the distance of samples is one number.",
            got=f"d: {d!r}",
        )
    dtype = dtype_argument(f"fft.{name}", dtype, dtypes.default_float_dtype())
    found = k.astype(dtype) / asarray(d * size, dtype)
    return on_device(found.astype(dtype), device, name=f"fft.{name}")


def _shifted(name: str, x: Any, axes: Any, shift: Callable[[int], int]) -> Any:
    x = array_argument(f"numpy.fft.{name}", x)
    if axes is None:
        axes = range(x.ndim)
    elif not isinstance(axes, (tuple, list)):
        axes = (axes,)
    dims = tuple(canonicalize_axis(axis, x.ndim, f"numpy.fft.{name}") for axis in axes)
    return roll(x, tuple(shift(x.shape[d]) for d in dims), dims) if dims else x


def fftshift(x: ArrayLike, axes: Axis = None) -> Array:
    """Puts frequency 0 into the middle: from the order of `fft` to an ascending one.

    Args:
        x: frequencies, or values in their order.
        axes: the axes along which to shift; None for all.

    Shapes:     x: T[s] -> T[s].
    Source:     mirrors jax.numpy.fft.fftshift (0.10).

    Raises:
        ValueError: an axis is out of range.
        TypeError: `x` is no array.

    Example:
        >>> minijax.numpy.fft.fftshift(np.int32([0, 1, 2, -2, -1]))
        Array([-2, -1,  0,  1,  2], dtype=int32)
    """
    return _shifted("fftshift", x, axes, lambda n: n // 2)


def ifftshift(x: ArrayLike, axes: Axis = None) -> Array:
    """Undoes `fftshift`: puts frequency 0 first.

    Args:
        x: frequencies in ascending order, or values in that order.
        axes: the axes along which to shift; None for all.

    Shapes:     x: T[s] -> T[s].
    Source:     mirrors jax.numpy.fft.ifftshift (0.10).

    Raises:
        ValueError: an axis is out of range.
        TypeError: `x` is no array.

    Example:
        >>> minijax.numpy.fft.ifftshift(np.int32([-2, -1, 0, 1, 2]))
        Array([ 0,  1,  2, -2, -1], dtype=int32)
    """
    return _shifted("ifftshift", x, axes, lambda n: -(n // 2))
