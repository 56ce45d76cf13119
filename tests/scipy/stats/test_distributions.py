"""Distributions against SciPy in both precisions, and what their functions owe each other."""

import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

import minijax as jax
import minijax.numpy as jnp
from minijax.scipy import stats

pytestmark = pytest.mark.feature("NP-01")

SIGNATURES = json.loads(Path(__file__).with_name("signatures.json").read_text())

REAL = np.array([-np.inf, -20, -3, -1, -0.1, 0.1, 0.3, 0.75, 1.5, 2, 3, 7, 50, np.inf, np.nan])
COUNTS = np.array([-2.0, -1, 0, 1, 2, 3, 4, 5, 7, 30, np.nan])
CHANCES = np.array([-0.1, 0, 1e-6, 0.1, 0.5, 0.75, 0.999, 1, 1.1, np.nan])

# Parameters before loc and scale.
CONTINUOUS = {
    "beta": [(0.5, 0.5), (2, 3)],
    "cauchy": [()],
    "chi2": [(1,), (7.5,)],
    "expon": [()],
    "gamma": [(0.5,), (4,)],
    "gennorm": [(0.5,), (2,)],
    "gumbel_l": [()],
    "gumbel_r": [()],
    "laplace": [()],
    "logistic": [()],
    "norm": [()],
    "pareto": [(1,), (3.5,)],
    "t": [(1,), (1e4,)],
    "truncnorm": [(-1, 2), (1, 3), (-40, -30), (2, 1)],
    "uniform": [()],
    "vonmises": [(1,), (100,)],
    "wrapcauchy": [(0.1,), (0.9,)],
}
DISCRETE = {
    "bernoulli": [(0.3,), (1,)],
    "betabinom": [(5, 0.5, 2), (10, 3, 3)],
    "binom": [(5, 0.3), (5, 0)],
    "geom": [(0.3,)],
    "nbinom": [(3, 0.4), (2.5, 0.9)],
    "poisson": [(0.5,), (4,)],
}
FUNCTIONS = ("cdf", "isf", "logcdf", "logpdf", "logpmf", "logsf", "pdf", "pmf", "ppf", "sf")

# Those that have formulas of their own in single precision too, by what they are made of.
SINGLE = ("cauchy", "norm", "poisson", "t")


def functions_of(name: str) -> list[str]:
    return [f for f in FUNCTIONS if hasattr(getattr(stats, name), f)]


def points_of(name: str, function: str) -> np.ndarray:
    if function in ("isf", "ppf"):
        # JAX has 0 where SciPy has -1: what lies below all that has mass.
        return CHANCES[CHANCES != 0] if name in DISCRETE else CHANCES
    return COUNTS if name in DISCRETE else REAL


def check(name: str, dtype: Any, found: dict[str, Any], parameters: tuple[Any, ...]) -> None:
    eps = float(np.finfo(dtype).eps)
    for function, actual in found.items():
        theirs = getattr(getattr(scipy.stats, name), function)
        points = points_of(name, function).astype(dtype)
        with np.errstate(all="ignore"):
            expected = np.asarray(theirs(points.astype(float), *parameters))
        mine = np.asarray(actual)
        assert mine.dtype == dtype
        # SciPy has no limit for infinity minus infinity, and no Cauchy beyond chances of 0 and 1.
        known = ~np.isnan(expected) | np.isnan(points) | (name != "cauchy") & ~np.isinf(points)
        tolerance = 1e4 * eps
        np.testing.assert_allclose(
            mine[known], expected[known], rtol=tolerance, atol=tolerance, err_msg=function
        )


@pytest.mark.parametrize("name", sorted({**CONTINUOUS, **DISCRETE}))
def test_functions_equal_those_of_scipy(name):
    distribution = getattr(stats, name)
    moved = "loc" in inspect.signature(getattr(distribution, functions_of(name)[0])).parameters
    scaled = name in CONTINUOUS and moved

    @jax.jit
    def all_of_them(points: dict[str, Any], parameters: tuple[Any, ...]) -> Any:
        return {f: getattr(distribution, f)(x, *parameters) for f, x in points.items()}

    for dtype in (np.float32, np.float64) if name in SINGLE else (np.float64,):
        for shape in {**CONTINUOUS, **DISCRETE}[name]:
            parameters = (*shape, *((0.5, 2.0) if scaled else ()))
            points = {f: points_of(name, f).astype(dtype) for f in functions_of(name)}
            with jax.enable_x64(dtype is np.float64):
                found = all_of_them(points, tuple(dtype(p) for p in parameters))
            check(name, dtype, found, tuple(float(dtype(p)) for p in parameters))


@pytest.mark.parametrize("name", ["beta", "gamma", "gumbel_l", "norm", "pareto", "truncnorm"])
def test_densities_are_derivatives(name):
    distribution = getattr(stats, name)
    shape = CONTINUOUS[name][-2 if name == "truncnorm" else -1]
    start = {"pareto": 1.1, "beta": 0.0, "truncnorm": -39.5}.get(name, 0.0)
    x = start + np.linspace(0.1, 0.9, 9)

    @jax.jit
    def laws(x: Any) -> Any:
        one = jnp.ones_like(x)
        mass, density = jax.jvp(lambda x: distribution.cdf(x, *shape), (x,), (one,))
        beyond, fall = jax.jvp(lambda x: distribution.logsf(x, *shape), (x,), (one,))
        logarithm, slope = jax.jvp(lambda x: distribution.logpdf(x, *shape), (x,), (one,))
        up, down = (distribution.logpdf(x + h, *shape) for h in (1e-6, -1e-6))
        # Beyond the ends nothing moves, and nothing is NaN.
        outside = jax.vmap(jax.grad(lambda x: distribution.cdf(x, *shape)))(jnp.array([-99.0]))
        return (
            mass + jnp.exp(beyond),
            density,
            -fall * jnp.exp(beyond),
            jnp.exp(logarithm),
            (
                slope,
                (up - down) / 2e-6,
                outside,
            ),
        )

    with jax.enable_x64(True):
        total, by_cdf, by_sf, density, (slope, difference, outside) = laws(x)
    np.testing.assert_allclose(total, 1, rtol=1e-12)
    np.testing.assert_allclose(by_cdf, density, rtol=1e-9)
    np.testing.assert_allclose(by_sf, density, rtol=1e-9)
    np.testing.assert_allclose(slope, difference, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(outside, 0, atol=1e-12)


def test_normal_tails_are_exact():
    assert stats.norm.logsf(np.float32(100)) == pytest.approx(scipy.stats.norm.logsf(100), 1e-6)
    assert stats.norm.isf(np.float32(1e-30)) == pytest.approx(scipy.stats.norm.isf(1e-30), 1e-6)
    assert stats.cauchy.ppf(np.float32(1e-30)) == pytest.approx(-1e30 / np.pi, 1e-6)


def test_entropy_of_poisson_equals_that_of_scipy():
    mu = np.array([0, 1e-3, 0.5, 4, 29, 31, 120, 200])
    expected = [scipy.stats.poisson.entropy(m) for m in mu[:-1]]
    far = 0.5 * np.log(2 * np.pi * np.e * 200) - 1 / 2400 - 1 / 24 / 200**2 - 19 / 360 / 200**3
    np.testing.assert_allclose(stats.poisson.entropy(mu), [*expected, far], rtol=1e-5, atol=1e-7)
    with jax.enable_x64(True):
        found, slopes = jax.jvp(stats.poisson.entropy, (mu[1:],), (np.ones(7),))
        up, down = (stats.poisson.entropy(mu[1:] * s) for s in (1 + 1e-6, 1 - 1e-6))
        np.testing.assert_allclose(found, [*expected[1:], far], rtol=1e-9)
        np.testing.assert_allclose(slopes, (up - down) / (2e-6 * mu[1:]), rtol=1e-6)
    assert np.isnan(stats.poisson.entropy(-1.0))


def test_dirichlet_equals_that_of_scipy():
    alpha = np.array([0.5, 2.0, 3.0])
    x = np.array([[0.2, 0.1], [0.3, 0.4], [0.5, 0.5]])
    expected = scipy.stats.dirichlet.logpdf(x, alpha)
    np.testing.assert_allclose(stats.dirichlet.logpdf(x, alpha), expected, rtol=1e-5)
    np.testing.assert_allclose(stats.dirichlet.logpdf(x[:2], alpha), expected, rtol=1e-5)
    np.testing.assert_allclose(stats.dirichlet.pdf(x, alpha), np.exp(expected), rtol=1e-5)
    assert stats.dirichlet.pdf(np.array([-0.5, 1.5]), np.ones(2)) == 0


def test_multinomial_equals_that_of_scipy():
    x, p = np.array([[1, 2, 0], [0, 0, 3]]), np.array([0.2, 0.5, 0.3])
    expected = scipy.stats.multinomial.logpmf(x, 3, p)
    np.testing.assert_allclose(stats.multinomial.logpmf(x, 3, p), expected, rtol=1e-5)
    assert stats.multinomial.pmf(x, np.array([3, 4]), p)[1] == 0
    chosen = stats.multinomial.pmf(np.array([True, False]), 1, np.array([0.25, 0.75]))
    assert chosen == pytest.approx(0.25, rel=1e-5)


def test_multivariate_normal_equals_that_of_scipy():
    rng = np.random.default_rng(0)
    x, mean, factor = rng.normal(size=(4, 3)), rng.normal(size=3), rng.normal(size=(3, 3))
    cov = factor @ factor.T
    logpdf = jax.jit(stats.multivariate_normal.logpdf)
    expected = scipy.stats.multivariate_normal.logpdf(x, mean, cov)
    np.testing.assert_allclose(logpdf(x, mean, cov), expected, rtol=2e-4)
    several = np.stack([cov, cov * 2])
    actual = logpdf(x[:2], np.zeros((2, 3)), several)
    for point, one, got in zip(x, several, actual, strict=False):
        want = scipy.stats.multivariate_normal.logpdf(point, np.zeros(3), one)
        np.testing.assert_allclose(got, want, rtol=2e-4)
    single = scipy.stats.multivariate_normal.logpdf(1.0, 0.5, 2.0)
    np.testing.assert_allclose(logpdf(1.0, 0.5, 2.0), single, rtol=1e-6)
    with jax.enable_x64(True):
        slope = jax.grad(lambda m: stats.multivariate_normal.logpdf(x[0], m, cov))(mean)
        np.testing.assert_allclose(slope, np.linalg.solve(cov, x[0] - mean), rtol=1e-8)


def test_signatures_equal_those_of_jax():
    for name, signature in SIGNATURES.items():
        module, _, function = name.rpartition(".")
        place = getattr(stats, module) if module else stats
        parameters = inspect.signature(getattr(place, function)).parameters.values()
        assert [[p.name, p.kind.name, repr(p.default)] for p in parameters] == signature, name


MESSAGES = [
    (lambda: stats.norm.pdf([1.0]), TypeError, "scipy.stats.norm.logpdf"),
    (lambda: stats.beta.pdf(1j, 1, 1), TypeError, "complex numbers are not accepted"),
    (lambda: stats.dirichlet.pdf(np.ones(2), 1.0), ValueError, "alpha is not one-dimensional"),
    (lambda: stats.dirichlet.pdf(np.ones(4), np.ones(2)), ValueError, "do not fit alpha"),
    (lambda: stats.multinomial.pmf(np.ones(2), 2, np.ones(2)), ValueError, "not of integers"),
    (
        lambda: stats.multivariate_normal.logpdf(np.ones(2), np.ones(2), np.eye(2), False),
        NotImplementedError,
        "leave allow_singular= away",
    ),
    (
        lambda: stats.multivariate_normal.pdf(np.ones(2), np.ones(2), np.eye(3)),
        ValueError,
        "shape (..., 2, 2)",
    ),
]


@pytest.mark.parametrize(("call", "error", "text"), MESSAGES, ids=[t for _, _, t in MESSAGES])
def test_error_says_what_is_wrong(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)


@pytest.mark.parametrize("name", ["gamma", "norm", "t", "chi2"])
def test_compiled_and_eager_results_have_one_dtype(name: str) -> None:
    # Numbers of bfloat16 are none of NumPy's: its operators made float32 of them.
    x = jnp.array([0.5], "bfloat16")
    logpdf = getattr(stats, name).logpdf
    for parameters in ((1, 2), (0.5, 2.0)):
        compiled = jax.jit(lambda x, parameters=parameters: logpdf(x, *parameters))(x)
        assert compiled.dtype == logpdf(x, *parameters).dtype == x.dtype
