"""Discrete cosine transforms of type 2 and their inverses.  Mirrors jax.scipy.fft.

Take n values first at even and then, backwards, at odd places; let V be their real Fourier
transform and w[k] = exp(-πik/2n).  The cosine transform is 2 Re w[k] V[k] for k ≤ n/2, and the
rest of it, backwards, is -2 Im w[k] V[k] from k = 1 on.

Source: J. Makhoul, A fast cosine transform in one and two dimensions, 1980.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import dtypes, source
from minijax.core.errors import error
from minijax.lax import unary
from minijax.lax.families import canonicalize_axes
from minijax.lax.padding import pad
from minijax.numpy.elementary import cos, imag, real, sin
from minijax.numpy.fft.transforms import irfft, rfft
from minijax.numpy.joining import concatenate, stack
from minijax.numpy.promotion import check_choice, check_that, one_program
from minijax.numpy.ranges import arange
from minijax.numpy.shaping import array_argument, flip, moveaxis
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array

__all__ = ["dct", "dctn", "idct", "idctn"]


def _forth(x: Array) -> Array:
    """The transform of real values along the last axis."""
    n = x.shape[-1]
    turned = rfft(concatenate([x[..., ::2], flip(x[..., 1::2], -1)], -1)) * _turn(n, x.dtype, -1)
    first, rest = 2 * real(turned), -2 * imag(turned[..., 1 : (n + 1) // 2])
    return concatenate([first, flip(rest, -1)], -1)


def _back(y: Array) -> Array:
    """The real values whose transform along the last axis is `y`."""
    n = y.shape[-1]
    first, rest = y[..., : n // 2 + 1], flip(y[..., n // 2 + 1 - (n % 2 == 0) :], -1)
    rest = pad(rest, y.dtype.type(0), [(0, 0, 0)] * (y.ndim - 1) + [(1, 0, 0)])
    turned = unary.complex(first / 2, -rest / 2)
    x = irfft(turned * _turn(n, y.dtype, 1), n)
    even, odd = x[..., : (n + 1) // 2], flip(x[..., (n + 1) // 2 :], -1)
    if n % 2:
        odd = pad(odd, y.dtype.type(0), [(0, 0, 0)] * (y.ndim - 1) + [(0, 1, 0)])
    return stack([even, odd], -1).reshape(*y.shape[:-1], n + n % 2)[..., :n]


def _turn(n: int, dtype: np.dtype[Any], sign: int) -> Array:
    """`exp(±πik/2n)` for k ≤ n/2."""
    angle = arange(n // 2 + 1, dtype=dtype) * dtype.type(math.pi / (2 * n))
    return unary.complex(cos(angle), sin(angle) if sign > 0 else -sin(angle))


def _orthogonal(n: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """The factors that make the transform of n values orthogonal."""
    scale = np.full(n, 1 / math.sqrt(2 * n))
    scale[0] = 1 / math.sqrt(4 * n)
    return scale.astype(dtype)


def _along(x: Array, axis: int, n: int, norm: str | None, transform: Callable[[Any], Any]) -> Array:
    """One transform along one axis, to a length."""
    edges = [(0, 0, 0)] * x.ndim
    edges[axis] = (0, n - x.shape[axis], 0)
    if n != x.shape[axis]:
        x = pad(x, x.dtype.type(0), edges)
    x = moveaxis(x, axis, -1)
    forth = transform is _forth
    if norm == "ortho" and not forth:
        x = x / _orthogonal(n, x.dtype)
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        x = unary.complex(transform(real(x)), transform(imag(x)))
    else:
        x = transform(x)
    if norm == "ortho" and forth:
        x = x * _orthogonal(n, x.dtype)
    return moveaxis(x, -1, axis)


def _check(name: str, kind: int, norm: str | None) -> None:
    if kind != 2:
        error(
            NotImplementedError, f"scipy.fft.{name}", "only type 2 is there.", got=f"type: {kind!r}"
        )
    check_choice(f"scipy.fft.{name}", "norm", norm, (None, "backward", "ortho"))


def _operand(name: str, x: ArrayLike) -> Array:
    x = array_argument(f"scipy.fft.{name}", x)
    dtype = dtypes.to_inexact_dtype(x.dtype)
    # Fourier transforms take no short floats.
    return x.astype(dtypes.float32 if dtype.itemsize == 2 else dtype)


def _length(name: str, n: int | None, natural: int) -> int:
    length = natural if n is None else operator.index(n)
    if length < 1:
        error(ValueError, f"scipy.fft.{name}", "lengths must be positive.", got=f"length: {length}")
    return length


def _many(
    name: str,
    x: ArrayLike,
    kind: int,
    s: int | Sequence[int] | None,
    axes: int | Sequence[int] | None,
    norm: str | None,
    transform: Callable[[Any], Any],
) -> Array:
    _check(name, kind, norm)
    x = _operand(name, x)
    lengths: Sequence[Any] | None = s if s is None or isinstance(s, (tuple, list)) else (s,)
    if axes is None:
        axes = range(0 if lengths is None else max(x.ndim - len(lengths), 0), x.ndim)
    named = (axes,) if isinstance(axes, int) else tuple(axes)
    dims = canonicalize_axes(named, x.ndim, f"scipy.fft.{name}")
    if lengths is None:
        lengths = [x.shape[d] for d in dims]
    problem = "there must be one length for each axis."
    check_that(len(lengths) == len(dims), f"scipy.fft.{name}", problem, s=tuple(lengths), axes=dims)
    for d, n in zip(dims, lengths, strict=True):
        x = _along(x, d, _length(name, n, x.shape[d]), norm, transform)
    return x


@one_program(static=("type", "n", "axis", "norm"))
def dct(
    x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Discrete cosine transform of type 2: `y[k] = 2 Σ x[j] cos(πk(2j + 1)/2n)`.

    Args:
        x: the values.
        type: 2; other types are not there.
        n: how many values are transformed; more are cut off, missing ones are 0.
        axis: the axis.
        norm: None or "backward" for the formula above; "ortho" makes the transform orthogonal.

    Shapes:     x: T[.., m, ..] -> U[.., n, ..].
    Dtypes:     inexact; integers and short floats become float32.
    Derivative: linear.
    Source:     mirrors jax.scipy.fft.dct (0.10); N. Ahmed, T. Natarajan, K. Rao, Discrete cosine
                transform, 1974.

    Raises:
        NotImplementedError: another type.
        ValueError: the axis is out of range, `n` is not positive, or `norm` is not known.

    Example:
        >>> minijax.scipy.fft.dct(np.float32([1, 1]))
        Array([4., 0.], dtype=float32)
    """
    return _many("dct", x, type, n, (axis,), norm, _forth)


@one_program(static=("type", "n", "axis", "norm"))
def idct(
    x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Inverse discrete cosine transform along one axis.

    Args:
        x: what `dct` gives.
        type: 2; other types are not there.
        n: how many frequencies are transformed; more are cut off, missing ones are 0.
        axis: the axis.
        norm: as it was for `dct`.

    Shapes:     x: T[.., m, ..] -> U[.., n, ..].
    Dtypes:     inexact; integers and short floats become float32.
    Derivative: linear.
    Source:     mirrors jax.scipy.fft.idct (0.10).

    Raises:
        NotImplementedError: another type.
        ValueError: the axis is out of range, `n` is not positive, or `norm` is not known.

    Example:
        >>> minijax.scipy.fft.idct(np.float32([8, 0, 0, 0]))
        Array([1., 1., 1., 1.], dtype=float32)
    """
    return _many("idct", x, type, n, (axis,), norm, _back)


@one_program(static=("type", "s", "axes", "norm"))
def dctn(
    x: ArrayLike,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """Discrete cosine transform of type 2 along several axes.

    Args:
        x: the values.
        type: 2; other types are not there.
        s: how many values are transformed along each axis.
        axes: the axes; None for the last ones, as many as `s` has lengths, or for all.
        norm: None, "backward" or "ortho", as for `dct`.

    Shapes:     x: T[..] -> U[..].
    Dtypes:     inexact; integers and short floats become float32.
    Derivative: linear.
    Source:     mirrors jax.scipy.fft.dctn (0.10).

    Raises:
        NotImplementedError: another type.
        ValueError: an axis is out of range or named twice, lengths do not fit the axes or are not
            positive, or `norm` is not known.

    Example:
        >>> minijax.scipy.fft.dctn(np.float32([[1, 1], [1, 1]]))
        Array([[16.,  0.],
               [ 0.,  0.]], dtype=float32)
    """
    return _many("dctn", x, type, s, axes, norm, _forth)


@one_program(static=("type", "s", "axes", "norm"))
def idctn(
    x: ArrayLike,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """Inverse discrete cosine transform along several axes.

    Args:
        x: what `dctn` gives.
        type: 2; other types are not there.
        s: how many frequencies are transformed along each axis.
        axes: the axes; None for the last ones, as many as `s` has lengths, or for all.
        norm: as it was for `dctn`.

    Shapes:     x: T[..] -> U[..].
    Dtypes:     inexact; integers and short floats become float32.
    Derivative: linear.
    Source:     mirrors jax.scipy.fft.idctn (0.10).

    Raises:
        NotImplementedError: another type.
        ValueError: an axis is out of range or named twice, lengths do not fit the axes or are not
            positive, or `norm` is not known.

    Example:
        >>> minijax.scipy.fft.idctn(np.float32([[16, 0], [0, 0]]))
        Array([[1., 1.],
               [1., 1.]], dtype=float32)
    """
    return _many("idctn", x, type, s, axes, norm, _back)


__dir__ = source.shown(globals())
