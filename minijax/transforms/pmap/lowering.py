"""Lowering of a `pmap` inside a program of replicas: of another `pmap`, or of `jit`.

Input: whole values, which the replicas of one slice of the maps around all hold.  Output: whole
results.  A device takes its slice of each value, computes, and gathers the results of the others.
Gathering keeps every bit of every dtype, which adding up zeros and one result would not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from minijax.core.errors import message
from minijax.core.jaxpr import ClosedJaxpr
from minijax.interpreters import lowering
from minijax.interpreters.device_axes import NoDeviceAxes, ReplicaAxes
from minijax.runtime.array import physical_aval
from minijax.transforms.pmap import arguments, programs


def lower(ctx: Any, values: Sequence[Any], params: Mapping[str, Any]) -> list[Any]:
    """The rule `lower` of the primitive `pmap`.

    Raises:
        NotImplementedError: the program is cut over a mesh.
        ValueError: the map says itself where it runs.
    """
    name, axis_name = params["name"], params["axis_name"]
    outer = _axes_around(ctx, name)
    arguments.check_names_no_devices(name, params["devices"])
    arguments.check_platform(name, params["backend"], ctx.platform)
    inner = outer.extended(axis_name, params["axis_size"])
    in_axes, out_axes = params["in_axes"], params["out_axes"]
    avals_in, avals_out, location = ctx.avals_in, ctx.avals_out, ctx.location
    index = None
    if any(axis is not None for axis in in_axes):
        index = inner.index(ctx, axis_name)
    slices = [
        x if axis is None else _slice(ctx, x, index, axis, aval)
        for x, axis, aval in zip(values, in_axes, avals_in, strict=True)
    ]
    jaxpr: ClosedJaxpr = params["jaxpr"]
    with ctx.module.inside(inner), programs.inside(params):
        outs = lowering.lower_jaxpr(ctx, jaxpr.jaxpr, jaxpr.consts, slices, (f"pmap({name})",))
    ctx.location = location
    return [
        x if axis is None else _gather(ctx, x, inner, axis_name, axis, aval)
        for x, axis, aval in zip(outs, out_axes, avals_out, strict=True)
    ]


def _axes_around(ctx: Any, name: str) -> ReplicaAxes:
    """The axes of the maps around."""
    found = ctx.module.device_axes
    if isinstance(found, NoDeviceAxes):
        return ReplicaAxes()
    if isinstance(found, ReplicaAxes):
        return found
    raise NotImplementedError(
        message(
            name,
            "pmap cannot be inside shard_map.",
            fix="use shard_map over another axis of the mesh, or vmap",
        )
    )


def _slice(ctx: Any, x: Any, index: Any, axis: int, aval: Any) -> Any:
    """The slice of a value that belongs to a device."""
    whole = physical_aval(aval)
    shape = whole.shape
    zero = ctx.constant(np.int32(0))
    sizes = (*shape[:axis], 1, *shape[axis + 1 :])
    part = ctx.op(
        "stablehlo.dynamic_slice",
        [x, *(index if d == axis else zero for d in range(len(shape)))],
        {"slice_sizes": ctx.i64_array(sizes)},
        ctx.tensor_type(sizes, whole.dtype),
    )
    return ctx.reshape(part, shape[:axis] + shape[axis + 1 :], whole.dtype)


def _gather(ctx: Any, x: Any, devices: ReplicaAxes, name: Any, axis: int, aval: Any) -> Any:
    """The results of all devices along the innermost axis, stacked."""
    whole = physical_aval(aval)
    shape = whole.shape
    unit = ctx.reshape(x, (*shape[:axis], 1, *shape[axis + 1 :]), whole.dtype)
    return ctx.op(
        "stablehlo.all_gather",
        [unit],
        {"all_gather_dim": ctx.integer(axis, 64), **devices.replica_groups([name])},
        ctx.tensor_type(shape, whole.dtype),
    )
