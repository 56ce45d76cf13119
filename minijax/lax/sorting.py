"""Sorting, and the largest elements.

The order is total: -0 equals 0, NaNs come last and equal each other, complex numbers are compared
by their real parts, then by their imaginary parts.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import ShapedArray, aval_of, shaped_array
from minijax.core.errors import error
from minijax.core.primitive import Batched, Dual, Primitive, Tangents, Zero
from minijax.interpreters.structural import moveaxis
from minijax.lax import families
from minijax.lax.creation import broadcasted_iota
from minijax.lax.families import Values, in_bytes
from minijax.lax.families import operand as as_operand
from minijax.lax.gather_numbers import GatherDimensionNumbers, GatherScatterMode
from minijax.lax.gather_scatter import gather
from minijax.lax.shape import expand_dims, unstack
from minijax.lowering.stablehlo import LoweringContext, Value
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.sharding import rules


def take_along_axis(x: Array, indices: Array, axis: int) -> Any:
    """The elements of `x` at `indices` along `axis`; all other dimensions agree."""
    rank = x.ndim
    others = tuple(d for d in range(rank) if d != axis)
    return gather(
        x,
        expand_dims(indices, (rank,)),
        GatherDimensionNumbers(
            offset_dims=(),
            collapsed_slice_dims=(axis,),
            start_index_map=(axis,),
            operand_batching_dims=others,
            start_indices_batching_dims=others,
        ),
        tuple(min(size, 1) for size in x.shape),
        unique_indices=True,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
    )


class Sort(Primitive):
    """Sorts the operands together along `dimension`, by the first `num_keys` of them.

    Shapes: T_i[s] -> T_i[s].
    Not linear, hence no transpose: tangents are gathered.
    """

    name = "sort"
    multiple_results = True
    batch = families.batch_along("dimension")
    shard = rules.whole_along("dimension")

    def abstract_eval(
        self, *avals: ShapedArray, dimension: int, is_stable: bool, num_keys: int
    ) -> list[ShapedArray]:
        for i, x in enumerate(avals[:num_keys]):
            families.check_dtype("sort", f"operand[{i}]", x, families.ANY)
        if any(x.shape != avals[0].shape for x in avals):
            got = {f"operand[{i}]": x for i, x in enumerate(avals)}
            error(TypeError, "lax.sort", "all operands must have one shape.", got=got)
        return list(avals)

    @in_bytes("int2", "uint2")
    def lower(
        self, ctx: LoweringContext, *values: Value, dimension: int, is_stable: bool, num_keys: int
    ) -> list[Any]:
        attributes = {"dimension": ctx.integer(dimension), "is_stable": ctx.boolean(is_stable)}
        scalars = [shaped_array((), aval.dtype) for aval in ctx.avals_in]
        if len(values) == 1 and scalars[0].dtype.name in _BITS_OF_FLOAT:
            return [_sort_as_integers(ctx, values[0], attributes)]

        def comes_before(inner: LoweringContext, *pairs: Value) -> list[Any]:
            keys: list[Any] = []
            for i in range(num_keys):
                keys += _ordered_parts(inner, pairs[2 * i], pairs[2 * i + 1], scalars[i])
            return [_lexicographically_less(inner, keys)]

        types = [ctx.type_of(scalar) for scalar in scalars for _ in range(2)]
        return ctx.ops("stablehlo.sort", values, attributes, regions=[(types, comes_before)])

    def jvp(
        self, primals: Sequence[Array], tangents: Sequence[Any], *, dimension: int, **params: Any
    ) -> Dual:
        places = broadcasted_iota(np.int32, aval_of(primals[0]).shape, dimension)
        *outs, places = self.bind(*primals, places, dimension=dimension, **params)
        out_dots = [
            Zero.like(x) if type(t) is Zero else take_along_axis(t, places, dimension)
            for x, t in zip(outs, tangents, strict=True)
        ]
        return outs, out_dots


@dtypes.over_words.rule(Sort)
def _over_words_of_sort(primitive: Sort, x: Array, dim: int) -> Any:
    # Operands beside keys are sorted once for each word, and alike.
    return unstack(x, dim)[0]


sort_p = Sort()

# Floats whose bits, read as integers, XLA can sort.
_BITS_OF_FLOAT: dict[str, np.dtype[Any]] = {
    "bfloat16": np.dtype(np.int16),
    "float16": np.dtype(np.int16),
    "float32": np.dtype(np.int32),
    "float64": np.dtype(np.int64),
}


def _sort_as_integers(ctx: LoweringContext, x: Value, attributes: dict[str, Any]) -> Any:
    """Sorts floats by integers of the same order.

    XLA's CPU compiler calls a library where the comparison is a plain one of numbers, which is
    three times as fast as a comparison that minds NaNs; on GPUs it is a radix sort.
    """
    aval = ctx.avals_in[0]
    dtype = _BITS_OF_FLOAT[aval.dtype.name]
    scalar = shaped_array((), dtype)
    bits = aval.update(dtype=dtype, weak_type=False)
    kind = ctx.type_of(bits)

    def same_order(x: Value) -> Any:
        # Magnitudes of negative numbers count down.  The map is its own inverse.
        shift = ctx.full(aval.shape, 8 * dtype.itemsize - 1, dtype)
        sign = ctx.op("stablehlo.shift_right_arithmetic", [x, shift], None, kind)
        magnitude = ctx.full(aval.shape, np.iinfo(dtype).max, dtype)
        flip = ctx.op("stablehlo.and", [sign, magnitude], None, kind)
        return ctx.op("stablehlo.xor", [x, flip], None, kind)

    is_nan = ctx.compare("NE", x, x, aval)
    # All NaNs are positive ones, which come last.
    x = ctx.op("stablehlo.select", [is_nan, ctx.full(aval.shape, np.nan, aval.dtype), x])
    keys = same_order(ctx.op("stablehlo.bitcast_convert", [x], None, kind))
    (keys,) = ctx.ops(
        "stablehlo.sort",
        [keys],
        attributes,
        [kind],
        regions=[
            ([ctx.type_of(scalar)] * 2, lambda inner, a, b: [inner.compare("LT", a, b, scalar)])
        ],
    )
    return ctx.op("stablehlo.bitcast_convert", [same_order(keys)])


def _ordered_parts(
    ctx: LoweringContext, a: Value, b: Value, scalar: ShapedArray
) -> list[tuple[Any, Any, Any]]:
    """Pairs of numbers whose lexicographic order is the order of `a` and `b`, with their types."""
    if dtypes.issubdtype(scalar.dtype, np.complexfloating):
        part = shaped_array((), dtypes.real_dtype_of(scalar.dtype))
        kind = ctx.type_of(part)
        pairs = []
        for name in ("stablehlo.real", "stablehlo.imag"):
            x, y = (ctx.op(name, [z], None, kind) for z in (a, b))
            pairs += _ordered_parts(ctx, x, y, part)
        return pairs
    if dtypes.issubdtype(scalar.dtype, np.floating):
        a, b = (_with_one_zero_and_nan(ctx, x, scalar) for x in (a, b))
    return [(a, b, scalar)]


def _with_one_zero_and_nan(ctx: LoweringContext, x: Value, scalar: ShapedArray) -> Any:
    kind = ctx.type_of(scalar)
    for direction, other, value in (("EQ", 0, 0), ("NE", None, np.nan)):
        compared = x if other is None else ctx.constant(other, scalar.dtype)
        found = ctx.compare(direction, x, compared, scalar)
        x = ctx.op("stablehlo.select", [found, ctx.constant(value, scalar.dtype), x], None, kind)
    return x


def _lexicographically_less(
    ctx: LoweringContext, pairs: Sequence[tuple[Any, Any, ShapedArray]]
) -> Any:
    boolean = ctx.tensor_type((), np.bool_)
    result = None
    for a, b, scalar in reversed(pairs):
        less = ctx.compare("LT", a, b, scalar, total_order=True)
        if result is not None:
            equal = ctx.compare("EQ", a, b, scalar, total_order=True)
            later = ctx.op("stablehlo.and", [equal, result], None, boolean)
            less = ctx.op("stablehlo.or", [less, later], None, boolean)
        result = less
    return result


@overload
def sort(
    operand: ArrayLike, dimension: int = ..., is_stable: bool = ..., num_keys: int = ...
) -> Array: ...
@overload
def sort(
    operand: Sequence[ArrayLike], dimension: int = ..., is_stable: bool = ..., num_keys: int = ...
) -> tuple[Array, ...]: ...


def sort(
    operand: ArrayLike | Sequence[ArrayLike],
    dimension: int = -1,
    is_stable: bool = True,
    num_keys: int = 1,
) -> Array | tuple[Array, ...]:
    """Sorts one array, or several together, in ascending order along `dimension`.

    Shapes:     T_i[s] -> T_i[s], for each operand.
    Dtypes:     any; NaNs come last, complex numbers are ordered lexicographically.
    Derivative: tangents are permuted with the elements.
    Lowers to:  stablehlo.sort.

    Args:
        operand: an array, or a sequence of arrays of one shape.
        dimension: the dimension to sort along.
        is_stable: whether equal elements keep their order.
        num_keys: by how many of the first operands the order goes, the first one counting most.

    Raises:
        TypeError: there are no operands, or their shapes differ.
        ValueError: the dimension or `num_keys` is out of range.

    Example:
        >>> lax.sort(jnp.array([3.0, jnp.nan, 1.0]))
        Array([ 1.,  3., nan], dtype=float32)
        >>> lax.sort((jnp.array([2, 1, 1]), jnp.array([5, 7, 6])), num_keys=2)
        (Array([1, 1, 2], dtype=int32), Array([6, 7, 5], dtype=int32))
    """
    several = isinstance(operand, (tuple, list))
    operands: Any = operand if several else (operand,)
    arrays = [as_operand(x) for x in operands]
    if not arrays:
        error(TypeError, "lax.sort", "there is nothing to sort.", got="no operands")
    if not 1 <= num_keys <= len(arrays):
        problem = "num_keys is out of range."
        error(ValueError, "lax.sort", problem, got={"num_keys": num_keys, "operands": len(arrays)})
    outs = sort_p.bind(
        *arrays,
        dimension=families.canonicalize_axis(dimension, aval_of(arrays[0]).ndim, "lax.sort"),
        is_stable=bool(is_stable),
        num_keys=operator.index(num_keys),
    )
    return tuple(outs) if several else outs[0]


def sort_key_val(
    keys: ArrayLike, values: ArrayLike, dimension: int = -1, is_stable: bool = True
) -> tuple[Any, Any]:
    """Sorts `keys` along `dimension`, and permutes `values` alike.

    Shapes:     keys: T[s], values: U[s] -> T[s], U[s].
    Derivative: tangents are permuted with the elements.
    Lowers to:  stablehlo.sort.

    Raises:
        TypeError: the shapes differ.
        ValueError: the dimension is out of range.

    Example:
        >>> lax.sort_key_val(jnp.array([3, 1, 2]), jnp.array([30, 10, 20]))
        (Array([1, 2, 3], dtype=int32), Array([10, 20, 30], dtype=int32))
    """
    sorted_keys, permuted = sort((keys, values), dimension, is_stable, num_keys=1)
    return sorted_keys, permuted


class TopK(Primitive):
    """The `k` largest elements along `axis`, largest first, and their indices.

    Shapes: operand: T[.., n, ..] -> T[.., k, ..], int32[.., k, ..].
    Not linear, hence no transpose: tangents are gathered.
    """

    name = "top_k"
    multiple_results = True
    batch = families.batch_along("axis")
    shard = rules.whole_along("axis")

    def abstract_eval(self, x: ShapedArray, *, k: int, axis: int) -> list[ShapedArray]:
        if dtypes.issubdtype(x.dtype, np.complexfloating):
            error(ValueError, "lax.top_k", "complex numbers have no largest.", got={"operand": x})
        families.check_dtype("top_k", "operand", x, families.ORDERED)
        if not 0 <= k <= x.shape[axis]:
            problem = f"k is out of range: {k}."
            got = {"operand": x, "axis": axis}
            error(ValueError, "lax.top_k", problem, got=got, expected=f"0 … {x.shape[axis]}")
        out = x.with_shape((*x.shape[:axis], k, *x.shape[axis + 1 :]))
        return [out, out.update(dtype=np.int32, weak_type=False)]

    @in_bytes("int2", "uint2", "int4", "uint4")
    def lower(self, ctx: LoweringContext, x: Value, *, k: int, axis: int) -> list[Any]:
        aval = ctx.avals_in[0]
        order = [*(d for d in range(aval.ndim) if d != axis), axis]
        shape = [aval.shape[d] for d in order]

        def transposed(x: Value, permutation: Sequence[int], type: object) -> Any:
            attributes = {"permutation": ctx.i64_array(permutation)}
            return ctx.op("stablehlo.transpose", [x], attributes, type)

        if axis != aval.ndim - 1:
            x = transposed(x, order, ctx.tensor_type(shape, aval.dtype))
        types = [ctx.tensor_type((*shape[:-1], k), out.dtype) for out in ctx.avals_out]
        outs = ctx.ops("chlo.top_k", [x], {"k": ctx.integer(k)}, types)
        if axis != aval.ndim - 1:
            back = np.argsort(order).tolist()
            types = [ctx.type_of(out) for out in ctx.avals_out]
            outs = [transposed(y, back, kind) for y, kind in zip(outs, types, strict=True)]
        return outs

    def jvp(self, primals: Values, tangents: Tangents, *, k: int, axis: int) -> Dual:
        values, indices = self.bind(*primals, k=k, axis=axis)
        return [values, indices], _tangents_of_chosen(tangents[0], values, indices, axis)


top_k_p = TopK()


def _tangents_of_chosen(x_dot: Any, values: Array, indices: Array, axis: int) -> list[Any]:
    if type(x_dot) is Zero:
        return [Zero.like(values), Zero.like(indices)]
    return [take_along_axis(x_dot, indices, axis), Zero.like(indices)]


def top_k(operand: ArrayLike, k: int, *, axis: int = -1) -> list[Array]:
    """The `k` largest elements along `axis`, largest first, and their indices.

    Shapes:     operand: T[.., n, ..] -> T[.., k, ..], int32[.., k, ..].
    Dtypes:     ordered; NaN is larger than all numbers.
    Derivative: tangents of the elements chosen.
    Lowers to:  chlo.top_k.

    Raises:
        ValueError: `k` or the axis is out of range, or the dtype is complex.

    Example:
        >>> lax.top_k(jnp.array([4, 9, 1, 7]), 2)
        [Array([9, 7], dtype=int32), Array([1, 3], dtype=int32)]
    """
    x = as_operand(operand)
    axis = families.canonicalize_axis(axis, aval_of(x).ndim, "lax.top_k")
    return top_k_p.bind(x, k=operator.index(k), axis=axis)


class ApproxTopK(Primitive):
    """Elements among which the `k` largest or smallest are likely to be, and their indices.

    Shapes: operand: T[.., n, ..] -> T[.., m, ..], int32[.., m, ..], where m >= k.
    Found exactly today, whatever `recall_target` permits.  Not linear, hence no transpose.
    """

    name = "approx_top_k"
    multiple_results = True
    shard = rules.whole_along("reduction_dimension")

    def abstract_eval(
        self,
        x: ShapedArray,
        *,
        k: int,
        reduction_dimension: int,
        recall_target: float,
        is_max_k: bool,
        reduction_input_size_override: int,
        aggregate_to_topk: bool,
    ) -> list[ShapedArray]:
        name = "lax.approx_max_k" if is_max_k else "lax.approx_min_k"
        axis = families.canonicalize_axis(reduction_dimension, x.ndim, name)
        count = x.shape[axis]
        if not any(dtypes.issubdtype(x.dtype, kind) for kind in families.FLOAT):
            error(ValueError, name, "the operand must be of a floating dtype.", got={"operand": x})
        if not 0 < k <= count or not 0 < recall_target <= 1:
            problem = "k or recall_target is out of range."
            got = {"operand": x, "k": k, "recall_target": recall_target}
            expected = f"k from 1 to {count}, recall_target from 0 to 1"
            error(ValueError, name, problem, got=got, expected=expected)
        if not aggregate_to_topk:
            size = count if reduction_input_size_override < 0 else reduction_input_size_override
            k = _number_of_candidates(count, x.ndim, k, recall_target, size)
        out = x.with_shape((*x.shape[:axis], k, *x.shape[axis + 1 :]))
        return [out, out.update(dtype=np.int32, weak_type=False)]

    def lower(
        self, ctx: LoweringContext, x: Value, *, reduction_dimension: int, is_max_k: bool, **_: Any
    ) -> Any:
        out = ctx.avals_out[0]
        axis = reduction_dimension % out.ndim
        aval = ctx.avals_in[0]
        if not is_max_k:
            x = ctx.op("stablehlo.negate", [x], None, ctx.type_of(aval))
        values, indices = top_k_p.lower(ctx, x, k=out.shape[axis], axis=axis)
        if not is_max_k:
            values = ctx.op("stablehlo.negate", [values])
        return [values, indices]

    def jvp(self, primals: Values, tangents: Tangents, **params: Any) -> Dual:
        values, indices = self.bind(*primals, **params)
        axis = params["reduction_dimension"] % values.ndim
        return [values, indices], _tangents_of_chosen(tangents[0], values, indices, axis)

    def batch(self, size: int, args: Values, dims: Sequence[int], **params: Any) -> Batched:
        x = moveaxis(args[0], dims[0], 0)
        axis = params["reduction_dimension"] % (aval_of(x).ndim - 1) + 1
        return self.bind(x, **{**params, "reduction_dimension": axis}), [0, 0]


approx_top_k_p = ApproxTopK()


def _number_of_candidates(count: int, rank: int, k: int, recall: float, size: int) -> int:
    """How many elements XLA's reduction in parallel lanes leaves of `count`, part of `size`.

    The lanes are so many that the k largest of all fall into different ones often enough; their
    number is that of an accelerator's registers times a power of two.
    """
    lanes = 1024 if rank == 1 else 128
    if count <= lanes or recall == 1:
        return count
    if k == 1:
        return lanes
    needed = max(math.ceil((1 - k) / math.log(recall)), lanes)
    halvings = (size // min(needed, size)).bit_length() - 1
    if halvings == 0:
        return count
    rows = -(-count // lanes)
    return -(-rows >> halvings) * lanes


def approx_max_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Any]:
    """The `k` largest elements along a dimension and their indices; some may be missed.

    Shapes:     operand: T[.., n, ..] -> T[.., k, ..], int32[.., k, ..].
    Dtypes:     floating.
    Derivative: tangents of the elements chosen.
    Lowers to:  chlo.top_k; the result is exact.

    Args:
        operand: the array.
        k: how many elements.
        reduction_dimension: the dimension to search.
        recall_target: the share of the largest elements that must be found.
        reduction_input_size_override: the size to assume where the operand is part of a larger one.
        aggregate_to_topk: whether to return exactly `k` elements, rather than more candidates.

    Raises:
        ValueError: an argument is out of range, or the dtype is not floating.

    Example:
        >>> lax.approx_max_k(jnp.array([4.0, 9.0, 1.0, 7.0]), 2)
        [Array([9., 7.], dtype=float32), Array([1, 3], dtype=int32)]
    """
    options = (recall_target, reduction_input_size_override, aggregate_to_topk)
    return _approx_k(True, operand, k, reduction_dimension, *options)


def approx_min_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Any]:
    """The `k` smallest elements along a dimension and their indices; some may be missed.

    Shapes:     operand: T[.., n, ..] -> T[.., k, ..], int32[.., k, ..].
    Dtypes:     floating.
    Derivative: tangents of the elements chosen.
    Lowers to:  chlo.top_k of the negated operand; the result is exact.
    Source:     mirrors jax.lax.approx_min_k; arguments as for `approx_max_k`.

    Raises:
        ValueError: an argument is out of range, or the dtype is not floating.

    Example:
        >>> lax.approx_min_k(jnp.array([4.0, 9.0, 1.0, 7.0]), 2)
        [Array([1., 4.], dtype=float32), Array([2, 0], dtype=int32)]
    """
    options = (recall_target, reduction_input_size_override, aggregate_to_topk)
    return _approx_k(False, operand, k, reduction_dimension, *options)


def _approx_k(
    is_max_k: bool, operand: ArrayLike, k: int, axis: int, recall: float, size: int, whole: bool
) -> list[Any]:
    return approx_top_k_p.bind(
        as_operand(operand),
        k=operator.index(k),
        reduction_dimension=operator.index(axis),
        recall_target=float(recall),
        is_max_k=is_max_k,
        reduction_input_size_override=operator.index(size),
        aggregate_to_topk=bool(whole),
    )
