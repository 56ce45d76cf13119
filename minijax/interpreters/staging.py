"""Staging: from a Python function to a jaxpr, and back.  Step 3 of a call.

Input: a function of flat values, and their types.  Output: an open jaxpr and the values of its
constants.  Each operation becomes one equation; nothing is computed.

`eval_jaxpr` goes the other way: it runs a jaxpr equation by equation in the current trace.  That is
the whole of what turns a transformation of functions into one of jaxprs: stage the evaluation of
the jaxpr under the transformation's trace.

`docs/reading.md`: read after `core/primitive.py`; `interpreters/jvp.py` is next.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxlib import _jax

from minijax.core import config, deferral, source
from minijax.core import trace as core_trace
from minijax.core.aval import AbstractValue, aval_of
from minijax.core.errors import InternalError, error
from minijax.core.jaxpr import (
    NO_DEBUG_INFO,
    NO_EFFECTS,
    Atom,
    ClosedJaxpr,
    DebugInfo,
    Effects,
    Eqn,
    Jaxpr,
    Literal,
    Var,
)
from minijax.core.operators import Avals, FlatFunction, Value, Values
from minijax.core.primitive import Primitive
from minijax.core.trace import (
    NO_PARAMS,
    PLAIN,
    Detours,
    Params,
    Trace,
    Tracer,
    Typing,
    check_alive,
    current,
)

if TYPE_CHECKING:
    from minijax.core import refs
    from minijax.core.native import Config, Traceback
    from minijax.interpreters import leaks
else:
    refs = deferral.module("minijax.core.refs")
    leaks = deferral.module("minijax.interpreters.leaks")

scope: Config[tuple[str, ...]] = _jax.config.Config("minijax_scope", ())
"""Names given by `named_scope`, outermost first; they end up in the names of lowered ops."""

origin: Config[Traceback | None] = _jax.config.Config("minijax_origin", None)
"""Where the equation comes from that is being evaluated or transformed, so that those made in its
place come from there too; None while Python functions run, whose lines are their own."""

_capture = source.capture
_SCALARS = (int, float, bool, complex, np.generic)
_new_tracer = object.__new__


def own_lines() -> AbstractContextManager[None]:
    """Context manager: what a user's function makes inside comes from its own lines."""
    return config.override(origin, None)


class StagingTracer(Tracer):
    """A value that a jaxpr under construction will compute: a variable of it."""

    __slots__ = ("variable",)

    variable: Var

    def origin(self) -> str:
        return self.traced_by.origin_of(self.variable)  # type: ignore[attr-defined]

    def static_alternative(self) -> str:
        trace: StagingTrace = self.traced_by  # type: ignore[assignment]
        places = trace.arguments_behind(self.variable)
        # A function is compiled for each static value: flags and counts are few, floats are many.
        avals = [trace.invars[i].aval for i in places]
        are_few = all(a.shape == () and getattr(a.dtype, "kind", "V") in "biu" for a in avals)
        names = [trace.argument_name(i) for i in places]
        if trace.debug_info.traced_for != "jit" or not names or not are_few:
            return ""
        if len(names) > 2 or not all(map(str.isidentifier, names)):
            return ""
        given = repr(names[0] if len(names) == 1 else tuple(names))
        return f"; or mark the argument as static: static_argnames={given}, or static_argnums"


DETOURS = Detours()
"""The operations that are not staged as they are, such as calls of functions with custom rules."""

Check = Callable[["StagingTrace", FlatFunction, Values], None]
"""Refuses what was staged of a function, given its results, or does nothing."""


class StagingTrace(Trace):
    """Collects equations."""

    __slots__ = (
        "checks",
        "constants",
        "debug_info",
        "effects",
        "eqns",
        "invars",
        "lines",
        "typing",
    )

    def __init__(self, function_name: str = "", debug_info: DebugInfo = NO_DEBUG_INFO) -> None:
        super().__init__(function_name)
        self.debug_info = debug_info
        self.invars: list[Var] = []
        self.eqns: list[Eqn] = []
        # What one line stages again and again comes from one traceback.
        self.lines: dict[Traceback, Traceback] = {}
        self.effects = NO_EFFECTS
        # Keyed by identity; the value is kept, so that the identity stays taken.
        self.constants: dict[int, tuple[Var, Any]] = {}
        self.typing: Typing = PLAIN
        self.checks: tuple[Check, ...] = ()

    def new_arg(self, aval: AbstractValue) -> StagingTracer:
        """A new parameter of the jaxpr."""
        var = Var(aval)
        if not aval.is_plain:
            core_trace.placement_semantics.record(self, aval)
        self.invars.append(var)
        return self.tracer(var)

    def tracer(self, var: Var) -> StagingTracer:
        """The tracer of a variable."""
        tracer = _new_tracer(StagingTracer)
        tracer.traced_by = self
        tracer.aval = var.aval
        tracer.variable = var
        return tracer

    def atom(self, x: Value) -> Atom:
        """The variable or literal for a value: a tracer of this trace, or a constant."""
        if type(x) is StagingTracer and x.traced_by is self:
            return x.variable
        if isinstance(x, _SCALARS):
            return Literal(x)
        if hasattr(x, "__jax_array__"):
            return self.atom(x.__jax_array__())
        found = self.constants.get(id(x))
        if found is None:
            if isinstance(x, Tracer):
                check_alive(x)
            aval = aval_of(x)
            if not aval.is_plain:
                core_trace.placement_semantics.record(self, aval)
            found = self.constants[id(x)] = (Var(aval), x)
        return found[0]

    def process(self, primitive: Primitive, args: Values, params: Params) -> Values:
        detour = DETOURS[primitive]
        if detour is not None:
            staged = detour(self, primitive, args, params)
            if staged is not None:
                return staged
        invars: list[Atom] = []
        avals: list[AbstractValue] = []
        for x in args:
            if type(x) is StagingTracer and x.traced_by is self:
                invars.append(x.variable)
                avals.append(x.aval)
            else:
                atom = self.atom(x)
                invars.append(atom)
                avals.append(atom.aval)
        if self.typing is PLAIN:
            out = primitive.abstract_eval(*avals, **params)
        else:
            invars, params, out = self.typing.equation(self, primitive, args, invars, avals, params)
        effects = NO_EFFECTS
        if primitive.has_effects:
            effects = self._effects(primitive, invars, params)
        if primitive.multiple_results:
            for aval in out:
                if not aval.is_plain:
                    core_trace.placement_semantics.record(self, aval)
            outvars = list(map(Var, out))
            tracers = list(map(self.tracer, outvars))
        else:
            # Written out: most equations of most programs pass here.
            var = Var(out)
            tracer = _new_tracer(StagingTracer)
            tracer.traced_by = self
            tracer.aval = out
            tracer.variable = var
            outvars = [var]
            tracers = [tracer]
        captured = origin.value or _capture()
        where = self.lines.setdefault(captured, captured)
        self.eqns.append(
            Eqn(invars, outvars, primitive, params or NO_PARAMS, effects, where, scope.value)
        )
        return tracers

    def _effects(self, primitive: Primitive, invars: Sequence[Atom], params: Params) -> Effects:
        """The effects of an equation."""
        found: Effects = primitive.effects(*[v.aval for v in invars], **params)
        if found:
            found = frozenset(placed for effect in found for placed in effect.of_equation(invars))
            self.effects |= found
        return found

    def finish(
        self, outs: Values, debug_info: DebugInfo = NO_DEBUG_INFO
    ) -> tuple[Jaxpr, list[Any]]:
        """The finished jaxpr with results `outs`, and its constants."""
        outvars = [self.atom(x) for x in outs]
        constvars = [var for var, _ in self.constants.values()]
        consts = [value for _, value in self.constants.values()]
        jaxpr = Jaxpr(constvars, self.invars, outvars, self.eqns, self.effects, debug_info)
        return jaxpr, consts

    def parameters(self) -> list[Var]:
        """The variables that no equation binds: arguments, and constants so far."""
        return self.invars + [var for var, _ in self.constants.values()]

    def origin_of(self, var: Var) -> str:
        """Where a variable of this trace comes from, in words."""
        function = self.function_name or "the traced function"
        for i, invar in enumerate(self.invars):
            if invar is var:
                return f"the argument {self.argument_name(i)} of {function}"
        for eqn in self.eqns:
            if any(out is var for out in eqn.outvars):
                text = f"computed by {eqn.primitive} at {source.summarize(eqn.source)}"
                *names, last = ["", *map(self.argument_name, self.arguments_behind(var))]
                if not last:
                    return text
                if len(names) == 1:
                    return f"{text}, from the argument {last} of {function}"
                return f"{text}, from the arguments {', '.join(names[1:])} and {last} of {function}"
        return f"traced in {self!r}"

    def argument_name(self, index: int) -> str:
        """What texts call a flat argument: `x`, `params['w']`, or its number."""
        names = self.debug_info.arg_names
        return names[index] if names is not None and index < len(names) else str(index)

    def arguments_behind(self, var: Var) -> list[int]:
        """The indices of the flat arguments that a variable is computed from."""
        wanted = {var}
        for eqn in reversed(self.eqns):
            if not wanted.isdisjoint(eqn.outvars):
                wanted.update(v for v in eqn.invars if type(v) is Var)
        return [i for i, invar in enumerate(self.invars) if invar in wanted]


def stage(
    function: FlatFunction, avals: Avals, debug_info: DebugInfo = NO_DEBUG_INFO
) -> tuple[Jaxpr, list[Any]]:
    """Runs `function` on tracers of the given types; it returns a flat sequence of values.

    Returns:
        The jaxpr, open in its constants, and the constants: arrays, or tracers of outer traces.
    """
    trace = StagingTrace(debug_info.func_name, debug_info)
    previous = current.swap_local(trace)
    outer = origin.swap_local(None)
    leave = None
    try:
        args = [trace.new_arg(aval) for aval in avals]
        leave = trace.typing.enter(avals, debug_info.func_name)
        outs = function(*args)
        # What still holds a tracer below leaks it.
        del args
        jaxpr, consts = trace.finish(outs, debug_info)
        for check in trace.checks:
            check(trace, function, outs)
    finally:
        if leave is not None:
            leave()
        origin.set_local(outer)
        current.set_local(previous)
        trace.finished = True
    if config.check_tracer_leaks.value:
        del outs
        holder = weakref.ref(trace)
        del trace
        leaks.check_not_held(holder, debug_info.func_name)
    return jaxpr, consts


def stage_closed(
    function: FlatFunction, avals: Avals, debug_info: DebugInfo = NO_DEBUG_INFO
) -> ClosedJaxpr:
    """As `stage`, for functions that close over no tracers of outer traces."""
    jaxpr, consts = stage(function, avals, debug_info)
    if any(isinstance(c, Tracer) for c in consts):
        raise InternalError(f"the jaxpr closes over values of an outer trace\n{jaxpr}")
    if any(map(refs.is_reference, consts)):
        problem = "inside control flow, no rule of custom_vjp can close over a reference."
        error(NotImplementedError, "custom_vjp", problem, fix="give it to the function")
    return ClosedJaxpr(jaxpr, consts)


def eval_jaxpr(jaxpr: Jaxpr, consts: Values, *args: Any) -> list[Any]:
    """The results of `jaxpr` on constants and arguments, each operation in the current trace.

    Source:     mirrors jax.core.eval_jaxpr (0.10).

    Example:
        >>> closed = jax.make_jaxpr(lambda x: x * x + 1)(2)
        >>> jax.eval_jaxpr(closed.jaxpr, closed.consts, 5)
        [Array(26, dtype=int32, weak_type=True)]
    """
    values: dict[Atom, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    values.update(zip(jaxpr.invars, args, strict=True))
    last_use = last_uses(jaxpr)
    outer, outer_origin = scope.value, origin.value
    try:
        for eqn in jaxpr.eqns:
            origin.set_local(eqn.source)
            if eqn.scope:
                scope.set_local(outer + eqn.scope)
            trace = current.value
            outs = trace.process(
                eqn.primitive,
                [v.value if type(v) is Literal else values[v] for v in eqn.invars],
                eqn.params,
            )
            if eqn.scope:
                scope.set_local(outer)
            values.update(zip(eqn.outvars, outs, strict=True))
            for var in last_use.get(id(eqn), ()):
                del values[var]
    finally:
        scope.set_local(outer)
        origin.set_local(outer_origin)
    return [v.value if type(v) is Literal else values[v] for v in jaxpr.outvars]


class restored:  # noqa: N801  a context manager reads as a verb
    """Context manager: what is made inside has the scope and the origin of an equation."""

    __slots__ = ("_eqn", "_origin", "_scope")

    def __init__(self, eqn: Eqn) -> None:
        self._eqn = eqn

    def __enter__(self) -> None:
        self._scope = scope.swap_local(scope.value + self._eqn.scope)
        self._origin = origin.swap_local(self._eqn.source)

    def __exit__(self, *_: object) -> None:
        scope.set_local(self._scope)
        origin.set_local(self._origin)


def eval_closed_jaxpr(closed: ClosedJaxpr, *args: Any) -> list[Any]:
    """The results of a closed jaxpr on `args`."""
    return eval_jaxpr(closed.jaxpr, closed.consts, *args)


def last_uses(jaxpr: Jaxpr) -> dict[int, list[Var]]:
    """For each equation (by identity), the variables that nothing after it reads."""
    last: dict[Var, int] = {}
    for eqn in jaxpr.eqns:
        for var in (*eqn.invars, *eqn.outvars):
            if type(var) is Var:
                last[var] = id(eqn)
    for var in jaxpr.outvars:
        last.pop(var, None)  # type: ignore[arg-type]
    found: dict[int, list[Var]] = {}
    for var, eqn_id in last.items():
        found.setdefault(eqn_id, []).append(var)
    return found
