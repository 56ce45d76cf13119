"""Continuous distributions with parameters, with the figures of `jax.random`.

Input: a key, parameters, a shape, a dtype.  Output: samples.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import Shape, aval_of, canonicalize_shape
from minijax.core.errors import error
from minijax.lax import binary, unary
from minijax.lax import shape as lax_shape
from minijax.lax.choice import select
from minijax.numpy import arithmetic
from minijax.random.discrete import rademacher_samples
from minijax.random.distributions import (
    check_float,
    check_inexact,
    check_shape,
    converted,
    exponential_samples,
    maxwell_samples,
    normal_samples,
    program,
    sampler,
    scalar,
    split_keys,
    uniform_samples,
)
from minijax.runtime.annotations import ArrayLike, DTypeLike, ShapeLike, ShardingLike
from minijax.runtime.array import Array


def check_params(name: str, dtype: np.dtype[Any], *params: Any) -> None:
    """Refuses parameters that the dtype of the samples cannot hold.

    Raises:
        TypePromotionError: there is one.
    """
    for param in params:
        if dtypes.result_type(param, dtype) != dtype:
            error(
                dtypes.TypePromotionError,
                f"random.{name}",
                "the dtype of the samples cannot hold that of a parameter.",
                got={"parameter": aval_of(param), "dtype": dtype},
                fix="parameter.astype(dtype)",
            )


def fitted(param: Any, dims: Shape, dtype: np.dtype[Any]) -> Any:
    """A parameter in the dtype of the samples; one that is no scalar has their rank."""
    param = converted(param, dtype)
    return lax_shape.broadcast_to_rank(param, len(dims)) if aval_of(param).ndim else param


@sampler("rayleigh")
def rayleigh(
    key: ArrayLike,
    scale: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Samples of the Rayleigh distribution: norms of normal vectors of length 2.

    Shapes: key[], float[s] -> float[shape], by default that of the scale.
    Source: mirrors jax.random.rayleigh (0.10).

    Raises:
        ValueError: the dtype is no float, or the scale does not fit the shape.

    Example:
        >>> x = jax.random.rayleigh(jax.random.key(0), 2.0, (100_000,))
        >>> (x**2).mean().round(1)
        Array(8., dtype=float32)
    """
    wanted = check_float("rayleigh", dtype)
    check_params("rayleigh", wanted, scale)
    return _rayleigh(key, scale, check_shape("rayleigh", shape, scale), wanted)


@program
def _rayleigh(key: Any, scale: Any, dims: Shape, dtype: Any) -> Any:
    u = uniform_samples(key, scalar(0, dtype), scalar(1, dtype), dims, dtype)
    norms = unary.sqrt(binary.mul(unary.log(u), scalar(-2, dtype)))
    return binary.mul(fitted(scale, dims, dtype), norms)


@sampler("pareto")
def pareto(
    key: ArrayLike,
    b: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Samples of the Pareto distribution of exponent `b`.

    Shapes: key[], float[s] -> float[shape], by default that of `b`.
    Source: mirrors jax.random.pareto (0.10).

    Raises:
        ValueError: the dtype is no float, or the exponent does not fit the shape.

    Example:
        >>> x = jax.random.pareto(jax.random.key(0), 3.0, (100_000,))
        >>> x.min().round(2), (x > 2).mean().round(3)
        (Array(1., dtype=float32), Array(0.125, dtype=float32))
    """
    wanted = check_float("pareto", dtype)
    check_params("pareto", wanted, b)
    return _pareto(key, b, check_shape("pareto", shape, b), wanted)


@program
def _pareto(key: Any, b: Any, dims: Shape, dtype: Any) -> Any:
    logs = exponential_samples(key, dims, dtype)
    return unary.exp(binary.div(logs, fitted(b, dims, dtype)))


@sampler("lognormal")
def lognormal(
    key: ArrayLike,
    sigma: ArrayLike = np.float32(1.0),  # noqa: B008  NumPy's scalars do not change
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Samples whose logarithms are normal with standard deviation `sigma`.

    Shapes: key[], float[s] -> float[shape] or complex[shape], by default that of `sigma`.
    Source: mirrors jax.random.lognormal (0.10).

    Raises:
        ValueError: the dtype is neither float nor complex, or `sigma` does not fit the shape.

    Example:
        >>> x = jax.random.lognormal(jax.random.key(0), 2.0, (100_000,))
        >>> jnp.log(x).std().round(1)
        Array(2., dtype=float32)
    """
    wanted = check_inexact("lognormal", dtype)
    check_params("lognormal", wanted, sigma)
    return _lognormal(key, sigma, check_shape("lognormal", shape, sigma), wanted)


@program
def _lognormal(key: Any, sigma: Any, dims: Shape, dtype: Any) -> Any:
    logs = normal_samples(key, dims, dtype)
    return unary.exp(binary.mul(logs, fitted(sigma, dims, dtype)))


@sampler("triangular")
def triangular(
    key: ArrayLike,
    left: ArrayLike,
    mode: ArrayLike,
    right: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Samples from [left, right] whose density rises to `mode` and falls from there, linearly.

    Shapes: key[], three float[s] -> float[shape], by default that of the parameters.
    Source: mirrors jax.random.triangular (0.10).

    Raises:
        ValueError: the dtype is no float, or the parameters do not fit the shape.

    Example:
        >>> x = jax.random.triangular(jax.random.key(0), 0.0, 1.0, 4.0, (100_000,))
        >>> (x < 1).mean().round(2)
        Array(0.25, dtype=float32)
    """
    wanted = check_float("triangular", dtype)
    check_params("triangular", wanted, left, mode, right)
    dims = check_shape("triangular", shape, left, mode, right)
    return _triangular(key, left, mode, right, dims, wanted)


@program
def _triangular(key: Any, left: Any, mode: Any, right: Any, dims: Shape, dtype: Any) -> Any:
    # The inverse of the distribution function, a square root on each side of the mode.
    left, mode, right = (
        lax_shape.broadcast_to_rank(fitted(x, dims, dtype), len(dims)) for x in (left, mode, right)
    )
    width = binary.sub(right, left)
    below = binary.div(binary.sub(mode, left), width)
    u = uniform_samples(key, scalar(0, dtype), scalar(1, dtype), dims, dtype)
    area = binary.mul(binary.mul(u, width), binary.sub(mode, left))
    rising = binary.add(left, unary.sqrt(area))
    rest = binary.mul(binary.sub(scalar(1, dtype), u), width)
    falling = binary.sub(right, unary.sqrt(binary.mul(rest, binary.sub(right, mode))))
    return select(binary.lt(u, below), rising, falling)


@sampler("wald")
def wald(
    key: ArrayLike,
    mean: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Samples of the Wald (inverse Gaussian) distribution of scale 1.

    Shapes: key[], float[s] -> float[shape], by default that of the mean.
    Source: mirrors jax.random.wald (0.10); Michael, Schucany and Haas, "Generating random
        variates using transformations with multiple roots" (1976).

    Raises:
        ValueError: the dtype is no float, or the mean does not fit the shape.

    Example:
        >>> jax.random.wald(jax.random.key(0), 2.0, (100_000,)).mean().round(1)
        Array(2., dtype=float32)
    """
    wanted = check_float("wald", dtype)
    check_params("wald", wanted, mean)
    return _wald(key, mean, check_shape("wald", shape, mean), wanted)


@program
def _wald(key: Any, mean: Any, dims: Shape, dtype: Any) -> Any:
    first, second = split_keys(key)
    mean = fitted(mean, dims, dtype)
    mean = lax_shape.broadcast_in_dim(mean, dims, range(len(dims) - aval_of(mean).ndim, len(dims)))
    y = unary.integer_pow(normal_samples(first, dims, dtype), 2)
    u = uniform_samples(second, scalar(0, dtype), scalar(1, dtype), dims, dtype)
    mean_squared = unary.integer_pow(mean, 2)
    root = unary.sqrt(
        binary.add(
            binary.mul(binary.mul(scalar(4, dtype), mean), y),
            binary.mul(mean_squared, unary.integer_pow(y, 2)),
        )
    )
    two = scalar(2, dtype)
    middle = binary.add(mean, binary.div(binary.mul(mean_squared, y), two))
    smaller = binary.sub(middle, binary.mul(binary.div(mean, two), root))
    share = binary.div(mean, binary.add(mean, smaller))
    return select(binary.le(u, share), smaller, binary.div(mean_squared, smaller))


@sampler("weibull_min")
def weibull_min(
    key: ArrayLike,
    scale: ArrayLike,
    concentration: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
) -> Array:
    """Samples of the Weibull distribution.

    Shapes: key[], float[s], float[s] -> float of the shapes broadcast together.
    Source: mirrors jax.random.weibull_min (0.10).

    Raises:
        ValueError: the dtype is no float.

    Example:
        >>> x = jax.random.weibull_min(jax.random.key(0), 3.0, 1.0, (100_000,))
        >>> x.mean().round(1)
        Array(3., dtype=float32)
    """
    wanted = check_float("weibull_min", dtype)
    dims = canonicalize_shape(shape, "random.weibull_min shape")
    return _weibull_min(key, scale, concentration, dims, wanted)


@program
def _weibull_min(key: Any, scale: Any, concentration: Any, dims: Shape, dtype: Any) -> Any:
    base = exponential_samples(key, dims, dtype)
    exponent = arithmetic.divide(1.0, concentration)
    exponent = converted(exponent, dtype)
    return arithmetic.multiply(arithmetic.power(base, exponent), scale)


@sampler("double_sided_maxwell")
def double_sided_maxwell(
    key: ArrayLike,
    loc: ArrayLike,
    scale: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
) -> Array:
    """Samples of the Maxwell distribution with a random sign, scaled and moved.

    Shapes: key[], float[s], float[s] -> float[*shape, *s], where `shape` is s by default.
    Source: mirrors jax.random.double_sided_maxwell (0.10).

    Raises:
        ValueError: the dtype is no float, or the parameters do not fit each other.

    Example:
        >>> x = jax.random.double_sided_maxwell(jax.random.key(0), 5.0, 2.0, (100_000,))
        >>> x.mean().round(1), ((x - 5) ** 2).mean().round(0)
        (Array(5., dtype=float32), Array(12., dtype=float32))
    """
    wanted = check_float("double_sided_maxwell", dtype)
    each = check_shape("double_sided_maxwell", None, loc, scale)
    dims = canonicalize_shape(shape, "random.double_sided_maxwell shape") or each
    dims += each
    return _double_sided_maxwell(key, loc, scale, dims, wanted)


@program
def _double_sided_maxwell(key: Any, loc: Any, scale: Any, dims: Shape, dtype: Any) -> Any:
    first, second = split_keys(key)
    norms = maxwell_samples(first, dims, dtype)
    signs = rademacher_samples(second, dims, dtype)
    return arithmetic.add(arithmetic.multiply(binary.mul(signs, norms), scale), loc)
