"""The optimized program of a function, and the words that reports have for its parts.

Input: a function, perhaps jitted, or a compiled program.  Output: the program as XLA prints it once
it is partitioned, optimized and put in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import tree
from minijax.core.config import enable_compilation_cache
from minijax.core.source import Frame
from minijax.runtime.array import Array
from minijax.runtime.hlo_text import HloModule, Instruction
from minijax.transforms.device_put import block_until_ready
from minijax.transforms.jit.jit import jitted
from minijax.transforms.jit.stages import Compiled

COSTLESS = frozenset(
    {
        "add-dependency",
        "after-all",
        "bitcast",
        "constant",
        "domain",
        "get-tuple-element",
        "optimization-barrier",
        "parameter",
        "partition-id",
        "replica-id",
        "tuple",
    }
)
"""Operations that compute nothing and move nothing."""

CONTROL = frozenset({"async-start", "call", "conditional", "while"})
"""Operations that run other computations, in which the kernels are."""


class Program(NamedTuple):
    """A compiled function.

    Attributes:
        name: the name of the function.
        compiled: what was compiled.
        module: its text, taken apart.
        run: runs the function with its arguments and waits; None where these are no arrays.
    """

    name: str
    compiled: Compiled
    module: HloModule
    run: Callable[[], object] | None

    @property
    def client(self) -> Any:
        """Jaxlib's client, which knows how large types are; None for another back end."""
        executable = self.compiled.runtime_executable()
        return None if executable is None else executable.client

    @property
    def local_devices(self) -> int:
        """On how many devices of this process it runs."""
        return len(self.compiled.runtime_executable().local_devices())


def program_of(place: str, function: Callable[..., Any]) -> Callable[..., Program]:
    """A function of the arguments that compiles a function for them.

    Raises:
        TypeError: `function` is not callable; the text names `place`, the public function.
    """
    if isinstance(function, Compiled):
        text = HloModule(function.as_text())
        return lambda: Program(function.fun_name, function, text, None)
    given = jitted(place, function)

    def of(*args: Any, **kwargs: Any) -> Program:
        # A program from the store tells the lines of who has compiled it.
        with enable_compilation_cache(False):
            compiled = given.lower(*args, **kwargs).compile()
        leaves = tree.leaves((args, kwargs))
        gives_away = bool(compiled.donate_argnums)

        def run() -> None:
            used = tree.map(_copied, (args, kwargs)) if gives_away else (args, kwargs)
            block_until_ready(given(*used[0], **used[1]))

        is_runnable = all(isinstance(x, Array | np.ndarray | np.generic | complex) for x in leaves)
        module = HloModule(compiled.as_text())
        return Program(compiled.fun_name, compiled, module, run if is_runnable else None)

    return of


def _copied(x: Any) -> Any:
    return x.copy() if isinstance(x, Array) else x


def operations_of(module: HloModule, instruction: Instruction) -> Iterator[Instruction]:
    """An instruction, or those that it is a fusion of."""
    callees = [name for role, name in instruction.calls if role == "calls"]
    if not callees:
        yield instruction
    for callee in callees:
        for inner in module.computations.get(callee, {}).values():
            yield from operations_of(module, inner)


def names_of(module: HloModule, instruction: Instruction) -> tuple[str, ...]:
    """What the user's program calls the operations of an instruction; else XLA's words for them."""
    parts = [x for x in operations_of(module, instruction) if x.opcode not in COSTLESS]
    paths = ";".join(x.metadata.get("op_name", "") for x in parts).split(";")
    found = [path.rpartition("/")[2] for path in paths if path]
    own = [x.opcode.replace("-", "_") for x in parts or [instruction]]
    return tuple(dict.fromkeys(found or own))


def argument_name(parameter: Instruction) -> str:
    """What the user calls an argument; the name of a parameter that is none."""
    return parameter.metadata.get("op_name", parameter.name).replace("\\", "")


def lines_of(module: HloModule, instruction: Instruction) -> tuple[Frame, ...]:
    """The user's lines that an instruction was made for; that of its result is the first."""
    parts = [instruction, *operations_of(module, instruction)]
    frames = [frame for part in parts if (frame := module.frame(part)) is not None]
    return tuple(dict.fromkeys(frames))


def lines_text(lines: Sequence[Frame]) -> str:
    """The lines as reports show them: the first, and how many more there are."""
    more = f" +{len(lines) - 1}" if len(lines) > 1 else ""
    return f"{lines[0]}{more}" if lines else ""


def seconds_text(seconds: float) -> str:
    """A duration with a unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"
