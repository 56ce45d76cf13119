"""Reductions over segments: rows that share a number are combined, in any order.

Rows whose number is negative or too large are left out.  A segment without rows holds what leaves
others unchanged: 0, 1, or the dtype's least or greatest value.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import ConcretizationTypeError, error
from minijax.core.trace import Tracer
from minijax.interpreters.structural import full
from minijax.lax import reduction
from minijax.numpy import reductions
from minijax.numpy.one_program import one_program
from minijax.numpy.ranges import arange
from minijax.numpy.shaping import array_argument
from minijax.runtime.annotations import ArrayLike, ShardingLike
from minijax.runtime.array import Array


class Combination(NamedTuple):
    """One way to combine rows: the update of `x.at`, what it starts from, and the reduction."""

    update: str
    identity: Callable[[Any], Any]
    reduce: Callable[..., Any]


COMBINATIONS = {
    "segment_sum": Combination("add", reduction.zero, reductions.sum),
    "segment_prod": Combination("multiply", reduction.one, reductions.prod),
    "segment_max": Combination("max", reduction.lowest, reductions.max),
    "segment_min": Combination("min", reduction.highest, reductions.min),
}


def _count(name: str, ids: Any, num_segments: Any) -> int:
    """The number of segments, if need be from the ids, which must then be known."""
    if num_segments is not None:
        count = operator.index(num_segments)
        if count < 0:
            error(
                ValueError,
                f"ops.{name}",
                "the number of segments must not be negative.",
                got=f"num_segments: {count}",
            )
        return count
    known = ids.concrete() if isinstance(ids, Tracer) else ids
    if known is None:
        error(
            ConcretizationTypeError,
            f"ops.{name}",
            "the number of segments depends on traced ids.",
            got={"segment_ids": aval_of(ids)},
            expected="ids that are known, or num_segments",
            fix="num_segments=n, with all ids below n",
        )
    if aval_of(ids).size == 0:
        error(
            ValueError,
            f"ops.{name}",
            "without ids there is no largest one.",
            got={"segment_ids": aval_of(ids)},
            fix="num_segments=n",
        )
    return max(0, int(np.max(np.asarray(known))) + 1)


def _reduced(
    name: str,
    data: Any,
    segment_ids: Any,
    num_segments: Any,
    bucket_size: Any,
    **options: Any,
) -> Any:
    data, ids = (array_argument(f"ops.{name}", x) for x in (data, segment_ids))
    if not dtypes.issubdtype(ids.dtype, np.integer):
        error(TypeError, f"ops.{name}", "ids must be integers.", got={"segment_ids": ids.aval})
    count = _count(name, ids, num_segments)
    buckets = 1
    if bucket_size is not None:
        size = operator.index(bucket_size)
        if size < 1:
            error(
                ValueError,
                f"ops.{name}",
                "buckets hold at least one row.",
                got=f"bucket_size: {size}",
            )
        buckets = -(-(ids.shape[0] if ids.ndim else 1) // size)
        options["bucket_size"] = size
    return _scattered(data, ids, name=name, count=count, buckets=buckets, **options)


@one_program(
    static=(
        "name",
        "count",
        "buckets",
        "bucket_size",
        "out_sharding",
        "mode",
        "is_sorted",
        "unique",
    )
)
def _scattered(
    data: Any,
    ids: Any,
    *,
    name: str,
    count: int,
    buckets: int,
    is_sorted: bool,
    unique: bool,
    mode: Any,
    out_sharding: Any,
    bucket_size: int = 0,
) -> Any:
    way = COMBINATIONS[name]
    shape = (count, *data.shape[1:])
    options = {
        "indices_are_sorted": is_sorted,
        "unique_indices": unique,
        "mode": mode,
        "wrap_negative_indices": False,
    }
    identity = way.identity(data.dtype)
    if buckets <= 1:
        start = full(shape, identity, data.dtype)
        return getattr(start.at[ids], way.update)(data, out_sharding=out_sharding, **options)
    # Each bucket is combined by itself, which is less at once and more exact.
    start = full((buckets, *shape), identity, data.dtype)
    place = (arange(ids.shape[0]) // bucket_size, ids)
    found = getattr(start.at[place], way.update)(data, **{**options, "indices_are_sorted": False})
    return way.reduce(found, 0).astype(data.dtype)


def segment_sum(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Any = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """The sums of the rows of each segment.

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
    Dtypes:     numeric.
    Derivative: linear in data.
    Lowers to:  stablehlo.scatter.
    Source:     mirrors jax.ops.segment_sum (0.10).

    Raises:
        ConcretizationTypeError: ids are traced, and `num_segments` is not given.
        ValueError: `num_segments` is negative, `mode` is not known, or the shapes do not fit.
        TypeError: ids are no integers, or the dtype does not fit.

    Example:
        >>> minijax.ops.segment_sum(np.int32([[1, 2], [3, 4], [5, 6]]), np.int32([0, 1, 0]))
        Array([[6, 8],
               [3, 4]], dtype=int32)
    """
    return _reduced(
        "segment_sum",
        data,
        segment_ids,
        num_segments,
        bucket_size,
        is_sorted=indices_are_sorted,
        unique=unique_indices,
        mode=mode,
        out_sharding=out_sharding,
    )


def segment_prod(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Any = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """The products of the rows of each segment.

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
    Dtypes:     numeric.
    Derivative: exact where ids are unique.
    Lowers to:  stablehlo.scatter.
    Source:     mirrors jax.ops.segment_prod (0.10).

    Raises:
        ConcretizationTypeError: ids are traced, and `num_segments` is not given.
        ValueError: `num_segments` is negative, `mode` is not known, or the shapes do not fit.
        TypeError: ids are no integers, or the dtype does not fit.

    Example:
        >>> minijax.ops.segment_prod(np.int32([[1, 2], [3, 4], [5, 6]]), np.int32([0, 1, 0]))
        Array([[ 5, 12],
               [ 3,  4]], dtype=int32)
    """
    return _reduced(
        "segment_prod",
        data,
        segment_ids,
        num_segments,
        bucket_size,
        is_sorted=indices_are_sorted,
        unique=unique_indices,
        mode=mode,
        out_sharding=out_sharding,
    )


def segment_max(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Any = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """The largest elements of the rows of each segment.

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
    Dtypes:     real; bool.
    Derivative: equal elements share it.
    Lowers to:  stablehlo.scatter.
    Source:     mirrors jax.ops.segment_max (0.10).

    Raises:
        ConcretizationTypeError: ids are traced, and `num_segments` is not given.
        ValueError: `num_segments` is negative, `mode` is not known, or the shapes do not fit.
        TypeError: ids are no integers, or the dtype does not fit.

    Example:
        >>> minijax.ops.segment_max(np.int32([[1, 2], [3, 4], [5, 6]]), np.int32([0, 1, 0]))
        Array([[5, 6],
               [3, 4]], dtype=int32)
    """
    return _reduced(
        "segment_max",
        data,
        segment_ids,
        num_segments,
        bucket_size,
        is_sorted=indices_are_sorted,
        unique=unique_indices,
        mode=mode,
        out_sharding=out_sharding,
    )


def segment_min(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Any = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """The smallest elements of the rows of each segment.

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
    Dtypes:     real; bool.
    Derivative: equal elements share it.
    Lowers to:  stablehlo.scatter.
    Source:     mirrors jax.ops.segment_min (0.10).

    Raises:
        ConcretizationTypeError: ids are traced, and `num_segments` is not given.
        ValueError: `num_segments` is negative, `mode` is not known, or the shapes do not fit.
        TypeError: ids are no integers, or the dtype does not fit.

    Example:
        >>> minijax.ops.segment_min(np.int32([[1, 2], [3, 4], [5, 6]]), np.int32([0, 1, 0]))
        Array([[1, 2],
               [3, 4]], dtype=int32)
    """
    return _reduced(
        "segment_min",
        data,
        segment_ids,
        num_segments,
        bucket_size,
        is_sorted=indices_are_sorted,
        unique=unique_indices,
        mode=mode,
        out_sharding=out_sharding,
    )
