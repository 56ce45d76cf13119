"""What the processes of a program know of one another while they run.

Each is connected with process 0 by a wire, a TCP connection, and tells it of all that it does
together with others, before it does it.  Process 0 compares: whoever does something else, or has
gone, stops all of them, and each raises an exception that says where every process was.  So no
program over several processes runs for the first time, and no result of one is read, before all
have said that they run the same.

Whoever waits looks again and again whether the others are still there, so that waiting ends by an
exception, or by an interrupt from the keyboard, where C++ would wait for ever.
"""

from __future__ import annotations

import collections
import contextlib
import itertools
import json
import selectors
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from minijax.core import source
from minijax.core.errors import error

_BEAT = 1.0
"""Seconds between signs of life."""
_PATIENCE = 3.0
"""Seconds after which whoever waits says so."""
_MOST_UNCONFIRMED = 1.0
"""Seconds that a result is held back until all processes have said that they run the same."""
_SHORTEST_PAUSE, _LONGEST_PAUSE = 1e-4, 0.05

Group = tuple[int, ...]


class Place(NamedTuple):
    """The order number of something that a group of processes does together."""

    group: Group
    number: int


class Joint:
    """Something that several processes do together, such as a program over devices of all.

    Attributes:
        name: what it is called.
        group: the numbers of the processes.
        digest: what must be the same in all of them.
        text: lines that tell what it is, of which those that differ are shown.
    """

    __slots__ = ("_is_known", "digest", "group", "name", "text")

    def __init__(self, name: str, group: Sequence[int], digest: str, text: str = "") -> None:
        self.name = name
        self.text = text
        self.group = tuple(sorted(group))
        self.digest = digest
        self._is_known = False

    def begin(self) -> Place | None:
        """Tells the others that this process begins it; waits for them the first time.

        Raises:
            RuntimeError: they do something else, or are gone.
        """
        watch = _state.watch
        if watch is None:
            return None
        if self._is_known:
            return watch.begin(self.group, self.digest)
        place = watch.begin(self.group, self.digest, self.name, text=self.text)
        watch.notes_of(place)
        self._is_known = True
        return place

    def exchange(self, note: str) -> Mapping[int, str]:
        """What each process notes, once all of them do; nothing if none notes anything.

        Raises:
            RuntimeError: they do something else, or are gone.
        """
        watch = _state.watch
        if watch is None:
            return {}
        return watch.notes_of(watch.begin(self.group, self.digest, self.name, note))

    def outcome(self, failure: str) -> Mapping[int, str]:
        """The failures that processes report of what they have begun together, by process."""
        return Joint(f"the end of {self.name}", self.group, f"end {self.digest}").exchange(failure)


class Stop(NamedTuple):
    """Why the processes cannot go on: the parts of an error's text."""

    problem: str
    got: str


class _Said(NamedTuple):
    """What a process says that it begins."""

    digest: str
    what: str
    note: str
    text: str


def _differing(said: Mapping[int, _Said]) -> str:
    """What each process begins, with the first line that is not the same in all of them."""
    rows = itertools.zip_longest(*(each.text.splitlines() for each in said.values()), fillvalue="")
    lines: Sequence[str] = next((row for row in rows if len(set(row)) > 1), [""] * len(said))
    return "\n".join(
        f"process {i}: {each.what}" + (line and f": {line.strip()}")
        for (i, each), line in sorted(zip(said.items(), lines, strict=True))
    )


class Watch:
    """The wires of a process, and a thread that listens to them.

    Args:
        process: the number of this process.
        processes: how many there are.
        wires: connections: process 0 has one with each other process, those with process 0.
        silence: after how many seconds without a sign of life a process counts as gone.
    """

    def __init__(
        self, process: int, processes: int, wires: Mapping[int, socket.socket], silence: float
    ) -> None:
        self.process = process
        self.everyone = tuple(range(processes))
        self.stop: Stop | None = None
        self.was_told = False
        self._is_closed = False
        self._is_ending = False
        self._connected = set(wires)
        self._wires = dict(wires)
        self._silence = silence
        self._lock = threading.RLock()
        self._rests = dict.fromkeys(wires, b"")
        self._heard = dict.fromkeys(wires, time.monotonic())
        self._beaten = 0.0
        self._numbers: collections.Counter[Group] = collections.Counter()
        self._agreed: collections.Counter[Group] = collections.Counter()
        self._notes: dict[Place, dict[int, str]] = {}
        # What process 0 knows.
        self._said: dict[Place, dict[int, _Said]] = {}
        self._known: dict[tuple[int, str], _Said] = {}
        self._last: dict[int, str] = {}
        self._lines: dict[int, str] = {}
        self._waiting: set[int] = set()
        for wire in wires.values():
            wire.settimeout(silence)
        self._thread = threading.Thread(target=self._listen, name="minijax-watch", daemon=True)
        self._thread.start()

    def begin(
        self, group: Group, digest: str, name: str = "", note: str = "", text: str = ""
    ) -> Place:
        """Tells process 0 what this process begins; with a name where that is new.

        Raises:
            RuntimeError: the processes cannot go on.
        """
        self.check()
        line = source.user_line() if name else None
        what = f"{name}, {line}" if line else name
        with self._lock:
            self._numbers[group] += 1
            place = Place(group, self._numbers[group])
            self._tell(0, "begins", *place, digest, what, note, text)
        return place

    def notes_of(self, place: Place, seconds: float | None = None) -> Mapping[int, str]:
        """What the processes have noted that begin something, once all of them do.

        Raises:
            RuntimeError: the processes cannot go on.
        """
        group, number = place
        self.wait_until(lambda: self._agreed[group] >= number, seconds)
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
            error(RuntimeError, "distributed", problem, got=got, fix=fix)

    def wait_until(self, is_done: Callable[[], bool], seconds: float | None = None) -> bool:
        """Waits until something is so, while the others are there; whether it is, in the end.

        Raises:
            RuntimeError: the processes cannot go on.
        """
        begun, says_so = time.monotonic(), False
        try:
            while not is_done():
                self.check()
                waited = time.monotonic() - begun
                if seconds is not None and waited > seconds:
                    return False
                if waited > _PATIENCE and not says_so:
                    says_so = True
                    self._tell(0, "waits", True)
                time.sleep(min(max(waited / 100, _SHORTEST_PAUSE), _LONGEST_PAUSE))
            return True
        finally:
            if says_so:
                self._tell(0, "waits", False)

    def wait_for(self, buffer: Any) -> None:
        """Waits for an array, while the others are there.

        What is a result of all processes is held back until all of them say that they run the same.

        Raises:
            RuntimeError: the processes cannot go on, and nobody was told, or the array is theirs.
        """
        place = place_of(buffer)
        is_ready = buffer.is_ready if hasattr(buffer, "is_ready") else _end_of(buffer)
        if place is None and self.was_told:
            while not is_ready():
                time.sleep(_LONGEST_PAUSE)
            return
        self.wait_until(is_ready)
        if place is not None and self._agreed[place.group] < place.number:
            self.notes_of(place, _MOST_UNCONFIRMED)

    def refuse(self, problem: str, got: str = "") -> None:
        """Stops all processes, unless something else has done so."""
        self._tell(0, "stops", problem, got or self.places())

    def end(self, seconds: float) -> bool:
        """Waits until all processes have come to their end; whether they have in so many seconds.

        Raises:
            RuntimeError: they cannot.
        """
        self._is_ending = True
        self.begin(self.everyone, "the end", "its end")
        return self.wait_until(self._has_ended, seconds)

    def _has_ended(self) -> bool:
        return self._is_ending and self._agreed[self.everyone] == self._numbers[self.everyone]

    def wait_for_others(self, seconds: float) -> None:
        """Waits until no other process is connected, at most for so many seconds."""
        deadline = time.monotonic() + seconds
        while self._connected and time.monotonic() < deadline:
            time.sleep(_LONGEST_PAUSE)

    def close(self) -> None:
        """Ends listening; the others are left without a word."""
        self._is_closed = True
        for wire in self._wires.values():
            with contextlib.suppress(OSError):
                wire.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        for wire in self._wires.values():
            wire.close()

    def _tell(self, process: int, *message: Any) -> None:
        if process == self.process:
            self._hear(process, json.loads(json.dumps(message)))
            return
        # A wire that has broken is heard of as soon as it is listened to.
        with self._lock, contextlib.suppress(OSError):
            self._wires[process].sendall(json.dumps(message).encode() + b"\n")

    def _tell_all(self, group: Group, *message: Any) -> None:
        for process in group:
            self._tell(process, *message)

    def _listen(self) -> None:
        with selectors.DefaultSelector() as selector:
            for process, wire in self._wires.items():
                selector.register(wire, selectors.EVENT_READ, process)
            while not self._is_closed:
                for key, _ in selector.select(_BEAT):
                    if not self._receive(key.data):
                        selector.unregister(key.fileobj)
                if time.monotonic() - self._beaten > _BEAT:
                    self._beat()

    def _receive(self, process: int) -> bool:
        """Hears what a process says; whether it may say more."""
        try:
            text = self._wires[process].recv(1 << 16)
        except OSError:
            text = b""
        self._heard[process] = time.monotonic()
        *lines, self._rests[process] = (self._rests[process] + text).split(b"\n")
        try:
            for line in lines:
                self._hear(process, json.loads(line))
        except (ValueError, TypeError, LookupError):
            self._lose(process, "says what no process of this program would say")
            return False
        if not text:
            self._lose(process, "is gone: its connection was closed")
        return bool(text)

    def _beat(self) -> None:
        self._beaten = time.monotonic()
        frame = sys._current_frames().get(threading.main_thread().ident or 0)
        self._lines[self.process] = source.user_line(frame) or "its end"
        for process in self._wires:
            self._tell(process, "lives", self._lines, self._last)
            if self._beaten - self._heard[process] > self._silence:
                self._lose(process, f"has given no sign of life for {self._silence:g} seconds")

    def _lose(self, process: int, how: str) -> None:
        self._connected.discard(process)
        if not (self._is_closed or self._has_ended()):
            self._hear(0, ["stops", f"process {process} {how}.", self.places()])

    def places(self) -> str:
        """Where every process is, as far as this one knows."""
        return "\n".join(
            f"process {process}: last began {self._last.get(process, 'nothing')}; "
            f"at {self._lines.get(process, 'its beginning')}"
            for process in self.everyone
        )

    def _hear(self, process: int, message: Sequence[Any]) -> None:
        with self._lock:
            match message:
                case ["begins", group, number, *said]:
                    self._compare(process, Place(tuple(group), number), _Said(*said))
                case ["agree", group, number, notes]:
                    place = Place(tuple(group), number)
                    self._agreed[place.group] = number
                    if notes:
                        self._notes[place] = {int(i): note for i, note in notes.items()}
                case ["waits", does_wait]:
                    (self._waiting.add if does_wait else self._waiting.discard)(process)
                    self._find_deadlock()
                case ["stops", problem, got]:
                    if self.stop is None:
                        self.stop = Stop(problem, got)
                        self._tell_all(self.everyone[1:] if self.process == 0 else (), *message)
                case ["lives", lines, last]:
                    others = {int(i): line for i, line in lines.items() if int(i) != self.process}
                    self._lines.update(others)
                    if self.process:
                        self._last.update({int(i): what for i, what in last.items()})
                case _:
                    raise ValueError(message)

    def _compare(self, process: int, place: Place, begun: _Said) -> None:
        """Compares what a process begins with what the others do under the same number."""
        known = self._known.setdefault((process, begun.digest), begun)
        self._last[process] = known.what
        said = self._said.setdefault(place, {})
        said[process] = known._replace(note=begun.note)
        if len({each.digest for each in said.values()}) > 1:
            self.refuse(
                "the processes do not run the same programs in the same order.",
                _differing(said)
                + f"\nas number {place.number} of what processes {place.group} do together",
            )
        elif len(said) == len(place.group):
            del self._said[place]
            notes = {i: each.note for i, each in said.items() if each.note}
            self._tell_all(place.group, "agree", *place, notes)

    def _find_deadlock(self) -> None:
        """Stops all processes if each waits for others."""
        if self._said and len(self._waiting) == len(self.everyone):
            waiting = "\n".join(
                f"process {i}: {each.what}, which processes {place.group} do together"
                for place, said in self._said.items()
                for i, each in said.items()
            )
            self.refuse("every process waits for others.", waiting)


def _end_of(token: Any) -> Callable[[], bool]:
    """Whether a token of C++, which does not say so itself, is ready."""
    waiting = threading.Thread(target=_block, args=(token,), daemon=True)
    waiting.start()
    return lambda: not waiting.is_alive()


def _block(token: Any) -> None:
    # Whoever waits asks the token again, and gets its error.
    with contextlib.suppress(RuntimeError):
        token.block_until_ready()


class _State:
    """The watch of this process, if it is one of several."""

    watch: Watch | None = None


_state = _State()


def start(watch: Watch | None) -> None:
    """Begins to watch the other processes; None: ends it."""
    _state.watch = watch


def current() -> Watch | None:
    """The watch of this process, if it is one of several."""
    return _state.watch


def wait_for(buffer: Any) -> None:
    """Waits for an array if there are other processes, and while they are there.

    Raises:
        RuntimeError: they cannot go on.
    """
    if _state.watch is not None:
        _state.watch.wait_for(buffer)


def place_of(buffer: Any) -> Place | None:
    """The number of what several processes have done together to make an array."""
    return getattr(buffer, "place", None)


def marked(buffer: Any, place: Place | None) -> Any:
    """An array as a result of what several processes do together."""
    if place is not None:
        buffer.place = place
    return buffer
