"""Means and scales along whole dimensions, beside softmax and its kin.

Input: arrays.  Output: arrays of the same shape, or reduced.
"""

from __future__ import annotations

import math

from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.lax import binary, unary
from minijax.numpy import arithmetic, reductions, shaping
from minijax.numpy.normalized_exponentials import logsumexp
from minijax.numpy.one_program import one_program
from minijax.numpy.promotion import inexact, strong
from minijax.runtime.annotations import ArrayLike, NamedAxis
from minijax.runtime.array import Array


@one_program(static=("axis", "keepdims"))
def logmeanexp(
    x: ArrayLike, axis: NamedAxis = None, where: ArrayLike | None = None, keepdims: bool = False
) -> Array:
    """log(mean(exp(x))) without overflow.

    Source:     mirrors jax.nn.logmeanexp (0.10).

    Example:
        >>> jax.nn.logmeanexp(jnp.array([1000.0, 1000.0]))
        Array(1000., dtype=float32)
    """
    total = logsumexp(x, axis=axis, where=where, keepdims=keepdims)
    if where is None:
        count = reductions.over("logmeanexp", x, axis, "nn").length(aval_of(x).shape)
        return arithmetic.subtract(total, math.log(count) if count else -math.inf)
    counted = shaping.broadcast_array(where, aval_of(x).shape)
    dtype = aval_of(total).dtype
    number = reductions.sum(counted, axis=axis, keepdims=keepdims, dtype=dtype)
    return binary.sub(total, unary.log(number))


@one_program(static=("axis", "epsilon", "algorithm"))
def standardize(
    x: ArrayLike,
    axis: NamedAxis = -1,
    mean: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-5,
    where: ArrayLike | None = None,
    *,
    algorithm: str = "fast",
) -> Array:
    """(x - mean) / sqrt(variance + epsilon) along `axis`.

    Args:
        x: an array.
        axis: a dimension, several, or None for all.
        mean: computed where None.
        variance: computed where None.
        epsilon: keeps the divisor from 0.
        where: which elements count for the mean and the variance.
        algorithm: "fast" takes the variance from the mean of the squares, "stable" from
            differences to the mean.

    Source: mirrors jax.nn.standardize (0.10).

    Raises:
        ValueError: the algorithm is not known.

    Example:
        >>> jax.nn.standardize(jnp.array([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])).round(2)
        Array([[-1.22,  0.  ,  1.22],
               [-1.22,  0.  ,  1.22]], dtype=float32)
    """
    if algorithm not in ("fast", "stable"):
        error(
            ValueError,
            "nn.standardize",
            f"unknown algorithm {algorithm!r}.",
            expected="'fast' or 'stable'",
        )
    x = strong(inexact("standardize", x))
    if mean is None:
        mean = reductions.mean(x, axis, keepdims=True, where=where)
    if variance is None and algorithm == "fast":
        squares = reductions.mean(unary.square(x), axis, keepdims=True, where=where)
        variance = arithmetic.subtract(squares, arithmetic.square(mean))
        # Rounding may take the difference below 0.
        variance = arithmetic.maximum(variance, 0)
    elif variance is None:
        squares = arithmetic.square(arithmetic.subtract(x, mean))
        variance = reductions.mean(squares, axis, keepdims=True, where=where)
    divisor = unary.rsqrt(arithmetic.add(variance, epsilon))
    return arithmetic.multiply(arithmetic.subtract(x, mean), divisor)
