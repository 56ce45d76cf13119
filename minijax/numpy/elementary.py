"""Elementwise mathematics: arithmetic, powers, rounding, exponentials, trigonometry, parts.

Elementary functions take integers and booleans too, as floats; arithmetic, and what rounds or
splits numbers, leaves integers what they are.
"""

# mypy: disable-error-code="empty-body"

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import lax
from minijax.core import dtypes, source
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.core.trace import Tracer
from minijax.interpreters import checking
from minijax.lax import binary, families, reduction, special, unary
from minijax.lax.creation import convert_to_type, full_like
from minijax.lax.unary import cbrt_p, integer_pow, pow_p, sqrt_p, square_p
from minijax.numpy.promotion import (
    broadcast_shapes,
    broadcast_to,
    check_array,
    check_out,
    check_that,
    convert,
    elementwise,
    inexact,
    numeric,
    one_program,
    pick,
    promote,
    promote_dtypes,
    promote_inexact,
    promote_numeric,
    real_inexact,
    strong,
    strong_array,
    with_one_rank,
)
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array


def is_kind(x: ArrayLike, kind: type[Any]) -> bool:
    """Whether the elements of `x` are of an abstract dtype such as `np.integer`."""
    return dtypes.issubdtype(aval_of(x).dtype, kind)


def check_not_complex(name: str, x: Array, exception: type[Exception] = TypeError) -> None:
    """Refuses complex numbers.

    Raises:
        TypeError: `x` is complex; or `exception` in its place.
    """
    fits = not is_kind(x, np.complexfloating)
    problem = "complex numbers are not accepted."
    fix = "numpy.real, numpy.imag or numpy.abs first"
    check_that(fits, name, problem, error=exception, x=aval_of(x), fix=fix)


@one_program()
def add(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Adds arrays element by element; of booleans, it computes the logical or.

    Shapes:     x: T[s], y: U[t] -> V[broadcast of s and t].
    Dtypes:     all, promoted.
    Source:     mirrors jax.numpy.add.

    Example:
        >>> jnp.add(jnp.arange(3), 0.5)
        Array([0.5, 1.5, 2.5], dtype=float32, weak_type=True)
    """
    x, y = promote("add", x, y)
    if aval_of(x).dtype == dtypes.bool_:
        return binary.or_p.bind(x, y)
    return binary.add_p.bind(x, y)


@elementwise(binary.sub_p.bind, promote)
def subtract(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Subtracts arrays element by element.

    Shapes:     x: T[s], y: U[t] -> V[broadcast of s and t].
    Dtypes:     numeric, promoted.
    Source:     mirrors jax.numpy.subtract.

    Raises:
        TypeError: both operands are booleans.

    Example:
        >>> jnp.subtract(np.uint8(3), np.uint8(5))  # unsigned integers wrap round
        Array(254, dtype=uint8)
    """


@one_program()
def multiply(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Multiplies arrays element by element; of booleans, it computes the logical and.

    Shapes:     x: T[s], y: U[t] -> V[broadcast of s and t].
    Dtypes:     all, promoted.
    Source:     mirrors jax.numpy.multiply.

    Example:
        >>> jnp.multiply(jnp.array([[1], [2]]), jnp.array([10, 20, 30]))
        Array([[10, 20, 30],
               [20, 40, 60]], dtype=int32)
    """
    x, y = promote("multiply", x, y)
    if aval_of(x).dtype == dtypes.bool_:
        return binary.and_p.bind(x, y)
    return families.mul_p.bind(x, y)


@elementwise(binary.div_p.bind, promote_inexact)
def divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Divides arrays element by element, giving floats or complex numbers.

    Shapes:     x1: T[s], x2: U[t] -> V[broadcast of s and t].
    Dtypes:     all, promoted; integers and booleans become floats.

    Example:
        >>> jnp.divide(jnp.array([7, 0, -1]), jnp.array([2, 0, 0]))
        Array([ 3.5,  nan, -inf], dtype=float32)
    """


true_divide = divide


@one_program()
def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Divides arrays element by element and rounds the quotients down.

    Shapes:     x1: T[s], x2: U[t] -> V[broadcast of s and t].
    Dtypes:     real, promoted; booleans become integers.
    Derivative: zero.

    Raises:
        TypeError: an operand is complex.

    Example:
        >>> jnp.floor_divide(jnp.array([7, -7]), 2)
        Array([ 3, -4], dtype=int32)
    """
    x, y = promote_numeric("floor_divide", x1, x2)
    check_not_complex("floor_divide", x)
    if is_kind(x, np.unsignedinteger):
        return binary.div(x, y)
    if is_kind(x, np.integer):
        quotient, rest = binary.div(x, y), binary.rem(x, y)
        return pick(_rounded_up(rest, y), binary.sub(quotient, 1), quotient)
    return _float_divmod(x, y)[0]


def _rounded_up(rest: Array, y: Array) -> Any:
    """Whether a quotient rounded towards zero lies above the true one."""
    differ = binary.ne(binary.lt(rest, 0), binary.lt(y, 0))
    return binary.bitwise_and(binary.ne(rest, 0), differ)


def _float_divmod(x: Array, y: Array) -> tuple[Any, Any]:
    rest = binary.rem(x, y)
    # The exact multiple of y below x; by zero, the quotient is infinite or NaN as that of x is.
    multiple = pick(binary.eq(y, 0), x, binary.sub(x, rest))
    quotient = binary.div(multiple, y)
    above = _rounded_up(rest, y)
    quotient = pick(above, binary.sub(quotient, 1.0), quotient)
    rest = pick(above, binary.add(rest, y), rest)
    return unary.round(quotient), rest


@one_program()
def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Computes the remainder of division element by element, with the sign of `x2`.

    Shapes:     x1: T[s], x2: U[t] -> V[broadcast of s and t].
    Dtypes:     real, promoted; booleans become integers.  Integers modulo 0 give 0.
    Derivative: dx1 - n dx2, where n is the quotient rounded down.

    Raises:
        TypeError: an operand is complex.

    Example:
        >>> jnp.remainder(jnp.array([7, -7]), 3)
        Array([1, 2], dtype=int32)
    """
    x, y = promote_numeric("remainder", x1, x2)
    y = _nonzero_divisor(y)
    rest = binary.rem(x, y)
    if is_kind(x, np.unsignedinteger):
        return rest
    return pick(_rounded_up(rest, y), binary.add(rest, y), rest)


mod = remainder


def _nonzero_divisor(y: Array) -> Any:
    """`y`, where for integers 1 stands in place of 0: division by zero is undefined."""
    # Where somebody looks for divisions by zero, they are to be seen.
    if not is_kind(y, np.integer) or checking.is_checking(checking.DIVISION):
        return y
    return pick(binary.eq(y, 0), 1, y)


@one_program()
def fmod(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Computes the remainder of division element by element, with the sign of `x1`.

    Shapes:     x1: T[s], x2: U[t] -> V[broadcast of s and t].
    Dtypes:     real, promoted; booleans become integers.  Integers modulo 0 give 0.

    Raises:
        TypeError: an operand is complex.

    Example:
        >>> jnp.fmod(jnp.array([7, -7]), 3)
        Array([ 1, -1], dtype=int32)
    """
    x, y = promote_numeric("fmod", x1, x2)
    return binary.rem(x, _nonzero_divisor(y))


@one_program()
def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Array, Array]:
    """Computes quotients and remainders together: `(x1 // x2, x1 % x2)`.

    Shapes:     x1: T[s], x2: U[t] -> two of V[broadcast of s and t].
    Dtypes:     real, promoted; booleans become integers.

    Raises:
        TypeError: an operand is complex.

    Example:
        >>> jnp.divmod(jnp.array([7, -7]), 2)
        (Array([ 3, -4], dtype=int32), Array([1, 1], dtype=int32))
    """
    x, y = promote_numeric("divmod", x1, x2)
    check_not_complex("divmod", x)
    if is_kind(x, np.integer):
        return floor_divide(x, y), remainder(x, y)
    return _float_divmod(x, y)


@elementwise(families.neg_p.bind, check_array)
def negative(x: ArrayLike, /) -> Array:
    """Negates each element.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     numeric.
    Source:     mirrors jax.numpy.negative.

    Raises:
        TypeError: `x` is boolean.

    Example:
        >>> jnp.negative(jnp.array([1.5, 0.0]))
        Array([-1.5, -0. ], dtype=float32)
    """


@one_program()
def positive(x: ArrayLike, /) -> Array:
    """Returns the elements unchanged: `+x`.

    Shapes:     x: T[s] -> T[s].

    Example:
        >>> jnp.positive(jnp.array([1, -2]))
        Array([ 1, -2], dtype=int32)
    """
    return check_array("positive", x)


@one_program()
def absolute(x: ArrayLike, /) -> Array:
    """Computes the absolute value of each element; of complex numbers, the modulus.

    Shapes:     x: T[s] -> T[s], or the real dtype of T.

    Example:
        >>> jnp.absolute(jnp.array([3 + 4j, -2]))
        Array([5., 2.], dtype=float32)
    """
    x = check_array("absolute", x)
    if aval_of(x).dtype == dtypes.bool_ or is_kind(x, np.unsignedinteger):
        return x
    return unary.abs(x)


abs = absolute


@elementwise(unary.abs, real_inexact)
def fabs(x: ArrayLike, /) -> Array:
    """Computes the absolute value of each element as a float.

    Shapes:     x: T[s] -> float[s].
    Dtypes:     real; integers and booleans become floats.

    Raises:
        TypeError: `x` is complex.

    Example:
        >>> jnp.fabs(jnp.array([-3, 2]))
        Array([3., 2.], dtype=float32)
    """


@elementwise(unary.sign, check_array)
def sign(x: ArrayLike, /) -> Array:
    """Returns the sign of each element: -1, 0 or 1; of complex numbers, `x / |x|`.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     numeric.

    Raises:
        TypeError: `x` is boolean.

    Example:
        >>> jnp.sign(jnp.array([-2.5, 0.0, 4.0]))
        Array([-1.,  0.,  1.], dtype=float32)
    """


@one_program()
def reciprocal(x: ArrayLike, /) -> Array:
    """Computes the reciprocal `1 / x` of each element.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.

    Example:
        >>> jnp.reciprocal(jnp.array([1, 2, 4]))
        Array([1.  , 0.5 , 0.25], dtype=float32)
    """
    return integer_pow(inexact("reciprocal", x), -1)


@elementwise(square_p.bind, numeric)
def square(x: ArrayLike, /) -> Array:
    """Squares each element.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     numeric; booleans become integers.

    Example:
        >>> jnp.square(jnp.array([3, -4]))
        Array([ 9, 16], dtype=int32)
    """


@elementwise(sqrt_p.bind, inexact)
def sqrt(x: ArrayLike, /) -> Array:
    """Computes the square root of each element.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.

    Example:
        >>> jnp.sqrt(jnp.array([4.0, -1.0]))
        Array([ 2., nan], dtype=float32)
        >>> jnp.sqrt(jnp.array([4.0, -1.0 + 0j]))
        Array([2.+0.j, 0.+1.j], dtype=complex64)
    """


@elementwise(cbrt_p.bind, inexact)
def cbrt(x: ArrayLike, /) -> Array:
    """Computes the cube root of each element.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     real; integers and booleans become floats.

    Example:
        >>> jnp.cbrt(jnp.array([8.0, -8.0]))
        Array([ 2., -2.], dtype=float32)
    """


def power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Raises the elements of `x1` to the powers in `x2`.

    One integer as exponent, whose value is known, is multiplied out.

    Shapes:     x1: T[s], x2: U[t] -> V[broadcast of s and t].
    Dtypes:     numeric, promoted; floats keep their dtype beside integer exponents.

    Raises:
        TypeError: `x1` holds integers, and `x2` is a known negative integer.

    Example:
        >>> jnp.power(jnp.array([2.0, 9.0]), jnp.array([-1.0, 0.5]))
        Array([0.5, 3. ], dtype=float32)
        >>> jnp.power(jnp.array([2, 3]), 10)
        Array([ 1024, 59049], dtype=int32)
    """
    exponent: Any = x2
    known = isinstance(x2, np.ndarray | Array) and not isinstance(x2, Tracer) and x2.ndim == 0
    if isinstance(x2, int | np.integer) or (known and is_kind(x2, np.integer)):
        return _integer_power(x1, operator.index(exponent))
    return _general_power(x1, x2)


pow = power


@one_program(static=("x2",))
def _integer_power(x1: ArrayLike, x2: int) -> Array:
    return integer_pow(numeric("power", x1), x2)


@one_program()
def _general_power(x1: Any, x2: Any) -> Any:
    x1, x2 = check_array("power", x1, "x1"), check_array("power", x2, "x2")
    if is_kind(x1, np.inexact) and is_kind(x2, np.integer):
        joined, _ = dtypes.lattice_result_type(x1, x2)
        if aval_of(x1).dtype == joined:
            x, y = with_one_rank("power", x1, x2)
            return pow_p.bind(x, y)
    x, y = promote_numeric("power", x1, x2)
    if is_kind(x, np.integer):
        return _power_of_integers(x, y)
    return pow_p.bind(x, y)


# 2 to the power of 64 overflows every integer dtype.
_EXPONENT_BITS = 6


def _power_of_integers(x: Array, y: Array) -> Any:
    """Repeated squaring; exact where the result can be held."""
    shape = broadcast_shapes("power", aval_of(x).shape, aval_of(y).shape)
    dtype = aval_of(x).dtype
    one, zero = (broadcast_to(np.asarray(v, dtype)[()], shape) for v in (1, 0))
    # Bits beyond the last one inspected matter for 0 alone: all its powers but the first are 0.
    result = pick(binary.bitwise_and(binary.eq(x, 0), binary.ne(y, 0)), zero, one)
    for bit in range(_EXPONENT_BITS):
        wanted = binary.ne(binary.bitwise_and(y, 1), 0)
        result = pick(wanted, binary.mul(result, x), result)
        if bit + 1 < _EXPONENT_BITS:
            x = binary.mul(x, x)
            y = binary.shift_right_logical(y, 1)
    return result


@elementwise(pow_p.bind, promote_inexact)
def float_power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Raises the elements of `x` to the powers in `y`, in floating point.

    Shapes:     x: T[s], y: U[t] -> V[broadcast of s and t].
    Dtypes:     all, promoted; integers and booleans become floats.

    Example:
        >>> jnp.float_power(jnp.array([2, 4]), -1)
        Array([0.5 , 0.25], dtype=float32)
    """


@elementwise(binary.max_p.bind, promote)
def maximum(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Returns the element-wise maximum of two arrays; NaN where either element is NaN.

    Shapes:     x: T[s], y: U[t] -> V[broadcast of s and t].
    Dtypes:     all, promoted.
    Source:     mirrors jax.numpy.maximum.

    Example:
        >>> jnp.maximum(jnp.array([1.0, 3.0, jnp.nan]), 2.0)
        Array([ 2.,  3., nan], dtype=float32)
    """


@elementwise(binary.min_p.bind, promote)
def minimum(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Returns the element-wise minimum of two arrays; NaN where either element is NaN.

    Shapes:     x: T[s], y: U[t] -> V[broadcast of s and t].
    Dtypes:     all, promoted.
    Source:     mirrors jax.numpy.minimum.

    Example:
        >>> jnp.minimum(jnp.array([1.0, 3.0, jnp.nan]), 2.0)
        Array([ 1.,  2., nan], dtype=float32)
    """


@one_program()
def fmax(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Returns the element-wise maximum of two arrays; a NaN is ignored beside a number.

    Shapes:     x1: T[s], x2: U[t] -> V[broadcast of s and t].
    Dtypes:     all, promoted.

    Example:
        >>> jnp.fmax(jnp.array([1.0, 3.0, jnp.nan]), 2.0)
        Array([2., 3., 2.], dtype=float32)
    """
    x, y = promote("fmax", x1, x2)
    return pick(binary.ne(x, x), y, pick(binary.ne(y, y), x, binary.max(x, y)))


@one_program()
def fmin(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Returns the element-wise minimum of two arrays; a NaN is ignored beside a number.

    Shapes:     x1: T[s], x2: U[t] -> V[broadcast of s and t].
    Dtypes:     all, promoted.

    Example:
        >>> jnp.fmin(jnp.array([1.0, 3.0, jnp.nan]), 2.0)
        Array([1., 2., 2.], dtype=float32)
    """
    x, y = promote("fmin", x1, x2)
    return pick(binary.ne(x, x), y, pick(binary.ne(y, y), x, binary.min(x, y)))


@one_program()
@source.hands_over
def clip(
    arr: ArrayLike | None = None, /, min: ArrayLike | None = None, max: ArrayLike | None = None
) -> Array:
    """Limits the elements to the interval from `min` to `max`; None leaves a side open.

    Shapes:     arr: T[s], min: U[t], max: V[u] -> W[broadcast of s, t and u].
    Dtypes:     real, promoted.

    Raises:
        ValueError: there is no array, or it is complex.

    Example:
        >>> jnp.clip(jnp.array([-3, 1, 7]), 0, 5)
        Array([0, 1, 5], dtype=int32)
        >>> jnp.clip(jnp.array([-3, 1, 7]), max=0)
        Array([-3,  0,  0], dtype=int32)
    """
    if arr is None:
        error(ValueError, "numpy.clip", "there is no array to clip.")
    bounds = [b for b in (min, max) if b is not None]
    for x in (arr, *bounds):
        check_not_complex("clip", check_array("clip", x), ValueError)
    if min is not None:
        arr = maximum(min, arr)
    if max is not None:
        arr = minimum(max, arr)
    return check_array("clip", arr)


@one_program()
def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Computes the hypotenuse `sqrt(x1² + x2²)` without overflow in between.

    Shapes:     x1: T[s], x2: U[t] -> V[broadcast of s and t].
    Dtypes:     real, promoted; integers and booleans become floats.

    Raises:
        ValueError: an operand is complex.

    Example:
        >>> jnp.hypot(jnp.float32(3e30), 4e30)  # though the squares overflow
        Array(5.e+30, dtype=float32)
    """
    x, y = map(strong_array, promote_inexact("hypot", x1, x2))
    check_not_complex("hypot", x, ValueError)
    x, y = unary.abs(x), unary.abs(y)
    larger, smaller = binary.max(x, y), binary.min(x, y)
    ratio = binary.div(smaller, pick(binary.eq(larger, 0), 1.0, larger))
    length = binary.mul(larger, sqrt_p.bind(binary.add(square_p.bind(ratio), 1.0)))
    infinite = binary.bitwise_or(binary.eq(x, np.inf), binary.eq(y, np.inf))
    return pick(infinite, np.inf, pick(binary.eq(larger, 0), larger, length))


@one_program()
def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Computes the Heaviside step function: 0 below zero, 1 above, `x2` at zero.

    Shapes:     x1: T[s], x2: U[t] -> V[broadcast of s and t].
    Dtypes:     real, promoted; integers and booleans become floats.

    Example:
        >>> jnp.heaviside(jnp.array([-2.0, 0.0, 3.0]), 0.5)
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    x, y = map(strong_array, promote_inexact("heaviside", x1, x2))
    check_not_complex("heaviside", x)
    one_sided = pick(binary.eq(x, 0), y, 1.0)
    return pick(binary.ne(x, x), x, pick(binary.lt(x, 0), 0.0, one_sided))


@one_program()
def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Computes the greatest common divisor of `|x1|` and `|x2|`.

    Shapes:     x1: T[s], x2: U[t] -> V[broadcast of s and t].
    Dtypes:     integer, promoted.

    Raises:
        ValueError: an operand is not of integers.

    Example:
        >>> jnp.gcd(jnp.array([12, -18, 0]), 8)
        Array([4, 2, 8], dtype=int32)
    """
    x, y = _integers("gcd", x1, x2)
    return _gcd(x, y)


@one_program()
def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Computes the lowest common multiple of `|x1|` and `|x2|`; 0 where either is 0.

    Shapes:     x1: T[s], x2: U[t] -> V[broadcast of s and t].
    Dtypes:     integer, promoted.

    Raises:
        ValueError: an operand is not of integers.

    Example:
        >>> jnp.lcm(jnp.array([4, 6, 0]), 6)
        Array([12,  6,  0], dtype=int32)
    """
    x, y = _integers("lcm", x1, x2)
    divisor = _gcd(x, y)
    divisor = pick(binary.eq(divisor, 0), 1, divisor)
    return binary.mul(x, binary.div(y, divisor))


def _integers(name: str, x1: Any, x2: Any) -> tuple[Any, Any]:
    x, y = map(strong_array, promote_dtypes(name, x1, x2))
    is_whole = is_kind(x, np.integer)
    check_that(is_whole, name, "operands must be integers.", x1=x1, x2=x2, fix="x.astype(int)")
    shape = broadcast_shapes("gcd", aval_of(x).shape, aval_of(y).shape)
    return absolute(broadcast_to(x, shape)), absolute(broadcast_to(y, shape))


def _gcd(x: Array, y: Array) -> Any:
    """Euclid's algorithm for all elements at once, until the last of them is done."""

    def unfinished(pair: tuple[Array, Array]) -> Any:
        _, y = pair
        return reduction.reduce_or(binary.ne(y, 0), range(aval_of(y).ndim))

    def step(pair: tuple[Array, Array]) -> Any:
        x, y = pair
        done = binary.eq(y, 0)
        return pick(done, x, y), pick(done, y, binary.rem(x, pick(done, 1, y)))

    return lax.while_loop(unfinished, step, (x, y))[0]


@elementwise(unary.sin, inexact)
def sin(x: ArrayLike, /) -> Array:
    """Computes the sine of each element, an angle in radians.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.

    Example:
        >>> jnp.sin(jnp.radians(jnp.array([0, 30, 90]))).round(3)
        Array([0. , 0.5, 1. ], dtype=float32)
    """


@elementwise(unary.cos, inexact)
def cos(x: ArrayLike, /) -> Array:
    """Computes the cosine of each element, an angle in radians.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.

    Example:
        >>> jnp.cos(jnp.radians(jnp.array([0, 60, 180]))).round(3)
        Array([ 1. ,  0.5, -1. ], dtype=float32)
    """


@elementwise(unary.tan, inexact)
def tan(x: ArrayLike, /) -> Array:
    """Computes the tangent of each element, an angle in radians.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.

    Example:
        >>> jnp.tan(jnp.radians(jnp.array([0, 45, 135]))).round(3)
        Array([ 0.,  1., -1.], dtype=float32)
    """


@elementwise(unary.asin, inexact)
def arcsin(x: ArrayLike, /) -> Array:
    """Computes the inverse sine, in [-π/2, π/2]; NaN outside [-1, 1].

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.

    Example:
        >>> jnp.degrees(jnp.arcsin(jnp.array([0.0, 0.5, 2.0]))).round()
        Array([ 0., 30., nan], dtype=float32)
    """


asin = arcsin


@elementwise(unary.acos, inexact)
def arccos(x: ArrayLike, /) -> Array:
    """Computes the inverse cosine, in [0, π]; NaN outside [-1, 1].

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.

    Example:
        >>> jnp.degrees(jnp.arccos(jnp.array([1.0, 0.5, 2.0]))).round()
        Array([ 0., 60., nan], dtype=float32)
    """


acos = arccos


@elementwise(unary.atan, inexact)
def arctan(x: ArrayLike, /) -> Array:
    """Computes the inverse tangent, in [-π/2, π/2].

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.

    Example:
        >>> jnp.degrees(jnp.arctan(jnp.array([0.0, 1.0, jnp.inf]))).round()
        Array([ 0., 45., 90.], dtype=float32)
    """


atan = arctan


@elementwise(unary.sinh, inexact)
def sinh(x: ArrayLike, /) -> Array:
    """Computes the hyperbolic sine of each element.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.

    Example:
        >>> jnp.sinh(jnp.array([-jnp.inf, 0.0, jnp.inf]))
        Array([-inf,   0.,  inf], dtype=float32)
    """


@elementwise(unary.cosh, inexact)
def cosh(x: ArrayLike, /) -> Array:
    """Computes the hyperbolic cosine of each element.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.

    Example:
        >>> jnp.cosh(jnp.array([-jnp.inf, 0.0, jnp.inf]))
        Array([inf,  1., inf], dtype=float32)
    """


@elementwise(unary.tanh, inexact)
def tanh(x: ArrayLike, /) -> Array:
    """Computes the hyperbolic tangent of each element.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.

    Example:
        >>> jnp.tanh(jnp.array([-jnp.inf, 0.0, jnp.inf]))
        Array([-1.,  0.,  1.], dtype=float32)
    """


@elementwise(unary.asinh, inexact)
def arcsinh(x: ArrayLike, /) -> Array:
    """Computes the inverse hyperbolic sine of each element.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.

    Example:
        >>> jnp.sinh(jnp.arcsinh(jnp.array([-3.0, 0.0, 3.0]))).round()
        Array([-3.,  0.,  3.], dtype=float32)
    """


asinh = arcsinh


@elementwise(unary.acosh, inexact)
def arccosh(x: ArrayLike, /) -> Array:
    """Computes the inverse hyperbolic cosine of each element; NaN below 1.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.

    Example:
        >>> jnp.arccosh(jnp.array([1.0, 0.5, jnp.inf]))
        Array([ 0., nan, inf], dtype=float32)
    """


acosh = arccosh


@elementwise(unary.atanh, inexact)
def arctanh(x: ArrayLike, /) -> Array:
    """Computes the inverse hyperbolic tangent of each element; NaN outside [-1, 1].

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.

    Example:
        >>> jnp.arctanh(jnp.array([0.0, 1.0, 2.0]))
        Array([ 0., inf, nan], dtype=float32)
    """


atanh = arctanh


@elementwise(unary.exp, inexact)
def exp(x: ArrayLike, /) -> Array:
    """Computes the exponential of each element.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.

    Example:
        >>> jnp.exp(jnp.array([-jnp.inf, 0.0, 89.0]))  # float32 ends at exp(88.7)
        Array([ 0.,  1., inf], dtype=float32)
    """


@elementwise(unary.exp2, inexact)
def exp2(x: ArrayLike, /) -> Array:
    """Computes `2 ** x` for each element.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.

    Example:
        >>> jnp.exp2(jnp.array([3, 0, -1]))
        Array([8. , 1. , 0.5], dtype=float32)
    """


@elementwise(unary.expm1, inexact)
def expm1(x: ArrayLike, /) -> Array:
    """Computes `exp(x) - 1` for each element, accurately near 0.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.

    Example:
        >>> jnp.expm1(1e-10), jnp.exp(1e-10) - 1
        (Array(1.e-10, dtype=float32, weak_type=True), Array(0., dtype=float32, weak_type=True))
    """


@elementwise(unary.log, inexact)
def log(x: ArrayLike, /) -> Array:
    """Computes the natural logarithm of each element.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.

    Example:
        >>> jnp.log(jnp.array([1.0, 0.0, -1.0]))
        Array([  0., -inf,  nan], dtype=float32)
    """


@elementwise(unary.log1p, inexact)
def log1p(x: ArrayLike, /) -> Array:
    """Computes `log(1 + x)` for each element, accurately near 0.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.

    Example:
        >>> jnp.log1p(1e-10), jnp.log(jnp.float32(1) + 1e-10)
        (Array(1.e-10, dtype=float32, weak_type=True), Array(0., dtype=float32))
    """


@elementwise(binary.atan2_p.bind, promote_inexact)
def arctan2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Computes the angle of the point (x2, x1) in the plane, in (-π, π].

    Shapes:     x1: T[s], x2: U[t] -> V[broadcast of s and t].
    Dtypes:     inexact, promoted; integers and booleans become floats.

    Example:
        >>> jnp.degrees(jnp.arctan2(jnp.array([1.0, -1.0]), jnp.array([1.0, -1.0]))).round()
        Array([  45., -135.], dtype=float32)
    """


atan2 = arctan2


@one_program()
def degrees(x: ArrayLike, /) -> Array:
    """Converts angles from radians to degrees.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.

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
    decimals = families.an_integer(decimals, "numpy.round", "`decimals`")
    if aval_of(a).dtype == dtypes.bool_:
        error(ValueError, "numpy.round", "booleans cannot be rounded.", got=str(aval_of(a)))
    if is_kind(a, np.integer):
        if decimals < 0:
            problem = "integers are not rounded to tens."
            got = {"a": aval_of(a), "decimals": decimals}
            error(NotImplementedError, "numpy.round", problem, got=got, fix="convert a to floats")
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

    Example:
        >>> jnp.angle(jnp.array([1j, -1.0]), deg=True)
        Array([ 90., 180.], dtype=float32)
    """
    z = _default_inexact("angle", z)
    z = z if is_kind(z, np.complexfloating) else strong(z)
    found = binary.atan2(imag(z), real(z))
    return degrees(found) if deg else found
