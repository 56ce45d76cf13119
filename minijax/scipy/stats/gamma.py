"""The gamma distribution of shape `a`, from `loc` on."""

from __future__ import annotations

import numpy as np

from minijax.lax.binary import div, le, lt, sub
from minijax.lax.unary import exp, log
from minijax.numpy.one_program import one_program
from minijax.numpy.selection import where
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.scipy.special.gamma_functions import gammainc, gammaincc, gammaln
from minijax.scipy.special.information import xlogy
from minijax.scipy.stats.operands import floats, positive

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


@one_program()
def logpdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density at `x`.

    Shapes: x: T[r], a: T[s], loc: T[t], scale: T[u] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.gamma.logpdf (0.10).

    Example:
        >>> minijax.scipy.stats.gamma.logpdf(-1.0, 2.0)
        Array(-inf, dtype=float32, weak_type=True)
    """
    x, a, loc, scale = floats("gamma.logpdf", x=x, a=a, loc=loc, scale=scale)
    scale = positive(scale, a)
    z = div(sub(x, loc), scale)
    outside = lt(z, 0.0)
    z = where(outside, 1.0, z)
    result = sub(sub(sub(xlogy(sub(a, 1.0), z), z), gammaln(a)), log(scale))
    return where(outside, -np.inf, result)


@one_program()
def pdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density at `x`.

    Shapes: x: T[r], a: T[s], loc: T[t], scale: T[u] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.gamma.pdf (0.10).

    Example:
        >>> minijax.scipy.stats.gamma.pdf(-1.0, 2.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return exp(logpdf(x, a, loc, scale))


@one_program()
def cdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The mass up to `x`.

    Shapes: x: T[r], a: T[s], loc: T[t], scale: T[u] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.gamma.cdf (0.10).

    Example:
        >>> minijax.scipy.stats.gamma.cdf(0.0, 2.0)
        Array(0., dtype=float32, weak_type=True)
    """
    x, a, loc, scale = floats("gamma.cdf", x=x, a=a, loc=loc, scale=scale)
    scale = positive(scale, a)
    z = div(sub(x, loc), scale)
    below = le(z, 0.0)
    return where(below, 0.0, gammainc(a, where(below, 1.0, z)))


@one_program()
def logcdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the mass up to `x`.

    Shapes: x: T[r], a: T[s], loc: T[t], scale: T[u] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.gamma.logcdf (0.10).

    Example:
        >>> minijax.scipy.stats.gamma.logcdf(jnp.inf, 2.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return log(cdf(x, a, loc, scale))


@one_program()
def sf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The mass beyond `x`.

    Shapes: x: T[r], a: T[s], loc: T[t], scale: T[u] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.gamma.sf (0.10).

    Example:
        >>> minijax.scipy.stats.gamma.sf(0.0, 2.0)
        Array(1., dtype=float32, weak_type=True)
    """
    x, a, loc, scale = floats("gamma.sf", x=x, a=a, loc=loc, scale=scale)
    scale = positive(scale, a)
    z = div(sub(x, loc), scale)
    below = le(z, 0.0)
    return where(below, 1.0, gammaincc(a, where(below, 1.0, z)))


@one_program()
def logsf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the mass beyond `x`.

    Shapes: x: T[r], a: T[s], loc: T[t], scale: T[u] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.gamma.logsf (0.10).

    Example:
        >>> minijax.scipy.stats.gamma.logsf(0.0, 2.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return log(sf(x, a, loc, scale))


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
