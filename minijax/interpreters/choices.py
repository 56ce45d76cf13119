"""Choices that not all devices make alike, in regions of which the compiler splits the rest.

Input: a manual region over some axes of a mesh; later the program that XLA has made of it.  Output:
an error where XLA has put a `collective-permute` into a branch or loop that only some devices
enter.  On the host's devices all devices of a program wait for each other in it, for ever.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from minijax.core import source
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr, Eqn
from minijax.interpreters import uniformity
from minijax.interpreters.uniformity import Names


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
    text = "\n".join(module.to_string() for module in loaded.hlo_modules())
    if _waits_in_choice(text):
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


_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) .*\{$")
_CHOSEN = re.compile(
    r"\b(?:branch_computations|true_computation|false_computation)=(\{[^}]*\}|%?[\w.\-]+)"
)
_LOOP = re.compile(r"\b(?:body|condition)=(%?[\w.\-]+)")
_CALLED = re.compile(
    r"\b(?:calls|to_apply|body|condition|branch_computations|called_computations|"
    r"true_computation|false_computation)=(\{[^}]*\}|%?[\w.\-]+)"
)
_NAME = re.compile(r"[\w.\-]+")


def _waits_in_choice(text: str) -> bool:
    computations = dict(_computations(text))
    everything = [line for body in computations.values() for line in body]
    pending = list(_named(_CHOSEN, everything))
    # A loop whose trips are counted takes as many of them on each device.
    pending += _named(_LOOP, (line for line in everything if "known_trip_count" not in line))
    seen: set[str] = set()
    while pending:
        name = pending.pop()
        if name in seen or name not in computations:
            continue
        seen.add(name)
        if any(" collective-permute" in line for line in computations[name]):
            return True
        pending += _named(_CALLED, computations[name])
    return False


def _computations(text: str) -> Iterator[tuple[str, list[str]]]:
    """The computations of a module by name, with their lines."""
    body: list[str] = []
    for line in text.splitlines():
        begin = _COMPUTATION.match(line)
        if begin is not None:
            body = []
            yield begin.group(1), body
        body.append(line)


def _named(pattern: re.Pattern[str], body: Iterable[str]) -> Iterator[str]:
    for line in body:
        for found in pattern.findall(line):
            yield from _NAME.findall(found)
