"""Continuous distributions: the figures of JAX, under every transformation."""

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import random
from tests.random import recorded, samples

pytestmark = pytest.mark.feature("NP-03")

CALLS = samples.CALLS["distributions"]
CALLS_X64 = samples.CALLS_X64["distributions"]
ONE_OF_EACH = (
    "uniform array float32",
    "normal float32",
    "normal complex64",
    "truncated_normal array float32",
    "gumbel float32",
    "exponential float32",
    "laplace float32",
    "logistic float32",
    "maxwell float32",
    "rayleigh array float32",
    "pareto float32",
    "lognormal float32",
    "triangular array float32",
    "wald float32",
    "weibull_min float32",
    "double_sided_maxwell array float32",
)


def ulps_allowed(name):
    # Without XLA's fusion emitters, which eager programs do without, the tangent and some 16-bit
    # intermediates are rounded otherwise.
    rounded = ("cauchy", "exponential float16", "double_sided_maxwell bfloat16")
    # Derivatives are added up in another order.
    return 8 if name.startswith("gradient") else int(name.startswith(rounded))


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


@pytest.mark.parametrize("name", [*ONE_OF_EACH, "cauchy float32", "exponential float16"])
def test_jit_has_the_figures_of_jax(key, name):
    # XLA folds functions of constant bounds with other approximations than it runs.
    ulps = 2 if name.startswith("truncated_normal") else 0
    recorded.check(name, jax.jit(lambda k: CALLS[name](jax, k))(key), ulps=ulps)


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_old_style_keys_have_the_same_figures(name):
    recorded.check(name, CALLS[name](jax, random.PRNGKey(samples.SEED)))


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_vmap_over_keys_equals_a_loop(key, name):
    def call(k):
        return CALLS[name](jax, k)

    keys = random.split(key, 3)
    expected = np.stack([np.asarray(call(k)) for k in keys])
    np.testing.assert_allclose(jax.vmap(call)(keys), expected, rtol=3e-6)


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


def test_jaxpr_of_normal_follows_jax(key):
    names = [e.primitive.name for e in jax.make_jaxpr(lambda k: random.normal(k, (3,)))(key).eqns]
    assert names == [
        "broadcast_in_dim",
        "broadcast_in_dim",
        "random_bits",
        "shift_right_logical",
        "or",
        "bitcast_convert_type",
        "sub",
        "sub",
        "mul",
        "add",
        "max",
        "erf_inv",
        "mul",
    ]


@pytest.mark.parametrize("shape", [4, [4], (np.int64(4),), np.array([4])], ids=repr)
def test_shapes_may_be_any_sequence_of_integers(key, shape):
    np.testing.assert_array_equal(random.normal(key, shape), random.normal(key, (4,)))


@pytest.mark.parametrize("call", [random.uniform, random.normal, random.gumbel, random.maxwell])
def test_out_sharding_is_accepted(key, call):
    np.testing.assert_array_equal(call(key, (3,), out_sharding=None), call(key, (3,)))


def test_default_dtype_follows_the_64_bit_switch():
    with jax.enable_x64(True):
        assert random.normal(random.key(0)).dtype == np.float64
    assert random.normal(random.key(0)).dtype == np.float32


def test_samples_are_not_weakly_typed(key):
    assert not random.uniform(key, (2,), minval=0, maxval=2.0).weak_type
    assert not random.lognormal(key, 2.0).weak_type


def test_complex_lognormal_samples_are_powers_of_normal_ones(key):
    samples = random.lognormal(key, 0.5, (2,), jnp.complex64)
    np.testing.assert_allclose(samples, np.exp(0.5 * random.normal(key, (2,), jnp.complex64)))
    # Recorded from JAX 0.10.2.
    recorded = [-0.31656384 - 2.009093j, 0.06900182 - 0.5222918j]
    samples = random.lognormal(random.key(0), shape=(2,), dtype=jnp.complex64)
    np.testing.assert_allclose(samples, recorded, rtol=1e-6)


def test_uniform_stays_within_its_bounds(key):
    draws = np.asarray(random.uniform(key, (100_000,), minval=-2.0, maxval=3.0))
    assert draws.min() >= -2
    assert draws.max() < 3


def test_truncated_normal_stays_within_its_bounds(key):
    draws = np.asarray(random.truncated_normal(key, 0.5, 0.75, (10_000,)))
    assert draws.min() > 0.5
    assert draws.max() < 0.75


def test_normal_has_mean_0_and_variance_1(key):
    draws = np.asarray(random.normal(key, (100_000,)))
    np.testing.assert_allclose([draws.mean(), draws.var()], [0, 1], atol=0.02)


def test_traced_parameters_need_no_new_program(key):
    def draw(low):
        return random.uniform(key, (3,), minval=low)

    draw(0.0)
    before = jax.cache_stats()["compile"].misses
    draw(0.5)
    assert jax.cache_stats()["compile"].misses == before


ERRORS = {
    "uniform of int": (lambda k: random.uniform(k, (3,), int), ValueError, "must be float"),
    "normal of int": (lambda k: random.normal(k, (3,), int), ValueError, "float or complex"),
    "exponential of bool": (lambda k: random.exponential(k, (), bool), ValueError, "float"),
    "rayleigh of int": (lambda k: random.rayleigh(k, 1, (3,), int), ValueError, "float"),
    "maxwell of complex": (lambda k: random.maxwell(k, (), "complex64"), ValueError, "float"),
    "bounds beyond shape": (
        lambda k: random.uniform(k, (3,), minval=jnp.zeros(2)),
        ValueError,
        "do not fit the shape",
    ),
    "parameter beyond shape": (
        lambda k: random.lognormal(k, jnp.ones(2), (3,)),
        ValueError,
        r"parameters: \(2,\)",
    ),
    "parameters apart": (
        lambda k: random.truncated_normal(k, jnp.zeros(2), jnp.ones(3)),
        ValueError,
        "fit together",
    ),
    "too wide a parameter": (
        lambda k: random.pareto(k, jnp.ones(2), (2,), "float16"),
        jax.dtypes.TypePromotionError,
        r"f32\[2\]",
    ),
    "negative shape": (lambda k: random.normal(k, (-1,)), TypeError, "must not be negative"),
    "fractional shape": (lambda k: random.normal(k, (2.5,)), TypeError, "concrete integers"),
    "unknown mode": (lambda k: random.gumbel(k, mode="x"), ValueError, "'low' or 'high'"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_misuse_is_refused(key, name):
    call, error, match = ERRORS[name]
    with pytest.raises(error, match=match):
        call(key)


def test_traced_shape_is_refused(key):
    with pytest.raises(TypeError, match="shape"):
        jax.jit(lambda n: random.normal(key, (n,)))(3)
