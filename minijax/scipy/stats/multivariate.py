"""Distributions of vectors, as `jax.scipy.stats` has them."""

from __future__ import annotations

import math

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.lax import linalg
from minijax.lax.shape import concatenate
from minijax.lax.unary import abs, exp, log, square
from minijax.numpy import creation, matrices, promotion, reductions, shaping
from minijax.numpy.one_program import one_program
from minijax.numpy.selection import where
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.scipy.special.elementwise import real_operands
from minijax.scipy.special.gamma_functions import gammaln
from minijax.scipy.special.probability import xlogy
from minijax.scipy.stats.template import Distribution


class Dirichlet(Distribution):
    """The Dirichlet distribution of shares that sum to 1, with concentrations `alpha`."""

    _functions = "logpdf pdf"

    @staticmethod
    @one_program()
    def logpdf(x: ArrayLike, alpha: ArrayLike) -> Array:
        """Log of the probability density function.

        It is -inf where shares are negative or do not sum to 1.

        Shapes: x: T[n, *s], alpha: T[n] -> T[s]; the last of the n shares may be left out.
        Dtypes: real; integers and booleans become floats.
        Source: mirrors jax.scipy.stats.dirichlet.logpdf (0.10).

        Raises:
            ValueError: alpha is not one-dimensional, or x does not have n or n - 1 shares.

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
        name = "scipy.stats.dirichlet.logpdf"
        arrays = [*real_operands(name, x=x), *real_operands(name, alpha=alpha)]
        x, alpha = (creation.asarray(a, dtypes.result_type(*arrays)) for a in arrays)
        if shape[0] != count[0]:
            x = concatenate([x, 1.0 - reductions.sum(x, axis=0, keepdims=True)], 0)
        weights = shaping.reshape(alpha, (*count, *[1] * (len(shape) - 1)))
        constant = gammaln(reductions.sum(alpha)) - reductions.sum(gammaln(alpha))
        density = reductions.sum(xlogy(weights - 1.0, x), axis=0) + constant
        sums = abs(reductions.sum(x, axis=0) - 1.0)
        proper = reductions.all(x > 0.0, axis=0) & (sums < 1e-6)
        return where(proper, density, -np.inf)

    @staticmethod
    @one_program()
    def pdf(x: ArrayLike, alpha: ArrayLike) -> Array:
        """Probability density function.

        It is 0 where shares are negative or do not sum to 1.

        Shapes: x: T[n, *s], alpha: T[n] -> T[s]; the last of the n shares may be left out.
        Dtypes: real; integers and booleans become floats.
        Source: mirrors jax.scipy.stats.dirichlet.pdf (0.10).

        Raises:
            ValueError: alpha is not one-dimensional, or x does not have n or n - 1 shares.

        Example:
            >>> minijax.scipy.stats.dirichlet.pdf(jnp.array([0.5, 0.6]), jnp.ones(2))
            Array(0., dtype=float32)
        """
        return exp(dirichlet.logpdf(x, alpha))


class Multinomial(Distribution):
    """The multinomial distribution of the counts of `n` trials with probabilities `p`."""

    _functions = "logpmf pmf"

    @staticmethod
    @one_program()
    def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
        """Log of the probability mass function: -inf where counts do not sum to `n`.

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
        fits = reductions.sum(x, axis=-1) == n
        operands = promotion.promote_all_inexact("scipy.stats.multinomial", x, p)
        counts, p = map(creation.asarray, operands)
        (trials,) = real_operands("scipy.stats.multinomial.logpmf", n=n)
        terms = xlogy(counts, p) - gammaln(counts + 1.0)
        return where(fits, gammaln(trials + 1.0) + reductions.sum(terms, axis=-1), -np.inf)

    @staticmethod
    @one_program()
    def pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
        """Probability mass function: 0 where counts do not sum to `n`.

        Shapes: x: I[..., k], n: I[...], p: T[..., k] -> T[...]; batches are broadcast.
        Dtypes: x and n of integers, p real.
        Source: mirrors jax.scipy.stats.multinomial.pmf (0.10).

        Raises:
            ValueError: x or n is not of integers.

        Example:
            >>> minijax.scipy.stats.multinomial.pmf(jnp.array([1, 1]), 3, jnp.array([0.5, 0.5]))
            Array(0., dtype=float32)
        """
        return exp(multinomial.logpmf(x, n, p))


class MultivariateNormal(Distribution):
    """The multivariate normal distribution with mean `mean` and covariance matrix `cov`."""

    _functions = "logpdf pdf"

    @staticmethod
    @one_program(static=("allow_singular",))
    def logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: None = None) -> Array:
        """Log of the probability density function: NaN where `cov` is not positive definite.

        Shapes: x: T[..., k], mean: T[..., k], cov: T[..., k, k] -> T[...]; batches are broadcast.
            With a scalar mean, the density of each element of x; then cov is a variance.
        Dtypes: real; integers and booleans become floats.
        Source: mirrors jax.scipy.stats.multivariate_normal.logpdf (0.10).

        Args:
            x: the points.
            mean: the mean.
            cov: the covariance matrix.
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
        floats = (promotion.inexact("scipy.stats.multivariate_normal", v) for v in arrays)
        x, mean, cov = map(creation.asarray, floats)
        if not mean.shape:
            return (square(x - mean) / cov + log(cov * (2 * math.pi))) * -0.5
        size = mean.shape[-1]
        if not cov.shape:
            distances = reductions.sum(square(x - mean) / cov, axis=-1)
            return (distances + log(cov * (2 * math.pi)) * size) * -0.5
        if len(cov.shape) < 2 or cov.shape[-2:] != (size, size):
            error(
                ValueError,
                "scipy.stats.multivariate_normal",
                "the covariances do not fit the mean.",
                got={"mean": mean.aval, "cov": cov.aval},
                expected=f"cov of shape (..., {size}, {size})",
            )
        return _normal_logpdf_of_vectors(x - mean, cov, size)

    @staticmethod
    @one_program()
    def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array:
        """Probability density function: NaN where `cov` is not positive definite.

        Shapes: x: T[..., k], mean: T[..., k], cov: T[..., k, k] -> T[...]; batches are broadcast.
        Dtypes: real; integers and booleans become floats.
        Source: mirrors jax.scipy.stats.multivariate_normal.pdf (0.10).

        Raises:
            ValueError: the shapes do not fit together.

        Example:
            >>> minijax.scipy.stats.multivariate_normal.pdf(jnp.inf, 0.0, 1.0)
            Array(0., dtype=float32, weak_type=True)
        """
        return exp(multivariate_normal.logpdf(x, mean, cov))


def _normal_logpdf_of_vectors(offset: Array, cov: Array, size: int) -> Array:
    """By the triangular factor of the covariances, which takes offsets to independent ones."""
    factor = linalg.cholesky(cov)
    batch = np.broadcast_shapes(offset.shape[:-1], cov.shape[:-2])
    columns = shaping.expand_dims(shaping.broadcast_to(offset, (*batch, size)), -1)
    factors = shaping.broadcast_to(factor, (*batch, size, size))
    whitened = linalg.triangular_solve(factors, columns, left_side=True, lower=True)
    distance = reductions.sum(square(whitened), axis=(-2, -1))
    diagonal = matrices.diagonal(factor, axis1=-2, axis2=-1)
    half_log = reductions.sum(log(diagonal), axis=-1) + size / 2 * math.log(2 * math.pi)
    return distance * -0.5 - half_log


dirichlet = Dirichlet("dirichlet")
multinomial = Multinomial("multinomial")
multivariate_normal = MultivariateNormal("multivariate_normal")
