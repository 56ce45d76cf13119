"""Activations, softmax and attention: values, derivatives and types of JAX."""

import inspect

import numpy as np
import pytest

import minijax as jax
from minijax import nn
from tests.nn import recorded, samples

pytestmark = pytest.mark.feature("NP-03")


@pytest.mark.parametrize("name", samples.CALLS["activations"])
def test_activation_equals_that_of_jax(name):
    # Far below their kinks, derivatives are small differences of large terms.
    atol = 2e-7 if "derivatives" in name else 1e-12
    recorded.check("activations", name, rtol=2e-6, atol=atol)


@pytest.mark.parametrize("name", samples.CALLS["normalizations"])
def test_normalization_equals_that_of_jax(name):
    # Sums of squares of probabilities cancel in their derivatives.
    recorded.check("normalizations", name, rtol=5e-6, atol=2e-7)


@pytest.mark.parametrize("name", samples.CALLS["attentions"])
def test_attention_equals_that_of_jax(name):
    recorded.check("attentions", name, rtol=5e-6, atol=5e-7)


# Calls that are errors have their names for a figure.
STRICT = {
    name: call
    for group, calls in samples.CALLS.items()
    for name, call in calls.items()
    if not isinstance(recorded.FIGURES[group][name], str) and name != "logsumexp of two dtypes"
}


@pytest.mark.feature("UX-03")
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize("name", STRICT)
def test_function_works_under_strict_settings(name):
    for x64 in (False, True):
        with (
            jax.enable_x64(x64),
            jax.numpy_rank_promotion("raise"),
            jax.numpy_dtype_promotion("strict"),
        ):
            jax.eval_shape(lambda: STRICT[name](jax))


@pytest.mark.parametrize("name", samples.FUNCTIONS)
def test_signature_equals_that_of_jax(name):
    parameters = inspect.signature(getattr(nn, name)).parameters.values()
    actual = [[p.name, p.kind.name, repr(p.default)] for p in parameters]
    assert actual == recorded.FIGURES["signatures"][name]


@pytest.mark.parametrize("name", samples.ELEMENTWISE)
def test_jaxpr_hides_no_call(name):
    jaxpr = jax.make_jaxpr(getattr(nn, name))(np.float32(1))
    assert not {"jit", "pjit", "closed_call"} & {eqn.primitive.name for eqn in jaxpr.eqns}


@pytest.mark.parametrize(
    "call",
    [
        *(getattr(nn, name) for name in samples.ELEMENTWISE if name != "identity"),
        nn.softmax,
        nn.log_softmax,
        nn.logsumexp,
        nn.standardize,
        lambda x: nn.one_hot(x, 3),
        lambda x: nn.dot_product_attention(x, x, x, is_causal=True),
    ],
)
def test_first_eager_call_compiles_one_program(call):
    jax.clear_caches()
    before = jax.cache_stats()["compile"].misses
    call(np.ones((2, 3, 4), np.float32))
    assert jax.cache_stats()["compile"].misses - before == 1


def test_swish_is_silu():
    assert nn.swish is nn.silu
    assert nn.hard_swish is nn.hard_silu


def test_relu_has_derivative_0_at_0():
    assert jax.grad(nn.relu)(0.0) == 0
    assert jax.grad(nn.relu)(-0.0) == 0


def test_relu6_has_derivative_0_at_both_kinks():
    assert [float(jax.grad(nn.relu6)(x)) for x in (0.0, 3.0, 6.0)] == [0, 1, 0]


def test_relu_of_infinities_and_nan():
    out = np.asarray(nn.relu(np.array([-np.inf, np.inf, np.nan], np.float32)))
    np.testing.assert_array_equal(out, [0, np.inf, np.nan])


def test_glu_refuses_an_odd_size():
    with pytest.raises(ValueError, match="must be even"):
        nn.glu(np.ones((2, 3), np.float32))


def test_glu_refuses_an_axis_out_of_range():
    with pytest.raises(ValueError, match="axis 2"):
        nn.glu(np.ones((2, 4), np.float32), 2)


def test_softmax_masks_elements_of_any_size():
    x = np.array([1.0, np.inf, 2.0], np.float32)
    out = np.asarray(nn.softmax(x, where=np.array([True, False, True])))
    np.testing.assert_allclose(out, [1 / (1 + np.e), 0, np.e / (1 + np.e)], rtol=1e-6)


def test_logsumexp_of_negative_sum_is_nan_without_sign():
    assert np.isnan(nn.logsumexp(np.zeros(2, np.float32), b=np.array([1, -2], np.float32)))


def test_standardize_refuses_an_unknown_algorithm():
    with pytest.raises(ValueError, match="'fast' or 'stable'"):
        nn.standardize(np.ones(3, np.float32), algorithm="x")


def test_one_hot_takes_its_dtype_from_the_64_bit_switch():
    with jax.enable_x64(True):
        assert nn.one_hot(np.array([1]), 2).dtype == np.float64
    assert nn.one_hot(np.array([1]), 2).dtype == np.float32


def test_one_hot_refuses_a_traced_number_of_classes():
    with pytest.raises(TypeError, match="traced value"):
        jax.jit(lambda n: nn.one_hot(np.array([1]), n))(3)


def test_attention_refuses_shapes_by_name():
    q = np.ones((1, 3, 3, 2), np.float32)
    kv = np.ones((1, 3, 2, 2), np.float32)
    with pytest.raises(ValueError, match="must be a multiple of that of the keys"):
        nn.dot_product_attention(q, kv, kv)


def test_causal_attention_sees_no_later_key():
    q = np.ones((1, 3, 1, 2), np.float32)
    value = np.arange(6, dtype=np.float32).reshape(1, 3, 1, 2)
    changed = value.copy()
    changed[:, 2] = 100
    first = np.asarray(nn.dot_product_attention(q, q, value, is_causal=True))
    second = np.asarray(nn.dot_product_attention(q, q, changed, is_causal=True))
    np.testing.assert_array_equal(first[:, :2], second[:, :2])


def test_attention_holds_no_mask_of_the_size_of_the_logits():
    q = np.ones((1, 64, 1, 2), np.float32)
    jaxpr = jax.make_jaxpr(lambda x: nn.dot_product_attention(x, x, x, is_causal=True))(q)
    assert max((np.size(const) for const in jaxpr.consts), default=0) < 64
