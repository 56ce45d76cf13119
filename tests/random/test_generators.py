"""Keys of other generators: those of XLA, and other hashes."""

import copy
import pickle

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import random
from minijax.lax import random_bits
from tests.random import recorded, samples

pytestmark = pytest.mark.feature("NP-03")

CALLS = samples.CALLS["generators"] | samples.CALLS["flat"]
CALLS_X64 = samples.CALLS_X64["generators"] | samples.CALLS_X64["flat"]
TAGS = {
    "rbg": "rbg",
    "unsafe_rbg": "urbg",
    "philox2x32": "phx2",
    "philox4x32": "phx4",
    "threefry4x32": "fry4",
}
WORDS = {"rbg": 4, "unsafe_rbg": 4, "philox2x32": 1, "philox4x32": 2, "threefry4x32": 4}


def data(keys):
    return np.asarray(random.key_data(keys))


@pytest.mark.parametrize("name", CALLS)
def test_figures_equal_those_of_jax(name):
    recorded.check(name, CALLS[name](jax, random.key(samples.SEED)), ulps=2)


@pytest.mark.parametrize("name", CALLS_X64)
def test_figures_equal_those_of_jax_with_64_bits(name):
    with jax.enable_x64(True):
        result = CALLS_X64[name](jax, random.key(samples.SEED))
    recorded.check(name, result, x64=True, ulps=2)


def test_programs_of_either_arrangement_are_told_apart():
    sampled = jax.jit(lambda key: (random.bits(key, (3,)), random.gamma(key, 2.0, (3,))))
    key = random.key(samples.SEED, impl="rbg")
    bits, gammas = sampled(key)
    with jax.threefry_partitionable(False):
        flat_bits, flat_gammas = sampled(key)
        assert "partitionable=False" in str(jax.make_jaxpr(random.split)(key))
    np.testing.assert_array_equal(flat_bits, bits)
    assert not np.any(flat_gammas == gammas)


@pytest.mark.parametrize("name", TAGS)
def test_keys_tell_their_generator(name):
    key = random.key(1, impl=name)
    assert random.key_impl(key) == name
    assert key.dtype == random.key_dtype(name) == random.wrap_key_data(data(key), impl=name).dtype
    assert key.dtype != random.key_dtype("threefry2x32")
    assert (data(key).shape, key.dtype.itemsize) == ((WORDS[name],), 4 * WORDS[name])
    tag = TAGS[name]
    assert str(key.dtype) == f"key<{tag}>"
    assert repr(key) == f"Array((), dtype=key<{tag}>) overlaying:\n{data(key)}"
    jaxpr = jax.make_jaxpr(lambda s: random.key(s, impl=name))(1)
    assert f"random_seed[impl={tag}]" in str(jaxpr)


@pytest.mark.parametrize("name", TAGS)
def test_keys_live_as_arrays(name):
    keys = random.split(random.key(1, impl=name), 3)
    mixed = jnp.where(np.array([True, False, True]), keys, keys[::-1])
    np.testing.assert_array_equal(data(mixed), data(keys)[[0, 1, 2]])
    stacked = jnp.concatenate([keys, keys]).reshape(2, 3)
    np.testing.assert_array_equal(data(stacked[1]), data(keys))
    for again in (copy.copy(keys), pickle.loads(pickle.dumps(keys)), random.clone(keys)):
        assert again.dtype == keys.dtype
        np.testing.assert_array_equal(data(again), data(keys))

    def step(key, _):
        return random.fold_in(key, 1), random.bits(key)

    last, _ = jax.lax.scan(step, keys[0], length=2)
    twice = random.fold_in(random.fold_in(keys[0], 1), 1)
    np.testing.assert_array_equal(data(last), data(twice))


def test_old_style_keys_are_of_the_generator_in_force():
    with jax.default_prng_impl("rbg"):
        key = random.PRNGKey(1)
        assert (key.shape, random.key_impl(key)) == ((4,), "rbg")
        expected = data(random.split(random.key(1)))
        np.testing.assert_array_equal(random.split(key), expected)
        with pytest.raises(TypeError, match="not a random key"):
            random.bits(np.zeros(2, np.uint32))
    with pytest.raises(TypeError, match="not a random key"):
        random.bits(key)


@pytest.mark.parametrize(
    ("given", "error"),
    [("foo", ValueError), (3, TypeError), ("threefry2x64", ValueError)],
)
def test_unknown_generators_are_refused(given, error):
    with pytest.raises(error, match="'threefry2x32', 'rbg', 'unsafe_rbg', 'philox2x32'"):
        random.key(0, impl=given)


def test_keys_of_two_generators_do_not_mix():
    with pytest.raises(ValueError, match="key<rbg>"):
        jnp.concatenate([random.split(random.key(0, impl="rbg")), random.split(random.key(0))])


@pytest.mark.parametrize(("size", "dtype"), [(2**33, "uint32"), (2**32 + 5, "uint8")])
def test_counters_go_on_beyond_words(size, dtype):
    # XLA computes those elements alone that are asked for.
    key = random.key(3)
    found = jax.jit(lambda k: random.bits(k, (size,), dtype)[-4:])(key)
    high, low = np.divmod(np.arange(size - 4, size, dtype=np.uint64), np.uint64(2**32))
    words = [np.full(4, word) for word in data(key)]
    hashed = random_bits.threefry2x32_p.bind(*words, *(x.astype(np.uint32) for x in (high, low)))
    np.testing.assert_array_equal(found, (hashed[0] ^ hashed[1]).astype(dtype))


def test_older_counters_are_words():
    with jax.threefry_partitionable(False), pytest.raises(NotImplementedError, match="words"):
        jax.eval_shape(jax.jit(lambda k: random.bits(k, (2**33,))[:1]).lower, random.key(3))
