"""Manual regions in the MLIR module.

A manual region is a part of the module that is written per device of some mesh axes.  Input: whole
values and how they are split.  Output: the results of a region that sees one block of each value.
Shardy has an operation for it, `sdy.manual_computation`; GSPMD marks the border with custom calls
that turn a whole value into a block and back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxlib.mlir import ir

from minijax.core.dtypes import DType
from minijax.core.errors import error
from minijax.core.meshes import AbstractMesh, MeshAxes, PartitionSpec
from minijax.lowering import stablehlo
from minijax.lowering.device_axes import PartitionAxes, ReplicaAxes
from minijax.lowering.stablehlo import LoweringContext, string
from minijax.sharding import hlo

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
