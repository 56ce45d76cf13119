"""What a check knows about memory: places, copies under way, counts of semaphores, who wrote what.

Only what is certain counts: two places meet if they do whatever the unknown values are.  `at` is
everywhere the traceback of an equation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from minijax.core import source
from minijax.core.errors import message
from minijax.core.refs import AbstractRef
from minijax.lax.reference_indexing import Index, Span
from minijax.lax.semaphores import never


class Unknown:
    """A value that nobody knows before the program runs; the same object is the same value."""

    __slots__ = ()


class Memory:
    """A reference: each object is one that is certainly no other."""

    __slots__ = ("aval", "writes")

    def __init__(self, aval: AbstractRef) -> None:
        self.aval = aval
        self.writes: dict[tuple[int, Region], Any] = {}


class Region(NamedTuple):
    """The elements of a reference at an index, whose operands are integers or unknown."""

    memory: Memory
    where: Index
    operands: tuple[Any, ...]

    def meets(self, other: Region) -> bool:
        """Whether both certainly have an element in common."""
        if self.memory is not other.memory or 0 in (*self.where.shape, *other.where.shape):
            return False
        dims = self.memory.aval.shape
        if self.where.is_whole(dims) or other.where.is_whole(dims):
            return True
        if self.where.has_arrays or other.where.has_arrays:
            return False
        return all(map(_meet, dims, self._parts(), other._parts()))

    def _parts(self) -> list[tuple[Any, int, int]]:
        """For each dimension the first position, how many there are, and their stride."""
        given = iter(self.operands)
        parts = []
        for entry in self.where.entries:
            if type(entry) is Span:
                start = next(given) if entry.start is None else entry.start
                parts.append((start, entry.size, entry.stride))
            else:
                parts.append((next(given), 1, 1))
        return parts


def _meet(n: int, one: tuple[Any, int, int], other: tuple[Any, int, int]) -> bool:
    if (n, 1) in (one[1:], other[1:]) or one[0] is other[0]:
        return True
    if isinstance(one[0], Unknown) or isinstance(other[0], Unknown):
        return False
    first, second = (range(s, s + count * step, step) for s, count, step in (one, other))
    return not set(first).isdisjoint(second)


class Flight(NamedTuple):
    """A copy that was started and not waited for."""

    source: Region
    target: Region
    sem: Memory
    key: tuple[Any, ...]
    started: Any


class Watch:
    """The memory of one core at one point of its program.

    Args:
        name: the program.
        core: the number of the core, where each is followed by itself.

    Attributes:
        is_certain: whether the program certainly comes to this point.
    """

    def __init__(self, name: str, core: int | None) -> None:
        self.name = name
        self.core = core
        self.is_certain = True
        self.flights: list[Flight] = []
        self.counts: dict[Memory, Any] = {}

    def snapshot(self) -> tuple[list[Flight], dict[Memory, Any]]:
        """The state, to come back to."""
        counts = {m: None if c is None else c.copy() for m, c in self.counts.items()}
        return list(self.flights), counts

    @contextmanager
    def perhaps(self, semaphores: Sequence[Memory]) -> Iterator[None]:
        """While this is entered, the program may come to this point once, often, or never.

        Args:
            semaphores: those that it changes here; what they count is not known any more.
        """
        before = self.is_certain
        self.is_certain = False
        self.forget(semaphores)
        state = self.snapshot()
        yield
        self.flights, self.counts = state
        self.is_certain = before

    def forget(self, semaphores: Iterable[Memory]) -> None:
        """No longer claims to know what semaphores count, and which copies they are for."""
        for sem in semaphores:
            self.counts[sem] = None
            self.flights = [f for f in self.flights if f.sem is not sem]

    def make(self, aval: AbstractRef) -> Memory:
        """A new reference."""
        memory = Memory(aval)
        if aval.kind is not None:
            self.counts[memory] = np.zeros(aval.shape, np.int64)
        return memory

    def free(self, memory: Memory, at: Any) -> None:
        """Ends the life of a reference.

        Raises:
            ValueError: a copy to or from it, or that its semaphore is for, was not waited for.
        """
        for flight in self.flights:
            if memory in (flight.sem, flight.source.memory, flight.target.memory):
                raise self._error("scratch memory ends its life while a copy needs it.", flight, at)

    def read(self, region: Region, at: Any) -> None:
        """A place is read.

        Raises:
            ValueError: a copy that nobody waited for writes it.
        """
        for flight in self.flights:
            if region.meets(flight.target):
                raise self._error("a place is read while a copy writes it.", flight, at)

    def write(self, region: Region, at: Any) -> None:
        """A place is written.

        Raises:
            ValueError: a copy that nobody waited for writes or reads it, or another core writes it.
        """
        for flight in self.flights:
            for end, does in ((flight.target, "writes"), (flight.source, "reads")):
                if region.meets(end):
                    raise self._error(f"a place is written while a copy {does} it.", flight, at)
        if self.core is None or not self.is_certain:
            return
        writes = region.memory.writes
        for (core, other), before in writes.items():
            if core != self.core and region.meets(other):
                raise self._race(region.memory, core, before, at)
        writes[self.core, region] = at

    def _race(self, memory: Memory, core: int, before: Any, at: Any) -> ValueError:
        return ValueError(
            message(
                self.name,
                f"the cores {core} and {self.core} write to one place, in no order.",
                got=f"{memory.aval.str_short()}, written by core {core} at "
                f"{source.summarize(before)}",
                fix="give each core a part of its own: ref.at[ds(core * n, n)]",
                at=source.summarize(at),
            )
        )

    def start(self, source: Region, target: Region, sem: Region, size: int, at: Any) -> None:
        """A copy starts."""
        self.read(source, at)
        self.write(target, at)
        self.signal(sem, size)
        self.flights.append(Flight(source, target, sem.memory, sem.operands, at))

    def land(self, target: Region, sem: Region, size: int, at: Any) -> None:
        """A copy is waited for.

        Raises:
            ValueError: fewer bytes than it brings are on their way.
        """
        fix = "start the copy once before each wait"
        self.wait(sem, size, at, "AsyncCopyDescriptor.wait", fix)
        same = [f for f in self.flights if f.sem is sem.memory and f.key == sem.operands]
        if same:
            done = next((f for f in same if f.target == target), same[0])
            self.flights.remove(done)
            return
        self.flights = [
            f for f in self.flights if f.sem is not sem.memory or _differ(f.key, sem.operands)
        ]

    def signal(self, sem: Region, amount: Any) -> None:
        """A semaphore's count grows."""
        counts = self.counts.get(sem.memory)
        if counts is None or not _known(*sem.operands, amount):
            self.counts[sem.memory] = None
        else:
            counts[sem.operands] += int(amount)

    def wait(self, sem: Region, amount: Any, at: Any, what: Any, fix: str) -> None:
        """A semaphore's count sinks.

        Raises:
            ValueError: it is known, and too low.
        """
        counts = self.counts.get(sem.memory)
        if counts is None or not _known(*sem.operands, amount):
            self.counts[sem.memory] = None
            return
        count = int(counts[sem.operands])
        if count < int(amount):
            raise never(what, sem.memory.aval, count, int(amount), fix, source.summarize(at))
        counts[sem.operands] -= int(amount)

    def _error(self, problem: str, flight: Flight, at: Any) -> ValueError:
        return ValueError(
            message(
                self.name,
                problem,
                got=f"a copy to {flight.target.memory.aval.str_short()}, started at "
                f"{source.summarize(flight.started)}",
                fix="call .wait() of the copy first",
                at=source.summarize(at),
            )
        )


def _known(*values: Any) -> bool:
    return not any(isinstance(x, Unknown) for x in values)


def _differ(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether two semaphores of an array are certainly not the same one."""
    return any(_known(a, b) and a != b for a, b in zip(one, other, strict=True))
