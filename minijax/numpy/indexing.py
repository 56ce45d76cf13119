"""`x[index]`: basic, advanced and boolean indexing.

Input: an array and whatever stands in the brackets.  Output: slices, gathers and new dimensions.
An index is first parsed into a template, which is static and hashable, and operands, which are
values.  Outside traces, integers and the starts of slices are operands, so that a loop over them
compiles once; while staging they are constants of the jaxpr.  `updates.py` shares all of this.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np

from minijax.core import config, dtypes, source
from minijax.core.aval import AbstractValue, Shape, aval_of, has_aval
from minijax.core.errors import NonConcreteBooleanIndexError, error
from minijax.core.native import Buffer
from minijax.core.refs import AbstractRef
from minijax.core.trace import NestedTrace, Tracer, current
from minijax.interpreters.checking import INDEX, is_checking
from minijax.interpreters.confinement import ConfiningTrace
from minijax.lax import binary, creation, gather_numbers, gather_scatter, references, shape, slicing
from minijax.lowering import eager
from minijax.numpy.promotion import native_program
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array, explain_deleted

Mode: TypeAlias = str | gather_numbers.GatherScatterMode | None
"""What happens to indices out of range."""

# Entries of a template.  Tuples of different classes compare equal, hence the field `kind`.


class New(NamedTuple):
    """A new dimension of size 1."""

    kind: str = "new"


class Whole(NamedTuple):
    """All positions of a dimension."""

    kind: str = "whole"


class Fixed(NamedTuple):
    """One position, known and in range."""

    position: int
    kind: str = "fixed"


class Range(NamedTuple):
    """`size` positions from `start` in steps of `step`, known and in range."""

    start: int
    size: int
    step: int
    kind: str = "range"


class At(NamedTuple):
    """One position in range, which is an operand."""

    kind: str = "at"


class From(NamedTuple):
    """`size` positions from a start, which is an operand; all are in range."""

    size: int
    kind: str = "from"


class Picked(NamedTuple):
    """Positions given by an operand, an array of integers; negative ones count from the end."""

    kind: str = "picked"


Entry = New | Whole | Fixed | Range | At | From | Picked


class Template(NamedTuple):
    """The static part of a parsed index: one entry for each dimension of the array, and new ones.

    Attributes:
        entries: what is selected.
        adjacent: whether the arrays of the index stand side by side.  Then the dimensions that
            they select stay in their place; otherwise they come first.
    """

    entries: tuple[Entry, ...]
    adjacent: bool


NEW, WHOLE, AT, PICKED = New(), Whole(), At(), Picked()
_WITH_OPERAND = frozenset((At, From, Picked))
_SINGLE = frozenset((Fixed, At, Picked))
_FULL = slice(None)
_PLAIN = frozenset((int, slice, type(None), type(...)))
_NO_POSITIONS = (slice, type(None), type(...))
_INT32 = np.dtype(np.int32)


def is_eager() -> bool:
    """Whether operations are computed at once, be it under differentiation or batching."""
    trace = current.value
    while trace is not eager.EAGER:
        if isinstance(trace, (NestedTrace, ConfiningTrace)):
            trace = trace.parent
        else:
            return False
    return True


@source.is_boundary
def getitem(x: Any, index: Any) -> Array:
    """The elements of `x` at `index`, by NumPy's rules.

    Out-of-range positions are clamped to the nearest one in range.
    Source: mirrors indexing of jax.Array (0.10).

    Raises:
        IndexError: too many indices, a mask that does not fit, or a slice with traced bounds.
        NonConcreteBooleanIndexError: a mask is traced, so the result has no static shape.
        OverflowError: an integer has more than 64 bits.
        TypeError: an index is not an integer, slice, array, None or Ellipsis.
        ValueError: the arrays of the index have no common shape.
    """
    try:
        try:
            if type(x) is Buffer and current.value is eager.EAGER:
                if type(index) is int and (dims := x.aval.shape) and (size := dims[0]):
                    position = index + size if index < 0 else index
                    if 0 <= position < size:
                        return _row_program(x, position)
                    if not config.check_static_indices.value:
                        _int32(index)
                        return _row_program(x, min(max(position, 0), size - 1))
                x, template, operands = parse(x, index, dynamic=True, reads=True)
                return _item_program(x, *operands, template=template)
            return _traced_item(x, index)
        except ValueError as caught:
            explain_deleted(caught, x)
            raise
    except Exception as exception:
        source.filter_frames(exception)
        raise


def _traced_item(x: Any, index: Any) -> Array:
    if type(aval_of(x)) is AbstractRef:
        return references.get(x, index)
    x, template, operands = parse(x, index, dynamic=is_eager(), reads=True)
    is_gather = any(aval_of(v).ndim for v in operands)
    assert_in_bounds("gather" if is_gather else "dynamic_slice", x, template, operands)
    return read(x, *operands, template=template)


def assert_in_bounds(
    name: str, x: Array, template: Template, operands: Sequence[Any], *, wrap: bool = True
) -> None:
    """Asserts that the positions of a parsed index are in bounds, where somebody looks for it."""
    if not is_checking(INDEX):
        return
    own = [pair for pair in with_operands(template, operands) if type(pair[0]) is not New]
    for axis, ((entry, operand), size) in enumerate(zip(own, aval_of(x).shape, strict=True)):
        if type(entry) is Picked:
            gather_numbers.assert_in_bounds(name, operand, size, axis, wrap=wrap)


def read(x: Array, *operands: Any, template: Template) -> Array:
    """The elements that a parsed index selects."""
    if any(aval_of(v).ndim for v in operands):
        return gather(x, template, operands)
    return _box(x, template.entries, operands)


def _row(x: Array, position: ArrayLike) -> Any:
    return slicing.dynamic_index_in_dim(
        x, position, 0, keepdims=False, allow_negative_indices=False
    )


_item_program = native_program(read, ("template",))
_row_program = native_program(_row)


def parse(
    x: Any, index: Any, *, dynamic: bool, reads: bool = False
) -> tuple[Any, Template, list[Any]]:
    """An index as a template and its operands; `x` comes back with dimensions for scalar masks.

    Args:
        x: what is indexed.
        index: what stands in the brackets.
        dynamic: whether known integers become operands.
        reads: whether elements are only read, and known integers may be checked.
    """
    items: Sequence[Any] = index if type(index) is tuple else (index,)
    adjacent = True
    for item in items:
        if type(item) not in _PLAIN:
            items, x, adjacent = _normalized(items, x, inside_tuple=items is index)
            break
    dims = aval_of(x).shape
    items = _completed(items, dims, x)
    entries: list[Entry] = []
    operands: list[Any] = []
    sizes = iter(dims)
    for item in items:
        if item is None:
            entries.append(NEW)
            continue
        size = next(sizes)
        if item is _FULL:
            entries.append(WHOLE)
        elif type(item) is slice:
            entries.append(_parse_slice(item, size, dynamic, operands))
        else:
            entries.append(_parse_position(item, size, dynamic, operands, reads))
    return x, Template(tuple(entries), adjacent), operands


def _completed(items: Sequence[Any], dims: Shape, x: Array) -> Sequence[Any]:
    """The items with full slices for an ellipsis, or behind them."""
    place = None
    used = 0
    for i, item in enumerate(items):
        if item is Ellipsis:
            if place is not None:
                error(IndexError, "indexing", "more than one ellipsis.", got=str(items))
            place = i
        elif item is not None:
            used += 1
    if used > len(dims):
        got = f"{used} {'index' if used == 1 else 'indices'} for an array of type {aval_of(x)}"
        error(IndexError, "indexing", "too many indices.", got=got)
    full = (_FULL,) * (len(dims) - used)
    return (*items, *full) if place is None else (*items[:place], *full, *items[place + 1 :])


def _parse_slice(item: slice, size: int, dynamic: bool, operands: list[Any]) -> Entry:
    try:
        start, stop, step = item.indices(size)
    except (TypeError, ValueError) as error:
        _refuse_slice(item, error)
    if step == 1:
        length = max(stop - start, 0)
        if length and type(size) is not int and (item.stop or 0) <= 0 <= (item.start or 0):
            length = size - (item.start or 0) + (item.stop or 0)  # a symbol stays one
        if length == size:
            return WHOLE
        if dynamic and length:
            operands.append(start)
            return From(length)
        return Range(start if length else 0, length, 1)
    length = len(range(start, stop, step))
    return Range(start if length else 0, length, step if length > 1 else 1)


def _refuse_slice(item: slice, caught: Exception) -> NoReturn:
    if type(caught) is ValueError:
        error(ValueError, "indexing", "a slice has step 0.", got=str(item), cause=None)
    if type(caught) is TypeError:
        problem = "the bounds of a slice must be integers."
        fix = "integers, such as n // 2 in place of n / 2, or int(...)"
        error(TypeError, "indexing", problem, got=str(item), fix=fix, cause=None)
    bounds = {"start": item.start, "stop": item.stop, "step": item.step}
    traced = {name: x for name, x in bounds.items() if isinstance(x, Tracer)}
    problem = "the bounds of a slice must be known: they decide on the shape of the result."
    got = {name: f"{x.aval}, {x.origin()}" for name, x in traced.items()} or str(item)
    fix = "lax.dynamic_slice(x, starts, sizes) takes traced starts; sizes must be static"
    error(IndexError, "indexing", problem, got=got, fix=fix, cause=None)


def _parse_position(item: Any, size: int, dynamic: bool, operands: list[Any], reads: bool) -> Entry:
    if not size and aval_of(item).ndim == 0:
        error(IndexError, "indexing", "a dimension of size 0 has no positions.")
    if type(item) is not int:
        operands.append(item)
        return PICKED
    position = item + size if item < 0 else item
    if not 0 <= position < size:
        if reads and config.check_static_indices.value:
            expected = f"one from {-size} to {size - 1}, because check_static_indices is True"
            error(IndexError, "indexing", "out of bounds.", got=f"index {item}", expected=expected)
        operands.append(_int32(item))
        return PICKED
    if dynamic:
        operands.append(position)
        return AT
    return Fixed(position)


def _int32(number: int) -> np.int32:
    """An integer, or the nearest one in the range of int32: any such index is out of range.

    Raises:
        OverflowError: no array could have such a position.
    """
    if not -(2**63) <= number < 2**63:
        problem = "no dimension is as large as this index."
        error(OverflowError, "indexing", problem, got=hex(number), expected="64 bits at most")
    return np.int32(min(max(number, -(2**31)), 2**31 - 1))


def _normalized(
    items: Sequence[Any], x: Array, *, inside_tuple: bool
) -> tuple[list[Any], Any, bool]:
    """Items checked, with positions for masks; the array; whether arrays are side by side."""
    result: list[Any] = []
    dim = 0
    for place, item in enumerate(items):
        if item is None:
            result.append(item)
        elif item is Ellipsis:
            result.append(item)
            dim = aval_of(x).ndim - sum(map(_consumed, items[place + 1 :]))
        elif isinstance(item, slice):
            result.append(item)
            dim += 1
        else:
            x, found = _checked_positions(x, item, dim, inside_tuple)
            result += found
            dim += len(found)
    places = [i for i, item in enumerate(result) if not isinstance(item, _NO_POSITIONS)]
    adjacent = not places or places[-1] - places[0] + 1 == len(places)
    if any(not isinstance(result[i], int) and aval_of(result[i]).ndim for i in places):
        # Beside arrays, integers are arrays too.
        result = [_int32(item) if type(item) is int else item for item in result]
    return result, x, adjacent


def _consumed(item: object) -> int:
    """How many dimensions of the array an item is for."""
    if item is None:
        return 0
    if has_aval(item) and aval_of(item).dtype == dtypes.bool_:
        return int(aval_of(item).ndim)
    return 1


def _checked_positions(x: Array, item: Any, dim: int, inside_tuple: bool) -> tuple[Any, list[Any]]:
    """A number or an array as positions: of one dimension, or of as many as a mask has."""
    item = _checked(item, inside_tuple)
    if aval_of(item).dtype == dtypes.bool_:
        return _positions_of_mask(x, item, dim)
    return x, [int(item) if isinstance(item, np.integer) else item]


def _checked(item: Any, inside_tuple: bool) -> Any:
    """An item that is a number or an array; lists inside a tuple become arrays."""
    if isinstance(item, (list, tuple)) and inside_tuple:
        item = np.asarray(item) if len(item) else np.zeros(0, np.int32)
    if isinstance(item, (list, tuple)):
        error(
            TypeError,
            "indexing",
            "a list is no index.",
            got=repr(item),
            fix="x[numpy.array(index)] for an array of positions, x[tuple(index)] for one "
            "index a dimension",
        )
    if isinstance(item, str):
        fix = "an integer; only dictionaries have keys"
        error(TypeError, "indexing", "strings are no indices.", got=repr(item), fix=fix)
    if not has_aval(item):
        got = f"{item!r} of type {type(item).__name__}"
        expected = "integers, slices, arrays, None or Ellipsis"
        error(IndexError, "indexing", "not an index.", got=got, expected=expected)
    aval = aval_of(item)
    if not (dtypes.issubdtype(aval.dtype, np.integer) or aval.dtype == dtypes.bool_):
        problem = "indices must be integers or booleans."
        fix = "index.astype(int)" if aval.ndim else "an integer, such as n // 2 in place of n / 2"
        got = repr(item) if isinstance(item, float) else str(aval)
        error(TypeError, "indexing", problem, got=got, fix=fix)
    return item


def _positions_of_mask(x: Array, mask: Array, dim: int) -> tuple[Any, list[Any]]:
    """The positions where a mask over dimensions from `dim` is true, one array for each."""
    known = mask.concrete() if isinstance(mask, Tracer) else mask
    if known is None:
        problem = "a traced boolean mask selects an unknown number of elements."
        fix = "minijax.numpy.where(mask, x, y), or nonzero and unique with size="
        got = f"{mask.aval}, {mask.origin()}"
        error(NonConcreteBooleanIndexError, "indexing", problem, got=got, fix=fix)
    host = np.asarray(known)
    if host.ndim == 0:
        # A scalar mask adds a dimension, of which it keeps all or nothing.
        return shape.expand_dims(x, (dim,)), [np.zeros(int(host), np.int32)]
    check_mask(host.shape, aval_of(x), dim)
    return x, [positions.astype(np.int32) for positions in np.nonzero(host)]


def check_mask(dims: Shape, aval: AbstractValue, dim: int = 0) -> None:
    """Refuses a mask of shape `dims` that does not fit the dimensions from `dim` of what it masks.

    Raises:
        IndexError: it does not.
    """
    expected = aval.shape[dim : dim + len(dims)]
    # A mask without elements fits where its other sizes do: it selects nothing.
    is_empty = 0 in dims and len(expected) == len(dims)
    fits = is_empty and all(n in (0, size) for n, size in zip(dims, expected, strict=True))
    if dims != expected and not fits:
        problem = "a boolean mask does not have the shape of what it masks."
        got = f"a mask of shape {dims} for dimensions from {dim} of {aval}"
        error(IndexError, "indexing", problem, got=got, expected=f"shape {expected}")


def _box(x: Array, entries: Sequence[Entry], operands: Sequence[Any]) -> Any:
    """An index without arrays: a box, in which some dimensions are reversed, dropped or made."""
    own = [entry for entry in entries if type(entry) is not New]
    x = _dynamic_box(x, own, operands) if operands else _static_box(x, own)
    flipped = [d for d, e in enumerate(own) if type(e) is Range and e.step < 0]
    x = shape.rev(x, flipped) if flipped else x
    dropped = [d for d, e in enumerate(own) if type(e) in _SINGLE]
    x = shape.squeeze(x, dropped) if dropped else x
    if len(own) == len(entries):
        return x
    kept = [e for e in entries if type(e) not in _SINGLE]
    return shape.expand_dims(x, [d for d, e in enumerate(kept) if type(e) is New])


def _static_box(x: Array, entries: Sequence[Entry]) -> Any:
    """The slice that holds the selected positions, one entry for each dimension."""
    dims = aval_of(x).shape
    starts, limits, steps = [0] * len(dims), list(dims), [1] * len(dims)
    for d, entry in enumerate(entries):
        if type(entry) is Fixed:
            starts[d], limits[d] = entry.position, entry.position + 1
        elif type(entry) is Range:
            start, size, step, _ = entry
            if step > 0:
                starts[d], limits[d], steps[d] = start, min(start + size * step, dims[d]), step
            else:
                starts[d], limits[d], steps[d] = start + (size - 1) * step, start + 1, -step
    if steps.count(1) == len(steps):
        is_whole = tuple(limits) == dims and not any(starts)
        return x if is_whole else slicing.slice(x, starts, limits)
    return slicing.slice(x, starts, limits, steps)


def _dynamic_box(x: Array, entries: Sequence[Entry], operands: Sequence[Any]) -> Any:
    """As `_static_box`, where some positions are operands."""
    dims = aval_of(x).shape
    given = iter(operands)
    starts: list[Any] = [0] * len(dims)
    sizes = list(dims)
    strided: list[Entry] = [WHOLE] * len(dims)
    for d, entry in enumerate(entries):
        if type(entry) is Picked:
            start = wrapped(next(given), dims[d])
            # What is known is clamped here, as dynamic_slice clamps what is not.
            starts[d], sizes[d] = start.clip(0) if isinstance(start, np.generic) else start, 1
        elif type(entry) is At:
            starts[d], sizes[d] = next(given), 1
        elif type(entry) is From:
            starts[d], sizes[d] = next(given), entry.size
        elif type(entry) is Fixed:
            starts[d], sizes[d] = entry.position, 1
        elif type(entry) is Range and entry.step == 1:
            starts[d], sizes[d] = entry.start, entry.size
        else:
            strided[d] = entry
    if len({positions_dtype(start) for start in starts if type(start) is not int}) > 1:
        starts = [creation.convert_element_type(start, np.int64) for start in starts]
    x = slicing.dynamic_slice(x, starts, sizes, allow_negative_indices=False)
    return _static_box(x, strided)


def wrapped(positions: Any, size: int) -> Any:
    """Positions of int32, or int64 if they are so wide, counted from the end where negative."""
    if isinstance(positions, (np.ndarray, np.generic)):
        host = np.asarray(_below_wrapping(positions, np.minimum)).astype(np.int64)
        host = np.where(host < 0, host + size, host)
        return host.astype(positions_dtype(positions))[()]
    unsigned = dtypes.issubdtype(aval_of(positions).dtype, np.unsignedinteger)
    positions = as_positions(positions)
    if unsigned:
        return positions
    kind = aval_of(positions).dtype.type
    negative = binary.lt(positions, kind(0))
    return binary.select_n(negative, positions, binary.add(positions, kind(size)))


def positions_dtype(positions: Any) -> np.dtype[Any]:
    """The dtype in which positions are computed with."""
    return np.dtype(np.int64) if aval_of(positions).dtype.itemsize == 8 else _INT32


def as_positions(positions: ArrayLike) -> Array:
    """Positions as they are, in a dtype wide enough for any dimension."""
    positions = _below_wrapping(positions, binary.min)
    return creation.convert_element_type(positions, positions_dtype(positions))


def _below_wrapping(positions: Any, minimum: Callable[[Any, Any], Any]) -> Any:
    """Positions, of which none becomes negative: those that large are out of range anyway."""
    given, wanted = aval_of(positions).dtype, positions_dtype(positions)
    if not dtypes.issubdtype(given, np.unsignedinteger) or given.itemsize < wanted.itemsize:
        return positions
    return minimum(positions, given.type(dtypes.iinfo(wanted).max))


class SelectionDims(NamedTuple):
    """The dimensions of the result of an indexing operation.

    Attributes:
        block: the common shape of the index arrays, which the result has as adjacent dimensions.
        front: how many dimensions of the indexed array precede the block.
        made: the positions of new dimensions (`None` in the index).
    """

    block: Shape
    front: int
    made: Shape


def selection_dims(template: Template, operands: Sequence[Any]) -> SelectionDims:
    """Returns the dimensions that indexing by a parsed index results in.

    Raises:
        ValueError: the index arrays have no common shape.
    """
    pairs = with_operands(template, operands)
    shapes = [aval_of(value).shape for entry, value in pairs if type(entry) is Picked]
    try:
        block = np.broadcast_shapes(*shapes)
    except ValueError:
        problem = "the index arrays have no common shape."
        error(ValueError, "indexing", problem, got=", ".join(map(str, shapes)), cause=None)
    order = [] if template.adjacent else ["block"] * len(block)
    for entry in template.entries:
        if type(entry) not in _SINGLE:
            order.append(entry.kind)
        elif type(entry) is Picked and "block" not in order:
            order += ["block"] * len(block)
    made = tuple(d for d, kind in enumerate(order) if kind == "new")
    own = [kind for kind in order if kind != "new"]
    return SelectionDims(block, own.index("block") if block else 0, made)


def with_operands(template: Template, operands: Sequence[Any]) -> list[tuple[Entry, Any]]:
    """Each entry with its operand, or None."""
    given = iter(operands)
    return [(e, next(given) if type(e) in _WITH_OPERAND else None) for e in template.entries]


class Windows(NamedTuple):
    """What a gather reads and a scatter writes: a window of an array for each vector of starts.

    Attributes:
        starts: int[*lead, n].
        indexed: the n dimensions of the array that the starts have components for.
        collapsed: the dimensions of which each window holds one position.
        sizes: the window's size in each dimension of the array.
        offsets: the dimensions of the selection that run over windows; the others are the lead.
        shape: of the selection, without new dimensions.
        made: where the new dimensions stand.
    """

    starts: Any
    indexed: Shape
    collapsed: Shape
    sizes: Shape
    offsets: Shape
    shape: Shape
    made: Shape


def windows_of(
    dims: Shape, template: Template, operands: Sequence[Any], *, wrap: bool = True
) -> Windows:
    """The windows that a parsed index selects from an array of shape `dims`."""
    own = [pair for pair in with_operands(template, operands) if type(pair[0]) is not New]
    block, front, made = selection_dims(template, operands)
    counts = [_count(entry, n) for (entry, _), n in zip(own, dims, strict=True)]
    strided = {d for d, (e, _) in enumerate(own) if type(e) is Range and e.step != 1}
    kept = [d for d, (e, _) in enumerate(own) if type(e) not in _SINGLE]
    # Dimensions of the selection: those of the array by number, those of the block as ~number.
    order = [*kept[:front], *(~i for i in range(len(block))), *kept[front:]]
    extents = [block[~o] if o < 0 else counts[o] for o in order]
    lead = [o for o in order if o < 0 or o in strided]
    columns = []
    for d, (entry, operand) in enumerate(own):
        positions = _positions(entry, operand, dims[d], wrap=wrap)
        if positions is not None:
            along = range(len(block) - aval_of(positions).ndim, len(block))
            places = [lead.index(o) for o in ([d] if d in strided else map(operator.inv, along))]
            columns.append((d, positions, places))
    return Windows(
        starts=_stacked(
            [(positions, places) for _, positions, places in columns],
            tuple(n for n, o in zip(extents, order, strict=True) if o in lead),
        ),
        indexed=tuple(d for d, _, _ in columns),
        collapsed=tuple(d for d in range(len(own)) if d in strided or d not in kept),
        sizes=tuple(1 if d in strided else n for d, n in enumerate(counts)),
        offsets=tuple(i for i, o in enumerate(order) if o not in lead),
        shape=tuple(extents),
        made=made,
    )


def _count(entry: Entry, size: int) -> int:
    """How many positions of a dimension an entry selects; 1 for an array, which has its own."""
    if isinstance(entry, (Range, From)):
        return entry.size
    return size if type(entry) is Whole else 1


def _positions(entry: Entry, operand: ArrayLike | None, size: int, *, wrap: bool) -> Any:
    """Where windows start along a dimension; None if they hold all of it."""
    if type(entry) is Fixed:
        return np.int32(entry.position)
    if type(entry) is Range:
        if entry.step == 1:
            return np.int32(entry.start)
        return (entry.start + entry.step * np.arange(entry.size)).astype(np.int32)
    if type(entry) is Picked and wrap:
        return wrapped(operand, size)
    return None if operand is None else as_positions(operand)


def _stacked(columns: Sequence[tuple[Any, Sequence[int]]], lead: Shape) -> Any:
    """Positions as the components of vectors int[*lead, n]; each runs along some of the lead."""
    dtype = np.result_type(_INT32, *(positions_dtype(value) for value, _ in columns))
    parts = [_spread(value, dtype, lead, places) for value, places in columns]
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate([np.zeros((*lead, 0), dtype), *parts], -1)
    return parts[0] if len(parts) == 1 else shape.concatenate(parts, len(lead))


def _spread(value: ArrayLike, dtype: np.dtype[Any], lead: Shape, places: Sequence[int]) -> Any:
    """Positions as one component int[*lead, 1]; those known by arrays stay on the host."""
    if isinstance(value, np.ndarray):
        others = [d for d in range(len(lead) + 1) if d not in places]
        return np.broadcast_to(np.expand_dims(value, others), (*lead, 1)).astype(dtype)
    if isinstance(value, np.generic):
        return shape.broadcast_in_dim(value.astype(dtype), (*lead, 1), ())
    return shape.broadcast_in_dim(creation.convert_element_type(value, dtype), (*lead, 1), places)


def gather(
    x: Array,
    template: Template,
    operands: Sequence[Any],
    *,
    mode: Mode = "promise_in_bounds",
    fill_value: ArrayLike | None = None,
    wrap: bool = True,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
) -> Array:
    """The elements that a parsed index selects, by one gather."""
    windows = windows_of(aval_of(x).shape, template, operands, wrap=wrap)
    if 0 in windows.shape:
        x = creation.full_like(x, 0, shape=windows.shape)
    else:
        numbers = gather_numbers.GatherDimensionNumbers(
            offset_dims=windows.offsets,
            collapsed_slice_dims=windows.collapsed,
            start_index_map=windows.indexed,
        )
        x = gather_scatter.gather(
            x,
            windows.starts,
            numbers,
            windows.sizes,
            mode=mode,
            fill_value=fill_value,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
        )
    return shape.expand_dims(x, windows.made) if windows.made else x
