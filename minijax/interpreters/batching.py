"""Batching: a value becomes a whole batch of values along one dimension.

Input: a function, or a jaxpr, for one example.  Output: the same for a batch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from jaxlib import _jax

from minijax.core import axes, refs
from minijax.core.aval import aval_of
from minijax.core.jaxpr import ClosedJaxpr, jaxprs_in_params
from minijax.core.specs import names_of
from minijax.core.trace import Trace, Tracer, check_alive, current
from minijax.interpreters import discharge, evaluation, staging
from minijax.interpreters.structural import to_batch_dim
from minijax.sharding import rules

_new_tracer = object.__new__

_placement: Any = _jax.config.Config("minijax_batch_placement", None)
"""How the batch is split whose rules are running: what jaxprs inside operations are batched by."""

_axis_name: Any = _jax.config.Config("minijax_batch_axis", None)
"""The name of the axis whose batch rules are running."""


def spmd_axes() -> tuple[Any, ...]:
    """The mesh axes that the user says split the batch whose rules are running."""
    placement = _placement.value
    return () if placement is None or placement.mesh is not None else placement.names


not_mapped = None
"""Stands where a batch dimension would, for values that are the same for all examples."""


class BatchTracer(Tracer):
    """A batch of values, and which of its dimensions runs over the batch."""

    __slots__ = ("dim", "value")

    value: Any
    dim: int

    def concrete(self) -> Any:
        return None

    def origin(self) -> str:
        value = self.value
        what = value.origin() if isinstance(value, Tracer) else "a value"
        return f"{what} mapped by vmap over dimension {self.dim}"

    def __repr__(self) -> str:
        return f"BatchTracer({self.aval}, batched={self.value!r}, dim={self.dim})"


class BatchTrace(Trace):
    """Applies operations to whole batches, in `parent`."""

    __slots__ = ("axis_name", "lock", "parent", "placement", "size")

    parent: Any

    def __init__(
        self,
        parent: Trace,
        size: int,
        axis_name: Any = None,
        spmd_axis_name: Any = None,
        function_name: str = "",
    ) -> None:
        super().__init__(function_name)
        self.parent = parent
        self.size = size
        self.axis_name = axis_name
        # What the user says, or how the first mapped value that Explicit axes split along the batch
        # is split there.
        self.placement: rules.DimPlacement | None = None
        if spmd_axis_name is not None:
            self.placement = rules.DimPlacement(None, names_of(spmd_axis_name))
        self.lock = threading.RLock()

    @property
    def is_split_by_user(self) -> bool:
        """Whether the user says along which mesh axes the batch is split."""
        return self.placement is not None and self.placement.mesh is None

    def tracer(self, value: Any, dim: int | None) -> Any:
        """A batch along `dim`; the value itself where it is not mapped."""
        if dim is None:
            return value
        tracer = _new_tracer(BatchTracer)
        aval = aval_of(value)
        if aval.split is not None and (self.placement is None or self.placement.mesh is None):
            self.placement = rules.placement_of_dim(aval, dim) or self.placement
        tracer.traced_by = self
        tracer.aval = aval.without_dim(dim)
        tracer.value = value
        tracer.dim = dim
        return tracer

    def split(self, x: Any) -> tuple[Any, int | None]:
        """The batch and its dimension; a value that is not mapped has dimension None."""
        if type(x) is BatchTracer and x.traced_by is self:
            return x.value, x.dim
        if isinstance(x, Tracer):
            check_alive(x)
        return x, None

    def process(self, primitive: Any, args: Sequence[Any], params: dict[str, Any]) -> Sequence[Any]:
        parent: Trace = self.parent
        current.set_local(parent)
        try:
            if primitive.holds_functions:
                return self._process_functions(primitive, args, params)
            names_axis = self.axis_name is not None and _names(primitive, params, self.axis_name)
            for x in args:
                if type(x) is BatchTracer and x.traced_by is self:
                    break
            else:
                if not (primitive.makes_references or names_axis):
                    return parent.process(primitive, args, params)
            if primitive.with_references is not None and any(map(refs.is_reference, args)):
                current.set_local(self)
                return primitive.with_references(args, params)
            pairs = list(map(self.split, args))
            values, dims = [value for value, _ in pairs], [dim for _, dim in pairs]
            if self.placement is _placement.value and self.axis_name is _axis_name.value:
                out, out_dim = self._apply(primitive, values, dims, params, names_axis)
            else:
                around = _placement.swap_local(self.placement)
                name_around = _axis_name.swap_local(self.axis_name)
                try:
                    out, out_dim = self._apply(primitive, values, dims, params, names_axis)
                finally:
                    _placement.set_local(around)
                    _axis_name.set_local(name_around)
            if primitive.multiple_results:
                return list(map(self.tracer, out, out_dim))
            return (self.tracer(out, out_dim),)
        finally:
            current.set_local(self)

    def _apply(
        self,
        primitive: Any,
        values: Sequence[Any],
        dims: Sequence[Any],
        params: dict[str, Any],
        names_axis: bool,
    ) -> tuple[Any, Any]:
        if primitive.batch_spmd is not None and spmd_axes():
            return primitive.batch_spmd(self.size, spmd_axes(), values, dims, **params)
        if names_axis and primitive.batch_axis is not None:
            return primitive.batch_axis(self.size, self.axis_name, values, dims, **params)
        return primitive.batch(self.size, values, dims, **params)

    def _process_functions(
        self, primitive: Any, args: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        """As `process`, for an operation whose functions may close over tracers of this trace."""
        pairs = list(map(self.split, args))
        outs, dims = primitive.batch(
            self, [value for value, _ in pairs], [dim for _, dim in pairs], **params
        )
        return list(map(self.tracer, outs, dims))

    def run(
        self, function: Callable[..., Sequence[Any]], args: Sequence[Any], dims: Sequence[Any]
    ) -> tuple[list[Any], list[int | None]]:
        """Runs `function` on a whole batch; its results and their batch dimensions.

        The operations go to what is the current trace now.  A trace may run several functions,
        also later: they may close over its tracers.
        """
        # Equations may hold the trace, and threads share equations.
        with self.lock:
            before, parent, finished = current.value, self.parent, self.finished
            self.parent, self.finished = before, False
            current.set_local(self)
            try:
                with axes.extend(self.axis_name, self.size):
                    outs = function(*map(self.tracer, args, dims))
                pairs = [self.split(out) for out in outs]
            finally:
                current.set_local(before)
                self.parent, self.finished = parent, finished
        return [value for value, _ in pairs], [dim for _, dim in pairs]


def _names(primitive: Any, params: dict[str, Any], name: Any) -> bool:
    """Whether an operation refers to the axis `name`, or jaxprs that it holds do."""
    for key in primitive.axis_params:
        value = params[key]
        if value == name or (isinstance(value, tuple) and name in value):
            return True
    if not primitive.multiple_results or name in axes.bound_by(primitive, params):
        return False
    return any(name in axes.used_by(jaxpr) for jaxpr in jaxprs_in_params(params))


def batch_flat(
    function: Callable[..., Sequence[Any]],
    size: int,
    args: Sequence[Any],
    dims: Sequence[int | None],
    *,
    axis_name: Any = None,
    spmd_axis_name: Any = None,
    function_name: str = "",
) -> tuple[list[Any], list[int | None]]:
    """Runs `function` once on a whole batch; its results and their batch dimensions."""
    trace = BatchTrace(current.value, size, axis_name, spmd_axis_name, function_name)
    try:
        return trace.run(function, args, dims)
    finally:
        trace.finished = True
        # Equations may hold the trace, for functions that close over its tracers.
        trace.parent = None


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
    key = ("batch", size, *dims, tuple(force), tuple(out_dims), _placement.value, _axis_name.value)
    result: tuple[ClosedJaxpr, list[bool]] = closed.remember(
        key, lambda: _batch_jaxpr(closed, size, dims, force, out_dims)
    )
    return result


def _batch_jaxpr(
    closed: ClosedJaxpr,
    size: int,
    dims: Sequence[int | None],
    force: Sequence[bool],
    out_dims: Sequence[int],
) -> tuple[ClosedJaxpr, list[bool]]:
    closed = discharge.without_references(closed)
    avals = [
        aval if d is None else rules.with_batch_dim(aval, d, size, _placement.value)
        for aval, d in zip(closed.in_avals, dims, strict=True)
    ]
    out_batched: list[bool] = []

    def function(*args: Any) -> list[Any]:
        outs, found = batch_flat(
            lambda *xs: evaluation.eval_closed_jaxpr(closed, *xs),
            size,
            args,
            dims,
            axis_name=_axis_name.value,
            spmd_axis_name=spmd_axes() or None,
        )
        out_batched[:] = [d is not None or f for d, f in zip(found, force, strict=True)]
        return [
            to_batch_dim(out, given, wanted, size) if mapped else out
            for out, given, wanted, mapped in zip(outs, found, out_dims, out_batched, strict=True)
        ]

    jaxpr, consts = staging.stage(function, avals, closed.jaxpr.debug_info)
    return ClosedJaxpr(jaxpr, consts), out_batched
