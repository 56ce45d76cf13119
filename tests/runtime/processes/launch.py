"""Runs a module of this folder in several processes at once, and gathers what they find."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[3]


class Ended(NamedTuple):
    """How a process has ended: its exit status, what it printed, and the facts it reported."""

    status: int
    text: str
    facts: dict[str, Any]


def free_address() -> str:
    """An address on this machine where nobody listens."""
    with socket.create_server(("localhost", 0)) as listener:
        return f"localhost:{listener.getsockname()[1]}"


def run(module: str, *arguments: str, processes: int = 2, seconds: float = 60) -> list[Ended]:
    """Runs a module of this folder in several processes, which all end before this call returns.

    Behind the file where a process reports its facts it gets the arguments.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        address = free_address()
        command = [sys.executable, "-m", f"tests.runtime.processes.{module}"]
        running = [
            _start(command, arguments, folder, address, i, processes) for i in range(processes)
        ]
        deadline = time.monotonic() + seconds
        try:
            statuses = [each.wait(max(deadline - time.monotonic(), 0)) for each in running]
        except subprocess.TimeoutExpired:
            texts = [_read(folder / f"{i}.txt") for i in range(processes)]
            raise AssertionError(
                f"after {seconds} s {module} still runs:\n" + "\n".join(texts)
            ) from None
        finally:
            for each in running:
                if each.poll() is None:
                    # macOS answers EPERM for a group of which only zombies are left.
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.killpg(each.pid, signal.SIGKILL)
                each.wait()
        return [
            Ended(
                status, _read(folder / f"{i}.txt"), json.loads(_read(folder / f"{i}.json") or "{}")
            )
            for i, status in enumerate(statuses)
        ]


def _start(
    command: list[str],
    arguments: Sequence[str],
    folder: Path,
    address: str,
    process: int,
    processes: int,
) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "MINIJAX_COORDINATOR_ADDRESS": address,
        "MINIJAX_NUM_PROCESSES": str(processes),
        "MINIJAX_PROCESS_ID": str(process),
    }
    with (folder / f"{process}.txt").open("wb") as output:
        return subprocess.Popen(
            [*command, str(folder / f"{process}.json"), *arguments],
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            env=environment,
            start_new_session=True,
        )


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def facts_of(module: str) -> list[dict[str, Any]]:
    """The facts that each process reports, none of which has failed."""
    ended = run(module)
    for process, each in enumerate(ended):
        assert each.status == 0, f"process {process}:\n{each.text}"
    return [each.facts for each in ended]
