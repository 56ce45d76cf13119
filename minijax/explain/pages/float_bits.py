"""One run of a computation of HLO, and those of its integers that stand for floats.

Where devices of the host look for the greatest of floats together, programs compare integers, as
XLA would lose NaN there (`docs/reliability.md`): the bits of each float, flipped where it is
negative, which orders them as floats are ordered, and flipped back at last.  By name nothing
happens there: the integers keep the terms of the floats, and a mark says what they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from minijax.explain.pages import hlo_terms, terms
from minijax.explain.pages.moving import PerDevice, Unshown
from minijax.runtime.hlo_text import Instruction, Tensor

Value: TypeAlias = "PerDevice | tuple[Value, ...]"
"""A value on each device, or a tuple of such."""

_MOVING = frozenset(
    {
        "all-gather",
        "all-to-all",
        "bitcast",
        "broadcast",
        "collective-permute",
        "copy",
        "dynamic-slice",
        "gather",
        "reshape",
        "reverse",
        "slice",
        "transpose",
    }
)
_EXTREMES = frozenset({"maximum", "minimum"})


class Mark(NamedTuple):
    """What the integers of an instruction are.

    Attributes:
        kind: `bits` of floats; `ordered` as these; the `sign` of such integers, or what is to be
            flipped for that, `flip`; or no integers but the answers whether floats are NaN, `nan`.
        origin: the instruction whose value they come from.
        dtype: that of the floats, in the notation of jaxprs.
    """

    kind: str
    origin: str
    dtype: str


class Frame:
    """One run of a computation.

    Attributes:
        instructions: its instructions by name.
        args: the values of its parameters.
        values: those of its instructions, so far.
        marks: what integers are that stand for floats.
        root: the name of that whose value it gives.
    """

    def __init__(self, instructions: dict[str, Instruction], args: Sequence[Value]) -> None:
        self.instructions = instructions
        self.args = args
        self.values: dict[str, Value] = {}
        self.marks: dict[str, Mark] = {}
        self.root = next(x.name for x in instructions.values() if x.is_root)

    def tensor(self, name: str) -> Tensor:
        """The type of the value of an instruction, of floats where it stands for such."""
        tensors = self.instructions[name].tensors
        if len(tensors) != 1:
            raise Unshown
        tensor = tensors[0]
        mark = self.marks.get(name)
        return tensor if mark is None or mark.kind == "nan" else tensor._replace(dtype=mark.dtype)

    def kinds(self, instruction: Instruction) -> list[str]:
        """What the operands of an instruction stand for; empty texts where for themselves."""
        found = (self.marks.get(name) for name in instruction.operands)
        return ["" if mark is None else mark.kind for mark in found]

    def check_unmarked(self, names: Sequence[str]) -> None:
        """Checks that values that others get stand for themselves.

        Raises:
            Unshown: one is the bits of floats.
        """
        if any(name in self.marks for name in names):
            raise Unshown

    def mark(self, instruction: Instruction, joins: str) -> int | None:
        """Marks an instruction by which floats are ordered.

        Args:
            instruction: the instruction, whose operands are marked, or are not known.
            joins: the operation by which it joins values, if it is a reduction.

        Returns:
            The operand whose terms it keeps; None if it is to be computed.

        Raises:
            Unshown: it does something else with the bits of floats.
        """
        opcode, kinds = instruction.opcode, self.kinds(instruction)
        if opcode in _ORDERING and (which := _ORDERING[opcode](self, instruction)) is not None:
            return which
        held = [kind for kind in kinds if kind not in ("", "nan")]
        if not held:
            return None
        if not self._keeps(instruction, joins, kinds):
            raise Unshown
        first = next(self.marks[name] for name in instruction.operands if name in self.marks)
        self.marks[instruction.name] = Mark(first.kind, "", first.dtype)
        return None

    def _keeps(self, instruction: Instruction, joins: str, kinds: Sequence[str]) -> bool:
        """Whether the result stands for floats as the operands do."""
        opcode, operands = instruction.opcode, instruction.operands
        if opcode in _MOVING:
            return not any(kinds[1:])
        if opcode in _EXTREMES:
            return kinds == ["ordered", "ordered"]
        if opcode == "reduce":
            return kinds == ["ordered", ""] and self._starts(instruction, joins)
        if opcode == "all-reduce" and kinds == ["bits"]:
            # Of bits that others hold zeros beside.
            return joins == "add"
        if opcode == "all-reduce":
            return kinds == ["ordered"] and joins in _EXTREMES
        if opcode == "select" and sorted(kinds) == ["", "", "bits"] and not kinds[0]:
            return self._is_all(operands[2 if kinds[1] else 1], 0)
        return False

    def _starts(self, instruction: Instruction, joins: str) -> bool:
        """Whether a reduction begins with what changes nothing."""
        most = _most(instruction)
        end = {"maximum": -most - 1, "minimum": most}.get(joins)
        return end is not None and self._is_all(instruction.operands[1], end)

    def _is_all(self, name: str, number: int) -> bool:
        value = self.values[name]
        pieces = value if isinstance(value, list) else []
        return all(terms.is_known(piece) and bool((piece == number).all()) for piece in pieces)

    def _test(self, instruction: Instruction) -> int | None:
        one, other = instruction.operands
        if one != other or "direction=NE" not in instruction.attributes or one in self.marks:
            return None
        self.marks[instruction.name] = Mark("nan", one, self.tensor(one).dtype)
        return 0

    def _cast(self, instruction: Instruction) -> int | None:
        (name,) = instruction.operands
        mark = self.marks.get(name)
        given, made = self.tensor(name), instruction.tensors[0]
        if mark is None and given.dtype in ("bf16", "f16", "f32", "f64") and made.dtype[0] == "i":
            self.marks[instruction.name] = Mark("bits", name, given.dtype)
            return 0
        if mark is not None and mark.kind == "bits" and made.dtype == mark.dtype:
            return 0
        raise Unshown

    def _shift(self, instruction: Instruction) -> int | None:
        name, places = instruction.operands
        mark = self.marks.get(name)
        bits = instruction.tensors[0].bits
        if mark is None or mark.kind == "sign" or not self._is_all(places, bits - 1):
            return None
        self.marks[instruction.name] = Mark("sign", name, mark.dtype)
        return 0

    def _mask(self, instruction: Instruction) -> int | None:
        for which, (name, other) in enumerate((instruction.operands, instruction.operands[::-1])):
            mark = self.marks.get(name)
            if mark is not None and mark.kind == "sign" and self._is_all(other, _most(instruction)):
                self.marks[instruction.name] = mark._replace(kind="flip")
                return which
        return None

    def _flip(self, instruction: Instruction) -> int | None:
        for which, (name, other) in enumerate((instruction.operands, instruction.operands[::-1])):
            mark, flips = self.marks.get(name), self.marks.get(other)
            if mark is not None and flips is not None and flips[:2] == ("flip", name):
                kind = {"bits": "ordered", "ordered": "bits"}[mark.kind]
                self.marks[instruction.name] = mark._replace(kind=kind)
                return which
        return None

    def _choose(self, instruction: Instruction) -> int | None:
        test, chosen, other = instruction.operands
        mark, asked = self.marks.get(other), self.marks.get(test)
        if mark is None or asked is None:
            return None
        most = _most(instruction)
        if not any(self._is_all(chosen, end) for end in (most, -most - 1)):
            return None
        if (mark.kind, asked.kind, asked.origin) != ("ordered", "nan", mark.origin):
            return None
        self.marks[instruction.name] = mark
        return 2


_ORDERING = {
    "and": Frame._mask,
    "bitcast-convert": Frame._cast,
    "compare": Frame._test,
    "select": Frame._choose,
    "shift-right-arithmetic": Frame._shift,
    "xor": Frame._flip,
}


def _most(instruction: Instruction) -> int:
    return int(np.iinfo(hlo_terms.dtype_of(instruction.tensors[0])).max)
