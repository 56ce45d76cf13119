"""The placement of values: the part of a type that programs for one device do not have.

A `ValuePlacement` says how Explicit mesh axes partition a value, how the value relates to Manual
mesh axes, and which kind of memory holds it.  `ShapedArray.placement` is None for nearly all
values, and the rest of `core` only compares and forwards it.  This module defines what a placement
is, how it is printed, and what it becomes when dimensions are added or removed.  What placements
mean to traces is implemented above `core`: `trace.PlacementSemantics`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol, Self

from minijax.core import meshes
from minijax.core.errors import error
from minijax.core.meshes import names_of
from minijax.core.operators import AxisName

NO_AXES: frozenset[AxisName] = frozenset()


class ManualAxisType(NamedTuple):
    """Which mesh axes a value varies over, is unreduced over, or is reduced over.

    Example:
        >>> def f(x):
        ...     print(jax.typeof(x).manual_axis_type)
        ...     return x
        >>> mesh, P = jax.make_mesh((8,), ("x",)), jax.P
        >>> _ = jax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(jnp.arange(8))
        ManualAxisType(varying=frozenset({'x'}), unreduced=frozenset(), reduced=frozenset())
    """

    varying: frozenset[AxisName] = NO_AXES
    unreduced: frozenset[AxisName] = NO_AXES
    reduced: frozenset[AxisName] = NO_AXES


NOT_MANUAL = ManualAxisType()

_manual_types: dict[tuple[frozenset[AxisName], ...], ManualAxisType] = {NOT_MANUAL: NOT_MANUAL}


def manual_type(
    varying: Iterable[AxisName] = (),
    unreduced: Iterable[AxisName] = (),
    reduced: Iterable[AxisName] = (),
) -> ManualAxisType:
    """Returns the manual axis type with these axes; equal types are the same object.

    Raises:
        ValueError: an axis is in two of the sets.
    """
    v, u, r = key = frozenset(varying), frozenset(unreduced), frozenset(reduced)
    known = _manual_types.get(key)
    if known is not None:
        return known
    twice = (v & u) | (v & r) | (u & r)
    if twice:
        error(
            ValueError,
            "ManualAxisType",
            "an axis must be varying, unreduced, reduced, or none of these.",
            got=f"varying {sorted(v, key=str)}, unreduced {sorted(u, key=str)}, "
            f"reduced {sorted(r, key=str)}: {sorted(twice, key=str)} twice",
        )
    return _manual_types.setdefault(key, ManualAxisType(*key))


class ValuePlacement(NamedTuple):
    """Where a value is.  The placement of a type differs from the default in at least one part.

    Attributes:
        sharding: a `NamedSharding` over an abstract mesh, as `sharding.rules` makes it; None if no
            Explicit mesh axis partitions the value.
        manual_axis_type: how the value relates to Manual mesh axes; interned.
        memory_kind: the kind of memory that holds it; None for the memory of devices.
    """

    sharding: Any = None
    manual_axis_type: ManualAxisType = NOT_MANUAL
    memory_kind: str | None = None

    def with_sharding(self, sharding: Any) -> ValuePlacement | None:
        """Returns this placement with another sharding."""
        return _normalized(sharding, self.manual_axis_type, self.memory_kind)

    def unpartitioned(self) -> ValuePlacement | None:
        """Returns this placement without a sharding."""
        return self if self.sharding is None else self.with_sharding(None)

    def facts(self) -> dict[str, object]:
        """Returns the parts of the placement by name."""
        return {
            "sharding": self.sharding,
            "manual_axis_type": self.manual_axis_type,
            "memory_kind": self.memory_kind,
        }

    def without_dim(self, dim: int) -> ValuePlacement | None:
        """Returns the placement after a dimension is removed; other dimensions keep their axes."""
        if self.sharding is None:
            return self
        entries = tuple(self.sharding.spec)
        return self._with_entries(entries[:dim] + entries[dim + 1 :])

    def with_dim(self, dim: int, entry: object) -> ValuePlacement | None:
        """Returns the placement after a dimension with this entry of the spec is inserted."""
        if self.sharding is None:
            return self
        entries = tuple(self.sharding.spec)
        return self._with_entries((*entries[:dim], entry, *entries[dim:]))

    def _with_entries(self, entries: tuple[object, ...]) -> ValuePlacement | None:
        spec = self.sharding.spec.with_entries(entries)
        is_partitioned = any(map(names_of, spec)) or spec.unreduced or spec.reduced
        return self.with_sharding(self.sharding.with_spec(spec) if is_partitioned else None)

    def of_cotangents(self) -> ValuePlacement | None:
        """Returns the placement of cotangents: unreduced and reduced Manual axes are swapped."""
        varying, unreduced, reduced = self.manual_axis_type
        if not (unreduced or reduced):
            return self
        return with_manual_type(self, manual_type(varying, reduced, unreduced))

    def format_shape(self, shape: tuple[int, ...]) -> str:
        """Formats the shape of a value with this placement, such as `<host>[8@x,2]{V:y}`."""
        varying, unreduced, reduced = self.manual_axis_type
        dims: Iterable[str] = map(str, shape)
        if self.sharding is not None:
            spec = self.sharding.spec
            dims = [
                f"{size}@{meshes.axes_text(names)}" if names else str(size)
                for size, names in zip(shape, spec.dims(len(shape)), strict=True)
            ]
            unreduced, reduced = unreduced | spec.unreduced, reduced | spec.reduced
        axes_by_letter = ("V", varying), ("U", unreduced), ("R", reduced)
        marks = [
            f"{letter}:{meshes.axes_text(sorted(axes, key=str))}"
            for letter, axes in axes_by_letter
            if axes
        ]
        memory = "" if self.memory_kind is None else "<host>"
        return f"{memory}[{','.join(dims)}]" + (f"{{{', '.join(marks)}}}" if marks else "")

    def __reduce__(self) -> tuple[object, ...]:
        return make_placement, tuple(self)


_DEFAULTS = ValuePlacement()


def make_placement(
    sharding: Any = None,
    manual_axis_type: ManualAxisType = NOT_MANUAL,
    memory_kind: str | None = None,
    memory_space: meshes.Space | None = None,
) -> ValuePlacement | None:
    """Returns the placement with these facts, or None if all of them are defaults.

    Args:
        sharding: how Explicit mesh axes partition the value; ignored if its mesh is empty.
        manual_axis_type: how it relates to Manual mesh axes.
        memory_kind: the kind of memory that holds it.
        memory_space: the same as a memory space, which wins over `memory_kind`.
    """
    if memory_space is not None:
        memory_kind = memory_space.special_memory_kind
    if sharding is None and manual_axis_type is NOT_MANUAL and memory_kind is None:
        return None
    if sharding is not None and sharding.mesh.empty:
        sharding = None
    if manual_axis_type is not NOT_MANUAL:
        manual_axis_type = manual_type(*manual_axis_type)
    return _normalized(sharding, manual_axis_type, memory_kind)


def _normalized(
    sharding: Any, manual_axis_type: ManualAxisType, memory_kind: str | None
) -> ValuePlacement | None:
    if sharding is None and memory_kind is None:
        return _manual_only(manual_axis_type)
    return ValuePlacement(sharding, manual_axis_type, memory_kind)


# Each equation in a body of shard_map needs one of a few, so they are made once.
_manual_placements: dict[ManualAxisType, ValuePlacement | None] = {NOT_MANUAL: None}


def _manual_only(manual_axis_type: ManualAxisType) -> ValuePlacement | None:
    try:
        return _manual_placements[manual_axis_type]
    except KeyError:
        placement = ValuePlacement(manual_axis_type=manual_axis_type)
        return _manual_placements.setdefault(manual_axis_type, placement)


def with_manual_type(
    placement: ValuePlacement | None, manual_axis_type: ManualAxisType
) -> ValuePlacement | None:
    """Returns a placement with another manual axis type, which must be interned."""
    if placement is None:
        return _manual_only(manual_axis_type)
    if placement.manual_axis_type is manual_axis_type:
        return placement
    return _normalized(placement.sharding, manual_axis_type, placement.memory_kind)


class PlacedType:
    """What types say about the placement of values; base of `AbstractValue`.

    Attributes:
        split: how Explicit mesh axes partition the value; None if they do not.
        manual_axis_type: how the value relates to Manual mesh axes.
        memory_kind: the kind of memory that holds the value; None for the memory of devices.
    """

    __slots__ = ()

    split: Any = None
    manual_axis_type: ManualAxisType = NOT_MANUAL
    memory_kind: str | None = None

    def with_manual_type(self, kind: ManualAxisType) -> Self:
        """Returns this type with another manual axis type; types without one stay the same."""
        return self


class PlacedArrayType(PlacedType):
    """The placement of arrays, and its parts as users see them; base of `ShapedArray`.

    Attributes:
        placement: where the value is; None for the default, as for nearly all values.
    """

    # The parts have slots of their own because rules read them several times for each equation.
    __slots__ = ("manual_axis_type", "memory_kind", "placement", "split")

    placement: ValuePlacement | None
    ndim: int

    def _set_placement(self, placement: ValuePlacement | None) -> None:
        """Sets the placement of a type that is being made."""
        self.placement = placement
        self.split, self.manual_axis_type, self.memory_kind = placement or _DEFAULTS

    @property
    def sharding(self) -> Any:
        """How Explicit mesh axes partition the value, with an entry for each dimension.

        A `NamedSharding` over an abstract mesh: the current one if the value is not partitioned.
        """
        return self.split if self.split is not None else semantics.replicated_sharding(self.ndim)

    @property
    def memory_space(self) -> meshes.Space:
        """The memory that holds the value: that of devices, or of their host."""
        return meshes.Space.Device if self.memory_kind is None else meshes.Space.Host

    @property
    def vma(self) -> frozenset[AxisName]:
        """The mesh axes over which the value may differ from device to device."""
        return self.manual_axis_type.varying


class TypeSemantics(Protocol):
    """What types ask about placements; see `trace.PlacementSemantics`, which traces ask too."""

    def replicated_sharding(self, ndim: int) -> Any:
        """Returns the sharding of an array that is not partitioned, on the current mesh."""


semantics: TypeSemantics = NotImplemented
"""The implementation, which `hooks.register_placement_semantics` registers."""
