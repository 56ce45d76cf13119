"""What the functions may do that programs call: everything works or is refused, nothing hangs.

A process of its own tries all deeds of `calling_back.py` in one situation.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHILD = Path(__file__).with_name("calling_back.py")
CANNOT_RUN = "RuntimeError jit: a callback of a program over several devices cannot run another"
CANNOT_WAIT = "RuntimeError callback: a callback would wait for ever for what comes after"


def outcomes(situation: str, devices: int) -> dict[str, str]:
    """What became of each deed."""
    found = subprocess.run(
        [sys.executable, CHILD, situation],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
        },
    )
    assert found.returncode == 0, found.stdout[-500:] + found.stderr[-3000:]
    return dict(line.split("\t") for line in found.stdout.splitlines())


ON_ONE = ["eager", "jit", "jit elsewhere", "scan", "vmap", "grad"]
OVER_ALL = [
    "sharded",
    "sharded debug",
    "sharded grad",
    "shard_map",
    "eager shard_map",
    "scan in shard_map",
    "pmap",
]
WAITS = {"barrier", "barrier of a thread"}
PROGRAMS = {
    *("all", "eager", "pmap", "thread", "thread of a thread"),
    *("new executor", "old executor", "after a nested"),
}
HARMLESS = {"copy async", "shape", "delete"}


@pytest.mark.slow
@pytest.mark.sampled(2)
@pytest.mark.feature("RB-11")
@pytest.mark.parametrize("devices", [1, 8])
@pytest.mark.parametrize("situation", ON_ONE)
def test_callbacks_on_the_thread_of_the_caller_may_do_anything(
    situation: str, devices: int
) -> None:
    found = outcomes(situation, devices)
    assert len(found) == 31
    assert set(found.values()) == {"['done']"}


@pytest.mark.slow
@pytest.mark.feature("RB-11")
@pytest.mark.parametrize("devices", [1, 8])
def test_late_callbacks_may_not_wait_for_effects(devices: int) -> None:
    found = outcomes("late", devices)
    refused = {name for name, outcome in found.items() if outcome != "['done']"}
    assert refused == WAITS
    assert all(CANNOT_WAIT in found[name] for name in WAITS)


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.feature("RB-11")
@pytest.mark.parametrize("situation", OVER_ALL)
def test_callbacks_of_programs_over_devices_compute_on_one(situation: str) -> None:
    # Without a thread more than devices: copies, and what other threads compute, hang.
    found = outcomes(situation, 8)
    refused = {name for name, outcome in found.items() if outcome != "['done']"}
    assert refused == WAITS | PROGRAMS
    for name in refused:
        assert (CANNOT_WAIT if name in WAITS else CANNOT_RUN) in found[name], name


@pytest.mark.slow
@pytest.mark.feature("RB-11")
@pytest.mark.parametrize(
    ("situation", "devices"), [("late, its result", 1), ("late, its result", 8), ("overtaken", 8)]
)
def test_callbacks_may_not_wait_for_what_comes_after_the_program(
    situation: str, devices: int
) -> None:
    found = outcomes(situation, devices)
    done = {name for name, outcome in found.items() if outcome == "['done']"}
    assert done == HARMLESS
    for name in found.keys() - done:
        assert CANNOT_WAIT in found[name], (name, found[name])
