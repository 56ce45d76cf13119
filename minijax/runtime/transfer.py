"""Transfers: a value as a buffer where a program needs it.

Input: a host value or an array, and a placement.  Output: a C++ array placed so.  What is there
already is used as it is; pieces that exist are copied from device to device; the rest passes
through the host.  `statistics.transfers` counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.core import dtypes, statistics
from minijax.core.aval import Shape
from minijax.core.trace import Tracer, leaked
from minijax.runtime import placement, sharing
from minijax.runtime.array import Array, Token, array_from_host, pieces_of, to_numpy
from minijax.sharding.base import Sharding


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
    if source.devices[0].client is target.devices[0].client:
        if (
            len(source.devices) == len(target.devices)
            and source.hlo == target.hlo
            and source.public.is_fully_addressable
            and target.public.is_fully_addressable
        ):
            return placement.retyped(placement.copy_buffer(buffer, target), target)
        found = _reassembled(buffer, source, target)
        if found is not None:
            return found
    statistics.transfers["through the host"] += 1
    host = to_numpy(buffer, keep=False)
    return placement.put_host_value(host, buffer.aval, target, committed=True)


def _reassembled(buffer: Any, source: Any, target: Any) -> Any:
    """The array of pieces that some device holds already; None if one is held by none."""
    shape = buffer.aval.shape
    held: dict[Any, dict[Any, Any]] = {}
    if not _is_held_where_wanted(source.public, target.public, shape):
        return None
    here = placement.local_places(source.public, shape)
    for place, piece in zip(here, pieces_of(buffer), strict=True):
        held.setdefault(place.key, {})[place.device] = piece
    wanted = placement.local_places(target.public, shape)
    # A single-device array may lose its memory to anyone.
    may_reuse = source.memory_kind == target.memory_kind and (
        source.device is None or source.of_piece
    )
    found: dict[Any, Any] = {}
    copies: dict[Any, Any] = {}
    for place in wanted:
        candidates = held[place.key]
        own = candidates.get(place.device)
        if own is not None and may_reuse:
            found[place.device] = own
        else:
            copies[place.device] = next(iter(candidates.values())) if own is None else own
    statistics.transfers["used where they are"] += len(found)
    if copies:
        there = [placement.piece_sharding(device, target.memory_kind) for device in copies]
        found.update(zip(copies, placement.copy_buffers(list(copies.values()), there), strict=True))
    return _sharing(buffer, target, [found[place.device] for place in wanted])


def _is_held_where_wanted(source: Sharding, target: Sharding, shape: Shape) -> bool:
    """Whether each process holds the pieces that its devices shall have: all answer the same."""
    held = {(place.device.process_index, place.key) for place in placement.places(source, shape)}
    return all(
        (place.device.process_index, place.key) in held for place in placement.places(target, shape)
    )


def aliased(buffer: Any, target: Any) -> Any:
    """The same memory as another, committed array, in terms of `target`."""
    return _sharing(buffer, target, pieces_of(buffer))


def _sharing(buffer: Any, target: Any, pieces: list[Any]) -> Any:
    """The array of pieces some of which belong to `buffer`, too."""
    source = buffer._sharding
    from_one = source.device is not None
    if target.device is not None and (not from_one or source.of_piece):
        target = placement.piece_sharding(target.device, target.memory_kind)
    made = placement.assemble(buffer.aval, target, pieces)
    if from_one and target.device is not None:
        sharing.join_fate(made, buffer)
        return made
    sharing.join(made, pieces)
    if not from_one:
        sharing.join(buffer, pieces_of(buffer))
    return made


def own_part(buffer: Any) -> Any:
    """A result, described as that of this process, in terms that C++ understands, too."""
    return placement.assemble(buffer.aval, buffer._sharding, pieces_of(buffer))


def view(buffer: Any) -> Any:
    """A buffer for another array of the same elements, that may be deleted by itself."""
    if buffer._sharding.device is not None:
        return buffer
    return aliased(buffer, buffer._sharding)


def as_piece(x: Array, kind: str | None) -> Any:
    """The buffer of an array on one device, which becomes part of an array over several."""
    buffer = x.buffer
    source = buffer._sharding
    if not source.of_piece:
        there = placement.piece_sharding(source.device, kind)
        piece = placement.assemble(buffer.aval, there, [buffer], committed=buffer._committed)
        sharing.join_fate(piece, buffer)
        x.buffer = piece
    return x.buffer


def copied(buffer: Any) -> Any:
    """The same elements, in memory of their own."""
    return placement.copy_buffer(buffer, buffer._sharding)
