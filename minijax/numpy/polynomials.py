"""Polynomials, given by their coefficients, those of the highest powers first.

Polynomials, given by their coefficients, those of the highest powers first.

Polynomials and their zeros, and polynomials through points: what needs linear algebra.
"""

from __future__ import annotations

import operator
from typing import Any, Literal, overload

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.numpy import linalg
from minijax.numpy.arithmetic import sqrt
from minijax.numpy.calculus import convolve
from minijax.numpy.contraction import outer
from minijax.numpy.creation import asarray, full_like, zeros
from minijax.numpy.joining import concatenate
from minijax.numpy.linalg import operands
from minijax.numpy.matrices import eye, vander
from minijax.numpy.one_program import one_program
from minijax.numpy.promotion import broadcast_shapes, check_array, check_that, promote_dtypes
from minijax.numpy.ranges import arange
from minijax.numpy.reductions import sum as sum_of
from minijax.numpy.selection import nonzero, where
from minijax.numpy.shaping import atleast_1d, broadcast_to, roll
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array


def _coefficients(name: str, p: Any) -> Array:
    p = atleast_1d(asarray(check_array(name, p, "p")))
    if p.ndim != 1:
        error(ValueError, f"numpy.{name}", "coefficients are a vector.", got={"p": p.aval})
    return p


@one_program(static=("unroll",))
def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Array:
    """Evaluates a polynomial by Horner's rule.

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
    """Adds two polynomials.

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
    """Subtracts one polynomial from another.

    Shapes:     a1: T[n], a2: U[m] -> V[max(n, m)].
    Source:     mirrors jax.numpy.polysub.

    Example:
        >>> jnp.polysub(jnp.array([1, 2, 3]), jnp.array([10, 20]))
        Array([  1,  -8, -17], dtype=int32)
    """
    p, q = _of_one_length("polysub", a1, a2)
    return p - q


def _trimmed(p: Array) -> Any:
    """Coefficients from the first one on that is not zero; their values must be known."""
    known = np.asarray(p)
    places = np.flatnonzero(known)
    return p[places[0] :] if places.size else p[-1:]


def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """Multiplies two polynomials.

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
    """Divides one polynomial by another, and returns the quotient and the remainder.

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
    """Differentiates a polynomial m times.

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
    """Integrates a polynomial m times, with integration constants k.

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


@one_program()
def poly(seq_of_zeros: ArrayLike) -> Array:
    """Returns the coefficients of the monic polynomial with the given roots.

    Shapes:     seq_of_zeros: T[n], the zeros, or T[n, n], a matrix whose eigenvalues they are
                -> T[n + 1].
    Dtypes:     inexact; integers become floats; complex of a matrix.
    Source:     mirrors jax.numpy.poly.

    Raises:
        ValueError: the zeros are neither a vector nor a square matrix.

    Example:
        >>> jnp.poly(jnp.array([1.0, -1.0]))  # (x - 1)(x + 1)
        Array([ 1.,  0., -1.], dtype=float32)
    """
    roots = atleast_1d(operands.inexact("poly", seq_of_zeros))
    if roots.ndim == 2 and roots.shape[0] == roots.shape[1] > 0:
        roots = linalg.eigvals(roots)
    if roots.ndim != 1:
        error(
            ValueError,
            "numpy.poly",
            "zeros are a vector, or the eigenvalues of a square matrix.",
            got={"seq_of_zeros": aval_of(roots)},
        )
    p = asarray(np.ones(1, roots.dtype))
    nothing = zeros(1, roots.dtype)
    for i in range(roots.size):
        p = concatenate([p, nothing]) - roots[i] * concatenate([nothing, p])
    return p


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """Returns the roots of a polynomial: the eigenvalues of its companion matrix.

    Shapes:     p: T[n] -> complex T[n - 1], or fewer where leading coefficients are stripped.
    Dtypes:     complex.
    Source:     mirrors jax.numpy.roots (0.10).

    Args:
        p: the coefficients, that of the highest power first.
        strip_zeros: whether zeros at the beginning of p are dropped; how many there are must be
            known then.  Else the last zeros are NaN, one for each.

    Raises:
        ValueError: p is no vector.
        ConcretizationTypeError: p is traced, and zeros are to be stripped.

    Example:
        >>> jnp.roots(jnp.array([1.0, -3.0, 2.0])).real
        Array([2., 1.], dtype=float32)
    """
    p = atleast_1d(operands.inexact("roots", p))
    check_that(p.ndim == 1, "roots", "the coefficients must be a vector.", p=p)
    if p.size < 2:
        return zeros(0, dtypes.to_complex_dtype(p.dtype))
    if not strip_zeros:
        return _roots_without_leading(p)
    (places,) = nonzero(p)
    if places.size == 0:
        return zeros(0, dtypes.to_complex_dtype(p.dtype))
    first, last = int(places[0]), int(places[-1]) + 1
    found = _roots(p[first:last])
    return concatenate([found, zeros(p.size - last, found.dtype)])


@one_program()
def _roots(p: Array) -> Any:
    if p.size < 2:
        return zeros(0, dtypes.to_complex_dtype(p.dtype))
    companion = eye(p.size - 1, k=-1, dtype=p.dtype)
    return linalg.eigvals(companion.at[0].set(-p[1:] / p[0]))


@one_program()
def _roots_without_leading(p: Array) -> Any:
    """As many zeros as without leading zeros of p, then NaN.

    Leading zeros are moved to the end, where each is one more zero of the polynomial at 0.
    """
    is_lead = arange(p.size) < (p != 0).argmax()
    count = where((p == 0).all(), p.size, is_lead.sum())
    found = _roots(roll(where((p == 0).all(), 1, p), -count))
    found = found[(found == 0).argsort(stable=True)]
    return where(arange(found.size) < found.size - count, found, np.nan + 1j * np.nan)


@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = ...,
    full: Literal[False] = ...,
    w: ArrayLike | None = ...,
    cov: Literal[False] = ...,
) -> Array: ...
@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = ...,
    full: bool = ...,
    w: ArrayLike | None = ...,
    cov: bool | str = ...,
) -> Array | tuple[Array, ...]: ...


@one_program(static=("deg", "full", "cov"))
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Array | tuple[Array, ...]:
    """Fits a polynomial to points by least squares.

    Shapes:     x: T[m], y: T[m] or T[m, k] -> T[deg + 1] or T[deg + 1, k].
    Dtypes:     inexact, promoted; integers become floats.
    Source:     mirrors jax.numpy.polyfit (0.10).

    Args:
        x: where the points are.
        y: the values there.
        deg: the highest power.
        rcond: singular values less than this times the largest count as zero; None: the machine
            precision times m.
        full: whether the squared residuals, the rank, the singular values and rcond are returned
            too.
        w: a weight for each point, T[m].
        cov: whether the covariance of the coefficients is returned too, scaled by the residuals, or
            as it is for "unscaled".

    Raises:
        TypeError: the shapes do not fit.
        ValueError: `deg` is negative, or the covariance cannot be scaled: there are too few points.

    Example:
        >>> x = jnp.array([0.0, 1.0, 2.0])
        >>> jnp.polyfit(x, 4 * x + 2, 1).round()
        Array([4., 2.], dtype=float32)
    """
    x, y = operands.inexact_together("polyfit", x, y)
    _check_points(x, y, deg)
    if rcond is None:
        rcond = x.size * float(dtypes.finfo(x.dtype).eps)
    left, right = vander(x, deg + 1), y
    if w is not None:
        weights = _weights(w, x)
        left = left * weights[:, None]
        right = right * (weights if y.ndim == 1 else weights[:, None])
    scales = sqrt(sum_of(left * left, 0))
    scaled = left / scales
    c, residuals, rank, s = linalg.lstsq(scaled, right, rcond)
    c = (c.T / scales).T
    if full:
        return c, residuals, rank, s, asarray(rcond)
    if not cov:
        return c
    if cov != "unscaled" and x.size <= deg + 1:
        error(
            ValueError,
            "numpy.polyfit",
            "there are too few points to scale the covariance by the residuals.",
            got={"x": aval_of(x), "deg": deg},
            fix="cov='unscaled'",
        )
    covariance = linalg.inv(scaled.T @ scaled) / outer(scales, scales)
    if cov == "unscaled":
        return c, covariance if y.ndim == 1 else covariance[:, :, None]
    factor = residuals / (x.size - deg - 1)
    return c, covariance * factor if y.ndim == 1 else covariance[:, :, None] * factor


def _check_points(x: Any, y: Any, deg: Any) -> None:
    """Refuses points, or a degree, to which no polynomial can be fitted."""
    check_that(deg >= 0, "polyfit", "deg is negative.", deg=deg, expected="0 or more")
    if x.ndim != 1 or y.ndim not in (1, 2) or x.size == 0 or x.size != y.shape[0]:
        error(
            TypeError,
            "numpy.polyfit",
            "x and y are no points.",
            got={"x": aval_of(x), "y": aval_of(y)},
            expected="x: T[m] and y: T[m] or T[m, k], with m at least 1",
        )


def _weights(w: Any, x: Any) -> Any:
    w = operands.inexact("polyfit", w)
    if w.shape != x.shape:
        error(
            TypeError,
            "numpy.polyfit",
            "w does not hold a weight for each point.",
            got={"w": aval_of(w), "x": aval_of(x)},
            expected="vectors of one length",
        )
    return w
