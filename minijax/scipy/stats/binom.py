"""The distribution of the number of successes in `n` trials of chance `p`."""

from __future__ import annotations

import numpy as np

from minijax.lax.binary import add, bitwise_or, gt, lt, sub
from minijax.lax.unary import exp, log, neg
from minijax.numpy.one_program import one_program
from minijax.numpy.selection import where
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.scipy.special.gamma_functions import betaln
from minijax.scipy.special.information import xlog1py, xlogy
from minijax.scipy.stats.operands import floats

__all__ = ["logpmf", "pmf"]


@one_program()
def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the mass at `k`.

    Shapes: k: T[r], n: T[s], p: T[t], loc: T[u] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.binom.logpmf (0.10).

    Example:
        >>> minijax.scipy.stats.binom.logpmf(3, 2, 0.5)
        Array(-inf, dtype=float32, weak_type=True)
    """
    k, n, p, loc = floats("binom.logpmf", k=k, n=n, p=p, loc=loc)
    k = sub(k, loc)
    outside = bitwise_or(lt(k, 0.0), gt(k, n))
    k = where(outside, 0.0, k)
    choices = sub(neg(betaln(add(sub(n, k), 1.0), add(k, 1.0))), log(add(n, 1.0)))
    result = add(add(choices, xlogy(k, p)), xlog1py(sub(n, k), neg(p)))
    return where(outside, -np.inf, result)


@one_program()
def pmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The mass at `k`.

    Shapes: k: T[r], n: T[s], p: T[t], loc: T[u] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.binom.pmf (0.10).

    Example:
        >>> minijax.scipy.stats.binom.pmf(3, 2, 0.5)
        Array(0., dtype=float32, weak_type=True)
    """
    return exp(logpmf(k, n, p, loc))


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
