"""Shardings in the notation of the compiler: tilings, XLA's `HloSharding`, and Shardy's attributes.

A `Tiling` says into how many parts an array is split, and which device holds which part.  The
functions here convert between tilings, named shardings and `HloSharding`, XLA's own description,
and write named shardings as attributes of Shardy, the partitioner's dialect.  `HloSharding` is
plain data of jaxlib; nothing else of jaxlib enters this room.
"""

from __future__ import annotations

import math
import string
from collections.abc import Collection
from typing import Any, NamedTuple, TypeAlias
from urllib import parse

import numpy as np
from jaxlib import xla_client

from minijax.core.cache import Cache, cached
from minijax.core.meshes import UNCONSTRAINED, MeshAxes, PartitionSpec, names_of
from minijax.core.operators import AxisName


class Tiling(NamedTuple):
    """How an array is cut.

    Attributes:
        factors: into how many parts each dimension is cut.
        coordinates: for each device, in order, which part of each dimension it holds: [devices,
            dimensions].
    """

    factors: tuple[int, ...]
    coordinates: np.ndarray[Any, Any]

    def same_as(self, other: Tiling) -> bool:
        """Whether both give every device the same tile."""
        return self.factors == other.factors and np.array_equal(self.coordinates, other.coordinates)

    def devices_by_tile(self) -> np.ndarray[Any, Any]:
        """The numbers of the devices that hold each tile: [*factors, copies]."""
        tiles: dict[tuple[int, ...], list[int]] = {}
        for device, place in enumerate(map(tuple, self.coordinates.tolist())):
            tiles.setdefault(place, []).append(device)
        order = [tiles[place] for place in np.ndindex(*self.factors)]
        return np.array(order, np.int64).reshape(*self.factors, -1)

    def with_whole_dim(self, dim: int) -> Tiling:
        """The same for arrays with one more dimension, at `dim`, which is not cut."""
        factors = (*self.factors[:dim], 1, *self.factors[dim:])
        return Tiling(factors, np.insert(self.coordinates, dim, 0, axis=1))

    def key(self) -> tuple[Any, ...]:
        """A hashable value that is equal for the same tilings."""
        return self.factors, self.coordinates.shape, self.coordinates.tobytes()


def whole(ndim: int, count: int) -> Tiling:
    """The tiling that gives each of `count` devices the whole array."""
    return Tiling((1,) * ndim, np.zeros((count, ndim), np.int64))


HloSharding: TypeAlias = xla_client.HloSharding
_Kind = xla_client.OpSharding.Type
REPLICATED = HloSharding.replicate()


_translations = Cache(
    "XLA tilings",
    "specs as XLA's tilings, and XLA's tilings as specs",
    key="mesh and spec; tiling, mesh and rank",
    most=4096,
    emptied=True,
)


@_translations.function
def of_spec(
    mesh: MeshAxes, dims: tuple[tuple[Any, ...], ...], unreduced: frozenset[Any] = frozenset()
) -> Any:
    """The tiling of an array whose dimension `d` is split over the mesh axes `dims[d]`."""
    names = mesh.axis_names
    used = [name for entry in dims for name in entry]
    summed = [name for name in names if name in unreduced]
    rest = [name for name in names if name not in used and name not in unreduced]
    if not used and not summed:
        return REPLICATED
    tile = [math.prod(map(mesh.axis_size, entry)) for entry in dims]
    kinds = []
    for group, kind in ((summed, _Kind.UNREDUCED), (rest, _Kind.REPLICATED)):
        size = math.prod(map(mesh.axis_size, group))
        if size > 1 or (group is summed and summed):
            tile.append(size)
            kinds.append(kind)
    if math.prod(tile) == 1:
        return REPLICATED
    return HloSharding.iota_tile(
        dims=tile,
        reshape_dims=list(mesh.axis_sizes),
        transpose_perm=[names.index(name) for name in (*used, *summed, *rest)],
        subgroup_types=kinds,
    )


def manual(mesh: MeshAxes, axes: Collection[Any], ndim: int) -> Any:
    """The words for blocks inside a part that is written per device of some mesh axes.

    No dimension is cut; after them come the other axes, in the mesh's order, and the manual ones,
    sorted by name.
    """
    rest = [name for name in mesh.axis_names if name not in axes]
    if math.prod(map(mesh.axis_size, rest)) == 1:
        return HloSharding.manual()
    ordered = [*rest, *sorted(axes, key=str)]
    return HloSharding.iota_tile(
        dims=[1] * ndim
        + [math.prod(map(mesh.axis_size, rest)), math.prod(map(mesh.axis_size, axes))],
        reshape_dims=list(mesh.axis_sizes),
        transpose_perm=[mesh.axis_names.index(name) for name in ordered],
        subgroup_types=[_Kind.REPLICATED, _Kind.MANUAL],
    )


def manual_proto(mesh: MeshAxes, axes: Collection[Any], ndim: int) -> Any:
    """The same as a message of XLA's, device by device and with a group of each kind always."""
    rest = [name for name in mesh.axis_names if name not in axes]
    ordered = [*rest, *sorted(axes, key=str)]
    proto = xla_client.OpSharding()
    proto.type = _Kind.OTHER
    groups = [math.prod(map(mesh.axis_size, names)) for names in (rest, axes)]
    proto.tile_assignment_dimensions = [1] * ndim + groups
    numbers = np.arange(math.prod(mesh.axis_sizes)).reshape(mesh.axis_sizes)
    order = [mesh.axis_names.index(name) for name in ordered]
    proto.tile_assignment_devices = numbers.transpose(order).ravel().tolist()
    proto.last_tile_dims = [_Kind.REPLICATED, _Kind.MANUAL]
    return proto


def of_tiling(tiling: Tiling) -> Any:
    """XLA's description of a tiling given device by device."""
    if math.prod(tiling.factors) == 1:
        return REPLICATED
    order = tiling.devices_by_tile()
    if order.shape[-1] == 1:
        return HloSharding.subgroup_with_device_ordering(order[..., 0], subgroup_types=[])
    return HloSharding.subgroup_with_device_ordering(order, subgroup_types=[_Kind.REPLICATED])


def is_plain(hlo: HloSharding) -> bool:
    """Whether a description says nothing but which tile each device holds."""
    return bool(hlo.is_tiled()) and set(hlo.subgroup_types()) <= {_Kind.REPLICATED}


def tiling_of(hlo: HloSharding, ndim: int, count: int) -> Tiling:
    """Which tile each of `count` devices holds of an array of rank `ndim`."""
    coordinates = np.zeros((count, ndim), np.int64)
    if hlo.is_replicated() or not hlo.is_tiled():
        return Tiling((1,) * ndim, coordinates)
    shape = tuple(hlo.tile_assignment_dimensions())
    for device, place in zip(hlo.tile_assignment_devices(), np.ndindex(*shape), strict=True):
        coordinates[device] = place[:ndim]
    return Tiling(shape[:ndim], coordinates)


@_translations.function
def spec_of(hlo: HloSharding, mesh: MeshAxes, ndim: int) -> PartitionSpec | None:
    """The spec on `mesh` that gives this tiling, or None where no spec does."""
    if hlo.is_replicated():
        return PartitionSpec()
    if hlo.is_unreduced():
        return PartitionSpec(unreduced=mesh.axis_names)
    if not hlo.is_tiled():
        return None
    shape = list(hlo.tile_assignment_dimensions())
    kinds = list(hlo.subgroup_types())
    if hlo.replicate_on_last_tile_dim() and not kinds:
        kinds = [_Kind.REPLICATED]
    if len(shape) != ndim + len(kinds):
        return None
    devices = np.asarray(hlo.tile_assignment_devices(), np.int64).reshape(shape)
    groups = [_axes_along(devices, dim, mesh) for dim in range(len(shape))]
    unreduced = [
        name
        for kind, group in zip(kinds, groups[ndim:], strict=True)
        if kind == _Kind.UNREDUCED
        for name in group
    ]
    entries: list[Any] = groups[:ndim]
    while entries and not entries[-1]:
        entries.pop()
    named = [name for entry in groups for name in entry]
    if len(set(named)) != len(named):
        return None
    spec = PartitionSpec(*entries, unreduced=unreduced)
    return spec if of_spec(mesh, spec.dims(ndim), spec.unreduced) == hlo else None


def _axes_along(devices: np.ndarray[Any, Any], dim: int, mesh: MeshAxes) -> tuple[Any, ...]:
    """The mesh axes that change along one dimension of the tiles, the slowest first."""
    index: list[Any] = [0] * devices.ndim
    index[dim] = slice(None)
    places = np.unravel_index(devices[tuple(index)], mesh.axis_sizes)
    steps = []
    for name, place in zip(mesh.axis_names, places, strict=True):
        changes = np.nonzero(place != place[0])[0]
        if changes.size:
            steps.append((int(changes[0]), name))
    return tuple(name for _, name in sorted(steps, key=lambda step: -step[0]))


# MLIR prints other characters as escapes, and XLA ends the process over some of these.
_PLAIN = "".join(set(string.punctuation + " ") - set('%"\\'))

EMPTY_MESH = "#sdy.mesh<[]>"
"""A mesh without axes, for values that are replicated on any mesh."""

FIRST_DEVICE = "#sdy.mesh<[], device_ids=[0]>"
"""The mesh of the first device alone."""


def mesh_text(mesh: MeshAxes) -> str:
    """The attribute that holds a mesh's axes: `#sdy.mesh<["x"=4, "y"=2]>`."""
    axes = ", ".join(f"{axis_text(name)}={size}" for name, size in mesh.shape_tuple)
    return f"#sdy.mesh<[{axes}]>"


def axis_text(name: AxisName) -> str:
    """The name of an axis as Shardy writes it."""
    return f'"{parse.quote(str(name), safe=_PLAIN)}"'


def axis_name(text: str) -> str:
    """The name that `axis_text` has written, without the quotes."""
    return parse.unquote(text)


def sharding_text(
    symbol: str,
    spec: PartitionSpec,
    ndim: int,
    *,
    is_open: bool = False,
    replicated: Collection[Any] = (),
) -> str:
    """The attribute that places a value: `#sdy.sharding<@mesh, [{"x"}, {?}]>`.

    Where it `is_open`, the partitioner may split every dimension over further axes, but not over
    those that are `replicated`.
    """
    dims = _dims_text(spec, ndim, is_open)
    closed = ""
    if replicated:
        closed = f", replicated={{{', '.join(sorted(map(axis_text, replicated)))}}}"
    unreduced = ""
    if spec.unreduced:
        axes = ", ".join(sorted(map(axis_text, spec.unreduced)))
        unreduced = f", unreduced={{{axes}}}"
    return f"#sdy.sharding<@{symbol}, [{dims}]{closed}{unreduced}>"


def attribute_of_tiling(tiling: Tiling) -> tuple[str, PartitionSpec]:
    """A mesh, as an attribute, and a spec on it that cut arrays like this.

    The mesh lists its devices where they do not go from the first to the last.
    """
    order = tiling.devices_by_tile()
    axes = [(f"dim{d}", size) for d, size in enumerate(tiling.factors) if size > 1]
    spec = PartitionSpec(
        *(f"dim{d}" if size > 1 else None for d, size in enumerate(tiling.factors))
    )
    if order.shape[-1] > 1:
        axes.append(("copies", order.shape[-1]))
    text = ", ".join(f'"{name}"={size}' for name, size in axes)
    ids = order.ravel().tolist()
    listed = "" if ids == sorted(ids) else f", device_ids={ids}"
    return f"#sdy.mesh<[{text}]{listed}>", spec


@cached("Shardy texts", key="spec, rank, whether they are open", most=1024)
def _dims_text(spec: PartitionSpec, ndim: int, is_open: bool) -> str:
    """The entries of a spec as Shardy writes them."""
    return ", ".join(_dim_text(entry, is_open) for entry in spec.padded(ndim))


def _dim_text(entry: object, is_open: bool) -> str:
    axes = list(map(axis_text, names_of(entry)))
    if is_open or entry is UNCONSTRAINED:
        axes.append("?")
    return "{" + ", ".join(axes) + "}"
