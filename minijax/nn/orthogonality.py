"""Initializers of orthogonal matrices and convolutions.

Input: a scale.  Output: initializers, see `initializers.py`.  Loaded when first named, since it
loads `lax.linalg`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minijax.core.aval import Shape, canonicalize_shape
from minijax.core.errors import error
from minijax.lax import creation, shape, slicing
from minijax.nn.initializer import Initializer
from minijax.numpy import arithmetic, shaping
from minijax.numpy.one_program import one_program
from minijax.random.distributions import check_inexact
from minijax.random.keys import as_keys
from minijax.random.multivariate import orthogonal_samples
from minijax.runtime.annotations import ArrayLike, DTypeLike


def orthogonal(
    scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """Orthogonal matrices times `scale`: what they multiply keeps its length, but for the scale.

    Args:
        scale: the factor.
        column_axis: the dimension of the columns; the others together are that of the rows.
        dtype: of the parameters: float32, float64, complex64 or complex128.

    Source: mirrors jax.nn.initializers.orthogonal (0.10); Saxe, McClelland and Ganguli, "Exact
        solutions to the nonlinear dynamics of learning in deep linear neural networks" (2014).

    Raises:
        IndexError: the initializer is called for a shape without such a dimension.
        ValueError: it is called for fewer than two dimensions.

    Example:
        >>> w = minijax.nn.initializers.orthogonal(2.0)(minijax.random.key(0), (3, 3))
        >>> bool(abs(w.T @ w - 4 * jnp.eye(3)).max() < 1e-5)
        True
    """
    default = dtype

    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
        name = "nn.initializers.orthogonal"
        dims, wanted = canonicalize_shape(shape), _dtype(name, dtype, default)
        if len(dims) < 2:
            error(ValueError, name, "needs two dimensions at least.", got={"shape": dims})
        if not -len(dims) <= column_axis < len(dims):
            error(
                IndexError,
                name,
                "there is no such dimension.",
                got={"shape": dims, "column_axis": column_axis},
            )
        keys, _ = as_keys(name, key)
        return _orthogonal(keys, scale, dims, column_axis % len(dims), wanted)

    return init


def delta_orthogonal(
    scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """Kernels of convolutions that apply an orthogonal matrix to each position.

    All is zero but the middle of the window.  Shapes of parameters are those of convolutions of
    one to three dimensions, with inputs and outputs last.

    Args:
        scale: the factor.
        column_axis: the dimension of the columns.
        dtype: of the parameters: float32, float64, complex64 or complex128.

    Source: mirrors jax.nn.initializers.delta_orthogonal (0.10); Xiao et al., "Dynamical isometry
        and a mean field theory of CNNs" (2018).

    Raises:
        ValueError: the initializer is called for a shape of other than 3, 4 or 5 dimensions, or
            with more inputs than outputs.

    Example:
        >>> w = minijax.nn.initializers.delta_orthogonal()(minijax.random.key(0), (3, 2, 2))
        >>> [round(float(abs(m).sum()), 1) > 0 for m in w]
        [False, True, False]
    """
    default = dtype

    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
        name = "nn.initializers.delta_orthogonal"
        dims, wanted = canonicalize_shape(shape), _dtype(name, dtype, default)
        if len(dims) not in (3, 4, 5):
            error(ValueError, name, "needs a shape of 3, 4 or 5 dimensions.", got={"shape": dims})
        if dims[-1] < dims[-2]:
            error(
                ValueError, name, "there must not be more inputs than outputs.", got={"shape": dims}
            )
        keys, _ = as_keys(name, key)
        return _delta_orthogonal(keys, scale, dims, column_axis % 2, wanted)

    return init


def _dtype(name: str, dtype: Any, default: Any) -> np.dtype[Any]:
    return check_inexact(name, default if dtype is None else dtype)


@one_program(static=("dims", "axis", "dtype"))
def _orthogonal(key: Any, scale: Any, dims: Shape, axis: int, dtype: Any) -> Any:
    others = (*dims[:axis], *dims[axis + 1 :])
    samples = orthogonal_samples(key, (), (math.prod(others), dims[axis]), dtype)
    samples = shape.reshape(samples, (*others, dims[axis]))
    return arithmetic.multiply(scale, shaping.moveaxis(samples, -1, axis))


@one_program(static=("dims", "axis", "dtype"))
def _delta_orthogonal(key: Any, scale: Any, dims: Shape, axis: int, dtype: Any) -> Any:
    matrix = _orthogonal(key, scale, dims[-2:], axis, dtype)
    middle = tuple((size - 1) // 2 for size in dims[:-2])
    block = shape.reshape(matrix, (*(1,) * len(middle), *dims[-2:]))
    zeros = creation.full(dims, 0, dtype)
    return slicing.dynamic_update_slice(zeros, block, (*middle, 0, 0))
