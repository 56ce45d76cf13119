"""Elementwise comparisons, logic, operations on bits, and questions about numbers."""

# mypy: disable-error-code="empty-body"

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from minijax.core import dtypes, source
from minijax.core.aval import aval_of
from minijax.core.primitive import Primitive
from minijax.lax import binary, creation, reduction, unary
from minijax.lax.creation import full_like
from minijax.numpy.creation import array_or_list
from minijax.numpy.elementary import absolute, check_not_complex, imag, is_kind
from minijax.numpy.promotion import (
    check_array,
    check_out,
    elementwise,
    numeric,
    one_program,
    pick,
    promote,
    promote_inexact,
    promote_numeric,
)
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array


def _ordered(primitive: Primitive, x: Array, y: Array) -> Any:
    """A comparison; of complex numbers, it looks at imaginary parts where real parts are equal."""
    if not is_kind(x, np.complexfloating):
        return primitive.bind(x, y)
    real_x, real_y = unary.real(x), unary.real(y)
    by_imag = primitive.bind(unary.imag(x), unary.imag(y))
    return pick(binary.eq(real_x, real_y), by_imag, primitive.bind(real_x, real_y))


@elementwise(binary.eq_p.bind, promote)
def equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Tests element by element whether `x == y`.

    Shapes:     x: T[s], y: U[t] -> bool[broadcast of s and t].
    Dtypes:     all, promoted.

    Example:
        >>> jnp.equal(jnp.array([1.0, jnp.nan]), jnp.array([1.0, jnp.nan]))
        Array([ True, False], dtype=bool)
    """


@elementwise(binary.ne_p.bind, promote)
def not_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Tests element by element whether `x != y`.

    Shapes:     x: T[s], y: U[t] -> bool[broadcast of s and t].
    Dtypes:     all, promoted.

    Example:
        >>> jnp.not_equal(jnp.array([1.0, jnp.nan]), jnp.array([1.0, jnp.nan]))
        Array([False,  True], dtype=bool)
    """


@elementwise(functools.partial(_ordered, binary.lt_p), promote)
def less(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Tests whether `x < y`; complex numbers compare real parts, then imaginary ones.

    Shapes:     x: T[s], y: U[t] -> bool[broadcast of s and t].
    Dtypes:     all, promoted.

    Example:
        >>> jnp.less(jnp.array([1, 2, 3]), 2)
        Array([ True, False, False], dtype=bool)
    """


@elementwise(functools.partial(_ordered, binary.le_p), promote)
def less_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Tests whether `x <= y`; complex numbers compare real parts, then imaginary ones.

    Shapes:     x: T[s], y: U[t] -> bool[broadcast of s and t].
    Dtypes:     all, promoted.

    Example:
        >>> jnp.less_equal(jnp.array([1, 2, 3]), 2)
        Array([ True,  True, False], dtype=bool)
    """


@elementwise(functools.partial(_ordered, binary.gt_p), promote)
def greater(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Tests whether `x > y`; complex numbers compare real parts, then imaginary ones.

    Shapes:     x: T[s], y: U[t] -> bool[broadcast of s and t].
    Dtypes:     all, promoted.

    Example:
        >>> jnp.greater(jnp.array([1, 2, 3]), 2)
        Array([False, False,  True], dtype=bool)
    """


@elementwise(functools.partial(_ordered, binary.ge_p), promote)
def greater_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Tests whether `x >= y`; complex numbers compare real parts, then imaginary ones.

    Shapes:     x: T[s], y: U[t] -> bool[broadcast of s and t].
    Dtypes:     all, promoted.

    Example:
        >>> jnp.greater_equal(jnp.array([1, 2, 3]), 2)
        Array([False,  True,  True], dtype=bool)
    """


def _truth(name: str, x: ArrayLike) -> Any:
    """Whether elements differ from zero."""
    x = check_array(name, x)
    return x if aval_of(x).dtype == dtypes.bool_ else binary.ne(x, 0)


def _truths(name: str, x: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    return promote(name, _truth(name, x), _truth(name, y))


@elementwise(binary.and_p.bind, _truths)
def logical_and(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Computes the logical and of two arrays element by element.

    Shapes:     x: T[s], y: U[t] -> bool[broadcast of s and t].
    Source:     mirrors jax.numpy.logical_and.

    Example:
        >>> jnp.logical_and(jnp.array([0, 1, 2]), jnp.array([1, 0, 4]))
        Array([False, False,  True], dtype=bool)
    """


@elementwise(binary.or_p.bind, _truths)
def logical_or(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Computes the logical or of two arrays element by element.

    Shapes:     x: T[s], y: U[t] -> bool[broadcast of s and t].
    Source:     mirrors jax.numpy.logical_or.

    Example:
        >>> jnp.logical_or(jnp.array([0, 1, 0]), jnp.array([0, 0, 4]))
        Array([False,  True,  True], dtype=bool)
    """


@elementwise(binary.xor_p.bind, _truths)
def logical_xor(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Computes the logical exclusive or of two arrays element by element.

    Shapes:     x: T[s], y: U[t] -> bool[broadcast of s and t].
    Source:     mirrors jax.numpy.logical_xor.

    Example:
        >>> jnp.logical_xor(jnp.array([0, 1, 2]), jnp.array([0, 0, 4]))
        Array([False,  True, False], dtype=bool)
    """


@elementwise(unary.bitwise_not, _truth)
def logical_not(x: ArrayLike, /) -> Array:
    """Computes the logical not of each element.

    Shapes:     x: T[s] -> bool[s].

    Example:
        >>> jnp.logical_not(jnp.array([0, 1, 2]))
        Array([ True, False, False], dtype=bool)
    """


@elementwise(binary.and_p.bind, promote)
def bitwise_and(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Computes the bitwise and of two arrays element by element.

    Shapes:     x: T[s], y: U[t] -> V[broadcast of s and t].
    Dtypes:     integer or bool, promoted.
    Source:     mirrors jax.numpy.bitwise_and.

    Example:
        >>> bin(jnp.bitwise_and(0b1100, 0b1010))
        '0b1000'
    """


@elementwise(binary.or_p.bind, promote)
def bitwise_or(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Computes the bitwise or of two arrays element by element.

    Shapes:     x: T[s], y: U[t] -> V[broadcast of s and t].
    Dtypes:     integer or bool, promoted.
    Source:     mirrors jax.numpy.bitwise_or.

    Example:
        >>> bin(jnp.bitwise_or(0b1100, 0b1010))
        '0b1110'
    """


@elementwise(binary.xor_p.bind, promote)
def bitwise_xor(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Computes the bitwise exclusive or of two arrays element by element.

    Shapes:     x: T[s], y: U[t] -> V[broadcast of s and t].
    Dtypes:     integer or bool, promoted.
    Source:     mirrors jax.numpy.bitwise_xor.

    Example:
        >>> bin(jnp.bitwise_xor(0b1100, 0b1010))
        '0b110'
    """


@elementwise(unary.bitwise_not, check_array)
def bitwise_not(x: ArrayLike, /) -> Array:
    """Inverts the bits of each element.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     integer or bool.

    Example:
        >>> jnp.bitwise_not(jnp.array([0, 5]))
        Array([-1, -6], dtype=int32)
        >>> jnp.bitwise_not(jnp.array([True, False]))
        Array([False,  True], dtype=bool)
    """


invert = bitwise_not
bitwise_invert = bitwise_not


@elementwise(binary.shift_left_p.bind, promote_numeric)
def left_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Shifts the bits of `x` to the left by `y` places.

    Shapes:     x: T[s], y: U[t] -> V[broadcast of s and t].
    Dtypes:     integer, promoted; booleans become integers.

    Example:
        >>> jnp.left_shift(jnp.array([1, 3]), 4)
        Array([16, 48], dtype=int32)
    """


bitwise_left_shift = left_shift


@one_program()
def right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Shifts the bits of `x1` to the right by `x2` places; signed numbers keep their sign.

    Shapes:     x1: T[s], x2: U[t] -> V[broadcast of s and t].
    Dtypes:     integer, promoted; booleans become integers.

    Example:
        >>> jnp.right_shift(jnp.array([17, -17]), 1)
        Array([ 8, -9], dtype=int32)
    """
    x, y = promote_numeric("right_shift", x1, x2)
    if is_kind(x, np.unsignedinteger):
        return binary.shift_right_logical(x, y)
    return binary.shift_right_arithmetic(x, y)


bitwise_right_shift = right_shift


@one_program()
def bitwise_count(x: ArrayLike, /) -> Array:
    """Counts the bits that are set in the absolute value of each element.

    Shapes:     x: T[s] -> uint8[s].
    Dtypes:     integer or bool.

    Example:
        >>> jnp.bitwise_count(jnp.array([0, 7, -8]))
        Array([0, 3, 1], dtype=uint8)
    """
    magnitude = absolute(numeric("bitwise_count", x))
    return creation.convert_element_type(unary.population_count(magnitude), dtypes.uint8)


@one_program()
def isnan(x: ArrayLike, /) -> Array:
    """Tests each element for NaN.

    Shapes:     x: T[s] -> bool[s].

    Example:
        >>> jnp.isnan(jnp.array([1.0, jnp.inf, jnp.nan]))
        Array([False, False,  True], dtype=bool)
    """
    x = check_array("isnan", x)
    return binary.ne(x, x)


@one_program()
def isfinite(x: ArrayLike, /) -> Array:
    """Tests each element for being finite: neither infinite nor NaN.

    Shapes:     x: T[s] -> bool[s].

    Example:
        >>> jnp.isfinite(jnp.array([1.0, jnp.inf, jnp.nan]))
        Array([ True, False, False], dtype=bool)
    """
    x = check_array("isfinite", x)
    if is_kind(x, np.complexfloating):
        parts = unary.real(x), unary.imag(x)
        return binary.bitwise_and(*map(unary.is_finite, parts))
    return unary.is_finite(x) if is_kind(x, np.floating) else full_like(x, True, dtypes.bool_)


@one_program()
def isinf(x: ArrayLike, /) -> Array:
    """Tests each element for being infinite, of either sign.

    Shapes:     x: T[s] -> bool[s].

    Example:
        >>> jnp.isinf(jnp.array([1.0, -jnp.inf, jnp.nan]))
        Array([False,  True, False], dtype=bool)
    """
    x = check_array("isinf", x)
    if is_kind(x, np.complexfloating):
        return binary.bitwise_or(isinf(unary.real(x)), isinf(unary.imag(x)))
    if not is_kind(x, np.floating):
        return full_like(x, False, dtypes.bool_)
    return binary.eq(unary.abs(x), np.inf)


@one_program(static=("out",))
def isposinf(x: ArrayLike, /, out: None = None) -> Array:
    """Tests each element for positive infinity.

    Shapes:     x: T[s] -> bool[s].
    Dtypes:     real.

    Raises:
        ValueError: `x` is complex.
        NotImplementedError: `out` is given.

    Example:
        >>> jnp.isposinf(jnp.array([-jnp.inf, jnp.inf]))
        Array([False,  True], dtype=bool)
    """
    return _is_infinity("isposinf", x, np.inf, out)


@one_program(static=("out",))
def isneginf(x: ArrayLike, /, out: None = None) -> Array:
    """Tests each element for negative infinity.

    Shapes:     x: T[s] -> bool[s].
    Dtypes:     real.

    Raises:
        ValueError: `x` is complex.
        NotImplementedError: `out` is given.

    Example:
        >>> jnp.isneginf(jnp.array([-jnp.inf, jnp.inf]))
        Array([ True, False], dtype=bool)
    """
    return _is_infinity("isneginf", x, -np.inf, out)


def _is_infinity(name: str, x: ArrayLike, infinity: float, out: None) -> Any:
    check_out(name, out)
    x = check_array(name, x)
    check_not_complex(name, x, ValueError)
    if not is_kind(x, np.floating):
        return full_like(x, False, dtypes.bool_)
    return binary.eq(x, infinity)


@one_program()
def iscomplex(x: ArrayLike) -> Array:
    """Tests each element for a nonzero imaginary part.

    Shapes:     x: T[s] -> bool[s].

    Example:
        >>> jnp.iscomplex(jnp.array([1j, 2 + 0j]))
        Array([ True, False], dtype=bool)
    """
    return _truth("iscomplex", imag(x))


@one_program()
def isreal(x: ArrayLike) -> Array:
    """Tests each element for being real: an imaginary part of zero, or none.

    Shapes:     x: T[s] -> bool[s].

    Example:
        >>> jnp.isreal(jnp.array([1j, 2 + 0j]))
        Array([False,  True], dtype=bool)
    """
    return unary.bitwise_not(_truth("isreal", imag(x)))


def iscomplexobj(x: object) -> bool:
    """Tests whether the dtype of `x` is complex.

    Example:
        >>> jnp.iscomplexobj(jnp.array([2 + 0j]))
        True
    """
    if x is None:
        return False
    return dtypes.issubdtype(
        dtypes.dtype(x) if hasattr(x, "dtype") else np.asarray(x).dtype, np.complexfloating
    )


def isrealobj(x: object) -> bool:
    """Tests whether the dtype of `x` is not complex.

    Example:
        >>> jnp.isrealobj(jnp.array([2 + 0j]))
        False
    """
    return not iscomplexobj(x)


def isscalar(element: object) -> bool:
    """Tests whether `element` is a Python or NumPy scalar, or an array without dimensions.

    Example:
        >>> jnp.isscalar(1.5), jnp.isscalar(jnp.array(1.5)), jnp.isscalar(jnp.array([1.5]))
        (True, True, False)
    """
    return np.isscalar(element) or getattr(element, "ndim", None) == 0


@one_program(static=("equal_nan",))
def isclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Tests element by element whether `|a - b| <= atol + rtol |b|`.

    Infinities are close to themselves only; NaN is close to nothing, or with `equal_nan` to NaN.

    Shapes:     a: T[s], b: U[t] -> bool[broadcast of s and t].
    Dtypes:     all, promoted.

    Example:
        >>> jnp.isclose(jnp.array([1e5, 1e-9, jnp.nan]), jnp.array([1e5 + 1, 0, jnp.nan]))
        Array([ True,  True, False], dtype=bool)
    """
    x, y = promote("isclose", a, b)
    if aval_of(x).is_extended:
        return binary.eq(x, y)
    if not is_kind(x, np.inexact):
        x, y = promote_inexact("isclose", x, y)
    gap = unary.abs(binary.sub(x, y))
    dtype = aval_of(gap).dtype
    rtol, atol = (creation.convert_element_type(t, dtype) for t in (rtol, atol))
    scaled = binary.mul(*promote("isclose", unary.abs(y), rtol))
    bound = binary.add_p.bind(*promote("isclose", atol, scaled))
    close = binary.le_p.bind(*promote("isclose", gap, bound))
    close = binary.bitwise_or(binary.eq(x, y), binary.bitwise_and(isfinite(y), close))
    if equal_nan:
        close = binary.bitwise_or(close, binary.bitwise_and(isnan(x), isnan(y)))
    return close


@one_program(static=("equal_nan",))
@source.hands_over
def allclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Tests whether all elements of two arrays are close, as `isclose` defines it.

    Shapes:     a: T[s], b: U[t] -> bool[].

    Example:
        >>> jnp.allclose(jnp.array([1.0, 2.0]), jnp.array([1.0, 2.00001]))
        Array(True, dtype=bool)
    """
    return _all(isclose(a, b, rtol, atol, equal_nan))


def _all(x: Array) -> Any:
    return reduction.reduce_and(x, range(aval_of(x).ndim))


@one_program(static=("equal_nan",))
def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Array:
    """Tests whether two arrays have the same shape and equal elements.

    Shapes:     a1: T[s], a2: U[t] -> bool[].

    Example:
        >>> jnp.array_equal(jnp.array([1, 2]), jnp.array([[1, 2]]))
        Array(False, dtype=bool)
    """
    x, y = array_or_list("array_equal", a1, "a1"), array_or_list("array_equal", a2, "a2")
    if aval_of(x).shape != aval_of(y).shape:
        return creation.convert_element_type(False, dtypes.bool_)
    same = equal(x, y)
    if equal_nan:
        same = binary.bitwise_or(same, binary.bitwise_and(isnan(x), isnan(y)))
    return _all(same)


@one_program()
def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Tests whether two arrays have equal elements once they are broadcast together.

    Shapes:     a1: T[s], a2: U[t] -> bool[].

    Example:
        >>> jnp.array_equiv(jnp.array([1, 2]), jnp.array([[1, 2], [1, 2]]))
        Array(True, dtype=bool)
    """
    x, y = array_or_list("array_equiv", a1, "a1"), array_or_list("array_equiv", a2, "a2")
    try:
        np.broadcast_shapes(aval_of(x).shape, aval_of(y).shape)
    except ValueError:
        return creation.convert_element_type(False, dtypes.bool_)
    return _all(equal(x, y))
