"""The Cauchy distribution wrapped around a circle, of angles from 0 to 2π."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minijax.lax.binary import add, bitwise_and, bitwise_or, gt, lt, mul, sub
from minijax.lax.unary import cos, exp, log, log1p, neg, square
from minijax.numpy.one_program import one_program
from minijax.numpy.selection import where
from minijax.scipy.stats.operands import floats

__all__ = ["logpdf", "pdf"]


@one_program()
def logpdf(x: Any, c: Any) -> Any:
    """The logarithm of the density at `x`.

    Shapes: x: T[r], c: T[s] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.wrapcauchy.logpdf (0.10).

    Example:
        >>> minijax.scipy.stats.wrapcauchy.logpdf(-1.0, 0.5)
        Array(-inf, dtype=float32, weak_type=True)
    """
    x, c = floats("wrapcauchy.logpdf", x=x, c=c)
    outside = bitwise_or(lt(x, 0.0), gt(x, 2 * math.pi))
    density = sub(
        sub(log1p(neg(square(c))), log(sub(add(1.0, square(c)), mul(mul(2.0, c), cos(x))))),
        math.log(2 * math.pi),
    )
    density = where(outside, -np.inf, density)
    return where(bitwise_and(gt(c, 0.0), lt(c, 1.0)), density, np.nan)


@one_program()
def pdf(x: Any, c: Any) -> Any:
    """The density at `x`.

    Shapes: x: T[r], c: T[s] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.wrapcauchy.pdf (0.10).

    Example:
        >>> minijax.scipy.stats.wrapcauchy.pdf(-1.0, 0.5)
        Array(0., dtype=float32, weak_type=True)
    """
    return exp(logpdf(x, c))


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
