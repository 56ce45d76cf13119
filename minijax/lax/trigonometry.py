"""Trigonometric and hyperbolic functions, and their inverses.  All are elementwise."""

from __future__ import annotations

from typing import Any

from minijax.lax.accuracy import Accuracy
from minijax.lax.binary import add, div, mul, sub
from minijax.lax.families import INEXACT, Unary, operand
from minijax.lax.power import rsqrt
from minijax.lax.unary import apply_accurately, neg
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array


def _inverse_root_of_one_minus_square(x: Any) -> Any:
    # Factored, so that it stays exact near ±1.
    return rsqrt(mul(sub(1.0, x), add(x, 1.0)))


sin_p = Unary("sin", "stablehlo.sine", accepts=INEXACT, derivative=lambda x, y: cos(x))


def sin(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The sines of `x`.

    Dtypes:     floating or complex.
    Derivative: cos x.
    Lowers to:  stablehlo.sine.
    Source:     mirrors jax.lax.sin.

    Example:
        >>> lax.sin(jnp.array([0.0, jnp.pi / 2]))
        Array([0., 1.], dtype=float32)
    """
    return apply_accurately(sin_p, x, accuracy)


cos_p = Unary("cos", "stablehlo.cosine", accepts=INEXACT, derivative=lambda x, y: neg(sin(x)))


def cos(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The cosines of `x`.

    Dtypes:     floating or complex.
    Derivative: -sin x.
    Lowers to:  stablehlo.cosine.
    Source:     mirrors jax.lax.cos.

    Example:
        >>> lax.cos(jnp.array([0.0, jnp.pi]))
        Array([ 1., -1.], dtype=float32)
    """
    return apply_accurately(cos_p, x, accuracy)


tan_p = Unary("tan", "stablehlo.tan", accepts=INEXACT, derivative=lambda x, y: add(mul(y, y), 1.0))


def tan(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The tangents of `x`.

    Dtypes:     floating or complex.
    Derivative: 1 + y², where y is the result.
    Lowers to:  stablehlo.tan.
    Source:     mirrors jax.lax.tan.

    Example:
        >>> lax.tan(jnp.array([0.0, jnp.pi / 4])).round(4)
        Array([0., 1.], dtype=float32)
    """
    return apply_accurately(tan_p, x, accuracy)


asin_p = Unary(
    "asin",
    "chlo.asin",
    accepts=INEXACT,
    derivative=lambda x, y: _inverse_root_of_one_minus_square(x),
)


def asin(x: ArrayLike) -> Array:
    """The angles whose sines are `x`, from -π/2 to π/2.

    Dtypes:     floating or complex.
    Derivative: 1 / √(1 - x²).
    Lowers to:  chlo.asin.
    Source:     mirrors jax.lax.asin.

    Example:
        >>> jnp.degrees(lax.asin(jnp.array([0.0, 1.0, 2.0]))).round(2)
        Array([ 0., 90., nan], dtype=float32)
    """
    return asin_p.bind(operand(x))


acos_p = Unary(
    "acos",
    "chlo.acos",
    accepts=INEXACT,
    derivative=lambda x, y: neg(_inverse_root_of_one_minus_square(x)),
)


def acos(x: ArrayLike) -> Array:
    """The angles whose cosines are `x`, from 0 to π.

    Dtypes:     floating or complex.
    Derivative: -1 / √(1 - x²).
    Lowers to:  chlo.acos.
    Source:     mirrors jax.lax.acos.

    Example:
        >>> jnp.degrees(lax.acos(jnp.array([1.0, -1.0]))).round(2)
        Array([  0., 180.], dtype=float32)
    """
    return acos_p.bind(operand(x))


atan_p = Unary(
    "atan",
    "chlo.atan",
    accepts=INEXACT,
    derivative=lambda x, y: div(1.0, add(mul(x, x), 1.0)),
)


def atan(x: ArrayLike) -> Array:
    """The angles whose tangents are `x`, from -π/2 to π/2.

    Dtypes:     floating or complex.
    Derivative: 1 / (1 + x²).
    Lowers to:  chlo.atan.
    Source:     mirrors jax.lax.atan.

    Example:
        >>> jnp.degrees(lax.atan(jnp.array([1.0, jnp.inf]))).round(2)
        Array([45., 90.], dtype=float32)
    """
    return atan_p.bind(operand(x))


sinh_p = Unary("sinh", "chlo.sinh", accepts=INEXACT, derivative=lambda x, y: cosh(x))


def sinh(x: ArrayLike) -> Array:
    """The hyperbolic sines of `x`.

    Dtypes:     floating or complex.
    Derivative: cosh x.
    Lowers to:  chlo.sinh.
    Source:     mirrors jax.lax.sinh.

    Example:
        >>> lax.sinh(jnp.array([0.0, jnp.log(2.0)])).round(4)
        Array([0.  , 0.75], dtype=float32)
    """
    return sinh_p.bind(operand(x))


cosh_p = Unary("cosh", "chlo.cosh", accepts=INEXACT, derivative=lambda x, y: sinh(x))


def cosh(x: ArrayLike) -> Array:
    """The hyperbolic cosines of `x`.

    Dtypes:     floating or complex.
    Derivative: sinh x.
    Lowers to:  chlo.cosh.
    Source:     mirrors jax.lax.cosh.

    Example:
        >>> lax.cosh(jnp.array([0.0, jnp.log(2.0)])).round(4)
        Array([1.  , 1.25], dtype=float32)
    """
    return cosh_p.bind(operand(x))


tanh_p = Unary(
    "tanh",
    "stablehlo.tanh",
    accepts=INEXACT,
    derivative=lambda x, y: mul(add(y, 1.0), sub(1.0, y)),
    total=True,
)


def tanh(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The hyperbolic tangents of `x`.

    Dtypes:     floating or complex.
    Derivative: (1 + y) (1 - y), where y is the result.
    Lowers to:  stablehlo.tanh.
    Source:     mirrors jax.lax.tanh.

    Example:
        >>> lax.tanh(jnp.array([-jnp.inf, 0.0, jnp.inf]))
        Array([-1.,  0.,  1.], dtype=float32)
    """
    return apply_accurately(tanh_p, x, accuracy)


asinh_p = Unary(
    "asinh",
    "chlo.asinh",
    accepts=INEXACT,
    derivative=lambda x, y: rsqrt(add(mul(x, x), 1.0)),
)


def asinh(x: ArrayLike) -> Array:
    """The inverse hyperbolic sines of `x`.

    Dtypes:     floating or complex.
    Derivative: 1 / √(x² + 1).
    Lowers to:  chlo.asinh.
    Source:     mirrors jax.lax.asinh.

    Example:
        >>> lax.asinh(jnp.sinh(jnp.array([0.0, 2.0]))).round(4)
        Array([0., 2.], dtype=float32)
    """
    return asinh_p.bind(operand(x))


acosh_p = Unary(
    "acosh",
    "chlo.acosh",
    accepts=INEXACT,
    derivative=lambda x, y: mul(rsqrt(sub(x, 1.0)), rsqrt(add(x, 1.0))),
)


def acosh(x: ArrayLike) -> Array:
    """The inverse hyperbolic cosines of `x`.

    Dtypes:     floating or complex.
    Derivative: 1 / (√(x - 1) √(x + 1)).
    Lowers to:  chlo.acosh.
    Source:     mirrors jax.lax.acosh.

    Example:
        >>> lax.acosh(jnp.array([1.0, 0.0]))
        Array([ 0., nan], dtype=float32)
    """
    return acosh_p.bind(operand(x))


atanh_p = Unary(
    "atanh",
    "chlo.atanh",
    accepts=INEXACT,
    derivative=lambda x, y: div(1.0, mul(sub(1.0, x), add(x, 1.0))),
)


def atanh(x: ArrayLike) -> Array:
    """The inverse hyperbolic tangents of `x`.

    Dtypes:     floating or complex.
    Derivative: 1 / (1 - x²).
    Lowers to:  chlo.atanh.
    Source:     mirrors jax.lax.atanh.

    Example:
        >>> lax.atanh(jnp.array([0.0, 1.0, 2.0]))
        Array([ 0., inf, nan], dtype=float32)
    """
    return atanh_p.bind(operand(x))
