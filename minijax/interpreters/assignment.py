"""Device assignment: where a program over several devices runs, and how its values are cut.

Input: a program, its arguments, what the user said.  Output: an `Assignment`, gathered from the
placements of committed arguments, of arguments and results that the user has given, from those
inside the program, and from the mesh in force.  All must agree on the devices and their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from minijax.core import meshes, source
from minijax.core.errors import message
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr
from minijax.core.meshes import AbstractMesh
from minijax.core.specs import PartitionSpec
from minijax.runtime import client, placement
from minijax.runtime.array import Array, physical_aval
from minijax.sharding import hlo
from minijax.sharding.base import Sharding
from minijax.sharding.gspmd import GSPMDSharding
from minijax.sharding.mesh import Mesh
from minijax.sharding.named import NamedSharding, named
from minijax.sharding.positional import PositionalSharding


class DeviceAssignmentMismatchError(ValueError):
    """A program was asked to run on different devices at once."""


class Layout(NamedTuple):
    """How the values of a program are cut, on any devices: all that lowering depends on.

    Attributes:
        partitions: the number of devices.
        ins: for each argument its placement without devices, or None for the compiler's choice.
        outs: the same for each result.
    """

    partitions: int
    ins: tuple[Any, ...]
    outs: tuple[Any, ...]


class Assignment(NamedTuple):
    """Where a program runs and how its values are cut; hashable.

    Attributes:
        devices: the devices, in order.
        ins: for each argument its placement, or None for the compiler's choice.
        outs: the same for each result.
        mesh: the mesh in whose terms results are described, if there is one.
        committed: whether results stay where they are.
    """

    devices: tuple[Any, ...]
    ins: tuple[Sharding | None, ...]
    outs: tuple[Sharding | None, ...]
    mesh: Mesh | None
    committed: bool

    @property
    def layout(self) -> Layout | None:
        """The part of it that lowering depends on; None for one device."""
        if len(self.devices) == 1:
            return None
        return Layout(
            len(self.devices), tuple(map(_abstract, self.ins)), tuple(map(_abstract, self.outs))
        )


def _abstract(sharding: Sharding | None) -> Any:
    return sharding.abstract if isinstance(sharding, NamedSharding) else sharding


class Placeholder(NamedTuple):
    """Stands for an argument of which only the placement is known."""

    sharding: Sharding


class Claim(NamedTuple):
    """Somebody who says on which devices a program runs."""

    devices: tuple[Any, ...]
    who: str


class Inside(NamedTuple):
    """A placement that an equation of a program names."""

    sharding: Sharding
    who: str


def shardings_inside(closed: ClosedJaxpr) -> list[Inside]:
    """The placements on devices that a program's equations name, also in inner programs."""
    found = closed.cache.get("shardings inside")
    if found is None:
        found = closed.cache["shardings inside"] = list(_inside(closed.jaxpr))
    return found


def _inside(jaxpr: Jaxpr) -> Iterator[Inside]:
    for eqn in jaxpr.eqns:
        if eqn.primitive.names_placement is not None:
            sharding = eqn.primitive.names_placement(**eqn.params)
            if sharding is not None:
                line = source.summarize(eqn.source)
                yield Inside(sharding, f"{eqn.primitive} inside the function, at {line}")
        for value in eqn.params.values():
            for inner in value if isinstance(value, (tuple, list)) else (value,):
                if isinstance(inner, ClosedJaxpr):
                    yield from shardings_inside(inner)
                elif isinstance(inner, Jaxpr):
                    yield from _inside(inner)


def gather(closed: ClosedJaxpr, args: Sequence[Any], options: Any) -> Assignment:
    """The assignment of one call.

    Raises:
        DeviceAssignmentMismatchError: two of those who name devices name different ones.
        ValueError: an argument is placed otherwise than the user says it is.
    """
    jaxpr = closed.jaxpr
    in_avals = [physical_aval(v.aval) for v in jaxpr.invars]
    out_avals = [physical_aval(v.aval) for v in jaxpr.outvars]
    names = jaxpr.debug_info.arg_names
    claims = []
    context = meshes.device_context.value
    if context is not None:
        claims.append(Claim(context.flat_devices, f"the mesh in force around {options.name}"))
    ins = _given(options.in_shardings, in_avals)
    for i, (x, aval) in enumerate(zip(args, in_avals, strict=True)):
        own, given = _own(x, aval), ins[i]
        who = f"{_name(i, names)} of {options.name}, {aval.str_short()}"
        if given is not None:
            if own is not None:
                _check_given(who, own, given, aval, options.name)
            claims.append(Claim(given.device_assignment, f"explicit placement of {who}"))
        elif own is not None:
            ins[i] = own
            claims.append(Claim(own.device_assignment, who))
    outs = _given(options.out_shardings, out_avals)
    result = f"explicit placement of a result of {options.name}"
    claims += [Claim(out.device_assignment, result) for out in outs if out is not None]
    inside = shardings_inside(closed)
    claims += [Claim(found.sharding.device_assignment, found.who) for found in inside]
    devices = _agreed(claims, options.name) or (client.default_device(),)
    mesh = context or _first_mesh([*ins, *outs, *(found.sharding for found in inside)])
    if mesh is not None and mesh.explicit_axes:
        outs = [
            out or _placement_of_type(var.aval, aval, mesh)
            for out, var, aval in zip(outs, jaxpr.outvars, out_avals, strict=True)
        ]
    return Assignment(devices, tuple(ins), tuple(outs), mesh, bool(claims))


def _first_mesh(shardings: Sequence[Any]) -> Mesh | None:
    for sharding in shardings:
        if isinstance(sharding, NamedSharding) and isinstance(sharding.mesh, Mesh):
            return sharding.mesh
    return None


def on_one_device(device: Any, *, committed: bool) -> Assignment:
    """The assignment of programs that run on one device, whose values are whole."""
    return Assignment((device,), (), (), None, committed)


def layout_without_devices(closed: ClosedJaxpr, args: Sequence[Any], options: Any) -> Layout | None:
    """The layout of a program whose arguments are placed on an abstract mesh; None if none is.

    Raises:
        ValueError: the placements' meshes differ in size.
    """
    given = options.in_shardings or (None,) * len(args)
    places = [x.sharding if type(x) is Placeholder else s for x, s in zip(args, given, strict=True)]
    if not any(map(is_abstract, places)):
        return None
    sizes = {s.num_devices for s in places if s is not None}
    if len(sizes) > 1:
        raise ValueError(
            message(
                options.name,
                "arguments are placed on meshes of different sizes.",
                got=", ".join(map(str, sorted(sizes))),
            )
        )
    ins = _given(places, [physical_aval(v.aval) for v in closed.jaxpr.invars])
    outs = _given(options.out_shardings, [physical_aval(v.aval) for v in closed.jaxpr.outvars])
    return Layout(sizes.pop(), tuple(map(_abstract, ins)), tuple(map(_abstract, outs)))


def _given(shardings: Sequence[Any], avals: Sequence[Any]) -> list[Sharding | None]:
    return [
        None if sharding is None else placement.canonical(sharding, aval.ndim)
        for sharding, aval in zip(shardings or (None,) * len(avals), avals, strict=True)
    ]


def _own(x: Any, aval: Any) -> Sharding | None:
    """The placement that a committed argument demands."""
    if type(x) is Placeholder:
        return placement.canonical(x.sharding, aval.ndim)
    if not type.__instancecheck__(Array, x) or not x.buffer._committed:
        return None
    if x.is_deleted():
        x.block_until_ready()  # raises, and says why
    return x.buffer._sharding.canonical  # type: ignore[no-any-return]


def _placement_of_type(aval: Any, physical: Any, mesh: Mesh) -> Sharding | None:
    """The placement of a result on a mesh with explicit axes, if its type tells it."""
    typed = getattr(aval, "sharding", None)
    if typed is None and not mesh.are_all_axes_explicit:
        return None
    spec = PartitionSpec() if typed is None else typed.spec
    return placement.canonical(named(mesh, spec), physical.ndim)


def _check_given(who: str, own: Sharding, given: Any, aval: Any, function: str) -> None:
    """Refuses an argument on several devices that is placed otherwise than the user says.

    Raises:
        ValueError: it is.
    """
    if own.num_devices == 1 or own.device_assignment != given.device_assignment:
        return
    if not own.is_equivalent_to(given, aval.ndim):
        raise ValueError(
            message(
                function,
                f"{who} is placed otherwise than in_shardings says.",
                got=str(own),
                expected=str(given),
                fix="move it with minijax.device_put, or leave its in_shardings away",
            )
        )


def _name(i: int, names: Sequence[str] | None) -> str:
    return f"argument {names[i]}" if names is not None and i < len(names) else f"argument {i}"


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
            raise DeviceAssignmentMismatchError(
                message(
                    function,
                    "one program cannot run on different devices.",
                    got=f"{first.who}, on {_devices_text(first.devices)}\n"
                    f"{claim.who}, on {_devices_text(claim.devices)}",
                    expected="the same devices in the same order",
                    fix="move one of them with minijax.device_put(x, sharding)",
                )
            )
    return first.devices


def _devices_text(devices: Sequence[Any]) -> str:
    ids = [d.id for d in devices]
    shown = str(ids) if len(ids) <= 16 else f"[{', '.join(map(str, ids[:16]))}, …]"
    return f"device ids {shown} of platform {devices[0].platform.upper()}"


def public_sharding(
    tiling: Any, aval: Any, assignment: Assignment, originals: Sequence[Any]
) -> Sharding:
    """A result's placement, which the compiler has chosen, in the terms of the program's inputs.

    Args:
        tiling: the choice.
        aval: the result's physical type.
        assignment: where the program runs.
        originals: the placements of its inputs as users have written them.
    """
    for own in originals:
        if isinstance(own, NamedSharding) and len(own.spec) <= aval.ndim:
            found = placement.native(own, aval.ndim)
            if found.hlo == tiling and found.devices == assignment.devices:
                return own
            break
        if isinstance(own, PositionalSharding) and own.device_assignment == assignment.devices:
            tiles = hlo.tiling_of(tiling, aval.ndim, len(assignment.devices))
            return PositionalSharding.of_tiling(assignment.devices, tiles)
    spec = None if assignment.mesh is None else hlo.spec_of(tiling, assignment.mesh, aval.ndim)
    if spec is None:
        return GSPMDSharding(assignment.devices, tiling)
    return named(assignment.mesh, spec)


def is_abstract(sharding: Any) -> bool:
    """Whether a placement names no devices."""
    return isinstance(sharding, NamedSharding) and isinstance(sharding.mesh, AbstractMesh)
