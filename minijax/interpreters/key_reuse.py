"""Random keys that are used twice, found by the flow of keys through a jaxpr.

Input: a jaxpr.  Output: an error that names both lines, or nothing.  Each element of an array of
keys has a number, which follows it where it is moved; primitives say which operands they use up
(`consumes_keys`).  The body of a loop is followed twice, so that a key that each step uses is
found; the branches of a conditional are alternatives.  Old-style keys, pairs of integers, are
followed as well.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import config, dtypes, source
from minijax.core.aval import AbstractValue
from minijax.core.errors import CheckedKeyReuseError, error, message
from minijax.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, Var, jaxprs_in_params
from minijax.core.operators import HostArray, Values
from minijax.core.primitive import Primitive
from minijax.core.rules import Facts, Rules
from minijax.core.trace import Params, current
from minijax.interpreters import checking, discharge

consumes_keys: Facts[tuple[int, ...]] = Facts("consumes_keys", ())
"""The operands whose random keys are used up."""

follow_keys = Rules("follow_keys")
"""The keys of the results: `(primitive, flow, keys of the operands, **params)`.  Without a rule:
those of the one jaxpr that the operation holds, of the elements that it moves, or new ones."""

Numbers = HostArray

_UINT32 = np.dtype(np.uint32)
# More keys than this are not followed one by one.
_MANY = 1 << 16
_ONCE = "each key is used once: equal keys give equal numbers"
_FIX = "new_key, key = random.split(key); or random.clone(key) if it is meant"


class KeyFlow:
    """The keys of a program: their numbers, and which of them are used up, by which equation."""

    def __init__(self) -> None:
        self.used: dict[int, Eqn] = {}
        self._next = itertools.count()

    def fresh(self, aval: AbstractValue) -> Numbers | None:
        """Numbers for keys that nobody has seen yet; None where the type is not of keys."""
        if not is_key(aval):
            return None
        count = min(aval.size, _MANY)
        numbers = np.fromiter(itertools.islice(self._next, count), np.int64, count)
        if count < aval.size:
            # They share numbers, and nobody asks about those.
            return np.full(aval.shape, -1, np.int64)
        return numbers.reshape(aval.shape)

    def follow(self, jaxpr: Jaxpr, args: Sequence[Numbers | None]) -> list[Numbers | None]:
        """The keys that a jaxpr returns for the keys that it is given; None is not a key.

        Raises:
            CheckedKeyReuseError: a key is used twice.
        """
        keys = dict(zip(jaxpr.invars, args, strict=True))
        keys.update((var, self.fresh(var.aval)) for var in jaxpr.constvars)
        for eqn in jaxpr.eqns:
            given = [keys.get(v) if type(v) is Var else None for v in eqn.invars]
            keys.update(zip(eqn.outvars, self._outs(eqn, given), strict=True))
        return [keys.get(v) if type(v) is Var else None for v in jaxpr.outvars]

    def use(self, numbers: Numbers, eqn: Eqn) -> None:
        """Uses keys up.

        Raises:
            CheckedKeyReuseError: one is used up already.
        """
        wanted = [number for number in np.unique(numbers).tolist() if number >= 0]
        for number in wanted:
            if number in self.used:
                raise _error(eqn, self.used[number], numbers, number)
        self.used.update((number, eqn) for number in wanted)

    def use_like(self, first: Numbers | None, rows: Numbers | None) -> None:
        """Uses up the rows of an array of keys as the first one was."""
        if first is None or rows is None:
            return
        for number, column in zip(first.ravel(), rows.reshape(len(rows), -1).T, strict=True):
            if number in self.used:
                self.used.update((n, self.used[number]) for n in column.tolist() if n >= 0)

    def branch(self) -> KeyFlow:
        """The same keys in an alternative course of events."""
        other = self.again()
        other.used = dict(self.used)
        return other

    def again(self) -> KeyFlow:
        """The same keys, none of them used, for what is computed a second time."""
        other = KeyFlow()
        other._next = self._next
        return other

    def _outs(self, eqn: Eqn, given: Sequence[Numbers | None]) -> Sequence[Numbers | None]:
        primitive = eqn.primitive
        rule = follow_keys.of(primitive)
        if rule is not None:
            outs: Sequence[Numbers | None] = rule(self, given, **eqn.params)
            return outs
        for i in consumes_keys.of(primitive):
            numbers = given[i]
            if numbers is not None:
                self.use(numbers, eqn)
        inner = list(jaxprs_in_params(eqn.params))
        if len(inner) == 1 and len(inner[0].invars) == len(given):
            # What is computed again for a derivative is no second use.
            flow = self.again() if eqn.params.get("differentiated") else self
            return flow.follow(inner[0], given)
        moved = self._moved(eqn, given) if any(x is not None for x in given) else None
        if moved is not None:
            return moved
        return [self.fresh(v.aval) for v in eqn.outvars]

    def _moved(self, eqn: Eqn, given: Sequence[Numbers | None]) -> list[Numbers | None] | None:
        """The keys of an operation that moves elements; None for any other, or an unknown place."""
        if checking.fault_flow.of(eqn.primitive) not in (checking.MOVES, checking.COPIES):
            return None
        operands: list[Any] = []
        for atom, numbers in zip(eqn.invars, given, strict=True):
            if numbers is not None:
                operands.append(numbers.astype(np.int32))
            elif type(atom) is Literal and atom.aval.dtype != _UINT32:
                operands.append(atom.value)
            else:
                return None
        # Numbers are known, whatever is being traced.
        with config.override(current, current.get_global()):
            outs = eqn.primitive.bind_all(*operands, **eqn.params)
        return [np.asarray(out).astype(np.int64) for out in outs]


def is_key(aval: AbstractValue) -> bool:
    """Whether values of a type may be random keys, of the new or of the old style."""
    if aval.is_extended:
        return bool(dtypes.issubdtype(aval.dtype, dtypes.prng_key))
    return bool(aval.dtype == _UINT32 and aval.shape[-1:] == (2,))


def check_jaxpr(closed: ClosedJaxpr) -> list[Numbers]:
    """Refuses a program that uses a random key twice.

    Keys in references are followed as values that are passed on.

    Returns:
        For each parameter, which of its elements are used up; empty arrays for what is not a key.

    Raises:
        CheckedKeyReuseError: it does; the text names both lines.
    """
    jaxpr = discharge.discharge_jaxpr(closed).closed.jaxpr
    flow = KeyFlow()
    args = [flow.fresh(v.aval) for v in jaxpr.invars]
    flow.follow(jaxpr, args)
    return [np.zeros(0, np.bool_) if x is None else np.isin(x, list(flow.used)) for x in args]


_used_elements: dict[int, list[tuple[Numbers, str]]] = {}
"""By buffer, which of its elements were used up on which line."""
_look_and_note = threading.RLock()


def use_arguments(closed: ClosedJaxpr, args: Values) -> None:
    """Uses up the keys among the arguments of a program that is about to run.

    Raises:
        CheckedKeyReuseError: the program, or an earlier one, uses one of them up.
    """
    masks = closed.remember("key_reuse", lambda: check_jaxpr(closed))
    for i, (x, mask) in enumerate(zip(args, masks, strict=True)):
        buffer = getattr(x, "buffer", None)
        if buffer is None or not mask.any():
            continue
        with _look_and_note:
            if id(buffer) not in _used_elements:
                weakref.finalize(buffer, _used_elements.pop, id(buffer), None)
            uses = _used_elements.setdefault(id(buffer), [])
            first = next((line for used, line in uses if (used & mask).any()), None)
            if first is not None:
                name = source.user_call() or closed.jaxpr.debug_info.func_name
                text = f"argument {i} is a random key that was used before."
                got = f"first used at {first}"
                error(CheckedKeyReuseError, name, text, got=got, expected=_ONCE, fix=_FIX)
            uses.append((mask, str(source.user_line())))


def follow_slices(
    primitive: Primitive,
    flow: KeyFlow,
    keys: Sequence[Numbers | None],
    axes: Sequence[int | None],
    params: Params,
) -> list[Numbers | None]:
    """Follows keys through an operation on slices of its operands, along dimensions `axes`.

    Each slice has its own keys; what all share, where an axis is None, is followed once.  The keys
    that it returns are new.
    """
    rows = [
        x if x is None or axis is None else np.moveaxis(x, axis, 0)
        for x, axis in zip(keys, axes, strict=True)
    ]
    first = [
        x[0] if x is not None and axis is not None and len(x) else x
        for x, axis in zip(rows, axes, strict=True)
    ]
    flow.follow(params["jaxpr"].jaxpr, first)
    for x, every, axis in zip(first, rows, axes, strict=True):
        if axis is not None:
            flow.use_like(x, every)
    return list(map(flow.fresh, primitive.abstract_eval(**params)))


def follow_branches(
    flow: KeyFlow, given: Sequence[Numbers | None], branches: Sequence[ClosedJaxpr]
) -> list[Numbers | None]:
    """The keys that one of several jaxprs returns."""
    flows = [flow.branch() for _ in branches]
    results = [
        other.follow(branch.jaxpr, given) for other, branch in zip(flows, branches, strict=True)
    ]
    for other in flows:
        flow.used.update(other.used)
    avals = branches[0].out_avals
    return [
        column[0] if _all_same(column) else flow.fresh(aval)
        for column, aval in zip(zip(*results, strict=True), avals, strict=True)
    ]


def first_rows(given: Sequence[Numbers | None], row: int = 0) -> list[Numbers | None]:
    """The keys of one slice along the leading dimension."""
    return [None if x is None or row >= len(x) else x[row] for x in given]


def _all_same(column: Sequence[Numbers | None]) -> bool:
    first = column[0]
    return first is not None and all(x is not None and np.array_equal(x, first) for x in column)


def _error(eqn: Eqn, before: Eqn, numbers: Numbers, number: int) -> CheckedKeyReuseError:
    index = tuple(map(int, np.argwhere(numbers == number)[0]))
    line, first = source.summarize(eqn.source), source.summarize(before.source)
    text = "a random key is used a second time."
    where = f"key {list(index)} of {list(numbers.shape)}; " if index else ""
    if eqn is before:
        where += "the line uses it again: in the next step of a loop, or called a second time"
    else:
        where += f"first used by {source.public_call(before.source) or before.primitive} at {first}"
    error = CheckedKeyReuseError(
        message(
            source.public_call(eqn.source) or eqn.primitive.name,
            text,
            got=where,
            expected=_ONCE,
            fix=_FIX,
            at=line,
        )
    )
    error.primitive, error.index, error.line, error.detail = eqn.primitive.name, index, line, text
    return error
