"""Gamma, Poisson, binomial and their families: JAX's figures, and SciPy's distributions."""

import numpy as np
import pytest
from scipy import stats

import minijax as jax
import minijax.numpy as jnp
from minijax import random
from minijax.sharding import NamedSharding, PartitionSpec
from tests.random import recorded, samples

pytestmark = pytest.mark.feature("NP-03")

GROUPS = ("gamma family", "counts")
CALLS = {name: call for group in GROUPS for name, call in samples.CALLS[group].items()}
CALLS_X64 = {name: call for group in GROUPS for name, call in samples.CALLS_X64[group].items()}
FACTORED = samples.CALLS["multivariate"]
FACTORED_X64 = samples.CALLS_X64["multivariate"]


def ulps_allowed(name):
    return 32 if name.startswith("gradient") else 2


@pytest.fixture
def key():
    return random.key(samples.SEED)


@pytest.mark.parametrize("name", CALLS)
def test_figures_equal_those_of_jax(key, name):
    recorded.check(name, CALLS[name](jax, key), ulps=ulps_allowed(name))


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", CALLS_X64)
def test_figures_equal_those_of_jax_with_64_bits(name):
    with jax.enable_x64(True):
        result = CALLS_X64[name](jax, random.key(samples.SEED))
    recorded.check(name, result, x64=True, ulps=ulps_allowed(name))


SAMPLERS = {name: call for calls in samples.CALLS.values() for name, call in calls.items()}


@pytest.mark.feature("UX-03")
@pytest.mark.parametrize("name", SAMPLERS)
def test_sampler_works_under_strict_settings(name):
    for x64 in (False, True):
        with (
            jax.enable_x64(x64),
            jax.numpy_rank_promotion("raise"),
            jax.numpy_dtype_promotion("strict"),
        ):
            jax.eval_shape(lambda key: SAMPLERS[name](jax, key), random.key(samples.SEED))


# Eigenvectors have no sign of their own: draws by them are compared by how far they are from the
# mean along each.
BY_EIGENVECTORS = {
    "multivariate_normal by eigh": samples.MEANS,
    "multivariate_normal by svd": samples.MEANS[0],
}


def determined(name, draws):
    if name not in BY_EIGENVECTORS:
        return draws
    _, vectors = np.linalg.eigh(samples.COVARIANCE)
    return np.abs((draws - BY_EIGENVECTORS[name]) @ vectors)


@pytest.mark.parametrize("name", FACTORED)
def test_draws_by_factors_are_close_to_those_of_jax(key, name):
    actual = np.asarray(FACTORED[name](jax, key))
    expected = recorded.figure(name)
    recorded.check_close(name, determined(name, actual), determined(name, expected))


@pytest.mark.parametrize("name", FACTORED_X64)
def test_draws_by_factors_are_close_to_those_of_jax_with_64_bits(name):
    with jax.enable_x64(True):
        actual = np.asarray(FACTORED_X64[name](jax, random.key(samples.SEED)))
    recorded.check_close(name, actual, recorded.figure(name, x64=True))


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", ["gamma", "poisson"])
def test_vmap_over_keys_equals_a_loop(key, name):
    def call(k):
        return CALLS[name](jax, k)

    keys = random.split(key, 2)
    expected = np.stack([np.asarray(call(k)) for k in keys])
    np.testing.assert_array_equal(jax.jit(jax.vmap(call))(keys), expected)


def test_first_eager_call_compiles_one_program(key):
    jax.clear_caches()
    before = jax.cache_stats()["compile"].misses
    random.beta(key, 1.5, 2.0, (3,))
    random.poisson(key, 1.5, (3,))
    assert jax.cache_stats()["compile"].misses - before == 2


def test_gamma_stages_one_equation(key):
    jaxpr = jax.make_jaxpr(lambda a: random.gamma(key, a))(jnp.ones(3))
    assert [str(eqn.primitive) for eqn in jaxpr.eqns] == ["random_gamma"]


def test_batches_of_parameters_share_a_key(key):
    rows = jnp.array([[0.5, 2.0], [3.0, 4.0]])
    batch = jax.jit(jax.vmap(lambda a: random.gamma(key, a), 1))(rows)
    np.testing.assert_array_equal(batch, [random.gamma(key, column) for column in rows.T])


@pytest.mark.turns(3)
@pytest.mark.parametrize("explicit", [False, True])
def test_gamma_does_not_depend_on_the_sharding(key, explicit):
    expected = random.gamma(key, jnp.arange(1.0, 17.0))
    kind = jax.sharding.AxisType.Explicit if explicit else jax.sharding.AxisType.Auto
    with jax.cpu_devices(8):
        mesh = jax.make_mesh((8,), ("x",), axis_types=(kind,))
        a = jax.device_put(jnp.arange(1.0, 17.0), NamedSharding(mesh, PartitionSpec("x")))
        with jax.set_mesh(mesh):
            out = jax.jit(lambda k, a: random.gamma(k, a))(random.key(samples.SEED), a)
        np.testing.assert_array_equal(out, expected)
        if explicit:
            assert jax.typeof(out).sharding.spec == PartitionSpec("x")


@pytest.mark.turns(3)
def test_samplers_run_per_device():
    with jax.cpu_devices(2):
        mesh = jax.make_mesh((2,), ("x",))
        keys = random.split(random.key(0), 2)
        spec = PartitionSpec("x")

        def draw(keys, a):
            first, second = random.split(keys[0])
            return (
                random.gamma(first, a) + random.poisson(second, a) + random.binomial(second, a, 0.3)
            )

        a = jnp.arange(1.0, 5.0)
        out = jax.jit(jax.shard_map(draw, mesh=mesh, in_specs=spec, out_specs=spec))(keys, a)
        parts = zip(keys, a.reshape(2, 2), strict=True)
        expected = [jax.jit(draw)(k[None], part) for k, part in parts]
        np.testing.assert_array_equal(out, np.concatenate(expected))


@pytest.mark.turns(3)
@pytest.mark.slow
def test_samples_follow_their_distributions(key):
    # Kolmogorov's test of continuous samples, Pearson's of counts, with a fixed key.
    size = (20_000,)
    continuous = {
        "gamma below 1": (random.gamma(key, 0.3, size), stats.gamma(0.3)),
        "gamma above 1": (random.gamma(key, 4.0, size), stats.gamma(4.0)),
        "loggamma": (random.loggamma(key, 0.3, size), stats.loggamma(0.3)),
        "beta": (random.beta(key, 0.5, 2.0, size), stats.beta(0.5, 2.0)),
        "t": (random.t(key, 3.0, size), stats.t(3.0)),
        "f": (random.f(key, 3.0, 5.0, size), stats.f(3.0, 5.0)),
        "generalized_normal": (random.generalized_normal(key, 3.0, size), stats.gennorm(3.0)),
    }
    for name, (draws, distribution) in continuous.items():
        assert stats.kstest(np.asarray(draws), distribution.cdf).pvalue > 1e-3, name
    counts = {
        "few": (random.poisson(key, 3.0, size), stats.poisson(3.0)),
        "many": (random.poisson(key, 40.0, size), stats.poisson(40.0)),
        "rare": (random.binomial(key, 20, 0.2, size), stats.binom(20, 0.2)),
        "often": (random.binomial(key, 200, 0.7, size), stats.binom(200, 0.7)),
    }
    for name, (draws, distribution) in counts.items():
        low, high = distribution.ppf([0.01, 0.99]).astype(int)
        values = np.clip(np.asarray(draws).astype(int), low, high)
        seen = np.bincount(values - low, minlength=high - low + 1)
        expected = distribution.pmf(np.arange(low, high + 1))
        expected[0], expected[-1] = distribution.cdf(low), distribution.sf(high - 1)
        assert stats.chisquare(seen, expected * size[0]).pvalue > 1e-3, name


def test_endless_trials_that_cannot_succeed_end(key):
    # n = inf with p = 0 or 1 would be tried for ever.
    draws = random.binomial(key, jnp.inf, jnp.array([0.0, 1.0]))
    np.testing.assert_array_equal(draws, [np.inf, np.inf])


def test_multinomial_counts_add_up(key):
    counts = np.asarray(random.multinomial(key, 50, jnp.array([[1.0, 2.0, 0.0], [0.0, 0.0, 1.0]])))
    np.testing.assert_array_equal(counts.sum(1), [50, 50])
    np.testing.assert_array_equal(counts[1], [0, 0, 50])
    assert counts[0, 2] == 0


ERRORS = {
    "gamma of int": (lambda k: random.gamma(k, 1.0, (), int), ValueError, "must be float"),
    "gamma beyond shape": (
        lambda k: random.gamma(k, jnp.ones(2), (3,)),
        ValueError,
        "do not fit the shape",
    ),
    "beta apart": (
        lambda k: random.beta(k, jnp.ones(2), jnp.ones(3)),
        ValueError,
        "fit together",
    ),
    "too wide a parameter": (
        lambda k: random.chisquare(k, jnp.ones(2), dtype="float16"),
        jax.dtypes.TypePromotionError,
        r"f32\[2\]",
    ),
    "dirichlet of scalar": (lambda k: random.dirichlet(k, 1.0), ValueError, "axis of outcomes"),
    "ball of fractions": (lambda k: random.ball(k, 2.5), TypeError, "concrete integers"),
    "poisson of float": (
        lambda k: random.poisson(k, 1.0, (), "float32"),
        ValueError,
        "an integer",
    ),
    "poisson of rbg": (
        lambda k: random.poisson(random.key(0, impl="rbg"), 1.0),
        NotImplementedError,
        "a key of rbg",
    ),
    "poisson of list": (lambda k: random.poisson(k, [1.0]), TypeError, "must be arrays"),
    "binomial of int": (
        lambda k: random.binomial(k, 5, 0.5, dtype=int),
        ValueError,
        "must be float",
    ),
    "multinomial of scalar": (
        lambda k: random.multinomial(k, 5, 0.5),
        ValueError,
        "axis of outcomes",
    ),
    "multinomial beyond shape": (
        lambda k: random.multinomial(k, 5, jnp.ones(3), shape=(3, 2)),
        ValueError,
        "fit together|do not fit",
    ),
    "covariance of other size": (
        lambda k: random.multivariate_normal(k, jnp.ones(2), jnp.eye(3)),
        ValueError,
        r"cov: f32\[3,3\]",
    ),
    "unknown method": (
        lambda k: random.multivariate_normal(k, jnp.ones(2), jnp.eye(2), method="lu"),
        ValueError,
        "'cholesky', 'eigh' or 'svd'",
    ),
    "orthogonal of negative size": (lambda k: random.orthogonal(k, -1), ValueError, "n: -1"),
    "orthogonal of float16": (
        lambda k: random.orthogonal(k, 2, dtype="float16"),
        NotImplementedError,
        "float16|f16",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_misuse_is_refused(key, name):
    call, error, match = ERRORS[name]
    with pytest.raises(error, match=match):
        call(key)
