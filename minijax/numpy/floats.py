"""The floating-point and bit routines of NumPy: `signbit`, `frexp`, `ldexp`, `packbits` and others.

The functions of floats take numbers apart into signs, fractions and exponents, put them together
again, find neighbouring numbers, and replace NaN and infinities.  All of them are elementwise.
`packbits` and `unpackbits` turn elements into the bits of bytes, and back.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.lax import binary, creation, unary
from minijax.lax.creation import full_like
from minijax.numpy.creation import asarray
from minijax.numpy.elementary import check_not_complex, is_kind, trunc
from minijax.numpy.joining import concatenate
from minijax.numpy.logic import isfinite, isinf
from minijax.numpy.promotion import (
    broadcast_shapes,
    broadcast_to,
    check_array,
    check_choice,
    check_out,
    check_that,
    inexact,
    one_program,
    pick,
    promote_inexact,
    strong,
)
from minijax.numpy.ranges import arange
from minijax.numpy.shaping import moveaxis, ravel, reshape
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array

_SIGNED: dict[int, Any] = {8: dtypes.int8, 16: dtypes.int16, 32: dtypes.int32, 64: dtypes.int64}


@one_program()
def signbit(x: ArrayLike, /) -> Array:
    """Tests whether the sign bit of each element is set: of negative numbers, -0, or NaN.

    Shapes:     x: T[s] -> bool[s].
    Dtypes:     real.

    Raises:
        ValueError: `x` is complex.

    Example:
        >>> jnp.signbit(jnp.array([-1.0, 0.0, -0.0]))
        Array([ True, False,  True], dtype=bool)
    """
    x = check_array("signbit", x)
    check_not_complex("signbit", x, ValueError)
    dtype = aval_of(x).dtype
    if dtype == dtypes.bool_:
        return full_like(x, False, dtypes.bool_)
    if is_kind(x, np.integer):
        return binary.lt(x, 0)
    return binary.lt(_bits(x), 0)


@one_program()
def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Changes the sign of each element of `x1` to that of `x2`.

    Shapes:     x1: T[s], x2: U[t] -> V[broadcast of s and t].
    Dtypes:     real, promoted; integers and booleans become floats.

    Raises:
        TypeError: an operand is complex.

    Example:
        >>> jnp.copysign(jnp.array([1, 2, 3]), jnp.array([-1.0, 1.0, -0.0]))
        Array([-1.,  2., -3.], dtype=float32)
    """
    x, y = promote_inexact("copysign", x1, x2)
    check_not_complex("copysign", x)
    magnitude = unary.abs(x)
    return pick(signbit(y), unary.neg(magnitude), magnitude)


@one_program()
def nextafter(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Returns the next floating-point number after `x` towards `y`.

    Shapes:     x: T[s], y: U[t] -> V[broadcast of s and t].
    Dtypes:     floating, promoted; integers and booleans become floats.

    Example:
        >>> jnp.nextafter(1.0, 2.0) - 1 == jnp.finfo(jnp.float32).eps
        Array(True, dtype=bool)
    """
    return binary.nextafter_p.bind(*promote_inexact("nextafter", x, y))


@one_program()
def spacing(x: ArrayLike, /) -> Array:
    """Returns the distance between each element and the adjacent floating-point number.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     floating; integers and booleans become floats.

    Raises:
        ValueError: `x` is complex.

    Example:
        >>> jnp.spacing(jnp.array([1.0, 2.0**24]))
        Array([1.1920929e-07, 2.0000000e+00], dtype=float32)
    """
    x = strong(inexact("spacing", x))
    check_not_complex("spacing", x, ValueError)
    mantissa_bits = int(dtypes.finfo(aval_of(x).dtype).nmant)
    infinity = (2 * _bias(x) + 1) << mantissa_bits
    bits, magnitude = _bits(x), _magnitude(x)
    is_finite = binary.lt(magnitude, infinity)
    sign = pick(binary.eq(magnitude, 0), 0, binary.bitwise_xor(bits, magnitude))
    if aval_of(x).dtype == np.float16:
        # NumPy's half floats look upwards: from negative numbers, towards zero.
        magnitude = binary.sub(
            magnitude, creation.convert_element_type(binary.lt(sign, 0), sign.dtype)
        )
        sign = full_like(sign, 0)
    stored = binary.shift_right_logical(magnitude, mantissa_bits)
    # The distance is a power of 2, and its bits are written down as they are: it may be subnormal,
    # which processors treat as zero.
    normal = binary.shift_left(binary.sub(stored, mantissa_bits), mantissa_bits)
    subnormal = binary.shift_left(full_like(stored, 1), binary.max(binary.sub(stored, 1), 0))
    distance = pick(binary.gt(stored, mantissa_bits), normal, subnormal)
    distance = pick(binary.eq(magnitude, infinity - 1), infinity, distance)
    signed = binary.bitwise_or(distance, sign)
    out = creation.bitcast_convert_type(signed, aval_of(x).dtype)
    return pick(is_finite, out, np.nan)


@one_program(static=("out",))
def modf(x: ArrayLike, /, out: None = None) -> tuple[Array, Array]:
    """Splits each element into its fractional and integral parts.

    Shapes:     x: T[s] -> two of T[s].
    Dtypes:     real; integers and booleans become floats.

    Raises:
        TypeError: `x` is complex.
        NotImplementedError: `out` is given.

    Example:
        >>> jnp.modf(jnp.array([1.5, -2.25]))
        (Array([ 0.5 , -0.25], dtype=float32), Array([ 1., -2.], dtype=float32))
    """
    check_out("modf", out)
    x = inexact("modf", x)
    check_not_complex("modf", x)
    whole = trunc(x)
    fraction = pick(isinf(x), full_like(x, 0), binary.sub(x, whole))
    return copysign(fraction, x), whole


@one_program()
def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """Decomposes each element into a mantissa m and an exponent e with `x = m 2 ** e`.

    Shapes:     x: T[s] -> T[s], int32[s].
    Dtypes:     real; integers and booleans become floats.
    Derivative: that of m alone: dx / 2 ** e.

    Raises:
        TypeError: `x` is complex.

    Example:
        >>> jnp.frexp(jnp.array([8.0, 0.75]))
        (Array([0.5 , 0.75], dtype=float32), Array([4, 0], dtype=int32))
    """
    x = inexact("frexp", x)
    check_not_complex("frexp", x)
    info = dtypes.finfo(aval_of(x).dtype)
    magnitude = _magnitude(x)
    stored = binary.shift_right_logical(magnitude, info.nmant)
    ordinary = binary.bitwise_and(binary.ne(magnitude, 0), binary.ne(stored, 2 * _bias(x) + 1))
    # Processors may treat subnormal numbers as zero, but not the integers that they are stored as.
    tiny = binary.eq(stored, 0)
    whole = copysign(creation.convert_element_type(magnitude, aval_of(x).dtype), x)
    lifted = pick(tiny, whole, x)
    places = pick(tiny, 1 - _bias(x) - info.nmant, np.zeros((), aval_of(magnitude).dtype)[()])
    # The biased exponent of normal floats, as an integer of their width.
    upper = binary.shift_right_logical(_bits(lifted), info.nmant)
    biased = binary.bitwise_and(upper, 2 * _bias(x) + 1)
    exponent = binary.sub(biased, _bias(x) - 1)
    mantissa = _times_power_of_2(lifted, unary.neg(exponent))
    exponent = pick(ordinary, binary.add(exponent, places), 0)
    return pick(ordinary, mantissa, x), creation.convert_element_type(exponent, dtypes.int32)


def _bias(x: Array) -> int:
    mantissa_bits = int(dtypes.finfo(aval_of(x).dtype).nmant)
    return int(2 ** (dtypes.bit_width(aval_of(x).dtype) - mantissa_bits - 2)) - 1


def _bits(x: Array) -> Any:
    """Floats as the integers of their width that they are stored as."""
    return creation.bitcast_convert_type(x, _SIGNED[dtypes.bit_width(aval_of(x).dtype)])


def _magnitude(x: Array) -> Any:
    """The bits of absolute values, as integers that are ordered as these are."""
    return binary.bitwise_and(_bits(x), 2 ** (dtypes.bit_width(aval_of(x).dtype) - 1) - 1)


def _times_power_of_2(x: Array, exponent: Array) -> Any:
    """`x * 2 ** exponent`, in steps small enough for each factor to be a normal float."""
    bias, dtype = _bias(x), aval_of(x).dtype
    limit = bias - 1
    for _ in range(3):
        step = binary.min(binary.max(exponent, -limit), limit)
        # A power of 2 is written down by its bits.
        bits = binary.shift_left(binary.add(step, bias), dtypes.finfo(dtype).nmant)
        x = binary.mul(x, creation.bitcast_convert_type(bits, dtype))
        exponent = binary.sub(exponent, step)
    return x


@one_program()
def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Computes `x1 * 2 ** x2` without overflow in between.

    Shapes:     x1: T[s], x2: integer[t] -> T[broadcast of s and t].
    Dtypes:     x1 real, x2 integer or bool; integers in x1 become floats.

    Raises:
        ValueError: `x1` is complex, or `x2` not of integers.

    Example:
        >>> jnp.ldexp(jnp.array([0.5, 0.75]), jnp.array([4, 0]))
        Array([8.  , 0.75], dtype=float32)
    """
    x, y = check_array("ldexp", x1, "x1"), check_array("ldexp", x2, "x2")
    fits = not is_kind(y, np.inexact) and not is_kind(x, np.complexfloating)
    expected = "a real array, and exponents that are integers"
    check_that(fits, "ldexp", "dtypes do not fit.", x1=x, x2=y, expected=expected)
    x = inexact("ldexp", x)
    signed = _SIGNED[dtypes.bit_width(aval_of(x).dtype)]
    bound = 3 * _bias(x)
    y = binary.min(binary.max(creation.convert_element_type(y, dtypes.int32), -bound), bound)
    y = creation.convert_element_type(y, signed)
    shape = broadcast_shapes("ldexp", aval_of(x).shape, aval_of(y).shape)
    x, y = broadcast_to(x, shape), broadcast_to(y, shape)
    return pick(binary.bitwise_and(isfinite(x), binary.ne(x, 0)), _times_power_of_2(x, y), x)


@one_program(static=("copy",))
def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Array:
    """Replaces NaN and the infinities by finite numbers.

    Args:
        x: the array.
        copy: has no meaning here.
        nan: what stands for NaN.
        posinf: what stands for infinity; by default the largest number of the dtype.
        neginf: what stands for negative infinity; by default the lowest number of the dtype.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     all; integers and booleans pass.

    Example:
        >>> jnp.nan_to_num(jnp.array([1.0, jnp.nan, jnp.inf]), nan=0.0, posinf=99.0)
        Array([ 1.,  0., 99.], dtype=float32)
    """
    x = check_array("nan_to_num", x)
    if is_kind(x, np.complexfloating):
        parts = unary.real(x), unary.imag(x)
        return unary.complex(*(nan_to_num(part, copy, nan, posinf, neginf) for part in parts))
    if not is_kind(x, np.floating):
        return x
    dtype = aval_of(x).dtype
    info = dtypes.finfo(dtype)
    posinf = info.max if posinf is None else posinf
    neginf = info.min if neginf is None else neginf
    nan, posinf, neginf = (creation.convert_element_type(v, dtype) for v in (nan, posinf, neginf))
    x = pick(binary.eq(x, np.inf), posinf, pick(binary.eq(x, -np.inf), neginf, x))
    return pick(binary.ne(x, x), nan, x)


def _places(name: str, bitorder: str) -> Array:
    """The bits of a byte in the order in which elements stand for them."""
    check_choice(name, "order of bits", bitorder, ("big", "little"))
    places = arange(8, dtype=dtypes.uint8)
    return places if bitorder == "little" else 7 - places


@one_program(static=("axis", "bitorder"))
def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Packs the elements of a boolean or integer array into the bits of bytes.

    Shapes:     a: T[.., n, ..] -> uint8[.., ceil(n / 8), ..]; without an axis, of the flat array.
    Dtypes:     integer or bool.

    Raises:
        TypeError: `a` holds neither integers nor booleans.
        ValueError: the order of bits is not known.

    Example:
        >>> jnp.packbits(jnp.array([1, 0, 0, 0, 0, 0, 1, 1, 1]))
        Array([131, 128], dtype=uint8)
    """
    places = _places("packbits", bitorder)
    a = asarray(check_array("packbits", a))
    is_whole = dtypes.issubdtype(a.dtype, np.integer) or a.dtype == dtypes.bool_
    check_that(is_whole, "packbits", "integers or booleans are packed.", error=TypeError, a=a)
    a = (ravel(a) if axis is None else moveaxis(a, axis, -1)) != 0
    *lead, size = a.shape
    filling = np.zeros((*lead, -size % 8), np.bool_)
    eights = reshape(concatenate([a, filling], -1), (*lead, -(-size // 8), 8))
    packed = (eights.astype(dtypes.uint8) << places).sum(-1, dtype=dtypes.uint8)
    return packed if axis is None else moveaxis(packed, -1, axis)


@one_program(static=("axis", "count", "bitorder"))
def unpackbits(
    a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Array:
    """Unpacks the bits of bytes into an array of zeros and ones.

    Args:
        a: the bytes.
        axis: the axis; by default the array is flattened.
        count: how many bits to keep; if negative, how many to drop at the end.
        bitorder: "big" if the highest bit comes first, else "little".

    Shapes:     a: uint8[.., n, ..] -> uint8[.., 8 n, ..]; without an axis, of the flat array.

    Raises:
        TypeError: `a` does not hold bytes.
        ValueError: the order of bits is not known.

    Example:
        >>> jnp.unpackbits(jnp.array([131], dtype=jnp.uint8))
        Array([1, 0, 0, 0, 0, 0, 1, 1], dtype=uint8)
    """
    places = _places("unpackbits", bitorder)
    a = asarray(check_array("unpackbits", a))
    if a.dtype != dtypes.uint8:
        error(TypeError, "numpy.unpackbits", "bytes are unpacked.", got={"a": a.aval})
    a = ravel(a) if axis is None else moveaxis(a, axis, -1)
    bits = reshape((a[..., None] >> places) & 1, (*a.shape[:-1], -1))
    if count is not None and count > bits.shape[-1]:
        filling = np.zeros((*bits.shape[:-1], count - bits.shape[-1]), np.uint8)
        bits = concatenate([bits, filling], -1)
    bits = bits[..., :count]
    return bits if axis is None else moveaxis(bits, -1, axis)
