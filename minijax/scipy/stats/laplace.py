"""Laplace's distribution, the difference of two exponential ones, with mean `loc`."""

from __future__ import annotations

from minijax.lax.binary import add, div, le, mul, sub
from minijax.lax.unary import abs, exp, log, neg
from minijax.numpy.one_program import one_program
from minijax.numpy.selection import where
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.scipy.stats.operands import floats

__all__ = ["cdf", "logpdf", "pdf"]


@one_program()
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density at `x`.

    Shapes: x: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.laplace.logpdf (0.10).

    Example:
        >>> minijax.scipy.stats.laplace.logpdf(1.0, 0.0, 0.5)
        Array(-2., dtype=float32, weak_type=True)
    """
    x, loc, scale = floats("laplace.logpdf", x=x, loc=loc, scale=scale)
    z = div(sub(x, loc), scale)
    return neg(add(abs(z), log(mul(scale, 2.0))))


@one_program()
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density at `x`.

    Shapes: x: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.laplace.pdf (0.10).

    Example:
        >>> minijax.scipy.stats.laplace.pdf(0.0)
        Array(0.5, dtype=float32, weak_type=True)
    """
    return exp(logpdf(x, loc, scale))


@one_program()
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The mass up to `x`.

    Shapes: x: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.laplace.cdf (0.10).

    Example:
        >>> minijax.scipy.stats.laplace.cdf(0.0)
        Array(0.5, dtype=float32, weak_type=True)
    """
    x, loc, scale = floats("laplace.cdf", x=x, loc=loc, scale=scale)
    z = div(sub(x, loc), scale)
    low = le(z, 0.0)
    tail = mul(exp(where(low, z, neg(z))), 0.5)
    return where(low, tail, sub(1.0, tail))


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
