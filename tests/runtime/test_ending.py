"""The end of a process whose threads compute, and children of a process: no abort, no hang."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from minijax.runtime import in_flight

pytestmark = [pytest.mark.feature("RB-06"), pytest.mark.slow]
PROGRAM = str(Path(__file__).with_name("ending.py"))
READING = {
    "read": "[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]",
    "read narrow": "sum8.0",
    "read split": "28.0",
    "export": "36.0",
    "pickle": "True",
    "delete": "None",
    "trace": "1",
}


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, PROGRAM, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)


@pytest.mark.turns(3)
@pytest.mark.parametrize(
    "work",
    [
        "call",
        "wait",
        "run ahead",
        "several devices",
        "read",
        "compile",
        "move",
        "delete",
        "effect",
        "callback",
        "sleep",
        "no devices",
    ],
)
def test_process_ends_with_its_own_code_while_daemon_threads_are_at_work(work: str) -> None:
    # Without the wait: "terminate called", code -6.
    found = run("end", work)
    assert found.returncode == 3, found.stderr


def test_end_does_not_wait_for_threads_that_sleep() -> None:
    start = time.monotonic()
    run("end", "sleep")
    assert time.monotonic() - start < in_flight._PATIENCE


def test_forked_child_reads_and_is_told_why_it_cannot_compute() -> None:
    # Without the checks: seven of these hang.
    lines = [line.split("\t") for line in run("fork").stdout.splitlines()]
    found = dict(lines)
    assert len(found) == 18
    assert {name: found[name] for name in READING} == {
        name: f"result {value}" for name, value in READING.items()
    }
    refused = {name: text for name, text in found.items() if name not in READING}
    assert {text.partition(":")[0] for text in refused.values()} == {"RuntimeError"}
    assert all('multiprocessing.get_context("spawn")' in text for text in refused.values())


@pytest.mark.turns(3)
def test_fork_leaves_no_lock_behind() -> None:
    assert run("among").stdout.splitlines() == ["{'result (None, 8.0)'}"]


def test_spawned_process_computes() -> None:
    assert run("spawn").stdout.splitlines() == ["2.0"]
