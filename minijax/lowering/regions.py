"""Manual regions in the MLIR module, and the groups of devices that collectives inside them join.

A manual region is a part of the module that is written per device of some mesh axes.  Input: whole
values and how they are split.  Output: the results of a region that sees one block of each value.
Shardy has an operation for it, `sdy.manual_computation`; GSPMD marks the border with custom calls
that turn a whole value into a block and back.

Collectives name axes.  Input: these names.  Output: groups of device numbers, and attributes and
operations of the module being built.  In partition mode (`shard_map`) devices are the partitions of
one program over a mesh, in replica mode (`pmap`) they are replicas of it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxlib.mlir import ir

from minijax.core.dtypes import DType
from minijax.core.errors import InternalError, error
from minijax.core.meshes import AbstractMesh, MeshAxes, PartitionSpec
from minijax.core.operators import AxisName
from minijax.lowering import stablehlo
from minijax.lowering.stablehlo import LoweringContext, string
from minijax.sharding import hlo

Groups = tuple[tuple[int, ...], ...]


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

    def _coordinate(self, ctx: LoweringContext, name: object) -> Any:
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

    def extended(self, name: str, size: int) -> ReplicaAxes:
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


_CHANNEL = "#stablehlo.channel_handle<handle = 1, type = 1>"


_create = ir.Operation.create


class Border(NamedTuple):
    """A value that enters or leaves a region: how it is cut, its rank, its types on both sides."""

    spec: PartitionSpec
    ndim: int
    whole: Any
    block: Any


def region(
    ctx: LoweringContext,
    mesh: MeshAxes,
    manual: Sequence[Any],
    operands: Sequence[ir.Value[Any]],
    ins: Sequence[Border],
    outs: Sequence[Border],
    body: Callable[..., Sequence[Any]],
) -> list[Any]:
    """The results of a region that is written per device of the axes `manual` of `mesh`.

    Args:
        ctx: where to build.
        mesh: the mesh; its other axes are left as they are around.
        manual: the axes that become manual.
        operands: whole values.
        ins: how they are cut.
        outs: how the results are put together.
        body: builds the region: of a context and blocks to blocks.

    Raises:
        NotImplementedError: the program is one of replicas.
    """
    module = ctx.module
    if isinstance(module.device_axes, ReplicaAxes) and mesh.size > 1:
        problem = "cannot be inside pmap: XLA does not both copy a program and cut it."
        got = f"shard_map over {mesh} inside pmap over {module.device_axes.replicas} devices"
        fix = "use shard_map over a mesh with one more axis in place of pmap"
        error(NotImplementedError, "shard_map", problem, got=got, fix=fix)
    inner = PartitionAxes(mesh, module.device_axes.manual | frozenset(manual))
    module.partitioning.check_size(mesh)
    if module.partitioning.devices == 1:
        # There is nothing to cut.
        with module.inside(inner):
            return list(body(ctx, *operands))
    if module.partitioning.with_shardy:
        return _with_shardy(ctx, inner, manual, operands, ins, outs, body)
    return _with_gspmd(ctx, inner, operands, ins, outs, body)


def on_each_device(
    ctx: LoweringContext,
    operands: Sequence[ir.Value[Any]],
    types: Sequence[Any],
    body: Callable[..., Sequence[Any]],
) -> list[Any]:
    """The results of what each device does with whole values.

    For operations with side effects, which XLA's partitioner neither cuts nor repeats.

    Args:
        ctx: where to build.
        operands: MLIR values.
        types: MLIR types of the results, which must be the same on all devices.
        body: builds the operation: of a context and operands to results.
    """
    module = ctx.module
    if module.partitioning.partitions == 1:
        return list(body(ctx, *operands))
    axes = module.device_axes
    mesh: MeshAxes = AbstractMesh(module.partitioning.devices, "devices")
    free: Sequence[Any] = mesh.axis_names
    if isinstance(axes, PartitionAxes):
        mesh, free = axes.mesh, axes.automatic
    ins = [_whole(value.type) for value in operands]
    return region(ctx, mesh, free, operands, ins, list(map(_whole, types)), body)


def _whole(kind: ir.Type) -> Border:
    return Border(PartitionSpec(), ir.RankedTensorType(kind).rank, kind, kind)


def scalar(
    ctx: LoweringContext,
    mesh: MeshAxes,
    manual: Sequence[Any],
    dtype: DType | type[np.generic],
    body: Callable[[LoweringContext], Any],
) -> Any:
    """A scalar that a region without operands computes, the same on all devices of its axes."""
    kind = stablehlo.tensor_type((), dtype)
    border = Border(PartitionSpec(), 0, kind, kind)
    return region(ctx, mesh, manual, [], [], [border], lambda inner: [body(inner)])[0]


def _with_shardy(
    ctx: LoweringContext,
    inner: PartitionAxes,
    manual: Sequence[Any],
    operands: Sequence[ir.Value[Any]],
    ins: Sequence[Border],
    outs: Sequence[Border],
    body: Callable[..., Sequence[Any]],
) -> list[Any]:
    symbol = ctx.module.partitioning.symbol_of(inner.mesh)
    names = [name for name in inner.names if name in manual]
    is_open = bool(inner.automatic)
    given = [
        _summed(ctx, value, symbol, border, is_open) if border.spec.unreduced else value
        for value, border in zip(operands, ins, strict=True)
    ]
    operation = _create(
        "sdy.manual_computation",
        [border.whole for border in outs],
        given,
        {
            "in_shardings": _per_value(symbol, ins, is_open),
            "out_shardings": _per_value(symbol, outs, is_open),
            "manual_axes": stablehlo.attribute(
                f"#sdy<manual_axes{{{', '.join(map(hlo.axis_text, names))}}}>"
            ),
        },
        regions=1,
        loc=ctx.location,
        ip=ctx.point,
    )
    types = [border.block for border in ins]
    block = operation.regions[0].blocks.append(*types, arg_locs=[ctx.location] * len(types))
    within = ctx.at(ir.InsertionPoint(block))
    with ctx.module.inside(inner):
        results = list(body(within, *block.arguments))
    _create("sdy.return", [], results, loc=ctx.location, ip=within.point)
    return list(operation.results)


def _summed(
    ctx: LoweringContext, value: ir.Value[Any], symbol: str, border: Border, is_open: bool
) -> Any:
    """An operand of which devices hold summands, held to it.

    Since jaxlib 0.11 Shardy lets nothing add them up but a few operations, and a region is none of
    these: unless a constraint goes before, it is refused.
    """
    sharding = stablehlo.attribute(_sharding_text(symbol, border, is_open))
    return ctx.op("sdy.sharding_constraint", [value], {"sharding": sharding}, value.type)


def _per_value(symbol: str, borders: Sequence[Border], is_open: bool) -> Any:
    texts = [
        _sharding_text(symbol, border, is_open).removeprefix("#sdy.sharding") for border in borders
    ]
    return stablehlo.attribute(f"#sdy.sharding_per_value<[{', '.join(texts)}]>")


def _sharding_text(symbol: str, border: Border, is_open: bool) -> str:
    return hlo.sharding_text(symbol, border.spec, border.ndim, is_open=is_open)


def _with_gspmd(
    ctx: LoweringContext,
    inner: PartitionAxes,
    operands: Sequence[ir.Value[Any]],
    ins: Sequence[Border],
    outs: Sequence[Border],
    body: Callable[..., Sequence[Any]],
) -> list[Any]:
    if not inner.are_all_manual:
        # XLA's older partitioner ends the process where it meets a constant in such a region.
        problem = "a function per device of some axes only cannot be compiled by GSPMD."
        got = f"axes {inner.automatic} of {inner.mesh} left to the compiler"
        fix = "config.update('use_shardy_partitioner', True), or all axes in axis_names"
        error(NotImplementedError, "shard_map", problem, got=got, fix=fix)
    blocks = [
        crossed(ctx, inner, value, border, inwards=True)
        for value, border in zip(operands, ins, strict=True)
    ]
    with ctx.module.inside(inner):
        results = list(body(ctx, *blocks))
    return [
        crossed(ctx, inner, value, border, inwards=False)
        for value, border in zip(results, outs, strict=True)
    ]


def crossed(
    ctx: LoweringContext,
    inner: PartitionAxes,
    value: ir.Value[Any],
    border: Border,
    *,
    inwards: bool,
) -> Any:
    """A device's block of a whole value, or outwards the whole value of which it is a block."""
    dims = border.spec.dims(border.ndim)
    whole = str(hlo.of_spec(inner.mesh, dims)), border.whole
    block = str(hlo.manual(inner.mesh, inner.manual, border.ndim)), border.block
    before, after = (whole, block) if inwards else (block, whole)
    target = "SPMDFullToShardShape" if inwards else "SPMDShardToFullShape"
    marked = _custom_call(ctx, "Sharding", value, *before, inner, border)
    return _custom_call(ctx, target, marked, *after, inner, border)


def _custom_call(
    ctx: LoweringContext,
    target: str,
    value: ir.Value[Any],
    sharding: str,
    type_: ir.Type,
    inner: PartitionAxes,
    border: Border,
) -> Any:
    attributes = {"call_target_name": string(target), "mhlo.sharding": string(sharding)}
    if inner.automatic:
        open_dims = [d for d, names in enumerate(border.spec.dims(border.ndim)) if not names]
        if open_dims:
            listed = ",".join(map(str, open_dims))
            attributes["backend_config"] = string(f"unspecified_dims=[{listed}]")
    return ctx.op("stablehlo.custom_call", [value], attributes, type_)
