"""Dirichlet's distribution of shares that sum to 1, with concentrations `alpha`."""

from __future__ import annotations

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.lax.binary import add, bitwise_and, lt, sub
from minijax.lax.shape import concatenate
from minijax.lax.unary import abs, exp
from minijax.numpy import reductions, shaping
from minijax.numpy.one_program import one_program
from minijax.numpy.selection import where
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.scipy.special.gamma_functions import gammaln
from minijax.scipy.special.information import xlogy
from minijax.scipy.stats.operands import floats

__all__ = ["logpdf", "pdf"]


@one_program()
def logpdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """The logarithm of the density at `x`: -inf where shares are negative or do not sum to 1.

    Shapes: x: T[n, *s], alpha: T[n] -> T[s]; the last of the n shares may be left out.
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.dirichlet.logpdf (0.10).

    Raises:
        ValueError: alpha is not one-dimensional, or x has not got n or n - 1 shares.

    Example:
        >>> minijax.scipy.stats.dirichlet.logpdf(jnp.array([0.5, 0.6]), jnp.ones(2))
        Array(-inf, dtype=float32)
    """
    shape, count = aval_of(x).shape, aval_of(alpha).shape
    if len(count) != 1:
        error(
            ValueError,
            "scipy.stats.dirichlet",
            "alpha is not one-dimensional.",
            got={"alpha": aval_of(alpha)},
            fix="minijax.vmap over the batch",
        )
    if not shape or shape[0] not in (count[0], count[0] - 1):
        error(
            ValueError,
            "scipy.stats.dirichlet",
            "the shares do not fit alpha.",
            got={"x": aval_of(x), "alpha": aval_of(alpha)},
            expected="as many shares, or one fewer, along the first dimension of x",
        )
    shares, alphas = floats("dirichlet.logpdf", x=x), floats("dirichlet.logpdf", alpha=alpha)
    dtype = dtypes.result_type(shares[0], alphas[0])
    x, alpha = shares[0].astype(dtype), alphas[0].astype(dtype)
    if shape[0] != count[0]:
        rest = sub(1.0, reductions.sum(x, axis=0, keepdims=True))
        x = concatenate([x, rest], 0)
    weights = shaping.reshape(alpha, (*count, *[1] * (len(shape) - 1)))
    constant = sub(gammaln(reductions.sum(alpha)), reductions.sum(gammaln(alpha)))
    density = add(reductions.sum(xlogy(sub(weights, 1.0), x), axis=0), constant)
    sums = abs(sub(reductions.sum(x, axis=0), 1.0))
    proper = bitwise_and(reductions.all(lt(0.0, x), axis=0), lt(sums, 1e-6))
    return where(proper, density, -np.inf)


@one_program()
def pdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """The density at `x`: 0 where shares are negative or do not sum to 1.

    Shapes: x: T[n, *s], alpha: T[n] -> T[s]; the last of the n shares may be left out.
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.dirichlet.pdf (0.10).

    Raises:
        ValueError: alpha is not one-dimensional, or x has not got n or n - 1 shares.

    Example:
        >>> minijax.scipy.stats.dirichlet.pdf(jnp.array([0.5, 0.6]), jnp.ones(2))
        Array(0., dtype=float32)
    """
    return exp(logpdf(x, alpha))


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
