"""Reductions over axes, and cumulative sums and products.

Reductions take `axis` (an int, several, or None for all) and `keepdims`.  Names of mapped axes may
stand among the dimensions, except for `argmax` and `argmin`: what the dimensions leave is combined
by a collective.  Sums of 8- and 16-bit integers are of the default integer; those of 16-bit floats
are computed in float32.  Results are never weakly typed.

Without an axis, `cumsum` and `cumprod` take the array as if it were flat.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from minijax import lax
from minijax.core import dtypes
from minijax.core.aval import Shape, aval_of
from minijax.core.errors import error
from minijax.lax import binary, families, reduction, unary, window_reduction
from minijax.lax.creation import convert_to_type
from minijax.lax.shape import concatenate, reshape
from minijax.numpy.elementary import check_not_complex, is_kind
from minijax.numpy.promotion import (
    broadcast_shapes,
    broadcast_to,
    check_array,
    check_mask,
    check_out,
    check_that,
    one_program,
    pick,
    promote,
    repeated,
)
from minijax.runtime.annotations import ArrayLike, Axis, DTypeLike, NamedAxis
from minijax.runtime.array import Array

_HALF = (dtypes.float16, dtypes.bfloat16)


def axes_of(name: str, x: ArrayLike, axis: Axis, room: str = "numpy") -> Shape:
    """The axes that `axis` names, ascending: an int, several, or None for all.

    Raises:
        ValueError: an axis is out of range, or named twice.
        TypeError: an axis is not an integer.
    """
    ndim = aval_of(x).ndim
    if axis is None:
        return tuple(range(ndim))
    if type(axis) is int and -ndim <= axis < ndim:
        return (axis % ndim,)
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    return tuple(sorted(families.canonicalize_axes(given, ndim, f"{room}.{name}")))


class Over(NamedTuple):
    """What a reduction combines.

    Attributes:
        dims: dimensions of the array, ascending.
        names: mapped axes.
    """

    dims: tuple[int, ...]
    names: tuple[str, ...]

    def combined(self, x: Array, reduction: Callable[..., Array]) -> Array:
        """`x` reduced over the dimensions, then over the mapped axes."""
        x = reduction(x, self.dims) if self.dims else x
        if not self.names:
            return x
        if reduction not in _COLLECTIVES:  # a product
            return reduction(lax.all_gather_invariant(x, self.names), (0,))
        return getattr(lax, _COLLECTIVES[reduction])(x, self.names)

    @property
    def axis(self) -> tuple[int | str, ...]:
        """What a function of this module takes as `axis`."""
        return (*self.dims, *self.names)

    def length(self, shape: Sequence[int]) -> int:
        """How many elements of arrays of this shape become one."""
        count = math.prod(shape[d] for d in self.dims)
        return count * lax.axis_size(self.names) if self.names else count


_COLLECTIVES = {
    reduction.reduce_sum: "psum",
    reduction.reduce_max: "pmax",
    reduction.reduce_min: "pmin",
    reduction.reduce_or: "pmax",
    reduction.reduce_and: "pmin",
}


def over(name: str, x: ArrayLike, axis: NamedAxis, room: str = "numpy") -> Over:
    """What `axis` stands for, which may name mapped axes.

    Raises:
        ValueError: an axis is out of range, or named twice.
        TypeError: an axis is neither integer nor name.
    """
    given: Sequence[Any] = axis if isinstance(axis, (tuple, list)) else (axis,)
    names = tuple(a for a in given if isinstance(a, str))
    if not names:
        return Over(axes_of(name, x, cast(Axis, axis), room), names)
    return Over(axes_of(name, x, [a for a in given if not isinstance(a, str)], room), names)


def with_kept_axes(x: Array, axes: Shape, keepdims: bool) -> Array:
    """A reduced array, with dimensions of size 1 in place of the reduced ones if wanted."""
    if not keepdims or not axes:
        return x
    sizes = list(aval_of(x).shape)
    for axis in axes:
        sizes.insert(axis, 1)
    kept = tuple(d for d in range(len(sizes)) if d not in axes)
    return repeated(x, tuple(sizes), kept)


def _summed(name: str, x: Array, axes: Over, keepdims: bool, where: ArrayLike | None) -> Array:
    """The sum of inexact numbers in their own dtype."""
    if where is not None:
        x = pick(check_mask(name, where), x, 0)
    total = axes.combined(x, reduction.reduce_sum)
    return with_kept_axes(total, axes.dims, keepdims)


def widened_integer(dtype: np.dtype[Any]) -> np.dtype[Any]:
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


class _Fold(NamedTuple):
    """How a reduction combines elements.

    Attributes:
        name: the public function.
        reduction: combines along dimensions.
        combine: combines two arrays.
        identity: by dtype, what stands for elements that do not count.
    """

    name: str
    reduction: Callable[..., Array]
    combine: Callable[..., Array]
    identity: Callable[[np.dtype[Any]], Any]


_SUM = _Fold("sum", reduction.reduce_sum, binary.add, lambda _: 0)
_PROD = _Fold("prod", reduction.reduce_prod, binary.mul, lambda _: 1)
_MAX = _Fold("max", reduction.reduce_max, binary.max, reduction.lowest)
_MIN = _Fold("min", reduction.reduce_min, binary.min, reduction.highest)
_ALL = _Fold("all", reduction.reduce_and, binary.bitwise_and, lambda _: np.True_)
_ANY = _Fold("any", reduction.reduce_or, binary.bitwise_or, lambda _: np.False_)


def _folded(
    fold: _Fold,
    a: Array,
    axes: Over,
    result: np.dtype[Any],
    keepdims: bool,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The elements that count, and the initial value, combined in the dtype of the result."""
    computed = dtypes.float32 if result in _HALF and fold in (_SUM, _PROD) else result
    x = convert_to_type(a, computed, weak_type=False)
    if where is not None:
        x = pick(check_mask(fold.name, where), x, fold.identity(computed))
    x = axes.combined(x, fold.reduction)
    if initial is not None:
        x = fold.combine(_initial(fold.name, initial, computed), x)
    return with_kept_axes(convert_to_type(x, result, weak_type=False), axes.dims, keepdims)


def _sum_dtype(
    name: str, a: Array, dtype: DTypeLike | None, promote_integers: bool
) -> np.dtype[Any]:
    """The dtype of a sum or a product."""
    if dtype is not None:
        return dtypes.canonicalize_user_dtype(dtype, f"numpy.{name}")
    own = aval_of(a).dtype
    return widened_integer(own) if promote_integers else dtypes.to_numeric_dtype(own)


def _initial(name: str, initial: ArrayLike, dtype: np.dtype[Any]) -> Array:
    initial = check_array(name, initial, "initial")
    check_that(
        not aval_of(initial).ndim, name, "the initial value must be a scalar.", initial=initial
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
    """Sums the elements over the given axes.

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

    Raises:
        ValueError: an axis is out of range or named twice, or `initial` is not a scalar.
        NotImplementedError: `out` is given.

    Example:
        >>> jnp.sum(jnp.array([[1, 2], [3, 4]]), axis=0)
        Array([4, 6], dtype=int32)
        >>> jnp.sum(jnp.array([1.0, jnp.nan]), where=jnp.array([True, False]))
        Array(1., dtype=float32)
    """
    check_out("sum", out)
    a = check_array("sum", a, "a")
    result = _sum_dtype("sum", a, dtype, promote_integers)
    # A sum of booleans in their own dtype says whether one of them holds.
    fold = _ANY if result == dtypes.bool_ else _SUM
    return _folded(fold, a, over("sum", a, axis), result, keepdims, initial, where)


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
    """Multiplies the elements over the given axes; the arguments are those of `sum`.

    Shapes:     a: T[s] -> T[s without axis].
    Dtypes:     all; narrow integers and booleans are widened.

    Raises:
        ValueError: an axis is out of range or named twice, or `initial` is not a scalar.
        NotImplementedError: `out` is given.

    Example:
        >>> jnp.prod(jnp.array([[1, 2], [3, 4]]), axis=0)
        Array([3, 8], dtype=int32)
    """
    check_out("prod", out)
    a = check_array("prod", a, "a")
    result = _sum_dtype("prod", a, dtype, promote_integers)
    # A product of booleans in their own dtype says whether all of them hold.
    fold = _ALL if result == dtypes.bool_ else _PROD
    return _folded(fold, a, over("prod", a, axis), result, keepdims, initial, where)


def _check_extreme(
    name: str, a: Array, axes: Over, initial: ArrayLike | None, where: ArrayLike | None
) -> None:
    """Refuses what may have no elements to choose from, where there is no initial value."""
    if initial is not None:
        return
    aval = aval_of(a)
    if where is not None:
        problem = "with `where`, an initial value is needed in case nothing is selected."
        error(ValueError, f"numpy.{name}", problem, fix="initial=...")
    fits = 0 not in [aval.shape[axis] for axis in axes.dims]
    check_that(fits, name, "there is no extreme among no elements.", a=aval, fix="initial=...")


@one_program(static=("axis", "out", "keepdims"))
def max(
    a: ArrayLike,
    axis: NamedAxis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Returns the maximum over the given axes; NaN where there is a NaN.

    Shapes:     a: T[s] -> T[s without axis].
    Dtypes:     all; complex numbers compare real parts, then imaginary ones.

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
    check_out("max", out)
    a = check_array("max", a, "a")
    axes = over("max", a, axis)
    _check_extreme("max", a, axes, initial, where)
    return _folded(_MAX, a, axes, aval_of(a).dtype, keepdims, initial, where)


@one_program(static=("axis", "out", "keepdims"))
def min(
    a: ArrayLike,
    axis: NamedAxis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Returns the minimum over the given axes; NaN where there is a NaN.

    Shapes:     a: T[s] -> T[s without axis].
    Dtypes:     all; complex numbers compare real parts, then imaginary ones.

    Raises:
        ValueError: there are no elements, or `where` is given, and no `initial`; or an axis is
            out of range or named twice.
        NotImplementedError: `out` is given.

    Example:
        >>> jnp.min(jnp.array([[1, 5], [7, 2]]), axis=0)
        Array([1, 2], dtype=int32)
    """
    check_out("min", out)
    a = check_array("min", a, "a")
    axes = over("min", a, axis)
    _check_extreme("min", a, axes, initial, where)
    return _folded(_MIN, a, axes, aval_of(a).dtype, keepdims, initial, where)


amax = max
amin = min


def _is_nonzero(name: str, a: Array) -> Array:
    aval = aval_of(a)
    if aval.dtype == dtypes.bool_:
        return a
    if aval.is_extended:
        error(TypeError, f"numpy.{name}", "random keys are neither zero nor not.", got={"a": aval})
    return binary.ne(a, np.zeros((), aval.dtype)[()])


@one_program(static=("axis", "out", "keepdims"))
def all(
    a: ArrayLike,
    axis: NamedAxis = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Tests whether all elements over the given axes are nonzero.

    Shapes:     a: T[s] -> bool[s without axis].

    Raises:
        ValueError: an axis is out of range or named twice.
        NotImplementedError: `out` is given.

    Example:
        >>> jnp.all(jnp.array([[1, 0], [2, 3]]), axis=1)
        Array([False,  True], dtype=bool)
    """
    check_out("all", out)
    a = _is_nonzero("all", check_array("all", a, "a"))
    return _folded(_ALL, a, over("all", a, axis), dtypes.bool_, keepdims, where=where)


@one_program(static=("axis", "out", "keepdims"))
def any(
    a: ArrayLike,
    axis: NamedAxis = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Tests whether any element over the given axes is nonzero.

    Shapes:     a: T[s] -> bool[s without axis].

    Raises:
        ValueError: an axis is out of range or named twice.
        NotImplementedError: `out` is given.

    Example:
        >>> jnp.any(jnp.array([[0, 0], [0, 3]]), axis=1)
        Array([False,  True], dtype=bool)
    """
    check_out("any", out)
    a = _is_nonzero("any", check_array("any", a, "a"))
    return _folded(_ANY, a, over("any", a, axis), dtypes.bool_, keepdims, where=where)


@one_program(static=("axis", "out", "keepdims"))
def ptp(a: ArrayLike, axis: NamedAxis = None, out: None = None, keepdims: bool = False) -> Array:
    """Returns the range of values, maximum minus minimum, over the given axes.

    Shapes:     a: T[s] -> T[s without axis].
    Dtypes:     numeric.

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
    """Counts the nonzero elements over the given axes.

    Shapes:     a: T[s] -> int[s without axis].

    Raises:
        ValueError: an axis is out of range or named twice.

    Example:
        >>> jnp.count_nonzero(jnp.array([[1, 0], [2, 3]]), axis=0)
        Array([2, 1], dtype=int32)
    """
    a = check_array("count_nonzero", a, "a")
    return sum(_is_nonzero("count_nonzero", a), axis, keepdims=keepdims)


def _count(name: str, x: Array, axes: Over, where: ArrayLike | None, keepdims: bool) -> int | Array:
    """How many elements are reduced into one: a Python int, or an array under a mask."""
    shape = aval_of(x).shape
    most = axes.length(shape)
    if where is None:
        return most
    where = broadcast_to(
        check_mask(name, where), broadcast_shapes(name, shape, aval_of(where).shape)
    )
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
    """Computes the arithmetic mean over the given axes; NaN of no elements.

    Shapes:     a: T[s] -> T[s without axis].
    Dtypes:     inexact; integers and booleans become floats.

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
    x = convert_to_type(a, _moment_dtype(result), weak_type=False)
    total = _summed("mean", x, axes, keepdims, where)
    mean = _divided(total, _count("mean", x, axes, where, keepdims))
    return convert_to_type(mean, result, weak_type=False)


def _moment_dtype(result: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which a mean or variance is computed."""
    computed = dtypes.to_inexact_dtype(result)
    return dtypes.float32 if computed in _HALF else computed


def _divided(total: Array, count: int | Array) -> Array:
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
    """Computes the variance over the given axes.

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

    Raises:
        ValueError: `ddof` and `correction` are both given, a real dtype is asked of complex
            numbers, or an axis is out of range or named twice.
        NotImplementedError: `out` is given.

    Example:
        >>> jnp.var(jnp.array([1, 3])), jnp.var(jnp.array([1, 3]), ddof=1)
        (Array(1., dtype=float32), Array(2., dtype=float32))
    """
    check_out("var", out)
    a = check_array("var", a, "a")
    axes = over("var", a, axis)
    computed, result = _variance_dtypes(a, dtype)
    if correction is not None:
        check_that(not ddof, "var", "`ddof` and `correction` are two names for one thing.")
        ddof = correction  # type: ignore[assignment]
    x = convert_to_type(a, computed, weak_type=False)
    if mean is None:
        total = _summed("var", x, axes, True, where)
        mean = _divided(total, _count("var", x, axes, where, True))
    distance = binary.sub_p.bind(*promote("var", x, mean))
    if where is not None:
        # What does not count has no slope either, be it NaN.
        distance = pick(check_mask("var", where), distance, 0)
    if is_kind(distance, np.complexfloating):
        squares = binary.add(*(unary.square(part(distance)) for part in (unary.real, unary.imag)))
    else:
        squares = unary.square(distance)
    total = _summed("var", squares, axes, keepdims, None)
    count = _count("var", x, axes, where, keepdims)
    known = np.asarray(count, aval_of(total).dtype)[()] if isinstance(count, int) else count
    degrees = binary.sub(convert_to_type(known, aval_of(total).dtype, weak_type=False), ddof)
    variance = binary.div_p.bind(*promote("var", total, degrees))
    variance = pick(binary.gt(degrees, 0), variance, np.nan)
    return convert_to_type(variance, result, weak_type=False)


def _variance_dtypes(a: Array, dtype: DTypeLike | None) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """The dtypes to compute in, and of the result."""
    given = aval_of(a).dtype
    if dtype is None:
        computed = dtypes.to_inexact_dtype(given)
        return _moment_dtype(computed), dtypes.real_dtype_of(computed)
    result = dtypes.canonicalize_user_dtype(dtype, "numpy.var")
    is_complex = dtypes.issubdtype(given, np.complexfloating)
    fits = not is_complex or dtypes.issubdtype(result, np.complexfloating)
    problem = "of complex numbers, no variance is computed in a real dtype."
    fix = "leave dtype= away: the variance is real anyway"
    check_that(fits, "var", problem, a=aval_of(a), dtype=result, fix=fix)
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
    """Computes the standard deviation over the given axes; arguments are those of `var`.

    Shapes:     a: T[s] -> float[s without axis].
    Dtypes:     inexact; integers and booleans become floats; real for complex numbers.

    Raises:
        ValueError: as `var`.
        NotImplementedError: `out` is given.

    Example:
        >>> jnp.std(jnp.array([[1.0, 3.0], [5.0, 5.0]]), axis=1)
        Array([1., 0.], dtype=float32)
    """
    variance = var(
        a, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction
    )
    return unary.sqrt(variance)


def _arg_extreme(
    name: str,
    a: ArrayLike,
    axis: int | None,
    keepdims: bool | None,
    reduction: Callable[..., Array],
) -> Array:
    a = check_array(name, a, "a")
    ndim = aval_of(a).ndim
    if axis is None:
        x, axes = reshape(a, (aval_of(a).size,)), tuple(range(ndim))
        place = 0
    else:
        place = families.canonicalize_axis(axis, ndim, f"numpy.{name}")
        x, axes = a, (place,)
    check_that(aval_of(x).shape[place] != 0, name, "there is nothing to choose from.", a=a)
    check_not_complex(name, x)
    found = reduction(x, place, dtypes.default_int_dtype())
    return with_kept_axes(found, axes, bool(keepdims))


@one_program(static=("axis", "out", "keepdims"))
def argmax(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Returns the index of the first maximum, or of the first NaN, along `axis`.

    Shapes:     a: T[s] -> int[s without axis]; without an axis, an index of the flat array.
    Dtypes:     real or bool.

    Raises:
        ValueError: there are no elements, or the axis is out of range.
        TypeError: `a` is complex.
        NotImplementedError: `out` is given.

    Example:
        >>> jnp.argmax(jnp.array([[1, 5, 5], [7, 2, 0]]), axis=1)
        Array([1, 0], dtype=int32)
    """
    check_out("argmax", out)
    return _arg_extreme("argmax", a, axis, keepdims, reduction.argmax)


@one_program(static=("axis", "out", "keepdims"))
def argmin(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Returns the index of the first minimum, or of the first NaN, along `axis`.

    Shapes:     a: T[s] -> int[s without axis]; without an axis, an index of the flat array.
    Dtypes:     real or bool.

    Raises:
        ValueError: there are no elements, or the axis is out of range.
        TypeError: `a` is complex.
        NotImplementedError: `out` is given.

    Example:
        >>> jnp.argmin(jnp.array([[1, 5, 5], [7, 2, 0]]))  # of all elements in a row
        Array(5, dtype=int32)
    """
    check_out("argmin", out)
    return _arg_extreme("argmin", a, axis, keepdims, reduction.argmin)


_Operation = Callable[[Any, int], Array]


def _cumulated(
    name: str, a: ArrayLike, axis: int | None, dtype: DTypeLike | None, operation: _Operation
) -> Array:
    a = check_array(name, a, "a")
    if axis is None or not aval_of(a).ndim:
        a, axis = reshape(a, (aval_of(a).size,)), axis or 0
    axis = families.canonicalize_axis(axis, aval_of(a).ndim, f"numpy.{name}")
    result = aval_of(a).dtype
    if dtype is not None:
        result = dtypes.canonicalize_user_dtype(dtype, f"numpy.{name}")
    elif result == dtypes.bool_:
        result = dtypes.default_int_dtype()
    a = convert_to_type(a, result, weak_type=False)
    if result == dtypes.bool_:
        return binary.ne(operation(convert_to_type(a, dtypes.int32, weak_type=False), axis), 0)
    return operation(a, axis)


@one_program(static=("axis", "dtype", "out"))
def cumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Computes the cumulative sum of the elements along `axis`.

    Shapes:     a: T[s] -> T[s]; without an axis, T[n] of the flat array.
    Dtypes:     all; booleans are counted.

    Raises:
        ValueError: the axis is out of range.
        NotImplementedError: `out` is given.

    Example:
        >>> jnp.cumsum(jnp.array([[1, 2], [3, 4]]), axis=0)
        Array([[1, 2],
               [4, 6]], dtype=int32)
    """
    check_out("cumsum", out)
    return _cumulated("cumsum", a, axis, dtype, window_reduction.cumsum)


@one_program(static=("axis", "dtype", "out"))
def cumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Computes the cumulative product of the elements along `axis`.

    Shapes:     a: T[s] -> T[s]; without an axis, T[n] of the flat array.
    Dtypes:     all; booleans become integers.

    Raises:
        ValueError: the axis is out of range.
        NotImplementedError: `out` is given.

    Example:
        >>> jnp.cumprod(jnp.array([1, 2, 3, 4]))
        Array([ 1,  2,  6, 24], dtype=int32)
    """
    check_out("cumprod", out)
    return _cumulated("cumprod", a, axis, dtype, window_reduction.cumprod)


def _check_has_axis(name: str, x: ArrayLike, axis: int | None) -> None:
    """Refuses scalars, and arrays of which it is unclear what to go along."""
    aval = aval_of(check_array(name, x))
    if aval.ndim == 0 or (axis is None and aval.ndim > 1):
        problem = "the array has no dimension, or several and none is named."
        fix = "axis=... (it may be omitted for arrays of one dimension)"
        error(ValueError, f"numpy.{name}", problem, got={"x": aval}, fix=fix)


def _after(first: int, totals: Array, axis: int | None) -> Array:
    """The totals, and before them that of no elements."""
    axis = families.canonicalize_axis(axis or 0, totals.ndim, "numpy.cumulative_sum")
    shape = tuple(1 if d == axis else n for d, n in enumerate(aval_of(totals).shape))
    start = broadcast_to(np.asarray(first, aval_of(totals).dtype)[()], shape)
    return concatenate([start, totals], axis)


@one_program(static=("axis", "dtype", "include_initial"))
def cumulative_sum(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """Computes the cumulative sum along `axis`, starting with 0 if wanted.

    Shapes:     x: T[.., n, ..] -> T[.., n, ..], or [.., n + 1, ..] with `include_initial`.
    Dtypes:     all; narrow integers are widened, booleans counted.

    Raises:
        ValueError: there are several dimensions and no axis, or none at all.

    Example:
        >>> jnp.cumulative_sum(jnp.array([1, 2, 3]), include_initial=True)
        Array([0, 1, 3, 6], dtype=int32)
    """
    _check_has_axis("cumulative_sum", x, axis)
    dtype = widened_integer(aval_of(x).dtype) if dtype is None else dtype
    totals = _cumulated("cumulative_sum", x, axis, dtype, window_reduction.cumsum)
    return _after(0, totals, axis) if include_initial else totals


@one_program(static=("axis", "dtype", "include_initial"))
def cumulative_prod(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """Computes the cumulative product along `axis`, starting with 1 if wanted.

    Shapes:     x: T[.., n, ..] -> T[.., n, ..], or [.., n + 1, ..] with `include_initial`.
    Dtypes:     all; booleans become integers.

    Raises:
        ValueError: there are several dimensions and no axis, or none at all.

    Example:
        >>> jnp.cumulative_prod(jnp.array([1, 2, 3]), include_initial=True)
        Array([1, 1, 2, 6], dtype=int32)
    """
    _check_has_axis("cumulative_prod", x, axis)
    totals = _cumulated("cumulative_prod", x, axis, dtype, window_reduction.cumprod)
    return _after(1, totals, axis) if include_initial else totals
