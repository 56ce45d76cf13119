"""The Pareto distribution of shape `b`, from `loc + scale` on."""

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
def logpdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density at `x`.

    Shapes: x: T[r], b: T[s], loc: T[t], scale: T[u] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.pareto.logpdf (0.10).

    Example:
        >>> minijax.scipy.stats.pareto.logpdf(0.5, 1.0)
        Array(-inf, dtype=float32, weak_type=True)
    """
    x, b, loc, scale = floats("pareto.logpdf", x=x, b=b, loc=loc, scale=scale)
    scale = positive(scale)
    z = div(sub(x, loc), scale)
    outside = lt(z, 1.0)
    result = sub(sub(log(b), log(scale)), mul(add(b, 1.0), log(where(outside, 1.0, z))))
    return where(outside, -np.inf, result)


@one_program()
def pdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density at `x`.

    Shapes: x: T[r], b: T[s], loc: T[t], scale: T[u] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.pareto.pdf (0.10).

    Example:
        >>> minijax.scipy.stats.pareto.pdf(1.0, 1.0)
        Array(1., dtype=float32, weak_type=True)
    """
    return exp(logpdf(x, b, loc, scale))


@one_program()
def cdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The mass up to `x`.

    Shapes: x: T[r], b: T[s], loc: T[t], scale: T[u] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.pareto.cdf (0.10).

    Example:
        >>> minijax.scipy.stats.pareto.cdf(1.0, 1.0)
        Array(0., dtype=float32, weak_type=True)
    """
    x, b, loc, scale = floats("pareto.cdf", x=x, b=b, loc=loc, scale=scale)
    scale = positive(scale)
    z = div(sub(x, loc), scale)
    return where(lt(z, 1.0), 0.0, neg(expm1(mul(neg(b), log(where(lt(z, 1.0), 1.0, z))))))


@one_program()
def logcdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the mass up to `x`.

    Shapes: x: T[r], b: T[s], loc: T[t], scale: T[u] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.pareto.logcdf (0.10).

    Example:
        >>> minijax.scipy.stats.pareto.logcdf(jnp.inf, 1.0)
        Array(-0., dtype=float32, weak_type=True)
    """
    x, b, loc, scale = floats("pareto.logcdf", x=x, b=b, loc=loc, scale=scale)
    scale = positive(scale)
    z = div(sub(x, loc), scale)
    below = lt(z, 1.0)
    return where(below, -np.inf, log_complement(mul(neg(b), log(where(below, 2.0, z)))))


@one_program()
def sf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The mass beyond `x`.

    Shapes: x: T[r], b: T[s], loc: T[t], scale: T[u] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.pareto.sf (0.10).

    Example:
        >>> minijax.scipy.stats.pareto.sf(1.0, 1.0)
        Array(1., dtype=float32, weak_type=True)
    """
    x, b, loc, scale = floats("pareto.sf", x=x, b=b, loc=loc, scale=scale)
    scale = positive(scale)
    z = div(sub(x, loc), scale)
    return where(lt(z, 1.0), 1.0, exp(mul(neg(b), log(where(lt(z, 1.0), 1.0, z)))))


@one_program()
def logsf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the mass beyond `x`.

    Shapes: x: T[r], b: T[s], loc: T[t], scale: T[u] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.pareto.logsf (0.10).

    Example:
        >>> minijax.scipy.stats.pareto.logsf(1.0, 1.0)
        Array(-0., dtype=float32, weak_type=True)
    """
    x, b, loc, scale = floats("pareto.logsf", x=x, b=b, loc=loc, scale=scale)
    scale = positive(scale)
    z = div(sub(x, loc), scale)
    return where(lt(z, 1.0), 0.0, mul(neg(b), log(where(lt(z, 1.0), 1.0, z))))


@one_program()
def ppf(q: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Below which number the mass is `q`: the inverse of `cdf`.

    Shapes: q: T[r], b: T[s], loc: T[t], scale: T[u] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.pareto.ppf (0.10).

    Example:
        >>> minijax.scipy.stats.pareto.ppf(0.0, 1.0)
        Array(1., dtype=float32, weak_type=True)
    """
    q, b, loc, scale = floats("pareto.ppf", q=q, b=b, loc=loc, scale=scale)
    scale = positive(scale)
    outside = bitwise_or(lt(q, 0.0), gt(q, 1.0))
    return where(outside, np.nan, add(loc, mul(scale, exp(div(neg(log1p(neg(q))), b)))))


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
