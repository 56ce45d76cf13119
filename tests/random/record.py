"""Writes `recorded.json` from JAX: `python tests/random/record.py`, with JAX 0.10.2 installed."""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.random import samples


def _described(value: Any) -> dict[str, Any]:
    host = np.asarray(value)
    return {"dtype": host.dtype.name, "shape": list(host.shape), "bytes": host.tobytes().hex()}


def _signature(function: Any) -> list[list[str]]:
    parameters = inspect.signature(function).parameters.values()
    return [[p.name, p.kind.name, repr(p.default)] for p in parameters]


def _json(recorded: dict[str, Any]) -> str:
    """One line for each figure."""
    text = json.dumps(recorded)
    return text.replace("}, ", "},\n").replace("]], ", "]],\n").replace(': {"', ':\n{"')


def _main() -> None:
    jax = importlib.import_module("jax")
    recorded: dict[str, Any] = {
        "jax": jax.__version__,
        "signatures": {name: _signature(getattr(jax.random, name)) for name in samples.FUNCTIONS},
    }
    for x64, groups in ((False, samples.CALLS), (True, samples.CALLS_X64)):
        with jax.enable_x64(x64):
            key = jax.random.key(samples.SEED)
            recorded["x64" if x64 else "x32"] = {
                name: _described(call(jax, key))
                for calls in groups.values()
                for name, call in calls.items()
            }
    Path(__file__).with_name("recorded.json").write_text(_json(recorded) + "\n")


if __name__ == "__main__":
    _main()
