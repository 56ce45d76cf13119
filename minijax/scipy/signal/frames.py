"""Series cut into frames that overlap, and put together again.

Frames begin `step` places apart.  Where few of them overlap, a series is cut into blocks as long
as a step: a frame is several blocks in a row, so that no element is looked up by its index.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.lax.padding import pad
from minijax.numpy.creation import zeros
from minijax.numpy.joining import concatenate

_MAX_BLOCKS = 16


def _lengthened(x: Any, size: int) -> Any:
    """`x` with its last dimension cut, or filled up with zeros, to a size."""
    edges = [(0, 0, 0)] * (x.ndim - 1) + [(0, size - x.shape[-1], 0)]
    return pad(x, x.dtype.type(0), edges)


def _places(count: int, size: int, step: int) -> Any:
    return step * np.arange(count)[:, None] + np.arange(size)


def cut(x: Any, size: int, step: int) -> Any:
    """The frames of a series, as many as fit into it.  Shapes: T[.., n] -> T[.., count, size]."""
    count = (x.shape[-1] - size) // step + 1
    blocks = -(-size // step)
    if blocks > _MAX_BLOCKS:
        return x[..., _places(count, size, step)]
    rows = _lengthened(x, (count + blocks - 1) * step)
    rows = rows.reshape(*x.shape[:-1], count + blocks - 1, step)
    parts = [rows[..., j : j + count, :] for j in range(blocks)]
    frames = concatenate(parts, -1) if blocks > 1 else parts[0]
    return frames[..., :size]


def overlapped(frames: Any, step: int) -> Any:
    """The sum of frames, each in its place.  Shapes: T[.., count, size] -> T[.., n]."""
    *outer, count, size = frames.shape
    total = (count - 1) * step + size
    blocks = -(-size // step)
    if blocks > _MAX_BLOCKS:
        return zeros((*outer, total), frames.dtype).at[..., _places(count, size, step)].add(frames)
    rows = _lengthened(frames, blocks * step).reshape(*outer, count, blocks, step)
    found: Any = 0
    for j in range(blocks):
        edges = [(0, 0, 0)] * len(outer) + [(j, blocks - 1 - j, 0), (0, 0, 0)]
        found = found + pad(rows[..., j, :], frames.dtype.type(0), edges)
    return found.reshape(*outer, -1)[..., :total]
