"""The table of figures, as text."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

import budgets
from budgets import Row

SHOWN_ERROR_LINES = 8
SHOWN_MISSES = 25


class Figures(NamedTuple):
    """What was measured for one row.

    Attributes:
        row: the row.
        costs: per side (`minijax`, `jax`, `raw`) the best sample, in the unit of the row; over
            several devices, whose threads share the cores by chance, the median.
        paired: the median over the rounds of the ratio within a round.
        equations: the units that one sample was divided by.
        same: whether both libraries computed the same.
        error: why there is no figure, or empty.
    """

    row: Row
    costs: Mapping[str, float] = MappingProxyType({})
    paired: float = 0.0
    equations: int = 1
    same: bool = True
    error: str = ""

    @property
    def ratio(self) -> float:
        """What minijax costs over what JAX does."""
        return self.costs["minijax"] / self.costs["jax"]

    @property
    def limit(self) -> float | None:
        """The most that the row may cost in itself."""
        raw = self.costs.get("raw")
        if self.row.name == "import" and raw is not None:
            return raw + budgets.IMPORT_OVERHEAD
        if self.row.floors is not None and raw is not None:
            return raw * self.row.floors
        return self.row.limit

    @property
    def verdict(self) -> str:
        """What the last column says."""
        if self.error:
            return "ERROR"
        if not self.same:
            return "DIFFERS"
        if self.row.ratio is None:
            return ""
        return "ok" if self.ratio <= self.row.ratio * (1 + budgets.NOISE) else "MISS"


HEADINGS = ("", "minijax", "jax", "floor", "ratio", "paired", "budget", "in itself", "verdict")


def render(figures: dict[str, Figures]) -> str:
    """The whole table; `paired` is the median ratio of neighbouring turns."""
    blocks: list[tuple[str, ...] | str] = []
    for heading, rows in budgets.GROUPS.items():
        present = _found(figures, rows)
        if present:
            blocks += [heading, *map(_cells, present)]
    lines = [HEADINGS, *(block for block in blocks if isinstance(block, tuple))]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADINGS))]

    def align(cells: tuple[str, ...]) -> str:
        padded = (cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))
        return f"  {cells[0].ljust(widths[0])}  {'  '.join(padded)}".rstrip()

    text = [align(HEADINGS)]
    text += [align(block) if isinstance(block, tuple) else block for block in blocks]
    return "\n".join(text + list(_notes(figures)))


def _notes(figures: dict[str, Figures]) -> Iterator[str]:
    """Every error once, by the end of its trace, and the rows that it cost."""
    titles: dict[str, list[str]] = {}
    for each in figures.values():
        if each.error:
            end = "\n".join(each.error.rstrip().splitlines()[-SHOWN_ERROR_LINES:])
            titles.setdefault(end, []).append(each.row.title)
    for error, rows in titles.items():
        yield f"\n{', '.join(rows)}:\n{error}"


def summary(figures: dict[str, Figures]) -> str:
    """A line for each group, then each row that misses its budget; it fits a screen."""
    lines = [f"{'':<20}{'rows':>5}{'within':>8}{'mean':>7}   worst, as a part of its budget"]
    for heading, rows in budgets.GROUPS.items():
        judged = [x for x in _found(figures, rows) if x.verdict in ("ok", "MISS", "DIFFERS")]
        if not judged:
            continue
        within = sum(each.verdict == "ok" for each in judged)
        mean = math.exp(statistics.fmean(math.log(max(each.ratio, 1e-3)) for each in judged))
        worst = max(judged, key=_part)
        text = f"{heading:<20}{len(judged):>5}{within:>8}{mean:>7.2f}   {_part(worst):.2f}  "
        lines.append(text + worst.row.title)
    failed = [
        (heading, each)
        for heading, rows in budgets.GROUPS.items()
        for each in _found(figures, rows)
        if each.verdict in ("MISS", "DIFFERS", "ERROR")
    ]
    failed.sort(key=lambda pair: -_part(pair[1]))
    if failed:
        lines += ["", f"{'':<72}{'ratio':>6}{'budget':>8}"]
    for heading, each in failed[:SHOWN_MISSES]:
        ratio = f"{each.ratio:.2f}" if each.costs else ""
        budget = f"{each.row.ratio:.2f}" if each.row.ratio is not None else ""
        mark = "" if each.verdict == "MISS" else f"  {each.verdict}"
        lines.append(f"{heading:<20}{each.row.title:<52}{ratio:>6}{budget:>8}{mark}")
    if len(failed) > SHOWN_MISSES:
        lines.append(f"and {len(failed) - SHOWN_MISSES} more, which the table of all rows shows")
    return "\n".join([*lines, *_notes(figures)])


def _found(figures: dict[str, Figures], rows: Iterable[Row]) -> list[Figures]:
    return [figures[row.name] for row in rows if row.name in figures]


def _part(figures: Figures) -> float:
    """The ratio as a part of what it may be; what failed comes first."""
    if not figures.costs or figures.row.ratio is None:
        return math.inf
    return figures.ratio / figures.row.ratio


def counts(figures: dict[str, Figures]) -> str:
    """How many rows met their budgets."""
    found = Counter(each.verdict for each in figures.values() if each.verdict)
    return ", ".join(f"{count} {verdict}" for verdict, count in sorted(found.items()))


def _cells(figures: Figures) -> tuple[str, ...]:
    row = figures.row
    budget = "" if row.ratio is None else f"{row.ratio:.2f}"
    if figures.error:
        return (row.title, "", "", "", "", "", budget, "", figures.verdict)
    return (
        row.title,
        _quantity(figures.costs["minijax"], row.unit),
        "" if row.is_alone else _quantity(figures.costs["jax"], row.unit),
        _quantity(figures.costs["raw"], row.unit) if "raw" in figures.costs else "",
        "" if row.is_alone else f"{figures.ratio:.2f}",
        "" if row.is_alone else f"{figures.paired:.2f}",
        budget,
        _limit(figures),
        figures.verdict,
    )


def _limit(figures: Figures) -> str:
    if figures.limit is None:
        return ""
    met = "ok" if figures.costs["minijax"] <= figures.limit else "miss"
    return f"≤ {_quantity(figures.limit, figures.row.unit)} {met}"


def _quantity(value: float, unit: str) -> str:
    if unit == "B":
        return f"{value / 2**20:.1f} MiB"
    if unit == "bytes":
        return f"{value:.0f} B"
    if unit == "x":
        return f"{value:.2f}"
    if unit == "step":
        return f"{1 / value:.1f}/s"
    units = ((1, "s"), (1e-3, "ms"), (1e-6, "µs"))
    scale, name = next((each for each in units if value >= each[0]), units[-1])
    return f"{value / scale:.{1 if value >= 10 * scale else 2}f} {name}"
