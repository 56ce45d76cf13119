"""Operations that call a Python function, and have a rule of the user's for a transformation.

`custom_jvp_call` and the others take the function as the parameter `call_jaxpr`: what the user
wrote, as a function of flat values, while nothing is staged; a closed jaxpr once it is.  One rule
serves both.  What the function closes over becomes the first `num_consts` operands when it is
staged.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from minijax.core import config, dtypes, refs, vma
from minijax.core.aval import aval_of
from minijax.core.errors import UnexpectedTracerError, error
from minijax.core.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, holders, jaxprs_in_params
from minijax.core.operators import Avals, BatchDims, Value, Values
from minijax.core.primitive import Cotangents, Primitive, Tangents, Zero
from minijax.core.trace import Params, current
from minijax.interpreters import batching, casts, confinement, passes, staging, transpose
from minijax.interpreters.batching import BatchTrace
from minijax.interpreters.confinement import closed_over
from minijax.interpreters.jvp import is_linear
from minijax.interpreters.structural import in_front, to_batch_dim
from minijax.lax import references
from minijax.lowering import diagnosis, module
from minijax.sharding import rules

Call = ClosedJaxpr | Callable[..., Sequence[Any]]


def evaluate(call: Call, args: Values) -> list[Any]:
    """The results of the function, in the current trace."""
    if isinstance(call, ClosedJaxpr):
        return staging.eval_closed_jaxpr(call, *args)
    return list(call(*args))


def _stage(
    trace: object, primitive: Primitive, args: Values, params: Mapping[str, Any]
) -> Sequence[Any] | None:
    outs: Values | None = confinement.stage_functions.of(primitive)(trace, args, params)
    return outs


def _batch(
    trace: BatchTrace, primitive: Primitive, args: Values, params: Mapping[str, Any]
) -> Sequence[Any]:
    """Batches a call in any case: its functions may close over tracers of the trace."""
    trace.lock = trace.lock or threading.RLock()
    pairs = list(map(trace.split, args))
    with config.override(current, trace.parent):
        outs, dims = primitive.batch(
            trace, [value for value, _ in pairs], [dim for _, dim in pairs], **params
        )
    return list(map(trace.tracer, outs, dims))


staging.DETOURS.add(lambda primitive: _stage if confinement.stage_functions.of(primitive) else None)
batching.DETOURS.add(
    lambda primitive: _batch if confinement.stage_functions.of(primitive) else None
)


def run_again(
    trace: BatchTrace, function: Callable[..., Any], args: Values, dims: BatchDims
) -> tuple[list[Any], list[int | None]]:
    """Runs one more function on the batch of a trace, perhaps one that has ended.

    Its operations go to what is the current trace now.  Equations may hold the trace, and threads
    share equations.
    """
    with trace.lock:
        parent, finished = trace.parent, trace.finished
        trace.parent, trace.finished = current.value, False
        try:
            return trace.run(function, args, dims)
        finally:
            trace.parent, trace.finished = parent, finished


def takes_references(jaxpr: Jaxpr) -> bool:
    """Whether a function with rules of its own is given references, also in inner programs."""
    return any(
        (
            isinstance(eqn.primitive, FunctionCall)
            and any(type(v.aval) is refs.AbstractRef for v in eqn.invars)
        )
        or any(map(takes_references, jaxprs_in_params(eqn.params)))
        for eqn in holders(jaxpr)
    )


class FunctionCall(Primitive):
    """The family of operations that call a function, `call_jaxpr`.

    A final class gives the rules that make its function special: `jvp`, `batch`, and which
    parameters to show.
    """

    multiple_results: ClassVar[bool] = True
    has_effects: ClassVar[bool] = True
    shard = rules.from_types

    def abstract_eval(self, *avals: Any, call_jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
        return call_jaxpr.out_avals

    def effects(self, *avals: Any, call_jaxpr: ClosedJaxpr, **params: Any) -> frozenset[Any]:
        return call_jaxpr.effects

    def impl(self, *args: Any, call_jaxpr: Call, **params: Any) -> list[Any]:
        return evaluate(call_jaxpr, args)

    def lower(self, ctx: Any, *values: Any, call_jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
        return module.lower_jaxpr(ctx, call_jaxpr.jaxpr, call_jaxpr.consts, values)

    def transpose(self, cts: Cotangents, *args: Any, call_jaxpr: Call, **params: Any) -> Cotangents:
        linear = [x.aval for x in args if is_linear(x)]

        def of_linear(*given: Any) -> list[Any]:
            values = iter(given)
            return evaluate(call_jaxpr, [next(values) if is_linear(x) else x for x in args])

        jaxpr, consts = staging.stage(of_linear, linear)
        found = iter(transpose.backward_pass(jaxpr, consts, cts))
        return [next(found) if is_linear(x) else None for x in args]


dtypes.knows_extended.set(True, FunctionCall)
rules.constrains_results.set(False, FunctionCall)


@diagnosis.walk.rule(FunctionCall)
def _walk_of_function_call(
    primitive: FunctionCall, run: Any, *args: Any, call_jaxpr: ClosedJaxpr, **params: Any
) -> None:
    run(call_jaxpr, *args)


@confinement.stage_functions.rule(FunctionCall)
def _stage_of_function_call(
    primitive: FunctionCall, trace: staging.StagingTrace, args: Values, params: Params
) -> Sequence[Any] | None:
    call: Call = params["call_jaxpr"]
    consts: list[Any] = []
    avals = list(map(aval_of, args))
    if isinstance(call, ClosedJaxpr):
        if call.in_avals == avals:
            return references.through_views(trace, primitive, args, params)
        varying = casts.of_types(avals)
        fitting = casts.retyped(call, varying)
        if fitting is not call:
            return trace.process(primitive, args, {**params, "call_jaxpr": fitting})
        closed = ClosedJaxpr(*_staged(primitive, call, avals, params["name"]))
    else:
        jaxpr, consts = _staged(primitive, call, avals, params["name"])
        closed = ClosedJaxpr(passes.close_over_constants(jaxpr))
    params = {**params, "call_jaxpr": closed, "num_consts": len(consts) + params["num_consts"]}
    return trace.process(primitive, [*consts, *args], params)


vma.vary.rule(FunctionCall)(vma.from_types)


def _staged(primitive: Any, call: Call, avals: Avals, name: str) -> tuple[Jaxpr, list[Any]]:
    info = DebugInfo(primitive.name, name, func_name=name)
    return staging.stage(lambda *args: evaluate(call, args), avals, info)


def check_constants(name: str, tangents: Tangents, num_consts: int) -> None:
    """Refuses to differentiate by a value that the function closes over.

    Raises:
        UnexpectedTracerError: one of the first `num_consts` tangents is not zero.
    """
    for tangent in tangents[:num_consts]:
        if type(tangent) is not Zero:
            raise closed_over(name, f"{aval_of(tangent)}, which is being differentiated")


class OutDims:
    """Where the batch dimension of each result is, for all the functions of one operation.

    At 0 if the operation has a mapped argument.  Otherwise the function that runs first decides:
    it may close over mapped values.
    """

    __slots__ = ("dims", "mapped", "name", "size")

    def __init__(self, size: int, args_dims: Sequence[Any], name: str) -> None:
        self.size = size
        self.mapped = any(d is not None for d in args_dims)
        self.name = name
        self.dims: list[int | None] | None = None

    def settle(self, dims: BatchDims) -> None:
        """Says where results that were found at `dims` belong, unless that is known already."""
        if self.dims is None:
            self.dims = [0 if self.mapped or d is not None else None for d in dims]

    def place(self, outs: Sequence[Any], dims: BatchDims) -> list[Any]:
        """The results, each with its batch dimension where it belongs."""
        self.settle(dims)
        assert self.dims is not None
        return [
            self._placed(out, dim, target)
            for out, dim, target in zip(outs, dims, self.dims, strict=True)
        ]

    def _placed(self, out: Value | Zero, dim: int | None, target: int | None) -> Any:
        if isinstance(out, Zero):
            if target is None:
                return out
            return Zero(out.aval.with_dim(0, self.size))
        if target is not None:
            return to_batch_dim(out, dim, target, self.size)
        if dim is not None:
            problem = "the rule closes over a value that vmap maps, and the function does not."
            fix = f"pass the value to {self.name} as an argument"
            error(UnexpectedTracerError, self.name, problem, got=str(aval_of(out)), fix=fix)
        return out


def batched_args(args: Values, dims: Sequence[int | None]) -> tuple[list[Any], list[int | None]]:
    """Arguments with their batch dimension in front, where they have one."""
    moved = in_front(args, dims)
    return moved, [None if d is None else 0 for d in dims]


def batched(trace: BatchTrace, call: Call, dims: Sequence[int | None], out_dims: OutDims) -> Call:
    """The function on a whole batch, which lies along dimension 0 of mapped arguments."""
    if isinstance(call, ClosedJaxpr):
        whole, out_batched = batching.batch_jaxpr(
            call, trace.size, [d is not None for d in dims], out_dims.mapped
        )
        out_dims.dims = [0 if b else None for b in out_batched]
        return whole

    def on_batch(*args: Any) -> list[Any]:
        return out_dims.place(*run_again(trace, call, args, dims))

    return on_batch


def batch_with(
    primitive: Primitive,
    trace: BatchTrace,
    args: Values,
    dims: Sequence[int | None],
    params: Params,
    rule: str,
    batched_rule: Callable[..., Any],
) -> tuple[list[Any], Sequence[Any]]:
    """The rule `batch` of an operation that calls a function and has one rule of the user's.

    Args:
        primitive: the operation.
        trace: the batch.
        args: its operands.
        dims: their batch dimensions.
        params: its parameters.
        rule: the parameter that is the user's rule.
        batched_rule: makes a rule for whole batches, from the trace, the rule, the batch
            dimensions of the function's arguments, and those of its results.
    """
    args, dims = batched_args(args, dims)
    out_dims = OutDims(trace.size, dims, params["name"])
    changed = {
        "call_jaxpr": batched(trace, params["call_jaxpr"], dims, out_dims),
        rule: batched_rule(trace, params[rule], dims[params["num_consts"] :], out_dims),
    }
    outs = primitive.bind(*args, **{**params, **changed})
    return outs, out_dims.dims or ()
