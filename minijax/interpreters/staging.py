"""Staging: from a Python function to a jaxpr.  Step 3 of the walk of an argument.

Input: a function of flat values, and their types.  Output: an open jaxpr and the values of its
constants.  Each operation becomes one equation; nothing is computed.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxlib import _jax

from minijax.core import config, meshes, refs, source, variance
from minijax.core.aval import NOT_MANUAL, aval_of
from minijax.core.errors import InternalError, error
from minijax.core.jaxpr import (
    NO_DEBUG_INFO,
    NO_EFFECTS,
    ClosedJaxpr,
    DebugInfo,
    Eqn,
    Jaxpr,
    Literal,
    Var,
)
from minijax.core.trace import Trace, Tracer, check_alive, current
from minijax.interpreters import casts, flattening
from minijax.sharding import rules

scope: Any = _jax.config.Config("minijax_scope", ())
"""Names given by `named_scope`, outermost first; they end up in the names of lowered ops."""

origin: Any = _jax.config.Config("minijax_origin", None)
"""Where the equation comes from that is being evaluated or transformed, so that those made in its
place come from there too; None while Python functions run, whose lines are their own."""

_capture = source.capture
_SCALARS = (int, float, bool, complex, np.generic)
_new_tracer = object.__new__


class own_lines:  # noqa: N801  a context manager reads as what it gives
    """Context manager: what a user's function makes inside comes from its own lines."""

    __slots__ = ("_previous",)

    def __enter__(self) -> None:
        self._previous = origin.swap_local(None)

    def __exit__(self, *_: object) -> None:
        origin.set_local(self._previous)


class StagingTracer(Tracer):
    """A value that a jaxpr under construction will compute: a variable of it."""

    __slots__ = ("variable",)

    variable: Var

    def origin(self) -> str:
        return self.traced_by.origin_of(self.variable)  # type: ignore[attr-defined]


class StagingTrace(Trace):
    """Collects equations."""

    __slots__ = (
        "constants",
        "debug_info",
        "effects",
        "eqns",
        "has_references",
        "has_shardings",
        "has_variance",
        "invars",
    )

    def __init__(self, function_name: str = "", debug_info: DebugInfo = NO_DEBUG_INFO) -> None:
        super().__init__(function_name)
        self.debug_info = debug_info
        self.invars: list[Var] = []
        self.eqns: list[Eqn] = []
        self.effects = NO_EFFECTS
        self.has_references = False
        # Whether the type of some value shows how it is split.
        self.has_shardings = False
        # Whether the type of some value shows how it stands to manual mesh axes.
        self.has_variance = False
        # Keyed by identity; the value is kept, so that the identity stays taken.
        self.constants: dict[int, tuple[Var, Any]] = {}

    def new_arg(self, aval: Any) -> StagingTracer:
        """A new parameter of the jaxpr."""
        var = Var(aval)
        self.has_shardings |= aval.split is not None
        self.has_variance |= aval.manual_axis_type is not NOT_MANUAL
        self.invars.append(var)
        return self.tracer(var)

    def tracer(self, var: Var) -> StagingTracer:
        """The tracer of a variable."""
        tracer = _new_tracer(StagingTracer)
        tracer.traced_by = self
        tracer.aval = var.aval
        tracer.variable = var
        return tracer

    def atom(self, x: Any) -> Any:
        """The variable or literal for a value: a tracer of this trace, or a constant."""
        if type(x) is StagingTracer and x.traced_by is self:
            return x.variable
        if isinstance(x, _SCALARS):
            return Literal(x)
        found = self.constants.get(id(x))
        if found is None:
            if isinstance(x, Tracer):
                check_alive(x)
            aval = aval_of(x)
            self.has_shardings |= aval.split is not None
            self.has_variance |= aval.manual_axis_type is not NOT_MANUAL
            found = self.constants[id(x)] = (Var(aval), x)
        return found[0]

    def _atoms(self, args: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        invars = []
        avals = []
        for x in args:
            if type(x) is StagingTracer and x.traced_by is self:
                invars.append(x.variable)
                avals.append(x.aval)
            else:
                atom = self.atom(x)
                invars.append(atom)
                avals.append(atom.aval)
        return invars, avals

    def _typed(
        self,
        primitive: Any,
        args: Sequence[Any],
        invars: list[Any],
        avals: list[Any],
        params: dict[str, Any],
    ) -> tuple[list[Any], list[Any], dict[str, Any], Any]:
        """Operands cast to fit together over mesh axes, and the result type, or types."""
        kind = variance.common(primitive, invars, avals)
        if kind is None and self.has_variance:
            agreed, params = casts.agreeing(self, primitive, args, params)
            if agreed is not args:
                invars, avals = self._atoms(agreed)
                kind = variance.common(primitive, invars, avals)
        out = primitive.abstract_eval(*avals, **params)
        if kind is not None:
            if primitive.multiple_results:
                return invars, avals, params, [aval.with_manual_type(kind) for aval in out]
            return invars, avals, params, out.with_manual_type(kind)
        out = variance.typed(primitive, avals, invars, out, params)
        if not self.has_variance:
            outs = out if primitive.multiple_results else (out,)
            self.has_variance = any(a.manual_axis_type is not NOT_MANUAL for a in outs)
        return invars, avals, params, out

    def _split(self, primitive: Any, avals: Sequence[Any], out: Any, params: dict[str, Any]) -> Any:
        """The result type, or types, with how Explicit mesh axes split the results."""
        if not self.has_shardings and params.get(primitive.sharding_param) is None:
            return out
        self.has_shardings = True
        return rules.typed_results(primitive, avals, out, params)

    def _effects(
        self, primitive: Any, invars: Sequence[Any], avals: Sequence[Any], params: dict[str, Any]
    ) -> frozenset[Any]:
        """The effects of an equation."""
        found: frozenset[Any] = primitive.effects(*avals, **params)
        if found:
            found = refs.effects_on(found, invars)
            self.effects |= found
        self.has_references |= primitive.makes_references
        return found

    def process(self, primitive: Any, args: Sequence[Any], params: dict[str, Any]) -> Sequence[Any]:
        invars, avals = self._atoms(args)
        if primitive.stage is not None:
            staged: Sequence[Any] | None = primitive.stage(self, args, params)
            if staged is not None:
                return staged
        if self.has_variance or primitive.vary is not None:
            invars, avals, params, out = self._typed(primitive, args, invars, avals, params)
        else:
            out = primitive.abstract_eval(*avals, **params)
        if self.has_shardings or primitive.sharding_param:
            out = self._split(primitive, avals, out, params)
        effects = NO_EFFECTS
        if primitive.has_effects:
            effects = self._effects(primitive, invars, avals, params)
        if primitive.multiple_results:
            if not self.has_shardings:
                self.has_shardings = any(aval.split is not None for aval in out)
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
        where = origin.value or _capture()
        self.eqns.append(Eqn(invars, outvars, primitive, params, effects, where, scope.value))
        return tracers

    def finish(
        self, outs: Sequence[Any], debug_info: DebugInfo = NO_DEBUG_INFO
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
        for i, invar in enumerate(self.invars):
            if invar is var:
                names = self.debug_info.arg_names
                if names is not None and i < len(names):
                    return f"the argument {names[i]} of {self.function_name}"
                return f"argument {i} of {self.function_name or 'the traced function'}"
        for eqn in self.eqns:
            if any(out is var for out in eqn.outvars):
                return f"computed by {eqn.primitive} at {source.summarize(eqn.source)}"
        return f"traced in {self!r}"


def stage(
    function: Callable[..., Sequence[Any]],
    avals: Sequence[Any],
    debug_info: DebugInfo = NO_DEBUG_INFO,
) -> tuple[Jaxpr, list[Any]]:
    """Runs `function` on tracers of the given types; it returns a flat sequence of values.

    Returns:
        The jaxpr, open in its constants, and the constants: arrays, or tracers of outer traces.
    """
    trace = StagingTrace(debug_info.func_name, debug_info)
    previous = current.swap_local(trace)
    outer = origin.swap_local(None)
    around = None
    try:
        args = [trace.new_arg(aval) for aval in avals]
        if trace.has_shardings and meshes.abstract_mesh.value.empty:
            found = rules.mesh_of_arguments(avals, debug_info.func_name)
            around = meshes.abstract_mesh.swap_local(found)
        outs = function(*args)
        # What still holds a tracer below leaks it.
        del args
        parameters = trace.parameters()
        if trace.has_references or any(type(v.aval) is refs.AbstractRef for v in parameters):
            refs.check_uses(trace.eqns, parameters)
        _refuse_to_return_references(trace, outs, function)
        jaxpr, consts = trace.finish(outs, debug_info)
    finally:
        if around is not None:
            meshes.abstract_mesh.set_local(around)
        origin.set_local(outer)
        current.set_local(previous)
        trace.finished = True
    if config.check_tracer_leaks.value:
        del outs
        holder = weakref.ref(trace)
        del trace
        check_not_held(holder, debug_info.func_name)
    return jaxpr, consts


def _refuse_to_return_references(trace: StagingTrace, outs: Sequence[Any], function: Any) -> None:
    for i, x in enumerate(outs):
        if not refs.is_reference(x):
            continue
        path = f"result {i}"
        if isinstance(function, flattening.FlatFunction):
            path = flattening.result_paths(function.out_tree)[i]
        own = type(x) is StagingTracer and x.traced_by is trace
        error(
            ValueError,
            trace.function_name,
            "a reference cannot be returned from a traced function.",
            got=f"{path}: {x.aval}, {x.origin() if own else 'which the function closes over'}",
            fix="return its value: ref[...], or freeze(ref) for a reference made inside",
        )


def stage_closed(
    function: Callable[..., Sequence[Any]],
    avals: Sequence[Any],
    debug_info: DebugInfo = NO_DEBUG_INFO,
) -> ClosedJaxpr:
    """As `stage`, for functions that close over no tracers of outer traces."""
    jaxpr, consts = stage(function, avals, debug_info)
    if any(isinstance(c, Tracer) for c in consts):
        raise InternalError(f"the jaxpr closes over values of an outer trace\n{jaxpr}")
    return ClosedJaxpr(jaxpr, consts)


def check_not_held(trace: Any, function_name: str) -> None:
    """Refuses to go on while something still holds tracers of a finished trace.

    Raises:
        RuntimeError: somebody does; the text says who.
    """
    gc.collect()
    if trace() is None:
        return
    tracers = [x for x in gc.get_referrers(trace()) if isinstance(x, Tracer)]
    if not tracers:
        return
    found = [f"{tracer!r}, {tracer.origin()}: held by {_holders(tracer)}" for tracer in tracers]
    error(
        RuntimeError,
        function_name,
        f"{len(tracers)} traced value(s) outlive the function that made them.",
        got="\n".join(found[:5]),
        fix="return values instead of storing them in globals, attributes or closures",
    )


def _holders(tracer: Tracer) -> str:
    names = []
    for holder in gc.get_referrers(tracer):
        if isinstance(holder, dict):
            keys = [key for key, value in holder.items() if value is tracer]
            owner = next(
                (o for o in gc.get_referrers(holder) if getattr(o, "__dict__", None) is holder),
                None,
            )
            names += [f"{_name(owner)}{key!r}" for key in keys]
        elif isinstance(holder, (list, tuple, set)):
            names.append(f"a {type(holder).__name__} of {len(holder)}")
        elif type(holder).__name__ == "cell":
            names.append("the closure of a function")
    return ", ".join(names) or "an unknown object"


def _name(owner: Any) -> str:
    if owner is None:
        return "a dict, under "
    return f"{getattr(owner, '__name__', type(owner).__name__)}, under "
