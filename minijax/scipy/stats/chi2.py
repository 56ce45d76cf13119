"""The distribution of the sum of `df` squares of standard normal variables."""

from __future__ import annotations

import numpy as np

from minijax.lax.binary import div, le, lt, mul, sub
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
def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density at `x`.

    Shapes: x: T[r], df: T[s], loc: T[t], scale: T[u] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.chi2.logpdf (0.10).

    Example:
        >>> minijax.scipy.stats.chi2.logpdf(-1.0, 2.0)
        Array(-inf, dtype=float32, weak_type=True)
    """
    x, df, loc, scale = floats("chi2.logpdf", x=x, df=df, loc=loc, scale=scale)
    scale = positive(scale, df)
    z = div(sub(x, loc), mul(scale, 2.0))
    outside = lt(z, 0.0)
    z = where(outside, 1.0, z)
    result = sub(
        sub(sub(xlogy(sub(mul(df, 0.5), 1.0), z), z), gammaln(mul(df, 0.5))), log(mul(scale, 2.0))
    )
    return where(outside, -np.inf, result)


@one_program()
def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density at `x`.

    Shapes: x: T[r], df: T[s], loc: T[t], scale: T[u] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.chi2.pdf (0.10).

    Example:
        >>> minijax.scipy.stats.chi2.pdf(-1.0, 2.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return exp(logpdf(x, df, loc, scale))


@one_program()
def cdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The mass up to `x`.

    Shapes: x: T[r], df: T[s], loc: T[t], scale: T[u] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.chi2.cdf (0.10).

    Example:
        >>> minijax.scipy.stats.chi2.cdf(0.0, 2.0)
        Array(0., dtype=float32, weak_type=True)
    """
    x, df, loc, scale = floats("chi2.cdf", x=x, df=df, loc=loc, scale=scale)
    scale = positive(scale, df)
    z = div(sub(x, loc), mul(scale, 2.0))
    below = le(z, 0.0)
    return where(below, 0.0, gammainc(mul(df, 0.5), where(below, 1.0, z)))


@one_program()
def logcdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the mass up to `x`.

    Shapes: x: T[r], df: T[s], loc: T[t], scale: T[u] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.chi2.logcdf (0.10).

    Example:
        >>> minijax.scipy.stats.chi2.logcdf(jnp.inf, 2.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return log(cdf(x, df, loc, scale))


@one_program()
def sf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The mass beyond `x`.

    Shapes: x: T[r], df: T[s], loc: T[t], scale: T[u] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.chi2.sf (0.10).

    Example:
        >>> minijax.scipy.stats.chi2.sf(0.0, 2.0)
        Array(1., dtype=float32, weak_type=True)
    """
    x, df, loc, scale = floats("chi2.sf", x=x, df=df, loc=loc, scale=scale)
    scale = positive(scale, df)
    z = div(sub(x, loc), mul(scale, 2.0))
    below = le(z, 0.0)
    return where(below, 1.0, gammaincc(mul(df, 0.5), where(below, 1.0, z)))


@one_program()
def logsf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the mass beyond `x`.

    Shapes: x: T[r], df: T[s], loc: T[t], scale: T[u] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.chi2.logsf (0.10).

    Example:
        >>> minijax.scipy.stats.chi2.logsf(0.0, 2.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return log(sf(x, df, loc, scale))


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
