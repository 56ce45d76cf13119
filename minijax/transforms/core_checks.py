"""Finds out before a program runs on cores whether it must go wrong there.

Input: the jaxpr of one core.  Output: nothing, or an error at the line that is wrong.  The program
is followed with the values that are known, which are few: literals, and thoroughly also the number
of the core and what is computed from it, such as the steps of loops.  Of what depends on the
contents of references nothing is claimed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import axes, refs
from minijax.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal
from minijax.core.trace import current
from minijax.interpreters import eager
from minijax.lax import semaphores
from minijax.lax.reference_indexing import Index
from minijax.runtime.array import Array
from minijax.transforms.core_memory import Memory, Region, Unknown, Watch

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
    """Follows a program, with known values, unknown ones, and memory in place of references."""

    def __init__(self, watch: Watch, thoroughly: bool) -> None:
        self.watch = watch
        self.thoroughly = thoroughly

    def run(self, closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
        """The results of a program."""
        jaxpr = closed.jaxpr
        values: dict[Any, Any] = dict(zip(jaxpr.invars, args, strict=True))
        values.update(zip(jaxpr.constvars, map(_value_of, closed.consts), strict=True))

        def read(atom: Any) -> Any:
            return _value_of(atom.value) if type(atom) is Literal else values[atom]

        for eqn in jaxpr.eqns:
            values.update(
                zip(eqn.outvars, self._step(eqn, list(map(read, eqn.invars))), strict=True)
            )
        return list(map(read, jaxpr.outvars))

    def _step(self, eqn: Eqn, args: list[Any]) -> Sequence[Any]:
        rule = _RULES.get(eqn.primitive.name)
        if rule is not None:
            return rule(self, eqn, args)
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

    def get(self, eqn: Eqn, args: list[Any]) -> list[Any]:
        (region,) = _regions(args, eqn.params["index"])
        if region.memory.aval.kind is None:
            self.watch.read(region, eqn.source)
        return [Unknown()]

    def swap(self, eqn: Eqn, args: list[Any]) -> list[Any]:
        (region,) = _regions([args[0], *args[2:]], eqn.params["index"])
        self.watch.write(region, eqn.source)
        return [Unknown() for _ in eqn.outvars]

    def freeze(self, eqn: Eqn, args: list[Any]) -> list[Any]:
        self.watch.free(args[0], eqn.source)
        return [Unknown()]

    def dma_start(self, eqn: Eqn, args: list[Any]) -> list[Any]:
        params = eqn.params
        src, dst, sem = _regions(
            args, params["src_index"], params["dst_index"], params["sem_index"]
        )
        size = semaphores.byte_count(dst.memory.aval.dtype, dst.where)
        self.watch.start(src, dst, sem, size, eqn.source)
        return []

    def dma_wait(self, eqn: Eqn, args: list[Any]) -> list[Any]:
        dst, sem = _regions(args, eqn.params["dst_index"], eqn.params["sem_index"])
        size = semaphores.byte_count(dst.memory.aval.dtype, dst.where)
        self.watch.land(dst, sem, size, eqn.source)
        return []

    def signal(self, eqn: Eqn, args: list[Any]) -> list[Any]:
        (sem,) = _regions(args[1:], eqn.params["index"])
        self.watch.signal(sem, args[0])
        return []

    def wait(self, eqn: Eqn, args: list[Any]) -> list[Any]:
        (sem,) = _regions(args[1:], eqn.params["index"])
        self.watch.wait(sem, args[0], eqn.source, "semaphore_wait", semaphores.SIGNAL_FIRST)
        return []

    def cond(self, eqn: Eqn, args: list[Any]) -> Sequence[Any]:
        branches = eqn.params["branches"]
        index, *rest = args
        if not isinstance(index, Unknown):
            return self.run(branches[min(max(int(index), 0), len(branches) - 1)], rest)
        counted = [sem for branch in branches for sem in _counted(branch.jaxpr, rest)]
        for branch in branches:
            with self.watch.perhaps(counted):
                self.run(branch, rest)
        return [Unknown() for _ in eqn.outvars]

    def scan(self, eqn: Eqn, args: list[Any]) -> list[Any]:
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

    def while_loop(self, eqn: Eqn, args: list[Any]) -> Sequence[Any]:
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


_RULES: dict[str, Any] = {
    "get": _Follower.get,
    "swap": _Follower.swap,
    "addupdate": _Follower.swap,
    "freeze": _Follower.freeze,
    "dma_start": _Follower.dma_start,
    "dma_wait": _Follower.dma_wait,
    "semaphore_signal": _Follower.signal,
    "semaphore_wait": _Follower.wait,
    "cond": _Follower.cond,
    "scan": _Follower.scan,
    "while": _Follower.while_loop,
}


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
        if v in changed and isinstance(x, Memory) and x.aval.kind is not None
    ]


def _slice(x: Any, i: int, aval: Any) -> Any:
    if type(aval) is refs.AbstractRef:
        return Memory(aval)
    return Unknown() if isinstance(x, Unknown) else np.asarray(x)[i]


def _value_of(x: Any) -> Any:
    """A constant: known if it is small."""
    if type(x) is Array and not x.aval.is_extended and x.size <= _MOST_ELEMENTS:
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
    before = current.swap_local(eager.EAGER)
    try:
        with axes.outside():
            return list(map(np.asarray, eqn.primitive.bind_all(*typed, **eqn.params)))
    finally:
        current.set_local(before)
