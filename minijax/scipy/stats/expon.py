"""The exponential distribution from `loc` on, with mean `loc + scale`."""

from __future__ import annotations

import numpy as np

from minijax.lax.binary import add, bitwise_or, div, gt, lt, mul, sub
from minijax.lax.unary import exp, expm1, log, log1p, neg
from minijax.numpy.one_program import one_program
from minijax.numpy.selection import where
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.scipy.stats.operands import floats, log_complement, positive

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@one_program()
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density at `x`.

    Shapes: x: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.expon.logpdf (0.10).

    Example:
        >>> minijax.scipy.stats.expon.logpdf(2.0)
        Array(-2., dtype=float32, weak_type=True)
    """
    x, loc, scale = floats("expon.logpdf", x=x, loc=loc, scale=scale)
    scale = positive(scale)
    z = div(sub(x, loc), scale)
    return where(lt(z, 0.0), -np.inf, neg(add(z, log(scale))))


@one_program()
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density at `x`.

    Shapes: x: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.expon.pdf (0.10).

    Example:
        >>> minijax.scipy.stats.expon.pdf(0.0)
        Array(1., dtype=float32, weak_type=True)
    """
    return exp(logpdf(x, loc, scale))


@one_program()
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The mass up to `x`.

    Shapes: x: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.expon.cdf (0.10).

    Example:
        >>> minijax.scipy.stats.expon.cdf(jnp.inf)
        Array(1., dtype=float32, weak_type=True)
    """
    x, loc, scale = floats("expon.cdf", x=x, loc=loc, scale=scale)
    scale = positive(scale)
    z = div(sub(x, loc), scale)
    return where(lt(z, 0.0), 0.0, neg(expm1(neg(z))))


@one_program()
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the mass up to `x`.

    Shapes: x: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.expon.logcdf (0.10).

    Example:
        >>> minijax.scipy.stats.expon.logcdf(0.0)
        Array(-inf, dtype=float32, weak_type=True)
    """
    x, loc, scale = floats("expon.logcdf", x=x, loc=loc, scale=scale)
    scale = positive(scale)
    z = div(sub(x, loc), scale)
    return log_complement(where(lt(z, 0.0), 0.0, neg(z)))


@one_program()
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The mass beyond `x`.

    Shapes: x: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.expon.sf (0.10).

    Example:
        >>> minijax.scipy.stats.expon.sf(0.0)
        Array(1., dtype=float32, weak_type=True)
    """
    x, loc, scale = floats("expon.sf", x=x, loc=loc, scale=scale)
    scale = positive(scale)
    z = div(sub(x, loc), scale)
    return where(lt(z, 0.0), 1.0, exp(neg(z)))


@one_program()
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the mass beyond `x`.

    Shapes: x: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.expon.logsf (0.10).

    Example:
        >>> minijax.scipy.stats.expon.logsf(2.0)
        Array(-2., dtype=float32, weak_type=True)
    """
    x, loc, scale = floats("expon.logsf", x=x, loc=loc, scale=scale)
    scale = positive(scale)
    z = div(sub(x, loc), scale)
    return where(lt(z, 0.0), 0.0, neg(z))


@one_program()
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Below which number the mass is `q`: the inverse of `cdf`.

    Shapes: q: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.expon.ppf (0.10).

    Example:
        >>> minijax.scipy.stats.expon.ppf(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    q, loc, scale = floats("expon.ppf", q=q, loc=loc, scale=scale)
    scale = positive(scale)
    outside = bitwise_or(lt(q, 0.0), gt(q, 1.0))
    return where(outside, np.nan, sub(loc, mul(scale, log1p(neg(q)))))


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
