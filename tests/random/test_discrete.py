"""Discrete distributions, permutations and choices: the figures of JAX."""

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import random
from tests.random import recorded, samples

pytestmark = pytest.mark.feature("NP-03")

CALLS = samples.CALLS["discrete"]
CALLS_X64 = samples.CALLS_X64["discrete"]
ONE_OF_EACH = (
    "bernoulli of broadcast array",
    "bernoulli high",
    "rademacher int8",
    "randint uint8 whole",
    "randint arrays",
    "categorical of shape",
    "categorical once each",
    "permutation of range",
    "permutation of columns",
    "permutation in rows",
    "choice of columns",
    "choice of columns once each",
    "choice weighted",
    "choice weighted once each",
    "geometric of array",
)


def ulps_allowed(name):
    # Eager programs do without XLA's fusion emitters, which round 16-bit intermediates otherwise.
    return int(name == "gumbel high float16")


@pytest.fixture
def key():
    return random.key(samples.SEED)


@pytest.mark.parametrize("name", CALLS)
def test_figures_equal_those_of_jax(key, name):
    recorded.check(name, CALLS[name](jax, key), ulps=ulps_allowed(name))


@pytest.mark.parametrize("name", CALLS_X64)
def test_figures_equal_those_of_jax_with_64_bits(name):
    with jax.enable_x64(True):
        result = CALLS_X64[name](jax, random.key(samples.SEED))
    recorded.check(name, result, x64=True, ulps=ulps_allowed(name))


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_jit_has_the_same_figures(key, name):
    recorded.check(name, jax.jit(lambda k: CALLS[name](jax, k))(key))


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_old_style_keys_have_the_same_figures(name):
    recorded.check(name, CALLS[name](jax, random.PRNGKey(samples.SEED)))


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_vmap_over_keys_equals_a_loop(key, name):
    def call(k):
        return CALLS[name](jax, k)

    keys = random.split(key, 3)
    expected = np.stack([np.asarray(call(k)) for k in keys])
    np.testing.assert_array_equal(jax.vmap(call)(keys), expected)


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_first_eager_call_compiles_one_program(key, name):
    jax.clear_caches()
    before = jax.cache_stats()["compile"].misses
    CALLS[name](jax, key)
    assert jax.cache_stats()["compile"].misses - before == 1


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_jaxpr_hides_no_call(key, name):
    jaxpr = jax.make_jaxpr(lambda k: CALLS[name](jax, k))(key)
    assert not {"jit", "pjit", "closed_call"} & {eqn.primitive.name for eqn in jaxpr.eqns}


def test_randint_covers_a_small_range_evenly(key):
    draws = np.asarray(random.randint(key, (30_000,), -1, 2))
    counts = [np.sum(draws == i) for i in (-1, 0, 1)]
    np.testing.assert_allclose(counts, 10_000, rtol=0.05)


def test_randint_reaches_the_whole_range_of_a_narrow_dtype(key):
    draws = np.asarray(random.randint(key, (10_000,), -128, 128, "int8"))
    assert (draws.min(), draws.max()) == (-128, 127)


def test_randint_takes_traced_bounds(key):
    jitted = jax.jit(lambda low, high: random.randint(key, (5,), low, high))
    np.testing.assert_array_equal(jitted(3, 17), random.randint(key, (5,), 3, 17))


def test_permutation_holds_every_element_once(key):
    np.testing.assert_array_equal(np.sort(random.permutation(key, 5000)), np.arange(5000))


def test_permutation_of_rows_keeps_rows_together(key):
    rows = np.arange(12).reshape(6, 2)
    mixed = np.asarray(random.permutation(key, rows))
    np.testing.assert_array_equal(mixed[mixed[:, 0].argsort()], rows)


def test_independent_permutation_keeps_each_row_whole(key):
    rows = np.arange(12).reshape(2, 6)
    mixed = np.asarray(random.permutation(key, rows, axis=1, independent=True))
    np.testing.assert_array_equal(np.sort(mixed, 1), rows)


def test_permutation_of_keys_holds_every_key_once(key):
    keys = random.split(key, 5)
    mixed = np.asarray(random.key_data(random.permutation(key, keys)))
    expected = np.asarray(random.key_data(keys))
    assert sorted(map(tuple, mixed)) == sorted(map(tuple, expected))


def test_choice_without_replacement_draws_none_twice(key):
    assert len(set(np.asarray(random.choice(key, 50, (50,), replace=False)).tolist())) == 50


def test_choice_never_draws_what_has_no_probability(key):
    p = np.array([0.5, 0, 0.5, 0], np.float32)
    assert set(np.asarray(random.choice(key, 4, (1000,), p=p)).tolist()) == {0, 2}


def test_choice_of_keys_gives_keys(key):
    keys = random.split(key, 3)
    picked = random.choice(key, keys, (4,))
    assert (picked.shape, picked.dtype) == ((4,), keys.dtype)


def test_categorical_follows_the_probabilities(key):
    p = np.array([0.1, 0.2, 0.7], np.float32)
    draws = np.asarray(random.categorical(key, np.log(p), shape=(20_000,)))
    np.testing.assert_allclose(np.bincount(draws) / 20_000, p, atol=0.01)


def test_geometric_has_mean_1_over_p(key):
    draws = np.asarray(random.geometric(key, 0.25, (50_000,)))
    assert draws.min() == 1
    np.testing.assert_allclose(draws.mean(), 4, rtol=0.02)


ERRORS = {
    "bits of int": (lambda k: random.bits(k, (2,), int), ValueError, "an unsigned integer"),
    "bernoulli of int": (lambda k: random.bernoulli(k, 1), TypeError, "must be a float"),
    "bernoulli beyond shape": (
        lambda k: random.bernoulli(k, jnp.ones(2), (3,)),
        ValueError,
        "do not fit the shape",
    ),
    "bernoulli of mode": (lambda k: random.bernoulli(k, mode="x"), ValueError, "'low' or 'high'"),
    "randint of float": (lambda k: random.randint(k, (), 0, 5, "float32"), TypeError, "integer"),
    "randint of large bound": (
        lambda k: random.randint(k, (), 0, 2**40),
        OverflowError,
        "does not fit into int32",
    ),
    "randint beyond shape": (
        lambda k: random.randint(k, (2,), jnp.zeros(3, int), 9),
        ValueError,
        "do not fit the shape",
    ),
    "categorical of int": (
        lambda k: random.categorical(k, jnp.ones(3, int)),
        ValueError,
        "must be float",
    ),
    "categorical of wrong shape": (
        lambda k: random.categorical(k, jnp.ones((2, 3)), shape=(3,)),
        ValueError,
        r"batch: \(2,\)",
    ),
    "categorical of too few": (
        lambda k: random.categorical(k, jnp.ones(3), shape=(4,), replace=False),
        ValueError,
        "4 of 3",
    ),
    "permutation of float": (lambda k: random.permutation(k, 3.0), TypeError, "an integer or"),
    "permutation of list": (lambda k: random.permutation(k, [1, 2]), TypeError, "must be arrays"),
    "permutation of axis": (
        lambda k: random.permutation(k, jnp.ones((3, 2)), 2),
        ValueError,
        "axis 2",
    ),
    "choice of nothing": (lambda k: random.choice(k, 0), ValueError, "nothing to choose"),
    "choice of too few": (lambda k: random.choice(k, 5, (6,), replace=False), ValueError, "6 of 5"),
    "choice with wrong weights": (
        lambda k: random.choice(k, 5, p=jnp.ones(4)),
        ValueError,
        r"p: f32\[4\]",
    ),
    "choice with listed weights": (
        lambda k: random.choice(k, 2, p=[0.5, 0.5]),
        TypeError,
        "must be arrays",
    ),
    "geometric of float": (
        lambda k: random.geometric(k, 0.5, (), "float32"),
        ValueError,
        "an integer",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_misuse_is_refused(key, name):
    call, error, match = ERRORS[name]
    with pytest.raises(error, match=match):
        call(key)
