"""`lax.map`: one slice after the other, or blocks of them at once."""

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax

X = np.linspace(0.5, 1.5, 7, dtype=np.float32)
BATCH_SIZES = [None, 0, 1, 2, 3, 7, 20]


@pytest.mark.feature("NP-02")
@pytest.mark.parametrize("batch_size", BATCH_SIZES)
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_map_matches_a_loop(batch_size, wrap):
    xs = {"a": X, "b": (np.outer(X, X), None)}
    function = lambda x: (x["a"] * x["b"][0], {"sum": x["b"][0].sum()})
    products, rest = wrap(lambda xs: lax.map(function, xs, batch_size=batch_size))(xs)
    expected = X[:, None] * np.outer(X, X)
    np.testing.assert_allclose(products, expected, rtol=1e-6)
    np.testing.assert_allclose(rest["sum"], np.outer(X, X).sum(1), rtol=1e-6)


@pytest.mark.parametrize("batch_size", [None, 3])
def test_gradient_of_a_map_is_that_of_each_slice(batch_size):
    gradient = jax.grad(lambda x: lax.map(jnp.sin, x, batch_size=batch_size).sum())(X)
    np.testing.assert_allclose(gradient, np.cos(X), rtol=1e-6)


@pytest.mark.parametrize("batch_size", [None, 3])
def test_map_closes_over_tracers(batch_size):
    function = lambda w: lax.map(lambda x: w * x, X, batch_size=batch_size)
    outs = jax.vmap(jax.jacfwd(function))(np.float32([1, 2]))
    np.testing.assert_allclose(outs, [X, X], rtol=1e-6)


@pytest.mark.parametrize("batch_size", [None, 2])
def test_map_over_random_keys(batch_size):
    keys = jax.random.split(jax.random.key(0), 5)
    outs = lax.map(jax.random.uniform, keys, batch_size=batch_size)
    np.testing.assert_array_equal(outs, jax.vmap(jax.random.uniform)(keys))


@pytest.mark.parametrize("batch_size", [None, 2])
def test_map_over_nothing_keeps_shapes(batch_size):
    outs = lax.map(lambda x: jnp.stack([x, x]), X[:0], batch_size=batch_size)
    assert outs.shape == (0, 2)


@pytest.mark.parametrize("batch_size", [None, 3])
def test_results_keep_their_weak_types(batch_size):
    outs = lax.map(lambda x: (1.0, x), X, batch_size=batch_size)
    assert [jax.typeof(x).weak_type for x in outs] == [True, False]


def test_blocks_are_computed_at_once():
    text = jax.jit(lambda x: lax.map(jnp.sin, x, batch_size=3)).lower(X).as_text()
    assert "stablehlo.sine %" in text
    assert "tensor<3xf32>" in text
    assert "tensor<1xf32>" in text


def test_function_is_staged_once_for_any_number_of_slices():
    calls = []

    def function(x):
        calls.append(x)
        return x * 2

    for n in (2, 5, 100):
        lax.map(function, np.ones(n))
    assert len(calls) == 1


def test_nothing_to_map_over_is_refused():
    with pytest.raises(ValueError, match=r"lax.map: xs has no leaves"):
        lax.map(lambda x: x, None)


def test_scalars_cannot_be_mapped_over():
    with pytest.raises(ValueError, match=r"lax.map: xs cannot be scanned over"):
        lax.map(lambda x: x, 2.0)


def test_negative_batch_size_is_refused():
    with pytest.raises(ValueError, match="batch_size must be positive"):
        lax.map(lambda x: x, X, batch_size=-1)


def test_what_cannot_be_called_is_refused():
    with pytest.raises(TypeError, match=r"lax.map: expected a function"):
        lax.map(2, X)
