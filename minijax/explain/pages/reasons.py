"""What an equation means, why it is there, and what became of it.

Input: marked equations, and the columns that they were found in.  Output: sentences.  Why an
equation is there is read off the traceback of its making: the rules that made it stand in it.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from minijax import lax
from minijax.core import source, vma
from minijax.core.jaxpr import Literal
from minijax.explain.pages.columns import Column
from minijax.explain.pages.marking import Equation

_MEANINGS = {
    "add_any": "Adds two cotangents of one value.",
    "cond": "Runs one of several functions, which an index chooses.",
    "copy": "Gives its operand in memory of its own.",
    "custom_jvp_call": "A function with a derivative rule of its own.",
    "custom_vjp_call": "A function with a rule of its own for reverse mode.",
    "jit": "Calls a function that was staged once.",
    "pjit": "Calls a function that was staged once.",
    "pmap": "Each device runs the function on its slice.",
    "psum_invariant": "Sums over devices; afterwards all of them hold the same.",
    "pvary": "Says that a value that is equal on all devices may now differ; moves nothing.",
    "random_bits": "Random bits, which a key determines.",
    "random_wrap": "Makes a key of the words that it consists of.",
    "random_unwrap": "Gives the words that a key consists of.",
    "remat": "A function whose values are computed again in the backward pass.",
    "checkpoint": "A function whose values are computed again in the backward pass.",
    "scan": "Runs a function along the leading dimension, and passes a carry on.",
    "shard_map": "Each device runs the function on its block of the arguments.",
    "while": "Runs a function as long as a condition holds.",
    "sharding_constraint": "Says where a value is to be; the compiler moves it there.",
    "threefry2x32": "Scrambles counters with a key: the random generator.",
}
_ROLES = {"derivative": "is part of the derivative", "batched": "works on a whole batch"}
_SAME_VALUE = frozenset(
    {"broadcast_in_dim", "convert_element_type", "copy", "expand_dims", "reshape", "squeeze",
     "stop_gradient", "transpose"}
)  # fmt: skip


def _meaning_of(equation: Equation) -> str:
    name = equation.eqn.primitive.name
    if name in _MEANINGS:
        return _MEANINGS[name]
    for thing in (getattr(lax, name, None), type(equation.eqn.primitive)):
        text = inspect.getdoc(thing) or ""
        first = text.partition("\n")[0].strip()
        if first and "rimitive" not in first and callable(thing):
            return first
    return f"The operation {name}."


def explained(equation: Equation) -> list[str]:
    """What the types of results say about devices, in sentences."""
    found = []
    for var in equation.eqn.outvars:
        aval = var.aval
        split = getattr(aval, "split", None)
        facts = vma.of(aval)
        short = aval.str_short()
        if split is not None:
            spec = split.spec
            found.append(f"{short}: an array over the mesh, whose dimensions are split as {spec}")
        for letter, names, text in (
            ("V", facts.varying, "it may differ between devices along"),
            ("U", facts.unreduced, "devices hold summands, still to be added, along"),
            ("R", facts.reduced, "devices hold the same, and cotangents are summed, along"),
        ):
            if names:
                over = ", ".join(sorted(map(str, names)))
                found.append(f"{short}: {letter}, {text} {over}")
    return list(dict.fromkeys(found))


class Origin(NamedTuple):
    """What the traceback of an equation says of its making.

    Attributes:
        call: the public function that the user's line calls; None if it is not known.
        role: whether it computes the function, is part of its derivative, or works on a batch.
        rule: the rule that made it, as a sentence; or nothing.
        has_rule: whether a rule for derivatives has made it.
    """

    call: str | None
    role: str
    rule: str
    has_rule: bool


class Reasons:
    """Tells why equations are there.  Many have the same frames, which are read once."""

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[str, str], ...], Origin] = {}
        self._meanings: dict[str, str] = {}

    def meaning_of(self, equation: Equation) -> str:
        """What the operation of an equation means, in one sentence."""
        name = equation.eqn.primitive.name
        if name not in self._meanings:
            self._meanings[name] = _meaning_of(equation)
        return self._meanings[name]

    def origin_of(self, equation: Equation) -> Origin:
        """What the traceback says."""
        traceback = equation.eqn.source
        frames = []
        for frame in () if traceback is None else traceback.frames:
            if not source.is_internal(frame.file_name):
                break
            frames.append((frame.file_name, frame.function_name))
        key = tuple(frames)
        found = self._known.get(key)
        if found is None:
            has_rule = any(function.endswith(".jvp") for _, function in key)
            call = source.public_call(traceback)
            found = Origin(call, _role_of(key), _rule(key), has_rule)
            self._known[key] = found
        return found

    def why(self, equation: Equation, users: Sequence[Equation]) -> str:
        """Why an equation is there."""
        name = equation.eqn.primitive.name
        origin = self.origin_of(equation)
        sentences = []
        if name in _CASTS:
            axes = sorted(vma.of(equation.eqn.outvars[0].aval).varying, key=str)
            wanted = f"`{users[0].eqn.primitive.name}` wants" if users else "what follows wants"
            over = ", ".join(map(str, axes))
            sentences.append(
                f"{wanted} all operands to vary over {over}, and this one does not; "
                "the transpose of this cast is the psum of the backward pass"
            )
        call = origin.call
        if call is not None and call.startswith("lax.") and origin.has_rule and call[4:] != name:
            sentences.append(f"the derivative of `{call}` on this line needs it")
        elif call is not None and call.rpartition(".")[2] != name and "grad" not in call:
            sentences.append(f"`{call}` on this line is made of it")
        if origin.rule:
            sentences.append(origin.rule)
        elif origin.role != "primal":
            sentences.append(f"it {_ROLES[origin.role]}")
        return "; ".join(sentences or ["your line asks for it"]) + "."


def _role_of(frames: Iterable[tuple[str, str]]) -> str:
    role = "primal"
    for file, function in frames:
        # The traces through which an operation went, the innermost first.
        if "known" in function:
            return "primal"
        name = os.path.basename(file)
        if name == "transpose.py" or function.startswith("PartialTrace."):
            return "derivative"
        if name == "batching.py":
            role = "batched"
    return role


_CASTS = ("pvary", "pbroadcast", "pcast")
_RULES = (
    ("add_tangents", "a value is used more than once, so its cotangents are added"),
    ("like_primal", "a gradient has the dtype of what it is taken by"),
    ("convert_to_type", "operands are brought to one dtype"),
    ("promote", "operands are brought to one dtype or shape"),
    ("_broadcast", "operands are brought to one shape"),
)


def _rule(frames: Iterable[tuple[str, str]]) -> str:
    """The rule that has made an equation, as far as the traceback names it."""
    for _, function in frames:
        for start, text in _RULES:
            if function.rpartition(".")[2].startswith(start):
                return text
    return ""


def fate_of(
    equation: Equation, found: Mapping[str, bool], alive: bool, equations: Sequence[Equation]
) -> dict[str, str]:
    """Why an equation has no line in a column.

    Args:
        equation: the equation.
        found: whether each column has lines of it, in the order of the stages.
        alive: whether the program still has it once dead code is removed.
        equations: all equations.
    """
    reasons: dict[str, str] = {}
    for key, is_there in found.items():
        if is_there:
            continue
        if not alive:
            reasons[key] = "dead: no result depends on it"
        elif reasons:
            reasons[key] = next(iter(reasons.values()))
        elif key == "stablehlo":
            reasons[key] = _unlowered(equation)
        else:
            reasons[key] = _optimized_away(equation, equations)
    return reasons


def _unlowered(equation: Equation) -> str:
    eqn = equation.eqn
    name = eqn.primitive.name
    if name in ("pmap", "shard_map"):
        return "merged: it is the program itself, whose lines are its own"
    if eqn.primitive.multiple_results:
        return "merged: what it holds stands in its place"
    if all(isinstance(atom, Literal) for atom in eqn.invars):
        return "folded: its operands are known"
    return f"merged: lowering {name} gives its operand, as values do not change"


def _optimized_away(equation: Equation, equations: Sequence[Equation]) -> str:
    eqn = equation.eqn
    twin = next(
        (
            other
            for other in equations[: equation.number]
            if other.eqn.primitive is eqn.primitive
            and other.jaxpr is equation.jaxpr
            and [id(v) for v in other.eqn.invars] == [id(v) for v in eqn.invars]
            and other.eqn.params == eqn.params
        ),
        None,
    )
    if twin is not None:
        return f"merged: equation {twin.number} computes the same"
    if all(isinstance(atom, Literal) for atom in eqn.invars):
        return "folded: XLA computes it while it compiles"
    if eqn.primitive.name in _SAME_VALUE:
        return "merged: another view of the same memory, or of its operand's values"
    if eqn.primitive.name in _CASTS:
        return "merged: it moves nothing"
    if eqn.primitive.multiple_results:
        return "merged: what it holds stands in its place"
    return "merged: XLA's simplifier has put it into the operations that use it"


def found_in(columns: Sequence[Column]) -> list[tuple[str, frozenset[int]]]:
    """For each stage below the jaxpr the equations that have lines in it."""
    return [
        (column.key, frozenset().union(*(line.numbers for line in column.lines)))
        for column in columns
    ]
