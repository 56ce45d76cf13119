"""The plan of a call: where and how it runs, decided once.

`device_assignment.plan_call` makes a `CallPlan` from a program, its arguments, and the shardings
that the user requested.  Every later step takes the plan as it is: lowering its device-free half,
`CallPlan.abstract`; compiling, running and the explanations the whole.  A plan is also the key
under which the executable is cached.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

from minijax.core import effects
from minijax.core.jaxpr import Effects
from minijax.core.native import Device
from minijax.core.sequences import Mark
from minijax.lowering.device_axes import ReplicaAxes
from minijax.sharding.base import Layout, Sharding
from minijax.sharding.mesh import Mesh

T = TypeVar("T")
Shardings = tuple[Sharding | None, ...]


def select(items: Sequence[T], used: Sequence[int] | None) -> Sequence[T]:
    """Selects, from one item for each argument, those at the positions `used`; all for None."""
    return items if used is None else [items[i] for i in used if i < len(items)]


class ProgramOptions(NamedTuple):
    """How a program is compiled, apart from where it runs; hashable.

    Attributes:
        name: the function's name.
        keep_unused: whether the program keeps arguments that it does not use.
        donated: for each argument whether its memory may hold a result; empty if for none.
        compiler_options: names and values of fields of XLA's DebugOptions.
        in_layouts: for each argument its layout in memory, None for the default layout, or
            `Layout.AUTO` if XLA chooses it; empty if all have the default layout.
        out_layouts: the same for each result.
    """

    name: str
    keep_unused: bool = True
    donated: tuple[bool, ...] = ()
    compiler_options: tuple[tuple[str, object], ...] = ()
    in_layouts: tuple[Layout | Mark | None, ...] = ()
    out_layouts: tuple[Layout | Mark | None, ...] = ()


class RequestedPlacement(NamedTuple):
    """Where the user wants a program to run; hashable.

    Attributes:
        in_shardings: for each argument a sharding, or None if it is unspecified; empty if all are.
            They may be on abstract meshes, or `PartitionSpec`s until a mesh is active.
        out_shardings: the same for each result.
        device: the `device` argument of `jit`.
    """

    in_shardings: tuple[object, ...] = ()
    out_shardings: tuple[object, ...] = ()
    device: Device | None = None


ANYWHERE = RequestedPlacement()
"""No request: the arguments decide."""


class OneDevice(NamedTuple):
    """The program runs on one device, on whole arrays in its default memory.

    Its plan has shardings only if the device is a mesh of one device, in whose terms results are
    described.
    """

    @property
    def num_devices(self) -> int:
        """The number of devices that run the program together."""
        return 1


ONE_DEVICE = OneDevice()


class Partitioned(NamedTuple):
    """One program is partitioned over the devices of a mesh (`jit` and `shard_map`).

    A program of one device with values in the host's memory is a partition too: the module has to
    name their kinds of memory.

    Attributes:
        num_devices: the number of devices that run the program together.
        in_shardings: for each argument its sharding on an abstract mesh, or None if XLA chooses it.
        out_shardings: the same for each result.
    """

    num_devices: int
    in_shardings: Shardings
    out_shardings: Shardings


class Replicated(NamedTuple):
    """Every device runs a replica of the program, on its own shards (`pmap`).

    Attributes:
        num_devices: the number of replicas.
        axis_names: the axes over which the whole program is mapped, the outermost first.
        axis_sizes: their sizes.
        broadcast_args: for each argument whether all replicas receive the same value; empty if that
            is unknown.
    """

    num_devices: int
    axis_names: tuple[str, ...] = ()
    axis_sizes: tuple[int, ...] = ()
    broadcast_args: tuple[bool, ...] = ()

    @property
    def axes(self) -> ReplicaAxes:
        """The axes, for collectives."""
        return ReplicaAxes(self.axis_names, self.axis_sizes, self.num_devices)


PlanShape = OneDevice | Partitioned | Replicated
"""How the devices of a plan share the work: a plan has exactly one of these three shapes."""


class AbstractPlan(NamedTuple):
    """The device-free half of a plan: all that lowering depends on, and the key of its cache.

    Attributes:
        options: how the program is compiled.
        platform: the platform that the module is for, such as "cpu".
        shape: how devices share the work.
        use_shardy: whether Shardy, and not GSPMD, partitions the program.
    """

    options: ProgramOptions
    platform: str
    shape: PlanShape
    use_shardy: bool

    @property
    def transformation(self) -> str:
        """What modules are named after: `pmap` for a program mapped as a whole, else `jit`."""
        shape = self.shape
        return "pmap" if isinstance(shape, Replicated) and shape.axis_names else "jit"

    def for_parameters(self, used: Sequence[int] | None, num_consts: int) -> AbstractPlan:
        """Returns this plan with one entry for each parameter of the module.

        These are `num_consts` constants, and the arguments at the positions `used`.
        """

        def of_parameters(items: Sequence[Any], of_const: Any) -> tuple[Any, ...]:
            return (of_const,) * num_consts + tuple(select(items, used)) if items else ()

        shape = self.shape
        if isinstance(shape, Partitioned):
            in_shardings = (None,) * num_consts + tuple(select(shape.in_shardings, used))
            shape = shape._replace(in_shardings=in_shardings)
        elif isinstance(shape, Replicated):
            shape = shape._replace(broadcast_args=of_parameters(shape.broadcast_args, True))
        options = self.options._replace(
            donated=of_parameters(self.options.donated, False),
            in_layouts=of_parameters(self.options.in_layouts, None),
        )
        return self._replace(shape=shape, options=options)

    def outer_effects(self, found: Effects) -> Effects:
        """Returns a program's effects without those on the axes of its own replicas."""
        if isinstance(self.shape, Replicated):
            for name in self.shape.axis_names:
                found = effects.without_axis(found, name)
        return found


@dataclasses.dataclass(frozen=True, slots=True)
class CallPlan:
    """Where and how one call of a program runs; hashable.

    Equal plans share an executable.  The last two attributes do not take part in the comparison:
    the first call with a plan decides in which notation shardings are shown.

    Attributes:
        abstract: the half of the plan that names no devices.
        devices: the devices that run the program, in order.
        in_shardings: for each argument its sharding in canonical notation, or None if XLA chooses
            it; empty if none has one.
        out_shardings: for each result the sharding that it must have, or None if XLA chooses it;
            empty if none has one.
        mesh: the mesh in whose terms the shardings of results are described, or None.
        committed: whether results are committed to their devices.
        written_shardings: for each argument its sharding as the user wrote it, or None.
        committed_args: positions of the arguments that are committed to devices.
    """

    abstract: AbstractPlan
    devices: tuple[Device, ...]
    in_shardings: Shardings = ()
    out_shardings: Shardings = ()
    mesh: Mesh | None = None
    committed: bool = False
    written_shardings: Shardings = dataclasses.field(default=(), compare=False)
    committed_args: tuple[int, ...] = dataclasses.field(default=(), compare=False)

    @property
    def options(self) -> ProgramOptions:
        """How the program is compiled."""
        return self.abstract.options

    @property
    def shape(self) -> PlanShape:
        """How the devices share the work."""
        return self.abstract.shape


class Placeholder(NamedTuple):
    """Stands for an argument of which only the sharding is known."""

    sharding: Sharding
