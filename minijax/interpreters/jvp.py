"""Forward-mode differentiation: a value becomes a primal and a tangent.

Input: a function, or a jaxpr.  Output: results and how they move.  Reverse mode is this trace
over `partial_eval.PartialTrace`, then `transpose.py`.  Tangents may be symbolic zeros; the rules
that simple operations share are at the end.

`docs/reading.md`: read after `interpreters/staging.py`; `interpreters/partial_eval.py` is next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from minijax.core import deferral
from minijax.core import trace as core_trace
from minijax.core.aval import AbstractValue, aval_handlers, aval_of
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.operators import FlatFunction, Value, Values
from minijax.core.primitive import Dual, Primitive, Tangent, Tangents, Zero
from minijax.core.trace import Detours, NestedTrace, Params, Trace, Tracer, check_alive, current
from minijax.interpreters import staging

if TYPE_CHECKING:
    from minijax.interpreters import discharge
else:
    discharge = deferral.module("minijax.interpreters.discharge")

_new_tracer = object.__new__


def with_zeros(
    nonzero: Iterable[bool], given: Iterable[Tangent], avals: Iterable[AbstractValue]
) -> list[Tangent]:
    """The tangents, or cotangents, of values of some types, from those that are not zero."""
    rest = iter(given)
    return [
        next(rest) if nz else Zero(aval.tangent_aval())
        for nz, aval in zip(nonzero, avals, strict=True)
    ]


class UndefinedPrimal:
    """Stands for a linear argument in a transpose rule, where no value is known.

    Source:     mirrors jax.interpreters.ad.UndefinedPrimal (0.10).

    Example:
        >>> x = jax.extend.ad.UndefinedPrimal(jax.typeof(jnp.arange(3.0)))
        >>> x.aval.shape, jax.extend.ad.is_undefined_primal(x)
        ((3,), True)
    """

    __slots__ = ("aval",)

    aval: AbstractValue

    def __init__(self, aval: AbstractValue) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"UndefinedPrimal({self.aval})"


def _not_linear(x: Any) -> NoReturn:
    problem = "the function is not linear: its argument has to be known to transpose it."
    fix = "minijax.vjp differentiates any function at a point"
    error(TypeError, "linear_transpose", problem, got=str(x.aval), fix=fix)


aval_handlers[UndefinedPrimal] = _not_linear


def is_linear(x: object) -> bool:
    """Whether an argument of a transpose rule is a linear one.

    Source:     mirrors jax.interpreters.ad.is_undefined_primal (0.10).

    Example:
        >>> jax.extend.ad.is_undefined_primal(jnp.arange(3.0))
        False
    """
    return type(x) is UndefinedPrimal


class PrimalTracer(Tracer):
    """A primal value, and what is known of its derivatives."""

    __slots__ = ("primal",)
    # What messages say is done to it.
    what_happens: ClassVar[str]

    primal: Any

    def concrete(self) -> Any:
        primal = self.primal
        return primal.concrete() if isinstance(primal, Tracer) else primal

    def origin(self) -> str:
        primal = self.primal
        return primal.origin() if isinstance(primal, Tracer) else self.what_happens


class JVPTracer(PrimalTracer):
    """A primal value and its tangent."""

    __slots__ = ("tangent",)
    what_happens = "differentiated"

    tangent: Tangent

    def __repr__(self) -> str:
        return f"JVPTracer({self.aval}, primal={self.primal!r}, tangent={self.tangent!r})"


DETOURS = Detours()
"""The operations that are not differentiated as they are."""


class JVPTrace(NestedTrace):
    """Pushes tangents forward; primitives run in `parent`."""

    __slots__ = ("typing",)
    detours = DETOURS
    tracers = JVPTracer

    def __init__(self, parent: Trace, function_name: str = "") -> None:
        super().__init__(function_name)
        self.parent = parent
        # Casts of operands have tangents too, so they are made here and not further down.
        self.typing = core_trace.placement_semantics.initial_typing()

    def tracer(self, primal: Value, tangent: Tangent) -> Any:
        """A primal with its tangent; the primal alone where the tangent is zero."""
        if type(tangent) is Zero:
            return primal
        tracer = _new_tracer(JVPTracer)
        tracer.traced_by = self
        tracer.aval = aval_of(primal)
        tracer.primal = primal
        tracer.tangent = tangent
        return tracer

    def split(self, x: Value) -> tuple[Any, Tangent]:
        """The primal and the tangent of a value."""
        if type(x) is JVPTracer and x.traced_by is self:
            return x.primal, x.tangent
        if isinstance(x, Tracer):
            check_alive(x)
        return x, Zero.like(x)

    def interpret(self, primitive: Primitive, args: Values, params: Params) -> Values:
        args, params = self.typing.operands(self, primitive, args, params)
        primals, tangents = zip(*map(self.split, args), strict=True)
        current.set_local(self.parent)
        try:
            outs, out_dots = primitive.jvp(primals, tangents, **params)
        finally:
            current.set_local(self)
        if primitive.multiple_results:
            return list(map(self.tracer, outs, out_dots))
        return (self.tracer(outs, out_dots),)


def jvp_flat(
    function: FlatFunction,
    primals: Values,
    tangents: Tangents,
    function_name: str = "",
    parent: Trace | None = None,
) -> tuple[list[Any], list[Tangent]]:
    """Runs `function` on primals and tangents; both lists of results, tangents may be `Zero`."""
    before = current.value
    trace = JVPTrace(before if parent is None else parent, function_name)
    current.set_local(trace)
    try:
        outs = function(*map(trace.tracer, primals, tangents))
        out_primals: list[Any] = []
        out_tangents: list[Tangent] = []
        for out in outs:
            primal, tangent = trace.split(out)
            out_primals.append(primal)
            out_tangents.append(tangent)
    finally:
        current.set_local(before)
        trace.finished = True
    return out_primals, out_tangents


def jvp_jaxpr(
    closed: ClosedJaxpr, nonzero: Sequence[bool], instantiate_outs: bool | Sequence[bool] = False
) -> tuple[ClosedJaxpr, list[bool]]:
    """The jaxpr of primals and (non-zero) tangents to primal results and their tangents.

    Args:
        closed: the function.
        nonzero: which arguments have a tangent that is not symbolically zero.
        instantiate_outs: which zero tangents of results to make.

    Returns:
        The jaxpr, and which results have a tangent.
    """
    count = len(closed.jaxpr.outvars)
    if isinstance(instantiate_outs, bool):
        instantiate_outs = (instantiate_outs,) * count
    key = ("jvp", tuple(nonzero), tuple(instantiate_outs))
    result: tuple[ClosedJaxpr, list[bool]] = closed.remember(
        key, lambda: _jvp_jaxpr(closed, nonzero, instantiate_outs)
    )
    return result


def _jvp_jaxpr(
    closed: ClosedJaxpr, nonzero: Sequence[bool], instantiate_outs: Sequence[bool]
) -> tuple[ClosedJaxpr, list[bool]]:
    closed = discharge.without_references(closed)
    in_avals = closed.in_avals
    tangent_avals = [a.tangent_aval() for a, nz in zip(in_avals, nonzero, strict=True) if nz]
    out_nonzero: list[bool] = []

    def function(*args: Any) -> list[Any]:
        primals, given = args[: len(in_avals)], args[len(in_avals) :]
        tangents = with_zeros(nonzero, given, in_avals)
        outs, out_dots = jvp_flat(
            lambda *xs: staging.eval_closed_jaxpr(closed, *xs), primals, tangents
        )
        out_dots = [
            t.made() if make and type(t) is Zero else t
            for t, make in zip(out_dots, instantiate_outs, strict=True)
        ]
        out_nonzero[:] = [type(t) is not Zero for t in out_dots]
        return outs + [t for t in out_dots if type(t) is not Zero]

    info = closed.jaxpr.debug_info
    jaxpr, consts = staging.stage(function, in_avals + tangent_avals, info)
    return ClosedJaxpr(jaxpr, consts), out_nonzero


def jvp_of_linear(primitive: Primitive, primals: Values, tangents: Tangents, **params: Any) -> Dual:
    """The jvp of an operation linear in all arguments together: applies it to the tangents."""
    out = primitive.bind(*primals, **params)
    dots = [t.made() if type(t) is Zero else t for t in tangents]
    return out, primitive.bind(*dots, **params)


def jvp_of_constant(
    primitive: Primitive, primals: Values, tangents: Tangents, **params: Any
) -> Dual:
    """The jvp of an operation whose result does not follow its arguments' tangents."""
    out = primitive.bind(*primals, **params)
    if primitive.multiple_results:
        return out, [Zero.like(x) for x in out]
    return out, Zero.like(out)
