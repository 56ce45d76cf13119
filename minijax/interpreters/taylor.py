"""Taylor mode: a value becomes a primal and its derivatives along a curve.

Input: a function, and for each argument its value and derivatives at a point of a curve.  Output:
the same for the results.  Derivatives are symbolic zeros where nothing moves.

The derivative of a result is what the `jvp` rule says, and itself moves along the curve: so the
rule, staged once and run one order lower, gives all higher derivatives.  This serves every
primitive with a `jvp` rule; cost grows with the order, not exponentially, as long as the rule uses
the operation at most once.  Others, such as products, have rules of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from minijax.core import config
from minijax.core.aval import aval_of
from minijax.core.jaxpr import ClosedJaxpr, DebugInfo
from minijax.core.operators import Avals, FlatFunction, Value, Values
from minijax.core.primitive import Primitive, Tangent, Zero
from minijax.core.trace import Params, Trace, Tracer, check_alive, current
from minijax.interpreters import confinement, passes, staging
from minijax.interpreters.confinement import confine
from minijax.interpreters.jvp import PrimalTracer
from minijax.interpreters.structural import instantiate

Series = Sequence[Tangent]
"""The derivatives of a value, from the first on; each may be `Zero`."""

Rule = Callable[
    ["TaylorTrace", Any, Values, Sequence[Series], Params], tuple[Values, Sequence[Series]]
]
"""Of `trace, primitive, primals, series, params`: results and their series.

`trace.run(function, primals, series)` does the same for a function.
"""

_new_tracer = object.__new__


class TaylorTracer(PrimalTracer):
    """A primal value and its derivatives."""

    __slots__ = ("series",)
    what_happens = "expanded in a Taylor series"

    series: Series


class TaylorTrace(Trace):
    """Pushes series of one order forward; primitives run in `parent`."""

    __slots__ = ("order", "parent", "rules")

    def __init__(
        self, parent: Trace, order: int, rules: Mapping[Primitive, Rule], function_name: str = ""
    ) -> None:
        super().__init__(function_name)
        self.parent = parent
        self.order = order
        self.rules = rules

    def tracer(self, primal: Value, series: Series) -> Any:
        """A primal with its series; the primal alone where nothing moves."""
        if not moves(series):
            return primal
        tracer = _new_tracer(TaylorTracer)
        tracer.traced_by = self
        tracer.aval = aval_of(primal)
        tracer.primal = primal
        tracer.series = series
        return tracer

    def split(self, x: Value) -> tuple[Any, Series]:
        """The primal and the series of a value."""
        if type(x) is TaylorTracer and x.traced_by is self:
            return x.primal, x.series
        if isinstance(x, Tracer):
            check_alive(x)
        return x, (Zero.like(x),) * self.order

    def process(self, primitive: Primitive, args: Values, params: Params) -> Values:
        parent = self.parent
        current.set_local(parent)
        try:
            if not any(type(x) is TaylorTracer and x.traced_by is self for x in args):
                return parent.process(primitive, args, params)
            if confinement.stage_functions.of(primitive) is not None:
                params = confine(params, self)
            primals, series = zip(*map(self.split, args), strict=True)
            rule: Rule = self.rules.get(primitive, by_jvp)
            outs, out_series = rule(self, primitive, primals, series, params)
            return list(map(self.tracer, outs, out_series))
        finally:
            current.set_local(self)

    def run(
        self, function: FlatFunction, primals: Values, series: Sequence[Series]
    ) -> tuple[list[Any], list[Series]]:
        """Series of the results of `function`; of any order, with the rules of this trace."""
        order = len(series[0]) if series else self.order
        return taylor_flat(function, primals, series, order, self.rules, self.function_name)

    def of_jaxpr(self, closed: ClosedJaxpr, moving: Sequence[bool]) -> ClosedJaxpr:
        """The jaxpr of primals and series, where they move, to primals and series.

        Each primal is followed by its series; results have one where their dtype admits it.
        """
        key = ("taylor", self.order, tuple(moving))
        made: ClosedJaxpr = closed.remember(key, lambda: self._of_jaxpr(closed, moving))
        return made

    def _of_jaxpr(self, closed: ClosedJaxpr, moving: Sequence[bool]) -> ClosedJaxpr:
        def function(*args: Any) -> list[Any]:
            primals, series = self.gather(args, closed.in_avals, moving)
            outs, out_series = self.run(
                lambda *xs: staging.eval_closed_jaxpr(closed, *xs), primals, series
            )
            return self.spread(outs, out_series, admits_series(closed.out_avals))

        avals = [
            x
            for aval, m in zip(closed.in_avals, moving, strict=True)
            for x in (aval, *[aval.tangent_aval()] * (self.order if m else 0))
        ]
        return staging.stage_closed(function, avals, closed.jaxpr.debug_info)

    def spread(
        self, primals: Values, series: Sequence[Series], moving: Sequence[bool]
    ) -> list[Any]:
        """Each primal followed by its series, where it moves."""
        return [
            x
            for primal, terms, m in zip(primals, series, moving, strict=True)
            for x in (primal, *(map(instantiate, terms) if m else ()))
        ]

    def gather(
        self, values: Values, avals: Avals, moving: Sequence[bool]
    ) -> tuple[list[Any], list[Series]]:
        """The primals and the series of values that `spread` made."""
        given = iter(values)
        primals: list[Any] = []
        series: list[Series] = []
        for aval, m in zip(avals, moving, strict=True):
            primals.append(next(given))
            zero = Zero(aval.tangent_aval())
            series.append([next(given) if m else zero for _ in range(self.order)])
        return primals, series


def admits_series(avals: Avals) -> list[bool]:
    """Which types have tangents: those of floating-point and complex numbers."""
    return [not aval.is_extended and aval.tangent_aval().dtype == aval.dtype for aval in avals]


def moves(series: Series) -> bool:
    """Whether some derivative is not known to be zero."""
    return any(type(term) is not Zero for term in series)


def taylor_flat(
    function: FlatFunction,
    primals: Values,
    series: Sequence[Series],
    order: int,
    rules: Mapping[Primitive, Rule],
    function_name: str = "",
) -> tuple[list[Any], list[Series]]:
    """Runs `function` on primals and their series of length `order`; the same of the results."""
    trace = TaylorTrace(current.value, order, rules, function_name)
    try:
        with config.override(current, trace):
            outs = function(*map(trace.tracer, primals, series))
            pairs = list(map(trace.split, outs))
    finally:
        trace.finished = True
    return [primal for primal, _ in pairs], [terms for _, terms in pairs]


def by_jvp(
    trace: TaylorTrace,
    primitive: Primitive,
    primals: Values,
    series: Sequence[Series],
    params: Params,
) -> tuple[Values, list[Series]]:
    """The rule of every primitive: y' is its `jvp` at x and x', one order lower.

    x is the series x, x', x'', ... and x' is x', x'', x''', ...: the same numbers, moved by one.
    """
    outs = primitive.bind_all(*primals, **params)
    order = len(series[0])
    if not outs:
        # Such as `debug.print`: what it does is done, once.
        return outs, []
    moving = [moves(terms) for terms in series]
    velocities = [instantiate(terms[0]) for terms, m in zip(series, moving, strict=True) if m]
    velocity, out_moving = _velocity(primitive, primals, velocities, moving, params)
    firsts, later = trace.run(
        velocity,
        [*primals, *velocities],
        [terms[:-1] for terms in series]
        + [terms[1:] for terms, m in zip(series, moving, strict=True) if m],
    )
    found = iter(zip(firsts, later, strict=True))
    out_series: list[Series] = []
    for out, m in zip(outs, out_moving, strict=True):
        if m:
            first, rest = next(found)
            out_series.append((first, *rest))
        else:
            out_series.append((Zero.like(out),) * order)
    return outs, out_series


def _velocity(
    primitive: Primitive,
    primals: Values,
    velocities: Values,
    moving: Sequence[bool],
    params: Params,
) -> tuple[FlatFunction, list[bool]]:
    """The derivative of an operation, a function of operands and their moving derivatives.

    It is staged to lose what the rule computes besides, which would double the work at each order.

    Returns:
        The function, and which results have a derivative that is not zero.
    """
    out_moving: list[bool] = []

    def rule(*args: Any) -> list[Any]:
        given = iter(args[len(primals) :])
        tangents = [
            next(given) if m else Zero.like(x) for x, m in zip(primals, moving, strict=True)
        ]
        _, dots = primitive.jvp(args[: len(primals)], tangents, **params)
        dots = dots if primitive.multiple_results else [dots]
        out_moving[:] = [type(dot) is not Zero for dot in dots]
        return [dot for dot in dots if type(dot) is not Zero]

    avals = [aval_of(x) for x in (*primals, *velocities)]
    jaxpr, consts = staging.stage(rule, avals, DebugInfo("jet", primitive.name))
    slim, _ = passes.dce_jaxpr(jaxpr, keep_inputs=True)
    return lambda *args: staging.eval_jaxpr(slim, consts, *args), out_moving
