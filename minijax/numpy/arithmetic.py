"""Elementwise arithmetic: sums, products, quotients, powers, extremes, parts of floats.

Greatest common divisors and least common multiples.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.interpreters import checking
from minijax.lax import binary, control_flow, families, reduction, unary
from minijax.lax.unary import cbrt_p, integer_pow, pow_p, sqrt_p, square_p
from minijax.numpy.one_program import one_program
from minijax.numpy.promotion import (
    broadcast_shapes,
    broadcast_to,
    check_array,
    inexact,
    numeric,
    pick,
    promote,
    promote_dtypes,
    promote_inexact,
    promote_numeric,
    real_inexact,
    strong_array,
    with_one_rank,
)
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array


def is_kind(x: Any, kind: Any) -> bool:
    """Whether the elements of `x` are of an abstract dtype such as `np.integer`."""
    return dtypes.issubdtype(aval_of(x).dtype, kind)


def check_not_complex(name: str, x: Array, exception: type[Exception] = TypeError) -> None:
    """Refuses complex numbers.

    Raises:
        TypeError: `x` is complex; or `exception` in its place.
    """
    if is_kind(x, np.complexfloating):
        error(
            exception,
            f"numpy.{name}",
            "complex numbers are not accepted.",
            got={"x": aval_of(x)},
            fix="numpy.real, numpy.imag or numpy.abs first",
        )


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


@one_program()
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
    return binary.sub_p.bind(*promote("subtract", x, y))


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


@one_program()
def divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Divides arrays element by element, giving floats or complex numbers.

    Shapes:     x1: T[s], x2: U[t] -> V[broadcast of s and t].
    Dtypes:     all, promoted; integers and booleans become floats.
    Source:     mirrors jax.numpy.divide.

    Example:
        >>> jnp.divide(jnp.array([7, 0, -1]), jnp.array([2, 0, 0]))
        Array([ 3.5,  nan, -inf], dtype=float32)
    """
    return binary.div_p.bind(*promote_inexact("divide", x1, x2))


true_divide = divide


@one_program()
def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Divides arrays element by element and rounds the quotients down.

    Shapes:     x1: T[s], x2: U[t] -> V[broadcast of s and t].
    Dtypes:     real, promoted; booleans become integers.
    Derivative: zero.
    Source:     mirrors jax.numpy.floor_divide.

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
    Source:     mirrors jax.numpy.remainder.

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
    Source:     mirrors jax.numpy.fmod.

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
    Source:     mirrors jax.numpy.divmod.

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


@one_program()
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
    return families.neg_p.bind(check_array("negative", x))


@one_program()
def positive(x: ArrayLike, /) -> Array:
    """Returns the elements unchanged: `+x`.

    Shapes:     x: T[s] -> T[s].
    Source:     mirrors jax.numpy.positive.

    Example:
        >>> jnp.positive(jnp.array([1, -2]))
        Array([ 1, -2], dtype=int32)
    """
    return check_array("positive", x)


@one_program()
def absolute(x: ArrayLike, /) -> Array:
    """Computes the absolute value of each element; of complex numbers, the modulus.

    Shapes:     x: T[s] -> T[s], or the real dtype of T.
    Source:     mirrors jax.numpy.absolute.

    Example:
        >>> jnp.absolute(jnp.array([3 + 4j, -2]))
        Array([5., 2.], dtype=float32)
    """
    x = check_array("absolute", x)
    if aval_of(x).dtype == dtypes.bool_ or is_kind(x, np.unsignedinteger):
        return x
    return unary.abs(x)


abs = absolute


@one_program()
def fabs(x: ArrayLike, /) -> Array:
    """Computes the absolute value of each element as a float.

    Shapes:     x: T[s] -> float[s].
    Dtypes:     real; integers and booleans become floats.
    Source:     mirrors jax.numpy.fabs.

    Raises:
        TypeError: `x` is complex.

    Example:
        >>> jnp.fabs(jnp.array([-3, 2]))
        Array([3., 2.], dtype=float32)
    """
    return unary.abs(real_inexact("fabs", x))


@one_program()
def sign(x: ArrayLike, /) -> Array:
    """Returns the sign of each element: -1, 0 or 1; of complex numbers, `x / |x|`.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     numeric.
    Source:     mirrors jax.numpy.sign.

    Raises:
        TypeError: `x` is boolean.

    Example:
        >>> jnp.sign(jnp.array([-2.5, 0.0, 4.0]))
        Array([-1.,  0.,  1.], dtype=float32)
    """
    return unary.sign(check_array("sign", x))


@one_program()
def reciprocal(x: ArrayLike, /) -> Array:
    """Computes the reciprocal `1 / x` of each element.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.
    Source:     mirrors jax.numpy.reciprocal.

    Example:
        >>> jnp.reciprocal(jnp.array([1, 2, 4]))
        Array([1.  , 0.5 , 0.25], dtype=float32)
    """
    return integer_pow(inexact("reciprocal", x), -1)


@one_program()
def square(x: ArrayLike, /) -> Array:
    """Squares each element.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     numeric; booleans become integers.
    Source:     mirrors jax.numpy.square.

    Example:
        >>> jnp.square(jnp.array([3, -4]))
        Array([ 9, 16], dtype=int32)
    """
    return square_p.bind(numeric("square", x))


@one_program()
def sqrt(x: ArrayLike, /) -> Array:
    """Computes the square root of each element.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.
    Source:     mirrors jax.numpy.sqrt.

    Example:
        >>> jnp.sqrt(jnp.array([4.0, -1.0]))
        Array([ 2., nan], dtype=float32)
        >>> jnp.sqrt(jnp.array([4.0, -1.0 + 0j]))
        Array([2.+0.j, 0.+1.j], dtype=complex64)
    """
    return sqrt_p.bind(inexact("sqrt", x))


@one_program()
def cbrt(x: ArrayLike, /) -> Array:
    """Computes the cube root of each element.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     real; integers and booleans become floats.
    Source:     mirrors jax.numpy.cbrt.

    Example:
        >>> jnp.cbrt(jnp.array([8.0, -8.0]))
        Array([ 2., -2.], dtype=float32)
    """
    return cbrt_p.bind(inexact("cbrt", x))


def power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Raises the elements of `x1` to the powers in `x2`.

    A Python or NumPy integer as exponent is multiplied out.

    Shapes:     x1: T[s], x2: U[t] -> V[broadcast of s and t].
    Dtypes:     numeric, promoted; floats keep their dtype beside integer exponents.
    Source:     mirrors jax.numpy.power.

    Raises:
        TypeError: `x1` holds integers, and `x2` is a negative Python integer.

    Example:
        >>> jnp.power(jnp.array([2.0, 9.0]), jnp.array([-1.0, 0.5]))
        Array([0.5, 3. ], dtype=float32)
        >>> jnp.power(jnp.array([2, 3]), 10)
        Array([ 1024, 59049], dtype=int32)
    """
    if isinstance(x2, (int, np.integer)):
        return _integer_power(x1, operator.index(x2))
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


@one_program()
def float_power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Raises the elements of `x` to the powers in `y`, in floating point.

    Shapes:     x: T[s], y: U[t] -> V[broadcast of s and t].
    Dtypes:     all, promoted; integers and booleans become floats.
    Source:     mirrors jax.numpy.float_power.

    Example:
        >>> jnp.float_power(jnp.array([2, 4]), -1)
        Array([0.5 , 0.25], dtype=float32)
    """
    return pow_p.bind(*promote_inexact("float_power", x, y))


@one_program()
def maximum(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Returns the element-wise maximum of two arrays; NaN where either element is NaN.

    Shapes:     x: T[s], y: U[t] -> V[broadcast of s and t].
    Dtypes:     all, promoted.
    Source:     mirrors jax.numpy.maximum.

    Example:
        >>> jnp.maximum(jnp.array([1.0, 3.0, jnp.nan]), 2.0)
        Array([ 2.,  3., nan], dtype=float32)
    """
    return binary.max_p.bind(*promote("maximum", x, y))


@one_program()
def minimum(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Returns the element-wise minimum of two arrays; NaN where either element is NaN.

    Shapes:     x: T[s], y: U[t] -> V[broadcast of s and t].
    Dtypes:     all, promoted.
    Source:     mirrors jax.numpy.minimum.

    Example:
        >>> jnp.minimum(jnp.array([1.0, 3.0, jnp.nan]), 2.0)
        Array([ 1.,  2., nan], dtype=float32)
    """
    return binary.min_p.bind(*promote("minimum", x, y))


@one_program()
def fmax(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Returns the element-wise maximum of two arrays; a NaN is ignored beside a number.

    Shapes:     x1: T[s], x2: U[t] -> V[broadcast of s and t].
    Dtypes:     all, promoted.
    Source:     mirrors jax.numpy.fmax.

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
    Source:     mirrors jax.numpy.fmin.

    Example:
        >>> jnp.fmin(jnp.array([1.0, 3.0, jnp.nan]), 2.0)
        Array([1., 2., 2.], dtype=float32)
    """
    x, y = promote("fmin", x1, x2)
    return pick(binary.ne(x, x), y, pick(binary.ne(y, y), x, binary.min(x, y)))


@one_program()
def clip(
    arr: ArrayLike | None = None, /, min: ArrayLike | None = None, max: ArrayLike | None = None
) -> Array:
    """Limits the elements to the interval from `min` to `max`; None leaves a side open.

    Shapes:     arr: T[s], min: U[t], max: V[u] -> W[broadcast of s, t and u].
    Dtypes:     real, promoted.
    Source:     mirrors jax.numpy.clip.

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
    Source:     mirrors jax.numpy.hypot.

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
    Source:     mirrors jax.numpy.heaviside.

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
    Source:     mirrors jax.numpy.gcd.

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
    Source:     mirrors jax.numpy.lcm.

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
    if not is_kind(x, np.integer):
        error(
            ValueError,
            f"numpy.{name}",
            "operands must be integers.",
            got={"x1": aval_of(x1), "x2": aval_of(x2)},
            fix="x.astype(int)",
        )
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

    return control_flow.while_loop(unfinished, step, (x, y))[0]
