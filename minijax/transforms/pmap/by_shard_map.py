"""`pmap` as `jit` of `shard_map`, over a mesh of the map's devices: `config.pmap_via_shard_map`.

Input: the jaxpr of a slice.  Output: the same results as from replicas, in arrays with named
shardings.  Maps with maps inside are left to replicas.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import axes, config, statistics
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.specs import PartitionSpec
from minijax.interpreters import evaluation, program, staging
from minijax.interpreters.assignment import Placeholder
from minijax.lax import shape
from minijax.runtime import client
from minijax.runtime.execute import Executable
from minijax.sharding.mesh import Mesh
from minijax.sharding.named import NamedSharding
from minijax.transforms.jit_primitive import jit_p
from minijax.transforms.pmap import programs
from minijax.transforms.pmap.programs import MapInfo
from minijax.transforms.shard_map import shard_map

_NAMELESS = "_pmap_axis"


def executable_for(jaxpr: ClosedJaxpr, info: MapInfo) -> Executable:
    """The executable of a map; compiled on the first call, for the devices there are."""
    key = "pmap by shard_map", info, _platform(info), config.use_shardy_partitioner.value
    found: Executable | None = statistics.compilation.find(jaxpr, key)
    if found is None:
        closed, options = program_for(jaxpr, info)
        args = list(map(Placeholder, options.in_shardings))
        where = program.place(closed, args, options)
        found = program.executable_at(closed, options, where, args)
        statistics.compilation.keep(jaxpr, key, found)
    else:
        statistics.compilation.hits += 1
    return found


def bind(jaxpr: ClosedJaxpr, info: MapInfo, values: Sequence[Any]) -> Sequence[Any]:
    """Applies a map in the current trace."""
    closed, options = program_for(jaxpr, info)
    outs: Sequence[Any] = jit_p.bind_all(
        *values,
        jaxpr=closed,
        name=options.name,
        donated_invars=options.donated,
        keep_unused=options.keep_unused,
        device=None,
    )
    return outs


def program_for(jaxpr: ClosedJaxpr, info: MapInfo) -> tuple[ClosedJaxpr, program.Options]:
    """A map as a function of whole arrays, and how it is compiled."""
    found: tuple[ClosedJaxpr, program.Options] = jaxpr.remember(
        ("as shard_map", info, _platform(info)), lambda: _make(jaxpr, info)
    )
    return found


def _platform(info: MapInfo) -> Any:
    return client.get_backend(info.backend) if info.devices is None else None


def _make(jaxpr: ClosedJaxpr, info: MapInfo) -> tuple[ClosedJaxpr, program.Options]:
    devices = info.check_devices(jaxpr.jaxpr)
    name = info.axis_name if isinstance(info.axis_name, str) else _NAMELESS
    renamed = jaxpr.replace(jaxpr=axes.substitute(jaxpr.jaxpr, {info.axis_name: name}))
    mesh = Mesh(np.array(devices, object), (name,))
    in_specs = tuple(_spec(axis, name) for axis in info.in_axes)
    out_specs = tuple(_spec(axis, name) for axis in info.out_axes)

    def of_blocks(*blocks: Any) -> tuple[Any, ...]:
        slices = [
            x if axis is None else shape.squeeze(x, (axis,))
            for x, axis in zip(blocks, info.in_axes, strict=True)
        ]
        outs = evaluation.eval_closed_jaxpr(renamed, *slices)
        return tuple(
            x if axis is None else shape.expand_dims(x, (axis,))
            for x, axis in zip(outs, info.out_axes, strict=True)
        )

    mapped = shard_map(
        of_blocks, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False
    )
    wholes = programs.whole_avals(jaxpr.in_avals, info.in_axes, info.global_axis_size)
    closed = ClosedJaxpr(*staging.stage(mapped, wholes, jaxpr.jaxpr.debug_info))
    options = program.Options(
        info.name,
        keep_unused=False,
        donated=info.donated_invars if any(info.donated_invars) else (),
        in_shardings=tuple(NamedSharding(mesh, spec) for spec in in_specs),
        out_shardings=tuple(NamedSharding(mesh, spec) for spec in out_specs),
    )
    return closed, options


def _spec(axis: int | None, name: str) -> PartitionSpec:
    return PartitionSpec() if axis is None else PartitionSpec(*(None,) * axis, name)
