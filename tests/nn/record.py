"""Writes `recorded.json` from JAX: `python tests/nn/record.py`, with JAX 0.10.2 installed."""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.nn import samples


def _described(value: Any) -> dict[str, Any]:
    host = np.asarray(value)
    parts = host.ravel().view(host.real.dtype) if np.iscomplexobj(host) else host.ravel()
    return {
        "dtype": host.dtype.name,
        "weak": bool(getattr(value, "weak_type", False)),
        "shape": list(host.shape),
        # The shortest numbers that name the floats, where NumPy knows them.
        "values": [float(str(x) if parts.dtype.kind == "f" else x) for x in parts],
    }


def _outcome(jax: Any, call: samples.Call) -> Any:
    try:
        result = call(jax)
    except Exception as error:
        return type(error).__name__
    return [_described(x) for x in (result if isinstance(result, tuple) else (result,))]


def _signature(function: Any) -> list[list[str]]:
    parameters = inspect.signature(function).parameters.values()
    return [[p.name, p.kind.name, repr(p.default)] for p in parameters]


def _json(recorded: dict[str, Any]) -> str:
    """One line for each call."""
    text = json.dumps(recorded)
    return text.replace("}], ", "}],\n").replace("]], ", "]],\n").replace(': {"', ':\n{"')


def _main() -> None:
    jax = importlib.import_module("jax")
    nn, initializers = jax.nn, jax.nn.initializers
    recorded = {
        "jax": jax.__version__,
        "signatures": {
            **{name: _signature(getattr(nn, name)) for name in samples.FUNCTIONS},
            **{
                f"initializers.{name}": _signature(getattr(initializers, name))
                for name in samples.INITIALIZER_FUNCTIONS
            },
        },
        **{
            group: {name: _outcome(jax, call) for name, call in calls.items()}
            for group, calls in samples.CALLS.items()
        },
    }
    Path(__file__).with_name("recorded.json").write_text(_json(recorded) + "\n")


if __name__ == "__main__":
    _main()
