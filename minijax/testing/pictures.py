"""Pictures of what collectives move: what each device gave, and of what its result is made.

Input: the exchanges that the oracle saw.  Output: lines of text, or an SVG image.  Each element is
called by the device it began on, `B2`; the model of the collective is run on these names, so that
the picture shows what it means and not what some numbers came to.

`contributions` says the same of a test that fails: whose contribution its result lacks.
"""

from __future__ import annotations

import html
import itertools
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from minijax.core import source
from minijax.core.errors import error
from minijax.testing import numpy_model, oracle
from minijax.testing.exchanges import Exchange, place_text

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
    model = numpy_model.MODELS[first.name]
    # Names are only collected, so a sum of names shows the operands of any reduction.
    drawn_as = "psum" if isinstance(model, numpy_model.ReductionModel) else first.name
    places = sorted({place for exchange in exchanges for place in exchange.members})
    rows = {}
    for exchange in exchanges:
        numbers = [places.index(place) for place in exchange.members]
        named = [_named(i, exchange.inputs[k]) for k, i in enumerate(numbers)]
        outs = numpy_model.exchange(drawn_as, exchange.params, named)
        for k, place in enumerate(exchange.members):
            rows[place] = Row(place_text(place), named[k][0], np.asarray(outs[k][0], object))
    axes = ", ".join(map(str, first.axes))
    groups = first.params.get("axis_index_groups")
    within = f" within {[list(g) for g in groups]}" if groups else ""
    return Picture(
        f"{numpy_model.PUBLIC.get(first.name, first.name)} over {axes}{within}",
        first.line,
        tuple(rows[place] for place in places),
        model.symbol if isinstance(model, numpy_model.ReductionModel) else "+",
    )


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
    left = max(_LABEL, 16 + 8 * max(len(row.place) for row in picture.rows))
    right = left + given * _CELL + _GAP
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


_STEP = 64
_MOST_PROBES = 64
_MOST_LINES = 4
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


class Compared(NamedTuple):
    """What a comparison of `numpy.testing` was given."""

    actual: Any
    desired: Any


def contributions(
    test: Callable[[Any], object], blocks: Any, sizes: Mapping[Any, int], failure: BaseException
) -> str | None:
    """What a wrong result lacks, in terms of what devices began with; None where it is not told.

    The test runs once more for each element of the blocks, which is made greater: what the result
    and the expected value gain by it are their shares of this element.  So both must be linear,
    and compared by a function of `numpy.testing`.
    """
    count = len(sizes)
    fitting = blocks.shape[:count] == tuple(sizes.values()) and blocks.dtype.kind in "iuf"
    first = _compared(failure)
    if not fitting or first is None or not 0 < blocks.size <= _MOST_PROBES:
        return None
    actual, desired = [], []
    for index in np.ndindex(blocks.shape):
        changed = blocks.copy()
        changed[index] += _STEP
        found = _failure(test, changed)
        if found is None or found.actual.shape != first.actual.shape:
            return None
        actual.append((found.actual - first.actual) / _STEP)
        desired.append((found.desired - first.desired) / _STEP)
    shares = Compared(np.stack(actual, -1), np.stack(desired, -1))
    values = blocks.astype(np.float64).ravel()
    for share, value in zip(shares, first, strict=True):
        if not np.allclose(share @ values, value, rtol=1e-3, atol=1e-3):
            return None
    names = _names_of_blocks(blocks.shape, count)
    return _difference_text(shares, names, sizes)


def _failure(test: Callable[[Any], object], blocks: Any) -> Compared | None:
    try:
        test(blocks)
    except AssertionError as failure:
        return _compared(failure)
    except Exception:
        # A test may refuse what it is given, for reasons of its own.
        return None
    return None


def _compared(failure: BaseException) -> Compared | None:
    """What the function of `numpy.testing` that raised an exception has compared."""
    traceback: TracebackType | None = failure.__traceback__
    while traceback is not None:
        frame = traceback.tb_frame
        known = frame.f_locals
        if frame.f_globals.get("__name__", "").startswith("numpy.testing") and "desired" in known:
            pair = [np.asarray(known["actual"]), np.asarray(known["desired"])]
            if all(x.dtype.kind in "iuf" for x in pair):
                actual, desired = (x.astype(np.float64) for x in pair)
                return Compared(actual, np.broadcast_to(desired, actual.shape))
        traceback = traceback.tb_next
    return None


def _names_of_blocks(shape: tuple[int, ...], axes: int) -> list[str]:
    """The name of each element: a letter for its device, and its number if there are several."""
    devices = int(np.prod(shape[:axes], dtype=int))
    own = int(np.prod(shape[axes:], dtype=int))
    numbers = [str(i).translate(_SUBSCRIPTS) * (own > 1) for i in range(own)]
    return [_letter(device) + number for device in range(devices) for number in numbers]


def _difference_text(shares: Compared, names: list[str], sizes: Mapping[Any, int]) -> str | None:
    wrong = ~np.isclose(shares.actual, shares.desired, atol=1e-3).all(-1)
    lines: dict[str, str] = {}
    for index in map(tuple, np.argwhere(wrong)):
        text = _one_difference(shares.actual[index], shares.desired[index], names)
        lines.setdefault(_place_of(index, wrong.shape, sizes), text)
    if not lines:
        return None
    shown = [f"  {place} {text}" for place, text in itertools.islice(lines.items(), _MOST_LINES)]
    if len(lines) > _MOST_LINES:
        shown.append(f"  and so on: {len(lines)} devices in all")
    return "\n".join(["By name, A being what the first device began with, and so on:", *shown])


def _place_of(index: tuple[int, ...], shape: tuple[int, ...], sizes: Mapping[Any, int]) -> str:
    """The device on which an element of a result lies, where the shape tells."""
    first = next(iter(sizes.values()))
    if len(sizes) == 1 and shape and shape[0] % first == 0:
        return f"device {index[0] // (shape[0] // first)}"
    if shape[: len(sizes)] == tuple(sizes.values()):
        return f"device {place_text(tuple(zip(sizes, map(int, index), strict=False)))}"
    return "the result"


def _one_difference(actual: Any, desired: Any, names: list[str]) -> str:
    expected = f"; expected {_sum_text(desired, names)}"
    absent = np.isclose(actual, 0, atol=1e-3)
    unwanted = np.isclose(desired, 0, atol=1e-3)
    same = np.isclose(actual, desired, atol=1e-3)
    if (same | absent).all() and not absent.all():
        return f"lacks {_listing([names[i] for i in np.flatnonzero(~same)])}{expected}"
    if (same | unwanted).all() and not unwanted.all():
        return f"has {_sum_text(np.where(same, 0, actual), names)} too much{expected}"
    return f"has {_sum_text(actual, names)}{expected}"


def _listing(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _sum_text(shares: Any, names: list[str]) -> str:
    """A sum of named terms; `A…D` are four of devices that follow one another."""
    own = sum(name[0] == names[0][0] for name in names)
    terms = [
        (element, round(float(share), 3), name)
        for element in range(own)
        for share, name in zip(shares[element::own], names[element::own], strict=True)
    ]
    parts = []
    for (_, factor), group in itertools.groupby(terms, key=lambda term: term[:2]):
        found = [name for _, _, name in group]
        if factor:
            text = f"{found[0]}…{found[-1]}" if len(found) > 3 else "+".join(found)
            bracketed = f"({text})" if len(found) > 1 else text
            parts.append(text if factor == 1 else f"{factor:g}{bracketed}")
    return "+".join(parts).replace("+-", "−") or "0"


__all__ = ["Picture", "Row", "Term", "picture_of", "pictures"]
__dir__ = source.shown(globals())
