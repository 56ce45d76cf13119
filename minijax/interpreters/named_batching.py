"""Batches with a name, and batches that mesh axes split: what `vmap` can say beyond its size.

Collectives inside may refer to the name of a batch; the user, or the types of mapped values, may
say which mesh axes split it.  A plain batch is `batching.BatchTrace`; these traces add what is
needed, and `Kind` carries it into the jaxprs that operations hold.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from minijax.core import axes
from minijax.core.aval import AbstractValue
from minijax.core.jaxpr import jaxprs_in_params
from minijax.core.meshes import names_of
from minijax.core.operators import AxisName, BatchDims, FlatFunction, Values
from minijax.core.primitive import Batched, Primitive
from minijax.core.trace import Params, Trace
from minijax.interpreters import batching
from minijax.interpreters.batching import BatchTrace, kind_in_force
from minijax.sharding import rules


class Kind(NamedTuple):
    """What is special about a batch.

    Attributes:
        axis_name: what collectives call the axis of the batch, if anything.
        placement: how the batch is split, by the user's word or as types of mapped values show.
    """

    axis_name: Any = None
    placement: rules.DimPlacement | None = None

    @property
    def spmd_axes(self) -> tuple[AxisName, ...]:
        """The mesh axes that the user says split the batch."""
        placement = self.placement
        return () if placement is None or placement.mesh is not None else placement.names

    def trace(self, parent: Trace, size: int, function_name: str = "") -> BatchTrace:
        """A trace for a batch of this kind inside an operation."""
        user_axes = self.spmd_axes
        if self.axis_name is None and not user_axes:
            return BatchTrace(parent, size, function_name)
        kind = self if user_axes else Kind(self.axis_name)
        of_kind = SpmdBatchTrace if user_axes else NamedBatchTrace
        return of_kind(parent, size, kind, function_name)

    def batched_aval(self, aval: AbstractValue, dim: int, size: int) -> Any:
        """The type of a batch along `dim` of values of a type, split as this one is."""
        return rules.with_batch_dim(aval, dim, size, self.placement)


def kind_of(axis_name: object = None, spmd_axis_name: Hashable = None) -> Kind | None:
    """The kind of a batch of which the user says this; None for a plain one."""
    if axis_name is None and spmd_axis_name is None:
        return None
    if spmd_axis_name is None:
        return Kind(axis_name)
    return Kind(axis_name, rules.DimPlacement(None, names_of(spmd_axis_name)))


def kind_after(kind: Kind | None, aval: AbstractValue, dim: int) -> Kind | None:
    """The kind of a batch in which a mapped value of type `aval` was met, along `dim`.

    The first one that Explicit axes split along the batch says how all are split.
    """
    placement = None if kind is None else kind.placement
    if aval.split is None or (placement is not None and placement.mesh is not None):
        return kind
    found = rules.placement_of_dim(aval, dim)
    if found is None:
        return kind
    return Kind(None if kind is None else kind.axis_name, found)


def spmd_axes() -> tuple[AxisName, ...]:
    """The mesh axes that the user says split the batch whose rules are running."""
    kind: Kind | None = kind_in_force.value
    return () if kind is None else kind.spmd_axes


class NamedBatchTrace(BatchTrace):
    """A batch with a name, which is an axis for the operations inside."""

    __slots__ = ()

    kind: Kind

    def __init__(self, parent: Trace, size: int, kind: Kind, function_name: str = "") -> None:
        super().__init__(parent, size, function_name)
        self.kind = kind

    def concerns(self, primitive: Primitive, args: Values, params: Params) -> bool:
        """Whether an argument is mapped, or the operation names the axis of the batch."""
        return super().concerns(primitive, args, params) or self._is_named(primitive, params)

    def _is_named(self, primitive: Primitive, params: Params) -> bool:
        """Whether an operation refers to the axis, or jaxprs that it holds do."""
        name = self.kind.axis_name
        if name is None:
            return False
        for key in axes.axis_params.of(primitive):
            value = params[key]
            if value == name or (isinstance(value, tuple) and name in value):
                return True
        if not primitive.multiple_results or name in axes.bound_by(primitive, params):
            return False
        return any(name in axes.used_by(jaxpr) for jaxpr in jaxprs_in_params(params))

    def apply(
        self, primitive: Primitive, values: Values, dims: BatchDims, params: Params
    ) -> Batched:
        rule = axes.batch_axis.of(primitive)
        if rule is None or not self._is_named(primitive, params):
            return super().apply(primitive, values, dims, params)
        found: Batched = rule(self.size, self.kind.axis_name, values, dims, **params)
        return found

    def run(
        self, function: FlatFunction, args: Values, dims: BatchDims
    ) -> tuple[list[Any], list[int | None]]:
        with axes.extend(self.kind.axis_name, self.size):
            return super().run(function, args, dims)


class SpmdBatchTrace(NamedBatchTrace):
    """A batch that mesh axes split, because the user says so."""

    __slots__ = ()

    @property
    def is_split_by_user(self) -> bool:
        """Whether the user's word holds still: types of mapped values may have said otherwise."""
        return bool(self.kind.spmd_axes)

    def apply(
        self, primitive: Primitive, values: Values, dims: BatchDims, params: Params
    ) -> Batched:
        found = self.kind.spmd_axes
        rule = axes.batch_spmd.of(primitive)
        if rule is None or not found:
            return super().apply(primitive, values, dims, params)
        outs: Batched = rule(self.size, found, values, dims, **params)
        return outs


def batch_flat(
    function: FlatFunction,
    size: int,
    args: Values,
    dims: Sequence[int | None],
    *,
    axis_name: Hashable = None,
    spmd_axis_name: Hashable = None,
    function_name: str = "",
) -> tuple[list[Any], list[int | None]]:
    """As `batching.batch_flat`, for a batch that has a name or is split, if these are given."""
    kind = kind_of(axis_name, spmd_axis_name)
    return batching.batch_flat(function, size, args, dims, kind=kind, function_name=function_name)
