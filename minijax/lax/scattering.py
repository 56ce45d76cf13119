"""Scatter: updates written into, or combined with, windows of an array.

The counterpart of `gather.py`: the two are each other's transposes.  Updates out of range are
dropped, unless the mode says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import Shape, ShapedArray, aval_of
from minijax.core.errors import message
from minijax.core.primitive import Primitive
from minijax.interpreters.structural import (
    add_tangents,
    full,
    instantiate,
    moveaxis,
    to_batch_dim,
    zeros,
)
from minijax.interpreters.tangents import Zero, is_linear
from minijax.lax import binary, convert, gathering, choice, shape
from minijax.lax import creation, unary
from minijax.lax.gathering import GatherDimensionNumbers, GatherScatterMode, gather_p, shifted


class ScatterDimensionNumbers(NamedTuple):
    """How dimensions of a scatter's operand, indices and updates belong together.

    Attributes:
        update_window_dims: dimensions of the updates that run over the window.
        inserted_window_dims: dimensions of the operand in which the window has size 1.
        scatter_dims_to_operand_dims: the operand's dimension of each component of an index.
        operand_batching_dims: dimensions of the operand that run along with the indices.
        scatter_indices_batching_dims: dimensions of the indices that they run along with.
    """

    update_window_dims: Shape
    inserted_window_dims: Shape
    scatter_dims_to_operand_dims: Shape
    operand_batching_dims: Shape = ()
    scatter_indices_batching_dims: Shape = ()


class Scatter(Primitive):
    """Combines updates with windows of `x`, whose starts are in the last dimension of `indices`.

    Shapes: x: T[s], indices: int[b, n], updates: T[b with window dimensions] -> T[s].

    Args:
        name: the primitive's name.
        op: the StableHLO operation that combines old and new, or None to overwrite.
        tangent: the derivative; see the functions below.
    """

    def __init__(self, name: str, op: str | None, tangent: Callable[..., Any]) -> None:
        super().__init__(name)
        self.op = op
        self.tangent = tangent

    def abstract_eval(
        self,
        x: ShapedArray,
        indices: ShapedArray,
        updates: ShapedArray,
        *,
        dimension_numbers: ScatterDimensionNumbers,
        **_: Any,
    ) -> ShapedArray:
        _check(self.name, x, indices, updates, dimension_numbers)
        return x

    def lower(
        self,
        ctx: Any,
        x: Any,
        indices: Any,
        updates: Any,
        *,
        dimension_numbers: ScatterDimensionNumbers,
        indices_are_sorted: bool,
        unique_indices: bool,
        mode: GatherScatterMode,
    ) -> Any:
        n = dimension_numbers
        operand, starts, new = ctx.avals_in
        if mode is GatherScatterMode.CLIP:
            indices = _clamped(ctx, indices, starts, _limits(operand, new, n))
        text = (
            f"#stablehlo.scatter<update_window_dims = {list(n.update_window_dims)}, "
            f"inserted_window_dims = {list(n.inserted_window_dims)}, "
            f"input_batching_dims = {list(n.operand_batching_dims)}, "
            f"scatter_indices_batching_dims = {list(n.scatter_indices_batching_dims)}, "
            f"scatter_dims_to_operand_dims = {list(n.scatter_dims_to_operand_dims)}, "
            f"index_vector_dim = {starts.ndim - 1}>"
        )
        scalar = ctx.tensor_type((), operand.dtype)
        op = _boolean_op(self.op) if operand.dtype == np.bool_ else self.op

        def combine(inner: Any, old: Any, update: Any) -> list[Any]:
            return [update if op is None else inner.op(op, [old, update], None, scalar)]

        return ctx.ops(
            "stablehlo.scatter",
            [x, indices, updates],
            {
                "scatter_dimension_numbers": ctx.attribute(text),
                "indices_are_sorted": ctx.boolean(indices_are_sorted),
                "unique_indices": ctx.boolean(unique_indices),
            },
            regions=[([scalar, scalar], combine)],
        )[0]

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        out = self.bind(*primals, **params)
        if type(tangents[0]) is type(tangents[2]) is Zero:
            return out, Zero.like(out)
        return out, self.tangent(primals, tangents[0], tangents[2], out, params)

    def transpose(
        self, ct: Any, x: Any, indices: Any, updates: Any, **params: Any
    ) -> tuple[Any, None, Any]:
        x_ct = updates_ct = None
        n: ScatterDimensionNumbers = params["dimension_numbers"]
        if self.name in ("scatter-add", "scatter-sub"):
            x_ct = ct if is_linear(x) else None
        elif self.name == "scatter" and is_linear(x):
            known = aval_of(updates) if not is_linear(updates) else updates.aval
            hole = full(known.shape, 0, aval_of(ct).dtype)
            x_ct = self.bind(ct, indices, hole, **params)
        elif self.name == "scatter-mul" and is_linear(x) and not is_linear(updates):
            x_ct = self.bind(ct, indices, updates, **params)
        elif is_linear(x) or is_linear(updates):
            self._missing("transposition: it is not linear (transpose)")
        if is_linear(updates):
            if self.name == "scatter-mul":
                self._missing("transposition with respect to the updates (transpose)")
            updates_ct = windows_at(ct, indices, updates.aval.shape, n, params)
            updates_ct = unary.neg(updates_ct) if self.name == "scatter-sub" else updates_ct
        return x_ct, None, updates_ct

    def batch(
        self,
        size: int,
        args: Sequence[Any],
        dims: Sequence[Any],
        *,
        dimension_numbers: ScatterDimensionNumbers,
        **params: Any,
    ) -> tuple[Any, int]:
        x, indices, updates = args
        n = dimension_numbers
        x, updates = (to_batch_dim(a, d, 0, size) for a, d in ((x, dims[0]), (updates, dims[2])))
        moved = ScatterDimensionNumbers(
            update_window_dims=shifted(n.update_window_dims),
            inserted_window_dims=shifted(n.inserted_window_dims),
            scatter_dims_to_operand_dims=shifted(n.scatter_dims_to_operand_dims),
            operand_batching_dims=shifted(n.operand_batching_dims),
            scatter_indices_batching_dims=n.scatter_indices_batching_dims,
        )
        if dims[1] is None:
            numbers = moved._replace(update_window_dims=(0, *moved.update_window_dims))
        else:
            indices = moveaxis(indices, dims[1], 0)
            numbers = moved._replace(
                operand_batching_dims=(0, *moved.operand_batching_dims),
                scatter_indices_batching_dims=(0, *shifted(n.scatter_indices_batching_dims)),
            )
        return self.bind(x, indices, updates, dimension_numbers=numbers, **params), 0


def _boolean_op(op: str | None) -> str | None:
    names = {
        "stablehlo.add": "stablehlo.or",
        "stablehlo.maximum": "stablehlo.or",
        "stablehlo.multiply": "stablehlo.and",
        "stablehlo.minimum": "stablehlo.and",
    }
    return names.get(op, op) if op else None


def _window_sizes(x: ShapedArray, updates: ShapedArray, n: ScatterDimensionNumbers) -> Shape:
    """The window's size in each dimension of the operand."""
    single = (*n.inserted_window_dims, *n.operand_batching_dims)
    window = iter(updates.shape[d] for d in n.update_window_dims)
    return tuple(1 if d in single else next(window) for d in range(x.ndim))


def _limits(x: ShapedArray, updates: ShapedArray, n: ScatterDimensionNumbers) -> list[int]:
    """The largest start of each component of an index."""
    sizes = _window_sizes(x, updates, n)
    return [x.shape[d] - sizes[d] for d in n.scatter_dims_to_operand_dims]


def _clamped(ctx: Any, indices: Any, aval: ShapedArray, limits: Sequence[int]) -> Any:
    top = int(dtypes.iinfo(aval.dtype).max)
    bounds = np.array([min(limit, top) for limit in limits]).astype(aval.dtype)
    high = ctx.broadcast(ctx.constant(bounds), aval.shape, aval.dtype, [aval.ndim - 1])
    low = ctx.full(aval.shape, 0, aval.dtype)
    return ctx.op("stablehlo.clamp", [low, indices, high], None, ctx.type_of(aval))


def windows_at(
    x: Any, indices: Any, update_shape: Shape, n: ScatterDimensionNumbers, params: dict[str, Any]
) -> Any:
    """The windows of `x` that a scatter with these parameters would write."""
    aval = aval_of(x)
    sizes = _window_sizes(aval, aval.with_shape(update_shape), n)
    mode = params["mode"]
    return gather_p.bind(
        x,
        indices,
        dimension_numbers=GatherDimensionNumbers(
            offset_dims=n.update_window_dims,
            collapsed_slice_dims=n.inserted_window_dims,
            start_index_map=n.scatter_dims_to_operand_dims,
            operand_batching_dims=n.operand_batching_dims,
            start_indices_batching_dims=n.scatter_indices_batching_dims,
        ),
        slice_sizes=sizes,
        indices_are_sorted=params["indices_are_sorted"],
        unique_indices=params["unique_indices"],
        mode=mode,
        fill_value=0,
    )


def _tangent_of_sum(
    primals: Any, x_dot: Any, updates_dot: Any, out: Any, params: dict[str, Any]
) -> Any:
    """The derivative of adding: the same sum of the tangents."""
    return scatter_add_p.bind(instantiate(x_dot), primals[1], instantiate(updates_dot), **params)


def _tangent_of_difference(
    primals: Any, x_dot: Any, updates_dot: Any, out: Any, params: dict[str, Any]
) -> Any:
    return scatter_sub_p.bind(instantiate(x_dot), primals[1], instantiate(updates_dot), **params)


def _tangent_of_product(
    primals: Any, x_dot: Any, updates_dot: Any, out: Any, params: dict[str, Any]
) -> Any:
    """The derivative of multiplying, where no element is written twice."""
    x, indices, updates = primals
    total: Any = Zero.like(out)
    if type(x_dot) is not Zero:
        total = scatter_mul_p.bind(x_dot, indices, updates, **params)
    if type(updates_dot) is not Zero:
        if not params["unique_indices"]:
            raise NotImplementedError(
                message(
                    "lax.scatter_mul",
                    "the derivative with respect to the updates needs unique indices.",
                    fix="unique_indices=True, if no element is written twice",
                )
            )
        spread = scatter_add_p.bind(zeros(aval_of(x)), indices, updates_dot, **params)
        total = add_tangents(total, binary.mul(x, spread))
    return total


def _tangent_of_overwriting(
    primals: Any, x_dot: Any, updates_dot: Any, out: Any, params: dict[str, Any]
) -> Any:
    """The derivative of overwriting: that of the update that was written last."""
    x, indices, updates = primals
    x_dot, updates_dot = instantiate(x_dot), instantiate(updates_dot)
    if params["unique_indices"]:
        return scatter_p.bind(x_dot, indices, updates_dot, **params)
    # Each update carries a number; the numbers that remain tell which updates were last.
    dims = aval_of(updates).shape
    count = aval_of(updates).size
    dtype = np.dtype(np.int32 if count < 2**31 - 1 else np.int64)
    numbers = shape.reshape(
        binary.add(creation.iota(dtype, count), np.ones((), dtype)[()]), dims
    )
    blank = full(aval_of(x).shape, 0, dtype)
    last = scatter_p.bind(blank, indices, numbers, **params)
    n = params["dimension_numbers"]
    written = windows_at(last, indices, dims, n, params)
    kept = choice.select(binary.eq(written, numbers), updates_dot, creation.full_like(updates_dot, 0))
    spread = scatter_add_p.bind(creation.full_like(x_dot, 0), indices, kept, **params)
    untouched = binary.eq(last, np.zeros((), dtype)[()])
    return add_tangents(
        choice.select(untouched, x_dot, creation.full_like(x_dot, 0)), spread
    )


def _tangent_of_extremum(
    primals: Any, x_dot: Any, updates_dot: Any, out: Any, params: dict[str, Any]
) -> Any:
    """The derivative of a minimum or maximum: the mean of the tangents of all that attain it."""
    x, indices, updates = primals
    x_dot, updates_dot = instantiate(x_dot), instantiate(updates_dot)
    dtype = aval_of(x_dot).dtype
    chosen = windows_at(out, indices, aval_of(updates).shape, params["dimension_numbers"], params)
    own = convert.convert_element_type(binary.eq(x, out), dtype)
    given = convert.convert_element_type(binary.eq(updates, chosen), dtype)
    blank = full(aval_of(x).shape, 0, dtype)
    counts = binary.add(own, scatter_add_p.bind(blank, indices, given, **params))
    moved = binary.mul(given, updates_dot)
    total = add_tangents(
        binary.mul(own, x_dot), scatter_add_p.bind(blank, indices, moved, **params)
    )
    return binary.div(total, binary.max(counts, np.ones((), dtype)[()]))


scatter_p = Scatter("scatter", None, _tangent_of_overwriting)
scatter_add_p = Scatter("scatter-add", "stablehlo.add", _tangent_of_sum)
scatter_sub_p = Scatter("scatter-sub", "stablehlo.subtract", _tangent_of_difference)
scatter_mul_p = Scatter("scatter-mul", "stablehlo.multiply", _tangent_of_product)
scatter_min_p = Scatter("scatter-min", "stablehlo.minimum", _tangent_of_extremum)
scatter_max_p = Scatter("scatter-max", "stablehlo.maximum", _tangent_of_extremum)


def _check(
    name: str,
    x: ShapedArray,
    indices: ShapedArray,
    updates: ShapedArray,
    n: ScatterDimensionNumbers,
) -> None:
    public = "lax." + name.replace("-", "_")
    if not dtypes.issubdtype(indices.dtype, np.integer):
        raise TypeError(message(public, "indices must be integers.", got=str(indices)))
    if x.dtype != updates.dtype:
        raise TypeError(
            message(
                public,
                "operand and updates have different dtypes.",
                got={"operand": x, "updates": updates},
            )
        )
    single = (*n.inserted_window_dims, *n.operand_batching_dims)
    problem = None
    if not indices.ndim or indices.shape[-1] != len(n.scatter_dims_to_operand_dims):
        problem = "the last dimension of the indices must have one component for each entry of "
        problem += "scatter_dims_to_operand_dims."
    elif len(n.update_window_dims) + len(single) != x.ndim:
        problem = "window, inserted and batching dimensions must make up the operand's."
    elif updates.ndim != indices.ndim - 1 + len(n.update_window_dims):
        problem = "the rank of the updates must be that of the indices but one, plus the window's."
    elif any(m > k for m, k in zip(_window_sizes(x, updates, n), x.shape, strict=True)):
        problem = "the window of the updates must fit into the operand."
    else:
        rest = tuple(m for d, m in enumerate(updates.shape) if d not in n.update_window_dims)
        if rest != indices.shape[:-1]:
            problem = "the updates must have the indices' leading dimensions."
    if problem:
        raise TypeError(
            message(
                public,
                problem,
                got={"operand": x, "indices": indices, "updates": updates, "numbers": n},
            )
        )


def _scatter(
    primitive: Scatter,
    operand: Any,
    indices: Any,
    updates: Any,
    dimension_numbers: Any,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: Any,
) -> Any:
    return primitive.bind(
        operand,
        indices,
        updates,
        dimension_numbers=ScatterDimensionNumbers(*map(tuple, dimension_numbers)),
        indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices),
        mode=GatherScatterMode.from_any(mode),
    )


def _public(primitive: Scatter, verb: str, derivative: str) -> Callable[..., Any]:
    name = primitive.name.replace("-", "_")

    def function(
        operand: Any,
        scatter_indices: Any,
        updates: Any,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
    ) -> Any:
        return _scatter(
            primitive,
            operand,
            scatter_indices,
            updates,
            dimension_numbers,
            indices_are_sorted,
            unique_indices,
            mode,
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{verb} at windows whose starts are in the last dimension of the indices.

    Shapes:     operand: T[s], scatter_indices: int[b, n], updates: T[b with window dims] -> T[s].
    Derivative: {derivative}
    Lowers to:  stablehlo.scatter.
    Source:     mirrors jax.lax.{name} (0.10).

    Raises:
        TypeError: shapes, dtypes and dimension numbers do not fit.
        ValueError: the mode is not known.
    """
    return function


scatter = _public(
    scatter_p,
    "Replaces elements of `operand` by `updates`",
    "follows the update that was written last.",
)
scatter_add = _public(scatter_add_p, "Adds `updates` to elements of `operand`", "linear in both.")
scatter_sub = _public(
    scatter_sub_p, "Subtracts `updates` from elements of `operand`", "linear in both."
)
scatter_mul = _public(
    scatter_mul_p,
    "Multiplies elements of `operand` by `updates`",
    "with respect to the updates for unique indices only.",
)
scatter_min = _public(
    scatter_min_p, "Lowers elements of `operand` to `updates`", "ties share equally."
)
scatter_max = _public(
    scatter_max_p, "Raises elements of `operand` to `updates`", "ties share equally."
)

# Reverse mode of gather adds cotangents up where elements were read more than once.
gathering.Gather.scatter_add = staticmethod(scatter_add)
