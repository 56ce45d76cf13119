"""Hashes of counters under keys: Philox, and Threefry of four words.

Both are of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011), with the rounds
and constants recommended there.  Input and output: lists of words, u32[s] each.  `generators.py`
makes generators of them; the hash that is used most, Threefry of two words, is a primitive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.lax import binary

_PHILOX_ROUNDS = 10
# What a round of Philox multiplies each pair of words by, and what it adds to each word of the key.
_MULTIPLIERS = {2: (0xD256D193,), 4: (0xD2511F53, 0xCD9E8D57)}
_INCREMENTS = (0x9E3779B9, 0xBB67AE85)

_THREEFRY_ROUNDS = 20
_ROTATIONS = ((10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20))
_PARITY = 0x1BD11BDA


def philox(key: Sequence[Any], counter: Sequence[Any]) -> list[Any]:
    """Philox2x32-10 or Philox4x32-10: hashes two or four words under a key of half as many."""
    words, key = list(counter), list(key)
    multipliers = [np.uint32(m) for m in _MULTIPLIERS[len(words)]]
    for _ in range(_PHILOX_ROUNDS):
        factors = words[::2]
        high = [binary.mulhi(m, x) for m, x in zip(multipliers, factors, strict=True)]
        low = [binary.mul(m, x) for m, x in zip(multipliers, factors, strict=True)]
        # Each pair takes the products of the next one, the last those of the first.
        high, low = high[1:] + high[:1], low[1:] + low[:1]
        mixed = [_xor(_xor(h, x), k) for h, x, k in zip(high, words[1::2], key, strict=True)]
        words = [word for pair in zip(mixed, low, strict=True) for word in pair]
        key = [binary.add(k, np.uint32(w)) for k, w in zip(key, _INCREMENTS, strict=False)]
    return words


def threefry4x32(key: Sequence[Any], counter: Sequence[Any]) -> list[Any]:
    """Threefry4x32-20: hashes four words under a key of four."""
    parity: Any = np.uint32(_PARITY)
    for word in key:
        parity = _xor(parity, word)
    schedule = [*key, parity]
    words = [binary.add(x, k) for x, k in zip(counter, key, strict=True)]
    for number in range(_THREEFRY_ROUNDS):
        # Words 0 and 2 take turns in which of the words 1 and 3 each of them is mixed with.
        partners = (1, 3) if number % 2 == 0 else (3, 1)
        for i, j, distance in zip((0, 2), partners, _ROTATIONS[number % 8], strict=True):
            words[i] = binary.add(words[i], words[j])
            words[j] = _xor(_rotated(words[j], distance), words[i])
        if number % 4 == 3:
            turn = number // 4 + 1
            words = [binary.add(x, schedule[(turn + i) % 5]) for i, x in enumerate(words)]
            words[3] = binary.add(words[3], np.uint32(turn))
    return words


def _xor(x: Any, y: Any) -> Any:
    return binary.bitwise_xor(x, y)


def _rotated(x: Any, distance: int) -> Any:
    left = binary.shift_left(x, np.uint32(distance))
    return binary.bitwise_or(left, binary.shift_right_logical(x, np.uint32(32 - distance)))
