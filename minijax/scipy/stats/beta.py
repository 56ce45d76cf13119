"""The beta distribution of shapes `a` and `b`, from `loc` to `loc + scale`."""

from __future__ import annotations

import numpy as np

from minijax.lax.binary import add, bitwise_or, div, gt, lt, sub
from minijax.lax.unary import exp, log, neg
from minijax.numpy.arithmetic import clip
from minijax.numpy.one_program import one_program
from minijax.numpy.selection import where
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.scipy.special.gamma_functions import betainc, betaln
from minijax.scipy.special.information import xlog1py, xlogy
from minijax.scipy.stats.operands import floats, positive

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


@one_program()
def logpdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """The logarithm of the density at `x`.

    Shapes: x: T[r], a: T[s], b: T[t], loc: T[u], scale: T[v] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.beta.logpdf (0.10).

    Example:
        >>> minijax.scipy.stats.beta.logpdf(2.0, 1.0, 1.0)
        Array(-inf, dtype=float32, weak_type=True)
    """
    x, a, b, loc, scale = floats("beta.logpdf", x=x, a=a, b=b, loc=loc, scale=scale)
    scale = positive(scale, a, b)
    z = div(sub(x, loc), scale)
    outside = bitwise_or(lt(z, 0.0), gt(z, 1.0))
    z = where(outside, 0.5, z)
    result = sub(
        sub(add(xlogy(sub(a, 1.0), z), xlog1py(sub(b, 1.0), neg(z))), betaln(a, b)), log(scale)
    )
    return where(outside, -np.inf, result)


@one_program()
def pdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """The density at `x`.

    Shapes: x: T[r], a: T[s], b: T[t], loc: T[u], scale: T[v] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.beta.pdf (0.10).

    Example:
        >>> minijax.scipy.stats.beta.pdf(2.0, 1.0, 1.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return exp(logpdf(x, a, b, loc, scale))


@one_program()
def cdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """The mass up to `x`.

    Shapes: x: T[r], a: T[s], b: T[t], loc: T[u], scale: T[v] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.beta.cdf (0.10).

    Example:
        >>> minijax.scipy.stats.beta.cdf(1.0, 1.0, 1.0)
        Array(1., dtype=float32, weak_type=True)
    """
    x, a, b, loc, scale = floats("beta.cdf", x=x, a=a, b=b, loc=loc, scale=scale)
    scale = positive(scale, a, b)
    return betainc(a, b, clip(div(sub(x, loc), scale), 0.0, 1.0))


@one_program()
def logcdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """The logarithm of the mass up to `x`.

    Shapes: x: T[r], a: T[s], b: T[t], loc: T[u], scale: T[v] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.beta.logcdf (0.10).

    Example:
        >>> minijax.scipy.stats.beta.logcdf(1.0, 2.0, 3.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return log(cdf(x, a, b, loc, scale))


@one_program()
def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The mass beyond `x`.

    Shapes: x: T[r], a: T[s], b: T[t], loc: T[u], scale: T[v] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.beta.sf (0.10).

    Example:
        >>> minijax.scipy.stats.beta.sf(1.0, 1.0, 1.0)
        Array(0., dtype=float32, weak_type=True)
    """
    x, a, b, loc, scale = floats("beta.sf", x=x, a=a, b=b, loc=loc, scale=scale)
    scale = positive(scale, a, b)
    return betainc(b, a, sub(1.0, clip(div(sub(x, loc), scale), 0.0, 1.0)))


@one_program()
def logsf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """The logarithm of the mass beyond `x`.

    Shapes: x: T[r], a: T[s], b: T[t], loc: T[u], scale: T[v] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.beta.logsf (0.10).

    Example:
        >>> minijax.scipy.stats.beta.logsf(0.0, 2.0, 3.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return log(sf(x, a, b, loc, scale))


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
