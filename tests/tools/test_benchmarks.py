"""What `make bench` prints: a screen, and in it whatever misses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(FOLDER))
    for name in ("table", "budgets"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import table  # noqa: PLC0415

    yield table
    for name in ("table", "budgets"):
        sys.modules.pop(name, None)


def _figures(table: ModuleType, ratio: float) -> dict[str, Any]:
    """Each row, at a part of its budget."""
    rows = [row for group in table.budgets.GROUPS.values() for row in group]
    costs = {row.name: {"minijax": ratio * (row.ratio or 1.0), "jax": 1.0} for row in rows}
    return {row.name: table.Figures(row, costs[row.name], ratio) for row in rows}


@pytest.mark.feature("CW-04")
@pytest.mark.parametrize(("ratio", "verdict"), [(0.5, "ok"), (1.04, "ok"), (1.2, "MISS")])
def test_the_summary_fits_a_screen_and_tells_what_misses(
    table: Any, ratio: float, verdict: str
) -> None:
    figures = _figures(table, ratio)
    judged = [each for each in figures.values() if each.row.ratio is not None]
    assert {each.verdict for each in judged} == {verdict}
    lines = table.summary(figures).splitlines()
    assert len(lines) <= 48
    assert max(map(len, lines)) <= 110
    groups = [line.split("  ")[0] for line in lines[1:]]
    assert [name for name in table.budgets.GROUPS if name not in groups] == []
    missed = len(judged) if verdict == "MISS" else 0
    told = [line for line in lines if line.startswith("and ") and "more" in line]
    assert len(told) == (missed > table.SHOWN_MISSES)


@pytest.mark.feature("CW-04")
def test_an_error_is_told_once_with_the_rows_that_it_cost(table: Any) -> None:
    figures = _figures(table, 0.5)
    first, second = list(figures)[:2]
    for name in (first, second):
        figures[name] = table.Figures(figures[name].row, error="line 1\nValueError: no")
    text = table.summary(figures)
    assert text.count("ValueError: no") == 1
    assert f"{figures[first].row.title}, {figures[second].row.title}:" in text


@pytest.mark.feature("CW-04")
def test_the_table_of_all_rows_has_each_row_in_one_group(table: Any) -> None:
    names = [row.name for group in table.budgets.GROUPS.values() for row in group]
    assert len(set(names)) == len(names)
    text = table.render(_figures(table, 0.5))
    titles = [row.title for group in table.budgets.GROUPS.values() for row in group]
    assert [title for title in titles if f"  {title} " not in text] == []


@pytest.mark.feature("CW-04")
@pytest.mark.parametrize(("row", "ratio"), [("call_1", 0.5), ("mesh_call_1", 2.0)])
def test_rows_over_several_devices_compare_medians_and_others_the_best(
    row: str, ratio: float
) -> None:
    program = f"""
import budgets, run
(row,) = [x for group in budgets.GROUPS.values() for x in group if x.name == {row!r}]
samples = {{"minijax": [[1.0, 6.0, 6.0], [6.0]], "jax": [[2.0, 3.0, 3.0], [3.0]]}}
print(run._figures(row, samples, 1, True).ratio)
"""
    out = subprocess.check_output([sys.executable, "-c", program], cwd=FOLDER, text=True)
    assert float(out) == ratio
