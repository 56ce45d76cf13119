"""The distribution of the number of failures before the `n`-th success of chance `p`."""

from __future__ import annotations

import numpy as np

from minijax.lax.binary import add, lt, sub
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
    Source: mirrors jax.scipy.stats.nbinom.logpmf (0.10).

    Example:
        >>> minijax.scipy.stats.nbinom.logpmf(-1, 2, 0.5)
        Array(-inf, dtype=float32, weak_type=True)
    """
    k, n, p, loc = floats("nbinom.logpmf", k=k, n=n, p=p, loc=loc)
    k = sub(k, loc)
    outside = lt(k, 0.0)
    k = where(outside, 0.0, k)
    choices = sub(neg(betaln(add(k, 1.0), n)), log(add(k, n)))
    result = add(add(choices, xlogy(n, p)), xlog1py(k, neg(p)))
    return where(outside, -np.inf, result)


@one_program()
def pmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The mass at `k`.

    Shapes: k: T[r], n: T[s], p: T[t], loc: T[u] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.nbinom.pmf (0.10).

    Example:
        >>> minijax.scipy.stats.nbinom.pmf(-1, 2, 0.5)
        Array(0., dtype=float32, weak_type=True)
    """
    return exp(logpmf(k, n, p, loc))


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
