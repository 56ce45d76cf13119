"""Evaluating jaxprs: runs one equation by equation in the current trace.

This is the whole of what turns a transformation of functions into one of jaxprs: trace the
evaluation of the jaxpr.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.core import trace as core_trace
from minijax.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from minijax.interpreters import staging


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: Any) -> list[Any]:
    """The results of `jaxpr` on constants and arguments, each operation in the current trace.

    Source:     mirrors jax.core.eval_jaxpr (0.10).

    Example:
        >>> closed = jax.make_jaxpr(lambda x: x * x + 1)(2)
        >>> jax.eval_jaxpr(closed.jaxpr, closed.consts, 5)
        [Array(26, dtype=int32, weak_type=True)]
    """
    values: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    values.update(zip(jaxpr.invars, args, strict=True))
    last_use = last_uses(jaxpr)
    scope, origin = staging.scope, staging.origin
    outer, outer_origin = scope.value, origin.value
    try:
        for eqn in jaxpr.eqns:
            origin.set_local(eqn.source)
            if eqn.scope:
                scope.set_local(outer + eqn.scope)
            trace = core_trace.current.value
            outs = trace.process(
                eqn.primitive,
                [v.value if type(v) is Literal else values[v] for v in eqn.invars],
                eqn.params,
            )
            if eqn.scope:
                scope.set_local(outer)
            values.update(zip(eqn.outvars, outs, strict=True))
            for var in last_use.get(id(eqn), ()):
                del values[var]
    finally:
        scope.set_local(outer)
        origin.set_local(outer_origin)
    return [v.value if type(v) is Literal else values[v] for v in jaxpr.outvars]


class restored:  # noqa: N801  a context manager reads as a verb
    """Context manager: what is made inside has the scope and the origin of an equation."""

    __slots__ = ("_eqn", "_origin", "_scope")

    def __init__(self, eqn: Eqn) -> None:
        self._eqn = eqn

    def __enter__(self) -> None:
        self._scope = staging.scope.swap_local(staging.scope.value + self._eqn.scope)
        self._origin = staging.origin.swap_local(self._eqn.source)

    def __exit__(self, *_: object) -> None:
        staging.scope.set_local(self._scope)
        staging.origin.set_local(self._origin)


def eval_closed_jaxpr(closed: ClosedJaxpr, *args: Any) -> list[Any]:
    """The results of a closed jaxpr on `args`."""
    return eval_jaxpr(closed.jaxpr, closed.consts, *args)


def last_uses(jaxpr: Jaxpr) -> dict[int, list[Var]]:
    """For each equation (by identity), the variables that nothing after it reads."""
    last: dict[Var, int] = {}
    for eqn in jaxpr.eqns:
        for var in (*eqn.invars, *eqn.outvars):
            if type(var) is Var:
                last[var] = id(eqn)
    for var in jaxpr.outvars:
        last.pop(var, None)  # type: ignore[arg-type]
    found: dict[int, list[Var]] = {}
    for var, eqn_id in last.items():
        found.setdefault(eqn_id, []).append(var)
    return found
