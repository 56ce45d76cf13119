"""The program of a `pmap`: a module that every device runs on its slice, and where it runs.

Input: the parameters of the primitive `pmap`.  Output: an executable that takes and gives whole
arrays.  Devices hold slices with the mapped dimension, of size 1, so that arrays that a mesh axis
splits in the same way are used as they are.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from minijax.core import axes, config, statistics
from minijax.core.aval import AbstractToken
from minijax.core.errors import message
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, jaxprs_in_params
from minijax.interpreters import evaluation, program, replicas, staging
from minijax.interpreters.assignment import Assignment
from minijax.interpreters.replicas import Replicas
from minijax.lax import shape
from minijax.runtime import client
from minijax.runtime.execute import Executable
from minijax.runtime.pmap_sharding import PmapSharding
from minijax.sharding.devices import device_list
from minijax.sharding.sharding_spec import pmap_sharding_spec
from minijax.transforms.pmap.arguments import MappedArguments, Settings

logger = logging.getLogger("minijax")


class MapInfo(NamedTuple):
    """What is known about a map over devices but its jaxpr; hashable."""

    name: str
    backend: Any
    axis_name: Any
    axis_size: int
    global_axis_size: int
    devices: tuple[Any, ...] | None
    in_axes: tuple[int | None, ...]
    out_axes: tuple[int | None, ...]
    donated_invars: tuple[bool, ...]

    def check_devices(self, jaxpr: Jaxpr) -> tuple[Any, ...]:
        """The devices that the map runs on, checked: see `devices_for`.

        Raises:
            ValueError: there are not the devices that it needs.
            TypeError: some belong to other processes, with which not all can be done that it does.
        """
        devices = devices_for(self, replicas.count_in(jaxpr), replicas.maps_devices(jaxpr))
        if not device_list(devices).is_fully_addressable:
            check_collectives(jaxpr, self.name)
        return devices


@contextlib.contextmanager
def inside(params: Mapping[str, Any]) -> Iterator[None]:
    """Context manager: inside it, the axis of a map is in scope."""
    with axes.extend(params["axis_name"], params["global_axis_size"], "pmap"):
        before = axes.check_vma.swap_local(False)
        try:
            yield
        finally:
            axes.check_vma.set_local(before)


def executable_for(jaxpr: ClosedJaxpr, info: MapInfo) -> Executable:
    """The executable of a map; compiled on the first call, for the devices there are."""
    platform = client.get_backend(info.backend) if info.devices is None else None
    key = "pmap", info, platform, config.use_shardy_partitioner.value
    found: Executable | None = statistics.compilation.find(jaxpr, key)
    if found is None:
        lowering = prepared(jaxpr, info)
        logger.debug(
            "pmap of %s: axis %r of size %d, %d replica(s), devices %s, slices of arguments %s.",
            info.name,
            info.axis_name,
            info.axis_size,
            len(lowering.where.devices),
            list(lowering.where.devices),
            jaxpr.in_avals,
        )
        # Lowering rules may be composed of other operations, which refer to the axis.
        with inside(info._asdict()):
            found = program.executable_at(lowering.closed, lowering.options, lowering.where)
        statistics.compilation.keep(jaxpr, key, found)
    else:
        statistics.compilation.hits += 1
    if config.distributed_debug.value:
        _log_run(info, found)
    return found


def _log_run(info: MapInfo, executable: Executable) -> None:
    logger.warning(
        "Running pmapped function: %s\ndevices: %s\nabstract args: %s\nfingerprint: %s",
        info.name,
        list(executable.devices),
        executable.in_avals,
        executable.loaded.fingerprint,
    )


class Prepared(NamedTuple):
    """A map ready to be lowered.

    Attributes:
        closed: what each replica does with its pieces.
        options: how it is compiled.
        where: the devices, and how values are cut over them.
    """

    closed: ClosedJaxpr
    options: program.Options
    where: Assignment


def prepared(jaxpr: ClosedJaxpr, info: MapInfo) -> Prepared:
    """What a map is lowered and compiled from.

    Raises:
        ValueError: there are not the devices that it needs.
    """
    devices = info.check_devices(jaxpr.jaxpr)
    local = _of_pieces(jaxpr, info)
    copies = Replicas(
        len(devices),
        (info.axis_name,),
        (info.global_axis_size,),
        tuple(axis is None for axis in info.in_axes),
    )
    options = program.Options(
        info.name, keep_unused=False, donated=info.donated_invars, replicas=copies
    )
    # A process passes and gets the slices of its own devices.
    own = tuple(device_list(devices).addressable_device_list)
    where = Assignment(
        devices,
        shardings(jaxpr.in_avals, info.in_axes, info.axis_size, own),
        shardings(jaxpr.out_avals, info.out_axes, info.axis_size, own),
        None,
        True,
        None,
    )
    return Prepared(local, options, where)


def shardings(
    avals: Sequence[Any], along: Sequence[int | None], size: int, devices: Sequence[Any]
) -> tuple[PmapSharding, ...]:
    """Where whole arrays are whose slices, of types `avals`, lie along these dimensions."""
    return tuple(
        PmapSharding(devices, pmap_sharding_spec(len(devices), size, _shape(aval), axis))
        for aval, axis in zip(avals, along, strict=True)
    )


def _shape(aval: Any) -> tuple[int, ...]:
    return (0,) if isinstance(aval, AbstractToken) else aval.shape


def _of_pieces(jaxpr: ClosedJaxpr, info: MapInfo) -> ClosedJaxpr:
    """The jaxpr as a function of pieces, which have the mapped dimension with size 1."""
    key = ("pieces", info.axis_name, info.global_axis_size, info.in_axes, info.out_axes)

    def function(*pieces: Any) -> list[Any]:
        slices = [
            x if axis is None else shape.squeeze(x, (axis,))
            for x, axis in zip(pieces, info.in_axes, strict=True)
        ]
        outs = evaluation.eval_closed_jaxpr(jaxpr, *slices)
        return [
            x if axis is None else shape.expand_dims(x, (axis,))
            for x, axis in zip(outs, info.out_axes, strict=True)
        ]

    def make() -> ClosedJaxpr:
        avals = whole_avals(jaxpr.in_avals, info.in_axes, 1)
        with inside(info._asdict()):
            return ClosedJaxpr(*staging.stage(function, avals, jaxpr.jaxpr.debug_info))

    found: ClosedJaxpr = jaxpr.remember(key, make)
    return found


def whole_avals(avals: Sequence[Any], along: Sequence[int | None], size: int) -> list[Any]:
    """The types of stacks of `size` values of types `avals`, along these dimensions."""
    return [
        aval if axis is None else aval.with_dim(axis, size)
        for aval, axis in zip(avals, along, strict=True)
    ]


def devices_for(info: MapInfo, inner: int, has_inner_map: bool) -> tuple[Any, ...]:
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
    everyone = client.devices(info.backend)
    needed = info.global_axis_size * inner
    if client.process_count(info.backend) > 1:
        return _devices_of_processes(info, inner)
    if needed > len(everyone):
        raise ValueError(
            message(
                "pmap",
                f"{info.name} needs more devices than there are.",
                got=f"{len(everyone)} device(s) of platform {everyone[0].platform}, "
                f"{needed} replicas",
                expected=f"{needed} devices"
                + (f": {info.axis_size} slices of {inner} each" if inner > 1 else ""),
                fix="map over fewer slices, or use vmap",
            )
        )
    return tuple(everyone[:needed])


AMONG_PROCESSES = frozenset(
    {
        *("psum", "pmax", "pmin", "all_gather", "reduce_scatter", "all_to_all"),
        *("ppermute", "pbroadcast", "axis_index"),
    }
)
"""The primitives that communicate between processes."""


def check_collectives(jaxpr: Jaxpr, name: str, allowed: frozenset[str] = AMONG_PROCESSES) -> None:
    """Refuses what devices of several processes cannot do together.

    Raises:
        TypeError: the jaxpr has such operations; the text lists them.
    """
    found = sorted(_collectives_in(jaxpr) - allowed)
    if found:
        raise TypeError(
            message(
                "pmap",
                f"{name} has collectives that do not work among several processes.",
                got=", ".join(found),
                expected=f"some of {', '.join(sorted(allowed))}",
            )
        )


def _collectives_in(jaxpr: Jaxpr) -> set[str]:
    found = set()
    for eqn in jaxpr.eqns:
        if eqn.primitive.communicates and eqn.primitive.axis_params:
            found.add(eqn.primitive.name)
        for inner in jaxprs_in_params(eqn.params):
            found |= _collectives_in(inner)
    return found


def devices_for_slices(name: str, settings: Settings, along: MappedArguments) -> tuple[Any, ...]:
    """As `devices_for`, before it is known what a function returns."""
    info = MapInfo(
        name=name,
        backend=settings.backend,
        axis_name=settings.axis_name,
        axis_size=along.size,
        global_axis_size=along.global_size,
        devices=settings.devices,
        in_axes=(),
        out_axes=(),
        donated_invars=(),
    )
    return devices_for(info, 1, has_inner_map=False)


def _given_devices(info: MapInfo, inner: int, has_inner_map: bool) -> tuple[Any, ...]:
    devices = info.devices or ()
    here = client.process_index(devices[0].client)
    local = [d for d in devices if d.process_index == here]
    if len(local) < len(devices) and has_inner_map:
        raise ValueError(
            message(
                "pmap",
                f"{info.name} has a pmap inside and names devices of several processes.",
                got=f"devices={list(devices)}",
                fix="give axis_size in place of devices",
            )
        )
    needed = info.axis_size * inner
    names = ", ".join(map(str, local))
    if len(local) != needed and inner == 1:
        raise ValueError(
            message(
                "pmap",
                "the mapped dimension has another size than the number of devices of this process.",
                got=f"size {info.axis_size}, {len(local)} local device(s): {names}",
                expected=f"one device for each slice of the arguments of {info.name}",
                fix="pass as many slices as devices",
            )
        )
    if len(local) != needed:
        raise ValueError(
            message(
                "pmap",
                f"{info.name} needs {needed} local devices, because of maps inside it.",
                got=f"outer axis of size {info.axis_size}, {inner} devices for each slice; "
                f"{len(local)} local device(s): {names}",
                fix="name as many devices, or leave devices away",
            )
        )
    if len(devices) != info.global_axis_size * inner:
        raise ValueError(
            message(
                "pmap",
                "the number of devices is not that of the replicas.",
                got=f"{len(devices)} devices, {info.global_axis_size * inner} replicas",
                fix="name one device for each replica",
            )
        )
    return devices


def _devices_of_processes(info: MapInfo, inner: int) -> tuple[Any, ...]:
    """The first devices of each process, one process after the other.

    Raises:
        ValueError: they are not as many as the slices of all processes need.
    """
    _check_processes(info, inner)
    own = info.axis_size * inner
    processes = range(client.process_count(info.backend))
    if info.global_axis_size == info.axis_size:
        # The user has said that the others do not take part.
        processes = range(here := client.process_index(info.backend), here + 1)
    local = [client.local_devices(process, info.backend)[:own] for process in processes]
    found = tuple(device for devices in local for device in devices)
    if len(found) != info.global_axis_size * inner:
        raise ValueError(
            message(
                "pmap",
                "axis_size is not the number of slices of all processes together.",
                got=f"axis_size={info.global_axis_size}, {info.axis_size} slices of this process, "
                f"of {inner} device(s) each; {len(found)} devices in {len(processes)} process(es)",
                fix="pass the same number of slices in each process, and their sum as axis_size",
            )
        )
    return found


def _check_processes(info: MapInfo, inner: int) -> None:
    """Checks that each process has a slice for each of its devices, as it has said no other size.

    Raises:
        ValueError: it has not.
    """
    local = client.local_device_count(info.backend)
    own = info.axis_size * inner
    is_sum = info.global_axis_size == info.axis_size * client.process_count(info.backend)
    if own == local or not is_sum:
        return
    if inner == 1:
        raise ValueError(
            message(
                "pmap",
                "among several processes, the mapped dimension must have the size of the number "
                "of local devices.",
                got=f"size {info.axis_size}, {local} local devices",
                fix="pass a slice for each local device, or name devices",
            )
        )
    raise ValueError(
        message(
            "pmap",
            "among several processes, a map with maps inside must use all local devices.",
            got=f"size {info.axis_size} times {inner} replicas inside, {local} local devices",
            fix="choose sizes whose product is the number of local devices, or give axis_size",
        )
    )
