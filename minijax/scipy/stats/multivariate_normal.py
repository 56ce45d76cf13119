"""The normal distribution of vectors, with mean `mean` and covariances `cov`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.lax import linalg
from minijax.lax.unary import exp, log, square
from minijax.numpy import arithmetic, matrices, promotion, reductions, shaping
from minijax.numpy.one_program import one_program
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array

__all__ = ["logpdf", "pdf"]


@one_program(static=("allow_singular",))
def logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: None = None) -> Array:
    """The logarithm of the density at `x`: NaN where `cov` is not positive definite.

    Shapes: x: T[..., k], mean: T[..., k], cov: T[..., k, k] -> T[...]; batches are broadcast.
        With a scalar mean, the density of each element of x; then cov is a variance.
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.multivariate_normal.logpdf (0.10).

    Args:
        x: where.
        mean: the mean.
        cov: the covariances.
        allow_singular: not supported.

    Raises:
        NotImplementedError: allow_singular is given.
        ValueError: the shapes do not fit together.

    Example:
        >>> minijax.scipy.stats.multivariate_normal.logpdf(jnp.inf, 0.0, 1.0)
        Array(-inf, dtype=float32, weak_type=True)
    """
    if allow_singular is not None:
        error(
            NotImplementedError,
            "scipy.stats.multivariate_normal",
            "covariances that are singular are not supported.",
            got={"allow_singular": allow_singular},
            fix="leave allow_singular= away",
        )
    arrays = promotion.promote_dtypes("scipy.stats.multivariate_normal", x, mean, cov)
    x, mean, cov = (promotion.inexact("scipy.stats.multivariate_normal", v) for v in arrays)
    shape, cov_shape = aval_of(mean).shape, aval_of(cov).shape
    if not shape:
        distances = arithmetic.divide(square(arithmetic.subtract(x, mean)), cov)
        return arithmetic.multiply(
            arithmetic.add(distances, log(arithmetic.multiply(cov, 2 * math.pi))), -0.5
        )
    size = shape[-1]
    if not cov_shape:
        distances = arithmetic.divide(square(arithmetic.subtract(x, mean)), cov)
        scale = arithmetic.multiply(log(arithmetic.multiply(cov, 2 * math.pi)), size)
        return arithmetic.multiply(arithmetic.add(reductions.sum(distances, axis=-1), scale), -0.5)
    if len(cov_shape) < 2 or cov_shape[-2:] != (size, size):
        error(
            ValueError,
            "scipy.stats.multivariate_normal",
            "the covariances do not fit the mean.",
            got={"mean": aval_of(mean), "cov": aval_of(cov)},
            expected=f"cov of shape (..., {size}, {size})",
        )
    return _logpdf_of_vectors(arithmetic.subtract(x, mean), cov, size)


def _logpdf_of_vectors(offset: Any, cov: Any, size: int) -> Any:
    """By the triangular factor of the covariances, which takes offsets to independent ones."""
    factor = linalg.cholesky(cov)
    batch = np.broadcast_shapes(aval_of(offset).shape[:-1], aval_of(cov).shape[:-2])
    columns = shaping.expand_dims(shaping.broadcast_to(offset, (*batch, size)), -1)
    factors = shaping.broadcast_to(factor, (*batch, size, size))
    whitened = linalg.triangular_solve(factors, columns, left_side=True, lower=True)
    distance = reductions.sum(square(whitened), axis=(-2, -1))
    diagonal = matrices.diagonal(factor, axis1=-2, axis2=-1)
    half_log = arithmetic.add(
        reductions.sum(log(diagonal), axis=-1), size / 2 * math.log(2 * math.pi)
    )
    return arithmetic.subtract(arithmetic.multiply(distance, -0.5), half_log)


@one_program()
def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array:
    """The density at `x`: NaN where `cov` is not positive definite.

    Shapes: x: T[..., k], mean: T[..., k], cov: T[..., k, k] -> T[...]; batches are broadcast.
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.multivariate_normal.pdf (0.10).

    Raises:
        ValueError: the shapes do not fit together.

    Example:
        >>> minijax.scipy.stats.multivariate_normal.pdf(jnp.inf, 0.0, 1.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return exp(logpdf(x, mean, cov))


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
