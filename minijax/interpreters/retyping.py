"""Retyping: programs for operands that vary over more mesh axes than they were staged for.

Input: a jaxpr, and the types of other operands.  Output: the jaxpr of the same operations, whose
types follow from these.  Where devices take different ways through control flow, what was the same
everywhere no longer is; casts to what a value has become fall away, so that transposes have no sums
in their place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.core import variance
from minijax.core.aval import aval_of
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.trace import Trace, current
from minijax.interpreters import casts, evaluation, staging

_TO_VARYING = (casts.pvary_p, casts.reduced_vary_cast_p)


class WideningTrace(Trace):
    """Hands every operation to `parent`, but for casts over axes over which a value varies."""

    __slots__ = ("parent",)

    def __init__(self, parent: Trace) -> None:
        super().__init__("retyped")
        self.parent = parent

    def process(self, primitive: Any, args: Sequence[Any], params: dict[str, Any]) -> Sequence[Any]:
        current.set_local(self.parent)
        try:
            if primitive in _TO_VARYING:
                return [casts.varied(self.parent, args[0], frozenset(params["axes"]))]
            if primitive is casts.preduced_p:
                own = variance.of(aval_of(args[0])).varying
                axes = tuple(a for a in params["axes"] if a not in own)
                return self.parent.process(primitive, args, {"axes": axes}) if axes else args
            return self.parent.process(primitive, args, params)
        finally:
            current.set_local(self)


def retyped(
    closed: ClosedJaxpr, kinds: Sequence[Any], over: Sequence[frozenset[Any]] | None = None
) -> ClosedJaxpr:
    """A program for operands of other kinds.

    Args:
        closed: the program.
        kinds: for each operand its `ManualAxisType`.
        over: for each result, axes over which it shall vary in any case.
    """
    over = tuple(over) if over is not None else (frozenset(),) * len(closed.out_avals)
    if variance.types_of(closed.in_avals) == list(kinds) and all(
        axes <= variance.of(aval).varying for axes, aval in zip(over, closed.out_avals, strict=True)
    ):
        return closed

    def function(*args: Any) -> list[Any]:
        trace = current.value
        current.set_local(WideningTrace(trace))
        try:
            outs = evaluation.eval_closed_jaxpr(closed, *args)
        finally:
            current.set_local(trace)
        return [casts.varied(trace, out, axes) for out, axes in zip(outs, over, strict=True)]

    def make() -> ClosedJaxpr:
        avals = [a.with_manual_type(k) for a, k in zip(closed.in_avals, kinds, strict=True)]
        return ClosedJaxpr(*staging.stage(function, avals, closed.jaxpr.debug_info))

    result: ClosedJaxpr = closed.remember(("retyped", tuple(kinds), over), make)
    return result


def agree_call(
    trace: Any, args: Sequence[Any], params: dict[str, Any]
) -> tuple[Sequence[Any], dict[str, Any]]:
    """Rule `agree` of operations that apply the parameter `jaxpr` to their operands, once."""
    closed: ClosedJaxpr = params["jaxpr"]
    found = retyped(closed, variance.types_of(map(aval_of, args)))
    return args, params if found is closed else {**params, "jaxpr": found}
