"""A program that XLA has partitioned, run over names of values on all devices side by side.

Input: the text of the program after partitioning, and what devices hold of its arguments.  Output:
the value that each device holds after each instruction.  Operations of one device are in
`explain/pages/hlo_terms.py`, and what collectives move in `explain/pages/moving.py`.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.explain import communication, groups
from minijax.explain.pages import hlo_terms, moving, terms
from minijax.explain.pages.float_bits import Frame, Value
from minijax.explain.pages.hlo_terms import Operation
from minijax.explain.pages.moving import PerDevice, Unshown
from minijax.explain.pages.naming import Legend
from minijax.runtime.hlo_text import HloModule, Instruction

_MOST_INSTRUCTIONS = 4000
_MOST_TERMS = 1 << 17
_MOST_NAMES = 1 << 10


class Program:
    """The partitions of a program on their way.

    Args:
        module: the program.
        legend: the short names.
        see: gets each instruction and what devices hold of it.
    """

    def __init__(
        self,
        module: HloModule,
        legend: Legend,
        see: Callable[[Instruction, PerDevice], None],
    ) -> None:
        self._module = module
        self._legend = legend
        self._see = see
        self._done = 0
        self._terms = 0

    def run(self, computation: str, args: Sequence[Value]) -> Value:
        """What a computation gives.

        Args:
            computation: its name.
            args: the values of its parameters.

        Raises:
            Unshown: something in it is not carried by name.
        """
        frame = Frame(self._module.computations[computation], args)
        for instruction in frame.instructions.values():
            self._done += 1
            if self._done > _MOST_INSTRUCTIONS:
                raise Unshown
            value = self._value(instruction, frame)
            frame.values[instruction.name] = value
            mark = frame.marks.get(instruction.name)
            if isinstance(value, list) and (mark is None or mark.kind in ("bits", "ordered")):
                self._see(instruction, value)
        frame.check_unmarked([frame.root])
        return frame.values[frame.root]

    def _value(self, instruction: Instruction, frame: Frame) -> Value:
        opcode = instruction.opcode
        if opcode == "parameter":
            return frame.args[int(instruction.operands[0])]
        if opcode in ("partition-id", "replica-id"):
            devices = range(self._module.devices)
            return [np.asarray(d if opcode == "partition-id" else 0, np.uint32) for d in devices]
        names = [] if opcode in ("constant", "iota") else instruction.operands
        operands = [frame.values[name] for name in names]
        if opcode == "tuple" or opcode in _FLOW:
            frame.check_unmarked(names)
        if opcode == "tuple":
            return tuple(operands)
        if opcode in _FLOW:
            return _FLOW[opcode](self, instruction, operands)
        given = [value for value in operands if isinstance(value, list)]
        if len(given) != len(operands):
            raise Unshown
        return self._computed(instruction, given, frame)

    def _computed(self, instruction: Instruction, given: list[PerDevice], frame: Frame) -> Value:
        joins = self._joins(instruction)
        kinds = frame.kinds(instruction) if given else []
        if any(kinds) or not all(terms.is_known(piece) for value in given for piece in value):
            which = frame.mark(instruction, joins)
            if which is not None:
                return given[which]
        for number, kind in enumerate(kinds):
            if kind == "nan":
                test = frame.instructions[instruction.operands[number]]
                given[number] = self._local(test, "", [given[number]] * 2, frame)
            elif kind == "" and instruction.opcode == "reduce" and kinds[0]:
                # What a reduction of bits begins with is less than all, or greater.
                start = -math.inf if joins == "maximum" else math.inf
                given[number] = [np.asarray(start)] * self._module.devices
        if communication.kind_of(instruction.opcode) is not None:
            return self._moved(instruction, joins, given, frame)
        return self._local(instruction, joins, given, frame)

    def _local(
        self, instruction: Instruction, joins: str, args: Sequence[PerDevice], frame: Frame
    ) -> PerDevice:
        names = instruction.operands[: len(args)]
        given = [hlo_terms.dtype_of(frame.tensor(name)) for name in names]
        tensor = frame.tensor(instruction.name)
        operation = Operation(instruction, tensor, given, joins, self._legend)
        # What devices hold together they compute together.
        done: dict[tuple[int, ...], Any] = {}
        found = []
        for device in range(self._module.devices):
            own = [value[device] for value in args]
            key = tuple(map(id, own))
            if key not in done:
                done[key] = hlo_terms.applied(operation, own)
                self._terms += terms.count(done[key])
            if self._terms > _MOST_TERMS or len(self._legend) > _MOST_NAMES:
                raise Unshown
            found.append(done[key])
        return found

    def _joins(self, instruction: Instruction) -> str:
        """The operation by which a reduction joins two values; empty if it does more."""
        for role, name in instruction.calls:
            inside = list(self._module.computations.get(name, {}).values())
            opcodes = [x.opcode for x in inside]
            if role == "to_apply" and opcodes[:-1] == ["parameter", "parameter"]:
                first, second, root = inside
                if sorted(root.operands) == sorted((first.name, second.name)):
                    return root.opcode
        return ""

    def _moved(
        self, instruction: Instruction, joins: str, given: Sequence[PerDevice], frame: Frame
    ) -> Value:
        """What a collective gives."""
        kind = communication.kind_of(instruction.opcode)
        if kind not in _COLLECTIVES or "channel_id=" not in instruction.attributes:
            raise Unshown
        tensors = instruction.tensors
        if len(tensors) == 1:
            tensors = [frame.tensor(instruction.name)]
        # Bits are added where all others of a group hold zeros.
        joins = hlo_terms.EITHER if frame.kinds(instruction) == ["bits"] else joins
        operation = Operation(instruction, tensors[0], (), joins, self._legend)
        outs = _COLLECTIVES[kind](Collective(operation, self._module.devices), given)
        found: list[Value] = []
        for values, tensor in zip(outs, tensors, strict=True):
            done = {id(piece): hlo_terms.settled(piece, tensor) for piece in values}
            found.append([done[id(piece)] for piece in values])
        return tuple(found) if instruction.type_text.startswith("(") else found[0]

    def _call(self, instruction: Instruction, operands: Sequence[Value]) -> Value:
        ((_, callee),) = instruction.calls
        return self.run(callee, operands)

    def _while(self, instruction: Instruction, operands: Sequence[Value]) -> Value:
        callees = dict(instruction.calls)
        (state,) = operands
        for _ in range(moving.MOST_TURNS + 1):
            if not _decided(self.run(callees["condition"], [state])):
                return state
            state = self.run(callees["body"], [state])
        raise Unshown

    def _conditional(self, instruction: Instruction, operands: Sequence[Value]) -> Value:
        test, *args = operands
        callees = [name for _, name in instruction.calls]
        chosen = _decided(test)
        if any(role == "true_computation" for role, _ in instruction.calls):
            chosen = 0 if chosen else 1
        elif not 0 <= chosen < len(callees):
            chosen = len(callees) - 1
        return self.run(callees[chosen], [args[chosen]])

    def _element(self, instruction: Instruction, operands: Sequence[Value]) -> Value:
        (whole,) = operands
        if not isinstance(whole, tuple):
            raise Unshown
        return whole[int(instruction.attributes.partition("index=")[2].split(",")[0])]


_FLOW: dict[str, Callable[[Program, Instruction, Sequence[Value]], Value]] = {
    "call": Program._call,
    "conditional": Program._conditional,
    "get-tuple-element": Program._element,
    "while": Program._while,
}


def _decided(value: Value) -> int:
    """What all devices know together of a test."""
    pieces = value if isinstance(value, list) else []
    found = {int(piece) for piece in pieces if terms.is_known(piece)}
    if len(found) != 1 or not all(map(terms.is_known, pieces)):
        raise Unshown
    return found.pop()


class Collective:
    """A collective, whose devices give to each other.

    Args:
        operation: the instruction.
        devices: how many devices there are.
    """

    def __init__(self, operation: Operation, devices: int) -> None:
        self._operation = operation
        self._text = operation.instruction.attributes
        self._devices = devices

    def joined(self, values: PerDevice) -> PerDevice:
        """What groups hold together."""
        join = functools.partial(hlo_terms.joined, self._operation)
        if self._operation.joins == "add":
            # Steps show long sums by short names, whose sum tells what is added.
            values = [terms.shortened(piece, self._operation.legend.name) for piece in values]
        return moving.joined(values, self.groups(), join)

    def groups(self, *, global_ids: bool = True) -> list[list[int]]:
        """The devices that take part together.

        Args:
            global_ids: whether they are partitions only if the instruction says so.
        """
        if global_ids and "use_global_device_ids=true" not in self._text:
            raise Unshown
        found = groups.read_groups(self._text, self._devices)
        if found is None or sorted(found.ravel()) != list(range(self._devices)):
            raise Unshown
        return [list(map(int, group)) for group in found]

    def pairs(self) -> list[list[int]]:
        """Givers and takers."""
        found = groups.read_pairs(self._text)
        if found is None:
            raise Unshown
        return [[int(giver), int(taker)] for giver, taker in found]

    def axis(self) -> int | None:
        """The dimension along which it takes values apart or joins them."""
        found = re.search(r"\bdimensions=\{(\d+)\}", self._text)
        return int(found.group(1)) if found else None


def _all_reduce(collective: Collective, given: Sequence[PerDevice]) -> list[PerDevice]:
    return [collective.joined(values) for values in given]


def _all_gather(collective: Collective, given: Sequence[PerDevice]) -> list[PerDevice]:
    axis, taking_part = collective.axis(), collective.groups()
    if axis is None:
        raise Unshown
    return [moving.gathered(values, taking_part, axis, tiled=True) for values in given]


def _reduce_scatter(collective: Collective, given: Sequence[PerDevice]) -> list[PerDevice]:
    axis, taking_part = collective.axis(), collective.groups()
    if axis is None:
        raise Unshown
    totals = map(collective.joined, given)
    return [moving.scattered(total, taking_part, axis, tiled=True) for total in totals]


def _all_to_all(collective: Collective, given: Sequence[PerDevice]) -> list[PerDevice]:
    axis, taking_part = collective.axis(), collective.groups(global_ids=False)
    if axis is not None and len(given) == 1:
        return [moving.exchanged(given[0], taking_part, axis, axis, tiled=True)]
    if axis is not None or any(len(group) != len(given) for group in taking_part):
        raise Unshown
    found = [list(values) for values in given]
    for group in taking_part:
        for place, taker in enumerate(group):
            for number, giver in enumerate(group):
                found[number][taker] = given[place][giver]
    return found


def _collective_permute(collective: Collective, given: Sequence[PerDevice]) -> list[PerDevice]:
    return [moving.permuted(values, collective.pairs()) for values in given]


_COLLECTIVES: dict[str, Callable[[Collective, Sequence[PerDevice]], list[PerDevice]]] = {
    "all_gather": _all_gather,
    "all_reduce": _all_reduce,
    "all_to_all": _all_to_all,
    "collective_permute": _collective_permute,
    "reduce_scatter": _reduce_scatter,
}
