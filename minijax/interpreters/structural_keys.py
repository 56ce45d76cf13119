"""Keys of programs: equal keys mean equal equations, types and constants.

Executables are cached by these keys.  A function that is redefined in each iteration of a loop is
staged anew, but shares its executable (decision 0006).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from minijax.core import config
from minijax.core.jaxpr import Atom, ClosedJaxpr, Jaxpr, Literal
from minijax.core.operators import Value
from minijax.core.rules import Facts

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


def _param(value: Value) -> Hashable:
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
