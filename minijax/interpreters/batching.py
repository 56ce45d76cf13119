"""Batching: a value becomes a whole batch of values along one dimension.

Input: a function, or a jaxpr, for one example.  Output: the same for a batch.

`docs/reading.md`: read after `interpreters/transpose.py`; `lowering/module.py` is next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jaxlib import _jax

from minijax.core import deferral
from minijax.core import trace as core_trace
from minijax.core.aval import AbstractValue, aval_of
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.operators import BatchDims, FlatFunction, Value, Values
from minijax.core.primitive import Primitive
from minijax.core.trace import Detours, NestedTrace, Params, Trace, Tracer, check_alive, current
from minijax.interpreters import staging
from minijax.interpreters.structural import to_batch_dim

if TYPE_CHECKING:
    from minijax.core.native import Config
    from minijax.interpreters import discharge
else:
    discharge = deferral.module("minijax.interpreters.discharge")

_new_tracer = object.__new__

kind_in_force: Config[Any] = _jax.config.Config("minijax_batch_kind", None)
"""What is special about the batch whose rules are running, and so about batches of the jaxprs that
operations hold: a `named_batching.Kind`, or None, as for most."""

not_mapped = None
"""Stands where a batch dimension would, for values that are the same for all examples."""


class BatchTracer(Tracer):
    """A batch of values, and which of its dimensions runs over the batch."""

    __slots__ = ("dim", "value")

    value: Any
    dim: int

    def concrete(self) -> None:
        return None

    def origin(self) -> str:
        value = self.value
        what = value.origin() if isinstance(value, Tracer) else "a value"
        return f"{what} mapped by vmap over dimension {self.dim}"

    def __repr__(self) -> str:
        return f"BatchTracer({self.aval}, batched={self.value!r}, dim={self.dim})"


DETOURS = Detours()
"""The operations that are not batched as they are, such as calls of functions."""


class BatchTrace(NestedTrace):
    """Applies operations to whole batches, in `parent`."""

    __slots__ = ("kind", "lock", "size")
    detours = DETOURS
    tracers = BatchTracer

    def __init__(self, parent: Trace, size: int, function_name: str = "") -> None:
        super().__init__(function_name)
        self.parent = parent
        self.size = size
        self.kind: Any = None
        self.lock: Any = None

    def tracer(self, value: Value, dim: int | None) -> Any:
        """A batch along `dim`; the value itself where it is not mapped."""
        if dim is None:
            return value
        tracer = _new_tracer(BatchTracer)
        aval = aval_of(value)
        if not aval.is_plain:
            self.kind = core_trace.placement_semantics.batch_kind(self.kind, aval, dim)
        tracer.traced_by = self
        tracer.aval = aval.without_dim(dim)
        tracer.value = value
        tracer.dim = dim
        return tracer

    def split(self, x: Value) -> tuple[Any, int | None]:
        """The batch and its dimension; a value that is not mapped has dimension None."""
        if type(x) is BatchTracer and x.traced_by is self:
            return x.value, x.dim
        if isinstance(x, Tracer):
            check_alive(x)
        return x, None

    def interpret(self, primitive: Primitive, args: Values, params: Params) -> Values:
        pairs = list(map(self.split, args))
        values, dims = [value for value, _ in pairs], [dim for _, dim in pairs]
        current.set_local(self.parent)
        around = kind_in_force.swap_local(self.kind)
        try:
            outs, out_dims = self.apply(primitive, values, dims, params)
        finally:
            kind_in_force.set_local(around)
            current.set_local(self)
        if primitive.multiple_results:
            return list(map(self.tracer, outs, out_dims))
        return (self.tracer(outs, out_dims),)

    def apply(
        self, primitive: Primitive, values: Values, dims: BatchDims, params: Params
    ) -> tuple[Any, Any]:
        """The results of an operation on whole batches, and their batch dimensions."""
        found: tuple[Any, Any] = primitive.batch(self.size, values, dims, **params)
        return found

    def run(
        self, function: FlatFunction, args: Values, dims: BatchDims
    ) -> tuple[list[Any], list[int | None]]:
        """Runs `function` on a whole batch; its results and their batch dimensions."""
        before = current.swap_local(self)
        try:
            outs = function(*map(self.tracer, args, dims))
            pairs = [self.split(out) for out in outs]
        finally:
            current.set_local(before)
        return [value for value, _ in pairs], [dim for _, dim in pairs]


def batch_flat(
    function: FlatFunction,
    size: int,
    args: Values,
    dims: Sequence[int | None],
    *,
    kind: Any = None,
    function_name: str = "",
) -> tuple[list[Any], list[int | None]]:
    """Runs `function` once on a whole batch; its results and their batch dimensions."""
    trace = BatchTrace if kind is None else kind.trace
    batch = trace(current.value, size, function_name)
    try:
        return batch.run(function, args, dims)
    finally:
        batch.finished = True
        # Equations may hold the trace, for functions that close over its tracers.
        batch.parent = None


def batch_jaxpr(
    closed: ClosedJaxpr,
    size: int,
    batched: Sequence[bool],
    force: bool | Sequence[bool] = False,
    *,
    in_dims: Sequence[int] = (),
    out_dims: Sequence[int] = (),
) -> tuple[ClosedJaxpr, list[bool]]:
    """The jaxpr for a batch along a dimension of the arguments marked `batched`.

    Args:
        closed: the function of one example.
        size: how many examples there are.
        batched: which arguments are mapped.
        force: which results shall be mapped even if all examples share them.
        in_dims: along which dimension each argument is, if mapped; 0 by default.
        out_dims: the same for the results.

    Returns:
        The jaxpr, and which results are mapped.
    """
    if isinstance(force, bool):
        force = (force,) * len(closed.jaxpr.outvars)
    in_dims = in_dims or (0,) * len(batched)
    out_dims = out_dims or (0,) * len(force)
    dims = [d if mapped else None for d, mapped in zip(in_dims, batched, strict=True)]
    key = ("batch", size, *dims, tuple(force), tuple(out_dims), kind_in_force.value)
    result: tuple[ClosedJaxpr, list[bool]] = closed.remember(
        key, lambda: _batch_jaxpr(closed, size, dims, force, out_dims)
    )
    return result


def batched_aval(aval: AbstractValue, dim: int, size: int) -> AbstractValue:
    """The type of a batch along `dim` of values of a type."""
    return aval.with_dim(dim, size)


def _batch_jaxpr(
    closed: ClosedJaxpr,
    size: int,
    dims: Sequence[int | None],
    force: Sequence[bool],
    out_dims: Sequence[int],
) -> tuple[ClosedJaxpr, list[bool]]:
    closed = discharge.without_references(closed)
    kind = kind_in_force.value
    wide = batched_aval if kind is None else kind.batched_aval
    avals = [
        aval if d is None else wide(aval, d, size)
        for aval, d in zip(closed.in_avals, dims, strict=True)
    ]
    out_batched: list[bool] = []

    def function(*args: Any) -> list[Any]:
        outs, found = batch_flat(
            lambda *xs: staging.eval_closed_jaxpr(closed, *xs), size, args, dims, kind=kind
        )
        out_batched[:] = [d is not None or f for d, f in zip(found, force, strict=True)]
        return [
            to_batch_dim(out, given, wanted, size) if mapped else out
            for out, given, wanted, mapped in zip(outs, found, out_dims, out_batched, strict=True)
        ]

    jaxpr, consts = staging.stage(function, avals, closed.jaxpr.debug_info)
    return ClosedJaxpr(jaxpr, consts), out_batched
