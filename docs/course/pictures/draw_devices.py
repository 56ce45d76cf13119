"""Draws the pictures of lessons 6 to 9: `python docs/course/pictures/draw_devices.py`.

Each is made of what minijax says of a small program; a test compares the files with them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from drawing import FILLS, Cell, table

import minijax as jax
from minijax import lax
from minijax.sharding import Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P
from minijax.testing import pictures

_CELL, _LEFT, _TOP, _GAP = 34, 12, 34, 40
SPECS = P("x"), P("x", "y"), P(None, "y"), P("y", "x")


def devices() -> Any:
    """Eight devices of the host."""
    with jax.cpu_devices(8):
        return np.array(jax.devices())


def specs() -> str:
    """An array of eight rows and four columns under four specs: who holds which part."""
    mesh = Mesh(devices().reshape(4, 2), ("x", "y"))
    width = 4 * _CELL + _GAP
    parts = []
    for n, spec in enumerate(SPECS):
        left = _LEFT + n * width
        parts.append(_text(left, 20, str(spec), weight="bold"))
        held: dict[tuple[int, ...], list[int]] = {}
        places = NamedSharding(mesh, spec).devices_indices_map((8, 4))
        for device, index in places.items():
            box = [x for s, size in zip(index, (8, 4), strict=True) for x in s.indices(size)[:2]]
            held.setdefault(tuple(box), []).append(device.id)
        for box, ids in held.items():
            parts.append(_part(left, box, ids))
    across, down = _LEFT + 4 * width - _GAP + 12, _TOP + 8 * _CELL // 2 + 12
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{across}" height="{down}" '
        f'viewBox="0 0 {across} {down}" font-family="monospace" font-size="12">'
        f'<rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def _part(left: int, box: tuple[int, ...], ids: list[int]) -> str:
    """A part of the array, with a stripe for each device that holds it, and their numbers."""
    top, bottom, start, end = box
    x, y = left + start * _CELL, _TOP + top * _CELL // 2
    width, height = (end - start) * _CELL, (bottom - top) * _CELL // 2
    stripe, middle = width / len(ids), y + height / 2 + 4
    stripes = "".join(
        f'<rect x="{x + k * stripe:g}" y="{y}" width="{stripe:g}" height="{height}" '
        f'fill="{FILLS[i]}"/>' + _text(x + (k + 0.5) * stripe, middle, str(i), anchor="middle")
        for k, i in enumerate(ids)
    )
    frame = f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="none" stroke="#444"/>'
    return stripes + frame


def _text(x: float, y: float, content: str, anchor: str = "start", weight: str = "normal") -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-weight="{weight}">{content}</text>'
    )


def all_reduce() -> str:
    """What a psum moves between the four devices of lesson 6."""
    draw = pictures.pictures(lambda x: lax.psum(x, "examples"), {"examples": 4}, P("examples"))
    return draw(np.arange(8.0).reshape(4, 2))[0].svg()


def ring_sum(block: Any, steps: int = 3) -> Any:
    """The ring of lesson 8; with a step too few, that of lesson 9."""
    total = moving = block
    for _ in range(steps):
        moving = lax.ppermute(moving, "x", [(i, (i + 1) % 4) for i in range(4)])
        total = total + moving
    return total


def ring(steps: int = 3) -> list[list[Cell]]:
    """What each device of a ring holds, step by step: the total, and what has come last."""
    mesh = Mesh(devices()[:4], ("x",))
    mapped = jax.shard_map(
        lambda block: ring_sum(block, steps), mesh=mesh, in_specs=P("x"), out_specs=P("x")
    )
    played = jax.explain.page(mapped)(np.arange(4.0, dtype=np.float32)).data["devices"]["steps"]
    totals = [step["devices"] for step in played if step["title"] in ("start", "add")]
    moved = [step["devices"] for step in played if step["title"] == "ppermute"]
    rows = []
    for device in range(4):
        last = [totals[0], *moved]
        cells = [
            Cell(total[device]["cells"][0], "ABCD".index(came[device]["cells"][0]))
            for total, came in zip(totals, last, strict=True)
        ]
        rows.append([Cell(f"device {device}"), *cells])
    return rows


def whole_ring() -> str:
    """The totals of a ring, with the colour of who came last."""
    return table(["", "at first", "after 1 step", "after 2 steps", "after 3 steps"], ring())


def short_ring() -> str:
    """A ring without its last step, and what each device lacks."""
    rows = [
        [*row, Cell(f"lacks {next(x for x in 'ABCD' if x not in row[-1].text)}")] for row in ring(2)
    ]
    return table(["", "at first", "after 1 step", "after 2 steps", "of A+B+C+D"], rows)


DRAWN: dict[str, Callable[[], str]] = {
    "06-all-reduce": all_reduce,
    "07-specs": specs,
    "08-ring": whole_ring,
    "09-short-ring": short_ring,
}


def drawn() -> dict[str, str]:
    """The pictures by name, as SVG."""
    return {name: draw() for name, draw in DRAWN.items()}


if __name__ == "__main__":
    for name, svg in drawn().items():
        Path(__file__).with_name(f"{name}.svg").write_text(svg, encoding="utf-8")
