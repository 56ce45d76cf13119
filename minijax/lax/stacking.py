"""Joining arrays along a new dimension, and taking one apart along a dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.core.aval import ShapedArray, aval_of
from minijax.core.errors import error
from minijax.core.primitive import Primitive
from minijax.core.specs import PartitionSpec
from minijax.interpreters.structural import instantiate, jvp_of_linear, to_batch_dim
from minijax.interpreters.tangents import Zero, is_linear
from minijax.lax.arguments import canonicalize_axis
from minijax.lax.families import check_same_dtype, operand
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.sharding import rules


class Stack(Primitive):
    """Joins arrays of one shape along a new dimension.

    Shapes: T[s] for each of n operands -> T[s with n at axis].  Linear in all together.
    """

    name = "stack"
    fault_flow = "copies"
    jvp = jvp_of_linear

    def abstract_eval(self, *operands: ShapedArray, axis: int) -> ShapedArray:
        first = operands[0]
        if any(x is not first for x in operands):
            named = {f"operands[{i}]": x for i, x in enumerate(operands)}
            check_same_dtype("stack", **named)
            if len({x.shape for x in operands}) > 1:
                error(ValueError, "lax.stack", "all operands must have one shape.", got=named)
        weak = all(x.weak_type for x in operands)
        shape = (*first.shape[:axis], len(operands), *first.shape[axis:])
        return (first if weak else first.strip_weak_type()).with_shape(shape)

    def shard(self, avals: Sequence[Any], outs: Sequence[Any], *, axis: int) -> PartitionSpec:
        return rules.join(self, avals, avals[0].ndim).inserted(axis)

    def lower(self, ctx: Any, *values: Any, axis: int) -> Any:
        shape = ctx.avals_in[0].shape
        single = (*shape[:axis], 1, *shape[axis:])
        rows = [ctx.reshape(x, single, ctx.avals_in[0].dtype) for x in values]
        return ctx.op("stablehlo.concatenate", rows, {"dimension": ctx.integer(axis)})

    def transpose(self, ct: Any, *args: Any, axis: int) -> tuple[Any, ...]:
        parts = unstack(ct, axis)
        return tuple(part if is_linear(x) else None for x, part in zip(args, parts, strict=True))

    def batch(
        self, size: int, args: Sequence[Any], dims: Sequence[Any], *, axis: int
    ) -> tuple[Any, int]:
        rows = [to_batch_dim(x, d, 0, size) for x, d in zip(args, dims, strict=True)]
        return self.bind(*rows, axis=axis + 1), 0


stack_p = Stack()


def stack(operands: Sequence[Any], axis: int = 0) -> Array:
    """Joins arrays of one shape along a new dimension.

    Shapes:     T[s] for each of n operands -> T[s with n at axis].
    Dtypes:     any, all equal.
    Derivative: transposes to `unstack`.
    Lowers to:  stablehlo.concatenate.
    Source:     mirrors jax.lax.stack.

    Raises:
        ValueError: there are no operands, their shapes differ, or the axis is out of range.
        TypeError: the dtypes differ.

    Example:
        >>> lax.stack([jnp.array([1, 2]), jnp.array([3, 4])], axis=1)
        Array([[1, 3],
               [2, 4]], dtype=int32)
    """
    arrays = [operand(x) for x in operands]
    if not arrays:
        error(ValueError, "lax.stack", "there is nothing to join.", got="no operands")
    axis = canonicalize_axis(axis, aval_of(arrays[0]).ndim + 1, "lax.stack")
    return stack_p.bind(*arrays, axis=axis)


class Unstack(Primitive):
    """Takes an array apart along `axis`, which the parts no longer have.

    Shapes: x: T[.., n, ..] -> T[.., ..], n times.  Linear.
    """

    name = "unstack"
    fault_flow = "copies"
    multiple_results = True

    def abstract_eval(self, x: ShapedArray, *, axis: int) -> list[ShapedArray]:
        return [x.with_shape(x.shape[:axis] + x.shape[axis + 1 :])] * x.shape[axis]

    def shard(self, avals: Sequence[Any], outs: Sequence[Any], *, axis: int) -> list[PartitionSpec]:
        rules.check_unsharded(self, avals, (axis,))
        return [rules.dropped(rules.spec_of(avals[0]), (axis,))] * len(outs)

    def lower(self, ctx: Any, x: Any, *, axis: int) -> list[Any]:
        (aval,) = ctx.avals_in
        shape = aval.shape
        single = (*shape[:axis], 1, *shape[axis + 1 :])
        starts, limits = [0] * len(shape), list(shape)
        parts = []
        for i in range(shape[axis]):
            starts[axis], limits[axis] = i, i + 1
            attributes = {
                "start_indices": ctx.i64_array(starts),
                "limit_indices": ctx.i64_array(limits),
                "strides": ctx.i64_array([1] * len(shape)),
            }
            row = ctx.op("stablehlo.slice", [x], attributes, ctx.tensor_type(single, aval.dtype))
            parts.append(ctx.reshape(row, shape[:axis] + shape[axis + 1 :], aval.dtype))
        return parts

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        outs = self.bind(*primals, **params)
        if type(tangents[0]) is Zero:
            return outs, [Zero.like(x) for x in outs]
        return outs, self.bind(*tangents, **params)

    def transpose(self, ct: Any, x: Any, *, axis: int) -> tuple[Any]:
        if all(type(part) is Zero for part in ct):
            return (Zero(x.aval),)
        return (stack([instantiate(part) for part in ct], axis),)

    def batch(
        self, size: int, args: Sequence[Any], dims: Sequence[Any], *, axis: int
    ) -> tuple[Any, list[int]]:
        dim = dims[0]
        axis += axis >= dim
        outs = self.bind(args[0], axis=axis)
        return outs, [dim - (axis < dim)] * len(outs)


unstack_p = Unstack()


def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """Takes an array apart along `axis`, which the parts no longer have.

    Shapes:     x: T[.., n, ..] -> T[.., ..], n times.
    Derivative: transposes to `stack`.
    Lowers to:  stablehlo.slice and stablehlo.reshape, for each part.
    Source:     mirrors jax.lax.unstack.

    Raises:
        ValueError: the axis is out of range.

    Example:
        >>> lax.unstack(jnp.array([[1, 2], [3, 4]]))
        (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    """
    axis = canonicalize_axis(axis, aval_of(x).ndim, "lax.unstack")
    return tuple(unstack_p.bind(operand(x), axis=axis))
