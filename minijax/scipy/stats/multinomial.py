"""The multinomial distribution of the counts of `n` trials with chances `p`."""

from __future__ import annotations

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.lax.binary import add, sub
from minijax.lax.unary import exp
from minijax.numpy import arithmetic, logic, promotion, reductions
from minijax.numpy.one_program import one_program
from minijax.numpy.selection import where
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.scipy.special.gamma_functions import gammaln
from minijax.scipy.special.information import xlogy
from minijax.scipy.stats.operands import floats

__all__ = ["logpmf", "pmf"]


@one_program()
def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The logarithm of the mass at counts `x`: -inf where they do not sum to `n`.

    Shapes: x: I[..., k], n: I[...], p: T[..., k] -> T[...]; batches are broadcast.
    Dtypes: x and n of integers, p real.
    Source: mirrors jax.scipy.stats.multinomial.logpmf (0.10).

    Raises:
        ValueError: x or n is not of integers.

    Example:
        >>> minijax.scipy.stats.multinomial.logpmf(jnp.array([1, 1]), 3, jnp.array([0.5, 0.5]))
        Array(-inf, dtype=float32)
    """
    for name, value in (("x", x), ("n", n)):
        dtype = aval_of(value).dtype
        if dtype != np.bool_ and not dtypes.issubdtype(dtype, np.integer):
            error(
                ValueError,
                "scipy.stats.multinomial",
                f"{name} is not of integers.",
                got={name: aval_of(value)},
                fix=f"{name}.astype(int)",
            )
    counts, trials = x, n
    x, p = promotion.promote_all_inexact("scipy.stats.multinomial", x, p)
    (n,) = floats("multinomial.logpmf", n=n)
    terms = sub(xlogy(x, p), gammaln(add(x, 1.0)))
    result = arithmetic.add(gammaln(add(n, 1.0)), reductions.sum(terms, axis=-1))
    fits = logic.equal(reductions.sum(counts, axis=-1), trials)
    return where(fits, result, -np.inf)


@one_program()
def pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The mass at counts `x`: 0 where they do not sum to `n`.

    Shapes: x: I[..., k], n: I[...], p: T[..., k] -> T[...]; batches are broadcast.
    Dtypes: x and n of integers, p real.
    Source: mirrors jax.scipy.stats.multinomial.pmf (0.10).

    Raises:
        ValueError: x or n is not of integers.

    Example:
        >>> minijax.scipy.stats.multinomial.pmf(jnp.array([1, 1]), 3, jnp.array([0.5, 0.5]))
        Array(0., dtype=float32)
    """
    return exp(logpmf(x, n, p))


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
