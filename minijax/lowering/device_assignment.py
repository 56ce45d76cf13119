"""Device assignment: which devices a call runs on, and how its values are sharded over them.

Input: a program, its arguments, and what the user requested.  Output: a `CallPlan`.  This is the
only module that decides by comparing devices.  Most programs run on one device, which is found in
one pass over the arguments.  Otherwise committed arguments, requested shardings, shardings inside
the program and the active mesh all name devices; they must agree on them and on their order.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import config, meshes, source
from minijax.core.aval import AbstractValue, ShapedArray
from minijax.core.cache import Cache
from minijax.core.errors import error, message, warn
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr
from minijax.core.meshes import MeshAxes
from minijax.core.native import Device
from minijax.core.operators import Avals
from minijax.core.rules import Rules
from minijax.lowering import replicas
from minijax.lowering.call_plan import (
    ANYWHERE,
    ONE_DEVICE,
    AbstractPlan,
    CallPlan,
    Partitioned,
    Placeholder,
    PlanShape,
    ProgramOptions,
    Replicated,
    RequestedPlacement,
)
from minijax.runtime import client, in_flight, placement
from minijax.runtime.array import committed_sharding, physical_aval
from minijax.sharding import rules
from minijax.sharding.base import Sharding
from minijax.sharding.mesh import Mesh
from minijax.sharding.named import GSPMDSharding, NamedSharding, is_abstract, is_auto, named

names_placement = Rules("names_placement")
"""The placement that one application names: `(primitive, **params)` gives a sharding, which demands
devices if its mesh has some, or None; without a rule no application names any."""


class MismatchType(enum.Enum):
    """Who may say on which devices a program runs."""

    ARG_SHARDING = "an argument, by where it lives"
    IN_SHARDING = "in_shardings"
    OUT_SHARDING = "out_shardings"
    SHARDING_INSIDE_COMPUTATION = "an operation of the program"
    CONTEXT_DEVICES = "set_mesh"


class DeviceAssignmentMismatchError(ValueError):
    """A program was asked to run on different devices at once.

    Attributes:
        kinds: who has asked: two `MismatchType`s.
    """

    kinds: tuple[MismatchType, MismatchType]


_plans = Cache(
    "plans",
    "plans of calls",
    key="options, partitioner; one device and whether it is committed, or the requested placement, "
    "the active mesh and native shardings of arguments",
    owner="jaxpr",
    counted=False,
)
_names_devices = Cache(
    "programs that name devices",
    "whether a program names shardings on devices, or maps over devices",
    key="none",
    owner="jaxpr",
    counted=False,
)


def plan_call(
    closed: ClosedJaxpr,
    args: Sequence[Any],
    options: ProgramOptions,
    requested: RequestedPlacement = ANYWHERE,
    used: Sequence[int] | None = None,
) -> CallPlan:
    """Decides where and how a call runs.

    Args:
        closed: the program.
        args: its arguments: arrays, host values or `Placeholder`s.
        options: how it is compiled.
        requested: where the user wants it to run.
        used: positions of the arguments that the program uses, or None for all; the others do not
            decide anything.

    Raises:
        DeviceAssignmentMismatchError: two of those who name devices name different ones.
        ValueError: an argument's sharding differs from the requested one, an abstract mesh cannot
            be given devices, or there are fewer devices than replicas.
        NotImplementedError: a program with replicas inside `jit` runs in several processes.
    """
    if requested.device is not None and replicas.count(closed) == 1:
        return _plan_on_device(closed, args, options, requested.device, committed=True)
    if not (requested.in_shardings or requested.out_shardings or requested.device):
        candidates = _committed_devices(closed, args, used)
        if candidates is not None:
            device = candidates[0] if candidates else client.default_device()
            return _plan_on_device(closed, args, options, device, committed=bool(candidates))
    native_shardings = [x if type(x) is Placeholder else committed_sharding(x) for x in args]
    states = meshes.device_context.value, config.use_shardy_partitioner.value
    key = options, requested, *states, *native_shardings
    plan: CallPlan | None = _plans.find(closed, key)
    if plan is None:
        if replicas.count(closed) > 1:
            plan = _plan_replicas(closed, args, options, requested)
        else:
            plan = _plan_partitions(closed, args, options, requested, used)
        # The default device of uncommitted calls may change.
        if plan.committed:
            _plans.keep(closed, key, plan)
    return plan


def _committed_devices(
    closed: ClosedJaxpr, args: Sequence[Any], used: Sequence[int] | None
) -> tuple[Device, ...] | None:
    """Returns the device that all committed arguments are on, if there is at most one.

    The result is empty if no argument is committed. It is None if the program needs the whole
    comparison of shardings: an argument is on several devices, two arguments are on different
    devices, a mesh is active, or the program itself names devices.
    """
    if meshes.device_context.value is not None:
        return None
    device = None
    for x in args if used is None else [args[i] for i in used]:
        if type(x) is Placeholder:
            return None
        sharding = committed_sharding(x)
        if sharding is None:
            continue
        argument_device = sharding.device
        if argument_device is None or (device is not None and argument_device != device):
            return None
        device = argument_device
    names_devices = _names_devices.find(closed)
    if names_devices is None:
        names_devices = replicas.count(closed) > 1 or bool(shardings_inside(closed))
        _names_devices.keep(closed, None, names_devices)
    if names_devices:
        return None
    return () if device is None else (device,)


def _plan_on_device(
    closed: ClosedJaxpr,
    args: Sequence[Any],
    options: ProgramOptions,
    device: Device,
    *,
    committed: bool,
) -> CallPlan:
    key = options, device, committed, config.use_shardy_partitioner.value
    plan: CallPlan | None = _plans.find(closed, key)
    if plan is None:
        abstract = _abstract_plan(options, device, ONE_DEVICE)
        committed_args = _committed_positions(args)
        plan = CallPlan(abstract, (device,), committed=committed, committed_args=committed_args)
        _plans.keep(closed, key, plan)
    return plan


def _abstract_plan(options: ProgramOptions, device: Device, shape: PlanShape) -> AbstractPlan:
    return AbstractPlan(options, device.platform, shape, config.use_shardy_partitioner.value)


def plan_of_replicas(
    options: ProgramOptions,
    devices: tuple[Device, ...],
    shape: Replicated,
    in_shardings: tuple[Sharding, ...],
    out_shardings: tuple[Sharding, ...],
) -> CallPlan:
    """Returns the plan of a program of which every one of `devices` runs a replica."""
    abstract = _abstract_plan(options, devices[0], shape)
    return CallPlan(abstract, devices, in_shardings, out_shardings, committed=True)


def _plan_replicas(
    closed: ClosedJaxpr, args: Sequence[Any], options: ProgramOptions, requested: RequestedPlacement
) -> CallPlan:
    """Returns the plan of a jitted program that maps over devices: values are whole everywhere.

    Raises:
        ValueError: there are fewer devices than replicas, or the program is also partitioned.
        NotImplementedError: there are several processes.
    """
    needed = replicas.count(closed)
    name = options.name
    if client.process_count() > 1:
        got = f"{client.process_count()} processes"
        fix = "call the mapped function outside of jit"
        error(NotImplementedError, name, "jit of pmap works in one process only.", got=got, fix=fix)
    devices = client.local_devices()
    if needed > len(devices):
        error(
            ValueError,
            name,
            "a map inside needs more devices than there are.",
            got=f"{needed} replicas, {len(devices)} devices",
            expected=f"at most {len(devices)} replicas",
        )
    _check_not_partitioned(closed, name, requested)
    warn(
        UserWarning,
        name,
        "jit of pmap copies all arguments and results to every device.",
        got=f"a function that maps over {needed} devices, inside jit",
        fix="leave jit away: pmap compiles what it maps",
    )
    chosen = tuple(devices[:needed])
    everywhere = GSPMDSharding.get_replicated(chosen)
    plan = plan_of_replicas(
        options,
        chosen,
        Replicated(needed),
        (everywhere,) * len(closed.jaxpr.invars),
        (everywhere,) * len(closed.jaxpr.outvars),
    )
    return dataclasses.replace(plan, committed_args=_committed_positions(args))


def _check_not_partitioned(closed: ClosedJaxpr, name: str, requested: RequestedPlacement) -> None:
    """Checks that a program with replicas is not partitioned as well: XLA supports only one.

    Raises:
        ValueError: the program is partitioned over a mesh.
    """
    shardings = [s for s in (*requested.in_shardings, *requested.out_shardings) if s is not None]
    shardings += [found.sharding for found in shardings_inside(closed)]
    mesh = meshes.device_context.value
    if mesh is not None and mesh.size > 1:
        shardings.append(mesh)
    if shardings:
        problem = "pmap cannot be inside a program over a mesh of devices."
        got = f"a map over {replicas.count(closed)} devices, and {shardings[0]}"
        fix = "use shard_map or vmap in place of pmap, or call it outside of jit"
        error(ValueError, name, problem, got=got, fix=fix)


def _committed_positions(args: Sequence[Any]) -> tuple[int, ...]:
    return tuple(i for i, x in enumerate(args) if committed_sharding(x) is not None)


class Claim(NamedTuple):
    """Somebody who says on which devices a program runs."""

    kind: MismatchType
    devices: tuple[Device, ...]
    who: str


class Inside(NamedTuple):
    """A placement that an equation of a program names."""

    sharding: Sharding
    primitive: str
    line: str


_named_inside = Cache(
    "shardings inside",
    "placements that equations of programs name",
    key="none",
    owner="jaxpr",
    counted=False,
)


def shardings_inside(closed: ClosedJaxpr) -> list[Inside]:
    """The placements on devices that a program's equations name, also in inner programs."""
    return [found for found in _all_inside(closed) if not is_abstract(found.sharding)]


def _all_inside(closed: ClosedJaxpr) -> list[Inside]:
    """As `shardings_inside`, with those on abstract meshes."""
    found: list[Inside] | None = _named_inside.find(closed)
    return _named_inside.keep(closed, None, list(_inside(closed.jaxpr))) if found is None else found


def _inside(jaxpr: Jaxpr) -> Iterator[Inside]:
    for eqn in jaxpr.eqns:
        placed = names_placement.of(eqn.primitive)
        if placed is not None:
            sharding = placed(**eqn.params)
            if sharding is not None:
                yield Inside(sharding, eqn.primitive.name, source.summarize(eqn.source))
        for value in eqn.params.values() if eqn.primitive.multiple_results else ():
            for inner in value if isinstance(value, (tuple, list)) else (value,):
                if isinstance(inner, ClosedJaxpr):
                    yield from _all_inside(inner)
                elif isinstance(inner, Jaxpr):
                    yield from _inside(inner)


def _plan_partitions(
    closed: ClosedJaxpr,
    args: Sequence[Any],
    options: ProgramOptions,
    requested: RequestedPlacement,
    used: Sequence[int] | None,
) -> CallPlan:
    """Returns the plan of a program on the devices that its arguments and shardings name.

    Raises:
        DeviceAssignmentMismatchError: two of those who name devices name different ones.
        ValueError: an argument's sharding differs from the requested one, or an abstract mesh
            cannot be given devices.
    """
    name = options.name
    jaxpr = closed.jaxpr
    in_avals = [physical_aval(v.aval) for v in jaxpr.invars]
    out_avals = [physical_aval(v.aval) for v in jaxpr.outvars]
    arg_shardings = _shardings_of_committed(args, in_avals, used)
    written = requested.in_shardings or (None,) * len(args)
    given = _only(used, written)
    wanted = [g or s for g, s in zip(given, arg_shardings, strict=True)]
    outs: list[Any] = list(requested.out_shardings or [None] * len(out_avals))
    inside = shardings_inside(closed)
    claims = [
        *_of_context(name),
        *_of_arguments(arg_shardings, given, closed, name),
        *_of_results(outs, closed, name),
        *_of_equations(inside, name),
    ]
    devices = _agreed(claims, name) or (client.default_device(),)
    mesh = meshes.device_context.value or _first_mesh(
        [*wanted, *outs, *(found.sharding for found in inside)]
    )
    ins = [_bound(sharding, devices, name) for sharding in wanted]
    outs = [_bound(sharding, devices, name) for sharding in outs]
    for i, (sharding, demanded) in enumerate(zip(arg_shardings, ins, strict=True)):
        if given[i] is not None and not hasattr(args[i], "sharding"):
            _check_each_has_whole(_argument(i, closed, name), demanded)
        if given[i] is not None and sharding is not None and demanded is not None:
            is_movable = type(args[i]) is not Placeholder
            if not is_movable or _is_on(sharding, demanded):
                _check_given(_argument(i, closed, name), sharding, demanded, in_avals[i])
    outs = _typed(outs, closed, mesh)
    ins = _canonical(ins, in_avals)
    is_in_other_memory = any(s is not None and s.special_memory_kind for s in (*ins, *outs))
    if mesh is None and len(devices) == 1 and not is_in_other_memory:
        return _plan_on_device(closed, args, options, devices[0], committed=bool(claims))
    shape: PlanShape = ONE_DEVICE
    if len(devices) > 1 or is_in_other_memory:
        shape = _partitioned(len(devices), ins, _canonical(outs, out_avals))
    return CallPlan(
        _abstract_plan(options, devices[0], shape),
        devices,
        tuple(ins),
        tuple(outs),
        mesh,
        committed=bool(claims),
        written_shardings=tuple(map(_written_sharding, written, args)),
        committed_args=_committed_positions(args),
    )


def _written_sharding(requested: Any, x: Any) -> Any:
    """Returns an argument's sharding on devices as the user wrote it, or None."""
    if not _is_open(requested):
        return requested
    if type(x) is Placeholder:
        return None if _is_open(x.sharding) else x.sharding
    sharding = committed_sharding(x)
    return None if sharding is None else sharding.public


def _is_open(requested: Any) -> bool:
    return requested is None or is_auto(requested) or is_abstract(requested)


def _only(used: Sequence[int] | None, items: Sequence[Any]) -> list[Any]:
    """Returns the items at the positions `used`, and None at the others."""
    chosen = range(len(items)) if used is None else set(used)
    return [x if i in chosen else None for i, x in enumerate(items)]


def _of_context(function: str) -> Iterator[Claim]:
    context = meshes.device_context.value
    if context is not None:
        who = f"jit's context mesh, which set_mesh has put in force around {function}"
        yield Claim(MismatchType.CONTEXT_DEVICES, context.flat_devices, who)


def _of_arguments(
    arg_shardings: Sequence[Any], given: Sequence[Any], closed: ClosedJaxpr, function: str
) -> Iterator[Claim]:
    for i, (there, wanted) in enumerate(zip(arg_shardings, given, strict=True)):
        devices = _devices_of(wanted)
        who = _argument(i, closed, function)
        if devices is not None:
            yield Claim(MismatchType.IN_SHARDING, devices, f"explicit input sharding of {who}")
        elif there is not None and not is_abstract(there):
            yield Claim(MismatchType.ARG_SHARDING, there.device_assignment, who)


def _of_results(given: Sequence[Any], closed: ClosedJaxpr, function: str) -> Iterator[Claim]:
    paths = closed.jaxpr.debug_info.result_paths or ()
    for i, wanted in enumerate(given):
        devices = _devices_of(wanted)
        if devices is not None:
            path = paths[i] if i < len(paths) else f"result {i}"
            aval = closed.jaxpr.outvars[i].aval.str_short()
            who = f"explicit output sharding of {path} of {function}, {aval}"
            yield Claim(MismatchType.OUT_SHARDING, devices, who)


def _of_equations(inside: Sequence[Inside], function: str) -> Iterator[Claim]:
    kind = MismatchType.SHARDING_INSIDE_COMPUTATION
    for found in inside:
        who = f"{found.primitive} inside jit of {function}, at {found.line}"
        yield Claim(kind, found.sharding.device_assignment, who)


def _devices_of(given: Any) -> tuple[Any, ...] | None:
    """The devices that a placement given by the user names, if it names some."""
    if given is None or is_abstract(given):
        return None
    if is_auto(given):
        return given.mesh.flat_devices
    return given.device_assignment


def _bound(given: Any, devices: tuple[Any, ...], function: str) -> Sharding | None:
    """A placement given by the user, on the devices of the program if it names none itself.

    Raises:
        ValueError: its mesh has another number of devices.
    """
    if is_auto(given):
        return None
    if not is_abstract(given):
        return given
    mesh = given.mesh
    if mesh.size != len(devices):
        error(
            ValueError,
            function,
            "the program runs on another number of devices than an abstract mesh has.",
            got=f"{given}, on {_devices_text(devices)}",
            fix="call it on arguments that are placed on a mesh of this size, under set_mesh, "
            "or give a sharding on a Mesh with devices",
        )
    box = np.array(devices, object).reshape(mesh.axis_sizes)
    there = Mesh(box, mesh.axis_names, mesh.axis_types)
    return given.update(mesh=there)


def _first_mesh(shardings: Sequence[Any]) -> Mesh | None:
    for sharding in shardings:
        if is_auto(sharding) or (isinstance(sharding, NamedSharding) and not is_abstract(sharding)):
            return sharding.mesh
    return None


def plan_without_devices(
    closed: ClosedJaxpr,
    args: Sequence[Any],
    options: ProgramOptions,
    requested: RequestedPlacement,
    used: Sequence[int] | None = None,
) -> AbstractPlan | None:
    """Returns the abstract plan of a program whose shardings are all on abstract meshes.

    Returns None if some sharding names devices, or if there is no sharding at all. The platform is
    that of the default device.

    Raises:
        ValueError: the meshes have different sizes.
    """
    given = requested.in_shardings or (None,) * len(args)
    in_avals = [physical_aval(v.aval) for v in closed.jaxpr.invars]
    arg_shardings = _shardings_of_committed(args, in_avals, used)
    ins = _only(used, [g or s for g, s in zip(given, arg_shardings, strict=True)])
    outs = list(requested.out_shardings or (None,) * len(closed.jaxpr.outvars))
    inside = [
        found.sharding
        for found in _all_inside(closed)
        if found.sharding.num_devices > 1 or not is_abstract(found.sharding)
    ]
    shardings = [s for s in (*ins, *outs, *inside) if s is not None]
    if (
        not shardings
        or not all(map(is_abstract, shardings))
        or meshes.device_context.value is not None
    ):
        return None
    sizes = {s.num_devices for s in shardings}
    if len(sizes) > 1:
        problem = "the abstract meshes of the program are of different sizes."
        error(ValueError, options.name, problem, got=", ".join(map(str, sorted(sizes))))
    outs = _typed(outs, closed, shardings[0].mesh)
    shape = _partitioned(
        sizes.pop(),
        _canonical(ins, in_avals),
        _canonical(outs, [physical_aval(v.aval) for v in closed.jaxpr.outvars]),
    )
    return _abstract_plan(options, client.default_device(), shape)


def _typed(outs: Sequence[Any], closed: ClosedJaxpr, mesh: MeshAxes | None) -> list[Any]:
    """The placements of results, where nobody gives one that of the type on Explicit axes."""
    if mesh is None or not mesh.explicit_axes:
        return list(outs)
    return [
        out or _placement_of_type(var.aval, mesh)
        for out, var in zip(outs, closed.jaxpr.outvars, strict=True)
    ]


def _partitioned(num_devices: int, ins: Sequence[Any], outs: Sequence[Any]) -> Partitioned:
    return Partitioned(num_devices, tuple(map(_abstract, ins)), tuple(map(_abstract, outs)))


def _abstract(sharding: Sharding | None) -> Any:
    return sharding.abstract if isinstance(sharding, NamedSharding) else sharding


def _canonical(shardings: Sequence[Any], avals: Avals) -> list[Sharding | None]:
    return [
        None if sharding is None else placement.canonical(sharding, aval.ndim)
        for sharding, aval in zip(shardings, avals, strict=True)
    ]


def _shardings_of_committed(
    args: Sequence[Any], avals: Avals, used: Sequence[int] | None
) -> list[Sharding | None]:
    """Returns the canonical sharding of each argument that is used and committed, else None."""
    return [
        None if x is None else _sharding_of_committed(x, aval)
        for x, aval in zip(_only(used, args), avals, strict=True)
    ]


def _sharding_of_committed(x: Any, aval: AbstractValue) -> Sharding | None:
    if type(x) is Placeholder:
        return placement.canonical(x.sharding, aval.ndim)
    sharding = committed_sharding(x)
    if sharding is None:
        return None
    in_flight.check_alive(x.buffer)
    return sharding.canonical


def _placement_of_type(aval: AbstractValue, mesh: MeshAxes) -> Sharding | None:
    """The placement of a result on a mesh with explicit axes, if its type tells it."""
    # How Auto axes split it is the compiler's choice.
    if not (isinstance(aval, ShapedArray) and mesh.are_all_axes_explicit):
        return None
    return named(mesh, rules.spec_of(aval).padded(aval.ndim), aval.memory_kind)


def _is_on(own: Sharding, given: Sharding) -> bool:
    """Whether an argument is on the devices that the user says; from others it is moved."""
    return own.num_devices > 1 and own.device_assignment == given.device_assignment


def _check_given(who: str, own: Any, given: Any, aval: ShapedArray) -> None:
    """Refuses an argument that is placed otherwise than the user says.

    Raises:
        ValueError: it is.
    """
    if is_abstract(own):
        own = own.update(mesh=given.mesh)
    if not own.is_equivalent_to(given, aval.ndim):
        problem = f"{who} is placed otherwise than in_shardings says."
        fix = "move it with minijax.device_put, or leave its in_shardings away"
        error(ValueError, "jit", problem, got=str(own), expected=str(given), fix=fix)


def _check_each_has_whole(who: str, demanded: Sharding | None) -> None:
    """Refuses a value of the host that processes shall have different pieces of.

    Raises:
        ValueError: they shall.
    """
    if demanded is not None and not (demanded.is_fully_addressable or demanded.is_fully_replicated):
        error(
            ValueError,
            "jit",
            f"{who} is a value of the host, of which each process would use a piece.",
            got=str(demanded),
            expected="an array, or in_shardings that replicate it",
            fix="minijax.device_put(x, sharding) of the same value in all processes, or "
            "minijax.make_array_from_process_local_data(sharding, part) of a part in each",
        )


def _argument(i: int, closed: ClosedJaxpr, function: str) -> str:
    names = closed.jaxpr.debug_info.arg_names
    name = names[i] if names is not None and i < len(names) else str(i)
    return f"argument {name} of {function}, {closed.jaxpr.invars[i].aval.str_short()}"


def _agreed(claims: Sequence[Claim], function: str) -> tuple[Any, ...] | None:
    """The devices that all claims name.

    Raises:
        DeviceAssignmentMismatchError: they name different ones.
    """
    if not claims:
        return None
    first = claims[0]
    for claim in claims[1:]:
        if claim.devices != first.devices:
            raise _mismatch(first, claim, function)
    return first.devices


def _mismatch(first: Claim, second: Claim, function: str) -> DeviceAssignmentMismatchError:
    if set(first.devices) == set(second.devices):
        problem = "one program cannot run on the same devices in different orders."
    else:
        problem = "one program cannot run on different devices."
    fix = "place all of it on one mesh"
    if MismatchType.ARG_SHARDING in (first.kind, second.kind):
        fix = "move one of them with minijax.device_put(x, sharding)"
    elif MismatchType.CONTEXT_DEVICES in (first.kind, second.kind):
        fix = "call it outside of set_mesh, or place all of it on that mesh"
    error = DeviceAssignmentMismatchError(
        message(
            function,
            problem,
            got=f"{first.who}, on {_devices_text(first.devices)}\n"
            f"{second.who}, on {_devices_text(second.devices)}",
            expected="the same devices in the same order",
            fix=fix,
        )
    )
    error.kinds = (first.kind, second.kind)
    return error


def _devices_text(devices: Sequence[Any]) -> str:
    ids = [d.id for d in devices]
    shown = str(ids) if len(ids) <= 16 else f"[{', '.join(map(str, ids[:16]))}, …]"
    return f"device ids {shown} of platform {devices[0].platform.upper()}"
