"""References as a layer: what happens to operations on them before any trace's rule is asked.

Traces know values only.  An operation that holds jaxprs and is given a reference is rewritten, by
its rule `with_references`, into one on the reference's value, between a read and a write; what
makes a reference concerns every trace, whatever its operands are; and what was staged is checked,
if references are in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.core import refs
from minijax.core.errors import error
from minijax.core.operators import Function, Values
from minijax.core.primitive import Primitive
from minijax.core.trace import Detour, Params, Results, Trace
from minijax.interpreters import batching, flattening, jvp, partial_eval, staging
from minijax.interpreters.staging import StagingTrace, StagingTracer

Outs = Results | None


def _by_value(trace: Any, primitive: Primitive, args: Values, params: Params) -> Outs:
    if any(map(refs.is_reference, args)) and trace.concerns(primitive, args, params):
        outs: Values = refs.with_references.of(primitive)(args, params)
        return outs
    return None


def _here(trace: Any, primitive: Primitive, args: Values, params: Params) -> Outs:
    """What is written to a reference may belong to a trace that has no part in the operands."""
    outs: Values = trace.interpret(primitive, args, params)
    return outs


def _here_if_tangent(trace: Trace, primitive: Primitive, args: Values, params: Params) -> Outs:
    """The tangent of a reference is unknown even if it begins as a known zero."""
    return _here(trace, primitive, args, params) if params["is_tangent"] else None


def _detour(making: Detour, calling: Detour | None) -> Callable[[Primitive], Detour | None]:
    """Finds the detours of operations that make references, and of those that may be given some."""

    def find(primitive: Primitive) -> Detour | None:
        if refs.makes_references.of(primitive):
            return making
        return None if refs.with_references.of(primitive) is None else calling

    return find


jvp.DETOURS.add(_detour(_here, _by_value))
batching.DETOURS.add(_detour(_here, _by_value))
partial_eval.DETOURS.add(_detour(_here_if_tangent, _by_value))
staging.DETOURS.add(_detour(lambda trace, *_: watch(trace), None))


def watch(trace: StagingTrace) -> None:
    """Checks, once the trace ends, that references are used as they may be."""
    if _check not in trace.checks:
        trace.checks += (_check,)


def _check(trace: StagingTrace, function: Function, outs: Sequence[Any]) -> None:
    refs.check_uses(trace.eqns, trace.parameters())
    for i, x in enumerate(outs):
        if not refs.is_reference(x):
            continue
        path = f"result {i}"
        if isinstance(function, flattening.FlatFunction):
            path = flattening.result_paths(function.out_tree)[i]
        whole = refs.root_of(x)
        own = type(whole) is StagingTracer and whole.traced_by is trace
        problem = "a reference cannot be returned from a traced function."
        got = f"{path}: {x.aval}, {whole.origin() if own else 'which the function closes over'}"
        fix = "return its value: ref[...], or freeze(ref) for a reference made inside"
        error(ValueError, trace.function_name, problem, got=got, fix=fix)
