"""Positions out of bounds: the faults of operations that index, and assertions of their callers.

Operations that clamp, fill or drop cannot know whether that was meant.  The public functions know:
where the user names no mode, they assert that positions are in bounds, if somebody looks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import Shape, aval_of
from minijax.interpreters.checking import INDEX, Fault, check, is_checking
from minijax.interpreters.structural import broadcast_in_dim
from minijax.lax import binary


def outside(positions: Any, low: int, high: int, text: str) -> list[Fault]:
    """The fault of positions that are not from `low` to `high`; none if that is known."""
    if isinstance(positions, (int, np.integer, np.ndarray)):
        host = np.asarray(positions)
        if ((host >= low) & (host <= high)).all():
            return []
    return [Fault(INDEX, _not_between(positions, low, high), text, (positions,))]


def windows_outside(x: Any, starts: Any, dims: Shape, sizes: Shape) -> list[Fault]:
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


def assert_in_bounds(name: str, positions: Any, size: int, axis: int, *, wrap: bool = True) -> None:
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


def _not_between(positions: Any, low: int, high: int) -> Any:
    dtype = aval_of(positions).dtype
    bad = binary.gt(positions, _fitting([high], dtype)[0])
    if dtypes.issubdtype(dtype, np.unsignedinteger):
        return bad
    return binary.bitwise_or(bad, binary.lt(positions, _fitting([low], dtype)[0]))


def _fitting(bounds: Sequence[int], dtype: Any) -> Any:
    """Bounds in the dtype of positions, which may be too narrow to reach them."""
    info = dtypes.iinfo(dtype)
    return np.array([min(max(b, int(info.min)), int(info.max)) for b in bounds]).astype(dtype)
