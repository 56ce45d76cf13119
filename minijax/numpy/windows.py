"""Window functions: weights that fall off towards both ends."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from minijax.core import dtypes
from minijax.core.errors import message
from minijax.numpy.arithmetic import absolute, sqrt
from minijax.numpy.creation import asarray, ones
from minijax.numpy.elementary import cos, i0
from minijax.numpy.ranges import arange


def _window(name: str, count: Any, weight: Callable[[Any, int], Any]) -> Any:
    """The weights at places 0 to count - 1; a single place has weight 1."""
    size = operator.index(count)
    if size < 0:
        raise ValueError(
            message(f"numpy.{name}", "the number of weights must not be negative.", got=str(size))
        )
    dtype = dtypes.default_float_dtype()
    return ones(size, dtype) if size <= 1 else weight(arange(size, dtype=dtype), size - 1)


def bartlett(M: int) -> Any:  # noqa: N803  NumPy's name
    """M weights in the shape of a triangle, 0 at both ends.  Mirrors jax.numpy.bartlett."""
    return _window("bartlett", M, lambda n, last: 1 - absolute(2 * n / last - 1))


def blackman(M: int) -> Any:  # noqa: N803  NumPy's name
    """M weights of Blackman's three cosine terms.  Mirrors jax.numpy.blackman."""

    def weight(n: Any, last: int) -> Any:
        turn = 2 * math.pi * n / last
        return 0.42 - 0.5 * cos(turn) + 0.08 * cos(2 * turn)

    return _window("blackman", M, weight)


def hamming(M: int) -> Any:  # noqa: N803  NumPy's name
    """M weights of a raised cosine, 0.08 at both ends.  Mirrors jax.numpy.hamming."""
    return _window("hamming", M, lambda n, last: 0.54 - 0.46 * cos(2 * math.pi * n / last))


def hanning(M: int) -> Any:  # noqa: N803  NumPy's name
    """M weights of a raised cosine, 0 at both ends.  Mirrors jax.numpy.hanning."""
    return _window("hanning", M, lambda n, last: 0.5 - 0.5 * cos(2 * math.pi * n / last))


def kaiser(M: int, beta: Any) -> Any:  # noqa: N803  NumPy's name
    """M weights of Kaiser's window, the steeper the larger `beta`.  Mirrors jax.numpy.kaiser."""
    beta = asarray(beta, dtypes.default_float_dtype())

    def weight(n: Any, last: int) -> Any:
        place = 2 * n / last - 1
        return i0(beta * sqrt(1 - place * place)) / i0(beta)

    return _window("kaiser", M, weight)
