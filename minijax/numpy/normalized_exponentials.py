"""Softmax and sums of exponentials, without overflow; `nn` and `scipy.special` share them.

Input: arrays.  Output: arrays of the same shape, or reduced.
"""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.interpreters import checking
from minijax.lax import binary, creation, reduction, unary
from minijax.numpy import logic, reductions, selection, shaping
from minijax.numpy.promotion import check_mask, inexact, one_program, promote_dtypes, strong
from minijax.numpy.reductions import Over
from minijax.runtime.annotations import ArrayLike, NamedAxis
from minijax.runtime.array import Array


def _kept(x: Array, axes: Over) -> Any:
    """A reduced array with its dimensions back, of size 1."""
    return shaping.expand_dims(x, axes.dims) if axes.dims else x


def _masked(x: Array, where: ArrayLike | None, value: float) -> Any:
    """`x` where it counts, else `value`."""
    return x if where is None else selection.where(check_mask("where", where), x, value)


def _maximum(x: Array, axes: Over) -> Any:
    # What is combined over mapped axes has no derivative, and needs none here.
    x = unary.stop_gradient(x) if axes.names else x
    return reductions.max(x, axis=axes.axis, initial=-np.inf)


def _shifted(x: Array, axes: Over, where: ArrayLike | None) -> Any:
    """`x` less its maximum along axes, which is a constant of the derivative; -inf where masked."""
    x = _masked(x, where, -np.inf)
    return binary.sub(x, unary.stop_gradient(_kept(_maximum(x, axes), axes)))


@one_program(static=("axis",))
def softmax(x: ArrayLike, axis: NamedAxis = -1, where: ArrayLike | None = None) -> Array:
    """Computes the softmax along `axis`: `exp(x)` divided by its sum, without overflow.

    Args:
        x: the logits.
        axis: a dimension, several, or None for all; names of mapped axes are allowed among them.
        where: which elements count; the others give 0.

    Example:
        >>> jax.nn.softmax(jnp.array([1000.0, 1000.0]))
        Array([0.5, 0.5], dtype=float32)
        >>> jax.nn.softmax(jnp.zeros(3), where=jnp.array([True, True, False]))
        Array([0.5, 0.5, 0. ], dtype=float32)
    """
    x = strong(inexact("softmax", x))
    axes = reductions.over("softmax", x, axis, "nn")
    powers = unary.exp(_shifted(x, axes, where))
    total = _kept(axes.combined(_masked(powers, where, 0.0), reduction.reduce_sum), axes)
    return _masked(binary.div(powers, total), where, 0.0)


@one_program(static=("axis",))
def log_softmax(x: ArrayLike, axis: NamedAxis = -1, where: ArrayLike | None = None) -> Array:
    """Computes the logarithm of the softmax along `axis`, without overflow.

    Example:
        >>> jax.nn.log_softmax(jnp.array([0.0, 1000.0]))
        Array([-1000.,     0.], dtype=float32)
    """
    x = strong(inexact("log_softmax", x))
    axes = reductions.over("log_softmax", x, axis, "nn")
    shifted = _shifted(x, axes, where)
    powers = _masked(unary.exp(shifted), where, 0.0)
    total = _kept(axes.combined(powers, reduction.reduce_sum), axes)
    return _masked(binary.sub(shifted, unary.log(total)), where, -np.inf)


@overload
def logsumexp(
    a: ArrayLike,
    axis: NamedAxis = ...,
    b: ArrayLike | None = ...,
    keepdims: bool = ...,
    return_sign: Literal[False] = ...,
    where: ArrayLike | None = ...,
) -> Array: ...
@overload
def logsumexp(
    a: ArrayLike,
    axis: NamedAxis = ...,
    b: ArrayLike | None = ...,
    keepdims: bool = ...,
    *,
    return_sign: Literal[True],
    where: ArrayLike | None = ...,
) -> tuple[Array, Array]: ...
@overload
def logsumexp(
    a: ArrayLike,
    axis: NamedAxis = ...,
    b: ArrayLike | None = ...,
    keepdims: bool = ...,
    return_sign: bool = ...,
    where: ArrayLike | None = ...,
) -> Array | tuple[Array, Array]: ...


@one_program(static=("axis", "keepdims", "return_sign"))
def logsumexp(
    a: ArrayLike,
    axis: NamedAxis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Array | tuple[Array, Array]:
    """Computes `log(sum(b * exp(a)))` over `axis` without overflow.

    Args:
        a: the exponents.
        axis: a dimension, several, or None for all; names of mapped axes are allowed among them.
        b: factors.
        keepdims: whether reduced dimensions stay, of size 1.
        return_sign: whether to return (logarithm of the absolute value, sign).
        where: which elements count.

    Example:
        >>> jax.nn.logsumexp(jnp.array([1000.0, -1000.0]))
        Array(1000., dtype=float32)
        >>> jax.nn.logsumexp(jnp.zeros(2), b=jnp.array([1.0, -2.0]), return_sign=True)
        (Array(0., dtype=float32), Array(-1., dtype=float32))
    """
    a = inexact("logsumexp", a)
    if b is not None:
        a, b = shaping.broadcast_arrays(*promote_dtypes("logsumexp", a, b))
        # exp(a) may overflow where the factor is 0.
        a = selection.where(logic.not_equal(b, 0), a, -np.inf)
    axes = reductions.over("logsumexp", a, axis, "nn")
    counted: Any = _masked(a, where, -np.inf)
    largest = _kept(_finite_maximum(counted, axes), axes)
    shift = creation.convert_to_type(largest, aval_of(a).dtype, weak_type=False)
    powers = unary.exp(binary.sub(counted, shift))
    if b is not None:
        powers = binary.mul(powers, b)
    total = axes.combined(_masked(powers, where, 0.0), reduction.reduce_sum)
    if keepdims:
        total = _kept(total, axes)
    else:
        largest = shaping.reshape_array(largest, aval_of(total).shape)
    if return_sign:
        return binary.add(_log(unary.abs(total)), largest), unary.sign(total)
    # The logarithm of a negative sum is not a number.
    return binary.add(_log(total), creation.convert_to_type(largest, aval_of(total).dtype, False))


def _log(total: Array) -> Any:
    if not checking.is_checking(checking.NON_FINITE):
        return unary.log(total)
    # Where somebody looks for infinities, that of a sum of nothing is no fault.
    return selection.where(logic.equal(total, 0), -np.inf, unary.log(total))


def _finite_maximum(a: Array, axes: Over) -> Any:
    """The largest real part along axes, or 0 for an infinity; a constant of the derivative."""
    if dtypes.issubdtype(aval_of(a).dtype, np.complexfloating):
        a = unary.real(a)
    largest = _maximum(a, axes)
    largest = selection.where(unary.is_finite(largest), largest, 0.0)
    return strong(unary.stop_gradient(largest))
