"""The user's lines that took part in a program, and where each equation comes from.

Input: the tracebacks of equations.  Output: a column of the functions that ran while the program
was traced, whose lines name the equations that they made.
"""

from __future__ import annotations

import inspect
import linecache
import os
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any, NamedTuple

from minijax.core import source
from minijax.explain.pages.columns import Column, Line
from minijax.explain.pages.marking import Equation, Numbers

_AROUND = 2

OWN_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep
"""Frames of files in this folder belong to the page, not to the program that it shows."""


class Place(NamedTuple):
    """A line of the user's that was running.

    Attributes:
        file: its file.
        line: its number.
        function: the function that it stands in.
        start: the number of the line on which the function begins.
    """

    file: str
    line: int
    function: str
    start: int

    @property
    def text(self) -> str:
        """The place as it is shown."""
        return str(source.Frame(self.file, self.line, self.function))


def places_of(equation: Equation, outermost: Place | None) -> list[Place]:
    """The user's lines that were running when an equation was made, the innermost first.

    Args:
        equation: the equation.
        outermost: where the function of the page begins: its callers are left out.
    """
    traceback = equation.eqn.source
    if traceback is None:
        return []
    found = []
    for frame in traceback.frames:
        if not source.is_internal(frame.file_name):
            name = frame.function_name.rpartition(".")[2]
            place = Place(frame.file_name, frame.line_num, name, frame.function_start_line)
            found.append(place)
            if outermost and (place.file, place.start) == (outermost.file, outermost.start):
                return found
        elif frame.file_name.startswith(OWN_FOLDER):
            break
    # Another function was staged earlier: of its callers nobody can tell.
    return found if outermost is None else found[:1]


Site = tuple[tuple[CodeType, int], ...]
"""The instructions of the user's functions that were running, the innermost first."""


Linked = tuple[str, Numbers]
"""The user's line of an equation, and the equations of a page that belong to it."""

Linker = Callable[[Equation], Linked]
"""Finds them."""


def linked_by(function: Callable[..., Any]) -> Linker:
    """Tells the lines of the equations of a function that has no page."""
    outermost = beginning_of(function)

    def linked(equation: Equation) -> Linked:
        places = places_of(equation, outermost)
        return places[0].text if places else "", frozenset()

    return linked


def site_of(equation: Equation, outermost: Place) -> Site:
    """Where an equation was made: the same for a function and for its derivative."""
    found = []
    traceback: Any = equation.eqn.source
    if traceback is not None:
        for code, at in zip(*traceback.raw_frames(), strict=True):
            if not source.is_internal(code.co_filename):
                found.append((code, at))
                own = code.co_filename, code.co_firstlineno
                if own == (outermost.file, outermost.start):
                    return tuple(found)
    return ()


def beginning_of(function: Callable[..., Any]) -> Place | None:
    """Where a user's function begins that transformations may have wrapped; None for others."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None or source.is_internal(code.co_filename):
        return None
    return Place(code.co_filename, code.co_firstlineno, code.co_name, code.co_firstlineno)


def python_column(places: Sequence[Sequence[Place]], outermost: Place | None) -> Column:
    """The column of the functions that took part, in the order of files and lines.

    Args:
        places: for each equation the lines that were running.
        outermost: where the function of the page begins.
    """
    numbers: dict[tuple[str, int], set[int]] = {}
    wanted: dict[str, set[int]] = {}
    begun = [place for each in places for place in each]
    if outermost is not None:
        begun.insert(0, outermost)
    for place in dict.fromkeys(begun):
        wanted.setdefault(place.file, set()).update(_lines_of(place))
    for number, each in enumerate(places):
        for place in each:
            numbers.setdefault((place.file, place.line), set()).add(number)
    lines: list[Line] = []
    for file, rows in wanted.items():
        lines.append(Line(f"# {source.cell_of(file) or os.path.basename(file)}", 0))
        last, depth = None, 1
        for row in sorted(rows):
            if last is not None and row != last + 1:
                lines.append(Line("⋮", 1))
            text = linecache.getline(file, row).rstrip()
            bare = text.lstrip()
            if bare or last is None:
                depth = (len(text) - len(bare)) // 4 + 1
            made = frozenset(numbers.get((file, row), ()))
            lines.append(Line(bare, depth, made, row=row, file=file))
            last = row
    return Column("python", "Python", "python", lines)


def _lines_of(place: Place) -> range:
    """The lines of the function that a place is in, or some around it."""
    found = linecache.getlines(place.file)
    if place.function != "<module>" and 0 < place.start <= len(found):
        block = inspect.getblock(found[place.start - 1 :])
        if place.line < place.start + len(block):
            return range(place.start, place.start + len(block))
    return range(max(1, place.line - _AROUND), min(len(found), place.line + _AROUND) + 1)
