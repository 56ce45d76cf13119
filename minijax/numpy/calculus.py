"""Differences, gradients, integrals, interpolation, convolutions and cross products."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.errors import error
from minijax.lax.convert import convert_to_type
from minijax.lax.convolution import conv_general_dilated
from minijax.lax.precision import PrecisionLike
from minijax.numpy import elementary, ordering, shaping
from minijax.numpy.arithmetic import check_not_complex
from minijax.numpy.creation import asarray
from minijax.numpy.joining import concatenate, stack
from minijax.numpy.logic import not_equal
from minijax.numpy.one_program import one_program
from minijax.numpy.promotion import check_array, check_choice, check_that, inexact, promote_dtypes
from minijax.numpy.selection import where
from minijax.numpy.shaping import broadcast_to, flip, moveaxis
from minijax.runtime.annotations import ArrayLike, Axis, DTypeLike
from minijax.runtime.array import Array


def _array(name: str, x: Any) -> Array:
    return asarray(check_array(name, x))


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
    Source:     mirrors jax.numpy.diff.

    Raises:
        ValueError: `a` is a scalar, or n negative.

    Example:
        >>> jnp.diff(jnp.array([1, 4, 9, 16]))
        Array([3, 5, 7], dtype=int32)
        >>> jnp.diff(jnp.array([1, 4, 9, 16]), n=2)
        Array([2, 2], dtype=int32)
    """
    a = _array("diff", a)
    if a.ndim == 0 or n < 0:
        error(
            ValueError,
            "numpy.diff",
            "needs a dimension to take differences along, and a count of at least 0.",
            got={"a": a.aval, "n": n},
        )
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


def _end(end: Any, a: Any, axis: int) -> Any:
    """What is put before or after an array along its last axis, which was `axis`."""
    end = _array("diff", end)
    return broadcast_to(end, (*a.shape[:-1], 1)) if end.ndim == 0 else moveaxis(end, axis, -1)


@one_program()
def ediff1d(
    ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None
) -> Array:
    """Computes the differences between consecutive elements of the flattened array.

    Shapes:     ary: T[s] -> T[size - 1 + sizes of the ends].
    Source:     mirrors jax.numpy.ediff1d.

    Example:
        >>> jnp.ediff1d(jnp.array([[1, 4], [9, 16]]), to_begin=0)
        Array([0, 3, 5, 7], dtype=int32)
    """
    flat = shaping.ravel(_array("ediff1d", ary))
    parts = [flat[1:] - flat[:-1]]
    if to_begin is not None:
        parts.insert(0, shaping.ravel(_array("ediff1d", to_begin)).astype(flat.dtype))
    if to_end is not None:
        parts.append(shaping.ravel(_array("ediff1d", to_end)).astype(flat.dtype))
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
    Source:     mirrors jax.numpy.gradient.

    Raises:
        NotImplementedError: `edge_order` is given, and not 1.
        ValueError: a dimension has fewer than two elements.
        TypeError: the number of distances does not fit.

    Example:
        >>> jnp.gradient(jnp.array([0.0, 1.0, 4.0, 9.0]))
        Array([1., 2., 4., 5.], dtype=float32)
    """
    if edge_order not in {None, 1}:
        error(
            NotImplementedError,
            "numpy.gradient",
            "ends are of first order.",
            got=f"edge_order: {edge_order}",
        )
    f = _array("gradient", f)
    axes = (
        tuple(range(f.ndim)) if axis is None else shaping.canonical_axes("gradient", axis, f.ndim)
    )
    check_that(
        all(f.shape[d] >= 2 for d in axes), "gradient", "two elements at least are needed.", f=f
    )
    spacings = varargs or (1.0,)
    if len(spacings) == 1:
        spacings = spacings * len(axes)
    if len(spacings) != len(axes):
        error(
            TypeError,
            "numpy.gradient",
            "the number of distances does not fit the axes.",
            got={"distances": len(varargs), "axes": axes},
        )
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
    Source:     mirrors jax.numpy.trapezoid.

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
    Source:     mirrors jax.numpy.unwrap.

    Raises:
        ValueError: `p` is complex.

    Example:
        >>> jnp.unwrap(jnp.array([350, 355, 2, 8]), period=360)
        Array([350, 355, 362, 368], dtype=int32)
    """
    p = _array("unwrap", p)
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
    Source:     mirrors jax.numpy.interp.

    Raises:
        ValueError: `xp` and `fp` do not have one dimension of one size; coordinates are complex;
            or the period is 0.

    Example:
        >>> jnp.interp(jnp.array([0.5, 1.5, 9.0]), jnp.array([0, 1, 2]), jnp.array([0, 10, 30]))
        Array([ 5., 20., 30.], dtype=float32)
    """
    if np.shape(xp) != np.shape(fp) or np.ndim(xp) != 1:
        error(
            ValueError,
            "numpy.interp",
            "xp and fp must have one dimension, of one size.",
            got={"xp": np.shape(xp), "fp": np.shape(fp)},
        )
    ends = {"left": left, "right": right}
    for key, end in ends.items():
        if isinstance(end, str) and end != _EXTRAPOLATE:
            error(
                ValueError, "numpy.interp", f"`{key}` is a number or 'extrapolate'.", got=repr(end)
            )
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


def _vectors(name: str, a: Any, v: Any) -> tuple[Array, Array]:
    a, v = (_array(name, x) for x in promote_dtypes(name, a, v))
    if a.ndim != 1 or v.ndim != 1 or a.size == 0 or v.size == 0:
        error(
            ValueError,
            f"numpy.{name}",
            "two vectors are needed, neither of them empty.",
            got={"a": a.aval, "v": v.aval},
        )
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
    Source:     mirrors jax.numpy.convolve.

    Raises:
        ValueError: an argument is no vector, or empty, or the mode is not known.

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
    Source:     mirrors jax.numpy.correlate.

    Raises:
        ValueError: an argument is no vector, or empty, or the mode is not known.

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
    Source:     mirrors jax.numpy.cross.

    Raises:
        ValueError: vectors have neither 2 nor 3 components.

    Example:
        >>> jnp.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
        Array([0, 0, 1], dtype=int32)
    """
    if axis is not None:
        axisa = axisb = axisc = operator.index(axis)
    a, b = (_array("cross", x) for x in promote_dtypes("cross", a, b))
    a, b = moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)
    if a.shape[-1] not in {2, 3} or b.shape[-1] not in {2, 3}:
        error(
            ValueError,
            "numpy.cross",
            "vectors must have 2 or 3 components.",
            got={"a": a.aval, "b": b.aval},
        )
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
