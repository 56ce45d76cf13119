"""Passes over jaxprs: dead code elimination, pruned constants, keys of equal programs.  Step 4.

Input: a jaxpr.  Output: a jaxpr of the same meaning, without equations whose results nobody reads
and without constants that nobody reads.  With `MINIJAX_CHECK=1` each result is type-checked.  It is
step 4 of the walk of an argument.

`key_of` takes a closed jaxpr and gives a key; equal keys mean equal programs.  A function that is
defined anew in each turn of a loop is staged anew, and shares its executable by this.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Sequence
from typing import Any

import numpy as np

from minijax.core import config, refs
from minijax.core.check import check_jaxpr
from minijax.core.effects import NamedAxisEffect
from minijax.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var, used_variables
from minijax.core.operators import Value
from minijax.core.rules import Facts, Rules

dce = Rules("dce")
"""Drops unused results of an operation that holds a jaxpr: `(primitive, eqn, used)` gives the
equation with the results in use, or None if it goes; without a rule all results stay."""


def dce_jaxpr(
    jaxpr: Jaxpr,
    used_outputs: Sequence[bool] | None = None,
    *,
    keep_inputs: bool | Sequence[bool] = False,
) -> tuple[Jaxpr, list[bool]]:
    """Drops equations whose results nobody reads, except those with effects.

    Args:
        jaxpr: what to clean.
        used_outputs: which results are wanted; all by default.
        keep_inputs: whether, or which, parameters stay even if nobody reads them.

    Returns:
        The jaxpr, and which of its former parameters it still has.
    """
    result, kept, _ = _eliminate(jaxpr, used_outputs, keep_inputs)
    return result, kept


def _eliminate(
    jaxpr: Jaxpr, used_outputs: Sequence[bool] | None, keep_inputs: bool | Sequence[bool]
) -> tuple[Jaxpr, list[bool], set[Var]]:
    """The jaxpr without dead code, which parameters it keeps, and which variables are read."""
    outvars = [
        v
        for v, wanted in zip(
            jaxpr.outvars, used_outputs or [True] * len(jaxpr.outvars), strict=True
        )
        if wanted
    ]
    live: set[Var] = {v for v in outvars if type(v) is Var}
    eqns: list[Eqn] = []
    for eqn in reversed(jaxpr.eqns):
        bound = eqn.outvars
        needed = bound[0] in live if len(bound) == 1 else any(v in live for v in bound)
        # That devices along an axis take part is no reason to keep what none of them reads.
        if not needed and all(type(effect) is NamedAxisEffect for effect in eqn.effects):
            continue
        slim = eqn
        slimmed = dce.of(eqn.primitive)
        if slimmed is not None:
            slim = slimmed(eqn, [v in live for v in bound])
            if slim is None:
                continue
        if slim is not eqn:
            kept_effects = {e for e in eqn.effects if isinstance(e, refs.ReferenceEffect)}
            slim.effects = refs.effects_outside(slim.effects, ()) | kept_effects
        eqns.append(slim)
        for v in slim.invars:
            if type(v) is Var:
                live.add(v)
    if isinstance(keep_inputs, bool):
        keep_inputs = [keep_inputs] * len(jaxpr.invars)
    kept = [keep or v in live for v, keep in zip(jaxpr.invars, keep_inputs, strict=True)]
    invars = [v for v, keep in zip(jaxpr.invars, kept, strict=True) if keep]
    result = jaxpr.replace(invars=invars, outvars=outvars, eqns=eqns[::-1])
    if config.enable_checks.value:
        check_jaxpr(result)
    return result, kept, live


def clean(
    closed: ClosedJaxpr,
    used_outputs: Sequence[bool] | None = None,
    *,
    keep_inputs: bool | Sequence[bool] = False,
) -> tuple[ClosedJaxpr, list[bool]]:
    """As `dce_jaxpr`, of a closed jaxpr, whose unread constants go as well."""
    jaxpr, kept, live = _eliminate(closed.jaxpr, used_outputs, keep_inputs)
    return _with_constants_in(ClosedJaxpr(jaxpr, closed.consts), live), kept


def dce_closed_jaxpr(
    closed: ClosedJaxpr, used_outputs: Sequence[bool], keep_inputs: Sequence[bool] | None = None
) -> tuple[ClosedJaxpr, list[bool]]:
    """As `clean`, and remembered with the closed jaxpr."""

    def make() -> tuple[ClosedJaxpr, list[bool]]:
        return clean(
            closed, used_outputs, keep_inputs=False if keep_inputs is None else keep_inputs
        )

    key = ("dce", tuple(used_outputs), None if keep_inputs is None else tuple(keep_inputs))
    result: tuple[ClosedJaxpr, list[bool]] = closed.remember(key, make)
    return result


def prune_constants(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Drops constants that no equation and no result reads."""
    if not closed.jaxpr.constvars:
        return closed
    return _with_constants_in(closed, used_variables(closed.jaxpr))


def _with_constants_in(closed: ClosedJaxpr, used: Container[Var]) -> ClosedJaxpr:
    jaxpr = closed.jaxpr
    pairs = [
        (var, value)
        for var, value in zip(jaxpr.constvars, closed.consts, strict=True)
        if var in used
    ]
    if len(pairs) == len(jaxpr.constvars):
        return closed
    pruned = jaxpr.replace(constvars=[var for var, _ in pairs], effects=jaxpr.effects)
    return ClosedJaxpr(pruned, [value for _, value in pairs])


def close_over_constants(jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr with its constants as leading parameters."""
    invars = jaxpr.constvars + jaxpr.invars
    return jaxpr.replace(constvars=[], invars=invars, effects=jaxpr.effects)


unlowered_params: Facts[frozenset[str]] = Facts("unlowered_params", frozenset())
"""Parameters that the rule `lower` does not read: programs that differ in them alone compile to the
same."""

_MOST_EQUATIONS = 2000
_MOST_CONSTANT_BYTES = 1 << 16


class _Same:
    """An object as part of a key: equal to itself alone, and kept alive by the key."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


class _NoKey(Exception):  # noqa: N818  it is caught where it is raised, and no error
    """A program has a part that cannot be compared, or too many parts."""


def key_of(closed: ClosedJaxpr) -> Hashable | None:
    """A key that equal programs share; None for programs that are too large to compare."""
    if len(closed.jaxpr.eqns) > _MOST_EQUATIONS:
        return None
    try:
        return _closed(closed)
    except _NoKey:
        return None


def _closed(closed: ClosedJaxpr) -> Hashable:
    return _jaxpr(closed.jaxpr), tuple(map(_constant, closed.consts))


def _jaxpr(jaxpr: Jaxpr) -> Hashable:
    inputs = (*jaxpr.constvars, *jaxpr.invars)
    numbers: dict[Atom, int] = {var: i for i, var in enumerate(inputs)}

    def read(atoms: Sequence[Atom]) -> Hashable:
        return tuple(_literal(a) if type(a) is Literal else numbers[a] for a in atoms)

    eqns = []
    for eqn in jaxpr.eqns:
        unread = unlowered_params.of(eqn.primitive)
        params = tuple(
            (name, _param(value))
            for name, value in sorted(eqn.params.items())
            if name not in unread
        )
        eqns.append((eqn.primitive, params, read(eqn.invars), len(eqn.outvars)))
        for var in eqn.outvars:
            numbers[var] = len(numbers)
    avals = tuple(var.aval for var in inputs)
    return len(jaxpr.constvars), avals, tuple(eqns), read(jaxpr.outvars)


def _literal(literal: Literal) -> Hashable:
    value = literal.value
    if isinstance(value, np.generic):
        return literal.aval, value.tobytes()
    # The text tells 0.0 from -0.0, and one NaN is as good as another.
    return literal.aval, type(value), repr(value)


def _constant(value: Any) -> Hashable:
    # A key outlives its program, and must not keep much alive.
    if getattr(value, "nbytes", 0) > _MOST_CONSTANT_BYTES:
        raise _NoKey
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise _NoKey
        # Its owner may write into it, so it is compared by what it holds now.
        return value.shape, value.dtype, value.tobytes()
    return _Same(value)


def _param(value: object) -> Hashable:
    if isinstance(value, ClosedJaxpr):
        return _closed(value)
    if isinstance(value, Jaxpr):
        return _jaxpr(value)
    if isinstance(value, (tuple, list)):
        return type(value), tuple(map(_param, value))
    if isinstance(value, (bool, int, float, complex, np.generic)):
        return type(value), repr(value)
    # A Python function is equal to itself alone, and may close over whatever its owner holds.
    # Classes and meshes, which are decorators too, are none.
    is_function = callable(value) and not isinstance(value, (type, config.Context))
    if is_function or not isinstance(value, Hashable):
        raise _NoKey
    return value
