"""`x[index]`: basic, advanced and boolean indexing.

Input: an array and whatever stands in the brackets.  Output: slices, gathers and new dimensions.
An index is first parsed into a template, which is static and hashable, and operands, which are
values.  Outside traces, integers and the starts of slices are operands, so that a loop over them
compiles once; while staging they are constants of the jaxpr.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of, has_aval
from minijax.core.errors import NonConcreteBooleanIndexError, message
from minijax.core.trace import Tracer, current
from minijax.interpreters import eager
from minijax.interpreters.jvp import JVPTrace
from minijax.interpreters.partial_eval import PartialTrace
from minijax.interpreters.batching import BatchTrace
from minijax.lax import binary, convert, gathering, choice, shape, slicing
from minijax.numpy.one_program import native_program
from minijax.runtime.array import Array, to_numpy


class New(NamedTuple):
    """A new dimension of size 1."""


class At(NamedTuple):
    """One position, which is an operand; `checked` says that it is known to be in range."""

    checked: bool


class Fixed(NamedTuple):
    """One position, known and in range."""

    position: int


class Range(NamedTuple):
    """`size` positions from `start` in steps of `step`, all known."""

    start: int
    size: int
    step: int


class From(NamedTuple):
    """`size` positions from a start, which is an operand known to be in range."""

    size: int


class Picked(NamedTuple):
    """Positions given by an array of integers, which is an operand."""


Entry = New | At | Fixed | Range | From | Picked
Template = tuple[Entry, ...]

FULL = slice(None)


def is_eager() -> bool:
    """Whether operations are computed at once, be it under differentiation or batching."""
    trace = current.value
    while True:
        if isinstance(trace, (JVPTrace, BatchTrace)):
            trace = trace.parent
        elif isinstance(trace, PartialTrace):
            trace = trace.known
        else:
            return trace is eager.EAGER


def getitem(x: Any, index: Any) -> Any:
    """The elements of `x` at `index`, by NumPy's rules.

    Out-of-range positions are clamped to the nearest one in range.
    Source: mirrors indexing of jax.Array (0.10).

    Raises:
        IndexError: too many indices, or a mask that does not fit.
        NonConcreteBooleanIndexError: a mask is traced, so the result has no static shape.
        TypeError: an index is no integer, slice, array, None or Ellipsis.
    """
    if type(x) is Array and current.value is eager.EAGER:
        if type(index) is int and x.ndim:
            size = x.shape[0]
            if size:
                return _row(x, min(max(index + size if index < 0 else index, 0), size - 1))
        return eager_item(x, index)
    x, template, operands = parse(x, index, dynamic=is_eager())
    return take_template(x, template, operands)


def eager_item(x: Any, index: Any) -> Any:
    """`x[index]` as one compiled program, which serves all indices of the same form."""
    x, template, operands = parse(x, index, dynamic=True)
    return _item_program(x, *operands, template=template)


def take_template(x: Any, template: Template, operands: Sequence[Any]) -> Any:
    """The elements that a parsed index selects."""
    if any(type(entry) is Picked for entry in template):
        return _gather(x, template, operands)
    return _slice(x, template, operands)


def _item(x: Any, *operands: Any, template: Template) -> Any:
    return take_template(x, template, operands)


def _first_row(x: Any, position: Any) -> Any:
    return slicing.dynamic_index_in_dim(
        x, position, 0, keepdims=False, allow_negative_indices=False
    )


_item_program = native_program(_item, ("template",))
_row = native_program(_first_row)


def parse(x: Any, index: Any, *, dynamic: bool) -> tuple[Any, Template, list[Any]]:
    """An index as a template and its operands; `x` comes back with dimensions for scalar masks.

    Args:
        x: what is indexed.
        index: what stands in the brackets.
        dynamic: whether known integers become operands.
    """
    items = list(index) if type(index) is tuple else [index]
    items, x = _without_masks(items, x)
    dims = aval_of(x).shape
    used = sum(item is not None and item is not Ellipsis for item in items)
    if used > len(dims):
        raise IndexError(
            message(
                "indexing",
                "too many indices.",
                got=f"{used} indices for an array of type {aval_of(x)}",
            )
        )
    ellipses = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(ellipses) > 1:
        raise IndexError(message("indexing", "more than one ellipsis.", got=str(index)))
    place = ellipses[0] if ellipses else len(items)
    items[place : place + 1] = [FULL] * (len(dims) - used)
    advanced = any(_rank(item) > 0 for item in items if has_value(item))
    template: list[Entry] = []
    operands: list[Any] = []
    sizes = iter(dims)
    for item in items:
        if item is None:
            template.append(New())
            continue
        entry, values = _parse_item(item, next(sizes), dynamic, advanced)
        template.append(entry)
        operands += values
    return x, tuple(template), operands


def has_value(item: Any) -> bool:
    """Whether an item of an index is a number or an array, rather than a slice or a mark."""
    return item is not None and item is not Ellipsis and not isinstance(item, slice)


def _rank(item: Any) -> int:
    return 0 if isinstance(item, int) else int(aval_of(item).ndim)


def _without_masks(items: list[Any], x: Any) -> tuple[list[Any], Any]:
    """Replaces masks by the positions where they are true, and checks the kinds of items."""
    result: list[Any] = []
    dim = 0
    for item in items:
        if type(item) is int or item is None or item is Ellipsis or isinstance(item, slice):
            result.append(item)
            dim += item is not None
            if item is Ellipsis:
                rest = sum(_consumed(i) for i in items[len(result) :])
                dim = aval_of(x).ndim - rest
            continue
        _check_item(item)
        if aval_of(item).dtype != dtypes.bool_:
            result.append(item)
            dim += 1
        elif aval_of(item).ndim == 0:
            # A scalar mask adds a dimension, of which it keeps all or nothing.
            result.append(np.zeros(int(_known_mask(item)), np.int32))
            x = shape.expand_dims(x, (dim,))
            dim += 1
        else:
            mask = _known_mask(item)
            _check_mask(mask, aval_of(x), dim)
            result += [positions.astype(np.int32) for positions in np.nonzero(mask)]
            dim += mask.ndim
    return result, x


def _consumed(item: Any) -> int:
    if item is None:
        return 0
    if not has_value(item) or isinstance(item, int) and not isinstance(item, bool):
        return 1
    aval = aval_of(item)
    return int(aval.ndim) if aval.dtype == dtypes.bool_ else 1


def _known_mask(mask: Any) -> np.ndarray[Any, Any]:
    if isinstance(mask, Tracer):
        value = mask.concrete()
        if value is None:
            raise NonConcreteBooleanIndexError(
                message(
                    "indexing",
                    "a traced boolean mask selects an unknown number of elements.",
                    got=str(mask.aval),
                    fix="minijax.numpy.where(mask, x, y), or nonzero and unique with size=",
                )
            )
        mask = value
    return np.asarray(mask)


def _check_mask(mask: np.ndarray[Any, Any], aval: Any, dim: int) -> None:
    expected = aval.shape[dim : dim + mask.ndim]
    if mask.shape != expected:
        raise IndexError(
            message(
                "indexing",
                "a boolean mask does not have the shape of what it masks.",
                got=f"a mask of shape {mask.shape} for dimensions from {dim} of {aval}",
                expected=f"shape {expected}",
            )
        )


def _check_item(item: Any) -> None:
    if isinstance(item, str):
        raise TypeError(message("indexing", "strings are no indices.", got=repr(item)))
    if isinstance(item, (list, tuple)):
        raise TypeError(
            message(
                "indexing",
                "a list or a nested tuple is no index.",
                got=repr(item),
                fix="x[numpy.array(index)] for an array of positions, x[tuple(index)] for one "
                "index a dimension",
            )
        )
    if not has_aval(item):
        raise TypeError(
            message(
                "indexing",
                "not an index.",
                got=f"{item!r} of type {type(item).__name__}",
                expected="integers, slices, arrays, None or Ellipsis",
            )
        )
    aval = aval_of(item)
    if not (dtypes.issubdtype(aval.dtype, np.integer) or aval.dtype == dtypes.bool_):
        raise TypeError(
            message(
                "indexing",
                "indices must be integers or booleans.",
                got=str(aval),
                fix="index.astype(int)",
            )
        )


def _parse_item(
    item: Any, size: int, dynamic: bool, advanced: bool
) -> tuple[Entry, list[Any]]:
    if isinstance(item, slice):
        return _parse_slice(item, size, dynamic)
    if isinstance(item, (int, np.integer)):
        position = int(item) + size if item < 0 else int(item)
        position = min(max(position, 0), max(size - 1, 0))
        if advanced:
            return Picked(), [np.int32(position)]
        if dynamic and size:
            return At(checked=True), [position]
        return Fixed(position), []
    if advanced:
        return Picked(), [item]
    return At(checked=False), [item]


def _parse_slice(item: slice, size: int, dynamic: bool) -> tuple[Entry, list[Any]]:
    try:
        start, stop, step = slice(
            *(None if v is None else operator.index(v) for v in (item.start, item.stop, item.step))
        ).indices(size)
    except TypeError as error:
        if isinstance(error, TypeError) and type(error) is not TypeError:
            raise IndexError(
                message(
                    "indexing",
                    "the bounds of a slice must be known.",
                    got=str(item),
                    fix="lax.dynamic_slice(x, starts, sizes) takes traced starts",
                )
            ) from None
        raise TypeError(
            message("indexing", "the bounds of a slice must be integers.", got=str(item))
        ) from None
    length = len(range(start, stop, step))
    if dynamic and step == 1 and 0 < length < size:
        return From(length), [start]
    return Range(start if length else 0, length, step), []


def _slice(x: Any, template: Template, operands: Sequence[Any]) -> Any:
    """An index without arrays: slices, reversals, and dimensions dropped and made."""
    dims = aval_of(x).shape
    entries = [entry for entry in template if type(entry) is not New]
    if any(type(entry) in (At, From) for entry in entries):
        x = _dynamic_slice(x, entries, operands)
    x = _static_slice(x, entries, dims)
    dropped = [i for i, entry in enumerate(entries) if type(entry) in (At, Fixed)]
    if dropped:
        x = shape.squeeze(x, tuple(dropped))
    made = [
        i
        for i, entry in enumerate(e for e in template if type(e) not in (At, Fixed))
        if type(entry) is New
    ]
    return shape.expand_dims(x, tuple(made)) if made else x


def _dynamic_slice(x: Any, entries: Sequence[Entry], operands: Sequence[Any]) -> Any:
    given = iter(operands)
    starts, sizes = [], []
    for entry, n in zip(entries, aval_of(x).shape, strict=True):
        if type(entry) is At:
            start = next(given)
            starts.append(start if entry.checked else wrapped(start, n))
            sizes.append(1)
        elif type(entry) is From:
            starts.append(next(given))
            sizes.append(entry.size)
        else:
            starts.append(0)
            sizes.append(n)
    return slicing.dynamic_slice(x, starts, sizes, allow_negative_indices=False)


def _static_slice(x: Any, entries: Sequence[Entry], dims: Sequence[int]) -> Any:
    starts, limits, steps, reversed_dims = [], [], [], []
    now = aval_of(x).shape
    for i, (entry, n) in enumerate(zip(entries, dims, strict=True)):
        start, limit, step = 0, now[i], 1
        if type(entry) is Fixed:
            start, limit = entry.position, entry.position + 1
        elif type(entry) is Range:
            start, step = entry.start, abs(entry.step)
            last = entry.start + (entry.size - 1) * entry.step
            limit = max(entry.start, last) + 1 if entry.size else 0
            if entry.step < 0:
                start = last if entry.size else 0
                reversed_dims.append(i)
            if entry.size == n and step == 1:
                start, limit = 0, n
        starts.append(start)
        limits.append(limit)
        steps.append(step)
    if (starts, tuple(limits)) != ([0] * len(now), tuple(now)) or any(s != 1 for s in steps):
        strides = steps if any(s != 1 for s in steps) else None
        x = slicing.slice(x, starts, limits, strides)
    return shape.rev(x, tuple(reversed_dims)) if reversed_dims else x


def wrapped(position: Any, size: int) -> Any:
    """Positions counted from the end where negative."""
    if isinstance(position, (np.ndarray, np.generic)):
        return np.where(position < 0, position + size, position).astype(position.dtype)
    if dtypes.issubdtype(aval_of(position).dtype, np.unsignedinteger):
        return position
    aval = aval_of(position)
    if aval.weak_type:
        position = convert.convert_element_type(position, aval.dtype)
    zero, length = np.zeros((), aval.dtype)[()], np.asarray(size).astype(aval.dtype)[()]
    return choice.select_n(
        binary.lt(position, zero), position, binary.add(position, length)
    )


class Layout(NamedTuple):
    """Where the dimensions of a selection come from.

    Attributes:
        block: the common shape of the index arrays.
        picked: dimensions of the operand that arrays index.
        front: how many slice dimensions stand before the block in the result.
    """

    block: tuple[int, ...]
    picked: tuple[int, ...]
    front: int


def layout_of(template: Template, operands: Sequence[Any]) -> Layout:
    """The layout of an index with arrays.

    Arrays next to each other put their block where they stand; others put it first.

    Raises:
        IndexError: the index arrays have no common shape.
    """
    shapes = [aval_of(v).shape for e, v in _with_operands(template, operands) if type(e) is Picked]
    try:
        block = np.broadcast_shapes(*shapes)
    except ValueError:
        raise IndexError(
            message(
                "indexing",
                "the index arrays have no common shape.",
                got=", ".join(map(str, shapes)),
            )
        ) from None
    entries = [e for e in template if type(e) is not New]
    picked = tuple(i for i, e in enumerate(entries) if type(e) is Picked)
    places = [i for i, e in enumerate(template) if type(e) is Picked]
    adjacent = places[-1] - places[0] + 1 == len(places)
    return Layout(block, picked, picked[0] if adjacent else 0)


def _with_operands(template: Template, operands: Sequence[Any]) -> list[tuple[Entry, Any]]:
    given = iter(operands)
    return [(e, next(given) if type(e) in (At, From, Picked) else None) for e in template]


def _gather(
    x: Any,
    template: Template,
    operands: Sequence[Any],
    *,
    mode: Any = "promise_in_bounds",
    fill_value: Any = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
) -> Any:
    """An index with arrays: slices first, then one gather, then new dimensions."""
    pairs = _with_operands(template, operands)
    entries = [(e, v) for e, v in pairs if type(e) is not New]
    sliced: list[Entry] = [
        Range(0, n, 1) if type(e) is Picked else e
        for (e, _), n in zip(entries, aval_of(x).shape, strict=True)
    ]
    x = _slice(x, tuple(sliced), [v for e, v in entries if type(e) in (At, From)])
    layout = layout_of(template, operands)
    dims = aval_of(x).shape
    block = len(layout.block)
    index = stacked_positions(
        [v for e, v in entries if type(e) is Picked], layout, [dims[d] for d in layout.picked]
    )
    window = [d for d in range(len(dims)) if d not in layout.picked]
    rank = block + len(window)
    offsets = [d for d in range(rank) if not layout.front <= d < layout.front + block]
    x = gathering.gather(
        x,
        index,
        gathering.GatherDimensionNumbers(
            offset_dims=tuple(offsets),
            collapsed_slice_dims=layout.picked,
            start_index_map=layout.picked,
        ),
        tuple(1 if d in layout.picked else n for d, n in enumerate(dims)),
        mode=mode,
        fill_value=fill_value,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
    )
    made = new_dimensions(template, layout)
    return shape.expand_dims(x, made) if made else x


def new_dimensions(template: Template, layout: Layout) -> tuple[int, ...]:
    """Positions of the new dimensions in the result of an index with arrays."""
    places = [i for i, e in enumerate(template) if type(e) is Picked]
    adjacent = places[-1] - places[0] + 1 == len(places)
    made = []
    position = 0 if adjacent else len(layout.block)
    for i, entry in enumerate(template):
        if type(entry) is Picked:
            if adjacent and i == places[0]:
                position += len(layout.block)
        else:
            if type(entry) is New:
                made.append(position)
            position += 1
    return tuple(made)


def stacked_positions(
    arrays: Sequence[Any], layout: Layout, sizes: Sequence[int]
) -> Any:
    """Index arrays, counted from the front, as one array (*block, number of arrays)."""
    columns = []
    dtype = np.result_type(
        np.int32, *(aval_of(a).dtype for a in arrays if aval_of(a).dtype.itemsize > 4)
    )
    for array, size in zip(arrays, sizes, strict=True):
        column = array
        if aval_of(column).dtype.itemsize < 4:
            column = convert.convert_element_type(column, np.dtype(np.int32))
        column = wrapped(column, size)
        if len(arrays) > 1 and aval_of(column).dtype != dtype:
            column = convert.convert_element_type(column, dtype)
        own = aval_of(column).shape
        lead = len(layout.block) - len(own)
        column = shape.broadcast_in_dim(
            column, (*layout.block, 1), tuple(range(lead, len(layout.block)))
        )
        columns.append(column)
    if all(isinstance(c, np.ndarray) for c in columns):
        return np.concatenate(columns, -1)
    return columns[0] if len(columns) == 1 else shape.concatenate(columns, len(layout.block))


def values_of(x: Any) -> np.ndarray[Any, Any]:
    """A concrete array as a NumPy array."""
    return to_numpy(x.buffer) if type(x) is Array else np.asarray(x)
