"""Tables of text as SVG: columns with headings, cells with colours, arrows between cells.

Input: texts, and the places of cells.  Output: an image that a document shows.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import NamedTuple

# Fills on which black text can be read, and which the colour-blind can tell apart.
FILLS = ("#cfe8ff", "#ffe2b8", "#d3f0cf", "#f9d0dc", "#e6dafc", "#f4f0b4", "#cdeeee", "#e4e4e4")
_LETTER, _LINE, _PADDING, _HEAD = 7.3, 17, 9, 22


class Cell(NamedTuple):
    """Text, which may have several lines, on the fill of a number; without one, on none."""

    text: str
    fill: int | None = None


class Arrow(NamedTuple):
    """From one cell to another, each a row and a column."""

    start: tuple[int, int]
    end: tuple[int, int]
    text: str = ""


Row = Sequence[Cell | str]


class _Table:
    """The places of the cells of a table."""

    def __init__(self, heads: Sequence[str], rows: Sequence[Sequence[Cell]], gap: int) -> None:
        self.rows = rows
        self.widths = [
            max(_width(head), *(_width(row[n].text) for row in rows)) + 2 * _PADDING
            for n, head in enumerate(heads)
        ]
        self.heights = [max(x.text.count("\n") + 1 for x in row) * _LINE + 10 for row in rows]
        self.lefts = [8 + sum(self.widths[:n]) + n * gap for n in range(len(heads))]
        self.tops = [_HEAD + 12 + sum(self.heights[:n]) + 6 * n for n in range(len(rows))]
        self.width = self.lefts[-1] + self.widths[-1] + 8
        self.height = self.tops[-1] + self.heights[-1] + 8

    def cell(self, row: int, column: int) -> str:
        """One cell as SVG."""
        found = self.rows[row][column]
        x, y, height = self.lefts[column], self.tops[row], self.heights[row]
        lines = found.text.split("\n")
        first = y + (height - _LINE * len(lines)) / 2 + 13
        texts = [
            _text(x + _PADDING, first + n * _LINE, line) for n, line in enumerate(lines) if line
        ]
        if found.fill is None:
            return "".join(texts)
        box = (
            f'<rect x="{x:g}" y="{y:g}" width="{self.widths[column]:g}" height="{height:g}" '
            f'rx="4" fill="{FILLS[found.fill % len(FILLS)]}" stroke="#666"/>'
        )
        return box + "".join(texts)

    def arrow(self, arrow: Arrow) -> str:
        """One arrow as SVG, with its text a third of the way along."""
        (row, column), (to_row, to_column) = arrow.start, arrow.end
        y, to_y = (self.tops[n] + self.heights[n] / 2 for n in (row, to_row))
        x = self.lefts[column] + (self.widths[column] if to_column >= column else 0)
        to_x = self.lefts[to_column] + (self.widths[to_column] if to_column <= column else 0)
        # From the right side of a cell to that of another one in its column: in a bow.
        bends = (24, 24) if column == to_column else ((to_x - x) / 2, (x - to_x) / 2)
        path = (
            f"M{x:g} {y:g} C{x + bends[0]:g} {y:g} {to_x + bends[1]:g} {to_y:g} {to_x:g} {to_y:g}"
        )
        label = (
            _text(x + (to_x - x) * 0.4, y + (to_y - y) / 3 - 4, arrow.text) if arrow.text else ""
        )
        return f'<path d="{path}" stroke="#444" fill="none" marker-end="url(#tip)"/>{label}'


def table(
    heads: Sequence[str], rows: Sequence[Row], arrows: Iterable[Arrow] = (), gap: int = 34
) -> str:
    """A table as SVG.

    Args:
        heads: the headings of the columns.
        rows: the cells of each row; a text alone is a cell without a fill.
        arrows: what is drawn between cells.
        gap: how far columns are apart.
    """
    cells = [[Cell(x) if isinstance(x, str) else x for x in row] for row in rows]
    drawn = _Table(heads, cells, gap)
    parts = [_text(x, _HEAD, head, bold=True) for x, head in zip(drawn.lefts, heads, strict=True)]
    parts += [drawn.cell(row, n) for row in range(len(cells)) for n in range(len(heads))]
    parts += map(drawn.arrow, arrows)
    size = f"{drawn.width:g} {drawn.height:g}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{drawn.width:g}" '
        f'height="{drawn.height:g}" viewBox="0 0 {size}" font-family="monospace" font-size="12">'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="#444"/></marker></defs>'
        f'<rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def _width(text: str) -> float:
    return _LETTER * max(map(len, text.split("\n")))


def _text(x: float, y: float, content: str, *, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:g}" y="{y:g}" xml:space="preserve"{weight}>{html.escape(content)}</text>'
