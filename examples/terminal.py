"""How the examples speak in a terminal: headings, panels side by side, a progress bar.

Standard library only. Everything fits the width of the terminal and stays readable in a pipe or a
log.
"""

from __future__ import annotations

import math
import os
import shutil
import sys
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

_MARGIN = "  "
_GAP = 3


class Panel(NamedTuple):
    """A titled piece of text, drawn beside others where the terminal is wide enough."""

    title: str
    text: str

    def lines(self) -> list[str]:
        return self.text.expandtabs().rstrip().splitlines()

    def width(self) -> int:
        return max(map(len, [self.title, *self.lines()]))


def width() -> int:
    """The number of columns to write in."""
    return min(max(shutil.get_terminal_size((100, 24)).columns, 60), 160)


def say(text: str = "", *, end: str = "\n") -> None:
    """Prints `text`; characters that the terminal's encoding lacks become question marks."""
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "replace").decode(encoding), end=end, flush=True)


def heading(title: str, explanation: str) -> None:
    """Opens a stage: its title, a rule, and a sentence or two on what is about to be seen."""
    say(f"\n{bold(title)}\n{faint('─' * width())}")
    paragraph(explanation)


def paragraph(text: str) -> None:
    """Prints prose, wrapped to a comfortable line."""
    lines = textwrap.wrap(" ".join(text.split()), min(width(), 100) - len(_MARGIN))
    say("\n".join(f"{_MARGIN}{line}" for line in lines) + "\n")


def show(*panels: Panel) -> None:
    """Prints `panels` in as many even columns as fit."""
    columns = _columns_that_fit(panels)
    for start in range(0, len(panels), columns):
        _show_row(panels[start : start + columns], columns)


def excerpt(text: str, lines: int) -> str:
    """The first `lines` lines of `text`, and a count of what was left out."""
    kept = text.splitlines()
    if len(kept) <= lines:
        return text
    return "\n".join([*kept[:lines], f"… and {len(kept) - lines} more lines"])


def shown(path: Path) -> str:
    """`path` as seen from the current folder where it lies below it."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def bold(text: str) -> str:
    """`text` in bold where the terminal can."""
    return _styled(text, "1")


def faint(text: str) -> str:
    """`text` in a faint colour where the terminal can."""
    return _styled(text, "2")


class Progress:
    """A progress bar: redrawn in place on a terminal, one line per tenth of the way elsewhere."""

    def __init__(self, total: int, label: str) -> None:
        self._total = total
        self._label = label
        self._done = 0
        self._started = time.perf_counter()
        self._drawn_at = 0.0
        self._live = sys.stdout.isatty()

    def advance(self, note: str = "") -> None:
        """Counts one step; `note` is shown beside the bar."""
        self._done += 1
        if self._due():
            line = self._line(note)
            say(
                f"\r{line.ljust(width() - 1)}" if self._live else line,
                end="" if self._live else "\n",
            )
        if self._done == self._total:
            say("\n" if self._live else "")

    def _due(self) -> bool:
        if self._done == self._total:
            return True
        if not self._live:
            tenth = max(1, math.ceil(self._total / 10))
            return self._done % tenth == 0
        now = time.perf_counter()
        if now - self._drawn_at < 0.05:
            return False
        self._drawn_at = now
        return True

    def _line(self, note: str) -> str:
        seconds = time.perf_counter() - self._started
        share = self._done / self._total
        size = 24 if width() < 90 else 32
        filled = round(size * share)
        bar = "█" * filled + "░" * (size - filled)
        line = f"{_MARGIN}{self._label} {bar} {share:4.0%} {seconds:5.1f} s  {note}"
        return line[: width() - 1].rstrip()


def _columns_that_fit(panels: Sequence[Panel]) -> int:
    """The most columns whose panels all fit, evened out so that the last row is not ragged."""
    widest = max(panel.width() for panel in panels)
    fit = max(1, (width() - len(_MARGIN) + _GAP) // (widest + _GAP))
    rows = math.ceil(len(panels) / fit)
    return math.ceil(len(panels) / rows)


def _show_row(panels: Sequence[Panel], columns: int) -> None:
    room = (width() - len(_MARGIN) + _GAP) // columns - _GAP
    size = min(room, max(panel.width() for panel in panels))
    blocks = [_block(panel, size) for panel in panels]
    height = max(map(len, blocks))
    for row in range(height):
        cells = [block[row] if row < len(block) else " " * size for block in blocks]
        if row == 0:
            cells = [bold(cell) for cell in cells]
        elif row == 1:
            cells = [faint(cell) for cell in cells]
        say((_MARGIN + (" " * _GAP).join(cells)).rstrip())
    say()


def _block(panel: Panel, size: int) -> list[str]:
    """The panel as lines of exactly `size` characters."""
    lines = [panel.title, "─" * size, *panel.lines()]
    return [(line if len(line) <= size else f"{line[: size - 1]}…").ljust(size) for line in lines]


def _styled(text: str, code: str) -> str:
    if sys.stdout.isatty() and "NO_COLOR" not in os.environ:
        return f"\033[{code}m{text}\033[0m"
    return text
