"""The devices along named axes, as collectives in an MLIR module need them.

Collectives name axes.  Input: these names.  Output: groups of device numbers, and attributes and
operations of the module being built.  In partition mode (`shard_map`) devices are the partitions of
one program over a mesh, in replica mode (`pmap`) they are replicas of it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core.errors import InternalError
from minijax.core.meshes import MeshAxes
from minijax.core.operators import AxisName
from minijax.lowering import stablehlo
from minijax.lowering.stablehlo import LoweringContext

Groups = tuple[tuple[int, ...], ...]

_CHANNEL = "#stablehlo.channel_handle<handle = 1, type = 1>"


def axis_groups(names: Sequence[Any], sizes: Sequence[int], wanted: Sequence[Any]) -> Groups:
    """Devices grouped so that members of a group differ in the wanted axes only.

    Devices are numbered by their coordinates, the first of `names` being the most significant;
    members of a group are ordered so by the wanted axes.
    """
    numbers = np.arange(math.prod(sizes)).reshape(tuple(sizes))
    positions = [list(names).index(name) for name in wanted]
    rest = [i for i in range(len(names)) if i not in positions]
    members = math.prod(sizes[i] for i in positions)
    rows = numbers.transpose(rest + positions).reshape(-1, members)
    return tuple(tuple(map(int, row)) for row in rows)


def within(groups: Groups, axis_index_groups: Groups | None) -> Groups:
    """Groups of devices cut further, by positions within each."""
    if axis_index_groups is None:
        return groups
    return tuple(
        tuple(group[i] for i in positions) for group in groups for positions in axis_index_groups
    )


class DeviceAxes:
    """The axes of devices that a program, or a part of it, is written per device of.

    Attributes:
        names: the axes, the outermost first.
        sizes: their sizes.
    """

    names: tuple[Any, ...] = ()
    sizes: tuple[int, ...] = ()
    manual: frozenset[Any] = frozenset()
    # The operation that gives a device's number.
    id_operation = ""

    @property
    def are_all_manual(self) -> bool:
        """Whether the compiler has no axis left to cut values over."""
        return False

    def groups(self, names: Sequence[Any], axis_index_groups: Groups | None = None) -> Groups:
        """The groups of devices among which a collective over `names` communicates."""
        key = tuple(names), axis_index_groups
        found = self._known_groups.get(key)
        if found is None:
            found = within(axis_groups(self.names, self.sizes, names), axis_index_groups)
            self._known_groups[key] = found
        return found

    @functools.cached_property
    def _known_groups(self) -> dict[Any, Groups]:
        """The groups that were asked for: most collectives of a program speak over the same."""
        return {}

    def replica_groups(
        self, names: Sequence[Any], axis_index_groups: Groups | None = None
    ) -> dict[str, Any]:
        """The attribute for these groups; rows of unequal groups end in -1."""
        found = self.groups(names, axis_index_groups)
        longest = max(map(len, found))
        rows = [(*group, *(-1,) * (longest - len(group))) for group in found]
        return {"replica_groups": stablehlo.dense(np.array(rows, np.int64))}

    def channel(self) -> dict[str, Any]:
        """The attributes of all collectives that tell the mode."""
        return {}

    def global_ids(self) -> dict[str, Any]:
        """Further ones, of reductions and gathers."""
        return {}

    def index(self, ctx: LoweringContext, name: AxisName) -> Any:
        """The coordinate of the device along one axis, as an i32 scalar."""
        return self._coordinate(ctx, name)

    def _coordinate(self, ctx: LoweringContext, name: Any) -> Any:
        position = self.names.index(name)
        size, inner = self.sizes[position], math.prod(self.sizes[position + 1 :])
        unsigned = stablehlo.tensor_type((), np.uint32)
        number = ctx.op(self.id_operation, [], {}, unsigned)
        stride = ctx.constant(np.uint32(inner))
        outer = ctx.op("stablehlo.divide", [number, stride], {}, unsigned)
        wrapped = ctx.op(
            "stablehlo.remainder", [outer, ctx.constant(np.uint32(size))], {}, unsigned
        )
        return ctx.convert(wrapped, (), np.int32)


class NoDeviceAxes(DeviceAxes):
    """The axes outside of `shard_map` and `pmap`: none."""

    def groups(self, names: Sequence[Any], axis_index_groups: Groups | None = None) -> Groups:
        raise InternalError(f"no axis of devices is bound here, but {names} are referred to")


class ReplicaAxes(DeviceAxes):
    """The axes of nested `pmap`s, the outermost first.

    Replicas beyond the product of the sizes belong to further axes, which are not bound here.
    """

    id_operation = "stablehlo.replica_id"

    def __init__(self, names: Sequence[Any] = (), sizes: Sequence[int] = (), replicas: int = 1):
        # What the bound axes leave is an axis without a name, the innermost one.
        rest = replicas // math.prod(sizes)
        self.names = (*names, _REST)
        self.sizes = (*sizes, rest)
        self.replicas = replicas

    def extended(self, name: AxisName, size: int) -> ReplicaAxes:
        """These axes and one more inside them, which hides one of the same name."""
        names = [_HIDDEN if bound == name else bound for bound in self.names[:-1]]
        return ReplicaAxes((*names, name), (*self.sizes[:-1], size), self.replicas)


_REST = "of maps inside"
_HIDDEN = object()


class PartitionAxes(DeviceAxes):
    """The axes of a mesh inside `shard_map`, of which some may be left to the compiler.

    Attributes:
        mesh: the mesh; `names` and `sizes` are those of all its axes.
        manual: the axes that the program is written per device of.
    """

    id_operation = "stablehlo.partition_id"

    def __init__(self, mesh: MeshAxes, manual: frozenset[Any]) -> None:
        self.mesh = mesh
        self.manual = manual
        self.names = mesh.axis_names
        self.sizes = mesh.axis_sizes

    @property
    def are_all_manual(self) -> bool:
        return all(self.mesh.axis_size(name) == 1 for name in self.automatic)

    @property
    def automatic(self) -> tuple[Any, ...]:
        """The axes left to the compiler."""
        return tuple(name for name in self.names if name not in self.manual)

    def channel(self) -> dict[str, Any]:
        return {"channel_handle": stablehlo.attribute(_CHANNEL)}

    def global_ids(self) -> dict[str, Any]:
        return {"use_global_device_ids": stablehlo.attribute("unit")}

    def index(self, ctx: LoweringContext, name: AxisName) -> Any:
        if self.sizes[self.names.index(name)] == 1:
            return ctx.constant(np.int32(0))
        automatic = [n for n in self.automatic if self.mesh.axis_size(n) > 1]
        if not automatic:
            return self._coordinate(ctx, name)
        # A device's number depends on all axes, so it is asked for where all are manual.
        return ctx.module.scalar_of_region(
            ctx, self.mesh, automatic, np.int32, lambda inner: self._coordinate(inner, name)
        )
