"""Window functions: weights that fall off towards both ends."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.errors import error
from minijax.numpy.arithmetic import absolute, sqrt
from minijax.numpy.creation import asarray, ones
from minijax.numpy.elementary import cos, i0
from minijax.numpy.ranges import arange
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array


def _window(name: str, count: Any, weight: Callable[[Any, int], Any]) -> Any:
    """The weights at places 0 to count - 1; a single place has weight 1."""
    size = int(count) if isinstance(count, (float, np.floating)) else operator.index(count)
    if size < 0:
        error(
            ValueError,
            f"numpy.{name}",
            "the number of weights must not be negative.",
            got=str(size),
        )
    dtype = dtypes.default_float_dtype()
    return ones(size, dtype) if size <= 1 else weight(arange(size, dtype=dtype), size - 1)


def bartlett(M: int) -> Array:  # noqa: N803  NumPy's name
    """M weights in the shape of a triangle, 0 at both ends.

    Shapes:     -> float[M].
    Source:     mirrors jax.numpy.bartlett.

    Example:
        >>> jnp.bartlett(5)
        Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _window("bartlett", M, lambda n, last: 1 - absolute(2 * n / last - 1))


def blackman(M: int) -> Array:  # noqa: N803  NumPy's name
    """M weights of Blackman's three cosine terms.

    Shapes:     -> float[M].
    Source:     mirrors jax.numpy.blackman.

    Example:
        >>> (100 * jnp.blackman(5)).round()
        Array([ -0.,  34., 100.,  34.,  -0.], dtype=float32)
    """

    def weight(n: Any, last: int) -> Any:
        turn = 2 * math.pi * n / last
        return 0.42 - 0.5 * cos(turn) + 0.08 * cos(2 * turn)

    return _window("blackman", M, weight)


def hamming(M: int) -> Array:  # noqa: N803  NumPy's name
    """M weights of a raised cosine, 0.08 at both ends.

    Shapes:     -> float[M].
    Source:     mirrors jax.numpy.hamming.

    Example:
        >>> (100 * jnp.hamming(5)).round()
        Array([  8.,  54., 100.,  54.,   8.], dtype=float32)
    """
    return _window("hamming", M, lambda n, last: 0.54 - 0.46 * cos(2 * math.pi * n / last))


def hanning(M: int) -> Array:  # noqa: N803  NumPy's name
    """M weights of a raised cosine, 0 at both ends.

    Shapes:     -> float[M].
    Source:     mirrors jax.numpy.hanning.

    Example:
        >>> (100 * jnp.hanning(5)).round()
        Array([  0.,  50., 100.,  50.,   0.], dtype=float32)
    """
    return _window("hanning", M, lambda n, last: 0.5 - 0.5 * cos(2 * math.pi * n / last))


def kaiser(M: int, beta: ArrayLike) -> Array:  # noqa: N803  NumPy's name
    """M weights of Kaiser's window, the steeper the larger `beta`.

    Shapes:     beta: T[] -> float[M].
    Source:     mirrors jax.numpy.kaiser.

    Example:
        >>> (100 * jnp.kaiser(5, 4.0)).round()
        Array([  9.,  63., 100.,  63.,   9.], dtype=float32)
    """
    beta = asarray(beta, dtypes.default_float_dtype())

    def weight(n: Any, last: int) -> Any:
        place = 2 * n / last - 1
        return i0(beta * sqrt(1 - place * place)) / i0(beta)

    return _window("kaiser", M, weight)
