"""Retyping: jaxprs for operands that vary over more mesh axes than those they were made for.

Input: an operation that holds jaxprs, and operands.  Output: operands and jaxprs that fit together:
operands are cast to vary as parameters do, and where they vary over more, the jaxpr is staged again
for that.  Rules `agree` of primitives are made of this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.core import refs, variance
from minijax.core.aval import NO_AXES, aval_of, manual_type
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.trace import Trace, current
from minijax.interpreters import casts, staging

Axes = frozenset[Any]
Arguments = tuple[Sequence[Any], dict[str, Any]]


_DROPPED = (casts.pvary_p, casts.reduced_vary_cast_p, casts.preduced_p)


class WideningTrace(Trace):
    """Leaves away casts to what operands are already; everything goes on to `parent`."""

    __slots__ = ("parent",)

    def __init__(self, parent: Trace) -> None:
        super().__init__(parent.function_name)
        self.parent = parent

    def process(self, primitive: Any, args: Sequence[Any], params: dict[str, Any]) -> Sequence[Any]:
        current.set_local(self.parent)
        try:
            if primitive in _DROPPED:
                varying = variance.of(aval_of(args[0])).varying
                missing = tuple(name for name in params["axes"] if name not in varying)
                if not missing:
                    return list(args)
                params = {"axes": missing}
            return self.parent.process(primitive, args, params)
        finally:
            current.set_local(self)


def retyped(
    closed: ClosedJaxpr, varying: Sequence[Axes], out_varying: Sequence[Axes] | None = None
) -> ClosedJaxpr:
    """A jaxpr whose parameters vary over more axes, and results at least over some; made once.

    Args:
        closed: the jaxpr.
        varying: for each parameter, axes over which it varies.
        out_varying: the same for results.
    """
    wanted = [NO_AXES] * len(closed.out_avals) if out_varying is None else list(out_varying)
    is_enough = all(map(_varies, closed.in_avals, varying)) and all(
        map(_varies, closed.out_avals, wanted)
    )
    if is_enough:
        return closed
    key = ("retyped", tuple(varying), tuple(wanted))
    result: ClosedJaxpr = closed.remember(key, lambda: _retyped(closed, varying, wanted))
    return result


def _retyped(
    closed: ClosedJaxpr, varying: Sequence[Axes], out_varying: Sequence[Axes]
) -> ClosedJaxpr:
    avals = [
        aval if _varies(aval, axes) else aval.with_manual_type(_wider(variance.of(aval), axes))
        for aval, axes in zip(closed.in_avals, varying, strict=True)
    ]

    def function(*args: Any) -> list[Any]:
        around = current.value
        trace = WideningTrace(around)
        current.set_local(trace)
        try:
            outs = staging.eval_closed_jaxpr(closed, *args)
        finally:
            current.set_local(around)
            trace.finished = True
        return [casts.varied(around, x, axes) for x, axes in zip(outs, out_varying, strict=True)]

    return ClosedJaxpr(*staging.stage(function, avals, closed.jaxpr.debug_info))


def _varies(aval: Any, axes: Axes) -> bool:
    return axes <= variance.of(aval).varying


def _wider(kind: Any, axes: Axes) -> Any:
    return manual_type(kind.varying | axes, kind.unreduced, kind.reduced - axes)


def varying_axes(values: Sequence[Any]) -> list[Axes]:
    """The axes over which values vary."""
    return [variance.of(aval_of(x)).varying for x in values]


def of_types(avals: Sequence[Any]) -> list[Axes]:
    """The axes over which values of some types vary."""
    return [variance.of(aval).varying for aval in avals]


def united(first: Sequence[Axes], second: Sequence[Axes]) -> list[Axes]:
    """The axes of both lists, item by item."""
    return [a | b for a, b in zip(first, second, strict=True)]


def cast(trace: Any, values: Sequence[Any], varying: Sequence[Axes]) -> list[Any]:
    """Values that vary at least over some axes, cast in `trace` where they do not."""
    return [
        x if refs.is_reference(x) else casts.varied(trace, x, axes)
        for x, axes in zip(values, varying, strict=True)
    ]


def agree_call(
    primitive: Any, trace: Any, args: Sequence[Any], params: dict[str, Any]
) -> Arguments:
    """The rule `agree` of operations that call the parameter `jaxpr` with all their operands."""
    closed: ClosedJaxpr = params["jaxpr"]
    varying = united(varying_axes(args), of_types(closed.in_avals))
    fitting = retyped(closed, varying)
    given = cast(trace, args, varying)
    return given, params if fitting is closed else {**params, "jaxpr": fitting}
