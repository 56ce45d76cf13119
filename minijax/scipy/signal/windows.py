"""Window functions by name, computed where programs are written.

Each window of n places is one period of a longer row, which is what spectra need: place n would be
place 0 again.  So a symmetric window of n + 1 places is computed, and the last one is dropped.

Source: F. Harris, On the use of windows for harmonic analysis with the discrete Fourier
transform, 1978; A. Nuttall, Some windows with very good sidelobe behavior, 1981.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core.errors import error

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


def _sine(size: int) -> _Window:
    return np.asarray(np.sin(np.pi / size * (np.arange(size) + 0.5)))


def _lanczos(size: int) -> _Window:
    return np.asarray(np.sinc(_centred(size)))


def _tukey(size: int, alpha: float = 0.5) -> _Window:
    """Flat in the middle, with half a cosine of share `alpha / 2` at both ends."""
    if alpha <= 0:
        return np.ones(size)
    inside = (1 - np.abs(_centred(size))) / min(alpha, 1)
    return np.asarray(0.5 - 0.5 * np.cos(np.pi * np.minimum(inside, 1)))


def _exponential(size: int, center: float | None = None, tau: float = 1.0) -> _Window:
    middle = (size - 1) / 2 if center is None else center
    return np.asarray(np.exp(-np.abs(np.arange(size) - middle) / tau))


def _gaussian(size: int, std: float) -> _Window:
    return _general_gaussian(size, 1, std)


def _general_gaussian(size: int, p: float, sig: float) -> _Window:
    x = (np.arange(size) - (size - 1) / 2) / sig
    return np.asarray(np.exp(-0.5 * np.abs(x) ** (2 * p)))


def _kaiser(size: int, beta: float) -> _Window:
    return np.kaiser(size, beta)


def _general_cosine(size: int, coefficients: Sequence[float]) -> _Window:
    return _cosines(*coefficients)(size)


def _general_hamming(size: int, alpha: float) -> _Window:
    return _cosines(alpha, 1 - alpha)(size)


_WINDOWS: dict[str, Callable[..., _Window]] = {
    "barthann": _barthann,
    "bartlett": np.bartlett,
    "blackman": _cosines(0.42, 0.5, 0.08),
    "blackmanharris": _cosines(0.35875, 0.48829, 0.14128, 0.01168),
    "bohman": _bohman,
    "boxcar": np.ones,
    "cosine": _sine,
    "exponential": _exponential,
    "flattop": _cosines(0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368),
    "gaussian": _gaussian,
    "general_cosine": _general_cosine,
    "general_gaussian": _general_gaussian,
    "general_hamming": _general_hamming,
    "hamming": _cosines(0.54, 0.46),
    "hann": _cosines(0.5, 0.5),
    "kaiser": _kaiser,
    "lanczos": _lanczos,
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


def periodic_window(function: str, window: Any, size: int) -> _Window:
    """The window of a name, or of a name with parameters, over one period of `size` places.

    Raises:
        ValueError: the name is not known, or parameters are missing.
    """
    name, *parameters = (window,) if isinstance(window, str) else window
    name = _ALIASES.get(name, name)
    if name not in _WINDOWS or (name in _NEED_PARAMETERS and not parameters):
        unknown = name not in _WINDOWS
        error(
            ValueError,
            f"scipy.signal.{function}",
            "unknown window." if unknown else "the window needs parameters.",
            got=f"window: {window!r}",
            expected=", ".join(_WINDOWS) if unknown else f"({name!r}, parameters ..)",
            fix="an array of weights",
        )
    if size <= 1:
        return np.ones(size)
    return _WINDOWS[name](size + 1, *parameters)[:-1]
