"""Reductions over segments of an array.  Mirrors jax.ops.

Rows that have the same segment number are combined, in any order.
Rows whose number is negative or too large are left out.  A segment without rows holds what leaves
others unchanged: 0, 1, or the dtype's least or greatest value.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np

from minijax.core import deferral, dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import ConcretizationTypeError, error
from minijax.core.trace import Tracer
from minijax.lax import reduction
from minijax.lax.gather_numbers import GatherScatterMode
from minijax.lax.special import full_like
from minijax.numpy import reductions
from minijax.numpy.promotion import named, one_program
from minijax.numpy.ranges import arange
from minijax.numpy.shaping import array_argument
from minijax.runtime.annotations import ArrayLike, ShardingLike
from minijax.runtime.array import Array

Mode: TypeAlias = str | GatherScatterMode | None


def _count(name: str, ids: Array, num_segments: int | None) -> int:
    """The number of segments, if need be from the ids, which must then be known."""
    if num_segments is not None:
        count = operator.index(num_segments)
        if count < 0:
            problem = "the number of segments must not be negative."
            error(ValueError, f"ops.{name}", problem, got=f"num_segments: {count}")
        return count
    known = ids.concrete() if isinstance(ids, Tracer) else ids
    if known is None:
        problem = "the number of segments depends on traced ids."
        got = {"segment_ids": aval_of(ids)}
        expected = "ids that are known, or num_segments"
        fix = "num_segments=n, with all ids below n"
        error(ConcretizationTypeError, f"ops.{name}", problem, got=got, expected=expected, fix=fix)
    if aval_of(ids).size == 0:
        problem = "without ids there is no largest one."
        fix = "num_segments=n"
        error(ValueError, f"ops.{name}", problem, got={"segment_ids": aval_of(ids)}, fix=fix)
    return max(0, int(np.max(np.asarray(known))) + 1)


class SegmentReduction(Protocol):
    """A function that combines the rows of each segment."""

    def __call__(
        self,
        data: ArrayLike,
        segment_ids: ArrayLike,
        num_segments: int | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        bucket_size: int | None = None,
        mode: Mode = None,
        out_sharding: ShardingLike = None,
    ) -> Array:
        """The combined rows of each segment."""


def _combining(
    name: str,
    update: str,
    identity: Callable[[np.dtype[Any]], ArrayLike],
    reduce: Callable[..., Array],
) -> Callable[..., Array]:
    """The program of a reduction, for checked arguments."""

    def scattered(
        data: Array,
        ids: Array,
        *,
        count: int,
        buckets: int,
        bucket_size: int,
        out_sharding: ShardingLike,
        options: tuple[tuple[str, Any], ...],
    ) -> Array:
        shape = (count, *data.shape[1:])
        if buckets <= 1:
            start = full_like(data, identity(data.dtype), shape)
            combine = getattr(start.at[ids], update)
            return combine(data, out_sharding=out_sharding, **dict(options))
        # Each bucket is combined by itself, which is less at once and more exact.
        start = full_like(data, identity(data.dtype), (buckets, *shape))
        place = (arange(ids.shape[0]) // bucket_size, ids)
        unsorted = {**dict(options), "indices_are_sorted": False}
        found = getattr(start.at[place], update)(data, **unsorted)
        return reduce(found, 0).astype(data.dtype)

    # Errors inside are those of the public function.
    scattered.__name__ = name
    return one_program(("count", "buckets", "bucket_size", "out_sharding", "options"))(scattered)


def _reduction(
    name: str,
    update: str,
    identity: Callable[[np.dtype[Any]], ArrayLike],
    reduce: Callable[..., Array],
    **documentation: str,
) -> SegmentReduction:
    """A reduction over segments.

    Args:
        name: the public name.
        update: the method of `x.at` that combines rows.
        identity: gives for a dtype what leaves others unchanged.
        reduce: combines the results of buckets.
        **documentation: what fills the text.
    """
    program = _combining(name, update, identity, reduce)

    def reduced(
        data: ArrayLike,
        segment_ids: ArrayLike,
        num_segments: int | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        bucket_size: int | None = None,
        mode: Mode = None,
        out_sharding: ShardingLike = None,
    ) -> Array:
        """The {results} of the rows of each segment.

        Args:
            data: the rows.
            segment_ids: for each row the number of its segment; repeated in any order.
            num_segments: how many segments there are; by default the largest id plus 1, which must
                then be known.
            indices_are_sorted: whether ids ascend, which may be faster.
            unique_indices: whether no id is repeated, which may be faster.
            bucket_size: how many rows to combine at a time before these results are combined.
            mode: what becomes of rows whose id is out of range: they are dropped by default, and go
                to the nearest segment where it is "clip".
            out_sharding: how the result is split over Explicit mesh axes.

        Shapes:     data: T[n, s], segment_ids: int[n] -> T[num_segments, s].
        Dtypes:     {dtypes}.
        Derivative: {derivative}.
        Lowers to:  stablehlo.scatter.
        Source:     mirrors jax.ops.{name} (0.10).

        Raises:
            ConcretizationTypeError: ids are traced, and `num_segments` is not given.
            ValueError: `num_segments` is negative, `mode` is not known, or the shapes do not fit.
            TypeError: ids are not integers, or the dtype does not fit.

        Example:
            >>> minijax.ops.{name}(np.int32([[1, 2], [3, 4], [5, 6]]), np.int32([0, 1, 0]))
            {example}
        """
        rows, ids = (array_argument(f"ops.{name}", x) for x in (data, segment_ids))
        if not dtypes.issubdtype(ids.dtype, np.integer):
            error(TypeError, f"ops.{name}", "ids must be integers.", got={"segment_ids": ids.aval})
        count = _count(name, ids, num_segments)
        size = 0 if bucket_size is None else _bucket_size(name, bucket_size)
        length = ids.shape[0] if ids.ndim else 1
        options = {
            "indices_are_sorted": indices_are_sorted,
            "unique_indices": unique_indices,
            "mode": mode,
            "wrap_negative_indices": False,
        }
        return program(
            rows,
            ids,
            count=count,
            buckets=-(-length // size) if size else 1,
            bucket_size=size,
            out_sharding=out_sharding,
            options=tuple(options.items()),
        )

    return named(reduced, name, **documentation)


def _bucket_size(name: str, given: int) -> int:
    size = operator.index(given)
    if size < 1:
        problem = "buckets hold at least one row."
        error(ValueError, f"ops.{name}", problem, got=f"bucket_size: {size}")
    return size


segment_sum = _reduction(
    "segment_sum",
    "add",
    reduction.zero,
    reductions.sum,
    results="sums",
    dtypes="numeric",
    derivative="linear in data",
    example="Array([[6, 8],\n           [3, 4]], dtype=int32)",
)
segment_prod = _reduction(
    "segment_prod",
    "multiply",
    reduction.one,
    reductions.prod,
    results="products",
    dtypes="numeric",
    derivative="exact where ids are unique",
    example="Array([[ 5, 12],\n           [ 3,  4]], dtype=int32)",
)
segment_max = _reduction(
    "segment_max",
    "max",
    reduction.lowest,
    reductions.max,
    results="largest elements",
    dtypes="real; bool",
    derivative="equal elements share it",
    example="Array([[5, 6],\n           [3, 4]], dtype=int32)",
)
segment_min = _reduction(
    "segment_min",
    "min",
    reduction.highest,
    reductions.min,
    results="smallest elements",
    dtypes="real; bool",
    derivative="equal elements share it",
    example="Array([[1, 2],\n           [3, 4]], dtype=int32)",
)

deferral.publish(globals(), ["segment_max", "segment_min", "segment_prod", "segment_sum"])
