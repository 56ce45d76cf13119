"""Pictures of what collectives move: what each device gave, and of what its result is made.

Input: the exchanges that the oracle saw.  Output: lines of text, or an SVG image.  Each element is
called by the device it began on, `B2`; the model of the collective is run on these names, so that
the picture shows what it means and not what some numbers came to.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core.errors import error
from minijax.testing import numpy_model, oracle
from minijax.testing.exchanges import Exchange, place_text

_EXTREMES = {"pmax": "max", "pmin": "min"}
# Fills that black text can be read on, one for each device, used again from the ninth on.
_COLORS = (
    "#87d7ff", "#ffd787", "#a6e3a1", "#ffafaf", "#d7afff", "#f5f0a5", "#afd7d7", "#ffb38a",
)  # fmt: skip
_NOTHING = "#f4f4f4"


class Term:
    """An element by name: a device and a place, or the sum of several such.

    Source:     own.

    Example:
        >>> from minijax.testing import pictures
        >>> first, second = pictures.Term(frozenset({(0, 0)})), pictures.Term(frozenset({(1, 0)}))
        >>> (first + second).members
        [0, 1]
    """

    __slots__ = ("parts",)

    def __init__(self, parts: frozenset[tuple[int, int]] = frozenset()) -> None:
        self.parts = parts

    def __add__(self, other: Term) -> Term:
        return Term(self.parts | other.parts)

    @property
    def members(self) -> list[int]:
        """The devices that the element comes from."""
        return sorted({member for member, _ in self.parts})


class Row(NamedTuple):
    """One device: where it is, what it gave, and what it got, as arrays of `Term`s.

    Source:     own.

    Example:
        >>> from minijax.testing import pictures
        >>> draw = pictures.pictures(lambda x: lax.psum(x, "x"), {"x": 2}, jax.P("x"))
        >>> [(row.place, row.after[0].members) for row in draw(np.arange(2))[0].rows]
        [('(x=0)', [0, 1]), ('(x=1)', [0, 1])]
    """

    place: str
    before: np.ndarray[Any, Any]
    after: np.ndarray[Any, Any]


class Picture(NamedTuple):
    """What one collective moved, on all devices that took part together.

    Source:     own.

    Attributes:
        title: the collective and its axes.
        line: where the program asks for it.
        rows: the devices.
        operator: what joins elements that are combined, such as `+`.

    Example:
        >>> from minijax.testing import pictures
        >>> draw = pictures.pictures(lambda x: lax.psum(x, "x"), {"x": 2}, jax.P("x"))
        >>> draw(np.arange(2))[0].svg()[:4]
        '<svg'
    """

    title: str
    line: str
    rows: tuple[Row, ...]
    operator: str

    def __str__(self) -> str:
        lines = []
        for i, row in enumerate(self.rows):
            given = [
                self._name(i, row.before.shape, index) for index in np.ndindex(row.before.shape)
            ]
            lines.append((row.place, _listed(row.before.shape, given), self._result(row)))
        widths = [max(len(line[k]) for line in lines) for k in (0, 1)]
        body = [f"  {a:{widths[0]}}  {b:{widths[1]}}  ->  {c}" for a, b, c in lines]
        return "\n".join([self.title, *body])

    def svg(self) -> str:
        """The picture as an SVG image; cells have the colours of the devices they come from."""
        return _svg(self)

    def _result(self, row: Row) -> str:
        cells = [self.cell(x, self.rows[0].before.shape) for x in row.after.ravel()]
        return _listed(row.after.shape, cells)

    def _name(self, member: int, shape: tuple[int, ...], index: tuple[int, ...]) -> str:
        letter = _letter(member)
        if not any(n > 1 for n in shape):
            return letter
        return letter + str(int(np.ravel_multi_index(index, shape)))

    def cell(self, x: object, shape: tuple[int, ...]) -> str:
        """An element of a result, in the names of what it is made of."""
        parts = sorted(x.parts, key=lambda p: (p[1], p[0])) if isinstance(x, Term) else []
        many = int(np.prod(shape)) > 1
        names = [_letter(m) + (str(i) if many else "") for m, i in parts]
        if not names:
            return "0"
        if len(names) > 3:
            names = [names[0], "…", names[-1]]
        if self.operator == "+":
            return "+".join(names)
        return names[0] if len(names) == 1 else f"{self.operator}({','.join(names)})"


def _letter(member: int) -> str:
    return chr(ord("A") + member) if member < 26 else f"[{member}]"


def _listed(shape: tuple[int, ...], cells: Sequence[str]) -> str:
    """Elements in a row; those of several rows are set apart by bars."""
    if len(shape) < 2:
        return " ".join(cells) if cells else "nothing"
    width = max(1, shape[-1])
    rows = [cells[i : i + width] for i in range(0, len(cells), width)]
    return " | ".join(" ".join(row) for row in rows)


def pictures(
    f: Callable[..., Any], mesh: oracle.MeshLike, in_specs: object, *, check_vma: bool = True
) -> Callable[..., list[Picture]]:
    """A function that runs `f` on simulated devices and draws each collective in it.

    Source:     drawn from `testing.simulate`.

    Args:
        f: a function of one device's blocks.
        mesh: a mesh, or a dict of sizes by names.
        in_specs: how arguments are cut.
        check_vma: as in `simulate`.

    Returns:
        A function of the arguments; it returns a picture for each collective, in their order.
        `str(picture)` is text, `picture.svg()` an image.

    Raises:
        CollectiveMismatch: devices wait for each other in collectives that do not fit.

    Example:
        >>> from minijax.testing import pictures
        >>> draw = pictures.pictures(lambda x: lax.all_gather(x, "x"), {"x": 2}, jax.P("x"))
        >>> for picture in draw(np.arange(4)):
        ...     print(picture)
        all_gather over x
          (x=0)  A0 A1  ->  A0 A1 | B0 B1
          (x=1)  B0 B1  ->  A0 A1 | B0 B1
    """

    def draw(*args: Any) -> list[Picture]:
        found: list[Exchange] = []
        oracle.Simulation(f, mesh, None, check_vma, oracle.MAX_OPERATIONS, found).run(
            args, in_specs
        )
        drawn = []
        seen: dict[Any, list[Exchange]] = {}
        for exchange in found:
            key = exchange.name, exchange.axes, exchange.line
            groups = seen.get(key)
            if groups is None or set(exchange.members) & {m for g in groups for m in g.members}:
                # The first of its kind, or the same line once more, as in a loop.
                groups = seen[key] = []
                drawn.append(groups)
            groups.append(exchange)
        return [picture_of(groups) for groups in drawn]

    return draw


def picture_of(exchanges: Sequence[Exchange]) -> Picture:
    """The picture of one collective, from its exchanges in all groups of devices.

    Source:     own.

    Args:
        exchanges: what the oracle has seen, as of `testing.exchanges`.

    Raises:
        ValueError: there are none.

    Example:
        >>> from minijax.testing import pictures
        >>> from minijax.testing.exchanges import Exchange
        >>> places, one = ((("x", 0),), (("x", 1),)), (np.ones(()),)
        >>> exchange = Exchange("psum", ("x",), {}, "", places, (one, one), (one, one))
        >>> print(pictures.picture_of([exchange]))
        psum over x
          (x=0)  A  ->  A+B
          (x=1)  B  ->  A+B
    """
    if not exchanges:
        error(
            ValueError, "testing.picture_of", "there is nothing to draw.", expected="some exchanges"
        )
    first = exchanges[0]
    places = sorted({place for exchange in exchanges for place in exchange.members})
    rows = {}
    for exchange in exchanges:
        numbers = [places.index(place) for place in exchange.members]
        named = [_named(i, exchange.inputs[k]) for k, i in enumerate(numbers)]
        outs = numpy_model.exchange(_model(exchange.name), exchange.params, named)
        for k, place in enumerate(exchange.members):
            rows[place] = Row(place_text(place), named[k][0], np.asarray(outs[k][0], object))
    axes = ", ".join(map(str, first.axes))
    groups = first.params.get("axis_index_groups")
    within = f" within {[list(g) for g in groups]}" if groups else ""
    return Picture(
        f"{numpy_model.PUBLIC.get(first.name, first.name)} over {axes}{within}",
        first.line,
        tuple(rows[place] for place in places),
        _EXTREMES.get(first.name, "+"),
    )


def _model(name: str) -> str:
    # Names have no order: what an extreme is made of is what a sum is made of.
    return "psum" if name in _EXTREMES else name


def _named(member: int, operands: Sequence[np.ndarray[Any, Any]]) -> list[Any]:
    """The first operand by names, and the others, which say where things go, as they are."""
    shape = operands[0].shape
    names = np.empty(shape, object)
    for position, index in enumerate(np.ndindex(shape)):
        names[index] = Term(frozenset({(member, position)}))
    rest = list(operands[1:])
    if rest:
        # What a ragged exchange writes over.
        blank = np.empty(rest[0].shape, object)
        blank[...] = Term()
        rest[0] = blank
    return [names, *rest]


_CELL, _HEIGHT, _GAP, _LABEL = 46, 26, 90, 64


def _svg(picture: Picture) -> str:
    given = max(_columns(row.before.shape) for row in picture.rows)
    got = max(_columns(row.after.shape) for row in picture.rows)
    cell = max(_CELL, 8 + 7 * max(len(_cell_text(picture, row)) for row in picture.rows))
    left, right = _LABEL, _LABEL + given * _CELL + _GAP
    parts: list[str] = []
    y = 30
    for i, row in enumerate(picture.rows):
        height = _HEIGHT * max(_lines(row.before.shape), _lines(row.after.shape))
        parts.append(_text(8, y + 17, row.place, "start"))
        for index in np.ndindex(row.before.shape):
            label = picture._name(i, row.before.shape, index)
            parts.append(_box(left, y, _CELL, index, row.before.shape, [i], label))
        for index in np.ndindex(row.after.shape):
            term = row.after[index]
            members = term.members if isinstance(term, Term) else []
            label = picture.cell(term, picture.rows[0].before.shape)
            parts.append(_box(right, y, cell, index, row.after.shape, members, label))
        y += height + 8
    middle = (30 + y - 8) / 2
    x = left + given * _CELL + 18
    parts.append(
        f'<path d="M{x} {middle} h{_GAP - 44} m-8 -6 l8 6 l-8 6" stroke="#555" fill="none" '
        'stroke-width="2"/>'
    )
    width = right + got * cell + 12
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y + 4}" '
        f'viewBox="0 0 {width} {y + 4}" font-family="monospace" font-size="12">'
        f'<rect width="100%" height="100%" fill="#fff"/>'
        f"{_text(8, 18, picture.title, 'start', bold=True)}{''.join(parts)}</svg>\n"
    )


def _columns(shape: tuple[int, ...]) -> int:
    return shape[-1] if shape else 1


def _lines(shape: tuple[int, ...]) -> int:
    return max(1, int(np.prod(shape[:-1], dtype=int))) if shape else 1


def _cell_text(picture: Picture, row: Row) -> str:
    shape = picture.rows[0].before.shape
    return max((picture.cell(x, shape) for x in row.after.ravel()), key=len, default="")


def _box(
    x: float,
    y: float,
    width: float,
    index: tuple[int, ...],
    shape: tuple[int, ...],
    members: Sequence[int],
    label: str,
) -> str:
    """A cell, filled with stripes in the colours of the devices that it comes from."""
    column = index[-1] if index else 0
    line = int(np.ravel_multi_index(index[:-1], shape[:-1])) if len(index) > 1 else 0
    x, y = x + column * width, y + line * _HEIGHT
    stripe = width / max(1, len(members))
    fills = "".join(
        f'<rect x="{x + k * stripe:g}" y="{y}" width="{stripe:g}" height="{_HEIGHT}" '
        f'fill="{_COLORS[m % len(_COLORS)]}"/>'
        for k, m in enumerate(members)
    )
    frame = "none" if members else _NOTHING
    return (
        f"{fills}"
        f'<rect x="{x}" y="{y}" width="{width}" height="{_HEIGHT}" fill="{frame}" stroke="#555"/>'
        f"{_text(x + width / 2, y + 17, label, 'middle')}"
    )


def _text(x: float, y: float, content: str, anchor: str, *, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{weight}>{html.escape(content)}</text>'


__all__ = ["Picture", "Row", "Term", "picture_of", "pictures"]


def __dir__() -> list[str]:
    """The public names, without what the module is made of."""
    return sorted(__all__)
