"""Spectra of series: short-time Fourier transforms, and densities of power over frequencies.

A series is cut into segments that overlap; each is freed of its trend, weighted by a window, and
transformed.

Source: P. Welch, The use of the fast Fourier transform for the estimation of power spectra, 1967;
D. Griffin and J. Lim, Signal estimation from modified short-time Fourier transform, 1984;
F. Harris, On the use of windows for harmonic analysis with the discrete Fourier transform, 1978;
A. Nuttall, Some windows with very good sidelobe behavior, 1981.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from minijax.core import dtypes
from minijax.core.errors import error, warn
from minijax.lax.families import canonicalize_axis
from minijax.lax.padding import pad as lax_pad
from minijax.numpy.creation import asarray, zeros
from minijax.numpy.elementary import absolute, conjugate, imag, real
from minijax.numpy.fft.transforms import fft, fftfreq, ifft, irfft, rfft, rfftfreq
from minijax.numpy.joining import concatenate
from minijax.numpy.padding import pad
from minijax.numpy.promotion import check_choice, check_that, one_program, promote_dtypes
from minijax.numpy.ranges import arange
from minijax.numpy.selection import where
from minijax.numpy.shaping import array_argument, flip, moveaxis
from minijax.numpy.statistics import median
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.scipy.signal.filtering import detrend as without_trend

Window: TypeAlias = str | tuple[Any, ...] | ArrayLike
"""The name of a window, its name and parameters, or weights."""

Lengths: TypeAlias = tuple[int | None, int | None, int | None]
"""What users say of nperseg, noverlap and nfft."""

Detrend: TypeAlias = str | Literal[False] | Callable[[Any], Any]
"""The kind of trend that segments are freed of, or the function that does it."""

_Window = np.ndarray[Any, np.dtype[np.float64]]


def _cosines(*weights: float) -> Callable[[int], _Window]:
    """`Σ (-1)ᵏ weights[k] cos(2πkn / (size - 1))`."""

    def window(size: int) -> _Window:
        turn = np.linspace(0, 2 * np.pi, size)
        terms = [(-1) ** k * weight * np.cos(k * turn) for k, weight in enumerate(weights)]
        return np.asarray(np.sum(terms, axis=0))

    return window


def _centred(size: int) -> _Window:
    """Places from -1 to 1."""
    return np.linspace(-1, 1, size)


def _triangle(size: int) -> _Window:
    """A triangle that is not 0 at the ends."""
    reach = size + 1 if size % 2 else size
    return 1 - np.abs(2 * np.arange(size) - (size - 1)) / reach


def _parzen(size: int) -> _Window:
    x = np.abs(2 * np.arange(size) - (size - 1)) / size
    return np.where(x <= 0.5, 1 - 6 * x**2 + 6 * x**3, 2 * (1 - x) ** 3)


def _bohman(size: int) -> _Window:
    x = np.abs(_centred(size))
    found = (1 - x) * np.cos(np.pi * x) + np.sin(np.pi * x) / np.pi
    found[[0, -1]] = 0
    return np.asarray(found)


def _barthann(size: int) -> _Window:
    x = _centred(size) / 2
    return np.asarray(0.62 - 0.48 * np.abs(x) + 0.38 * np.cos(2 * np.pi * x))


def _tukey(size: int, alpha: float = 0.5) -> _Window:
    """Flat in the middle, with half a cosine of share `alpha / 2` at both ends."""
    if alpha <= 0:
        return np.ones(size)
    inside = (1 - np.abs(_centred(size))) / min(alpha, 1)
    return np.asarray(0.5 - 0.5 * np.cos(np.pi * np.minimum(inside, 1)))


def _exponential(size: int, center: float | None = None, tau: float = 1.0) -> _Window:
    middle = (size - 1) / 2 if center is None else center
    return np.asarray(np.exp(-np.abs(np.arange(size) - middle) / tau))


def _general_gaussian(size: int, p: float, sig: float) -> _Window:
    x = (np.arange(size) - (size - 1) / 2) / sig
    return np.asarray(np.exp(-0.5 * np.abs(x) ** (2 * p)))


_WINDOWS: dict[str, Callable[..., _Window]] = {
    "barthann": _barthann,
    "bartlett": np.bartlett,
    "blackman": _cosines(0.42, 0.5, 0.08),
    "blackmanharris": _cosines(0.35875, 0.48829, 0.14128, 0.01168),
    "bohman": _bohman,
    "boxcar": np.ones,
    "cosine": lambda size: np.sin(np.pi / size * (np.arange(size) + 0.5)),
    "exponential": _exponential,
    "flattop": _cosines(0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368),
    "gaussian": lambda size, std: _general_gaussian(size, 1, std),
    "general_cosine": lambda size, coefficients: _cosines(*coefficients)(size),
    "general_gaussian": _general_gaussian,
    "general_hamming": lambda size, alpha: _cosines(alpha, 1 - alpha)(size),
    "hamming": _cosines(0.54, 0.46),
    "hann": _cosines(0.5, 0.5),
    "kaiser": np.kaiser,
    "lanczos": lambda size: np.sinc(_centred(size)),
    "nuttall": _cosines(0.3635819, 0.4891775, 0.1365995, 0.0106411),
    "parzen": _parzen,
    "triang": _triangle,
    "tukey": _tukey,
}
_ALIASES = {
    "bart": "bartlett",
    "bkh": "blackmanharris",
    "black": "blackman",
    "blackman-harris": "blackmanharris",
    "bman": "bohman",
    "box": "boxcar",
    "brthan": "barthann",
    "halfcosine": "cosine",
    "ones": "boxcar",
    "rect": "boxcar",
    "rectangular": "boxcar",
    "sinc": "lanczos",
    "triangle": "triang",
    "tuk": "tukey",
}
_NEED_PARAMETERS = ("gaussian", "general_cosine", "general_gaussian", "general_hamming", "kaiser")


def periodic_window(function: str, window: str | tuple[Any, ...], size: int) -> _Window:
    """The window of a name, or of a name with parameters, over one period of `size` places.

    Raises:
        ValueError: the name is not known, or parameters are missing.
    """
    name, *parameters = (window,) if isinstance(window, str) else window
    name = _ALIASES.get(name, name)
    if name not in _WINDOWS or (name in _NEED_PARAMETERS and not parameters):
        unknown = name not in _WINDOWS
        problem = "unknown window." if unknown else "the window needs parameters."
        expected = ", ".join(_WINDOWS) if unknown else f"({name!r}, parameters ..)"
        got, fix = f"window: {window!r}", "an array of weights"
        name = f"scipy.signal.{function}"
        error(ValueError, name, problem, got=got, expected=expected, fix=fix)
    if size <= 1:
        return np.ones(size)
    return _WINDOWS[name](size + 1, *parameters)[:-1]


_MAX_BLOCKS = 16


def _lengthened(x: Array, size: int) -> Array:
    """`x` with its last dimension cut, or filled up with zeros, to a size."""
    edges = [(0, 0, 0)] * (x.ndim - 1) + [(0, size - x.shape[-1], 0)]
    return lax_pad(x, x.dtype.type(0), edges)


def _places(count: int, size: int, step: int) -> np.ndarray[Any, Any]:
    return step * np.arange(count)[:, None] + np.arange(size)


def _cut_frames(x: Array, size: int, step: int) -> Array:
    """The frames of a series, as many as fit into it.  Shapes: T[.., n] -> T[.., count, size]."""
    count = (x.shape[-1] - size) // step + 1
    blocks = -(-size // step)
    if blocks > _MAX_BLOCKS:
        return x[..., _places(count, size, step)]
    rows = _lengthened(x, (count + blocks - 1) * step)
    rows = rows.reshape(*x.shape[:-1], count + blocks - 1, step)
    parts = [rows[..., j : j + count, :] for j in range(blocks)]
    frames = concatenate(parts, -1) if blocks > 1 else parts[0]
    return frames[..., :size]


def _sum_of_frames(frames: Array, step: int) -> Array:
    """The sum of frames, each in its place.  Shapes: T[.., count, size] -> T[.., n]."""
    *outer, count, size = frames.shape
    total = (count - 1) * step + size
    blocks = -(-size // step)
    if blocks > _MAX_BLOCKS:
        return zeros((*outer, total), frames.dtype).at[..., _places(count, size, step)].add(frames)
    rows = _lengthened(frames, blocks * step).reshape(*outer, count, blocks, step)
    found: Any = 0
    for j in range(blocks):
        edges = [(0, 0, 0)] * len(outer) + [(j, blocks - 1 - j, 0), (0, 0, 0)]
        found = found + lax_pad(rows[..., j, :], frames.dtype.type(0), edges)
    return found.reshape(*outer, -1)[..., :total]


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


def _segments(
    function: str, window: Window, lengths: Lengths, length: int, dtype: np.dtype[Any]
) -> tuple[Segments, Array]:
    """How a series of some length is cut, and the window."""
    nperseg, noverlap, nfft = lengths
    name = f"scipy.signal.{function}"
    size = None if nperseg is None else int(nperseg)
    fits = size is None or size >= 1
    check_that(fits, name, "segments need a positive length.", nperseg=size)
    if isinstance(window, (str, tuple)):
        if size is not None and size > length:
            problem = f"nperseg={size} is more than the {length} values there are."
            warn(UserWarning, name, problem, expected=f"segments of at most {length} values")
        size = min(256 if size is None else size, length)
        weights: Any = periodic_window(function, window, size)
    else:
        weights = array_argument(name, window)
        check_that(weights.ndim == 1, name, "the window is a vector.", window=weights)
        problem = "the window is longer than the series."
        check_that(weights.size <= length, name, problem, window=weights, n=length)
        size = weights.size if size is None else size
        problem = "the window is as long as a segment."
        check_that(size == weights.size, name, problem, window=weights, nperseg=size)
    transform = size if nfft is None else int(nfft)
    problem = "transforms are as long as segments, or longer."
    check_that(transform >= size, name, problem, nfft=nfft, nperseg=size)
    overlap = size // 2 if noverlap is None else int(noverlap)
    problem = "the overlap must be shorter than a segment."
    check_that(overlap < size, name, problem, noverlap=overlap, nperseg=size)
    return Segments(size, overlap, transform), asarray(weights, dtype)


def _detrending(kind: Detrend) -> Any:
    """What frees segments of their trend."""
    if callable(kind):
        return kind
    if not kind:
        return lambda x: x
    return lambda x: without_trend(x, type=kind)


def _spectra(x: Array, how: Segments, window: Array, detrend: Detrend, one_sided: bool) -> Array:
    """The transforms of the segments along the last axis: T[.., n] -> complex[.., segment, k]."""
    cut = _detrending(detrend)(_cut_frames(x, how.size, how.step)) * window
    return (rfft if one_sided else fft)(cut, how.nfft)


def _scale(scaling: str, window: Array, fs: ArrayLike) -> Any:
    if scaling == "density":
        return 1 / (fs * (window * window).sum())
    total = window.sum()
    return 1 / (total * total)


def _frequencies(how: Segments, fs: ArrayLike, one_sided: bool, like: Array) -> Array:
    return (rfftfreq if one_sided else fftfreq)(how.nfft, 1 / fs, dtype=_real_dtype(like))


def _series(function: str, axis: int, *arrays: Any) -> tuple[list[Array], int]:
    """Series of one inexact dtype with time along the last axis, and where that was."""
    label = f"scipy.signal.{function}"
    found = [array_argument(label, x) for x in promote_dtypes(label, *arrays)]
    dim = canonicalize_axis(axis, found[0].ndim, label)
    dtype = dtypes.to_inexact_dtype(found[0].dtype)
    return [moveaxis(x.astype(dtype), axis, -1) for x in found], dim


def _real_dtype(x: Array) -> Any:
    return dtypes.real_dtype_of(x.dtype)


def _power(
    function: str,
    arrays: tuple[Any, ...],
    fs: ArrayLike,
    window: Window,
    lengths: Lengths,
    detrend: Detrend,
    return_onesided: bool,
    scaling: str,
    axis: int,
    average: str,
) -> tuple[Array, Array]:
    """The mean over segments of products of spectra: of one series with itself, or of two."""
    name = f"scipy.signal.{function}"
    check_choice(name, "average", average, ("mean", "median"))
    check_choice(name, "scaling", scaling, ("density", "spectrum"))
    series, dim = _series(function, axis, *arrays)
    x = series[0]
    if any(0 in v.shape for v in series):
        dtype = x.dtype if len(series) == 1 else dtypes.to_complex_dtype(x.dtype)
        nothing = moveaxis(zeros((*x.shape[:-1], 0), dtype), -1, dim)
        return real(nothing), nothing
    length = max(v.shape[-1] for v in series)
    how, weights = _segments(function, window, lengths, length, _real_dtype(x))
    one_sided = return_onesided and not dtypes.issubdtype(x.dtype, np.complexfloating)
    run = _power_of.__wrapped__ if callable(detrend) else _power_of  # type: ignore[attr-defined]
    power = run(tuple(series), weights, fs, how, detrend, one_sided, scaling, average)
    return _frequencies(how, fs, one_sided, power), moveaxis(power, -1, dim)


@one_program(static=("how", "detrend", "one_sided", "scaling", "average"))
def _power_of(
    series: tuple[Any, ...],
    window: Array,
    fs: ArrayLike,
    how: Segments,
    detrend: Detrend,
    one_sided: bool,
    scaling: str,
    average: str,
) -> Array:
    length = max(v.shape[-1] for v in series)
    first, *rest = (_spectra(_filled(v, length), how, window, detrend, one_sided) for v in series)
    power = conjugate(first) * rest[0] if rest else real(first) ** 2 + imag(first) ** 2
    power = power * _scale(scaling, window, fs)
    if one_sided:
        power = power * _copies(how.nfft, window.dtype)
    return _averaged(power, average)


def _filled(x: Array, length: int) -> Array:
    """A series with zeros after it up to a length."""
    if x.shape[-1] == length:
        return x
    return pad(x, [(0, 0)] * (x.ndim - 1) + [(0, length - x.shape[-1])])


def _copies(nfft: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """How many frequencies of a full spectrum each one of half a spectrum stands for."""
    copies = np.full(nfft // 2 + 1, 2, dtype)
    copies[0] = 1
    if nfft % 2 == 0:
        copies[-1] = 1
    return copies


def _averaged(power: Array, average: str) -> Array:
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
    window: Window = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Detrend = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """Cross power spectral density of two series, by Welch's method.

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
        TypeError: an argument is not an array.

    Example:
        >>> x = np.float32([1, 0, -1, 0])
        >>> _, power = minijax.scipy.signal.csd(x, x, window="boxcar", nperseg=4)
        >>> power.real
        Array([0., 2., 0.], dtype=float32)
    """
    arrays: tuple[Any, ...] = (x,) if y is None else (x, y)
    if y is not None:
        first, second = (array_argument("scipy.signal.csd", v) for v in arrays)
        name = "scipy.signal.csd"
        fits = first.ndim == second.ndim
        check_that(fits, name, "both must have one rank.", x=first, y=second)
        dim = canonicalize_axis(axis, first.ndim, name)
        pairs = list(zip(first.shape, second.shape, strict=True))
        fits = all(m == n or 1 in (m, n) for d, (m, n) in enumerate(pairs) if d != dim)
        check_that(fits, name, "the shapes do not fit.", x=first, y=second)
    lengths = nperseg, noverlap, nfft
    return _power(
        "csd", arrays, fs, window, lengths, detrend, return_onesided, scaling, axis, average
    )


def welch(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Window = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Detrend = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """Power spectral density of a series, by Welch's method.

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
        TypeError: `x` is not an array.

    Example:
        >>> x = np.float32([1, 0, -1, 0])
        >>> frequencies, power = minijax.scipy.signal.welch(x, window="boxcar", nperseg=4)
        >>> power
        Array([0., 2., 0.], dtype=float32)
    """
    lengths = nperseg, noverlap, nfft
    return _power(
        "welch", (x,), fs, window, lengths, detrend, return_onesided, scaling, axis, average
    )


def _extended(x: Array, n: int, boundary: str | None) -> Array:
    """A series with n more values at both ends, which go on from there in some way."""
    if boundary is None or n == 0:
        return x
    if boundary in ("zeros", "constant"):
        mode = "constant" if boundary == "zeros" else "edge"
        return pad(x, [(0, 0)] * (x.ndim - 1) + [(n, n)], mode=mode)
    problem = "the series is shorter than its extension."
    check_that(n < x.shape[-1], "scipy.signal.stft", problem, n=n, x=x)
    before, after = flip(x[..., 1 : n + 1], -1), flip(x[..., -n - 1 : -1], -1)
    if boundary == "odd":
        before, after = 2 * x[..., :1] - before, 2 * x[..., -1:] - after
    return concatenate([before, x, after], -1)


def stft(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Window = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Detrend = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Array, Array, Array]:
    """Short-time Fourier transform: the spectra of overlapping segments.

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
        TypeError: `x` is not an array.

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
    lengths = nperseg, noverlap, nfft
    how, weights = _segments("stft", window, lengths, series.shape[-1], _real_dtype(series))
    check_choice("scipy.signal.stft", "boundary", boundary, _BOUNDARIES)
    one_sided = return_onesided and not dtypes.issubdtype(series.dtype, np.complexfloating)
    run = _stft_of.__wrapped__ if callable(detrend) else _stft_of  # type: ignore[attr-defined]
    spectra = run(series, weights, how, detrend, one_sided, boundary, bool(padded))
    start = 0 if boundary is not None else how.size / 2
    count = arange(spectra.shape[-1], dtype=_real_dtype(spectra))
    times = (count * how.step + start) / fs
    return _frequencies(how, fs, one_sided, spectra), times, moveaxis(spectra, -2, dim)


@one_program(static=("how", "detrend", "one_sided", "boundary", "padded"))
def _stft_of(
    x: Array,
    window: Array,
    how: Segments,
    detrend: Detrend,
    one_sided: bool,
    boundary: str | None,
    padded: bool,
) -> Array:
    x = _extended(x, how.size // 2, boundary)
    if padded:
        x = _filled(x, x.shape[-1] + (how.size - x.shape[-1]) % how.step % how.size)
    spectra = _spectra(x, how, window, detrend, one_sided) / absolute(window.sum())
    return moveaxis(spectra, -2, -1)


def istft(
    Zxx: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Window = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Array, Array]:
    """Inverse short-time Fourier transform, by least squares where spectra are inconsistent.

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
        TypeError: `Zxx` is not an array.

    Example:
        >>> x = np.float32([1, 2, 3, 4])
        >>> _, _, spectra = minijax.scipy.signal.stft(x, nperseg=4, window="boxcar")
        >>> minijax.scipy.signal.istft(spectra, window="boxcar")[1]
        Array([1., 2., 3., 4.], dtype=float32)
    """
    label = "scipy.signal.istft"
    spectra = array_argument(label, Zxx)
    problem = "needs an axis of time and one of frequencies."
    check_that(spectra.ndim >= 2, label, problem, Zxx=spectra)
    time = canonicalize_axis(time_axis, spectra.ndim, label)
    frequency = canonicalize_axis(freq_axis, spectra.ndim, label)
    check_that(time != frequency, label, "the axes of time and frequencies differ.", axis=time)
    spectra = moveaxis(spectra, (time, frequency), (-2, -1))
    lengths = nperseg, noverlap, nfft
    how, weights = _inverse_segments(spectra, window, lengths, input_onesided)
    x = _istft_of(
        spectra, weights, how=how, one_sided=bool(input_onesided), boundary=bool(boundary)
    )
    times = arange(x.shape[-1], dtype=_real_dtype(x)) / fs
    outer = sum(d not in (time, frequency) for d in range(time))
    return times, moveaxis(x, -1, outer)


@one_program(static=("how", "one_sided", "boundary"))
def _istft_of(
    spectra: Array, window: Array, *, how: Segments, one_sided: bool, boundary: bool
) -> Array:
    segments = (irfft if one_sided else ifft)(spectra, how.nfft)[..., : how.size]
    square = window * window
    count = spectra.shape[-2]
    total = _sum_of_frames(square + zeros((count, how.size), square.dtype), how.step)
    x = _sum_of_frames(segments * (window * window.sum()), how.step)
    if boundary:
        edge = how.size // 2
        x, total = x[..., edge : x.shape[-1] - edge], total[edge : total.shape[-1] - edge]
    return x / where(total > _LEAST_WEIGHT, total, 1)


def _inverse_segments(
    spectra: Array, window: Window, lengths: Lengths, one_sided: bool
) -> tuple[Segments, Array]:
    nperseg, noverlap, nfft = lengths
    bins = spectra.shape[-1]
    natural = 2 * (bins - 1) if one_sided else bins
    size = natural if nperseg is None else operator.index(nperseg)
    if nfft is None:
        # An odd length has as many frequencies as the even one below.
        nfft = size if one_sided and size == natural + 1 else natural
    dtype = dtypes.real_dtype_of(dtypes.to_complex_dtype(spectra.dtype))
    return _segments("istft", window, (size, noverlap, nfft), max(size, 0), dtype)
