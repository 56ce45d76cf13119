"""Which rows of the inventory the tests show to work.

A test names the rows it shows, `@pytest.mark.feature("CR-03")`.  As a pytest plugin this module
writes the outcomes of a run, by row, into the file that `--features-report` names; as a program
it sets them beside docs/features.md and prints what no passing test shows.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

INVENTORY = Path("docs/features.md")
DEFAULT_REPORT = Path(".features.json")

_ROW = re.compile(r"^\| ([A-Z]{2}-\d{2}) \| (.+?) \| (.+?) \| (.+?) \|$")
_AREA = re.compile(r"^## ([A-Z]{2}) · (.+)$")
_PROPERTY = "feature"

Outcomes = dict[str, dict[str, str]]
"""For each row the tests that name it, each with what became of it: passed, failed or skipped."""


class Feature(NamedTuple):
    """One row of the inventory."""

    id: str
    name: str
    must: str
    accepted: str


def inventory(path: Path = INVENTORY) -> dict[str, Feature]:
    """The rows of the inventory by id, in their order.

    Raises:
        ValueError: two rows have one id.
    """
    rows: dict[str, Feature] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if match := _ROW.match(line):
            feature = Feature(*match.groups())
            if feature.id in rows:
                raise ValueError(f"{path}: two rows are called {feature.id}")
            rows[feature.id] = feature
    return rows


def areas(path: Path = INVENTORY) -> dict[str, str]:
    """The titles of the areas by prefix, in their order."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return {match[1]: match[2] for line in lines if (match := _AREA.match(line))}


def shown(outcomes: Outcomes) -> set[str]:
    """The rows that some test shows and none refutes."""
    found = set()
    for feature, tests in outcomes.items():
        results = set(tests.values())
        if "passed" in results and "failed" not in results:
            found.add(feature)
    return found


def summary(features: dict[str, Feature], titles: dict[str, str], outcomes: Outcomes) -> str:
    """The table of areas, then the rows still to be shown, each with the tests that fail it."""
    done = shown(outcomes)
    total = Counter(feature[:2] for feature in features)
    covered = Counter(feature[:2] for feature in features if feature in done)
    lines = [f"{'area':<44}{'shown':>7}{'rows':>7}"]
    for area, title in titles.items():
        lines.append(f"{area} · {title:<39}{covered[area]:>7}{total[area]:>7}")
    lines.append(f"{'all':<44}{covered.total():>7}{total.total():>7}")
    lines.append("\nWithout a passing test:")
    for feature in features.values():
        if feature.id not in done:
            failed = [name for name, result in _tests(outcomes, feature) if result == "failed"]
            note = f"   FAILED: {', '.join(failed)}" if failed else ""
            lines.append(f"  {feature.id}  {feature.name}{note}")
    return "\n".join(lines)


def _tests(outcomes: Outcomes, feature: Feature) -> Iterable[tuple[str, str]]:
    return sorted(outcomes.get(feature.id, {}).items())


class _Recorder:
    """Collects outcomes by row while a suite runs, in the process that started it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._outcomes: Outcomes = defaultdict(dict)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # Setup and teardown count only where they decide the outcome: by failing or skipping.
        if report.when != "call" and report.passed:
            return
        for name, value in report.user_properties:
            tests = self._outcomes[str(value)] if name == _PROPERTY else {}
            if tests.get(report.nodeid) != "failed":
                tests[report.nodeid] = report.outcome

    def pytest_sessionfinish(self) -> None:
        text = json.dumps(self._outcomes, indent=1, sort_keys=True)
        self._path.write_text(text + "\n", encoding="utf-8")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--features-report`."""
    parser.addoption(
        "--features-report",
        type=Path,
        help="write the outcomes of the tests, by row of docs/features.md, into this file",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Starts the recorder in the process that sees all reports, not in its workers."""
    path = config.getoption("--features-report")
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Recorder(path), "features-recorder")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Adds the marked rows to each test's properties, which are sent with its report.

    Raises:
        UsageError: a mark names a row that the inventory does not have.
    """
    path = config.rootpath / INVENTORY
    known = inventory(path).keys() if path.exists() else None
    for item in items:
        for mark in item.iter_markers("feature"):
            for row in mark.args:
                if known is not None and row not in known:
                    problem = f"feature({row!r}) names no row of {INVENTORY}"
                    raise pytest.UsageError(f"{item.nodeid}: {problem}")
                item.user_properties.append((_PROPERTY, row))


def main(arguments: list[str] | None = None) -> int:
    """Prints the table for one report."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("report", nargs="?", type=Path, default=DEFAULT_REPORT)
    path = parser.parse_args(arguments).report
    outcomes = json.loads(path.read_text(encoding="utf-8"))
    print(summary(inventory(), areas(), outcomes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
