"""Plants each fault of the catalogue, and measures whether it is noticed: `make mutants`.

Each fault has a process of its own, because some end it or never return; two run at a time.  What
is known already is kept in a file, so that a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import minijax as jax
from tests.mutants import detector
from tests.mutants.catalogue import mutations
from tests.mutants.mutation import Mutation

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "out" / "mutants.json"
TABLE = ROOT / "docs" / "mutants.md"
TIMEOUT = 120
SMALL_ENOUGH = 5
DEVICES = 8

Result = dict[str, Any]


def measure(mutation: Mutation, seed: int, at_once: int, noted: Path) -> Result:
    """Whether a fault is noticed, in this process."""
    with jax.cpu_devices(DEVICES), mutation.applied():
        found = detector.detect(mutation.steps, seed=seed, at_once=at_once, note=noted.write_text)
    return found._asdict()


def measure_apart(index: int, seed: int, at_once: int = detector.AT_ONCE) -> Result:
    """The same in a process of its own, the end of which betrays the fault too."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        noted, result = Path(folder, "program.py"), Path(folder, "result.json")
        command = [sys.executable, "-m", "tests.mutants.run", "--one", str(index)]
        command += ["--seed", str(seed), "--noted", str(noted), "--result", str(result)]
        command += ["--at-once", str(at_once)]
        try:
            ended = subprocess.run(
                command, cwd=ROOT, timeout=TIMEOUT, capture_output=True, text=True, check=False
            )
            error = "" if ended.returncode == 0 else f"the process ended: {ended.stderr[-300:]}"
        except subprocess.TimeoutExpired:
            error = "the program did not end"
        if result.exists():
            return dict(json.loads(result.read_text()))
        if at_once > 1:
            # Which of several it was is known where they run one by one.
            return measure_apart(index, seed, at_once=1)
        source = noted.read_text() if noted.exists() else ""
        operations = sum(" = lax." in line or " = v" in line for line in source.splitlines())
        took = time.monotonic() - start
        found = detector.Finding("process", operations, source, error, took)
        return found._asdict()


def run(chosen: Sequence[tuple[int, Mutation]], seed: int, processes: int) -> dict[str, Result]:
    """The results of some mutations by name, those known already included."""
    known: dict[str, Result] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    RESULTS.parent.mkdir(exist_ok=True)
    waiting = [(i, m) for i, m in chosen if m.name not in known]
    with concurrent.futures.ThreadPoolExecutor(processes) as pool:
        futures = {pool.submit(measure_apart, i, seed): m for i, m in waiting}
        for future in concurrent.futures.as_completed(futures):
            mutation, result = futures[future], future.result()
            known[mutation.name] = result
            RESULTS.write_text(json.dumps(known, indent=1))
            print(line_of(mutation, result), flush=True)
    return {m.name: known[m.name] for _, m in chosen}


def line_of(mutation: Mutation, result: Result) -> str:
    """One line of a table."""
    noticed = f"{result['check']}, {result['size']} operations" if result["check"] else "MISSED"
    return f"{noticed:<34}{result['seconds']:6.1f} s  {mutation.name}"


def summary(results: Iterable[Result]) -> dict[str, int]:
    """How many faults there are, were noticed, and were shrunk to few operations."""
    found = list(results)
    caught = [r for r in found if r["check"]]
    small = [r for r in caught if r["size"] <= SMALL_ENOUGH]
    return {"planted": len(found), "noticed": len(caught), "small": len(small)}


def table(chosen: Sequence[tuple[int, Mutation]], results: dict[str, Result]) -> str:
    """The results as a page."""
    counts = summary(results.values())
    lines = [
        "# Planted faults",
        "",
        "Made by `make mutants`. Each row is a change of one place in a rule of a collective; "
        "generated programs and the laws of",
        "collectives (`minijax.testing`) look for it, and shrink what shows it.",
        "",
        f"Of {counts['planted']} faults {counts['noticed']} are noticed, "
        f"{counts['small']} of them by at most {SMALL_ENOUGH} operations.",
        "",
        "| rule | text | fault | noticed by | operations |",
        "|---|---|---|---|---|",
    ]
    for _, mutation in chosen:
        result = results[mutation.name]
        size = result["size"] or ("-" if not result["check"] else "law")
        cells = [mutation.target, _code(mutation.old), _code(mutation.new)]
        cells += [result["check"] or "**missed**", str(size)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _code(text: str) -> str:
    shown = " ".join(text.split()).replace("|", "\\|")
    return f"`{shown}`" if shown else "nothing"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures all, some, or one; the exit status says whether 95 of 100 were noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", type=int, help="measure this one, in this process")
    parser.add_argument("--match", default="", help="only those whose name has this text")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fresh", action="store_true", help="forget what is known")
    parser.add_argument("--at-once", type=int, default=detector.AT_ONCE)
    parser.add_argument("--noted", type=Path)
    parser.add_argument("--result", type=Path)
    options = parser.parse_args(arguments)
    numbered = list(enumerate(mutations()))
    if options.one is not None:
        mutation = numbered[options.one][1]
        found = measure(mutation, options.seed, options.at_once, options.noted)
        options.result.write_text(json.dumps(found))
        return 0
    if options.fresh:
        RESULTS.unlink(missing_ok=True)
    chosen = [(i, m) for i, m in numbered if options.match in m.name]
    results = run(chosen, options.seed, options.processes)
    counts = summary(results.values())
    print("\n".join(line_of(m, results[m.name]) for _, m in chosen if not results[m.name]["check"]))
    print(", ".join(f"{number} {what}" for what, number in counts.items()))
    if not options.match:
        TABLE.write_text(table(chosen, results), encoding="utf-8")
    return 0 if counts["small"] >= 0.95 * counts["planted"] else 1


if __name__ == "__main__":
    sys.exit(main())
