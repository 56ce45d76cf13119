"""What gathers and scatters do about indices out of range: clamp them, fill, or drop.

Positions out of bounds that are faults, because the user named no mode, are in `bounds.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import Shape, ShapedArray
from minijax.lax.gather_numbers import GatherScatterMode


def _bounds(limits: Sequence[int], dtype: Any) -> np.ndarray[Any, Any]:
    """The largest starts, as indices of a dtype that may be too narrow for some of them."""
    top = int(dtypes.iinfo(dtype).max)
    return np.array([min(limit, top) for limit in limits]).astype(dtype)


def clamped(ctx: Any, indices: Any, aval: ShapedArray, limits: Sequence[int]) -> Any:
    """StableHLO for: indices int[b, n] with every component moved between 0 and its limit."""
    high = ctx.constant(_bounds(limits, aval.dtype))
    high = ctx.broadcast(high, aval.shape, aval.dtype, [aval.ndim - 1])
    low = ctx.full(aval.shape, 0, aval.dtype)
    return ctx.op("stablehlo.clamp", [low, indices, high], None, ctx.type_of(aval))


def indices_inside(ctx: Any, indices: Any, aval: ShapedArray, limits: Sequence[int]) -> Any:
    """StableHLO for: which indices int[b, n] have every component from 0 to its limit; bool[b]."""
    dtype = aval.dtype
    high = ctx.constant(_bounds(limits, dtype))
    wide = ctx.broadcast(high, aval.shape, dtype, [aval.ndim - 1])
    below = ctx.compare("LE", indices, wide, aval)
    above = ctx.compare("GE", indices, ctx.full(aval.shape, 0, dtype), aval)
    mask = ctx.tensor_type(aval.shape, np.bool_)
    both = ctx.op("stablehlo.and", [below, above], None, mask)
    kept = [ctx.tensor_type(aval.shape[:-1], np.bool_)]
    return ctx.reduce("stablehlo.and", both, [aval.ndim - 1], True, kept, np.bool_)


def fill_outside(ctx: Any, out: Any, inside: Any, offset_dims: Shape, fill_value: Any) -> Any:
    """StableHLO for: the windows `out` where their starts are inside, else `fill_value`."""
    aval = ctx.avals_out[0]
    kept = [d for d in range(aval.ndim) if d not in offset_dims]
    mask = ctx.broadcast(inside, aval.shape, np.dtype(np.bool_), kept)
    fill = ctx.full(aval.shape, np.asarray(fill_value).astype(aval.dtype), aval.dtype)
    return ctx.op("stablehlo.select", [mask, out, fill])


def fill_value_of_mode(mode: GatherScatterMode, value: Any) -> Any:
    """The parameter of gathers that read `value` out of range; None where they never do."""
    reads_inside = mode in (GatherScatterMode.CLIP, GatherScatterMode.PROMISE_IN_BOUNDS)
    return None if reads_inside else value


def fill_of_dtype(dtype: Any) -> Any:
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
