"""Gather: windows of an array, from starts given by an array of indices.

`scatter.py` is its counterpart.  What happens out of range is the `mode`.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import Shape, ShapedArray
from minijax.core.errors import message
from minijax.core.primitive import Primitive
from minijax.interpreters.structural import moveaxis, zeros
from minijax.interpreters.tangents import Zero
from minijax.lax import arguments


class GatherScatterMode(enum.Enum):
    """What happens to indices out of range.  Mirrors jax.lax.GatherScatterMode (0.10).

    CLIP moves the window to the nearest place inside; FILL_OR_DROP reads a fill value and drops
    updates; PROMISE_IN_BOUNDS says that there are none; ONE_HOT is FILL_OR_DROP here.
    """

    CLIP = 0
    FILL_OR_DROP = 1
    PROMISE_IN_BOUNDS = 2
    ONE_HOT = 3

    @staticmethod
    def from_any(mode: Any) -> GatherScatterMode:
        """The mode that a string names; FILL_OR_DROP for None.

        Raises:
            ValueError: there is no such mode.
        """
        if isinstance(mode, GatherScatterMode):
            return mode
        if mode not in _MODES:
            raise ValueError(
                message(
                    "lax.GatherScatterMode",
                    f"unknown mode {mode!r}.",
                    expected="'clip', 'fill', 'drop' or 'promise_in_bounds'",
                )
            )
        return _MODES[mode]

    def __str__(self) -> str:
        return f"GatherScatterMode.{self.name}"


_MODES = {
    None: GatherScatterMode.FILL_OR_DROP,
    "clip": GatherScatterMode.CLIP,
    "fill": GatherScatterMode.FILL_OR_DROP,
    "drop": GatherScatterMode.FILL_OR_DROP,
    "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
    "one_hot": GatherScatterMode.ONE_HOT,
}


class GatherDimensionNumbers(NamedTuple):
    """How dimensions of a gather's operand, indices and result belong together.

    Attributes:
        offset_dims: dimensions of the result that run over the window.
        collapsed_slice_dims: dimensions of the operand that the window does not keep; size 1.
        start_index_map: the operand's dimension that each component of an index is for.
        operand_batching_dims: dimensions of the operand that run along with the indices.
        start_indices_batching_dims: dimensions of the indices that they run along with.
    """

    offset_dims: Shape
    collapsed_slice_dims: Shape
    start_index_map: Shape
    operand_batching_dims: Shape = ()
    start_indices_batching_dims: Shape = ()


def shifted(dims: Sequence[int], by: int = 1) -> Shape:
    """Dimension numbers moved by a new leading dimension."""
    return tuple(d + by for d in dims)


class Gather(Primitive):
    """Windows of `x` of sizes `slice_sizes`, from starts in the last dimension of `indices`.

    Shapes: x: T[s], indices: int[b, n] -> T[b with the window's dimensions at offset_dims].
    Linear in x.
    """

    name = "gather"

    def abstract_eval(
        self,
        x: ShapedArray,
        indices: ShapedArray,
        *,
        dimension_numbers: GatherDimensionNumbers,
        slice_sizes: Shape,
        **_: Any,
    ) -> ShapedArray:
        _check(x, indices, dimension_numbers, slice_sizes)
        gone = (*dimension_numbers.collapsed_slice_dims, *dimension_numbers.operand_batching_dims)
        window = iter(n for i, n in enumerate(slice_sizes) if i not in gone)
        batch = iter(indices.shape[:-1])
        rank = indices.ndim - 1 + len(slice_sizes) - len(gone)
        offsets = dimension_numbers.offset_dims
        return x.with_shape(
            tuple(next(window) if i in offsets else next(batch) for i in range(rank))
        )

    def lower(
        self,
        ctx: Any,
        x: Any,
        indices: Any,
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
        out = ctx.op(
            "stablehlo.gather",
            [x, indices],
            {
                "dimension_numbers": ctx.attribute(text),
                "slice_sizes": ctx.i64_array(slice_sizes),
                "indices_are_sorted": ctx.boolean(indices_are_sorted),
            },
        )
        if mode in (GatherScatterMode.CLIP, GatherScatterMode.PROMISE_IN_BOUNDS):
            return out
        limits = [operand.shape[d] - slice_sizes[d] for d in n.start_index_map]
        inside = indices_inside(ctx, indices, starts, limits)
        return _fill_outside(ctx, out, inside, n.offset_dims, fill_value)

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        x, indices = primals
        out = self.bind(x, indices, **params)
        if type(tangents[0]) is Zero:
            return out, Zero.like(out)
        return out, self.bind(tangents[0], indices, **{**params, "fill_value": 0})

    def transpose(
        self,
        ct: Any,
        x: Any,
        indices: Any,
        *,
        dimension_numbers: GatherDimensionNumbers,
        slice_sizes: Shape,
        indices_are_sorted: bool,
        unique_indices: bool,
        mode: GatherScatterMode,
        fill_value: Any,
    ) -> tuple[Any, None]:
        n = dimension_numbers
        # The counterpart, scatter-add, stands in a file that builds on this one.
        add = type(self).scatter_add
        numbers = (
            n.offset_dims,
            n.collapsed_slice_dims,
            n.start_index_map,
            n.operand_batching_dims,
            n.start_indices_batching_dims,
        )
        out = add(
            zeros(x.aval.tangent_aval()),
            indices,
            ct,
            numbers,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            mode=mode,
        )
        return out, None

    def batch(
        self,
        size: int,
        args: Sequence[Any],
        dims: Sequence[Any],
        *,
        dimension_numbers: GatherDimensionNumbers,
        slice_sizes: Shape,
        **params: Any,
    ) -> tuple[Any, int]:
        x, indices = (a if d is None else moveaxis(a, d, 0) for a, d in zip(args, dims, strict=True))
        n = dimension_numbers
        if dims[0] is None:
            numbers = n._replace(
                offset_dims=shifted(n.offset_dims),
                start_indices_batching_dims=shifted(n.start_indices_batching_dims),
            )
        else:
            along = dims[1] is not None
            slice_sizes = (1 if along else size, *slice_sizes)
            numbers = GatherDimensionNumbers(
                offset_dims=shifted(n.offset_dims) if along else (0, *shifted(n.offset_dims)),
                collapsed_slice_dims=shifted(n.collapsed_slice_dims),
                start_index_map=shifted(n.start_index_map),
                operand_batching_dims=((0,) if along else ()) + shifted(n.operand_batching_dims),
                start_indices_batching_dims=(0, *shifted(n.start_indices_batching_dims))
                if along
                else n.start_indices_batching_dims,
            )
        out = self.bind(x, indices, dimension_numbers=numbers, slice_sizes=slice_sizes, **params)
        return out, 0


def indices_inside(ctx: Any, indices: Any, aval: ShapedArray, limits: Sequence[int]) -> Any:
    """StableHLO for: which indices int[b, n] have every component from 0 to its limit; bool[b]."""
    dtype = aval.dtype
    top = int(dtypes.iinfo(dtype).max)
    bounds = np.array([min(limit, top) for limit in limits]).astype(dtype)
    wide = ctx.broadcast(ctx.constant(bounds), aval.shape, dtype, [aval.ndim - 1])
    below = ctx.compare("LE", indices, wide, aval)
    above = ctx.compare("GE", indices, ctx.full(aval.shape, 0, dtype), aval)
    mask = ctx.tensor_type(aval.shape, np.bool_)
    both = ctx.op("stablehlo.and", [below, above], None, mask)
    scalar = ctx.tensor_type((), np.bool_)
    return ctx.ops(
        "stablehlo.reduce",
        [both, ctx.constant(True, np.bool_)],
        {"dimensions": ctx.i64_array([aval.ndim - 1])},
        types=[ctx.tensor_type(aval.shape[:-1], np.bool_)],
        regions=[
            ([scalar, scalar], lambda c, a, b: [c.op("stablehlo.and", [a, b], None, scalar)])
        ],
    )[0]


def _fill_outside(ctx: Any, out: Any, inside: Any, offset_dims: Shape, fill_value: Any) -> Any:
    aval = ctx.avals_out[0]
    kept = [d for d in range(aval.ndim) if d not in offset_dims]
    mask = ctx.broadcast(inside, aval.shape, np.dtype(np.bool_), kept)
    fill = ctx.full(aval.shape, fill_of(aval.dtype) if fill_value is None else fill_value, aval.dtype)
    return ctx.op("stablehlo.select", [mask, out, fill])


def fill_of(dtype: Any) -> Any:
    """What is read out of range: NaN, the lowest signed, the highest unsigned integer, True."""
    if dtypes.issubdtype(dtype, np.inexact):
        return np.nan
    if dtypes.issubdtype(dtype, np.unsignedinteger):
        return dtypes.iinfo(dtype).max
    if dtypes.issubdtype(dtype, np.signedinteger):
        return dtypes.iinfo(dtype).min
    return True


def _check(
    x: ShapedArray, indices: ShapedArray, n: GatherDimensionNumbers, slice_sizes: Shape
) -> None:
    gone = (*n.collapsed_slice_dims, *n.operand_batching_dims)
    problem = None
    if not dtypes.issubdtype(indices.dtype, np.integer):
        raise TypeError(message("lax.gather", "indices must be integers.", got=str(indices)))
    if not indices.ndim or indices.shape[-1] != len(n.start_index_map):
        problem = "the last dimension of the indices must have one component for each entry of "
        problem += "start_index_map."
    elif len(slice_sizes) != x.ndim:
        problem = "slice_sizes must have one entry for each dimension of the operand."
    elif any(not 0 <= m <= k for m, k in zip(slice_sizes, x.shape, strict=True)):
        problem = "the window must fit into the operand."
    elif any(slice_sizes[d] > 1 for d in gone):
        problem = "collapsed and batching dimensions must have slice size 1."
    elif len(n.offset_dims) + len(gone) != x.ndim:
        problem = "offset, collapsed and batching dimensions must make up the operand's."
    elif len(set((*n.start_index_map, *n.operand_batching_dims))) != len(n.start_index_map) + len(
        n.operand_batching_dims
    ):
        problem = "start_index_map must not repeat dimensions."
    if problem:
        raise TypeError(
            message(
                "lax.gather",
                problem,
                got={"operand": x, "indices": indices, "slice_sizes": slice_sizes, "numbers": n},
            )
        )


gather_p = Gather()


def gather(
    operand: Any,
    start_indices: Any,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: Any = None,
    fill_value: Any = None,
) -> Any:
    """Windows of `operand`, from starts in the last dimension of `start_indices`.

    Args:
        operand: the array.
        start_indices: integers, one vector for each window.
        dimension_numbers: how the dimensions belong together.
        slice_sizes: the window's size in each dimension of the operand.
        unique_indices: a promise that no window is read twice.
        indices_are_sorted: a promise that the starts are in ascending order.
        mode: what happens out of range, see `GatherScatterMode`.
        fill_value: what is read there in mode "fill"; NaN, or an extreme integer.

    Derivative: transposes to scatter_add.
    Lowers to:  stablehlo.gather.
    Source:     mirrors jax.lax.gather (0.10).

    Raises:
        TypeError: shapes and dimension numbers do not fit.
        ValueError: the mode is not known.
    """
    return gather_p.bind(
        operand,
        start_indices,
        dimension_numbers=GatherDimensionNumbers(*map(tuple, dimension_numbers)),
        slice_sizes=arguments.int_tuple(slice_sizes, "lax.gather", "slice_sizes"),
        indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices),
        mode=GatherScatterMode.from_any(mode),
        fill_value=None if fill_value is None else np.asarray(fill_value).item(),
    )

