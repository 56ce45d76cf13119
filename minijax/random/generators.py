"""Generators of random bits: what keys are made of, and what is made of keys.

Input and output: the integers underneath keys, u32[s, words].  `keys.py` has the primitives.

`threefry2x32` is the counter-based generator of Salmon et al., "Parallel random numbers: as easy
as 1, 2, 3" (SC 2011): the bits of element i are a hash of the key and i, so they depend neither on
the sharding nor on the order of evaluation.  `rbg` and `unsafe_rbg` take their bits from XLA's own
generator, which is faster to compile and to run, and differs between platforms; a batch of keys
shares the stream of its first one.  `unsafe_rbg` makes its keys in this way too.  `philox2x32`,
`philox4x32` and `threefry4x32` are further hashes of the same article, with the rounds and
constants recommended there; Threefry of two words is a primitive.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from minijax.core.aval import Shape, aval_of
from minijax.core.errors import error
from minijax.interpreters.structural import broadcast_in_dim
from minijax.lax import binary, callbacks, creation, random_bits, shape, slicing
from minijax.lax.creation import convert_element_type
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array

Words = Sequence[Array]
"""The words of keys or of counters: u32[s] each."""

_PHILOX_ROUNDS = 10
# What a round of Philox multiplies each pair of words by, and what it adds to each word of the key.
_MULTIPLIERS = {2: (0xD256D193,), 4: (0xD2511F53, 0xCD9E8D57)}
_INCREMENTS = (0x9E3779B9, 0xBB67AE85)

_THREEFRY_ROUNDS = 20
_ROTATIONS = ((10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20))
_PARITY = 0x1BD11BDA


def philox(key: Words, counter: Words) -> list[Array]:
    """Philox2x32-10 or Philox4x32-10: hashes two or four words under a key of half as many."""
    words, key = list(counter), list(key)
    multipliers = [np.uint32(m) for m in _MULTIPLIERS[len(words)]]
    for _ in range(_PHILOX_ROUNDS):
        factors = words[::2]
        high = [binary.mulhi(m, x) for m, x in zip(multipliers, factors, strict=True)]
        low = [binary.mul(m, x) for m, x in zip(multipliers, factors, strict=True)]
        # Each pair takes the products of the next one, the last those of the first.
        high, low = high[1:] + high[:1], low[1:] + low[:1]
        mixed = [h ^ x ^ k for h, x, k in zip(high, words[1::2], key, strict=True)]
        words = [word for pair in zip(mixed, low, strict=True) for word in pair]
        key = [binary.add(k, np.uint32(w)) for k, w in zip(key, _INCREMENTS, strict=False)]
    return words


def threefry4x32(key: Words, counter: Words) -> list[Array]:
    """Threefry4x32-20: hashes four words under a key of four."""
    parity = functools.reduce(binary.bitwise_xor, key, cast(ArrayLike, np.uint32(_PARITY)))
    schedule: list[ArrayLike] = [*key, parity]
    # Not operators, which would add on the host, and warn, where words are known.
    words = [binary.add(x, k) for x, k in zip(counter, key, strict=True)]
    for number in range(_THREEFRY_ROUNDS):
        # Words 0 and 2 take turns in which of the words 1 and 3 each of them is mixed with.
        partners = (1, 3) if number % 2 == 0 else (3, 1)
        for i, j, distance in zip((0, 2), partners, _ROTATIONS[number % 8], strict=True):
            words[i] = binary.add(words[i], words[j])
            words[j] = _rotated(words[j], distance) ^ words[i]
        if number % 4 == 3:
            turn = number // 4 + 1
            words = [binary.add(x, schedule[(turn + i) % 5]) for i, x in enumerate(words)]
            words[3] = binary.add(words[3], np.uint32(turn))
    return words


def _rotated(x: Array, distance: int) -> Array:
    return x << np.uint32(distance) | x >> np.uint32(32 - distance)


_UINT32 = np.dtype(np.uint32)
_UINT64 = np.dtype(np.uint64)


@dataclass(frozen=True)
class Generator:
    """A generator, and how its keys are stored.

    Attributes:
        name: what users call it.
        tag: what jaxprs and dtypes print.
        words: how many integers make a key.
    """

    name: str
    tag: str
    words: int

    def __str__(self) -> str:
        return self.tag

    def seed(self, seeds: Array) -> Array:
        """Keys from integers: int[s] -> u32[s, words]."""
        raise NotImplementedError

    def split(self, data: Array, extra: Shape) -> Array:
        """New keys from each key: u32[s, words] -> u32[s, *extra, words]."""
        raise NotImplementedError

    def fold_in(self, data: Array, numbers: Array) -> Array:
        """Keys with integers mixed in: u32[s, words], u32[t] -> u32[s, words], where t ends s."""
        raise NotImplementedError

    def bits(self, data: Array, bit_width: int, extra: Shape) -> Array:
        """Random bits from each key: u32[s, words] -> uint<bit_width>[s, *extra]."""
        raise NotImplementedError


class Threefry(Generator):
    """The hash `threefry2x32`: a key of two words, a counter of two words, two words of bits."""

    def seed(self, seeds: Array) -> Array:
        return _columns(_words_of_numbers(seeds))

    def split(self, data: Array, extra: Shape) -> Array:
        return _new_keys(*_hash(data, extra))

    def fold_in(self, data: Array, numbers: Array) -> Array:
        numbers = _spread(numbers, aval_of(data).shape[:-1])
        high, low = _words_of_numbers(numbers)
        return _new_keys(*random_bits.threefry2x32_p.bind(*_words(data, ()), high, low))

    def bits(self, data: Array, bit_width: int, extra: Shape) -> Array:
        first, second = _hash(data, extra)
        if bit_width == 64:
            return _joined(first, second)
        return convert_element_type(first ^ second, np.dtype(f"uint{bit_width}"))


class CounterHash(Generator):
    """A hash of two or four words; keys and bits are what it makes of counters."""

    counter_words = 4

    def hashed(self, key: Words, counter: Words) -> list[Array]:
        """The words that the hash makes of those of a counter."""
        raise NotImplementedError

    def halves(self, words: Words) -> tuple[Array, Array]:
        """The high and the low half of 64 bits from the words of a hash."""
        return words[0], words[1]

    def seed(self, seeds: Array) -> Array:
        zero = _zeros_like(seeds)
        counter = self._filled(_words_of_numbers(seeds))
        return _columns(self.hashed([zero] * self.words, counter)[: self.words])

    def split(self, data: Array, extra: Shape) -> Array:
        counters = _counters(aval_of(data).shape[:-1], extra)
        return self._new_keys(_words(data, extra), counters)

    def fold_in(self, data: Array, numbers: Array) -> Array:
        numbers = _spread(numbers, aval_of(data).shape[:-1])
        return self._new_keys(_words(data, ()), (_zeros_like(numbers), numbers))

    def bits(self, data: Array, bit_width: int, extra: Shape) -> Array:
        counters = _counters(aval_of(data).shape[:-1], extra)
        words = self.hashed(_words(data, extra), self._filled(counters))
        if bit_width == 64:
            return _joined(*self.halves(words))
        bits = functools.reduce(binary.bitwise_xor, words)
        return convert_element_type(bits, np.dtype(f"uint{bit_width}"))

    def _new_keys(self, key: Words, numbers: Words) -> Array:
        """Keys from numbers of two words, which are the last ones of a counter."""
        counter = self._filled(numbers)
        counter = [*counter[2:], *counter[:2]]
        return callbacks.optimization_barrier(_columns(self.hashed(key, counter)[: self.words]))

    def _filled(self, numbers: Words) -> list[Array]:
        """A counter whose first words are those of numbers, and whose others are zero."""
        return [*numbers, *[_zeros_like(numbers[0])] * (self.counter_words - 2)]


class Philox2x32(CounterHash):
    """The hash `philox2x32`, with keys of one word."""

    counter_words = 2

    def hashed(self, key: Words, counter: Words) -> list[Array]:
        return philox(key, counter)


class Philox4x32(CounterHash):
    """The hash `philox4x32`, with keys of two words."""

    def hashed(self, key: Words, counter: Words) -> list[Array]:
        return philox(key, counter)


class Threefry4x32(CounterHash):
    """The hash `threefry4x32`, with keys of four words; seeds are hashed as keys."""

    def hashed(self, key: Words, counter: Words) -> list[Array]:
        return threefry4x32(key, counter)

    def halves(self, words: Words) -> tuple[Array, Array]:
        return words[0] ^ words[2], words[1] ^ words[3]

    def seed(self, seeds: Array) -> Array:
        key = self._filled(_words_of_numbers(seeds))
        return _columns(self.hashed(key, [_zeros_like(seeds)] * 4))


THREEFRY = Threefry("threefry2x32", "fry", 2)


class FlatThreefry(Threefry):
    """As `Threefry`, with the counters of earlier versions: the bits are cut from one long row.

    Its first half has the first words of the hashes, its second half the second words: an element
    depends on the size of the whole, and a device that holds a part has to compute with others.
    """

    def split(self, data: Array, extra: Shape) -> Array:
        words = _row(data, 2 * math.prod(extra))
        return shape.reshape(words, (*aval_of(data).shape[:-1], *extra, 2))

    def bits(self, data: Array, bit_width: int, extra: Shape) -> Array:
        lead, count = aval_of(data).shape[:-1], math.prod(extra)
        row = _row(data, -(-count * bit_width // 32))
        if bit_width == 64:
            row = _joined(*shape.split(row, (count, count), len(lead)))
        elif bit_width < 32:
            row = slicing.slice_in_dim(_pieces(row, bit_width), 0, count, axis=len(lead))
        return shape.reshape(row, (*lead, *extra))


FLAT_THREEFRY = FlatThreefry("threefry2x32", "fry", 2)


@dataclass(frozen=True)
class Rbg(Generator):
    """Bits of XLA's generator, whose state is a key; keys are pairs of Threefry's.

    Attributes:
        threefry: how these are made.
    """

    threefry: Threefry = THREEFRY

    def seed(self, seeds: Array) -> Array:
        half = THREEFRY.seed(seeds)
        return shape.concatenate([half, half], aval_of(half).ndim - 1)

    def split(self, data: Array, extra: Shape) -> Array:
        lead = aval_of(data).shape[:-1]
        halves = self.threefry.split(shape.reshape(data, (*lead, 2, 2)), extra)
        # The halves stand before the new dimensions, and belong behind them.
        rank, new = len(lead), range(len(lead) + 1, len(lead) + 1 + len(extra))
        halves = shape.transpose(halves, (*range(rank), *new, rank, rank + 1 + len(extra)))
        return shape.reshape(halves, (*lead, *extra, 4))

    def fold_in(self, data: Array, numbers: Array) -> Array:
        lead = aval_of(data).shape[:-1]
        both = broadcast_in_dim(_spread(numbers, lead), (*lead, 2), range(len(lead)))
        halves = THREEFRY.fold_in(shape.reshape(data, (*lead, 2, 2)), both)
        return shape.reshape(halves, (*lead, 4))

    def bits(self, data: Array, bit_width: int, extra: Shape) -> Array:
        dims = (*aval_of(data).shape[:-1], *extra)
        if 0 in aval_of(data).shape:
            return creation.full(dims, 0, np.dtype(f"uint{bit_width}"))
        return _generated(data, dims, bit_width)


class UnsafeRbg(Rbg):
    """As `Rbg`, with keys from XLA's generator too: nobody vouches for their independence."""

    def split(self, data: Array, extra: Shape) -> Array:
        lead = aval_of(data).shape[:-1]
        count = math.prod(extra)
        words = _every_tenth(self.bits(data, 32, (10 * count, 4)), 0)
        return shape.reshape(words, (*lead, *extra, 4))

    def fold_in(self, data: Array, numbers: Array) -> Array:
        words = _every_tenth(self.bits(self.seed(numbers), 32, (10, 4)), 9)
        words = shape.reshape(words, (*aval_of(numbers).shape, 4))
        return data ^ _spread(words, data.shape)


RBG = Rbg("rbg", "rbg", 4)
UNSAFE_RBG = UnsafeRbg("unsafe_rbg", "urbg", 4)
PHILOX2X32 = Philox2x32("philox2x32", "phx2", 1)
PHILOX4X32 = Philox4x32("philox4x32", "phx4", 2)
THREEFRY4X32 = Threefry4x32("threefry4x32", "fry4", 4)
GENERATORS: dict[str, Generator] = {
    generator.name: generator
    for generator in (THREEFRY, RBG, UNSAFE_RBG, PHILOX2X32, PHILOX4X32, THREEFRY4X32)
}
_FLAT = {THREEFRY: FLAT_THREEFRY, RBG: Rbg("rbg", "rbg", 4, FLAT_THREEFRY)}


def arranged(generator: Generator, partitionable: bool) -> Generator:
    """The generator that gives the bits of `config.threefry_partitionable`, or the older ones."""
    return generator if partitionable else _FLAT.get(generator, generator)


def _generated(data: Array, dims: Shape, bit_width: int) -> Array:
    """Bits of XLA's generator; the first key is the state."""
    lead = aval_of(data).ndim - 1
    state = shape.reshape(slicing.slice(data, (0,) * (lead + 1), (*(1,) * lead, 4)), (4,))
    return random_bits.rng_bit_generator(state, dims, np.dtype(f"uint{bit_width}"))[1]


def _every_tenth(words: Array, start: int) -> Array:
    """Rows of u32[s, n, 4] that stand far from each other."""
    dims = aval_of(words).shape
    starts = (*(0,) * (len(dims) - 2), start, 0)
    strides = (*(1,) * (len(dims) - 2), 10, 1)
    return slicing.slice(words, starts, dims, strides)


def _spread(x: Array, dims: Shape) -> Array:
    """An array repeated to a shape that ends in its own."""
    rank = aval_of(x).ndim
    return broadcast_in_dim(x, dims, range(len(dims) - rank, len(dims)))


def _words_of_numbers(numbers: Array) -> tuple[Array, Array]:
    """The high and the low word of each number."""
    aval = aval_of(numbers)
    low = convert_element_type(numbers, _UINT32)
    if aval.dtype.itemsize < 8:
        return _zeros_like(numbers), low
    wide, distance = (
        creation.convert_element_type_p.bind(x, new_dtype=_UINT64, weak_type=False, sharding=None)
        for x in (numbers, np.uint32(32))
    )
    high = binary.shift_right_logical(wide, distance)
    return convert_element_type(high, _UINT32), low


def _joined(high: Array, low: Array) -> Array:
    """Numbers of 64 bits from their words."""
    high = convert_element_type(high, _UINT64)
    low = convert_element_type(low, _UINT64)
    return high << np.uint64(32) | low


def _zeros_like(numbers: Array) -> Array:
    return broadcast_in_dim(np.zeros((), _UINT32)[()], aval_of(numbers).shape, ())


def _columns(words: Words) -> Array:
    """Keys from their words: u32[s] each -> u32[s, words]."""
    dims = aval_of(words[0]).shape
    columns = [broadcast_in_dim(x, (*dims, 1), range(len(dims))) for x in words]
    return shape.concatenate(columns, len(dims))


def _words(data: Array, extra: Shape) -> list[Array]:
    """The words of keys u32[s, words], each repeated to (*s, *extra)."""
    *dims, count = aval_of(data).shape
    words = (slicing.index_in_dim(data, i, len(dims), keepdims=False) for i in range(count))
    return [broadcast_in_dim(word, (*dims, *extra), range(len(dims))) for word in words]


def _counters(dims: Shape, extra: Shape) -> tuple[Array, Array]:
    """The high and low words of the row-major index over `extra`, repeated over `dims`."""
    target = (*dims, *extra)
    kept = range(len(dims), len(target))
    size = math.prod(extra)
    if size < 2**32:
        low = shape.reshape(creation.iota(_UINT32, size), extra)
        zero = np.zeros((), _UINT32)[()]
        return broadcast_in_dim(zero, target, ()), broadcast_in_dim(low, target, kept)
    # Primitives count in 64 bits whatever dtypes users have.
    numbers = creation.iota_p.bind(dtype=_UINT64, shape=(size,), dimension=0, sharding=None)
    numbers = broadcast_in_dim(shape.reshape(numbers, extra), target, kept)
    high, low = _words_of_numbers(numbers)
    return high, low


def _hash(data: Array, extra: Shape) -> tuple[Array, Array]:
    counters = _counters(aval_of(data).shape[:-1], extra)
    first, second = random_bits.threefry2x32_p.bind(*_words(data, extra), *counters)
    return first, second


def _row(data: Array, count: int) -> Array:
    """A row of hashed words for each key: u32[s, 2] -> u32[s, count]."""
    if count >= 2**32:
        problem = "the older counters are words, of which there are 2**32."
        fix = "jax_threefry_partitionable=True"
        error(NotImplementedError, "random.bits", problem, got=f"{count} words", fix=fix)
    half = -(-count // 2)
    counters = creation.iota(_UINT32, 2 * half)
    if count % 2:
        counters = counters * convert_element_type(counters < np.uint32(count), _UINT32)
    lead = aval_of(data).shape[:-1]
    first, second = (_spread(x, (*lead, half)) for x in shape.split(counters, (half, half)))
    row = shape.concatenate(
        random_bits.threefry2x32_p.bind(*_words(data, (half,)), first, second), len(lead)
    )
    return slicing.slice_in_dim(row, 0, count, axis=len(lead))


def _pieces(words: Array, bit_width: int) -> Array:
    """Numbers of 8 or 16 bits from words, the lowest bits of a word first."""
    *lead, count = aval_of(words).shape
    each = 32 // bit_width
    dims = (*lead, count, each)
    shifts = creation.iota(_UINT32, each) * np.uint32(bit_width)
    shifted = broadcast_in_dim(words, dims, range(len(lead) + 1)) >> _spread(shifts, dims)
    narrow = convert_element_type(shifted, np.dtype(f"uint{bit_width}"))
    return shape.reshape(narrow, (*lead, count * each))


def _new_keys(first: Array, second: Array) -> Array:
    """Keys from their words, behind a barrier: XLA would hash anew for each of their uses."""
    return callbacks.optimization_barrier(_columns((first, second)))
