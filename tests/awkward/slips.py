"""Slips: short wrong programs, as a user writes them, and what becomes of each.

`python -m tests.awkward.slips record`, where JAX is installed, writes `slip_classes.json` anew.
"""

import json
import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.awkward import calls

FILE_NAME = "slip.py"
RECORDED = calls.FOLDER / "slip_classes.json"


class Slip(NamedTuple):
    """A program under the name of what is wrong with it."""

    theme: str
    name: str
    source: str


class Outcome(NamedTuple):
    """What a program raises, if anything, and the warnings that it gives, with their lines."""

    error: Exception | None
    warnings: tuple[warnings.WarningMessage, ...]

    @property
    def kind(self) -> str:
        """The name of the error's class, or of the first warning's."""
        if self.error is not None:
            return type(self.error).__name__
        return self.warnings[0].category.__name__ if self.warnings else calls.NOTHING

    @property
    def depth(self) -> int:
        """How many frames the traceback shows below the user's last line."""
        frames = traceback.extract_tb(getattr(self.error, "__traceback__", None))
        users = [place for place, frame in enumerate(frames) if frame.filename == FILE_NAME]
        return len(frames) - 1 - users[-1] if users else 0


def listed() -> Iterator[Slip]:
    """All slips, theme by theme."""
    text = Path(calls.FOLDER, "slips.txt").read_text(encoding="utf-8")
    for section in ("\n" + text).split("\n# ")[1:]:
        theme, *programs = section.split("\n--- ")
        for program in programs:
            name, source = program.split("\n", 1)
            yield Slip(theme.strip(), name, source.strip())


def names(library: str) -> dict[str, Any]:
    """What the programs name without importing it."""
    scope = calls.names(library)
    jax = scope["jax"]
    shown = ("jax", "jnp", "lax", "np", "random", "mesh")
    return {"P": jax.sharding.PartitionSpec} | {name: scope[name] for name in shown}


def outcome(slip: Slip, scope: dict[str, Any]) -> Outcome:
    """Runs a program as a script."""
    error: Exception | None = None
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        try:
            exec(compile(slip.source, FILE_NAME, "exec"), scope | {"__name__": "slip"})
        except Exception as raised:
            error = raised
    return Outcome(error, tuple(given))


def _record() -> None:
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    scope = names("jax")
    found = {slip.name: outcome(slip, scope).kind for slip in listed()}
    RECORDED.write_text(json.dumps(found, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] != ["record"]:
        sys.exit(__doc__)
    _record()
