"""The stages of a program as lines, each with the numbers of the equations that it belongs to.

Input: the program, as a jaxpr and as what MLIR and XLA print.  Output: columns of lines.  Lines
have depths, by which they fold.  What XLA prints is put in order: the entry first, and under each
operation the computations that it runs, so that a fusion holds its lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from minijax.core import printing
from minijax.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal
from minijax.explain.pages import marking
from minijax.explain.pages.marking import Numbers
from minijax.runtime.hlo_text import HloModule, Instruction

_LONGEST = 400
_NOTHING: Numbers = frozenset()
_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)$")
_REFERENCE = re.compile(r"#loc\d*")
_NAME = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ORIGINS = re.compile(r", (?:metadata|origin|backend_config|frontend_attributes)=\{.*$")
_CALLEES = ("calls", "body", "condition", "branch_computations", "called_computations")


class Line(NamedTuple):
    """A line of a column.

    Attributes:
        text: without the indentation that its depth says.
        depth: how far it is indented; the lines below that are deeper are folded with it.
        numbers: the equations that it shows, or was made of.
        is_inferred: whether the compiler has recorded no origin, and `numbers` are those of the
            operations that take the value.
        row: the number of the line in its file.
        file: its file, if it is one of the user's program.
    """

    text: str
    depth: int
    numbers: Numbers = _NOTHING
    is_inferred: bool = False
    row: int | None = None
    file: str = ""


class Column(NamedTuple):
    """One stage of a program.

    Attributes:
        key: a short name.
        title: what it is called.
        language: how its text is highlighted.
        lines: its lines.
    """

    key: str
    title: str
    language: str
    lines: list[Line]


def jaxpr_column(numbers: dict[int, Numbers], closed: ClosedJaxpr, key: str, title: str) -> Column:
    """The column of a jaxpr, with the numbers of its equations by their identities."""
    return Column(key, title, "jaxpr", _JaxprWriter(numbers).lines(closed.jaxpr, 0, "", ""))


class _JaxprWriter:
    """Writes jaxprs line by line, in the notation of `core/printing.py`."""

    def __init__(self, numbers: dict[int, Numbers]) -> None:
        self._numbers = numbers
        # The names under which jaxprs were written that several equations hold.
        self._written: dict[int, str] = {}

    def lines(self, jaxpr: Jaxpr, depth: int, before: str, after: str) -> list[Line]:
        """The lines of a jaxpr, between the texts around it."""
        names = Names()
        consts = " ".join(map(names.binder, jaxpr.constvars))
        inputs = " ".join(map(names.binder, jaxpr.invars))
        found = [Line(f"{before}{{ lambda {consts}; {inputs}. let", depth)]
        for eqn in jaxpr.eqns:
            found += self._eqn(eqn, names, depth + 2)
        outs = ", ".join(map(names.atom, jaxpr.outvars))
        comma = "," if len(jaxpr.outvars) == 1 else ""
        found.append(Line(f"in ({outs}{comma}) }}{after}", depth + 1))
        return found

    def _eqn(self, eqn: Eqn, names: Names, depth: int) -> Iterator[Line]:
        numbers = self._numbers[id(eqn)]
        held = _held_in(eqn)
        text = equation_text(eqn, names)
        if not held:
            yield Line(text, depth, numbers)
            return
        start, _, args = text.rpartition("] ")
        yield Line(start, depth, numbers)
        for key, value in held.items():
            jaxprs = list(_jaxprs(value))
            for i, jaxpr in enumerate(jaxprs):
                name = key if len(jaxprs) == 1 else f"{key}[{i}]"
                yield from self._held(jaxpr, name, depth + 1)
        yield Line(f"] {args}", depth, numbers)

    def _held(self, jaxpr: Jaxpr, name: str, depth: int) -> list[Line]:
        if id(jaxpr) in self._written:
            return [Line(f"{name}=(as {self._written[id(jaxpr)]} above)", depth)]
        self._written[id(jaxpr)] = name
        return self.lines(jaxpr, depth, f"{name}=", "")


def _held_in(eqn: Eqn) -> dict[str, Any]:
    """The parameters of an equation that hold jaxprs, of those that are shown."""
    if printing.notation.of(eqn.primitive) is not None:
        return {}
    shown = printing.shown_params(eqn.primitive, eqn.params)
    return {key: value for key, value in shown.items() if list(_jaxprs(value))}


def equation_text(eqn: Eqn, names: Names, is_brief: bool = False) -> str:
    """An equation on one line, without the jaxprs that it holds.

    Args:
        eqn: the equation.
        names: the names of its variables.
        is_brief: whether to leave out parameters that are None.
    """
    args = " ".join(map(names.atom, eqn.invars))
    outs = " ".join(map(names.binder, eqn.outvars))
    special = printing.notation.of(eqn.primitive)
    if special is not None:
        return str(special(eqn, names.atom, outs))
    start = f"{outs} = {eqn.primitive.name}" if outs else eqn.primitive.name
    shown = printing.shown_params(eqn.primitive, eqn.params)
    if is_brief:
        shown = {k: v for k, v in shown.items() if v is not None}
    held = _held_in(eqn)
    plain = " ".join(f"{k}={_short(v)}" for k, v in shown.items() if k not in held)
    return f"{start}[{plain}] {args}" if plain or held else f"{start} {args}"


class Names:
    """Names of variables, given in order of appearance as jaxprs print them.

    Args:
        before: what names begin with.
    """

    def __init__(self, before: str = "") -> None:
        self._before = before
        self._names: dict[int, str] = {}
        self._given = 0

    def of(self, var: object) -> str:
        """The name of a variable."""
        found = self._names.get(id(var))
        if found is None:
            found = self._names[id(var)] = f"{self._before}{_letters(self._given)}"
            self._given += 1
        return found

    def call(self, var: object, name: str) -> None:
        """Gives a variable a name that another one has, of the same value."""
        self._names[id(var)] = name

    def atom(self, atom: Atom) -> str:
        """A variable's name, or a literal's value and type."""
        if isinstance(atom, Literal):
            return f"{printing.literal_text(atom.value)}:{atom.aval.str_short()}"
        return self.of(atom)

    def binder(self, var: Atom) -> str:
        """A variable's name and type."""
        return f"{self.of(var)}:{var.aval.str_short()}"


def _letters(number: int) -> str:
    text = ""
    number += 1
    while number:
        number, letter = divmod(number - 1, 26)
        text = chr(ord("a") + letter) + text
    return text


def _jaxprs(value: Any) -> Iterator[Jaxpr]:
    for item in value if isinstance(value, (tuple, list)) else (value,):
        if isinstance(item, ClosedJaxpr):
            yield item.jaxpr
        elif isinstance(item, Jaxpr):
            yield item


def _short(value: Any) -> str:
    if type(value).__module__ == "numpy" and hasattr(value, "name"):
        return str(value.name)
    text = str(getattr(value, "__name__", value)) if callable(value) else str(value)
    return shortened(" ".join(text.split()), 120)


def shortened(text: str, longest: int = _LONGEST) -> str:
    """A text, of which the middle is left out if it is long."""
    if len(text) <= longest:
        return text
    return f"{text[: longest * 2 // 3]} … {text[-longest // 3 :]}"


def mlir_column(text: str, key: str, title: str) -> Column:
    """The column of a module of MLIR, printed with its locations."""
    aliases = {m[1]: m[2] for line in text.splitlines() if (m := _ALIAS.match(line))}
    known: dict[str, Numbers] = {}

    def numbers_of(location: str) -> Numbers:
        found = known.get(location)
        if found is None:
            found = marking.own_mark(_NAME.findall(location))
            if not found:
                for name in _REFERENCE.findall(location):
                    found |= numbers_of(aliases.get(name, ""))
            known[location] = found
        return found

    lines: list[Line] = []
    for raw in text.splitlines():
        if _ALIAS.match(raw) or not raw.strip():
            continue
        bare, locations = _without_locations(raw)
        numbers = numbers_of(locations[-1]) if locations else _NOTHING
        stripped = bare.strip()
        depth = (len(bare) - len(bare.lstrip())) // 2
        if numbers and stripped.startswith("}"):
            _locate_beginning(lines, depth, numbers)
        lines.append(Line(shortened(stripped), depth, numbers))
    return Column(key, title, "mlir", _inferred(lines, _MLIR_VALUE))


def _locate_beginning(lines: list[Line], depth: int, numbers: Numbers) -> None:
    """Tells the line on which an operation with regions begins what stands where it ends."""
    for i in range(len(lines) - 1, -1, -1):
        if lines[i].depth < depth:
            return
        if lines[i].depth == depth and " = " in lines[i].text:
            lines[i] = lines[i]._replace(numbers=numbers)
            return


_MLIR_VALUE = re.compile(r"%[\w.]+")


def _without_locations(line: str) -> tuple[str, list[str]]:
    """A line of MLIR without its locations, and these."""
    found = []
    kept = []
    start = 0
    while (at := line.find(" loc(", start)) >= 0:
        end = _closing(line, at + 4)
        kept.append(line[start:at])
        found.append(line[at + 5 : end])
        start = end + 1
    return "".join(kept) + line[start:], found


def _closing(text: str, start: int) -> int:
    """Where the bracket at `start` is closed; strings may hold brackets."""
    depth = 0
    in_string = False
    i = start
    while i < len(text):
        letter = text[i]
        if in_string:
            i += letter == "\\"
            in_string = letter != '"'
        elif letter == '"':
            in_string = True
        else:
            depth += (letter == "(") - (letter == ")")
            if depth == 0:
                return i
        i += 1
    return len(text)


def _inferred(lines: list[Line], value: re.Pattern[str]) -> list[Line]:
    """The lines, where those without origin that give a value have that of its users."""
    taken: dict[str, Numbers] = {}
    found = list(lines)
    for i in range(len(lines) - 1, -1, -1):
        line = found[i]
        result, equals, rest = line.text.partition(" = ")
        name = result.replace("ROOT ", "").partition(":")[0]
        if equals and not line.numbers and taken.get(name):
            line = found[i] = line._replace(numbers=taken[name], is_inferred=True)
        if line.numbers:
            for operand in set(value.findall(rest if equals else line.text)):
                taken[operand] = taken.get(operand, _NOTHING) | line.numbers
    return found


def hlo_column(text: str, key: str, title: str) -> Column:
    """The column of a module of HLO, from its entry on."""
    module = HloModule(text)
    writer = _HloWriter(module, _kept_lines(text))
    return Column(key, title, "hlo", writer.computation(module.entry, 0, "ENTRY "))


def _kept_lines(text: str) -> dict[tuple[str, str], str]:
    """The text of each instruction, by computation and name."""
    found = {}
    computation = ""
    for line in text.splitlines():
        if line[:1] not in (" ", "}", "") and line.rstrip().endswith("{"):
            computation = line.removeprefix("ENTRY ").lstrip("%").split(" ")[0]
        elif line.startswith("  ") and " = " in line:
            bare = line.strip()
            name = bare.removeprefix("ROOT ").partition(" = ")[0].lstrip("%")
            found[computation, name] = _ORIGINS.sub("", bare)
    return found


class _HloWriter:
    """Writes computations, each under the operation that runs it."""

    def __init__(self, module: HloModule, texts: dict[tuple[str, str], str]) -> None:
        self._module = module
        self._texts = texts

    def computation(self, name: str, depth: int, before: str = "") -> list[Line]:
        """The lines of a computation."""
        instructions = self._module.computations.get(name, {})
        numbers = _with_users(instructions)
        found = [Line(f"{before}%{name} {{", depth)]
        for instruction in instructions.values():
            if instruction.opcode == "parameter" and before == "":
                continue
            found += self._instruction(name, instruction, numbers[instruction.name], depth + 1)
        found.append(Line("}", depth))
        return found

    def _instruction(
        self, computation: str, instruction: Instruction, origin: tuple[Numbers, bool], depth: int
    ) -> list[Line]:
        inside: list[Line] = []
        if depth < 12:
            for role, callee in instruction.calls:
                if role in _CALLEES or instruction.opcode == "call":
                    inside += self.computation(callee, depth + 1)
        numbers, is_inferred = origin
        if instruction.opcode == "fusion":
            numbers |= frozenset().union(*(line.numbers for line in inside))
        text = self._texts.get((computation, instruction.name), f"%{instruction.name}")
        return [Line(shortened(text), depth, numbers, is_inferred), *inside]


def _with_users(instructions: dict[str, Instruction]) -> dict[str, tuple[Numbers, bool]]:
    """For each instruction its equations, those of its users where XLA has recorded none."""
    found: dict[str, tuple[Numbers, bool]] = {}
    taken: dict[str, Numbers] = {}
    for instruction in reversed(instructions.values()):
        name = instruction.name
        own = marking.own_mark([instruction.metadata.get("op_name", "")])
        numbers = own or taken.get(name, _NOTHING)
        found[name] = numbers, bool(numbers and not own)
        for operand in instruction.operands:
            taken[operand] = taken.get(operand, _NOTHING) | numbers
    return found
