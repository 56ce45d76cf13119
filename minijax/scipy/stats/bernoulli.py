"""The distribution of one trial that succeeds, giving 1, with chance `p`."""

from __future__ import annotations

import numpy as np

from minijax.lax.binary import add, bitwise_and, bitwise_or, eq, ge, le, lt, ne, sub
from minijax.lax.unary import exp, neg
from minijax.numpy.one_program import one_program
from minijax.numpy.selection import where
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.scipy.special.elementwise import number_like
from minijax.scipy.special.information import xlog1py, xlogy
from minijax.scipy.stats.operands import floats

__all__ = ["cdf", "logpmf", "pmf", "ppf"]


@one_program()
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the mass at `k`.

    Shapes: k: T[r], p: T[s], loc: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.bernoulli.logpmf (0.10).

    Example:
        >>> minijax.scipy.stats.bernoulli.logpmf(jnp.arange(3), 0.5)
        Array([-0.6931472, -0.6931472,       -inf], dtype=float32, weak_type=True)
    """
    k, p, loc = floats("bernoulli.logpmf", k=k, p=p, loc=loc)
    k = sub(k, loc)
    chance = add(xlogy(k, p), xlog1py(sub(1.0, k), neg(p)))
    chance = where(bitwise_or(bitwise_or(eq(k, 0.0), eq(k, 1.0)), ne(k, k)), chance, -np.inf)
    return where(bitwise_and(ge(p, 0.0), le(p, 1.0)), chance, np.nan)


@one_program()
def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The mass at `k`.

    Shapes: k: T[r], p: T[s], loc: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.bernoulli.pmf (0.10).

    Example:
        >>> minijax.scipy.stats.bernoulli.pmf(jnp.arange(3), 0.5)
        Array([0.5, 0.5, 0. ], dtype=float32, weak_type=True)
    """
    return exp(logpmf(k, p, loc))


@one_program()
def cdf(k: ArrayLike, p: ArrayLike) -> Array:
    """The mass up to `k`.

    Shapes: k: T[r], p: T[s] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.bernoulli.cdf (0.10).

    Example:
        >>> minijax.scipy.stats.bernoulli.cdf(jnp.array([-1, 0, 1]), 0.25)
        Array([0.  , 0.75, 1.  ], dtype=float32, weak_type=True)
    """
    k, p = floats("bernoulli.cdf", k=k, p=p)
    inside = bitwise_and(bitwise_and(ge(p, 0.0), le(p, 1.0)), eq(k, k))
    mass = where(lt(k, 0.0), 0.0, where(lt(k, 1.0), sub(1.0, p), 1.0))
    return where(inside, mass, np.nan)


@one_program()
def ppf(q: ArrayLike, p: ArrayLike) -> Array:
    """Below which number the mass is `q`: the inverse of `cdf`.

    Shapes: q: T[r], p: T[s] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.bernoulli.ppf (0.10).

    Example:
        >>> minijax.scipy.stats.bernoulli.ppf(jnp.array([0.5, 0.9]), 0.25)
        Array([0., 1.], dtype=float32)
    """
    q, p = floats("bernoulli.ppf", q=q, p=p)
    inside = bitwise_and(bitwise_and(bitwise_and(ge(p, 0.0), le(p, 1.0)), ge(q, 0.0)), le(q, 1.0))
    least = where(le(q, sub(1.0, p)), 0.0, number_like(1.0, q))
    return where(inside, least, np.nan)


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
