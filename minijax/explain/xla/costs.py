"""What one kernel costs: operations of floating point, and bytes that it reads and writes.

Input: an instruction of an optimized program.  Output: what XLA's cost analysis says of a module
that holds nothing else; where XLA says nothing, what its operations and types tell.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from jaxlib import _hlo, _jax  # type: ignore[attr-defined]  # no stub for _hlo in 0.10.2

from minijax.explain.xla.programs import COSTLESS, operations_of
from minijax.runtime.hlo_text import HloModule, Instruction

_METADATA = re.compile(r', metadata=\{(?:"(?:[^"\\]|\\.)*"|[^"}])*\}')
_CONTRACTED = re.compile(r"lhs_contracting_dims=\{([\d,]*)\}")

Neighbours = dict[str, Instruction]
"""The instructions of one computation, by name."""


class Cost(NamedTuple):
    """What a kernel costs each time it runs, on one device.

    Attributes:
        flops: operations of floating point; None of a call into a library that XLA cannot see.
        transcendentals: how many of the elements are exponentials, sines and their like.
        bytes: what it reads and writes.
        by_xla: whether XLA's cost analysis says so.
    """

    flops: float | None
    transcendentals: float
    bytes: float
    by_xla: bool


def cost_of(
    module: HloModule, neighbours: Neighbours, instruction: Instruction, client: Any
) -> Cost:
    """The cost of an instruction among those of its computation."""
    # XLA does not see into libraries.
    is_opaque = instruction.opcode == "custom-call"
    found = None if is_opaque else _by_xla(module, neighbours, instruction, client)
    if found is None:
        return counted(module, neighbours, instruction)
    flops, transcendentals, moved = (
        max(found.get(name, 0.0), 0.0) for name in ("flops", "transcendentals", "bytes accessed")
    )
    return Cost(flops, transcendentals, moved, True)


def _by_xla(
    module: HloModule, neighbours: Neighbours, instruction: Instruction, client: Any
) -> dict[str, float] | None:
    if client is None:
        return None
    try:
        alone = _hlo.hlo_module_from_text(_alone(module, neighbours, instruction))
        return dict(_jax.hlo_module_cost_analysis(client, alone))
    except (RuntimeError, ValueError):
        # Some back ends have no cost analysis, and some instructions no form that is read back.
        return None


def _alone(module: HloModule, neighbours: Neighbours, instruction: Instruction) -> str:
    """The text of a module that consists of one instruction and what it calls."""
    lines = ["HloModule kernel"]
    for name in dict.fromkeys(_called(module, instruction)):
        lines += [f"%{name} {{", *map(_line, module.computations[name].values()), "}"]
    lines.append("ENTRY %kernel {")
    for i, name in enumerate(dict.fromkeys(instruction.operands)):
        lines.append(f"  %{name} = {neighbours[name].type_text} parameter({i})")
    lines += ["ROOT " + _line(instruction).removeprefix("ROOT "), "}"]
    return "\n".join(lines)


def _line(instruction: Instruction) -> str:
    root = "ROOT " if instruction.is_root else ""
    return f"{root}%{instruction.name} = {_METADATA.sub('', instruction.text)}"


def _called(module: HloModule, instruction: Instruction) -> Iterator[str]:
    """The computations that an instruction runs, those that others run before them."""
    for _, name in instruction.calls:
        if name in module.computations:
            for inner in module.computations[name].values():
                yield from _called(module, inner)
            yield name


def counted(module: HloModule, neighbours: Neighbours, instruction: Instruction) -> Cost:
    """The cost as the text of the program tells it: one operation for each element."""
    named = dict(neighbours)
    for _, name in instruction.calls:
        named.update(module.computations.get(name, {}))
    flops = sum(_flops(named, part) for part in operations_of(module, instruction))
    read = [named[name] for name in dict.fromkeys(instruction.operands) if name in named]
    moved = sum(tensor.bytes for part in [*read, instruction] for tensor in part.tensors)
    is_opaque = instruction.opcode == "custom-call"
    return Cost(None if is_opaque else flops, 0.0, moved, False)


_MOVING = COSTLESS | {
    "broadcast",
    "concatenate",
    "copy",
    "dynamic-slice",
    "dynamic-update-slice",
    "gather",
    "iota",
    "pad",
    "reshape",
    "reverse",
    "slice",
    "transpose",
}


def _flops(named: Neighbours, part: Instruction) -> float:
    if part.opcode in _MOVING:
        return 0.0
    elements = sum(math.prod(tensor.shape) for tensor in part.tensors)
    operands = [named[name].tensors for name in part.operands if name in named]
    if part.opcode == "dot" and operands:
        found = _CONTRACTED.search(part.attributes)
        dims = [int(d) for d in (found.group(1) if found else "").split(",") if d]
        return 2.0 * elements * math.prod(operands[0][0].shape[d] for d in dims)
    if part.opcode.startswith("reduce") and operands:
        return float(math.prod(operands[0][0].shape) - elements)
    return float(elements)
