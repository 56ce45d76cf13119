"""Writes `signatures.json` from JAX: `python tests/scipy/stats/record.py`, with JAX 0.10.2."""

from __future__ import annotations

import importlib
import inspect
import json
from pathlib import Path
from typing import Any


def _signature(function: Any) -> list[list[str]]:
    parameters = inspect.signature(function).parameters.values()
    return [[p.name, p.kind.name, repr(p.default)] for p in parameters]


def _main() -> None:
    stats = importlib.import_module("jax.scipy.stats")
    found = {}
    for name in sorted(name for name in dir(stats) if not name.startswith("_")):
        value = getattr(stats, name)
        if not inspect.ismodule(value):
            found[name] = _signature(value)
            continue
        for function in sorted(f for f in dir(value) if not f.startswith("_")):
            found[f"{name}.{function}"] = _signature(getattr(value, function))
    text = json.dumps(found).replace("]], ", "]],\n")
    Path(__file__).with_name("signatures.json").write_text(text + "\n")


if __name__ == "__main__":
    _main()
