"""Writes `recorded.json` from JAX 0.10.2, which must be installed.

Run `python tests/experimental/sparse/record.py`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.experimental.sparse import samples


def _described(x: np.ndarray) -> dict[str, Any]:
    values = [float(str(value)) for value in x.ravel()]
    return {"dtype": x.dtype.name, "shape": list(x.shape), "values": values}


def _main() -> None:
    library = samples.Library("jax")
    recorded: dict[str, Any] = {"jax": library.jax.__version__}
    for group, calls in samples.GROUPS.items():
        recorded[group] = {
            name: [_described(x) for x in samples.outcome(library, group, name)] for name in calls
        }
    text = json.dumps(recorded).replace("}], ", "}],\n")
    Path(__file__).with_name("recorded.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    _main()
