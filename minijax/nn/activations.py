"""Activation functions: nonlinear functions of each element, and `glu` and `one_hot`.

Input: arrays.  Output: arrays of the same shape.  Derivatives at kinks are those of JAX: zero for
`relu` at 0.  What is done along whole dimensions is in `normalization.py` and `attention.py`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of, canonicalize_shape
from minijax.core.errors import error
from minijax.lax import arguments, binary, collectives, convert, creation, slicing, special, unary
from minijax.numpy import arithmetic, elementary, logic, selection, shaping
from minijax.numpy import creation as numpy_creation
from minijax.numpy.one_program import one_program
from minijax.numpy.promotion import check_array, inexact, strong
from minijax.runtime.annotations import ArrayLike, DTypeLike
from minijax.runtime.array import Array

_activation = one_program()


def identity(x: ArrayLike) -> Array:
    """`x` itself, as an array.

    Source:     mirrors jax.nn.identity (0.10).

    Example:
        >>> jax.nn.identity(np.array([1, 2]))
        Array([1, 2], dtype=int32)
    """
    return numpy_creation.asarray(check_array("identity", x))


@_activation
def relu(x: ArrayLike) -> Array:
    """max(`x`, 0), with derivative 0 at 0.

    Shapes: T[s] -> T[s].
    Source: mirrors jax.nn.relu (0.10).

    Example:
        >>> jax.nn.relu(jnp.array([-2.0, 0.0, 3.0]))
        Array([0., 0., 3.], dtype=float32)
        >>> jax.grad(jax.nn.relu)(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    x = check_array("relu", x)
    # The derivative of the maximum, which would be 1/2 at 0, is not so much as staged.
    constant = arithmetic.maximum(unary.stop_gradient(x), 0)
    return selection.where(logic.greater(x, 0), x, constant)


@_activation
def relu6(x: ArrayLike) -> Array:
    """min(max(`x`, 0), 6), with derivative 0 at both kinks.

    Source:     mirrors jax.nn.relu6 (0.10).

    Example:
        >>> jax.nn.relu6(jnp.array([-2.0, 3.0, 9.0]))
        Array([0., 3., 6.], dtype=float32)
    """
    x = check_array("relu6", x)
    inside = logic.logical_and(logic.greater(x, 0), logic.less(x, 6))
    constant = arithmetic.minimum(arithmetic.maximum(unary.stop_gradient(x), 0), 6.0)
    return selection.where(inside, x, constant)


@_activation
def sigmoid(x: ArrayLike) -> Array:
    """1 / (1 + exp(-x)).

    Source:     mirrors jax.nn.sigmoid (0.10).

    Example:
        >>> jax.nn.sigmoid(jnp.array([-jnp.inf, 0.0, jnp.inf]))
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    return unary.logistic(check_array("sigmoid", x))


@_activation
def softplus(x: ArrayLike) -> Array:
    """log(1 + exp(`x`)).

    Source:     mirrors jax.nn.softplus (0.10).

    Example:
        >>> jax.nn.softplus(jnp.array([-1000.0, 1000.0]))
        Array([   0., 1000.], dtype=float32)
    """
    return elementary.logaddexp(check_array("softplus", x), 0)


@_activation
def sparse_plus(x: ArrayLike) -> Array:
    """0 below -1, (x+1)²/4 up to 1, `x` above.

    Source:     mirrors jax.nn.sparse_plus (0.10).

    Example:
        >>> jax.nn.sparse_plus(jnp.array([-2.0, 0.0, 1.0, 5.0]))
        Array([0.  , 0.25, 1.  , 5.  ], dtype=float32)
    """
    x = check_array("sparse_plus", x)
    middle = arithmetic.divide(arithmetic.square(arithmetic.add(x, 1.0)), 4)
    upper = selection.where(logic.greater_equal(x, 1.0), x, middle)
    return selection.where(logic.less_equal(x, -1.0), 0.0, upper)


@_activation
def sparse_sigmoid(x: ArrayLike) -> Array:
    """(x+1)/2 between -1 and 1, else 0 or 1.

    Source:     mirrors jax.nn.sparse_sigmoid (0.10).

    Example:
        >>> jax.nn.sparse_sigmoid(jnp.array([-2.0, 0.0, 0.5, 5.0]))
        Array([0.  , 0.5 , 0.75, 1.  ], dtype=float32)
    """
    x = check_array("sparse_sigmoid", x)
    return arithmetic.clip(arithmetic.multiply(arithmetic.add(x, 1.0), 0.5), 0.0, 1.0)


@_activation
def soft_sign(x: ArrayLike) -> Array:
    """`x` / (1 + |x|).

    Source:     mirrors jax.nn.soft_sign (0.10).

    Example:
        >>> jax.nn.soft_sign(jnp.array([-1.0, 0.0, 3.0]))
        Array([-0.5 ,  0.  ,  0.75], dtype=float32)
    """
    x = check_array("soft_sign", x)
    return arithmetic.divide(x, arithmetic.add(arithmetic.absolute(x), 1))


@_activation
def silu(x: ArrayLike) -> Array:
    """`x` · sigmoid(x).

    Source:     mirrors jax.nn.silu (0.10).

    Example:
        >>> jax.nn.silu(jnp.array([-1000.0, 0.0, 1000.0]))
        Array([  -0.,    0., 1000.], dtype=float32)
    """
    x = check_array("silu", x)
    return arithmetic.multiply(x, unary.logistic(x))


swish = silu


@_activation
def mish(x: ArrayLike) -> Array:
    """`x` · tanh(softplus(x)).

    Source:     mirrors jax.nn.mish (0.10).

    Example:
        >>> jax.nn.mish(jnp.array([-1000.0, 0.0, 1000.0]))
        Array([  -0.,    0., 1000.], dtype=float32)
    """
    x = check_array("mish", x)
    return arithmetic.multiply(x, unary.tanh(elementary.logaddexp(x, 0)))


@_activation
def log_sigmoid(x: ArrayLike) -> Array:
    """log(sigmoid(`x`)).

    Source:     mirrors jax.nn.log_sigmoid (0.10).

    Example:
        >>> jax.nn.log_sigmoid(jnp.array([-1000.0, 1000.0]))
        Array([-1000.,    -0.], dtype=float32)
    """
    negated = arithmetic.negative(x)
    return unary.neg(elementary.logaddexp(negated, 0))


def _exponential_below(x: Any) -> Any:
    """exp(x) - 1 where `x` is not positive, else 0, which keeps derivatives finite."""
    return elementary.expm1(selection.where(logic.greater(x, 0), 0.0, x))


@_activation
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """`x` above 0, alpha · (exp(x) - 1) below.

    Source:     mirrors jax.nn.elu (0.10).

    Example:
        >>> jax.nn.elu(jnp.array([-jnp.inf, 0.0, 3.0]), alpha=2.0)
        Array([-2.,  0.,  3.], dtype=float32)
    """
    x = check_array("elu", x)
    below = arithmetic.multiply(alpha, _exponential_below(x))
    return selection.where(logic.greater(x, 0), x, below)


@_activation
def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """max(x, 0) + min(0, alpha · (exp(x / alpha) - 1)).

    Source: mirrors jax.nn.celu (0.10); Barron, "Continuously differentiable exponential linear
        units" (2017).

    Example:
        >>> jax.nn.celu(jnp.array([-jnp.inf, 0.0, 3.0]), alpha=2.0)
        Array([-2.,  0.,  3.], dtype=float32)
    """
    below = elementary.expm1(arithmetic.divide(arithmetic.minimum(x, 0.0), alpha))
    return arithmetic.add(arithmetic.maximum(x, 0.0), arithmetic.multiply(alpha, below))


@_activation
def selu(x: ArrayLike) -> Array:
    """The scaled unit that normalizes itself.

    Source: mirrors jax.nn.selu (0.10); Klambauer et al., "Self-normalizing neural networks"
        (2017).

    Example:
        >>> x = jax.random.normal(jax.random.key(0), (100_000,))
        >>> y = jax.nn.selu(x)
        >>> abs(y.mean()) < 0.01, abs(y.std() - 1) < 0.01
        (Array(True, dtype=bool), Array(True, dtype=bool))
    """
    alpha, scale = 1.6732632423543772, 1.0507009873554805
    x = check_array("selu", x)
    below = arithmetic.multiply(alpha, _exponential_below(x))
    return arithmetic.multiply(scale, selection.where(logic.greater(x, 0), x, below))


@_activation
def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 1e-2) -> Array:
    """`x` from 0 on, negative_slope · x below.

    Source:     mirrors jax.nn.leaky_relu (0.10).

    Example:
        >>> jax.nn.leaky_relu(jnp.array([-4.0, 4.0]), negative_slope=0.25)
        Array([-1.,  4.], dtype=float32)
    """
    x = check_array("leaky_relu", x)
    below = arithmetic.multiply(negative_slope, x)
    return selection.where(logic.greater_equal(x, 0), x, below)


@_activation
def hard_tanh(x: ArrayLike) -> Array:
    """`x` between -1 and 1, else the nearer of them.

    Source:     mirrors jax.nn.hard_tanh (0.10).

    Example:
        >>> jax.nn.hard_tanh(jnp.array([-3.0, 0.5, 3.0]))
        Array([-1. ,  0.5,  1. ], dtype=float32)
    """
    x = check_array("hard_tanh", x)
    upper = selection.where(logic.less(x, -1), -1, x)
    return selection.where(logic.greater(x, 1), 1, upper)


@_activation
def hard_sigmoid(x: ArrayLike) -> Array:
    """relu6(`x` + 3) / 6.

    Source:     mirrors jax.nn.hard_sigmoid (0.10).

    Example:
        >>> jax.nn.hard_sigmoid(jnp.array([-4.0, 0.0, 4.0]))
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    return arithmetic.divide(relu6(arithmetic.add(x, 3.0)), 6.0)


@_activation
def hard_silu(x: ArrayLike) -> Array:
    """`x` · hard_sigmoid(x).

    Source:     mirrors jax.nn.hard_silu (0.10).

    Example:
        >>> jax.nn.hard_silu(jnp.array([-4.0, 0.0, 4.0]))
        Array([-0.,  0.,  4.], dtype=float32)
    """
    return arithmetic.multiply(x, hard_sigmoid(x))


hard_swish = hard_silu


@one_program(static=("approximate",))
def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """`x` times the normal distribution function of x, or an approximation by tanh.

    Args:
        x: an array.
        approximate: whether to approximate.

    Source: mirrors jax.nn.gelu (0.10); Hendrycks and Gimpel, "Gaussian error linear units" (2016).

    Example:
        >>> jax.nn.gelu(jnp.array([-10.0, 0.0, 10.0]))
        Array([-0.,  0., 10.], dtype=float32)
        >>> jnp.abs(jax.nn.gelu(1.0) - jax.nn.gelu(1.0, approximate=False)) < 1e-3
        Array(True, dtype=bool)
    """
    x = strong(inexact("gelu", x))
    if not approximate:
        root = _like(math.sqrt(0.5), x)
        tail = special.erfc(binary.mul(unary.neg(x), root))
        return binary.mul(binary.mul(_like(0.5, x), x), tail)
    cube = binary.mul(_like(0.044715, x), unary.integer_pow(x, 3))
    inner = binary.mul(_like(math.sqrt(2 / math.pi), x), binary.add(x, cube))
    share = binary.mul(_like(0.5, x), binary.add(_like(1, x), unary.tanh(inner)))
    return binary.mul(x, share)


def _like(value: float, x: Any) -> Any:
    """A number as a NumPy scalar of the dtype of `x`."""
    return np.asarray(value).astype(aval_of(x).dtype)[()]


@one_program(static=("axis",))
def glu(x: ArrayLike, axis: int = -1) -> Array:
    """The first half along `axis` times the sigmoid of the second.

    Shapes: T[..., 2n, ...] -> T[..., n, ...].
    Source: mirrors jax.nn.glu (0.10); Dauphin et al., "Language modeling with gated convolutional
        networks" (2017).

    Raises:
        ValueError: the size along `axis` is odd.

    Example:
        >>> jax.nn.glu(jnp.array([[2.0, 4.0, 0.0, jnp.inf]]))
        Array([[1., 4.]], dtype=float32)
    """
    x = check_array("glu", x)
    aval = aval_of(x)
    axis = arguments.canonicalize_axis(axis, aval.ndim, "nn.glu")
    size = aval.shape[axis]
    if size % 2:
        error(ValueError, "nn.glu", "the size must be even.", got={"x": aval, "axis": axis})
    first = slicing.slice_in_dim(x, 0, size // 2, axis=axis)
    second = slicing.slice_in_dim(x, size // 2, size, axis=axis)
    return binary.mul(first, unary.logistic(second))


@_activation
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """(x + sqrt(x² + b)) / 2.

    Source:     mirrors jax.nn.squareplus (0.10).

    Example:
        >>> jax.nn.squareplus(jnp.array([-3.0, 0.0, 3.0]), b=16)
        Array([1., 2., 4.], dtype=float32)
    """
    x = check_array("squareplus", x)
    root = arithmetic.sqrt(arithmetic.add(arithmetic.square(x), b))
    return arithmetic.divide(arithmetic.add(x, root), 2)


@_activation
def log1mexp(x: ArrayLike) -> Array:
    """log(1 - exp(-x)) for positive `x`, accurate near 0 and far from it.

    Source: mirrors jax.nn.log1mexp (0.10); Mächler, "Accurately computing log(1 - exp(-|a|))"
        (2012).

    Example:
        >>> jax.nn.log1mexp(jnp.array([0.0, 1000.0]))
        Array([-inf,  -0.], dtype=float32)
    """
    x = check_array("log1mexp", x)
    near = logic.less(x, math.log(2.0))
    # Each branch sees harmless numbers where the other one counts, which keeps derivatives finite.
    close, far = selection.where(near, x, 1), selection.where(near, 1, x)
    return selection.where(
        near,
        elementary.log(arithmetic.negative(elementary.expm1(arithmetic.negative(close)))),
        elementary.log1p(arithmetic.negative(elementary.exp(arithmetic.negative(far)))),
    )


@_activation
def tanh(x: ArrayLike, /) -> Array:
    """The hyperbolic tangent.

    Source:     mirrors jax.nn.tanh (0.10).

    Example:
        >>> jax.nn.tanh(jnp.array([-jnp.inf, 0.0, jnp.inf]))
        Array([-1.,  0.,  1.], dtype=float32)
    """
    return elementary.tanh(x)


@one_program(static=("num_classes", "dtype", "axis"))
def one_hot(
    x: ArrayLike, num_classes: int, *, dtype: DTypeLike | None = None, axis: int | str = -1
) -> Array:
    """Vectors that are 1 at the position that each number names, else 0.

    Shapes: int[s] -> float[s with num_classes at `axis`].
    Source: mirrors jax.nn.one_hot (0.10).

    Args:
        x: the positions; one out of range gives only zeros.
        num_classes: the length of the vectors.
        dtype: of the result; the default float for None.
        axis: the new dimension; or the name of a mapped axis of this size, along which each
            device, or example, gets its element of the vectors.

    Raises:
        ValueError: `axis` is out of range, or names an axis of another size.

    Example:
        >>> jax.nn.one_hot(jnp.array([0, 2, 9]), 3)
        Array([[1., 0., 0.],
               [0., 0., 1.],
               [0., 0., 0.]], dtype=float32)
    """
    wanted = dtypes.default_float_dtype()
    if dtype is not None:
        wanted = dtypes.canonicalize_user_dtype(dtype, "nn.one_hot")
    x = numpy_creation.asarray(x)
    (size,) = canonicalize_shape(num_classes, "nn.one_hot num_classes")
    if isinstance(axis, str):
        if collectives.axis_size(axis) != size:
            error(
                ValueError,
                "nn.one_hot",
                "there must be as many classes as the mapped axis is long.",
                got={"num_classes": size, f"axis {axis!r}": collectives.axis_size(axis)},
            )
        return convert.convert_element_type(logic.equal(x, collectives.axis_index(axis)), wanted)
    rank = aval_of(x).ndim + 1
    axis = arguments.canonicalize_axis(axis, rank, "nn.one_hot")
    dims = tuple(size if i == axis else 1 for i in range(rank))
    classes = creation.broadcasted_iota(aval_of(x).dtype, dims, axis)
    return convert.convert_element_type(logic.equal(shaping.expand_dims(x, axis), classes), wanted)
