"""Writes `recorded.json` from JAX 0.10.2, which must be installed.

Run `python tests/experimental/example_libraries/record.py`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.experimental.example_libraries import samples


def _described(x: np.ndarray) -> dict[str, Any]:
    parts = x.ravel().view(x.real.dtype) if np.iscomplexobj(x) else x.ravel()
    values = [float(str(v) if parts.dtype.kind == "f" else v) for v in parts]
    return {"dtype": x.dtype.name, "shape": list(x.shape), "values": values}


def _public(module: Any) -> list[str]:
    """What a module defines itself."""
    shown = vars(module).items()
    here = [n for n, v in shown if getattr(v, "__module__", None) == module.__name__]
    layers = [n for n, v in shown if isinstance(v, tuple)]
    return sorted(n for n in {*here, *layers} if not n.startswith("_"))


def _main() -> None:
    library = samples.Library("jax")
    recorded: dict[str, Any] = {"jax": library.jax.__version__}
    recorded["names"] = {
        "stax": _public(library.stax),
        "optimizers": _public(library.optimizers),
    }
    for group, calls in samples.CALLS.items():
        recorded[group] = {
            name: [_described(x) for x in samples.outcome(library, call)]
            for name, call in calls.items()
        }
    text = json.dumps(recorded).replace("}], ", "}],\n")
    Path(__file__).with_name("recorded.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    _main()
