"""Generators of random bits: what keys are made of, and what is made of keys.

Input and output: the integers underneath keys, u32[s, words].  `keys.py` has the primitives.

`threefry2x32` is the counter-based generator of Salmon et al., "Parallel random numbers: as easy
as 1, 2, 3" (SC 2011): the bits of element i are a hash of the key and i, so they depend neither on
the sharding nor on the order of evaluation.  `rbg` and `unsafe_rbg` take their bits from XLA's own
generator, which is faster to compile and to run, and differs between platforms; a batch of keys
shares the stream of its first one.  `unsafe_rbg` makes its keys in this way too.  `philox2x32`,
`philox4x32` and `threefry4x32` are further hashes of the same article (`hashes.py`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minijax.core.aval import Shape, aval_of
from minijax.core.errors import error
from minijax.interpreters.structural import broadcast_in_dim
from minijax.lax import binary, convert, creation, ordering, random_bits, shape, slicing
from minijax.random import hashes

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

    def seed(self, seeds: Any) -> Any:
        """Keys from integers: int[s] -> u32[s, words]."""
        raise NotImplementedError

    def split(self, data: Any, extra: Shape) -> Any:
        """New keys from each key: u32[s, words] -> u32[s, *extra, words]."""
        raise NotImplementedError

    def fold_in(self, data: Any, numbers: Any) -> Any:
        """Keys with integers mixed in: u32[s, words], u32[t] -> u32[s, words], where t ends s."""
        raise NotImplementedError

    def bits(self, data: Any, bit_width: int, extra: Shape) -> Any:
        """Random bits from each key: u32[s, words] -> uint<bit_width>[s, *extra]."""
        raise NotImplementedError


class Threefry(Generator):
    """The hash `threefry2x32`: a key of two words, a counter of two words, two words of bits."""

    def seed(self, seeds: Any) -> Any:
        return _columns(_words_of_numbers(seeds))

    def split(self, data: Any, extra: Shape) -> Any:
        return _new_keys(*_hash(data, extra))

    def fold_in(self, data: Any, numbers: Any) -> Any:
        numbers = _spread(numbers, aval_of(data).shape[:-1])
        high, low = _words_of_numbers(numbers)
        return _new_keys(*random_bits.threefry2x32_p.bind(*_words(data, ()), high, low))

    def bits(self, data: Any, bit_width: int, extra: Shape) -> Any:
        first, second = _hash(data, extra)
        dtype = np.dtype(f"uint{bit_width}")
        if bit_width == 64:
            return _joined(first, second)
        bits = binary.bitwise_xor(first, second)
        return bits if bit_width == 32 else convert.convert_element_type(bits, dtype)


class CounterHash(Generator):
    """A hash of two or four words; keys and bits are what it makes of counters."""

    counter_words = 4

    def hashed(self, key: Sequence[Any], counter: Sequence[Any]) -> list[Any]:
        """The words that the hash makes of those of a counter."""
        raise NotImplementedError

    def halves(self, words: Sequence[Any]) -> tuple[Any, Any]:
        """The high and the low half of 64 bits from the words of a hash."""
        return words[0], words[1]

    def seed(self, seeds: Any) -> Any:
        zero = _zeros_like(seeds)
        counter = self._filled(_words_of_numbers(seeds))
        return _columns(self.hashed([zero] * self.words, counter)[: self.words])

    def split(self, data: Any, extra: Shape) -> Any:
        counters = _counters(aval_of(data).shape[:-1], extra)
        return self._new_keys(_words(data, extra), counters)

    def fold_in(self, data: Any, numbers: Any) -> Any:
        numbers = _spread(numbers, aval_of(data).shape[:-1])
        return self._new_keys(_words(data, ()), (_zeros_like(numbers), numbers))

    def bits(self, data: Any, bit_width: int, extra: Shape) -> Any:
        counters = _counters(aval_of(data).shape[:-1], extra)
        words = self.hashed(_words(data, extra), self._filled(counters))
        if bit_width == 64:
            return _joined(*self.halves(words))
        bits = functools.reduce(binary.bitwise_xor, words)
        return convert.convert_element_type(bits, np.dtype(f"uint{bit_width}"))

    def _new_keys(self, key: Sequence[Any], numbers: Sequence[Any]) -> Any:
        """Keys from numbers of two words, which are the last ones of a counter."""
        counter = self._filled(numbers)
        counter = [*counter[2:], *counter[:2]]
        return ordering.optimization_barrier(_columns(self.hashed(key, counter)[: self.words]))

    def _filled(self, numbers: Sequence[Any]) -> list[Any]:
        """A counter whose first words are those of numbers, and whose others are zero."""
        return [*numbers, *[_zeros_like(numbers[0])] * (self.counter_words - 2)]


class Philox2x32(CounterHash):
    """The hash `philox2x32`, with keys of one word."""

    counter_words = 2

    def hashed(self, key: Sequence[Any], counter: Sequence[Any]) -> list[Any]:
        return hashes.philox(key, counter)


class Philox4x32(CounterHash):
    """The hash `philox4x32`, with keys of two words."""

    def hashed(self, key: Sequence[Any], counter: Sequence[Any]) -> list[Any]:
        return hashes.philox(key, counter)


class Threefry4x32(CounterHash):
    """The hash `threefry4x32`, with keys of four words; seeds are hashed as keys."""

    def hashed(self, key: Sequence[Any], counter: Sequence[Any]) -> list[Any]:
        return hashes.threefry4x32(key, counter)

    def halves(self, words: Sequence[Any]) -> tuple[Any, Any]:
        high, low = (binary.bitwise_xor(words[i], words[i + 2]) for i in range(2))
        return high, low

    def seed(self, seeds: Any) -> Any:
        key = self._filled(_words_of_numbers(seeds))
        return _columns(self.hashed(key, [_zeros_like(seeds)] * 4))


THREEFRY = Threefry("threefry2x32", "fry", 2)


class FlatThreefry(Threefry):
    """As `Threefry`, with the counters of earlier versions: the bits are cut from one long row.

    Its first half has the first words of the hashes, its second half the second words: an element
    depends on the size of the whole, and a device that holds a part has to compute with others.
    """

    def split(self, data: Any, extra: Shape) -> Any:
        words = _row(data, 2 * math.prod(extra))
        return shape.reshape(words, (*aval_of(data).shape[:-1], *extra, 2))

    def bits(self, data: Any, bit_width: int, extra: Shape) -> Any:
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

    def seed(self, seeds: Any) -> Any:
        half = THREEFRY.seed(seeds)
        return shape.concatenate([half, half], aval_of(half).ndim - 1)

    def split(self, data: Any, extra: Shape) -> Any:
        lead = aval_of(data).shape[:-1]
        halves = self.threefry.split(shape.reshape(data, (*lead, 2, 2)), extra)
        # The halves stand before the new dimensions, and belong behind them.
        rank, new = len(lead), range(len(lead) + 1, len(lead) + 1 + len(extra))
        halves = shape.transpose(halves, (*range(rank), *new, rank, rank + 1 + len(extra)))
        return shape.reshape(halves, (*lead, *extra, 4))

    def fold_in(self, data: Any, numbers: Any) -> Any:
        lead = aval_of(data).shape[:-1]
        both = broadcast_in_dim(_spread(numbers, lead), (*lead, 2), range(len(lead)))
        halves = THREEFRY.fold_in(shape.reshape(data, (*lead, 2, 2)), both)
        return shape.reshape(halves, (*lead, 4))

    def bits(self, data: Any, bit_width: int, extra: Shape) -> Any:
        dims = (*aval_of(data).shape[:-1], *extra)
        if 0 in aval_of(data).shape:
            return creation.full(dims, 0, np.dtype(f"uint{bit_width}"))
        return _generated(data, dims, bit_width)


class UnsafeRbg(Rbg):
    """As `Rbg`, with keys from XLA's generator too: nobody vouches for their independence."""

    def split(self, data: Any, extra: Shape) -> Any:
        lead = aval_of(data).shape[:-1]
        count = math.prod(extra)
        words = _every_tenth(self.bits(data, 32, (10 * count, 4)), 0)
        return shape.reshape(words, (*lead, *extra, 4))

    def fold_in(self, data: Any, numbers: Any) -> Any:
        words = _every_tenth(self.bits(self.seed(numbers), 32, (10, 4)), 9)
        words = shape.reshape(words, (*aval_of(numbers).shape, 4))
        return binary.bitwise_xor(data, _spread(words, aval_of(data).shape))


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


def _generated(data: Any, dims: Shape, bit_width: int) -> Any:
    """Bits of XLA's generator; the first key is the state."""
    lead = aval_of(data).ndim - 1
    state = shape.reshape(slicing.slice(data, (0,) * (lead + 1), (*(1,) * lead, 4)), (4,))
    return random_bits.rng_bit_generator(state, dims, np.dtype(f"uint{bit_width}"))[1]


def _every_tenth(words: Any, start: int) -> Any:
    """Rows of u32[s, n, 4] that stand far from each other."""
    dims = aval_of(words).shape
    starts = (*(0,) * (len(dims) - 2), start, 0)
    strides = (*(1,) * (len(dims) - 2), 10, 1)
    return slicing.slice(words, starts, dims, strides)


def _spread(x: Any, dims: Shape) -> Any:
    """An array repeated to a shape that ends in its own."""
    rank = aval_of(x).ndim
    return broadcast_in_dim(x, dims, range(len(dims) - rank, len(dims)))


def _words_of_numbers(numbers: Any) -> tuple[Any, Any]:
    """The high and the low word of each number."""
    aval = aval_of(numbers)
    low = convert.convert_element_type(numbers, _UINT32)
    if aval.dtype.itemsize < 8:
        return _zeros_like(numbers), low
    wide = convert.convert_element_type(numbers, _UINT64)
    high = binary.shift_right_logical(wide, np.uint64(32))
    return convert.convert_element_type(high, _UINT32), low


def _joined(high: Any, low: Any) -> Any:
    """Numbers of 64 bits from their words."""
    high = convert.convert_element_type(high, _UINT64)
    low = convert.convert_element_type(low, _UINT64)
    return binary.bitwise_or(binary.shift_left(high, np.uint64(32)), low)


def _zeros_like(numbers: Any) -> Any:
    return broadcast_in_dim(np.zeros((), _UINT32)[()], aval_of(numbers).shape, ())


def _columns(words: Sequence[Any]) -> Any:
    """Keys from their words: u32[s] each -> u32[s, words]."""
    dims = aval_of(words[0]).shape
    columns = [broadcast_in_dim(x, (*dims, 1), range(len(dims))) for x in words]
    return shape.concatenate(columns, len(dims))


def _words(data: Any, extra: Shape) -> list[Any]:
    """The words of keys u32[s, words], each repeated to (*s, *extra)."""
    *dims, count = aval_of(data).shape
    words = (slicing.index_in_dim(data, i, len(dims), keepdims=False) for i in range(count))
    return [broadcast_in_dim(word, (*dims, *extra), range(len(dims))) for word in words]


def _counters(dims: Shape, extra: Shape) -> tuple[Any, Any]:
    """The high and low words of the row-major index over `extra`, repeated over `dims`."""
    target = (*dims, *extra)
    kept = range(len(dims), len(target))
    size = math.prod(extra)
    if size < 2**32:
        low = shape.reshape(creation.iota(_UINT32, size), extra)
        zero = np.zeros((), _UINT32)[()]
        return broadcast_in_dim(zero, target, ()), broadcast_in_dim(low, target, kept)
    error(
        NotImplementedError, "random.bits", "more than 2**32 numbers from one key.", got=str(extra)
    )


def _hash(data: Any, extra: Shape) -> tuple[Any, Any]:
    counters = _counters(aval_of(data).shape[:-1], extra)
    first, second = random_bits.threefry2x32_p.bind(*_words(data, extra), *counters)
    return first, second


def _row(data: Any, count: int) -> Any:
    """A row of hashed words for each key: u32[s, 2] -> u32[s, count]."""
    half = -(-count // 2)
    counters = creation.iota(_UINT32, 2 * half)
    if count % 2:
        last = binary.lt(counters, np.uint32(count))
        counters = binary.mul(counters, convert.convert_element_type(last, _UINT32))
    lead = aval_of(data).shape[:-1]
    first, second = (_spread(x, (*lead, half)) for x in shape.split(counters, (half, half)))
    row = shape.concatenate(
        random_bits.threefry2x32_p.bind(*_words(data, (half,)), first, second), len(lead)
    )
    return slicing.slice_in_dim(row, 0, count, axis=len(lead))


def _pieces(words: Any, bit_width: int) -> Any:
    """Numbers of 8 or 16 bits from words, the lowest bits of a word first."""
    *lead, count = aval_of(words).shape
    each = 32 // bit_width
    dims = (*lead, count, each)
    shifts = binary.mul(creation.iota(_UINT32, each), np.uint32(bit_width))
    shifted = binary.shift_right_logical(
        broadcast_in_dim(words, dims, range(len(lead) + 1)), _spread(shifts, dims)
    )
    narrow = convert.convert_element_type(shifted, np.dtype(f"uint{bit_width}"))
    return shape.reshape(narrow, (*lead, count * each))


def _new_keys(first: Any, second: Any) -> Any:
    """Keys from their words, behind a barrier: XLA would hash anew for each of their uses."""
    return ordering.optimization_barrier(_columns((first, second)))
