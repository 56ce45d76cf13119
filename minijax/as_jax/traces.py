"""The tracing context as JAX's lower-level modules tell of it, and partial evaluation by hand.

Input: the current trace, or a `WrappedFun` and what is known of its arguments.  Output: objects
that compare, or a jaxpr of what could not be computed yet.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

from minijax.as_jax.functions import WrappedFun
from minijax.core import axes, config
from minijax.core.aval import AbstractValue, aval_of
from minijax.core.jaxpr import DebugInfo, Jaxpr
from minijax.core.trace import Trace, current
from minijax.interpreters import passes, staging
from minijax.interpreters.partial_eval import PartialTrace
from minijax.interpreters.staging import StagingTrace
from minijax.lowering import eager


class OpaqueTraceState:
    """What is traced at a moment: equal to another one while the same is traced."""

    def __init__(self) -> None:
        self._trace = weakref.ref(current.value)
        self._axes = axes.in_scope()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OpaqueTraceState):
            return NotImplemented
        mine = self._trace()
        return mine is not None and mine is other._trace() and self._axes == other._axes

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"OpaqueTraceState({self._trace()})"


def get_opaque_trace_state(convention: str | None = None) -> OpaqueTraceState:
    """What is traced now; `convention` says who asks."""
    return OpaqueTraceState()


def find_top_trace(_: object = None) -> Trace:
    """The current trace."""
    return current.value


def trace_state_clean() -> bool:
    """Whether nothing is being traced."""
    return current.value is eager.EAGER


class take_current_trace(config.override[Trace]):  # noqa: N801  a context manager reads as a verb
    """Context manager: gives the current trace, and leaves operations to run at once inside."""

    def __init__(self) -> None:
        super().__init__(current, eager.EAGER)

    def __enter__(self) -> Trace:  # type: ignore[override]
        taken = current.value
        super().__enter__()
        return taken


def set_current_trace(trace: Trace, check_leaks: bool = False) -> config.override[Trace]:
    """Context manager: operations inside go to a trace."""
    return config.override(current, trace)


class TraceTag:
    """An object of its own, by which traces of one transformation know each other."""


class PartialVal(NamedTuple):
    """An argument of partial evaluation: a type and None, or None and a value."""

    pv: AbstractValue | None
    const: Any

    @classmethod
    def known(cls, const: object) -> PartialVal:
        """A value that is there."""
        return cls(None, const)

    @classmethod
    def unknown(cls, aval: AbstractValue) -> PartialVal:
        """A value of which the type is known."""
        return cls(aval, None)

    def is_known(self) -> bool:
        """Whether the value is there."""
        return self.pv is None

    def get_known(self) -> Any:
        """The value, None if it is not there."""
        return self.const

    def get_aval(self) -> AbstractValue:
        """The type."""
        return aval_of(self.const) if self.pv is None else self.pv


def trace_to_jaxpr_nounits(
    fun: WrappedFun, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[PartialVal], list[Any]]:
    """Computes what depends on known arguments only, and stages the rest.

    Args:
        fun: a function of flat values that returns flat values.
        pvals: what is known of its arguments.
        instantiate: whether, or which, results are staged even if they are known.

    Returns:
        A jaxpr of the unknown arguments and results; what is known of the results; the jaxpr's
        constants.
    """
    before = current.value
    staged = StagingTrace(fun.__name__)
    trace = PartialTrace(before, staged)
    args = [const if aval is None else staged.new_arg(aval) for aval, const in pvals]
    try:
        with config.override(current, trace):
            outs = list(fun.call_wrapped(*args))
        force = [instantiate] * len(outs) if isinstance(instantiate, bool) else list(instantiate)
        unknown = [f or trace.is_unknown(x) for f, x in zip(force, outs, strict=True)]
        info = fun.debug_info or DebugInfo("partial_eval", fun.__name__)
        jaxpr, consts = staged.finish([x for x, u in zip(outs, unknown, strict=True) if u], info)
    finally:
        staged.finished = trace.finished = True
    told = [
        PartialVal.unknown(aval_of(x)) if u else PartialVal.known(x)
        for x, u in zip(outs, unknown, strict=True)
    ]
    return jaxpr, told, consts


def trace_to_jaxpr_dynamic(
    fun: WrappedFun, in_avals: Sequence[AbstractValue], **_: object
) -> tuple[Jaxpr, list[AbstractValue], list[Any]]:
    """The jaxpr of a function of flat values; the types of its results; its constants."""
    info = fun.debug_info or DebugInfo("jit", fun.__name__)
    jaxpr, consts = staging.stage(fun.call_wrapped, in_avals, info)
    return jaxpr, [atom.aval for atom in jaxpr.outvars], consts


def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: bool | Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool]]:
    """A jaxpr of some of its results, and which of its arguments it has."""
    if isinstance(used_outputs, bool):
        used_outputs = [used_outputs] * len(jaxpr.outvars)
    return passes.dce_jaxpr(jaxpr, used_outputs, keep_inputs=instantiate)
