"""The fast Fourier transform along any axes, to any lengths, in any scale, and its frequencies.

`lax.fft` transforms the last dimensions as they are; here axes are moved there, cut or filled up
with zeros to the lengths asked for, and results are scaled.  `fftfreq` and `rfftfreq` give the
frequencies of the results, `fftshift` and `ifftshift` change their order.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import Shape
from minijax.core.errors import error
from minijax.lax import fourier
from minijax.lax.binary import mul
from minijax.lax.families import canonicalize_axes, canonicalize_axis, int_tuple
from minijax.lax.fourier import FftType
from minijax.lax.padding import pad
from minijax.numpy.creation import asarray, dtype_argument, on_device
from minijax.numpy.elementary import conjugate
from minijax.numpy.promotion import check_that, one_program
from minijax.numpy.ranges import arange
from minijax.numpy.selection import where
from minijax.numpy.shaping import array_argument, moveaxis, roll
from minijax.runtime.annotations import ArrayLike, Axis, DTypeLike, Placement
from minijax.runtime.array import Array

Sizes: TypeAlias = Sequence[int] | None
"""Lengths of dimensions, or dimensions; None where the array decides."""

# How many dimensions one operation transforms.
_AT_ONCE = 3

_INVERSE = (FftType.IFFT, FftType.IRFFT)

# For each scale of the transform forth, that of the transform back with the same meaning.
_MIRRORED = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def _scale(name: str, kind: FftType, norm: str | None, count: int) -> float:
    """By what to multiply what `lax.fft` gives, which has 1/n in the inverse."""
    if norm not in _MIRRORED:
        expected = '"backward", "ortho" or "forward"'
        problem = "unknown scale."
        error(ValueError, f"numpy.fft.{name}", problem, got=f"norm: {norm!r}", expected=expected)
    if norm in (None, "backward"):
        return 1.0
    root = math.sqrt(count) if norm == "ortho" else float(count)
    return root if kind in _INVERSE else 1 / root


def _axes_and_lengths(
    name: str, kind: FftType, x: Array, s: Sizes, axes: Sizes
) -> tuple[Shape, Shape]:
    """The axes to transform, and how long the values along them are."""
    label = f"numpy.fft.{name}"
    lengths = None if s is None else int_tuple(s, label, "s")
    if axes is None:
        axes = range(x.ndim) if lengths is None else range(-len(lengths), 0)
    dims = canonicalize_axes(int_tuple(axes, label, "axes"), x.ndim, label)
    if lengths is None:
        found = [x.shape[d] for d in dims]
        if kind == FftType.IRFFT and dims:
            found[-1] = max(0, 2 * (found[-1] - 1))
        return dims, tuple(found)
    problem = "there must be one length for each axis."
    check_that(len(lengths) == len(dims), label, problem, s=lengths, axes=tuple(axes))
    if any(n < 1 for n in lengths):
        error(ValueError, label, "lengths must be positive.", got={"s": lengths})
    return dims, lengths


def _with_sizes(x: Array, dims: Shape, sizes: Shape) -> Array:
    """`x` cut at the end, or filled up with zeros there, to the sizes of some dimensions."""
    edges = [(0, 0, 0)] * x.ndim
    for d, size in zip(dims, sizes, strict=True):
        edges[d] = (0, size - x.shape[d], 0)
    if not any(high for _, high, _ in edges):
        return x
    return pad(x, x.dtype.type(0), edges)


def _along(x: Array, kind: FftType, dims: Shape, lengths: Shape) -> Array:
    """The transform along a few dimensions, wherever they are."""
    last = range(x.ndim - len(dims), x.ndim)
    x = moveaxis(x, tuple(dims), tuple(last))
    return moveaxis(fourier.fft(x, kind, lengths), tuple(last), tuple(dims))


def _in_groups(x: Array, kind: FftType, dims: Shape, lengths: Shape) -> Array:
    """The transform along all dimensions: the real one last where it goes back, else first."""
    complex_kind = FftType.IFFT if kind in _INVERSE else FftType.FFT
    cuts = range(len(dims) - _AT_ONCE, 0, -_AT_ONCE)
    groups = [(complex_kind, slice(max(cut - _AT_ONCE, 0), cut)) for cut in cuts]
    whole = (kind, slice(max(len(dims) - _AT_ONCE, 0), None))
    for each, part in [*groups, whole] if kind in _INVERSE else [whole, *groups]:
        x = _along(x, each, dims[part], lengths[part])
    return x


def _transformed(
    name: str, kind: FftType, a: ArrayLike, s: Sizes, axes: Sizes, norm: str | None
) -> Array:
    x = array_argument(f"numpy.fft.{name}", a)
    dims, lengths = _axes_and_lengths(name, kind, x, s, axes)
    # Axes without values are refused by the transform itself.
    scale = _scale(name, kind, norm, max(math.prod(lengths), 1))
    if not dims:
        return fourier.fft(x, kind, ())
    sizes = lengths
    if kind == FftType.IRFFT:
        sizes = (*lengths[:-1], lengths[-1] // 2 + 1)
    found = _in_groups(_with_sizes(x, dims, sizes), kind, dims, lengths)
    return found if scale == 1 else mul(found, found.dtype.type(scale))


def _one(
    name: str, kind: FftType, a: ArrayLike, n: int | None, axis: int | None, norm: str | None
) -> Array:
    if isinstance(axis, (tuple, list)):
        problem = "transforms along one axis."
        fix = f"numpy.fft.{name}n" if not name.endswith("hfft") else "one axis at a time"
        error(ValueError, f"numpy.fft.{name}", problem, got=f"axis: {axis!r}", fix=fix)
    return _transformed(
        name, kind, a, None if n is None else (n,), None if axis is None else (axis,), norm
    )


def _check_one_axis(name: str, axis: int | None) -> None:
    if axis is None:
        error(TypeError, f"numpy.fft.{name}", "needs an axis.", got="axis: None")


def _two(
    name: str, kind: FftType, a: ArrayLike, s: Sizes, axes: Sequence[int], norm: str | None
) -> Array:
    axes = int_tuple(axes, f"numpy.fft.{name}", "axes")
    if len(axes) != 2:
        problem = "transforms along two axes."
        fix = f"numpy.fft.{name[:-1]}n"
        error(ValueError, f"numpy.fft.{name}", problem, got=f"axes: {axes!r}", fix=fix)
    return _transformed(name, kind, a, s, axes, norm)


@one_program(static=("n", "axis", "norm"))
def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Computes the discrete Fourier transform along one axis: `y[k] = Σ a[j] exp(-2πi jk/n)`.

    Args:
        a: the values.
        n: how many values are transformed; more are cut off, missing ones are 0.
        axis: the axis.
        norm: the scale: "backward", the default, divides by the number of values on the way back,
            "forward" on the way forth, "ortho" by its root on both.

    Shapes:     a: T[.., m, ..] -> complex[.., n, ..].
    Dtypes:     to complex.
    Derivative: is its own transpose.

    Raises:
        ValueError: the axis is out of range, `n` is not positive, or `norm` is not known.
        TypeError: `a` is not an array, or `n` is not an integer.

    Example:
        >>> minijax.numpy.fft.fft(np.float32([1, 2, 3, 4]))
        Array([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j], dtype=complex64)
    """
    return _one("fft", FftType.FFT, a, n, axis, norm)


@one_program(static=("n", "axis", "norm"))
def ifft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Computes the inverse of `fft`: `a[j] = 1/n Σ y[k] exp(2πi jk/n)`.

    Args:
        a: the frequencies.
        n: how many frequencies are transformed; more are cut off, missing ones are 0.
        axis: the axis.
        norm: the scale: "backward", the default, divides by the number of values on the way back,
            "forward" on the way forth, "ortho" by its root on both.

    Shapes:     a: T[.., m, ..] -> complex[.., n, ..].
    Dtypes:     to complex.
    Derivative: is its own transpose.

    Raises:
        ValueError: the axis is out of range, `n` is not positive, or `norm` is not known.
        TypeError: `a` is not an array, or `n` is not an integer.

    Example:
        >>> minijax.numpy.fft.ifft(np.complex64([4, 0, 0, 0]))
        Array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    return _one("ifft", FftType.IFFT, a, n, axis, norm)


@one_program(static=("n", "axis", "norm"))
def rfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Computes the discrete Fourier transform of real input: the frequencies from 0 to n//2.

    The others are conjugates of these.

    Args:
        a: the values.
        n: how many values are transformed; more are cut off, missing ones are 0.
        axis: the axis.
        norm: the scale: "backward", the default, divides by the number of values on the way back,
            "forward" on the way forth, "ortho" by its root on both.

    Shapes:     a: T[.., m, ..] -> complex[.., n//2 + 1, ..].
    Dtypes:     real to complex; not float16 and bfloat16.
    Derivative: transposes to `irfft` of what stands for both halves.

    Raises:
        ValueError: the axis is out of range, `n` is not positive, `norm` is not known, or `a` is
            complex.
        TypeError: `a` is not an array, or `n` is not an integer.

    Example:
        >>> minijax.numpy.fft.rfft(np.float32([1, 2, 3, 4]))
        Array([10.+0.j, -2.+2.j, -2.+0.j], dtype=complex64)
    """
    return _one("rfft", FftType.RFFT, a, n, axis, norm)


@one_program(static=("n", "axis", "norm"))
def irfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Computes the inverse of `rfft`: real output from the frequencies up to n//2.

    Args:
        a: the frequencies.
        n: how many values there are; 2 (m - 1) by default.
        axis: the axis.
        norm: the scale: "backward", the default, divides by the number of values on the way back,
            "forward" on the way forth, "ortho" by its root on both.

    Shapes:     a: T[.., m, ..] -> float[.., n, ..].
    Dtypes:     to float.
    Derivative: transposes to `rfft`, where frequencies that stand for two count twice.

    Raises:
        ValueError: the axis is out of range, `n` is not positive, or `norm` is not known.
        TypeError: `a` is not an array, or `n` is not an integer.

    Example:
        >>> minijax.numpy.fft.irfft(np.complex64([4, 0, 0]))
        Array([1., 1., 1., 1.], dtype=float32)
    """
    return _one("irfft", FftType.IRFFT, a, n, axis, norm)


@one_program(static=("n", "axis", "norm"))
def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Computes the discrete Fourier transform of a signal with Hermitian symmetry; it is real.

    Args:
        a: the first half of the values, m of them.
        n: how many real results there are; 2 (m - 1) by default.
        axis: the axis.
        norm: the scale: "backward", the default, divides by the number of values on the way back,
            "forward" on the way forth, "ortho" by its root on both.

    Shapes:     a: T[.., m, ..] -> float[.., n, ..].
    Dtypes:     to float.
    Derivative: linear over the reals.

    Raises:
        ValueError: the axis is out of range, `n` is not positive, or `norm` is not known.
        TypeError: `a` is not an array, or `n` is not an integer.

    Example:
        >>> minijax.numpy.fft.hfft(np.complex64([1, 0, 0]))
        Array([1., 1., 1., 1.], dtype=float32)
    """
    _check_one_axis("hfft", axis)
    return _one("hfft", FftType.IRFFT, conjugate(a), n, axis, _MIRRORED.get(norm, norm))


@one_program(static=("n", "axis", "norm"))
def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Computes the inverse of `hfft`: the first half of a Hermitian-symmetric signal.

    Args:
        a: the values.
        n: how many values are transformed; more are cut off, missing ones are 0.
        axis: the axis.
        norm: the scale: "backward", the default, divides by the number of values on the way back,
            "forward" on the way forth, "ortho" by its root on both.

    Shapes:     a: T[.., m, ..] -> complex[.., n//2 + 1, ..].
    Dtypes:     real to complex; not float16 and bfloat16.
    Derivative: linear over the reals.

    Raises:
        ValueError: the axis is out of range, `n` is not positive, `norm` is not known, or `a` is
            complex.
        TypeError: `a` is not an array, or `n` is not an integer.

    Example:
        >>> minijax.numpy.fft.ihfft(np.float32([1, 1, 1, 1]))
        Array([1.-0.j, 0.-0.j, 0.-0.j], dtype=complex64)
    """
    _check_one_axis("ihfft", axis)
    return conjugate(_one("ihfft", FftType.RFFT, a, n, axis, _MIRRORED.get(norm, norm)))


@one_program(static=("s", "axes", "norm"))
def fft2(
    a: ArrayLike, s: Sizes = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """Computes the two-dimensional discrete Fourier transform.

    Args:
        a: the values.
        s: how many values are transformed along each axis; as many as there are by default.
        axes: the two axes.
        norm: the scale: "backward", the default, divides by the number of values on the way back,
            "forward" on the way forth, "ortho" by its root on both.

    Shapes:     a: T[..] -> complex[..].
    Dtypes:     to complex.
    Derivative: is its own transpose.

    Raises:
        ValueError: an axis is out of range or named twice, lengths do not fit the axes or are not
            positive, or `norm` is not known.
        TypeError: `a` is not an array, or a length is not an integer.

    Example:
        >>> minijax.numpy.fft.fft2(np.float32([[1, 2], [3, 4]]))
        Array([[10.+0.j, -2.+0.j],
               [-4.+0.j,  0.+0.j]], dtype=complex64)
    """
    return _two("fft2", FftType.FFT, a, s, axes, norm)


@one_program(static=("s", "axes", "norm"))
def ifft2(
    a: ArrayLike, s: Sizes = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """Computes the inverse of `fft2`.

    Args:
        a: the frequencies.
        s: how many values are transformed along each axis; as many as there are by default.
        axes: the two axes.
        norm: the scale: "backward", the default, divides by the number of values on the way back,
            "forward" on the way forth, "ortho" by its root on both.

    Shapes:     a: T[..] -> complex[..].
    Dtypes:     to complex.
    Derivative: is its own transpose.

    Raises:
        ValueError: an axis is out of range or named twice, lengths do not fit the axes or are not
            positive, or `norm` is not known.
        TypeError: `a` is not an array, or a length is not an integer.

    Example:
        >>> minijax.numpy.fft.ifft2(np.complex64([[4, 0], [0, 0]]))
        Array([[1.+0.j, 1.+0.j],
               [1.+0.j, 1.+0.j]], dtype=complex64)
    """
    return _two("ifft2", FftType.IFFT, a, s, axes, norm)


@one_program(static=("s", "axes", "norm"))
def rfft2(
    a: ArrayLike, s: Sizes = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """Computes the two-dimensional discrete Fourier transform of real input.

    Args:
        a: the values.
        s: how many values are transformed along each axis; as many as there are by default.
        axes: the two axes.
        norm: the scale: "backward", the default, divides by the number of values on the way back,
            "forward" on the way forth, "ortho" by its root on both.

    Shapes:     a: T[.., n] -> complex[.., n//2 + 1] for the last one of the axes.
    Dtypes:     real to complex; not float16 and bfloat16.
    Derivative: linear over the reals.

    Raises:
        ValueError: an axis is out of range or named twice, lengths do not fit the axes or are not
            positive, `norm` is not known, or `a` is complex.
        TypeError: `a` is not an array, or a length is not an integer.

    Example:
        >>> minijax.numpy.fft.rfft2(np.float32([[1, 2], [3, 4]]))
        Array([[10.+0.j, -2.+0.j],
               [-4.+0.j,  0.+0.j]], dtype=complex64)
    """
    return _two("rfft2", FftType.RFFT, a, s, axes, norm)


@one_program(static=("s", "axes", "norm"))
def irfft2(
    a: ArrayLike, s: Sizes = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """Computes the inverse of `rfft2`, with real output.

    Args:
        a: the frequencies.
        s: how many values there are along each axis; 2 (m - 1) along the last one by default.
        axes: the two axes.
        norm: the scale: "backward", the default, divides by the number of values on the way back,
            "forward" on the way forth, "ortho" by its root on both.

    Shapes:     a: T[.., m] -> float[.., n] for the last one of the axes.
    Dtypes:     to float.
    Derivative: linear over the reals.

    Raises:
        ValueError: an axis is out of range or named twice, lengths do not fit the axes or are not
            positive, or `norm` is not known.
        TypeError: `a` is not an array, or a length is not an integer.

    Example:
        >>> minijax.numpy.fft.irfft2(np.complex64([[4, 0], [0, 0]]))
        Array([[1., 1.],
               [1., 1.]], dtype=float32)
    """
    return _two("irfft2", FftType.IRFFT, a, s, axes, norm)


@one_program(static=("s", "axes", "norm"))
def fftn(a: ArrayLike, s: Sizes = None, axes: Sizes = None, norm: str | None = None) -> Array:
    """Computes the discrete Fourier transform along several axes.

    Args:
        a: the values.
        s: how many values are transformed along each axis; as many as there are by default.
        axes: the axes; None for the last ones, as many as `s` has lengths, or for all.
        norm: the scale: "backward", the default, divides by the number of values on the way back,
            "forward" on the way forth, "ortho" by its root on both.

    Shapes:     a: T[..] -> complex[..].
    Dtypes:     to complex.
    Derivative: is its own transpose.

    Raises:
        ValueError: an axis is out of range or named twice, lengths do not fit the axes or are not
            positive, or `norm` is not known.
        TypeError: `a` is not an array, or a length is not an integer.

    Example:
        >>> minijax.numpy.fft.fftn(np.float32([[1, 2], [3, 4]]))
        Array([[10.+0.j, -2.+0.j],
               [-4.+0.j,  0.+0.j]], dtype=complex64)
    """
    return _transformed("fftn", FftType.FFT, a, s, axes, norm)


@one_program(static=("s", "axes", "norm"))
def ifftn(a: ArrayLike, s: Sizes = None, axes: Sizes = None, norm: str | None = None) -> Array:
    """Computes the inverse of `fftn`.

    Args:
        a: the frequencies.
        s: how many values are transformed along each axis; as many as there are by default.
        axes: the axes; None for the last ones, as many as `s` has lengths, or for all.
        norm: the scale: "backward", the default, divides by the number of values on the way back,
            "forward" on the way forth, "ortho" by its root on both.

    Shapes:     a: T[..] -> complex[..].
    Dtypes:     to complex.
    Derivative: is its own transpose.

    Raises:
        ValueError: an axis is out of range or named twice, lengths do not fit the axes or are not
            positive, or `norm` is not known.
        TypeError: `a` is not an array, or a length is not an integer.

    Example:
        >>> minijax.numpy.fft.ifftn(np.complex64([[4, 0], [0, 0]]))
        Array([[1.+0.j, 1.+0.j],
               [1.+0.j, 1.+0.j]], dtype=complex64)
    """
    return _transformed("ifftn", FftType.IFFT, a, s, axes, norm)


@one_program(static=("s", "axes", "norm"))
def rfftn(a: ArrayLike, s: Sizes = None, axes: Sizes = None, norm: str | None = None) -> Array:
    """Computes the discrete Fourier transform of real input along several axes.

    Args:
        a: the values.
        s: how many values are transformed along each axis; as many as there are by default.
        axes: the axes; None for the last ones, as many as `s` has lengths, or for all.
        norm: the scale: "backward", the default, divides by the number of values on the way back,
            "forward" on the way forth, "ortho" by its root on both.

    Shapes:     a: T[.., n] -> complex[.., n//2 + 1] for the last one of the axes.
    Dtypes:     real to complex; not float16 and bfloat16.
    Derivative: linear over the reals.

    Raises:
        ValueError: an axis is out of range or named twice, lengths do not fit the axes or are not
            positive, `norm` is not known, or `a` is complex.
        TypeError: `a` is not an array, or a length is not an integer.

    Example:
        >>> minijax.numpy.fft.rfftn(np.float32([[1, 2], [3, 4]]))
        Array([[10.+0.j, -2.+0.j],
               [-4.+0.j,  0.+0.j]], dtype=complex64)
    """
    return _transformed("rfftn", FftType.RFFT, a, s, axes, norm)


@one_program(static=("s", "axes", "norm"))
def irfftn(a: ArrayLike, s: Sizes = None, axes: Sizes = None, norm: str | None = None) -> Array:
    """Computes the inverse of `rfftn`, with real output.

    Args:
        a: the frequencies.
        s: how many values there are along each axis; 2 (m - 1) along the last one by default.
        axes: the axes; None for the last ones, as many as `s` has lengths, or for all.
        norm: the scale: "backward", the default, divides by the number of values on the way back,
            "forward" on the way forth, "ortho" by its root on both.

    Shapes:     a: T[.., m] -> float[.., n] for the last one of the axes.
    Dtypes:     to float.
    Derivative: linear over the reals.

    Raises:
        ValueError: an axis is out of range or named twice, lengths do not fit the axes or are not
            positive, or `norm` is not known.
        TypeError: `a` is not an array, or a length is not an integer.

    Example:
        >>> minijax.numpy.fft.irfftn(np.complex64([[4, 0], [0, 0]]))
        Array([[1., 1.],
               [1., 1.]], dtype=float32)
    """
    return _transformed("irfftn", FftType.IRFFT, a, s, axes, norm)


def fftfreq(
    n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: Placement = None
) -> Array:
    """Returns the sample frequencies of `fft` in cycles per unit: `k / (n d)`.

    Those that are not negative come first, in ascending order, then the negative ones.

    Args:
        n: the number of samples.
        d: the distance of two samples.
        dtype: the dtype of the result.
        device: where the result is placed.

    Shapes:     -> T[n].
    Dtypes:     float32, or float64 with x64, by default.

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
    """Returns the sample frequencies of `rfft`: `k / (n d)` up to the Nyquist frequency.

    Args:
        n: the number of samples.
        d: the distance of two samples.
        dtype: the dtype of the result.
        device: where the result is placed.

    Shapes:     -> T[n//2 + 1].
    Dtypes:     float32, or float64 with x64, by default.

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
        problem = "the number of samples is one integer."
        error(ValueError, f"numpy.fft.{name}", problem, got=f"n: {n!r}")
    whole = isinstance(n, (float, np.floating)) and float(n).is_integer()
    return int(n) if whole else operator.index(n)


def _frequencies(
    name: str, k: Array, size: int, d: ArrayLike, dtype: DTypeLike | None, device: Placement
) -> Array:
    if np.ndim(d):
        problem = "the distance of samples is one number."
        error(ValueError, f"numpy.fft.{name}", problem, got=f"d: {d!r}")
    dtype = dtype_argument(f"numpy.fft.{name}", dtype, dtypes.default_float_dtype())
    found = k.astype(dtype) / asarray(d * size, dtype)
    return on_device(found.astype(dtype), device, name=f"numpy.fft.{name}")


def _shifted(name: str, x: ArrayLike, axes: Axis, shift: Callable[[int], int]) -> Array:
    x = array_argument(f"numpy.fft.{name}", x)
    if axes is None:
        axes = range(x.ndim)
    given = axes if isinstance(axes, (range, tuple, list)) else (axes,)
    dims = tuple(canonicalize_axis(axis, x.ndim, f"numpy.fft.{name}") for axis in given)
    return roll(x, tuple(shift(x.shape[d]) for d in dims), dims) if dims else x


def fftshift(x: ArrayLike, axes: Axis = None) -> Array:
    """Shifts the zero-frequency component to the center of the spectrum.

    Args:
        x: frequencies, or values in their order.
        axes: the axes along which to shift; None for all.

    Shapes:     x: T[s] -> T[s].

    Raises:
        ValueError: an axis is out of range.
        TypeError: `x` is not an array.

    Example:
        >>> minijax.numpy.fft.fftshift(np.int32([0, 1, 2, -2, -1]))
        Array([-2, -1,  0,  1,  2], dtype=int32)
    """
    return _shifted("fftshift", x, axes, lambda n: n // 2)


def ifftshift(x: ArrayLike, axes: Axis = None) -> Array:
    """Undoes `fftshift`: it shifts the zero-frequency component to the front.

    Args:
        x: frequencies in ascending order, or values in that order.
        axes: the axes along which to shift; None for all.

    Shapes:     x: T[s] -> T[s].

    Raises:
        ValueError: an axis is out of range.
        TypeError: `x` is not an array.

    Example:
        >>> minijax.numpy.fft.ifftshift(np.int32([-2, -1, 0, 1, 2]))
        Array([ 0,  1,  2, -2, -1], dtype=int32)
    """
    return _shifted("ifftshift", x, axes, lambda n: -(n // 2))
