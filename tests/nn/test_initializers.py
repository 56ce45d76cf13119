"""Initializers: the figures of JAX."""

import inspect

import numpy as np
import pytest

import minijax as jax
from minijax import nn, random
from tests.nn import recorded, samples
from tests.random.recorded import check_close, ulps_apart

pytestmark = pytest.mark.feature("NP-03")

CALLS = samples.CALLS["initializers"]
FIGURES = recorded.FIGURES["initializers"]
REFUSED = [name for name in CALLS if isinstance(FIGURES[name], str)]
MADE = [name for name in CALLS if name not in REFUSED]


@pytest.mark.parametrize("name", MADE)
def test_figures_equal_those_of_jax(name):
    expected = recorded.array_of(*FIGURES[name])
    actual = np.asarray(CALLS[name](jax))
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    if "orthogonal" in name:
        check_close(name, actual, expected)
        return
    # One program scales as it draws, where JAX's rounds in between, and complex ones do so often.
    assert ulps_apart(actual, expected) <= (30 if actual.dtype.kind == "c" else 1)


@pytest.mark.parametrize("name", REFUSED)
def test_misuse_is_refused_as_by_jax(name):
    recorded.check("initializers", name, rtol=0)


@pytest.mark.parametrize("name", samples.INITIALIZER_FUNCTIONS)
def test_signature_equals_that_of_jax(name):
    parameters = inspect.signature(getattr(nn.initializers, name)).parameters.values()
    actual = [[p.name, p.kind.name, repr(p.default)] for p in parameters]
    assert actual == recorded.FIGURES["signatures"][f"initializers.{name}"]


@pytest.mark.parametrize("name", ["lecun_normal", "he_uniform", "normal", "truncated_normal"])
def test_first_eager_call_compiles_one_program(name):
    key = random.key(0)
    jax.clear_caches()
    before = jax.cache_stats()["compile"].misses
    getattr(nn.initializers, name)()(key, (5, 6))
    assert jax.cache_stats()["compile"].misses - before == 1


@pytest.mark.parametrize("name", ["lecun_normal", "he_uniform", "normal"])
def test_jit_and_old_style_keys_give_the_same_figures(name):
    init = getattr(nn.initializers, name)()
    expected = np.asarray(init(random.key(3), (4, 2)))
    old = np.asarray(init(random.PRNGKey(3), (4, 2)))
    jitted = np.asarray(jax.jit(lambda k: init(k, (4, 2)))(random.key(3)))
    np.testing.assert_array_equal(old, expected)
    assert ulps_apart(jitted, expected) <= 1


def test_vmap_over_keys_makes_stacks_of_parameters():
    keys = random.split(random.key(0), 3)
    init = nn.initializers.lecun_normal()
    stacked = jax.vmap(lambda k: init(k, (4, 2)))(keys)
    expected = np.stack([np.asarray(init(k, (4, 2))) for k in keys])
    np.testing.assert_allclose(stacked, expected, rtol=3e-6)


def test_scale_may_be_traced():
    key = random.key(0)
    traced = jax.jit(lambda s: nn.initializers.normal(s)(key, (3,)))(0.5)
    np.testing.assert_allclose(traced, nn.initializers.normal(0.5)(key, (3,)), rtol=1e-6)


def test_zeros_needs_no_key():
    np.testing.assert_array_equal(nn.initializers.zeros(None, (2,)), [0, 0])


@pytest.mark.parametrize(
    ("name", "variance"),
    [("glorot_normal", 2 / 300), ("lecun_normal", 1 / 100), ("he_normal", 2 / 100)],
)
def test_variance_follows_the_fans(name, variance):
    sample = np.asarray(getattr(nn.initializers, name)()(random.key(0), (100, 200)))
    np.testing.assert_allclose(sample.var(), variance, rtol=0.05)
