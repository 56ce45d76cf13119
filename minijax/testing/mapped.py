"""One function on each of several simulated devices: what a mapping construct does.

Input: whole arrays, and how they are cut.  Output: what the function returns on each device.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from minijax.core import axes, meshes
from minijax.core.aval import NOT_MANUAL, manual_type
from minijax.core.config import config
from minijax.core.meshes import AbstractMesh, AxisType
from minijax.core.specs import PartitionSpec
from minijax.core.trace import current
from minijax.interpreters import staging
from minijax.testing import blocks
from minijax.testing.coroutines import Device, Machine
from minijax.testing.exchanges import Coordinates

Body = Callable[[Any, Sequence[Any]], Any]
"""What one device does: of its trace and its arguments."""


class Region(NamedTuple):
    """A part of a program that is written per device.

    Attributes:
        mesh: the whole mesh.
        sizes: the axes along which there are devices, with their sizes.
        check_vma: whether types tell over which axes values vary.
        kind: what binds the axes: `"mesh"` or `"pmap"`.
    """

    mesh: AbstractMesh
    sizes: dict[Hashable, int]
    check_vma: bool
    kind: str = "mesh"


def run(
    machine: Machine,
    parent: Device,
    region: Region,
    make_trace: Callable[[Device], Any],
    body: Body,
    values: Sequence[blocks.Value],
    specs: Sequence[PartitionSpec],
) -> dict[Coordinates, Any]:
    """What `body` returns on each device.

    Args:
        machine: what runs the devices.
        parent: the device that asks, and waits for them.
        region: the axes along which they are.
        make_trace: makes the trace of a device.
        body: what each does.
        values: the arguments, whole.
        specs: how they are cut.
    """
    settings = _Settings()

    def on_device(place: Coordinates) -> Any:
        settings.restore()
        axes.check_vma.set_local(region.check_vma)
        manual = dict.fromkeys(region.sizes, AxisType.Manual)
        if region.kind == "mesh":
            meshes.abstract_mesh.set_local(region.mesh.update_axis_types(manual))
        trace = make_trace(machine.devices[place])
        current.set_local(trace)
        bound = [axes.Axis(name, size, region.kind) for name, size in region.sizes.items()]
        with axes.extend_all((*settings.axes, *bound)):
            args = [
                _argument(trace, region, value, spec)
                for value, spec in zip(values, specs, strict=True)
            ]
            result = body(trace, args)
        trace.finished = True
        return result

    places = _places(parent.coordinates, region)
    return machine.run(parent, {place: functools.partial(on_device, place) for place in places})


def _places(around: Coordinates, region: Region) -> list[Coordinates]:
    """The devices of a region within another: axes of one mesh stand in the order of the mesh."""
    order = region.mesh.axis_names
    found = []
    for positions in itertools.product(*map(range, region.sizes.values())):
        own = zip(region.sizes, positions, strict=True)
        place = [*around, *own]
        inner = sorted((at for at in place if at[0] in order), key=lambda at: order.index(at[0]))
        found.append((*(at for at in place if at[0] not in order), *inner))
    return found


def _argument(trace: Any, region: Region, value: blocks.Value, spec: PartitionSpec) -> Any:
    block = blocks.cut(value, spec, region.sizes, trace.device.coordinates)
    aval = value.aval.with_shape(block.shape[: value.aval.ndim])
    if not region.check_vma:
        aval = aval.with_manual_type(NOT_MANUAL)
    else:
        varying, unreduced, reduced = aval.manual_axis_type
        kind = manual_type(varying.union(spec.names()), unreduced, reduced | spec.reduced)
        aval = aval.with_manual_type(kind)
    return trace.tracer(block, aval)


class _Settings:
    """The settings of the thread that asks for devices, for theirs."""

    def __init__(self) -> None:
        states: list[Any] = [state.native for state in config]
        states += [staging.scope, staging.origin, meshes.abstract_mesh]
        self._values: Mapping[Any, Any] = {state: state.value for state in states}
        self.axes = axes.in_scope()

    def restore(self) -> None:
        """Makes the settings those of the thread that calls."""
        for state, value in self._values.items():
            state.set_local(value)
