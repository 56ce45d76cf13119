"""Ranks, modes and standard errors against SciPy; density estimates against SciPy's."""

import numpy as np
import pytest
import scipy.stats

import minijax as jax
from minijax.scipy import stats

pytestmark = pytest.mark.feature("NP-01")

TABLE = np.array([[3, 1, 2, 2], [1, 1, 0, 5], [3, 3, 3, 0]])


@pytest.mark.parametrize("method", ["average", "min", "max", "dense", "ordinal"])
def test_ranks_equal_those_of_scipy(method):
    for axis in (None, 0, -1):
        actual = stats.rankdata(TABLE, method, axis=axis)
        assert actual.dtype == np.float32
        expected = scipy.stats.rankdata(TABLE, method, axis=axis)
        np.testing.assert_array_equal(actual, np.ravel(expected) if axis is None else expected)


def test_ranks_with_a_nan_are_nans():
    x = np.array([[2.0, np.nan, 1], [2, 3, 1]])
    np.testing.assert_array_equal(stats.rankdata(x, axis=1), [[np.nan] * 3, [2, 3, 1]])
    assert stats.rankdata(np.zeros(0)).shape == (0,)


def test_ranks_have_the_default_dtype():
    narrow = np.arange(3, dtype=np.float16)
    assert stats.rankdata(narrow).dtype == np.float32
    with jax.enable_x64(True):
        assert stats.rankdata(narrow).dtype == np.float64
        assert stats.rankdata(narrow.astype(int)).dtype == np.float64


def test_modes_equal_those_of_scipy():
    for axis in (None, 0, 1):
        for keepdims in (False, True):
            actual = stats.mode(TABLE, axis, keepdims=keepdims)
            expected = scipy.stats.mode(TABLE, axis, keepdims=keepdims)
            np.testing.assert_array_equal(actual.mode, expected.mode)
            np.testing.assert_array_equal(actual.count, expected.count)
    assert stats.mode(3).mode == 3
    assert stats.mode(np.array([True, True, False])).mode.dtype == bool
    empty = stats.mode(np.zeros((0, 2)))
    np.testing.assert_array_equal(empty.mode, [np.nan, np.nan])
    np.testing.assert_array_equal(empty.count, [0, 0])


def test_standard_errors_equal_those_of_scipy():
    for axis in (None, 0, 1):
        np.testing.assert_allclose(stats.sem(TABLE, axis), scipy.stats.sem(TABLE, axis), rtol=1e-6)
    x = np.array([[1.0, np.nan, 3], [2, 4, 8]])
    expected = scipy.stats.sem(x, 1, nan_policy="omit")
    np.testing.assert_allclose(stats.sem(x, 1, nan_policy="omit"), expected, rtol=1e-6)
    assert stats.sem(x, keepdims=True).shape == (1, 3)


@pytest.mark.parametrize("dimensions", [1, 2])
def test_density_estimates_equal_those_of_scipy(dimensions):
    rng = np.random.default_rng(0)
    data, points = rng.normal(size=(dimensions, 9)), rng.normal(size=(dimensions, 4))
    weights = rng.uniform(size=9)
    with jax.enable_x64(True):
        for options in ({}, {"bw_method": "silverman", "weights": weights}, {"bw_method": 0.3}):
            ours, theirs = (
                stats.gaussian_kde(data, **options),
                scipy.stats.gaussian_kde(data, **options),
            )
            assert (ours.d, ours.n) == (theirs.d, theirs.n)
            np.testing.assert_allclose(ours.neff, theirs.neff, rtol=1e-12)
            np.testing.assert_allclose(ours.covariance, theirs.covariance, rtol=1e-12)
            np.testing.assert_allclose(ours.inv_cov, theirs.inv_cov, rtol=1e-10)
            np.testing.assert_allclose(ours(points), theirs(points), rtol=1e-10)
            np.testing.assert_allclose(ours.logpdf(points), theirs.logpdf(points), rtol=1e-10)
        mean, cov = np.zeros(dimensions), np.eye(dimensions)
        ours, theirs = stats.gaussian_kde(data), scipy.stats.gaussian_kde(data)
        gaussian = theirs.integrate_gaussian(mean, cov)
        np.testing.assert_allclose(ours.integrate_gaussian(mean, cov), gaussian, rtol=1e-10)
        product = theirs.integrate_kde(theirs)
        np.testing.assert_allclose(ours.integrate_kde(ours), product, rtol=1e-10)
        if dimensions == 1:
            box = theirs.integrate_box_1d(-1, 0.5)
            np.testing.assert_allclose(ours.integrate_box_1d(-1, 0.5), box, rtol=1e-10)


def test_density_estimates_are_trees_and_have_samples():
    kde = stats.gaussian_kde(np.linspace(-1, 1, 5, dtype=np.float32))
    np.testing.assert_allclose(jax.jit(lambda k, x: k(x))(kde, 0.3), kde(0.3), rtol=1e-6)
    samples = kde.resample(jax.random.key(0), (2000,))
    assert samples.shape == (1, 2000)
    expected = np.var(np.linspace(-1, 1, 5)) + kde.covariance[0, 0]
    np.testing.assert_allclose(samples.var(), expected, rtol=0.1)
    assert kde.resample(jax.random.key(0), (2, 3)).shape == (1, 2, 3)


KDE = stats.gaussian_kde
MESSAGES = [
    (lambda: stats.rankdata(TABLE, "best"), ValueError, "unknown method 'best'"),
    (lambda: stats.rankdata(TABLE, nan_policy="omit"), NotImplementedError, "nan_policy 'omit'"),
    (lambda: stats.rankdata([1, 2]), TypeError, "scipy.stats.rankdata"),
    (lambda: stats.mode(TABLE, 5), ValueError, "scipy.stats.mode"),
    (lambda: stats.sem(TABLE, nan_policy="raise"), ValueError, "unknown nan_policy 'raise'"),
    (lambda: KDE(np.ones(1)), ValueError, "not several points"),
    (lambda: KDE(np.ones(3), "best"), ValueError, "bw_method is not known"),
    (lambda: KDE(np.ones(3), weights=np.ones(2)), ValueError, "shape (3,)"),
    (lambda: KDE(np.arange(3.0)).evaluate(np.ones((2, 2))), ValueError, "1 rows"),
    (lambda: KDE(np.arange(3.0)).integrate_box(0, 1), NotImplementedError, "integrate_box_1d"),
    (lambda: KDE(1j * np.arange(3)), NotImplementedError, "complex data"),
]


@pytest.mark.parametrize(("call", "error", "text"), MESSAGES, ids=[t for _, _, t in MESSAGES])
def test_error_says_what_is_wrong(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)
