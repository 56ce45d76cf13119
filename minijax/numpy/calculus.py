"""Polynomials, differences, gradients, integrals, interpolation and convolution.

Polynomials are given by their coefficients, those of the highest powers first.
"""

from __future__ import annotations

import math
import operator
from typing import Any, Literal, overload

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.lax.convolution import conv_general_dilated
from minijax.lax.creation import convert_to_type
from minijax.lax.dots import PrecisionLike
from minijax.numpy import elementary, linalg, ordering, shaping
from minijax.numpy.contraction import outer
from minijax.numpy.creation import asarray, full_like, zeros
from minijax.numpy.elementary import check_not_complex, sqrt
from minijax.numpy.joining import concatenate, stack
from minijax.numpy.linalg import factorizations
from minijax.numpy.logic import not_equal
from minijax.numpy.matrices import eye, vander
from minijax.numpy.promotion import (
    broadcast_shapes,
    check_array,
    check_choice,
    check_that,
    inexact,
    one_program,
    promote_dtypes,
)
from minijax.numpy.ranges import arange
from minijax.numpy.reductions import sum as sum_of
from minijax.numpy.selection import nonzero, where
from minijax.numpy.shaping import array_argument, atleast_1d, broadcast_to, flip, moveaxis, roll
from minijax.runtime.annotations import ArrayLike, Axis, DTypeLike
from minijax.runtime.array import Array


@one_program(static=("n", "axis"))
def diff(
    a: ArrayLike,
    n: int = 1,
    axis: int = -1,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
) -> Array:
    """Computes the n-th discrete difference along `axis`.

    Args:
        a: the array.
        n: how often.
        axis: the axis.
        prepend: what is put before the array first.
        append: what is put after the array first.

    Shapes:     a: T[.., k, ..] -> T[.., k - n, ..].
    Dtypes:     numeric; of booleans, whether neighbours differ.

    Raises:
        ValueError: `a` is a scalar, or n negative.

    Example:
        >>> jnp.diff(jnp.array([1, 4, 9, 16]))
        Array([3, 5, 7], dtype=int32)
        >>> jnp.diff(jnp.array([1, 4, 9, 16]), n=2)
        Array([2, 2], dtype=int32)
    """
    a = array_argument("diff", a)
    problem = "needs a dimension to take differences along, and a count of at least 0."
    check_that(a.ndim != 0 and n >= 0, "diff", problem, a=a, n=n)
    if not n:
        return a
    a = moveaxis(a, axis, -1)
    if prepend is not None:
        a = concatenate([_end(prepend, a, axis), a], -1)
    if append is not None:
        a = concatenate([a, _end(append, a, axis)], -1)
    is_bool = a.dtype == dtypes.bool_
    for _ in range(n):
        after, before = a[..., 1:], a[..., :-1]
        a = not_equal(after, before) if is_bool else after - before
    return moveaxis(a, -1, axis)


def _end(end: ArrayLike | None, a: Array, axis: int) -> Any:
    """What is put before or after an array along its last axis, which was `axis`."""
    end = array_argument("diff", end)
    return broadcast_to(end, (*a.shape[:-1], 1)) if end.ndim == 0 else moveaxis(end, axis, -1)


@one_program()
def ediff1d(
    ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None
) -> Array:
    """Computes the differences between consecutive elements of the flattened array.

    Shapes:     ary: T[s] -> T[size - 1 + sizes of the ends].

    Example:
        >>> jnp.ediff1d(jnp.array([[1, 4], [9, 16]]), to_begin=0)
        Array([0, 3, 5, 7], dtype=int32)
    """
    flat = shaping.ravel(array_argument("ediff1d", ary))
    parts = [flat[1:] - flat[:-1]]
    if to_begin is not None:
        parts.insert(0, shaping.ravel(array_argument("ediff1d", to_begin)).astype(flat.dtype))
    if to_end is not None:
        parts.append(shaping.ravel(array_argument("ediff1d", to_end)).astype(flat.dtype))
    return concatenate(parts)


def gradient(
    f: ArrayLike, *varargs: ArrayLike, axis: Axis = None, edge_order: int | None = None
) -> Array | list[Array]:
    """Computes the gradient of sampled values by central differences, one-sided at the ends.

    Args:
        f: the values.
        varargs: for each axis the distance of neighbours, or their coordinates; one for all, or 1.
        axis: an axis, several, or None for all.
        edge_order: must be None or 1.

    Shapes:     f: T[s] -> T[s]; a list of these if there are several axes.
    Dtypes:     inexact; integers become floats.

    Raises:
        NotImplementedError: `edge_order` is given, and not 1.
        ValueError: a dimension has fewer than two elements.
        TypeError: the number of distances does not fit.

    Example:
        >>> jnp.gradient(jnp.array([0.0, 1.0, 4.0, 9.0]))
        Array([1., 2., 4., 5.], dtype=float32)
    """
    fits = edge_order in {None, 1}
    problem = "ends are of first order."
    check_that(
        fits, "gradient", problem, error=NotImplementedError, got=f"edge_order: {edge_order}"
    )
    f = array_argument("gradient", f)
    axes = (
        tuple(range(f.ndim)) if axis is None else shaping.canonical_axes("gradient", axis, f.ndim)
    )
    check_that(
        all(f.shape[d] >= 2 for d in axes), "gradient", "two elements at least are needed.", f=f
    )
    spacings = varargs or (1.0,)
    if len(spacings) == 1:
        spacings = spacings * len(axes)
    fits = len(spacings) == len(axes)
    problem = "the number of distances does not fit the axes."
    check_that(fits, "gradient", problem, error=TypeError, distances=len(varargs), axes=axes)
    slopes = [_slope(f, h, d) for h, d in zip(spacings, axes, strict=True)]
    return slopes[0] if len(axes) == 1 else slopes


@one_program(static=("axis",))
def _slope(f: Any, h: Any, axis: int) -> Array:
    f = inexact("gradient", f)
    f, h = (asarray(x) for x in promote_dtypes("gradient", f, h))
    f = moveaxis(f, axis, -1)
    after, at, before = f[..., 2:], f[..., 1:-1], f[..., :-2]
    if h.ndim == 0:
        inner = (after - before) / (2 * h)
        first, last = (f[..., 1:2] - f[..., :1]) / h, (f[..., -1:] - f[..., -2:-1]) / h
    else:
        steps = h[1:] - h[:-1]
        ahead, back = steps[1:], steps[:-1]
        weighted = back * back * after + (ahead * ahead - back * back) * at - ahead * ahead * before
        inner = weighted / (back * ahead * (back + ahead))
        first = (f[..., 1:2] - f[..., :1]) / steps[0]
        last = (f[..., -1:] - f[..., -2:-1]) / steps[-1]
    return moveaxis(concatenate([first, inner, last], -1), -1, axis)


@one_program(static=("axis",))
def trapezoid(
    y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1
) -> Array:
    """Integrates sampled values along `axis` with the trapezoidal rule.

    Args:
        y: the values.
        x: their coordinates; evenly spaced by default.
        dx: the distance of neighbours where there are no coordinates.
        axis: the axis.

    Shapes:     y: T[.., n, ..] -> T[.., ..].
    Dtypes:     inexact; integers become floats.

    Example:
        >>> jnp.trapezoid(jnp.array([0.0, 1.0, 4.0]), dx=0.5)
        Array(1.5, dtype=float32)
    """
    if x is None:
        y, dx = promote_dtypes("trapezoid", inexact("trapezoid", y), dx)
        y = moveaxis(y, axis, -1)
    else:
        y, x = (inexact("trapezoid", asarray(v)) for v in promote_dtypes("trapezoid", y, x))
        y = moveaxis(y, axis, -1)
        dx = diff(x if x.ndim == 1 else moveaxis(x, axis, -1), axis=-1)
    return 0.5 * (dx * (y[..., 1:] + y[..., :-1])).sum(-1)


@one_program(static=("axis",))
def unwrap(
    p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1, period: ArrayLike = 2 * math.pi
) -> Array:
    """Unwraps values that jump by a period, such as phase angles.

    Args:
        p: the numbers.
        discont: how large a difference of neighbours counts as a jump; half a period by default.
        axis: the axis.
        period: the period.

    Shapes:     p: T[s] -> T[s].
    Dtypes:     real.

    Raises:
        ValueError: `p` is complex.

    Example:
        >>> jnp.unwrap(jnp.array([350, 355, 2, 8]), period=360)
        Array([350, 355, 362, 368], dtype=int32)
    """
    p = array_argument("unwrap", p)
    check_not_complex("unwrap", p, ValueError)
    joined, _ = dtypes.lattice_result_type(p, period)
    is_whole = dtypes.issubdtype(joined, np.integer)
    p = moveaxis(p.astype(joined), axis, -1)
    length: Any = period
    half = length // 2 if is_whole else length / 2
    step = p[..., 1:] - p[..., :-1]
    # Differences in [-half, half); exactly +half stays where the step was upwards.
    folded = (step + half) % period - half
    on_boundary = (folded == -half) & (step > 0)
    if not is_whole or (isinstance(period, int) and period % 2 == 0):
        folded = where(on_boundary, half, folded)
    limit = half if discont is None else discont
    correction = where(abs(step) < limit, 0, folded - step)
    rest = p[..., 1:] + correction.cumsum(-1).astype(p.dtype)
    return moveaxis(concatenate([p[..., :1], rest], -1), -1, axis)


_EXTRAPOLATE = "extrapolate"


def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | None = None,
    right: ArrayLike | None = None,
    period: ArrayLike | None = None,
) -> Array:
    """Interpolates linearly between the points (xp, fp), and evaluates the result at `x`.

    Args:
        x: where to evaluate.
        xp: the points' coordinates, ascending.
        fp: the values there.
        left: the value before the first point; that of the first point by default, or
            "extrapolate".
        right: the value after the last point; that of the last point by default, or
            "extrapolate".
        period: the period of the function, if it has one.

    Shapes:     x: T[s], xp: T[n], fp: T[n] -> T[s].
    Dtypes:     inexact; integers become floats.

    Raises:
        ValueError: `xp` and `fp` do not have one dimension of one size; coordinates are complex;
            or the period is 0.

    Example:
        >>> jnp.interp(jnp.array([0.5, 1.5, 9.0]), jnp.array([0, 1, 2]), jnp.array([0, 10, 30]))
        Array([ 5., 20., 30.], dtype=float32)
    """
    fits = np.ndim(xp) == 1 and np.shape(xp) == np.shape(fp)
    check_that(fits, "interp", "xp and fp must have one dimension, of one size.", xp=xp, fp=fp)
    ends = {"left": left, "right": right}
    for key, end in ends.items():
        is_known = not isinstance(end, str) or end == _EXTRAPOLATE
        check_that(is_known, "interp", f"`{key}` is a number or 'extrapolate'.", given=end)
    beyond = tuple(key for key, end in ends.items() if end == _EXTRAPOLATE and isinstance(end, str))
    left, right = (None if key in beyond else end for key, end in ends.items())
    return _interp(x, xp, fp, left, right, period, beyond)


@one_program(static=("beyond",))
def _interp(
    x: Any, xp: Any, fp: Any, left: Any, right: Any, period: Any, beyond: tuple[str, ...]
) -> Any:
    x, xp = (asarray(inexact("interp", v)) for v in promote_dtypes("interp", x, xp))
    check_not_complex("interp", x, ValueError)
    fp = inexact("interp", fp)
    if period is not None:
        period = abs(period)
        x, xp = x % period, xp % period
        order = ordering.argsort(xp)
        xp, fp = xp[order], fp[order]
        xp = concatenate([xp[-1:] - period, xp, xp[:1] + period])
        fp = concatenate([fp[-1:], fp, fp[:1]])
    above = ordering.searchsorted(xp, x, side="right").clip(1, xp.size - 1)
    x0, x1, f0, f1 = xp[above - 1], xp[above], fp[above - 1], fp[above]
    width = x1 - x0
    flat = width == 0
    found = f0 + where(flat, 0, (x - x0) / where(flat, 1, width)) * (f1 - f0)
    if period is None:
        if "left" not in beyond:
            found = where(x < xp[0], fp[0] if left is None else left, found)
        if "right" not in beyond:
            found = where(x > xp[-1], fp[-1] if right is None else right, found)
    return found


def _convolved(
    name: str,
    a: Array,
    v: Array,
    mode: str,
    precision: PrecisionLike,
    preferred_element_type: DTypeLike | None,
) -> Any:
    """Sums of products with a kernel that slides over the array, without turning it round."""
    lengths = {"full": v.size - 1, "same": v.size // 2, "valid": 0}
    check_choice(name, "mode", mode, lengths)
    before = lengths[mode]
    after = v.size - v.size // 2 - 1 if mode == "same" else before
    return conv_general_dilated(
        a[None, None, :],
        v[None, None, :],
        (1,),
        [(before, after)],
        precision=precision,
        preferred_element_type=preferred_element_type,
    )[0, 0]


def _vectors(name: str, a: ArrayLike, v: ArrayLike) -> tuple[Array, Array]:
    a, v = (array_argument(name, x) for x in promote_dtypes(name, a, v))
    fits = a.ndim == v.ndim == 1 and min(a.size, v.size) > 0
    check_that(fits, name, "two vectors are needed, neither of them empty.", a=a, v=v)
    dtype = dtypes.to_inexact_dtype(a.dtype)
    weak = a.weak_type and v.weak_type
    return convert_to_type(a, dtype, weak), convert_to_type(v, dtype, weak)


@one_program(static=("mode", "precision", "preferred_element_type"))
def convolve(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "full",
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Computes the discrete convolution of two vectors: the sums of `a[n - k] v[k]` over k.

    Shapes:     a: T[n], v: T[m] -> T[n + m - 1] for "full", T[max(n, m)] for "same",
                T[|n - m| + 1] for "valid".
    Dtypes:     inexact; integers become floats.

    Raises:
        ValueError: an argument is not a vector or is empty, or the mode is not known.

    Example:
        >>> jnp.convolve(jnp.array([1, 2, 3]), jnp.array([1, 10]))
        Array([ 1., 12., 23., 30.], dtype=float32)
        >>> jnp.convolve(jnp.array([1, 2, 3]), jnp.array([1, 10]), mode="valid")
        Array([12., 23.], dtype=float32)
    """
    a, v = _vectors("convolve", a, v)
    if a.size < v.size:
        a, v = v, a
    # "same" is centred on the longer vector, from the kernel's middle rounded down.
    return _convolved("convolve", a, flip(v), mode, precision, preferred_element_type)


@one_program(static=("mode", "precision", "preferred_element_type"))
def correlate(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "valid",
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Computes the cross-correlation of two vectors: the sums of `a[n + k] conj(v[k])` over k.

    Shapes:     a: T[n], v: T[m] -> T[n + m - 1] for "full", T[max(n, m)] for "same",
                T[|n - m| + 1] for "valid".
    Dtypes:     inexact; integers become floats.

    Raises:
        ValueError: an argument is not a vector or is empty, or the mode is not known.

    Example:
        >>> jnp.correlate(jnp.array([1, 2, 3]), jnp.array([1, 10]))
        Array([21., 32.], dtype=float32)
    """
    a, v = _vectors("correlate", a, v)
    options = (mode, precision, preferred_element_type)
    if a.size < v.size:
        turned = _convolved("correlate", v, elementary.conjugate(a), *options)
        return flip(elementary.conjugate(turned))
    return _convolved("correlate", a, elementary.conjugate(v), *options)


@one_program(static=("axisa", "axisb", "axisc", "axis"))
def cross(
    a: ArrayLike,
    b: ArrayLike,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Array:
    """Computes the cross product of vectors of 2 or 3 components.

    Args:
        a: the left vectors.
        b: the right vectors.
        axisa: where the components of `a` stand.
        axisb: where the components of `b` stand.
        axisc: where the components of the result stand.
        axis: the same for all three.

    Shapes:     a: T[s, 3], b: U[t, 3] -> V[broadcast of s and t, 3].

    Raises:
        ValueError: vectors have neither 2 nor 3 components.

    Example:
        >>> jnp.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
        Array([0, 0, 1], dtype=int32)
    """
    if axis is not None:
        axisa = axisb = axisc = operator.index(axis)
    a, b = (array_argument("cross", x) for x in promote_dtypes("cross", a, b))
    a, b = moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)
    sizes = {a.shape[-1], b.shape[-1]}
    check_that(sizes <= {2, 3}, "cross", "vectors must have 2 or 3 components.", a=a, b=b)
    third = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    if a.shape[-1] == b.shape[-1] == 2:
        return third
    a2, b2 = (x[..., 2] if x.shape[-1] == 3 else None for x in (a, b))
    first = _difference(a[..., 1], b2, a2, b[..., 1])
    second = _difference(a2, b[..., 0], a[..., 0], b2)
    return moveaxis(stack([first, second, third], -1), -1, axisc)


def _difference(x: Any, y: Any, z: Any, w: Any) -> Any:
    """`x y - z w`, where None stands for zero."""
    if x is None or y is None:
        return -(z * w)
    return x * y if z is None or w is None else x * y - z * w


def _coefficients(name: str, p: ArrayLike) -> Array:
    p = atleast_1d(asarray(check_array(name, p, "p")))
    if p.ndim != 1:
        error(ValueError, f"numpy.{name}", "coefficients are a vector.", got={"p": p.aval})
    return p


@one_program(static=("unroll",))
def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Array:
    """Evaluates a polynomial by Horner's rule.

    Shapes:     p: T[n, ..], x: U[s] -> V[s].
    Dtypes:     numeric, promoted.

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


def _of_one_length(name: str, a1: ArrayLike, a2: ArrayLike) -> tuple[Any, Any]:
    p, q = (atleast_1d(asarray(a)) for a in promote_dtypes(name, a1, a2))
    size = max(len(p), len(q))
    p, q = (concatenate([full_like(a, 0, shape=(size - len(a), *a.shape[1:])), a]) for a in (p, q))
    return p, q


@one_program()
def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Adds two polynomials.

    Shapes:     a1: T[n], a2: U[m] -> V[max(n, m)].

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
    problem = "there must be one constant for each order."
    check_that(constants.shape == (order,), "polyint", problem, m=m, k=constants)
    for i in range(order):
        p = concatenate([p / arange(p.size, 0, -1, dtype=p.dtype), constants[i : i + 1]])
    return p


@one_program()
def poly(seq_of_zeros: ArrayLike) -> Array:
    """Returns the coefficients of the monic polynomial with the given roots.

    Shapes:     seq_of_zeros: T[n], the zeros, or T[n, n], a matrix whose eigenvalues they are
                -> T[n + 1].
    Dtypes:     inexact; integers become floats; complex of a matrix.

    Raises:
        ValueError: the zeros are neither a vector nor a square matrix.

    Example:
        >>> jnp.poly(jnp.array([1.0, -1.0]))  # (x - 1)(x + 1)
        Array([ 1.,  0., -1.], dtype=float32)
    """
    roots = atleast_1d(factorizations.inexact("poly", seq_of_zeros))
    if roots.ndim == 2 and roots.shape[0] == roots.shape[1] > 0:
        roots = linalg.eigvals(roots)
    problem = "zeros are a vector, or the eigenvalues of a square matrix."
    check_that(roots.ndim == 1, "poly", problem, seq_of_zeros=roots)
    p = asarray(np.ones(1, roots.dtype))
    nothing = zeros(1, roots.dtype)
    for i in range(roots.size):
        p = concatenate([p, nothing]) - roots[i] * concatenate([nothing, p])
    return p


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """Returns the roots of a polynomial: the eigenvalues of its companion matrix.

    Shapes:     p: T[n] -> complex T[n - 1], or fewer where leading coefficients are stripped.
    Dtypes:     complex.

    Args:
        p: the coefficients, that of the highest power first.
        strip_zeros: whether zeros at the beginning of p are dropped; how many there are must be
            known then.  Else the last zeros are NaN, one for each.

    Raises:
        ValueError: p is not a vector.
        ConcretizationTypeError: p is traced, and zeros are to be stripped.

    Example:
        >>> jnp.roots(jnp.array([1.0, -3.0, 2.0])).real
        Array([2., 1.], dtype=float32)
    """
    p = atleast_1d(factorizations.inexact("roots", p))
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
    x, y = factorizations.inexact_together("polyfit", x, y)
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
    fits = cov == "unscaled" or x.size > deg + 1
    problem = "there are too few points to scale the covariance by the residuals."
    check_that(fits, "polyfit", problem, x=aval_of(x), deg=deg, fix="cov='unscaled'")
    covariance = linalg.inv(scaled.T @ scaled) / outer(scales, scales)
    if cov == "unscaled":
        return c, covariance if y.ndim == 1 else covariance[:, :, None]
    factor = residuals / (x.size - deg - 1)
    return c, covariance * factor if y.ndim == 1 else covariance[:, :, None] * factor


def _check_points(x: Array, y: Array, deg: int) -> None:
    """Refuses points, or a degree, to which no polynomial can be fitted."""
    check_that(deg >= 0, "polyfit", "deg is negative.", deg=deg, expected="0 or more")
    fits = x.ndim == 1 and y.ndim in (1, 2) and x.size != 0 and x.size == y.shape[0]
    problem = "x and y are no points."
    expected = "x: T[m] and y: T[m] or T[m, k], with m at least 1"
    check_that(
        fits, "polyfit", problem, error=TypeError, x=aval_of(x), y=aval_of(y), expected=expected
    )


def _weights(w: ArrayLike, x: Array) -> Any:
    w = factorizations.inexact("polyfit", w)
    fits = w.shape == x.shape
    problem = "w does not hold a weight for each point."
    expected = "vectors of one length"
    check_that(
        fits, "polyfit", problem, error=TypeError, w=aval_of(w), x=aval_of(x), expected=expected
    )
    return w
