"""How gathers and scatters find their windows: dimension numbers, modes, bounds, checks.

A gather's numbers and a scatter's say the same in the same order, hence
`ScatterDimensionNumbers(*numbers)` is the scatter that writes what a gather reads.

A mode says what happens to indices out of range: they are clamped, filled, or dropped.  Operations
that do so cannot know whether that was meant.  The public functions know: where the user names no
mode, they assert that positions are in bounds, if somebody looks.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import AbstractValue, Shape, ShapedArray, aval_of
from minijax.core.errors import error
from minijax.interpreters.checking import INDEX, Fault, check, is_checking
from minijax.interpreters.structural import broadcast_in_dim
from minijax.lax import binary
from minijax.lowering.stablehlo import LoweringContext, Value
from minijax.runtime.annotations import ArrayLike


def outside(positions: ArrayLike, low: int, high: int, text: str) -> list[Fault]:
    """The fault of positions that are not from `low` to `high`; none if that is known."""
    if isinstance(positions, (int, np.integer, np.ndarray)):
        host = np.asarray(positions)
        if ((host >= low) & (host <= high)).all():
            return []
    return [Fault(INDEX, _not_between(positions, low, high), text, (positions,))]


def windows_outside(x: ArrayLike, starts: ArrayLike, dims: Shape, sizes: Shape) -> list[Fault]:
    """The fault of windows of `x` that do not lie inside.

    Args:
        x: the array.
        starts: int[*b, n].
        dims: the dimension of `x` that each component of a start is for.
        sizes: the window's size in each dimension of `x`.
    """
    aval = aval_of(starts)
    if not aval.size:
        return []
    extents = [aval_of(x).shape[d] for d in dims]
    bad = None
    last = (aval.ndim - 1,)
    highs = [extent - sizes[d] for extent, d in zip(extents, dims, strict=True)]
    if isinstance(starts, np.ndarray) and ((starts >= 0) & (starts <= np.array(highs))).all():
        return []
    limits = broadcast_in_dim(_fitting(highs, aval.dtype), aval.shape, last)
    bad = binary.gt(starts, limits)
    if not dtypes.issubdtype(aval.dtype, np.unsignedinteger):
        bad = binary.bitwise_or(bad, binary.lt(starts, aval.dtype.type(0)))
    facts = [np.array(numbers, np.int32) for numbers in (dims, extents)]
    found = (starts, *(broadcast_in_dim(fact, aval.shape, last) for fact in facts))
    text = "index {0} is out of bounds for axis {1} with size {2}"
    return [Fault(INDEX, bad, text, found)]


def assert_in_bounds(
    name: str, positions: ArrayLike, size: int, axis: int, *, wrap: bool = True
) -> None:
    """Asserts that positions along an axis are in bounds, where somebody looks for such faults.

    Args:
        name: the operation to blame.
        positions: as the user gave them.
        size: of the axis.
        axis: its number.
        wrap: whether negative positions count from the end.
    """
    if not is_checking(INDEX):
        return
    text = f"index {{0}} is out of bounds for axis {axis} with size {size}"
    for fault in outside(positions, -size if wrap else 0, size - 1, text):
        check(fault._replace(name=name))


def _not_between(positions: ArrayLike, low: int, high: int) -> Any:
    dtype = aval_of(positions).dtype
    bad = binary.gt(positions, _fitting([high], dtype)[0])
    if dtypes.issubdtype(dtype, np.unsignedinteger):
        return bad
    return binary.bitwise_or(bad, binary.lt(positions, _fitting([low], dtype)[0]))


def _fitting(bounds: Sequence[int], dtype: np.dtype[Any]) -> Any:
    """Bounds in the dtype of positions, which may be too narrow to reach them."""
    info = dtypes.iinfo(dtype)
    return np.array([min(max(b, int(info.min)), int(info.max)) for b in bounds]).astype(dtype)


class GatherScatterMode(enum.Enum):
    """How gathers and scatters treat indices out of bounds.

    CLIP moves the window to the nearest place inside; FILL_OR_DROP reads a fill value and drops
    updates; PROMISE_IN_BOUNDS says that there are none; ONE_HOT is FILL_OR_DROP here.

    Example:
        >>> lax.GatherScatterMode.from_any("clip")
        <GatherScatterMode.CLIP: 1>
        >>> x = jnp.arange(3)
        >>> x.at[5].get(mode="clip"), x.at[5].get(mode="fill", fill_value=-1)
        (Array(2, dtype=int32), Array(-1, dtype=int32))
    """

    CLIP = 1
    FILL_OR_DROP = 2
    PROMISE_IN_BOUNDS = 3
    ONE_HOT = 4

    @staticmethod
    def from_any(mode: object) -> GatherScatterMode:
        """The mode that a string names; FILL_OR_DROP for None.

        Raises:
            ValueError: there is no such mode.
        """
        if isinstance(mode, GatherScatterMode):
            return mode
        if mode not in _MODES:
            expected = "'clip', 'fill', 'drop', 'promise_in_bounds' or 'one_hot'"
            error(ValueError, "lax.GatherScatterMode", f"unknown mode {mode!r}.", expected=expected)
        return _MODES[mode]


_MODES = {
    None: GatherScatterMode.FILL_OR_DROP,
    "clip": GatherScatterMode.CLIP,
    "fill": GatherScatterMode.FILL_OR_DROP,
    "drop": GatherScatterMode.FILL_OR_DROP,
    "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
    "one_hot": GatherScatterMode.ONE_HOT,
}


class GatherDimensionNumbers(NamedTuple):
    """How the dimensions of a gather's operand, indices and result correspond.

    Attributes:
        offset_dims: dimensions of the result that run over the window.
        collapsed_slice_dims: dimensions of the operand that the window does not keep; size 1.
        start_index_map: the operand's dimension that each component of an index is for.
        operand_batching_dims: dimensions of the operand that run along with the indices.
        start_indices_batching_dims: dimensions of the indices that they run along with.

    Example:
        >>> rows = lax.GatherDimensionNumbers((1,), collapsed_slice_dims=(0,), start_index_map=(0,))
        >>> lax.gather(jnp.array([[1, 2], [3, 4]]), jnp.array([[1], [0]]), rows, slice_sizes=(1, 2))
        Array([[3, 4],
               [1, 2]], dtype=int32)
    """

    offset_dims: Shape
    collapsed_slice_dims: Shape
    start_index_map: Shape
    operand_batching_dims: Shape = ()
    start_indices_batching_dims: Shape = ()


class ScatterDimensionNumbers(NamedTuple):
    """How the dimensions of a scatter's operand, indices and updates correspond.

    Attributes:
        update_window_dims: dimensions of the updates that run over the window.
        inserted_window_dims: dimensions of the operand in which the window has size 1.
        scatter_dims_to_operand_dims: the operand's dimension of each component of an index.
        operand_batching_dims: dimensions of the operand that run along with the indices.
        scatter_indices_batching_dims: dimensions of the indices that they run along with.

    Example:
        >>> rows = lax.ScatterDimensionNumbers((1,), (0,), scatter_dims_to_operand_dims=(0,))
        >>> lax.scatter_add(jnp.zeros((2, 2)), jnp.array([[1]]), jnp.array([[5.0, 6.0]]), rows)
        Array([[0., 0.],
               [5., 6.]], dtype=float32)
    """

    update_window_dims: Shape
    inserted_window_dims: Shape
    scatter_dims_to_operand_dims: Shape
    operand_batching_dims: Shape = ()
    scatter_indices_batching_dims: Shape = ()


Numbers = GatherDimensionNumbers | ScatterDimensionNumbers


def shifted(dims: Sequence[int], by: int = 1) -> Shape:
    """Dimension numbers moved by a new leading dimension."""
    return tuple(d + by for d in dims)


def with_batch(n: Numbers, indices_mapped: bool, operand_mapped: bool = True) -> Any:
    """Dimension numbers for a batch along the leading dimensions of all that is mapped."""
    window, single, index_map, batching, index_batching = n
    if not operand_mapped:
        return type(n)(shifted(window), single, index_map, batching, shifted(index_batching))
    kept = shifted(single), shifted(index_map)
    if not indices_mapped:
        return type(n)((0, *shifted(window)), *kept, shifted(batching), index_batching)
    return type(n)(shifted(window), *kept, (0, *shifted(batching)), (0, *shifted(index_batching)))


def window_sizes(x: AbstractValue, updates: AbstractValue, n: ScatterDimensionNumbers) -> Shape:
    """The window's size in each dimension of the operand."""
    window = iter(updates.shape[d] for d in n.update_window_dims)

    def size(dimension: int) -> int:
        if dimension in n.operand_batching_dims:
            # A batch without examples has no element for a window to show.
            return min(x.shape[dimension], 1)
        return 1 if dimension in n.inserted_window_dims else next(window)

    return tuple(map(size, range(x.ndim)))


def _window_fits(x: ShapedArray, updates: ShapedArray, n: ScatterDimensionNumbers) -> bool:
    # An index into a dimension without elements is out of range like any other.
    window = zip(window_sizes(x, updates, n), x.shape, strict=True)
    single = (*n.inserted_window_dims, *n.operand_batching_dims)
    return all(d in single or m <= k for d, (m, k) in enumerate(window))


def gathered_type(
    x: ShapedArray, indices: ShapedArray, n: GatherDimensionNumbers, slice_sizes: Shape
) -> ShapedArray:
    """The type of a gather's result.

    Raises:
        ValueError: the indices are not integers.
        TypeError: shapes and dimension numbers do not fit.
    """
    facts = {"operand": x, "indices": indices, "slice_sizes": slice_sizes, "numbers": n}
    _check_indices("lax.gather", indices)
    problem = _problem_of_numbers(x, indices, n)
    gone = (*n.collapsed_slice_dims, *n.operand_batching_dims)
    if problem is None and len(slice_sizes) != x.ndim:
        problem = "slice_sizes must have one entry for each dimension of the operand."
    if problem is None and any(not 0 <= m <= k for m, k in zip(slice_sizes, x.shape, strict=True)):
        problem = "the window must fit into the operand."
    if problem is None and any(slice_sizes[d] > 1 for d in gone):
        problem = "collapsed and batching dimensions must have slice size 1."
    if problem is not None:
        error(TypeError, "lax.gather", problem, got=facts)
    window = iter(m for d, m in enumerate(slice_sizes) if d not in gone)
    batch = iter(indices.shape[:-1])
    rank = indices.ndim - 1 + len(n.offset_dims)
    return x.with_shape(
        tuple(next(window) if d in n.offset_dims else next(batch) for d in range(rank))
    )


def check_scatter(
    name: str,
    x: ShapedArray,
    indices: ShapedArray,
    updates: ShapedArray,
    n: ScatterDimensionNumbers,
) -> None:
    """Refuses operands of a scatter that do not fit together.

    Raises:
        ValueError: the indices are not integers.
        TypeError: dtypes, shapes and dimension numbers do not fit.
    """
    facts = {"operand": x, "indices": indices, "updates": updates, "numbers": n}
    _check_indices(name, indices)
    if x.dtype != updates.dtype:
        error(TypeError, name, "operand and updates have different dtypes.", got=facts)
    problem = _problem_of_numbers(x, indices, n)
    if problem is None and updates.ndim != indices.ndim - 1 + len(n.update_window_dims):
        problem = "the rank of the updates must be that of the indices but one, plus the window's."
    if problem is None:
        rest = tuple(m for d, m in enumerate(updates.shape) if d not in n.update_window_dims)
        if rest != indices.shape[:-1]:
            problem = "the updates must have the indices' leading dimensions."
        elif not _window_fits(x, updates, n):
            problem = "the window of the updates must fit into the operand."
    if problem is not None:
        error(TypeError, name, problem, got=facts)


def _check_indices(name: str, indices: ShapedArray) -> None:
    if not dtypes.issubdtype(indices.dtype, np.integer):
        error(ValueError, name, "indices must be integers.", got={"indices": indices})


def _problem_of_numbers(x: ShapedArray, indices: ShapedArray, n: Numbers) -> str | None:
    """What is wrong with dimension numbers for an operand and indices of these types, if any."""
    window, single, index_map, batching, index_batching = n
    fields = n._fields
    if not indices.ndim or indices.shape[-1] != len(index_map):
        return (
            "the last dimension of the indices must have one component for each entry of "
            f"{fields[2]}."
        )
    leading = indices.ndim - 1
    bounds = (leading + len(window), x.ndim, x.ndim, x.ndim, leading)
    ascending = (True, True, False, True, False)
    for field, dims, bound, ordered in zip(fields, n, bounds, ascending, strict=True):
        expected = sorted(set(dims)) if ordered else dims
        if (
            any(not 0 <= d < bound for d in dims)
            or list(dims) != list(expected)
            or len(set(dims)) != len(dims)
        ):
            kind = "ascending" if ordered else "distinct"
            return f"{field} must hold {kind} dimensions from 0 to {bound - 1}."
    for field, dims in ((fields[1], single), (fields[2], index_map)):
        if not set(dims).isdisjoint(batching):
            return f"{field} and {fields[3]} must have no dimension in common."
    if len(window) + len(single) + len(batching) != x.ndim:
        return f"{fields[0]}, {fields[1]} and {fields[3]} must make up the operand's dimensions."
    sizes = [x.shape[d] for d in batching]
    if sizes != [indices.shape[d] for d in index_batching]:
        return f"{fields[3]} and {fields[4]} must pair up dimensions of equal sizes."
    return None


def _bounds(limits: Sequence[int], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """The largest starts, as indices of a dtype that may be too narrow for some of them."""
    top = int(dtypes.iinfo(dtype).max)
    return np.array([min(limit, top) for limit in limits]).astype(dtype)


def clamped(ctx: LoweringContext, indices: Value, aval: ShapedArray, limits: Sequence[int]) -> Any:
    """StableHLO for: indices int[b, n] with every component moved between 0 and its limit."""
    high = ctx.constant(_bounds(limits, aval.dtype))
    high = ctx.broadcast(high, aval.shape, aval.dtype, [aval.ndim - 1])
    low = ctx.full(aval.shape, 0, aval.dtype)
    return ctx.op("stablehlo.clamp", [low, indices, high], None, ctx.type_of(aval))


def indices_inside(
    ctx: LoweringContext, indices: Value, aval: ShapedArray, limits: Sequence[int]
) -> Any:
    """StableHLO for: which indices int[b, n] have every component from 0 to its limit; bool[b]."""
    dtype = aval.dtype
    high = ctx.constant(_bounds(limits, dtype))
    wide = ctx.broadcast(high, aval.shape, dtype, [aval.ndim - 1])
    below = ctx.compare("LE", indices, wide, aval)
    above = ctx.compare("GE", indices, ctx.full(aval.shape, 0, dtype), aval)
    mask = ctx.tensor_type(aval.shape, np.bool_)
    both = ctx.op("stablehlo.and", [below, above], None, mask)
    kept = [ctx.tensor_type(aval.shape[:-1], np.bool_)]
    return ctx.reduce("stablehlo.and", both, [aval.ndim - 1], True, kept, dtypes.bool_)


def fill_outside(
    ctx: LoweringContext, out: Value, inside: Value, offset_dims: Shape, fill_value: object
) -> Any:
    """StableHLO for: the windows `out` where their starts are inside, else `fill_value`."""
    aval = ctx.avals_out[0]
    kept = [d for d in range(aval.ndim) if d not in offset_dims]
    mask = ctx.broadcast(inside, aval.shape, np.dtype(np.bool_), kept)
    fill = ctx.full(aval.shape, np.asarray(fill_value).astype(aval.dtype), aval.dtype)
    return ctx.op("stablehlo.select", [mask, out, fill])


def fill_value_of_mode(mode: GatherScatterMode, value: object) -> Any:
    """The parameter of gathers that read `value` out of range; None where they never do."""
    reads_inside = mode in (GatherScatterMode.CLIP, GatherScatterMode.PROMISE_IN_BOUNDS)
    return None if reads_inside else value


def fill_of_dtype(dtype: object) -> Any:
    """What is read out of range: NaN, the lowest signed, the highest unsigned integer, True."""
    if dtypes.is_extended(dtype):
        return fill_of_dtype(dtype.physical_dtype)
    if dtypes.issubdtype(dtype, np.inexact):
        return np.nan
    if dtypes.issubdtype(dtype, np.unsignedinteger):
        return int(dtypes.iinfo(dtype).max)
    if dtypes.issubdtype(dtype, np.signedinteger):
        return int(dtypes.iinfo(dtype).min)
    return True
