"""`lax.associative_scan`: prefix sums of any associative function."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minijax as jax
import minijax.numpy as jnp
from minijax import lax

SIZES = [0, 1, 2, 3, 4, 5, 8, 13]


def affine(first, second):
    """The composition of two maps `x -> a x + b`, many at once."""
    (a, b), (c, d) = first, second
    return a * c, b * c + d


@pytest.mark.feature("NP-02")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("function", "oracle"),
    [(jnp.add, np.add), (jnp.multiply, np.multiply), (jnp.maximum, np.maximum)],
    ids=["add", "multiply", "maximum"],
)
def test_prefixes_match_numpy(function, oracle, size, reverse):
    x = np.random.default_rng(size).integers(-3, 4, size).astype(np.int32)
    expected = oracle.accumulate(x[::-1])[::-1] if reverse else oracle.accumulate(x)
    np.testing.assert_array_equal(lax.associative_scan(function, x, reverse=reverse), expected)


@pytest.mark.slow
@given(st.integers(0, 20), st.booleans())
def test_prefixes_of_maps_match_their_composition(size, reverse):
    rng = np.random.default_rng(size)
    a, b = rng.uniform(-1, 1, (2, size)).astype(np.float32)
    pairs = list(zip(a, b, strict=True))
    prefixes = list(itertools.accumulate(reversed(pairs) if reverse else pairs, affine))
    expected = np.float32(prefixes[::-1] if reverse else prefixes).reshape(size, 2).T
    actual = lax.associative_scan(affine, (a, b), reverse=reverse)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_any_axis_may_be_scanned(axis):
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    actual = jax.jit(lambda x: lax.associative_scan(jnp.add, x, axis=axis))(x)
    np.testing.assert_array_equal(actual, np.cumsum(x, axis))


@pytest.mark.parametrize("dtype", ["bool", "int8", "bfloat16", "complex64"])
def test_dtypes_stay(dtype):
    x = jnp.array([0, 1, 0, 1, 1], dtype)
    function = jnp.logical_or if dtype == "bool" else jnp.add
    out = lax.associative_scan(function, x)
    assert out.dtype == dtype
    expected = [0, 1, 1, 1, 1] if dtype == "bool" else [0, 1, 1, 2, 3]
    np.testing.assert_array_equal(np.asarray(out, np.complex64), expected)


def test_matrices_need_not_commute():
    x = np.random.default_rng(0).uniform(-1, 1, (6, 2, 2)).astype(np.float32)
    expected = np.stack(list(itertools.accumulate(x, np.matmul)))
    np.testing.assert_allclose(lax.associative_scan(jnp.matmul, x), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.feature("AD-01")
def test_gradient_matches_that_of_a_product():
    x = np.linspace(0.5, 1.5, 6, dtype=np.float32)
    gradient = jax.grad(lambda x: lax.associative_scan(jnp.multiply, x)[-1])(x)
    np.testing.assert_allclose(gradient, x.prod() / x, rtol=1e-5)


@pytest.mark.feature("BT-01")
def test_vmap_matches_stacking():
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    actual = jax.vmap(lambda x: lax.associative_scan(jnp.add, x), in_axes=1, out_axes=1)(x)
    np.testing.assert_array_equal(actual, np.cumsum(x, 0))


def test_depth_is_logarithmic():
    count = lambda n: str(jax.make_jaxpr(lambda x: lax.associative_scan(jnp.add, x))(np.ones(n)))
    assert count(1024).count("= add") <= 4 * 10


def test_a_function_may_return_another_kind_of_container():
    listed = lax.associative_scan(lambda a, b: [a[0] + b[0]], (np.arange(4),))
    assert type(listed) is tuple
    np.testing.assert_array_equal(listed[0], [0, 1, 3, 6])


def test_other_structures_are_refused():
    with pytest.raises(ValueError, match="fn returns another structure than elems"):
        lax.associative_scan(lambda a, b: (a, b), np.arange(4))


def test_disagreeing_sizes_are_refused():
    with pytest.raises(ValueError, match=r"sizes of elems along the axis disagree[\s\S]*i32\[3\]"):
        lax.associative_scan(affine, (np.arange(4), np.arange(3)))


@pytest.mark.parametrize(("elems", "axis"), [(np.arange(4), 1), (2.0, 0)])
def test_axes_that_do_not_exist_are_refused(elems, axis):
    with pytest.raises(ValueError, match="out of range"):
        lax.associative_scan(jnp.add, elems, axis=axis)


def test_what_cannot_be_called_is_refused():
    with pytest.raises(TypeError, match=r"lax.associative_scan: expected a function"):
        lax.associative_scan(3, np.arange(4))
