"""Which collectives does a compiled program run, and which line made them necessary?

Input: a function and arguments.  Output: a record for each collective that stands in the program
once XLA has partitioned and optimized it, whoever has put it there.  `assert_collectives` makes a
test of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, overload

import numpy as np

from minijax.core import config, deferral, tree
from minijax.core.errors import error
from minijax.core.source import Frame
from minijax.explain import groups
from minijax.explain.groups import Box
from minijax.lowering import planning
from minijax.runtime.hlo_text import HloModule, Instruction, Tensor
from minijax.sharding.named import NamedSharding
from minijax.transforms.jit.jit import jitted
from minijax.transforms.jit.stages import Compiled, Lowered

T = TypeVar("T")
Neighbours = Mapping[str, Instruction]
"""The instructions of one computation, by name."""

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def table(
    titles: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[str] = ()
) -> list[str]:
    """The lines of a table.

    Args:
        titles: a name for each column.
        rows: the cells of each row.  A column that is empty everywhere is left out.
        numeric: the titles of columns that are aligned on the right.
    """
    columns = [
        (title, [row[i] for row in rows])
        for i, title in enumerate(titles)
        if any(row[i] for row in rows)
    ]
    widths = [max(map(len, (title, *cells))) for title, cells in columns]
    lines = []
    for number in range(-1, len(rows)):
        cells = [title if number < 0 else column[number] for title, column in columns]
        lines.append(
            "  ".join(
                cell.rjust(width) if title in numeric else cell.ljust(width)
                for cell, width, (title, _) in zip(cells, widths, columns, strict=True)
            ).rstrip()
        )
    return lines


def bytes_text(count: float) -> str:
    """A number of bytes with a unit."""
    unit = max(0, min((int(count).bit_length() - 1) // 10, len(_UNITS) - 1))
    return f"{count / 1024**unit:.4g} {_UNITS[unit]}"


def axes_text(axes: Sequence[str] | None) -> str:
    """Mesh axes as tables show them; a question mark where they are not known."""
    return "?" if axes is None else ",".join(axes) or "-"


KINDS = (
    "all_gather",
    "all_reduce",
    "all_to_all",
    "collective_broadcast",
    "collective_permute",
    "ragged_all_to_all",
    "reduce_scatter",
)
"""The kinds of collectives, named as `stablehlo` names them."""


class Collective(NamedTuple):
    """One collective of a compiled program.

    Source:     minijax's own.

    Attributes:
        kind: one of `KINDS`.
        axes: the mesh axes over which devices take part, `x:(2)4` for part of an axis; None if
            its groups fit no mesh of the program.
        operands: what it works on, as each device sees it.
        times: how often it runs; None inside a loop of unknown length.
        inside: the loops and branches that it stands in, the outermost first.
        line: the user's line; None if nothing is known.
        is_own_line: whether XLA has recorded the line with the collective itself; if not, it is
            the line of the nearest instruction that gives or takes its value.
        operation: the path of names that the operation was traced under.
        name: the name of the instruction in the text of the program.

    Example:
        >>> spread = jax.NamedSharding(jax.make_mesh((8,), ("x",)), jax.P("x"))
        >>> x = jax.device_put(jnp.ones(8), spread)
        >>> total = jax.explain.collectives(lambda x: jnp.sum(x))(x)[0]
        >>> total.kind, total.axes, total.times
        ('all_reduce', ('x',), 1)
    """

    kind: str
    axes: tuple[str, ...] | None
    operands: tuple[Tensor, ...]
    times: int | None
    inside: tuple[str, ...]
    line: Frame | None
    is_own_line: bool
    operation: str
    name: str

    @property
    def dtype(self) -> str:
        """The dtype of the first operand, in the notation of XLA."""
        return self.operands[0].dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first operand."""
        return self.operands[0].shape

    @property
    def bytes(self) -> int:
        """What each device puts in, each time: the bytes of all operands together."""
        return sum(operand.bytes for operand in self.operands)

    @property
    def cells(self) -> tuple[str, ...]:
        """The row of a table."""
        return (
            self.kind,
            axes_text(self.axes),
            _operands_text(self.operands),
            bytes_text(self.bytes),
            "?" if self.times is None else str(self.times),
            " > ".join(self.inside),
            "?" if self.line is None else "near " * (not self.is_own_line) + str(self.line),
        )


_TITLES = ("kind", "axes", "operand", "bytes", "times", "inside", "line")
_TOTAL_TITLES = ("total", "axes", "instructions", "times", "bytes")
_NUMERIC = ("bytes", "times", "instructions")


class Listing(Sequence[T]):
    """What was found, in order; prints as the lines that a subclass gives."""

    _found: tuple[T, ...]

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: Any) -> Any:
        return self._found[index]

    def __len__(self) -> int:
        return len(self._found)

    def _lines(self) -> Iterable[str]:
        raise NotImplementedError

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    _repr_html_ = deferral.shown


class Collectives(Listing[Collective]):
    """The collectives of a program, in the order in which it reaches them.

    Prints as a table.  Bytes are those of the operands on one device; the totals count each
    collective as often as it runs, or once where that is not known.

    Source:     minijax's own.

    Args:
        name: the name of the function.
        found: the collectives.
        meshes: the meshes of the program.
        devices: on how many devices it runs.

    Example:
        >>> spread = jax.NamedSharding(jax.make_mesh((8,), ("x",)), jax.P("x"))
        >>> x = jax.device_put(jnp.ones(8), spread)
        >>> found = jax.explain.collectives(jnp.sum)(x)
        >>> len(found), found[0].kind
        (1, 'all_reduce')
    """

    def __init__(
        self, name: str, found: Sequence[Collective], meshes: Sequence[Box], devices: int
    ) -> None:
        self.name = name
        self.meshes = tuple(meshes)
        self.devices = devices
        self._found = tuple(found)

    @property
    def counts(self) -> dict[str, int]:
        """How many instructions there are of each kind that occurs."""
        kinds = [x.kind for x in self._found]
        return {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}

    def _total_rows(self) -> Iterator[tuple[str, ...]]:
        grouped: dict[Any, list[Collective]] = {}
        for x in self._found:
            grouped.setdefault((x.kind, x.axes), []).append(x)
        for (kind, axes), members in grouped.items():
            more = "" if all(x.times is not None for x in members) else ">= "
            times = sum(_counted(x) for x in members)
            moved = sum(x.bytes * _counted(x) for x in members)
            yield (
                kind,
                axes_text(axes),
                str(len(members)),
                f"{more}{times}",
                f"{more}{bytes_text(moved)}",
            )

    def _lines(self) -> list[str]:
        meshes = "; ".join(map(str, self.meshes))
        where = f"{self.devices} device{'s' * (self.devices != 1)}"
        where += f" ({meshes})" if meshes else ""
        if not self._found:
            return [f"{self.name}: no collectives on {where}"]
        lines = [f"{self.name}: {len(self)} collective{'s' * (len(self) != 1)} on {where}", ""]
        lines += table(_TITLES, [x.cells for x in self._found], _NUMERIC)
        return [*lines, "", *table(_TOTAL_TITLES, list(self._total_rows()), _NUMERIC)]


def _counted(x: Collective) -> int:
    return 1 if x.times is None else x.times


def _operands_text(operands: Sequence[Tensor]) -> str:
    texts = list(map(str, operands))
    if len(texts) > 1 and len(set(texts)) == 1:
        return f"{len(texts)} x {texts[0]}"
    return ", ".join(texts)


def collectives(function: Callable[..., Any]) -> Callable[..., Collectives]:
    """Finds every collective of the program that a function compiles to.

    The result is to be called with the function's arguments: arrays, or `ShapeDtypeStruct`s with
    shardings.  The function is compiled for them and not run.

    Source:     minijax's own.

    Args:
        function: a function, perhaps jitted; or what `Lowered.compile` has given, to be called
            without arguments.

    Returns:
        A function of the arguments that gives a `Collectives`: a sequence that prints as a table.

    Raises:
        TypeError: `function` is not callable.

    Example:
        >>> spread = jax.NamedSharding(jax.make_mesh((8,), ("x",)), jax.P("x"))
        >>> x = jax.device_put(jnp.ones(8), spread)
        >>> print(jax.explain.collectives(lambda x: x / jnp.sum(x))(x))
        <lambda>: 1 collective on 8 devices (x=8)
        <BLANKLINE>
        kind        axes  operand  bytes  times  line
        all_reduce  x     f32[]      4 B      1  ... in <lambda>
        <BLANKLINE>
        total       axes  instructions  times  bytes
        all_reduce  x                1      1    4 B
    """
    if isinstance(function, Compiled):
        compiled = function
        shardings = tree.leaves((compiled.input_shardings, compiled.output_shardings))
        return lambda: of_text(compiled.fun_name, compiled.as_text(), _meshes_of(shardings))
    given = jitted("explain.collectives", function)

    def of(*args: Any, **kwargs: Any) -> Collectives:
        lowered: Lowered = given.lower(*args, **kwargs)
        leaves = tree.leaves((args, kwargs))
        meshes = boxes_of(lowered) or _meshes_of([getattr(x, "sharding", None) for x in leaves])
        lines = planning.constrained_lines(lowered.compiler_ir())
        # A stored program has the lines of the one that was stored.
        with config.enable_compilation_cache(False):
            return of_text(lowered.fun_name, lowered.compile().as_text(), meshes, lines)

    return of


def boxes_of(lowered: Lowered) -> list[Box]:
    """The meshes that a program names; of one that is mapped as a whole, the axes of the map."""
    copies = lowered.replicas
    if copies is None or not copies.axis_names:
        return [Box(*mesh) for mesh in planning.meshes(lowered.compiler_ir())]
    axes = copies.axes
    split = {str(n): size for n, size in zip(axes.names, axes.sizes, strict=True) if size > 1}
    return [Box(tuple(split), np.arange(copies.num_devices).reshape(tuple(split.values())))]


def _meshes_of(shardings: Sequence[Any]) -> list[Box]:
    """The meshes that values are placed on: programs that Shardy does not see name none."""
    meshes = dict.fromkeys(s.mesh for s in shardings if isinstance(s, NamedSharding))
    return [
        Box(mesh.axis_names, np.arange(mesh.size).reshape(mesh.axis_sizes))
        for mesh in meshes
        if not mesh.empty
    ]


def of_text(
    name: str, text: str, meshes: Sequence[Box], lines: planning.Constrained | None = None
) -> Collectives:
    """The collectives of a program that is given as the text of its optimized HLO.

    Args:
        name: the name of the function.
        text: what `Compiled.as_text` gives.
        meshes: the meshes whose axes the groups of devices are matched with.
        lines: the lines of constraints on where values are, by the operations that give these.
    """
    module = HloModule(text)
    found = list(_Search(module, meshes, lines or {}).walk(module.entry, 1, ()))
    return Collectives(name, found, meshes, module.devices)


def kind_of(opcode: str) -> str | None:
    """The kind of collective that an HLO instruction starts; None if it starts none."""
    kind = opcode.removesuffix("-start").replace("-", "_")
    return kind if kind in KINDS else None


# jaxlib 0.11 and later mark the collectives that the partitioner inserts, and give them the source
# line of the operation that produces the value. Earlier versions give them the line of the
# operation that needs the value resharded, which is the line that users look for.
_GENERATED = 'is_spmd_generated="true"'


def _parameter(computation: Neighbours, number: int) -> str:
    """Returns the name of a parameter of a computation."""
    text = str(number)
    return next(
        x.name for x in computation.values() if x.opcode == "parameter" and x.operands == [text]
    )


class _Search(NamedTuple):
    """Finds the collectives of a program, whose groups of devices are matched with meshes."""

    module: HloModule
    meshes: Sequence[Box]
    lines: planning.Constrained

    def walk(
        self, computation: str, times: int | None, inside: tuple[str, ...]
    ) -> Iterator[Collective]:
        """The collectives of a computation and of those that it runs."""
        neighbours = self.module.computations.get(computation, {})
        for instruction in neighbours.values():
            kind = kind_of(instruction.opcode)
            if kind is not None:
                yield self._record(neighbours, instruction, kind, times, inside)
                continue
            for branch, (role, callee) in enumerate(instruction.calls):
                here, often = inside, times
                if instruction.opcode == "while":
                    trips = instruction.trip_count
                    here = (*inside, f"while x{'?' if trips is None else trips}")
                    # A condition is asked once more than the body runs.
                    extra = 1 if role == "condition" else 0
                    often = None if trips is None or times is None else times * (trips + extra)
                elif instruction.opcode == "conditional":
                    here = (*inside, f"branch {branch}")
                yield from self.walk(callee, often, here)

    def _record(
        self,
        neighbours: Neighbours,
        instruction: Instruction,
        kind: str,
        times: int | None,
        inside: tuple[str, ...],
    ) -> Collective:
        known = [neighbours[name] for name in instruction.operands if name in neighbours]
        operands = tuple(tensor for operand in known for tensor in operand.tensors)
        if kind == "collective_permute":
            axes = groups.axes_of_pairs(groups.read_pairs(instruction.attributes), self.meshes)
        else:
            found = groups.read_groups(instruction.attributes, self.module.devices)
            axes = groups.axes_of_groups(found, self.meshes)
        origin = instruction
        if kind not in planning.REDUCTIONS and _GENERATED in instruction.attributes:
            origin = self._consumer(neighbours, instruction.name) or instruction
        own = self.module.frame(origin)
        operation = origin.metadata.get("op_name", "")
        own = own if kind in planning.REDUCTIONS else self.lines.get((operation, own), own)
        line = own or self._line_nearby(neighbours, instruction)
        return Collective(
            kind, axes, operands, times, inside, line, own is not None, operation, instruction.name
        )

    def _consumer(self, computation: Neighbours, name: str) -> Instruction | None:
        """Returns the first instruction with a source line that uses the value `name`.

        Fusions are searched inside. From an instruction without a line the search goes on with the
        users of its result.
        """
        for other in computation.values():
            if f"%{name}" not in other.text or name not in other.operands:
                continue
            found: Instruction | None = other
            if other.opcode == "fusion":
                fused = self.module.computations[other.calls[0][1]]
                found = self._consumer(fused, _parameter(fused, other.operands.index(name)))
            elif self.module.frame(other) is None:
                found = self._consumer(computation, other.name)
            if found is not None:
                return found
        return None

    def _line_nearby(self, neighbours: Neighbours, instruction: Instruction) -> Frame | None:
        """The line of the nearest instruction that takes a value, or else of one that gives it."""
        users: dict[str, list[str]] = {}
        for other in neighbours.values():
            for name in other.operands:
                users.setdefault(name, []).append(other.name)
        start = instruction.name
        return self._nearest(neighbours, start, users) or self._nearest(
            neighbours, start, {name: x.operands for name, x in neighbours.items()}
        )

    def _nearest(
        self, neighbours: Neighbours, start: str, following: Mapping[str, Sequence[str]]
    ) -> Frame | None:
        seen = {start}
        queue = [start]
        for name in queue:
            frame = self.module.frame(neighbours[name])
            if frame is not None:
                return frame
            fresh = [x for x in following.get(name, ()) if x in neighbours and x not in seen]
            queue += fresh
            seen.update(fresh)
        return None


def assert_collectives(
    function: Callable[..., Any], *, exactly: bool = False, **counts: int
) -> Callable[..., Collectives]:
    """Checks how many collectives of each kind a compiled program contains.

    Counts instructions of the program, however often they run: one in a loop is one, and one that
    works on several arrays together is one.  The result is to be called with the function's
    arguments, arrays or `ShapeDtypeStruct`s with shardings; nothing is run.

        assert_collectives(train_step, all_reduce=1, all_gather=0)(params, batch)

    Source:     minijax's own.

    Args:
        function: a function, perhaps jitted.
        exactly: whether kinds that are not named must not occur; by default they are not looked
            at.
        **counts: how many there must be of a kind, such as `all_gather=1`.

    Returns:
        A function of the arguments that gives what `explain.collectives` gives.

    Raises:
        TypeError: there is no such kind of collectives, or `function` is not callable.
        AssertionError: the program contains others; the text lists all, with the user's lines.

    Example:
        >>> from minijax.testing import assert_collectives
        >>> spread = jax.NamedSharding(jax.make_mesh((8,), ("x",)), jax.P("x"))
        >>> x = jax.device_put(jnp.ones(8), spread)
        >>> _ = assert_collectives(jnp.sum, exactly=True, all_reduce=1)(x)
    """
    strange = [kind for kind in counts if kind not in KINDS]
    if strange:
        problem = f"there are no collectives of kind {strange[0]!r}."
        got = ", ".join(strange)
        expected = "kinds among " + ", ".join(KINDS)
        error(TypeError, "testing.assert_collectives", problem, got=got, expected=expected)
    find = collectives(function)

    def check(*args: Any, **kwargs: Any) -> Collectives:
        __tracebackhide__ = True  # pytest shows the line of the test
        found = find(*args, **kwargs)
        kinds = KINDS if exactly else tuple(counts)
        wrong = [k for k in kinds if found.counts.get(k, 0) != counts.get(k, 0)]
        if wrong:
            have = ", ".join(f"{found.counts.get(kind, 0)} {kind}" for kind in wrong)
            want = ", ".join(f"{counts.get(kind, 0)} {kind}" for kind in wrong)
            problem = f"{found.name} contains {have}."
            got = repr(found)
            error(AssertionError, "testing.assert_collectives", problem, got=got, expected=want)
        return found

    return check
