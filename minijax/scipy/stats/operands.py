"""What all distributions do to their arguments first, and what several do to a logarithm."""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.lax.binary import bitwise_and, gt
from minijax.lax.unary import exp, expm1, log, log1p, neg
from minijax.numpy.selection import where
from minijax.scipy.special.elementwise import real_operands


def floats(name: str, **arguments: Any) -> Any:
    """Arguments of a function of `scipy.stats` as real floats of one dtype and one rank.

    Raises:
        TypeError: an argument is complex, or no array and no number.
    """
    return real_operands(f"scipy.stats.{name}", **arguments)


def positive(scale: Any, *shapes: Any) -> Any:
    """`scale`, and NaN where it or one of `shapes` is not above zero: no such distribution."""
    exists = gt(scale, 0.0)
    for shape in shapes:
        exists = bitwise_and(exists, gt(shape, 0.0))
    return where(exists, scale, np.nan)


def log_complement(y: Any) -> Any:
    """`log(1 - exp(y))` for y <= 0: the logarithm of the mass on one side from the other's."""
    # Either form is exact where the other is not; at 0 the second has no finite derivative.
    near = gt(y, -0.7)
    return where(near, log(neg(expm1(y))), log1p(neg(exp(where(near, -1.0, y)))))
