"""Elementwise elementary functions: trigonometry, exponentials, logarithms, rounding, parts.

All take integers and booleans too, as floats, except those that round or split numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.lax import arguments, binary, special, unary
from minijax.lax.convert import convert_to_type
from minijax.lax.creation import full_like
from minijax.numpy.arithmetic import check_not_complex, is_kind
from minijax.numpy.one_program import one_program
from minijax.numpy.promotion import (
    check_array,
    check_out,
    convert,
    inexact,
    pick,
    promote_inexact,
    strong,
    strong_array,
)
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array


@one_program()
def sin(x: ArrayLike, /) -> Array:
    """Computes the sine of each element, an angle in radians.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.
    Source:     mirrors jax.numpy.sin.

    Example:
        >>> jnp.sin(jnp.radians(jnp.array([0, 30, 90]))).round(3)
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    return unary.sin(inexact("sin", x))


@one_program()
def cos(x: ArrayLike, /) -> Array:
    """Computes the cosine of each element, an angle in radians.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.
    Source:     mirrors jax.numpy.cos.

    Example:
        >>> jnp.cos(jnp.radians(jnp.array([0, 60, 180]))).round(3)
        Array([ 1. ,  0.5, -1. ], dtype=float32)
    """
    return unary.cos(inexact("cos", x))


@one_program()
def tan(x: ArrayLike, /) -> Array:
    """Computes the tangent of each element, an angle in radians.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.
    Source:     mirrors jax.numpy.tan.

    Example:
        >>> jnp.tan(jnp.radians(jnp.array([0, 45, 135]))).round(3)
        Array([ 0.,  1., -1.], dtype=float32)
    """
    return unary.tan(inexact("tan", x))


@one_program()
def arcsin(x: ArrayLike, /) -> Array:
    """Computes the inverse sine, in [-π/2, π/2]; NaN outside [-1, 1].

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.
    Source:     mirrors jax.numpy.arcsin.

    Example:
        >>> jnp.degrees(jnp.arcsin(jnp.array([0.0, 0.5, 2.0]))).round()
        Array([ 0., 30., nan], dtype=float32)
    """
    return unary.asin(inexact("arcsin", x))


asin = arcsin


@one_program()
def arccos(x: ArrayLike, /) -> Array:
    """Computes the inverse cosine, in [0, π]; NaN outside [-1, 1].

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.
    Source:     mirrors jax.numpy.arccos.

    Example:
        >>> jnp.degrees(jnp.arccos(jnp.array([1.0, 0.5, 2.0]))).round()
        Array([ 0., 60., nan], dtype=float32)
    """
    return unary.acos(inexact("arccos", x))


acos = arccos


@one_program()
def arctan(x: ArrayLike, /) -> Array:
    """Computes the inverse tangent, in [-π/2, π/2].

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.
    Source:     mirrors jax.numpy.arctan.

    Example:
        >>> jnp.degrees(jnp.arctan(jnp.array([0.0, 1.0, jnp.inf]))).round()
        Array([ 0., 45., 90.], dtype=float32)
    """
    return unary.atan(inexact("arctan", x))


atan = arctan


@one_program()
def sinh(x: ArrayLike, /) -> Array:
    """Computes the hyperbolic sine of each element.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.
    Source:     mirrors jax.numpy.sinh.

    Example:
        >>> jnp.sinh(jnp.array([-jnp.inf, 0.0, jnp.inf]))
        Array([-inf,   0.,  inf], dtype=float32)
    """
    return unary.sinh(inexact("sinh", x))


@one_program()
def cosh(x: ArrayLike, /) -> Array:
    """Computes the hyperbolic cosine of each element.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.
    Source:     mirrors jax.numpy.cosh.

    Example:
        >>> jnp.cosh(jnp.array([-jnp.inf, 0.0, jnp.inf]))
        Array([inf,  1., inf], dtype=float32)
    """
    return unary.cosh(inexact("cosh", x))


@one_program()
def tanh(x: ArrayLike, /) -> Array:
    """Computes the hyperbolic tangent of each element.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.
    Source:     mirrors jax.numpy.tanh.

    Example:
        >>> jnp.tanh(jnp.array([-jnp.inf, 0.0, jnp.inf]))
        Array([-1.,  0.,  1.], dtype=float32)
    """
    return unary.tanh(inexact("tanh", x))


@one_program()
def arcsinh(x: ArrayLike, /) -> Array:
    """Computes the inverse hyperbolic sine of each element.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.
    Source:     mirrors jax.numpy.arcsinh.

    Example:
        >>> jnp.sinh(jnp.arcsinh(jnp.array([-3.0, 0.0, 3.0]))).round()
        Array([-3.,  0.,  3.], dtype=float32)
    """
    return unary.asinh(inexact("arcsinh", x))


asinh = arcsinh


@one_program()
def arccosh(x: ArrayLike, /) -> Array:
    """Computes the inverse hyperbolic cosine of each element; NaN below 1.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.
    Source:     mirrors jax.numpy.arccosh.

    Example:
        >>> jnp.arccosh(jnp.array([1.0, 0.5, jnp.inf]))
        Array([ 0., nan, inf], dtype=float32)
    """
    return unary.acosh(inexact("arccosh", x))


acosh = arccosh


@one_program()
def arctanh(x: ArrayLike, /) -> Array:
    """Computes the inverse hyperbolic tangent of each element; NaN outside [-1, 1].

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.
    Source:     mirrors jax.numpy.arctanh.

    Example:
        >>> jnp.arctanh(jnp.array([0.0, 1.0, 2.0]))
        Array([ 0., inf, nan], dtype=float32)
    """
    return unary.atanh(inexact("arctanh", x))


atanh = arctanh


@one_program()
def exp(x: ArrayLike, /) -> Array:
    """Computes the exponential of each element.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.
    Source:     mirrors jax.numpy.exp.

    Example:
        >>> jnp.exp(jnp.array([-jnp.inf, 0.0, 89.0]))  # float32 ends at exp(88.7)
        Array([ 0.,  1., inf], dtype=float32)
    """
    return unary.exp(inexact("exp", x))


@one_program()
def exp2(x: ArrayLike, /) -> Array:
    """Computes `2 ** x` for each element.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.
    Source:     mirrors jax.numpy.exp2.

    Example:
        >>> jnp.exp2(jnp.array([3, 0, -1]))
        Array([8. , 1. , 0.5], dtype=float32)
    """
    return unary.exp2(inexact("exp2", x))


@one_program()
def expm1(x: ArrayLike, /) -> Array:
    """Computes `exp(x) - 1` for each element, accurately near 0.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.
    Source:     mirrors jax.numpy.expm1.

    Example:
        >>> jnp.expm1(1e-10), jnp.exp(1e-10) - 1
        (Array(1.e-10, dtype=float32, weak_type=True), Array(0., dtype=float32, weak_type=True))
    """
    return unary.expm1(inexact("expm1", x))


@one_program()
def log(x: ArrayLike, /) -> Array:
    """Computes the natural logarithm of each element.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.
    Source:     mirrors jax.numpy.log.

    Example:
        >>> jnp.log(jnp.array([1.0, 0.0, -1.0]))
        Array([  0., -inf,  nan], dtype=float32)
    """
    return unary.log(inexact("log", x))


@one_program()
def log1p(x: ArrayLike, /) -> Array:
    """Computes `log(1 + x)` for each element, accurately near 0.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.
    Source:     mirrors jax.numpy.log1p.

    Example:
        >>> jnp.log1p(1e-10), jnp.log(jnp.float32(1) + 1e-10)
        (Array(1.e-10, dtype=float32, weak_type=True), Array(0., dtype=float32))
    """
    return unary.log1p(inexact("log1p", x))


@one_program()
def arctan2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Computes the angle of the point (x2, x1) in the plane, in (-π, π].

    Shapes:     x1: T[s], x2: U[t] -> V[broadcast of s and t].
    Dtypes:     inexact, promoted; integers and booleans become floats.
    Source:     mirrors jax.numpy.arctan2.

    Example:
        >>> jnp.degrees(jnp.arctan2(jnp.array([1.0, -1.0]), jnp.array([1.0, -1.0]))).round()
        Array([  45., -135.], dtype=float32)
    """
    return binary.atan2_p.bind(*promote_inexact("arctan2", x1, x2))


atan2 = arctan2


@one_program()
def degrees(x: ArrayLike, /) -> Array:
    """Converts angles from radians to degrees.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.
    Source:     mirrors jax.numpy.degrees.

    Example:
        >>> jnp.degrees(jnp.array([0.0, jnp.pi]))
        Array([  0., 180.], dtype=float32)
    """
    return binary.mul(strong_array(inexact("degrees", x)), 180 / math.pi)


@one_program()
def radians(x: ArrayLike, /) -> Array:
    """Converts angles from degrees to radians.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.
    Source:     mirrors jax.numpy.radians.

    Example:
        >>> jnp.radians(jnp.array([0, 180])) / jnp.pi
        Array([0., 1.], dtype=float32)
    """
    return binary.mul(strong_array(inexact("radians", x)), math.pi / 180)


rad2deg = degrees
deg2rad = radians


@one_program()
def log2(x: ArrayLike, /) -> Array:
    """Computes the base-2 logarithm of each element.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.
    Source:     mirrors jax.numpy.log2.

    Example:
        >>> jnp.log2(jnp.array([1, 8, 0.5]))
        Array([ 0.,  3., -1.], dtype=float32)
    """
    x = unary.log(strong(inexact("log2", x)))
    # A quotient of logarithms is exact for powers of 2; a product with 1 / log 2 is not.
    return each_part(lambda part: binary.div(part, math.log(2)), x)


@one_program()
def log10(x: ArrayLike, /) -> Array:
    """Computes the base-10 logarithm of each element.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.
    Source:     mirrors jax.numpy.log10.

    Example:
        >>> jnp.log10(jnp.array([1, 100, 0.1])).round(5)
        Array([ 0.,  2., -1.], dtype=float32)
    """
    x = unary.log(strong(inexact("log10", x)))
    return each_part(lambda part: binary.mul(part, 1 / math.log(10)), x)


def each_part(function: Callable[..., Any], x: Array) -> Any:
    """A function of floats, applied to real and imaginary parts alike."""
    if is_kind(x, np.complexfloating):
        return unary.complex(function(unary.real(x)), function(unary.imag(x)))
    return function(x)


@one_program()
def logaddexp(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Computes `log(exp(x) + exp(y))` without overflow in between.

    Shapes:     x: T[s], y: U[t] -> V[broadcast of s and t].
    Dtypes:     inexact, promoted; integers and booleans become floats.
    Derivative: (exp(x) dx + exp(y) dy) / (exp(x) + exp(y)), at ties too.
    Source:     mirrors jax.numpy.logaddexp.

    Example:
        >>> jnp.logaddexp(1000.0, -jnp.inf)  # though exp(1000) overflows
        Array(1000., dtype=float32, weak_type=True)
    """
    x, y = promote_inexact("logaddexp", x, y)
    high, gap = _high_and_gap(x, y)
    total = binary.add(high, unary.log1p(unary.exp(gap)))
    if not is_kind(x, np.complexfloating):
        return total
    # The imaginary part is an angle; it comes back into (-π, π].
    angle = unary.imag(total)
    turns = unary.ceil(binary.div(binary.sub(angle, math.pi), 2 * math.pi))
    return unary.complex(unary.real(total), binary.sub(angle, binary.mul(turns, 2 * math.pi)))


@one_program()
def logaddexp2(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Computes `log2(2 ** x + 2 ** y)` without overflow in between.

    Shapes:     x: T[s], y: U[t] -> V[broadcast of s and t].
    Dtypes:     floating, promoted; integers and booleans become floats.
    Derivative: (2 ** x dx + 2 ** y dy) / (2 ** x + 2 ** y), at ties too.
    Source:     mirrors jax.numpy.logaddexp2.

    Example:
        >>> jnp.logaddexp2(jnp.float32(1000), 1000.0)
        Array(1001., dtype=float32)
    """
    x, y = map(strong_array, promote_inexact("logaddexp2", x, y))
    high, gap = _high_and_gap(x, y)
    return binary.add(high, binary.mul(unary.log1p(unary.exp2(gap)), 1 / math.log(2)))


def _high_and_gap(x: Array, y: Array) -> tuple[Any, Any]:
    """The larger operand, and how far the other one lies below, as a number of at most 0.

    Written with one comparison and no absolute value, each choice is smooth across ties, so that
    derivatives of all orders are right there.
    """
    real_x, real_y = (unary.real(x), unary.real(y)) if is_kind(x, np.complexfloating) else (x, y)
    x_above = binary.gt(real_x, real_y)
    high = pick(x_above, x, y)
    gap = pick(x_above, binary.sub(y, x), binary.sub(x, y))
    # Infinity less infinity is no number, but equal operands have no gap.
    equal_infinities = binary.bitwise_and(binary.eq(x, y), binary.eq(unary.abs(high), np.inf))
    return high, pick(equal_infinities, 0.0, gap)


@one_program()
def sinc(x: ArrayLike, /) -> Array:
    """Computes the normalized sinc function, `sin(πx) / (πx)`, which is 1 at 0.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.
    Source:     mirrors jax.numpy.sinc.

    Example:
        >>> jnp.sinc(jnp.array([0.0, 1.0])).round(3)
        Array([ 1., -0.], dtype=float32)
        >>> jax.grad(jnp.sinc)(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    t = binary.mul(strong_array(inexact("sinc", x)), math.pi)
    near = binary.lt(unary.abs(t), 0.1)
    far = pick(near, 1.0, t)
    # Near 0 the series: to the precision of float64, and with the right derivatives at 0.
    square = unary.square(t)
    series: Any = 1 / math.factorial(9)
    for n in (7, 5, 3, 1):
        sign = -1.0 if n % 4 == 3 else 1.0
        series = binary.add(binary.mul(square, series), sign / math.factorial(n))
    return pick(near, series, binary.div(unary.sin(far), far))


@one_program()
def i0(x: ArrayLike) -> Array:
    """Computes the modified Bessel function of the first kind of order 0.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     real; integers and booleans become floats.
    Source:     mirrors jax.numpy.i0.

    Raises:
        ValueError: `x` is complex.

    Example:
        >>> jnp.i0(jnp.array([0.0, 2.0])).round()
        Array([1., 2.], dtype=float32)
    """
    x = inexact("i0", x)
    check_not_complex("i0", x, ValueError)
    # Unlike that of abs, the derivative of this magnitude at 0 is 0, as that of bessel_i0e is.
    magnitude = binary.mul(x, unary.sign(x))
    return binary.mul(unary.exp(magnitude), special.bessel_i0e(x))


@one_program()
def floor(x: ArrayLike, /) -> Array:
    """Rounds each element down to an integer, in its own dtype.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     real.
    Source:     mirrors jax.numpy.floor.

    Raises:
        TypeError: `x` is complex.

    Example:
        >>> jnp.floor(jnp.array([-1.5, 1.5]))
        Array([-2.,  1.], dtype=float32)
    """
    x = check_array("floor", x)
    return x if _is_whole(x) else unary.floor(x)


@one_program()
def ceil(x: ArrayLike, /) -> Array:
    """Rounds each element up to an integer, in its own dtype.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     real.
    Source:     mirrors jax.numpy.ceil.

    Raises:
        TypeError: `x` is complex.

    Example:
        >>> jnp.ceil(jnp.array([-1.5, 1.5]))
        Array([-1.,  2.], dtype=float32)
    """
    x = check_array("ceil", x)
    return x if _is_whole(x) else unary.ceil(x)


@one_program()
def trunc(x: ArrayLike) -> Array:
    """Rounds each element towards zero, in its own dtype.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     real.
    Source:     mirrors jax.numpy.trunc.

    Raises:
        TypeError: `x` is complex.

    Example:
        >>> jnp.trunc(jnp.array([-1.5, 1.5]))
        Array([-1.,  1.], dtype=float32)
    """
    x = check_array("trunc", x)
    if _is_whole(x):
        return x
    return pick(binary.lt(x, 0), unary.ceil(x), unary.floor(x))


def _is_whole(x: Array) -> bool:
    return is_kind(x, np.integer) or aval_of(x).dtype == dtypes.bool_


@one_program()
def rint(x: ArrayLike, /) -> Array:
    """Rounds each element to the nearest integer as a float, ties to even.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.
    Source:     mirrors jax.numpy.rint.

    Example:
        >>> jnp.rint(jnp.array([0.5, 1.5, 2.5]))
        Array([0., 2., 2.], dtype=float32)
    """
    found = _default_inexact("rint", x)
    return each_part(_round_to_even, found if is_kind(x, np.inexact) else strong(found))


def _default_inexact(name: str, x: Any) -> Any:
    """`x`, or integers and booleans as floats of the default width."""
    x = check_array(name, x)
    if is_kind(x, np.inexact):
        return x
    return convert(x, dtypes.default_float_dtype(), aval_of(x).weak_type)


def _round_to_even(x: Array) -> Any:
    return unary.round(x, unary.RoundingMethod.TO_NEAREST_EVEN)


@one_program(static=("decimals", "out"))
def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Rounds each element to the given number of decimals, ties to even.

    Shapes:     a: T[s] -> T[s].
    Dtypes:     numeric; integers pass unless `decimals` is negative.
    Source:     mirrors jax.numpy.round.

    Raises:
        NotImplementedError: `out` is given, or integers are rounded to tens or more.
        ValueError: `a` is boolean.

    Example:
        >>> jnp.round(jnp.array([0.5, 1.5, 2.5]))
        Array([0., 2., 2.], dtype=float32)
        >>> jnp.round(jnp.array([1234.0, 1250.0]), -2)
        Array([1200., 1200.], dtype=float32)
    """
    a = check_array("round", a)
    check_out("round", out)
    decimals = arguments.an_integer(decimals, "numpy.round", "`decimals`")
    if aval_of(a).dtype == dtypes.bool_:
        error(ValueError, "numpy.round", "booleans cannot be rounded.", got=str(aval_of(a)))
    if is_kind(a, np.integer):
        if decimals < 0:
            error(
                NotImplementedError,
                "numpy.round",
                "integers are not rounded to tens.",
                got={"a": aval_of(a), "decimals": decimals},
                fix="convert a to floats",
            )
        return a
    return each_part(lambda part: _round_decimals(part, decimals), a)


def _round_decimals(x: Array, decimals: int) -> Any:
    if decimals == 0:
        return _round_to_even(x)
    narrow = aval_of(x)
    if narrow.dtype in (dtypes.float16, dtypes.bfloat16):
        # Powers of ten soon overflow here, and lose the digits that matter before.
        x = convert_to_type(x, dtypes.float32, narrow.weak_type)
    factor = 10.0**decimals
    rounded = binary.div(_round_to_even(binary.mul(x, factor)), factor)
    return convert_to_type(rounded, narrow.dtype, narrow.weak_type)


around = round


@one_program()
def real(val: ArrayLike, /) -> Array:
    """Returns the real part of each element.

    Shapes:     val: T[s] -> the real dtype of T [s].
    Source:     mirrors jax.numpy.real.

    Example:
        >>> jnp.real(jnp.array([1 + 2j, 3]))
        Array([1., 3.], dtype=float32)
    """
    val = check_array("real", val)
    return unary.real(val) if is_kind(val, np.complexfloating) else val


@one_program()
def imag(val: ArrayLike, /) -> Array:
    """Returns the imaginary part of each element; zeros for real arrays.

    Shapes:     val: T[s] -> the real dtype of T [s].
    Source:     mirrors jax.numpy.imag.

    Example:
        >>> jnp.imag(jnp.array([1 + 2j, 3]))
        Array([2., 0.], dtype=float32)
    """
    val = check_array("imag", val)
    return unary.imag(val) if is_kind(val, np.complexfloating) else full_like(val, 0)


@one_program()
def conjugate(x: ArrayLike, /) -> Array:
    """Returns the complex conjugate of each element.

    Shapes:     x: T[s] -> T[s].
    Source:     mirrors jax.numpy.conjugate.

    Example:
        >>> jnp.conjugate(jnp.array([1 + 2j, 3]))
        Array([1.-2.j, 3.-0.j], dtype=complex64)
    """
    x = check_array("conjugate", x)
    return unary.conj(x) if is_kind(x, np.complexfloating) else x


conj = conjugate


@one_program(static=("deg",))
def angle(z: ArrayLike, deg: bool = False) -> Array:
    """Returns the angle of each complex number, in (-π, π].

    Shapes:     z: T[s] -> the real dtype of T [s].
    Dtypes:     inexact; integers and booleans become floats.
    Source:     mirrors jax.numpy.angle.

    Example:
        >>> jnp.angle(jnp.array([1j, -1.0]), deg=True)
        Array([ 90., 180.], dtype=float32)
    """
    z = _default_inexact("angle", z)
    z = z if is_kind(z, np.complexfloating) else strong(z)
    found = binary.atan2(imag(z), real(z))
    return degrees(found) if deg else found
