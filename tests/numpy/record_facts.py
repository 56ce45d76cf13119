"""Writes `facts/*.txt` anew from JAX: `python tests/numpy/record_facts.py`, with JAX 0.10.2."""

from __future__ import annotations

import importlib
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.numpy import facts


def _main() -> None:
    jax = importlib.import_module("jax")
    warnings.simplefilter("error")
    for path in sorted(facts.FOLDER.glob("*.txt")):
        known = facts.load(path.stem)
        names = facts.namespace(jax, known)
        lines = [f"!{statement}" for statement in known.setup]
        lines += [f"{e}{facts.ARROW}{facts.answer(e, names)[0]}" for e in known.answers]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    _main()
