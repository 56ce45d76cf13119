"""The Gumbel distribution of smallest values, with mode `loc`."""

from __future__ import annotations

import numpy as np

from minijax.lax.binary import add, div, eq, mul, sub
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
    Source: mirrors jax.scipy.stats.gumbel_l.logpdf (0.10).

    Example:
        >>> minijax.scipy.stats.gumbel_l.logpdf(0.0)
        Array(-1., dtype=float32, weak_type=True)
    """
    x, loc, scale = floats("gumbel_l.logpdf", x=x, loc=loc, scale=scale)
    scale = positive(scale)
    z = div(sub(x, loc), scale)
    result = sub(sub(z, exp(z)), log(scale))
    # The exponential outgrows z.
    return where(eq(z, np.inf), -np.inf, result)


@one_program()
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density at `x`.

    Shapes: x: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.gumbel_l.pdf (0.10).

    Example:
        >>> minijax.scipy.stats.gumbel_l.pdf(-jnp.inf)
        Array(0., dtype=float32, weak_type=True)
    """
    return exp(logpdf(x, loc, scale))


@one_program()
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The mass up to `x`.

    Shapes: x: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.gumbel_l.cdf (0.10).

    Example:
        >>> minijax.scipy.stats.gumbel_l.cdf(jnp.inf)
        Array(1., dtype=float32, weak_type=True)
    """
    x, loc, scale = floats("gumbel_l.cdf", x=x, loc=loc, scale=scale)
    scale = positive(scale)
    return neg(expm1(neg(exp(div(sub(x, loc), scale)))))


@one_program()
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the mass up to `x`.

    Shapes: x: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.gumbel_l.logcdf (0.10).

    Example:
        >>> minijax.scipy.stats.gumbel_l.logcdf(jnp.inf)
        Array(-0., dtype=float32, weak_type=True)
    """
    x, loc, scale = floats("gumbel_l.logcdf", x=x, loc=loc, scale=scale)
    scale = positive(scale)
    return log_complement(neg(exp(div(sub(x, loc), scale))))


@one_program()
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The mass beyond `x`.

    Shapes: x: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.gumbel_l.sf (0.10).

    Example:
        >>> minijax.scipy.stats.gumbel_l.sf(jnp.inf)
        Array(0., dtype=float32, weak_type=True)
    """
    x, loc, scale = floats("gumbel_l.sf", x=x, loc=loc, scale=scale)
    scale = positive(scale)
    return exp(neg(exp(div(sub(x, loc), scale))))


@one_program()
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the mass beyond `x`.

    Shapes: x: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.gumbel_l.logsf (0.10).

    Example:
        >>> minijax.scipy.stats.gumbel_l.logsf(0.0)
        Array(-1., dtype=float32, weak_type=True)
    """
    x, loc, scale = floats("gumbel_l.logsf", x=x, loc=loc, scale=scale)
    scale = positive(scale)
    return neg(exp(div(sub(x, loc), scale)))


@one_program()
def ppf(p: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Below which number the mass is `p`: the inverse of `cdf`.

    Shapes: p: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.gumbel_l.ppf (0.10).

    Example:
        >>> minijax.scipy.stats.gumbel_l.ppf(0.0)
        Array(-inf, dtype=float32, weak_type=True)
    """
    p, loc, scale = floats("gumbel_l.ppf", p=p, loc=loc, scale=scale)
    scale = positive(scale)
    return add(loc, mul(scale, log(neg(log1p(neg(p))))))


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
