"""Indices of references: parsed once, then used to read and to write.

Input: what stands in the brackets of `ref[...]`.  Output: an `Index`, which is part of an
equation, and its operands.  The functions below it read and write arrays at an index; they are
what operations on references mean.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import Shape, aval_of
from minijax.core.errors import NonConcreteBooleanIndexError, error
from minijax.core.jaxpr import Literal
from minijax.interpreters.checking import INDEX, is_checking
from minijax.interpreters.structural import broadcast_in_dim
from minijax.lax import binary, gather_numbers, gather_scatter, shape, slicing
from minijax.lax.binary import add, lt
from minijax.lax.creation import convert_element_type
from minijax.lax.gather_numbers import GatherDimensionNumbers, ScatterDimensionNumbers
from minijax.lax.padding import pad
from minijax.runtime.array import Array


class Slice(NamedTuple):
    """`size` positions of one dimension from `start` on, which may be traced.

    Example:
        >>> from minijax.experimental import pallas as pl
        >>> minijax.new_ref(jnp.arange(6))[pl.Slice(1, 3, stride=2)]
        Array([1, 3, 5], dtype=int32)
    """

    start: Any
    size: int
    stride: int = 1


def ds(start: object, size: int | None = None, stride: int | None = None) -> Slice:
    """A slice of known size whose start may be traced, for indices of references.

    Args:
        start: the first position; the size where that is omitted, of a slice from 0 on.
        size: how many positions.
        stride: from one position to the next; 1 by default.

    Example:
        >>> ref = jax.new_ref(jnp.arange(6))
        >>> ref[jax.ds(1, 3)], ref[jax.ds(2)]
        (Array([1, 2, 3], dtype=int32), Array([0, 1], dtype=int32))
    """
    if size is None:
        start, size = 0, start
    return Slice(start, operator.index(size), 1 if stride is None else operator.index(stride))


class Span(NamedTuple):
    """Some positions of a dimension; where `start` is None it is an operand."""

    start: int | None
    size: int
    stride: int

    @property
    def extent(self) -> int:
        """The number of positions from the first to the last."""
        return (self.size - 1) * self.stride + 1 if self.size else 0


class Point(NamedTuple):
    """Positions that an operand gives: an integer, or an array of integers of this shape."""

    shape: Shape


class Index(NamedTuple):
    """An index of a reference, apart from its operands: an entry for each dimension."""

    entries: tuple[Span | Point, ...]

    @property
    def points(self) -> list[int]:
        """The dimensions of which single positions are taken."""
        return [d for d, entry in enumerate(self.entries) if type(entry) is Point]

    @property
    def has_arrays(self) -> bool:
        """Whether positions are given by arrays."""
        return any(type(e) is Point and e.shape != () for e in self.entries)

    @property
    def position(self) -> int:
        """Where the dimensions of the arrays stand in the result: NumPy's rule.

        They stay where they are if nothing stands between them, and come first otherwise.
        """
        points = self.points
        if not points or points[-1] - points[0] >= len(points):
            return 0
        return points[0]

    @property
    def shape(self) -> Shape:
        """The shape of what is selected."""
        spans = [e.size for e in self.entries if type(e) is Span]
        common = np.broadcast_shapes(*(e.shape for e in self.entries if type(e) is Point))
        return (*spans[: self.position], *common, *spans[self.position :])

    def is_whole(self, dims: Shape) -> bool:
        """Whether everything is selected."""
        return all(e == Span(0, n, 1) for e, n in zip(self.entries, dims, strict=True))

    def with_dimension(self, dim: int, size: int) -> Index:
        """The index of arrays with one more dimension, of which everything is selected."""
        return Index((*self.entries[:dim], Span(0, size, 1), *self.entries[dim:]))


class Located(NamedTuple):
    """What stands in brackets where the index was parsed before: for parts of references."""

    where: Index
    operands: tuple[Any, ...]


def whole(dims: Shape) -> Index:
    """The index of everything."""
    return Index(tuple(Span(0, n, 1) for n in dims))


def parse(index: object, dims: Shape, name: str) -> tuple[Index, list[Any]]:
    """An index of an array of shape `dims`, and its operands.

    Raises:
        ValueError: there are too many indices, or one is out of bounds; a step is negative.
        TypeError: an index is not an integer, slice or array of integers.
        NonConcreteBooleanIndexError: it is an array of booleans.
    """
    if type(index) is Located:
        return index.where, list(index.operands)
    items = index if type(index) is tuple else () if index is None else (index,)
    gaps = sum(item is ... for item in items)
    count = len(items) - gaps
    if gaps > 1 or count > len(dims):
        problem = "an index has more than one ..." if gaps > 1 else "there are too many indices"
        error(ValueError, name, f"{problem}.", got={"index": _text(items), "shape": dims})
    filler = [slice(None)] * (len(dims) - count)
    if not gaps:
        items = (*items, ...)
    place = next(i for i, item in enumerate(items) if item is ...)
    entries: list[Span | Point] = []
    operands: list[Any] = []
    for item, n in zip([*items[:place], *filler, *items[place + 1 :]], dims, strict=True):
        entry, operand = _entry(item, n, name)
        entries.append(entry)
        operands += operand
    found = Index(tuple(entries))
    try:
        found.shape  # noqa: B018  the arrays must broadcast together
    except ValueError:
        got = _text(items)
        error(ValueError, name, "the arrays of the index do not fit together.", got=got, cause=None)
    return found, operands


def _text(items: Sequence[Any]) -> str:
    return ", ".join("..." if i is ... else str(getattr(i, "aval", i)) for i in items)


def _entry(item: object, n: int, name: str) -> tuple[Span | Point, list[Any]]:
    if isinstance(item, slice):
        return _span(item, n, name), []
    if hasattr(item, "start") and hasattr(item, "size") and hasattr(item, "stride"):
        return _block(item, n, name)
    if isinstance(item, (int, np.integer)) and not isinstance(item, bool):
        if not -n <= item < n:
            error(ValueError, name, f"the index {item} is out of bounds.", expected=f"below {n}")
        return Point(()), [int(item)]
    aval = aval_of(item) if hasattr(item, "dtype") else None
    if aval is not None and dtypes.issubdtype(aval.dtype, np.bool_):
        problem = "references cannot be indexed by masks."
        fix = "ref[...] = where(mask, new, ref[...])"
        error(NonConcreteBooleanIndexError, name, problem, got=str(aval), fix=fix)
    if aval is None or not dtypes.issubdtype(aval.dtype, np.integer):
        got = f"{item!r} of type {type(item).__name__}" if aval is None else str(aval)
        error(TypeError, name, "an index is no integer, slice or array of integers.", got=got)
    return Point(aval.shape), [item]


def _span(item: slice, n: int, name: str) -> Span:
    try:
        start, stop, step = item.indices(n)
    except TypeError:
        problem = "the bounds of a slice must be known integers."
        fix = "ds(start, size) is a slice of known size from a traced start"
        error(TypeError, name, problem, got=str(item), fix=fix, cause=None)
    if step < 1:
        error(ValueError, name, "slices must have a positive step.", got=str(item))
    return Span(start, len(range(start, stop, step)), step)


def _block(item: Any, n: int, name: str) -> tuple[Span, list[Any]]:
    start, size, stride = item.start, item.size, item.stride
    known = isinstance(start, (int, np.integer))
    span = Span(int(start) if known else None, size, stride)
    if size < 0 or stride < 1 or span.extent > n or (known and not 0 <= start <= n - span.extent):
        error(
            ValueError, name, "a slice is out of bounds.", got=str(item), expected=f"inside 0:{n}"
        )
    return span, [] if known else [start]


def assert_in_bounds(name: str, dims: Shape, index: Index, operands: Sequence[Any]) -> None:
    """Asserts that the operands of an index stay in bounds, where somebody looks for that."""
    if not is_checking(INDEX):
        return
    given = iter(operands)
    for axis, (entry, n) in enumerate(zip(index.entries, dims, strict=True)):
        if isinstance(entry, Point):
            gather_numbers.assert_in_bounds(name, next(given), n, axis)
        elif entry.start is None and entry.size:
            start = next(given)
            last = add(start, aval_of(start).dtype.type(entry.extent - 1))
            gather_numbers.assert_in_bounds(name, start, n, axis, wrap=False)
            gather_numbers.assert_in_bounds(name, last, n, axis, wrap=False)


def read(x: Array, index: Index, operands: Sequence[Any]) -> Any:
    """The elements of an array at an index.  Positions that arrays give are clamped."""
    if index.is_whole(aval_of(x).shape):
        return x
    window = _window(x, index, operands)
    if index.has_arrays:
        numbers, sizes = _numbers(index, aval_of(window).shape)
        points = _positions(index, operands, aval_of(window).shape)
        return gather_scatter.gather(window, points, numbers, sizes, mode="clip")
    return shape.squeeze(window, index.points) if index.points else window


def write(x: Array, value: object, index: Index, operands: Sequence[Any]) -> Any:
    """An array with other elements at an index.  Arrays' positions out of bounds are dropped."""
    if index.is_whole(aval_of(x).shape):
        return value
    return _rewritten(x, value, index, operands, gather_scatter.scatter)


def accumulate(x: Array, value: Any, index: Index, operands: Sequence[Any]) -> Any:
    """An array with something added at an index, once for each time a position occurs."""
    if index.has_arrays:
        return _rewritten(x, value, index, operands, gather_scatter.scatter_add)
    return write(x, add(read(x, index, operands), value), index, operands)


def _rewritten(x: Array, value: Any, index: Index, operands: Sequence[Any], scatter: Any) -> Any:
    if index.has_arrays:
        window = _window(x, index, operands)
        dims = aval_of(window).shape
        numbers, _ = _numbers(index, dims)
        points = _positions(index, operands, dims)
        window = scatter(window, points, value, ScatterDimensionNumbers(*numbers), mode="drop")
    else:
        window = shape.expand_dims(value, index.points) if index.points else value
    strides = [e.stride - 1 if type(e) is Span and e.size > 1 else 0 for e in index.entries]
    starts = _starts(index, operands)
    if any(strides):
        before = slicing.dynamic_slice(x, starts, _extents(index, aval_of(x).shape))
        window = _interleaved(before, window, strides)
    return slicing.dynamic_update_slice(x, window, starts)


def _starts(index: Index, operands: Sequence[Any]) -> list[Any]:
    """Where the window begins: at single positions, or at 0 where there are arrays of them."""
    given = iter(operands)
    starts: list[Any] = []
    for entry in index.entries:
        if type(entry) is Span:
            starts.append(next(given) if entry.start is None else entry.start)
        else:
            position = next(given)
            starts.append(0 if index.has_arrays else position)
    return _of_one_dtype(starts)


def _of_one_dtype(starts: Sequence[Any]) -> list[Any]:
    given = [aval_of(s).dtype for s in starts if not isinstance(s, int)]
    if len(set(given)) < 2:
        return list(starts)
    common = np.result_type(*given)
    return [s if isinstance(s, int) else convert_element_type(s, common) for s in starts]


def _extents(index: Index, dims: Shape) -> Shape:
    return tuple(
        e.extent if type(e) is Span else n if index.has_arrays else 1
        for e, n in zip(index.entries, dims, strict=True)
    )


def _window(x: Array, index: Index, operands: Sequence[Any]) -> Any:
    """The slices of the index; where it has arrays, all positions of their dimensions."""
    dims = aval_of(x).shape
    extents = _extents(index, dims)
    if extents != dims:
        x = slicing.dynamic_slice(x, _starts(index, operands), extents)
    strides = [e.stride if type(e) is Span else 1 for e in index.entries]
    if any(s != 1 for s in strides):
        x = slicing.slice(x, [0] * len(dims), extents, strides)
    return x


def _interleaved(before: Array, window: Array, gaps: Sequence[int]) -> Any:
    """`before` with every (gap + 1)-th element replaced by those of `window`."""
    padding = [(0, 0, gap) for gap in gaps]
    zero = np.zeros((), aval_of(window).dtype)
    spread = pad(window, zero, padding)
    marks = broadcast_in_dim(np.True_, aval_of(window).shape, ())
    return binary.select_n(pad(marks, np.False_, padding), before, spread)


def _numbers(index: Index, dims: Shape) -> tuple[GatherDimensionNumbers, Shape]:
    """How to gather single positions from a window of shape `dims`, and the sizes of slices."""
    points = index.points
    spans = len(dims) - len(points)
    rank = len(index.shape) - spans
    place = index.position
    offsets = tuple(d if d < place else d + rank for d in range(spans))
    sizes = tuple(1 if d in points else n for d, n in enumerate(dims))
    return GatherDimensionNumbers(offsets, tuple(points), tuple(points)), sizes


def _positions(index: Index, operands: Sequence[Any], dims: Shape) -> Any:
    """The positions that arrays give, counted from the front, in one array."""
    given = iter(operands)
    chosen = []
    for entry in index.entries:
        if type(entry) is Point or (type(entry) is Span and entry.start is None):
            operand = next(given)
            chosen += [operand] if type(entry) is Point else []
    points = index.points
    common = np.broadcast_shapes(*(index.entries[d].shape for d in points))  # type: ignore[union-attr]
    columns = []
    for x, d in zip(chosen, points, strict=True):
        wide = convert_element_type(x, np.int32)
        n = np.int32(dims[d])
        wide = binary.select_n(lt(wide, np.int32(0)), wide, add(wide, n))
        rank = aval_of(wide).ndim
        trailing = builtins.range(len(common) - rank, len(common))
        columns.append(broadcast_in_dim(wide, (*common, 1), tuple(trailing)))
    return shape.concatenate(columns, len(common))


def place_text(ref: Any, index: Index, operands: Sequence[Any], name: Callable[[Any], str]) -> str:
    """A variable that is a reference with an index of it, as it is written in Python."""
    if index.is_whole(ref.aval.shape):
        return f"{name(ref)}[...]"
    given = iter(operands)
    texts = []
    for entry, n in zip(index.entries, ref.aval.shape, strict=True):
        if type(entry) is Span and entry.start is not None:
            texts.append(_span_text(entry, n))
            continue
        atom = next(given)
        text = str(atom.value) if type(atom) is Literal else name(atom)
        texts.append(f"{text}:{text}+{entry.extent}" if type(entry) is Span else text)
    return f"{name(ref)}[{','.join(texts)}]"


def _span_text(span: Span, n: int) -> str:
    stop = span.start + span.extent  # type: ignore[operator]
    bounds = f"{span.start or ''}:{stop if stop < n else ''}"
    return bounds if span.stride == 1 else f"{bounds}:{span.stride}"


def composed(outer: Located, inner: Index, inner_operands: Sequence[Any]) -> Located:
    """The index that selects at once what `inner` selects of what `outer` does."""
    if inner.is_whole(outer.where.shape):
        return outer
    if outer.where.has_arrays or (inner.has_arrays and outer.where.points):
        problem = "arrays of positions select from whole references only, once."
        got = {"shape of the part": outer.where.shape, "of what is taken": inner.shape}
        fix = "index the reference once, with all indices"
        error(NotImplementedError, "ref.at", problem, got=got, fix=fix)
    given, within = iter(outer.operands), iter(inner_operands)
    chosen = iter(inner.entries)
    entries: list[Span | Point] = []
    operands: list[Any] = []
    for entry in outer.where.entries:
        if type(entry) is Point:
            entries.append(entry)
            operands.append(next(given))
            continue
        assert type(entry) is Span
        start = next(given) if entry.start is None else entry.start
        part = next(chosen)
        if type(part) is Point:
            position = next(within)
            if isinstance(position, int) and position < 0:
                position += entry.size
            entries.append(part)
            operands.append(start + position * entry.stride)
            continue
        assert type(part) is Span
        offset = next(within) if part.start is None else part.start
        first = start + offset * entry.stride
        known = isinstance(first, int)
        entries.append(Span(first if known else None, part.size, part.stride * entry.stride))
        operands += [] if known else [first]
    return Located(Index(tuple(entries)), tuple(operands))
