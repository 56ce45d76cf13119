"""The distribution of von Mises: the normal one of angles, with concentration `kappa`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minijax.lax.binary import lt, mul, sub
from minijax.lax.unary import cos, exp, log
from minijax.numpy.one_program import one_program
from minijax.numpy.selection import where
from minijax.scipy.special.bessel import i0e
from minijax.scipy.stats.operands import floats

__all__ = ["logpdf", "pdf"]


@one_program()
def logpdf(x: Any, kappa: Any) -> Any:
    """The logarithm of the density at `x`.

    Shapes: x: T[r], kappa: T[s] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.vonmises.logpdf (0.10).

    Example:
        >>> minijax.scipy.stats.vonmises.logpdf(0.0, jnp.inf)
        Array(nan, dtype=float32, weak_type=True)
    """
    x, kappa = floats("vonmises.logpdf", x=x, kappa=kappa)
    kappa = where(lt(kappa, 0.0), np.nan, kappa)
    return sub(mul(kappa, sub(cos(x), 1.0)), log(mul(i0e(kappa), 2.0 * math.pi)))


@one_program()
def pdf(x: Any, kappa: Any) -> Any:
    """The density at `x`.

    Shapes: x: T[r], kappa: T[s] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.vonmises.pdf (0.10).

    Example:
        >>> minijax.scipy.stats.vonmises.pdf(0.0, jnp.inf)
        Array(nan, dtype=float32, weak_type=True)
    """
    return exp(logpdf(x, kappa))


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
