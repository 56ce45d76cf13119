"""Draws the picture of the rooms in `docs/architecture.md` anew: `python -m tools.draw_rooms`.

Input: the imports of the package.  Output: an SVG with a box for each room, and an arrow from each
room to the highest rooms that it imports.  Arrows to rooms that these import, directly or not, are
left out.  A test compares the file with the drawing.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from tools import architecture

ROOT = Path(__file__).resolve().parents[1]
PREFIX = f"{architecture.PACKAGE}."
PICTURE = ROOT / "docs" / "pictures" / "rooms.svg"


class Box(NamedTuple):
    """Where a room is drawn: its row from the bottom, its columns, its colour, and its contents."""

    row: int
    first: int
    last: int
    fill: str
    text: str


# Pale boxes with dark text, and grey arrows, can be read on white and on black pages.
LANGUAGE, COMPILER, LIBRARY, AROUND = "#f9e2af", "#a6d8f5", "#b8e6b4", "#dccbf5"
INK, ARROW = "#1e2430", "#8a94a6"

BOXES = {
    "core": Box(0, 0, 3, LANGUAGE, "types, jaxprs, primitives, the current trace, trees, errors"),
    "sharding": Box(1, 0, 3, LANGUAGE, "meshes, specs, shardings, and how types carry them"),
    "runtime": Box(2, 0, 1, COMPILER, "devices, arrays, running programs"),
    "interpreters": Box(2, 2, 3, COMPILER, "derivatives, batches"),
    "lowering": Box(3, 0, 3, COMPILER, "the plan of a call; jaxpr to StableHLO to executable"),
    "lax": Box(4, 0, 3, LIBRARY, "the primitives, each with all its rules"),
    "extend": Box(5, 0, 0, AROUND, "your own primitives"),
    "transforms": Box(5, 1, 3, LIBRARY, "jit, grad, vmap, shard_map, pmap"),
    "numpy": Box(6, 1, 2, LIBRARY, "functions of arrays"),
    "testing": Box(6, 3, 3, AROUND, "oracle and laws"),
    "as_jax": Box(7, 0, 0, AROUND, "jax means minijax"),
    "random": Box(7, 1, 1, LIBRARY, "random numbers"),
    "image, ops": Box(7, 2, 2, LIBRARY, "two modules"),
    "nn": Box(8, 0, 0, LIBRARY, "neural networks"),
    "export": Box(8, 1, 1, AROUND, "programs as files"),
    "scipy": Box(8, 2, 2, LIBRARY, "more functions"),
    "explain": Box(8, 3, 3, AROUND, "what a program did"),
    "experimental": Box(9, 0, 1, AROUND, "sparse arrays, cores, and more"),
}

COLUMN, BOX_HEIGHT, GAP, MARGIN = 210, 44, 24, 12
ROWS = 1 + max(box.row for box in BOXES.values())
WIDTH = 4 * COLUMN - GAP + 2 * MARGIN
HEIGHT = ROWS * (BOX_HEIGHT + GAP) - GAP + 2 * MARGIN


def imported_rooms(root: Path) -> dict[str, set[str]]:
    """Returns for each room the rooms that its modules import."""
    room_of = {f"{PREFIX}{name}": room for room in BOXES for name in room.split(", ")}
    found: dict[str, set[str]] = {room: set() for room in BOXES}
    for source in architecture.package_sources(root):
        room = room_of.get(_folder(source.module))
        if room is not None:
            targets = {room_of.get(_folder(imported.target), room) for imported in source.imports}
            found[room] |= targets - {room}
    return found


def _folder(module: str) -> str:
    return ".".join(module.split(".")[:2])


def arrows(root: Path) -> list[tuple[str, str]]:
    """Returns the imports, as pairs of rooms, that do not follow from other imports."""
    imported = imported_rooms(root)
    reached: dict[str, set[str]] = defaultdict(set)
    for room in sorted(BOXES, key=lambda room: BOXES[room].row):
        reached[room] = imported[room].union(*(reached[other] for other in imported[room]))
    return [
        (room, target)
        for room in BOXES
        for target in sorted(imported[room])
        if not any(target in reached[other] for other in imported[room] - {target})
    ]


def svg(root: Path = ROOT) -> str:
    """Returns the picture."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
            f'viewBox="0 0 {WIDTH} {HEIGHT}" font-size="13">',
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
            f'markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8Z" fill="{ARROW}"/></marker>'
            "</defs>",
            *(_arrow(BOXES[room], BOXES[target]) for room, target in arrows(root)),
            *(_box(room, box) for room, box in BOXES.items()),
            "</svg>\n",
        ]
    )


def _top(box: Box) -> int:
    return MARGIN + (ROWS - 1 - box.row) * (BOX_HEIGHT + GAP)


def _center(column: int) -> int:
    return MARGIN + column * COLUMN + (COLUMN - GAP) // 2


def _arrow(box: Box, target: Box) -> str:
    """Draws a line down from a box, which turns in the gap above a target in another column."""
    shared = [c for c in range(box.first, box.last + 1) if target.first <= c <= target.last]
    if shared:
        start = end = shared[len(shared) // 2 if len(shared) < 4 else 1]
    else:
        start = box.first
        end = target.first if start < target.first else target.last
    turn = _top(target) - GAP // 2
    path = f"M{_center(start)} {_top(box) + BOX_HEIGHT}V{turn}H{_center(end)}V{_top(target)}"
    style = f'fill="none" stroke="{ARROW}" stroke-width="1.6" stroke-linejoin="round"'
    return f'<path d="{path}" {style} marker-end="url(#head)"/>'


def _box(room: str, box: Box) -> str:
    x, y = MARGIN + box.first * COLUMN, _top(box)
    width = (box.last - box.first + 1) * COLUMN - GAP
    is_wide = box.last - box.first > 1
    name = f'font-family="monospace" font-weight="bold" font-size="15" fill="{INK}"'
    text = f'font-family="sans-serif" fill="{INK}"'
    middle = x + width // 2
    lines = (
        [
            f'<text x="{x + 18}" y="{y + 28}" {name}>{room}</text>',
            f'<text x="{x + 170}" y="{y + 27}" {text}>{box.text}</text>',
        ]
        if is_wide
        else [
            f'<text x="{middle}" y="{y + 19}" text-anchor="middle" {name}>{room}</text>',
            f'<text x="{middle}" y="{y + 36}" text-anchor="middle" {text}>{box.text}</text>',
        ]
    )
    frame = (
        f'<rect x="{x}" y="{y}" width="{width}" height="{BOX_HEIGHT}" rx="6" fill="{box.fill}"/>'
    )
    return "".join([frame, *lines])


if __name__ == "__main__":
    PICTURE.write_text(svg(), encoding="utf-8")
