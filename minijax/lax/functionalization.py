"""Functionalization: a program that may go wrong also returns what went wrong first.

Input: a closed jaxpr, and the kinds of faults to look for.  Output: a jaxpr that returns the first
fault as numbers before its results, and what the numbers stand for.  Operations that hold jaxprs
hold such jaxprs in turn, each made once.

A fault of an element that only goes into the unselected side of a `select` is none: where all ways
of an element lead through elementwise operations to selections, it is judged there.

What primitives do with faulty elements is one page for all that most programs load; what loads
later declares its own beside its primitive, and so does what may go wrong in an operation itself
(`checking.faults`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import config, dtypes
from minijax.core.aval import ShapedArray, aval_of
from minijax.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from minijax.core.trace import current
from minijax.interpreters import casts, checking, reshard, staging, structural
from minijax.interpreters.structural import broadcast_in_dim, full
from minijax.lax import (
    binary,
    creation,
    families,
    gather_scatter,
    padding,
    reduction,
    references,
    shape,
    shardings,
    slicing,
    sorting,
    unary,
    windows,
)
from minijax.lax.families import Values
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array


@checking.fault_flow.derive(families.Unary)
def _flow_of_unary(primitive: families.Unary) -> str:
    if primitive.result is families.bool_dtype:
        return checking.INSPECTS
    return checking.PRESERVES if primitive.total else checking.ELEMENTWISE


@checking.fault_flow.derive(families.Binary)
def _flow_of_binary(primitive: families.Binary) -> str:
    return checking.PRESERVES if primitive.total else checking.ELEMENTWISE


checking.fault_flow.set(
    checking.ELEMENTWISE,
    structural.AddAny,
    creation.ConvertElementType,
    creation.ReducePrecision,
    unary.IntegerPow,
    unary.Pow,
)
checking.fault_flow.set(
    checking.PRESERVES,
    casts.Cast,
    binary.Clamp,
    shardings.ShardingConstraint,
    unary.Abs,
    unary.Conj,
    unary.Round,
)
checking.fault_flow.set(
    checking.MOVES,
    reshard.Reshard,
    shape.Reshape,
    shape.Rev,
    shape.Squeeze,
    slicing.Slice,
    structural.BroadcastInDim,
    structural.Transpose,
)
checking.fault_flow.set(
    checking.COPIES,
    creation.BitcastConvertType,
    creation.Empty,
    gather_scatter.Gather,
    padding.Pad,
    references.Freeze,
    references.Get,
    references.NewRef,
    references.Swap,
    shape.Concatenate,
    shape.Split,
    slicing.DynamicSlice,
    slicing.DynamicUpdateSlice,
    sorting.ApproxTopK,
    sorting.Sort,
    sorting.TopK,
    shape.Stack,
    shape.Unstack,
    windows.SelectAndGatherAdd,
    windows.SelectAndScatter,
)
checking.fault_flow.set(checking.SELECTS, binary.SelectN)


def flow_of(eqn: Eqn) -> str:
    """What becomes of faulty elements in an equation."""
    return checking.fault_flow.of(eqn.primitive)


_INT32 = np.dtype(np.int32)
_UINT32 = np.dtype(np.uint32)
_PASSING = frozenset({checking.ELEMENTWISE, checking.PRESERVES, checking.MOVES, checking.SELECTS})
# Faults of up to this many elements are looked for all at once: less to compile.
_FEW = 256


class State(NamedTuple):
    """The first fault of a program, if any, as values.

    Attributes:
        code: int32[]: 0 for none, else one more than the number of its site.
        place: int32[]: the flat position in what the site checks.
        words: uint32[n]: the values for the site's text.
    """

    code: Any
    place: Any
    words: Any


STATE_SIZE = len(State._fields)


class Checked(NamedTuple):
    """A functionalized jaxpr: it returns a state, then its results.

    Without sites there is no state to return.
    """

    closed: ClosedJaxpr
    sites: tuple[checking.Site, ...]

    @property
    def words(self) -> int:
        """How many words its state has."""
        return max((site.words for site in self.sites), default=0)


def check_jaxpr(closed: ClosedJaxpr, kinds: frozenset[str]) -> Checked:
    """The functionalized form of a jaxpr; made once."""
    return closed.remember(("checked", kinds), lambda: _check_jaxpr(closed, kinds))


def _check_jaxpr(closed: ClosedJaxpr, kinds: frozenset[str]) -> Checked:
    sites: list[checking.Site] = []

    def function(*args: Any) -> list[Any]:
        checker = Checker(closed.jaxpr, kinds)
        outs = checker.run(closed.consts, args)
        state, sites[:] = checker.finish()
        return outs if state is None else [*state, *outs]

    with config.checking(frozenset()):
        jaxpr, consts = staging.stage(function, closed.in_avals, closed.jaxpr.debug_info)
    if not sites and checking.CHECK_EFFECT not in closed.effects:
        return Checked(closed, ())
    return Checked(ClosedJaxpr(jaxpr, consts), tuple(sites))


class _Found(NamedTuple):
    """A fault of an equation, which may be judged later, where its elements are selected."""

    fault: checking.Fault
    eqn: Any
    number: int


class Checker:
    """One functionalization: evaluates a jaxpr, and collects what may fail."""

    def __init__(self, jaxpr: Jaxpr, kinds: frozenset[str]) -> None:
        self.jaxpr = jaxpr
        self.kinds = kinds
        # With the numbers of the equations to blame.
        self._faults: list[tuple[int, checking.Fault, checking.Site]] = []
        self._states: list[tuple[int, State, tuple[checking.Site, ...]]] = []
        self._eqn: Any = None
        self._number = 0
        self._values: dict[Var, Any] = {}
        self._pending: dict[Var, list[_Found]] = {}
        self._judged_later = _judged_later(jaxpr, is_lenient(kinds))
        self._facts: dict[tuple[str, int], Any] = {}

    def run(self, consts: Sequence[Any], args: Values) -> list[Any]:
        """The results of the jaxpr; what may fail is collected on the way."""
        self._values.update(zip(self.jaxpr.constvars, consts, strict=True))
        self._values.update(zip(self.jaxpr.invars, args, strict=True))
        for number, eqn in enumerate(self.jaxpr.eqns):
            self._eqn, self._number = eqn, number
            with staging.restored(eqn):
                self._equation(eqn)
        return [self._read(v) for v in self.jaxpr.outvars]

    def inner(self, closed: ClosedJaxpr) -> Checked:
        """The functionalized form of a jaxpr that the current equation holds."""
        return check_jaxpr(closed, self.kinds)

    def add(self, state: Sequence[Any], sites: Sequence[checking.Site]) -> None:
        """Tells of the state that something inside the current equation has returned.

        Args:
            state: of what has `sites` of its own.
            sites: what the codes stand for.
        """
        self._states.append((self._number, State(*state), tuple(sites)))

    def judge(
        self, fault: checking.Fault, eqn: Eqn | None = None, number: int | None = None
    ) -> None:
        """Tells of a fault of an equation, the current one by default."""
        eqn = self._eqn if eqn is None else eqn
        if fault.kind == checking.NON_FINITE and checking.NAN in self.kinds:
            fault = fault._replace(kind=checking.NAN)
        if fault.kind in self.kinds and aval_of(fault.bad).size:
            site = checking.site_of(fault, eqn.primitive.name, eqn.source)
            self._faults.append((self._number if number is None else number, fault, site))

    def finish(self) -> tuple[State | None, list[checking.Site]]:
        """The first fault of all, and the sites in program order; no state if there are none."""
        sites: list[checking.Site] = []
        states = []
        small: list[tuple[checking.Fault, int]] = []
        entries: list[Any] = sorted([*self._faults, *self._states], key=lambda entry: entry[0])
        for _, what, own in entries:
            if isinstance(what, State):
                states.append(what._replace(code=shifted(what.code, len(sites))))
                sites += own
                continue
            sites.append(own)
            if _is_small(what):
                small.append((what, len(sites)))
            else:
                states.append(_state_of(what, len(sites)))
        if len(small) == 1:
            states.append(_state_of(*small[0]))
        elif small:
            states.append(_state_of_many(small))
        words = max((site.words for site in sites), default=0)
        return _first_of([padded(state, words) for state in states]), sites

    def _read(self, atom: Any) -> Any:
        return atom.value if type(atom) is Literal else self._values[atom]

    def _equation(self, eqn: Eqn) -> None:
        primitive = eqn.primitive
        args = list(map(self._read, eqn.invars))
        check_inside = checking.check_inside.of(primitive)
        if check_inside is not None:
            outs = check_inside(self, args, eqn.params)
            self._values.update(zip(eqn.outvars, outs, strict=True))
            return
        outs = current.value.process(primitive, args, eqn.params)
        self._values.update(zip(eqn.outvars, outs, strict=True))
        self._pass_on(eqn, args)
        for fault in self._faults_of(eqn, args, outs):
            self._found(_Found(fault, eqn, self._number))

    def _faults_of(
        self, eqn: Eqn, args: Sequence[Any], outs: Sequence[Array]
    ) -> list[checking.Fault]:
        primitive = eqn.primitive
        faults: list[checking.Fault] = []
        own = checking.faults.of(primitive)
        if own is not None:
            faults += own(args, outs, **eqn.params)
        flow = flow_of(eqn)
        if self.kinds & {checking.NAN, checking.NON_FINITE} and flow in (
            checking.ELEMENTWISE,
            checking.COMPUTES,
        ):
            for out in outs:
                faults += self._non_finite(out, args, flow == checking.ELEMENTWISE)
        return faults

    def _non_finite(
        self, out: Any, args: Sequence[Array], elementwise: bool
    ) -> list[checking.Fault]:
        """A NaN without a NaN among the operands; an infinity where all of them are finite."""
        if not _is_inexact(out):
            return []
        inputs = [x for x in args if _is_inexact(x) and not _is_finite_constant(x)]
        if any(not aval_of(x).size for x in inputs):
            # What is left of nothing is the identity of the operation.
            return []
        bad = self._made(out, inputs, _is_nan, elementwise)
        if checking.NON_FINITE in self.kinds:
            infinite = self._made(out, inputs, _is_not_finite, elementwise)
            bad = binary.bitwise_or(bad, infinite)
        return [checking.Fault(checking.NON_FINITE, bad, _Produced(), (out,))]

    def _made(
        self, out: Array, inputs: Sequence[Any], test: Callable[[Any], Any], elementwise: bool
    ) -> Any:
        """Where the result passes a test that no operand passes, there or anywhere."""
        bad = self._fact(test, out)
        dims = aval_of(out).shape
        for x in inputs:
            given = self._fact(test, x)
            if not elementwise:
                given = self._fact(_anywhere, given)
            bad = binary.bitwise_and(bad, unary.bitwise_not(_broadcast(given, dims)))
        return bad

    def _fact(self, test: Callable[[Any], Any], x: Array) -> Any:
        """What a test says of a value; asked once."""
        key = (test.__name__, id(x))
        found = self._facts.get(key)
        if found is None:
            # The value is kept, so that its identity stays taken.
            found = self._facts[key] = (test(x), x)
        return found[0]

    def _found(self, found: _Found) -> None:
        """A fault of the current equation: judged now, or where its elements are selected."""
        (out,) = self._eqn.outvars if len(self._eqn.outvars) == 1 else (None,)
        if out in self._judged_later and aval_of(found.fault.bad).shape == out.aval.shape:
            self._pending.setdefault(out, []).append(found)
        else:
            self.judge(*found)

    def _pass_on(self, eqn: Eqn, args: Sequence[Array]) -> None:
        """Hands faults of the operands that are judged later to the result."""
        flow = flow_of(eqn)
        if flow == checking.INSPECTS or not self._pending:
            return
        seen: set[int] = set()
        for v in eqn.invars:
            for found in self._pending.get(v, ()) if type(v) is Var else ():
                if id(found) not in seen and not _inspects(eqn):
                    seen.add(id(found))
                    moved = _moved(found.fault, v, eqn, args, flow)
                    self._found(found._replace(fault=moved))


def _first_of(states: Sequence[State]) -> State | None:
    """The state that stands for the first fault: codes are in program order."""
    if len(states) <= 1:
        return states[0] if states else None
    codes, places, words = (
        shape.concatenate([shape.expand_dims(x, (0,)) for x in column], 0)
        for column in zip(*states, strict=True)
    )
    last = full((len(states),), np.iinfo(np.int32).max, _INT32)
    order = binary.select(binary.eq(codes, np.int32(0)), last, codes)
    first = reduction.argmin(order, 0, _INT32)
    return State(_at(codes, first), _at(places, first), _at(words, first))


def _moved(
    fault: checking.Fault, var: Atom, eqn: Eqn, args: Sequence[Array], flow: str
) -> checking.Fault:
    """A fault of an operand as one of the result."""
    dims = eqn.outvars[0].aval.shape
    if flow == checking.MOVES:
        bad, *found = (eqn.primitive.bind(x, **eqn.params) for x in (fault.bad, *fault.found))
        return fault._replace(bad=bad, found=tuple(found))
    bad = _broadcast(fault.bad, dims)
    found = [_broadcast(x, dims) for x in fault.found]
    if flow == checking.SELECTS and eqn.invars[0] is not var:
        nothing = full(dims, False, np.bool_)
        bad = binary.select_n(args[0], *(bad if v is var else nothing for v in eqn.invars[1:]))
    return fault._replace(bad=bad, found=tuple(found))


def is_lenient(kinds: frozenset[str]) -> bool:
    """Whether faults are meant that the program looks for itself, as `checked` takes them to be.

    `checkify`, which asks for NaN only, reports them, and goes on with loops after a fault.
    """
    return checking.NON_FINITE in kinds


def _judged_later(jaxpr: Jaxpr, may_inspect: bool) -> set[Var]:
    """The variables whose elements go through selections before anything else sees them."""
    later = {v for eqn in jaxpr.eqns for v in eqn.outvars} - set(jaxpr.outvars)
    selected: set[Atom] = set()
    for eqn in reversed(jaxpr.eqns):
        flow = flow_of(eqn)
        operands = [v for v in eqn.invars if type(v) is Var]
        out = eqn.outvars[0] if flow in _PASSING else None
        if (may_inspect and _inspects(eqn)) or (out in later and out in selected):
            selected.update(operands)
        elif flow == checking.SELECTS:
            later.discard(eqn.invars[0])
            selected.update(eqn.invars[1:])
        else:
            later.difference_update(operands)
    return later & selected


def _inspects(eqn: Eqn) -> bool:
    """Whether an equation asks for faulty elements: `is_finite(x)`, `x != x`, `x == inf`."""
    if flow_of(eqn) not in (checking.ELEMENTWISE, checking.PRESERVES):
        return bool(flow_of(eqn) == checking.INSPECTS)
    if len(eqn.invars) != 2 or eqn.outvars[0].aval.dtype != np.bool_:
        return False
    x, y = eqn.invars
    return x is y or any(type(v) is Literal and not np.isfinite(v.value) for v in (x, y))


class _Produced:
    """The text of a fault of numbers."""

    def format(self, value: Any) -> str:
        if np.isnan(value):
            return "produced a NaN"
        return f"produced an infinity ({np.asarray(value)})"


def _is_inexact(x: Array) -> bool:
    aval = aval_of(x)
    is_array = isinstance(aval, ShapedArray) and not aval.is_extended
    return is_array and bool(dtypes.issubdtype(aval.dtype, np.inexact))


def _is_finite_constant(x: Array) -> bool:
    return isinstance(x, (int, float, complex, np.generic)) and bool(np.isfinite(x))


def _is_nan(x: Array) -> Any:
    return binary.ne(x, x)


def _is_not_finite(x: Array) -> Any:
    if dtypes.issubdtype(aval_of(x).dtype, np.complexfloating):
        finite = binary.bitwise_and(unary.is_finite(unary.real(x)), unary.is_finite(unary.imag(x)))
    else:
        finite = unary.is_finite(x)
    return unary.bitwise_not(finite)


def _anywhere(x: Array) -> Any:
    return reduction.reduce_or(x, tuple(range(aval_of(x).ndim)))


def _broadcast(x: Array, dims: tuple[int, ...]) -> Any:
    given = aval_of(x).shape
    if given == dims:
        return x
    return broadcast_in_dim(x, dims, range(len(dims) - len(given), len(dims)))


def _at(rows: ArrayLike, place: Array) -> Any:
    """The row of an array at a position."""
    dims = aval_of(rows).shape
    starts: list[Any] = [place, *(np.int32(0) for _ in dims[1:])]
    row = slicing.dynamic_slice_p.bind(rows, *starts, slice_sizes=(1, *dims[1:]))
    return shape.reshape(row, dims[1:])


def shifted(code: Array, offset: int) -> Any:
    """A code among sites that start at a number."""
    if not offset:
        return code
    failed = binary.ne(code, np.int32(0))
    return binary.select(failed, binary.add(code, np.int32(offset)), code)


def padded(state: State, words: int) -> State:
    """A state with as many words as another one."""
    (given,) = aval_of(state.words).shape
    if given == words:
        return state
    rest = full((words - given,), 0, _UINT32)
    return state._replace(words=shape.concatenate([state.words, rest], 0))


def no_fault(words: int) -> State:
    """The state of a program in which nothing went wrong."""
    zero = full((), 0, _INT32)
    return State(zero, zero, full((words,), 0, _UINT32))


def earlier(first: Sequence[Any], second: Sequence[Any]) -> State:
    """The first of two faults, if there is one."""
    failed = binary.ne(first[0], np.int32(0))
    return State(*(binary.select(failed, a, b) for a, b in zip(first, second, strict=True)))


def first_of_batch(
    state: Sequence[Any], sites: Sequence[checking.Site], size: int
) -> tuple[State, tuple[checking.Site, ...]]:
    """The state of the first example that fails, from the states of a whole batch.

    Args:
        state: each with a leading dimension over the batch.
        sites: what the codes stand for.
        size: of the batch.
    """
    codes, places, words = state
    _, example = _first(binary.ne(codes, np.int32(0)))
    code = _at(codes, example)
    counts = np.array([0] + [math.prod(site.shape) for site in sites], _INT32)
    before = binary.mul(example, _at(counts, code))
    place = binary.add(_at(places, example), before)
    return State(code, place, _at(words, example)), tuple(site.of_batch(size) for site in sites)


def _is_small(fault: checking.Fault) -> bool:
    """Whether a fault is cheap to look for together with others: few elements of one word each."""
    one_word = [
        aval_of(x).dtype.kind in "fiu" and aval_of(x).dtype.itemsize == 4 for x in fault.found
    ]
    return (
        aval_of(fault.bad).size <= _FEW
        and len(one_word) <= 1
        and all(one_word)
        and not fault.payload
    )


def _state_of_many(faults: Sequence[tuple[checking.Fault, int]]) -> State:
    """The state of the first of several small faults, each with its code, in program order."""
    sizes = [aval_of(fault.bad).size for fault, _ in faults]
    failed, place = _first(
        shape.concatenate(
            [shape.reshape(f.bad, (n,)) for (f, _), n in zip(faults, sizes, strict=True)], 0
        )
    )
    starts = np.cumsum([0, *sizes[:-1]], dtype=_INT32)
    after = creation.convert_element_type(binary.ge(place, starts), _INT32)
    number = binary.sub(reduction.reduce_sum(after, (0,)), np.int32(1))
    code = _at(np.array([code for _, code in faults], _INT32), number)
    words = full((0,), 0, _UINT32)
    if any(fault.found for fault, _ in faults):
        columns = [
            _words(*fault.found) if fault.found else full((n,), 0, _UINT32)
            for (fault, _), n in zip(faults, sizes, strict=True)
        ]
        words = shape.reshape(_at(shape.concatenate(columns, 0), place), (1,))
    return State(
        binary.select(failed, code, np.int32(0)), binary.sub(place, _at(starts, number)), words
    )


def _state_of(fault: checking.Fault, code: int) -> State:
    aval = aval_of(fault.bad)
    failed, place = _first(fault.bad)
    found = [_at(shape.reshape(x, (aval.size,)), place) for x in fault.found]
    if fault.payload:
        rows = math.prod(aval.shape[fault.batch_dims :])
        example = binary.div(place, np.int32(rows))
        for x in fault.payload:
            own = aval_of(x).shape
            batch = math.prod(own[: fault.batch_dims])
            found.append(_at(shape.reshape(x, (batch, *own[fault.batch_dims :])), example))
    words = [_words(x) for x in found]
    return State(
        binary.select(failed, np.int32(code), np.int32(0)),
        place,
        shape.concatenate(words, 0) if words else full((0,), 0, _UINT32),
    )


def _first(bad: Array) -> tuple[Any, Any]:
    """Whether anything is true, and the flat position of the first; if nothing is, the last."""
    size = aval_of(bad).size
    if size == 1:
        return shape.reshape(bad, ()), full((), 0, _INT32)
    numbers = creation.iota(_INT32, size)
    flat = shape.reshape(bad, (size,))
    place = reduction.reduce_min(binary.select(flat, numbers, full((size,), size, _INT32)), (0,))
    return binary.lt(place, np.int32(size)), binary.min(place, np.int32(size - 1))


def _words(x: Array) -> Any:
    """A value as 32-bit words, in memory order."""
    dtype = aval_of(x).dtype
    size = aval_of(x).size
    if dtypes.issubdtype(dtype, np.complexfloating):
        parts = [shape.reshape(p, (size, 1)) for p in (unary.real(x), unary.imag(x))]
        return _words(shape.concatenate(parts, 1))
    if dtype == np.bool_:
        return creation.convert_element_type(shape.reshape(x, (size,)), _UINT32)
    if dtype.itemsize >= 4:
        bits = creation.bitcast_convert_type_p.bind(x, new_dtype=_UINT32)
        return shape.reshape(bits, (aval_of(bits).size,))
    bits = creation.bitcast_convert_type(x, np.dtype(f"uint{8 * dtype.itemsize}"))
    return creation.convert_element_type(shape.reshape(bits, (size,)), _UINT32)
