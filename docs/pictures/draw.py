"""Draws the pictures of `docs/collectives.md` anew: `python docs/pictures/draw.py`.

Each is what the oracle has seen of one small program; a test compares the files with it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from minijax import lax
from minijax.sharding import PartitionSpec as P
from minijax.testing import pictures

FOUR = {"x": 4}
PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "psum": lambda a: lax.psum(a, "x"),
    "pmax": lambda a: lax.pmax(a, "x"),
    "all_gather": lambda a: lax.all_gather(a, "x"),
    "psum_scatter": lambda a: lax.psum_scatter(a, "x"),
    "all_to_all": lambda a: lax.all_to_all(a, "x", 0, 0),
    "ppermute": lambda a: lax.ppermute(a, "x", [(0, 1), (1, 2), (2, 3)]),
    "pbroadcast": lambda a: lax.pbroadcast(a, "x", 2),
}


def drawn() -> dict[str, str]:
    """The pictures by name, as SVG."""
    x = np.arange(16.0)
    return {
        name: pictures.pictures(program, FOUR, P("x"))(x)[0].svg()
        for name, program in PROGRAMS.items()
    }


if __name__ == "__main__":
    for name, svg in drawn().items():
        Path(__file__).with_name(f"{name}.svg").write_text(svg, encoding="utf-8")
