"""The programs of a `pmap`, and where they run: as replicas, or as `jit` of `shard_map`.

Input: the parameters of the primitive `pmap`.  Output: an executable that takes and gives whole
arrays.  Each device runs the function of a piece: a slice with the mapped dimension, of size 1, so
that arrays that a mesh axis splits in the same way are used as they are.
"""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import axes, config, monitoring
from minijax.core.aval import AbstractToken
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, jaxprs_in_params
from minijax.core.meshes import PartitionSpec
from minijax.core.operators import Avals
from minijax.core.primitive import PRIMITIVES, Primitive
from minijax.interpreters import staging
from minijax.lax import shape
from minijax.lowering import device_assignment, program, replicas
from minijax.lowering.call_plan import (
    CallPlan,
    Placeholder,
    ProgramOptions,
    Replicated,
    RequestedPlacement,
)
from minijax.runtime import client
from minijax.runtime.execute import Executable
from minijax.runtime.pmap_sharding import PmapSharding
from minijax.sharding.base import Sharding
from minijax.sharding.mesh import Mesh, device_list
from minijax.sharding.named import NamedSharding
from minijax.sharding.older import pmap_sharding_spec
from minijax.transforms.per_device.shard_map import shard_map

logger = logging.getLogger("minijax")
Axes = tuple[int | None, ...]
P = PartitionSpec
refuse = functools.partial(error, ValueError, "pmap")


class MapInfo(NamedTuple):
    """What is known about a map over devices but its jaxpr; hashable."""

    name: str
    backend: Any
    axis_name: Any
    axis_size: int
    global_axis_size: int
    devices: tuple[Any, ...] | None
    in_axes: Axes = ()
    out_axes: Axes = ()
    donated_invars: tuple[bool, ...] = ()


class Prepared(NamedTuple):
    """A map ready to be lowered.

    Attributes:
        closed: the program: of the shards of one replica, or of global arrays.
        plan: where and how it runs.
    """

    closed: ClosedJaxpr
    plan: CallPlan


@contextlib.contextmanager
def inside(params: Mapping[str, Any]) -> Iterator[None]:
    """Context manager: inside it, the axis of a map is in scope."""
    axis = axes.extend(params["axis_name"], params["global_axis_size"], "pmap")
    with axis, config.override(axes.check_vma, False):
        yield


def sliced_avals(avals: Avals, along: Axes) -> list[Any]:
    """The types of slices of values of types `avals`, along these dimensions."""
    return [
        aval if axis is None else aval.without_dim(axis)
        for aval, axis in zip(avals, along, strict=True)
    ]


def whole_avals(avals: Avals, along: Axes, size: int) -> list[Any]:
    """The types of stacks of `size` values of types `avals`, along these dimensions."""
    return [
        aval if axis is None else aval.with_dim(axis, size)
        for aval, axis in zip(avals, along, strict=True)
    ]


def executable_for(jaxpr: ClosedJaxpr, info: MapInfo) -> Executable:
    """The executable of a map; compiled on the first call, for the devices there are."""
    by_mesh = is_shard_map(jaxpr, info)
    states = config.use_shardy_partitioner.value, config.pmap_results_unstacked.value
    key = by_mesh, info, _platform(info), *states
    found: Executable | None = monitoring.compilation.find(jaxpr, key)
    if found is None:
        made = (by_shard_map if by_mesh else by_replicas)(jaxpr, info)
        logger.debug(
            "pmap of %s: axis %r of size %d, %d replica(s), devices %s, slices of arguments %s.",
            info.name,
            info.axis_name,
            info.axis_size,
            len(made.plan.devices),
            list(made.plan.devices),
            jaxpr.in_avals,
        )
        # Lowering rules may be composed of other operations, which refer to the axis.
        with contextlib.nullcontext() if by_mesh else inside(info._asdict()):
            found = program.executable_of(made.closed, made.plan)
        monitoring.compilation.keep(jaxpr, key, found)
    else:
        monitoring.compilation.hits += 1
    if config.distributed_debug.value:
        logger.warning(
            "Running pmapped function: %s\ndevices: %s\nabstract args: %s\nfingerprint: %s",
            info.name,
            list(found.devices),
            found.place.avals,
            found.loaded.fingerprint,
        )
    return found


def _platform(info: MapInfo) -> Any:
    return client.get_backend(info.backend) if info.devices is None else None


def _of_pieces(jaxpr: ClosedJaxpr, info: MapInfo) -> Callable[..., list[Any]]:
    """The jaxpr as a function of pieces."""

    def function(*pieces: Any) -> list[Any]:
        slices = [
            x if axis is None else shape.squeeze(x, (axis,))
            for x, axis in zip(pieces, info.in_axes, strict=True)
        ]
        outs = staging.eval_closed_jaxpr(jaxpr, *slices)
        return [
            x if axis is None else shape.expand_dims(x, (axis,))
            for x, axis in zip(outs, info.out_axes, strict=True)
        ]

    return function


def by_replicas(jaxpr: ClosedJaxpr, info: MapInfo) -> Prepared:
    """A map as a program of which each device runs a copy.

    Raises:
        ValueError: there are not the devices that it needs.
    """
    devices = _checked_devices(jaxpr.jaxpr, info)

    def make() -> ClosedJaxpr:
        avals = whole_avals(jaxpr.in_avals, info.in_axes, 1)
        with inside(info._asdict()):
            return staging.stage_closed(_of_pieces(jaxpr, info), avals, jaxpr.jaxpr.debug_info)

    facts = info.axis_name, info.global_axis_size, info.in_axes, info.out_axes
    local = jaxpr.remember(("pieces", *facts), make)
    shared = tuple(axis is None for axis in info.in_axes)
    shape = Replicated(len(devices), (info.axis_name,), (info.global_axis_size,), shared)
    options = ProgramOptions(info.name, keep_unused=False, donated=info.donated_invars)
    # A process passes and gets the slices of its own devices.
    own = tuple(device_list(devices).addressable_device_list)
    ins, outs = (
        shardings(avals, along, info.axis_name, info.axis_size, own)
        for avals, along in ((jaxpr.in_avals, info.in_axes), (jaxpr.out_avals, info.out_axes))
    )
    plan = device_assignment.plan_of_replicas(options, devices, shape, ins, outs)
    return Prepared(local, plan)


def shardings(
    avals: Avals, along: Axes, name: Any, size: int, devices: Sequence[Any]
) -> tuple[Sharding, ...]:
    """Where whole arrays are whose slices, of types `avals`, lie along these dimensions.

    They are described by a mesh with an axis called `name`, and one for copies of the slices.
    """
    if not config.pmap_results_unstacked.value:
        mesh = _mesh(devices, name, size)
        return tuple(NamedSharding(mesh, _spec(axis, mesh)) for axis in along)
    shapes = ((0,) if isinstance(aval, AbstractToken) else aval.shape for aval in avals)
    return tuple(
        PmapSharding(devices, pmap_sharding_spec(len(devices), size, own, axis))
        for own, axis in zip(shapes, along, strict=True)
    )


_NAMELESS = "_pmap_axis"
_COPIES = "_pmap_copies"


def _mesh(devices: Sequence[Any], name: Any, size: int) -> Mesh:
    """The devices that a map runs on; if each slice has several, these are a second axis."""
    box = np.array(devices, object).reshape(size, -1)
    names = name if isinstance(name, str) else _NAMELESS, _COPIES
    return Mesh(box, names) if box.shape[1] > 1 else Mesh(box[:, 0], names[:1])


def _spec(axis: int | None, mesh: Mesh) -> PartitionSpec:
    return P() if axis is None else P(*(None,) * axis, mesh.axis_names[0])


def is_shard_map(jaxpr: ClosedJaxpr, info: MapInfo) -> bool:
    """Whether a map runs as `shard_map`; maps with maps inside are left to replicas."""
    return (
        config.pmap_via_shard_map.value
        and not axes.any_of_kind("pmap")
        and info.axis_size == info.global_axis_size
        and replicas.count(jaxpr) == 1
    )


def as_shard_map(
    jaxpr: ClosedJaxpr, info: MapInfo
) -> tuple[ClosedJaxpr, ProgramOptions, RequestedPlacement]:
    """Returns a map as a program over a mesh of its devices, how it is compiled, and where."""

    def make() -> tuple[ClosedJaxpr, ProgramOptions, RequestedPlacement]:
        mesh = _mesh(_checked_devices(jaxpr.jaxpr, info), info.axis_name, info.axis_size)
        names = {info.axis_name: mesh.axis_names[0]}
        renamed = jaxpr.replace(jaxpr=axes.substitute(jaxpr.jaxpr, names))
        in_specs, out_specs = (
            tuple(_spec(axis, mesh) for axis in along) for along in (info.in_axes, info.out_axes)
        )
        mapped = shard_map(
            lambda *pieces: tuple(_of_pieces(renamed, info)(*pieces)),
            mesh=mesh,
            in_specs=in_specs,
            out_specs=out_specs,
            check_vma=False,
        )
        wholes = whole_avals(jaxpr.in_avals, info.in_axes, info.global_axis_size)
        options = ProgramOptions(
            info.name,
            keep_unused=False,
            donated=info.donated_invars if any(info.donated_invars) else (),
        )
        requested = RequestedPlacement(
            tuple(NamedSharding(mesh, spec) for spec in in_specs),
            tuple(NamedSharding(mesh, spec) for spec in out_specs),
        )
        return staging.stage_closed(mapped, wholes, jaxpr.jaxpr.debug_info), options, requested

    result: tuple[ClosedJaxpr, ProgramOptions, RequestedPlacement]
    result = jaxpr.remember(("as shard_map", info, _platform(info)), make)
    return result


def by_shard_map(jaxpr: ClosedJaxpr, info: MapInfo) -> Prepared:
    """Returns a map as a program that is partitioned over a mesh."""
    closed, options, requested = as_shard_map(jaxpr, info)
    args = [Placeholder(s) for s in requested.in_shardings if isinstance(s, Sharding)]
    used = program.used_arguments(closed, options)
    plan = device_assignment.plan_call(closed, args, options, requested, used)
    return Prepared(closed, plan)


def check_names_no_devices(name: str, devices: Sequence[Any] | None) -> None:
    """Refuses maps inside other programs that name devices.

    Raises:
        ValueError: the map does.
    """
    if devices is not None:
        refuse(
            f"{name} names devices and is called inside another program, which has devices.",
            got=f"devices={list(devices)}",
            fix="leave devices away, or give them to the outermost pmap",
        )


def check_platform(name: str, backend: str | None, platform: str) -> None:
    """Refuses maps inside programs for another platform than they name.

    Raises:
        ValueError: the map names another one.
    """
    if backend is not None and client.get_backend(backend).platform != platform:
        refuse(
            f"{name} is for another platform than the program that it is called in.",
            got=f"backend={backend!r}, inside a program for {platform!r}",
            fix="leave backend away, or give it to the outermost pmap",
        )


def check_collectives(jaxpr: Jaxpr, name: str) -> None:
    """Checks that the collectives in a jaxpr work among the devices of several processes.

    Raises:
        TypeError: some do not; the message lists them.
    """
    found = sorted({p.name for p in _collectives_in(jaxpr) if not axes.crosses_processes.of(p)})
    if found:
        problem = f"{name} has collectives that do not work among several processes."
        allowed = sorted(n for n, p in PRIMITIVES.items() if axes.crosses_processes.of(p))
        expected = f"some of {', '.join(allowed)}"
        error(TypeError, "pmap", problem, got=", ".join(found), expected=expected)


def _collectives_in(jaxpr: Jaxpr) -> set[Primitive]:
    found: set[Primitive] = set()
    for eqn in jaxpr.eqns:
        if axes.communicates.of(eqn.primitive) and axes.axis_params.of(eqn.primitive):
            found.add(eqn.primitive)
        found.update(*map(_collectives_in, jaxprs_in_params(eqn.params)))
    return found


def _checked_devices(jaxpr: Jaxpr, info: MapInfo) -> tuple[Any, ...]:
    """The devices that a map runs on.

    Raises:
        ValueError: there are not the devices that it needs.
        TypeError: some belong to other processes, with which not all can be done that it does.
    """
    devices = devices_for(info, replicas.count_in(jaxpr), replicas.maps_devices(jaxpr))
    if not device_list(devices).is_fully_addressable:
        check_collectives(jaxpr, info.name)
    return devices


def devices_for(info: MapInfo, inner: int = 1, has_inner_map: bool = False) -> tuple[Any, ...]:
    """The devices that a map runs on, in order.

    Args:
        info: the map.
        inner: how many devices each slice needs, for maps inside.
        has_inner_map: whether there are maps inside.

    Raises:
        ValueError: there are too few, or not as many as the map has slices.
    """
    if info.devices is not None:
        return _given_devices(info, inner, has_inner_map)
    if client.process_count(info.backend) > 1:
        return _devices_of_processes(info, inner)
    everyone = client.devices(info.backend)
    needed = info.global_axis_size * inner
    if needed > len(everyone):
        slices = f": {info.axis_size} slices of {inner} each" if inner > 1 else ""
        refuse(
            f"{info.name} needs more devices than there are.",
            got=f"{len(everyone)} device(s) of platform {everyone[0].platform}, {needed} replicas",
            expected=f"{needed} devices{slices}",
            fix="map over fewer slices, or use vmap; on hosts, minijax.cpu_devices(n) gives n",
        )
    return tuple(everyone[:needed])


def _given_devices(info: MapInfo, inner: int, has_inner_map: bool) -> tuple[Any, ...]:
    devices = info.devices or ()
    here = client.process_index(devices[0].client)
    local = [d for d in devices if d.process_index == here]
    needed = info.axis_size * inner
    there = f"{len(local)} local device(s): {', '.join(map(str, local))}"
    if len(local) < len(devices) and has_inner_map:
        refuse(
            f"{info.name} has a pmap inside and names devices of several processes.",
            got=f"devices={list(devices)}",
            fix="give axis_size in place of devices",
        )
    if len(local) != needed and inner == 1:
        refuse(
            "the mapped dimension has another size than the number of devices of this process.",
            got=f"size {info.axis_size}, {there}",
            expected=f"one device for each slice of the arguments of {info.name}",
            fix="pass as many slices as devices",
        )
    if len(local) != needed:
        refuse(
            f"{info.name} needs {needed} local devices, because of maps inside it.",
            got=f"outer axis of size {info.axis_size}, {inner} devices for each slice; {there}",
            fix="name as many devices, or leave devices away",
        )
    if len(devices) != info.global_axis_size * inner:
        refuse(
            "the number of devices is not that of the replicas.",
            got=f"{len(devices)} devices, {info.global_axis_size * inner} replicas",
            fix="name one device for each replica",
        )
    return devices


def _devices_of_processes(info: MapInfo, inner: int) -> tuple[Any, ...]:
    """The first devices of each process, one process after the other.

    Raises:
        ValueError: they are not as many as the slices of all processes need, or a process has not
            a slice for each of its devices, and has said no other size.
    """
    own, size = info.axis_size * inner, info.global_axis_size
    processes = range(client.process_count(info.backend))
    present = client.local_device_count(info.backend)
    if own != present and size == info.axis_size * len(processes):
        if inner == 1:
            refuse(
                "among several processes, the mapped dimension must have the size of the number "
                "of local devices.",
                got=f"size {info.axis_size}, {present} local devices",
                fix="pass a slice for each local device, or name devices",
            )
        refuse(
            "among several processes, a map with maps inside must use all local devices.",
            got=f"size {info.axis_size} times {inner} replicas inside, {present} local devices",
            fix="choose sizes whose product is the number of local devices, or give axis_size",
        )
    if size == info.axis_size:
        # The user has said that the others do not take part.
        processes = range(here := client.process_index(info.backend), here + 1)
    local = [client.local_devices(process, info.backend)[:own] for process in processes]
    found = tuple(device for devices in local for device in devices)
    if len(found) != size * inner:
        refuse(
            "axis_size is not the number of slices of all processes together.",
            got=f"axis_size={size}, {info.axis_size} slices of this process, of {inner} "
            f"device(s) each; {len(found)} devices in {len(processes)} process(es)",
            fix="pass the same number of slices in each process, and their sum as axis_size",
        )
    return found
