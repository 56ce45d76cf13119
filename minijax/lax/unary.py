"""Elementwise functions of one array: signs, rounding, exponentials, powers, trigonometry.

Powers with an exponent that is an array are here too, beside the roots.
"""

from __future__ import annotations

import enum
import math
import operator
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from minijax.core import dtypes, tree, vma
from minijax.core.aval import ShapedArray, aval_of, shaped_array
from minijax.core.dtypes import DType
from minijax.core.errors import error
from minijax.core.primitive import Cotangents, Dual, Primitive, Tangent, Zero
from minijax.interpreters import checking
from minijax.interpreters.checking import DIVISION, Fault
from minijax.interpreters.jvp import UndefinedPrimal, jvp_of_constant, jvp_of_linear
from minijax.interpreters.structural import add_tangents, full
from minijax.lax.binary import add, div, eq, ge, mul, select, sub
from minijax.lax.creation import convert_element_type
from minijax.lax.families import (
    BITS,
    COMPLEX,
    FLOAT,
    INEXACT,
    INTEGER,
    NUMERIC,
    WHATEVER,
    Accuracy,
    Binary,
    Unary,
    Values,
    batch_elementwise,
    batch_unary,
    bool_dtype,
    broadcast_operands,
    broadcast_shape,
    broadcast_to,
    check_dtype,
    neg_p,
    operand,
    operands,
)
from minijax.lowering.stablehlo import LoweringContext, Value
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.sharding import rules

T = TypeVar("T")


def apply_accurately(primitive: Unary, x: ArrayLike, accuracy: Accuracy) -> Any:
    """Binds a primitive that takes an accuracy; the default one is not written down.

    Raises:
        NotImplementedError: `accuracy` is none.
    """
    if accuracy is None:
        return primitive.bind(operand(x))
    if not isinstance(accuracy, Accuracy):
        problem = "not an accuracy."
        got = repr(accuracy)
        expected = "lax.AccuracyMode or lax.Tolerance"
        error(NotImplementedError, f"lax.{primitive.name}", problem, got=got, expected=expected)
    return primitive.bind(operand(x), accuracy=accuracy)


def neg(x: ArrayLike) -> Array:
    """Elementwise negation: `-x`.

    Dtypes:     numeric.
    Derivative: linear.
    Lowers to:  stablehlo.negate.

    Example:
        >>> lax.neg(jnp.array([1, -2]))
        Array([-1,  2], dtype=int32)
    """
    return neg_p.bind(operand(x))


def _lower_sign(ctx: LoweringContext, x: Value) -> Any:
    (aval,) = ctx.avals_in
    if not dtypes.issubdtype(aval.dtype, np.unsignedinteger):
        return ctx.op("stablehlo.sign", [x])
    one = ctx.full(aval.shape, 1, aval.dtype)
    return ctx.op("stablehlo.minimum", [x, one])


sign_p = Unary("sign", _lower_sign, accepts=NUMERIC, derivative=Unary.FLAT, total=True)


def sign(x: ArrayLike) -> Array:
    """The sign of each element: -1, 0 or 1; `z / |z|` for complex numbers.

    Dtypes:     numeric.
    Derivative: zero.
    Lowers to:  stablehlo.sign.

    Example:
        >>> lax.sign(jnp.array([-5.0, 0.0, 3.0]))
        Array([-1.,  0.,  1.], dtype=float32)
        >>> lax.sign(jnp.array([3 + 4j]))
        Array([0.6+0.8j], dtype=complex64)
    """
    return sign_p.bind(operand(x))


class Abs(Primitive):
    """The absolute value of each element; of a complex number it is real.

    Shapes: x: T[s] -> real part of T[s].
    """

    name = "abs"
    shard = rules.elementwise
    batch = batch_unary

    def abstract_eval(self, x: ShapedArray) -> ShapedArray:
        check_dtype("abs", "x", x, (np.signedinteger, *INEXACT))
        dtype = dtypes.real_dtype_of(x.dtype)
        return x if dtype == x.dtype else shaped_array(x.shape, dtype, x.weak_type)

    def lower(self, ctx: LoweringContext, x: Value) -> Any:
        return ctx.op("stablehlo.abs", [x])

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array]) -> Dual:
        (x,), (x_dot,) = primals, tangents
        out = self.bind(x)
        if dtypes.issubdtype(aval_of(x).dtype, np.complexfloating):
            # d|z| = Re(z̄ dz) / |z|, and 0 at 0.
            size = select(eq(out, 0.0), full(aval_of(out).shape, 1, aval_of(out).dtype), out)
            return out, div(real(mul(x_dot, conj(x))), size)
        return out, select(ge(x, 0), x_dot, neg(x_dot))


abs_p = Abs()


def abs(x: ArrayLike) -> Array:
    """The absolute value `|x|`; real for complex numbers.

    Dtypes:     signed integer, floating or complex.
    Derivative: that of x or -x; of x at 0.
    Lowers to:  stablehlo.abs.

    Example:
        >>> lax.abs(jnp.array([-2, 3]))
        Array([2, 3], dtype=int32)
        >>> lax.abs(jnp.array([3 + 4j]))
        Array([5.], dtype=float32)
    """
    return abs_p.bind(operand(x))


floor_p = Unary("floor", "stablehlo.floor", accepts=FLOAT, derivative=Unary.FLAT, total=True)


def floor(x: ArrayLike) -> Array:
    """Rounds down to an integer.

    Dtypes:     floating.
    Derivative: zero.
    Lowers to:  stablehlo.floor.

    Example:
        >>> lax.floor(jnp.array([1.7, -1.2]))
        Array([ 1., -2.], dtype=float32)
    """
    return floor_p.bind(operand(x))


ceil_p = Unary("ceil", "stablehlo.ceil", accepts=FLOAT, derivative=Unary.FLAT, total=True)


def ceil(x: ArrayLike) -> Array:
    """Rounds up to an integer.

    Dtypes:     floating.
    Derivative: zero.
    Lowers to:  stablehlo.ceil.

    Example:
        >>> lax.ceil(jnp.array([1.2, -1.7]))
        Array([ 2., -1.], dtype=float32)
    """
    return ceil_p.bind(operand(x))


class RoundingMethod(enum.IntEnum):
    """How `round` breaks ties between two integers.

    Source:     mirrors jax.lax (0.10).

    Example:
        >>> lax.RoundingMethod.TO_NEAREST_EVEN
        <RoundingMethod.TO_NEAREST_EVEN: 1>
        >>> lax.round(jnp.array([0.5, 1.5, 2.5]), lax.RoundingMethod.TO_NEAREST_EVEN)
        Array([0., 2., 2.], dtype=float32)
    """

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


class Round(Primitive):
    """Rounds each element to a whole number.

    Shapes: x: T[s] -> T[s].  Its derivative is zero.
    """

    name = "round"
    jvp = jvp_of_constant
    shard = rules.elementwise
    batch = batch_unary

    def abstract_eval(self, x: ShapedArray, *, rounding_method: RoundingMethod) -> ShapedArray:
        check_dtype("round", "x", x, FLOAT)
        return x

    def lower(self, ctx: LoweringContext, x: Value, *, rounding_method: RoundingMethod) -> Any:
        if rounding_method is RoundingMethod.AWAY_FROM_ZERO:
            return ctx.op("stablehlo.round_nearest_afz", [x])
        return ctx.op("stablehlo.round_nearest_even", [x])


round_p = Round()


def round(x: ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """Rounds to the nearest integer; `rounding_method` says how ties are broken.

    Dtypes:     floating.
    Derivative: zero.
    Lowers to:  stablehlo.round_nearest_afz or round_nearest_even.

    Raises:
        ValueError: there is no such method.

    Example:
        >>> lax.round(jnp.array([0.5, 1.5, 2.5]))
        Array([1., 2., 3.], dtype=float32)
    """
    return round_p.bind(operand(x), rounding_method=RoundingMethod(rounding_method))


is_finite_p = Unary(
    "is_finite", "stablehlo.is_finite", accepts=FLOAT, derivative=Unary.FLAT, result=bool_dtype
)


def is_finite(x: ArrayLike) -> Array:
    """Whether each element is finite: neither infinite nor NaN.

    Dtypes:     floating.
    Lowers to:  stablehlo.is_finite.

    Example:
        >>> lax.is_finite(jnp.array([1.0, jnp.inf, jnp.nan]))
        Array([ True, False, False], dtype=bool)
    """
    return is_finite_p.bind(operand(x))


exp_p = Unary("exp", "stablehlo.exponential", accepts=INEXACT, derivative=lambda x, y: y)


def exp(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The exponential function `eˣ`.

    Dtypes:     floating or complex.
    Derivative: eˣ.
    Lowers to:  stablehlo.exponential.

    Example:
        >>> lax.exp(jnp.array([0.0, -jnp.inf]))
        Array([1., 0.], dtype=float32)
    """
    return apply_accurately(exp_p, x, accuracy)


def _lower_exp2(ctx: LoweringContext, x: Value, attributes: dict[str, object] | None = None) -> Any:
    (aval,) = ctx.avals_in
    scaled = ctx.op("stablehlo.multiply", [x, ctx.full(aval.shape, math.log(2), aval.dtype)])
    return ctx.op("stablehlo.exponential", [scaled], attributes)


exp2_p = Unary("exp2", _lower_exp2, accepts=INEXACT, derivative=lambda x, y: mul(y, math.log(2)))


def exp2(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The base-2 exponential `2ˣ`.

    Dtypes:     floating or complex.
    Derivative: 2ˣ ln 2.
    Lowers to:  stablehlo.exponential of x ln 2.

    Example:
        >>> lax.exp2(jnp.array([3.0, -1.0]))
        Array([8. , 0.5], dtype=float32)
    """
    return apply_accurately(exp2_p, x, accuracy)


expm1_p = Unary(
    "expm1", "stablehlo.exponential_minus_one", accepts=INEXACT, derivative=lambda x, y: add(y, 1.0)
)


def expm1(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """`eˣ - 1`, exact also where x is near 0.

    Dtypes:     floating or complex.
    Derivative: eˣ.
    Lowers to:  stablehlo.exponential_minus_one.

    Example:
        >>> lax.expm1(jnp.float32(1e-10)) > 0, lax.exp(jnp.float32(1e-10)) - 1 > 0
        (Array(True, dtype=bool), Array(False, dtype=bool))
    """
    return apply_accurately(expm1_p, x, accuracy)


log_p = Unary("log", "stablehlo.log", accepts=INEXACT, derivative=lambda x, y: div(1.0, x))


def log(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The natural logarithm `ln x`.

    Dtypes:     floating or complex.
    Derivative: 1 / x.
    Lowers to:  stablehlo.log.

    Example:
        >>> lax.log(jnp.array([1.0, 0.0, -1.0]))
        Array([  0., -inf,  nan], dtype=float32)
    """
    return apply_accurately(log_p, x, accuracy)


log1p_p = Unary(
    "log1p",
    "stablehlo.log_plus_one",
    accepts=INEXACT,
    derivative=lambda x, y: div(1.0, add(x, 1.0)),
)


def log1p(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """`ln(1 + x)`, exact also where x is near 0.

    Dtypes:     floating or complex.
    Derivative: 1 / (1 + x).
    Lowers to:  stablehlo.log_plus_one.

    Example:
        >>> lax.log1p(jnp.float32(1e-10)) > 0, lax.log(1 + jnp.float32(1e-10)) > 0
        (Array(True, dtype=bool), Array(False, dtype=bool))
    """
    return apply_accurately(log1p_p, x, accuracy)


logistic_p = Unary(
    "logistic",
    "stablehlo.logistic",
    accepts=INEXACT,
    derivative=lambda x, y: mul(y, sub(1.0, y)),
    total=True,
)


def logistic(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The logistic sigmoid `1 / (1 + e⁻ˣ)`.

    Dtypes:     floating or complex.
    Derivative: y (1 - y), where y is the result.
    Lowers to:  stablehlo.logistic.

    Example:
        >>> lax.logistic(jnp.array([-jnp.inf, 0.0, jnp.inf]))
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    return apply_accurately(logistic_p, x, accuracy)


not_p = Unary(
    "not", "stablehlo.not", accepts=BITS, derivative=Unary.FLAT, public_name="bitwise_not"
)


def bitwise_not(x: ArrayLike) -> Array:
    """The bitwise NOT; of booleans, the logical negation.

    Dtypes:     integer or bool.
    Lowers to:  stablehlo.not.

    Example:
        >>> lax.bitwise_not(jnp.array([0, 5]))
        Array([-1, -6], dtype=int32)
        >>> lax.bitwise_not(jnp.array([True, False]))
        Array([False,  True], dtype=bool)
    """
    return not_p.bind(operand(x))


population_count_p = Unary(
    "population_count", "stablehlo.popcnt", accepts=INTEGER, derivative=Unary.FLAT
)


def population_count(x: ArrayLike) -> Array:
    """The number of bits of each element that are set.

    Dtypes:     integer.
    Lowers to:  stablehlo.popcnt.

    Example:
        >>> lax.population_count(jnp.array([0, 7, 8]))
        Array([0, 3, 1], dtype=int32)
    """
    return population_count_p.bind(operand(x))


clz_p = Unary("clz", "stablehlo.count_leading_zeros", accepts=INTEGER, derivative=Unary.FLAT)


def clz(x: ArrayLike) -> Array:
    """The number of leading zero bits of each element.

    Dtypes:     integer.
    Lowers to:  stablehlo.count_leading_zeros.

    Example:
        >>> lax.clz(jnp.array([0, 1, 255], jnp.uint8))
        Array([8, 7, 0], dtype=uint8)
    """
    return clz_p.bind(operand(x))


real_p = Unary(
    "real",
    "stablehlo.real",
    accepts=COMPLEX,
    derivative=Unary.LINEAR,
    transposed=lambda ct, x: complex(ct, 0.0),
    result=dtypes.real_dtype_of,
    total=True,
)


def real(x: ArrayLike) -> Array:
    """The real part of each element.

    Dtypes:     complex -> floating.
    Derivative: linear over the reals.
    Lowers to:  stablehlo.real.

    Example:
        >>> lax.real(jnp.array([1 + 2j]))
        Array([1.], dtype=float32)
    """
    return real_p.bind(operand(x))


imag_p = Unary(
    "imag",
    "stablehlo.imag",
    accepts=COMPLEX,
    derivative=Unary.LINEAR,
    transposed=lambda ct, x: complex(0.0, neg(ct)),
    result=dtypes.real_dtype_of,
    total=True,
)


def imag(x: ArrayLike) -> Array:
    """The imaginary part of each element.

    Dtypes:     complex -> floating.
    Derivative: linear over the reals.
    Lowers to:  stablehlo.imag.

    Example:
        >>> lax.imag(jnp.array([1 + 2j]))
        Array([2.], dtype=float32)
    """
    return imag_p.bind(operand(x))


complex_p = Binary(
    "complex",
    "stablehlo.complex",
    accepts=(np.float32, np.float64),
    derivatives=(lambda g, x, y, out: complex(g, 0.0), lambda g, x, y, out: complex(0.0, g)),
    transposes=(lambda ct, x, y: real(ct), lambda ct, x, y: neg(imag(ct))),
    result=dtypes.complex_dtype_of,
)


def complex(x: ArrayLike, y: ArrayLike) -> Array:
    """The complex numbers with real parts `x` and imaginary parts `y`.

    Shapes:     x: T[s], y: T[t] -> complex T[broadcast of s and t].
    Dtypes:     float32 or float64.
    Derivative: linear in x and y.
    Lowers to:  stablehlo.complex.

    Example:
        >>> lax.complex(jnp.array([1.0, 2.0]), 3.0)
        Array([1.+3.j, 2.+3.j], dtype=complex64)
    """
    return complex_p.bind(*operands(x, y))


class Conj(Primitive):
    """The complex conjugate of each element; of a real one, as a complex number.

    Shapes: x: T[s] -> complex T[s].  Linear over the reals.
    """

    name = "conj"
    shard = rules.elementwise
    batch = batch_unary
    jvp = jvp_of_linear

    def abstract_eval(self, x: ShapedArray, *, input_dtype: DType) -> ShapedArray:
        check_dtype("conj", "x", x, (np.float32, np.float64, *COMPLEX))
        return shaped_array(x.shape, dtypes.complex_dtype_of(x.dtype), x.weak_type)

    def lower(self, ctx: LoweringContext, x: Value, *, input_dtype: DType) -> Any:
        aval = ctx.avals_in[0]
        if dtypes.issubdtype(input_dtype, np.complexfloating):
            return ctx.op("chlo.conj", [x])
        return ctx.op("stablehlo.complex", [x, ctx.full(aval.shape, 0, aval.dtype)])

    def transpose(self, ct: Array, x: UndefinedPrimal, *, input_dtype: DType) -> Cotangents:
        if dtypes.issubdtype(input_dtype, np.complexfloating):
            return (conj(ct),)
        return (real(ct),)


vma.keeps_unreduced.set(True, Conj)


conj_p = Conj()


def conj(x: ArrayLike) -> Array:
    """The complex conjugate; real numbers become complex.

    Dtypes:     float32, float64 or complex -> complex.
    Derivative: linear over the reals.
    Lowers to:  chlo.conj.

    Example:
        >>> lax.conj(jnp.array([1 + 2j]))
        Array([1.-2.j], dtype=complex64)
        >>> lax.conj(jnp.array([1.0]))
        Array([1.+0.j], dtype=complex64)
    """
    x = operand(x)
    return conj_p.bind(x, input_dtype=aval_of(x).dtype)


stop_gradient_p = Unary(
    "stop_gradient", lambda ctx, x: x, accepts=WHATEVER, derivative=Unary.FLAT, total=True
)
vma.keeps_unreduced.set(True, stop_gradient_p)


def stop_gradient(x: T) -> T:
    """`x` as it is, held constant by differentiation.

    Args:
        x: an array, or a tree of arrays.

    Derivative: zero.
    Lowers to:  nothing.

    Example:
        >>> jax.grad(lambda x: x * lax.stop_gradient(x))(3.0)
        Array(3., dtype=float32, weak_type=True)
    """
    return tree.map(_stop_gradient_of_leaf, x)


def _stop_gradient_of_leaf(x: Array) -> Any:
    return x if aval_of(x).dtype == dtypes.float0 else stop_gradient_p.bind(x)


def _lower_square(ctx: LoweringContext, x: Value) -> Any:
    return ctx.op("stablehlo.multiply", [x, x])


square_p = Unary("square", _lower_square, accepts=NUMERIC, derivative=lambda x, y: add(x, x))


def square(x: ArrayLike) -> Array:
    """The square `x²`.

    Dtypes:     numeric.
    Derivative: 2 x.
    Lowers to:  stablehlo.multiply.

    Example:
        >>> lax.square(jnp.array([3, -4]))
        Array([ 9, 16], dtype=int32)
    """
    return square_p.bind(operand(x))


sqrt_p = Unary("sqrt", "stablehlo.sqrt", accepts=INEXACT, derivative=lambda x, y: div(0.5, y))


def sqrt(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The square root `√x`.

    Dtypes:     floating or complex.
    Derivative: 1 / (2 √x).
    Lowers to:  stablehlo.sqrt.

    Example:
        >>> lax.sqrt(jnp.array([9.0, -1.0]))
        Array([ 3., nan], dtype=float32)
    """
    return apply_accurately(sqrt_p, x, accuracy)


rsqrt_p = Unary(
    "rsqrt", "stablehlo.rsqrt", accepts=INEXACT, derivative=lambda x, y: mul(div(y, x), -0.5)
)


def rsqrt(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The reciprocal square root `1 / √x`.

    Dtypes:     floating or complex.
    Derivative: -1 / (2 x √x).
    Lowers to:  stablehlo.rsqrt.

    Example:
        >>> lax.rsqrt(jnp.array([4.0, 0.0]))
        Array([0.5, inf], dtype=float32)
    """
    return apply_accurately(rsqrt_p, x, accuracy)


cbrt_p = Unary(
    "cbrt", "stablehlo.cbrt", accepts=FLOAT, derivative=lambda x, y: div(1 / 3, mul(y, y))
)


def cbrt(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The cube root `∛x`, negative for negative numbers.

    Dtypes:     floating.
    Derivative: 1 / (3 y²), where y is the result.
    Lowers to:  stablehlo.cbrt.

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
    shard = rules.elementwise
    batch = batch_unary

    def abstract_eval(self, x: ShapedArray, *, y: int) -> ShapedArray:
        check_dtype("integer_pow", "x", x, NUMERIC)
        if y < 0 and dtypes.issubdtype(x.dtype, np.integer):
            problem = "integers cannot be raised to negative powers."
            fix = "convert x to a floating dtype"
            error(TypeError, "lax.integer_pow", problem, got={"x": x, "y": y}, fix=fix)
        return x

    def lower(self, ctx: LoweringContext, x: Value, *, y: int) -> Any:
        (aval,) = ctx.avals_in
        one = ctx.full(aval.shape, 1, aval.dtype)
        power = None
        exponent, factor = -y if y < 0 else y, x
        while exponent:
            if exponent & 1:
                power = factor if power is None else ctx.op("stablehlo.multiply", [power, factor])
            exponent >>= 1
            if exponent:
                factor = ctx.op("stablehlo.multiply", [factor, factor])
        if power is None:
            return one
        return ctx.op("stablehlo.divide", [one, power]) if y < 0 else power

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], *, y: int) -> Dual:
        (x,), (x_dot,) = primals, tangents
        out = self.bind(x, y=y)
        if y == 0:
            return out, Zero.like(out)
        below = x if y == 2 else integer_pow(x, y - 1)
        return out, mul(x_dot, mul(y, below))


@checking.faults.rule(IntegerPow)
def _faults_of_integer_pow(
    primitive: IntegerPow, args: Sequence[Array], outs: Values, *, y: int
) -> list[Fault]:
    if y >= 0:
        return []
    return [Fault(DIVISION, eq(args[0], 0), "division by zero")]


integer_pow_p = IntegerPow()


def integer_pow(x: ArrayLike, y: int) -> Array:
    """`x` to the power of a known integer y.

    Dtypes:     numeric; inexact where y is negative.
    Derivative: y xʸ⁻¹.
    Lowers to:  stablehlo.multiply, repeatedly.

    Raises:
        TypeError: y is negative and x integer, or y is not an integer.

    Example:
        >>> lax.integer_pow(jnp.array([2, -3]), 3)
        Array([  8, -27], dtype=int32)
        >>> jax.make_jaxpr(lambda x: lax.integer_pow(x, 3))(1.0)
        { lambda ; a:f32[]. let b:f32[] = integer_pow[y=3] a in (b,) }
    """
    return integer_pow_p.bind(operand(x), y=operator.index(y))


def reciprocal(x: ArrayLike) -> Array:
    """The reciprocal `1 / x`.

    Dtypes:     floating or complex.
    Derivative: -1 / x².
    Lowers to:  stablehlo.divide.

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
    shard = rules.elementwise
    batch = batch_elementwise

    def abstract_eval(self, x: ShapedArray, y: ShapedArray) -> ShapedArray:
        check_dtype("pow", "x", x, INEXACT)
        if x.dtype != y.dtype and not dtypes.issubdtype(y.dtype, np.integer):
            problem = "the exponent's dtype does not fit."
            expected = "the dtype of x, or integers"
            error(TypeError, "lax.pow", problem, got={"x": x, "y": y}, expected=expected)
        shape = broadcast_shape("pow", x=x, y=y)
        return shaped_array(shape, x.dtype, x.weak_type and y.weak_type)

    def lower(self, ctx: LoweringContext, x: Value, y: Value) -> Any:
        (out,) = ctx.avals_out
        x, y = broadcast_operands(ctx, (x, y))
        if ctx.avals_in[1].dtype != out.dtype:
            y = ctx.convert(y, out.shape, out.dtype)
        return ctx.op("stablehlo.power", [x, y])

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Any]) -> Dual:
        (x, y), (x_dot, y_dot) = primals, tangents
        out = self.bind(x, y)
        total: Tangent = Zero.like(out)
        if type(x_dot) is not Zero:
            total = broadcast_to(mul(x_dot, _derivative_of_base(x, y)), out)
        if type(y_dot) is not Zero:
            # xʸ ln x, where 0ʸ has the derivative 0 for y >= 0.
            base = select(eq(x, 0), full(aval_of(x).shape, 1, aval_of(x).dtype), x)
            term = mul(y_dot, mul(log(base), out))
            total = add_tangents(total, broadcast_to(term, out))
        return out, total


def _derivative_of_base(x: Array, y: Array) -> Any:
    """`y xʸ⁻¹`; for integers y, exactly 0 where y is 0."""
    dtype = aval_of(x).dtype
    if dtypes.issubdtype(aval_of(y).dtype, np.integer):
        one_less = select(eq(y, 0), full(aval_of(y).shape, 1, aval_of(y).dtype), sub(y, 1))
        return mul(convert_element_type(y, dtype), pow(x, one_less))
    return mul(y, pow(x, sub(y, 1)))


pow_p = Pow()


def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """`x` to the power of `y`.

    Shapes:     x: T[s], y: T[t] or integer[t] -> T[broadcast of s and t].
    Dtypes:     floating or complex; exponents may be integers.
    Derivative: y xʸ⁻¹ dx + xʸ ln x dy.
    Lowers to:  stablehlo.power.

    Example:
        >>> lax.pow(jnp.array([2.0, 9.0]), jnp.array([3.0, 0.5]))
        Array([8., 3.], dtype=float32)
        >>> lax.pow(jnp.array([2.0, 9.0]), 2)
        Array([ 4., 81.], dtype=float32)
    """
    x = operand(x, y)
    # A Python int stays an integer: x ** 2 has a derivative at 0 and below.
    return pow_p.bind(x, y if type(y) is int else operand(y, x))


def _inverse_root_of_one_minus_square(x: Array) -> Any:
    # Factored, so that it stays exact near ±1.
    return rsqrt(mul(sub(1.0, x), add(x, 1.0)))


sin_p = Unary("sin", "stablehlo.sine", accepts=INEXACT, derivative=lambda x, y: cos(x))


def sin(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The sine of `x`.

    Dtypes:     floating or complex.
    Derivative: cos x.
    Lowers to:  stablehlo.sine.

    Example:
        >>> lax.sin(jnp.array([0.0, jnp.pi / 2]))
        Array([0., 1.], dtype=float32)
    """
    return apply_accurately(sin_p, x, accuracy)


cos_p = Unary("cos", "stablehlo.cosine", accepts=INEXACT, derivative=lambda x, y: neg(sin(x)))


def cos(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The cosine of `x`.

    Dtypes:     floating or complex.
    Derivative: -sin x.
    Lowers to:  stablehlo.cosine.

    Example:
        >>> lax.cos(jnp.array([0.0, jnp.pi]))
        Array([ 1., -1.], dtype=float32)
    """
    return apply_accurately(cos_p, x, accuracy)


tan_p = Unary("tan", "stablehlo.tan", accepts=INEXACT, derivative=lambda x, y: add(mul(y, y), 1.0))


def tan(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The tangent of `x`.

    Dtypes:     floating or complex.
    Derivative: 1 + y², where y is the result.
    Lowers to:  stablehlo.tan.

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
    """The inverse sine of `x`, from -π/2 to π/2.

    Dtypes:     floating or complex.
    Derivative: 1 / √(1 - x²).
    Lowers to:  chlo.asin.

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
    """The inverse cosine of `x`, from 0 to π.

    Dtypes:     floating or complex.
    Derivative: -1 / √(1 - x²).
    Lowers to:  chlo.acos.

    Example:
        >>> jnp.degrees(lax.acos(jnp.array([1.0, -1.0]))).round(2)
        Array([  0., 180.], dtype=float32)
    """
    return acos_p.bind(operand(x))


atan_p = Unary(
    "atan", "chlo.atan", accepts=INEXACT, derivative=lambda x, y: div(1.0, add(mul(x, x), 1.0))
)


def atan(x: ArrayLike) -> Array:
    """The inverse tangent of `x`, from -π/2 to π/2.

    Dtypes:     floating or complex.
    Derivative: 1 / (1 + x²).
    Lowers to:  chlo.atan.

    Example:
        >>> jnp.degrees(lax.atan(jnp.array([1.0, jnp.inf]))).round(2)
        Array([45., 90.], dtype=float32)
    """
    return atan_p.bind(operand(x))


sinh_p = Unary("sinh", "chlo.sinh", accepts=INEXACT, derivative=lambda x, y: cosh(x))


def sinh(x: ArrayLike) -> Array:
    """The hyperbolic sine of `x`.

    Dtypes:     floating or complex.
    Derivative: cosh x.
    Lowers to:  chlo.sinh.

    Example:
        >>> lax.sinh(jnp.array([0.0, jnp.log(2.0)])).round(4)
        Array([0.  , 0.75], dtype=float32)
    """
    return sinh_p.bind(operand(x))


cosh_p = Unary("cosh", "chlo.cosh", accepts=INEXACT, derivative=lambda x, y: sinh(x))


def cosh(x: ArrayLike) -> Array:
    """The hyperbolic cosine of `x`.

    Dtypes:     floating or complex.
    Derivative: sinh x.
    Lowers to:  chlo.cosh.

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
    """The hyperbolic tangent of `x`.

    Dtypes:     floating or complex.
    Derivative: (1 + y) (1 - y), where y is the result.
    Lowers to:  stablehlo.tanh.

    Example:
        >>> lax.tanh(jnp.array([-jnp.inf, 0.0, jnp.inf]))
        Array([-1.,  0.,  1.], dtype=float32)
    """
    return apply_accurately(tanh_p, x, accuracy)


asinh_p = Unary(
    "asinh", "chlo.asinh", accepts=INEXACT, derivative=lambda x, y: rsqrt(add(mul(x, x), 1.0))
)


def asinh(x: ArrayLike) -> Array:
    """The inverse hyperbolic sine of `x`.

    Dtypes:     floating or complex.
    Derivative: 1 / √(x² + 1).
    Lowers to:  chlo.asinh.

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
    """The inverse hyperbolic cosine of `x`.

    Dtypes:     floating or complex.
    Derivative: 1 / (√(x - 1) √(x + 1)).
    Lowers to:  chlo.acosh.

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
    """The inverse hyperbolic tangent of `x`.

    Dtypes:     floating or complex.
    Derivative: 1 / (1 - x²).
    Lowers to:  chlo.atanh.

    Example:
        >>> lax.atanh(jnp.array([0.0, 1.0, 2.0]))
        Array([ 0., inf, nan], dtype=float32)
    """
    return atanh_p.bind(operand(x))
