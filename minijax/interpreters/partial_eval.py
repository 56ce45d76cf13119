"""Partial evaluation: runs what is known now, stages the rest.

Input: a function of known and unknown values.  Output: known results, and a jaxpr of the
unknown ones whose constants are the residuals.  Linearization is forward mode over this trace:
primal operations run in the enclosing trace, and only the tangent program is staged, in one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from minijax.core.aval import aval_of
from minijax.core.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, Literal, Var
from minijax.core.trace import Trace, current
from minijax.interpreters import evaluation, jvp, staging
from minijax.interpreters.staging import StagingTrace, StagingTracer
from minijax.interpreters.tangents import Zero


class PartialTrace(Trace):
    """Sends operations on known values to `known`, and those on any unknown one to `unknown`."""

    __slots__ = ("known", "unknown")

    def __init__(self, known: Trace, unknown: StagingTrace) -> None:
        super().__init__(unknown.function_name)
        self.known = known
        self.unknown = unknown

    def is_unknown(self, x: Any) -> bool:
        """Whether a value is a variable of the staged program."""
        return type(x) is StagingTracer and x.trace is self.unknown

    def process(
        self, primitive: Any, args: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        unknown = self.unknown
        for x in args:
            if type(x) is StagingTracer and x.trace is unknown:
                break
        else:
            current.set_local(self.known)
            try:
                return self.known.process(primitive, args, params)
            finally:
                current.set_local(self)
        if primitive.partial_eval is not None:
            outs: Sequence[Any] = primitive.partial_eval(self, args, params)
            return outs
        return unknown.process(primitive, args, params)


class Linearized(NamedTuple):
    """A linearized function: `jaxpr` maps non-zero tangents to the tangents in `out_nonzero`."""

    outs: list[Any]
    jaxpr: Jaxpr
    residuals: list[Any]
    out_nonzero: list[bool]
    out_tangent_avals: list[Any]


def linearize_flat(
    function: Callable[..., Sequence[Any]],
    primals: Sequence[Any],
    nonzero: Sequence[bool],
    debug_info: DebugInfo,
) -> Linearized:
    """Runs `function` at `primals` and stages its derivative with respect to the `nonzero` ones."""
    before = current.value
    staged = StagingTrace(debug_info.func_name)
    parent = PartialTrace(before, staged)
    tangents: list[Any] = []
    for x, nz in zip(primals, nonzero, strict=True):
        aval = aval_of(x).tangent_aval()
        tangents.append(staged.new_arg(aval) if nz else Zero(aval))
    try:
        outs, out_dots = jvp.jvp_flat(
            function, primals, tangents, debug_info.func_name, parent=parent
        )
        out_nonzero = [type(t) is not Zero for t in out_dots]
        jaxpr, residuals = staged.finish([t for t in out_dots if type(t) is not Zero])
    finally:
        current.set_local(before)
        staged.finished = parent.finished = True
    avals = [t.aval if type(t) is Zero else aval_of(t) for t in out_dots]
    return Linearized(outs, jaxpr, residuals, out_nonzero, avals)


class PartialJaxpr(NamedTuple):
    """A jaxpr split in two.

    Attributes:
        known: known arguments to known results, then residuals.
        staged: residuals, then unknown arguments, to unknown results.
        out_unknown: which results are unknown.
        num_residuals: how many residuals there are.
    """

    known: ClosedJaxpr
    staged: ClosedJaxpr
    out_unknown: list[bool]
    num_residuals: int


def partial_eval_jaxpr(closed: ClosedJaxpr, unknown: Sequence[bool]) -> PartialJaxpr:
    """Splits a jaxpr into what follows from its known arguments, and the rest."""
    key = ("partial_eval", tuple(unknown))
    if key not in closed.cache:
        closed.cache[key] = _partial_eval_jaxpr(closed, unknown)
    return closed.cache[key]  # type: ignore[no-any-return]


def _partial_eval_jaxpr(closed: ClosedJaxpr, unknown: Sequence[bool]) -> PartialJaxpr:
    in_avals = closed.in_avals
    known_avals = [a for a, u in zip(in_avals, unknown, strict=True) if not u]
    name = closed.jaxpr.debug_info.func_name
    staged = StagingTrace(name)
    out_unknown: list[bool] = []
    result: list[Any] = []

    def known_function(*known_args: Any) -> list[Any]:
        trace = PartialTrace(current.value, staged)
        given = iter(known_args)
        args = [
            staged.new_arg(aval) if u else next(given)
            for aval, u in zip(in_avals, unknown, strict=True)
        ]
        current.set_local(trace)
        try:
            outs = evaluation.eval_closed_jaxpr(closed, *args)
        finally:
            current.set_local(trace.known)
        out_unknown[:] = [trace.is_unknown(x) for x in outs]
        jaxpr, residuals = staged.finish(
            [x for x, u in zip(outs, out_unknown, strict=True) if u]
        )
        result.append(jaxpr)
        return [x for x, u in zip(outs, out_unknown, strict=True) if not u] + residuals

    info = closed.jaxpr.debug_info
    known_jaxpr, known_consts = staging.stage(known_function, known_avals, info)
    staged.finished = True
    (staged_jaxpr,) = result
    staged_jaxpr, known_jaxpr = _forward_known_inputs(staged_jaxpr, known_jaxpr)
    num_residuals = len(staged_jaxpr.constvars)
    staged_jaxpr = Jaxpr(
        [],
        staged_jaxpr.constvars + staged_jaxpr.invars,
        staged_jaxpr.outvars,
        staged_jaxpr.eqns,
        staged_jaxpr.effects,
        info,
    )
    return PartialJaxpr(
        ClosedJaxpr(known_jaxpr, known_consts),
        ClosedJaxpr(staged_jaxpr),
        out_unknown,
        num_residuals,
    )


def _forward_known_inputs(staged: Jaxpr, known: Jaxpr) -> tuple[Jaxpr, Jaxpr]:
    """Writes residuals that are literals into the staged jaxpr, and merges repeated ones."""
    count = len(known.outvars) - len(staged.constvars)
    seen: dict[Any, Var] = {}
    replaced: dict[Var, Any] = {}
    constvars, residuals = [], []
    for var, atom in zip(staged.constvars, known.outvars[count:], strict=True):
        if type(atom) is Literal:
            replaced[var] = atom
        elif atom in seen:
            replaced[var] = seen[atom]
        else:
            seen[atom] = var
            constvars.append(var)
            residuals.append(atom)
    if not replaced:
        return staged, known
    swap = lambda atom: replaced.get(atom, atom) if type(atom) is Var else atom  # noqa: E731
    eqns = [e.replace(invars=list(map(swap, e.invars))) for e in staged.eqns]
    outvars = list(map(swap, staged.outvars))
    return (
        Jaxpr(constvars, staged.invars, outvars, eqns, staged.effects, staged.debug_info),
        known.replace(outvars=known.outvars[:count] + residuals),
    )
