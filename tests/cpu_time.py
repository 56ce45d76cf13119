"""Measures the CPU time of a test run: `--cpu-report=FILE`, or `make test CPU_REPORT=FILE`.

CPU time, unlike wall time, hardly depends on what else the machine runs, so two commits can be
compared on a busy machine.  The time of a test includes all threads of its worker (XLA compiles and
runs in threads) and the processes that it starts and waits for.  What remains of a worker's time is
start-up: importing the tests, collecting them, and choosing the sample.

`python -m tests.cpu_time FILE` copies what such a report says of expensive tests into
tests/costs.txt, by which `make test` selects its sample.  Tests that the run left out keep the
costs that they had.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

_SECONDS = "cpu_seconds"


def cpu_seconds() -> float:
    """Returns the CPU time used by this process and by the children that it has waited for."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


class _Clock:
    """Adds to each report the CPU time since the previous report of the same test."""

    def __init__(self) -> None:
        self._last = 0.0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        self._last = cpu_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Any:
        report = yield
        now = cpu_seconds()
        setattr(report, _SECONDS, now - self._last)
        self._last = now
        return report

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        # xdist sends `workeroutput` to the controller when the worker ends.
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[_SECONDS] = cpu_seconds()


class _Report:
    """Sums the times of all workers and writes the tables."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._of_test: dict[str, float] = defaultdict(float)
        self._counts: dict[str, set[str]] = defaultdict(set)
        self._of_workers: list[float] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        function = report.nodeid.partition("[")[0]
        self._of_test[function] += getattr(report, _SECONDS, 0.0)
        self._counts[function].add(report.nodeid)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self._of_workers.append(getattr(node, "workeroutput", {}).get(_SECONDS, 0.0))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        # Workers are children too, but a crashed one reports nothing: count this process alone.
        own = time.process_time() if self._of_workers else cpu_seconds()
        total = own + sum(self._of_workers)
        self._path.write_text(self._tables(total), encoding="utf-8")

    def _tables(self, total: float) -> str:
        folders: dict[str, float] = defaultdict(float)
        numbers: dict[str, int] = defaultdict(int)
        for function, seconds in self._of_test.items():
            folder = function.partition("::")[0].rpartition("/")[0]
            folders[folder] += seconds
            numbers[folder] += len(self._counts[function])
        in_tests = sum(folders.values())
        lines = [
            f"{total:9.1f} s of CPU time in all",
            f"{total - in_tests:9.1f} s outside tests: start, import, collection, reports",
            f"{in_tests:9.1f} s in {sum(numbers.values())} tests",
            "\nBy folder: seconds, tests",
            *_sorted_lines(folders, numbers),
            "\nBy test function: seconds, parameters",
            *_sorted_lines(self._of_test, {name: len(ids) for name, ids in self._counts.items()}),
        ]
        return "\n".join(lines) + "\n"


def _sorted_lines(seconds: dict[str, float], numbers: dict[str, int]) -> list[str]:
    ranked = sorted(seconds, key=lambda name: -seconds[name])
    return [f"{seconds[name]:9.2f} {numbers[name]:6d}  {name}" for name in ranked]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--cpu-report`."""
    parser.addoption(
        "--cpu-report",
        type=Path,
        metavar="FILE",
        help="write the CPU time of the run, by folder and by test function, to this file",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Registers the clock where tests run, and the report in the process that sees all of them."""
    path = config.getoption("--cpu-report")
    if path is None:
        return
    config.pluginmanager.register(_Clock(), "cpu-clock")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Report(path), "cpu-report")


_COSTS = Path(__file__).with_name("costs.txt")
_EXPENSIVE = 0.5


def updated_costs(costs: str, report: str) -> str:
    """Returns the text of tests/costs.txt with the costs that a report has measured."""
    seconds = {name: float(cost) for cost, name in map(str.split, costs.splitlines())}
    for cost, name in re.findall(r"^ *([\d.]+) +\d+  (\S+::\S+)$", report, re.MULTILINE):
        seconds[name] = float(cost)
    kept = {name: cost for name, cost in seconds.items() if cost >= _EXPENSIVE}
    return "".join(f"{kept[name]:6.1f} {name}\n" for name in sorted(kept))


if __name__ == "__main__":
    costs = _COSTS.read_text(encoding="utf-8") if _COSTS.exists() else ""
    report = Path(sys.argv[1]).read_text(encoding="utf-8")
    _COSTS.write_text(updated_costs(costs, report), encoding="utf-8")
