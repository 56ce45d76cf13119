"""`PartitionSpec`: which mesh axes each dimension of an array is split over.

Input: names of mesh axes.  Output: the part of placements, and of types, that speaks of names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from minijax.core.errors import error

NO_NAMES: frozenset[Any] = frozenset()


class UnconstrainedType:
    """The type of `PartitionSpec.UNCONSTRAINED`: the compiler decides about the dimension."""

    _only: ClassVar[UnconstrainedType | None] = None

    def __new__(cls) -> UnconstrainedType:
        if cls._only is None:
            cls._only = super().__new__(cls)
        return cls._only

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> tuple[Any, ...]:
        return UnconstrainedType, ()


UNCONSTRAINED = UnconstrainedType()


def _canonical(entry: Any) -> Any:
    if isinstance(entry, (tuple, list)):
        names = tuple(entry)
        return None if not names else names[0] if len(names) == 1 else names
    return entry


class PartitionSpec:
    """The mesh axes that each dimension is split over, one entry for each dimension.

    An entry is None (not split), the name of a mesh axis, a tuple of names (the first is the
    outermost), or `PartitionSpec.UNCONSTRAINED`.  Dimensions without an entry are not split.

    Args:
        *entries: one for each dimension, from the first on.
        unreduced: mesh axes over which the devices hold summands of the value.
        reduced: mesh axes over which the value is one sum, whose cotangent is unreduced.

    Source: mirrors jax.sharding.PartitionSpec.

    Raises:
        ValueError: an axis is both unreduced and reduced, or one of these and in an entry.

    Example:
        >>> spec = jax.P("data", None, ("x", "y"))
        >>> spec[2], jax.P("data") == jax.P("data", None)
        (('x', 'y'), False)
    """

    __slots__ = ("_entries", "_hash", "reduced", "unreduced")

    UNCONSTRAINED: ClassVar[UnconstrainedType] = UNCONSTRAINED
    _entries: tuple[Any, ...]
    unreduced: frozenset[Any]
    reduced: frozenset[Any]

    def __init__(
        self,
        *entries: Any,
        unreduced: Iterable[Any] = NO_NAMES,
        reduced: Iterable[Any] = NO_NAMES,
    ) -> None:
        self._entries = tuple(map(_canonical, entries))
        self.unreduced = _names(unreduced, "unreduced")
        self.reduced = _names(reduced, "reduced")
        self._hash = hash((self._entries, self.unreduced, self.reduced))
        if self.unreduced or self.reduced:
            self._check_sets()

    def _check_sets(self) -> None:
        used = set(self.names())
        for both, where in (
            (self.unreduced & self.reduced, "both unreduced and reduced"),
            (self.unreduced & used, "both unreduced and in an entry"),
            (self.reduced & used, "both reduced and in an entry"),
        ):
            if both:
                error(
                    ValueError,
                    "PartitionSpec",
                    f"axes are {where}: {sorted(map(str, both))}.",
                    got=repr(self),
                    expected="each axis in one place only",
                )

    @property
    def partitions(self) -> tuple[Any, ...]:
        """The entries."""
        return self._entries

    def names(self) -> Iterator[Any]:
        """The mesh axes of the entries, from the first dimension on."""
        for entry in self._entries:
            yield from names_of(entry)

    def dims(self, ndim: int) -> tuple[tuple[Any, ...], ...]:
        """For each of `ndim` dimensions the axes it is split over; none for UNCONSTRAINED."""
        found = tuple(map(names_of, self._entries))
        return found + ((),) * (ndim - len(found))

    def padded(self, ndim: int) -> PartitionSpec:
        """The same with an entry for each of `ndim` dimensions."""
        missing = ndim - len(self._entries)
        return self.with_entries((*self._entries, *[None] * missing)) if missing > 0 else self

    def with_entries(self, entries: Iterable[Any]) -> PartitionSpec:
        """The same sets, with other entries."""
        return PartitionSpec(*entries, unreduced=self.unreduced, reduced=self.reduced)

    def inserted(self, dim: int, entry: Any = None) -> PartitionSpec:
        """The spec of an array with one more dimension, at `dim`."""
        entries = self.padded(dim)._entries
        return self.with_entries([*entries[:dim], entry, *entries[dim:]])

    def update(self, **changes: Any) -> PartitionSpec:
        """This spec with some of `partitions`, `unreduced` and `reduced` replaced."""
        entries = changes.pop("partitions", self._entries)
        sets = {"unreduced": self.unreduced, "reduced": self.reduced, **changes}
        return PartitionSpec(*entries, **sets)

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._entries)

    def __getitem__(self, index: Any) -> Any:
        return self._entries[index]

    def index(self, entry: Any) -> int:
        """The first dimension with this entry."""
        return self._entries.index(_canonical(entry))

    def count(self, entry: Any) -> int:
        """How many dimensions have this entry."""
        return self._entries.count(_canonical(entry))

    def __add__(self, other: Any) -> PartitionSpec:
        if isinstance(other, PartitionSpec):
            return PartitionSpec(
                *self._entries,
                *other,
                unreduced=self.unreduced | other.unreduced,
                reduced=self.reduced | other.reduced,
            )
        if isinstance(other, tuple):
            return self.with_entries((*self._entries, *other))
        return NotImplemented

    def __radd__(self, other: Any) -> PartitionSpec:
        if isinstance(other, tuple):
            return self.with_entries((*other, *self._entries))
        return NotImplemented

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, PartitionSpec) and (
            (self._entries, self.unreduced, self.reduced)
            == (other._entries, other.unreduced, other.reduced)
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        parts = [repr(e) for e in self._entries]
        for name, axes in (("unreduced", self.unreduced), ("reduced", self.reduced)):
            if axes:
                parts.append(f"{name}={{{', '.join(sorted(map(repr, axes)))}}}")
        # As a tuple of one is written, so that entries and sets are told apart at a glance.
        comma = "," if len(self._entries) == len(parts) == 1 else ""
        return f"P({', '.join(parts)}{comma})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self._entries, self.unreduced, self.reduced)


def _unpickle(entries: Sequence[Any], unreduced: Any, reduced: Any) -> PartitionSpec:
    return PartitionSpec(*entries, unreduced=unreduced, reduced=reduced)


def _names(axes: Any, name: str) -> frozenset[Any]:
    if isinstance(axes, str):
        error(
            TypeError,
            "PartitionSpec",
            f"{name} must be a set of names.",
            got=repr(axes),
            fix=f"{name}={{{axes!r}}}",
        )
    found = frozenset(axes) if axes else NO_NAMES
    if None in found:
        error(
            ValueError,
            "PartitionSpec",
            f"{name} must not contain None.",
            got=f"{name}={set(found)}",
            expected="names of mesh axes",
        )
    return found


def axes_text(names: Sequence[Any]) -> str:
    """One name of an axis, or several, as types show them: `x` or `(x,y)`."""
    return str(names[0]) if len(names) == 1 else f"({','.join(map(str, names))})"


def names_of(entry: Any) -> tuple[Any, ...]:
    """The mesh axes that one entry of a spec names."""
    if entry is None or entry is UNCONSTRAINED:
        return ()
    return entry if isinstance(entry, tuple) else (entry,)
