"""Random programs: the statements of one seed, with the settings that it runs with."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tools.fuzz import calls, functions
from tools.fuzz.draw import Draw

_PRODUCTIONS = functions.productions(calls.call)


class Program(NamedTuple):
    """Statements `name = expression`, and settings.

    Attributes:
        statements: each may use the values of earlier ones.
        settings: of the library, by name.
        mode: how it is run: "eager", "jit", or "types"; see `benchmarks/observe_random.py`.
    """

    statements: tuple[str, ...]
    settings: dict[str, bool]
    mode: str = "eager"

    def __str__(self) -> str:
        lines = [f"jax.config.update({name!r}, True)" for name, on in self.settings.items() if on]
        mode = {"jit": ["# in one jitted function"], "types": ["# traced"]}.get(self.mode, [])
        return "\n".join([*lines, *mode, *self.statements])


def is_eager_alone(program: Program) -> bool:
    """Whether a program means something else in a function that is traced as a whole."""
    return any(word in each for each in program.statements for word in _EAGER_ALONE)


MODES = ("eager", "types", "jit")


def program(seed: int, mode: str | None = None) -> Program:
    """The program of a seed: one to four statements, after those that make their operands."""
    draw = Draw(seed, _PRODUCTIONS)
    for _ in range(draw.random.randint(1, 4)):
        draw.statement()
    settings = {
        "jax_enable_x64": seed % 3 == 0,
        # Machine code that is made in less time: what is compared is what programs mean.
        "jax_disable_most_optimizations": seed % 5 != 0,
    }
    literals = [s for s in draw.statements if s.startswith("x")]
    results = [s for s in draw.statements if s.startswith("v")]
    mode = mode or ("eager", "types", "jit", "types")[seed % 4]
    made = Program(needed([*literals, *results], results), settings, mode)
    return made._replace(mode="eager") if is_eager_alone(made) else made


_EAGER_ALONE = ("jax.pmap(", "typed_mesh", ").lower(", "device_put(")
"""Calls that mean something else, or nothing, in a function that is traced as a whole."""


def name_of(statement: str) -> str:
    """The name that a statement gives its value."""
    return statement.partition(" = ")[0]


def used_by(statement: str) -> set[str]:
    """The names that a statement uses."""
    return {node.id for node in ast.walk(ast.parse(statement)) if isinstance(node, ast.Name)}


def needed(statements: Sequence[str], results: Iterable[str]) -> tuple[str, ...]:
    """The statements that some of them need, and these, in order."""
    wanted: set[str] = set()
    kept: list[str] = []
    chosen = set(results)
    for statement in reversed(statements):
        if statement in chosen or name_of(statement) in wanted:
            kept.append(statement)
            wanted |= used_by(statement)
    return tuple(reversed(kept))
