"""The interface of a watch, which compares what several processes do together.

`runtime/processes/watch.py` provides the watch.

Where a process is alone there is no watch, and nothing is told.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from minijax.core import source

Group = tuple[int, ...]
Place = tuple[Group, int]
"""The order number of something that a group of processes does together."""


class Said(NamedTuple):
    """What a process says of what it begins.

    Attributes:
        digest: what must be the same in all processes.
        name: what it is called, and on which line of the user's program it begins.
        text: lines that tell what it is.
        note: what the other processes shall know; None if this one does not wait for them.
    """

    digest: str
    name: str = ""
    text: str = ""
    note: str | None = None


class Joint:
    """Something that several processes do together, such as a program over devices of all.

    Attributes:
        name: what it is called.
        group: the numbers of the processes.
        digest: what must be the same in all of them.
        text: lines that tell what it is, of which the first that differs is shown.
    """

    __slots__ = ("_is_known", "digest", "group", "name", "text")

    def __init__(self, name: str, group: Sequence[int], digest: str, text: str = "") -> None:
        self.name = name
        self.group = tuple(sorted(group))
        self.digest = digest
        self.text = text
        self._is_known = False

    def begin(self) -> None:
        """Tells the others that this process begins it; waits for them the first time.

        Raises:
            RuntimeError: they do something else, or are gone.
        """
        watch = _state.watch
        if watch is None:
            return
        if self._is_known:
            watch.begin(self.group, Said(self.digest))
        else:
            self.exchange("")
            self._is_known = True

    def exchange(self, note: str) -> Mapping[int, str]:
        """What each process notes that notes something, once all of them have come here.

        Raises:
            RuntimeError: they do something else, or are gone.
        """
        watch = _state.watch
        if watch is None:
            return {}
        name = ", ".join(filter(None, (self.name, source.user_line())))
        said = Said(self.digest, name, self.text, note)
        return watch.notes_of(watch.begin(self.group, said))

    def outcome(self, failure: str) -> Mapping[int, str]:
        """The failures that processes report of what they have begun together, by process."""
        return Joint(f"the end of {self.name}", self.group, f"end {self.digest}").exchange(failure)


class _State:
    """The watch of this process, if it is one of several, and who waits for arrays first."""

    watch: Any = None
    waiter: Any = None


_state = _State()


def start(watch: Any) -> None:
    """Begins to watch the other processes; None: ends it."""
    _state.watch = watch
    _state.waiter = None if watch is None else watch.wait_for


@contextlib.contextmanager
def waiting_by(wait: Callable[[Any, Any], None]) -> Iterator[None]:
    """Inside, `wait` is told of each array that is waited for, and who waited before."""
    before = _state.waiter
    _state.waiter = lambda buffer: wait(buffer, before)
    try:
        yield
    finally:
        _state.waiter = before


def current() -> Any:
    """The watch of this process, if it is one of several."""
    return _state.watch


def exchanging_data() -> contextlib.AbstractContextManager[None]:
    """While a process begins to listen for the data of collectives."""
    return contextlib.nullcontext() if _state.watch is None else _state.watch.exchanging_data()


def wait_for(buffer: object) -> None:
    """Waits for an array if there are other processes."""
    if _state.waiter is not None:
        _state.waiter(buffer)


def explain(caught: Exception) -> None:
    """Raises an exception that says more in place of XLA's, if another process is gone.

    Raises:
        RuntimeError: one is.
    """
    if _state.watch is not None:
        _state.watch.explain(caught)
