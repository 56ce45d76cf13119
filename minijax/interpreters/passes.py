"""Passes over jaxprs: dead code elimination and pruned constants.  Step 4.

Input: a jaxpr.  Output: a jaxpr of the same meaning, without equations whose results nobody reads
and without constants that nobody reads.  With `MINIJAX_CHECK=1` each result is type-checked.  It is
step 4 of a call.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from minijax.core import config, refs
from minijax.core.check import check_jaxpr
from minijax.core.effects import NamedAxisEffect
from minijax.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var, used_variables
from minijax.core.rules import Rules

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
