"""Runs programs of packages that were written for JAX: `make packages`, or as `--help` says.

Each program of `benchmarks/packages` prints its figures as JSON.  Here it runs in an environment
without JAX, by `python -m minijax.as_jax`, and its figures are compared with those of
`figures.json`, which were recorded on JAX 0.10.2.  `--record` records them, and `--jax-python` runs
the programs on both, in turns, to compare times.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = ROOT / "benchmarks" / "packages"
RECORDED = PROGRAMS / "figures.json"

TOLERANCE = 2e-3
"""How far figures may be apart, relative to the largest of the same name: programs of float32 that
train for a while add up roundings."""


class Run(NamedTuple):
    """What a program has told: its figures, and the seconds of its first and its second call."""

    figures: Any
    seconds: list[float]


def run(program: Path, python: str, *, as_jax: bool, packages: str = "") -> Run | str:
    """Runs a program; the last line that it wrote to its errors, if it failed.

    Args:
        program: the file.
        python: an interpreter, as a path or a name.
        as_jax: whether `jax` means minijax.
        packages: where the interpreter finds packages that its own environment lacks.
    """
    interpreter = os.path.abspath(python) if os.path.dirname(python) else python
    command = [interpreter, *(("-m", "minijax.as_jax") if as_jax else ()), str(program)]
    more = [str(ROOT) if as_jax else "", packages, os.environ.get("PYTHONPATH", "")]
    path = os.pathsep.join(filter(None, more))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, cwd=PROGRAMS
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        return next((line for line in reversed(lines) if "Error" in line), lines[-1])
    told = json.loads(done.stdout.splitlines()[-1])
    return Run(told["figures"], told["seconds"])


def site_packages(python: str) -> str:
    """Where the environment of an interpreter keeps its packages."""
    text = "import sysconfig; print(sysconfig.get_path('purelib'))"
    done = subprocess.run([python, "-c", text], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def numbers(figures: Any, name: str = "") -> Iterator[tuple[str, list[float]]]:
    """The figures by name, each as a flat list."""
    if isinstance(figures, dict):
        for key, value in figures.items():
            yield from numbers(value, f"{name}/{key}" if name else str(key))
    else:
        yield name, list(_flat(figures))


def _flat(value: Any) -> Iterator[float]:
    if isinstance(value, list):
        for entry in value:
            yield from _flat(entry)
    else:
        yield float(value)


def differences(expected: Any, actual: Any, tolerance: float = TOLERANCE) -> list[str]:
    """What differs, in words; nothing if the figures are equal to a tolerance."""
    left, right = dict(numbers(expected)), dict(numbers(actual))
    found = [f"{name} is missing" for name in left.keys() ^ right.keys()]
    for name in left.keys() & right.keys():
        if len(left[name]) != len(right[name]):
            found.append(f"{name}: {len(right[name])} numbers, not {len(left[name])}")
            continue
        scale = max([1e-3, *(abs(x) for x in left[name] if math.isfinite(x))])
        apart = [abs(x - y) for x, y in zip(left[name], right[name], strict=True) if x != y]
        if not all(distance <= tolerance * scale for distance in apart):
            found.append(f"{name}: {max(apart):.2g} apart")
    return sorted(found)


def main(arguments: list[str] | None = None) -> int:
    """Runs the programs, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, prog="tools.packages")
    parser.add_argument("--python", default=sys.executable, help="with the packages, without JAX")
    parser.add_argument("--jax-python", help="with JAX, to compare times; borrows the packages")
    parser.add_argument("--record", action="store_true", help="record figures with --jax-python")
    parser.add_argument("names", nargs="*", help="programs; all by default")
    given = parser.parse_args(arguments)
    recorded = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    programs = sorted(PROGRAMS.glob("*_*.py"))
    packages = site_packages(given.python) if given.jax_python else ""
    failures = 0
    print(f"{'program':<26}{'figures':<14}{'minijax':>18}{'JAX':>18}")
    for program in programs:
        name = program.stem
        if given.names and name not in given.names:
            continue
        theirs = (
            run(program, given.jax_python, as_jax=False, packages=packages)
            if given.jax_python
            else None
        )
        if given.record and isinstance(theirs, Run):
            recorded[name] = theirs.figures
            RECORDED.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n")
        ours = run(program, given.python, as_jax=True)
        if isinstance(ours, str):
            failures, verdict = failures + 1, f"fails: {ours}"
        else:
            differing = differences(recorded.get(name, {}), ours.figures)
            failures += bool(differing)
            verdict = f"differ: {'; '.join(differing)}" if differing else "equal"
        times = "".join(
            f"{f'{one.seconds[0]:.1f} + {one.seconds[1]:.1f} s':>18}"
            if isinstance(one, Run)
            else ""
            for one in (ours, theirs)
        )
        print(f"{name:<26}{verdict:<14}{times}", flush=True)
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main())
