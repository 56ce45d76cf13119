"""What a program holds in memory where it holds most, and which lines have made it.

Input: a function and arguments.  Output: the values that are alive at the peak.  XLA's buffer
assignment says where each value lies; the order in which the program runs says from when to when
it is needed.  What lies at the same place at the same time is one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from minijax.core import deferral
from minijax.core.source import Frame
from minijax.explain.communication import bytes_text, table
from minijax.explain.xla import programs
from minijax.explain.xla.buffers import PARTS, Assignment, Buffer, Place, assignment_of
from minijax.explain.xla.programs import CONTROL, COSTLESS
from minijax.runtime.hlo_text import HloModule, Instruction

_SHOWN = 16
"""How many values a report shows, so that it fits a screen."""

_PLURALS = dict(zip(PARTS, ("arguments", "results", "constants", "temporaries"), strict=True))

Held = Mapping[Place, frozenset[int]]
"""The numbers of the buffers that hold the parts of a result."""


class Value(NamedTuple):
    """A value that is in memory at the peak.

    Source:     minijax's own.

    Attributes:
        name: the argument, or the instruction of the program that gives it.
        part: `argument`, `result`, `constant` or `temporary`: whose memory it lies in.
        type: dtype and shape, as each device sees it.
        bytes: the memory that it takes.
        operations: what the function calls the operations that have made it.
        lines: the user's lines that it was made for.

    Example:
        >>> value = jax.explain.memory(jnp.cos)(jnp.ones(8)).values[0]
        >>> value.type, value.bytes
        ('f32[8]', 32)
    """

    name: str
    part: str
    type: str
    bytes: int
    operations: tuple[str, ...]
    lines: tuple[Frame, ...]


class Memory:
    """The memory of a program on one device; prints what is alive at the peak.

    A program holds its arguments, its results and the room for all temporary values from its
    beginning to its end.  How large that room is, the moment decides at which most of it is used.

    Source:     minijax's own.

    Attributes:
        name: the name of the function.
        bytes: what the program holds.
        parts: the same by what it is for: arguments, results, constants and temporaries.
        at: the instruction at which most is alive.
        alive: how many bytes hold values then.
        line: the user's line of that instruction.
        values: what is alive there, the largest first.
        devices: on how many devices the program runs.
        by_xla: whether XLA has told where values lie; else each is taken to have memory of its own.

    Example:
        >>> found = jax.explain.memory(jnp.cos)(jnp.ones(8))
        >>> found.bytes, found.parts
        (64, {'argument': 32, 'result': 32, 'constant': 0, 'temporary': 0})
    """

    def __init__(self, name: str, module: HloModule, assignment: Assignment) -> None:
        life = _Life(module, assignment)
        self.name = name
        self.devices = module.devices
        self.by_xla = assignment.by_xla
        self.parts = dict.fromkeys(PARTS, 0)
        for allocation in assignment.allocations.values():
            self.parts[allocation.part] += allocation.bytes
        moment, buffers = life.peak()
        peak = life.order[moment]
        self.at = peak.name
        lines = programs.lines_of(module, peak)
        self.line = lines[0] if lines else None
        self.values = tuple(sorted(map(life.described, buffers), key=lambda x: -x.bytes))
        self.alive = sum(_used(buffers).values())
        if not self.by_xla:
            self.parts["temporary"] = self.alive - sum(self.parts[x] for x in PARTS[:3])

    @property
    def bytes(self) -> int:
        """What the program holds."""
        return sum(self.parts.values())

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    _repr_html_ = deferral.shown

    def _lines(self) -> Iterator[str]:
        where = f" on each of {self.devices} devices" if self.devices > 1 else ""
        yield f"{self.name}: {bytes_text(self.bytes)}{where}"
        yield ", ".join(f"{_PLURALS[x]} {bytes_text(n)}" for x, n in self.parts.items() if n)
        line = "" if self.line is None else f", {self.line}"
        yield f"at the peak {bytes_text(self.alive)} are alive: {self.at}{line}"
        if not self.by_xla:
            yield "XLA does not tell where values lie: each is taken to have memory of its own"
        counted = Counter(self.values)
        alike = sorted(counted, key=lambda x: -x.bytes * counted[x])
        rows = [
            (
                f"{value.name} x{counted[value]}" if counted[value] > 1 else value.name,
                value.type,
                bytes_text(value.bytes * counted[value]),
                value.part,
                ", ".join(value.operations[:3]),
                programs.lines_text(value.lines),
            )
            for value in alike[:_SHOWN]
        ]
        titles = ("value", "type", "bytes", "part", "operations", "line")
        yield from ("", *table(titles, rows, titles[2:3]))
        rest = alike[_SHOWN:]
        if rest:
            left = bytes_text(sum(x.bytes * counted[x] for x in rest))
            yield f"and {sum(counted[x] for x in rest)} smaller ones: {left}"


def memory(function: Callable[..., Any]) -> Callable[..., Memory]:
    """Finds out what a function holds in memory where it holds most.

    The result is to be called with the function's arguments: arrays, or `ShapeDtypeStruct`s with
    shardings.  The function is compiled for them and not run.

    Source:     minijax's own.

    Args:
        function: a function, perhaps jitted, mapped or differentiated; or what `Lowered.compile`
            has given, to be called without arguments.

    Returns:
        A function of the arguments that gives a `Memory`, which prints as a table.

    Raises:
        TypeError: `function` is not callable.

    Example:
        >>> x = jax.ShapeDtypeStruct((256, 256), jnp.float32)
        >>> found = jax.explain.memory(lambda x: jnp.sin(x) @ x)(x)
        >>> found.parts["argument"] == found.parts["result"] == 4 * 256 * 256
        True
        >>> [value.name for value in found.values if value.part == "argument"]
        ['x']
    """
    compile_for = programs.program_of("explain.memory", function)

    def of(*args: Any, **kwargs: Any) -> Memory:
        program = compile_for(*args, **kwargs)
        executable = program.compiled.runtime_executable()
        return Memory(program.name, program.module, assignment_of(executable, program.module))

    return of


def _used(buffers: Iterable[Buffer]) -> dict[int, int]:
    """How many bytes of each allocation some of these buffers hold."""
    spans = defaultdict(list)
    for buffer in buffers:
        spans[buffer.allocation].append((buffer.offset, buffer.end))
    return {index: _covered(found) for index, found in spans.items()}


def _covered(spans: list[tuple[int, int]]) -> int:
    total = reached = 0
    for start, end in sorted(spans):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


class _Life:
    """From when to when each buffer holds a value that is still needed.

    Attributes:
        order: the instructions as they run; the body of a loop stands there once.
    """

    def __init__(self, module: HloModule, assignment: Assignment) -> None:
        self.order: list[Instruction] = []
        self._module = module
        self._assignment = assignment
        self._buffers = assignment.buffers
        self._by_writer: dict[str, list[int]] = defaultdict(list)
        for number, buffer in enumerate(self._buffers):
            self._by_writer[buffer.instruction].append(number)
        self._begin: dict[int, int] = {}
        self._end: dict[int, int] = {}
        self._instructions = {
            name: x for body in module.computations.values() for name, x in body.items()
        }
        entry = module.computations.get(module.entry, {})
        count = sum(x.opcode == "parameter" for x in entry.values())
        results = self._run(module.entry, [{}] * count)
        self._use(results)
        # Arguments belong to the caller, and constants to the program.
        for number, buffer in enumerate(self._buffers):
            if assignment.allocations[buffer.allocation].part in ("argument", "constant"):
                self._begin.setdefault(number, 0)
                self._end[number] = len(self.order)

    def _run(self, computation: str, arguments: Sequence[Held]) -> Held:
        """Follows a computation; gives what holds its result."""
        held: dict[str, Held] = {}
        root: Held = {}
        for instruction in self._module.computations.get(computation, {}).values():
            self.order.append(instruction)
            operands = [held.get(name, {}) for name in instruction.operands]
            if instruction.opcode == "parameter":
                operands = [arguments[_index(instruction)]] if arguments else []
            elif instruction.opcode not in COSTLESS:
                for operand in operands:
                    self._use(operand)
            held[instruction.name] = self._write(instruction, self._passed(instruction, operands))
            if instruction.is_root:
                root = held[instruction.name]
        self._use(root)
        return root

    def _passed(self, instruction: Instruction, operands: Sequence[Held]) -> Held:
        """The buffers of its operands that are in the result of an instruction, too."""
        opcode = instruction.opcode
        if opcode == "tuple":
            return {(i, *at): x for i, op in enumerate(operands) for at, x in op.items()}
        if opcode == "get-tuple-element":
            index = _index_attribute(instruction)
            return _part(operands[0], index)
        if opcode.endswith("-done"):
            return _part(operands[0], 1) or operands[0]
        if opcode in CONTROL:
            callees = instruction.calls
            results = []
            for i, (_, callee) in enumerate(callees):
                given = [operands[i + 1]] if opcode == "conditional" else operands
                results.append(self._run(callee, given))
            if opcode == "while":
                # The condition gives no part of the result.
                results = [
                    x for x, (role, _) in zip(results, callees, strict=True) if role == "body"
                ]
            return _merged([*results, *(operands if opcode == "while" else ())])
        return _merged(operands)

    def _write(self, instruction: Instruction, passed: Held) -> Held:
        """What holds the result of an instruction: buffers of its own, else what was passed on."""
        own = {}
        for number in self._by_writer[instruction.name]:
            self._begin.setdefault(number, len(self.order) - 1)
            self._end[number] = max(self._end.get(number, 0), len(self.order) - 1)
            own[self._buffers[number].place] = frozenset([number])
        if instruction.opcode in COSTLESS or instruction.opcode in CONTROL or not own:
            return {**passed, **own}
        return own

    def _use(self, held: Held) -> None:
        for numbers in held.values():
            for number in numbers:
                self._end[number] = max(self._end.get(number, 0), len(self.order) - 1)

    def peak(self) -> tuple[int, list[Buffer]]:
        """The moment at which most is alive, and the buffers that hold it, one for each place."""
        begins, ends = defaultdict(list), defaultdict(list)
        for number, begin in self._begin.items():
            begins[begin].append(number)
            ends[self._end[number]].append(number)
        alive: set[int] = set()
        best, moment, most = -1, 0, frozenset[int]()
        for now in range(len(self.order)):
            alive.update(begins[now])
            if begins[now]:
                used = sum(_used(self._buffers[i] for i in alive).values())
                if used > best:
                    best, moment, most = used, now, frozenset(alive)
            alive.difference_update(ends[now])
        places: dict[tuple[int, int], Buffer] = {}
        for number in sorted(most, key=self._worth):
            buffer = self._buffers[number]
            if buffer.bytes:
                places[buffer.allocation, buffer.offset] = buffer
        return moment, list(places.values())

    def _worth(self, number: int) -> tuple[bool, bool, int]:
        """How much a buffer says about the place where it lies: its size, and who wrote it."""
        buffer = self._buffers[number]
        writer = self._instructions.get(buffer.instruction)
        is_computed = writer is not None and writer.opcode not in COSTLESS | CONTROL
        is_known = writer is not None and bool(writer.metadata)
        return is_computed, is_known, buffer.bytes

    def described(self, buffer: Buffer) -> Value:
        """What reports say about a buffer."""
        part = self._assignment.allocations[buffer.allocation].part
        writer = self._instructions.get(buffer.instruction)
        if writer is None:
            return Value(buffer.instruction, part, "?", buffer.bytes, (), ())
        tensors = writer.tensors
        is_whole = not buffer.place and writer.type_text.startswith("(")
        at = buffer.place[0] if buffer.place and buffer.place[0] < len(tensors) else 0
        type_text = "tuple" if is_whole or not tensors else str(tensors[at])
        name = writer.name
        if writer.opcode == "parameter":
            name = programs.argument_name(writer)
            return Value(name, part, type_text, buffer.bytes, (), ())
        operations = programs.names_of(self._module, writer)
        lines = programs.lines_of(self._module, writer)
        return Value(name, part, type_text, buffer.bytes, operations, lines)


def _index(parameter: Instruction) -> int:
    """The number of a parameter."""
    return int(parameter.operands[0])


def _index_attribute(instruction: Instruction) -> int:
    return int(instruction.attributes.partition("index=")[2].split(",")[0].split()[0])


def _part(held: Held, index: int) -> Held:
    return {at[1:]: numbers for at, numbers in held.items() if at[:1] == (index,)}


def _merged(parts: Iterable[Held]) -> Held:
    found: dict[Place, frozenset[int]] = {}
    for part in parts:
        for at, numbers in part.items():
            found[at] = found.get(at, frozenset()) | numbers
    return found
