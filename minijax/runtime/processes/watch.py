"""What the processes of a program know of one another while they run.

Each is connected with process 0 by a wire, a TCP connection, and tells it of all that it does
together with others, before it does it.  Process 0 compares: whoever does something else, or has
gone, stops all of them, and each raises an exception that says where every process was.  A program
over several processes runs for the first time once all have said that they run the same; later
runs are told of together, several times in a second.

Computations that wait for data of a process that has gone would wait for ever.  They are ended by
breaking the connections that bring it.
"""

from __future__ import annotations

import _thread
import collections
import contextlib
import itertools
import json
import logging
import os
import socket
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from minijax.core import native, source, system
from minijax.core.errors import error
from minijax.runtime.watch import Group, Joint, Place, Said

_BEAT = 10
"""How often what was begun is told of between two signs of life."""
_PAUSE = 0.1
"""Seconds from one time to the next."""
_PATIENCE = 3.0
"""Seconds after which who waits for others says so."""
_SECONDS_TO_WARN = 10.0
_SECONDS_TO_SETTLE = 1.0
_SHORTEST_PAUSE, _LONGEST_PAUSE = 1e-4, 0.05

logger = logging.getLogger("minijax")


class Wire:
    """A connection of two processes, which say lists to each other, as lines of JSON."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._reader = connection.makefile("rb")

    def say(self, *words: Any) -> None:
        """Says something.

        Raises:
            OSError: the other one is gone.
        """
        self._connection.sendall(json.dumps(words).encode() + b"\n")

    def hear(self, seconds: float | None = None, most: int = -1) -> list[Any]:
        """What the other one says, which is a line of at most so many bytes.

        Raises:
            OSError: the other one is gone, or does not say anything for so many seconds.
            ValueError: it says what no process would say.
        """
        self._connection.settimeout(seconds)
        line = self._reader.readline(most)
        if not line:
            raise ConnectionError("the connection was closed")
        try:
            words = json.loads(line)
        except RecursionError:
            words = None
        if not isinstance(words, list):
            raise ValueError(line[:60])
        return words

    def has_ended(self) -> bool:
        """Whether the other one, which has nothing to say now, is gone."""
        self._connection.settimeout(0)
        try:
            return not self._connection.recv(1, socket.MSG_PEEK)
        except OSError as caught:
            return not isinstance(caught, BlockingIOError)

    def is_local(self) -> bool:
        """Whether both processes are on one machine."""
        return self._connection.getpeername()[0] == self._connection.getsockname()[0]

    def end(self) -> None:
        """Ends the connection, for who waits for something on it, too."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Ends the connection, on which nobody waits."""
        self._reader.close()
        self._connection.close()


class Ledger:
    """What is known of what all processes do; process 0 knows most.

    Attributes:
        last: what each process has begun last.
        lines: the line of the user's program where each process is.
    """

    def __init__(self) -> None:
        self.last: dict[int, str] = {}
        self.lines: dict[int, str] = {}
        self._known: dict[tuple[int, str], Said] = {}
        self._open: dict[Place, dict[int, Said]] = {}

    def begin(self, process: int, place: Place, said: Said) -> Mapping[int, Said] | None:
        """What all processes of a group say under one number, once all of them do.

        Raises:
            ValueError: two say something else; the text tells what each of them says.
        """
        known = self._known.setdefault((process, said.digest), said)
        self.last[process] = known.name
        found = self._open.setdefault(place, {})
        found[process] = known._replace(note=said.note)
        if len({each.digest for each in found.values()}) > 1:
            raise ValueError(self._differing(place, found))
        return self._open.pop(place) if len(found) == len(place[0]) else None

    def waiting(self) -> str:
        """What some processes have begun and others have not."""
        return "\n".join(
            f"process {process}: {said.name}, which processes {place[0]} do together"
            for place, found in self._open.items()
            for process, said in found.items()
        )

    def place(self, process: int) -> str:
        """Where a process is."""
        last, line = self.last.get(process, "nothing"), self.lines.get(process, "its beginning")
        return f"process {process}: last began {last}; at {line}"

    def _differing(self, place: Place, found: Mapping[int, Said]) -> str:
        """What each process begins, with the first line that is not the same in all of them."""
        texts = [said.text.splitlines() for said in found.values()]
        rows = itertools.zip_longest(*texts, fillvalue="")
        lines: Sequence[str] = next((row for row in rows if len(set(row)) > 1), [""] * len(found))
        each = {process: self.place(process) for process in place[0]}
        for (process, said), line in zip(found.items(), lines, strict=True):
            each[process] = f"process {process}: {said.name}" + (line and f": {line.strip()}")
        number = f"as number {place[1]} of what processes {place[0]} do together"
        return "\n".join([*each.values(), number])


def _pauses(is_done: Callable[[], bool]) -> Iterator[float]:
    """How long it has taken so far, again and again until something is done."""
    begun = time.monotonic()
    while not is_done():
        waited = time.monotonic() - begun
        yield waited
        time.sleep(min(max(waited / 100, _SHORTEST_PAUSE), _LONGEST_PAUSE))


class Waiting:
    """How long the main thread waits.

    Attributes:
        since: since when it does.
    """

    def __init__(self) -> None:
        self.since = float("inf")
        self._has_woken = False

    @contextlib.contextmanager
    def noted(self) -> Iterator[None]:
        """Context manager: inside it, the thread waits, if it is the main one."""
        if threading.get_ident() == threading.main_thread().ident:
            self.since = time.monotonic()
        try:
            yield
        finally:
            self.since = float("inf")

    def wait_for(self, buffer: Any) -> bool:
        """Waits for an array; whether another thread has woken this one before it came."""
        # Whoever uses the array asks again, and gets its error.
        with self.noted(), contextlib.suppress(RuntimeError):
            try:
                native.block_until_ready(buffer)
            except KeyboardInterrupt:
                is_woken, self._has_woken = self._has_woken, False
                if not is_woken:
                    raise
                return True
        return False

    def wake(self) -> None:
        """Ends the waiting of the main thread for an array."""
        self._has_woken = True
        _thread.interrupt_main()


class Listener:
    """The wires of a process, and a thread that listens to them.

    Args:
        process: the number of this process.
        processes: how many there are.
        wires: connections: process 0 has one with each other process, those with process 0.
        silence: after how many seconds without a sign of life a process counts as gone.

    Attributes:
        stop: why the processes cannot go on, and where each was.
        was_told: whether that has been raised.
        data_at: the addresses where processes listen for data of collectives.
    """

    def __init__(
        self, process: int, processes: int, wires: Mapping[int, Wire], silence: float
    ) -> None:
        self.process = process
        self.everyone = tuple(range(processes))
        self.stop: tuple[str, str] | None = None
        self.was_told = False
        self.data_at: set[str] = set()
        self._is_ending = self._is_closed = False
        self._wires = dict(wires)
        self._silence = silence
        self._lock = threading.RLock()
        self._heard = dict.fromkeys(wires, time.monotonic())
        self._numbers: collections.Counter[Group] = collections.Counter()
        self._agreed: collections.Counter[Group] = collections.Counter()
        self._notes: dict[Place, dict[int, str]] = {}
        self._ledger = Ledger()
        self._wait = Waiting()
        self._waiting: set[int] = set()
        self._peers: dict[int, int] = {}
        self._pending: list[Any] = []
        self._threads = [_started(self._listen, *each) for each in wires.items()]
        _started(self._live)

    def _tell_of_pending(self) -> None:
        with self._lock:
            pending, self._pending = self._pending, []
            if pending:
                self._tell(0, "begins", *pending)

    def refuse(self, problem: str, got: str = "") -> None:
        """Stops all processes, unless something else has done so."""
        self._tell(0, "stops", problem, got or self.places())

    def _has_ended(self) -> bool:
        return self._is_ending and self._agreed[self.everyone] == self._numbers[self.everyone]

    def places(self) -> str:
        """Where every process is, as far as this one knows."""
        return "\n".join(map(self._ledger.place, self.everyone))

    def close(self) -> None:
        """Ends listening."""
        self._is_closed = True
        for wire in self._wires.values():
            wire.end()

    def _tell(self, process: int, *message: Any) -> None:
        if process == self.process:
            self._hear(process, json.loads(json.dumps(message)))
            return
        with self._lock:
            try:
                self._wires[process].say(*message)
            except OSError:
                # Whoever listens hears that it has broken.
                self._wires[process].end()

    def _listen(self, process: int, wire: Wire) -> None:
        how = "is gone: its connection was closed"
        try:
            while True:
                self._hear(process, wire.hear())
                self._heard[process] = time.monotonic()
        except OSError:
            pass
        except (ValueError, TypeError, LookupError, AttributeError):
            how = "says what no process of this program would say"
        self._lose(process, how)
        wire.close()

    def _live(self) -> None:
        """Tells the others again and again that this process lives, and looks whether they do."""
        before = time.monotonic()
        for number in itertools.count():
            time.sleep(_PAUSE if number else 0)
            self._tell_of_pending()
            if self._is_closed:
                return
            if number % _BEAT:
                continue
            now = time.monotonic()
            frame = sys._current_frames().get(threading.main_thread().ident or 0)
            self._ledger.lines[self.process] = source.user_line(frame) or "its end"
            waited, last_waited = now - self._wait.since, before - self._wait.since
            if last_waited < _SECONDS_TO_WARN <= waited:
                logger.warning("Waiting for other processes for %d s:\n%s", waited, self.places())
            for process in {0, *self._wires}:
                facts = os.getpid(), waited > _PATIENCE, self._ledger.lines, self._ledger.last
                self._tell(process, "lives", *facts)
            for process, heard in list(self._heard.items()):
                if now - before > _PATIENCE:
                    # This process was the one that stood still.
                    self._heard[process] = now
                elif now - heard > _PATIENCE:
                    wire, their_id = self._wires[process], self._peers.get(process)
                    how = _how_silent(wire, their_id, now - heard, self._silence)
                    if how:
                        self._lose(process, how)
            before = now

    def _lose(self, process: int, how: str) -> None:
        self._heard.pop(process, None)
        if not self._has_ended():
            self._hear(0, ["stops", f"process {process} {how}.", self.places()])
            self._wires[process].end()

    def _hear(self, process: int, message: Sequence[Any]) -> None:
        with self._lock:
            match message:
                case ["begins", *several]:
                    for group, number, *said in several:
                        self._compare(process, (tuple(group), number), Said(*said))
                case ["agree", group, number, notes]:
                    place = (tuple(group), number)
                    self._agreed[place[0]] = number
                    if notes:
                        self._notes[place] = {int(i): note for i, note in notes.items()}
                case ["stops", problem, got]:
                    if self.stop is None:
                        self.stop = problem, got
                        _started(self._end_waiting)
                        for other in self._wires:
                            self._tell(other, *message)
                case ["lives", number, is_waiting, lines, last]:
                    self._peers[process] = number
                    self._ledger.lines.update((int(i), line) for i, line in lines.items())
                    if self.process:
                        self._ledger.last.update((int(i), name) for i, name in last.items())
                    self._find_deadlock(process, is_waiting)
                case _:
                    raise ValueError(message)

    def _compare(self, process: int, place: Place, said: Said) -> None:
        try:
            found = self._ledger.begin(process, place, said)
        except ValueError as caught:
            self.refuse(
                "the processes do not run the same programs in the same order.", str(caught)
            )
            return
        if found and any(each.note is not None for each in found.values()):
            notes = {i: each.note for i, each in found.items() if each.note}
            for other in place[0]:
                self._tell(other, "agree", *place, notes)

    def _end_waiting(self) -> None:
        """Has whoever waits for data that will not come fail."""
        # Gloo forgets who begins to wait just then, so what can come to its end may do so before.
        time.sleep(_SECONDS_TO_SETTLE)
        since = self._wait.since
        _break(self.data_at)
        time.sleep(_PATIENCE)
        if not self.was_told and self._wait.since == since < time.monotonic():
            self._wait.wake()

    def _find_deadlock(self, process: int, is_waiting: bool) -> None:
        """Stops all processes if each waits for others."""
        (self._waiting.add if is_waiting else self._waiting.discard)(process)
        waiting = self._ledger.waiting()
        if waiting and len(self._waiting) == len(self.everyone):
            self.refuse("every process waits for others.", waiting)


class Watch(Listener):
    """What a process tells the others of what it does with them, and waits for."""

    @contextlib.contextmanager
    def exchanging_data(self) -> Iterator[None]:
        """Tells the others where this process begins to listen for data, and hears it of them.

        Raises:
            RuntimeError: a process does not come.
        """
        before = _listening()
        yield
        found = Joint("devices", self.everyone, "devices").exchange("".join(_listening() - before))
        self.data_at = set(found.values())

    def begin(self, group: Group, said: Said) -> Place:
        """Tells process 0 what this process begins.

        Raises:
            RuntimeError: the processes cannot go on.
        """
        self.check()
        with self._lock:
            self._numbers[group] += 1
            place = group, self._numbers[group]
            self._pending.append((*place, *said))
        if said.note is not None:
            self._tell_of_pending()
        return place

    def notes_of(self, place: Place) -> Mapping[int, str]:
        """What processes have noted of something, once all have begun it.

        Raises:
            RuntimeError: the processes cannot go on.
        """
        self.wait_until(lambda: self._agreed[place[0]] >= place[1])
        return self._notes.pop(place, {})

    def check(self) -> None:
        """Refuses to go on where not all processes can.

        Raises:
            RuntimeError: one is gone, or they do not do the same.
        """
        if self.stop is not None:
            self.was_told = True
            problem, got = self.stop
            fix = "save what this process has, and start all processes again"
            error(RuntimeError, "distributed", problem, got=got, fix=fix, cause=None)

    def wait_until(self, is_done: Callable[[], bool], seconds: float | None = None) -> bool:
        """Waits until something is so, or for so many seconds; whether it is so.

        Raises:
            RuntimeError: the processes cannot go on.
        """
        with self._wait.noted():
            for waited in _pauses(is_done):
                self.check()
                if seconds is not None and waited > seconds:
                    return False
        return True

    def wait_for(self, buffer: Any) -> None:
        """Waits for an array, and lets the others know if that takes long.

        Raises:
            RuntimeError: the processes cannot go on, and the array does not come.
        """
        if self._wait.wait_for(buffer):
            self.check()

    def explain(self, caught: Exception) -> None:
        """Raises an exception that says more in place of XLA's of a broken connection.

        Raises:
            RuntimeError: a process is gone.
        """
        if "Gloo" in str(caught):
            # What is known here is heard of by the wires, too.
            self.wait_until(lambda: False, _SECONDS_TO_WARN)

    def end(self, seconds: float) -> bool:
        """Waits until all processes have come to their end; whether they have in so many seconds.

        Raises:
            RuntimeError: they cannot.
        """
        self._is_ending = True
        self.begin(self.everyone, Said("end", "its end", note=""))
        return self.wait_until(self._has_ended, seconds)

    def wait_for_others(self, seconds: float) -> None:
        """Waits until no other process is connected, at most for so many seconds."""
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(deadline - time.monotonic(), 0))


def _how_silent(wire: Wire, number: int | None, seconds: float, most: float) -> str:
    """Why a process counts as gone that has not been heard for some seconds, if it does."""
    if seconds > most:
        return f"has given no sign of life for {most:g} seconds"
    return "has been stopped" if wire.is_local() and system.is_stopped(number) else ""


def _started(function: Callable[..., object], *args: Any) -> threading.Thread:
    thread = threading.Thread(target=function, args=args, name="minijax-watch", daemon=True)
    thread.start()
    return thread


def _connections() -> Iterator[socket.socket]:
    """The TCP sockets of this process, whoever has made them."""
    for descriptor in system.open_descriptors():
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                with socket.socket(fileno=os.dup(descriptor)) as found:
                    if found.family in (socket.AF_INET, socket.AF_INET6):
                        yield found


def _listening() -> set[str]:
    """The addresses at which this process listens."""
    option = socket.SOL_SOCKET, socket.SO_ACCEPTCONN
    return {str(found.getsockname()) for found in _connections() if found.getsockopt(*option)}


def _break(addresses: set[str]) -> None:
    """Breaks the connections by which collectives exchange data: who waits for data fails."""
    for found in _connections():
        with contextlib.suppress(OSError):
            if {str(found.getsockname()), str(found.getpeername())} & addresses:
                found.shutdown(socket.SHUT_RDWR)
