"""Records of random bits: the Threefry hash, and XLA's generators."""

from __future__ import annotations

import numpy as np

from minijax import lax
from minijax.lax.random_bits import threefry2x32_p
from tests.lax.records import Arg, ErrorSample, Record

_WORD = Arg((3,), "uint32", high=2.0**32 - 1)
_ONE = Arg((), "uint32", high=2.0**32 - 1)
_U = np.zeros(3, np.uint32)
_STATE = np.array([1, 2, 3, 4], np.uint32)


def threefry(key0, key1, x0, x1):
    """Threefry-2x32 with twenty rounds, in Python's integers."""
    out = np.empty((2, *np.broadcast_shapes(*map(np.shape, (key0, key1, x0, x1)))), np.uint32)
    for place in np.ndindex(*out.shape[1:]):
        words = (int(np.broadcast_to(x, out.shape[1:])[place]) for x in (key0, key1, x0, x1))
        out[(slice(None), *place)] = _hash(*words)
    return list(out)


def _hash(key0, key1, a, b):
    keys = [key0, key1, key0 ^ key1 ^ 0x1BD11BDA]
    a, b = (a + keys[0]) % 2**32, (b + keys[1]) % 2**32
    for i in range(20):
        turn = (13, 15, 26, 6, 17, 29, 16, 24)[i % 8]
        a = (a + b) % 2**32
        b = (b << turn | b >> (32 - turn)) % 2**32 ^ a
        if i % 4 == 3:
            step = i // 4 + 1
            a = (a + keys[step % 3]) % 2**32
            b = (b + keys[(step + 1) % 3] + step) % 2**32
    return a, b


def _generated(key):
    """What XLA makes of a state by Threefry: a key of 64 bits, and a counter of as many."""
    counters = int(key[2]) + np.arange(3, dtype=np.uint64)
    low, high = (counters % 2**32).astype(np.uint32), key[3] + (counters >> 32).astype(np.uint32)
    state = np.array([key[0], key[1], key[2] + 3, key[3]], np.uint32)
    return state, np.stack(threefry(key[0], key[1], low, high), -1)


def _lies_between(low, high):
    numbers = lax.rng_uniform(low, high, (3, 4))
    return lax.bitwise_and(lax.ge(numbers, low), lax.lt(numbers, high))


RECORDS = [
    Record(
        name="threefry2x32",
        call=threefry2x32_p.bind,
        oracle=threefry,
        args=(_WORD, _WORD, _WORD, _WORD),
        errors=(
            ErrorSample(threefry2x32_p.bind, (_U, _U, _U), TypeError, "needs four operands"),
            ErrorSample(
                threefry2x32_p.bind, (_U, _U, _U, _U.astype(int)), TypeError, "of dtype uint32"
            ),
        ),
    ),
    Record(
        name="threefry2x32",
        case="one_key",
        call=threefry2x32_p.bind,
        oracle=threefry,
        args=(_ONE, _ONE, _WORD, _WORD),
    ),
    Record(
        name="rng_bit_generator",
        call=lambda key: lax.rng_bit_generator(
            key, (3, 2), algorithm=lax.RandomAlgorithm.RNG_THREE_FRY
        ),
        oracle=_generated,
        args=(np.array([123, 456, 789, 4], np.uint32),),
        # A batch shares one stream.
        batch=False,
        errors=(
            ErrorSample(lax.rng_bit_generator, (_STATE[:3], (2,)), TypeError, "not a state"),
            ErrorSample(
                lax.rng_bit_generator, (_STATE, (2,), np.int32), TypeError, "bits of dtype int32"
            ),
            ErrorSample(
                lambda key: lax.rng_bit_generator(key, (2,), algorithm=7),
                (_STATE,),
                ValueError,
                "there is no algorithm 7",
            ),
            ErrorSample(lax.rng_bit_generator, (_STATE, (-2,)), TypeError, "not be negative"),
        ),
    ),
    Record(
        name="rng_uniform",
        call=_lies_between,
        oracle=lambda low, high: np.ones((3, 4), np.bool_),
        args=(Arg((), low=-2, high=0), Arg((), low=1, high=2)),
        dtypes=("float32", "float16", "bfloat16", "int32", "uint32"),
        batch=False,
        errors=(
            ErrorSample(lax.rng_uniform, (0.0, _U, (2,)), TypeError, "different dtypes"),
            ErrorSample(lax.rng_uniform, (_U, _U, (2,)), TypeError, "must be scalars"),
            ErrorSample(lax.rng_uniform, (True, False, (2,)), TypeError, "floats or integers"),
        ),
    ),
]
