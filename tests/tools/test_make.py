"""`make` runs the commands that its targets promise, and rejects wrong variables."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="runs make")


def dry_run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Returns what `make -n` prints, whatever variables this process got from a make above it."""
    inherited = ("MAKE", "MFLAGS", "ROOM", "SEED", "WORKERS", "CPU_REPORT", "PYTHON")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(inherited)}
    command = ["make", "--no-print-directory", "-n", f"PYTHON={sys.executable}", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.feature("HO-05")
def test_test_runs_the_sample_of_the_commit_and_test_all_everything() -> None:
    sampled, seeded, everything = (
        dry_run(*arguments).stdout.splitlines()[-1]
        for arguments in (["test"], ["test", "SEED=7", "CPU_REPORT=out/cpu.txt"], ["test-all"])
    )
    assert "--sample=commit" in sampled.split()
    assert "--cpu-report" not in sampled
    assert {"--sample=7", "--cpu-report=out/cpu.txt"} <= set(seeded.split())
    assert "--sample" not in everything


@pytest.mark.feature("HO-05")
def test_quick_runs_the_tests_of_one_room() -> None:
    words = dry_run("quick", "ROOM=lax").stdout.splitlines()[-1].split()
    assert words[1:3] == ["-m", "pytest"]
    assert {"--sample=commit", "--quick"} <= set(words)
    assert [word for word in words if word.startswith("tests")] == ["tests/lax"]


@pytest.mark.parametrize("arguments", [[], ["ROOM=lxa"], ["ROOM="], ["ROOM=golden"], ["ROOM=%"]])
def test_quick_names_the_rooms_if_it_gets_none_of_them(arguments: list[str]) -> None:
    result = dry_run("quick", *arguments)
    assert result.returncode == 2
    assert "pip install" not in result.stdout  # it fails before anything is installed
    room = arguments[0].removeprefix("ROOM=") if arguments else ""
    message, _, rooms = result.stderr.partition("Rooms: ")
    assert f"ROOM must be one of the rooms below, got '{room}'" in message
    assert {"core", "lax", "numpy", "runtime", "transforms"} <= set(rooms.rstrip().split())
    assert "golden" not in rooms.split()
