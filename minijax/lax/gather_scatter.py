"""Gather and scatter: windows of an array, from starts given by an array of indices.

Gather reads windows, scatter combines updates with them; each appears in the other's derivatives.
What happens out of range is the `mode`, which `lax/gather_numbers.py` explains together with the
dimension numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minijax.core import dtypes, tree, vma
from minijax.core.aval import Shape, ShapedArray, aval_of, result_types, shaped_array
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.meshes import PartitionSpec
from minijax.core.primitive import Batched, Cotangents, Dual, Primitive, Tangents, Zero
from minijax.interpreters import checking, staging
from minijax.interpreters.checking import INDEX, Fault, check, is_checking
from minijax.interpreters.jvp import UndefinedPrimal, is_linear
from minijax.interpreters.structural import (
    add_tangents,
    full,
    in_front,
    instantiate,
    moveaxis,
    to_batch_dim,
    zeros,
)
from minijax.lax import binary, creation, families, gather_numbers, shape, shardings, unary
from minijax.lax.families import Avals, BatchDims, Params, Values
from minijax.lax.gather_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from minijax.lax.reduction import attains, region_of_jaxpr, stage_reducer
from minijax.lax.shardings import by_keys, drops_nan
from minijax.lowering.module import lower_function
from minijax.lowering.stablehlo import LoweringContext, Value
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.sharding import rules


class Gather(Primitive):
    """Windows of `x` of sizes `slice_sizes`, from starts in the last dimension of `indices`.

    Shapes: x: T[s], indices: int[b, n] -> T[b with the window's dimensions at offset_dims].
    Linear in x.
    """

    name = "gather"

    @result_types.function
    def abstract_eval(self, x: ShapedArray, indices: ShapedArray, **params: Any) -> ShapedArray:
        return gather_numbers.gathered_type(
            x, indices, params["dimension_numbers"], params["slice_sizes"]
        )

    def shard(self, avals: Avals, outs: Avals, **params: Any) -> PartitionSpec:
        numbers, sizes = params["dimension_numbers"], params["slice_sizes"]
        return shardings.gathered_spec(self, avals, numbers, sizes)

    def lower(
        self,
        ctx: LoweringContext,
        x: Value,
        indices: Value,
        *,
        dimension_numbers: GatherDimensionNumbers,
        slice_sizes: Shape,
        indices_are_sorted: bool,
        unique_indices: bool,
        mode: GatherScatterMode,
        fill_value: Any,
    ) -> Any:
        n = dimension_numbers
        operand, starts = ctx.avals_in
        text = (
            f"#stablehlo.gather<offset_dims = {list(n.offset_dims)}, "
            f"collapsed_slice_dims = {list(n.collapsed_slice_dims)}, "
            f"operand_batching_dims = {list(n.operand_batching_dims)}, "
            f"start_indices_batching_dims = {list(n.start_indices_batching_dims)}, "
            f"start_index_map = {list(n.start_index_map)}, index_vector_dim = {starts.ndim - 1}>"
        )
        attributes = {
            "dimension_numbers": ctx.attribute(text),
            "slice_sizes": ctx.i64_array(slice_sizes),
            "indices_are_sorted": ctx.boolean(indices_are_sorted),
        }
        out = shardings.chosen(
            ctx, x, lambda x, kind: ctx.op("stablehlo.gather", [x, indices], attributes, kind)
        )
        if mode in (GatherScatterMode.CLIP, GatherScatterMode.PROMISE_IN_BOUNDS):
            return out
        limits = [operand.shape[d] - slice_sizes[d] for d in n.start_index_map]
        inside = gather_numbers.indices_inside(ctx, indices, starts, limits)
        return gather_numbers.fill_outside(ctx, out, inside, n.offset_dims, fill_value)

    def jvp(self, primals: Values, tangents: Tangents, **params: Any) -> Dual:
        x, indices = primals
        out = self.bind(x, indices, **params)
        if type(tangents[0]) is Zero:
            return out, Zero.like(out)
        fill_value = gather_numbers.fill_value_of_mode(params["mode"], 0)
        return out, self.bind(tangents[0], indices, **{**params, "fill_value": fill_value})

    def transpose(
        self,
        ct: Array,
        x: UndefinedPrimal,
        indices: Array,
        *,
        dimension_numbers: GatherDimensionNumbers,
        slice_sizes: Shape,
        fill_value: object,
        **params: Any,
    ) -> Cotangents:
        # Elements that were read more than once add their cotangents up.
        numbers = ScatterDimensionNumbers(*dimension_numbers)
        return scatter_add(zeros(x.aval.cotangent_aval()), indices, ct, numbers, **params), None

    def batch(self, size: int, args: Values, dims: BatchDims, **params: Any) -> Batched:
        x, indices = in_front(args, dims)
        x_mapped, indices_mapped = (d is not None for d in dims)
        numbers = params["dimension_numbers"]
        params["dimension_numbers"] = gather_numbers.with_batch(numbers, indices_mapped, x_mapped)
        if x_mapped:
            count = min(size, 1) if indices_mapped else size
            params["slice_sizes"] = (count, *params["slice_sizes"])
        # What each example promises of its own indices need not hold of all together.
        params["indices_are_sorted"] &= not indices_mapped
        params["unique_indices"] &= x_mapped or not indices_mapped
        return self.bind(x, indices, **params), 0


@checking.faults.rule(Gather)
def _faults_of_gather(
    primitive: Gather, args: Sequence[Array], outs: Values, **params: Any
) -> list[Fault]:
    if params["mode"] is not GatherScatterMode.PROMISE_IN_BOUNDS:
        return []
    x, indices = args
    dims = params["dimension_numbers"].start_index_map
    return gather_numbers.windows_outside(x, indices, dims, params["slice_sizes"])


vma.linear_in.set(((0,),), Gather)


gather_p = Gather()


def gather(
    operand: ArrayLike,
    start_indices: ArrayLike,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: object = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Windows of `operand`, from starts in the last dimension of `start_indices`.

    Args:
        operand: the array.
        start_indices: integers, one vector for each window.
        dimension_numbers: how the dimensions belong together.
        slice_sizes: the window's size in each dimension of the operand.
        unique_indices: a promise that no window is read twice.
        indices_are_sorted: a promise that the starts are in ascending order.
        mode: what happens out of range, see `GatherScatterMode`; None promises that nothing is.
        fill_value: what is read there in mode "fill"; None is NaN, or an extreme integer.

    Shapes:     operand: T[s], start_indices: int[b, n] -> T[b with the window at offset_dims].
    Derivative: transposes to scatter_add.
    Lowers to:  stablehlo.gather.

    Raises:
        TypeError: shapes and dimension numbers do not fit.
        ValueError: the mode is not known, or the indices are not integers.

    Example:
        >>> numbers = lax.GatherDimensionNumbers((), (0,), start_index_map=(0,))
        >>> lax.gather(jnp.array([10, 20, 30]), jnp.array([[2], [0]]), numbers, slice_sizes=(1,))
        Array([30, 10], dtype=int32)
    """
    kind = GatherScatterMode.PROMISE_IN_BOUNDS if mode is None else GatherScatterMode.from_any(mode)
    if fill_value is None:
        fill_value = gather_numbers.fill_of_dtype(aval_of(operand).dtype)
    else:
        fill_value = np.asarray(fill_value).item()
    return gather_p.bind(
        operand,
        start_indices,
        dimension_numbers=GatherDimensionNumbers(*map(tuple, dimension_numbers)),
        slice_sizes=families.int_tuple(slice_sizes, "lax.gather", "slice_sizes"),
        indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices),
        mode=kind,
        fill_value=gather_numbers.fill_value_of_mode(kind, fill_value),
    )


_EXTREMA = {"scatter-max": "stablehlo.maximum", "scatter-min": "stablehlo.minimum"}


@dataclass(eq=False, repr=False)
class Scatter(Primitive):
    """Combines updates with windows of `x`, whose starts are in the last dimension of `indices`.

    Shapes: x: T[s], indices: int[b, n], updates: T[b with window dimensions] -> T[s].

    Args:
        name: the primitive's name.
        combine: the function of `lax` that combines old and new; None overwrites.
        tangent: the derivative, `(primals, x_dot, updates_dot, out, params) -> tangent`; None where
            the operation is linear in old and new elements together.
        transposes: for the operand and for the updates, `(ct, x, indices, updates, params) ->
            cotangent`; None where the operation is not linear.
    """

    name: str = field()
    combine: Callable[[Any, Any], Any] | None
    tangent: Callable[..., Any] | None
    transposes: tuple[Callable[..., Any] | None, Callable[..., Any] | None] = (None, None)

    def __post_init__(self) -> None:
        super().__init__(self.name)
        self.public_name = "lax." + self.name.replace("-", "_")
        self._update_jaxprs: dict[Any, ClosedJaxpr] = {}

    def update_jaxpr(self, dtype: np.dtype[Any]) -> ClosedJaxpr | None:
        """How old and new elements of a dtype are combined; None: the new one replaces the old.

        Raises:
            TypeError: the operation does not take the dtype.
        """
        combine = self.combine
        if combine is None:
            return None
        found = self._update_jaxprs.get(dtype)
        if found is None:
            scalar = shaped_array((), dtype)
            jaxpr, consts = staging.stage(lambda old, new: [combine(old, new)], [scalar, scalar])
            found = self._update_jaxprs[dtype] = ClosedJaxpr(jaxpr, consts)
        return found

    def apply(self, x: Array, indices: Array, updates: Array, params: Params) -> Any:
        """Binds this scatter with the parameters of any other."""
        combining = {"update_jaxpr": self.update_jaxpr(aval_of(x).dtype), "update_consts": ()}
        return self.bind(x, indices, updates, **{**params, **combining})

    @result_types.function
    def abstract_eval(
        self, x: ShapedArray, indices: ShapedArray, updates: ShapedArray, **params: Any
    ) -> ShapedArray:
        gather_numbers.check_scatter(
            self.public_name, x, indices, updates, params["dimension_numbers"]
        )
        return x

    def shard(self, avals: Avals, outs: Avals, **params: Any) -> PartitionSpec:
        numbers = params["dimension_numbers"]
        windows = gather_numbers.window_sizes(avals[0], avals[2], numbers)
        return shardings.scattered_spec(self, avals, numbers, windows)

    def lower(
        self, ctx: LoweringContext, x: Value, indices: Value, updates: Value, **params: Any
    ) -> Any:
        n, update_jaxpr = params["dimension_numbers"], params["update_jaxpr"]
        operand, starts, new = ctx.avals_in
        op = _EXTREMA.get(self.name, "")
        if drops_nan(ctx, op, operand.dtype, ctx.module.partitioning.partitions):

            def scattered(x: Array, at: Array, new: Array) -> list[Any]:
                return [by_keys(op, lambda x, new: self.apply(x, at, new, params), x, new)]

            return lower_function(ctx, scattered, x, indices, updates)[0]
        sizes = gather_numbers.window_sizes(operand, new, n)
        limits = [operand.shape[d] - sizes[d] for d in n.scatter_dims_to_operand_dims]
        if max(limits, default=0) > dtypes.iinfo(starts.dtype).max:
            # XLA compares indices with bounds in the dtype of the indices.
            starts = shaped_array(starts.shape, np.dtype(np.int32))
            indices = ctx.convert(indices, starts.shape, starts.dtype)
        if params["mode"] is GatherScatterMode.CLIP:
            indices = gather_numbers.clamped(ctx, indices, starts, limits)
        text = (
            f"#stablehlo.scatter<update_window_dims = {list(n.update_window_dims)}, "
            f"inserted_window_dims = {list(n.inserted_window_dims)}, "
            f"input_batching_dims = {list(n.operand_batching_dims)}, "
            f"scatter_indices_batching_dims = {list(n.scatter_indices_batching_dims)}, "
            f"scatter_dims_to_operand_dims = {list(n.scatter_dims_to_operand_dims)}, "
            f"index_vector_dim = {starts.ndim - 1}>"
        )
        scalar = ctx.tensor_type((), operand.dtype)
        region = (
            ([scalar, scalar], lambda _, old, update: [update])
            if update_jaxpr is None
            else region_of_jaxpr(ctx, update_jaxpr)
        )
        return ctx.ops(
            "stablehlo.scatter",
            [x, indices, updates],
            {
                "scatter_dimension_numbers": ctx.attribute(text),
                "indices_are_sorted": ctx.boolean(params["indices_are_sorted"]),
                "unique_indices": ctx.boolean(params["unique_indices"]),
            },
            regions=[region],
        )[0]

    def jvp(self, primals: Values, tangents: Tangents, **params: Any) -> Dual:
        out = self.bind(*primals, **params)
        if type(tangents[0]) is type(tangents[2]) is Zero:
            return out, Zero.like(out)
        x_dot, _, updates_dot = tangents
        if self.tangent is not None:
            return out, self.tangent(primals, x_dot, updates_dot, out, params)
        return out, self.bind(instantiate(x_dot), primals[1], instantiate(updates_dot), **params)

    def transpose(
        self, ct: Array, x: Array, indices: Array, updates: Array, **params: Any
    ) -> Cotangents:
        results: list[Any] = [None, None]
        for i, (operand, rule) in enumerate(zip((x, updates), self.transposes, strict=True)):
            if is_linear(operand):
                if rule is None:
                    self._missing("transposition: it is not linear (transpose)")
                results[i] = rule(ct, x, indices, updates, params)
        return results[0], None, results[1]

    def batch(self, size: int, args: Values, dims: Sequence[Any], **params: Any) -> Batched:
        x, updates = (to_batch_dim(args[i], dims[i], 0, size) for i in (0, 2))
        is_mapped = dims[1] is not None
        indices = moveaxis(args[1], dims[1], 0) if is_mapped else args[1]
        numbers = params["dimension_numbers"]
        params["dimension_numbers"] = gather_numbers.with_batch(numbers, is_mapped)
        params["indices_are_sorted"] &= not is_mapped
        return self.bind(x, indices, updates, **params), 0


@checking.faults.rule(Scatter)
def _faults_of_scatter(
    primitive: Scatter, args: Sequence[Array], outs: Values, **params: Any
) -> list[Fault]:
    if params["mode"] is not GatherScatterMode.PROMISE_IN_BOUNDS:
        return []
    x, indices, updates = args
    n = params["dimension_numbers"]
    sizes = gather_numbers.window_sizes(aval_of(x), aval_of(updates), n)
    return gather_numbers.windows_outside(x, indices, n.scatter_dims_to_operand_dims, sizes)


def _windows_at(x: Array, indices: Array, update_shape: Shape, params: Params) -> Any:
    """The windows of `x` that a scatter with these parameters writes; zero where it drops."""
    aval = aval_of(x)
    n = params["dimension_numbers"]
    return gather_p.bind(
        x,
        indices,
        dimension_numbers=GatherDimensionNumbers(*n),
        slice_sizes=gather_numbers.window_sizes(aval, aval.with_shape(update_shape), n),
        indices_are_sorted=params["indices_are_sorted"],
        unique_indices=params["unique_indices"],
        mode=params["mode"],
        fill_value=gather_numbers.fill_value_of_mode(params["mode"], 0),
    )


def _tangent_of_product(
    primals: Sequence[Array], x_dot: Any, updates_dot: Any, out: Array, params: Params
) -> Any:
    """The derivative of multiplying, where no element is written twice."""
    x, indices, updates = primals
    total: Any = Zero.like(out)
    if type(x_dot) is not Zero:
        total = scatter_mul_p.bind(x_dot, indices, updates, **params)
    if type(updates_dot) is not Zero:
        if not params["unique_indices"]:
            problem = "the derivative with respect to the updates needs unique indices."
            fix = "unique_indices=True, if no element is written twice"
            error(NotImplementedError, "lax.scatter_mul", problem, fix=fix)
        spread = scatter_add_p.apply(zeros(aval_of(x)), indices, updates_dot, params)
        total = add_tangents(total, binary.mul(x, spread))
    return total


def _tangent_of_overwriting(
    primals: Sequence[Array], x_dot: Array, updates_dot: Array, out: Array, params: Params
) -> Any:
    """The derivative of overwriting: that of the update that was written last."""
    x, indices, updates = primals
    if params["update_jaxpr"] is not None:
        fix = "gather the elements, compute, and scatter the results"
        error(NotImplementedError, "lax.scatter_apply", "there is no derivative.", fix=fix)
    x_dot, updates_dot = instantiate(x_dot), instantiate(updates_dot)
    if params["unique_indices"]:
        return scatter_p.bind(x_dot, indices, updates_dot, **params)
    # Each update carries a number; the numbers that remain tell which updates were last.
    dims, count = aval_of(updates).shape, aval_of(updates).size
    dtype = np.dtype(np.int32 if count < 2**31 - 1 else np.int64)
    one, zero = np.ones((), dtype)[()], np.zeros((), dtype)[()]
    numbers = shape.reshape(binary.add(creation.iota(dtype, count), one), dims)
    last = scatter_p.bind(full(aval_of(x).shape, 0, dtype), indices, numbers, **params)
    written = binary.eq(_windows_at(last, indices, dims, params), numbers)
    kept = binary.select(written, updates_dot, creation.full_like(updates_dot, 0))
    blank = creation.full_like(x_dot, 0)
    untouched = binary.select(binary.eq(last, zero), x_dot, blank)
    return add_tangents(untouched, scatter_add_p.apply(blank, indices, kept, params))


def _tangent_of_extremum(
    primals: Sequence[Array], x_dot: Array, updates_dot: Array, out: Array, params: Params
) -> Any:
    """The derivative of a minimum or maximum: the mean of the tangents of all that attain it."""
    x, indices, updates = primals
    x_dot, updates_dot = instantiate(x_dot), instantiate(updates_dot)
    dtype = aval_of(x_dot).dtype
    chosen = _windows_at(out, indices, aval_of(updates).shape, params)
    own = creation.convert_element_type(attains(x, out), dtype)
    given = creation.convert_element_type(attains(updates, chosen), dtype)

    def sum_over_windows(values: Array) -> Any:
        blank = full(aval_of(x).shape, 0, dtype)
        return scatter_add_p.apply(blank, indices, values, params)

    counts = binary.add(own, sum_over_windows(given))
    moved = sum_over_windows(binary.mul(given, updates_dot))
    total = add_tangents(binary.mul(own, x_dot), moved)
    return binary.div(total, binary.max(counts, np.ones((), dtype)[()]))


def _cotangent_outside(ct: Array, x: Array, indices: Array, updates: Array, params: Params) -> Any:
    """What was overwritten has no influence."""
    window = aval_of(ct).with_shape(
        (updates.aval if is_linear(updates) else aval_of(updates)).shape
    )
    return scatter_p.bind(ct, indices, zeros(window), **params)


def _cotangent_inside(ct: Array, x: Array, indices: Array, updates: Array, params: Params) -> Any:
    return _windows_at(ct, indices, updates.aval.shape, params)


scatter_p = Scatter(
    "scatter", None, _tangent_of_overwriting, (_cotangent_outside, _cotangent_inside)
)
scatter_add_p = Scatter("scatter-add", binary.add, None, (lambda ct, *_: ct, _cotangent_inside))
scatter_sub_p = Scatter(
    "scatter-sub",
    binary.sub,
    None,
    (lambda ct, *_: ct, lambda *args: unary.neg(_cotangent_inside(*args))),
)
# Adding, subtracting and replacing are linear in old and new elements together.
rules.tells_memory.set(True, Scatter)
vma.linear_in.set(((0, 2),), scatter_p, scatter_add_p, scatter_sub_p)
scatter_mul_p: Scatter = Scatter(
    "scatter-mul",
    binary.mul,
    _tangent_of_product,
    (lambda ct, x, *others: scatter_mul_p.bind(ct, *others[:2], **others[2]), None),
)
scatter_min_p = Scatter("scatter-min", binary.min, _tangent_of_extremum)
scatter_max_p = Scatter("scatter-max", binary.max, _tangent_of_extremum)


def _public(primitive: Scatter, verb: str, derivative: str, shown: str) -> Callable[..., Array]:
    """The public function of a scatter; `shown` is what its example prints."""
    name = primitive.name.replace("-", "_")

    def function(
        operand: ArrayLike,
        scatter_indices: ArrayLike,
        updates: ArrayLike,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: GatherScatterMode | str | None = None,
    ) -> Array:
        numbers = ScatterDimensionNumbers(*map(tuple, dimension_numbers))
        if mode is None and is_checking(INDEX):
            sizes = gather_numbers.window_sizes(aval_of(operand), aval_of(updates), numbers)
            dims = numbers.scatter_dims_to_operand_dims
            for fault in gather_numbers.windows_outside(operand, scatter_indices, dims, sizes):
                check(fault._replace(name=primitive.name))
        return primitive.bind(
            operand,
            scatter_indices,
            updates,
            dimension_numbers=numbers,
            indices_are_sorted=bool(indices_are_sorted),
            unique_indices=bool(unique_indices),
            mode=GatherScatterMode.from_any(mode),
            update_jaxpr=primitive.update_jaxpr(aval_of(operand).dtype),
            update_consts=(),
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{verb}, at windows whose starts are in the last dimension of the indices.

    Shapes:     operand: T[s], scatter_indices: int[b, n], updates: T[b with window dims] -> T[s].
    Derivative: {derivative}
    Lowers to:  stablehlo.scatter.
    Source:     mirrors jax.lax.{name} (0.10).

    Raises:
        TypeError: shapes, dtypes and dimension numbers do not fit.
        ValueError: the mode is not known, or the indices are no integers.

    Example:
        >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
        >>> x, indices, updates = jnp.array([1, 2, 3]), jnp.array([[2], [0]]), jnp.array([5, -1])
        >>> lax.{name}(x, indices, updates, numbers)
        Array({shown}, dtype=int32)
    """
    return function


scatter = _public(
    scatter_p,
    "Replaces elements of `operand` by `updates`",
    "follows the update that was written last.",
    "[-1,  2,  5]",
)
scatter_add = _public(
    scatter_add_p, "Adds `updates` to elements of `operand`", "linear in both.", "[0, 2, 8]"
)
scatter_sub = _public(
    scatter_sub_p,
    "Subtracts `updates` from elements of `operand`",
    "linear in both.",
    "[ 2,  2, -2]",
)
scatter_mul = _public(
    scatter_mul_p,
    "Multiplies elements of `operand` by `updates`",
    "with respect to the updates for unique indices only.",
    "[-1,  2, 15]",
)
scatter_min = _public(
    scatter_min_p,
    "Lowers elements of `operand` to `updates`",
    "ties share equally.",
    "[-1,  2,  3]",
)
scatter_max = _public(
    scatter_max_p, "Raises elements of `operand` to `updates`", "ties share equally.", "[1, 2, 5]"
)

_, _LEAF = tree.flatten(0)


def scatter_apply(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    func: Callable[[Any], Any],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: object = None,
) -> Array:
    """Applies a function to elements of `operand`, once for each time that they are named.

    Args:
        operand: the array.
        scatter_indices: the starts of windows, in the last dimension.
        func: takes a scalar, and returns one of the same dtype.
        dimension_numbers: how the dimensions belong together.
        update_shape: the shape that updates would have.
        indices_are_sorted: a promise that the starts are in ascending order.
        unique_indices: a promise that no element is named twice.
        mode: what happens out of range, see `GatherScatterMode`.

    Shapes:     operand: T[s], scatter_indices: int[b, n] -> T[s].
    Derivative: none.
    Lowers to:  stablehlo.scatter.

    Raises:
        TypeError: shapes and dimension numbers do not fit, or the function changes the dtype.
        ValueError: the mode is not known, or the function returns no scalar.
        NotImplementedError: the function uses values of a surrounding trace.

    Example:
        >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
        >>> x, index = jnp.array([1, 2, 3]), jnp.array([[0], [2]])
        >>> lax.scatter_apply(x, index, lambda n: n * n, numbers, update_shape=(2,))
        Array([1, 2, 9], dtype=int32)
    """
    aval = aval_of(operand)
    name = "lax.scatter_apply"
    sizes = families.int_tuple(update_shape, name, "update_shape")
    jaxpr = stage_reducer(name, lambda old, _: func(old), [operand], _LEAF)
    if jaxpr.out_avals[0].dtype != aval.dtype:
        problem = "the function changes the dtype."
        error(TypeError, name, problem, got=f"{jaxpr.out_avals[0]} for {jaxpr.in_avals[0]}")
    return scatter_p.bind(
        operand,
        scatter_indices,
        full(sizes, 0, aval.dtype),
        dimension_numbers=ScatterDimensionNumbers(*map(tuple, dimension_numbers)),
        indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices),
        mode=GatherScatterMode.from_any(mode),
        update_jaxpr=jaxpr,
        update_consts=(),
    )
