"""Reductions along dimensions: sums, extrema, their places, and reductions by any function.

The primitive `reduce_sum` is declared in `interpreters/structural.py`.

Derivatives go through reductions and scans as compositions of other operations, whose depth is
logarithmic: whatever combines two elements can be differentiated, so can the whole.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from minijax.core import dtypes, tree
from minijax.core.aval import Shape, ShapedArray, aval_of, shaped_array
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr, Var
from minijax.core.meshes import PartitionSpec
from minijax.core.primitive import Batched, Dual, Primitive, Tangents, Zero
from minijax.core.trace import Tracer
from minijax.interpreters import staging, structural
from minijax.interpreters.batching import batch_flat
from minijax.interpreters.jvp import jvp_flat, jvp_of_constant
from minijax.interpreters.structural import check_axes, instantiate
from minijax.lax import binary, families
from minijax.lax.creation import broadcasted_iota, convert_to_type
from minijax.lax.families import Avals, Values, operand
from minijax.lax.shape import concatenate, reshape, split, squeeze
from minijax.lax.shardings import by_keys, drops_nan
from minijax.lowering.module import lower_function, lower_jaxpr
from minijax.lowering.stablehlo import LoweringContext, Value
from minijax.runtime.annotations import ArrayLike, DTypeLike, ShardingLike
from minijax.runtime.array import Array
from minijax.sharding import rules

Combine = Callable[..., Sequence[Any]]
"""Combines elements of several arrays with elements of as many others: both come in one row."""


def halves(values: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    """The operands and the initial values among the arguments of a generic reduction."""
    count = len(values) // 2
    return values[:count], values[count:]


def elementwise(jaxpr: ClosedJaxpr) -> Combine:
    """A jaxpr of scalars as a function of arrays of one shape, element by element."""

    def function(*arrays: Any) -> list[Any]:
        shape = aval_of(arrays[0]).shape
        size = math.prod(shape)
        flat = [reshape(x, (size,)) for x in arrays]
        outs, dims = batch_flat(
            lambda *xs: staging.eval_closed_jaxpr(jaxpr, *xs), size, flat, [0] * len(flat)
        )
        return [
            reshape(structural.to_batch_dim(x, d, 0, size), shape)
            for x, d in zip(outs, dims, strict=True)
        ]

    return function


def fold(
    combine: Combine, operands: Sequence[Any], inits: Sequence[Any], dimensions: Shape
) -> list[Any]:
    """Combines elements along `dimensions` by halves, then with the initial values."""
    shape = aval_of(operands[0]).shape
    kept = [d for d in range(len(shape)) if d not in dimensions]
    kept_shape = tuple(shape[d] for d in kept)
    length = math.prod(shape[d] for d in dimensions)
    rows = [
        reshape(structural.transpose(x, (*dimensions, *kept)), (length, *kept_shape))
        for x in operands
    ]
    while length > 1:
        half, odd = divmod(length, 2)
        parts = [split(x, (half, half, odd)) for x in rows]
        rows = list(combine(*[p[0] for p in parts], *[p[1] for p in parts]))
        if odd:
            rows = [concatenate([x, p[2]], 0) for x, p in zip(rows, parts, strict=True)]
        length = half + odd
    start = [structural.broadcast_in_dim(init, (1, *kept_shape), ()) for init in inits]
    if length:
        start = list(combine(*start, *rows))
    return [reshape(x, kept_shape) for x in start]


def scan(combine: Combine, operands: Sequence[Any], axis: int) -> list[Any]:
    """All results of combining the first elements along `axis`: one, two, … all of them."""
    length = aval_of(operands[0]).shape[axis]
    if length < 2:
        return list(operands)
    half, odd = divmod(length, 2)
    pairs, last = zip(*[split(x, (2 * half, odd), axis) for x in operands], strict=True)
    first, second = zip(*[_unzip(x, axis) for x in pairs], strict=True)
    # Prefixes that end at a second element of a pair, from those of the pairs combined.
    seconds = scan(combine, combine(*first, *second), axis)
    # Those that end at a first element: one more than the prefix before.
    start, rest = zip(*[split(x, (1, half - 1), axis) for x in first], strict=True)
    later = [concatenate(xs, axis) for xs in zip(rest, last, strict=True)]
    before = [split(x, (half - 1 + odd, 1 - odd), axis)[0] for x in seconds]
    firsts = [concatenate(xs, axis) for xs in zip(start, combine(*before, *later), strict=True)]
    return [_zip(x, y, axis) for x, y in zip(firsts, seconds, strict=True)]


def _unzip(x: Array, axis: int) -> tuple[Any, Any]:
    """The elements at even places along an axis of even length, and those at odd places."""
    shape = x.shape
    pairs = reshape(x, (*shape[:axis], shape[axis] // 2, 2, *shape[axis + 1 :]))
    even, odd = split(pairs, (1, 1), axis + 1)
    return squeeze(even, (axis + 1,)), squeeze(odd, (axis + 1,))


def _zip(even: Array, odd: Array, axis: int) -> Any:
    """The inverse of `_unzip`; `even` may be longer by one element."""
    shape = odd.shape
    length = shape[axis]
    single = (*shape[: axis + 1], 1, *shape[axis + 1 :])
    paired, last = split(even, (length, even.shape[axis] - length), axis)
    pairs = concatenate([reshape(paired, single), reshape(odd, single)], axis + 1)
    whole = reshape(pairs, (*shape[:axis], 2 * length, *shape[axis + 1 :]))
    return concatenate([whole, last], axis)


# The result of reducing nothing, as a NumPy scalar of a dtype.
Identity = Callable[[Any], Any]


def _infinity(dtype: np.dtype[Any], infinity: float, limit: object) -> Any:
    """An infinity, or the limit of dtypes that have none and take it for NaN."""
    value = np.asarray(infinity).astype(dtype)[()]
    return value if value == infinity else np.asarray(limit).astype(dtype)[()]


def lowest(dtype: np.dtype[Any]) -> Any:
    """The least value of a dtype: the identity of `max`."""
    if dtypes.issubdtype(dtype, np.inexact):
        return _infinity(dtype, -np.inf, dtypes.finfo(dtype).min)
    return np.False_ if dtype == np.bool_ else np.asarray(dtypes.iinfo(dtype).min, dtype)[()]


def highest(dtype: np.dtype[Any]) -> Any:
    """The greatest value of a dtype: the identity of `min`."""
    if dtypes.issubdtype(dtype, np.inexact):
        return _infinity(dtype, np.inf, dtypes.finfo(dtype).max)
    return np.True_ if dtype == np.bool_ else np.asarray(dtypes.iinfo(dtype).max, dtype)[()]


def zero(dtype: np.dtype[Any]) -> Any:
    """The identity of addition."""
    return np.zeros((), dtype)[()]


def one(dtype: np.dtype[Any]) -> Any:
    """The identity of multiplication."""
    return np.ones((), dtype)[()]


def _all_bits(dtype: np.dtype[Any]) -> Any:
    return np.True_ if dtype == np.bool_ else np.asarray(-1).astype(dtype)[()]


# Operations by which devices can combine what each of them has reduced.
_BETWEEN_DEVICES = frozenset(
    {"stablehlo.add", "stablehlo.multiply", "stablehlo.maximum", "stablehlo.minimum"}
)


@dataclass(eq=False, repr=False)
class Reduction(Primitive):
    """Combines the elements along `axes` by an associative, commutative operation.

    Shapes: operand: T[s] -> T[s without axes].

    Args:
        name: the primitive's name.
        op: the StableHLO operation that combines two elements.
        combine: the function of `lax` that does.
        identity: the result of combining nothing.
        accepts: kinds of dtypes it takes.
        tangent: `(x, x_dot, out, axes) -> out_dot`; None where the derivative is zero.

    Not linear, hence no transpose: tangents are sums.
    """

    batch = families.batch_along("axes", drops=True)
    shard = rules.reduction

    name: str = field()
    op: str
    _: KW_ONLY
    combine: Callable[[Any, Any], Any] | None = None
    identity: Identity
    accepts: families.Kinds
    tangent: Callable[[Any, Any, Any, Shape], Any] | None = None

    def __post_init__(self) -> None:
        super().__init__(self.name)

    def abstract_eval(self, x: ShapedArray, *, axes: Shape) -> ShapedArray:
        families.check_dtype(self.name, "operand", x, self.accepts)
        check_axes(f"lax.{self.name}", x, axes)
        return x.with_shape(tuple(n for d, n in enumerate(x.shape) if d not in axes))

    def lower(self, ctx: LoweringContext, x: Value, *, axes: Shape) -> Any:
        (aval,) = ctx.avals_in
        dtype = aval.dtype
        is_empty = any(aval.shape[d] == 0 for d in axes)
        if not is_empty and drops_nan(ctx, self.op, dtype, ctx.module.partitioning.partitions):
            x = self._reduced_by_device(ctx, x, axes)
            reduced = functools.partial(self.bind, axes=axes)
            return lower_function(ctx, lambda x: [by_keys(self.op, reduced, x)], x)[0]
        is_known = self.op in _BETWEEN_DEVICES or dtype == np.bool_
        by_region = _combines_by_region(self.combine, dtype)
        if not is_known or by_region:
            x = ctx.module.partitioning.whole_along(ctx, x, axes, aval.ndim)
        if not by_region:
            return ctx.reduce(self.op, x, axes, self.identity(dtype))
        return ctx.ops(
            "stablehlo.reduce",
            [x, ctx.constant(self.identity(dtype), dtype)],
            {"dimensions": ctx.i64_array(axes)},
            regions=[region_of_combiner(ctx, self.op, self.combine, dtype)],
        )[0]

    def _reduced_by_device(self, ctx: LoweringContext, x: Value, axes: Shape) -> Any:
        """The operand with one element per device along `axes`, where that is a local affair."""
        (aval,) = ctx.avals_in
        devices = ctx.module.partitioning.partitions
        if any(aval.shape[d] % devices for d in axes):
            return x
        parted: list[int] = []
        within = []
        for d, n in enumerate(aval.shape):
            parted += [devices, n // devices] if d in axes else [n]
            within += [len(parted) - 1] if d in axes else []
        x = ctx.op("stablehlo.reshape", [x], None, ctx.tensor_type(parted, aval.dtype))
        x = ctx.module.partitioning.whole_along(ctx, x, within, len(parted))
        shape = tuple(devices if d in axes else n for d, n in enumerate(aval.shape))
        ctx.avals_in = [aval.with_shape(shape)]
        kind = ctx.tensor_type(shape, aval.dtype)
        return ctx.reduce(self.op, x, within, self.identity(aval.dtype), [kind])

    def jvp(self, primals: Values, tangents: Tangents, *, axes: Shape) -> Dual:
        (x,), (x_dot,) = primals, tangents
        out = self.bind(x, axes=axes)
        if self.tangent is None:
            return out, Zero.like(out)
        return out, self.tangent(x, x_dot, out, axes)


def _combines_by_region(combine: object, dtype: np.dtype[Any]) -> bool:
    return combine is not None and dtypes.issubdtype(dtype, np.complexfloating)


def region_of_combiner(
    ctx: LoweringContext, op: str, combine: Callable[[Any, Any], Any] | None, dtype: np.dtype[Any]
) -> Any:
    """A region for `LoweringContext.ops` that combines two scalars by the operation `op`.

    StableHLO has no complex extrema: there, `combine` of `lax` is lowered.
    """
    scalar = shaped_array((), dtype)
    kind = ctx.type_of(scalar)

    def body(inner: LoweringContext, x: Value, y: Value) -> list[Any]:
        if combine is None or not _combines_by_region(combine, dtype):
            return [inner.op(op, [x, y], None, kind)]
        inner.avals_in = [scalar, scalar]
        return lower_function(inner, lambda x, y: [combine(x, y)], x, y)

    return [kind, kind], body


def attains(x: Array, extremum: Array) -> Any:
    """Where elements are the extremum of themselves and others; a NaN is wherever it takes part."""
    attained = binary.eq(x, extremum)
    is_inexact = dtypes.issubdtype(aval_of(x).dtype, np.inexact)
    return binary.bitwise_or(attained, binary.ne(x, x)) if is_inexact else attained


def _tangent_of_extremum(x: Array, x_dot: Array, out: Array, axes: Shape) -> Any:
    # Elements that attain the extremum share the derivative in equal parts.
    shape = aval_of(x).shape
    kept = [d for d in range(len(shape)) if d not in axes]
    attained = binary.eq(x, structural.broadcast_in_dim(out, shape, kept))
    weights = convert_to_type(attained, aval_of(x_dot).dtype, weak_type=False)
    count = structural.reduce_sum(weights, axes)
    return binary.div(structural.reduce_sum(binary.mul(x_dot, weights), axes), count)


def _tangent_of_product(x: Array, x_dot: Array, out: Array, axes: Shape) -> Any:
    # The product rule, applied at each step of a product by halves: no division by elements.
    def product(x: Array) -> list[Any]:
        return fold(lambda a, b: [binary.mul(a, b)], [x], [one(x.dtype)], axes)

    _, (tangent,) = jvp_flat(product, [x], [x_dot])
    return instantiate(tangent)


reduce_prod_p = Reduction(
    "reduce_prod",
    "stablehlo.multiply",
    identity=one,
    accepts=families.NUMERIC,
    tangent=_tangent_of_product,
)
reduce_max_p = Reduction(
    "reduce_max",
    "stablehlo.maximum",
    combine=binary.max,
    identity=lowest,
    accepts=families.ANY,
    tangent=_tangent_of_extremum,
)
reduce_min_p = Reduction(
    "reduce_min",
    "stablehlo.minimum",
    combine=binary.min,
    identity=highest,
    accepts=families.ANY,
    tangent=_tangent_of_extremum,
)
reduce_and_p = Reduction("reduce_and", "stablehlo.and", identity=_all_bits, accepts=families.BITS)
reduce_or_p = Reduction("reduce_or", "stablehlo.or", identity=zero, accepts=families.BITS)
reduce_xor_p = Reduction("reduce_xor", "stablehlo.xor", identity=zero, accepts=families.BITS)


def reduce_sum(
    operand: ArrayLike, axes: Sequence[int], *, out_sharding: ShardingLike = None
) -> Array:
    """The sum over `axes`.

    Shapes:     operand: T[s] -> T[s without axes].
    Dtypes:     numeric; the result has the same dtype, and sums are rounded to it.
    Derivative: transposes to a broadcast.
    Lowers to:  stablehlo.reduce with stablehlo.add.

    Raises:
        TypeError: the dtype is bool.
        ValueError: an axis is out of range, or named twice.

    Example:
        >>> lax.reduce_sum(jnp.array([[1, 2], [3, 4]]), axes=(0,))
        Array([4, 6], dtype=int32)
        >>> lax.reduce_sum(jnp.array([200, 100], jnp.uint8), axes=(0,))
        Array(44, dtype=uint8)
    """
    aval = aval_of(operand)
    families.check_dtype("reduce_sum", "operand", aval, families.NUMERIC)
    axes = families.int_tuple(axes, "lax.reduce_sum", "axes")
    if not axes and families.is_array(operand):
        return operand
    sharding = rules.resolve(out_sharding, "lax.reduce_sum")
    return structural.reduce_sum_p.bind(operand, axes=axes, out_sharding=sharding)


def reduce_prod(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The product over `axes`.

    Shapes:     operand: T[s] -> T[s without axes].
    Dtypes:     numeric.
    Derivative: exact also where elements are zero.
    Lowers to:  stablehlo.reduce with stablehlo.multiply.

    Raises:
        TypeError: the dtype is bool.
        ValueError: an axis is out of range, or named twice.

    Example:
        >>> lax.reduce_prod(jnp.array([[1, 2], [3, 4]]), axes=(1,))
        Array([ 2, 12], dtype=int32)
    """
    return _reduced(reduce_prod_p, operand, axes)


def reduce_max(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The maximum over `axes`; NaN where there is a NaN, the lowest value of no elements.

    Shapes:     operand: T[s] -> T[s without axes].
    Dtypes:     any; complex numbers are ordered by real part, then imaginary part.
    Derivative: elements that attain the maximum share it in equal parts.
    Lowers to:  stablehlo.reduce with stablehlo.maximum.

    Raises:
        ValueError: an axis is out of range, or named twice.

    Example:
        >>> lax.reduce_max(jnp.array([[1, 5], [3, 4]]), axes=(0,))
        Array([3, 5], dtype=int32)
        >>> lax.reduce_max(jnp.zeros((0,)), axes=(0,))
        Array(-inf, dtype=float32)
    """
    return _reduced(reduce_max_p, operand, axes)


def reduce_min(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The minimum over `axes`; NaN where there is a NaN, the highest value of no elements.

    Shapes:     operand: T[s] -> T[s without axes].
    Dtypes:     any; complex numbers are ordered by real part, then imaginary part.
    Derivative: elements that attain the minimum share it in equal parts.
    Lowers to:  stablehlo.reduce with stablehlo.minimum.

    Raises:
        ValueError: an axis is out of range, or named twice.

    Example:
        >>> lax.reduce_min(jnp.array([[1, 5], [3, 4]]), axes=(0, 1))
        Array(1, dtype=int32)
    """
    return _reduced(reduce_min_p, operand, axes)


def reduce_and(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The logical AND of booleans over `axes`, or the bitwise AND of integers.

    Shapes:     operand: T[s] -> T[s without axes].
    Dtypes:     bool or integer.
    Lowers to:  stablehlo.reduce with stablehlo.and.

    Raises:
        TypeError: the dtype is neither bool nor integer.
        ValueError: an axis is out of range, or named twice.

    Example:
        >>> lax.reduce_and(jnp.array([[True, True], [True, False]]), axes=(1,))
        Array([ True, False], dtype=bool)
    """
    return _reduced(reduce_and_p, operand, axes)


def reduce_or(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The logical OR of booleans over `axes`, or the bitwise OR of integers.

    Shapes:     operand: T[s] -> T[s without axes].
    Dtypes:     bool or integer.
    Lowers to:  stablehlo.reduce with stablehlo.or.

    Raises:
        TypeError: the dtype is neither bool nor integer.
        ValueError: an axis is out of range, or named twice.

    Example:
        >>> lax.reduce_or(jnp.array([0b001, 0b100]), axes=(0,))
        Array(5, dtype=int32)
    """
    return _reduced(reduce_or_p, operand, axes)


def reduce_xor(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The logical XOR (parity) of booleans over `axes`, or the bitwise XOR of integers.

    Shapes:     operand: T[s] -> T[s without axes].
    Dtypes:     bool or integer.
    Lowers to:  stablehlo.reduce with stablehlo.xor.

    Raises:
        TypeError: the dtype is neither bool nor integer.
        ValueError: an axis is out of range, or named twice.

    Example:
        >>> lax.reduce_xor(jnp.array([True, True, True]), axes=(0,))
        Array(True, dtype=bool)
    """
    return _reduced(reduce_xor_p, operand, axes)


def _reduced(primitive: Reduction, operand: Any, axes: Sequence[int]) -> Any:
    return primitive.bind(operand, axes=families.int_tuple(axes, f"lax.{primitive.name}", "axes"))


class ArgReduction(Primitive):
    """Where the extremum along one axis is; its first place, a NaN being more extreme than all.

    Shapes: operand: T[s] -> I[s without axes], I = index_dtype.

    Args:
        name: the primitive's name.
        extremum: the reduction to the extreme value itself.

    Not linear, hence no transpose: the results are integers.
    """

    batch = families.batch_along("axes", drops=True)
    jvp = jvp_of_constant
    shard = rules.reduction

    def __init__(self, name: str, extremum: Reduction) -> None:
        super().__init__(name)
        self.extremum = extremum

    def abstract_eval(
        self, x: ShapedArray, *, axes: Shape, index_dtype: np.dtype[Any]
    ) -> ShapedArray:
        name = f"lax.{self.name}"
        if len(axes) != 1 or not 0 <= axes[0] < x.ndim:
            problem = "the axis is out of range."
            got = {"operand": x, "axis": axes[0] if len(axes) == 1 else axes}
            error(ValueError, name, problem, got=got, expected=f"one axis from 0 to {x.ndim - 1}")
        if not dtypes.issubdtype(index_dtype, np.integer):
            error(TypeError, name, "index_dtype must be an integer dtype.", got=str(index_dtype))
        if x.shape[axes[0]] == 0:
            problem = "there is nothing to choose from."
            error(ValueError, name, problem, got={"operand": x, "axis": axes[0]})
        families.check_dtype(self.name, "operand", x, (np.floating, np.integer, np.bool_))
        shape = x.shape[: axes[0]] + x.shape[axes[0] + 1 :]
        return x.update(shape=shape, dtype=np.dtype(index_dtype), weak_type=False)

    def lower(
        self, ctx: LoweringContext, x: Value, *, axes: Shape, index_dtype: np.dtype[Any]
    ) -> Any:
        return lower_function(ctx, lambda x: [self._first_place(x, axes, index_dtype)], x)[0]

    def _first_place(self, x: Array, axes: Shape, index_dtype: np.dtype[Any]) -> Any:
        # Two reductions of one kind of number each, which a CPU does in vectors: five to ten times
        # as fast as one reduction of pairs.
        kept = [d for d in range(x.ndim) if d not in axes]
        extremum = structural.broadcast_in_dim(self.extremum.bind(x, axes=axes), x.shape, kept)
        attained = attains(x, extremum)
        places = broadcasted_iota(index_dtype, x.shape, axes[0])
        nowhere = structural.full(x.shape, highest(index_dtype), index_dtype)
        return reduce_min_p.bind(binary.select(attained, places, nowhere), axes=axes)


argmax_p = ArgReduction("argmax", reduce_max_p)
argmin_p = ArgReduction("argmin", reduce_min_p)


def argmax(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """The index of the first maximum along `axis`, or of the first NaN.

    Shapes:     operand: T[s] -> index_dtype[s without axis].
    Dtypes:     ordered; index_dtype is an integer dtype.
    Derivative: none; the result is an integer.
    Lowers to:  stablehlo.reduce for the value, then for its places.

    Raises:
        ValueError: the axis is out of range, or its dimension is empty.
        TypeError: `index_dtype` is not an integer dtype, or the operand is complex.

    Example:
        >>> lax.argmax(jnp.array([[1, 9, 9], [5, 2, 3]]), axis=1, index_dtype=jnp.int32)
        Array([1, 0], dtype=int32)
    """
    return _arg_reduced(argmax_p, operand, axis, index_dtype)


def argmin(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """The index of the first minimum along `axis`, or of the first NaN.

    Shapes:     operand: T[s] -> index_dtype[s without axis].
    Dtypes:     ordered; index_dtype is an integer dtype.
    Derivative: none; the result is an integer.
    Lowers to:  stablehlo.reduce for the value, then for its places.

    Raises:
        ValueError: the axis is out of range, or its dimension is empty.
        TypeError: `index_dtype` is not an integer dtype, or the operand is complex.

    Example:
        >>> lax.argmin(jnp.array([3.0, 1.0, jnp.nan]), axis=0, index_dtype=jnp.int32)
        Array(2, dtype=int32)
    """
    return _arg_reduced(argmin_p, operand, axis, index_dtype)


def _arg_reduced(
    primitive: ArgReduction, operand: ArrayLike, axis: int, index_dtype: DTypeLike
) -> Any:
    name = f"lax.{primitive.name}"
    (axis,) = families.int_tuple((axis,), name, "axis")
    index_dtype = dtypes.canonicalize_user_dtype(index_dtype, name)
    return primitive.bind(operand, axes=(axis,), index_dtype=index_dtype)


def with_leading_batch(size: int, args: Values, dims: Sequence[int]) -> list[Any]:
    """Operands with their batch dimensions in front, and initial values, which have none."""
    operands, inits = halves(args)
    pairs = zip(operands, halves(dims)[0], strict=True)
    return [*(structural.to_batch_dim(x, d, 0, size) for x, d in pairs), *inits]


class Reduce(Primitive):
    """Combines elements along `dimensions` by a function of the user, given as a jaxpr.

    Shapes: operands: T_i[s], then init_values: T_i[] -> T_i[s without dimensions].
    Not linear, hence no transpose: its derivative is that of a composition.
    """

    name = "reduce"
    multiple_results = True

    def abstract_eval(
        self, *avals: ShapedArray, jaxpr: ClosedJaxpr, dimensions: Shape, **_: Any
    ) -> list[ShapedArray]:
        operands, inits = halves(avals)
        check_reducer("lax.reduce", operands, inits, jaxpr)
        check_axes("lax.reduce", operands[0], dimensions)
        shape = tuple(n for d, n in enumerate(operands[0].shape) if d not in dimensions)
        return [x.strip_weak_type().with_shape(shape) for x in operands]

    def shard(
        self, avals: Avals, outs: Avals, *, dimensions: Shape, **params: Any
    ) -> list[PartitionSpec]:
        operands, inits = halves(avals)
        rules.check_unsharded(self, inits)
        spec = rules.join(self, operands, operands[0].ndim)
        return [rules.dropped(spec, dimensions)] * len(outs)

    def lower(
        self, ctx: LoweringContext, *values: Value, jaxpr: ClosedJaxpr, dimensions: Shape, **_: Any
    ) -> list[Any]:
        count = len(values) // 2
        operands = [
            ctx.module.partitioning.whole_along(ctx, x, dimensions, aval.ndim)
            for x, aval in zip(values[:count], ctx.avals_in, strict=False)
        ]
        return ctx.ops(
            "stablehlo.reduce",
            [*operands, *values[count:]],
            {"dimensions": ctx.i64_array(dimensions)},
            regions=[region_of_jaxpr(ctx, jaxpr)],
        )

    def jvp(self, primals: Values, tangents: Tangents, **params: Any) -> Dual:
        function = _folded(params["jaxpr"], params["dimensions"])
        return jvp_flat(function, primals, tangents)

    def batch(self, size: int, args: Values, dims: Sequence[Any], **params: Any) -> Batched:
        dimensions = params["dimensions"]
        if any(d is not None for d in halves(dims)[1]):
            return batch_flat(_folded(params["jaxpr"], dimensions), size, args, dims)
        params["dimensions"] = tuple(d + 1 for d in dimensions)
        outs = self.bind(*with_leading_batch(size, args, dims), **params)
        return outs, [0] * len(outs)


reduce_p = Reduce()


def check_reducer(
    name: str, operands: Sequence[ShapedArray], inits: Sequence[ShapedArray], jaxpr: ClosedJaxpr
) -> None:
    """Refuses operands, initial values and a combining function that do not fit together.

    Raises:
        ValueError: an initial value is not a scalar, operands differ in shape, or the function
            does not return scalars of the operands' dtypes.
        TypeError: an initial value is not of its operand's dtype.
    """
    facts = {f"operands[{i}]": x for i, x in enumerate(operands)}
    facts.update({f"init_values[{i}]": x for i, x in enumerate(inits)})
    if any(x.shape for x in inits):
        error(ValueError, name, "initial values must be scalars.", got=facts)
    if len({x.shape for x in operands}) != 1:
        error(ValueError, name, "all operands must have one shape.", got=facts)
    for x, init in zip(operands, inits, strict=True):
        families.check_same_dtype(name.removeprefix("lax."), operand=x, init_value=init)
    expected = [((), x.dtype) for x in operands]
    returned = [(x.shape, x.dtype) for x in jaxpr.out_avals]
    if returned != expected:
        error(
            ValueError,
            name,
            "the computation must return what it is given.",
            got=f"results {' '.join(map(str, jaxpr.out_avals))} for "
            f"{' '.join(x.with_shape(()).str_short() for x in operands)}",
            expected="a scalar of the same dtype for each operand",
        )


def region_of_jaxpr(ctx: LoweringContext, jaxpr: ClosedJaxpr) -> Any:
    """A region for `LoweringContext.ops` that computes `jaxpr`."""

    def body(inner: LoweringContext, *values: Value) -> list[Any]:
        return lower_jaxpr(inner, jaxpr.jaxpr, jaxpr.consts, values)

    return [ctx.type_of(aval) for aval in jaxpr.in_avals], body


def _folded(jaxpr: ClosedJaxpr, dimensions: Shape) -> Callable[..., list[Any]]:
    """The generic reduction as a composition of other operations."""

    def function(*args: Any) -> list[Any]:
        operands, inits = halves(args)
        return fold(elementwise(jaxpr), operands, inits, dimensions)

    return function


def reduce(
    operands: object,
    init_values: object,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
    out_sharding: object = None,
) -> Any:
    """Combines elements along `dimensions` by any associative function.

    Shapes:     operands: a tree of T_i[s] -> T_i[s without dimensions].
    Dtypes:     any.
    Derivative: that of a computation by halves.
    Lowers to:  stablehlo.reduce; a known operation from its identity becomes its own primitive.

    Args:
        operands: arrays of one shape.
        init_values: for each operand a scalar: an identity of the computation.
        computation: takes two trees of scalars, and returns one.
        dimensions: the dimensions to reduce.
        out_sharding: the sharding of the result.

    Raises:
        ValueError: the trees or shapes do not fit together.
        NotImplementedError: the computation uses values of a surrounding trace.

    Example:
        >>> lax.reduce(jnp.array([[1, 2], [3, 4]]), 0, lax.add, dimensions=(1,))
        Array([3, 7], dtype=int32)
        >>> lax.reduce(jnp.array([3, 5, 4]), 0, lambda x, y: (x + y) % 7, dimensions=(0,))
        Array(5, dtype=int32)
    """
    leaves, structure = tree.flatten(operands)
    init_leaves, init_structure = tree.flatten(init_values)
    check_same_structure("lax.reduce", "init_values", init_structure, structure)
    arrays = [operand(x) for x in leaves]
    inits = [as_initial_value(x, like) for x, like in zip(init_leaves, arrays, strict=True)]
    jaxpr = stage_reducer("lax.reduce", computation, arrays, structure)
    dims = families.int_tuple(dimensions, "lax.reduce", "dimensions")
    monoid = monoid_of(jaxpr, inits)
    if monoid is not None and monoid in _REDUCTIONS:
        sharding = rules.resolve(out_sharding, "lax.reduce")
        params = {"out_sharding": sharding} if monoid == "add" else {}
        outs = [_REDUCTIONS[monoid].bind(arrays[0], axes=dims, **params)]
    else:
        outs = reduce_p.bind(*arrays, *inits, computation=computation, jaxpr=jaxpr, dimensions=dims)
    return tree.unflatten(structure, outs)


_REDUCTIONS: dict[str, Any] = {
    "add": structural.reduce_sum_p,
    "mul": reduce_prod_p,
    "max": reduce_max_p,
    "min": reduce_min_p,
    "and": reduce_and_p,
    "or": reduce_or_p,
    "xor": reduce_xor_p,
}
_IDENTITIES: dict[str, Identity] = {
    "add": zero,
    **{op: primitive.identity for op, primitive in _REDUCTIONS.items() if op != "add"},
}


def check_same_structure(name: str, argument: str, found: object, expected: object) -> None:
    """Refuses a tree of another structure than the operands'.

    Raises:
        ValueError: the structures differ.
    """
    if found != expected:
        problem = f"{argument} must have the tree structure of the operands."
        error(ValueError, name, problem, got=str(found), expected=str(expected))


def as_initial_value(x: Array, like: object) -> Any:
    """An initial value; numbers that are not arrays of ours take the dtype of their operand."""
    if families.is_array(x) or np.ndim(x):
        return operand(x)
    return np.asarray(x).astype(aval_of(like).dtype)[()]


def stage_reducer(
    name: str, computation: Callable[[Any, Any], Any], arrays: Sequence[Any], structure: Any
) -> ClosedJaxpr:
    """The jaxpr of a combining function, of scalars of the arrays' dtypes.

    Raises:
        ValueError: the function returns another tree.
        NotImplementedError: it uses values of a surrounding trace.
    """
    scalars = [shaped_array((), aval_of(x).dtype) for x in arrays]

    def function(*values: Any) -> list[Any]:
        left, right = halves(values)
        out = computation(tree.unflatten(structure, left), tree.unflatten(structure, right))
        leaves, returned = tree.flatten(out)
        check_same_structure(name, "the result of the computation", returned, structure)
        return leaves

    jaxpr, consts = staging.stage(function, scalars * 2)
    if any(isinstance(c, Tracer) for c in consts):
        problem = "the computation uses values of a surrounding transformed function."
        error(NotImplementedError, name, problem, fix="pass them as operands")
    return ClosedJaxpr(jaxpr, consts)


def monoid_of(jaxpr: ClosedJaxpr, inits: Sequence[Any]) -> str | None:
    """The name of the operation that a combining function is, started from its identity."""
    if len(inits) != 1 or len(jaxpr.eqns) != 1 or isinstance(inits[0], Tracer):
        return None
    (eqn,) = jaxpr.eqns
    name = eqn.primitive.name
    plain = all(type(v) is Var for v in eqn.invars) and not any(eqn.params.values())
    direct = eqn.outvars == jaxpr.jaxpr.outvars and set(eqn.invars) == set(jaxpr.jaxpr.invars)
    if name not in _IDENTITIES or not plain or not direct:
        return None
    dtype = aval_of(inits[0]).dtype
    if dtype == np.bool_ and name in ("add", "mul", "max", "min"):
        name = {"add": "or", "mul": "and", "max": "or", "min": "and"}[name]
    if name in ("and", "or", "xor") and not any(dtypes.issubdtype(dtype, k) for k in families.BITS):
        return None
    return name if np.array_equal(inits[0], _IDENTITIES[name](dtype)) else None
