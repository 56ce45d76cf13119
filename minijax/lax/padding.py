"""Padding and tiling: `pad` puts a value around and between elements, `tile` repeats an array.

Negative edges of `pad` cut elements off.  Modules that `slicing.py` itself builds on use that where
they want a slice.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import vma
from minijax.core.aval import Shape, ShapedArray, aval_of, check_size
from minijax.core.errors import error
from minijax.core.meshes import PartitionSpec
from minijax.core.primitive import Batched, Cotangents, Primitive
from minijax.interpreters import checking, structural
from minijax.interpreters.jvp import UndefinedPrimal, is_linear, jvp_of_linear
from minijax.interpreters.structural import to_batch_dim
from minijax.lax.binary import select_n
from minijax.lax.families import Avals, BatchDims, Values, check_same_dtype, int_tuple, operands
from minijax.lax.shape import reshape, slice_op
from minijax.lowering.stablehlo import LoweringContext, Value
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.sharding import rules

PaddingConfig = tuple[tuple[int, int, int], ...]


class Pad(Primitive):
    """Puts a value around and between elements; negative edges cut elements off.

    Shapes: operand: T[s], padding_value: T[] -> T[r], where r = low + s + (s - 1) * interior +
    high in each dimension.  Linear in both together.
    """

    name = "pad"
    jvp = jvp_of_linear
    shard = rules.resized

    def abstract_eval(
        self, x: ShapedArray, value: ShapedArray, *, padding_config: PaddingConfig
    ) -> ShapedArray:
        if x.dtype != value.dtype:
            check_same_dtype("pad", operand=x, padding_value=value)
        facts = {"operand": x, "padding_config": padding_config}
        if value.shape:
            problem = "padding_value must be a scalar."
            error(ValueError, "lax.pad", problem, got={"padding_value": value})
        cuts = min(map(min, padding_config), default=0) < 0
        if len(padding_config) != x.ndim or (cuts and min(i for _, _, i in padding_config) < 0):
            problem = "padding_config does not fit the operand."
            expected = "(low, high, interior) for each dimension, with interior >= 0"
            error(ValueError, "lax.pad", problem, got=facts, expected=expected)
        shape = tuple(
            low + n + max(n - 1, 0) * interior + high
            for n, (low, high, interior) in zip(x.shape, padding_config, strict=True)
        )
        if cuts:
            if min(shape) < 0:
                problem = f"too much is cut off: shape {shape} would be left."
                error(ValueError, "lax.pad", problem, got=facts)
            # What is cut off is there before.
            more = (max(-low, 0) + max(-high, 0) for low, high, _ in padding_config)
            check_size("lax.pad", map(operator.add, shape, more), x.dtype)
        weak = x.weak_type and value.weak_type
        return (x if weak else x.strip_weak_type()).with_shape(shape)

    def lower(
        self, ctx: LoweringContext, x: Value, value: Value, *, padding_config: PaddingConfig
    ) -> Any:
        aval = ctx.avals_out[0]
        several = ctx.module.partitioning.partitions > 1
        # XLA's partitioner aborts where padding within takes elements off the start as well.
        cuts = [-low if several and low < 0 < inner else 0 for low, _, inner in padding_config]
        shape = [size + cut for size, cut in zip(aval.shape, cuts, strict=True)]
        names = ("edge_padding_low", "edge_padding_high", "interior_padding")
        columns = [[row[i] for row in padding_config] for i in range(3)]
        columns[0] = [low + cut for low, cut in zip(columns[0], cuts, strict=True)]
        attributes = {name: ctx.i64_array(c) for name, c in zip(names, columns, strict=True)}
        wider = ctx.type_of(ShapedArray(tuple(shape), aval.dtype))
        padded = ctx.op("stablehlo.pad", [x, value], attributes, wider)
        if not any(cuts):
            return padded
        return slice_op(ctx, padded, cuts, shape)

    def transpose(
        self, ct: Array, x: Array, value: object, *, padding_config: PaddingConfig
    ) -> Cotangents:
        shape = x.aval.shape if is_linear(x) else aval_of(x).shape
        ct_x = unpad(ct, shape, padding_config) if is_linear(x) else None
        if not is_linear(value):
            return ct_x, None
        inside = _mask_of_operand(shape, padding_config)
        outside = select_n(inside, ct, structural.zeros(aval_of(ct)))
        return ct_x, structural.reduce_sum(outside, range(outside.ndim))

    def batch(
        self, size: int, args: Values, dims: BatchDims, *, padding_config: PaddingConfig
    ) -> Batched:
        (x, value), (dim, value_dim) = args, dims
        if value_dim is None:
            config = (*padding_config[:dim], (0, 0, 0), *padding_config[dim:])
            return self.bind(x, value, padding_config=config), dim
        x = to_batch_dim(x, dim, 0, size)
        config = ((0, 0, 0), *padding_config)
        padded = pad(x, structural.full((), 0, aval_of(x).dtype), config)
        values = structural.broadcast_in_dim(value, padded.shape, (0,))
        return select_n(_mask_of_operand(aval_of(x).shape, config), values, padded), 0


vma.linear_in.set(((0, 1),), Pad)


pad_p = Pad()


def _mask_of_operand(shape: Shape, padding_config: PaddingConfig) -> Any:
    """Of the result of padding an array of `shape`: whether an element comes from the array."""
    return pad(structural.full(shape, True, np.bool_), np.False_, padding_config)


def unpad(ct: Array, shape: Shape, padding_config: PaddingConfig) -> Any:
    """The elements of `ct` where padding an array of `shape` puts the array's elements."""
    # Rows of interior + 1 elements begin with one of the array's: complete the last row, make
    # rows a dimension, and cut off all but its first element.
    steps = [interior + 1 for _, _, interior in padding_config]
    edges = tuple(
        (-low, -high + (interior if n else 0), 0)
        for n, (low, high, interior) in zip(shape, padding_config, strict=True)
    )
    zero = structural.full((), 0, aval_of(ct).dtype)
    ct = pad(ct, zero, edges)
    if all(step == 1 for step in steps):
        return ct
    rows = reshape(ct, tuple(itertools.chain(*zip(shape, steps, strict=True))))
    cuts = [((0, 0, 0), (0, 1 - step, 0)) for step in steps]
    return reshape(pad(rows, zero, tuple(itertools.chain(*cuts))), shape)


def pad(
    operand: ArrayLike, padding_value: ArrayLike, padding_config: Sequence[tuple[int, int, int]]
) -> Array:
    """Puts `padding_value` around the elements of `operand`, and between them.

    Shapes:     operand: T[s], padding_value: T[] -> T[r]; in each dimension
                r = low + s + (s - 1) * interior + high.
    Dtypes:     any, equal.
    Derivative: transposes to the elements at the operand's places, and the sum of the others.
    Lowers to:  stablehlo.pad.

    Args:
        operand: the array.
        padding_value: a scalar.
        padding_config: for each dimension how many values come before the first element, after
            the last, and between neighbours; the first two may be negative, and cut off.

    Raises:
        TypeError: the dtypes differ.
        ValueError: the configuration does not fit, or cuts off too much.

    Example:
        >>> lax.pad(jnp.array([1, 2, 3]), 0, [(2, 1, 1)])
        Array([0, 0, 1, 0, 2, 0, 3, 0], dtype=int32)
        >>> lax.pad(jnp.array([1, 2, 3]), 0, [(-1, 0, 0)])
        Array([2, 3], dtype=int32)
    """
    config = tuple(int_tuple(row, "lax.pad", "padding_config") for row in padding_config)
    if any(len(row) != 3 for row in config):
        problem = "each row of padding_config must be (low, high, interior)."
        error(ValueError, "lax.pad", problem, got=f"padding_config: {config}")
    x, value = operands(operand, padding_value)
    return pad_p.bind(x, value, padding_config=config)


class Tile(Primitive):
    """Lays copies of an array side by side.

    Shapes: operand: T[s] -> T[s * reps].  Linear.
    """

    name = "tile"
    jvp = jvp_of_linear

    def abstract_eval(self, x: ShapedArray, *, reps: Shape) -> ShapedArray:
        if len(reps) != x.ndim or any(r < 0 for r in reps):
            problem = "reps does not fit the operand."
            got = {"operand": x, "reps": reps}
            expected = "one number of at least 0 for each dimension"
            error(TypeError, "lax.tile", problem, got=got, expected=expected)
        return x.with_shape(tuple(n * r for n, r in zip(x.shape, reps, strict=True)))

    def shard(self, avals: Avals, outs: Avals, *, reps: Shape) -> PartitionSpec:
        rules.check_unsharded(self, avals, [d for d, n in enumerate(reps) if n != 1])
        return rules.spec_of(avals[0])

    def lower(self, ctx: LoweringContext, x: Value, *, reps: Shape) -> Any:
        aval = ctx.avals_in[0]
        pairs = tuple(itertools.chain(*zip(reps, aval.shape, strict=True)))
        copies = ctx.broadcast(x, pairs, aval.dtype, range(1, len(pairs), 2))
        return ctx.op("stablehlo.reshape", [copies])

    def transpose(self, ct: Array, x: UndefinedPrimal, *, reps: Shape) -> Cotangents:
        copies = reshape(ct, tuple(itertools.chain(*zip(reps, x.aval.shape, strict=True))))
        return (structural.reduce_sum(copies, range(0, 2 * len(reps), 2)),)

    def batch(self, size: int, args: Values, dims: BatchDims, *, reps: Shape) -> Batched:
        dim = dims[0]
        return self.bind(args[0], reps=(*reps[:dim], 1, *reps[dim:])), dim


checking.fault_flow.set(checking.MOVES, Tile)


tile_p = Tile()


def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """Repeats an array `reps[i]` times along each dimension i.

    Shapes:     operand: T[s] -> T[s * reps].
    Derivative: transposes to a sum over the copies.
    Lowers to:  stablehlo.broadcast_in_dim and stablehlo.reshape.

    Raises:
        TypeError: `reps` has not one number of at least 0 for each dimension.

    Example:
        >>> lax.tile(jnp.array([[1, 2]]), (2, 3))
        Array([[1, 2, 1, 2, 1, 2],
               [1, 2, 1, 2, 1, 2]], dtype=int32)
    """
    return tile_p.bind(operand, reps=int_tuple(reps, "lax.tile", "reps"))
