"""Device assignment: where a program over several devices runs, and how its values are cut.

Input: a program, its arguments, what the user said.  Output: an `Assignment`, gathered from the
placements of committed arguments, of arguments and results that the user has given, from those
inside the program, and from the mesh in force.  All must agree on the devices and their order.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from minijax.core import deferral, meshes, source
from minijax.core.aval import AbstractValue, ShapedArray
from minijax.core.cache import Cache
from minijax.core.errors import error, message
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr
from minijax.core.meshes import MeshAxes
from minijax.core.native import Device
from minijax.core.operators import Avals, Values
from minijax.core.rules import Rules
from minijax.runtime import client, in_flight, placement
from minijax.runtime.array import is_array, physical_aval
from minijax.runtime.pmap_sharding import PmapSharding
from minijax.sharding import hlo, rules
from minijax.sharding.base import Sharding
from minijax.sharding.mesh import Mesh
from minijax.sharding.named import (
    GSPMDSharding,
    NamedSharding,
    SingleDeviceSharding,
    is_abstract,
    is_auto,
    named,
)

if TYPE_CHECKING:
    from minijax.sharding import older
else:
    older = deferral.module("minijax.sharding.older")

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


class Layout(NamedTuple):
    """How the values of a program are cut, on any devices: all that lowering depends on.

    Attributes:
        partitions: the number of devices.
        ins: for each argument its placement without devices, or None for the compiler's choice.
        outs: the same for each result.
    """

    partitions: int
    ins: tuple[Sharding | None, ...]
    outs: tuple[Sharding | None, ...]


class Assignment(NamedTuple):
    """Where a program runs and how its values are cut; hashable.

    Attributes:
        devices: the devices, in order.
        ins: for each argument its placement in canonical notation, or None for the compiler's
            choice.
        outs: the placement that is demanded of each result, as it was written.
        mesh: the mesh in whose terms results are described, if there is one.
        committed: whether results stay where they are.
        layout: the part of it that lowering depends on; None for one device and its own memory.
    """

    devices: tuple[Device, ...]
    ins: tuple[Sharding | None, ...]
    outs: tuple[Sharding | None, ...]
    mesh: Mesh | None
    committed: bool
    layout: Layout | None


def _abstract(sharding: Sharding | None) -> Any:
    return sharding.abstract if isinstance(sharding, NamedSharding) else sharding


class Placeholder(NamedTuple):
    """Stands for an argument of which only the placement is known."""

    sharding: Sharding


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


def gather(
    closed: ClosedJaxpr, args: Values, options: Any, kept: Sequence[int] | None = None
) -> Assignment:
    """The assignment of one call.

    Args:
        closed: the program.
        args: its arguments.
        options: how it is compiled.
        kept: which arguments it uses, if not all: nobody asks where the others are.

    Raises:
        DeviceAssignmentMismatchError: two of those who name devices name different ones.
        ValueError: an argument is placed otherwise than the user says it is, or nobody says on
            which devices an abstract mesh stands.
    """
    jaxpr = closed.jaxpr
    in_avals = [physical_aval(v.aval) for v in jaxpr.invars]
    out_avals = [physical_aval(v.aval) for v in jaxpr.outvars]
    own = _own_placements(args, in_avals, kept)
    given = _only(kept, options.in_shardings or [None] * len(args))
    wanted = [g or o for g, o in zip(given, own, strict=True)]
    outs = list(options.out_shardings or [None] * len(out_avals))
    inside = shardings_inside(closed)
    claims = [
        *_of_context(options.name),
        *_of_arguments(own, given, closed, options.name),
        *_of_results(outs, closed, options.name),
        *_of_equations(inside, options.name),
    ]
    devices = _agreed(claims, options.name) or (client.default_device(),)
    mesh = meshes.device_context.value or _first_mesh(
        [*wanted, *outs, *(found.sharding for found in inside)]
    )
    ins = [_bound(sharding, devices, options.name) for sharding in wanted]
    outs = [_bound(sharding, devices, options.name) for sharding in outs]
    for i, (there, demanded) in enumerate(zip(own, ins, strict=True)):
        if given[i] is not None and not hasattr(args[i], "sharding"):
            _check_each_has_whole(_argument(i, closed, options.name), demanded)
        if given[i] is not None and there is not None and demanded is not None:
            is_movable = type(args[i]) is not Placeholder
            if not is_movable or _is_on(there, demanded):
                _check_given(_argument(i, closed, options.name), there, demanded, in_avals[i])
    outs = _typed(outs, closed, mesh)
    ins = _canonical(ins, in_avals)
    layout = None
    if len(devices) > 1 or any(s is not None and s.special_memory_kind for s in (*ins, *outs)):
        layout = _layout(len(devices), ins, _canonical(outs, out_avals))
    return Assignment(devices, tuple(ins), tuple(outs), mesh, bool(claims), layout)


def _only(kept: Sequence[int] | None, items: Sequence[Any]) -> list[Any]:
    """The items at the places `kept`, and None at others."""
    chosen = range(len(items)) if kept is None else set(kept)
    return [x if i in chosen else None for i, x in enumerate(items)]


def _of_context(function: str) -> Iterator[Claim]:
    context = meshes.device_context.value
    if context is not None:
        who = f"jit's context mesh, which set_mesh has put in force around {function}"
        yield Claim(MismatchType.CONTEXT_DEVICES, context.flat_devices, who)


def _of_arguments(
    own: Sequence[Any], given: Sequence[Any], closed: ClosedJaxpr, function: str
) -> Iterator[Claim]:
    for i, (there, wanted) in enumerate(zip(own, given, strict=True)):
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


def on_one_device(device: Device, *, committed: bool) -> Assignment:
    """The assignment of programs that run on one device, whose values are whole."""
    return Assignment((device,), (), (), None, committed, None)


def layout_without_devices(
    closed: ClosedJaxpr, args: Values, options: Any, kept: Sequence[int] | None = None
) -> Layout | None:
    """The layout of a program of which nothing but abstract meshes is known.

    None where some device is named, or no abstract mesh is.

    Raises:
        ValueError: the placements' meshes differ in size.
    """
    given = options.in_shardings or (None,) * len(args)
    in_avals = [physical_aval(v.aval) for v in closed.jaxpr.invars]
    own = _own_placements(args, in_avals, kept)
    ins = _only(kept, [g or o for g, o in zip(given, own, strict=True)])
    outs = list(options.out_shardings or (None,) * len(closed.jaxpr.outvars))
    inside = [
        found.sharding
        for found in _all_inside(closed)
        if found.sharding.num_devices > 1 or not is_abstract(found.sharding)
    ]
    named_ones = [s for s in (*ins, *outs, *inside) if s is not None]
    if (
        not named_ones
        or not all(map(is_abstract, named_ones))
        or meshes.device_context.value is not None
    ):
        return None
    sizes = {s.num_devices for s in named_ones}
    if len(sizes) > 1:
        problem = "the abstract meshes of the program are of different sizes."
        error(ValueError, options.name, problem, got=", ".join(map(str, sorted(sizes))))
    outs = _typed(outs, closed, named_ones[0].mesh)
    return _layout(
        sizes.pop(),
        _canonical(ins, in_avals),
        _canonical(outs, [physical_aval(v.aval) for v in closed.jaxpr.outvars]),
    )


def _typed(outs: Sequence[Any], closed: ClosedJaxpr, mesh: MeshAxes | None) -> list[Any]:
    """The placements of results, where nobody gives one that of the type on Explicit axes."""
    if mesh is None or not mesh.explicit_axes:
        return list(outs)
    return [
        out or _placement_of_type(var.aval, mesh)
        for out, var in zip(outs, closed.jaxpr.outvars, strict=True)
    ]


def _layout(partitions: int, ins: Sequence[Any], outs: Values) -> Layout:
    return Layout(partitions, tuple(map(_abstract, ins)), tuple(map(_abstract, outs)))


def _canonical(shardings: Sequence[Any], avals: Avals) -> list[Sharding | None]:
    return [
        None if sharding is None else placement.canonical(sharding, aval.ndim)
        for sharding, aval in zip(shardings, avals, strict=True)
    ]


def _own_placements(
    args: Values, avals: Avals, kept: Sequence[int] | None
) -> list[Sharding | None]:
    """What committed arguments demand, where they are used."""
    return [
        None if x is None else _own(x, aval)
        for x, aval in zip(_only(kept, args), avals, strict=True)
    ]


def _own(x: Any, aval: ShapedArray) -> Sharding | None:
    """The placement that a committed argument demands."""
    if type(x) is Placeholder:
        return placement.canonical(x.sharding, aval.ndim)
    if not is_array(x) or not x.buffer._committed:
        return None
    in_flight.check_alive(x.buffer)
    return x.buffer._sharding.canonical


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


def public_sharding(
    tiling: object, aval: ShapedArray, assignment: Assignment, originals: Sequence[Any]
) -> Sharding:
    """A result's placement, which the compiler has chosen, in the terms of the program's inputs.

    Args:
        tiling: the choice.
        aval: the result's type.
        assignment: where the program runs.
        originals: the placements of its inputs as users have written them.
    """
    ndim = physical_aval(aval).ndim
    for own in originals:
        if isinstance(own, SingleDeviceSharding) and own.device_assignment == assignment.devices:
            return own
        if (isinstance(own, NamedSharding) and len(own.spec) <= aval.ndim) or (
            isinstance(own, PmapSharding) and len(own.sharding_spec.sharding) == aval.ndim
        ):
            found = placement.native(own, ndim)
            if found.hlo == tiling and found.devices == assignment.devices:
                return own
            break
        if (
            isinstance(own, older.PositionalSharding)
            and own.device_assignment == assignment.devices
        ):
            tiles = hlo.tiling_of(tiling, ndim, len(assignment.devices))
            return older.PositionalSharding.of_tiling(assignment.devices, tiles)
    spec = None if assignment.mesh is None else hlo.spec_of(tiling, assignment.mesh, ndim)
    if spec is None:
        return GSPMDSharding(assignment.devices, tiling)
    return named(assignment.mesh, spec)
