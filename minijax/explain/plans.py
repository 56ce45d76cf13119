"""What will the partitioner do on a mesh of any size?  Nothing is compiled and no device is asked.

Input: a function, a mesh without devices, types of arguments.  Output: where Shardy moves data
and over which axes, a model of its cost, and the shardings that it chooses.

XLA partitions by Shardy's shardings, but the collectives are its own choice: it combines several
into one, moves them out of loops, turns a reduction that is sliced into `reduce_scatter`, and adds
`collective_permute` where neighbours need each other's edges, as shifts and convolutions do.  For
what one compiled program really runs there is `collectives`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from minijax.core import tree
from minijax.core.errors import error
from minijax.core.meshes import AbstractMesh, MeshAxes, PartitionSpec
from minijax.core.source import Frame
from minijax.explain import communication, groups
from minijax.lowering import planning
from minijax.lowering.planning import Axis, Planned, Value
from minijax.sharding import contexts
from minijax.sharding.mesh import Mesh
from minijax.sharding.named import NamedSharding
from minijax.transforms.jit.jit import jitted
from minijax.transforms.jit.stages import Lowered, ShapeDtypeStruct

_TITLES = ("kind", "axes", "result", "bytes", "times", "moved", "inside", "line")
_NUMERIC = ("bytes", "times", "moved")


class PlannedCollective(NamedTuple):
    """A movement of data that Shardy plans.

    Source:     minijax's own.

    Attributes:
        kind: such as `all_gather`.
        axes: the mesh axes over which devices take part, `x:(2)4` for part of an axis; None if
            a collective of the user's has groups that fit no mesh of the program.
        result: the type of the result, of all devices together.
        bytes: what one device works on: its part of the result of an `all_gather`, and its part
            of the operand of any other kind.
        times: how often it runs; loops of unknown length count once.
        is_bounded: whether the length of all loops around it is known.
        moved_by_axis: for each axis the bytes that one device sends, each time.
        inside: the loops and branches around it, the outermost first.
        line: the user's line that needs it.

    Example:
        >>> mesh = jax.sharding.AbstractMesh((4096,), ("x",))
        >>> spread = jax.NamedSharding(mesh, jax.P("x"))
        >>> x = jax.ShapeDtypeStruct((8192,), jnp.float32, sharding=spread)
        >>> step = jax.explain.plan(lambda x: jnp.sum(x), mesh)(x)[0]
        >>> step.kind, step.axes, step.bytes
        ('all_reduce', ('x',), 4)
    """

    kind: str
    axes: tuple[str, ...] | None
    result: str
    bytes: int
    times: int
    is_bounded: bool
    moved_by_axis: dict[str, float]
    inside: tuple[str, ...]
    line: Frame | None

    @property
    def moved(self) -> float:
        """The bytes that one device sends, over all axes and as often as it runs."""
        return self.times * sum(self.moved_by_axis.values())

    @property
    def cells(self) -> tuple[str, ...]:
        """The row of a table."""
        return (
            self.kind,
            communication.axes_text(self.axes),
            self.result,
            communication.bytes_text(self.bytes),
            f"{'' if self.is_bounded else '>= '}{self.times}",
            communication.bytes_text(self.moved),
            " > ".join(self.inside),
            "?" if self.line is None else str(self.line),
        )


class PlannedValue(NamedTuple):
    """An argument or a result, and how Shardy splits it.

    Source:     minijax's own.

    Attributes:
        name: its name, or the path of the result.
        dtype: in the notation of jaxprs.
        shape: of all devices together.
        spec: its dimensions over the axes of the mesh.
        local_bytes: what each device holds.

    Example:
        >>> mesh = jax.sharding.AbstractMesh((4096,), ("x",))
        >>> spread = jax.NamedSharding(mesh, jax.P("x"))
        >>> x = jax.ShapeDtypeStruct((8192,), jnp.float32, sharding=spread)
        >>> value = jax.explain.plan(lambda x: 2 * x, mesh)(x).arguments[0]
        >>> value.shape, value.local_bytes
        ((8192,), 8)
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    spec: PartitionSpec
    local_bytes: int

    @property
    def cells(self) -> tuple[str, ...]:
        """The row of a table."""
        shape = ",".join(map(str, self.shape))
        return (
            self.name,
            f"{self.dtype}[{shape}]",
            repr(self.spec),
            communication.bytes_text(self.local_bytes),
        )


class Plan(communication.Listing[PlannedCollective]):
    """Where data moves, in the order of the program.  Prints as tables.

    The model of cost: devices stand in a ring along each axis, and with several axes data goes
    along the outermost first.  Of `n` devices, one sends

    | kind | bytes |
    |---|---|
    | `all_gather` | (n-1)/n of the gathered value |
    | `reduce_scatter`, `all_to_all` | (n-1)/n of its operand |
    | `all_reduce` | twice (n-1)/n of its operand |
    | `collective_permute`, `collective_broadcast` | its operand, along the outermost axis |

    Source:     minijax's own.

    Attributes:
        name: the name of the function.
        mesh: the mesh.
        arguments: how the arguments are split.
        results: how the results are split.

    Example:
        >>> mesh = jax.sharding.AbstractMesh((4096,), ("x",))
        >>> spread = jax.NamedSharding(mesh, jax.P("x"))
        >>> x = jax.ShapeDtypeStruct((8192,), jnp.float32, sharding=spread)
        >>> plan = jax.explain.plan(lambda x: x - jnp.mean(x), mesh)(x)
        >>> [step.kind for step in plan], plan.arguments[0].local_bytes
        (['all_reduce'], 8)
    """

    def __init__(
        self,
        name: str,
        mesh: MeshAxes,
        found: Sequence[PlannedCollective],
        arguments: Sequence[PlannedValue],
        results: Sequence[PlannedValue],
    ) -> None:
        self.name = name
        self.mesh = mesh
        self.arguments = tuple(arguments)
        self.results = tuple(results)
        self._found = tuple(found)

    @property
    def moved_by_axis(self) -> dict[str, float]:
        """For each axis that data moves over, the bytes that one device sends in one run."""
        moved: dict[str, float] = {}
        for x in self._found:
            for axis, count in x.moved_by_axis.items():
                moved[axis] = moved.get(axis, 0) + x.times * count
        return moved

    def _lines(self) -> Iterator[str]:
        sizes = ", ".join(f"{name}={size}" for name, size in self.mesh.shape_tuple)
        count = len(self) or "no"
        plural = "" if len(self) == 1 else "s"
        where = f"{self.mesh.size} devices ({sizes})"
        yield f"{self.name} on {where}: {count} collective{plural} planned"
        if self._found:
            yield ""
            yield from communication.table(_TITLES, [x.cells for x in self._found], _NUMERIC)
            rows = [(axis, communication.bytes_text(n)) for axis, n in self.moved_by_axis.items()]
            yield ""
            yield from communication.table(("axis", "sent by each device"), rows)
        if not all(x.is_bounded for x in self._found):
            yield "loops of unknown length are counted once"
        for title, values in (("argument", self.arguments), ("result", self.results)):
            if values:
                yield ""
                titles = (title, "type", "sharding", "bytes on each device")
                yield from communication.table(titles, [x.cells for x in values])


def plan(function: Callable[..., Any], mesh: Mesh | AbstractMesh) -> Callable[..., Plan]:
    """Plans how a function is partitioned over a mesh that need not exist.

    Shardy's own propagation and partitioning run on the lowered function; nothing is compiled, so
    a mesh of many thousands of devices costs no more than one of two.

    Source:     minijax's own.

    Args:
        function: a function, perhaps jitted.
        mesh: an `AbstractMesh`, or a `Mesh` whose devices do not matter.

    Returns:
        A function of the arguments, arrays or `ShapeDtypeStruct`s, whose shardings are on `mesh`.
        Shardy decides about arguments without sharding.  It gives a `Plan`: a sequence that prints
        as tables.

    Raises:
        TypeError: `function` is not callable, or `mesh` is not a mesh.
        ValueError: an argument is placed on another mesh, or cannot be cut into equal parts.

    Example:
        >>> mesh = jax.sharding.AbstractMesh((4096,), ("x",))
        >>> spread = jax.NamedSharding(mesh, jax.P("x"))
        >>> x = jax.ShapeDtypeStruct((8192,), jnp.float32, sharding=spread)
        >>> print(jax.explain.plan(lambda x: jnp.sum(x), mesh)(x))
        <lambda> on 4096 devices (x=4096): 1 collective planned
        <BLANKLINE>
        kind        axes  result  bytes  times    moved  line
        all_reduce  x     f32[]     4 B      1  7.998 B  ... in <lambda>
        <BLANKLINE>
        axis  sent by each device
        x     7.998 B
        <BLANKLINE>
        argument  type       sharding  bytes on each device
        x         f32[8192]  P('x',)   8 B
        <BLANKLINE>
        result  type   sharding  bytes on each device
        result  f32[]  P()       4 B
    """
    given = jitted("explain.plan", function)
    if not isinstance(mesh, (Mesh, AbstractMesh)):
        problem = "expected a mesh."
        fix = "sharding.AbstractMesh((256, 256), ('x', 'y'))"
        error(TypeError, "explain.plan", problem, got=f"{type(mesh).__name__}: {mesh!r}", fix=fix)
    abstract = mesh.abstract_mesh

    def of(*args: Any, **kwargs: Any) -> Plan:
        leaves, structure = tree.flatten((args, kwargs))
        placed = [_placed(x, abstract) for x in leaves]
        args, kwargs = tree.unflatten(structure, placed)
        with contexts.use_abstract_mesh(abstract):
            lowered = given.trace(*args, **kwargs).lower()
        return _planned(lowered, abstract)

    return of


def _placed(x: Any, mesh: AbstractMesh) -> Any:
    """An argument with a sharding on the mesh, which leaves open what `x` leaves open."""
    sharding = getattr(x, "sharding", None)
    if not isinstance(sharding, NamedSharding):
        if not hasattr(x, "shape"):
            return x
        entries = [PartitionSpec.UNCONSTRAINED] * len(x.shape)
        sharding = NamedSharding(mesh, PartitionSpec(*entries))
    if sharding.abstract.mesh is not mesh:
        problem = "an argument is placed on another mesh than the one to plan for."
        got = f"{x.dtype.name}{list(x.shape)} with {sharding}"
        error(ValueError, "explain.plan", problem, got=got, expected=f"a sharding on {mesh}")
    weak = getattr(x, "weak_type", False)
    return ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding.abstract, weak_type=weak)


def _planned(lowered: Lowered, mesh: MeshAxes) -> Plan:
    planned: Planned = planning.plan(lowered.compiler_ir())
    boxes = communication.boxes_of(lowered)
    found = [_collective(x, boxes) for x in planned.movements]
    values = [[_value(x) for x in side] for side in (planned.arguments, planned.results)]
    return Plan(lowered.fun_name, mesh, found, *values)


def _collective(movement: planning.Movement, meshes: Sequence[groups.Box]) -> PlannedCollective:
    kind = movement.kind
    axes = movement.axes
    if axes is None:
        axes = _axes_of_groups(kind, movement.groups, meshes)
    count = 1 if axes is None else math.prod(size for _, size in axes)
    after = sum(value.local_bytes for value in movement.values)
    before = after * count if kind == "reduce_scatter" else after
    return PlannedCollective(
        kind,
        None if axes is None else tuple(name for name, _ in axes),
        ", ".join(map(_type_text, movement.values)),
        before,
        movement.times,
        movement.is_bounded,
        _moved(kind, before, axes or ()),
        movement.inside,
        movement.line,
    )


def _axes_of_groups(
    kind: str, devices: groups.Groups | None, meshes: Sequence[groups.Box]
) -> tuple[Axis, ...] | None:
    match = groups.axes_of_pairs if kind == "collective_permute" else groups.axes_of_groups
    names = match(devices, meshes)
    if names is None:
        return None
    sizes: dict[str, int] = {}
    for mesh in meshes:
        sizes.update(zip(map(str, mesh.names), mesh.ids.shape, strict=True))
    return tuple((name, sizes.get(name) or int(name.rpartition(")")[2])) for name in names)


def _moved(kind: str, operand: int, axes: Sequence[Axis]) -> dict[str, float]:
    """The bytes that one device sends along each axis: the model of the class `Plan`."""
    if kind in ("collective_permute", "collective_broadcast"):
        return {_whole(axis): float(operand) for axis, _ in axes[:1]}
    rest = float(operand) * (2 if kind == "all_reduce" else 1)
    moved: dict[str, float] = {}
    for axis, size in axes:
        moved[_whole(axis)] = moved.get(_whole(axis), 0) + rest * (size - 1) / size
        rest /= size
    return moved


def _whole(axis: str) -> str:
    """The axis of which something is a part."""
    return axis.partition(":(")[0]


def _value(value: Value) -> PlannedValue:
    entries = [tuple(name for name, _ in axes) for axes in value.dims]
    while entries and not entries[-1]:
        entries.pop()
    unreduced = [name for name, _ in value.unreduced]
    spec = PartitionSpec(*entries, unreduced=unreduced)
    return PlannedValue(value.name, value.dtype, value.shape, spec, value.local_bytes)


def _type_text(value: Value) -> str:
    return f"{value.dtype}[{','.join(map(str, value.shape))}]"
