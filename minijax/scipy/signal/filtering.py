"""Convolutions and correlations, by sums of products or by way of spectra, and trends of series."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import Shape
from minijax.core.errors import error
from minijax.lax.convolution import conv_general_dilated
from minijax.lax.dots import PrecisionLike
from minijax.lax.families import canonicalize_axis
from minijax.lax.slicing import slice as lax_slice
from minijax.numpy.creation import asarray
from minijax.numpy.elementary import conjugate
from minijax.numpy.fft.transforms import fftn, ifftn, irfftn, rfftn
from minijax.numpy.joining import concatenate
from minijax.numpy.promotion import check_choice, check_that, one_program, promote_dtypes
from minijax.numpy.shaping import array_argument, flip, moveaxis
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array

_MODES = ("full", "same", "valid")


def _operands(name: str, in1: ArrayLike, in2: ArrayLike, mode: str) -> tuple[Array, Array]:
    label = f"scipy.signal.{name}"
    check_choice(label, "mode", mode, _MODES)
    x, y = (array_argument(label, v) for v in promote_dtypes(label, in1, in2))
    dtype = dtypes.to_inexact_dtype(x.dtype)
    if x.ndim != y.ndim:
        error(ValueError, label, "both must have one rank.", got={"in1": x.aval, "in2": y.aval})
    return x.astype(dtype), y.astype(dtype)


def _check_sizes(name: str, x: Array, y: Array) -> None:
    """Refuses arrays neither of which slides along the other in every dimension."""
    pairs = list(zip(x.shape, y.shape, strict=True))
    problem = ""
    if any(m > n for m, n in pairs) and any(m < n for m, n in pairs):
        problem = "one of both must be at least as large as the other in every dimension."
    if 0 in x.shape or 0 in y.shape:
        problem = "neither may be empty."
    if problem:
        error(ValueError, f"scipy.signal.{name}", problem, got={"in1": x.aval, "in2": y.aval})


def _slid(
    x: Array, y: Array, padding: Sequence[tuple[int, int]], precision: PrecisionLike
) -> Array:
    """Sums of products of `y` with what it lies on as it slides along `x`, `y` not turned round."""
    if x.ndim == 0:
        return x * y
    found = conv_general_dilated(
        x[None, None], y[None, None], (1,) * x.ndim, padding, precision=precision
    )
    return found[0, 0]


def _convolved(
    x: Array, y: Array, mode: str, precision: PrecisionLike, *, late: bool = False
) -> Array:
    """The convolution with the turned `y`; "same" is the middle, or one later where `late`."""
    if mode == "same":
        # The result has the sizes of x, whichever of both is larger.
        starts = [n // 2 if late else (n - 1) // 2 for n in y.shape]
        padding = [(n - 1 - start, start) for n, start in zip(y.shape, starts, strict=True)]
        return _slid(x, y, padding, precision)
    swapped = any(m < n for m, n in zip(x.shape, y.shape, strict=True))
    if swapped:
        x, y = flip(y), flip(x)
    return _slid(x, y, [(n - 1, n - 1) if mode == "full" else (0, 0) for n in y.shape], precision)


def _by_method(
    name: str,
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str,
    method: str,
    precision: PrecisionLike,
    *,
    correlates: bool,
) -> Array:
    x, y = _operands(name, in1, in2, mode)
    check_choice(f"scipy.signal.{name}", "method", method, ("auto", "direct", "fft"))
    _check_sizes(name, x, y)
    if correlates:
        y = flip(conjugate(y))
    if method == "fft":
        return fftconvolve(x, y, mode)
    return _convolved(x, flip(y), mode, precision)


def _in_plane(
    name: str, in1: ArrayLike, in2: ArrayLike, mode: str, boundary: str, fillvalue: float
) -> tuple[Array, Array]:
    x, y = _operands(name, in1, in2, mode)
    if boundary != "fill" or fillvalue != 0:
        problem = "outside of arrays there are zeros."
        got = {"boundary": boundary, "fillvalue": fillvalue}
        fix = "numpy.pad the array first, and use mode='valid'"
        error(NotImplementedError, f"scipy.signal.{name}", problem, got=got, fix=fix)
    if x.ndim != 2:
        error(ValueError, f"scipy.signal.{name}", "both must be matrices.", got={"in1": x.aval})
    _check_sizes(name, x, y)
    return x, y


@one_program(static=("mode", "method", "precision"))
def convolve(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    method: str = "auto",
    precision: PrecisionLike = None,
) -> Array:
    """Convolves two N-dimensional arrays: sums of `in1[n - k] in2[k]` over k.

    Args:
        in1: an array.
        in2: an array of the same rank.
        mode: "full" for all sums; "same" for those in the middle, as many as `in1` has elements;
            "valid" for those without elements from outside.
        method: "direct" or "auto" by sums of products, "fft" by way of spectra.
        precision: that of the products.

    Shapes:     in1: T[s], in2: U[t] -> V[s + t - 1] for "full", V[s] for "same", V[|s - t| + 1]
                for "valid".
    Dtypes:     inexact; integers become floats.
    Derivative: linear in each.
    Lowers to:  stablehlo.convolution, or stablehlo.fft.

    Raises:
        ValueError: the ranks differ, sizes do not fit, an array is empty, or the mode or method
            is not known.
        TypeError: an argument is not an array.

    Example:
        >>> minijax.scipy.signal.convolve(np.float32([1, 2, 3]), np.float32([1, 10]))
        Array([ 1., 12., 23., 30.], dtype=float32)
    """
    return _by_method("convolve", in1, in2, mode, method, precision, correlates=False)


@one_program(static=("mode", "method", "precision"))
def correlate(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    method: str = "auto",
    precision: PrecisionLike = None,
) -> Array:
    """Cross-correlates two N-dimensional arrays: sums of `in1[n + k] conj(in2[k])` over k.

    Args:
        in1: an array.
        in2: an array of the same rank.
        mode: "full", "same" or "valid", as for `convolve`.
        method: "auto", "direct" or "fft", as for `convolve`.
        precision: that of the products.

    Shapes:     in1: T[s], in2: U[t] -> V[s + t - 1] for "full", V[s] for "same", V[|s - t| + 1]
                for "valid".
    Dtypes:     inexact; integers become floats.
    Derivative: linear in in1, and over the reals in in2.
    Lowers to:  stablehlo.convolution, or stablehlo.fft.

    Raises:
        ValueError: the ranks differ, sizes do not fit, an array is empty, or the mode or method
            is not known.
        TypeError: an argument is not an array.

    Example:
        >>> minijax.scipy.signal.correlate(np.float32([1, 2, 3]), np.float32([0, 1]), "same")
        Array([1., 2., 3.], dtype=float32)
    """
    return _by_method("correlate", in1, in2, mode, method, precision, correlates=True)


@one_program(static=("mode", "boundary", "fillvalue", "precision"))
def convolve2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: PrecisionLike = None,
) -> Array:
    """Convolves two 2-dimensional arrays.

    Args:
        in1: a matrix.
        in2: a matrix.
        mode: "full", "same" or "valid", as for `convolve`.
        boundary: must be "fill".
        fillvalue: must be 0.
        precision: that of the products.

    Shapes:     in1: T[s], in2: U[t] -> V[s + t - 1] for "full", V[s] for "same", V[|s - t| + 1]
                for "valid".
    Dtypes:     inexact; integers become floats.
    Derivative: linear in each.
    Lowers to:  stablehlo.convolution.

    Raises:
        ValueError: an argument is empty or not a matrix, sizes do not fit, or the mode is unknown.
        NotImplementedError: another boundary or fill value.

    Example:
        >>> x = np.float32([[1, 2], [3, 4]])
        >>> minijax.scipy.signal.convolve2d(x, np.float32([[0, 1]]), mode="same")
        Array([[0., 1.],
               [0., 3.]], dtype=float32)
    """
    x, y = _in_plane("convolve2d", in1, in2, mode, boundary, fillvalue)
    return _convolved(x, flip(y), mode, precision)


@one_program(static=("mode", "boundary", "fillvalue", "precision"))
def correlate2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: PrecisionLike = None,
) -> Array:
    """Cross-correlates two 2-dimensional arrays.

    Args:
        in1: a matrix.
        in2: a matrix.
        mode: "full", "same" or "valid", as for `convolve`; "same" begins one later where `in2`
            has an even size, as in SciPy.
        boundary: must be "fill".
        fillvalue: must be 0.
        precision: that of the products.

    Shapes:     in1: T[s], in2: U[t] -> V[s + t - 1] for "full", V[s] for "same", V[|s - t| + 1]
                for "valid".
    Dtypes:     inexact; integers become floats.
    Derivative: linear in in1, and over the reals in in2.
    Lowers to:  stablehlo.convolution.

    Raises:
        ValueError: an argument is empty or not a matrix, sizes do not fit, or the mode is unknown.
        NotImplementedError: another boundary or fill value.

    Example:
        >>> x = np.float32([[1, 2], [3, 4]])
        >>> minijax.scipy.signal.correlate2d(x, np.float32([[0, 1]]), mode="valid")
        Array([[2.],
               [4.]], dtype=float32)
    """
    x, y = _in_plane("correlate2d", in1, in2, mode, boundary, fillvalue)
    return _convolved(x, conjugate(y), mode, precision, late=True)


def _fast_length(n: int) -> int:
    """The least length from n on that has no prime factors but 2, 3 and 5."""
    while True:
        rest = n
        for prime in (2, 3, 5):
            while rest % prime == 0:
                rest //= prime
        if rest == 1:
            return n
        n += 1


def _middle(x: Array, sizes: Shape) -> Array:
    starts = [(n - size) // 2 for n, size in zip(x.shape, sizes, strict=True)]
    limits = [start + size for start, size in zip(starts, sizes, strict=True)]
    return lax_slice(x, starts, limits)


@one_program(static=("mode", "axes"))
def fftconvolve(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: Sequence[int] | None = None
) -> Array:
    """Convolves two N-dimensional arrays using the fast Fourier transform.

    Args:
        in1: an array.
        in2: an array of the same rank, and of the same sizes except along `axes`.
        mode: "full", "same" or "valid", as for `convolve`.
        axes: the axes to convolve along; None for all.

    Shapes:     in1: T[s], in2: U[t] -> V[s + t - 1] along the axes for "full", V[s] for "same",
                V[|s - t| + 1] for "valid".
    Dtypes:     inexact, not float16 and bfloat16; integers become floats.
    Derivative: linear in each.
    Lowers to:  stablehlo.fft.

    Raises:
        ValueError: the ranks or other sizes differ, sizes do not fit for "valid", an axis is out
            of range, the mode is not known, or floats are short.
        TypeError: an argument is not an array.

    Example:
        >>> minijax.scipy.signal.fftconvolve(np.float32([1, 2]), np.float32([2, 0]), "same")
        Array([2., 4.], dtype=float32)
    """
    x, y = _operands("fftconvolve", in1, in2, mode)
    label = "scipy.signal.fftconvolve"
    given = range(x.ndim) if axes is None else axes
    if not isinstance(given, Sequence):
        given = (given,)
    dims = sorted({canonicalize_axis(axis, x.ndim, label) for axis in given})
    others = [d for d in range(x.ndim) if d not in dims]
    fits = not any(x.shape[d] != y.shape[d] for d in others)
    problem = "sizes must be equal where nothing is convolved."
    check_that(fits, label, problem, in1=x, in2=y, axes=tuple(dims))
    if mode == "valid":
        _check_sizes("fftconvolve", x, y)
    full = tuple(
        m + n - 1 if d in dims else m for d, (m, n) in enumerate(zip(x.shape, y.shape, strict=True))
    )
    product = _multiplied(x, y, dims, [_fast_length(full[d]) for d in dims])
    product = lax_slice(product, [0] * x.ndim, full)
    if mode == "full":
        return product
    if mode == "same":
        return _middle(product, x.shape)
    sizes = tuple(
        abs(m - n) + 1 if d in dims else m
        for d, (m, n) in enumerate(zip(x.shape, y.shape, strict=True))
    )
    return _middle(product, sizes)


def _multiplied(x: Array, y: Array, dims: Sequence[int], lengths: Sequence[int]) -> Array:
    """The cyclic convolution along some axes, of arrays filled up to lengths."""
    if not dims or math.prod(lengths) == 0:
        return x * y
    is_complex = dtypes.issubdtype(x.dtype, np.complexfloating)
    forth, back = (fftn, ifftn) if is_complex else (rfftn, irfftn)
    spectra = (forth(v, tuple(lengths), tuple(dims)) for v in (x, y))
    first, second = spectra
    return back(first * second, tuple(lengths), tuple(dims))


def _breaks(bp: int | Sequence[int] | ArrayLike, length: int) -> tuple[int, ...]:
    """Where pieces start and the last one ends."""
    given = np.unique(np.append(np.asarray(bp), [0, length])).astype(int)
    fits = given[0] >= 0 and given[-1] <= length
    problem = "breaks are places in the series."
    expected = f"numbers from 0 to {length}"
    check_that(fits, "scipy.signal.detrend", problem, got=f"bp: {bp!r}", expected=expected)
    return tuple(given.tolist())


def _without_line(x: Array) -> Array:
    """What is left of values along the last axis without the line of least squares."""
    x = x - x.mean(-1, keepdims=True)
    size = x.shape[-1]
    if size < 2:
        return x
    centered = np.arange(size) - (size - 1) / 2
    place = asarray((centered / np.sqrt(np.sum(centered**2))).astype(x.dtype))
    return x - (x * place).sum(-1, keepdims=True) * place


@one_program(static=("axis", "type", "breaks"))
def _detrended(data: Array, axis: int, type: str, breaks: tuple[int, ...]) -> Array:
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
    """Removes the trend along an axis: the line of least squares, or the mean.

    Args:
        data: the values.
        axis: the axis.
        type: "linear", or "constant" for the mean.
        bp: where a new line begins, once or several times; must be known.
        overwrite_data: must be None.

    Shapes:     data: T[s] -> T[s].
    Dtypes:     inexact; integers become floats.
    Derivative: linear.

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
        fix = "leave overwrite_data= away"
        error(NotImplementedError, name, "arrays are never overwritten.", fix=fix)
    check_choice(name, "type", type, ("linear", "constant"))
    data = asarray(data)
    dim = canonicalize_axis(axis, data.ndim, name)
    breaks = _breaks(bp, data.shape[dim]) if type == "linear" and data.size else (0, 0)
    return data if data.size == 0 else _detrended(data, dim, type, breaks)
