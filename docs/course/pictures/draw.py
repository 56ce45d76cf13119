"""Draws the pictures of lessons 0 to 4 anew: `python docs/course/pictures/draw.py`.

Each is made of what minijax says of a small program; a test compares the files with them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from drawing import Cell, table

import minijax as jax
import minijax.numpy as jnp


def wave(x: Any) -> Any:
    """The function that lesson 1 traces."""
    y = 3 * x
    return jnp.sin(y) + y


def tracing() -> str:
    """Which line wrote which equations, when a function was traced."""
    data = jax.explain.page(wave)(jnp.arange(4.0)).data
    python, jaxpr = (
        next(column["lines"] for column in data["columns"] if column["key"] == key)
        for key in ("python", "jaxpr")
    )
    rows = [["def wave(x):", Cell("x is a tracer: f32[4]"), Cell(jaxpr[0]["t"], 7)]]
    for line in python:
        if numbers := line.get("n"):
            written = [x for x in jaxpr if x.get("n", [None])[0] in numbers]
            types = [data["equations"][n]["types"][0] for n in numbers]
            rows.append(
                [
                    Cell(line["t"], numbers[0]),
                    Cell(f"{len(written)} operation{'s' * (len(written) > 1)}: {types[-1]}"),
                    Cell("\n".join(x["t"] for x in written), numbers[0]),
                ]
            )
    rows.append(["", "the program is complete", Cell(jaxpr[-1]["t"], 7)])
    return table(["Python, run once", "what it meets", "what is written down"], rows)


DRAWN: dict[str, Callable[[], str]] = {"01-tracing": tracing}


def drawn() -> dict[str, str]:
    """The pictures by name, as SVG."""
    return {name: draw() for name, draw in DRAWN.items()}


if __name__ == "__main__":
    for name, svg in drawn().items():
        Path(__file__).with_name(f"{name}.svg").write_text(svg, encoding="utf-8")
