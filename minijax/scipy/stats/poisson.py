"""The Poisson distribution, with mean `mu`, moved by `loc`."""

from __future__ import annotations

import numpy as np

from minijax.lax.binary import add, bitwise_and, bitwise_or, eq, lt, ne, sub
from minijax.lax.unary import exp, floor
from minijax.numpy.one_program import one_program
from minijax.numpy.selection import where
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.scipy.special.gamma_functions import gammaincc, gammaln
from minijax.scipy.special.information import xlogy
from minijax.scipy.stats.operands import floats
from minijax.scipy.stats.poisson_entropy import poisson_entropy_p

__all__ = ["cdf", "entropy", "logpmf", "pmf"]


@one_program()
def logpmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the mass at `k`.

    Shapes: k: T[r], mu: T[s], loc: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.poisson.logpmf (0.10).

    Example:
        >>> minijax.scipy.stats.poisson.logpmf(-1, 2.0)
        Array(-inf, dtype=float32, weak_type=True)
    """
    k, mu, loc = floats("poisson.logpmf", k=k, mu=mu, loc=loc)
    k = sub(k, loc)
    outside = bitwise_or(lt(k, 0.0), bitwise_and(ne(k, floor(k)), eq(k, k)))
    k = where(outside, 0.0, k)
    result = sub(sub(xlogy(k, mu), gammaln(add(k, 1.0))), mu)
    return where(outside, -np.inf, result)


@one_program()
def pmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The mass at `k`.

    Shapes: k: T[r], mu: T[s], loc: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.poisson.pmf (0.10).

    Example:
        >>> minijax.scipy.stats.poisson.pmf(-1, 2.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return exp(logpmf(k, mu, loc))


@one_program()
def cdf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The mass up to `k`.

    Shapes: k: T[r], mu: T[s], loc: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.poisson.cdf (0.10).

    Example:
        >>> minijax.scipy.stats.poisson.cdf(-1, 2.0)
        Array(0., dtype=float32, weak_type=True)
    """
    k, mu, loc = floats("poisson.cdf", k=k, mu=mu, loc=loc)
    k = sub(k, loc)
    outside = lt(k, 0.0)
    mass = gammaincc(add(floor(where(outside, 0.0, k)), 1.0), mu)
    return where(outside, 0.0, mass)


@one_program()
def entropy(mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The entropy in nats.

    It does not move with `loc`.

    Shapes: mu: T[r], loc: T[s] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.poisson.entropy (0.10).

    Example:
        >>> minijax.scipy.stats.poisson.entropy(0.0)
        Array(4.7683716e-07, dtype=float32, weak_type=True)
    """
    mu, loc = floats("poisson.entropy", mu=mu, loc=loc)
    return poisson_entropy_p.bind(mu)


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
