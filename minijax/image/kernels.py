"""Kernels of resampling: how much a sample counts, by its distance from where the value is wanted.

Sources: R. Keys, Cubic convolution interpolation for digital image processing, 1981; C. Duchon,
Lanczos filtering in one and two dimensions, 1979.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from minijax.core.errors import error
from minijax.numpy.arithmetic import absolute
from minijax.numpy.elementary import sin
from minijax.numpy.selection import where
from minijax.numpy.ufuncs import maximum


class ResizeMethod(enum.Enum):
    """Methods of resampling.

    NEAREST takes the nearest sample, AREA the mean over the area that a new sample covers; the
    others weigh samples around by a kernel: a triangle (LINEAR), Keys's cubic polynomials (CUBIC;
    CUBIC_PYTORCH is steeper where it does not smooth), or windowed sines (LANCZOS3, LANCZOS5).

    Source: mirrors jax.image.ResizeMethod (0.10).

    Example:
        >>> minijax.image.ResizeMethod.from_string("bilinear").name
        'LINEAR'
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method of a name, such as "linear", "bilinear", "trilinear" or "triangle".

        Raises:
            ValueError: the name is not known.
        """
        if s not in _NAMES:
            error(
                ValueError,
                "image.resize",
                "unknown method.",
                got=f"method: {s!r}",
                expected=", ".join(_NAMES),
            )
        return _NAMES[s]


_NAMES = {
    "nearest": ResizeMethod.NEAREST,
    "linear": ResizeMethod.LINEAR,
    "bilinear": ResizeMethod.LINEAR,
    "trilinear": ResizeMethod.LINEAR,
    "triangle": ResizeMethod.LINEAR,
    "cubic": ResizeMethod.CUBIC,
    "bicubic": ResizeMethod.CUBIC,
    "tricubic": ResizeMethod.CUBIC,
    "cubic-pytorch": ResizeMethod.CUBIC_PYTORCH,
    "bicubic-pytorch": ResizeMethod.CUBIC_PYTORCH,
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    "area": ResizeMethod.AREA,
}


class Kernel(NamedTuple):
    """A method's weights: where it smooths as it shrinks, and where it only interpolates."""

    smoothing: Callable[[Any], Any]
    interpolating: Callable[[Any], Any]


def _triangle(x: Any) -> Any:
    return maximum(0, 1 - absolute(x))


def _keys(a: float) -> Callable[[Any], Any]:
    """Keys's kernel: cubic on [0, 1] and [1, 2], with slope `a` at 1."""

    def weight(x: Any) -> Any:
        x = absolute(x)
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return where(x >= 2, 0, where(x >= 1, far, near))

    return weight


def _lanczos(radius: int) -> Callable[[Any], Any]:
    """`sinc(x) sinc(x / radius)` within the radius, 0 beyond."""

    def weight(x: Any) -> Any:
        x = absolute(x)
        is_centre = x <= 1e-3
        turn = math.pi * where(is_centre, 1, x)
        wave = radius * sin(turn) * sin(turn / radius) / (turn * turn)
        return where(x > radius, 0, where(is_centre, 1, wave))

    return weight


KERNELS = {
    ResizeMethod.LINEAR: Kernel(_triangle, _triangle),
    ResizeMethod.CUBIC: Kernel(_keys(-0.5), _keys(-0.5)),
    ResizeMethod.CUBIC_PYTORCH: Kernel(_keys(-0.5), _keys(-0.75)),
    ResizeMethod.LANCZOS3: Kernel(_lanczos(3), _lanczos(3)),
    ResizeMethod.LANCZOS5: Kernel(_lanczos(5), _lanczos(5)),
}
