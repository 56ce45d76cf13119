"""Operations that move elements and compute nothing: reshape, broadcast, concatenate and others.

They are reshaping, new and dropped dimensions, broadcasting, transposing, concatenating along a
dimension that exists or stacking along a new one, splitting or unstacking along a dimension, and
reversing.  Padding is in `padding.py`, slices and gathers are in `slicing.py` and
`gather_scatter.py`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from minijax.core import vma
from minijax.core.aval import Shape, ShapedArray, aval_of, canonicalize_shape
from minijax.core.errors import IncompatibleShapesError, error
from minijax.core.meshes import PartitionSpec
from minijax.core.primitive import Batched, Cotangents, Primitive, Tangents, Zero
from minijax.interpreters import structural
from minijax.interpreters.jvp import UndefinedPrimal, is_linear, jvp_of_linear
from minijax.interpreters.structural import instantiate, moveaxis, to_batch_dims
from minijax.lax.families import (
    WHATEVER,
    Avals,
    BatchDims,
    Unary,
    Values,
    batch_along,
    canonicalize_axes,
    canonicalize_axis,
    check_same_dtype,
    in_bytes,
    int_tuple,
    is_array,
    jvp_of_first,
    operand,
)
from minijax.lowering.stablehlo import LoweringContext, Value
from minijax.runtime.annotations import ArrayLike, ShardingLike
from minijax.runtime.array import Array
from minijax.sharding import rules
from minijax.sharding.named import NamedSharding


def broadcast_in_dim(
    operand: ArrayLike,
    shape: Shape,
    broadcast_dimensions: Sequence[int],
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Broadcasts `operand`: its dimension i becomes dimension `broadcast_dimensions[i]`.

    Shapes:     operand: T[s] -> T[shape]; each size in s is 1 or that of its target.
    Dtypes:     any.
    Derivative: transposes to a sum over the repeated dimensions.
    Lowers to:  stablehlo.broadcast_in_dim.

    Raises:
        TypeError: the operand does not fit into the shape.

    Example:
        >>> lax.broadcast_in_dim(jnp.array([1, 2]), (2, 3), broadcast_dimensions=(0,))
        Array([[1, 1, 1],
               [2, 2, 2]], dtype=int32)
    """
    shape = canonicalize_shape(shape, "lax.broadcast_in_dim")
    dims = int_tuple(broadcast_dimensions, "lax.broadcast_in_dim", "broadcast_dimensions")
    aval = aval_of(operand)
    if any(a > b for a, b in itertools.pairwise(dims)) and len(dims) == aval.ndim:
        order = sorted(range(len(dims)), key=dims.__getitem__)
        operand, dims = structural.transpose(operand, order), tuple(sorted(dims))
    elif (
        aval.shape == shape
        and dims == tuple(range(len(shape)))
        and is_array(operand)
        and out_sharding is None
    ):
        return operand
    sharding = rules.resolve(out_sharding, "lax.broadcast_in_dim")
    return structural.broadcast_in_dim_p.bind(
        operand, shape=shape, broadcast_dimensions=dims, sharding=sharding
    )


def broadcast(
    operand: ArrayLike, sizes: Sequence[int], *, out_sharding: ShardingLike = None
) -> Array:
    """Broadcasts `operand` along new leading dimensions.

    Shapes:     operand: T[s] -> T[sizes + s].

    Raises:
        TypeError: `sizes` are not all integers of at least 0.

    Example:
        >>> lax.broadcast(jnp.array([1, 2]), (3,))
        Array([[1, 2],
               [1, 2],
               [1, 2]], dtype=int32)
    """
    sizes = canonicalize_shape(sizes, "lax.broadcast")
    aval = aval_of(operand)
    kept = range(len(sizes), len(sizes) + aval.ndim)
    return broadcast_in_dim(operand, (*sizes, *aval.shape), kept, out_sharding=out_sharding)


def broadcast_like(arr: ArrayLike, like_arr: ArrayLike) -> Array:
    """Broadcasts `arr` to the shape of `like_arr`, by NumPy's rules.

    Raises:
        ValueError: the shapes do not fit together.

    Example:
        >>> lax.broadcast_like(jnp.array([1, 2]), jnp.zeros((3, 2))).shape
        (3, 2)
    """
    source, target = aval_of(arr).shape, aval_of(like_arr).shape
    if broadcast_shapes(source, target) != target:
        problem = "arr would not fit into the shape of like_arr."
        got = {"arr": aval_of(arr), "like_arr": aval_of(like_arr)}
        error(ValueError, "lax.broadcast_like", problem, got=got)
    return broadcast_in_dim(arr, target, range(len(target) - len(source), len(target)))


def broadcast_shapes(*shapes: Sequence[int]) -> Shape:
    """The shape to which `shapes` broadcast together, by NumPy's rules.

    Raises:
        ValueError: the shapes do not fit together.

    Example:
        >>> lax.broadcast_shapes((2, 1), (3,))
        (2, 3)
    """
    found = [canonicalize_shape(shape, "lax.broadcast_shapes") for shape in shapes]
    rank = max(map(len, found), default=0)
    result = []
    for sizes in zip(*[(1,) * (rank - len(s)) + s for s in found], strict=True):
        distinct = set(sizes) - {1}
        if len(distinct) > 1:
            problem = "the shapes do not fit together: Incompatible shapes for broadcasting."
            got = " ".join(map(str, found))
            expected = "dimensions, aligned at the end, that are equal or 1"
            error(ValueError, "lax.broadcast_shapes", problem, got=got, expected=expected)
        result.append(distinct.pop() if distinct else 1)
    return tuple(result)


def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """`x` with leading dimensions of size 1, up to `rank`.

    Example:
        >>> lax.broadcast_to_rank(jnp.ones((2, 3)), 4).shape
        (1, 1, 2, 3)
    """
    missing = rank - aval_of(x).ndim
    return expand_dims(x, range(missing)) if missing > 0 else cast(Array, x)


def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Inserts dimensions of size 1, at the given positions of the result.

    Shapes:     array: T[s] -> T[s with ones at dimensions].

    Raises:
        ValueError: a position is out of range, or given twice.

    Example:
        >>> lax.expand_dims(jnp.ones((2, 3)), (0, 2)).shape
        (1, 2, 1, 3)
    """
    shape = list(aval_of(array).shape)
    dimensions = tuple(dimensions)
    rank = len(shape) + len(dimensions)
    new = canonicalize_axes(dimensions, rank, "lax.expand_dims")
    for dim in sorted(new):
        shape.insert(dim, 1)
    kept = [d for d in range(rank) if d not in new]
    return broadcast_in_dim(array, tuple(shape), kept)


def transpose(operand: ArrayLike, permutation: Sequence[int]) -> Array:
    """Permutes dimensions: dimension i of the result is `permutation[i]` of `operand`.

    Shapes:     operand: T[s] -> T[s[p] for p in permutation].
    Derivative: transposes to the inverse permutation.
    Lowers to:  stablehlo.transpose.

    Raises:
        TypeError: not a permutation of the operand's dimensions.

    Example:
        >>> lax.transpose(jnp.array([[1, 2, 3], [4, 5, 6]]), (1, 0))
        Array([[1, 4],
               [2, 5],
               [3, 6]], dtype=int32)
    """
    permutation = int_tuple(permutation, "lax.transpose", "permutation")
    if is_array(operand) and permutation == tuple(range(operand.ndim)):
        return operand
    return structural.transpose_p.bind(operand, permutation=permutation)


class Reshape(Primitive):
    """Another shape for the same elements in the same order; `dimensions` permutes first.

    Shapes: operand: T[s] -> T[new_sizes].  Linear.
    """

    name = "reshape"
    jvp = jvp_of_linear

    def abstract_eval(
        self, x: ShapedArray, *, new_sizes: Shape, dimensions: Shape | None, **_: Any
    ) -> ShapedArray:
        if math.prod(new_sizes) != x.size:
            problem = "the number of elements must stay the same."
            got = {"operand": x, "new_sizes": new_sizes}
            expected = f"sizes whose product is {x.size}"
            error(IncompatibleShapesError, "lax.reshape", problem, got=got, expected=expected)
        if dimensions is not None and sorted(dimensions) != list(range(x.ndim)):
            problem = "dimensions must be a permutation of the operand's dimensions."
            error(TypeError, "lax.reshape", problem, got={"operand": x, "dimensions": dimensions})
        return x.with_shape(new_sizes)

    def shard(
        self,
        avals: Avals,
        outs: Avals,
        *,
        new_sizes: Shape,
        sharding: NamedSharding | None,
        **_: Any,
    ) -> PartitionSpec:
        if sharding is not None:
            return rules.given_spec(self, outs[0], sharding)
        return rules.reshaped(self, avals[0], new_sizes)

    def lower(self, ctx: LoweringContext, x: Value, *, dimensions: Shape | None, **_: Any) -> Any:
        if dimensions is not None:
            aval = ctx.avals_in[0]
            shape = [aval.shape[d] for d in dimensions]
            permutation = {"permutation": ctx.i64_array(dimensions)}
            permuted = ctx.tensor_type(shape, aval.dtype)
            x = ctx.op("stablehlo.transpose", [x], permutation, permuted)
        return ctx.op("stablehlo.reshape", [x])

    def transpose(
        self, ct: Array, x: UndefinedPrimal, *, dimensions: Shape | None, **_: Any
    ) -> Cotangents:
        if dimensions is None:
            back = rules.of_cotangent(x.aval, rules.mesh_of([aval_of(ct)]))
            return (reshape(ct, x.aval.shape, out_sharding=back),)
        permuted = reshape(ct, tuple(x.aval.shape[d] for d in dimensions))
        return (transpose(permuted, np.argsort(dimensions).tolist()),)

    def batch(
        self,
        size: int,
        args: Values,
        dims: Sequence[int],
        *,
        new_sizes: Shape,
        dimensions: Shape | None,
        sharding: NamedSharding | None,
    ) -> Batched:
        x = moveaxis(args[0], dims[0], 0)
        if dimensions is not None:
            dimensions = (0, *(d + 1 for d in dimensions))
        wide = rules.batched(sharding, 0, rules.free_entry(sharding, aval_of(x), 0))
        return reshape(x, (size, *new_sizes), dimensions, out_sharding=wide), 0


rules.sharding_param.set("sharding", Reshape)
vma.keeps_unreduced.set(True, Reshape)


reshape_p = Reshape()


def reshape(
    operand: ArrayLike,
    new_sizes: Shape,
    dimensions: Sequence[int] | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Gives an array a new shape; its elements stay in row-major order.

    Shapes:     operand: T[s] -> T[new_sizes], with as many elements.
    Derivative: transposes to a reshape back.
    Lowers to:  stablehlo.reshape, after stablehlo.transpose where `dimensions` permute.

    Args:
        operand: the array.
        new_sizes: the new shape; all sizes are given (minijax.numpy.reshape completes a -1).
        dimensions: the order in which the operand's dimensions are read.
        out_sharding: the sharding of the result.

    Raises:
        TypeError: the sizes do not fit, or `dimensions` is not a permutation.

    Example:
        >>> lax.reshape(jnp.array([[1, 2, 3], [4, 5, 6]]), (3, 2))
        Array([[1, 2],
               [3, 4],
               [5, 6]], dtype=int32)
        >>> lax.reshape(jnp.array([[1, 2, 3], [4, 5, 6]]), (6,), dimensions=(1, 0))
        Array([1, 4, 2, 5, 3, 6], dtype=int32)
    """
    new_sizes = canonicalize_shape(new_sizes, "lax.reshape")
    if dimensions is not None:
        dimensions = int_tuple(dimensions, "lax.reshape", "dimensions")
        if dimensions == tuple(range(aval_of(operand).ndim)):
            dimensions = None
    sharding = rules.resolve(out_sharding, "lax.reshape")
    if dimensions is None and sharding is None and is_array(operand) and operand.shape == new_sizes:
        return operand
    return reshape_p.bind(operand, new_sizes=new_sizes, dimensions=dimensions, sharding=sharding)


def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """Collapses a range of dimensions into one; the range is read as a Python slice.

    Shapes:     operand: T[a + b + c] -> T[a + (prod(b),) + c].

    Raises:
        ValueError: the range ends before it starts.

    Example:
        >>> lax.collapse(jnp.ones((2, 3, 4, 5)), 1, 3).shape
        (2, 12, 5)
    """
    shape = aval_of(operand).shape
    start, stop, _ = slice(start_dimension, stop_dimension).indices(len(shape))
    if stop < start:
        got = {"operand": aval_of(operand), "range": f"{start_dimension}:{stop_dimension}"}
        error(ValueError, "lax.collapse", "the range of dimensions ends before it starts.", got=got)
    return reshape(operand, (*shape[:start], math.prod(shape[start:stop]), *shape[stop:]))


class Squeeze(Primitive):
    """Drops dimensions of size 1.

    Shapes: array: T[s] -> T[s without dimensions].  Linear.
    """

    name = "squeeze"
    batch = batch_along("dimensions", drops=True)
    jvp = jvp_of_linear

    def abstract_eval(self, x: ShapedArray, *, dimensions: Shape) -> ShapedArray:
        if any(x.shape[d] != 1 for d in dimensions):
            problem = "only dimensions of size 1 can be dropped."
            error(ValueError, "lax.squeeze", problem, got={"array": x, "dimensions": dimensions})
        return x.with_shape(tuple(n for d, n in enumerate(x.shape) if d not in dimensions))

    def shard(self, avals: Avals, outs: Avals, *, dimensions: Shape) -> PartitionSpec:
        return rules.dropped(rules.spec_of(avals[0]), dimensions)

    def lower(self, ctx: LoweringContext, x: Value, *, dimensions: Shape) -> Any:
        return ctx.op("stablehlo.reshape", [x])

    def transpose(self, ct: Array, x: UndefinedPrimal, *, dimensions: Shape) -> Cotangents:
        return (reshape(ct, x.aval.shape),)


vma.keeps_unreduced.set(True, Squeeze)


squeeze_p = Squeeze()


def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Removes dimensions of size 1.

    Shapes:     array: T[s] -> T[s without dimensions].
    Derivative: transposes to a reshape back.
    Lowers to:  stablehlo.reshape.

    Raises:
        ValueError: a dimension is out of range, named twice, or not of size 1.

    Example:
        >>> lax.squeeze(jnp.ones((1, 3, 1)), (0,)).shape
        (3, 1)
    """
    dimensions = canonicalize_axes(dimensions, aval_of(array).ndim, "lax.squeeze")
    if not dimensions and is_array(array):
        return array
    return squeeze_p.bind(array, dimensions=dimensions)


class Concatenate(Primitive):
    """Joins arrays along one dimension.

    Shapes: T[.., n_i, ..] for each operand -> T[.., sum of n_i, ..].  Linear in all together.
    """

    name = "concatenate"
    batch = batch_along("dimension")
    jvp = jvp_of_linear

    def abstract_eval(self, *operands: ShapedArray, dimension: int) -> ShapedArray:
        first = operands[0]
        if len({x.dtype for x in operands}) > 1:
            check_same_dtype("concatenate", **_numbered(operands))
        if not 0 <= dimension < first.ndim:
            problem = f"dimension {dimension} is out of range."
            error(TypeError, "lax.concatenate", problem, got=_numbered(operands))
        rests = {(*x.shape[:dimension], *x.shape[dimension + 1 :]) for x in operands}
        if len(rests) > 1:
            problem = f"the operands differ elsewhere than in dimension {dimension}."
            expected = "equal ranks, and equal sizes of all other dimensions"
            error(TypeError, "lax.concatenate", problem, got=_numbered(operands), expected=expected)
        shape = list(first.shape)
        shape[dimension] = sum(x.shape[dimension] for x in operands)
        weak = all(x.weak_type for x in operands)
        return (first if weak else first.strip_weak_type()).with_shape(tuple(shape))

    def shard(self, avals: Avals, outs: Avals, *, dimension: int) -> PartitionSpec:
        # What is whole is cut for free.
        entries = {rules.spec_of(x)[dimension] for x in avals} - {None}
        if len(entries) > 1:
            rules.check_unsharded(self, avals, (dimension,))
        return rules.join(self, avals, avals[0].ndim)

    @in_bytes("int2", "uint2")
    def lower(self, ctx: LoweringContext, *values: Value, dimension: int) -> Any:
        return ctx.op("stablehlo.concatenate", values, {"dimension": ctx.integer(dimension)})

    def transpose(self, ct: Array, *args: Any, dimension: int) -> Cotangents:
        sizes = [(x.aval if is_linear(x) else aval_of(x)).shape[dimension] for x in args]
        parts = split(ct, sizes, dimension)
        return tuple(part if is_linear(x) else None for x, part in zip(args, parts, strict=True))


vma.linear_in.set(((0, ...),), Concatenate)


concatenate_p = Concatenate()


def _numbered(avals: Sequence[ShapedArray]) -> dict[str, ShapedArray]:
    return {f"operands[{i}]": aval for i, aval in enumerate(avals)}


def concatenate(operands: Sequence[ArrayLike], dimension: int) -> Array:
    """Concatenates arrays along one dimension.

    Shapes:     T[.., n_i, ..] for each operand -> T[.., sum of n_i, ..].
    Dtypes:     any, all equal.
    Derivative: transposes to a split.
    Lowers to:  stablehlo.concatenate.

    Raises:
        ValueError: there are no operands.
        TypeError: dtypes, ranks or other dimensions differ, or the dimension is out of range.

    Example:
        >>> lax.concatenate([jnp.array([[1], [2]]), jnp.array([[3, 4], [5, 6]])], dimension=1)
        Array([[1, 3, 4],
               [2, 5, 6]], dtype=int32)
    """
    arrays = [operand(x) for x in operands]
    if not arrays:
        error(ValueError, "lax.concatenate", "there is nothing to join.", got="no operands")
    if len(arrays) == 1 and is_array(arrays[0]) and 0 <= dimension < arrays[0].ndim:
        return arrays[0]
    return concatenate_p.bind(*arrays, dimension=int(dimension))


def slice_op(
    ctx: LoweringContext,
    x: Value,
    starts: Sequence[int],
    limits: Sequence[int],
    strides: Sequence[int] | None = None,
    type: object = None,
) -> Value:
    """StableHLO for: a slice of `x`; strides are 1 by default."""
    attributes = {
        "start_indices": ctx.i64_array(starts),
        "limit_indices": ctx.i64_array(limits),
        "strides": ctx.i64_array(strides or (1,) * len(starts)),
    }
    return ctx.op("stablehlo.slice", [x], attributes, type)


class Split(Primitive):
    """Cuts an array along one axis.

    Shapes: operand: T[.., sum of sizes, ..] -> T[.., n, ..] for each n in sizes.  Linear.
    """

    name = "split"
    multiple_results = True
    batch = batch_along("axis")
    jvp = jvp_of_first

    def abstract_eval(self, x: ShapedArray, *, sizes: Shape, axis: int) -> list[ShapedArray]:
        if any(n < 0 for n in sizes) or sum(sizes) != x.shape[axis]:
            problem = "the sizes do not add up to the operand's dimension."
            got = {"operand": x, "sizes": sizes, "axis": axis}
            expected = f"sizes of at least 0 with the sum {x.shape[axis]}"
            error(ValueError, "lax.split", problem, got=got, expected=expected)
        return [x.with_shape((*x.shape[:axis], n, *x.shape[axis + 1 :])) for n in sizes]

    def shard(self, avals: Avals, outs: Avals, *, sizes: Shape, axis: int) -> list[PartitionSpec]:
        return [rules.spec_of(avals[0])] * len(outs)

    def lower(self, ctx: LoweringContext, x: Value, *, sizes: Shape, axis: int) -> list[Any]:
        shape = ctx.avals_in[0].shape
        starts, limits = [0] * len(shape), list(shape)
        outs = []
        for aval, stop in zip(ctx.avals_out, itertools.accumulate(sizes), strict=True):
            limits[axis] = stop
            outs.append(slice_op(ctx, x, starts, limits, type=ctx.type_of(aval)))
            starts[axis] = stop
        return outs

    def transpose(self, ct: Tangents, x: UndefinedPrimal, *, sizes: Shape, axis: int) -> Cotangents:
        if all(type(part) is Zero for part in ct):
            return (Zero(x.aval),)
        return (concatenate([structural.instantiate(part) for part in ct], axis),)


vma.linear_in.set(((0,),), Split)


split_p = Split()


def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """Splits an array along one axis into parts of the given sizes.

    Shapes:     operand: T[.., sum of sizes, ..] -> T[.., n, ..] for each n in sizes.
    Derivative: transposes to a concatenation.
    Lowers to:  stablehlo.slice, one for each part.

    Raises:
        ValueError: the axis is out of range, or the sizes do not add up to its dimension.

    Example:
        >>> lax.split(jnp.arange(5), (2, 3))
        [Array([0, 1], dtype=int32), Array([2, 3, 4], dtype=int32)]
    """
    axis = canonicalize_axis(axis, aval_of(operand).ndim, "lax.split")
    return split_p.bind(operand, sizes=tuple(int(n) for n in sizes), axis=axis)


class Rev(Primitive):
    """Reverses the order of elements along dimensions.

    Shapes: operand: T[s] -> T[s].  Linear.
    """

    name = "rev"
    batch = batch_along("dimensions")
    jvp = jvp_of_linear
    shard = rules.elementwise

    def abstract_eval(self, x: ShapedArray, *, dimensions: Shape) -> ShapedArray:
        fits = all(0 <= d < x.ndim for d in dimensions)
        if not fits or len(set(dimensions)) != len(dimensions):
            problem = "the dimensions do not fit the operand."
            got = {"operand": x, "dimensions": dimensions}
            expected = f"distinct dimensions from 0 to {x.ndim - 1}"
            error(TypeError, "lax.rev", problem, got=got, expected=expected)
        return x

    def lower(self, ctx: LoweringContext, x: Value, *, dimensions: Shape) -> Any:
        return ctx.op("stablehlo.reverse", [x], {"dimensions": ctx.i64_array(dimensions)})

    def transpose(self, ct: Array, x: UndefinedPrimal, *, dimensions: Shape) -> Cotangents:
        return (rev(ct, dimensions),)


vma.keeps_unreduced.set(True, Rev)


rev_p = Rev()


def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Reverses the order of the elements along dimensions.

    Shapes:     operand: T[s] -> T[s].
    Derivative: transposes to itself.
    Lowers to:  stablehlo.reverse.

    Raises:
        TypeError: a dimension is out of range, or named twice.

    Example:
        >>> lax.rev(jnp.array([[1, 2], [3, 4]]), (1,))
        Array([[2, 1],
               [4, 3]], dtype=int32)
    """
    return rev_p.bind(operand, dimensions=int_tuple(dimensions, "lax.rev", "dimensions"))


copy_p = Unary("copy", lambda ctx, x: x, accepts=WHATEVER, derivative=Unary.LINEAR, total=True)


def copy(x: object) -> Any:
    """A new array with the elements of `x`.

    Shapes:     x: T[s] -> T[s].
    Source:     mirrors jax.lax.copy_p; minijax.numpy.copy is the public way.
    """
    return copy_p.bind(operand(x))


class Stack(Primitive):
    """Joins arrays of one shape along a new dimension.

    Shapes: T[s] for each of n operands -> T[s with n at axis].  Linear in all together.
    """

    name = "stack"
    jvp = jvp_of_linear

    def abstract_eval(self, *operands: ShapedArray, axis: int) -> ShapedArray:
        first = operands[0]
        if any(x is not first for x in operands):
            named = _numbered(operands)
            check_same_dtype("stack", **named)
            if len({x.shape for x in operands}) > 1:
                error(ValueError, "lax.stack", "all operands must have one shape.", got=named)
        weak = all(x.weak_type for x in operands)
        shape = (*first.shape[:axis], len(operands), *first.shape[axis:])
        return (first if weak else first.strip_weak_type()).with_shape(shape)

    def shard(self, avals: Avals, outs: Avals, *, axis: int) -> PartitionSpec:
        return rules.join(self, avals, avals[0].ndim).inserted(axis)

    def lower(self, ctx: LoweringContext, *values: Value, axis: int) -> Any:
        shape = ctx.avals_in[0].shape
        single = (*shape[:axis], 1, *shape[axis:])
        rows = [ctx.reshape(x, single, ctx.avals_in[0].dtype) for x in values]
        return ctx.op("stablehlo.concatenate", rows, {"dimension": ctx.integer(axis)})

    def transpose(self, ct: Array, *args: Any, axis: int) -> Cotangents:
        parts = unstack(ct, axis)
        return tuple(part if is_linear(x) else None for x, part in zip(args, parts, strict=True))

    def batch(self, size: int, args: Values, dims: BatchDims, *, axis: int) -> Batched:
        rows = to_batch_dims(args, dims, 0, size)
        return self.bind(*rows, axis=axis + 1), 0


stack_p = Stack()


def stack(operands: Sequence[ArrayLike], axis: int = 0) -> Array:
    """Stacks arrays of one shape along a new dimension.

    Shapes:     T[s] for each of n operands -> T[s with n at axis].
    Dtypes:     any, all equal.
    Derivative: transposes to `unstack`.
    Lowers to:  stablehlo.concatenate.

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
    multiple_results = True
    batch = batch_along("axis", drops=True)
    jvp = jvp_of_first

    def abstract_eval(self, x: ShapedArray, *, axis: int) -> list[ShapedArray]:
        return [x.with_shape(x.shape[:axis] + x.shape[axis + 1 :])] * x.shape[axis]

    def shard(self, avals: Avals, outs: Avals, *, axis: int) -> list[PartitionSpec]:
        rules.check_unsharded(self, avals, (axis,))
        return [rules.dropped(rules.spec_of(avals[0]), (axis,))] * len(outs)

    def lower(self, ctx: LoweringContext, x: Value, *, axis: int) -> list[Any]:
        (aval,) = ctx.avals_in
        shape = aval.shape
        single = (*shape[:axis], 1, *shape[axis + 1 :])
        starts, limits = [0] * len(shape), list(shape)
        parts = []
        for i in range(shape[axis]):
            starts[axis], limits[axis] = i, i + 1
            kind = ctx.tensor_type(single, aval.dtype)
            row = slice_op(ctx, x, starts, limits, type=kind)
            parts.append(ctx.reshape(row, shape[:axis] + shape[axis + 1 :], aval.dtype))
        return parts

    def transpose(self, ct: Tangents, x: UndefinedPrimal, *, axis: int) -> Cotangents:
        if all(type(part) is Zero for part in ct):
            return (Zero(x.aval),)
        return (stack([instantiate(part) for part in ct], axis),)


unstack_p = Unstack()


def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """Splits an array along `axis` into arrays without that dimension.

    Shapes:     x: T[.., n, ..] -> T[.., ..], n times.
    Derivative: transposes to `stack`.
    Lowers to:  stablehlo.slice and stablehlo.reshape, for each part.

    Raises:
        ValueError: the axis is out of range.

    Example:
        >>> lax.unstack(jnp.array([[1, 2], [3, 4]]))
        (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    """
    axis = canonicalize_axis(axis, aval_of(x).ndim, "lax.unstack")
    return tuple(unstack_p.bind(operand(x), axis=axis))
