"""Where distributions end: parameters that none has, masses near one, gradients at the ends."""

from typing import Any

import numpy as np
import pytest
import scipy.stats

import minijax as jax
from minijax.scipy import stats

pytestmark = pytest.mark.feature("NP-01")

FUNCTIONS = ("cdf", "logcdf", "logpdf", "logpmf", "logsf", "pdf", "pmf", "sf")

# Parameters, and values of each of which there is no distribution.
NONE_SUCH = {
    "bernoulli": [(1.5,), (-0.5,), (np.nan,)],
    "beta": [(-1, 2, 0, 1), (2, 0, 0, 1), (2, np.nan, 0, 1), (2, 3, 0, 0), (2, 3, 0, -1)],
    "chi2": [(-1, 0, 1), (np.nan, 0, 1), (2, 0, 0), (2, 0, -1)],
    "expon": [(0, 0), (0, -1)],
    "gamma": [(-1, 0, 1), (np.nan, 0, 1), (2, 0, 0), (2, 0, -1)],
    "gumbel_l": [(0, 0), (0, -1)],
    "gumbel_r": [(0, 0), (0, -1)],
    "pareto": [(2, 0, 0), (2, 0, -1)],
    "vonmises": [(-1,), (-np.inf,)],
    "wrapcauchy": [(0,), (1,), (-0.5,), (np.nan,)],
}


SLOW = ("beta", "chi2", "gamma")


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in sorted(NONE_SUCH)],
)
def test_no_such_distribution_gives_nan(name):
    distribution = getattr(stats, name)
    points = np.array([-np.inf, -2, 0, 0.5, 1, 3, np.inf], np.float32)

    @jax.jit
    def everything(*parameters: Any) -> Any:
        functions = [f for f in FUNCTIONS if hasattr(distribution, f)]
        return {f: getattr(distribution, f)(points, *parameters) for f in functions}

    for parameters in NONE_SUCH[name]:
        for function, found in everything(*np.float32(parameters)).items():
            assert np.isnan(found).all(), (function, parameters)


NEAR_ONE = [
    ("gumbel_r.logsf", [-3, -2.5, -1, 0.5, 4], ()),
    ("gumbel_l.logcdf", [3, 2.5, 1, -0.5, -4], ()),
    ("expon.logcdf", [0.01, 0.7, 5, 30], ()),
    ("pareto.logcdf", [1.01, 3.4, 7.2, 100], (6,)),
    ("cauchy.logcdf", [-1e6, -1, 0.5, 35, 1e6], ()),
    ("cauchy.logsf", [1e6, 1, -0.5, -35, -1e6], ()),
    ("truncnorm.logcdf", [-0.5, 0.5, 4, 6, 6.9], (-1, 7)),
    ("truncnorm.logsf", [0.5, -0.5, -4, -6, -6.9], (-7, 1)),
]


@pytest.mark.parametrize(("name", "points", "shape"), NEAR_ONE, ids=[n for n, _, _ in NEAR_ONE])
def test_logarithms_of_masses_near_one_are_exact(name, points, shape):
    distribution, function = name.split(".")
    mine = getattr(getattr(stats, distribution), function)
    points = np.float32(points)
    found, slopes = jax.jit(jax.vmap(jax.value_and_grad(lambda x: mine(x, *shape))))(points)
    theirs = getattr(scipy.stats, distribution)
    expected = getattr(theirs, function)(points.astype(float), *shape)
    np.testing.assert_allclose(found, expected, rtol=3e-6)
    # d log F = f / F.
    density = theirs.pdf(points.astype(float), *shape) / np.exp(expected)
    np.testing.assert_allclose(np.abs(slopes), density, rtol=1e-4)


@pytest.mark.slow
def test_gradients_are_finite_at_the_ends():
    ends = {
        "gamma.cdf": (0.0, 0.5),
        "chi2.sf": (0.0, 1.0),
        "expon.logcdf": (200.0,),
        "gumbel_r.logsf": (-6.0,),
        "truncnorm.logcdf": (-0.5, -14.5, -11.5),
    }
    for name, (x, *shape) in ends.items():
        distribution, function = name.split(".")
        mine = getattr(getattr(stats, distribution), function)
        assert jax.grad(mine)(x, *shape) == pytest.approx(0, abs=1e-30), name


def test_counts_are_moved_before_they_are_looked_at():
    assert stats.betabinom.pmf(2.5, 11, 1.0, 2.0, 2.5) == pytest.approx(2 / 13, rel=1e-5)
    assert stats.betabinom.pmf(10.0, 9, 1.0, 2.0, 0.5) == 0


def test_quantiles_of_bernoulli_have_the_dtype_of_their_arguments():
    with jax.enable_x64(True):
        for dtype in (np.float16, np.float32, np.float64):
            found = stats.bernoulli.ppf(dtype(0.5), dtype(0.75))
            assert (found.dtype, found.weak_type, found) == (dtype, False, 1)


def test_one_way_to_choose_nothing_or_everything():
    for n in (0, 1, 2, 7):
        for p in (0.0, 1.0):
            counts = np.arange(-1, n + 2)
            np.testing.assert_array_equal(
                stats.binom.logpmf(counts, n, p), scipy.stats.binom.logpmf(counts, n, p)
            )
    assert stats.binom.logpmf(0, 0, np.array([0.0, 0.5, 1.0])).tolist() == [0.0, 0.0, 0.0]
    assert stats.binom.pmf(0, 0, 0.3) == 1
    assert stats.nbinom.logpmf(0, 2, 1.0) == 0
    # The slope in n stays that of the gamma functions: 1 + 1/2 + 1/3 + log(p).
    slope = jax.grad(lambda n: stats.binom.logpmf(3.0, n, 0.5))(3.0)
    assert slope == pytest.approx(11 / 6 + np.log(0.5), rel=1e-5)


def test_entropy_has_the_shape_of_all_arguments():
    mu, loc = np.array([1.0, 20.0, 200.0], np.float32), np.array([[0.0], [1.0]], np.float32)
    found = stats.poisson.entropy(mu, loc)
    assert found.shape == (2, 3)
    np.testing.assert_allclose(found, scipy.stats.poisson.entropy(mu, loc), rtol=1e-5)
    assert stats.poisson.entropy(mu).shape == (3,)
