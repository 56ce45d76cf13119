"""Signals against SciPy: convolutions, trends, spectra, windows."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.signal

import minijax
import minijax.numpy as jnp
from minijax.core.config import enable_x64
from minijax.scipy import signal
from minijax.scipy.signal.spectra import periodic_window

RNG = np.random.default_rng(11)
A, K = RNG.standard_normal((5, 6)).astype(np.float32), RNG.standard_normal((2, 3)).astype("f")
Z = (K + 1j * RNG.standard_normal(K.shape)).astype(np.complex64)
X = RNG.standard_normal((2, 45)).astype(np.float32)
MODES = ("full", "same", "valid")


def assert_same(actual, expected, tolerance=2e-5):
    """Compares trees of arrays; 64-bit oracles with results of half the width."""
    actual, expected = map(minijax.tree.leaves, (actual, expected))
    for a, e in zip(actual, expected, strict=True):
        assert a.shape == e.shape
        scale = max(1.0, float(np.abs(e).max(initial=0)))
        np.testing.assert_allclose(a, e, rtol=1e-3, atol=tolerance * scale)


def convolved(xp):
    """Results of every function and mode, of both orders of operands."""
    found = []
    for mode in MODES:
        for x, y in ((A, K), (K, A), (A, Z)):
            found += [f(x, y, mode) for f in (xp.convolve, xp.correlate)]
            found += [f(x, y, mode) for f in (xp.convolve2d, xp.correlate2d)]
            found.append(xp.fftconvolve(x, y, mode))
        found.append(xp.convolve(A[0], K[0], mode, method="fft"))
        found.append(xp.correlate(A[0], K[0], mode, method="fft"))
        found.append(xp.fftconvolve(A, A[:, :3], mode, axes=1))
    return found


@pytest.mark.feature("NP-01")
def test_convolutions_match_scipy():
    assert_same(minijax.jit(lambda: convolved(signal))(), convolved(scipy.signal))


def test_convolutions_take_numbers_integers_and_tracers():
    assert signal.convolve(np.float32(2), np.float32(3)) == 6
    assert signal.convolve(np.arange(3), np.arange(2)).dtype == "float32"
    assert_same(signal.fftconvolve(np.arange(3), np.arange(3)), np.array([0, 0, 1, 4, 4.0]))
    direct, spectral = (
        minijax.grad(lambda y, f=f: jnp.sum(f(A, y, "same") ** 2))(K)
        for f in (signal.convolve, signal.fftconvolve)
    )
    assert_same(direct, spectral, 1e-4)


@pytest.mark.feature("NP-01")
def test_series_without_trend_match_scipy():
    for options in (
        {},
        {"type": "constant", "axis": 0},
        {"bp": [20, 7]},
        {"bp": 1, "axis": 0},
    ):
        assert_same(signal.detrend(X, **options), scipy.signal.detrend(X, **options))
    slope = minijax.grad(lambda x: jnp.sum(signal.detrend(x) ** 2))(X)
    assert_same(slope, 2 * scipy.signal.detrend(X), 1e-4)


STFT = [
    {},
    {"noverlap": 7, "detrend": "linear", "return_onesided": False, "boundary": "even"},
    {"noverlap": 2, "nfft": 13, "boundary": "odd", "window": ("tukey", 0.3)},
    {"noverlap": 0, "boundary": "constant", "padded": False, "window": np.ones(9)},
    {"boundary": None, "fs": 3.0, "detrend": lambda x: x + 1},
]


@pytest.mark.feature("NP-01")
def test_short_time_transforms_match_scipy_and_come_back():
    def spectra(xp, x):
        found = [xp.stft(x, **{"nperseg": 9, **o}) for o in STFT]
        return [
            *found,
            xp.stft(x.T, nperseg=8, axis=0),
            xp.stft(x + 1j * x, nperseg=8, return_onesided=False),
        ]

    found = minijax.jit(lambda x: spectra(signal, x))(X)
    assert_same(found, spectra(scipy.signal, X))

    def series(xp, found):
        return [
            xp.istft(found[0][2], nperseg=9)[1],
            xp.istft(found[1][2], nperseg=9, noverlap=7, input_onesided=False)[1],
            xp.istft(found[2][2], 2.0, ("tukey", 0.3), 9, 2, 13)[1],
            xp.istft(found[4][2], nperseg=9, boundary=False)[1],
            xp.istft(found[5][2], time_axis=-1, freq_axis=0)[1],
        ]

    expected = spectra(scipy.signal, X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        wanted = series(scipy.signal, expected)
    actual = minijax.jit(lambda found: series(signal, found))(found)
    # Where a window is nearly 0, rounding is divided by it.
    for a, w in zip(actual, wanted, strict=True):
        assert a.shape == w.shape
        np.testing.assert_allclose(a[..., 4:-4], w[..., 4:-4], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(actual[0][:, :45], X, rtol=1e-3, atol=1e-4)


@pytest.mark.feature("NP-01")
def test_densities_of_power_match_scipy():
    y = np.roll(X, 3, 1)[:, :40] ** 2

    def densities(xp):
        return [
            xp.welch(X, nperseg=9),
            xp.welch(X, 2.0, "boxcar", 8, 3, 11, "linear", False, "spectrum"),
            xp.welch(X.T, nperseg=8, axis=0, average="median"),
            xp.welch(X, window=np.hanning(10), detrend=False),
            xp.csd(X, y, nperseg=8),
            xp.csd(X, y, nperseg=8, average="median", scaling="spectrum"),
            xp.csd(X, 1j * y, nperseg=8, return_onesided=False),
        ]

    assert_same(minijax.jit(lambda: densities(signal))(), densities(scipy.signal))
    assert signal.csd(X, None, nperseg=8)[1].dtype == "float32"
    assert signal.welch(X[:, :0])[1].shape == (2, 0)


def test_windows_match_scipy():
    names = [
        "barthann",
        "bartlett",
        "blackman",
        "blackmanharris",
        "bohman",
        "boxcar",
        "cosine",
        "exponential",
        "flattop",
        "hamming",
        "hann",
        "lanczos",
        "nuttall",
        "parzen",
        "triang",
        "tukey",
    ]
    with_parameters = [
        ("exponential", None, 2.0),
        ("gaussian", 2.0),
        ("general_cosine", [0.5, 0.3, 0.2]),
        ("general_gaussian", 1.5, 2.0),
        ("general_hamming", 0.6),
        ("kaiser", 3.0),
        ("tukey", 0.0),
        ("rect",),
    ]
    for window in [*names, *with_parameters]:
        for size in (1, 8, 9):
            expected = scipy.signal.get_window(window, size)
            actual = periodic_window("welch", window, size)
            np.testing.assert_allclose(actual, expected, atol=1e-12, err_msg=str(window))


def test_short_series_have_shorter_segments():
    with pytest.warns(UserWarning, match="nperseg=256 is more than the 45 values"):
        assert signal.stft(X)[2].shape == (2, 23, 3)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: signal.convolve(A, K[0]), ValueError, "both must have one rank"),
        (lambda: signal.convolve(A, K, "wide"), ValueError, "unknown mode"),
        (lambda: signal.convolve(A, K, method="best"), ValueError, "unknown method"),
        (lambda: signal.convolve(A, K[:0]), ValueError, "neither may be empty"),
        (lambda: signal.correlate(A, A[:2].T, "valid"), ValueError, "in every dimension"),
        (lambda: signal.convolve2d(A[0], K[0]), ValueError, "both must be matrices"),
        (lambda: signal.convolve2d(A, K, boundary="wrap"), NotImplementedError, "numpy.pad"),
        (lambda: signal.fftconvolve(A, K, axes=1), ValueError, "where nothing is convolved"),
        (lambda: signal.fftconvolve(A, K, axes=2), ValueError, "axis 2 is out of range"),
        (lambda: signal.detrend(X, type="l"), ValueError, "unknown type 'l'"),
        (lambda: signal.detrend(X, bp=50), ValueError, "from 0 to 45"),
        (lambda: signal.detrend(X, overwrite_data=True), NotImplementedError, "overwritten"),
        (lambda: signal.welch(X, nperseg=0), ValueError, "need a positive length"),
        (lambda: signal.welch(X, nperseg=8, noverlap=8), ValueError, "shorter than a segment"),
        (lambda: signal.welch(X, nperseg=8, nfft=4), ValueError, "as long as segments"),
        (lambda: signal.welch(X, nperseg=8, window="ham"), ValueError, "unknown window"),
        (lambda: signal.welch(X, nperseg=8, window="kaiser"), ValueError, "needs parameters"),
        (lambda: signal.welch(X, nperseg=8, window=np.ones(9)), ValueError, "as long as a segm"),
        (lambda: signal.welch(X, window=np.ones(50)), ValueError, "longer than the series"),
        (lambda: signal.welch(X, nperseg=8, average="mode"), ValueError, "mean"),
        (lambda: signal.welch(X, nperseg=8, scaling="log"), ValueError, "density"),
        (lambda: signal.csd(X, X[0]), ValueError, "both must have one rank"),
        (lambda: signal.csd(X, np.ones((3, 45))), ValueError, "shapes do not fit"),
        (lambda: signal.stft(X, nperseg=8, boundary="ring"), ValueError, "unknown boundary 'ring'"),
        (lambda: signal.istft(X[0]), ValueError, "one of frequencies"),
        (lambda: signal.istft(X, time_axis=0, freq_axis=0), ValueError, "differ"),
    ],
)
def test_signals_refuse_bad_arguments(call, error, match):
    with pytest.raises(error, match=match):
        call()


@pytest.mark.feature("NP-01")
def test_frequencies_and_times_are_as_wide_as_the_series():
    with enable_x64(True):
        frequencies, times, spectra = signal.stft(np.ones(16, np.float32), nperseg=8)
        back = signal.istft(spectra, nperseg=8)
        found = (frequencies, times, *back, *signal.welch(np.ones(16, np.float32), nperseg=8))
    assert {x.dtype.name for x in found} == {"float32"}
