"""Transposition: runs a linear jaxpr backwards, from cotangents of results to those of arguments.

Input: a jaxpr linear in its parameters, its residuals, cotangents.  Output: cotangents.

`docs/reading.md`: read after `interpreters/partial_eval.py`; `interpreters/batching.py` is next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from minijax.core import deferral
from minijax.core import trace as core_trace
from minijax.core.aval import aval_of
from minijax.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from minijax.core.operators import Values
from minijax.core.primitive import Cotangent, Cotangents, Tangent, Zero
from minijax.core.sequences import partition_list
from minijax.interpreters import staging
from minijax.interpreters.jvp import UndefinedPrimal, with_zeros
from minijax.interpreters.structural import add_tangents, instantiate

if TYPE_CHECKING:
    from minijax.interpreters import reshard
else:
    reshard = deferral.module("minijax.interpreters.reshard")


def backward_pass(jaxpr: Jaxpr, consts: Values, cotangents: Cotangents) -> list[Tangent]:
    """Cotangents of the parameters of `jaxpr`, which is linear in them; some may be `Zero`.

    Equations that do not depend on a parameter are evaluated first.
    """
    values: dict[Atom, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    linear_eqns = _evaluate_known(jaxpr, values)
    totals: dict[Atom, Tangent] = {}

    def accumulate(atom: Atom, ct: Cotangent) -> None:
        if ct is None or type(ct) is Zero or type(atom) is Literal or atom in values:
            return
        if not (atom.aval.is_plain and aval_of(ct).is_plain):
            ct = reshard.settled(ct, atom.aval)
        before = totals.get(atom)
        totals[atom] = ct if before is None else add_tangents(before, ct)

    for atom, ct in zip(jaxpr.outvars, cotangents, strict=True):
        accumulate(atom, ct)
    # Reverse order: a cotangent is complete once all its uses were visited.
    for eqn in reversed(linear_eqns):
        cts = [totals.pop(var, None) for var in eqn.outvars]
        if all(ct is None for ct in cts):
            continue
        for atom, ct in zip(eqn.invars, _transpose_eqn(eqn, values, cts), strict=True):
            accumulate(atom, ct)
    return [totals[v] if v in totals else Zero(v.aval.cotangent_aval()) for v in jaxpr.invars]


def _transpose_eqn(eqn: Eqn, values: dict[Atom, Any], cts: list[Cotangent]) -> Sequence[Cotangent]:
    args: list[Any] = []
    for atom in eqn.invars:
        if type(atom) is Literal:
            args.append(atom.value)
        elif atom in values:
            args.append(values[atom])
        else:
            args.append(UndefinedPrimal(atom.aval))
    with staging.restored(eqn):
        if not eqn.primitive.multiple_results:
            return eqn.primitive.transpose(cts[0], *args, **eqn.params)
        zeros = [
            Zero(var.aval.cotangent_aval()) if ct is None else ct
            for var, ct in zip(eqn.outvars, cts, strict=True)
        ]
        return eqn.primitive.transpose(zeros, *args, **eqn.params)


def _evaluate_known(jaxpr: Jaxpr, values: dict[Atom, Any]) -> list[Eqn]:
    linear = set(jaxpr.invars)
    linear_eqns = []
    for eqn in jaxpr.eqns:
        if any(type(v) is Var and v in linear for v in eqn.invars):
            linear.update(eqn.outvars)
            linear_eqns.append(eqn)
            continue
        args = [v.value if type(v) is Literal else values[v] for v in eqn.invars]
        with staging.restored(eqn):
            outs = core_trace.current.value.process(eqn.primitive, args, eqn.params)
        values.update(zip(eqn.outvars, outs, strict=True))
    return linear_eqns


def transpose_jaxpr(
    closed: ClosedJaxpr,
    linear: Sequence[bool],
    ct_nonzero: Sequence[bool],
    force: Sequence[bool] = (),
) -> tuple[ClosedJaxpr, list[bool]]:
    """The jaxpr of known arguments, then cotangents of results, to cotangents of linear arguments.

    Args:
        closed: a jaxpr linear in the arguments marked `linear`.
        linear: which arguments are.
        ct_nonzero: which results have a cotangent that is not symbolically zero.
        force: which linear arguments shall get a cotangent even if it is zero.

    Returns:
        The jaxpr, and which linear arguments get a cotangent.
    """
    key = ("transpose", tuple(linear), tuple(ct_nonzero), tuple(force))
    result: tuple[ClosedJaxpr, list[bool]] = closed.remember(
        key, lambda: _transpose_jaxpr(closed, linear, ct_nonzero, force)
    )
    return result


def of_arguments(
    linear: Sequence[bool], nonzero: Iterable[bool], cotangents: Iterable[Cotangent]
) -> list[Cotangent]:
    """What a rule `transpose` returns, from the results of a jaxpr made by `transpose_jaxpr`.

    Args:
        linear: which arguments are linear.
        nonzero: which of those have a cotangent.
        cotangents: these cotangents.
    """
    flags, given = iter(nonzero), iter(cotangents)
    return [next(given) if lin and next(flags) else None for lin in linear]


def _transpose_jaxpr(
    closed: ClosedJaxpr, linear: Sequence[bool], ct_nonzero: Sequence[bool], force: Sequence[bool]
) -> tuple[ClosedJaxpr, list[bool]]:
    jaxpr = closed.jaxpr
    known_vars, linear_vars = partition_list(linear, jaxpr.invars)
    open_jaxpr = Jaxpr(
        jaxpr.constvars + known_vars, linear_vars, jaxpr.outvars, jaxpr.eqns, jaxpr.effects
    )
    ct_avals = [
        v.aval.cotangent_aval() for v, nz in zip(jaxpr.outvars, ct_nonzero, strict=True) if nz
    ]
    nonzero: list[bool] = []

    def function(*args: Any) -> list[Any]:
        known, given = args[: len(known_vars)], args[len(known_vars) :]
        kinds = [aval.cotangent_aval() for aval in closed.out_avals]
        cts = with_zeros(ct_nonzero, given, kinds)
        outs = backward_pass(open_jaxpr, [*closed.consts, *known], cts)
        forced = force or [False] * len(outs)
        nonzero[:] = [type(ct) is not Zero or f for ct, f in zip(outs, forced, strict=True)]
        return [instantiate(ct) for ct, nz in zip(outs, nonzero, strict=True) if nz]

    avals = [v.aval for v in known_vars] + ct_avals
    transposed, consts = staging.stage(function, avals, jaxpr.debug_info)
    return ClosedJaxpr(transposed, consts), nonzero
