"""Starts a program in several processes of this machine: `python -m minijax.distributed`.

Input: a command line.  Output: what the processes print, each line with the number of its process;
the status of the first that fails, which ends all.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import IO, NoReturn

_SECONDS_AFTER_FAILURE = 2.0
"""How long the others may go on: most often they raise an error that names who has failed."""

_SECONDS_TO_END = 5.0
"""How long a process may take to end once it is told to."""

_PAUSE = 0.02
_DESCRIPTION = (
    "Starts a program in several processes of this machine, which meet where it calls "
    "distributed.initialize()."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Starts a program in several processes, as `python -m minijax.distributed` does.

    Each line that they print has the number of its process before it.  The first process that
    fails ends all, as does Ctrl-C.

    Source:     minijax's own.

    Args:
        arguments: the words of the command line; those of this process if absent.

    Returns:
        the exit status: that of the first process that failed; of one that a signal has ended, 128
        and the number of the signal.

    Example:
        >>> jax.distributed.main(["-n", "0", "program.py"])
        Traceback (most recent call last):
        SystemExit: 2
    """
    parser = argparse.ArgumentParser("python -m minijax.distributed", description=_DESCRIPTION)
    parser.add_argument("-n", type=_count, required=True, help="how many processes to start")
    parser.add_argument("--devices", type=_count, help="how many host devices each process has")
    parser.add_argument("-m", dest="is_module", action="store_true", help="run a module")
    parser.add_argument("program", help="a file, or the name of a module after -m")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what the program is given")
    given = parser.parse_args(arguments)
    flag = ["-m"] if given.is_module else []
    command = [sys.executable, *flag, given.program, *given.arguments]
    devices = {} if given.devices is None else {"MINIJAX_NUM_CPU_DEVICES": str(given.devices)}
    with _Processes(command, given.n, devices) as processes:
        return processes.wait()


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of at least 1")
    return int(text)


class _Processes:
    """Processes that run one program; as a context manager, none outlives it."""

    def __init__(self, command: Sequence[str], count: int, variables: dict[str, str]) -> None:
        self._command = command
        self._count = count
        with socket.create_server(("localhost", 0)) as listener:
            port = listener.getsockname()[1]
        self._variables = {
            **os.environ,
            **variables,
            "MINIJAX_COORDINATOR_ADDRESS": f"localhost:{port}",
            "MINIJAX_NUM_PROCESSES": str(count),
            "PYTHONUNBUFFERED": "1",
        }
        self._running: list[subprocess.Popen[bytes]] = []
        self._readers: list[threading.Thread] = []
        self._printing = threading.Lock()

    def __enter__(self) -> _Processes:
        try:
            for number in range(self._count):
                self._start(number)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _start(self, number: int) -> None:
        process = subprocess.Popen(
            self._command,
            env={**self._variables, "MINIJAX_PROCESS_ID": str(number)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Ctrl-C comes to this process alone, which tells the others.
            start_new_session=True,
        )
        self._running.append(process)
        for pipe, out in ((process.stdout, sys.stdout), (process.stderr, sys.stderr)):
            assert pipe is not None
            reader = threading.Thread(target=self._pass_on, args=(number, pipe, out), daemon=True)
            reader.start()
            self._readers.append(reader)

    def _pass_on(self, number: int, pipe: IO[bytes], out: IO[str]) -> None:
        with pipe:
            for line in pipe:
                text = line.decode(errors="backslashreplace").rstrip("\n")
                self._say(f"{number}: {text}", out)

    def _say(self, text: str, out: IO[str]) -> None:
        with self._printing:
            out.write(f"{text}\n")
            out.flush()

    def wait(self) -> int:
        """The exit status once all have ended: that of the first that failed."""
        with _told_by_signals():
            try:
                while (status := self._first_failure()) is None and self._are_running():
                    time.sleep(_PAUSE)
                if status is None:
                    return 0
                self._wait(_SECONDS_AFTER_FAILURE)
                return status
            except _SignalError as came:
                self._tell(signal.SIGINT)
                self._wait(_SECONDS_TO_END)
                return 128 + came.number

    def _first_failure(self) -> int | None:
        for number, process in enumerate(self._running):
            status = process.poll()
            if status:
                how = f"signal {-status}" if status < 0 else f"status {status}"
                self._say(f"process {number} has ended with {how}", sys.stderr)
                return 128 - status if status < 0 else status
        return None

    def _are_running(self) -> bool:
        return any(process.poll() is None for process in self._running)

    def _wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self._are_running() and time.monotonic() < deadline:
            time.sleep(_PAUSE)

    def _tell(self, number: int) -> None:
        """Sends a signal to all that run, and to what they have started."""
        for process in self._running:
            if process.poll() is None:
                # macOS answers EPERM for a group of which only zombies are left, Linux ESRCH.
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, number)

    def _end(self) -> None:
        """Ends what still runs."""
        if self._are_running():
            self._tell(signal.SIGTERM)
            self._wait(_SECONDS_TO_END)
            self._tell(signal.SIGKILL)
        for process in self._running:
            process.wait()
        for reader in self._readers:
            reader.join(_SECONDS_TO_END)


class _SignalError(BaseException):
    """A signal that asks to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextlib.contextmanager
def _told_by_signals() -> Iterator[None]:
    """Inside, the signals that ask to end are exceptions, once."""

    def tell(number: int, _: FrameType | None) -> NoReturn:
        for each in before:
            signal.signal(each, signal.SIG_IGN)
        raise _SignalError(number)

    before = {x: signal.getsignal(x) for x in (signal.SIGINT, signal.SIGTERM)}
    try:
        for number in before:
            signal.signal(number, tell)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
