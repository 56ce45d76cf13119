"""The normal distribution, with mean `loc` and standard deviation `scale`."""

from __future__ import annotations

import math

from minijax.lax.binary import add, div, mul, sub
from minijax.lax.unary import exp, log, square
from minijax.numpy.one_program import one_program
from minijax.numpy.promotion import strong
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.scipy.special.normal_distribution import log_ndtr_p, ndtri_p, normal_cdf
from minijax.scipy.stats.operands import floats

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@one_program()
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density at `x`.

    Shapes: x: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.norm.logpdf (0.10).

    Example:
        >>> minijax.scipy.stats.norm.logpdf(jnp.inf)
        Array(-inf, dtype=float32, weak_type=True)
    """
    x, loc, scale = floats("norm.logpdf", x=x, loc=loc, scale=scale)
    z = div(sub(x, loc), scale)
    return sub(mul(square(z), -0.5), log(mul(scale, math.sqrt(2 * math.pi))))


@one_program()
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density at `x`.

    Shapes: x: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.norm.pdf (0.10).

    Example:
        >>> minijax.scipy.stats.norm.pdf(jnp.inf)
        Array(0., dtype=float32, weak_type=True)
    """
    return exp(logpdf(x, loc, scale))


@one_program()
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The mass up to `x`.

    Shapes: x: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.norm.cdf (0.10).

    Example:
        >>> minijax.scipy.stats.norm.cdf(0.0)
        Array(0.5, dtype=float32)
    """
    x, loc, scale = floats("norm.cdf", x=x, loc=loc, scale=scale)
    return normal_cdf(strong(div(sub(x, loc), scale)))


@one_program()
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the mass up to `x`.

    Shapes: x: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.norm.logcdf (0.10).

    Example:
        >>> minijax.scipy.stats.norm.logcdf(jnp.inf)
        Array(-0., dtype=float32)
    """
    x, loc, scale = floats("norm.logcdf", x=x, loc=loc, scale=scale)
    return log_ndtr_p.bind(strong(div(sub(x, loc), scale)))


@one_program()
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The mass beyond `x`.

    Shapes: x: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.norm.sf (0.10).

    Example:
        >>> minijax.scipy.stats.norm.sf(0.0)
        Array(0.5, dtype=float32)
    """
    x, loc, scale = floats("norm.sf", x=x, loc=loc, scale=scale)
    return normal_cdf(strong(div(sub(loc, x), scale)))


@one_program()
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the mass beyond `x`.

    Shapes: x: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.norm.logsf (0.10).

    Example:
        >>> minijax.scipy.stats.norm.logsf(jnp.inf)
        Array(-inf, dtype=float32)
    """
    x, loc, scale = floats("norm.logsf", x=x, loc=loc, scale=scale)
    return log_ndtr_p.bind(strong(div(sub(loc, x), scale)))


@one_program()
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Below which number the mass is `q`: the inverse of `cdf`.

    Shapes: q: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.norm.ppf (0.10).

    Example:
        >>> minijax.scipy.stats.norm.ppf(0.5, loc=3.0)
        Array(3., dtype=float32)
    """
    q, loc, scale = floats("norm.ppf", q=q, loc=loc, scale=scale)
    return add(mul(ndtri_p.bind(strong(q)), scale), loc)


@one_program()
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Beyond which number the mass is `q`: the inverse of `sf`.

    Shapes: q: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.norm.isf (0.10).

    Example:
        >>> minijax.scipy.stats.norm.isf(0.5, loc=3.0)
        Array(3., dtype=float32)
    """
    q, loc, scale = floats("norm.isf", q=q, loc=loc, scale=scale)
    return sub(loc, mul(ndtri_p.bind(strong(q)), scale))


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
