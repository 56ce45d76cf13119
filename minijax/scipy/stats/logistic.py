"""The logistic distribution, with mean `loc`."""

from __future__ import annotations

from minijax.lax.binary import add, div, mul, sub
from minijax.lax.unary import abs, exp, log, log1p, logistic, neg
from minijax.numpy.one_program import one_program
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.scipy.special.information import logit
from minijax.scipy.stats.operands import floats

__all__ = ["cdf", "isf", "logpdf", "pdf", "ppf", "sf"]


@one_program()
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density at `x`.

    Shapes: x: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.logistic.logpdf (0.10).

    Example:
        >>> minijax.scipy.stats.logistic.logpdf(jnp.inf)
        Array(-inf, dtype=float32, weak_type=True)
    """
    x, loc, scale = floats("logistic.logpdf", x=x, loc=loc, scale=scale)
    z = abs(div(sub(x, loc), scale))
    return neg(add(add(z, mul(log1p(exp(neg(z))), 2.0)), log(scale)))


@one_program()
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density at `x`.

    Shapes: x: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.logistic.pdf (0.10).

    Example:
        >>> minijax.scipy.stats.logistic.pdf(0.0)
        Array(0.25, dtype=float32, weak_type=True)
    """
    return exp(logpdf(x, loc, scale))


@one_program()
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The mass up to `x`.

    Shapes: x: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.logistic.cdf (0.10).

    Example:
        >>> minijax.scipy.stats.logistic.cdf(0.0)
        Array(0.5, dtype=float32, weak_type=True)
    """
    x, loc, scale = floats("logistic.cdf", x=x, loc=loc, scale=scale)
    return logistic(div(sub(x, loc), scale))


@one_program()
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The mass beyond `x`.

    Shapes: x: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.logistic.sf (0.10).

    Example:
        >>> minijax.scipy.stats.logistic.sf(0.0)
        Array(0.5, dtype=float32, weak_type=True)
    """
    x, loc, scale = floats("logistic.sf", x=x, loc=loc, scale=scale)
    return logistic(div(sub(loc, x), scale))


@one_program()
def ppf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Below which number the mass is `x`: the inverse of `cdf`.

    Shapes: x: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.logistic.ppf (0.10).

    Example:
        >>> minijax.scipy.stats.logistic.ppf(0.5, loc=3.0)
        Array(3., dtype=float32, weak_type=True)
    """
    x, loc, scale = floats("logistic.ppf", x=x, loc=loc, scale=scale)
    return add(mul(logit(x), scale), loc)


@one_program()
def isf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Beyond which number the mass is `x`: the inverse of `sf`.

    Shapes: x: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.logistic.isf (0.10).

    Example:
        >>> minijax.scipy.stats.logistic.isf(0.5, loc=3.0)
        Array(3., dtype=float32, weak_type=True)
    """
    x, loc, scale = floats("logistic.isf", x=x, loc=loc, scale=scale)
    return sub(loc, mul(logit(x), scale))


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
