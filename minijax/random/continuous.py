"""Continuous distributions, with the figures of `jax.random`.

Input: a key, parameters, a shape, a dtype.  Output: samples.  A distribution is one function: its
body is the formula of samples, and the decorator `distribution` checks what users give before.
Each is one compiled program where nothing is traced, and composes the same operations as JAX, so
that the figures agree.  What is made of gamma samples is in `gamma.py`, integers are in
`discrete.py` and `counts.py`.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from minijax.core import deferral, dtypes
from minijax.core.aval import AbstractValue, Shape, aval_of, canonicalize_shape
from minijax.core.errors import error
from minijax.lax import binary, slicing, special
from minijax.lax import shape as lax_shape
from minijax.lax.binary import select
from minijax.lax.creation import bitcast_convert_type, convert_element_type
from minijax.lax.reduction import reduce_sum
from minijax.lax.unary import complex as from_parts
from minijax.lax.unary import exp, log, log1p, sign, sqrt, stop_gradient, tan
from minijax.numpy import contraction, elementary, matrices, shaping
from minijax.numpy.promotion import broadcast_to, check_array, check_choice, one_program
from minijax.random import keys as random_keys
from minijax.random.keys import FLOAT, INEXACT, distribution, sampler, standard, unchecked
from minijax.runtime.annotations import ArrayLike, DTypeLike, ShapeLike, ShardingLike
from minijax.runtime.array import Array

if TYPE_CHECKING:
    from minijax.lax import linalg
else:
    linalg = deferral.module("minijax.lax.linalg")


def scalar(value: ArrayLike, dtype: DTypeLike | None) -> Any:
    """A number as a NumPy scalar of a dtype."""
    return np.asarray(value).astype(cast(Any, dtype))[()]


def converted(value: ArrayLike, dtype: DTypeLike | None) -> Array:
    """A parameter in a dtype; a number of Python's or NumPy's is converted on the host."""
    if hasattr(value, "aval"):
        return convert_element_type(value, cast(DTypeLike, dtype))
    return cast(Array, scalar(value, dtype))


def fitted(param: ArrayLike, shape: ShapeLike | None, dtype: DTypeLike | None) -> Array:
    """A parameter in the dtype of the samples; one that is not a scalar has their rank."""
    param = converted(param, dtype)
    rank = len(canonicalize_shape(shape))
    return lax_shape.broadcast_to_rank(param, rank) if aval_of(param).ndim else param


def split_keys(keys: ArrayLike, count: int = 2) -> list[Array]:
    """New keys from each key."""
    new, axis = random_keys.new_keys(keys, (count,)), aval_of(keys).ndim
    return [slicing.index_in_dim(new, i, axis, keepdims=False) for i in range(count)]


@standard(random_keys.UNSIGNED)
def bits(key: ArrayLike, shape: Shape, dtype: np.dtype[Any]) -> Array:
    """Uniform random bits as unsigned integers.

    Shapes: key[] -> uint[shape].

    Raises:
        ValueError: the dtype is not an unsigned integer.

    Example:
        >>> jax.random.bits(jax.random.key(0), (3,), jnp.uint8).dtype
        dtype('uint8')
    """
    return random_keys.new_bits(key, dtype.itemsize * 8, shape)


@distribution(FLOAT, "minval maxval")
def uniform(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Samples of the uniform distribution on [minval, maxval).

    Shapes: key[] -> float[shape]; the bounds broadcast to the shape.

    Raises:
        ValueError: the dtype is not floating, or the bounds do not fit the shape.

    Example:
        >>> x = jax.random.uniform(jax.random.key(0), (10_000,), minval=-1.0, maxval=1.0)
        >>> x.min().round(2), x.max().round(2)
        (Array(-1., dtype=float32), Array(1., dtype=float32))
    """
    dims = canonicalize_shape(shape)
    low, high = (
        lax_shape.broadcast_to_rank(converted(bound, dtype), len(dims))
        for bound in (minval, maxval)
    )
    info = dtypes.finfo(dtype)
    # Eight random bits are enough for the mantissas of bfloat16 and the float8s.
    width = 8 if info.nmant < 8 else info.bits
    integer = np.dtype(f"uint{info.bits}")
    raw = random_keys.new_bits(key, width, dims)
    if width != info.bits:
        raw = convert_element_type(raw, integer)
    # The mantissa is random and the exponent that of 1, which gives a float in [1, 2).
    one = scalar(1, dtype)
    mantissa = binary.shift_right_logical(raw, scalar(width - info.nmant, integer))
    pattern = binary.bitwise_or(mantissa, one.view(integer))
    fraction = bitcast_convert_type(pattern, cast(DTypeLike, dtype)) - one
    # Rounding may take a sample below the bound.
    return binary.max(low, fraction * binary.sub(high, low) + low)


uniform_samples = unchecked(uniform)


@standard(INEXACT)
def normal(key: ArrayLike, shape: Shape, dtype: np.dtype[Any]) -> Array:
    """Samples of the standard normal distribution; complex ones have variance 1 in all.

    Shapes: key[] -> float[shape] or complex[shape].

    Raises:
        ValueError: the dtype is neither float nor complex.

    Example:
        >>> x = jax.random.normal(jax.random.key(0), (100_000,))
        >>> x.std().round(1), (x > 0).mean().round(1)
        (Array(1., dtype=float32), Array(0.5, dtype=float32))
    """
    if dtypes.issubdtype(dtype, np.complexfloating):
        part = dtypes.real_dtype_of(dtype)
        real, imaginary = (normal_samples(k, shape, part) for k in split_keys(key))
        return from_parts(real, imaginary) / scalar(math.sqrt(2), dtype)
    one = scalar(1, dtype)
    u = uniform_samples(key, shape, dtype, np.nextafter(-one, one), one)
    return scalar(math.sqrt(2), dtype) * special.erf_inv(u)


normal_samples = unchecked(normal)


@distribution(FLOAT, "lower upper")
def truncated_normal(
    key: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Samples of the standard normal distribution truncated to [lower, upper].

    Shapes: key[], float[s], float[s] -> float[shape], by default that of the bounds.

    Raises:
        ValueError: the dtype is not floating, or the bounds do not fit the shape.

    Example:
        >>> x = jax.random.truncated_normal(jax.random.key(0), -1.0, 2.0, (10_000,))
        >>> x.min().round(1), x.max().round(1)
        (Array(-1., dtype=float32), Array(2., dtype=float32))
    """
    dims = canonicalize_shape(shape)
    lower, upper = (converted(x, dtype) for x in (lower, upper))
    root = scalar(math.sqrt(2), dtype)
    low, high = (special.erf(binary.div(x, root)) for x in (lower, upper))
    out = root * special.erf_inv(uniform_samples(key, dims, dtype, low, high))
    infinity = scalar(np.inf, dtype)
    above = binary.nextafter(stop_gradient(lower), infinity)
    below = binary.nextafter(stop_gradient(upper), -infinity)
    above, below = (lax_shape.broadcast_to_rank(x, len(dims)) for x in (above, below))
    return binary.min(below, binary.max(above, out))


truncated_normal_samples = unchecked(truncated_normal)


@standard(FLOAT)
def exponential(key: ArrayLike, shape: Shape, dtype: np.dtype[Any]) -> Array:
    """Samples of the exponential distribution of rate 1.

    Shapes: key[] -> float[shape].

    Raises:
        ValueError: the dtype is not floating.

    Example:
        >>> jax.random.exponential(jax.random.key(0), (100_000,)).mean().round(1)
        Array(1., dtype=float32)
    """
    return -log1p(-uniform_samples(key, shape, dtype))


exponential_samples = unchecked(exponential)


@distribution(FLOAT)
def gumbel(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    mode: str | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Samples of the standard Gumbel distribution.

    Shapes: key[] -> float[shape].

    Args:
        key: a random key.
        shape: of the samples.
        dtype: of the samples.
        mode: "low" (the default), or "high" for twice the random bits: a finer tail.
        out_sharding: how the samples are split over a mesh.

    Raises:
        ValueError: the dtype is not floating, or the mode is not known.

    Example:
        >>> logits = jnp.log(jnp.array([0.25, 0.75]))
        >>> noise = jax.random.gumbel(jax.random.key(0), (100_000, 2))
        >>> (jnp.argmax(logits + noise, axis=1) == 1).mean().round(2)
        Array(0.75, dtype=float32)
    """
    tiny = scalar(dtypes.finfo(dtype).tiny, dtype)
    if mode == "low":
        return -log(-log(uniform_samples(key, shape, dtype, tiny, 1.0)))
    coarse, fine = two_uniforms(key, shape, dtype)
    # Where the sample is small enough to hold them, the second draw gives it more bits.
    finer = coarse + scalar(dtypes.finfo(dtype).eps, dtype) * fine + tiny
    u = select(coarse >= 0.5, coarse, finer)
    return -log(-log1p(-u))


gumbel_samples = unchecked(gumbel)


def two_uniforms(
    key: ArrayLike, shape: ShapeLike | None, dtype: DTypeLike | None
) -> tuple[Array, Array]:
    """Two independent arrays of uniform samples from one key."""
    both = uniform_samples(key, (2, *canonicalize_shape(shape)), dtype)
    first, second = (slicing.index_in_dim(both, i, keepdims=False) for i in range(2))
    return first, second


@standard(FLOAT)
def laplace(key: ArrayLike, shape: Shape, dtype: np.dtype[Any]) -> Array:
    """Samples of the Laplace distribution of scale 1.

    Shapes: key[] -> float[shape].

    Raises:
        ValueError: the dtype is not floating.

    Example:
        >>> x = jax.random.laplace(jax.random.key(0), (100_000,))
        >>> jnp.abs(x).mean().round(1)
        Array(1., dtype=float32)
    """
    u = uniform_samples(key, shape, dtype, -1 + float(dtypes.finfo(dtype).epsneg), 1.0)
    return sign(u) * log1p(-abs(u))


@standard(FLOAT)
def logistic(key: ArrayLike, shape: Shape, dtype: np.dtype[Any]) -> Array:
    """Samples of the logistic distribution of scale 1.

    Shapes: key[] -> float[shape].

    Raises:
        ValueError: the dtype is not floating.

    Example:
        >>> x = jax.random.logistic(jax.random.key(0), (100_000,))
        >>> (x < jnp.log(3.0)).mean().round(2)
        Array(0.75, dtype=float32)
    """
    u = uniform_samples(key, shape, dtype, dtypes.finfo(dtype).tiny, 1.0)
    return log(u) - log1p(-u)


@standard(FLOAT)
def cauchy(key: ArrayLike, shape: Shape, dtype: np.dtype[Any]) -> Array:
    """Samples of the standard Cauchy distribution.

    Shapes: key[] -> float[shape].

    Raises:
        ValueError: the dtype is not floating.

    Example:
        >>> x = jax.random.cauchy(jax.random.key(0), (100_000,))
        >>> (jnp.abs(x) < 1).mean().round(2)
        Array(0.5, dtype=float32)
    """
    u = uniform_samples(key, shape, dtype, dtypes.finfo(dtype).eps, 1.0)
    return tan(math.pi * (u - 0.5))


@standard(FLOAT)
def maxwell(key: ArrayLike, shape: Shape, dtype: np.dtype[Any]) -> Array:
    """Samples of the Maxwell distribution: norms of standard normal vectors of length 3.

    Shapes: key[] -> float[shape].

    Raises:
        ValueError: the dtype is not floating.

    Example:
        >>> x = jax.random.maxwell(jax.random.key(0), (100_000,))
        >>> (x**2).mean().round(1)
        Array(3., dtype=float32)
    """
    vectors = normal_samples(key, (*shape, 3), dtype)
    return sqrt(reduce_sum(vectors * vectors, (len(shape),)))


maxwell_samples = unchecked(maxwell)


@distribution(FLOAT, "scale", same_dtype=True)
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

    Raises:
        ValueError: the dtype is not floating, or the scale does not fit the shape.

    Example:
        >>> x = jax.random.rayleigh(jax.random.key(0), 2.0, (100_000,))
        >>> (x**2).mean().round(1)
        Array(8., dtype=float32)
    """
    norms = sqrt(log(uniform_samples(key, shape or (), dtype)) * -2)
    return fitted(scale, shape, dtype) * norms


@distribution(FLOAT, "b", same_dtype=True)
def pareto(
    key: ArrayLike,
    b: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Samples of the Pareto distribution with exponent `b`.

    Shapes: key[], float[s] -> float[shape], by default that of `b`.

    Raises:
        ValueError: the dtype is not floating, or the exponent does not fit the shape.

    Example:
        >>> x = jax.random.pareto(jax.random.key(0), 3.0, (100_000,))
        >>> x.min().round(2), (x > 2).mean().round(3)
        (Array(1., dtype=float32), Array(0.125, dtype=float32))
    """
    return exp(exponential_samples(key, shape or (), dtype) / fitted(b, shape, dtype))


@distribution(INEXACT, "sigma", same_dtype=True)
def lognormal(
    key: ArrayLike,
    sigma: ArrayLike = np.float32(1.0),  # noqa: B008  NumPy's scalars do not change
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Samples of the log-normal distribution: their logarithms have standard deviation `sigma`.

    Shapes: key[], float[s] -> float[shape] or complex[shape], by default that of `sigma`.

    Raises:
        ValueError: the dtype is neither float nor complex, or `sigma` does not fit the shape.

    Example:
        >>> x = jax.random.lognormal(jax.random.key(0), 2.0, (100_000,))
        >>> jnp.log(x).std().round(1)
        Array(2., dtype=float32)
    """
    return exp(normal_samples(key, shape or (), dtype) * fitted(sigma, shape, dtype))


@distribution(FLOAT, "left mode right", same_dtype=True)
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
    """Samples of the triangular distribution on [left, right], whose density is highest at `mode`.

    Shapes: key[], three float[s] -> float[shape], by default that of the parameters.

    Raises:
        ValueError: the dtype is not floating, or the parameters do not fit the shape.

    Example:
        >>> x = jax.random.triangular(jax.random.key(0), 0.0, 1.0, 4.0, (100_000,))
        >>> (x < 1).mean().round(2)
        Array(0.25, dtype=float32)
    """
    # The inverse of the cumulative distribution function: a square root on each side of the mode.
    dims = canonicalize_shape(shape)
    left, mode, right = (
        lax_shape.broadcast_to_rank(fitted(x, dims, dtype), len(dims)) for x in (left, mode, right)
    )
    width = right - left
    below = binary.div(mode - left, width)
    u = uniform_samples(key, dims, dtype)
    rising = left + sqrt(u * width * (mode - left))
    falling = right - sqrt((1 - u) * width * (right - mode))
    return select(u < below, rising, falling)


@distribution(FLOAT, "mean", same_dtype=True)
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
        ValueError: the dtype is not floating, or the mean does not fit the shape.

    Example:
        >>> jax.random.wald(jax.random.key(0), 2.0, (100_000,)).mean().round(1)
        Array(2., dtype=float32)
    """
    dims = canonicalize_shape(shape)
    first, second = split_keys(key)
    mean = broadcast_to(fitted(mean, dims, dtype), dims)
    y = normal_samples(first, dims, dtype) ** 2
    u = uniform_samples(second, dims, dtype)
    squared = mean**2
    root = sqrt(4 * mean * y + squared * y**2)
    smaller = mean + squared * y / 2 - mean / 2 * root
    return select(u <= mean / (mean + smaller), smaller, squared / smaller)


@distribution(FLOAT)
def weibull_min(
    key: ArrayLike,
    scale: ArrayLike,
    concentration: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
) -> Array:
    """Samples of the Weibull distribution.

    Shapes: key[], float[s], float[s] -> float of the shapes broadcast together.

    Raises:
        ValueError: the dtype is not floating.

    Example:
        >>> x = jax.random.weibull_min(jax.random.key(0), 3.0, 1.0, (100_000,))
        >>> x.mean().round(1)
        Array(3., dtype=float32)
    """
    base = exponential_samples(key, shape, dtype)
    return base ** converted(elementary.divide(1.0, concentration), dtype) * scale


@sampler("multivariate_normal")
def multivariate_normal(
    key: ArrayLike,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    method: str = "cholesky",
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Samples of the multivariate normal distribution of a given mean and covariance.

    A factor A of the covariance, A Aᵀ = cov, takes standard normal vectors z to mean + A z.

    Shapes:     key[], float[s, n], float[t, n, n] -> float[shape, n], where `shape` is by default
        that of s and t.
    Dtypes:     floating; `dtype` is that of z, by default the one common to the parameters.
    Derivative: by the mean and the covariance.

    Args:
        key: a random key.
        mean: the means.
        cov: the covariances, positive semidefinite.
        shape: of the samples, without their last dimension.
        dtype: of the standard normal vectors.
        method: "cholesky", the fastest, which needs definite covariances; "eigh"; or "svd".
        out_sharding: how the samples are split over a mesh.

    Raises:
        ValueError: the dtype is not floating, the method is not known, or the parameters do not fit
            each other or the shape.

    Example:
        >>> cov = jnp.array([[2.0, 1.0], [1.0, 2.0]])
        >>> samples = minijax.random.multivariate_normal(
        ...     minijax.random.key(0), jnp.zeros(2), cov, (5000,)
        ... )
        >>> bool(abs(samples.T @ samples / 5000 - cov).max() < 0.2)
        True
    """
    name = "multivariate_normal"
    mean, cov = (check_array(name, x) for x in (mean, cov))
    common = dtypes.to_inexact_dtype(dtypes.result_type(mean, cov))
    wanted = random_keys.check_dtype(name, common if dtype is None else dtype, FLOAT)
    check_choice(f"random.{name}", "method", method, ("cholesky", "eigh", "svd"))
    dims = _check_vectors(aval_of(mean), aval_of(cov), shape)
    return _multivariate_normal(key, mean, cov, dims, wanted, method)


def _check_vectors(mean: AbstractValue, cov: AbstractValue, shape: ShapeLike | None) -> Shape:
    """The shape of the batch of samples."""
    size = mean.shape[-1:]
    if not size or cov.shape[-2:] != size * 2:
        problem = "a covariance must be a square of the size of the mean."
        got = {"mean": mean, "cov": cov}
        expected = "mean: float[..., n], cov: float[..., n, n]"
        error(ValueError, "random.multivariate_normal", problem, got=got, expected=expected)
    # Arrays that stand for shapes and take no memory.
    batches = (np.broadcast_to(False, s) for s in (mean.shape[:-1], cov.shape[:-2]))
    return random_keys.check_shape("multivariate_normal", shape, *batches)


@one_program(static=("dims", "dtype", "method"))
def _multivariate_normal(
    key: ArrayLike, mean: ArrayLike, cov: ArrayLike, dims: Shape, dtype: np.dtype[Any], method: str
) -> Array:
    common = dtypes.to_inexact_dtype(dtypes.result_type(mean, cov))
    mean, cov = (convert_element_type(x, common) for x in (mean, cov))
    if method == "cholesky":
        factor = linalg.cholesky(cov)
    else:
        vectors, variances = linalg.eigh(cov) if method == "eigh" else linalg.svd(cov)[:2]
        factor = vectors * _rows(sqrt(variances), aval_of(vectors).shape)
    vectors = normal_samples(key, (*dims, *mean.shape[-1:]), dtype)
    return elementary.add(mean, contraction.einsum("...ij,...j->...i", factor, vectors))


def _rows(x: Array, dims: Shape) -> Array:
    """Vectors as the rows of matrices, all rows the same."""
    return shaping.broadcast_array(shaping.expand_dims(x, -2), dims)


@sampler("orthogonal")
def orthogonal(
    key: ArrayLike,
    n: int,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    m: int | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Orthogonal matrices, or unitary ones where the dtype is complex, from the Haar distribution.

    Shapes: key[], int -> T[shape, n, n], or T[shape, n, m]: orthonormal columns where n >= m,
        orthonormal rows elsewhere.
    Dtypes: float32, float64, complex64, complex128.
    Source: mirrors jax.random.orthogonal (0.10); Mezzadri, "How to generate random matrices from
        the classical compact groups" (2007).

    Raises:
        NotImplementedError: matrices of the dtype cannot be factored.
        TypeError: a size is not an integer.
        ValueError: a size is negative, or the dtype neither float nor complex.

    Example:
        >>> q = minijax.random.orthogonal(minijax.random.key(0), 3)
        >>> bool(abs(q.T @ q - jnp.eye(3)).max() < 1e-6)
        True
    """
    wanted = random_keys.check_dtype("orthogonal", dtype, INEXACT)
    sizes = (operator.index(n), operator.index(n if m is None else m))
    if min(sizes) < 0:
        error(ValueError, "random.orthogonal", "sizes must not be negative.", got={"n": n, "m": m})
    dims = canonicalize_shape(shape, "random.orthogonal shape")
    return orthogonal_samples(key, dims, sizes, wanted)


@one_program(static=("dims", "sizes", "dtype"))
def orthogonal_samples(
    key: ArrayLike, dims: Shape, sizes: tuple[int, int], dtype: np.dtype[Any]
) -> Array:
    """Orthogonal matrices, for checked arguments."""
    normal = normal_samples(key, (*dims, max(sizes), min(sizes)), dtype)
    q, r = linalg.qr(normal, full_matrices=False)
    # The signs, on which algorithms differ, must not depend on the matrix.
    signs = sign(matrices.diagonal(r, 0, -2, -1))
    q = q * _rows(signs, aval_of(q).shape)
    return q if sizes[0] >= sizes[1] else shaping.swapaxes(q, -2, -1)
