"""Parts of references: `ref.at[idx]` is itself a reference to the elements at an index.

A view holds the reference and a parsed index; to index it is to index the reference once, at the
two indices composed.  It exists in Python only: equations hold the reference and the index.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.lax import reference_indexing
from minijax.lax.reference_indexing import Index, Located, Point, Span


class View:
    """The elements of a reference at an index; reads and writes go to the reference.

    Attributes:
        ref: the reference.
        located: the index, with its operands.
    """

    __slots__ = ("located", "ref")

    def __init__(self, ref: Any, located: Located) -> None:
        self.ref = ref
        self.located = located

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions of the part."""
        return self.located.where.shape

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return aval_of(self.ref).dtype

    @property
    def ndim(self) -> int:
        """The rank of the part."""
        return len(self.shape)

    @property
    def at(self) -> Indexer:
        """Parts of the part."""
        return Indexer(self)

    def within(self, index: Any) -> Located:
        """Where the elements at an index of the part stand in the whole reference."""
        entries, operands = reference_indexing.parse(index, self.shape, "ref.at")
        return _composed(self.located, entries, operands)

    def __getitem__(self, index: Any) -> Any:
        return self.ref[self.within(index)]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.ref[self.within(index)] = value

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"{aval_of(self.ref)}.at[...] of shape {self.shape}"


class Indexer:
    """`ref.at`: index it to get a part of the reference."""

    __slots__ = ("_whole",)

    def __init__(self, whole: Any) -> None:
        self._whole = whole

    def __getitem__(self, index: Any) -> View:
        whole = self._whole
        if isinstance(whole, View):
            return View(whole.ref, whole.within(index))
        found, operands = reference_indexing.parse(index, aval_of(whole).shape, "ref.at")
        return View(whole, Located(found, tuple(operands)))


def resolved(ref: Any, index: Any) -> tuple[Any, Any]:
    """A reference and an index of it; that of a part becomes one of the whole."""
    return (ref.ref, ref.within(index)) if isinstance(ref, View) else (ref, index)


def _composed(outer: Located, inner: Index, inner_operands: Sequence[Any]) -> Located:
    """The index that selects at once what `inner` selects of what `outer` does."""
    if inner.is_whole(outer.where.shape):
        return outer
    if outer.where.has_arrays or (inner.has_arrays and outer.where.points):
        error(
            NotImplementedError,
            "ref.at",
            "arrays of positions select from whole references only, once.",
            got={"shape of the part": outer.where.shape, "of what is taken": inner.shape},
            fix="index the reference once, with all indices",
        )
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
