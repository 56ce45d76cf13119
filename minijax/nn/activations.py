"""Activation functions, softmax and attention.

Input: arrays.  Output: arrays of the same shape, or reduced.  Gradients at kinks are those of
JAX: zero for `relu` at 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import message
from minijax.lax import (
    arguments,
    binary,
    choice,
    convert,
    creation,
    power,
    reduction,
    special,
    trigonometry,
    unary,
)
from minijax.numpy import contraction, elementary, reductions, selection, shaping
from minijax.numpy.one_program import one_program
from minijax.numpy.promotion import check_array


def _float(name: str, x: Any) -> Any:
    """An argument as an array of floats."""
    x = check_array(name, x)
    dtype = dtypes.to_inexact_dtype(aval_of(x).dtype)
    return convert.convert_to_type(x, dtype, bool(aval_of(x).weak_type))


def _like(value: float, x: Any) -> Any:
    """A number as a NumPy scalar of the dtype of `x`."""
    return np.asarray(value, aval_of(x).dtype)[()]


def _activation(function: Callable[..., Any]) -> Callable[..., Any]:
    return one_program()(function)


def identity(x: Any) -> Any:
    """`x` itself.  Mirrors jax.nn.identity (0.10)."""
    return check_array("identity", x)


@_activation
def relu(x: Any) -> Any:
    """max(x, 0), with derivative 0 at 0.

    Shapes: T[s] -> T[s].
    Source: mirrors jax.nn.relu (0.10).
    """
    x = check_array("relu", x)
    zero = _like(0, x)
    return choice.select(binary.gt(x, zero), x, creation.full_like(x, 0))


@_activation
def relu6(x: Any) -> Any:
    """min(max(x, 0), 6), with derivative 0 at both kinks.  Mirrors jax.nn.relu6 (0.10)."""
    x = check_array("relu6", x)
    return _clipped(x, 0, 6)


def _clipped(x: Any, low: float, high: float) -> Any:
    """`x` between two bounds, with derivative 0 on and beyond them."""
    inside = binary.bitwise_and(binary.gt(x, _like(low, x)), binary.lt(x, _like(high, x)))
    beyond = choice.select(
        binary.ge(x, _like(high, x)), creation.full_like(x, high), creation.full_like(x, low)
    )
    return choice.select(inside, x, beyond)


@_activation
def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)).  Mirrors jax.nn.sigmoid (0.10)."""
    return unary.logistic(_float("sigmoid", x))


@_activation
def softplus(x: Any) -> Any:
    """log(1 + exp(x)).  Mirrors jax.nn.softplus (0.10)."""
    x = _float("softplus", x)
    return elementary.logaddexp(x, creation.full_like(x, 0))


@_activation
def sparse_plus(x: Any) -> Any:
    """0 below -1, (x+1)²/4 up to 1, x above.  Mirrors jax.nn.sparse_plus (0.10)."""
    x = _float("sparse_plus", x)
    middle = (x + 1) ** 2 / 4
    return selection.where(x <= -1, 0, selection.where(x >= 1, x, middle))


@_activation
def sparse_sigmoid(x: Any) -> Any:
    """(x+1)/2 between -1 and 1, else 0 or 1.  Mirrors jax.nn.sparse_sigmoid (0.10)."""
    x = _float("sparse_sigmoid", x)
    return choice.clamp(_like(0, x), (x + 1) * 0.5, _like(1, x))


@_activation
def soft_sign(x: Any) -> Any:
    """x / (1 + |x|).  Mirrors jax.nn.soft_sign (0.10)."""
    x = _float("soft_sign", x)
    return x / (unary.abs(x) + 1)


@_activation
def silu(x: Any) -> Any:
    """x · sigmoid(x).  Mirrors jax.nn.silu (0.10)."""
    x = _float("silu", x)
    return binary.mul(x, unary.logistic(x))


swish = silu


@_activation
def mish(x: Any) -> Any:
    """x · tanh(softplus(x)).  Mirrors jax.nn.mish (0.10)."""
    x = _float("mish", x)
    return binary.mul(x, trigonometry.tanh(elementary.logaddexp(x, creation.full_like(x, 0))))


@_activation
def log_sigmoid(x: Any) -> Any:
    """log(sigmoid(x)).  Mirrors jax.nn.log_sigmoid (0.10)."""
    x = _float("log_sigmoid", x)
    return unary.neg(elementary.logaddexp(unary.neg(x), creation.full_like(x, 0)))


@_activation
def elu(x: Any, alpha: Any = 1.0) -> Any:
    """x above 0, alpha · (exp(x) - 1) below.  Mirrors jax.nn.elu (0.10)."""
    x = _float("elu", x)
    safe = selection.where(x > 0, 0.0, x)
    return selection.where(x > 0, x, alpha * unary.expm1(safe))


@_activation
def leaky_relu(x: Any, negative_slope: Any = 1e-2) -> Any:
    """x from 0 on, negative_slope · x below.  Mirrors jax.nn.leaky_relu (0.10)."""
    x = _float("leaky_relu", x)
    return selection.where(x >= 0, x, negative_slope * x)


@_activation
def hard_tanh(x: Any) -> Any:
    """x between -1 and 1, else the nearer of them.  Mirrors jax.nn.hard_tanh (0.10)."""
    x = _float("hard_tanh", x)
    return selection.where(x > 1, 1, selection.where(x < -1, -1, x))


@_activation
def hard_sigmoid(x: Any) -> Any:
    """relu6(x + 3) / 6.  Mirrors jax.nn.hard_sigmoid (0.10)."""
    return _clipped(_float("hard_sigmoid", x) + 3.0, 0, 6) / 6.0


@_activation
def hard_silu(x: Any) -> Any:
    """x · hard_sigmoid(x).  Mirrors jax.nn.hard_silu (0.10)."""
    x = _float("hard_silu", x)
    return x * (_clipped(x + 3.0, 0, 6) / 6.0)


hard_swish = hard_silu


@_activation
def celu(x: Any, alpha: Any = 1.0) -> Any:
    """max(x, 0) + min(0, alpha · (exp(x/alpha) - 1)).  Mirrors jax.nn.celu (0.10)."""
    x = _float("celu", x)
    safe = selection.where(x > 0, 0.0, x)
    return selection.where(x > 0, x, alpha * unary.expm1(safe / alpha))


@_activation
def selu(x: Any) -> Any:
    """The self-normalizing unit of Klambauer et al. (2017).  Mirrors jax.nn.selu (0.10)."""
    alpha, scale = 1.6732632423543772, 1.0507009873554805
    x = _float("selu", x)
    safe = selection.where(x > 0, 0.0, x)
    return scale * selection.where(x > 0, x, alpha * unary.expm1(safe))


@one_program(static=("approximate",))
def gelu(x: Any, approximate: bool = True) -> Any:
    """x times the normal distribution function of x, or its approximation by tanh.

    Source: mirrors jax.nn.gelu (0.10).
    """
    x = _float("gelu", x)
    if approximate:
        factor = _like(math.sqrt(2 / math.pi), x)
        cube = x**3
        inner = binary.mul(factor, binary.add(x, binary.mul(_like(0.044715, x), cube)))
        half = binary.mul(_like(0.5, x), binary.add(_like(1, x), trigonometry.tanh(inner)))
        return binary.mul(x, half)
    root = _like(math.sqrt(0.5), x)
    tail = special.erfc(binary.mul(unary.neg(x), root))
    return binary.mul(_like(0.5, x), binary.mul(x, tail))


@one_program(static=("axis",))
def glu(x: Any, axis: int = -1) -> Any:
    """The first half along `axis` times the sigmoid of the second.  Mirrors jax.nn.glu (0.10).

    Raises:
        ValueError: the size along `axis` is odd.
    """
    x = _float("glu", x)
    size = aval_of(x).shape[axis]
    if size % 2:
        raise ValueError(message("nn.glu", "the size must be even.", got=str(aval_of(x))))
    first, second = _halves(x, axis)
    return first * unary.logistic(second)


def _halves(x: Any, axis: int) -> tuple[Any, Any]:
    axis = arguments.canonicalize_axis(axis, aval_of(x).ndim, "nn.glu")
    half = aval_of(x).shape[axis] // 2
    index: list[Any] = [slice(None)] * aval_of(x).ndim
    index[axis] = slice(0, half)
    first = x[tuple(index)]
    index[axis] = slice(half, None)
    return first, x[tuple(index)]


@_activation
def squareplus(x: Any, b: Any = 4) -> Any:
    """(x + sqrt(x² + b)) / 2.  Mirrors jax.nn.squareplus (0.10)."""
    x = _float("squareplus", x)
    return (x + power.sqrt(x * x + b)) / 2


@_activation
def log1mexp(x: Any) -> Any:
    """log(1 - exp(-x)) for positive x.  Mirrors jax.nn.log1mexp (0.10)."""
    x = _float("log1mexp", x)
    near = binary.le(x, _like(math.log(2.0), x))
    first = unary.log(unary.neg(unary.expm1(unary.neg(x))))
    return choice.select(near, first, unary.log1p(unary.neg(unary.exp(unary.neg(x)))))


@one_program()
def tanh(x: Any, /) -> Any:
    """The hyperbolic tangent.  Mirrors jax.nn.tanh (0.10)."""
    return trigonometry.tanh(_float("tanh", x))


def _axes(axis: Any, rank: int, name: str) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(rank))
    return shaping.canonical_axes(name, axis, rank)


def _kept(x: Any, axes: tuple[int, ...]) -> Any:
    """A reduced array with its dimensions back, of size 1."""
    return shaping.expand_dims(x, tuple(sorted(axes))) if axes else x


def _maximum(x: Any, axes: tuple[int, ...], where: Any) -> Any:
    """The maximum along axes, as a constant of the derivative."""
    if where is not None:
        x = selection.where(where, x, -np.inf)
    return unary.stop_gradient(_kept(reduction.reduce_max(x, axes), axes))


@one_program(static=("axis",))
def softmax(x: Any, axis: Any = -1, where: Any = None) -> Any:
    """exp(x) divided by its sum along `axis`, without overflow.

    Args:
        x: the logits.
        axis: a dimension, or several.
        where: which elements count; the others give 0.

    Source: mirrors jax.nn.softmax (0.10).
    """
    x = _float("softmax", x)
    axes = _axes(axis, aval_of(x).ndim, "nn.softmax")
    if 0 in aval_of(x).shape:
        return x
    shifted = binary.sub(x, _maximum(x, axes, where))
    if where is not None:
        shifted = selection.where(where, shifted, -np.inf)
    powers = unary.exp(shifted)
    total = _kept(reduction.reduce_sum(powers, axes), axes)
    return binary.div(powers, total)


@one_program(static=("axis",))
def log_softmax(x: Any, axis: Any = -1, where: Any = None) -> Any:
    """The logarithm of `softmax`.  Mirrors jax.nn.log_softmax (0.10)."""
    x = _float("log_softmax", x)
    axes = _axes(axis, aval_of(x).ndim, "nn.log_softmax")
    if 0 in aval_of(x).shape:
        return x
    masked = x if where is None else selection.where(where, x, -np.inf)
    shifted = binary.sub(masked, _maximum(x, axes, where))
    total = _kept(reduction.reduce_sum(unary.exp(shifted), axes), axes)
    result = binary.sub(shifted, unary.log(total))
    return result if where is None else selection.where(where, result, -np.inf)


@one_program(static=("axis", "keepdims", "return_sign"))
def logsumexp(
    a: Any,
    axis: Any = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: Any = None,
) -> Any:
    """log(sum(b · exp(a))) without overflow.

    Args:
        a: the exponents.
        axis: a dimension, several, or None for all.
        b: factors.
        keepdims: whether reduced dimensions stay, of size 1.
        return_sign: whether to return (logarithm of the absolute value, sign).
        where: which elements count.

    Source: mirrors jax.nn.logsumexp (0.10).
    """
    a = _float("logsumexp", a)
    if b is not None:
        b = _float("logsumexp", b)
        a, b = shaping.broadcast_arrays(a, b)
        a = selection.where(b != 0, a, -np.inf)
    if where is not None:
        a = selection.where(where, a, -np.inf)
    axes = _axes(axis, aval_of(a).ndim, "nn.logsumexp")
    largest = unary.stop_gradient(_kept(reductions.max(a, axis=axes, initial=-np.inf), axes))
    finite = unary.is_finite(largest)
    largest = selection.where(finite, largest, creation.full_like(largest, 0))
    powers = unary.exp(binary.sub(a, largest))
    if b is not None:
        powers = binary.mul(powers, b)
    total = reduction.reduce_sum(powers, axes)
    sign = unary.sign(total)
    if return_sign or b is not None:
        total = unary.abs(total)
    out = binary.add(unary.log(total), shaping.reshape_array(largest, aval_of(total).shape))
    if b is not None and not return_sign:
        out = selection.where(sign < 0, np.nan, out)
    if keepdims:
        out, sign = _kept(out, axes), _kept(sign, axes)
    return (out, sign) if return_sign else out


@one_program(static=("axis", "keepdims"))
def logmeanexp(a: Any, axis: Any = None, where: Any = None, keepdims: bool = False) -> Any:
    """log(mean(exp(a))) without overflow.  Mirrors jax.nn.logmeanexp (0.10)."""
    total = logsumexp(a, axis=axis, where=where, keepdims=keepdims)
    axes = _axes(axis, aval_of(a).ndim, "nn.logmeanexp")
    if where is None:
        count = math.prod(aval_of(a).shape[i] for i in axes)
        return total - np.log(count)
    wide = shaping.broadcast_array(where, aval_of(a).shape)
    return total - unary.log(wide.sum(axis=axes, keepdims=keepdims).astype(aval_of(total).dtype))


@one_program(static=("axis", "epsilon", "algorithm"))
def standardize(
    x: Any,
    axis: Any = -1,
    mean: Any = None,
    variance: Any = None,
    epsilon: Any = 1e-5,
    where: Any = None,
    *,
    algorithm: str = "fast",
) -> Any:
    """(x - mean) / sqrt(variance + epsilon) along `axis`.

    Source: mirrors jax.nn.standardize (0.10).

    Raises:
        ValueError: the algorithm is not known.
    """
    if algorithm not in ("fast", "stable"):
        raise ValueError(
            message("nn.standardize", f"unknown algorithm {algorithm!r}.", expected="'fast'")
        )
    x = _float("standardize", x)
    if mean is None:
        mean = reductions.mean(x, axis, keepdims=True, where=where)
    if variance is None:
        if algorithm == "fast":
            squares = reductions.mean(x * x, axis, keepdims=True, where=where)
            variance = squares - mean * mean
        else:
            variance = reductions.mean((x - mean) ** 2, axis, keepdims=True, where=where)
    return (x - mean) * power.rsqrt(variance + epsilon)


@one_program(static=("num_classes", "dtype", "axis"))
def one_hot(x: Any, num_classes: int, *, dtype: Any = None, axis: int = -1) -> Any:
    """Vectors that are 1 at the position that each number names, else 0.

    Shapes: int[s] -> float[s with num_classes at `axis`].
    Source: mirrors jax.nn.one_hot (0.10).
    """
    wanted = dtypes.default_float_dtype() if dtype is None else (
        dtypes.canonicalize_user_dtype(dtype, "nn.one_hot")
    )
    x = check_array("one_hot", x)
    rank = aval_of(x).ndim
    axis = arguments.canonicalize_axis(axis, rank + 1, "nn.one_hot")
    classes = creation.broadcasted_iota(
        aval_of(x).dtype,
        tuple(num_classes if i == axis else 1 for i in range(rank + 1)),
        axis,
    )
    wide = shaping.expand_dims(x, axis)
    return convert.convert_element_type(binary.eq(wide, classes), wanted)


@one_program(static=("scale", "is_causal", "local_window_size", "implementation", "return_residual"))
def dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: Any = None,
    key_value_seq_lengths: Any = None,
    local_window_size: Any = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Any:
    """softmax(query · keyᵀ · scale + bias) · value for each head.

    Shapes: query T[b, t, n, h], key and value T[b, s, k, h] with k dividing n -> T[b, t, n, h];
        the leading b may be absent.
    Source: mirrors jax.nn.dot_product_attention (0.10), by plain XLA operations.

    Raises:
        ValueError: shapes do not fit.
    """
    batched = aval_of(query).ndim == 4
    if not batched:
        query, key, value = (shaping.expand_dims(x, 0) for x in (query, key, value))
    b, t, n, h = aval_of(query).shape
    _, s, k, _ = aval_of(key).shape
    if n % k or aval_of(key).shape != aval_of(value).shape:
        raise ValueError(
            message(
                "nn.dot_product_attention",
                "heads of keys and values must divide those of queries.",
                got={"query": aval_of(query), "key": aval_of(key), "value": aval_of(value)},
            )
        )
    grouped = shaping.reshape(query, (b, t, k, n // k, h))
    logits = contraction.einsum(
        "btkgh,bskh->bkgts", grouped, key, preferred_element_type=np.float32
    )
    logits = shaping.reshape(logits, (b, n, t, s)) * (h**-0.5 if scale is None else scale)
    if bias is not None:
        logits = logits + convert.convert_element_type(bias, np.dtype(np.float32))
    allowed = _attention_mask(
        t, s, mask, is_causal, query_seq_lengths, key_value_seq_lengths, local_window_size
    )
    if allowed is not None:
        lowest = -0.7 * float(np.finfo(np.float32).max)
        logits = selection.where(allowed, logits, lowest)
    weights = softmax(logits, axis=-1)
    weights = convert.convert_element_type(weights, aval_of(key).dtype)
    weights = shaping.reshape(weights, (b, k, n // k, t, s))
    out = contraction.einsum("bkgts,bskh->btkgh", weights, value)
    out = shaping.reshape(out, (b, t, n, h))
    if query_seq_lengths is not None:
        inside = _before(query_seq_lengths, t)
        out = selection.where(shaping.expand_dims(inside, (2, 3)), out, 0)
    return out if batched else shaping.squeeze(out, 0)


def _before(lengths: Any, size: int) -> Any:
    """bool[b, size]: which positions lie before each length."""
    return np.arange(size)[None, :] < shaping.expand_dims(lengths, 1)


def _attention_mask(
    t: int, s: int, mask: Any, is_causal: bool, q_lengths: Any, kv_lengths: Any, window: Any
) -> Any:
    rows, columns = np.arange(t)[:, None], np.arange(s)[None, :]
    allowed = mask
    fixed = np.ones((t, s), bool)
    if is_causal:
        fixed &= rows >= columns
    if window is not None:
        left, right = (window, window) if isinstance(window, int) else window
        fixed &= (columns >= rows - left) & (columns <= rows + right)
    if not fixed.all():
        allowed = fixed if allowed is None else allowed & fixed
    for lengths, size, dims in ((q_lengths, t, (1, 3)), (kv_lengths, s, (1, 2))):
        if lengths is not None:
            inside = shaping.expand_dims(_before(lengths, size), dims)
            allowed = inside if allowed is None else allowed & inside
    return allowed
