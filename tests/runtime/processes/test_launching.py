"""`python -m minijax.distributed` starts processes, which find one another, and end together."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from minijax.runtime.processes import launching

pytestmark = pytest.mark.feature("EC-07")

ROOT = Path(__file__).parents[3]
STARTED = str(Path(__file__).parent / "started.py")


def run(command: list[str], seconds: float = 90) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False
    )


def launched(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, "-m", "minijax.distributed", *arguments])


@pytest.mark.slow
def test_processes_are_started_and_find_one_another() -> None:
    ended = launched("-n", "2", STARTED, "a", "-n")

    assert ended.returncode == 0, ended.stderr
    lines = [line for line in ended.stdout.splitlines() if "process " in line]
    assert sorted(lines) == ["0: process 0 of 2: 11 a -n", "1: process 1 of 2: 11 a -n"]


@pytest.mark.slow
def test_open_mpi_starts_processes_that_find_one_another() -> None:
    mpirun = shutil.which("mpirun")
    if mpirun is None or "Open MPI" not in run([mpirun, "--version"]).stdout:
        pytest.skip("no mpirun of Open MPI to start processes with")
    flags = ["--allow-run-as-root", "--oversubscribe", "-n", "2"]
    ended = run([mpirun, *flags, sys.executable, STARTED])

    assert ended.returncode == 0, ended.stderr
    lines = [line for line in ended.stdout.splitlines() if line.startswith("process ")]
    assert sorted(lines) == ["process 0 of 2: 11", "process 1 of 2: 11"]


def test_groups_of_zombies_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    # macOS answers EPERM for the group of a process that has just ended; Linux answers ESRCH.
    def refused(*_: int) -> None:
        asked.append(True)
        raise PermissionError

    asked: list[bool] = []
    monkeypatch.setattr(os, "killpg", refused)
    command = [sys.executable, "-c", "import time; time.sleep(1)"]
    with launching._Processes(command, 1, {}) as processes:
        processes._tell(signal.SIGTERM)
        assert asked == [True]
        processes._wait(10)


FAILS = """\
import os, sys, time
number = os.environ["MINIJAX_PROCESS_ID"]
print("this is", number, flush=True)
if number == "1":
    time.sleep(0.3)
    sys.stderr.write("no line end")
    sys.exit(3)
time.sleep(60)
"""

# Where the tests run in the background, programs begin with interrupts ignored.
WAITS = """\
import os, signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    print("this is", os.environ["MINIJAX_PROCESS_ID"], flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    raise SystemExit(5)
"""


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "program.py"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_the_first_failure_ends_all(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launching, "_SECONDS_AFTER_FAILURE", 0.1)
    begin = time.monotonic()
    status = launching.main(["-n", "3", written(tmp_path, FAILS)])
    out, err = capfd.readouterr()

    assert status == 3
    assert time.monotonic() - begin < 30
    assert sorted(out.splitlines()) == ["0: this is 0", "1: this is 1", "2: this is 2"]
    assert err.splitlines() == ["1: no line end", "process 1 has ended with status 3"] or (
        err.splitlines() == ["process 1 has ended with status 3", "1: no line end"]
    )


def test_a_signal_that_ends_a_process_is_its_status(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = written(tmp_path, "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    assert launching.main(["-n", "1", program]) == 128 + signal.SIGKILL
    assert "process 0 has ended with signal 9" in capfd.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_all_and_leave_nothing(number: int, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "minijax.distributed", "-n", "2", written(tmp_path, WAITS)]
    launcher = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert launcher.stdout is not None
    assert launcher.stderr is not None
    with launcher.stdout, launcher.stderr:
        begun = sorted(launcher.stdout.readline() for _ in range(2))
        launcher.send_signal(number)
        rest = sorted(launcher.stdout.read().splitlines())
        errors = launcher.stderr.read()

    assert begun == [b"0: this is 0\n", b"1: this is 1\n"]
    assert rest == [b"0: interrupted", b"1: interrupted"]
    assert launcher.wait(30) == 128 + number
    # Neither a traceback of the launcher nor a process that outlives it and holds the pipes.
    assert errors == b""


def test_modules_are_run_with_their_arguments(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    written(
        tmp_path, "import os, sys\nprint(sys.argv[1:], os.environ['MINIJAX_NUM_CPU_DEVICES'])\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.fspath(tmp_path))

    assert launching.main(["-n", "1", "--devices", "4", "-m", "program", "x", "--y"]) == 0
    assert capfd.readouterr().out == "0: ['x', '--y'] 4\n"


@pytest.mark.parametrize("words", [[], ["program.py"], ["-n", "0", "program.py"], ["-n", "2"]])
def test_wrong_words_are_explained(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        launching.main(words)
    assert "usage: python -m minijax.distributed" in capsys.readouterr().err
