"""Compares the speed of minijax with that of JAX, and prints what misses its budget.

Run by the interpreter that has minijax; JAX has an environment of its own. The two take turns, so
that a busy moment of the machine hits both; a figure is the best of its samples, or their median
where there are several devices.

    python benchmarks/run.py --jax-python .venv-jax/bin/python --table out/bench.txt

What is printed is a summary: for each group of rows the geometric mean of their ratios, then the
rows that miss their budgets.  All rows stand in the file; those that `--only` selects are printed.
The exit status says whether both libraries computed the same, not whether the budgets were met.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import budgets
import sweep
import table
from budgets import Row
from remote import FOLDER, RemoteWorker, WorkerError, environment
from table import Figures

MINIJAX, JAX, RAW = "minijax", "jax", "raw"


class Effort(NamedTuple):
    """How long to measure.

    Attributes:
        processes: new processes per library and row.
        rounds: turns of each library in a row of a living process.
        seconds: how long a turn lasts.
    """

    processes: int
    rounds: int
    seconds: float


SECONDS_OF_ROWS = 420
"""How long all rows may take, so that they and the sweep are done within ten minutes."""

FULL = Effort(processes=4, rounds=4, seconds=0.1)
SEVERAL_DEVICES = Effort(processes=4, rounds=10, seconds=0.1)
QUICK = Effort(processes=2, rounds=2, seconds=0.05)


class Schedule:
    """How thoroughly to measure the next row, so that all are measured in time.

    Args:
        rows: how many rows there are.
        seconds: how long they may take together.
    """

    def __init__(self, rows: int, seconds: float) -> None:
        self._rows = rows
        self._seconds = seconds
        self._begun = 0
        self._start = time.perf_counter()

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self._start

    def effort(self, row: Row) -> Effort:
        """The effort for one row more, whose title is shown meanwhile."""
        text = f"{self.elapsed:5.0f} s  {row.title}"
        is_seen = sys.stderr.isatty()
        print(f"\r\033[K{text}" if is_seen else text, end="" if is_seen else "\n", file=sys.stderr)
        sys.stderr.flush()
        share = self._begun / self._rows
        self._begun += 1
        full = SEVERAL_DEVICES if row in budgets.DISTRIBUTED else FULL
        return full if self.elapsed <= share * self._seconds else QUICK


def _main() -> int:
    options = _options()
    rows = [row for group in budgets.GROUPS.values() for row in group]
    chosen = [row for row in rows if options.only is None or options.only in row.name]
    if not chosen:
        names = ", ".join(row.name for row in rows)
        raise SystemExit(f"no row is called {options.only}; there are {names}")
    schedule = Schedule(len(chosen), 0 if options.quick else SECONDS_OF_ROWS)
    pythons = {MINIJAX: options.python, JAX: options.jax_python}
    _compile_modules(pythons, options.subject)
    pythons[RAW] = options.python
    figures = _measure_processes(chosen, pythons, options.subject, schedule)
    figures |= _measure_stored(chosen, pythons, options.subject, schedule)
    for rows, devices in ((budgets.LIVE, 1), (budgets.DISTRIBUTED, budgets.DEVICES)):
        living = [row for row in rows if row in chosen]
        figures |= _measure_live(living, devices, pythons, options.subject, schedule)
    whole = table.render(figures)
    swept = ""
    if options.only is None:
        swept = sweep.sweep(options.python, options.jax_python, options.subject)
        whole += f"\n\n{swept}"
    if options.table is not None:
        options.table.parent.mkdir(parents=True, exist_ok=True)
        options.table.write_text(whole + "\n", encoding="utf-8")
    print(f"\n{table.summary(figures) if options.only is None else whole}")
    if swept:
        print(f"\n{swept}")
    print(f"{table.counts(figures)}, {schedule.elapsed:.0f} s")
    if options.json:
        records = {
            name: each._asdict() | {"costs": dict(each.costs)} for name, each in figures.items()
        }
        options.json.write_text(json.dumps(records, indent=1), encoding="utf-8")
    return int(any(each.error or not each.same for each in figures.values()))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jax-python", required=True, help="the interpreter that has JAX")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has minijax")
    parser.add_argument("--subject", default=MINIJAX, help="the module measured against JAX")
    parser.add_argument("--only", help="measure the rows whose name contains this")
    parser.add_argument("--quick", action="store_true", help="fewer samples, rougher figures")
    parser.add_argument("--table", type=Path, help="write every row to this file")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    return parser.parse_args()


_COMPILES_MODULES = """
import compileall, importlib.util, sys
for name in sys.argv[1:]:
    found = importlib.util.find_spec(name)
    for folder in found.submodule_search_locations if found else ():
        compileall.compile_dir(folder, quiet=2)
"""


def _compile_modules(pythons: dict[str, str], subject: str) -> None:
    """Has both interpreters keep the bytecode of all that they will import."""
    shared = ("jaxlib", "numpy", "scipy", "ml_dtypes", "opt_einsum")
    for side, python in pythons.items():
        names = (subject if side == MINIJAX else side, *shared)
        command = [python, "-c", _COMPILES_MODULES, *names]
        subprocess.run(command, env=environment(), check=False)


def _measure_processes(
    chosen: Sequence[Row], pythons: dict[str, str], subject: str, schedule: Schedule
) -> dict[str, Figures]:
    """The rows that need a new process for each figure."""
    figures = {}
    for row in budgets.PROCESSES:
        if row not in chosen or row.name in budgets.STORED:
            continue
        effort = schedule.effort(row)
        program = row.name
        if row.name.startswith("memory") and row.name != "memory_python":
            program = "memory"
        has_floor = row.name in ("import", "memory_import")
        libraries = {MINIJAX: subject, JAX: JAX} | ({RAW: RAW} if has_floor else {})
        samples: dict[str, list[list[float]]] = {side: [] for side in libraries}
        sums: dict[str, Any] = {}
        try:
            for side, library in libraries.items():
                _run_cold(pythons[side], library, program)  # leaves warm files behind
            for _ in range(effort.processes):
                for side, library in libraries.items():
                    figure, sums[side] = _run_cold(pythons[side], library, program)
                    samples[side].append([_pick(row.name, figure)])
            same = _agree(sums[MINIJAX], sums[JAX])
            figures[row.name] = _figures(row, samples, 1, same)
        except WorkerError as error:
            figures[row.name] = Figures(row, error=str(error))
    return figures


def _measure_stored(
    chosen: Sequence[Row], pythons: dict[str, str], subject: str, schedule: Schedule
) -> dict[str, Figures]:
    """The rows of one program that takes long to compile, with and without a folder of programs."""
    rows = [row for row in budgets.PROCESSES if row in chosen and row.name in budgets.STORED]
    if not rows:
        return {}
    efforts = [schedule.effort(row) for row in rows]
    samples: dict[tuple[str, bool], list[list[float]]] = {}
    sums: list[Any] = []
    with tempfile.TemporaryDirectory() as folder:
        places = {side: f"{folder}/{side}" for side in (MINIJAX, JAX)}
        runs = [(side, kept) for kept in (True, False) for side in places]
        try:
            for turn in range(-1, efforts[0].processes // 2):
                for side, kept in runs if turn >= 0 else runs[:2]:
                    library = subject if side == MINIJAX else side
                    place = places[side] if kept else None
                    seconds, found = _run_cold(pythons[side], library, "first_transformer", place)
                    sums.append(found)
                    if turn >= 0:
                        samples.setdefault((side, kept), []).append([seconds])
        except WorkerError as error:
            return {row.name: Figures(row, error=str(error)) for row in rows}
    same = all(_agree(found, sums[0]) for found in sums)
    sides = {
        row: {MINIJAX: samples[MINIJAX, bool(kept)], JAX: samples[JAX, kept == "both"]}
        for row in rows
        for kept in [budgets.STORED[row.name]]
    }
    return {row.name: _figures(row, found, 1, same) for row, found in sides.items()}


def _pick(name: str, figure: Any) -> float:
    """The figure of a row among those of one process."""
    if name == "memory_growth":
        return max(1.0, figure[1] - figure[0])
    if isinstance(figure, list):
        return float(figure[name == "memory_staged"])
    return float(figure)


def _run_cold(
    python: str, library: str, program: str, programs: str | None = None
) -> tuple[Any, Any]:
    """What a new process says, or else how long it took to say something; and its checksum."""
    start = time.perf_counter()
    with subprocess.Popen(
        [python, str(FOLDER / "cold.py"), library, program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=environment(programs),
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        seconds = time.perf_counter() - start
        _, trace = process.communicate()
    if not line:
        raise WorkerError(trace[-2000:])
    answer = json.loads(line)
    return (seconds if answer["figure"] is None else answer["figure"]), answer["checksum"]


def _measure_live(
    rows: Sequence[Row], devices: int, pythons: dict[str, str], subject: str, schedule: Schedule
) -> dict[str, Figures]:
    """The rows measured in living processes with `devices` host devices."""
    workers = {
        side: RemoteWorker(pythons[side], subject if side == MINIJAX else side, devices)
        for side in (MINIJAX, JAX, RAW)
    }
    figures = {}
    try:
        for row in rows:
            try:
                figures[row.name] = _measure_row(row, workers, schedule.effort(row))
            except WorkerError as error:
                figures[row.name] = Figures(row, error=str(error))
    finally:
        for worker in workers.values():
            worker.close()
    return figures


def _measure_row(row: Row, workers: dict[str, RemoteWorker], effort: Effort) -> Figures:
    sides = [MINIJAX] if row.is_alone else [MINIJAX, JAX]
    reference = sides[-1]
    first = {side: workers[side].ask("prepare", row=row.name) for side in reversed(sides)}
    stablehlo = workers[reference].ask("stablehlo", row=row.name)["stablehlo"]
    if stablehlo:
        workers[RAW].ask("prepare", row=row.name, stablehlo=stablehlo)
        sides.append(RAW)
    samples: dict[str, list[list[float]]] = {side: [] for side in sides}
    for turn in range(effort.rounds):
        for side in sides if turn % 2 else reversed(sides):
            answer = workers[side].ask("measure", row=row.name, seconds=effort.seconds)
            samples[side].append(answer["samples"])
    for side in sides:
        workers[side].ask("forget", row=row.name)
    theirs = first[reference]
    same = _agree(first[MINIJAX]["checksum"], theirs["checksum"])
    return _figures(row, samples, theirs.get("equations", 1), same)


def _figures(row: Row, samples: dict[str, list[list[float]]], units: int, same: bool) -> Figures:
    """The figures of a row, from the samples of each turn of each library."""
    pick = statistics.median if row in budgets.DISTRIBUTED else min
    costs = {side: pick([x for turn in turns for x in turn]) for side, turns in samples.items()}
    # Pairs of neighbouring turns met the same moment of the machine.
    pairs = zip(samples[MINIJAX], samples.get(JAX, samples[MINIJAX]), strict=True)
    paired = statistics.median(pick(ours) / pick(theirs) for ours, theirs in pairs)
    return Figures(row, {side: cost / units for side, cost in costs.items()}, paired, units, same)


def _agree(ours: Any, theirs: Any) -> bool:
    """Whether two checksums are the same up to rounding."""
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(_agree, ours, theirs))
    if isinstance(ours, float) and isinstance(theirs, float):
        return math.isclose(ours, theirs, rel_tol=1e-3, abs_tol=1e-3)
    return bool(ours == theirs)


if __name__ == "__main__":
    sys.exit(_main())
