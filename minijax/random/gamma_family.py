"""Distributions made of gamma samples, with the figures of `jax.random`.

Input: a key, parameters, a shape, a dtype.  Output: samples.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.core.aval import Shape, aval_of, canonicalize_shape
from minijax.core.errors import error
from minijax.lax import binary, reduction, unary
from minijax.lax import shape as lax_shape
from minijax.numpy import arithmetic
from minijax.numpy.one_program import one_program
from minijax.numpy.promotion import check_array
from minijax.random.discrete import rademacher_samples
from minijax.random.distributions import (
    check_float,
    check_shape,
    converted,
    exponential_samples,
    normal_samples,
    program,
    sampler,
    scalar,
    split_keys,
)
from minijax.random.gamma import gamma_samples
from minijax.random.parametric import check_params, fitted
from minijax.runtime.annotations import ArrayLike, DTypeLike, ShapeLike, ShardingLike
from minijax.runtime.array import Array


@sampler("beta")
def beta(
    key: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Samples of the beta distribution on [0, 1], with density x**(a - 1) * (1 - x)**(b - 1) / B.

    A sample is the share of one gamma variable in the sum of two.

    Shapes:     key[], float[s], float[s] -> float[shape], by default that of the parameters.
    Dtypes:     floating.
    Derivative: by both parameters, through `loggamma`.
    Source:     mirrors jax.random.beta (0.10).

    Raises:
        TypePromotionError: the dtype cannot hold a parameter.
        ValueError: the dtype is no float, or the parameters do not fit the shape.

    Example:
        >>> samples = minijax.random.beta(minijax.random.key(0), 2.0, 6.0, (1000,))
        >>> bool(abs(samples.mean() - 0.25) < 0.02)
        True
    """
    wanted = check_float("beta", dtype)
    check_params("beta", wanted, a, b)
    return _beta(key, a, b, check_shape("beta", shape, a, b), wanted)


@program
def _beta(key: Any, a: Any, b: Any, dims: Shape, dtype: Any) -> Any:
    keys = split_keys(key)
    logs = [gamma_samples(k, x, dims, dtype, True) for k, x in zip(keys, (a, b), strict=True)]
    largest = binary.max(*logs)
    first, second = (unary.exp(binary.sub(x, largest)) for x in logs)
    return binary.div(first, binary.add(first, second))


@sampler("chisquare")
def chisquare(
    key: ArrayLike,
    df: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Samples of the chi-square distribution: sums of the squares of `df` standard normal numbers.

    Shapes:     key[], float[s] -> float[shape], by default that of `df`.
    Dtypes:     floating.
    Derivative: by `df`, through `loggamma`.
    Source:     mirrors jax.random.chisquare (0.10).

    Raises:
        TypePromotionError: the dtype cannot hold `df`.
        ValueError: the dtype is no float, or `df` does not fit the shape.

    Example:
        >>> samples = minijax.random.chisquare(minijax.random.key(0), 3.0, (1000,))
        >>> bool(abs(samples.mean() - 3.0) < 0.3)
        True
    """
    wanted = check_float("chisquare", dtype)
    check_params("chisquare", wanted, df)
    return chisquare_samples(key, df, check_shape("chisquare", shape, df), wanted)


@program
def chisquare_samples(key: Any, df: Any, dims: Shape, dtype: Any) -> Any:
    """Chi-square samples, for checked arguments: twice gamma samples of half the parameter."""
    two = scalar(2, dtype)
    logs = gamma_samples(key, binary.div(converted(df, dtype), two), dims, dtype, True)
    return binary.mul(unary.exp(logs), two)


@sampler("f")
def f(
    key: ArrayLike,
    dfnum: ArrayLike,
    dfden: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Samples of the F distribution: the ratio of two chi-square means.

    Shapes:     key[], float[s], float[s] -> float[shape], by default that of the parameters.
    Dtypes:     floating.
    Derivative: by both parameters, through `loggamma`.
    Source:     mirrors jax.random.f (0.10).

    Raises:
        TypePromotionError: the dtype cannot hold a parameter.
        ValueError: the dtype is no float, or the parameters do not fit the shape.

    Example:
        >>> samples = minijax.random.f(minijax.random.key(0), 4.0, 12.0, (2000,))
        >>> bool(abs(samples.mean() - 1.2) < 0.1)
        True
    """
    wanted = check_float("f", dtype)
    check_params("f", wanted, dfnum, dfden)
    return _f(key, dfnum, dfden, check_shape("f", shape, dfnum, dfden), wanted)


@program
def _f(key: Any, dfnum: Any, dfden: Any, dims: Shape, dtype: Any) -> Any:
    # The second key makes the numerator.
    denominator, numerator = (
        binary.div(chisquare_samples(k, df, dims, dtype), fitted(df, dims, dtype))
        for k, df in zip(split_keys(key), (dfden, dfnum), strict=True)
    )
    return binary.div(numerator, denominator)


@sampler("t")
def t(
    key: ArrayLike,
    df: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Samples of Student's t distribution: a normal number over the root of a chi-square mean.

    Shapes:     key[], float[s] -> float[shape], by default that of `df`.
    Dtypes:     floating.
    Derivative: by `df`, through `gamma`.
    Source:     mirrors jax.random.t (0.10); Student, "The probable error of a mean" (1908).

    Raises:
        TypePromotionError: the dtype cannot hold `df`.
        ValueError: the dtype is no float, or `df` does not fit the shape.

    Example:
        >>> samples = minijax.random.t(minijax.random.key(0), 8.0, (1000,))
        >>> bool(abs(samples.mean()) < 0.1)
        True
    """
    wanted = check_float("t", dtype)
    check_params("t", wanted, df)
    return _t(key, df, check_shape("t", shape, df), wanted)


@program
def _t(key: Any, df: Any, dims: Shape, dtype: Any) -> Any:
    first, second = split_keys(key)
    normal = normal_samples(first, dims, dtype)
    half = binary.div(fitted(df, dims, dtype), scalar(2, dtype))
    gammas = gamma_samples(second, half, dims, dtype, False)
    return binary.mul(normal, unary.sqrt(binary.div(half, gammas)))


@sampler("dirichlet")
def dirichlet(
    key: ArrayLike,
    alpha: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Samples of the Dirichlet distribution: random probabilities of k outcomes, which sum to 1.

    Shapes:     key[], float[s, k] -> float[shape, k], where `shape` is s by default.
    Dtypes:     floating; parameters are converted.
    Derivative: by `alpha`, through `loggamma`.
    Source:     mirrors jax.random.dirichlet (0.10).

    Args:
        key: a random key.
        alpha: the parameters, along the last axis.
        shape: of the samples, without their last dimension.
        dtype: of the samples.
        out_sharding: how the samples are split over a mesh.

    Raises:
        ValueError: the dtype is no float, or `alpha` is a scalar or does not fit the shape.

    Example:
        >>> p = minijax.random.dirichlet(minijax.random.key(0), jnp.ones(4), (3,))
        >>> p.shape, [round(float(x), 5) for x in p.sum(1)]
        ((3, 4), [1.0, 1.0, 1.0])
    """
    wanted = check_float("dirichlet", dtype)
    alpha = check_array("dirichlet", alpha)
    aval = aval_of(alpha)
    if not aval.ndim:
        error(
            ValueError,
            "random.dirichlet",
            "the parameters need an axis of outcomes.",
            got={"alpha": aval},
        )
    batch = np.broadcast_to(np.zeros((), bool), aval.shape[:-1])
    dims = check_shape("dirichlet", shape, batch)
    return _dirichlet(key, alpha, (*dims, aval.shape[-1]), wanted)


@program
def _dirichlet(key: Any, alpha: Any, dims: Shape, dtype: Any) -> Any:
    logs = gamma_samples(key, alpha, dims, dtype, True)
    last = len(dims) - 1

    def spread(x: Any) -> Any:
        return lax_shape.broadcast_in_dim(x, dims, range(last))

    largest = unary.stop_gradient(reduction.reduce_max(logs, (last,)))
    shares = unary.exp(binary.sub(logs, spread(largest)))
    return binary.div(shares, spread(reduction.reduce_sum(shares, (last,))))


@sampler("generalized_normal")
def generalized_normal(
    key: ArrayLike,
    p: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Samples with a density proportional to exp(-|x|**p): for p = 2 normal, for p = 1 Laplace's.

    Shapes:     key[], float[s] -> float[shape].
    Dtypes:     floating.
    Derivative: by `p`, through `gamma`.
    Source:     mirrors jax.random.generalized_normal (0.10).

    Raises:
        ValueError: the dtype is no float, or `p` does not fit the shape.

    Example:
        >>> samples = minijax.random.generalized_normal(minijax.random.key(0), 1.0, (1000,))
        >>> bool(abs(abs(samples).mean() - 1.0) < 0.1)
        True
    """
    wanted = check_float("generalized_normal", dtype)
    return generalized_normal_samples(key, p, check_shape("generalized_normal", shape, p), wanted)


@program
def generalized_normal_samples(key: Any, p: Any, dims: Shape, dtype: Any) -> Any:
    """Generalized normal samples, for checked arguments: roots of gamma samples, with a sign."""
    first, second = split_keys(key)
    inverse = converted(arithmetic.divide(1.0, p), dtype)
    sizes = arithmetic.power(gamma_samples(first, inverse, dims, dtype, False), inverse)
    return binary.mul(rademacher_samples(second, dims, dtype), sizes)


@sampler("ball")
def ball(
    key: ArrayLike,
    d: int,
    p: float = 2,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Uniform samples from the unit ball of the p-norm in `d` dimensions.

    Shapes:     key[], int, float[] -> float[shape, d].
    Dtypes:     floating.
    Derivative: by `p`, through `gamma`.
    Source:     mirrors jax.random.ball (0.10); Barthe, Guédon, Mendelson and Naor, "A probabilistic
        approach to the geometry of the ℓₚⁿ-ball" (2005).

    Raises:
        TypeError: `d` is no integer, or negative.
        ValueError: the dtype is no float.

    Example:
        >>> points = minijax.random.ball(minijax.random.key(0), 3, shape=(1000,))
        >>> points.shape, bool(((points**2).sum(1) <= 1.0).all())
        ((1000, 3), True)
    """
    wanted = check_float("ball", dtype)
    dims = canonicalize_shape(shape, "random.ball shape")
    (size,) = canonicalize_shape((d,), "random.ball d")
    return _ball(key, p, dims, size, wanted)


@one_program(static=("dims", "size", "dtype"))
def _ball(key: Any, p: Any, dims: Shape, size: int, dtype: Any) -> Any:
    first, second = split_keys(key)
    points = generalized_normal_samples(first, p, (*dims, size), dtype)
    powers = arithmetic.power(unary.abs(points), converted(p, dtype))
    total = reduction.reduce_sum(powers, (len(dims),))
    total = binary.add(total, exponential_samples(second, dims, dtype))
    inverse = converted(arithmetic.divide(1.0, p), dtype)
    norms = arithmetic.power(total, inverse)
    return binary.div(points, lax_shape.broadcast_in_dim(norms, (*dims, size), range(len(dims))))
