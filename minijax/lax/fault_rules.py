"""What primitives do with faulty elements, for `checked` and for the flow of random keys.

One page for all that most programs load; what loads later declares its own beside its primitive,
and so does what may go wrong in an operation itself (`checking.faults`).
"""

from __future__ import annotations

from typing import Any

from minijax.interpreters import casts, reshard, structural
from minijax.interpreters.checking import (
    COPIES,
    ELEMENTWISE,
    INSPECTS,
    MOVES,
    PRESERVES,
    SELECTS,
    fault_flow,
)
from minijax.lax import (
    choice,
    convert,
    creation,
    families,
    gather_scatter,
    padding,
    references,
    shape,
    shardings,
    slicing,
    sorting,
    unary,
    windows,
)


@fault_flow.derive(families.Unary)
def _flow_of_unary(primitive: families.Unary) -> str:
    if primitive.result is families.bool_dtype:
        return INSPECTS
    return PRESERVES if primitive.total else ELEMENTWISE


@fault_flow.derive(families.Binary)
def _flow_of_binary(primitive: families.Binary) -> str:
    return PRESERVES if primitive.total else ELEMENTWISE


fault_flow.set(
    ELEMENTWISE,
    structural.AddAny,
    convert.ConvertElementType,
    convert.ReducePrecision,
    unary.IntegerPow,
    unary.Pow,
)
fault_flow.set(
    PRESERVES,
    casts.Cast,
    choice.Clamp,
    shardings.ShardingConstraint,
    unary.Abs,
    unary.Conj,
    unary.Round,
    unary.StopGradient,
)
fault_flow.set(
    MOVES,
    reshard.Reshard,
    shape.Copy,
    shape.Reshape,
    shape.Rev,
    shape.Squeeze,
    slicing.Slice,
    structural.BroadcastInDim,
    structural.Transpose,
)
fault_flow.set(
    COPIES,
    convert.BitcastConvertType,
    creation.Empty,
    gather_scatter.Gather,
    padding.Pad,
    references.Freeze,
    references.Get,
    references.NewRef,
    references.Swap,
    shape.Concatenate,
    shape.Split,
    slicing.DynamicSlice,
    slicing.DynamicUpdateSlice,
    sorting.ApproxTopK,
    sorting.Sort,
    sorting.TopK,
    shape.Stack,
    shape.Unstack,
    windows.SelectAndGatherAdd,
    windows.SelectAndScatter,
)
fault_flow.set(SELECTS, choice.SelectN)


def flow_of(eqn: Any) -> str:
    """What becomes of faulty elements in an equation."""
    return fault_flow.of(eqn.primitive)
