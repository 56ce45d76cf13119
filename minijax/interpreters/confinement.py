"""Confinement: keeps a function away from the values of a trace that it may not close over.

Input: a function with a custom rule, and the trace that applies the rule.  Output: the function,
which refuses that trace's tracers: the rule speaks about arguments only, so that the derivative
by a closed-over value would silently be lost.
"""

from __future__ import annotations

import weakref
from typing import Any

from minijax.core import config
from minijax.core.errors import UnexpectedTracerError, message
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.operators import Function, Values
from minijax.core.primitive import Primitive
from minijax.core.rules import Rules
from minijax.core.trace import NestedTrace, Params, Trace, Tracer, current
from minijax.interpreters import jvp

stage_functions = Rules("stage_functions")
"""Makes the equation of an operation whose parameters are Python functions, by staging them first:
`(primitive, trace, args, params)`, which returns None where the parameters are those of the
equation already.

Functions may close over tracers.  The rule `batch` of an operation with this rule is given the
trace in place of the size, and a parameter `name` tells whose functions they are."""


class ConfiningTrace(NestedTrace):
    """Hands every operation to `parent`, and refuses those on tracers of `owner`."""

    __slots__ = ("owner",)

    def __init__(self, parent: Trace, owner: Trace, function_name: str) -> None:
        super().__init__(function_name)
        self.parent = parent
        self.owner = owner

    def process(self, primitive: Primitive, args: Values, params: Params) -> Values:
        self.check(args)
        if stage_functions.of(primitive) is not None:
            params = confine(params, self.owner)
        return self.pass_on(primitive, args, params)

    def check(self, values: object) -> None:
        """Refuses tracers of the owner, also inside tuples and lists."""
        if isinstance(values, (tuple, list)):
            for value in values:
                self.check(value)
        elif isinstance(values, Tracer) and values.traced_by is self.owner:
            raise closed_over(self.function_name, f"{values.aval}, {values.origin()}")


def closed_over(name: str, value: str) -> UnexpectedTracerError:
    """The error for a function with a custom rule that closes over a transformed value."""
    return UnexpectedTracerError(
        message(
            name,
            "the function, or its custom rule, closes over a value that is being transformed.",
            got=value,
            expected="arguments: a custom rule says nothing about values that are closed over",
            fix=f"pass the value to {name} as an argument and let the rule say what to do with it; "
            "a constant of differentiation may be closed over as lax.stop_gradient(value)",
            more="tracer",
        )
    )


class Confined:
    """A function that runs where tracers of `owner` are refused."""

    __slots__ = ("__name__", "function", "name", "owner")

    def __init__(self, function: Function, owner: Trace, name: str) -> None:
        self.function = function
        # Weakly: equations hold this, and the owner knows the traces around it.
        self.owner = weakref.ref(owner)
        self.name = name
        self.__name__ = getattr(function, "__name__", "function")

    def __call__(self, *args: Any) -> Any:
        owner = self.owner()
        if owner is None:
            return self.function(*args)
        trace = ConfiningTrace(current.value, owner, self.name)
        try:
            with config.override(current, trace):
                outs = self.function(*args)
                trace.check(outs)
        finally:
            trace.finished = True
        return outs


def _confined(trace: jvp.JVPTrace, primitive: Primitive, args: Values, params: Params) -> Values:
    params = confine(params, trace)
    if trace.concerns(primitive, args, params):
        return trace.interpret(primitive, args, params)
    return trace.pass_on(primitive, args, params)


jvp.DETOURS.add(lambda primitive: _confined if stage_functions.of(primitive) else None)


def confine(params: Params, owner: Trace) -> dict[str, Any]:
    """Parameters of an operation, their Python functions kept away from `owner`'s tracers."""
    name = params["name"]
    return {
        key: Confined(value, owner, name)
        if callable(value) and not isinstance(value, ClosedJaxpr)
        else value
        for key, value in params.items()
    }
