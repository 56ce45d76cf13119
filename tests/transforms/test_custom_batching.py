"""custom_vmap and sequential_vmap: vmap follows the rule, all else looks through."""

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.custom_batching import custom_vmap, sequential_vmap
from minijax.errors import UnexpectedTracerError

pytestmark = pytest.mark.feature("BT-09")

XS = np.array([0.5, 1.0, 2.0], np.float32)


@custom_vmap
def product(x, y):
    return x * y


@product.def_vmap
def product_rule(axis_size, in_batched, x, y):
    """A product ten times too large, to be seen."""
    return 10.0 * x * y, in_batched[0] or in_batched[1]


def with_rule(rule, function=lambda x: x * 2.0):
    """A function with a rule."""
    custom = custom_vmap(function)
    custom.def_vmap(rule)
    return custom


def close(actual, expected):
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=1e-6)


@pytest.mark.feature("BT-01")
def test_custom_vmap_replaces_the_batching():
    assert float(product(2.0, 3.0)) == 6.0
    assert jax.vmap(product)(XS, XS).tolist() == (10 * XS * XS).tolist()


@pytest.mark.parametrize(
    "mapped",
    [
        jax.vmap(product, (0, None)),
        jax.jit(jax.vmap(product, (0, None))),
        jax.vmap(jax.jit(product), (0, None)),
        lambda x, y: jax.vmap(lambda x: product(x, y=y))(x),
        lambda x, y: jax.vmap(lambda x: lax.cond(True, product, product, x, y))(x),
        lambda x, y: jax.vmap(lambda x: lax.fori_loop(0, 1, lambda _, c: product(c, y), x))(x),
    ],
)
def test_custom_vmap_rule_is_used_under_every_transformation(mapped):
    close(mapped(XS, 3.0), 30 * XS)


def test_custom_vmap_rule_gets_the_batch_in_front():
    seen = []
    f = with_rule(lambda size, batched, x: (seen.append((size, batched, x.shape)), (x, True))[1])
    jax.vmap(f, in_axes=1)(jnp.ones((2, 3)))
    assert seen == [(3, [True], (3, 2))]


def test_custom_vmap_rule_is_told_which_leaves_are_mapped():
    seen = []

    def rule(size, in_batched, tree):
        seen.append(in_batched)
        return tree["a"], in_batched[0]["a"]

    f = with_rule(rule, lambda tree: tree["a"])
    jax.vmap(lambda x: f({"a": x, "b": (1.0, x)}))(XS)
    assert seen == [[{"a": True, "b": (False, True)}]]


def test_custom_vmap_results_may_be_shared():
    f = with_rule(lambda size, batched, x: (7.0, False))
    assert jax.vmap(f)(XS).tolist() == [7.0] * 3
    assert float(jax.vmap(f, out_axes=None)(XS)) == 7.0


def test_custom_vmap_nests():
    close(jax.vmap(jax.vmap(product, (None, 0)), (0, None))(XS, XS), 10 * np.outer(XS, XS))


def test_custom_vmap_is_left_whole_in_jaxprs():
    assert str(jax.make_jaxpr(product)(1.0, 2.0)) == (
        "{ lambda ; a:f32[] b:f32[]. let\n"
        "    c:f32[] = custom_vmap_call[\n"
        "      call={ lambda ; a:f32[] b:f32[]. let c:f32[] = mul a b in (c,) }\n"
        "      rule=product_rule\n"
        "    ] a b\n"
        "  in (c,) }"
    )


def test_custom_vmap_differentiates_the_function_outside_of_vmap():
    assert [float(g) for g in jax.grad(product, (0, 1))(2.0, 3.0)] == [3.0, 2.0]
    assert float(jax.grad(jax.jit(product))(2.0, 3.0)) == 3.0
    assert float(jax.jvp(product, (2.0, 3.0), (1.0, 0.0))[1]) == 3.0


def test_custom_vmap_differentiates_the_rule_around_vmap():
    total = lambda x: jax.vmap(product, (0, None))(x, 3.0).sum()
    assert jax.grad(total)(XS).tolist() == [30.0] * 3


def test_custom_vmap_maps_its_forward_derivative_by_the_derivative_of_the_rule():
    out, tangent = jax.vmap(lambda x: jax.jvp(product, (x, 3.0), (1.0, 0.0)))(XS)
    close(out, 30 * XS)
    assert tangent.tolist() == [30.0] * 3


def test_custom_vmap_maps_a_tangent_of_a_shared_value():
    out, tangents = jax.vmap(lambda t: jax.jvp(product, (2.0, 3.0), (t, 0.0)))(XS)
    assert out.tolist() == [60.0] * 3
    close(tangents, 30 * XS)


def test_custom_vmap_second_derivative():
    cube = with_rule(lambda size, batched, x: (x**3, True), lambda x: x**3)
    assert float(jax.grad(jax.grad(cube))(2.0)) == 12.0


def test_sequential_vmap_applies_one_by_one():
    doubled = sequential_vmap(lambda x, y: lax.while_loop(lambda c: c < y, lambda c: 2 * c, x))
    assert jax.vmap(doubled, (0, None))(XS, 3.0).tolist() == [4.0, 4.0, 4.0]
    jaxpr = jax.make_jaxpr(jax.vmap(doubled, (0, None)))(XS, 3.0)
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["scan"]


def test_sequential_vmap_nests():
    f = sequential_vmap(lambda x, y: {"sum": x + y})
    out = jax.jit(jax.vmap(jax.vmap(f, (None, 0)), (0, None)))(XS, XS)
    assert out["sum"].tolist() == (XS[:, None] + XS).tolist()


def test_sequential_vmap_differentiates():
    f = sequential_vmap(jnp.sin)
    close(jax.grad(lambda x: jax.vmap(f)(x).sum())(XS), np.cos(XS))


def test_call_without_a_rule_is_refused():
    with pytest.raises(AttributeError, match="custom_vmap of sin: the function has no rule yet"):
        custom_vmap(jnp.sin)(1.0)


@pytest.mark.parametrize(
    ("rule", "error", "text"),
    [
        (lambda s, b, x: x, TypeError, r"must return a pair \(out, out_batched\)"),
        (lambda s, b, x: (x, (True, True)), ValueError, "out_batched of another structure"),
        (
            lambda s, b, x: ("one", True),
            TypeError,
            "a result of the rule <lambda> is neither an array nor a number",
        ),
        (
            lambda s, b, x: (jnp.ones(5), True),
            ValueError,
            r"whose first dimension is not the batch\.\n  got +result: f32\[5\]",
        ),
    ],
)
def test_what_the_rule_returns_is_checked(rule, error, text):
    with pytest.raises(error, match=text):
        jax.vmap(with_rule(rule))(XS)


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (lambda s, b, x: ((x, x), (True, True)), "results of another structure than the function"),
        (lambda s, b, x: (jnp.ones((3, 5)), True), r"result: f32\[5\] for an example, f32\[\] fr"),
    ],
)
def test_results_of_the_rule_are_checked_against_the_staged_function(rule, text):
    with pytest.raises(ValueError, match=text):
        jax.vmap(jax.jit(with_rule(rule)))(XS)


def closing_over(c, x):
    return with_rule(lambda size, batched, x: (c * x, True), lambda x: c * x)(x)


@pytest.mark.parametrize(
    "transformed",
    [
        jax.vmap(closing_over),
        jax.vmap(closing_over, (0, None)),
        jax.vmap(jax.jit(closing_over)),
        lambda c, x: jax.grad(lambda c: closing_over(c, x).sum())(c),
    ],
)
def test_transforming_a_closed_over_value_is_refused(transformed):
    with pytest.raises(UnexpectedTracerError, match="closes over a value that is being"):
        transformed(XS, XS)


def test_closing_over_an_unmapped_value_is_allowed():
    assert jax.vmap(closing_over, (None, 0))(2.0, XS).tolist() == (2 * XS).tolist()
    assert float(jax.jit(closing_over)(2.0, 3.0)) == 6.0
