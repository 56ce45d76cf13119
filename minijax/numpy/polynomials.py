"""Polynomials, given by their coefficients, those of the highest powers first."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.numpy.calculus import convolve
from minijax.numpy.creation import asarray, full_like, zeros
from minijax.numpy.joining import concatenate
from minijax.numpy.one_program import one_program
from minijax.numpy.promotion import broadcast_shapes, check_array, promote_dtypes
from minijax.numpy.ranges import arange
from minijax.numpy.shaping import atleast_1d, broadcast_to
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array


def _coefficients(name: str, p: Any) -> Array:
    p = atleast_1d(asarray(check_array(name, p, "p")))
    if p.ndim != 1:
        error(ValueError, f"numpy.{name}", "coefficients are a vector.", got={"p": p.aval})
    return p


@one_program(static=("unroll",))
def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Array:
    """The values of a polynomial, by Horner's rule.

    Shapes:     p: T[n, ..], x: U[s] -> V[s].
    Dtypes:     numeric, promoted.
    Source:     mirrors jax.numpy.polyval.

    Example:
        >>> jnp.polyval(jnp.array([1, 0, -2]), jnp.array([1, 2, 3]))  # x² - 2
        Array([-1,  2,  7], dtype=int32)
    """
    p, x = (asarray(y) for y in promote_dtypes("polyval", p, x))
    shape = broadcast_shapes("polyval", x.shape, p.shape[1:])
    value = zeros(shape, p.dtype)
    for i in range(p.shape[0]):
        value = value * x + p[i]
    return value


def _of_one_length(name: str, a1: Any, a2: Any) -> tuple[Any, Any]:
    p, q = (_coefficients(name, a) for a in promote_dtypes(name, a1, a2))
    size = max(p.size, q.size)
    p, q = (concatenate([full_like(a, 0, shape=(size - a.size,)), a]) for a in (p, q))
    return p, q


@one_program()
def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The sum of two polynomials.

    Shapes:     a1: T[n], a2: U[m] -> V[max(n, m)].
    Source:     mirrors jax.numpy.polyadd.

    Example:
        >>> jnp.polyadd(jnp.array([1, 2, 3]), jnp.array([10, 20]))
        Array([ 1, 12, 23], dtype=int32)
    """
    p, q = _of_one_length("polyadd", a1, a2)
    return p + q


@one_program()
def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The difference of two polynomials.

    Shapes:     a1: T[n], a2: U[m] -> V[max(n, m)].
    Source:     mirrors jax.numpy.polysub.

    Example:
        >>> jnp.polysub(jnp.array([1, 2, 3]), jnp.array([10, 20]))
        Array([  1,  -8, -17], dtype=int32)
    """
    p, q = _of_one_length("polysub", a1, a2)
    return p - q


def _trimmed(p: Any) -> Any:
    """Coefficients from the first one on that is not zero; their values must be known."""
    known = np.asarray(p)
    places = np.flatnonzero(known)
    return p[places[0] :] if places.size else p[-1:]


def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """The product of two polynomials.

    Shapes:     a1: T[n], a2: U[m] -> V[n + m - 1].
    Source:     mirrors jax.numpy.polymul.

    Raises:
        TracerArrayConversionError: zeros are to be trimmed, and coefficients are traced.

    Example:
        >>> jnp.polymul(jnp.array([1, 1]), jnp.array([1, -1]))  # (x + 1)(x - 1)
        Array([ 1.,  0., -1.], dtype=float32)
    """
    p, q = (_coefficients("polymul", a) for a in promote_dtypes("polymul", a1, a2))
    if trim_leading_zeros:
        p, q = _trimmed(p), _trimmed(q)
    return convolve(p, q)


def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """Quotient and remainder of the division of two polynomials.

    Shapes:     u: T[n], v: U[m] -> V[n - m + 1], V[n].
    Dtypes:     inexact; integers become floats.
    Source:     mirrors jax.numpy.polydiv.

    Raises:
        TracerArrayConversionError: zeros are to be trimmed, and coefficients are traced.

    Example:
        >>> jnp.polydiv(jnp.array([1.0, 0.0, -1.0]), jnp.array([1.0, 1.0]))
        (Array([ 1., -1.], dtype=float32), Array([0., 0., 0.], dtype=float32))
    """
    quotient, rest = _polydiv(u, v)
    return quotient, _trimmed(rest) if trim_leading_zeros else rest


@one_program()
def _polydiv(u: Any, v: Any) -> tuple[Any, Any]:
    u, v = (_coefficients("polydiv", a) for a in promote_dtypes("polydiv", u, v))
    dtype = dtypes.to_inexact_dtype(u.dtype)
    rest, v = u.astype(dtype), v.astype(dtype)
    places = rest.size - v.size + 1
    if places <= 0:
        return zeros(1, dtype), rest
    quotients = []
    for i in range(places):
        factor = rest[i] / v[0]
        quotients.append(factor)
        rest = rest.at[i : i + v.size].add(-factor * v)
    return asarray(quotients), rest


@one_program(static=("m",))
def polyder(p: ArrayLike, m: int = 1) -> Array:
    """The derivative of a polynomial, of order m.

    Shapes:     p: T[n] -> T[n - m].
    Dtypes:     inexact; integers become floats.
    Source:     mirrors jax.numpy.polyder.

    Raises:
        ValueError: m is negative.

    Example:
        >>> jnp.polyder(jnp.array([1, 2, 3]))  # of x² + 2x + 3
        Array([2., 2.], dtype=float32)
    """
    order = _order("polyder", m)
    p = _coefficients("polyder", p)
    p = p.astype(dtypes.to_inexact_dtype(p.dtype))
    for _ in range(order):
        p = (p * arange(p.size - 1, -1, -1, dtype=p.dtype))[:-1]
    return p


def _order(name: str, m: Any) -> int:
    order = operator.index(m)
    if order < 0:
        error(ValueError, f"numpy.{name}", "the order must not be negative.", got=f"m: {m}")
    return order


@one_program(static=("m",))
def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | None = None) -> Array:
    """The integral of a polynomial, of order m, with constants k.

    Shapes:     p: T[n], k: T[m] or T[] -> T[n + m].
    Dtypes:     inexact; integers become floats.
    Source:     mirrors jax.numpy.polyint.

    Raises:
        ValueError: m is negative, or the number of constants does not fit.

    Example:
        >>> jnp.polyint(jnp.array([2, 2]), k=3)
        Array([1., 2., 3.], dtype=float32)
    """
    order = _order("polyint", m)
    p = _coefficients("polyint", p)
    p = p.astype(dtypes.to_inexact_dtype(p.dtype))
    constants = atleast_1d(asarray(check_array("polyint", 0 if k is None else k, "k")))
    if constants.shape == (1,):
        constants = broadcast_to(constants, (order,))
    if constants.shape != (order,):
        error(
            ValueError,
            "numpy.polyint",
            "there must be one constant for each order.",
            got={"m": m, "k": aval_of(constants)},
        )
    for i in range(order):
        p = concatenate([p / arange(p.size, 0, -1, dtype=p.dtype), constants[i : i + 1]])
    return p
