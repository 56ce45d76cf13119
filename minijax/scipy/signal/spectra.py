"""Spectra of series: short-time Fourier transforms, and densities of power over frequencies.

A series is cut into segments that overlap; each is freed of its trend, weighted by a window, and
transformed.  Source: P. Welch, The use of the fast Fourier transform for the estimation of power
spectra, 1967; D. Griffin and J. Lim, Signal estimation from modified short-time Fourier
transform, 1984.
"""

from __future__ import annotations

import operator
import warnings
from typing import Any, NamedTuple

import numpy as np

from minijax.core import dtypes
from minijax.core.errors import message
from minijax.lax.arguments import canonicalize_axis
from minijax.numpy.arithmetic import absolute
from minijax.numpy.creation import asarray, zeros
from minijax.numpy.elementary import conjugate, imag, real
from minijax.numpy.fft.transforms import fft, fftfreq, ifft, irfft, rfft, rfftfreq
from minijax.numpy.joining import concatenate
from minijax.numpy.one_program import one_program
from minijax.numpy.padding import pad
from minijax.numpy.promotion import promote_dtypes
from minijax.numpy.ranges import arange
from minijax.numpy.selection import where
from minijax.numpy.shaping import array_argument, flip, moveaxis
from minijax.numpy.statistics import median
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.scipy.signal import frames
from minijax.scipy.signal.trends import detrend as without_trend
from minijax.scipy.signal.windows import periodic_window

# Where windows add up to less than this, an inverse is left as it is.
_LEAST_WEIGHT = 1e-10

_BOUNDARIES = ("even", "odd", "constant", "zeros", None)


class Segments(NamedTuple):
    """How a series is cut: the length of a segment, its overlap, and the length of a transform."""

    size: int
    overlap: int
    nfft: int

    @property
    def step(self) -> int:
        """How far apart two segments begin."""
        return self.size - self.overlap


def _refusal(function: str, problem: str, **got: Any) -> ValueError:
    return ValueError(message(f"scipy.signal.{function}", problem, got=got or None))


def _segments(
    function: str, window: Any, nperseg: Any, noverlap: Any, nfft: Any, length: int, dtype: Any
) -> tuple[Segments, Any]:
    """How a series of some length is cut, and the window."""
    is_named = isinstance(window, (str, tuple))
    size = None if nperseg is None else int(nperseg)
    if size is not None and size < 1:
        raise _refusal(function, "segments need a positive length.", nperseg=size)
    if is_named:
        if size is not None and size > length:
            warnings.warn(
                f"nperseg={size} is more than the {length} values there are; segments have "
                f"{length} values",
                UserWarning,
                stacklevel=4,
            )
        size = min(256 if size is None else size, length)
        weights: Any = periodic_window(function, window, size)
    else:
        weights = array_argument(f"scipy.signal.{function}", window)
        if weights.ndim != 1:
            raise _refusal(function, "the window is a vector.", window=weights.aval)
        if weights.size > length:
            raise _refusal(
                function, "the window is longer than the series.", window=weights.aval, n=length
            )
        size = weights.size if size is None else size
        if size != weights.size:
            raise _refusal(
                function,
                "the window is as long as a segment.",
                window=weights.aval,
                nperseg=size,
            )
    transform = size if nfft is None else int(nfft)
    if transform < size:
        raise _refusal(
            function, "transforms are as long as segments, or longer.", nfft=nfft, nperseg=size
        )
    overlap = size // 2 if noverlap is None else int(noverlap)
    if overlap >= size:
        raise _refusal(
            function, "the overlap must be shorter than a segment.", noverlap=overlap, nperseg=size
        )
    return Segments(size, overlap, transform), asarray(weights, dtype)


def _detrending(kind: Any) -> Any:
    """What frees segments of their trend."""
    if callable(kind):
        return kind
    if not kind:
        return lambda x: x
    return lambda x: without_trend(x, type=kind)


def _spectra(x: Any, how: Segments, window: Any, detrend: Any, one_sided: bool) -> Any:
    """The transforms of the segments along the last axis: T[.., n] -> complex[.., segment, k]."""
    cut = _detrending(detrend)(frames.cut(x, how.size, how.step)) * window
    return (rfft if one_sided else fft)(cut, how.nfft)


def _scale(scaling: str, window: Any, fs: Any) -> Any:
    if scaling == "density":
        return 1 / (fs * (window * window).sum())
    total = window.sum()
    return 1 / (total * total)


def _frequencies(how: Segments, fs: Any, one_sided: bool, like: Any) -> Any:
    return (rfftfreq if one_sided else fftfreq)(how.nfft, 1 / fs, dtype=_real_dtype(like))


def _series(function: str, axis: Any, *arrays: Any) -> tuple[list[Any], int]:
    """Series of one inexact dtype with time along the last axis, and where that was."""
    label = f"scipy.signal.{function}"
    found = [array_argument(label, x) for x in promote_dtypes(label, *arrays)]
    dim = canonicalize_axis(axis, found[0].ndim, label)
    dtype = dtypes.to_inexact_dtype(found[0].dtype)
    return [moveaxis(x.astype(dtype), axis, -1) for x in found], dim


def _real_dtype(x: Any) -> Any:
    return dtypes.real_dtype_of(x.dtype)


def _power(
    function: str,
    arrays: tuple[Any, ...],
    fs: Any,
    window: Any,
    nperseg: Any,
    noverlap: Any,
    nfft: Any,
    detrend: Any,
    return_onesided: bool,
    scaling: str,
    axis: int,
    average: str,
) -> tuple[Any, Any]:
    """The mean over segments of products of spectra: of one series with itself, or of two."""
    if average not in ("mean", "median"):
        raise _refusal(function, 'the average is "mean" or "median".', average=average)
    if scaling not in ("density", "spectrum"):
        raise _refusal(function, 'the scaling is "density" or "spectrum".', scaling=scaling)
    series, dim = _series(function, axis, *arrays)
    x = series[0]
    if any(0 in v.shape for v in series):
        dtype = x.dtype if len(series) == 1 else dtypes.to_complex_dtype(x.dtype)
        nothing = moveaxis(zeros((*x.shape[:-1], 0), dtype), -1, dim)
        return real(nothing), nothing
    length = max(v.shape[-1] for v in series)
    how, weights = _segments(function, window, nperseg, noverlap, nfft, length, _real_dtype(x))
    one_sided = return_onesided and not dtypes.issubdtype(x.dtype, np.complexfloating)
    run = _power_of.__wrapped__ if callable(detrend) else _power_of  # type: ignore[attr-defined]
    power = run(
        tuple(series),
        weights,
        fs,
        how=how,
        detrend=detrend,
        one_sided=one_sided,
        scaling=scaling,
        average=average,
    )
    return _frequencies(how, fs, one_sided, power), moveaxis(power, -1, dim)


@one_program(static=("how", "detrend", "one_sided", "scaling", "average"))
def _power_of(
    series: tuple[Any, ...],
    window: Any,
    fs: Any,
    *,
    how: Segments,
    detrend: Any,
    one_sided: bool,
    scaling: str,
    average: str,
) -> Any:
    length = max(v.shape[-1] for v in series)
    first, *rest = (_spectra(_filled(v, length), how, window, detrend, one_sided) for v in series)
    power = conjugate(first) * rest[0] if rest else real(first) ** 2 + imag(first) ** 2
    power = power * _scale(scaling, window, fs)
    if one_sided:
        power = power * _copies(how.nfft, window.dtype)
    return _averaged(power, average)


def _filled(x: Any, length: int) -> Any:
    """A series with zeros after it up to a length."""
    if x.shape[-1] == length:
        return x
    return pad(x, [(0, 0)] * (x.ndim - 1) + [(0, length - x.shape[-1])])


def _copies(nfft: int, dtype: Any) -> Any:
    """How many frequencies of a full spectrum each one of half a spectrum stands for."""
    copies = np.full(nfft // 2 + 1, 2, dtype)
    copies[0] = 1
    if nfft % 2 == 0:
        copies[-1] = 1
    return copies


def _averaged(power: Any, average: str) -> Any:
    """The mean over segments, or the median without the bias that it has where power is χ²."""
    if average == "mean" or power.shape[-2] == 1:
        return power.mean(-2)
    terms = np.arange(2, power.shape[-2], 2)
    bias = 1 + float(np.sum(1 / (terms + 1) - 1 / terms))
    if dtypes.issubdtype(power.dtype, np.complexfloating):
        found = median(real(power), -2) + 1j * median(imag(power), -2)
    else:
        found = median(power, -2)
    return found / bias


def csd(
    x: ArrayLike,
    y: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """The cross power spectral density of two series, by Welch's method.

    Args:
        x: a series.
        y: a series; None for `x`.
        fs: how many values there are per unit of time.
        window: the name of a window, such as "hann", a tuple of name and parameters, or weights.
        nperseg: the length of a segment; 256 by default, or that of the weights.
        noverlap: how many values a segment shares with the next one; half of them by default.
        nfft: the length of a transform; that of a segment by default.
        detrend: "constant", "linear", False, or a function of segments.
        return_onesided: whether to leave out negative frequencies, for real series.
        scaling: "density" for power per frequency, "spectrum" for power.
        axis: the axis of time.
        average: over segments, "mean" or "median".

    Shapes:     x: T[.., n, ..], y: U[.., m, ..] -> float[k], complex[.., k, ..]; the shorter one
                is filled up with zeros.
    Dtypes:     inexact; integers become floats.
    Derivative: by x and y.
    Source:     mirrors jax.scipy.signal.csd (0.10); P. Welch, 1967.

    Raises:
        ValueError: lengths, shapes or the window do not fit, or a name is not known.
        TypeError: an argument is no array.

    Example:
        >>> x = np.float32([1, 0, -1, 0])
        >>> _, power = minijax.scipy.signal.csd(x, x, window="boxcar", nperseg=4)
        >>> power.real
        Array([0., 2., 0.], dtype=float32)
    """
    arrays: tuple[Any, ...] = (x,) if y is None else (x, y)
    if y is not None:
        first, second = (array_argument("scipy.signal.csd", v) for v in arrays)
        if first.ndim != second.ndim:
            raise _refusal("csd", "both must have one rank.", x=first.aval, y=second.aval)
        dim = canonicalize_axis(axis, first.ndim, "scipy.signal.csd")
        pairs = list(zip(first.shape, second.shape, strict=True))
        if any(m != n and 1 not in (m, n) for d, (m, n) in enumerate(pairs) if d != dim):
            raise _refusal("csd", "the shapes do not fit.", x=first.aval, y=second.aval)
    return _power(
        "csd",
        arrays,
        fs,
        window,
        nperseg,
        noverlap,
        nfft,
        detrend,
        return_onesided,
        scaling,
        axis,
        average,
    )


def welch(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """The power spectral density of a series, by Welch's method.

    Args:
        x: the series.
        fs: how many values there are per unit of time.
        window: the name of a window, such as "hann", a tuple of name and parameters, or weights.
        nperseg: the length of a segment; 256 by default, or that of the weights.
        noverlap: how many values a segment shares with the next one; half of them by default.
        nfft: the length of a transform; that of a segment by default.
        detrend: "constant", "linear", False, or a function of segments.
        return_onesided: whether to leave out negative frequencies, for real series.
        scaling: "density" for power per frequency, "spectrum" for power.
        axis: the axis of time.
        average: over segments, "mean" or "median".

    Shapes:     x: T[.., n, ..] -> float[k], float[.., k, ..].
    Dtypes:     inexact; integers become floats.
    Derivative: by x.
    Source:     mirrors jax.scipy.signal.welch (0.10); P. Welch, 1967.

    Raises:
        ValueError: lengths or the window do not fit, or a name is not known.
        TypeError: `x` is no array.

    Example:
        >>> x = np.float32([1, 0, -1, 0])
        >>> frequencies, power = minijax.scipy.signal.welch(x, window="boxcar", nperseg=4)
        >>> power
        Array([0., 2., 0.], dtype=float32)
    """
    return _power(
        "welch",
        (x,),
        fs,
        window,
        nperseg,
        noverlap,
        nfft,
        detrend,
        return_onesided,
        scaling,
        axis,
        average,
    )


def _extended(x: Any, n: int, boundary: Any) -> Any:
    """A series with n more values at both ends, which go on from there in some way."""
    if boundary is None or n == 0:
        return x
    if boundary in ("zeros", "constant"):
        mode = "constant" if boundary == "zeros" else "edge"
        return pad(x, [(0, 0)] * (x.ndim - 1) + [(n, n)], mode=mode)
    if n >= x.shape[-1]:
        raise _refusal("stft", "the series is shorter than its extension.", n=n, x=x.aval)
    before, after = flip(x[..., 1 : n + 1], -1), flip(x[..., -n - 1 : -1], -1)
    if boundary == "odd":
        before, after = 2 * x[..., :1] - before, 2 * x[..., -1:] - after
    return concatenate([before, x, after], -1)


def stft(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Any, Any, Any]:
    """The short-time Fourier transform: the spectra of segments, one after another in time.

    Args:
        x: the series.
        fs: how many values there are per unit of time.
        window: the name of a window, such as "hann", a tuple of name and parameters, or weights.
        nperseg: the length of a segment.
        noverlap: how many values a segment shares with the next one; half of them by default.
        nfft: the length of a transform; that of a segment by default.
        detrend: False, "constant", "linear", or a function of segments.
        return_onesided: whether to leave out negative frequencies, for real series.
        boundary: how the series goes on by half a segment at both ends: "zeros", "constant",
            "even", "odd"; None for not at all.
        padded: whether zeros at the end fill the last segment.
        axis: the axis of time.

    Shapes:     x: T[.., n, ..] -> float[k], float[t], complex[.., k, .., t].
    Dtypes:     inexact; integers become floats.
    Derivative: linear.
    Source:     mirrors jax.scipy.signal.stft (0.10); D. Griffin and J. Lim, 1984.

    Raises:
        ValueError: lengths or the window do not fit, or a name is not known.
        TypeError: `x` is no array.

    Example:
        >>> x = np.float32([1, 1, 1, 1])
        >>> frequencies, times, spectra = minijax.scipy.signal.stft(
        ...     x, window="boxcar", nperseg=2, noverlap=0, boundary=None
        ... )
        >>> spectra.real
        Array([[1., 1.],
               [0., 0.]], dtype=float32)
    """
    (series,), dim = _series("stft", axis, x)
    if 0 in series.shape:
        nothing = moveaxis(zeros(series.shape, dtypes.to_complex_dtype(series.dtype)), -1, dim)
        return real(nothing), real(nothing), nothing
    how, weights = _segments(
        "stft", window, nperseg, noverlap, nfft, series.shape[-1], _real_dtype(series)
    )
    if boundary not in _BOUNDARIES:
        raise _refusal("stft", f"boundaries are one of {_BOUNDARIES}.", boundary=boundary)
    one_sided = return_onesided and not dtypes.issubdtype(series.dtype, np.complexfloating)
    run = _stft_of.__wrapped__ if callable(detrend) else _stft_of  # type: ignore[attr-defined]
    spectra = run(
        series,
        weights,
        how=how,
        detrend=detrend,
        one_sided=one_sided,
        boundary=boundary,
        padded=bool(padded),
    )
    start = 0 if boundary is not None else how.size / 2
    count = arange(spectra.shape[-1], dtype=_real_dtype(spectra))
    times = (count * how.step + start) / fs
    return _frequencies(how, fs, one_sided, spectra), times, moveaxis(spectra, -2, dim)


@one_program(static=("how", "detrend", "one_sided", "boundary", "padded"))
def _stft_of(
    x: Any,
    window: Any,
    *,
    how: Segments,
    detrend: Any,
    one_sided: bool,
    boundary: str | None,
    padded: bool,
) -> Any:
    x = _extended(x, how.size // 2, boundary)
    if padded:
        x = _filled(x, x.shape[-1] + (how.size - x.shape[-1]) % how.step % how.size)
    spectra = _spectra(x, how, window, detrend, one_sided) / absolute(window.sum())
    return moveaxis(spectra, -2, -1)


def istft(
    Zxx: ArrayLike,  # noqa: N803  SciPy's name
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Array, Array]:
    """The inverse of `stft`: the series whose spectra of segments are nearest to the given ones.

    Args:
        Zxx: the spectra.
        fs: how many values there are per unit of time.
        window: the window, as for `stft`.
        nperseg: the length of a segment; that of a transform by default.
        noverlap: how many values a segment shares with the next one; half of them by default.
        nfft: the length of a transform; by default what the number of frequencies tells.
        input_onesided: whether negative frequencies are left out.
        boundary: whether the series went on by half a segment at both ends, which is cut off.
        time_axis: the axis of segments.
        freq_axis: the axis of frequencies.

    Shapes:     Zxx: T[.., k, t] -> float[n], U[.., n].
    Dtypes:     to float, or to complex where negative frequencies are there.
    Derivative: linear.
    Source:     mirrors jax.scipy.signal.istft (0.10); D. Griffin and J. Lim, 1984.

    Raises:
        ValueError: there are fewer than two dimensions, or axes, lengths or the window do not fit.
        TypeError: `Zxx` is no array.

    Example:
        >>> x = np.float32([1, 2, 3, 4])
        >>> _, _, spectra = minijax.scipy.signal.stft(x, nperseg=4, window="boxcar")
        >>> minijax.scipy.signal.istft(spectra, window="boxcar")[1]
        Array([1., 2., 3., 4.], dtype=float32)
    """
    label = "scipy.signal.istft"
    spectra = array_argument(label, Zxx)
    if spectra.ndim < 2:
        raise _refusal("istft", "needs an axis of time and one of frequencies.", Zxx=spectra.aval)
    time = canonicalize_axis(time_axis, spectra.ndim, label)
    frequency = canonicalize_axis(freq_axis, spectra.ndim, label)
    if time == frequency:
        raise _refusal("istft", "the axes of time and frequencies differ.", axis=time)
    spectra = moveaxis(spectra, (time, frequency), (-2, -1))
    dtype = dtypes.to_complex_dtype(spectra.dtype)
    how, weights = _inverse_segments(
        spectra, window, nperseg, noverlap, nfft, input_onesided, dtype
    )
    x = _istft_of(
        spectra, weights, how=how, one_sided=bool(input_onesided), boundary=bool(boundary)
    )
    times = arange(x.shape[-1], dtype=_real_dtype(x)) / fs
    outer = sum(d not in (time, frequency) for d in range(time))
    return times, moveaxis(x, -1, outer)


@one_program(static=("how", "one_sided", "boundary"))
def _istft_of(spectra: Any, window: Any, *, how: Segments, one_sided: bool, boundary: bool) -> Any:
    segments = (irfft if one_sided else ifft)(spectra, how.nfft)[..., : how.size]
    square = window * window
    count = spectra.shape[-2]
    total = frames.overlapped(square + zeros((count, how.size), square.dtype), how.step)
    x = frames.overlapped(segments * (window * window.sum()), how.step)
    if boundary:
        edge = how.size // 2
        x, total = x[..., edge : x.shape[-1] - edge], total[edge : total.shape[-1] - edge]
    return x / where(total > _LEAST_WEIGHT, total, 1)


def _inverse_segments(
    spectra: Any,
    window: Any,
    nperseg: Any,
    noverlap: Any,
    nfft: Any,
    one_sided: bool,
    dtype: Any,
) -> tuple[Segments, Any]:
    bins = spectra.shape[-1]
    natural = 2 * (bins - 1) if one_sided else bins
    size = natural if nperseg is None else operator.index(nperseg)
    if nfft is None:
        # An odd length has as many frequencies as the even one below.
        nfft = size if one_sided and size == natural + 1 else natural
    return _segments(
        "istft", window, size, noverlap, nfft, max(size, 0), dtypes.real_dtype_of(dtype)
    )
