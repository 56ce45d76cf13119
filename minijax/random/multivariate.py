"""Distributions that need a factorization: normal vectors with a covariance, orthogonal matrices.

Input: a key, parameters, a shape, a dtype.  Output: samples.  Loaded when first named, since it
loads `lax.linalg`.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import Shape, aval_of, canonicalize_shape
from minijax.core.errors import error
from minijax.lax import binary, convert, unary
from minijax.lax.linalg.cholesky import cholesky
from minijax.lax.linalg.eigh import eigh
from minijax.lax.linalg.qr import qr
from minijax.lax.linalg.svd import svd
from minijax.numpy import arithmetic, contraction, matrices, shaping
from minijax.numpy.one_program import one_program
from minijax.numpy.promotion import check_array
from minijax.random.distributions import (
    check_float,
    check_inexact,
    check_shape,
    normal_samples,
    sampler,
)
from minijax.runtime.annotations import ArrayLike, DTypeLike, ShapeLike, ShardingLike
from minijax.runtime.array import Array

_METHODS = ("cholesky", "eigh", "svd")


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
    """Normal vectors of a given mean and covariance.

    A factor A of the covariance, A Aᵀ = cov, takes standard normal vectors z to mean + A z.

    Shapes:     key[], float[s, n], float[t, n, n] -> float[shape, n], where `shape` is by default
        that of s and t.
    Dtypes:     floating; `dtype` is that of z, by default the one common to the parameters.
    Derivative: by the mean and the covariance.
    Source:     mirrors jax.random.multivariate_normal (0.10).

    Args:
        key: a random key.
        mean: the means.
        cov: the covariances, positive semidefinite.
        shape: of the samples, without their last dimension.
        dtype: of the standard normal vectors.
        method: "cholesky", the fastest, which needs definite covariances; "eigh"; or "svd".
        out_sharding: how the samples are split over a mesh.

    Raises:
        ValueError: the dtype is no float, the method is not known, or the parameters do not fit
            each other or the shape.

    Example:
        >>> cov = jnp.array([[2.0, 1.0], [1.0, 2.0]])
        >>> samples = minijax.random.multivariate_normal(
        ...     minijax.random.key(0), jnp.zeros(2), cov, (5000,)
        ... )
        >>> bool(abs(samples.T @ samples / 5000 - cov).max() < 0.2)
        True
    """
    mean, cov = (check_array("multivariate_normal", x) for x in (mean, cov))
    common = dtypes.to_inexact_dtype(dtypes.result_type(mean, cov))
    wanted = check_float("multivariate_normal", common if dtype is None else dtype)
    if method not in _METHODS:
        error(
            ValueError,
            "random.multivariate_normal",
            f"unknown method {method!r}.",
            expected=", ".join(map(repr, _METHODS)),
        )
    dims = _check_vectors(aval_of(mean), aval_of(cov), shape)
    return _multivariate_normal(key, mean, cov, dims, wanted, method)


def _check_vectors(mean: Any, cov: Any, shape: Any) -> Shape:
    """The shape of the batch of samples."""
    size = mean.shape[-1:]
    if not size or cov.shape[-2:] != size * 2:
        error(
            ValueError,
            "random.multivariate_normal",
            "a covariance must be a square of the size of the mean.",
            got={"mean": mean, "cov": cov},
            expected="mean: float[..., n], cov: float[..., n, n]",
        )
    # Arrays that stand for shapes and take no memory.
    batches = (np.broadcast_to(False, s) for s in (mean.shape[:-1], cov.shape[:-2]))
    return check_shape("multivariate_normal", shape, *batches)


@one_program(static=("dims", "dtype", "method"))
def _multivariate_normal(
    key: Any, mean: Any, cov: Any, dims: Shape, dtype: Any, method: str
) -> Any:
    common = dtypes.to_inexact_dtype(dtypes.result_type(mean, cov))
    mean, cov = (convert.convert_element_type(x, common) for x in (mean, cov))
    if method == "cholesky":
        factor = cholesky(cov)
    else:
        vectors, variances = eigh(cov) if method == "eigh" else svd(cov)[:2]
        factor = binary.mul(vectors, _rows(unary.sqrt(variances), aval_of(vectors).shape))
    vectors = normal_samples(key, (*dims, *aval_of(mean).shape[-1:]), dtype)
    return arithmetic.add(mean, contraction.einsum("...ij,...j->...i", factor, vectors))


def _rows(x: Any, dims: Shape) -> Any:
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
    """Uniform samples of orthogonal matrices, or of unitary ones where the dtype is complex.

    Shapes: key[], int -> T[shape, n, n], or T[shape, n, m]: orthonormal columns where n >= m,
        orthonormal rows elsewhere.
    Dtypes: float32, float64, complex64, complex128.
    Source: mirrors jax.random.orthogonal (0.10); Mezzadri, "How to generate random matrices from
        the classical compact groups" (2007).

    Raises:
        NotImplementedError: matrices of the dtype cannot be factored.
        TypeError: a size is no integer.
        ValueError: a size is negative, or the dtype neither float nor complex.

    Example:
        >>> q = minijax.random.orthogonal(minijax.random.key(0), 3)
        >>> bool(abs(q.T @ q - jnp.eye(3)).max() < 1e-6)
        True
    """
    wanted = check_inexact("orthogonal", dtype)
    sizes = (operator.index(n), operator.index(n if m is None else m))
    if min(sizes) < 0:
        error(ValueError, "random.orthogonal", "sizes must not be negative.", got={"n": n, "m": m})
    dims = canonicalize_shape(shape, "random.orthogonal shape")
    return orthogonal_samples(key, dims, sizes, wanted)


@one_program(static=("dims", "sizes", "dtype"))
def orthogonal_samples(key: Any, dims: Shape, sizes: tuple[int, int], dtype: Any) -> Any:
    """Orthogonal matrices, for checked arguments."""
    normal = normal_samples(key, (*dims, max(sizes), min(sizes)), dtype)
    q, r = qr(normal, full_matrices=False)
    # The signs, on which algorithms differ, must not depend on the matrix.
    signs = unary.sign(matrices.diagonal(r, 0, -2, -1))
    q = binary.mul(q, _rows(signs, aval_of(q).shape))
    return q if sizes[0] >= sizes[1] else shaping.swapaxes(q, -2, -1)
