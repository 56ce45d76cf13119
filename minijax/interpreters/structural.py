"""The linear operations that the interpreters themselves emit.

Differentiation and batching need sums of cotangents, zeros, moved and new dimensions.  These
four primitives are closed under transposition and batching, so they stand below `lax`:
`add_any`, `broadcast_in_dim`, `transpose` and `reduce_sum`.  Decision 0002.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from minijax.core import config, dtypes, hooks, printing, vma
from minijax.core.aval import AbstractValue, Shape, ShapedArray, aval_of, result_types
from minijax.core.errors import error
from minijax.core.meshes import PartitionSpec
from minijax.core.operators import Avals, BatchDims, Value, Values
from minijax.core.primitive import (
    Batched,
    Cotangents,
    Dual,
    LoweringContext,
    Primitive,
    Tangent,
    Tangents,
    Zero,
)
from minijax.interpreters import casts
from minijax.interpreters.jvp import jvp_of_linear
from minijax.sharding import rules
from minijax.sharding.named import NamedSharding


class AddAny(Primitive):
    """Adds two cotangents or tangents of one type.

    Shapes: x: T[s], y: T[s] -> T[s].  Linear in both.
    """

    name = "add_any"
    shard = rules.elementwise

    def jvp(self, primals: Values, tangents: Tangents) -> Dual:
        return self.bind(*primals), add_tangents(*tangents)

    def abstract_eval(self, x: ShapedArray, y: ShapedArray) -> ShapedArray:
        return x

    def lower(self, ctx: LoweringContext, x: Any, y: Any) -> Any:
        return ctx.op("stablehlo.add", [x, y])

    def transpose(self, ct: Value, x: Any, y: Value) -> Cotangents:
        return ct, ct

    def batch(self, size: int, args: Values, dims: BatchDims) -> Batched:
        dim = next(d for d in dims if d is not None)
        x, y = to_batch_dims(args, dims, dim, size)
        return self.bind(x, y), dim


vma.keeps_unreduced.set(True, AddAny)


class BroadcastInDim(Primitive):
    """Repeats `x`: its dimension i becomes dimension `broadcast_dimensions[i]` of the result.

    Shapes: x: T[s] -> T[shape], where each size in s is 1 or that of its target.  Linear in x.
    """

    name = "broadcast_in_dim"
    jvp = jvp_of_linear

    def abstract_eval(
        self, x: ShapedArray, *, shape: Shape, broadcast_dimensions: Shape, sharding: object
    ) -> ShapedArray:
        key = (x, shape, broadcast_dimensions)
        found = self._results.get(key)
        if found is None:
            self._check(x, shape, broadcast_dimensions)
            found = self._results[key] = x.with_shape(shape)
        return found

    def __init__(self) -> None:
        super().__init__()
        self._results: dict[Hashable, ShapedArray] = result_types.table()

    def _check(self, x: ShapedArray, shape: Shape, broadcast_dimensions: Shape) -> None:
        in_range = _in_range(broadcast_dimensions, len(shape))
        sizes = tuple(shape[d] for d in broadcast_dimensions) if in_range else ()
        fits = len(broadcast_dimensions) == x.ndim == len(sizes) and all(
            a in (1, b) for a, b in zip(x.shape, sizes, strict=True)
        )
        increasing = all(a < b for a, b in itertools.pairwise(broadcast_dimensions))
        if not (fits and increasing):
            error(
                TypeError,
                "lax.broadcast_in_dim",
                "the operand does not fit into the shape.",
                got={"operand": x, "shape": shape, "dimensions": broadcast_dimensions},
                expected="increasing dimensions, one for each of the operand's; "
                "each of size 1 or of the size it maps to",
            )

    def shard(
        self,
        avals: Avals,
        outs: Avals,
        *,
        shape: Shape,
        broadcast_dimensions: Shape,
        sharding: NamedSharding | None,
    ) -> PartitionSpec:
        if sharding is not None:
            return rules.given_spec(self, outs[0], sharding)
        (x,) = avals
        entries: list[object] = [None] * len(shape)
        for i, (dim, entry) in enumerate(zip(broadcast_dimensions, rules.spec_of(x), strict=True)):
            entries[dim] = entry if x.shape[i] == shape[dim] else None
        return PartitionSpec(*entries)

    def lower(
        self,
        ctx: LoweringContext,
        x: Any,
        *,
        shape: Shape,
        broadcast_dimensions: Shape,
        sharding: object,
    ) -> Any:
        return ctx.op(
            "stablehlo.broadcast_in_dim",
            [x],
            {"broadcast_dimensions": ctx.i64_array(broadcast_dimensions)},
        )

    def transpose(
        self, ct: Value, x: Any, *, shape: Shape, broadcast_dimensions: Shape, sharding: object
    ) -> Cotangents:
        operand = x.aval.shape
        new = [d for d in range(len(shape)) if d not in broadcast_dimensions]
        stretched = [
            d
            for d, size in zip(broadcast_dimensions, operand, strict=True)
            if size == 1 and shape[d] != 1
        ]
        summed = reduce_sum(ct, sorted(new + stretched))
        if not stretched:
            return (summed,)
        kept = tuple(i for i, d in enumerate(broadcast_dimensions) if d not in stretched)
        return (broadcast_in_dim(summed, operand, kept),)

    def batch(
        self,
        size: int,
        args: Values,
        dims: Sequence[int],
        *,
        shape: Shape,
        broadcast_dimensions: Shape,
        sharding: NamedSharding | None,
    ) -> Batched:
        x = moveaxis(args[0], dims[0], 0)
        shifted = (0, *(d + 1 for d in broadcast_dimensions))
        wide = rules.batched(sharding, 0, rules.free_entry(sharding, aval_of(x), 0))
        return broadcast_in_dim(x, (size, *shape), shifted, sharding=wide), 0


printing.hidden_params.set(frozenset({"shape", "sharding"}), BroadcastInDim)
printing.hidden_when_empty.set(frozenset({"broadcast_dimensions"}), BroadcastInDim)
rules.sharding_param.set("sharding", BroadcastInDim)
vma.keeps_unreduced.set(True, BroadcastInDim)


class Transpose(Primitive):
    """Permutes dimensions: dimension i of the result is dimension `permutation[i]` of `x`.

    Shapes: x: T[s] -> T[s[p] for p in permutation].  Linear in x.
    """

    name = "transpose"
    jvp = jvp_of_linear

    def abstract_eval(self, x: ShapedArray, *, permutation: Shape) -> ShapedArray:
        if sorted(permutation) != list(range(x.ndim)):
            problem = "the permutation does not fit the operand."
            got = {"operand": x, "permutation": permutation}
            expected = f"each of 0 … {x.ndim - 1} once" if x.ndim else "()"
            error(TypeError, "lax.transpose", problem, got=got, expected=expected)
        return x.with_shape(tuple(x.shape[p] for p in permutation))

    def shard(self, avals: Avals, outs: Avals, *, permutation: Shape) -> PartitionSpec:
        return rules.permuted(rules.spec_of(avals[0]), permutation)

    def lower(self, ctx: LoweringContext, x: Any, *, permutation: Shape) -> Any:
        return ctx.op("stablehlo.transpose", [x], {"permutation": ctx.i64_array(permutation)})

    def transpose(self, ct: Value, x: object, *, permutation: Shape) -> Cotangents:
        return (transpose(ct, np.argsort(permutation).tolist()),)

    def batch(self, size: int, args: Values, dims: Sequence[int], *, permutation: Shape) -> Batched:
        dim = dims[0]
        rest = (p + (p >= dim) for p in permutation)
        return transpose(args[0], (dim, *rest)), 0


vma.keeps_unreduced.set(True, Transpose)


class ReduceSum(Primitive):
    """Sums `x` over `axes`.

    Shapes: x: T[s] -> T[s without axes].  Linear in x.
    """

    name = "reduce_sum"
    jvp = jvp_of_linear

    def abstract_eval(self, x: ShapedArray, *, axes: Shape, out_sharding: object) -> ShapedArray:
        check_axes("lax.reduce_sum", x, axes)
        return x.with_shape(tuple(n for i, n in enumerate(x.shape) if i not in axes))

    def shard(
        self, avals: Avals, outs: Avals, *, axes: Shape, out_sharding: NamedSharding | None
    ) -> PartitionSpec:
        if out_sharding is not None:
            return rules.given_spec(self, outs[0], out_sharding)
        return rules.dropped(rules.spec_of(avals[0]), axes)

    def lower(self, ctx: LoweringContext, x: Any, *, axes: Shape, out_sharding: object) -> Any:
        return ctx.reduce("stablehlo.add", x, axes, 0)

    def transpose(self, ct: Value, x: Any, *, axes: Shape, out_sharding: object) -> Cotangents:
        kept = tuple(i for i in range(x.aval.ndim) if i not in axes)
        return (broadcast_in_dim(ct, x.aval.shape, kept, sharding=rules.of_cotangent(x.aval)),)

    def batch(
        self,
        size: int,
        args: Values,
        dims: Sequence[int],
        *,
        axes: Shape,
        out_sharding: NamedSharding | None,
    ) -> Batched:
        dim = dims[0]
        moved = tuple(a + (a >= dim) for a in axes)
        out_dim = dim - sum(a < dim for a in moved)
        entry = rules.free_entry(out_sharding, aval_of(args[0]), dim)
        wide = rules.batched(out_sharding, out_dim, entry)
        return self.bind(args[0], axes=moved, out_sharding=wide), out_dim


rules.sharding_param.set("out_sharding", ReduceSum)
vma.keeps_unreduced.set(True, ReduceSum)


add_any_p = AddAny()
broadcast_in_dim_p = BroadcastInDim()
transpose_p = Transpose()
reduce_sum_p = ReduceSum()


def _in_range(dims: Sequence[int], ndim: int) -> bool:
    return all(0 <= d < ndim for d in dims)


def check_axes(name: str, x: ShapedArray, axes: Sequence[int]) -> None:
    """Refuses axes that are out of range or named twice.

    Raises:
        ValueError: an axis is out of range, or named twice.
    """
    if not _in_range(axes, x.ndim):
        error(ValueError, name, "an axis is out of range.", got={"operand": x, "axes": tuple(axes)})
    if len(set(axes)) != len(axes):
        error(ValueError, name, "an axis is named twice.", got={"operand": x, "axes": tuple(axes)})


def broadcast_in_dim(
    x: Value, shape: Shape, broadcast_dimensions: Sequence[int], *, sharding: object = None
) -> Any:
    """`x` repeated to `shape`; unchanged where nothing would change."""
    aval = aval_of(x)
    if aval.shape == shape and len(broadcast_dimensions) == len(shape) and sharding is None:
        return x
    return broadcast_in_dim_p.bind(
        x, shape=shape, broadcast_dimensions=tuple(broadcast_dimensions), sharding=sharding
    )


def transpose(x: Value, permutation: Sequence[int]) -> Any:
    """`x` with its dimensions permuted; unchanged where nothing would change."""
    permutation = tuple(permutation)
    if permutation == tuple(range(len(permutation))):
        return x
    return transpose_p.bind(x, permutation=permutation)


def reduce_sum(x: Value, axes: Sequence[int]) -> Any:
    """The sum of `x` over `axes`; unchanged where there are none."""
    axes = tuple(axes)
    return reduce_sum_p.bind(x, axes=axes, out_sharding=None) if axes else x


def full(shape: Shape, value: object, dtype: Any, *, sharding: NamedSharding | None = None) -> Any:
    """An array of one repeated number."""
    scalar = np.asarray(value, dtype)[()]
    if not dtypes.is_too_wide(dtype):
        return broadcast_in_dim(scalar, shape, (), sharding=sharding)
    with config.enable_x64(True):  # An array of this dtype was made so, too.
        return broadcast_in_dim_p.bind(
            scalar, shape=shape, broadcast_dimensions=(), sharding=sharding
        )


def moveaxis(x: Value, source: int, target: int) -> Any:
    """`x` with dimension `source` moved to position `target`.

    Shapes:     both positions are counted from the front.
    Source:     own, as of rules for batches.

    Example:
        >>> jax.extend.batching.moveaxis(jnp.zeros((2, 3, 4)), 0, 2).shape
        (3, 4, 2)
    """
    if source == target:
        return x
    order = [d for d in range(aval_of(x).ndim) if d != source]
    order.insert(target, source)
    return transpose(x, order)


def new_axis(x: Value, size: int, position: int) -> Any:
    """`x` repeated `size` times along a new dimension at `position`."""
    shape = aval_of(x).shape
    kept = [d for d in range(len(shape) + 1) if d != position]
    return broadcast_in_dim(x, (*shape[:position], size, *shape[position:]), kept)


def to_batch_dim(x: Value, dim: int | None, target: int, size: int) -> Any:
    """`x` with its batch dimension at `target`; an unmapped value (None) is repeated."""
    return new_axis(x, size, target) if dim is None else moveaxis(x, dim, target)


def to_batch_dims(xs: Values, dims: BatchDims, target: int, size: int) -> list[Any]:
    """Values with their batch dimensions at `target`; unmapped ones are repeated."""
    return [to_batch_dim(x, dim, target, size) for x, dim in zip(xs, dims, strict=True)]


def in_front(xs: Values, dims: BatchDims) -> list[Any]:
    """Values with their batch dimensions in front; unmapped ones stay what they are."""
    return [x if dim is None else moveaxis(x, dim, 0) for x, dim in zip(xs, dims, strict=True)]


def zeros(aval: AbstractValue) -> Any:
    """Zeros of a type; of type float0 they are a NumPy array."""
    if aval.dtype == dtypes.float0:
        return np.zeros(aval.shape, dtypes.float0)
    made = full(aval.shape, 0, aval.dtype, sharding=aval.split)
    return casts.of_kind(made, aval.manual_axis_type)


hooks.fill_zeros(zeros)


def instantiate(tangent: Tangent) -> Any:
    """A tangent as a value: symbolic zeros are made; other values pass.

    Source:     mirrors jax.interpreters.ad.instantiate_zeros (0.10).

    Example:
        >>> jax.extend.ad.instantiate_zeros(jax.extend.ad.zeros_like(jnp.arange(3.0)))
        Array([0., 0., 0.], dtype=float32)
    """
    return zeros(tangent.aval) if type(tangent) is Zero else tangent


def add_tangents(x: Any, y: Any) -> Any:
    """The sum of two tangents of one type, either of which may be `Zero`.

    Source:     mirrors jax.interpreters.ad.add_jaxvals (0.10).

    Example:
        >>> jax.extend.ad.add_jaxvals(jnp.arange(3.0), jnp.ones(3))
        Array([1., 2., 3.], dtype=float32)
    """
    if type(x) is Zero:
        return y
    if type(y) is Zero:
        return x
    return add_any_p.bind(x, y)
