"""Transfers: a value as a buffer where a program needs it.

Input: a host value or an array, and a placement.  Output: a C++ array placed so.  What is there
already is used as it is; pieces that exist are copied from device to device; the rest passes
through the host.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.trace import Tracer, leaked
from minijax.runtime import placement
from minijax.runtime.array import Array, Token, array_from_host, pieces_of, to_numpy


def buffer_on(x: Any, aval: Any, target: Any) -> Any:
    """The C++ array behind an argument, placed as `target`, a native sharding, says."""
    if isinstance(x, Tracer):
        raise leaked(x)
    if isinstance(x, Token):
        return x.buffer
    if not type.__instancecheck__(Array, x):
        if aval.dtype == dtypes.float0:
            x, aval = np.zeros(aval.shape, np.bool_), aval.update(dtype=np.dtype(np.bool_))
        return array_from_host(x, aval, target=target).buffer
    return moved(x.buffer, target)


def moved(buffer: Any, target: Any) -> Any:
    """A C++ array placed as `target` says: itself, where it is so already."""
    if buffer.is_deleted():
        to_numpy(buffer)  # raises, and says why
    source = buffer._sharding
    if source is target or (
        source.devices == target.devices
        and source.hlo == target.hlo
        and source.memory_kind == target.memory_kind
    ):
        return buffer
    aval = buffer.aval
    if source.devices[0].client is target.devices[0].client:
        if len(source.devices) == len(target.devices) and source.hlo == target.hlo:
            return placement.retyped(placement.copy_buffer(buffer, target), target)
        pieces = _matching_pieces(buffer, source, target)
        if pieces is not None:
            return placement.assemble(placement.typed(aval, target), target, pieces)
    return placement.put_host_value(to_numpy(buffer), aval, target, committed=True)


def _matching_pieces(buffer: Any, source: Any, target: Any) -> list[Any] | None:
    """The pieces that `target` wants, copied from devices that hold them; None if one is held by
    none.
    """
    shape = buffer.aval.shape
    held: dict[Any, list[int]] = {}
    for i, index in enumerate(source.public.indices(shape)):
        held.setdefault(_key(index, shape), []).append(i)
    wanted = [_key(index, shape) for index in target.public.indices(shape)]
    if any(index not in held for index in wanted):
        return None
    pieces = pieces_of(buffer)
    places = {device: i for i, device in enumerate(source.devices)}
    found = []
    for device, index in zip(target.devices, wanted, strict=True):
        own = places.get(device)
        piece = pieces[own if own in held[index] else held[index][0]]
        # A device's own piece is copied too: two arrays with one memory cannot both be donated.
        there = placement.native_sharding(device, target.memory_kind)
        found.append(placement.copy_buffer(piece, there))
    return found


def _key(index: Any, shape: Any) -> tuple[tuple[int, int], ...]:
    return tuple(s.indices(size)[:2] for s, size in zip(index, shape, strict=True))
