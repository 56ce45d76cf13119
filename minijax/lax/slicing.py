"""Slices: static, with starts that are operands, and updates of them.

The starts of the dynamic forms are clamped, so that the slice lies inside the operand.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

from minijax.core import dtypes, vma
from minijax.core.aval import Shape, ShapedArray, aval_of, result_types
from minijax.core.errors import error
from minijax.core.meshes import PartitionSpec
from minijax.core.primitive import Batched, Cotangents, Dual, Primitive, Tangents
from minijax.interpreters import checking, structural
from minijax.interpreters.checking import Fault
from minijax.interpreters.jvp import UndefinedPrimal, is_linear, jvp_of_linear
from minijax.lax import binary, creation, families, gather_numbers, gather_scatter, shape
from minijax.lax.families import Avals, BatchDims, Values, jvp_of_first
from minijax.lax.gather_numbers import GatherDimensionNumbers, ScatterDimensionNumbers
from minijax.lax.padding import pad
from minijax.lowering.stablehlo import LoweringContext, Value
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.sharding import rules

_INT64 = np.dtype(np.int64)


class Slice(Primitive):
    """The elements from `start_indices` to `limit_indices` in steps of `strides`.

    Shapes: x: T[s] -> T[ceil((limit - start) / stride)].  Linear in x.
    """

    name = "slice"
    jvp = jvp_of_linear
    shard = rules.resized

    @result_types.function
    def abstract_eval(self, x: ShapedArray, **params: Any) -> ShapedArray:
        return _sliced_type(x, **params)

    def lower(self, ctx: LoweringContext, x: Value, **params: Any) -> Any:
        return shape.slice_op(ctx, x, *(params[name] for name in _SLICE))

    def transpose(self, ct: Array, x: UndefinedPrimal, **params: Any) -> Cotangents:
        starts, _, strides = (params[name] for name in _SLICE)
        config = []
        sizes = zip(
            x.aval.shape, aval_of(ct).shape, starts, strides or (1,) * len(starts), strict=True
        )
        for n, m, start, step in sizes:
            used = start + (m - 1) * step + 1 if m else start
            config.append((start, n - used, step - 1))
        return (pad(ct, np.zeros((), aval_of(ct).dtype)[()], config),)

    def batch(self, size: int, args: Values, dims: Sequence[int], **params: Any) -> Batched:
        for name, value in zip(_SLICE, (0, size, 1), strict=True):
            if params[name] is not None:
                params[name] = _inserted(params[name], dims[0], value)
        return self.bind(args[0], **params), dims[0]


vma.keeps_unreduced.set(True, Slice)

# The parameters of slices.
_SLICE = ("start_indices", "limit_indices", "strides")


def _sliced_type(
    x: ShapedArray, start_indices: Shape, limit_indices: Shape, strides: Shape | None
) -> ShapedArray:
    starts, limits = start_indices, limit_indices
    facts = {"operand": x, "start": starts, "limit": limits, "strides": strides}
    steps = strides or (1,) * x.ndim
    if not len(starts) == len(limits) == len(steps) == x.ndim:
        problem = "needs a start, a limit and a stride for each dimension."
        error(TypeError, "lax.slice", problem, got=facts)
    sizes = []
    for n, a, b, step in zip(x.shape, starts, limits, steps, strict=True):
        if not (0 <= a <= b <= n and step > 0):
            problem = "the bounds do not lie inside the operand."
            expected = "0 <= start <= limit <= size, and strides of at least 1"
            error(TypeError, "lax.slice", problem, got=facts, expected=expected)
        sizes.append((b - a + step - 1) // step)
    return x.with_shape(tuple(sizes))


def _inserted(values: Sequence[int], position: int, value: int) -> Shape:
    return (*values[:position], value, *values[position:])


slice_p = Slice()


def slice(
    operand: ArrayLike,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Array:
    """Extracts the slice from `start_indices` to `limit_indices`, in steps of `strides`.

    Shapes:     operand: T[s] -> T[ceil((limit - start) / stride)].
    Derivative: transposes to pad.
    Lowers to:  stablehlo.slice.

    Raises:
        TypeError: the bounds do not fit the operand.

    Example:
        >>> lax.slice(jnp.arange(10), (1,), (9,), strides=(3,))
        Array([1, 4, 7], dtype=int32)
    """
    starts = families.int_tuple(start_indices, "lax.slice", "start_indices")
    limits = families.int_tuple(limit_indices, "lax.slice", "limit_indices")
    steps = None if strides is None else families.int_tuple(strides, "lax.slice", "strides")
    return slice_p.bind(operand, start_indices=starts, limit_indices=limits, strides=steps)


class DynamicSlice(Primitive):
    """A slice of fixed sizes from starts that are operands, one scalar for each dimension.

    Shapes: x: T[s], starts: int[] … -> T[slice_sizes].  Linear in x.
    """

    name = "dynamic_slice"
    shard = rules.resized
    jvp = jvp_of_first

    @result_types.function
    def abstract_eval(
        self, x: ShapedArray, *starts: ShapedArray, slice_sizes: Shape
    ) -> ShapedArray:
        _check_starts("lax.dynamic_slice", x, starts)
        _check_slice_sizes(x, slice_sizes)
        return x.with_shape(slice_sizes)

    def lower(self, ctx: LoweringContext, x: Value, *starts: Value, slice_sizes: Shape) -> Any:
        if not starts:
            return x
        if ctx.module.partitioning.partitions > 1:
            starts = _clamped(ctx, starts, slice_sizes)
        return ctx.op(
            "stablehlo.dynamic_slice", [x, *starts], {"slice_sizes": ctx.i64_array(slice_sizes)}
        )

    def transpose(
        self, ct: Array, x: UndefinedPrimal, *starts: Any, slice_sizes: Shape
    ) -> Cotangents:
        whole = dynamic_update_slice_p.bind(structural.zeros(x.aval.cotangent_aval()), ct, *starts)
        return (whole, *(None for _ in starts))

    def batch(
        self, size: int, args: Sequence[Array], dims: Sequence[Any], *, slice_sizes: Shape
    ) -> Batched:
        x, *starts = args
        d, *start_dims = dims
        if all(s is None for s in start_dims):
            zero = np.zeros((), aval_of(starts[0]).dtype if starts else np.int32)[()]
            moved: list[Any] = [*starts[:d], zero, *starts[d:]]
            return self.bind(x, *moved, slice_sizes=_inserted(slice_sizes, d, size)), d
        index = _stacked_starts(starts, start_dims, size)
        rank = len(slice_sizes)
        batched = d is not None
        numbers = GatherDimensionNumbers(
            offset_dims=tuple(range(1, rank + 1)),
            collapsed_slice_dims=(),
            start_index_map=tuple(range(batched, rank + batched)),
            operand_batching_dims=(0,) if batched else (),
            start_indices_batching_dims=(0,) if batched else (),
        )
        out = gather_scatter.gather(
            structural.moveaxis(x, d, 0) if batched else x,
            index,
            numbers,
            (min(size, 1), *slice_sizes) if batched else slice_sizes,
            indices_are_sorted=batched,
            unique_indices=batched,
            mode="clip",
        )
        return out, 0


@checking.faults.rule(DynamicSlice)
def _faults_of_dynamic_slice(
    primitive: DynamicSlice, args: Sequence[Array], outs: Values, *, slice_sizes: Shape
) -> list[Fault]:
    return _starts_outside(args[0], args[1:], slice_sizes)


vma.linear_in.set(((0,),), DynamicSlice)


def _starts_outside(x: Array, starts: Sequence[Any], sizes: Shape) -> list[Fault]:
    """The faults of slices whose starts are clamped: the user's slice was another one."""
    faults: list[Fault] = []
    for axis, (start, n, m) in enumerate(zip(starts, aval_of(x).shape, sizes, strict=True)):
        text = (
            f"a slice of {m} from {{0}} is out of bounds for axis {axis} with size {n}"
            if m > 1
            else f"index {{0}} is out of bounds for axis {axis} with size {n}"
        )
        faults += gather_numbers.outside(start, 0, n - m, text)
    return faults


def _check_starts(name: str, x: ShapedArray, starts: Sequence[ShapedArray]) -> None:
    if len(starts) != x.ndim:
        problem = "needs one start for each dimension."
        error(TypeError, name, problem, got=f"{len(starts)} starts for {x}")
    kinds = {start.dtype for start in starts}
    if (
        any(start.shape for start in starts)
        or len(kinds) > 1
        or not all(dtypes.issubdtype(kind, np.integer) for kind in kinds)
    ):
        problem = "starts must be integer scalars of one dtype."
        error(TypeError, name, problem, got=", ".join(map(str, starts)))


def _check_slice_sizes(x: ShapedArray, slice_sizes: Shape) -> None:
    if len(slice_sizes) != x.ndim or any(
        not 0 <= m <= n for m, n in zip(slice_sizes, x.shape, strict=True)
    ):
        problem = "the slice does not fit into the operand."
        got = {"operand": x, "slice_sizes": slice_sizes}
        expected = "a size for each dimension, at most the operand's"
        error(TypeError, "lax.dynamic_slice", problem, got=got, expected=expected)


def _stacked_starts(starts: Sequence[Any], dims: Sequence[Any], size: int) -> Any:
    """Starts int[size, n], from scalars and vectors of one dtype."""
    columns = [
        structural.broadcast_in_dim(s, (size, 1), () if d is None else (0,))
        for s, d in zip(starts, dims, strict=True)
    ]
    return columns[0] if len(columns) == 1 else shape.concatenate(columns, 1)


class DynamicUpdateSlice(Primitive):
    """`x` with a slice replaced, at starts that are operands.

    Shapes: x: T[s], update: T[t], starts: int[] … -> T[s].  Linear in x and update together.
    """

    name = "dynamic_update_slice"

    @result_types.function
    def abstract_eval(
        self, x: ShapedArray, update: ShapedArray, *starts: ShapedArray
    ) -> ShapedArray:
        name, facts = "lax.dynamic_update_slice", {"operand": x, "update": update}
        _check_starts(name, x, starts)
        if x.dtype != update.dtype:
            error(TypeError, name, "operand and update have different dtypes.", got=facts)
        if update.ndim != x.ndim or any(m > n for m, n in zip(update.shape, x.shape, strict=True)):
            error(TypeError, name, "the update does not fit into the operand.", got=facts)
        return x.strip_weak_type()

    def shard(self, avals: Avals, outs: Avals) -> PartitionSpec:
        rules.check_unsharded(self, avals[2:])
        x, update = avals[:2]
        pairs = zip(rules.spec_of(x), rules.spec_of(update), strict=True)
        unlike = [d for d, (a, b) in enumerate(pairs) if a != b and x.shape[d] != update.shape[d]]
        # The cotangent of a part is a slice, whose split would not follow from that of the part.
        rules.check_unsharded(self, avals[:2], unlike)
        return rules.join(self, avals[:2], x.ndim)

    def lower(self, ctx: LoweringContext, x: Value, update: Value, *starts: Value) -> Any:
        if not starts:
            return update
        if ctx.module.partitioning.partitions > 1:
            starts = _clamped(ctx, starts, ctx.avals_in[1].shape)
        return ctx.op("stablehlo.dynamic_update_slice", [x, update, *starts])

    def jvp(self, primals: Values, tangents: Tangents) -> Dual:
        out = self.bind(*primals)
        x_dot, update_dot = tangents[:2]
        return out, self.bind(
            structural.instantiate(x_dot), structural.instantiate(update_dot), *primals[2:]
        )

    def transpose(self, ct: Array, x: Array, update: Array, *starts: Any) -> Cotangents:
        x_ct = update_ct = None
        if is_linear(x):
            window = (update.aval if is_linear(update) else aval_of(update)).shape
            x_ct = self.bind(ct, structural.zeros(aval_of(ct).with_shape(window)), *starts)
        if is_linear(update):
            update_ct = dynamic_slice_p.bind(ct, *starts, slice_sizes=update.aval.shape)
        return (x_ct, update_ct, *(None for _ in starts))

    def batch(self, size: int, args: Values, dims: BatchDims) -> Batched:
        x, update, *starts = args
        x_dim, update_dim, *start_dims = dims
        x = structural.to_batch_dim(x, x_dim, 0, size)
        update = structural.to_batch_dim(update, update_dim, 0, size)
        if all(s is None for s in start_dims):
            zero = np.zeros((), aval_of(starts[0]).dtype if starts else np.int32)[()]
            return self.bind(x, update, zero, *starts), 0
        rank = aval_of(x).ndim
        numbers = ScatterDimensionNumbers(
            update_window_dims=tuple(range(1, rank)),
            inserted_window_dims=(),
            scatter_dims_to_operand_dims=tuple(range(1, rank)),
            operand_batching_dims=(0,),
            scatter_indices_batching_dims=(0,),
        )
        index = _stacked_starts(starts, start_dims, size)
        out = gather_scatter.scatter(
            x, index, update, numbers, indices_are_sorted=True, unique_indices=True, mode="clip"
        )
        return out, 0


@checking.faults.rule(DynamicUpdateSlice)
def _faults_of_dynamic_update_slice(
    primitive: DynamicUpdateSlice, args: Sequence[Array], outs: Values
) -> list[Fault]:
    return _starts_outside(args[0], args[2:], aval_of(args[1]).shape)


vma.linear_in.set(((0, 1),), DynamicUpdateSlice)
rules.tells_memory.set(True, DynamicUpdateSlice)


def _clamped(ctx: LoweringContext, starts: Sequence[Any], sizes: Shape) -> tuple[Any, ...]:
    """The starts of slices of these sizes, inside the operand.

    XLA clamps starts itself, but wrongly where the slice or the operand is split over devices:
    parts of a slice are clamped one by one, and an update of one element is dropped.
    """
    avals = ctx.avals_in[-len(starts) :]
    found = []
    for start, aval, n, m in zip(starts, avals, ctx.avals_in[0].shape, sizes, strict=True):
        last = min(n - m, np.iinfo(aval.dtype).max)
        least, most = ctx.constant(0, aval.dtype), ctx.constant(last, aval.dtype)
        found.append(ctx.op("stablehlo.clamp", [least, start, most], None, start.type))
    return tuple(found)


dynamic_slice_p = DynamicSlice()
dynamic_update_slice_p = DynamicUpdateSlice()


def _starts(
    name: str, x: ArrayLike, start_indices: Any, allow_negative: bool | Sequence[bool]
) -> list[Any]:
    """Starts as scalars; negative ones count from the end where that is allowed.

    Python integers take the dtype of the other starts.
    """
    dims = aval_of(x).shape
    count = len(dims)
    is_vector = hasattr(start_indices, "ndim")
    if (start_indices.shape if is_vector else (len(start_indices),)) != (count,):
        got = {"operand": aval_of(x), "start_indices": start_indices}
        error(ValueError, name, "needs one start for each dimension.", got=got)
    if is_vector and not isinstance(start_indices, np.ndarray):
        start_indices = [index_in_dim(start_indices, i, keepdims=False) for i in range(count)]
    largest = max(dims, default=0)
    start_indices = [_able_to_hold(start, largest) for start in start_indices]
    flags = (allow_negative,) * count if isinstance(allow_negative, bool) else allow_negative
    dtype = _start_dtype(start_indices)
    return [
        _start(name, start, n, negative, dtype)
        for start, n, negative in zip(start_indices, dims, flags, strict=True)
    ]


def _start_dtype(starts: Sequence[Any]) -> np.dtype[Any]:
    """The dtype of the first start that is not a Python integer."""
    given = [aval_of(start).dtype for start in starts if not isinstance(start, int)]
    dtype: np.dtype[Any] = given[0] if given else dtypes.canonicalize_dtype(_INT64)
    return dtype


def _able_to_hold(index: Any, size: int) -> Any:
    """Indices of a dtype in which `index + size` does not wrap around."""
    if isinstance(index, int):
        return index
    dtype = aval_of(index).dtype
    if dtype.itemsize >= 4 or not dtypes.issubdtype(dtype, np.signedinteger):
        return index
    if size <= dtypes.iinfo(dtype).max:
        return index
    return creation.convert_element_type(index, np.int32)


def _start(name: str, start: Any, size: int, allow_negative: bool, dtype: np.dtype[Any]) -> Any:
    """A start that counts from the front."""
    if isinstance(start, (int, np.integer)) and not isinstance(start, bool):
        if start < 0 and not allow_negative:
            expected = "starts from 0 on, where allow_negative_indices is False"
            error(ValueError, name, f"the start {start} is negative.", expected=expected)
        number = int(start) + (size if start < 0 else 0)
        return (dtype if isinstance(start, int) else aval_of(start).dtype).type(number)
    aval = aval_of(start)
    if not allow_negative or not dtypes.issubdtype(aval.dtype, np.signedinteger):
        return start
    kind = aval.dtype.type
    counts_back = binary.lt(start, kind(0))
    strong = creation.convert_element_type(start, aval.dtype) if aval.weak_type else start
    return binary.select_n(counts_back, start, binary.add(strong, kind(size)))


def dynamic_slice(
    operand: ArrayLike,
    start_indices: Array | Sequence[ArrayLike],
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """Extracts a slice of `slice_sizes` from `start_indices`, which may be traced.

    The starts are clamped, so that the slice lies inside the operand.

    Shapes:     operand: T[s], starts: int[] for each dimension or int[ndim] -> T[slice_sizes].
    Derivative: transposes to dynamic_update_slice.
    Lowers to:  stablehlo.dynamic_slice.

    Raises:
        ValueError: the number of starts is not that of dimensions.
        TypeError: starts or sizes do not fit the operand.

    Example:
        >>> jax.jit(lambda i: lax.dynamic_slice(jnp.arange(10), (i,), (3,)))(2)
        Array([2, 3, 4], dtype=int32)
        >>> lax.dynamic_slice(jnp.arange(10), (9,), (3,))
        Array([7, 8, 9], dtype=int32)
    """
    starts = _starts("lax.dynamic_slice", operand, start_indices, allow_negative_indices)
    sizes = families.int_tuple(slice_sizes, "lax.dynamic_slice", "slice_sizes")
    return dynamic_slice_p.bind(operand, *starts, slice_sizes=sizes)


def dynamic_update_slice(
    operand: ArrayLike,
    update: ArrayLike,
    start_indices: Array | Sequence[ArrayLike],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """Replaces the slice of `operand` at `start_indices`, which may be traced, by `update`.

    The starts are clamped, so that the update lies inside the operand.

    Shapes:     operand: T[s], update: T[t], starts: int[] for each dimension -> T[s].
    Derivative: the update's cotangent is a dynamic_slice.
    Lowers to:  stablehlo.dynamic_update_slice.

    Raises:
        ValueError: the number of starts is not that of dimensions.
        TypeError: starts or update do not fit the operand.

    Example:
        >>> lax.dynamic_update_slice(jnp.zeros(5, jnp.int32), jnp.array([1, 2]), (3,))
        Array([0, 0, 0, 1, 2], dtype=int32)
        >>> lax.dynamic_update_slice(jnp.zeros(5, jnp.int32), jnp.array([1, 2]), (4,))
        Array([0, 0, 0, 1, 2], dtype=int32)
    """
    starts = _starts("lax.dynamic_update_slice", operand, start_indices, allow_negative_indices)
    return dynamic_update_slice_p.bind(operand, update, *starts)


def slice_in_dim(
    operand: ArrayLike,
    start_index: SupportsIndex | None,
    limit_index: SupportsIndex | None,
    stride: int = 1,
    axis: int = 0,
) -> Array:
    """Extracts a slice along one dimension; negative bounds count from the end.

    Example:
        >>> lax.slice_in_dim(jnp.array([[1, 2, 3], [4, 5, 6]]), -2, None, axis=1)
        Array([[2, 3],
               [5, 6]], dtype=int32)
    """
    dims = aval_of(operand).shape
    axis = families.canonicalize_axis(axis, len(dims), "lax.slice_in_dim")
    n = dims[axis]
    start = 0 if start_index is None else operator.index(start_index)
    limit = n if limit_index is None else operator.index(limit_index)
    starts, limits, steps = [0] * len(dims), list(dims), [1] * len(dims)
    starts[axis] = start + n if start < 0 else start
    limits[axis] = limit + n if limit < 0 else limit
    steps[axis] = operator.index(stride)
    return slice(operand, starts, limits, steps)


def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """One element along a dimension, at a static index.

    Raises:
        IndexError: the position is out of range.

    Example:
        >>> lax.index_in_dim(jnp.array([[1, 2], [3, 4]]), 1)
        Array([[3, 4]], dtype=int32)
        >>> lax.index_in_dim(jnp.array([[1, 2], [3, 4]]), -1, axis=1, keepdims=False)
        Array([2, 4], dtype=int32)
    """
    dims = aval_of(operand).shape
    axis = families.canonicalize_axis(axis, len(dims), "lax.index_in_dim")
    n = dims[axis]
    position = operator.index(index)
    wrapped = position + n if position < 0 else position
    if not 0 <= wrapped < n:
        error(IndexError, "lax.index_in_dim", f"index {position} is out of range.", got=f"size {n}")
    out = slice_in_dim(operand, wrapped, wrapped + 1, 1, axis)
    return out if keepdims else shape.squeeze(out, (axis,))


def dynamic_slice_in_dim(
    operand: ArrayLike,
    start_index: ArrayLike,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """`dynamic_slice` along one dimension.

    Example:
        >>> lax.dynamic_slice_in_dim(jnp.array([[1, 2, 3], [4, 5, 6]]), 1, 2, axis=1)
        Array([[2, 3],
               [5, 6]], dtype=int32)
    """
    dims = aval_of(operand).shape
    axis = families.canonicalize_axis(axis, len(dims), "lax.dynamic_slice_in_dim")
    starts: list[Any] = [0] * len(dims)
    starts[axis] = start_index
    sizes = [*dims[:axis], operator.index(slice_size), *dims[axis + 1 :]]
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=allow_negative_indices)


def dynamic_index_in_dim(
    operand: ArrayLike,
    index: ArrayLike,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """One element along a dimension, at an index that may be traced.

    Example:
        >>> lax.dynamic_index_in_dim(jnp.array([[1, 2], [3, 4]]), 1, keepdims=False)
        Array([3, 4], dtype=int32)
    """
    axis = families.canonicalize_axis(axis, aval_of(operand).ndim, "lax.dynamic_index_in_dim")
    out = dynamic_slice_in_dim(
        operand, index, 1, axis, allow_negative_indices=allow_negative_indices
    )
    return out if keepdims else shape.squeeze(out, (axis,))


def dynamic_update_slice_in_dim(
    operand: ArrayLike,
    update: ArrayLike,
    start_index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """`dynamic_update_slice` along one dimension.

    Example:
        >>> lax.dynamic_update_slice_in_dim(jnp.zeros((2, 3)), jnp.ones((2, 1)), 2, axis=1)
        Array([[0., 0., 1.],
               [0., 0., 1.]], dtype=float32)
    """
    axis = families.canonicalize_axis(
        axis, aval_of(operand).ndim, "lax.dynamic_update_slice_in_dim"
    )
    starts: list[Any] = [0] * aval_of(operand).ndim
    starts[axis] = start_index
    return dynamic_update_slice(
        operand, update, starts, allow_negative_indices=allow_negative_indices
    )


def dynamic_update_index_in_dim(
    operand: ArrayLike,
    update: ArrayLike,
    index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Replaces one element along a dimension, at an index that may be traced.

    Example:
        >>> lax.dynamic_update_index_in_dim(jnp.zeros((2, 3)), jnp.ones(2), 1, axis=1)
        Array([[0., 1., 0.],
               [0., 1., 0.]], dtype=float32)
    """
    axis = families.canonicalize_axis(
        axis, aval_of(operand).ndim, "lax.dynamic_update_index_in_dim"
    )
    if aval_of(update).ndim != aval_of(operand).ndim:
        update = shape.expand_dims(update, (axis,))
    return dynamic_update_slice_in_dim(
        operand, update, index, axis, allow_negative_indices=allow_negative_indices
    )


def index_take(src: ArrayLike, idxs: Sequence[Any], axes: Sequence[int]) -> Array:
    """Takes elements at indices along some dimensions; indices wrap around.

    Args:
        src: the array.
        idxs: for each of the axes a vector of integers, all of one length.
        axes: ascending dimensions of `src`.

    Shapes:     src: T[s], idxs: int[n] … -> T[n, s without axes].
    Derivative: transposes to scatter_add.
    Lowers to:  stablehlo.gather.

    Raises:
        TypeError: the vectors do not fit together, or the axes are not ascending.

    Example:
        >>> x, rows, columns = jnp.array([[1, 2], [3, 4]]), jnp.array([0, -1]), jnp.array([1, 0])
        >>> lax.index_take(x, (rows, columns), axes=(0, 1))
        Array([2, 3], dtype=int32)
    """
    dims = tuple(map(operator.index, axes))
    source = aval_of(src)
    columns = [_wrapped(idx, source.shape[d]) for idx, d in zip(idxs, dims, strict=True)]
    index = shape.concatenate([shape.expand_dims(column, (1,)) for column in columns], 1)
    numbers = GatherDimensionNumbers(
        offset_dims=tuple(range(1, source.ndim - len(dims) + 1)),
        collapsed_slice_dims=dims,
        start_index_map=dims,
    )
    sizes = [1 if d in dims else n for d, n in enumerate(source.shape)]
    return gather_scatter.gather(src, index, numbers, sizes)


def _wrapped(index: Any, size: int) -> Any:
    """Positions modulo a size, from 0 to `size - 1`."""
    index = _able_to_hold(index, size)
    kind = aval_of(index).dtype.type
    rest = binary.rem(index, kind(size))
    return binary.select_n(binary.lt(rest, kind(0)), rest, binary.add(rest, kind(size)))
