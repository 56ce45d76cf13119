"""Elementwise functions applied again and again: along an axis, over slices, and at indices.

Input: a function of elements, and an array whose first dimension is gone through.  Output: what is
left of it, in the dtype that the function keeps.  `ufuncs` gives these their public form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.lax import folding
from minijax.lax.control_flow.scanning import scan
from minijax.numpy.creation import asarray
from minijax.numpy.joining import append, concatenate
from minijax.numpy.promotion import broadcast_to
from minijax.numpy.ranges import arange
from minijax.numpy.selection import take, where
from minijax.numpy.shaping import expand_dims, ravel, reshape
from minijax.runtime.array import Array
from minijax.transforms.stages import ShapeDtypeStruct
from minijax.transforms.tracing import eval_shape

Function = Callable[..., Any]


def kept_dtype(function: Function, dtype: Any, *others: Any) -> Any:
    """The dtype of `function(x, *others)` once its results have taken the place of `x`.

    Args:
        function: of elements.
        dtype: that x has at first.
        *others: the dtypes of the other arguments.
    """
    elements = [ShapeDtypeStruct((), other) for other in others]
    found = eval_shape(function, ShapeDtypeStruct((), dtype), *elements).dtype
    return found if found == dtype else kept_dtype(function, found, *others)


def _number(value: Any, dtype: Any) -> Any:
    """A neutral element in some dtype; -1 has all bits of an unsigned number too."""
    return asarray(np.asarray(value).astype(dtype))


def folded(
    function: Function,
    rows: Any,
    initial: Any = None,
    mask: Any = None,
    *,
    identity: Any,
    associative: bool,
) -> Array:
    """The rows combined into one, in their order.

    Args:
        function: of two elements.
        rows: what is combined.
        initial: what comes before them.
        mask: where there is an element at all; everywhere by default.
        identity: what stands in place of `initial` where there may be no element.
        associative: whether neighbours may be combined first, with the identity between them.
    """
    dtype = kept_dtype(function, rows.dtype, rows.dtype)
    neutral = None if identity is None else _number(identity, dtype)
    if initial is None and (mask is not None or not rows.shape[0]):
        initial = neutral
    if not rows.shape[0]:
        return broadcast_to(initial.astype(dtype), rows.shape[1:])
    if not associative or (mask is not None and neutral is None):
        return _in_turn(function, rows, initial, dtype, mask)
    rows = rows.astype(dtype)
    if mask is not None:
        rows = where(mask, rows, neutral)
    while rows.shape[0] > 1:
        half = rows.shape[0] // 2
        pairs = function(rows[0 : 2 * half : 2], rows[1 : 2 * half : 2])
        rows = concatenate([pairs, rows[2 * half :]], 0)
    return rows[0] if initial is None else function(initial.astype(dtype), rows[0])


def _in_turn(function: Function, rows: Any, start: Any, dtype: Any, mask: Any) -> Array:
    first = rows[0] if start is None else broadcast_to(start, rows.shape[1:])
    rest = (rows[1:] if start is None else rows, mask)

    def step(total: Any, item: Any) -> tuple[Any, None]:
        row, is_meant = item
        together = function(total, row).astype(dtype)
        return together if is_meant is None else where(is_meant, together, total), None

    total, _ = scan(step, first.astype(dtype), rest)
    return total


def accumulated(function: Function, rows: Any, *, associative: bool) -> Array:
    """What the rows up to each one are, combined in their order."""
    dtype = kept_dtype(function, rows.dtype, rows.dtype)
    totals = rows.astype(dtype)
    if associative:
        (result,) = folding.scan(lambda x, y: [function(x, y)], [totals], 0)
        return result
    if rows.shape[0] < 2:
        return totals

    def step(total: Any, row: Any) -> tuple[Any, Any]:
        together = function(total, row).astype(dtype)
        return together, together

    _, later = scan(step, totals[0], rows[1:])
    return concatenate([totals[:1], later], 0)


def folded_slices(function: Function, rows: Any, starts: Any) -> Array:
    """The rows from each start to the next one combined; its first row if there are none."""
    size = rows.shape[0]
    rows = rows.astype(kept_dtype(function, rows.dtype, rows.dtype))
    starts = where(starts < 0, starts + size, starts)
    ends = append(starts[1:], asarray(size, starts.dtype))

    def joined(totals: Any, row: Any) -> tuple[Any, None]:
        number, value = row
        is_inside = (number > starts) & (number < ends)
        mask = expand_dims(is_inside, tuple(range(1, totals.ndim)))
        return where(mask, function(totals, value).astype(totals.dtype), totals), None

    totals, _ = scan(joined, take(rows, starts, 0), (arange(size, dtype=starts.dtype), rows))
    return totals


def applied_at(function: Function, x: Any, indices: Any, others: Sequence[Any]) -> Array:
    """An array to whose elements at `indices` the function was applied.

    An element whose index comes several times is changed as often, one after the other.
    """
    x = x.astype(kept_dtype(function, x.dtype, *(other.dtype for other in others)))
    parts = indices if isinstance(indices, tuple) else (indices,)
    if all(part is None or part is ... or isinstance(part, int | slice) for part in parts):
        place = x.at[indices]
        return place.set(function(place.get(), *others))
    # What lies outside has a number that no element has.
    numbers = arange(x.size).reshape(x.shape).at[indices].get(mode="fill", fill_value=x.size)
    operands = [ravel(broadcast_to(other, numbers.shape)) for other in others]

    def step(flat: Any, item: Any) -> tuple[Any, None]:
        number, *values = item
        place = flat.at[number]
        changed = function(place.get(mode="clip"), *values).astype(flat.dtype)
        return place.set(changed, mode="drop"), None

    flat, _ = scan(step, ravel(x), (ravel(numbers), *operands))
    return reshape(flat, x.shape)
