"""Discharging references: programs that mutate become programs that do not.

Input: a jaxpr with references.  Output: one that takes and returns their values.  The trace below
runs over the evaluation of the jaxpr: a reference is a `refs.Cell` that holds the value of the
moment, and each operation on references is replaced by its rule `discharge`, which is also what
runs where nothing is traced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from minijax.core import config, refs
from minijax.core.aval import AbstractValue
from minijax.core.errors import MissingRule, error
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, holders, jaxprs_in_params
from minijax.core.operators import Value, Values
from minijax.core.primitive import Primitive
from minijax.core.trace import Params, Trace, current
from minijax.interpreters import passes, staging


class DischargeTrace(Trace):
    """Applies operations on references to cells; everything else goes on to `parent`."""

    __slots__ = ("parent",)

    def __init__(self, parent: Trace) -> None:
        super().__init__(parent.function_name)
        self.parent = parent

    def process(self, primitive: Primitive, args: Values, params: Params) -> Values:
        current.set_local(self.parent)
        try:
            if refs.makes_references.of(primitive) or refs.any_cell(args):
                rule = refs.discharge.of(primitive)
                if rule is None:
                    error(
                        MissingRule,
                        primitive.name,
                        "the primitive has no rule for references (discharge).",
                        fix="read the reference before the operation, and write it afterwards",
                    )
                outs = rule(*args, **params)
                return outs if primitive.multiple_results else (outs,)
            params = {key: _pure_param(value) for key, value in params.items()}
            return self.parent.process(primitive, args, params)
        finally:
            current.set_local(self)


def _pure_param(value: object) -> Any:
    if isinstance(value, ClosedJaxpr):
        return without_references(value)
    if type(value) is tuple and any(isinstance(item, ClosedJaxpr) for item in value):
        return tuple(map(_pure_param, value))
    return value


class Discharged(NamedTuple):
    """A jaxpr without references.

    Attributes:
        closed: takes the values of references in their places, and returns final values of some of
            them after its results.
        finals: the numbers of those references among the arguments.
    """

    closed: ClosedJaxpr
    finals: tuple[int, ...]


def discharge_jaxpr(closed: ClosedJaxpr, finals: Sequence[int] | None = None) -> Discharged:
    """The jaxpr of values for one of references.

    Args:
        closed: a jaxpr that may take and make references.
        finals: which arguments' final values to return; by default those that are written.
    """
    chosen = tuple(written_references(closed.jaxpr) if finals is None else finals)
    if not chosen and not has_references(closed.jaxpr):
        return Discharged(closed, chosen)
    pure: ClosedJaxpr = closed.remember(("discharge", chosen), lambda: _discharge(closed, chosen))
    return Discharged(pure, chosen)


def without_references(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The same jaxpr, where references that it makes for itself are values.

    One that takes references comes back as it is.
    """
    if any(type(aval) is refs.AbstractRef for aval in closed.in_avals):
        return closed
    return discharge_jaxpr(closed, ()).closed


def without_references_open(jaxpr: Jaxpr, consts: Values) -> tuple[Jaxpr, list[Any]]:
    """As `without_references`, of an open jaxpr and the values of its constants."""
    if not has_references(jaxpr):
        return jaxpr, list(consts)
    pure = without_references(ClosedJaxpr(passes.close_over_constants(jaxpr)))
    invars = pure.jaxpr.invars
    count = len(consts)
    open_jaxpr = pure.jaxpr.replace(
        constvars=pure.jaxpr.constvars + invars[:count],
        invars=invars[count:],
        effects=pure.jaxpr.effects,
        debug_info=jaxpr.debug_info,
    )
    return open_jaxpr, [*pure.consts, *consts]


def check_differentiable(name: str, aval: AbstractValue) -> None:
    """Refuses references among the arguments by which the function `name` is differentiated.

    Raises:
        ValueError: `aval` is the type of one.
    """
    if type(aval) is refs.AbstractRef:
        problem = "reverse mode cannot differentiate with respect to a reference."
        fix = "pass its value, ref[...], and make the reference inside: new_ref(x)"
        error(ValueError, name, problem, got=str(aval), fix=fix)


def _discharge(closed: ClosedJaxpr, finals: Sequence[int]) -> ClosedJaxpr:
    def function(*values: Any) -> list[Any]:
        args = [
            refs.Cell(x) if type(aval) is refs.AbstractRef else x
            for x, aval in zip(values, closed.in_avals, strict=True)
        ]
        trace = DischargeTrace(current.value)
        with config.override(current, trace):
            outs = staging.eval_closed_jaxpr(closed, *args)
        trace.finished = True
        return outs + [args[i].read() for i in finals]

    avals = [a.inner_aval if type(a) is refs.AbstractRef else a for a in closed.in_avals]
    jaxpr, consts = staging.stage(function, avals, closed.jaxpr.debug_info)
    return passes.clean(ClosedJaxpr(jaxpr, consts), keep_inputs=True)[0]


def has_references(jaxpr: Jaxpr) -> bool:
    """Whether a jaxpr, or one inside it, takes or makes references."""
    if jaxpr.has_references is None:
        jaxpr.has_references = _find_references(jaxpr)
    return jaxpr.has_references


def _find_references(jaxpr: Jaxpr) -> bool:
    if any(type(v.aval) is refs.AbstractRef for v in (*jaxpr.invars, *jaxpr.constvars)):
        return True
    if any(refs.makes_references.of(eqn.primitive) for eqn in jaxpr.eqns):
        return True
    return any(
        has_references(inner) for eqn in holders(jaxpr) for inner in jaxprs_in_params(eqn.params)
    )


def written_references(jaxpr: Jaxpr) -> list[int]:
    """The numbers of the arguments that are references and are written."""
    written = {
        e.reference for e in jaxpr.effects if isinstance(e, (refs.WriteEffect, refs.AccumEffect))
    }
    return [i for i, var in enumerate(jaxpr.invars) if var in written]


def value_of(x: Value) -> Any:
    """The value of a cell; of anything else, itself."""
    return x.read() if isinstance(x, refs.Cell) else x


def discharge_call(primitive: Primitive, *args: Any, jaxpr: ClosedJaxpr, **params: Any) -> Values:
    """The rule `discharge` of an operation that calls its parameter `jaxpr` on its operands."""
    pure, finals = discharge_jaxpr(jaxpr)
    outs = primitive.bind_all(*map(value_of, args), jaxpr=pure, **params)
    return write_finals(outs, [args[i] for i in finals])


def write_finals(outs: Sequence[Any], cells: Sequence[refs.Cell]) -> list[Any]:
    """Puts the last results of an operation into cells, and returns the others."""
    count = len(outs) - len(cells)
    for cell, value in zip(cells, outs[count:], strict=True):
        cell.write(value)
    return list(outs[:count])
