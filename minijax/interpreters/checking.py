"""Checks: what may go wrong in a program, as data, and the primitive that asserts.

A primitive says what may go wrong in its `faults` rule; one that holds jaxprs says in
`check_inside` how they are checked.  `lax/functionalization.py` turns a jaxpr with such faults
into one that returns the first of them.  Nothing is raised here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from minijax.core import config, effects
from minijax.core import source as core_source
from minijax.core.aval import ShapedArray, aval_of
from minijax.core.errors import (
    CheckError,
    DivisionByZeroError,
    FailedCheckError,
    NonFiniteError,
    OutOfBoundsError,
    error,
    message,
)
from minijax.core.jaxpr import Effects
from minijax.core.native import Traceback
from minijax.core.operators import Aval, BatchDims, HostArray, Operand, Param, Rule, Values
from minijax.core.primitive import Batched, Dual, LoweringContext, Primitive
from minijax.core.rules import Facts, Rules
from minijax.core.trace import Params
from minijax.interpreters.structural import to_batch_dims
from minijax.runtime.array import array_from_host, physical_aval, wrap
from minijax.sharding import rules

faults = Rules("faults")
"""What may go wrong in one application: `(primitive, args, outs, **params)` gives a list of
`Fault`s.  Without a rule: only what may happen to every operation, a NaN or an infinity."""

check_inside = Rules("check_inside")
"""Checks the insides of an operation that holds jaxprs: `(primitive, checker, args, params)`
applies it with jaxprs that also return their first fault, and returns the results."""

Shape = tuple[int, ...]

INDEX, NON_FINITE, NAN, DIVISION, KEY, USER = (
    *("index", "non-finite", "nan", "division", "key", "user"),
)
"""Kinds of faults.  NAN is NON_FINITE without infinities."""

ELEMENTWISE, PRESERVES, MOVES, COPIES, SELECTS, INSPECTS, COMPUTES = (
    *("elementwise", "preserves", "moves", "copies", "selects", "inspects", "computes"),
)

fault_flow: Facts[str] = Facts("fault_flow", COMPUTES)
"""What becomes of faulty elements of the operands: ELEMENTWISE, those of the result in the same
places; PRESERVES, so too, and the operation makes none of its own; MOVES, it puts them elsewhere;
COPIES, the result holds elements of the operands and none of its own; SELECTS, only those chosen;
INSPECTS, the result tells which are faulty; COMPUTES, anything."""


_ERRORS: dict[str, type[CheckError]] = {
    INDEX: OutOfBoundsError,
    NON_FINITE: NonFiniteError,
    NAN: NonFiniteError,
    DIVISION: DivisionByZeroError,
    USER: FailedCheckError,
}
_FIXES = {
    INDEX: "a mode says that it is meant: x.at[i].get(mode='clip'), x.at[i].set(y, mode='drop')",
    NON_FINITE: "guard the operand: numpy.where(ok, f(numpy.where(ok, x, 1)), 0)",
    DIVISION: "guard the divisor: numpy.where(ok, x / numpy.where(ok, y, 1), 0)",
}


class CheckEffect(effects.Effect):
    """An equation asserts something."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Check"


CHECK_EFFECT = CheckEffect()
effects.control_flow_allowed_effects.add_type(CheckEffect)
effects.repeatable_effects.add_type(CheckEffect)
# Lowerable, so that the rule of the primitive can say what is missing.
effects.lowerable_effects.add_type(CheckEffect)


class Fault(NamedTuple):
    """Something that may have gone wrong in an operation.

    Attributes:
        kind: one of the kinds above.
        bad: where it has: booleans of the shape of what is checked.
        text: what is wrong, with a `format` method that takes the values found.
        found: arrays of the shape of `bad`; the text shows their elements at the first bad place.
        payload: arrays of other shapes that the text shows whole, batched as `bad` is.
        name: the operation to blame, if it is not the equation's own.
        batch_dims: how many of the leading dimensions of `bad` are those of batches.
    """

    kind: str
    bad: Operand
    text: Operand
    found: tuple[Operand, ...] = ()
    payload: tuple[Operand, ...] = ()
    name: str = ""
    batch_dims: int = 0


class Site(NamedTuple):
    """A place in a program where something may go wrong.

    Attributes:
        kind: the kind of the fault.
        primitive: the name of the primitive.
        text: what is wrong, with fields for values.
        source: the traceback of the equation.
        shape: of what is checked, with the dimensions of batches in front.
        batch_dims: how many dimensions of batches there are.
        values: the types of the values for the text.
    """

    kind: str
    primitive: str
    text: Operand
    source: Traceback | None
    shape: Shape
    batch_dims: int
    values: tuple[ShapedArray, ...]

    @property
    def words(self) -> int:
        """How many 32-bit words the values take."""
        return sum(map(words_of, self.values))

    def of_batch(self, size: int) -> Site:
        """The same place, in a program that runs on a whole batch."""
        return self._replace(shape=(size, *self.shape), batch_dims=self.batch_dims + 1)


def words_of(aval: ShapedArray) -> int:
    """How many 32-bit words a value of a type takes."""
    words: int = aval.size * math.ceil(aval.dtype.itemsize / 4)
    return words


def values_from_words(avals: Sequence[ShapedArray], words: HostArray) -> list[HostArray]:
    """Values from the words that they were packed into, on the host."""
    values = []
    place = 0
    for aval in avals:
        count = words_of(aval)
        taken = np.ascontiguousarray(words[place : place + count], np.uint32)
        place += count
        physical = physical_aval(aval)
        dtype = np.dtype(physical.dtype)
        if dtype.itemsize >= 4:
            host = taken.view(dtype)
        else:
            host = taken.astype(f"u{dtype.itemsize}")
            host = host.astype(np.bool_) if dtype == np.bool_ else host.view(dtype)
        host = host.reshape(physical.shape)
        values.append(wrap(array_from_host(host).buffer, aval) if aval.is_extended else host)
    return values


class Check(Primitive):
    """Asserts that `bad` is false everywhere.

    Shapes: bad: bool[b, s], found: T[b, s] …, payload: T[b, …] … -> nothing; b are the
    `batch_dims` dimensions of batches.  The other parameters are fields of `Fault`.

    Without transpose: nothing is computed, so nothing is linear.
    """

    name = "check"
    multiple_results: ClassVar[bool] = True
    has_effects: ClassVar[bool] = True
    shard = rules.from_types

    def impl(self, *args: Operand, **params: Param) -> Values:
        (fault,) = faults.of(self)(args, (), **params)
        places = np.flatnonzero(np.asarray(fault.bad))
        if places.size:
            place = int(places[0])
            rows = math.prod(np.shape(fault.bad)[fault.batch_dims :])
            values = [np.asarray(x).reshape(-1)[place] for x in fault.found]
            values += [
                _example(np.asarray(x), fault.batch_dims, place // rows) for x in fault.payload
            ]
            raise error_of(site_of(fault, "", None), place, values)
        return ()

    def abstract_eval(self, bad: ShapedArray, *values: ShapedArray, **_: Param) -> list[Aval]:
        return []

    def effects(self, *avals: Aval, **_: Param) -> Effects:
        return frozenset({CHECK_EFFECT})

    def lower(self, ctx: LoweringContext, *values: Operand, **_: Param) -> Operand:
        error(
            ValueError,
            "checkify.check",
            "a check was compiled where nobody looks at its outcome.",
            fix="apply checkify, or minijax.checked, to the function that is compiled: "
            "jit(checkify(f)) or checkify(jit(f))",
        )

    def jvp(self, primals: Values, tangents: Values, **params: Param) -> Dual:
        self.bind(*primals, **params)
        return [], []

    def batch(
        self, size: int, args: Values, dims: BatchDims, *, batch_dims: int, **params: Param
    ) -> Batched:
        moved = to_batch_dims(args, dims, 0, size)
        self.bind(*moved, batch_dims=batch_dims + 1, **params)
        return [], []


@check_inside.rule(Check)
def _check_inside_of_check(
    primitive: Check, checker: Rule, args: Values, params: Params
) -> Operand:
    for fault in faults.of(primitive)(args, (), **params):
        checker.judge(fault)
    return ()


@faults.rule(Check)
def _faults_of_check(
    primitive: Check,
    args: Values,
    outs: Values,
    *,
    kind: str,
    text: str,
    blamed: str,
    num_found: int,
    batch_dims: int,
) -> list[Fault]:
    bad, *values = args
    found, payload = tuple(values[:num_found]), tuple(values[num_found:])
    return [Fault(kind, bad, text, found, payload, blamed, batch_dims)]


check_p = Check()


def is_checking(kind: str) -> bool:
    """Whether what is being traced will be checked for faults of a kind."""
    return kind in config.checking.value


def check(fault: Fault) -> None:
    """Asserts that a fault does not happen."""
    check_p.bind(
        fault.bad,
        *fault.found,
        *fault.payload,
        kind=fault.kind,
        text=fault.text,
        blamed=fault.name,
        num_found=len(fault.found),
        batch_dims=fault.batch_dims,
    )


def site_of(fault: Fault, primitive: str, source: Traceback | None) -> Site:
    """The place in a program where a fault may happen."""
    found = tuple(aval_of(x).with_shape(()) for x in fault.found)
    payload = tuple(
        aval.with_shape(aval.shape[fault.batch_dims :]) for aval in map(aval_of, fault.payload)
    )
    return Site(
        fault.kind,
        fault.name or primitive,
        fault.text,
        source,
        aval_of(fault.bad).shape,
        fault.batch_dims,
        found + payload,
    )


def error_of(site: Site, place: int, values: Values, function: str = "") -> CheckError:
    """The error for a fault at a flat position of what is checked."""
    index = tuple(map(int, np.unravel_index(place, site.shape)))
    example, element = index[: site.batch_dims], index[site.batch_dims :]
    text = site.text.format(*values) + " (`check` failed)" * (site.kind == USER)
    facts = []
    if element:
        facts.append(f"element {list(element)} of {list(site.shape[site.batch_dims :])}")
    if example:
        facts.append(f"example {list(example)} of the batch {list(site.shape[: site.batch_dims])}")
    line = core_source.user_line() if site.source is None else core_source.summarize(site.source)
    error = _ERRORS[site.kind](
        message(
            "" if site.kind == USER else site.primitive,
            text if site.kind == USER else f"{text}.",
            got=", ".join(facts) or None,
            fix=_FIXES.get(site.kind),
            at=line,
        )
    )
    error.primitive = site.primitive
    error.index = element
    error.example = example
    error.line = line
    error.detail = text
    return error


def _example(x: HostArray, batch_dims: int, row: int) -> HostArray:
    """One example of a batch along the leading dimensions."""
    rows: HostArray = x.reshape(-1, *x.shape[batch_dims:])
    return rows[row : row + 1].reshape(x.shape[batch_dims:])
