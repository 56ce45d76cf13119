"""Seals on files: a sum of all bytes behind the last one, where other readers do not look.

Files of other writers have none, and are read as they are.
"""

from __future__ import annotations

import hashlib

from minijax.export.tables import DamagedError

_MARK = b"minijax export 1"
_SUM_BYTES = 16


def sealed(data: bytes) -> bytes:
    """Bytes with a seal behind them."""
    return data + _sum(data) + _MARK


def opened(data: bytes) -> tuple[bytes, bool]:
    """Bytes without the seal, and whether there was one.

    Raises:
        DamagedError: they are not those that were sealed.
    """
    end = len(data) - len(_MARK)
    if data[end:] != _MARK:
        # A seal of which a byte is damaged is none of another writer.
        if sum(a == b for a, b in zip(data[end:], _MARK, strict=False)) > len(_MARK) // 2:
            raise DamagedError("the seal behind its bytes is damaged")
        return data, False
    content, found = data[: end - _SUM_BYTES], data[end - _SUM_BYTES : end]
    if _sum(content) != found:
        raise DamagedError("its bytes are not those that were written")
    return content, True


def _sum(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_SUM_BYTES).digest()
