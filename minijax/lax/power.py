"""Powers and roots.  All are elementwise."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import ShapedArray, aval_of, shaped_array
from minijax.core.errors import error
from minijax.core.primitive import Primitive
from minijax.interpreters.checking import DIVISION, Fault
from minijax.interpreters.structural import add_tangents, full
from minijax.interpreters.tangents import Zero
from minijax.lax.accuracy import Accuracy
from minijax.lax.binary import add, div, eq, mul, sub
from minijax.lax.choice import select
from minijax.lax.convert import convert_element_type
from minijax.lax.families import (
    FLOAT,
    INEXACT,
    NUMERIC,
    Unary,
    align_batched,
    broadcast_operands,
    broadcast_shape,
    broadcast_to,
    check_dtype,
    operand,
)
from minijax.lax.unary import apply_accurately, log
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.sharding import rules


def _lower_square(ctx: Any, x: Any) -> Any:
    return ctx.op("stablehlo.multiply", [x, x])


square_p = Unary("square", _lower_square, accepts=NUMERIC, derivative=lambda x, y: add(x, x))


def square(x: ArrayLike) -> Array:
    """The squares `x²`.

    Dtypes:     numeric.
    Derivative: 2 x.
    Lowers to:  stablehlo.multiply.
    Source:     mirrors jax.lax.square.

    Example:
        >>> lax.square(jnp.array([3, -4]))
        Array([ 9, 16], dtype=int32)
    """
    return square_p.bind(operand(x))


sqrt_p = Unary("sqrt", "stablehlo.sqrt", accepts=INEXACT, derivative=lambda x, y: div(0.5, y))


def sqrt(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The square roots `√x`.

    Dtypes:     floating or complex.
    Derivative: 1 / (2 √x).
    Lowers to:  stablehlo.sqrt.
    Source:     mirrors jax.lax.sqrt.

    Example:
        >>> lax.sqrt(jnp.array([9.0, -1.0]))
        Array([ 3., nan], dtype=float32)
    """
    return apply_accurately(sqrt_p, x, accuracy)


rsqrt_p = Unary(
    "rsqrt",
    "stablehlo.rsqrt",
    accepts=INEXACT,
    derivative=lambda x, y: mul(div(y, x), -0.5),
)


def rsqrt(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The inverse square roots `1 / √x`.

    Dtypes:     floating or complex.
    Derivative: -1 / (2 x √x).
    Lowers to:  stablehlo.rsqrt.
    Source:     mirrors jax.lax.rsqrt.

    Example:
        >>> lax.rsqrt(jnp.array([4.0, 0.0]))
        Array([0.5, inf], dtype=float32)
    """
    return apply_accurately(rsqrt_p, x, accuracy)


cbrt_p = Unary(
    "cbrt", "stablehlo.cbrt", accepts=FLOAT, derivative=lambda x, y: div(1 / 3, mul(y, y))
)


def cbrt(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The cube roots `∛x`, negative for negative numbers.

    Dtypes:     floating.
    Derivative: 1 / (3 y²), where y is the result.
    Lowers to:  stablehlo.cbrt.
    Source:     mirrors jax.lax.cbrt.

    Example:
        >>> lax.cbrt(jnp.array([27.0, -8.0])).round(4)
        Array([ 3., -2.], dtype=float32)
    """
    return apply_accurately(cbrt_p, x, accuracy)


class IntegerPow(Primitive):
    """Raises each element to the power of a known integer, by repeated squaring.

    Shapes: x: T[s] -> T[s].
    """

    name = "integer_pow"
    fault_flow = "elementwise"
    shard = rules.elementwise

    def abstract_eval(self, x: ShapedArray, *, y: int) -> ShapedArray:
        check_dtype("integer_pow", "x", x, NUMERIC)
        if y < 0 and dtypes.issubdtype(x.dtype, np.integer):
            error(
                TypeError,
                "lax.integer_pow",
                "integers cannot be raised to negative powers.",
                got={"x": x, "y": y},
                fix="convert x to a floating dtype",
            )
        return x

    def lower(self, ctx: Any, x: Any, *, y: int) -> Any:
        (aval,) = ctx.avals_in
        one = ctx.full(aval.shape, 1, aval.dtype)
        power = None
        exponent, factor = abs(y), x
        while exponent:
            if exponent & 1:
                power = factor if power is None else ctx.op("stablehlo.multiply", [power, factor])
            exponent >>= 1
            if exponent:
                factor = ctx.op("stablehlo.multiply", [factor, factor])
        if power is None:
            return one
        return ctx.op("stablehlo.divide", [one, power]) if y < 0 else power

    def faults(self, args: Sequence[Any], outs: Sequence[Any], *, y: int) -> list[Fault]:
        if y >= 0:
            return []
        return [Fault(DIVISION, eq(args[0], 0), "divides by zero")]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, y: int) -> tuple[Any, Any]:
        (x,), (x_dot,) = primals, tangents
        out = self.bind(x, y=y)
        if type(x_dot) is Zero or y == 0:
            return out, Zero.like(out)
        below = x if y == 2 else integer_pow(x, y - 1)
        return out, mul(x_dot, mul(y, below))

    def batch(
        self, size: int, args: Sequence[Any], dims: Sequence[Any], *, y: int
    ) -> tuple[Any, Any]:
        return self.bind(*args, y=y), dims[0]


integer_pow_p = IntegerPow()


def integer_pow(x: ArrayLike, y: int) -> Array:
    """The powers `xʸ` for one known integer y.

    Dtypes:     numeric; inexact where y is negative.
    Derivative: y xʸ⁻¹.
    Lowers to:  stablehlo.multiply, repeatedly.
    Source:     mirrors jax.lax.integer_pow.

    Raises:
        TypeError: y is negative and x integer, or y is no integer.

    Example:
        >>> lax.integer_pow(jnp.array([2, -3]), 3)
        Array([  8, -27], dtype=int32)
        >>> jax.make_jaxpr(lambda x: lax.integer_pow(x, 3))(1.0)
        { lambda ; a:f32[]. let b:f32[] = integer_pow[y=3] a in (b,) }
    """
    return integer_pow_p.bind(operand(x), y=operator.index(y))


def reciprocal(x: ArrayLike) -> Array:
    """The reciprocals `1 / x`.

    Dtypes:     floating or complex.
    Derivative: -1 / x².
    Lowers to:  stablehlo.divide.
    Source:     mirrors jax.lax.reciprocal.

    Example:
        >>> lax.reciprocal(jnp.array([2.0, 0.0]))
        Array([0.5, inf], dtype=float32)
    """
    return integer_pow(x, -1)


class Pow(Primitive):
    """Raises each element of x to the power y, which may be an integer.

    Shapes: x: T[s], y: T[t] or integer[t] -> T[broadcast of s and t].
    """

    name = "pow"
    fault_flow = "elementwise"
    shard = rules.elementwise

    def abstract_eval(self, x: ShapedArray, y: ShapedArray) -> ShapedArray:
        check_dtype("pow", "x", x, INEXACT)
        if x.dtype != y.dtype and not dtypes.issubdtype(y.dtype, np.integer):
            error(
                TypeError,
                "lax.pow",
                "the exponent's dtype does not fit.",
                got={"x": x, "y": y},
                expected="the dtype of x, or integers",
            )
        shape = broadcast_shape("pow", x=x, y=y)
        return shaped_array(shape, x.dtype, x.weak_type and y.weak_type)

    def lower(self, ctx: Any, x: Any, y: Any) -> Any:
        (out,) = ctx.avals_out
        x, y = broadcast_operands(ctx, (x, y))
        if ctx.avals_in[1].dtype != out.dtype:
            y = ctx.convert(y, out.shape, out.dtype)
        return ctx.op("stablehlo.power", [x, y])

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (x, y), (x_dot, y_dot) = primals, tangents
        out = self.bind(x, y)
        total: Any = Zero.like(out)
        if type(x_dot) is not Zero:
            total = broadcast_to(mul(x_dot, _derivative_of_base(x, y)), out)
        if type(y_dot) is not Zero:
            # xʸ ln x, where 0ʸ has the derivative 0 for y >= 0.
            base = select(eq(x, 0), full(aval_of(x).shape, 1, aval_of(x).dtype), x)
            term = mul(y_dot, mul(log(base), out))
            total = add_tangents(total, broadcast_to(term, out))
        return out, total

    def batch(self, size: int, args: Sequence[Any], dims: Sequence[Any]) -> tuple[Any, int]:
        (x, y), dim = align_batched(args, dims)
        return self.bind(x, y), dim


def _derivative_of_base(x: Any, y: Any) -> Any:
    """`y xʸ⁻¹`; for integers y, exactly 0 where y is 0."""
    dtype = aval_of(x).dtype
    if dtypes.issubdtype(aval_of(y).dtype, np.integer):
        one_less = select(eq(y, 0), full(aval_of(y).shape, 1, aval_of(y).dtype), sub(y, 1))
        return mul(convert_element_type(y, dtype), pow(x, one_less))
    return mul(y, pow(x, sub(y, 1)))


pow_p = Pow()


def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """The powers `xʸ`.

    Shapes:     x: T[s], y: T[t] or integer[t] -> T[broadcast of s and t].
    Dtypes:     floating or complex; exponents may be integers.
    Derivative: y xʸ⁻¹ dx + xʸ ln x dy.
    Lowers to:  stablehlo.power.
    Source:     mirrors jax.lax.pow.

    Example:
        >>> lax.pow(jnp.array([2.0, 9.0]), jnp.array([3.0, 0.5]))
        Array([8., 3.], dtype=float32)
        >>> lax.pow(jnp.array([2.0, 9.0]), 2)
        Array([ 4., 81.], dtype=float32)
    """
    x = operand(x, y)
    # A Python int stays an integer: x ** 2 has a derivative at 0 and below.
    return pow_p.bind(x, y if type(y) is int else operand(y, x))
