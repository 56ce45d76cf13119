"""Choices that not all devices make alike, in regions of which the compiler splits the rest.

Input: a manual region over some axes of a mesh; later the program that XLA has made of it.  Output:
an error where XLA has put a `collective-permute` into a branch or loop that only some devices
enter.  On the host's devices all devices of a program wait for each other in it, for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.core import source
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr, Eqn
from minijax.interpreters import uniformity
from minijax.interpreters.uniformity import Names
from minijax.runtime.hlo_text import HloModule, Instruction


def lines(closed: ClosedJaxpr, given: Sequence[Names], axes: Names) -> list[str]:
    """The user's lines of the choices in a jaxpr that differ between devices along the axes."""
    found: dict[str, None] = {}

    def note(eqn: Eqn, part: str, jaxprs: Sequence[ClosedJaxpr], over: Names) -> None:
        found[f"{eqn.primitive} at {source.summarize(eqn.source)}"] = None

    uniformity.follow(closed, given, axes, on_choice=note)
    return list(found)


def check(loaded: Any, choices: Sequence[str]) -> None:
    """Refuses a compiled program of which some device would wait for others for ever.

    Raises:
        NotImplementedError: a `collective-permute` is in a branch or a loop.
    """
    if not choices:
        return
    modules = [HloModule(module.to_string()) for module in loaded.hlo_modules()]
    if any(map(_waits_in_choice, modules)):
        error(
            NotImplementedError,
            "shard_map",
            "the compiler moves values between devices inside of a branch or a loop that not "
            "all devices enter; on the host all devices of a program take part in that.",
            got="a collective-permute under " + ", or ".join(choices),
            expected="a predicate that is the same on all devices, or values in there that the "
            "compiler does not split",
            fix="compute all branches and select with jnp.where, or make all axes of the mesh "
            "manual",
            at="",
        )


_BRANCHES = ("branch_computations", "true_computation", "false_computation")


def _waits_in_choice(module: HloModule) -> bool:
    everything = [x for body in module.computations.values() for x in body.values()]
    pending = [name for x in everything for role, name in x.calls if _is_chosen(x, role)]
    seen: set[str] = set()
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        for instruction in module.computations.get(name, {}).values():
            if instruction.opcode.startswith("collective-permute"):
                return True
            pending += [callee for _, callee in instruction.calls]
    return False


def _is_chosen(instruction: Instruction, role: str) -> bool:
    """Whether devices may differ in how often they run what an instruction calls in a role."""
    # A loop whose trips are counted takes as many of them on each device.
    is_loop = role in ("body", "condition") and instruction.trip_count is None
    return role in _BRANCHES or is_loop
