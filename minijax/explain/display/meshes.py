"""Meshes in notebooks and terminals: a cell for each device, at its place.

The last axis runs across, the one before it down; further axes make several grids.
"""

from __future__ import annotations

import html
from collections.abc import Iterator

import numpy as np

from minijax.core.meshes import MeshAxes
from minijax.explain.display import drawing, markup
from minijax.explain.display.highlighting import MUTED
from minijax.sharding.mesh import Mesh

MOST_DEVICES = 256


def mesh(value: MeshAxes) -> str:
    """A mesh as HTML."""
    kinds = [str(kind).rpartition(".")[2] for kind in value.axis_types]
    named = zip(value.axis_names, value.axis_sizes, kinds, strict=True)
    axes = ", ".join(f"{name}={size} ({kind})" for name, size, kind in named)
    plural = "" if value.size == 1 else "s"
    name = "Mesh" if isinstance(value, Mesh) else "AbstractMesh"
    head = markup.caption(f"{name} of {value.size} device{plural}", axes)
    if not 0 < value.size <= MOST_DEVICES:
        return markup.block(head)
    return markup.block(head, *(_grid(value, title, cells) for title, cells in grids(value)))


def drawn(value: MeshAxes, color: bool) -> str:
    """A mesh as text.

    Args:
        value: the mesh.
        color: whether it may have ANSI sequences.
    """
    lines = [str(value)]
    if not 0 < value.size <= MOST_DEVICES:
        return lines[0]
    for title, cells in grids(value):
        lines += [title] if title else []
        lines += _rows(_corner(value), cells, len(value.axis_names) > 1, color)
    return "\n".join(lines)


def _rows(
    corner: str, cells: list[list[tuple[str, int]]], has_rows: bool, color: bool
) -> Iterator[str]:
    width = max(len(label) for row in cells for label, _ in row)
    heads = [str(i).ljust(width) for i in range(len(cells[0]))]
    yield f"{corner}  {'  '.join(heads)}".rstrip()
    for i, row in enumerate(cells):
        head = (str(i) if has_rows else "").ljust(len(corner))
        found = [(label.ljust(width), n) for label, n in row]
        if color:
            yield f"{head} " + "".join(drawing.on_color(f" {text} ", n) for text, n in found)
        else:
            yield f"{head}  {'  '.join(text for text, _ in found)}".rstrip()


def _corner(value: MeshAxes) -> str:
    """The names of the axes that run down and across."""
    across = f"{value.axis_names[-1]} →"
    return f"{value.axis_names[-2]} ↓  {across}" if len(value.axis_names) > 1 else across


def grids(value: MeshAxes) -> Iterator[tuple[str, list[list[tuple[str, int]]]]]:
    """For each place on the outer axes: its name, and rows of labels and numbers of devices."""
    sizes = (1, 1, *value.axis_sizes)
    numbers = np.arange(value.size).reshape(-1, *sizes[-2:])
    outer = value.axis_names[:-2]
    for place, grid in zip(np.ndindex(value.axis_sizes[:-2]), numbers, strict=True):
        title = ", ".join(f"{name}={i}" for name, i in zip(outer, place, strict=True))
        yield title, [[_label(value, int(number)) for number in row] for row in grid]


def _label(value: MeshAxes, number: int) -> tuple[str, int]:
    if not isinstance(value, Mesh):
        return str(number), number
    device = value.flat_devices[number]
    return str(device), int(getattr(device, "id", number))


def _grid(value: MeshAxes, title: str, cells: list[list[tuple[str, int]]]) -> str:
    corner = _corner(value)
    style = f"text-align:left;padding:1px 8px;font-weight:400;color:{MUTED};background:none"
    plain = f'style="{style}"'
    numbers = "".join(f"<th {plain}>{i}</th>" for i in range(len(cells[0])))
    rows = [f'<tr style="background:none"><th {plain}>{html.escape(corner)}</th>{numbers}</tr>']
    for i, row in enumerate(cells):
        found = "".join(
            f'<td style="text-align:center;padding:3px 10px;background:{markup.device_color(n)};'
            f'color:{markup.INK};border:1px solid #fff">{html.escape(label)}</td>'
            for label, n in row
        )
        head = str(i) if len(value.axis_names) > 1 else ""
        rows.append(f'<tr style="background:none"><th {plain}>{head}</th>{found}</tr>')
    name = markup.caption("", title) if title else ""
    table = "".join(rows)
    return (
        f'{name}<table style="border-collapse:collapse;font-size:12px;margin:2px 0">{table}</table>'
    )
