"""Reductions: sums, products, extremes, truth, moments.

All take `axis` (an int, several, or None for all) and `keepdims`.  Names of mapped axes may stand
among the dimensions, except for `argmax` and `argmin`: what the dimensions leave is combined by a
collective.  Sums of 8- and 16-bit integers are of the default integer; those of 16-bit floats
are computed in float32.  Results are never weakly typed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.lax import arguments, binary, collectives, reduction, unary
from minijax.lax.convert import convert_to_type
from minijax.lax.shape import reshape
from minijax.numpy.arithmetic import check_not_complex, is_kind
from minijax.numpy.one_program import one_program
from minijax.numpy.promotion import (
    broadcast_shapes,
    broadcast_to,
    check_array,
    check_out,
    pick,
    promote,
    repeated,
)
from minijax.runtime.annotations import ArrayLike, DTypeLike, NamedAxis
from minijax.runtime.array import Array

_HALF = (dtypes.float16, dtypes.bfloat16)


def axes_of(name: str, x: Any, axis: Any, room: str = "numpy") -> tuple[int, ...]:
    """The axes that `axis` names, ascending: an int, several, or None for all.

    Raises:
        ValueError: an axis is out of range, or named twice.
        TypeError: an axis is no integer.
    """
    ndim = aval_of(x).ndim
    if axis is None:
        return tuple(range(ndim))
    if type(axis) is int and -ndim <= axis < ndim:
        return (axis % ndim,)
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    return tuple(sorted(arguments.canonicalize_axes(given, ndim, f"{room}.{name}")))


class Over(NamedTuple):
    """What a reduction combines.

    Attributes:
        dims: dimensions of the array, ascending.
        names: mapped axes.
    """

    dims: tuple[int, ...]
    names: tuple[str, ...]

    def combined(self, x: Any, reduction: Callable[..., Any]) -> Any:
        """`x` reduced over the dimensions, then over the mapped axes."""
        x = reduction(x, self.dims) if self.dims else x
        if not self.names:
            return x
        if reduction not in _COLLECTIVES:  # a product
            return reduction(collectives.all_gather_invariant(x, self.names), (0,))
        return getattr(collectives, _COLLECTIVES[reduction])(x, self.names)

    @property
    def axis(self) -> tuple[int | str, ...]:
        """What a function of this module takes as `axis`."""
        return (*self.dims, *self.names)

    def length(self, shape: Sequence[int]) -> int:
        """How many elements of arrays of this shape become one."""
        count = math.prod(shape[d] for d in self.dims)
        return count * collectives.axis_size(self.names) if self.names else count


_COLLECTIVES = {
    reduction.reduce_sum: "psum",
    reduction.reduce_max: "pmax",
    reduction.reduce_min: "pmin",
    reduction.reduce_or: "pmax",
    reduction.reduce_and: "pmin",
}


def over(name: str, x: Any, axis: Any, room: str = "numpy") -> Over:
    """What `axis` stands for, which may name mapped axes.

    Raises:
        ValueError: an axis is out of range, or named twice.
        TypeError: an axis is neither integer nor name.
    """
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    names = tuple(a for a in given if isinstance(a, str))
    if not names:
        return Over(axes_of(name, x, axis, room), names)
    dims = [a for a in given if not isinstance(a, str)]
    return Over(axes_of(name, x, dims, room), names)


def with_kept_axes(x: Any, axes: tuple[int, ...], keepdims: bool) -> Array:
    """A reduced array, with dimensions of size 1 in place of the reduced ones if wanted."""
    if not keepdims or not axes:
        return x
    sizes = list(aval_of(x).shape)
    for axis in axes:
        sizes.insert(axis, 1)
    kept = tuple(d for d in range(len(sizes)) if d not in axes)
    return repeated(x, tuple(sizes), kept)


def _summed(name: str, x: Any, axes: Over, keepdims: bool, where: Any) -> Any:
    """The sum of inexact numbers in their own dtype."""
    if where is not None:
        x = pick(_mask(name, where), x, 0)
    total = axes.combined(x, reduction.reduce_sum)
    return with_kept_axes(total, axes.dims, keepdims)


def widened_integer(dtype: Any) -> Any:
    """The dtype that sums of `dtype` have: integers narrower than the default are widened."""
    if dtype == dtypes.bool_:
        return dtypes.default_int_dtype()
    if dtypes.issubdtype(dtype, np.unsignedinteger):
        default = dtypes.default_uint_dtype()
    elif dtypes.issubdtype(dtype, np.integer):
        default = dtypes.default_int_dtype()
    else:
        return dtype
    return default if dtypes.bit_width(dtype) < dtypes.bit_width(default) else dtype


def _accumulated(
    name: str,
    a: Any,
    axis: Any,
    dtype: Any,
    out: Any,
    keepdims: bool,
    initial: Any,
    where: Any,
    promote_integers: bool,
    *,
    identity: int,
    reduction: Callable[..., Any],
    combine: Callable[..., Any],
) -> Any:
    """A sum or a product."""
    check_out(name, out)
    a = check_array(name, a, "a")
    axes = over(name, a, axis)
    if dtype is not None:
        result = dtypes.canonicalize_user_dtype(dtype, f"numpy.{name}")
    else:
        result = aval_of(a).dtype
        result = widened_integer(result) if promote_integers else dtypes.to_numeric_dtype(result)
    computed = dtypes.float32 if result in _HALF else result
    x = convert_to_type(a, computed, weak_type=False)
    if where is not None:
        x = pick(_mask(name, where), x, identity)
    if computed == dtypes.bool_:
        # Sums of booleans in their own dtype say whether one holds; products, whether all do.
        reduction, combine = _OF_BOOLEANS[identity]
    x = axes.combined(x, reduction)
    if initial is not None:
        x = combine(_initial(name, initial, computed), x)
    return with_kept_axes(convert_to_type(x, result, weak_type=False), axes.dims, keepdims)


_OF_BOOLEANS: dict[int, tuple[Callable[..., Any], Callable[..., Any]]] = {
    0: (reduction.reduce_or, binary.bitwise_or),
    1: (reduction.reduce_and, binary.bitwise_and),
}


def _mask(name: str, where: Any) -> Any:
    return _is_nonzero(name, check_array(name, where, "where"))


def _initial(name: str, initial: Any, dtype: Any) -> Any:
    initial = check_array(name, initial, "initial")
    if aval_of(initial).ndim:
        error(
            ValueError,
            f"numpy.{name}",
            "the initial value must be a scalar.",
            got=str(aval_of(initial)),
        )
    return convert_to_type(initial, dtype, weak_type=False)


_ACCUMULATION = ("axis", "dtype", "out", "keepdims", "promote_integers")


@one_program(static=_ACCUMULATION)
def sum(
    a: ArrayLike,
    axis: NamedAxis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """The sum over `axis`.

    Args:
        a: the array.
        axis: an axis, several, or None for all; names of mapped axes are allowed among them.
        dtype: the dtype to sum in.
        out: must be None.
        keepdims: whether reduced dimensions stay, with size 1.
        initial: a number to add.
        where: which elements count.
        promote_integers: whether narrow integers are widened to the default integer.

    Shapes:     a: T[s] -> T[s without axis].
    Dtypes:     all; booleans are counted.
    Source:     mirrors jax.numpy.sum.

    Raises:
        ValueError: an axis is out of range or named twice, or `initial` is no scalar.
        NotImplementedError: `out` is given.

    Example:
        >>> jnp.sum(jnp.array([[1, 2], [3, 4]]), axis=0)
        Array([4, 6], dtype=int32)
        >>> jnp.sum(jnp.array([1.0, jnp.nan]), where=jnp.array([True, False]))
        Array(1., dtype=float32)
    """
    return _accumulated(
        "sum", a, axis, dtype, out, keepdims, initial, where, promote_integers,
        identity=0, reduction=reduction.reduce_sum, combine=binary.add,
    )  # fmt: skip


@one_program(static=_ACCUMULATION)
def prod(
    a: ArrayLike,
    axis: NamedAxis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """The product over `axis`; arguments are those of `sum`.

    Shapes:     a: T[s] -> T[s without axis].
    Dtypes:     all; narrow integers and booleans are widened.
    Source:     mirrors jax.numpy.prod.

    Raises:
        ValueError: an axis is out of range or named twice, or `initial` is no scalar.
        NotImplementedError: `out` is given.

    Example:
        >>> jnp.prod(jnp.array([[1, 2], [3, 4]]), axis=0)
        Array([3, 8], dtype=int32)
    """
    return _accumulated(
        "prod", a, axis, dtype, out, keepdims, initial, where, promote_integers,
        identity=1, reduction=reduction.reduce_prod, combine=binary.mul,
    )  # fmt: skip


def _extreme(
    name: str,
    a: Any,
    axis: Any,
    out: Any,
    keepdims: bool,
    initial: Any,
    where: Any,
    *,
    identity: Callable[[Any], Any],
    reduction: Callable[..., Any],
    combine: Callable[..., Any],
) -> Any:
    check_out(name, out)
    a = check_array(name, a, "a")
    aval = aval_of(a)
    axes = over(name, a, axis)
    if initial is None and where is not None:
        error(
            ValueError,
            f"numpy.{name}",
            "with `where`, an initial value is needed in case nothing is selected.",
            fix="initial=...",
        )
    if initial is None and 0 in [aval.shape[axis] for axis in axes.dims]:
        error(
            ValueError,
            f"numpy.{name}",
            "there is no extreme among no elements.",
            got={"a": aval},
            fix="initial=...",
        )
    x = convert_to_type(a, aval.dtype, weak_type=False)
    if where is not None:
        x = pick(_mask(name, where), x, identity(aval.dtype))
    x = axes.combined(x, reduction)
    if initial is not None:
        x = combine(_initial(name, initial, aval.dtype), x)
    return with_kept_axes(x, axes.dims, keepdims)


@one_program(static=("axis", "out", "keepdims"))
def max(
    a: ArrayLike,
    axis: NamedAxis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The largest element over `axis`; NaN where there is one.

    Shapes:     a: T[s] -> T[s without axis].
    Dtypes:     all; complex numbers compare real parts, then imaginary ones.
    Source:     mirrors jax.numpy.max.

    Raises:
        ValueError: there are no elements, or `where` is given, and no `initial`; or an axis is
            out of range or named twice.
        NotImplementedError: `out` is given.

    Example:
        >>> jnp.max(jnp.array([[1, 5], [7, 2]]), axis=1)
        Array([5, 7], dtype=int32)
        >>> jnp.max(jnp.array([]), initial=0.0)
        Array(0., dtype=float32)
    """
    return _extreme(
        "max", a, axis, out, keepdims, initial, where,
        identity=reduction.lowest, reduction=reduction.reduce_max, combine=binary.max,
    )  # fmt: skip


@one_program(static=("axis", "out", "keepdims"))
def min(
    a: ArrayLike,
    axis: NamedAxis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The smallest element over `axis`; NaN where there is one.

    Shapes:     a: T[s] -> T[s without axis].
    Dtypes:     all; complex numbers compare real parts, then imaginary ones.
    Source:     mirrors jax.numpy.min.

    Raises:
        ValueError: there are no elements, or `where` is given, and no `initial`; or an axis is
            out of range or named twice.
        NotImplementedError: `out` is given.

    Example:
        >>> jnp.min(jnp.array([[1, 5], [7, 2]]), axis=0)
        Array([1, 2], dtype=int32)
    """
    return _extreme(
        "min", a, axis, out, keepdims, initial, where,
        identity=reduction.highest, reduction=reduction.reduce_min, combine=binary.min,
    )  # fmt: skip


amax = max
amin = min


def _is_nonzero(name: str, a: Any) -> Any:
    aval = aval_of(a)
    if aval.dtype == dtypes.bool_:
        return a
    if aval.is_extended:
        error(TypeError, f"numpy.{name}", "random keys are neither zero nor not.", got={"a": aval})
    return binary.ne(a, np.zeros((), aval.dtype)[()])


def _truth(
    name: str,
    a: Any,
    axis: Any,
    out: Any,
    keepdims: bool,
    where: Any,
    identity: bool,
    reduction: Callable[..., Any],
) -> Any:
    check_out(name, out)
    a = check_array(name, a, "a")
    axes = over(name, a, axis)
    x = _is_nonzero(name, a)
    if where is not None:
        x = pick(_mask(name, where), x, np.bool_(identity))
    return with_kept_axes(axes.combined(x, reduction), axes.dims, keepdims)


@one_program(static=("axis", "out", "keepdims"))
def all(
    a: ArrayLike,
    axis: NamedAxis = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Whether all elements over `axis` differ from zero.

    Shapes:     a: T[s] -> bool[s without axis].
    Source:     mirrors jax.numpy.all.

    Raises:
        ValueError: an axis is out of range or named twice.
        NotImplementedError: `out` is given.

    Example:
        >>> jnp.all(jnp.array([[1, 0], [2, 3]]), axis=1)
        Array([False,  True], dtype=bool)
    """
    return _truth("all", a, axis, out, keepdims, where, True, reduction.reduce_and)


@one_program(static=("axis", "out", "keepdims"))
def any(
    a: ArrayLike,
    axis: NamedAxis = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Whether some element over `axis` differs from zero.

    Shapes:     a: T[s] -> bool[s without axis].
    Source:     mirrors jax.numpy.any.

    Raises:
        ValueError: an axis is out of range or named twice.
        NotImplementedError: `out` is given.

    Example:
        >>> jnp.any(jnp.array([[0, 0], [0, 3]]), axis=1)
        Array([False,  True], dtype=bool)
    """
    return _truth("any", a, axis, out, keepdims, where, False, reduction.reduce_or)


@one_program(static=("axis", "out", "keepdims"))
def ptp(a: ArrayLike, axis: NamedAxis = None, out: None = None, keepdims: bool = False) -> Array:
    """The largest element less the smallest, over `axis`.

    Shapes:     a: T[s] -> T[s without axis].
    Dtypes:     numeric.
    Source:     mirrors jax.numpy.ptp.

    Raises:
        ValueError: there are no elements, or an axis is out of range or named twice.
        NotImplementedError: `out` is given.

    Example:
        >>> jnp.ptp(jnp.array([[3, 9], [5, 5]]), axis=1)
        Array([6, 0], dtype=int32)
    """
    check_out("ptp", out)
    return binary.sub(max(a, axis, keepdims=keepdims), min(a, axis, keepdims=keepdims))


@one_program(static=("axis", "keepdims"))
def count_nonzero(a: ArrayLike, axis: NamedAxis = None, keepdims: bool = False) -> Array:
    """How many elements over `axis` differ from zero.

    Shapes:     a: T[s] -> int[s without axis].
    Source:     mirrors jax.numpy.count_nonzero.

    Raises:
        ValueError: an axis is out of range or named twice.

    Example:
        >>> jnp.count_nonzero(jnp.array([[1, 0], [2, 3]]), axis=0)
        Array([2, 1], dtype=int32)
    """
    a = check_array("count_nonzero", a, "a")
    return sum(_is_nonzero("count_nonzero", a), axis, keepdims=keepdims)


def _count(name: str, x: Any, axes: Over, where: Any, keepdims: bool) -> Any:
    """How many elements are reduced into one: a Python int, or an array under a mask."""
    shape = aval_of(x).shape
    most = axes.length(shape)
    if where is None:
        return most
    where = broadcast_to(_mask(name, where), broadcast_shapes(name, shape, aval_of(where).shape))
    # So far floats count exactly, and they are summed faster.
    dtype = dtypes.float32 if most <= 2**24 else None
    return sum(where, axes.axis, dtype, keepdims=keepdims)


@one_program(static=("axis", "dtype", "out", "keepdims"))
def mean(
    a: ArrayLike,
    axis: NamedAxis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """The arithmetic mean over `axis`; NaN of no elements.

    Shapes:     a: T[s] -> T[s without axis].
    Dtypes:     inexact; integers and booleans become floats.
    Source:     mirrors jax.numpy.mean.

    Raises:
        ValueError: an axis is out of range or named twice.
        NotImplementedError: `out` is given.

    Example:
        >>> jnp.mean(jnp.array([[1, 2], [3, 4]]), axis=0)
        Array([2., 3.], dtype=float32)
    """
    check_out("mean", out)
    a = check_array("mean", a, "a")
    axes = over("mean", a, axis)
    if dtype is None:
        result = dtypes.to_inexact_dtype(aval_of(a).dtype)
    else:
        result = dtypes.canonicalize_user_dtype(dtype, "numpy.mean")
        a = convert_to_type(a, result, weak_type=False)
    computed = _moment_dtype(result)
    x = convert_to_type(a, computed, weak_type=False)
    total = _summed("mean", x, axes, keepdims, where)
    mean = _divided(total, _count("mean", a, axes, where, keepdims))
    return convert_to_type(mean, result, weak_type=False)


def _moment_dtype(result: Any) -> Any:
    """The dtype in which a mean or variance is computed."""
    computed = dtypes.to_inexact_dtype(result)
    return dtypes.float32 if computed in _HALF else computed


def _divided(total: Any, count: Any) -> Any:
    if not isinstance(count, int):
        count = convert_to_type(count, dtypes.real_dtype_of(aval_of(total).dtype), weak_type=False)
        total, count = promote("mean", total, count)
        return binary.div(total, count)
    return binary.div(total, float(count))


@one_program(static=("axis", "dtype", "out", "ddof", "keepdims", "correction"))
def var(
    a: ArrayLike,
    axis: NamedAxis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: float | None = None,
) -> Array:
    """The variance over `axis`: the mean of the squared distances to the mean.

    Args:
        a: the array.
        axis: an axis, several, or None for all; names of mapped axes are allowed among them.
        dtype: the dtype of the result.
        out: must be None.
        ddof: what is taken off the number of elements before dividing by it.
        keepdims: whether reduced dimensions stay, with size 1.
        where: which elements count.
        mean: the mean, with kept dimensions, where it is known.
        correction: another name for `ddof`.

    Shapes:     a: T[s] -> float[s without axis].
    Dtypes:     inexact; integers and booleans become floats; real for complex numbers.
    Source:     mirrors jax.numpy.var.

    Raises:
        ValueError: `ddof` and `correction` are both given, a real dtype is asked of complex
            numbers, or an axis is out of range or named twice.
        NotImplementedError: `out` is given.

    Example:
        >>> jnp.var(jnp.array([1, 3])), jnp.var(jnp.array([1, 3]), ddof=1)
        (Array(1., dtype=float32), Array(2., dtype=float32))
    """
    check_out("var", out)
    return _variance("var", a, axis, dtype, ddof, keepdims, where, mean, correction)


def _variance(
    name: str,
    a: Any,
    axis: Any,
    dtype: Any,
    ddof: Any,
    keepdims: bool,
    where: Any,
    known_mean: Any,
    correction: Any,
) -> Any:
    a = check_array(name, a, "a")
    axes = over(name, a, axis)
    computed, result = _variance_dtypes(name, a, dtype)
    if correction is not None:
        if ddof:
            error(
                ValueError, f"numpy.{name}", "`ddof` and `correction` are two names for one thing."
            )
        ddof = correction
    a = convert_to_type(a, computed, weak_type=False)
    if known_mean is None:
        total = _summed(name, a, axes, True, where)
        known_mean = _divided(total, _count(name, a, axes, where, True))
    distance = binary.sub_p.bind(*promote(name, a, known_mean))
    if is_kind(distance, np.complexfloating):
        squares = binary.add(unary.square(unary.real(distance)), unary.square(unary.imag(distance)))
    else:
        squares = unary.square(distance)
    total = _summed(name, squares, axes, keepdims, where)
    count = _count(name, a, axes, where, keepdims)
    if isinstance(count, int):
        count = np.asarray(count, aval_of(total).dtype)[()]
    count = convert_to_type(count, aval_of(total).dtype, weak_type=False)
    degrees = binary.sub(count, ddof)
    variance = binary.div_p.bind(*promote(name, total, degrees))
    variance = pick(binary.gt(degrees, 0), variance, np.nan)
    return convert_to_type(variance, result, weak_type=False)


def _variance_dtypes(name: str, a: Any, dtype: Any) -> tuple[Any, Any]:
    """The dtypes to compute in, and of the result."""
    given = aval_of(a).dtype
    if dtype is None:
        computed = dtypes.to_inexact_dtype(given)
        return _moment_dtype(computed), dtypes.real_dtype_of(computed)
    result = dtypes.canonicalize_user_dtype(dtype, f"numpy.{name}")
    is_complex = dtypes.issubdtype(given, np.complexfloating)
    if is_complex and not dtypes.issubdtype(result, np.complexfloating):
        error(
            ValueError,
            f"numpy.{name}",
            "of complex numbers, no variance is computed in a real dtype.",
            got={"a": aval_of(a), "dtype": result},
            fix="leave dtype= away: the variance is real anyway",
        )
    wide, _ = dtypes.lattice_result_type(given, result)
    return _moment_dtype(wide), dtypes.to_inexact_dtype(result)


@one_program(static=("axis", "dtype", "out", "ddof", "keepdims", "correction"))
def std(
    a: ArrayLike,
    axis: NamedAxis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: float | None = None,
) -> Array:
    """The standard deviation over `axis`: the root of the variance; arguments as those of `var`.

    Shapes:     a: T[s] -> float[s without axis].
    Dtypes:     inexact; integers and booleans become floats; real for complex numbers.
    Source:     mirrors jax.numpy.std.

    Raises:
        ValueError: as `var`.
        NotImplementedError: `out` is given.

    Example:
        >>> jnp.std(jnp.array([[1.0, 3.0], [5.0, 5.0]]), axis=1)
        Array([1., 0.], dtype=float32)
    """
    check_out("std", out)
    return unary.sqrt(_variance("std", a, axis, dtype, ddof, keepdims, where, mean, correction))


def _arg_extreme(
    name: str, a: Any, axis: Any, out: Any, keepdims: Any, reduction: Callable[..., Any]
) -> Any:
    check_out(name, out)
    a = check_array(name, a, "a")
    ndim = aval_of(a).ndim
    if axis is None:
        x, axes = reshape(a, (aval_of(a).size,)), tuple(range(ndim))
        place = 0
    else:
        place = arguments.canonicalize_axis(axis, ndim, f"numpy.{name}")
        x, axes = a, (place,)
    if aval_of(x).shape[place] == 0:
        error(
            ValueError, f"numpy.{name}", "there is nothing to choose from.", got={"a": aval_of(a)}
        )
    check_not_complex(name, x)
    found = reduction(x, place, dtypes.default_int_dtype())
    return with_kept_axes(found, axes, bool(keepdims))


@one_program(static=("axis", "out", "keepdims"))
def argmax(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """The index of the first maximum, or of the first NaN, along `axis`.

    Shapes:     a: T[s] -> int[s without axis]; without an axis, an index of the flat array.
    Dtypes:     real or bool.
    Source:     mirrors jax.numpy.argmax.

    Raises:
        ValueError: there are no elements, or the axis is out of range.
        TypeError: `a` is complex.
        NotImplementedError: `out` is given.

    Example:
        >>> jnp.argmax(jnp.array([[1, 5, 5], [7, 2, 0]]), axis=1)
        Array([1, 0], dtype=int32)
    """
    return _arg_extreme("argmax", a, axis, out, keepdims, reduction.argmax)


@one_program(static=("axis", "out", "keepdims"))
def argmin(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """The index of the first minimum, or of the first NaN, along `axis`.

    Shapes:     a: T[s] -> int[s without axis]; without an axis, an index of the flat array.
    Dtypes:     real or bool.
    Source:     mirrors jax.numpy.argmin.

    Raises:
        ValueError: there are no elements, or the axis is out of range.
        TypeError: `a` is complex.
        NotImplementedError: `out` is given.

    Example:
        >>> jnp.argmin(jnp.array([[1, 5, 5], [7, 2, 0]]))  # of all elements in a row
        Array(5, dtype=int32)
    """
    return _arg_extreme("argmin", a, axis, out, keepdims, reduction.argmin)
