"""The binomial distribution of a chance that is distributed by `beta(a, b)` itself."""

from __future__ import annotations

import numpy as np

from minijax.lax.binary import add, bitwise_and, bitwise_or, ge, gt, lt, sub
from minijax.lax.unary import exp, floor, log, neg
from minijax.numpy.one_program import one_program
from minijax.numpy.selection import where
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.scipy.special.gamma_functions import betaln
from minijax.scipy.stats.operands import floats

__all__ = ["logpmf", "pmf"]


@one_program()
def logpmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the mass at `k`.

    Shapes: k: T[r], n: T[s], a: T[t], b: T[u], loc: T[v] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.betabinom.logpmf (0.10).

    Example:
        >>> minijax.scipy.stats.betabinom.logpmf(3, 2, 1.0, 1.0)
        Array(-inf, dtype=float32, weak_type=True)
    """
    k, n, a, b, loc = floats("betabinom.logpmf", k=k, n=n, a=a, b=b, loc=loc)
    k = sub(k, loc)
    outside = bitwise_or(lt(k, 0.0), gt(k, n))
    y = where(outside, 0.0, floor(k))
    choices = sub(neg(betaln(add(sub(n, y), 1.0), add(y, 1.0))), log(add(n, 1.0)))
    result = sub(add(choices, betaln(add(y, a), add(sub(n, y), b))), betaln(a, b))
    result = where(outside, -np.inf, result)
    return where(bitwise_and(bitwise_and(ge(n, 0.0), gt(a, 0.0)), gt(b, 0.0)), result, np.nan)


@one_program()
def pmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The mass at `k`.

    Shapes: k: T[r], n: T[s], a: T[t], b: T[u], loc: T[v] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.betabinom.pmf (0.10).

    Example:
        >>> minijax.scipy.stats.betabinom.pmf(3, 2, 1.0, 1.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return exp(logpmf(k, n, a, b, loc))


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
