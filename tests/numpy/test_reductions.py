"""Reductions and statistics: equal to NumPy's for all axes, dtypes and options."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp

X = np.array(
    [[[1.5, -2.0, 0.5], [3.0, 0.0, -1.0]], [[2.5, 4.0, -0.5], [1.0, -3.0, 2.0]]], np.float32
)
WITH_NAN = np.array([[1.0, np.nan, 3.0], [-2.0, 0.5, np.nan]], np.float32)
REDUCTIONS = ["sum", "prod", "max", "min", "mean", "var", "std", "all", "any", "ptp"]


def assert_close(found: Any, wanted: Any, tolerance: float = 3e-6) -> None:
    np.testing.assert_allclose(
        np.asarray(found).astype(np.complex64), wanted, rtol=tolerance, atol=tolerance
    )


@pytest.mark.parametrize("name", ["sum", "mean", "var"])
def test_sixteen_bits_are_summed_in_float32(name: str) -> None:
    x = np.full(3000, 0.1, np.float16)
    wanted = getattr(np, name)(x.astype(np.float64))
    np.testing.assert_allclose(getattr(jnp, name)(x), wanted, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_reduction_starts_from_initial(name: str) -> None:
    found = getattr(jnp, name)(X, axis=1, initial=2.0, where=X > 0)
    assert_close(found, getattr(np, name)(X, axis=1, initial=2.0, where=X > 0))


@pytest.mark.parametrize(
    ("name", "wanted"), [("sum", 0.0), ("prod", 1.0), ("mean", np.nan), ("all", True)]
)
def test_reduction_of_nothing_is_the_identity(name: str, wanted: Any) -> None:
    np.testing.assert_array_equal(getattr(jnp, name)(jnp.zeros((0, 2))), wanted)


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin", "ptp"])
def test_extreme_of_nothing_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="numpy"):
        getattr(jnp, name)(jnp.zeros((0, 2)))


def test_extreme_under_mask_needs_initial() -> None:
    with pytest.raises(ValueError, match="initial"):
        jnp.max(X, where=X > 0)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_axis_out_of_range_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="axis 5 is out of range"):
        getattr(jnp, name)(X, axis=5)


def test_axis_named_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="named twice"):
        jnp.sum(X, axis=(0, 0))


def test_out_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="out="):
        jnp.sum(X, out=1)


def test_axis_may_be_a_list() -> None:
    assert_close(jnp.sum(X, axis=[0, 1]), X.sum((0, 1)))


def test_sum_takes_a_dtype() -> None:
    assert jnp.sum(X, dtype="int32") == X.astype(np.int32).sum()


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_fractions_become_booleans_before_they_are_accumulated(name: str) -> None:
    for x in (np.array([0.125, 0.0, 0.5]), np.array([np.nan, 1.0]), np.array([65536, 65536])):
        expected = getattr(np, name)(x, dtype=bool)
        np.testing.assert_array_equal(getattr(jnp, name)(x, dtype=bool), expected)


@pytest.mark.parametrize("options", [{"ddof": 1}, {"correction": 1}, {"ddof": 2, "axis": 2}])
def test_variance_takes_off_degrees_of_freedom(options: dict[str, int]) -> None:
    assert_close(jnp.var(X, **options), np.var(X, **options))


def test_variance_with_too_few_elements_is_nan() -> None:
    assert np.isnan(jnp.var(jnp.ones(2), ddof=2))


def test_variance_refuses_two_corrections() -> None:
    with pytest.raises(ValueError, match="two names"):
        jnp.var(X, ddof=1, correction=1)


def test_variance_takes_a_known_mean() -> None:
    mean = X.mean(axis=1, keepdims=True)
    assert_close(jnp.var(X, axis=1, mean=mean), X.var(axis=1))


def test_argmax_finds_the_first_nan() -> None:
    assert jnp.argmax(jnp.array([1.0, np.nan, 3.0, np.nan])) == 1


def test_argmax_keeps_all_dimensions_of_a_flat_search() -> None:
    assert jnp.argmax(X, keepdims=True).shape == (1, 1, 1)


def test_array_api_accumulation_needs_an_axis() -> None:
    with pytest.raises(ValueError, match="axis="):
        jnp.cumulative_sum(X)


def test_nanmax_of_nan_alone_is_nan() -> None:
    assert np.isnan(jnp.nanmax(jnp.array([np.nan])))


def test_nanargmax_of_nan_alone_is_minus_one() -> None:
    assert jnp.nanargmax(jnp.array([np.nan, np.nan])) == -1


def test_quantile_counts_weights() -> None:
    x, weights = np.array([3.0, 1.0, 2.0], np.float32), np.array([1.0, 2.0, 3.0], np.float32)
    found = jnp.quantile(x, 0.5, method="inverted_cdf", weights=weights)
    assert found == np.quantile(x, 0.5, method="inverted_cdf", weights=weights)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_quantiles_of_short_floats_count_far(dtype: str) -> None:
    x = np.arange(300).astype(dtype)
    for q in (0.0, 0.3, 0.5, 1.0):
        for method in ("linear", "lower", "midpoint"):
            wanted = np.quantile(x.astype(np.float64), q, method=method).astype(dtype)
            assert jnp.quantile(x, q, method=method) == wanted
    assert jnp.median(x) == np.float64(149.5).astype(dtype)


def test_quantile_of_fractions_out_of_range_is_the_first_or_the_last() -> None:
    found = jnp.quantile(np.array([3.0, 1.0, 2.0], np.float32), np.array([-0.5, 1.2, 2.0]))
    assert np.asarray(found).tolist() == [1.0, 3.0, 3.0]


def test_median_of_no_elements_is_nan() -> None:
    assert np.isnan(jnp.median(np.zeros((0, 2), np.float32), axis=0)).tolist() == [True, True]


def test_quantile_of_one_fraction_has_no_leading_dimension() -> None:
    assert jnp.quantile(X, 0.5, axis=1, keepdims=True).shape == (2, 1, 3)


def test_quantile_with_nan_is_nan() -> None:
    np.testing.assert_array_equal(jnp.isnan(jnp.quantile(WITH_NAN, 0.5, axis=0)), [0, 1, 1])


@pytest.mark.parametrize(
    ("method", "q"), [("magic", 0.5), ("linear", np.zeros((1, 1), np.float32))]
)
def test_quantile_refuses_what_it_does_not_know(method: str, q: Any) -> None:
    with pytest.raises(ValueError, match=r"numpy\.quantile"):
        jnp.quantile(X, q, method=method)


def test_average_is_weighted() -> None:
    weights = np.array([1.0, 2.0, 3.0], np.float32)
    found = jnp.average(X, axis=2, weights=weights, returned=True)
    wanted = np.average(X, axis=2, weights=weights, returned=True)
    assert_close(jnp.stack(found), np.stack(wanted))


def test_average_refuses_weights_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="weights do not fit"):
        jnp.average(X, weights=jnp.ones(5), axis=0)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bias": True},
        {"rowvar": False},
        {"fweights": np.array([1, 2, 3])},
        {"aweights": np.array([1.0, 0.5, 2.0], np.float32)},
    ],
    ids=str,
)
def test_covariance_is_that_of_numpy(options: dict[str, Any]) -> None:
    m = X[0] if options.get("rowvar", True) else X[0].T
    assert_close(jnp.cov(m, **options), np.cov(m, **options), 1e-5)


def test_covariance_is_as_wide_as_the_worth_of_observations() -> None:
    m, worth = X[0].astype(jnp.bfloat16), np.array([1.0, 0.5, 2.0], np.float32)
    assert jnp.cov(m, aweights=worth).dtype == np.float32
    assert jnp.cov(m + 0j, aweights=worth).dtype == np.complex64
    with pytest.raises(TypeError, match="observations are counted by integers"):
        jnp.cov(m, fweights=worth)


def test_covariance_of_no_observations_is_not_a_number() -> None:
    assert np.isnan(jnp.cov(jnp.zeros((2, 0)))).all()


def test_reductions_hide_no_call_in_the_jaxpr() -> None:
    jaxpr = minijax.make_jaxpr(jnp.mean)(X)
    assert [str(eqn.primitive) for eqn in jaxpr.eqns] == ["reduce_sum", "div"]


@pytest.mark.parametrize("function", [jnp.any, jnp.all, jnp.count_nonzero])
def test_random_keys_are_neither_true_nor_false(function):
    name = function.__name__
    with pytest.raises(TypeError, match=rf"numpy\.{name}: random keys are neither zero nor not"):
        function(minijax.random.split(minijax.random.key(0)))


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("axis", [(0, 2), (2, 0), (-1, 0), (2, 1, 0), (1, 2, 0), 1, (1,), [2, 0]])
@pytest.mark.parametrize("keepdims", [False, True])
def test_weights_of_an_average_follow_the_order_of_the_axes(axis: Any, keepdims: bool) -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4) ** 2
    named = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    dims = tuple(x.shape[d] for d in named)
    weights = np.arange(1, 1 + np.prod(dims), dtype=np.float32).reshape(dims)
    options: Any = {"weights": weights, "returned": True, "keepdims": keepdims}
    found = jnp.average(x, axis, **options)
    for mine, wanted in zip(found, np.average(x, named, **options), strict=True):
        assert mine.shape == np.shape(wanted)
        assert_close(mine, wanted)


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("rows", [[1.0, 2.0, 4.0], [[1.0, 2.0, 4.0]], [[1.0], [2.0], [4.0]]])
@pytest.mark.parametrize("name", ["cov", "corrcoef"])
@pytest.mark.parametrize("rowvar", [False, True])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_only_a_vector_is_one_variable_by_itself(rows: Any, name: str, rowvar: bool) -> None:
    x = np.array(rows, np.float32)
    wanted = getattr(np, name)(x, rowvar=rowvar)
    found = getattr(jnp, name)(x, rowvar=rowvar)
    assert found.shape == wanted.shape
    assert_close(found, wanted)


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("name", ["var", "std", "mean"])
@pytest.mark.parametrize("ddof", [0, 1])
def test_elements_that_do_not_count_have_no_slope(name: str, ddof: int) -> None:
    x = np.array([1.0, np.nan, 4.0, np.inf, 2.0], np.float32)
    there = np.isfinite(x)
    options = {} if name == "mean" else {"ddof": ddof}
    reduction = getattr(jnp, name)
    wanted = np.zeros(5, np.float32)
    wanted[there] = minijax.grad(lambda v: reduction(v, **options))(x[there])
    np.testing.assert_allclose(
        minijax.grad(lambda v: reduction(v, where=there, **options))(x), wanted, rtol=1e-6
    )
    x[3] = np.nan
    skipping = getattr(jnp, f"nan{name}")
    np.testing.assert_allclose(minijax.grad(lambda v: skipping(v, **options))(x), wanted, rtol=1e-6)


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("name", ["logsumexp", "logmeanexp", "softmax", "log_softmax"])
@pytest.mark.parametrize("rest", [np.inf, -np.inf, np.nan])
def test_exponentials_that_do_not_count_have_no_slope(name: str, rest: float) -> None:
    function = getattr(minijax.nn, name)
    x, there = np.array([1.0, rest, 2.0], np.float32), np.array([True, False, True])
    found = minijax.jacobian(lambda v: function(v, where=there))(x)
    wanted = minijax.jacobian(function)(x[there])
    np.testing.assert_allclose(
        found[..., there] if found.ndim == 1 else found[there][:, there], wanted, rtol=1e-6
    )
    assert not np.any(found[..., 1])
    nothing = np.zeros(3, bool)
    if name == "logsumexp":
        assert not np.any(minijax.grad(lambda v: function(v, where=nothing))(x))


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize(
    "bins",
    [
        [[0.0, 0.5, 1.0], [0.0, 1.0, 2.0, 3.0]],
        [3, [0.0, 1.0, 2.0, 3.0]],
        [[0.0, 0.5, 1.0], 2],
        [2, 3],
        [0.0, 1.0, 3.0],
        4,
    ],
)
@pytest.mark.parametrize("density", [False, True])
def test_axes_of_a_histogram_have_edges_of_their_own(bins: Any, density: bool) -> None:
    x, y = np.array([0.1, 0.5, 0.9]), np.array([1.0, 2.0, 3.0])
    as_arrays = [np.array(b) if isinstance(b, list) else b for b in bins] if bins != 4 else bins
    for given in (bins, as_arrays):
        found = jnp.histogram2d(x, y, given, density=density)
        for mine, wanted in zip(found, np.histogram2d(x, y, bins, density=density), strict=True):
            assert mine.shape == wanted.shape
            assert_close(mine, wanted)
