"""`NamedSharding`, `SingleDeviceSharding` and `GSPMDSharding`: how an array is split over devices.

A `NamedSharding` is a mesh, and a spec that says which of its axes split which dimensions.  A
`SingleDeviceSharding` puts a whole array on one device.  A `GSPMDSharding` is a list of devices and
XLA's own description of the tiling; two such descriptions may be the same in spite of their
notation, and `are_hlo_shardings_equal` tells.  Two marks stand where a sharding may be missing:
`UNSPECIFIED` where nothing was said, `AUTO` where the compiler shall decide.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from jaxlib import _jax

from minijax.core import source
from minijax.core.aval import Shape
from minijax.core.cache import Cache, cached
from minijax.core.errors import DuplicateSpecError, error
from minijax.core.meshes import (
    MEMORY_KINDS,
    UNCONSTRAINED,
    AbstractMesh,
    AxisType,
    MeshAxes,
    PartitionSpec,
    names_text,
)
from minijax.core.native import Device
from minijax.core.sequences import ByValue, Mark
from minijax.sharding import hlo
from minijax.sharding.base import Index, Sharding
from minijax.sharding.hlo import Tiling
from minijax.sharding.mesh import DeviceList, Mesh, check_memory_kind, device_list


class UnspecifiedValue(Mark):
    """The type of `UNSPECIFIED`."""

    text = "UnspecifiedValue"


UNSPECIFIED = UnspecifiedValue()
"""Nothing was said about a placement: that of the argument, or the compiler's choice."""


def is_unspecified(x: object) -> bool:
    """Whether nothing was said about a placement."""
    return x is UNSPECIFIED


class AUTO(ByValue):
    """A mark: the compiler shall split the value over this mesh as it finds best.

    Args:
        mesh: a mesh with devices.
    """

    __slots__ = ("mesh",)

    def __init__(self, mesh: object) -> None:
        self.mesh = mesh

    def __repr__(self) -> str:
        return f"AUTO({self.mesh})"


def is_auto(x: object) -> bool:
    """Whether the compiler shall decide about a placement."""
    return isinstance(x, AUTO)


@source.boundaries("__init__", "with_memory_kind", "update")
class NamedSharding(Sharding):
    """An array split over a mesh as a spec says.

    Args:
        mesh: a mesh with devices, or an abstract one where only names and sizes matter.
        spec: which mesh axes split which dimension.
        memory_kind: a kind of memory of the devices; None for their default.

    Raises:
        TypeError: `mesh` is not a mesh, or `spec` is not a `PartitionSpec`.
        ValueError: the spec names an axis that the mesh does not have, or one twice, or the
            devices have no such memory.

    Example:
        >>> spread = jax.NamedSharding(jax.make_mesh((4, 2), ("x", "y")), jax.P("x", "y"))
        >>> spread.shard_shape((8, 8))
        (2, 4)
        >>> spread.devices_indices_map((8, 8))[jax.devices()[3]]
        (slice(2, 4, None), slice(4, 8, None))
    """

    __slots__ = ("__weakref__", "_hash", "_memory_kind", "mesh", "spec")

    mesh: Any
    spec: PartitionSpec

    def __init__(self, mesh: Any, spec: PartitionSpec, memory_kind: str | None = None) -> None:
        _check(mesh, spec)
        self.mesh = mesh
        self.spec = spec
        kind = None if memory_kind is None else _special_memory_kind(mesh, memory_kind)
        self._memory_kind = kind
        self._hash = hash((mesh, spec, kind))

    @property
    def memory_kind(self) -> str | None:
        if self._memory_kind is None and isinstance(self.mesh, Mesh):
            return self.mesh.device_list.default_memory_kind
        return self._memory_kind

    @property
    def devices(self) -> DeviceList:
        return self._mesh_of_devices.device_list

    def with_memory_kind(self, kind: str | None) -> NamedSharding:
        return NamedSharding(self.mesh, self.spec, memory_kind=kind)

    def with_spec(self, spec: PartitionSpec) -> NamedSharding:
        """The same mesh with another spec, or entries of one."""
        if not isinstance(spec, PartitionSpec):
            spec = PartitionSpec(*spec)
        return NamedSharding(self.mesh, spec, memory_kind=self._memory_kind)

    def update(self, **changes: Any) -> NamedSharding:
        """This placement with some of `mesh`, `spec` and `memory_kind` replaced."""
        facts = {"mesh": self.mesh, "spec": self.spec, "memory_kind": self._memory_kind}
        facts |= changes
        if not isinstance(facts["spec"], PartitionSpec):
            facts["spec"] = PartitionSpec(*facts["spec"])
        return NamedSharding(**facts)

    @property
    def abstract(self) -> NamedSharding:
        """The same placement on any devices."""
        if is_abstract(self):
            return self
        return NamedSharding(self.mesh.abstract_mesh, self.spec, memory_kind=self._memory_kind)

    def factors(self, ndim: int) -> tuple[int, ...]:
        sizes = self.mesh.shape
        return tuple(math.prod(sizes[n] for n in names) for names in self.spec.dims(ndim))

    @property
    def device_assignment(self) -> tuple[Any, ...]:
        return self._mesh_of_devices.flat_devices

    @property
    def num_devices(self) -> int:
        return int(self.mesh.size)

    @property
    def _mesh_of_devices(self) -> Mesh:
        if isinstance(self.mesh, Mesh):
            return self.mesh
        problem = "has no devices: its mesh is abstract."
        error(ValueError, "NamedSharding", problem, got=str(self), fix="use a Mesh with devices")

    def tiling(self, ndim: int) -> Tiling:
        return _tiling(self.mesh, self.spec.dims(ndim))

    def to_hlo(self, ndim: int) -> Any:
        return hlo.of_spec(self.mesh, self.spec.dims(ndim), self.spec.unreduced)

    @property
    def is_fully_replicated(self) -> bool:
        return not self.spec.unreduced and all(
            self.mesh.axis_size(name) == 1 for name in self.spec.names()
        )

    @property
    def replicated_axes(self) -> frozenset[Any]:
        """The mesh axes along which devices hold the same."""
        spec = self.spec
        return frozenset(self.mesh.axis_names) - {*spec.names(), *spec.unreduced, *spec.reduced}

    def check_rank(self, ndim: int) -> None:
        if len(self.spec) > ndim:
            problem = "the spec has more entries than the array has dimensions."
            got = f"{self.spec} for an array of rank {ndim}"
            expected = f"at most {ndim} entries"
            fix = f"one entry for each dimension, such as {PartitionSpec(*self.spec[:ndim])}"
            error(ValueError, "NamedSharding", problem, got=got, expected=expected, fix=fix)

    def is_equivalent_to(self, other: object, ndim: int) -> bool:
        if isinstance(other, NamedSharding) and self.mesh is other.mesh:
            return (
                self.spec.dims(ndim) == other.spec.dims(ndim)
                and self.spec.unreduced == other.spec.unreduced
                and self._memory_kind == other._memory_kind
            )
        return super().is_equivalent_to(other, ndim)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, NamedSharding)
            and self.mesh is other.mesh
            and self.spec == other.spec
            and self._memory_kind == other._memory_kind
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"NamedSharding(mesh={self.mesh}, spec={self.spec}{self._memory_text()})"

    def __reduce__(self) -> tuple[Any, ...]:
        return NamedSharding, (self.mesh, self.spec, self._memory_kind)


_named = Cache(
    "named shardings",
    "named shardings, and that they were found sound",
    key="mesh, spec, memory kind",
    most=4096,
    emptied=True,
)


@_named.function
def named(mesh: object, spec: PartitionSpec, memory_kind: str | None = None) -> NamedSharding:
    """The placement of a mesh and a spec; the same object each time."""
    return NamedSharding(mesh, spec, memory_kind=memory_kind)


@_named.function
def _check(mesh: object, spec: PartitionSpec) -> None:
    if not isinstance(mesh, MeshAxes):
        problem = "the first argument must be a mesh."
        got = f"{mesh!r} of type {type(mesh).__name__}"
        error(TypeError, "NamedSharding", problem, got=got, expected="a Mesh or an AbstractMesh")
    if not isinstance(spec, PartitionSpec):
        error(
            TypeError,
            "NamedSharding",
            "the second argument must be a PartitionSpec.",
            got=f"{spec!r} of type {type(spec).__name__}",
            fix=f"PartitionSpec{_as_entries(spec)}",
        )
    seen: set[Any] = set()
    for name in (*spec.names(), *spec.unreduced, *spec.reduced):
        if name not in mesh.axis_names:
            problem = f"the spec names {name!r}, which is no axis of the mesh."
            expected = f"names among {names_text(mesh.axis_names)}"
            error(ValueError, "NamedSharding", problem, got=f"{spec} on {mesh}", expected=expected)
        if name in seen:
            problem = f"the spec names {name!r} twice."
            expected = "each mesh axis at most once: it can split one dimension only"
            error(DuplicateSpecError, "NamedSharding", problem, got=str(spec), expected=expected)
        seen.add(name)
    for axes, what in ((spec.unreduced, "unreduced"), (spec.reduced, "reduced")):
        hidden = [name for name in axes if mesh.axis_type(name) is not AxisType.Explicit]
        if hidden:
            problem = f"only axes of type Explicit can be {what}, and these are not: {hidden}."
            fix = "make the mesh with axis_types=AxisType.Explicit"
            error(ValueError, "NamedSharding", problem, got=f"{spec} on {mesh}", fix=fix)


@cached("tilings", key="mesh, and the axes that split each dimension", most=1024, emptied=True)
def _tiling(mesh: Mesh, dims: tuple[tuple[Any, ...], ...]) -> Tiling:
    """Which part of an array each device holds."""
    places = dict(
        zip(
            mesh.axis_names,
            np.indices(mesh.axis_sizes).reshape(len(mesh.axis_sizes), mesh.size),
            strict=True,
        )
    )
    coordinates = np.zeros((mesh.size, len(dims)), np.int64)
    factors = []
    for dim, names in enumerate(dims):
        for name in names:
            coordinates[:, dim] = coordinates[:, dim] * mesh.axis_size(name) + places[name]
        factors.append(math.prod(mesh.axis_size(name) for name in names))
    coordinates.flags.writeable = False
    return Tiling(tuple(factors), coordinates)


def _as_entries(spec: PartitionSpec) -> str:
    """What a user meant by something else in place of a spec, as arguments of a call."""
    if isinstance(spec, (tuple, list)):
        return f"({', '.join(map(repr, spec))})"
    return "()" if spec is None else f"({spec!r})" if isinstance(spec, str) else "('x', None)"


def _special_memory_kind(mesh: MeshAxes, kind: str) -> str | None:
    if isinstance(mesh, Mesh):
        return mesh.device_list.special_memory_kind(kind)
    check_memory_kind(kind, MEMORY_KINDS, str(mesh))
    return None if kind == MEMORY_KINDS[0] else kind


def is_abstract(sharding: object) -> bool:
    """Whether a placement names no devices."""
    return isinstance(sharding, NamedSharding) and isinstance(sharding.mesh, AbstractMesh)


def has_open_dims(spec: PartitionSpec) -> bool:
    """Whether the compiler decides about some dimension."""
    return any(entry is UNCONSTRAINED for entry in spec)


@source.boundaries("__init__", "with_memory_kind")
class SingleDeviceSharding(Sharding):
    """The whole array on one device.

    Raises:
        ValueError: the device has no memory of kind `memory_kind`.

    Example:
        >>> there = jax.sharding.SingleDeviceSharding(jax.devices()[3])
        >>> jax.device_put(jnp.ones(3), there).devices()
        {CpuDevice(id=3)}
    """

    __slots__ = ("_device", "_memory_kind")

    def __init__(self, device: _jax.Device, *, memory_kind: str | None = None) -> None:
        self._device = device
        self._memory_kind = device_list((device,)).special_memory_kind(memory_kind)

    @property
    def device(self) -> Any:
        """The device."""
        return self._device

    @property
    def device_assignment(self) -> tuple[Any, ...]:
        return (self._device,)

    def tiling(self, ndim: int) -> Tiling:
        return hlo.whole(ndim, 1)

    def with_memory_kind(self, kind: str | None) -> SingleDeviceSharding:
        return SingleDeviceSharding(self._device, memory_kind=kind)

    @property
    def is_fully_replicated(self) -> bool:
        return True

    def shard_shape(self, global_shape: Shape) -> Shape:
        return tuple(global_shape)

    def indices(self, global_shape: Shape) -> list[Index]:
        return [(slice(None),) * len(tuple(global_shape))]

    def _facts(self) -> tuple[Any, ...]:
        return self._device, self._memory_kind

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self._device!r}{self._memory_text()})"


def make_single_device_sharding(
    device: _jax.Device, *, memory_kind: str | None = None
) -> SingleDeviceSharding:
    """The placement of a whole array on one device.

    Raises:
        ValueError: the device has no memory of kind `memory_kind`.

    Example:
        >>> device = jax.devices()[0]
        >>> jax.sharding.make_single_device_sharding(device).device_set == {device}
        True
    """
    return SingleDeviceSharding(device, memory_kind=memory_kind)


@source.boundaries("__init__", "with_memory_kind")
class GSPMDSharding(Sharding):
    """An array cut as an `HloSharding` says, for placements that no mesh and spec describe.

    Source:     mirrors jax.sharding.GSPMDSharding, which JAX has since dropped.

    Args:
        devices: the devices, in the order of the tiling.
        hlo_sharding: the tiling.
        memory_kind: a kind of memory of the devices; None for their default.

    Example:
        >>> spread = jax.sharding.GSPMDSharding.get_replicated(jax.devices())
        >>> spread.is_fully_replicated, spread.shard_shape((3,))
        (True, (3,))
    """

    __slots__ = ("_devices", "_hlo_sharding", "_memory_kind")

    def __init__(
        self,
        devices: Sequence[Any],
        hlo_sharding: hlo.HloSharding,
        *,
        memory_kind: str | None = None,
    ) -> None:
        self._devices = tuple(devices)
        self._hlo_sharding = hlo_sharding
        self._memory_kind = device_list(self._devices).special_memory_kind(memory_kind)

    @classmethod
    def get_replicated(
        cls, devices: Sequence[Any], *, memory_kind: str | None = None
    ) -> GSPMDSharding:
        """The placement of the whole array on every device."""
        return cls(devices, hlo.REPLICATED, memory_kind=memory_kind)

    @property
    def hlo_sharding(self) -> Any:
        """The tiling, in XLA's terms."""
        return self._hlo_sharding

    @property
    def device_assignment(self) -> tuple[Any, ...]:
        return self._devices

    def tiling(self, ndim: int) -> Tiling:
        return hlo.tiling_of(self._hlo_sharding, ndim, len(self._devices))

    def to_hlo(self, ndim: int) -> Any:
        return self._hlo_sharding

    def with_memory_kind(self, kind: str | None) -> GSPMDSharding:
        return GSPMDSharding(self._devices, self._hlo_sharding, memory_kind=kind)

    @property
    def is_fully_replicated(self) -> bool:
        return bool(self._hlo_sharding.is_replicated()) or len(self._devices) == 1

    def _facts(self) -> tuple[Any, ...]:
        return self._devices, self._hlo_sharding, self._memory_kind

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle_gspmd, (self._devices, str(self._hlo_sharding), self._memory_kind)

    def __repr__(self) -> str:
        return f"GSPMDSharding({self._hlo_sharding!r}{self._memory_text()})"


def _unpickle_gspmd(devices: Sequence[Device], text: str, memory_kind: Any) -> GSPMDSharding:
    return GSPMDSharding(devices, hlo.HloSharding.from_string(text), memory_kind=memory_kind)


@cached("equal tilings", key="XLA's tiling, rank", most=4096, emptied=True)
def semantic_key(hlo_sharding: hlo.HloSharding, ndim: int) -> Any:
    """A value that is equal for tilings that give every device the same tile at this rank.

    All replicated forms are equal.  Tilings with manual or unreduced parts, which are more than
    tiles, stand for themselves; those of tuples go element by element.
    """
    elements = hlo_sharding.tuple_elements()
    if elements:
        return tuple(semantic_key(element, ndim) for element in elements)
    if hlo_sharding.is_replicated():
        return "replicated"
    if not hlo.is_plain(hlo_sharding):
        return hlo_sharding
    tiling = hlo.tiling_of(hlo_sharding, ndim, hlo_sharding.num_devices())
    return "replicated" if set(tiling.factors) <= {1} else tiling.key()


def are_hlo_shardings_equal(first: object, second: object, ndim: int) -> bool:
    """Whether two tilings give every device the same tile of arrays of rank `ndim`."""
    return first is second or semantic_key(first, ndim) == semantic_key(second, ndim)


class SemanticallyEqualShardings(ByValue):
    """Placements as a key of caches: those in XLA's terms count as what they do, not as written.

    Args:
        shardings: placements, or marks in their place.
        ranks: the rank of the array that each places.
    """

    __slots__ = ("_key", "shardings")

    def __init__(self, shardings: Iterable[Any], ranks: Sequence[int]) -> None:
        self.shardings = tuple(shardings)
        self._key = tuple(map(_part, self.shardings, ranks))

    def _facts(self) -> Any:
        return self._key


def _part(sharding: object, ndim: int) -> Any:
    if not isinstance(sharding, GSPMDSharding):
        return sharding
    tiling = semantic_key(sharding.hlo_sharding, ndim)
    return sharding.device_assignment, sharding.special_memory_kind, tiling
