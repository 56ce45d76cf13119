"""The distribution of the number of trials of chance `p` up to the first success."""

from __future__ import annotations

import numpy as np

from minijax.lax.binary import add, le, sub
from minijax.lax.unary import exp, log, neg
from minijax.numpy.one_program import one_program
from minijax.numpy.selection import where
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.scipy.special.information import xlog1py
from minijax.scipy.stats.operands import floats

__all__ = ["logpmf", "pmf"]


@one_program()
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the mass at `k`.

    Shapes: k: T[r], p: T[s], loc: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.geom.logpmf (0.10).

    Example:
        >>> minijax.scipy.stats.geom.logpmf(0, 0.5)
        Array(-inf, dtype=float32, weak_type=True)
    """
    k, p, loc = floats("geom.logpmf", k=k, p=p, loc=loc)
    k = sub(k, loc)
    result = add(xlog1py(sub(k, 1.0), neg(p)), log(p))
    return where(le(k, 0.0), -np.inf, result)


@one_program()
def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The mass at `k`.

    Shapes: k: T[r], p: T[s], loc: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.geom.pmf (0.10).

    Example:
        >>> minijax.scipy.stats.geom.pmf(jnp.arange(3), 0.5)
        Array([0.  , 0.5 , 0.25], dtype=float32, weak_type=True)
    """
    return exp(logpmf(k, p, loc))


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
