"""Partial evaluation: runs what is known now, stages the rest.

Input: a function of known and unknown values.  Output: known results, and a jaxpr of the
unknown ones whose constants are the residuals.  Linearization is forward mode over this trace:
primal operations run in the enclosing trace, and only the tangent program is staged, in one pass.

`docs/reading.md`: read after `interpreters/jvp.py`; `interpreters/transpose.py` is next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from minijax.core import config, deferral
from minijax.core.aval import AbstractValue, aval_of
from minijax.core.jaxpr import Atom, ClosedJaxpr, DebugInfo, Jaxpr, Literal, Var
from minijax.core.operators import FlatFunction, Value, Values
from minijax.core.primitive import Primitive, Tangent, Zero
from minijax.core.sequences import partition_list
from minijax.core.trace import Detours, NestedTrace, Params, Trace, current
from minijax.interpreters import jvp, passes, staging
from minijax.interpreters.staging import StagingTrace, StagingTracer

if TYPE_CHECKING:
    from minijax.interpreters import discharge
else:
    discharge = deferral.module("minijax.interpreters.discharge")

DETOURS = Detours()
"""The operations that are not split as they are."""


class PartialTrace(NestedTrace):
    """Sends operations on known values to `parent`, and those on any unknown one to `unknown`."""

    __slots__ = ("unknown",)
    detours = DETOURS

    def __init__(self, parent: Trace, unknown: StagingTrace) -> None:
        super().__init__(unknown.function_name)
        self.parent = parent
        self.unknown = unknown

    def is_unknown(self, x: Value) -> bool:
        """Whether a value is a variable of the staged program."""
        return type(x) is StagingTracer and x.traced_by is self.unknown

    def concerns(self, primitive: Primitive, args: Values, params: Params) -> bool:
        """Whether one of the arguments is unknown."""
        unknown = self.unknown
        for x in args:  # noqa: SIM110  a generator would cost as much as the rest
            if type(x) is StagingTracer and x.traced_by is unknown:
                return True
        return False

    def interpret(self, primitive: Primitive, args: Values, params: Params) -> Values:
        if primitive.partial_eval is not None:
            outs: Values = primitive.partial_eval(self, args, params)
            return outs
        return self.unknown.process(primitive, args, params)

    process_known = NestedTrace.pass_on

    def evaluate_known(self, closed: ClosedJaxpr, args: Values) -> list[Any]:
        """Runs a jaxpr on known values, outside this trace."""
        with config.override(current, self.parent):
            return staging.eval_closed_jaxpr(closed, *args)


class Linearized(NamedTuple):
    """A linearized function: `jaxpr` maps non-zero tangents to the tangents in `out_nonzero`."""

    outs: list[Any]
    jaxpr: Jaxpr
    residuals: list[Any]
    out_nonzero: list[bool]
    out_tangent_avals: list[AbstractValue]


def linearize_flat(
    function: FlatFunction, primals: Values, nonzero: Sequence[bool], debug_info: DebugInfo
) -> Linearized:
    """Runs `function` at `primals` and stages its derivative with respect to the `nonzero` ones."""
    before = current.value
    staged = StagingTrace(debug_info.func_name)
    parent = PartialTrace(before, staged)
    tangents: list[Tangent] = []
    for x, nz in zip(primals, nonzero, strict=True):
        aval = aval_of(x).tangent_aval()
        if nz and not aval.is_plain:
            discharge.check_differentiable(debug_info.func_name, aval)
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
    jaxpr, residuals = discharge.without_references_open(jaxpr, residuals)
    avals = [t.aval if type(t) is Zero else aval_of(t) for t in out_dots]
    return Linearized(outs, jaxpr, residuals, out_nonzero, avals)


class PartialJaxpr(NamedTuple):
    """A jaxpr split in two.

    Attributes:
        known: known arguments to known results, then the residuals that it computes.
        staged: residuals, then unknown arguments, to unknown results.
        out_unknown: which results are unknown.
        sources: for each residual, the known argument that it is, or None if it is computed.
    """

    known: ClosedJaxpr
    staged: ClosedJaxpr
    out_unknown: list[bool]
    sources: list[int | None]

    def residuals(self, known_args: Sequence[Any], computed: Sequence[Any]) -> list[Any]:
        """All residuals, from the known arguments and the computed ones among them."""
        rest = iter(computed)
        return [next(rest) if i is None else known_args[i] for i in self.sources]


def partial_eval_jaxpr(
    closed: ClosedJaxpr, unknown: Sequence[bool], force: Sequence[bool] = ()
) -> PartialJaxpr:
    """Splits a jaxpr into what follows from its known arguments, and the rest.

    Args:
        closed: the function.
        unknown: which arguments are unknown.
        force: which results are to count as unknown even if they are known.
    """
    key = ("partial_eval", tuple(unknown), tuple(force))
    result: PartialJaxpr = closed.remember(key, lambda: _partial_eval_jaxpr(closed, unknown, force))
    return result


def _partial_eval_jaxpr(
    closed: ClosedJaxpr, unknown: Sequence[bool], force: Sequence[bool]
) -> PartialJaxpr:
    in_avals = closed.in_avals
    known_avals = [a for a, u in zip(in_avals, unknown, strict=True) if not u]
    name = closed.jaxpr.debug_info.func_name
    staged = StagingTrace(name)
    out_unknown: list[bool] = []
    result: list[Jaxpr] = []

    def known_function(*known_args: Any) -> list[Any]:
        trace = PartialTrace(current.value, staged)
        given = iter(known_args)
        args = [
            staged.new_arg(aval) if u else next(given)
            for aval, u in zip(in_avals, unknown, strict=True)
        ]
        with config.override(current, trace):
            outs = staging.eval_closed_jaxpr(closed, *args)
        forced = force or [False] * len(outs)
        out_unknown[:] = [trace.is_unknown(x) or f for x, f in zip(outs, forced, strict=True)]
        known_outs, unknown_outs = partition_list(out_unknown, outs)
        jaxpr, residuals = staged.finish(unknown_outs)
        # The constants are tracers of the known part, whose trace ends before this one.
        staged.constants.clear()
        result.append(jaxpr)
        return known_outs + residuals

    info = closed.jaxpr.debug_info
    known_jaxpr, known_consts = staging.stage(known_function, known_avals, info)
    staged.finished = True
    (staged_jaxpr,) = result
    staged_jaxpr, residual_atoms = _merge_residuals(
        staged_jaxpr, known_jaxpr.outvars[out_unknown.count(False) :]
    )
    positions: dict[Atom, int] = {var: i for i, var in enumerate(known_jaxpr.invars)}
    sources = [positions.get(atom) for atom in residual_atoms]
    computed = [a for a, i in zip(residual_atoms, sources, strict=True) if i is None]
    known_outs = known_jaxpr.outvars[: out_unknown.count(False)]
    return PartialJaxpr(
        ClosedJaxpr(known_jaxpr.replace(outvars=known_outs + computed), known_consts),
        ClosedJaxpr(passes.close_over_constants(staged_jaxpr)),
        out_unknown,
        sources,
    )


def _merge_residuals(staged: Jaxpr, residuals: Sequence[Atom]) -> tuple[Jaxpr, list[Atom]]:
    """Writes residuals that are literals into the staged jaxpr, and merges repeated ones."""
    seen: dict[Atom, Var] = {}
    replaced: dict[Var, Atom] = {}
    constvars: list[Var] = []
    atoms: list[Atom] = []
    for var, atom in zip(staged.constvars, residuals, strict=True):
        if type(atom) is Literal:
            replaced[var] = atom
        elif atom in seen:
            replaced[var] = seen[atom]
        else:
            seen[atom] = var
            constvars.append(var)
            atoms.append(atom)
    if not replaced:
        return staged, atoms

    def swap(atoms: Sequence[Atom]) -> list[Atom]:
        return [replaced.get(a, a) if type(a) is Var else a for a in atoms]

    eqns = [eqn.replace(invars=swap(eqn.invars)) for eqn in staged.eqns]
    changes = {"constvars": constvars, "outvars": swap(staged.outvars), "eqns": eqns}
    return staged.replace(**changes, effects=staged.effects), atoms
