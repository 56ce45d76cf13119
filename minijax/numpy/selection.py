"""Functions that pick elements by condition or place, put others there, and search.

Input: arrays.  Output: chosen elements, their order, or their places.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, cast, overload

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import AbstractValue, aval_of
from minijax.core.errors import error
from minijax.core.trace import Tracer
from minijax.lax import binary, creation, gather_numbers, gather_scatter, shape, window_reduction
from minijax.lax.gather_numbers import GatherScatterMode
from minijax.lowering import relocation
from minijax.numpy import elementary, logic, promotion, shaping, updates
from minijax.numpy.creation import asarray
from minijax.numpy.joining import concatenate
from minijax.numpy.promotion import (
    check_array,
    check_choice,
    check_out,
    check_that,
    known,
    one_program,
    strong,
)
from minijax.numpy.shaping import array_argument
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array

_INT32 = np.dtype(np.int32)


@overload
def where(
    condition: ArrayLike,
    x: None = ...,
    y: None = ...,
    /,
    *,
    size: int | None = ...,
    fill_value: ArrayLike | None = ...,
) -> tuple[Array, ...]: ...
@overload
def where(
    condition: ArrayLike,
    x: ArrayLike,
    y: ArrayLike,
    /,
    *,
    size: int | None = ...,
    fill_value: ArrayLike | None = ...,
) -> Array: ...
@overload
def where(
    condition: ArrayLike,
    x: ArrayLike | None,
    y: ArrayLike | None,
    /,
    *,
    size: int | None = ...,
    fill_value: ArrayLike | None = ...,
) -> Array | tuple[Array, ...]: ...


def where(
    condition: ArrayLike,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    /,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array | tuple[Array, ...]:
    """Returns elements of `x` where `condition` is true, and of `y` elsewhere.

    With a condition alone: the indices where it holds, as `nonzero`.

    Shapes:     condition: U[s], x: T[s], y: T[s] -> T[s]; shapes are broadcast.
    Dtypes:     values are promoted; a condition that is not zero counts as true.
    Derivative: linear in x and y.
    Lowers to:  stablehlo.select.

    Raises:
        TypeError: only one of `x` and `y` is given, or an argument is not an array.
        ValueError: the shapes do not fit together.

    Example:
        >>> jnp.where(jnp.array([True, False, True]), jnp.array([1, 2, 3]), -1)
        Array([ 1, -1,  3], dtype=int32)
        >>> jnp.where(jnp.array([True, False, True]))
        (Array([0, 2], dtype=int32),)
    """
    if x is not None and y is not None:
        return _where(condition, x, y)
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    error(TypeError, "numpy.where", "needs both x and y, or neither.", got=f"x={x!r}, y={y!r}")


@one_program()
def _where(condition: ArrayLike, x: ArrayLike, y: ArrayLike) -> Any:
    condition = check_array("where", condition, "condition")
    x, y = promotion.promote_dtypes("where", x, y)
    mask, a, b = aval_of(condition), aval_of(x), aval_of(y)
    if mask.dtype != dtypes.bool_:
        condition = binary.ne(condition, mask.dtype.type(0))
    if not mask.shape == a.shape == b.shape:
        dims = promotion.broadcast_shapes("where", mask.shape, a.shape, b.shape)
        x, y = promotion.broadcast_to(x, dims), promotion.broadcast_to(y, dims)
        if mask.shape:
            condition = promotion.broadcast_to(condition, dims)
    return binary.select_n(condition, y, x)


def nonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> tuple[Array, ...]:
    """Returns the indices of the nonzero elements, one array for each dimension.

    Args:
        a: the array.
        size: how many indices to return; needed where `a` is traced.
        fill_value: what stands for missing indices, one number or one for each dimension; 0.

    Shapes:     a: T[s] -> int[size] for each dimension.

    Raises:
        ConcretizationTypeError: `a` is traced and `size` is not given.
        ValueError: `a` is a scalar.

    Example:
        >>> jnp.nonzero(jnp.array([[0, 5], [7, 0]]))
        (Array([0, 1], dtype=int32), Array([1, 0], dtype=int32))
        >>> jnp.nonzero(jnp.array([0, 5, 7]), size=3, fill_value=-1)  # what `jit` needs
        (Array([ 1,  2, -1], dtype=int32),)
    """
    a = array_argument("nonzero", a)
    check_that(a.aval.ndim != 0, "nonzero", "a scalar has no indices.", fix="numpy.atleast_1d(a)")
    if size is None:
        host = known("nonzero", a, "give size, or use the form numpy.where(condition, x, y)")
        found = (asarray(index, dtypes.default_int_dtype()) for index in np.nonzero(host))
        return tuple(relocation.beside(index, a) for index in found)
    return _nonzero_of_size(a, size, 0 if fill_value is None else fill_value)


@one_program(static=("size",))
def _nonzero_of_size(a: Any, size: int, fill_value: Any) -> tuple[Any, ...]:
    dims = a.aval.shape
    dtype = dtypes.default_int_dtype()
    fills = fill_value if isinstance(fill_value, tuple) else (fill_value,) * len(dims)
    mask = shaping.ravel(logic.not_equal(a, 0))
    total = aval_of(mask).size
    # The k-th true element goes to place k; all others are dropped behind the end.
    rank = window_reduction.cumsum(creation.convert_element_type(mask, dtype))
    target = binary.select_n(mask, np.full(total, size, dtype), rank - 1)
    blank = creation.full((size,), total, dtype)
    found = blank.at[target].set(creation.iota(dtype, total), mode="drop")
    outs = []
    for d, fill in enumerate(fills):
        stride = math.prod(dims[d + 1 :])
        index = (found // max(stride, 1)) % max(dims[d], 1)
        filling = creation.convert_element_type(fill, dtype)
        outs.append(where(found < total, index, filling))
    return tuple(outs)


def flatnonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """Returns the indices of the nonzero elements of the flattened array.

    Shapes:     a: T[s] -> int[count], or int[size].

    Example:
        >>> jnp.flatnonzero(jnp.array([[0, 5], [7, 0]]))
        Array([1, 2], dtype=int32)
    """
    found = nonzero(_flat("flatnonzero", a, size), size=size, fill_value=fill_value)[0]
    return cast(Array, relocation.beside(found, a))


def _flat(name: str, x: ArrayLike, size: int | None) -> Any:
    """`x` as one dimension, on the host if it is known and a result's size depends on it."""
    x = check_array(name, x)
    if size is None and not isinstance(x, Tracer):
        return np.ravel(np.asarray(x))
    return shaping.ravel(x)


def argwhere(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """Returns the indices of the nonzero elements, as the rows of a matrix.

    Shapes:     a: T[s] -> int[size, len(s)].

    Example:
        >>> jnp.argwhere(jnp.array([[0, 5], [7, 0]]))
        Array([[0, 1],
               [1, 0]], dtype=int32)
    """
    a = array_argument("argwhere", a)
    found = nonzero(shaping.atleast_1d(a), size=size, fill_value=fill_value)
    rows = concatenate([shape.expand_dims(index, (1,)) for index in found], 1)
    return rows if a.aval.ndim else rows[:, :0]


@one_program()
def select(
    condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0
) -> Array:
    """Returns, for each element, the choice of the first condition that is true.

    Shapes:     bool[s] and T[s], as many of each, T[] -> T[s]; shapes are broadcast.

    Raises:
        ValueError: there are no conditions, or not as many choices.

    Example:
        >>> x = jnp.arange(5)
        >>> jnp.select([x < 2, x < 4], [10 * x, -x], default=99)
        Array([ 0, 10, -2, -3, 99], dtype=int32)
    """
    fits = len(condlist) == len(choicelist) > 0
    problem = "needs as many choices as conditions, one at least."
    check_that(
        fits, "select", problem, got=f"{len(condlist)} conditions, {len(choicelist)} choices"
    )
    *cases, out = promotion.promote_dtypes("select", *choicelist, default)
    for condition, values in zip(list(condlist)[::-1], cases[::-1], strict=True):
        out = where(condition, values, out)
    return out


def choose(
    a: ArrayLike, choices: ArrayLike | Sequence[ArrayLike], out: None = None, mode: str = "raise"
) -> Array:
    """Constructs an array by choosing each element from one of several arrays.

    Args:
        a: the numbers.
        choices: the arrays.
        out: nothing; NumPy has it.
        mode: what happens to numbers out of range: "raise", "clip" or "wrap".

    Shapes:     a: int[s], choices: T[s] each -> T[s]; shapes are broadcast.

    Raises:
        ValueError: a number is out of range or not an integer, or the mode is not known.
        ConcretizationTypeError: the mode is "raise", and `a` is traced.

    Example:
        >>> jnp.choose(jnp.array([0, 1, 0]), [jnp.array([1, 2, 3]), jnp.array([10, 20, 30])])
        Array([ 1, 20,  3], dtype=int32)
    """
    check_out("choose", out)
    a = array_argument("choose", a)
    if not dtypes.issubdtype(a.dtype, np.integer):
        error(ValueError, "numpy.choose", "the numbers must be integers.", got=str(a.aval))
    check_choice("choose", "mode", mode, ("raise", "clip", "wrap"))
    options = list(cast(Iterable[Any], choices))
    count = len(options)
    if mode == "raise":
        host = known("choose", a, "mode='clip' or mode='wrap'")
        if host.size and (host.min() < 0 or host.max() >= count):
            error(ValueError, "numpy.choose", "a number is out of range.", got=f"{count} choices")
    elif mode == "clip":
        a = elementary.clip(a, 0, count - 1)
    else:
        a = elementary.remainder(a, count)
    return _chosen(a, options)


@one_program()
def _chosen(a: Array, choices: Sequence[ArrayLike]) -> Any:
    """The choices that numbers in range name."""
    arrays = promotion.promote_dtypes("choose", *choices)
    dims = shaping.broadcast_shapes(aval_of(a).shape, *(aval_of(x).shape for x in arrays))
    cases = [promotion.strong(shaping.broadcast_array(x, dims)) for x in arrays]
    if len(cases) == 1:
        return cases[0]
    which = creation.convert_element_type(shaping.broadcast_array(a, dims), _INT32)
    return binary.select_n(which, *cases) if len(cases) > 2 else where(which, *cases[::-1])


def take(
    a: ArrayLike,
    indices: ArrayLike,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Takes elements from an array along `axis`, or from the flattened array.

    Args:
        a: the array.
        indices: integers of any shape, which takes the place of the dimension.
        axis: the dimension.
        out: nothing; NumPy has it.
        mode: what happens out of range: "fill" (the default), "clip", "wrap".  Negative indices
            count from the end, but in mode "clip" they are out of range.
        unique_indices: a promise.
        indices_are_sorted: a promise.
        fill_value: what "fill" puts there: NaN, or the lowest or highest integer.

    Shapes:     a: T[.., n, ..], indices: int[t] -> T[.., *t, ..].
    Derivative: transposes to a scatter that adds.
    Lowers to:  stablehlo.gather.

    Raises:
        ValueError: indices are not integers, the mode is not known, or the axis is out of range.
        IndexError: the dimension is empty.
        NotImplementedError: the mode is "raise", or `out` is given.

    Example:
        >>> jnp.take(jnp.array([10, 20, 30]), jnp.array([2, 0, -1]))
        Array([30, 10, 30], dtype=int32)
        >>> jnp.take(jnp.array([10.0, 20.0]), jnp.array([1, 2]))  # 2 is out of bounds
        Array([20., nan], dtype=float32)
    """
    if fill_value is not None:
        fill_value = updates.static_fill_value(fill_value)
    a, indices = array_argument("take", a), array_argument("take", indices)
    return _take(a, indices, axis, out, mode, unique_indices, indices_are_sorted, fill_value)


@one_program(static=("axis", "out", "mode", "unique", "sorted", "fill_value"))
def _take(
    a: Array,
    indices: Array,
    axis: int | None,
    out: None,
    mode: str | None,
    unique: bool,
    sorted: bool,
    fill_value: ArrayLike | None,
) -> Any:
    check_out("take", out)
    a, axis = shaping.with_axis("take", a, axis)
    _check_mode("take", mode, (None, "fill", "clip", "wrap"))
    size = a.aval.shape[axis]
    if not size and indices.aval.size:
        error(IndexError, "numpy.take", f"dimension {axis} is empty.", got=str(a.aval))
    indices = _whole_numbers(indices)
    if mode is None:
        gather_numbers.assert_in_bounds("gather", indices, size, axis)
    if mode == "wrap":
        indices = elementary.remainder(indices, max(size, 1))
    return a.at[(*(slice(None),) * axis, indices)].get(
        mode="promise_in_bounds" if mode == "wrap" else mode or "fill",
        fill_value=fill_value,
        wrap_negative_indices=mode != "clip",
        unique_indices=unique,
        indices_are_sorted=sorted,
    )


def _check_mode(name: str, mode: str | None, modes: Sequence[str | None]) -> None:
    """Refuses ways to treat indices out of range that there are not, or not in compiled code."""
    problem = "mode 'raise' is not possible in compiled code."
    check_that(mode != "raise", name, problem, error=NotImplementedError)
    check_choice(name, "mode", mode, modes)


def _whole_numbers(indices: Array) -> Any:
    """Indices as integers; booleans and arrays without elements are converted to them."""
    if indices.dtype == dtypes.bool_ or not indices.aval.size:
        return creation.convert_element_type(indices, _INT32)
    if not dtypes.issubdtype(indices.dtype, np.integer):
        error(ValueError, "numpy.take", "indices must be integers.", got=str(indices.aval))
    return indices


def take_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    axis: int | None = -1,
    mode: str | GatherScatterMode | None = None,
    fill_value: ArrayLike | None = None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Array:
    """Takes values from an array along `axis`, by matching slices of indices.

    Args:
        arr: the array.
        indices: positions along `axis`.
        axis: the dimension; None for `arr` as one dimension.
        mode: what happens out of range: "fill" (the default), "clip", "promise_in_bounds".
        fill_value: what "fill" puts there: NaN, or the lowest or highest integer.
        wrap_negative_indices: whether negative positions count from the end, as they do.

    Shapes:     arr: T[s], indices: int[t] -> T[t], where s and t agree, or are 1, but at axis.
    Derivative: transposes to a scatter that adds.
    Lowers to:  stablehlo.gather.

    Raises:
        TypeError: indices are not integers.
        ValueError: the ranks differ, or other sizes than those at axis.

    Example:
        >>> x = jnp.array([[3, 1, 2], [6, 5, 4]])
        >>> jnp.take_along_axis(x, jnp.argsort(x, axis=1), axis=1)
        Array([[1, 2, 3],
               [4, 5, 6]], dtype=int32)
    """
    if fill_value is not None:
        fill_value = updates.static_fill_value(fill_value)
    arr = array_argument("take_along_axis", arr)
    indices = array_argument("take_along_axis", indices)
    return _take_along_axis(arr, indices, axis, mode, fill_value, wrap_negative_indices)


@one_program(static=("axis", "mode", "fill_value", "wrap"))
def _take_along_axis(
    arr: Array,
    indices: Array,
    axis: int | None,
    mode: Any,
    fill_value: ArrayLike | None,
    wrap: bool | None,
) -> Any:
    if not dtypes.issubdtype(indices.dtype, np.integer):
        error(
            TypeError, "numpy.take_along_axis", "indices must be integers.", got=str(indices.aval)
        )
    arr, axis = shaping.with_axis("take_along_axis", arr, axis)
    _check_along_axis(arr.aval, indices.aval, axis)
    wrap = wrap is not False
    size = arr.aval.shape[axis]
    if not arr.aval.size:
        pairs = enumerate(zip(arr.aval.shape, indices.aval.shape, strict=True))
        dims = tuple(m if d == axis or n == 1 else n for d, (n, m) in pairs)
        return creation.full(dims, 0, arr.dtype)
    indices = creation.convert_element_type(
        indices, np.int64 if indices.dtype.itemsize == 8 else np.int32
    )
    if mode is None:
        gather_numbers.assert_in_bounds("gather", indices, size, axis, wrap=wrap)
    if wrap:
        indices = where(indices < 0, indices + size, indices)
    return _gathered_along(arr, indices, axis, mode, fill_value)


def _check_along_axis(arr: AbstractValue, indices: AbstractValue, axis: int) -> None:
    fits = arr.ndim == indices.ndim and all(
        d == axis or n == m or 1 in (n, m)
        for d, (n, m) in enumerate(zip(arr.shape, indices.shape, strict=True))
    )
    problem = f"the shapes must agree, or be 1, but along axis {axis}."
    check_that(fits, "take_along_axis", problem, arr=arr, indices=indices)


def _gathered_along(
    arr: Array,
    indices: Array,
    axis: int,
    mode: str | GatherScatterMode | None,
    fill_value: ArrayLike | None,
) -> Any:
    """One gather: equal dimensions run together, those that only `arr` has are windows."""
    sizes = list(zip(aval_of(arr).shape, aval_of(indices).shape, strict=True))
    others = [d for d in range(len(sizes)) if d != axis]
    windows = [d for d in others if sizes[d][1] == 1 != sizes[d][0]]
    single = [d for d in others if sizes[d][0] == 1 != sizes[d][1]]
    left = [d for d in range(len(sizes)) if d not in single]
    right = [d for d in range(len(sizes)) if d not in windows]
    together = [d for d in others if d in left and d in right]
    arr = shape.squeeze(arr, single)
    starts = shape.reshape(indices, (*(sizes[d][1] for d in right), 1))
    numbers = gather_numbers.GatherDimensionNumbers(
        offset_dims=tuple(windows),
        collapsed_slice_dims=(left.index(axis),),
        start_index_map=(left.index(axis),),
        operand_batching_dims=tuple(left.index(d) for d in together),
        start_indices_batching_dims=tuple(right.index(d) for d in together),
    )
    window = tuple(sizes[d][0] if d in windows else 1 for d in left)
    return gather_scatter.gather(
        arr, starts, numbers, window, mode=mode or "fill", fill_value=fill_value
    )


def _refuse_inplace(name: str, inplace: bool, exception: type[Exception] = ValueError) -> None:
    problem = "arrays cannot be written in place."
    check_that(not inplace, name, problem, error=exception, fix="inplace=False, and use the result")


def put_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: str | None = None,
) -> Array:
    """Returns a copy of `arr` with values put at matching indices along `axis`.

    Shapes:     arr: T[s], indices: int[t], values: T[t] -> T[s].

    Raises:
        ValueError: `inplace` is true.

    Example:
        >>> x, best = jnp.array([[3, 1], [5, 6]]), jnp.array([[0], [1]])
        >>> jnp.put_along_axis(x, best, 0, axis=1, inplace=False)
        Array([[0, 1],
               [5, 0]], dtype=int32)
    """
    _refuse_inplace("put_along_axis", inplace)
    arr, indices = array_argument("put_along_axis", arr), array_argument("put_along_axis", indices)
    updates.check_lossless(arr, values, "numpy.put_along_axis")
    return _put_along_axis(arr, indices, values, axis, mode)


@one_program(static=("axis", "mode"))
def _put_along_axis(
    arr: Array, indices: Array, values: ArrayLike, axis: int | None, mode: Any
) -> Any:
    dims = arr.aval.shape
    arr, axis = shaping.with_axis("put_along_axis", arr, axis)
    rank = arr.aval.ndim
    index: list[Any] = []
    for d, n in enumerate(arr.aval.shape):
        along = [-1 if i == d else 1 for i in range(rank)]
        index.append(indices if d == axis else np.arange(n, dtype=np.int32).reshape(along))
    values = creation.convert_element_type(values, arr.dtype)
    return shape.reshape(arr.at[tuple(index)].set(values, mode=mode), dims)


def put(
    a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *, inplace: bool = True
) -> Array:
    """Returns a copy of `a` with values put at flat indices.

    Args:
        a: the array.
        ind: the positions.
        v: the elements, repeated as often as needed.
        mode: what happens out of range: "wrap"; "clip", where negative positions are 0; or None,
            which clips where counting from the end does not help.
        inplace: must be false.

    Shapes:     a: T[s], ind: int[n], v: T[m] -> T[s].

    Raises:
        ValueError: `inplace` is true, or the mode is not known.
        NotImplementedError: the mode is "raise".

    Example:
        >>> jnp.put(jnp.zeros((2, 2)), jnp.array([0, 3]), jnp.array([1.0, 4.0]), inplace=False)
        Array([[1., 0.],
               [0., 4.]], dtype=float32)
    """
    _refuse_inplace("put", inplace)
    _check_mode("put", mode, (None, "clip", "wrap"))
    a, ind, v = (array_argument("put", x) for x in (a, ind, v))
    updates.check_lossless(a, v, "numpy.put")
    return _put(a, ind, v, mode)


@one_program(static=("mode",))
def _put(a: Array, ind: Array, v: Array, mode: str | None) -> Any:
    if not ind.aval.size or not v.aval.size:
        return a
    values = creation.convert_element_type(_cycled(v, ind.aval.size), a.dtype)
    ind = shaping.ravel(ind)
    if mode == "wrap":
        ind = elementary.remainder(ind, a.aval.size)
    elif mode == "clip":
        ind = elementary.clip(ind, 0, a.aval.size - 1)
    flat = shaping.ravel(a).at[ind].set(values, mode="clip")
    return shape.reshape(flat, a.aval.shape)


def _cycled(values: Array, size: int) -> Any:
    """Values as one dimension, cut or repeated to a size."""
    return shaping.resize(values, (size,))


def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Array:
    """Returns a copy of `arr` whose elements where `mask` is true are replaced in turn.

    Args:
        arr: the array.
        mask: as many elements as the array has.
        vals: the elements, repeated as often as needed.
        inplace: must be false.

    Shapes:     arr: T[s], mask: U[s], vals: T[m] -> T[s].

    Raises:
        ValueError: `inplace` is true, the sizes differ, or there are no values.

    Example:
        >>> x = jnp.array([1, -1, 2, -2])
        >>> jnp.place(x, x < 0, jnp.array([8, 9]), inplace=False)
        Array([1, 8, 2, 9], dtype=int32)
    """
    _refuse_inplace("place", inplace)
    arr, mask, vals = (array_argument("place", x) for x in (arr, mask, vals))
    fits = arr.aval.size == mask.aval.size and vals.aval.size > 0
    problem = "needs a mask of the array's size, and values."
    check_that(fits, "place", problem, arr=arr, mask=mask, vals=vals)
    updates.check_lossless(arr, vals, "numpy.place")
    return _placed(arr, mask, vals)


@one_program()
def _placed(arr: Array, mask: Array, vals: Array) -> Any:
    mask = shaping.ravel(logic.not_equal(mask, 0))
    vals = creation.convert_element_type(shaping.ravel(vals), arr.dtype)
    rank = window_reduction.cumsum(creation.convert_element_type(mask, _INT32)) - 1
    new = vals[elementary.remainder(rank, vals.aval.size)]
    return shape.reshape(where(mask, new, shaping.ravel(arr)), arr.aval.shape)


def fill_diagonal(
    a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True
) -> Array:
    """Returns a copy of `a` with its main diagonal filled.

    Args:
        a: an array of two dimensions, or of more that are equal.
        val: the elements, repeated as often as needed.
        wrap: must be false.
        inplace: must be false.

    Shapes:     a: T[s], val: T[m] -> T[s].

    Raises:
        NotImplementedError: `inplace` or `wrap` is true.
        ValueError: the shape has no diagonal.

    Example:
        >>> jnp.fill_diagonal(jnp.zeros((2, 3)), 5.0, inplace=False)
        Array([[5., 0., 0.],
               [0., 5., 0.]], dtype=float32)
    """
    _refuse_inplace("fill_diagonal", inplace, NotImplementedError)
    if wrap:
        error(NotImplementedError, "numpy.fill_diagonal", "wrap is not understood.")
    a = array_argument("fill_diagonal", a)
    dims = a.aval.shape
    is_square = len(dims) == 2 or (len(dims) > 2 and len(set(dims)) == 1)
    problem = "needs two dimensions, or more that are equal."
    check_that(is_square, "fill_diagonal", problem, a=a)
    updates.check_lossless(a, val, "numpy.fill_diagonal")
    return _with_diagonal(a, array_argument("fill_diagonal", val))


@one_program()
def _with_diagonal(a: Array, val: Array) -> Any:
    places = np.arange(min(a.aval.shape), dtype=np.int32)
    values = creation.convert_element_type(_cycled(val, places.size), a.dtype)
    return a.at[(places,) * a.aval.ndim].set(values, unique_indices=True)


def compress(
    condition: ArrayLike,
    a: ArrayLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
    out: None = None,
) -> Array:
    """Returns the slices along `axis` where a condition is true.

    Args:
        condition: a vector, at most as long as the dimension.
        a: the array.
        axis: the dimension; None for `a` as one dimension.
        size: how many elements to return; needed where the condition is traced.
        fill_value: what stands for missing ones.
        out: nothing; NumPy has it.

    Raises:
        ConcretizationTypeError: the condition is traced and `size` is not given.
        ValueError: the condition is not a vector or is too long.

    Example:
        >>> jnp.compress(jnp.array([True, False]), jnp.array([[1, 2], [3, 4]]), axis=1)
        Array([[1],
               [3]], dtype=int32)
    """
    check_out("compress", out)
    condition, a = array_argument("compress", condition), strong(array_argument("compress", a))
    a, axis = shaping.with_axis("compress", a, axis)
    length = a.aval.shape[axis]
    is_known = not isinstance(condition, Tracer)
    if is_known and condition.aval.ndim == 1 and not np.asarray(condition)[length:].any():
        condition = condition[:length]
    fits = condition.aval.ndim == 1 and condition.aval.size <= length
    problem = "the condition must be a vector, at most as long as the dimension."
    check_that(fits, "compress", problem, condition=condition, a=a)
    (places,) = nonzero(condition, size=size, fill_value=length)
    if not length:
        dims = (*a.aval.shape[:axis], places.aval.size, *a.aval.shape[axis + 1 :])
        return creation.full(dims, fill_value, a.dtype)
    return take(a, places, axis, mode="fill", fill_value=fill_value)


def extract(
    condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = 0
) -> Array:
    """Returns the elements of the flattened array where a condition is true.

    Shapes:     condition: bool[s], arr: T[s] -> T[count], or T[size].

    Example:
        >>> jnp.extract(jnp.array([True, False, True]), jnp.array([1, 2, 3]))
        Array([1, 3], dtype=int32)
    """
    flat = _flat("extract", condition, size)
    return compress(flat, shaping.ravel(arr), 0, size=size, fill_value=fill_value)
