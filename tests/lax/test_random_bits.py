"""What records do not say of random bits: published values, XLA's generators as JAX has them."""

import numpy as np
import pytest

import minijax
from minijax import lax
from minijax.lax.random_bits import threefry2x32_p

STATE = np.array([1, 2, 3, 4], np.uint32)


def words(*values):
    return [np.uint32(v) for v in values]


# From the test vectors that the authors of Threefry publish with it.
@pytest.mark.feature("NP-01")
@pytest.mark.parametrize(
    ("key", "counter", "expected"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_threefry_gives_the_published_values(key, counter, expected):
    out = threefry2x32_p.bind(*words(*key), *words(*counter))
    assert tuple(map(int, out)) == expected


# Recorded from JAX 0.10.2 on a CPU.
@pytest.mark.parametrize(
    ("algorithm", "counter", "expected"),
    [
        ("RNG_DEFAULT", 4, [512747620, 1298009047, 1267190206]),
        ("RNG_PHILOX", 4, [512747620, 1298009047, 1267190206]),
        ("RNG_THREE_FRY", 5, [1576285164, 2249660814, 740599976]),
    ],
)
def test_generator_gives_the_bits_that_it_gives_in_jax(algorithm, counter, expected):
    state, bits = lax.rng_bit_generator(STATE, (3,), algorithm=lax.RandomAlgorithm[algorithm])
    assert np.asarray(state).tolist() == [1, 2, counter, 4]
    assert np.asarray(bits).tolist() == expected


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("uint8", [100, 215, 190]), ("uint16", [59492, 3031, 51646])],
)
def test_narrow_bits_are_the_low_ones_of_words(dtype, expected):
    bits = lax.rng_bit_generator(STATE, (3,), dtype)[1]
    assert bits.dtype == np.dtype(dtype)
    assert np.asarray(bits).tolist() == expected


def test_state_may_be_two_wide_words():
    with minijax.enable_x64(True):
        state, bits = lax.rng_bit_generator(STATE.view(np.uint64), (3,), np.uint64)
        same, _ = lax.rng_bit_generator(STATE, (3,), np.uint64)
        assert (state.dtype, bits.dtype) == (np.uint64, np.uint64)
        assert np.array_equal(np.asarray(state).view(np.uint32), same)


def test_no_bits_leave_the_state_as_it_is():
    state, bits = lax.rng_bit_generator(STATE, (0,))
    assert bits.shape == (0,)
    assert np.array_equal(state, STATE)


# Recorded from JAX 0.10.2: one stream for the whole batch, that of the first state.
def test_batch_shares_the_first_stream():
    states = np.stack([STATE, STATE + 7, STATE * 3])
    after, bits = minijax.vmap(lambda key: lax.rng_bit_generator(key, (2,)))(states)
    assert np.asarray(after).tolist() == [[1, 2, 5, 4], [8, 9, 10, 11], [3, 6, 9, 12]]
    assert np.array_equal(bits, lax.rng_bit_generator(STATE, (3, 2))[1])


def test_jaxpr_names_the_algorithm():
    text = str(minijax.make_jaxpr(lambda key: lax.rng_bit_generator(key, (3, 4)))(STATE))
    for parameter in ("algorithm=RNG_DEFAULT", "dtype=uint32", "shape=(3, 4)"):
        assert parameter in text


def test_uniform_numbers_are_weak_where_both_bounds_are():
    assert lax.rng_uniform(0.0, 1.0, (2,)).weak_type
    assert not lax.rng_uniform(np.float32(0), 1.0, (2,)).weak_type


def test_uniform_numbers_between_equal_bounds_are_the_bound():
    assert np.asarray(lax.rng_uniform(np.float32(2), np.float32(2), (2,))).tolist() == [2, 2]
