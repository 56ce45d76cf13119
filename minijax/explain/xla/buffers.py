"""Where XLA keeps the values of a program: its buffer assignment.

Input: jaxlib's executable, which has it serialized, or the text of a program.  Output: buffers,
each a part of an allocation, by the instruction and the place in its result that they hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from minijax.explain.xla.programs import CONTROL, COSTLESS
from minijax.runtime.hlo_text import HloModule

Place = tuple[int, ...]
"""Where in the result of an instruction: empty for the whole, `(1,)` for the second of a tuple."""

PARTS = ("argument", "result", "constant", "temporary")
"""What allocations are for."""


class Allocation(NamedTuple):
    """Memory that a program holds while it runs.

    Attributes:
        part: one of `PARTS`; an argument that was given away may become a result in its memory.
        bytes: how much it is.
    """

    part: str
    bytes: int


class Buffer(NamedTuple):
    """The memory of one value.

    Attributes:
        instruction: who writes it.
        place: where it is in the result of that.
        allocation: the number of the allocation in which it lies.
        offset: where it begins there.
        bytes: its size.
    """

    instruction: str
    place: Place
    allocation: int
    offset: int
    bytes: int

    @property
    def end(self) -> int:
        """Where it ends in its allocation."""
        return self.offset + self.bytes


class Assignment(NamedTuple):
    """Which values a program keeps where.

    Attributes:
        allocations: by number.
        buffers: the buffers in them.
        by_xla: whether XLA says so; else each value is taken to have memory of its own.
    """

    allocations: dict[int, Allocation]
    buffers: list[Buffer]
    by_xla: bool


def assignment_of(executable: Any, module: HloModule) -> Assignment:
    """The buffer assignment of a program; where XLA does not tell it, one from the text."""
    stats = None if executable is None else executable.get_compiled_memory_stats()
    message: bytes = getattr(stats, "serialized_buffer_assignment_proto", b"")
    if not message:
        return _from_text(module)
    return _from_message(message, _instruction_names(executable.hlo_modules()))


def _from_message(message: bytes, names: dict[int, str]) -> Assignment:
    """Reads a `BufferAssignmentProto` of XLA."""
    values = {}
    allocations: dict[int, Allocation] = {}
    buffers = []
    for number, body in _fields(message):
        if number == 1:
            value = dict(_fields(body))
            values[value.get(1, 0)] = list(_fields(value[3]))
        elif number == 3:
            facts = dict(_fields(body))
            index = facts.get(1, 0)
            if facts.get(3):
                # That of a loop over elements, which is in registers.
                continue
            part = "temporary"
            for field, name in ((12, "constant"), (7, "result"), (5, "argument")):
                part = name if facts.get(field) else part
            allocations[index] = Allocation(part, facts.get(2, 0))
            for field, assigned in _fields(body):
                if field == 9:
                    where = dict(_fields(assigned))
                    origin = values[where.get(1, 0)]
                    name, place = _position(origin, names)
                    buffers.append(Buffer(name, place, index, where.get(2, 0), where.get(3, 0)))
    return Assignment(allocations, buffers, True)


def _position(location: list[tuple[int, Any]], names: dict[int, str]) -> tuple[str, Place]:
    """The instruction that a `Location` names, and the place in its result."""
    place: list[int] = []
    name = ""
    for number, value in location:
        if number == 4:
            name = names.get(value, "")
        elif number == 3:
            place += _numbers(value) if isinstance(value, bytes) else [value]
    return name, tuple(place)


def _instruction_names(modules: Any) -> dict[int, str]:
    """The names of instructions by their numbers, as a `HloModuleProto` gives them."""
    found = {}
    for module in modules:
        for number, computation in _fields(module.as_serialized_hlo_module_proto()):
            if number == 3:
                for field, instruction in _fields(computation):
                    if field == 2:
                        facts = dict(_fields(instruction))
                        found[facts.get(35, 0)] = facts[1].decode()
    return found


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a serialized message of protocol buffers: numbers, and bytes of messages."""
    at = 0
    while at < len(message):
        key, at = _number(message, at)
        field, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _number(message, at)
            yield field, value
            continue
        size = {1: 8, 5: 4}.get(wire, 0)
        if wire == 2:
            size, at = _number(message, at)
        yield field, message[at : at + size]
        at += size


def _number(message: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, the lowest first, and where it ends."""
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def _numbers(message: bytes) -> list[int]:
    at, found = 0, []
    while at < len(message):
        value, at = _number(message, at)
        found.append(value)
    return found


def _from_text(module: HloModule) -> Assignment:
    """An assignment in which each value has memory of its own."""
    allocations: dict[int, Allocation] = {}
    buffers = []
    for computation in _run_computations(module, module.entry):
        is_entry = computation == module.entry
        for instruction in module.computations[computation].values():
            opcode = instruction.opcode
            part = {"parameter": "argument", "constant": "constant"}.get(opcode, "temporary")
            if opcode in CONTROL or (part == "temporary" and opcode in COSTLESS):
                continue
            if part == "argument" and not is_entry:
                continue
            tensors = instruction.tensors
            for i, tensor in enumerate(tensors):
                index = len(allocations)
                place = (i,) if instruction.type_text.startswith("(") else ()
                is_result = part == "temporary" and is_entry and instruction.is_root
                allocations[index] = Allocation("result" if is_result else part, tensor.bytes)
                buffers.append(Buffer(instruction.name, place, index, 0, tensor.bytes))
    return Assignment(allocations, buffers, False)


def _run_computations(module: HloModule, name: str) -> Iterator[str]:
    yield name
    for instruction in module.computations.get(name, {}).values():
        if instruction.opcode in CONTROL:
            for _, callee in instruction.calls:
                yield from _run_computations(module, callee)
