"""Reads the text of an optimized HLO module: computations, instructions, the user's lines.

Input: what `Compiled.as_text` gives.  Output: an `HloModule`.  Instructions are taken apart only
as far as somebody asks, as most of a module's text is of no interest.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from minijax.core.source import Frame

_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) (?:\(.*\) -> .*)?\{")
_INSTRUCTION = re.compile(r"^\s+(ROOT )?%?([\w.\-]+) = (.*)$")
# jaxlib 0.12 prints `%t#1` for an element of a tuple, in place of an instruction that takes it.
_ELEMENT = re.compile(r"%([\w.\-]+)#(\d+)")
_TABLE_ROW = re.compile(r"^(\d+) (.*)$")
_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
_FIELD = re.compile(r"(\w+)=(\d+)")
_TENSOR = re.compile(r"([a-z]+)(\d*)(\w*)\[([\d,<=]*)\]")
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|[()\[\]{},]')
_METADATA_FIELD = re.compile(r'(\w+)=(?:"((?:[^"\\]|\\.)*)"|(\d+))')
_CALLS = re.compile(
    r"\b(calls|to_apply|body|condition|branch_computations|called_computations|true_computation|"
    r"false_computation)=(\{[^}]*\}|%?[\w.\-]+)"
)
# XLA counts along in long lists.
_COUNT = re.compile(r"/\*index=\d+\*/")
_TRIP_COUNT = re.compile(r'"known_trip_count":\{"n":"?(\d+)"?\}')
_BITS_OF_NAMED = {"pred": 8}
_NAMES_IN_JAXPRS = {"pred": "bool", "s": "i"}


class Tensor(NamedTuple):
    """One array of an instruction, as each device sees it; dtypes are named as in jaxprs."""

    dtype: str
    shape: tuple[int, ...]
    bits: int

    @property
    def bytes(self) -> int:
        """The memory it takes."""
        bits = self.bits
        for size in self.shape:
            bits *= size
        return -(-bits // 8)

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


class Instruction:
    """One line of a computation.

    Attributes:
        is_root: whether it gives the result of the computation.
        name: its name.
        text: what is printed after its name, from the type on.
        type_text: the type of what it gives, with its layout.
        opcode: the operation.
    """

    def __init__(self, root: str | None, name: str, text: str) -> None:
        self.is_root, self.name, self.text = root is not None, name, text
        cut = _end_of_shape(text)
        self.type_text = text[:cut]
        self.opcode, _, self._rest = text[cut:].lstrip().partition("(")

    @property
    def tensors(self) -> list[Tensor]:
        """The arrays that it gives: several where the result is a tuple."""
        found = []
        for letters, digits, tail, dims in _TENSOR.findall(self.type_text):
            bits = _BITS_OF_NAMED.get(letters + digits, int(digits or 0))
            shape = tuple(int(d.lstrip("<=")) for d in dims.split(",") if d)
            name = _NAMES_IN_JAXPRS.get(letters, letters)
            found.append(Tensor(name + digits + tail, shape, bits))
        return found

    @functools.cached_property
    def _parts(self) -> tuple[str, str]:
        """The text of the operands, and that of the attributes."""
        for match, depth in _brackets(self._rest, depth=1):
            if depth == 0:
                return self._rest[: match.start()], self._rest[match.end() :]
        return self._rest, ""

    @property
    def operands(self) -> list[str]:
        """The names of the operands."""
        parts = split(_COUNT.sub("", self._parts[0]))
        return [part.split()[-1].lstrip("%") for part in parts]

    @property
    def attributes(self) -> str:
        """The text after the operands."""
        return self._parts[1]

    @property
    def metadata(self) -> dict[str, str]:
        """What XLA knows about the instruction's origin."""
        text = self._rest.rpartition("metadata={")[2] if "metadata={" in self._rest else ""
        return {key: quoted or number for key, quoted, number in _METADATA_FIELD.findall(text)}

    @property
    def calls(self) -> list[tuple[str, str]]:
        """The computations that it runs, each with the attribute that names it."""
        return [
            (role, name.strip().lstrip("%"))
            for role, names in _CALLS.findall(self.attributes)
            for name in names.strip("{}").split(",")
        ]

    @property
    def trip_count(self) -> int | None:
        """How often a loop runs; None where XLA could not tell."""
        found = _TRIP_COUNT.search(self.attributes)
        return int(found.group(1)) if found else None


class HloModule:
    """A module as it is printed.

    Attributes:
        computations: by name, their instructions by name.
        name: its name: `jit_` and that of the function.
        entry: the name of the computation that runs first.
        devices: on how many devices it runs.
    """

    def __init__(self, text: str) -> None:
        self.computations: dict[str, dict[str, Instruction]] = {}
        self.name = text.partition(",")[0].removeprefix("HloModule ")
        self.entry = ""
        self._tables: dict[str, dict[int, str]] = {}
        lines = text.splitlines()
        header = dict(_FIELD.findall(lines[0])) if lines else {}
        self.devices = int(header.get("num_partitions", 1)) * int(header.get("replica_count", 1))
        self._read(lines)

    def _read(self, lines: Sequence[str]) -> None:
        rows: dict[int, str] | None = None
        instructions: dict[str, Instruction] = {}
        for line in lines:
            row = _TABLE_ROW.match(line)
            if rows is not None and row:
                rows[int(row.group(1))] = row.group(2)
                continue
            rows = self._tables.setdefault(line, {}) if line in _TABLES else None
            found = _INSTRUCTION.match(line)
            if found:
                if "#" in line:
                    _add_elements(instructions, line)
                instructions[found.group(2)] = Instruction(*found.groups())
                continue
            head = _COMPUTATION.match(line)
            if head:
                instructions = self.computations.setdefault(head.group(2), {})
                self.entry = head.group(2) if head.group(1) else self.entry

    def frame(self, instruction: Instruction) -> Frame | None:
        """The user's line that an instruction was made for."""
        metadata = instruction.metadata
        if "source_file" in metadata:
            return Frame(metadata["source_file"], int(metadata.get("source_line", 0)), "<module>")
        stack = self._tables.get("StackFrames", {}).get(int(metadata.get("stack_frame_id", 0)))
        if stack is None:
            return None
        location = dict(_FIELD.findall(stack))["file_location_id"]
        fields = dict(_FIELD.findall(self._tables["FileLocations"][int(location)]))
        names = [
            self._tables[table][int(fields[key])].strip('"')
            for table, key in (("FileNames", "file_name_id"), ("FunctionNames", "function_name_id"))
        ]
        return Frame(names[0], int(fields["line"]), names[1])


def _add_elements(instructions: dict[str, Instruction], line: str) -> None:
    """Adds the instructions that older versions of XLA print for elements of tuples in a line."""
    for name, index in _ELEMENT.findall(line):
        whole, element = instructions.get(name), f"{name}#{index}"
        if whole is not None and element not in instructions:
            kind = split(_COUNT.sub("", whole.type_text)[1:-1])[int(index)]
            text = f"{kind} get-tuple-element(%{name}), index={index}"
            instructions[element] = Instruction(None, element, text)


def split(text: str) -> list[str]:
    """The parts of a text between the commas that stand in no bracket."""
    parts = []
    start = 0
    for match, depth in _brackets(text):
        if match.group() == "," and depth == 0:
            parts.append(text[start : match.start()])
            start = match.end()
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def _end_of_shape(text: str) -> int:
    """Where the type of an instruction ends and its operation begins."""
    if not text.startswith("("):
        return text.index(" ")
    return next((match.end() for match, depth in _brackets(text) if depth == 0), len(text))


def _brackets(text: str, depth: int = 0) -> Iterator[tuple[re.Match[str], int]]:
    """The brackets, commas and strings of a text, each with how many brackets are open then."""
    for match in _BRACKETS.finditer(text):
        token = match.group()
        depth += (token in "([{") - (token in ")]}")
        yield match, depth
