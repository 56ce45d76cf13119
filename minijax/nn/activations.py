"""Activation functions, `glu` and `one_hot`, and what normalizes along whole dimensions.

Input: arrays.  Output: arrays of the same shape, but for `glu` and `one_hot`, which change one
dimension, and `logmeanexp`, which reduces.  Derivatives at kinks are those of JAX: zero for `relu`
at 0.
"""

from __future__ import annotations

import math

from minijax.core import dtypes
from minijax.core.aval import aval_of, canonicalize_shape
from minijax.core.errors import error
from minijax.lax import creation, families, slicing, special, unary
from minijax.lax.collectives.arguments import axis_index, axis_size
from minijax.lax.unary import logistic, stop_gradient
from minijax.numpy import creation as numpy_creation
from minijax.numpy import elementary, reductions, shaping
from minijax.numpy.elementary import clip, exp, expm1, log, log1p, logaddexp, maximum, minimum
from minijax.numpy.normalized_exponentials import logsumexp
from minijax.numpy.promotion import check_array, check_choice, inexact, one_program, strong
from minijax.numpy.selection import where
from minijax.numpy.shaping import array_argument
from minijax.runtime.annotations import ArrayLike, DTypeLike, NamedAxis
from minijax.runtime.array import Array

_activation = one_program()


def identity(x: ArrayLike) -> Array:
    """`x` itself, as an array.

    Example:
        >>> jax.nn.identity(np.array([1, 2]))
        Array([1, 2], dtype=int32)
    """
    return numpy_creation.asarray(check_array("identity", x))


@_activation
def relu(x: ArrayLike) -> Array:
    """max(`x`, 0), with derivative 0 at 0.

    Shapes: T[s] -> T[s].

    Example:
        >>> jax.nn.relu(jnp.array([-2.0, 0.0, 3.0]))
        Array([0., 0., 3.], dtype=float32)
        >>> jax.grad(jax.nn.relu)(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    x = array_argument("relu", x)
    # The derivative of the maximum, which would be 1/2 at 0, is not so much as staged.
    constant = maximum(stop_gradient(x), 0)
    return where(x > 0, x, constant)


@_activation
def relu6(x: ArrayLike) -> Array:
    """min(max(`x`, 0), 6), with derivative 0 at both kinks.

    Example:
        >>> jax.nn.relu6(jnp.array([-2.0, 3.0, 9.0]))
        Array([0., 3., 6.], dtype=float32)
    """
    x = array_argument("relu6", x)
    return where((x > 0) & (x < 6), x, minimum(maximum(stop_gradient(x), 0), 6.0))


@_activation
def sigmoid(x: ArrayLike) -> Array:
    """1 / (1 + exp(-x)).

    Example:
        >>> jax.nn.sigmoid(jnp.array([-jnp.inf, 0.0, jnp.inf]))
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    return logistic(check_array("sigmoid", x))


@_activation
def softplus(x: ArrayLike) -> Array:
    """log(1 + exp(`x`)).

    Example:
        >>> jax.nn.softplus(jnp.array([-1000.0, 1000.0]))
        Array([   0., 1000.], dtype=float32)
    """
    return logaddexp(check_array("softplus", x), 0)


@_activation
def sparse_plus(x: ArrayLike) -> Array:
    """0 below -1, (x+1)²/4 up to 1, `x` above.

    Example:
        >>> jax.nn.sparse_plus(jnp.array([-2.0, 0.0, 1.0, 5.0]))
        Array([0.  , 0.25, 1.  , 5.  ], dtype=float32)
    """
    x = array_argument("sparse_plus", x)
    middle = elementary.square(x + 1.0) / 4
    upper = where(x >= 1.0, x, middle)
    return where(x <= -1.0, 0.0, upper)


@_activation
def sparse_sigmoid(x: ArrayLike) -> Array:
    """(x+1)/2 between -1 and 1, else 0 or 1.

    Example:
        >>> jax.nn.sparse_sigmoid(jnp.array([-2.0, 0.0, 0.5, 5.0]))
        Array([0.  , 0.5 , 0.75, 1.  ], dtype=float32)
    """
    x = array_argument("sparse_sigmoid", x)
    return clip((x + 1.0) * 0.5, 0.0, 1.0)


@_activation
def soft_sign(x: ArrayLike) -> Array:
    """`x` / (1 + |x|).

    Example:
        >>> jax.nn.soft_sign(jnp.array([-1.0, 0.0, 3.0]))
        Array([-0.5 ,  0.  ,  0.75], dtype=float32)
    """
    x = array_argument("soft_sign", x)
    return x / (abs(x) + 1)


@_activation
def silu(x: ArrayLike) -> Array:
    """`x` · sigmoid(x).

    Example:
        >>> jax.nn.silu(jnp.array([-1000.0, 0.0, 1000.0]))
        Array([  -0.,    0., 1000.], dtype=float32)
    """
    x = array_argument("silu", x)
    return x * logistic(x)


swish = silu


@_activation
def mish(x: ArrayLike) -> Array:
    """`x` · tanh(softplus(x)).

    Example:
        >>> jax.nn.mish(jnp.array([-1000.0, 0.0, 1000.0]))
        Array([  -0.,    0., 1000.], dtype=float32)
    """
    x = array_argument("mish", x)
    return x * unary.tanh(logaddexp(x, 0))


@_activation
def log_sigmoid(x: ArrayLike) -> Array:
    """log(sigmoid(`x`)).

    Example:
        >>> jax.nn.log_sigmoid(jnp.array([-1000.0, 1000.0]))
        Array([-1000.,    -0.], dtype=float32)
    """
    return -logaddexp(-array_argument("log_sigmoid", x), 0)


def _exponential_below(x: Array) -> Array:
    """exp(x) - 1 where `x` is not positive, else 0, which keeps derivatives finite."""
    return expm1(where(x > 0, 0.0, x))


@_activation
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """`x` above 0, alpha · (exp(x) - 1) below.

    Example:
        >>> jax.nn.elu(jnp.array([-jnp.inf, 0.0, 3.0]), alpha=2.0)
        Array([-2.,  0.,  3.], dtype=float32)
    """
    x = array_argument("elu", x)
    below = alpha * _exponential_below(x)
    return where(x > 0, x, below)


@_activation
def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """max(x, 0) + min(0, alpha · (exp(x / alpha) - 1)).

    Source: mirrors jax.nn.celu (0.10); Barron, "Continuously differentiable exponential linear
        units" (2017).

    Example:
        >>> jax.nn.celu(jnp.array([-jnp.inf, 0.0, 3.0]), alpha=2.0)
        Array([-2.,  0.,  3.], dtype=float32)
    """
    below = expm1(minimum(x, 0.0) / alpha)
    return maximum(x, 0.0) + alpha * below


@_activation
def selu(x: ArrayLike) -> Array:
    """The self-normalizing scaled exponential linear unit.

    Source: mirrors jax.nn.selu (0.10); Klambauer et al., "Self-normalizing neural networks"
        (2017).

    Example:
        >>> x = jax.random.normal(jax.random.key(0), (100_000,))
        >>> y = jax.nn.selu(x)
        >>> abs(y.mean()) < 0.01, abs(y.std() - 1) < 0.01
        (Array(True, dtype=bool), Array(True, dtype=bool))
    """
    alpha, scale = 1.6732632423543772, 1.0507009873554805
    x = array_argument("selu", x)
    below = alpha * _exponential_below(x)
    return scale * where(x > 0, x, below)


@_activation
def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 1e-2) -> Array:
    """`x` from 0 on, negative_slope · x below.

    Example:
        >>> jax.nn.leaky_relu(jnp.array([-4.0, 4.0]), negative_slope=0.25)
        Array([-1.,  4.], dtype=float32)
    """
    x = array_argument("leaky_relu", x)
    below = negative_slope * x
    return where(x >= 0, x, below)


@_activation
def hard_tanh(x: ArrayLike) -> Array:
    """`x` between -1 and 1, else the nearer of them.

    Example:
        >>> jax.nn.hard_tanh(jnp.array([-3.0, 0.5, 3.0]))
        Array([-1. ,  0.5,  1. ], dtype=float32)
    """
    x = array_argument("hard_tanh", x)
    upper = where(x < -1, -1, x)
    return where(x > 1, 1, upper)


@_activation
def hard_sigmoid(x: ArrayLike) -> Array:
    """relu6(`x` + 3) / 6.

    Example:
        >>> jax.nn.hard_sigmoid(jnp.array([-4.0, 0.0, 4.0]))
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    return relu6(array_argument("hard_sigmoid", x) + 3.0) / 6.0


@_activation
def hard_silu(x: ArrayLike) -> Array:
    """`x` · hard_sigmoid(x).

    Example:
        >>> jax.nn.hard_silu(jnp.array([-4.0, 0.0, 4.0]))
        Array([-0.,  0.,  4.], dtype=float32)
    """
    x = array_argument("hard_silu", x)
    return x * hard_sigmoid(x)


hard_swish = hard_silu


@one_program(static=("approximate",))
def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """`x` times the standard normal cumulative distribution function of x, or a tanh approximation.

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
        tail = special.erfc(-x * math.sqrt(0.5))
        return 0.5 * x * tail
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return x * (0.5 * (1 + unary.tanh(inner)))


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
    x = array_argument("glu", x)
    aval = aval_of(x)
    axis = families.canonicalize_axis(axis, aval.ndim, "nn.glu")
    size = aval.shape[axis]
    if size % 2:
        error(ValueError, "nn.glu", "the size must be even.", got={"x": aval, "axis": axis})
    first = slicing.slice_in_dim(x, 0, size // 2, axis=axis)
    second = slicing.slice_in_dim(x, size // 2, size, axis=axis)
    return first * logistic(second)


@_activation
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """(x + sqrt(x² + b)) / 2.

    Example:
        >>> jax.nn.squareplus(jnp.array([-3.0, 0.0, 3.0]), b=16)
        Array([1., 2., 4.], dtype=float32)
    """
    x = array_argument("squareplus", x)
    return (x + elementary.sqrt(elementary.square(x) + b)) / 2


@_activation
def log1mexp(x: ArrayLike) -> Array:
    """log(1 - exp(-x)) for positive `x`, accurate near 0 and far from it.

    Source: mirrors jax.nn.log1mexp (0.10); Mächler, "Accurately computing log(1 - exp(-|a|))"
        (2012).

    Example:
        >>> jax.nn.log1mexp(jnp.array([0.0, 1000.0]))
        Array([-inf,  -0.], dtype=float32)
    """
    x = array_argument("log1mexp", x)
    near = x < math.log(2.0)
    # Each branch sees harmless numbers where the other one counts, which keeps derivatives finite.
    close, far = where(near, x, 1), where(near, 1, x)
    return where(near, log(-expm1(-close)), log1p(-exp(-far)))


@_activation
def tanh(x: ArrayLike, /) -> Array:
    """The hyperbolic tangent.

    Example:
        >>> jax.nn.tanh(jnp.array([-jnp.inf, 0.0, jnp.inf]))
        Array([-1.,  0.,  1.], dtype=float32)
    """
    return elementary.tanh(x)


@one_program(static=("num_classes", "dtype", "axis"))
def one_hot(
    x: ArrayLike, num_classes: int, *, dtype: DTypeLike | None = None, axis: int | str = -1
) -> Array:
    """One-hot vectors: 1 at the position that each number names, else 0.

    Shapes: int[s] -> float[s with num_classes at `axis`].

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
    default = dtypes.default_float_dtype()
    wanted = numpy_creation.dtype_argument("nn.one_hot", dtype, default)
    x = numpy_creation.asarray(x)
    (size,) = canonicalize_shape(num_classes, "nn.one_hot num_classes")
    if isinstance(axis, str):
        if axis_size(axis) != size:
            problem = "there must be as many classes as the mapped axis is long."
            got = {"num_classes": size, f"axis {axis!r}": axis_size(axis)}
            error(ValueError, "nn.one_hot", problem, got=got)
        return creation.convert_element_type(x == axis_index(axis), wanted)
    rank = aval_of(x).ndim + 1
    axis = families.canonicalize_axis(axis, rank, "nn.one_hot")
    dims = tuple(size if i == axis else 1 for i in range(rank))
    classes = creation.broadcasted_iota(aval_of(x).dtype, dims, axis)
    return creation.convert_element_type(shaping.expand_dims(x, axis) == classes, wanted)


@one_program(static=("axis", "keepdims"))
def logmeanexp(
    x: ArrayLike, axis: NamedAxis = None, where: ArrayLike | None = None, keepdims: bool = False
) -> Array:
    """log(mean(exp(x))) without overflow.

    Example:
        >>> jax.nn.logmeanexp(jnp.array([1000.0, 1000.0]))
        Array(1000., dtype=float32)
    """
    total = logsumexp(x, axis=axis, where=where, keepdims=keepdims)
    if where is None:
        count = reductions.over("logmeanexp", x, axis, "nn").length(aval_of(x).shape)
        return total - (math.log(count) if count else -math.inf)
    counted = shaping.broadcast_array(where, aval_of(x).shape)
    dtype = aval_of(total).dtype
    number = reductions.sum(counted, axis=axis, keepdims=keepdims, dtype=dtype)
    return total - log(number)


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

    Raises:
        ValueError: the algorithm is not known.

    Example:
        >>> jax.nn.standardize(jnp.array([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])).round(2)
        Array([[-1.22,  0.  ,  1.22],
               [-1.22,  0.  ,  1.22]], dtype=float32)
    """
    check_choice("nn.standardize", "algorithm", algorithm, ("fast", "stable"))
    x = strong(inexact("standardize", x))
    if mean is None:
        mean = reductions.mean(x, axis, keepdims=True, where=where)
    if variance is None and algorithm == "fast":
        squares = reductions.mean(elementary.square(x), axis, keepdims=True, where=where)
        # Rounding may take the difference below 0.
        variance = maximum(squares - elementary.square(mean), 0)
    elif variance is None:
        variance = reductions.mean(elementary.square(x - mean), axis, keepdims=True, where=where)
    divisor = unary.rsqrt(elementary.add(variance, epsilon))
    return (x - mean) * divisor
