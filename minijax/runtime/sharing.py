"""Which arrays have memory in common, so that none loses it unseen.

C++ runs programs on several devices without a look at what it is given, and the process dies
where memory is missing.  Hence memory in which an array over several devices has a part is not
freed, and not given to programs that would overwrite it, while another array has it too: it goes
with the last of them.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any


def join(buffer: Any, pieces: Sequence[Any]) -> None:
    """Notes that an array over several devices consists of pieces that others may have too."""
    for piece in pieces:
        _holders(piece)[id(buffer)] = buffer
    buffer.parts = pieces


def join_fate(buffer: Any, other: Any) -> None:
    """Notes that two buffers on one device are of the same memory."""
    buffer.holders = _holders(other)


def _holders(piece: Any) -> Any:
    """The arrays over several devices that a buffer on one device is part of."""
    if not hasattr(piece, "holders"):
        # By number, as C++ arrays have no hash.
        piece.holders = weakref.WeakValueDictionary()
    return piece.holders


def is_shared(buffer: Any) -> bool:
    """Whether an array over several devices would miss the memory of a buffer."""
    placement = buffer._sharding
    if placement.device is not None:
        return placement.of_piece or len(getattr(buffer, "holders", ())) > 0
    return any(len(piece.holders) > 1 for piece in getattr(buffer, "parts", ()))


def note_whole(piece: Any, whole: Any) -> None:
    """Notes the array that a piece is part of."""
    piece.whole = weakref.ref(whole)


def whole_of(buffer: Any) -> Any:
    """The array that a buffer is part of, where it is a piece and the array still there."""
    found = getattr(buffer, "whole", None)
    return None if found is None else found()
