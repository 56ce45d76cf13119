"""Finds out before a program runs on cores whether it must go wrong there.

Input: the jaxpr of one core.  Output: nothing, or an error at the line that is wrong.  The program
is followed with the values that are known, which are few: literals, and thoroughly also the number
of the core and what is computed from it, such as the steps of loops.  Of what depends on the
contents of references nothing is claimed.

What is known about memory are places, copies under way, counts of semaphores, and who wrote what.
Only what is certain counts: two places meet if they do whatever the unknown values are.  `at` is
everywhere the traceback of an equation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, NoReturn

import numpy as np

from minijax.core import axes, config, refs, source
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal
from minijax.core.native import Buffer, Traceback
from minijax.core.refs import AbstractRef
from minijax.core.trace import current
from minijax.lax import semaphores
from minijax.lax.reference_indexing import Index, Span
from minijax.lax.semaphores import never
from minijax.lowering import eager


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
    started: Traceback | None


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

    def make(self, aval: Any) -> Memory:
        """A new reference."""
        memory = Memory(aval)
        if aval.is_semaphore:
            self.counts[memory] = np.zeros(aval.shape, np.int64)
        return memory

    def free(self, memory: Memory, at: Traceback | None) -> None:
        """Ends the life of a reference.

        Raises:
            ValueError: a copy to or from it, or that its semaphore is for, was not waited for.
        """
        for flight in self.flights:
            if memory in (flight.sem, flight.source.memory, flight.target.memory):
                self._refuse("scratch memory ends its life while a copy needs it.", flight, at)

    def read(self, region: Region, at: Traceback | None) -> None:
        """A place is read.

        Raises:
            ValueError: a copy that nobody waited for writes it.
        """
        for flight in self.flights:
            if region.meets(flight.target):
                self._refuse("a place is read while a copy writes it.", flight, at)

    def write(self, region: Region, at: Traceback | None) -> None:
        """A place is written.

        Raises:
            ValueError: a copy that nobody waited for writes or reads it, or another core writes it.
        """
        for flight in self.flights:
            for end, does in ((flight.target, "writes"), (flight.source, "reads")):
                if region.meets(end):
                    self._refuse(f"a place is written while a copy {does} it.", flight, at)
        if self.core is None or not self.is_certain:
            return
        writes = region.memory.writes
        for (core, other), before in writes.items():
            if core != self.core and region.meets(other):
                written = f"written by core {core} at {source.summarize(before)}"
                problem = f"the cores {core} and {self.core} write to one place, in no order."
                got = f"{region.memory.aval.str_short()}, {written}"
                fix = "give each core a part of its own: ref.at[ds(core * n, n)]"
                error(ValueError, self.name, problem, got=got, fix=fix, at=source.summarize(at))
        writes[self.core, region] = at

    def start(
        self, source: Region, target: Region, sem: Region, size: int, at: Traceback | None
    ) -> None:
        """A copy starts."""
        self.read(source, at)
        self.write(target, at)
        self.signal(sem, size)
        self.flights.append(Flight(source, target, sem.memory, sem.operands, at))

    def land(self, target: Region, sem: Region, size: int, at: Traceback | None) -> None:
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

    def wait(self, sem: Region, amount: Any, at: Traceback | None, what: Any, fix: str) -> None:
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

    def _refuse(self, problem: str, flight: Flight, at: Traceback | None) -> NoReturn:
        started = source.summarize(flight.started)
        got = f"a copy to {flight.target.memory.aval.str_short()}, started at {started}"
        fix = "call .wait() of the copy first"
        error(ValueError, self.name, problem, got=got, fix=fix, at=source.summarize(at))


def _known(*values: Any) -> bool:
    return not any(isinstance(x, Unknown) for x in values)


def _differ(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether two semaphores of an array are certainly not the same one."""
    return any(_known(a, b) and a != b for a, b in zip(one, other, strict=True))


# What decides where a program reads, writes and goes is small.
_MOST_ELEMENTS = 64


def check(name: str, closed: ClosedJaxpr, cores: int, *, thoroughly: bool) -> None:
    """Refuses a program that goes wrong whatever its data are.

    Args:
        name: the program, for messages.
        closed: the jaxpr of one core, whose last argument is the number of the core.
        cores: how many there are.
        thoroughly: whether to follow each core, and every step of its loops.

    Raises:
        ValueError: a place is used while a copy needs it, a wait would never end, or, thoroughly,
            two cores write one place.
    """
    *outer, _ = closed.in_avals
    given = [Memory(a) if type(a) is refs.AbstractRef else Unknown() for a in outer]
    if not thoroughly:
        _Follower(Watch(name, None), False).run(closed, [*given, Unknown()])
        return
    for core in range(cores):
        _Follower(Watch(name, core), True).run(closed, [*given, np.int32(core)])


class _Follower:
    """Follows a program, with known values, unknown ones, and memory in place of references.

    A method `on_NAME` follows the operation of that name.
    """

    def __init__(self, watch: Watch, thoroughly: bool) -> None:
        self.watch = watch
        self.thoroughly = thoroughly

    def run(self, closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
        """The results of a program."""
        jaxpr = closed.jaxpr
        values: dict[Any, Any] = dict(zip(jaxpr.invars, args, strict=True))
        values.update(zip(jaxpr.constvars, map(_value_of, closed.consts), strict=True))

        def read(atom: object) -> Any:
            return _value_of(atom.value) if type(atom) is Literal else values[atom]

        for eqn in jaxpr.eqns:
            values.update(
                zip(eqn.outvars, self._step(eqn, list(map(read, eqn.invars))), strict=True)
            )
        return list(map(read, jaxpr.outvars))

    def _step(self, eqn: Eqn, args: list[Any]) -> Sequence[Any]:
        rule = getattr(self, f"on_{eqn.primitive.name}", None)
        if rule is not None:
            followed: Sequence[Any] = rule(eqn, args)
            return followed
        if refs.makes_references.of(eqn.primitive):
            return [self.watch.make(v.aval) for v in eqn.outvars]
        inner = eqn.params.get("jaxpr")
        if isinstance(inner, ClosedJaxpr) and len(inner.in_avals) == len(args):
            return self.run(inner, args)
        memories = [x for x in args if isinstance(x, Memory)]
        if memories or eqn.effects or not self.thoroughly:
            self.watch.forget(memories)
            return [Unknown() for _ in eqn.outvars]
        return _computed(eqn, args)

    def on_get(self, eqn: Eqn, args: list[Any]) -> list[Any]:
        (region,) = _regions(args, eqn.params["index"])
        if not region.memory.aval.is_semaphore:
            self.watch.read(region, eqn.source)
        return [Unknown()]

    def on_swap(self, eqn: Eqn, args: list[Any]) -> list[Any]:
        (region,) = _regions([args[0], *args[2:]], eqn.params["index"])
        self.watch.write(region, eqn.source)
        return [Unknown() for _ in eqn.outvars]

    on_addupdate = on_swap

    def on_freeze(self, eqn: Eqn, args: list[Any]) -> list[Any]:
        self.watch.free(args[0], eqn.source)
        return [Unknown()]

    def on_dma_start(self, eqn: Eqn, args: list[Any]) -> list[Any]:
        params = eqn.params
        src, dst, sem = _regions(
            args, params["src_index"], params["dst_index"], params["sem_index"]
        )
        size = semaphores.byte_count(dst.memory.aval.dtype, dst.where)
        self.watch.start(src, dst, sem, size, eqn.source)
        return []

    def on_dma_wait(self, eqn: Eqn, args: list[Any]) -> list[Any]:
        dst, sem = _regions(args, eqn.params["dst_index"], eqn.params["sem_index"])
        size = semaphores.byte_count(dst.memory.aval.dtype, dst.where)
        self.watch.land(dst, sem, size, eqn.source)
        return []

    def on_semaphore_signal(self, eqn: Eqn, args: list[Any]) -> list[Any]:
        (sem,) = _regions(args[1:], eqn.params["index"])
        self.watch.signal(sem, args[0])
        return []

    def on_semaphore_wait(self, eqn: Eqn, args: list[Any]) -> list[Any]:
        (sem,) = _regions(args[1:], eqn.params["index"])
        self.watch.wait(sem, args[0], eqn.source, "semaphore_wait", semaphores.SIGNAL_FIRST)
        return []

    def on_cond(self, eqn: Eqn, args: list[Any]) -> Sequence[Any]:
        branches = eqn.params["branches"]
        index, *rest = args
        if not isinstance(index, Unknown):
            return self.run(branches[min(max(int(index), 0), len(branches) - 1)], rest)
        counted = [sem for branch in branches for sem in _counted(branch.jaxpr, rest)]
        for branch in branches:
            with self.watch.perhaps(counted):
                self.run(branch, rest)
        return [Unknown() for _ in eqn.outvars]

    def on_scan(self, eqn: Eqn, args: list[Any]) -> list[Any]:
        params = eqn.params
        closed, length = params["jaxpr"], params["length"]
        consts = args[: params["num_consts"]]
        carry = args[len(consts) : len(consts) + params["num_carry"]]
        xs = args[len(consts) + len(carry) :]
        avals = closed.in_avals[len(consts) + len(carry) :]
        stacked = [Unknown() for _ in eqn.outvars[len(carry) :]]
        if self.thoroughly or length == 1:
            for i in reversed(range(length)) if params["reverse"] else range(length):
                slices = [_slice(x, i, aval) for x, aval in zip(xs, avals, strict=True)]
                carry = self.run(closed, [*consts, *carry, *slices])[: len(carry)]
            return [*carry, *stacked]
        if length:
            slices = [_slice(Unknown(), 0, aval) for aval in avals]
            self._once(closed, [*consts, *(Unknown() for _ in carry), *slices])
        return [Unknown() for _ in eqn.outvars]

    def on_while(self, eqn: Eqn, args: list[Any]) -> Sequence[Any]:
        test, body = eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"]
        count = eqn.params["cond_nconsts"]
        end = count + eqn.params["body_nconsts"]
        test_args, body_args, carry = args[:count], args[count:end], list(args[end:])
        while self.thoroughly:
            (again,) = self.run(test, [*test_args, *carry])
            if isinstance(again, Unknown):
                break
            if not again:
                return carry
            carry = self.run(body, [*body_args, *carry])
        carry = [Unknown() for _ in carry]
        self._once(test, [*test_args, *carry])
        self._once(body, [*body_args, *carry])
        return carry

    def _once(self, closed: ClosedJaxpr, args: Sequence[Any]) -> None:
        """Follows a step that stands for any number of steps."""
        with self.watch.perhaps(_counted(closed.jaxpr, args)):
            self.run(closed, args)


def _regions(args: Sequence[Any], *indices: Index) -> list[Region]:
    """The places among the operands of an operation on references."""
    return [
        Region(place.ref, place.where, tuple(map(_position, place.operands)))
        for place in semaphores.places(args, *indices)
    ]


def _position(x: Any) -> Any:
    """A scalar as an int; an array of positions counts as unknown."""
    return x if isinstance(x, Unknown) else int(x) if np.ndim(x) == 0 else Unknown()


def _counted(jaxpr: Jaxpr, args: Sequence[Any]) -> list[Memory]:
    """The semaphores among some arguments that a jaxpr changes."""
    changed = {e.reference for e in jaxpr.effects if isinstance(e, refs.ReferenceEffect)}
    return [
        x
        for v, x in zip(jaxpr.invars, args, strict=True)
        if v in changed and isinstance(x, Memory) and x.aval.is_semaphore
    ]


def _slice(x: object, i: int, aval: object) -> Any:
    if type(aval) is refs.AbstractRef:
        return Memory(aval)
    return Unknown() if isinstance(x, Unknown) else np.asarray(x)[i]


def _value_of(x: Any) -> Any:
    """A constant: known if it is small."""
    if type(x) is Buffer and not x.aval.is_extended and x.size <= _MOST_ELEMENTS:
        return np.asarray(x)
    return x if isinstance(x, (bool, int, float, complex, np.generic, np.ndarray)) else Unknown()


def _computed(eqn: Eqn, args: Sequence[Any]) -> list[Any]:
    """The results of an equation on arrays, if they can be known."""
    small = all(getattr(v.aval, "size", _MOST_ELEMENTS + 1) <= _MOST_ELEMENTS for v in eqn.outvars)
    if not small or any(isinstance(x, Unknown) for x in args):
        return [Unknown() for _ in eqn.outvars]
    # Operands must have the types that the equation was staged with.
    typed = [
        x if type(v) is Literal else np.asarray(x, v.aval.dtype)
        for x, v in zip(args, eqn.invars, strict=True)
    ]
    with config.override(current, eager.EAGER), axes.outside():
        return list(map(np.asarray, eqn.primitive.bind_all(*typed, **eqn.params)))
