"""The pieces that outputs of notebooks are made of: captions, programs, tables, chips of colour.

All styles stand in the elements themselves: notebooks take style sheets out, or let them leak.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from minijax.explain.display import highlighting
from minijax.explain.display.highlighting import MUTED

MOST_LINES = 400
"""How many lines of a program are shown."""

_LONGEST = 1000

DEVICE_COLORS = (
    "#8ecdf0", "#f6cf73", "#7fd1b9", "#f2a98b", "#dcb3cf", "#f3ec9b", "#a9c4e4", "#d9d9d9",
)  # fmt: skip
"""Fills for devices: colour-blind people can tell them apart, and read black text on each."""

INK = "#14171c"
"""The colour of text on `DEVICE_COLORS`."""

_MONOSPACE = "font-family:ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace"
_CELL = f"text-align:left;padding:2px 10px 2px 0;white-space:nowrap;background:none;{_MONOSPACE}"


def device_color(number: int) -> str:
    """The fill of a device."""
    return DEVICE_COLORS[number % len(DEVICE_COLORS)]


def block(*parts: str) -> str:
    """One output."""
    return f'<div style="font-size:13px;line-height:1.45">{"".join(parts)}</div>'


def caption(text: str, detail: str = "") -> str:
    """A line above what is shown."""
    more = f' <span style="color:{MUTED}">{html.escape(detail)}</span>' if detail else ""
    return f'<div style="margin:2px 0"><b>{html.escape(text)}</b>{more}</div>'


def program(text: str, language: str) -> str:
    """A program, in colours; the beginning of one that is very long."""
    lines = [_shortened(line) for line in text.rstrip("\n").split("\n")]
    shown = highlighting.to_html("\n".join(lines[:MOST_LINES]), language)
    rest = len(lines) - MOST_LINES
    more = f'\n<span style="color:{MUTED}">… {rest} more lines</span>' if rest > 0 else ""
    style = (
        f"{_MONOSPACE};font-size:12.5px;line-height:1.45;white-space:pre;overflow-x:auto;"
        f"color:inherit;background:none;margin:2px 0 6px;padding:0 0 0 10px;"
        f"border-left:3px solid #78787855"
    )
    return f'<pre style="{style}">{shown}{more}</pre>'


def _shortened(line: str) -> str:
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]} …"


def folded(title: str, inside: str, *, is_open: bool = False) -> str:
    """What is shown when its title is clicked."""
    state = " open" if is_open else ""
    summary = f'<summary style="cursor:pointer">{html.escape(title)}</summary>'
    return f'<details style="margin:2px 0"{state}>{summary}{inside}</details>'


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a column that is empty everywhere is left out."""
    given = [tuple(row) for row in rows]
    shown = [i for i in range(len(titles)) if any(row[i] for row in given)]

    def line(cells: Sequence[str], element: str, more: str) -> str:
        found = "".join(
            f'<{element} style="{_CELL}{more}">{html.escape(cells[i])}</{element}>' for i in shown
        )
        return f'<tr style="background:none">{found}</tr>'

    head = line(titles, "th", f";border-bottom:1px solid {MUTED};font-weight:600")
    body = "".join(line(row, "td", "") for row in given)
    style = "border-collapse:collapse;margin:2px 0 8px;font-size:12.5px;border:0;color:inherit"
    return f'<table style="{style}"><thead>{head}</thead><tbody>{body}</tbody></table>'


def chips(labels: Iterable[tuple[str, str]]) -> str:
    """Labels, each with its colour."""
    found = "".join(
        f'<span style="display:inline-block;background:{color};color:{INK};border-radius:4px;'
        f'padding:0 6px;margin:1px 4px 1px 0;{_MONOSPACE};font-size:11.5px">'
        f"{html.escape(label)}</span>"
        for label, color in labels
    )
    return f'<div style="margin:2px 0">{found}</div>'
