"""`lax.switch` and `lax.platform_dependent`."""

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax

X = np.linspace(-1, 1, 5, dtype=np.float32)
BRANCHES = [jnp.sin, lambda x: 2 * x, lambda x: x]
ORACLES = [np.sin, lambda x: 2 * x, lambda x: x]


@pytest.mark.feature("NP-02")
@pytest.mark.parametrize("index", [-7, 0, 1, 2, 9])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_switch_clamps_its_index(index, wrap):
    expected = ORACLES[np.clip(index, 0, 2)](X)
    np.testing.assert_allclose(wrap(lambda i: lax.switch(i, BRANCHES, X))(index), expected)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32"])
def test_switch_takes_integers_of_any_width(dtype):
    assert jax.jit(lambda i: lax.switch(i, [lambda: 5, lambda: 6]))(np.ones((), dtype)) == 6


def test_switch_of_one_branch_is_a_call():
    closed = jax.make_jaxpr(lambda i, x: lax.switch(i, BRANCHES[:1], x))(1, X)
    assert [str(eqn.primitive) for eqn in closed.jaxpr.eqns] == ["sin"]


def test_switch_takes_an_operand_by_keyword():
    assert lax.switch(1, [lambda x: x, lambda x: x + 1], operand=1) == 2


@pytest.mark.parametrize(
    ("strong", "weak"), [((0,), False), ((1, 2), True), ((2,), True), ((0, 2), False)]
)
@pytest.mark.parametrize("index", [0, 2])
def test_switch_has_the_weak_types_of_its_first_branch(strong, weak, index):
    branches = [lambda i=i: np.float32(i) if i in strong else float(i) for i in range(3)]
    assert jax.typeof(lax.switch(index, branches)).weak_type == weak


@pytest.mark.feature("AD-01")
@pytest.mark.parametrize("index", [0, 1, 2])
def test_gradient_of_switch_is_that_of_the_branch(index):
    gradient = jax.jit(jax.grad(lambda x, i: lax.switch(i, BRANCHES, x).sum()))(X, index)
    np.testing.assert_allclose(gradient, [np.cos(X), 2 + 0 * X, 1 + 0 * X][index], rtol=1e-6)


@pytest.mark.feature("BT-01")
def test_switch_over_a_batch_of_indices_matches_a_loop():
    indices = np.int32([-1, 0, 1, 2, 3])
    outs = jax.vmap(lambda i, x: lax.switch(i, BRANCHES, x))(indices, X)
    expected = [ORACLES[np.clip(i, 0, 2)](x) for i, x in zip(indices, X, strict=True)]
    np.testing.assert_allclose(outs, expected, rtol=1e-6)


def test_switch_names_the_branch_that_disagrees():
    with pytest.raises(TypeError, match=r"branches\[0\] and branches\[2\]") as caught:
        lax.switch(0, [lambda: X, lambda: X, lambda: X[1:]])
    assert "f32[5] from branches[0], f32[4] from branches[2]" in str(caught.value)


@pytest.mark.parametrize(
    ("index", "match"),
    [(1.5, "integer scalar"), (True, "lax.cond takes booleans"), (np.arange(2), "integer scalar")],
)
def test_switch_refuses_other_indices(index, match):
    with pytest.raises(TypeError, match=match):
        lax.switch(index, BRANCHES, X)


def test_switch_refuses_no_branches():
    with pytest.raises(ValueError, match="at least one branch"):
        lax.switch(0, [])


def test_switch_refuses_what_cannot_be_called():
    with pytest.raises(TypeError, match="expected a function"):
        lax.switch(0, [1])


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, jax.vmap], ids=["eager", "jit", "vmap"])
def test_platform_dependent_takes_the_function_of_the_platform(wrap):
    function = wrap(lambda x: lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos))
    np.testing.assert_allclose(function(X), np.sin(X), rtol=1e-6)


def test_platform_dependent_takes_the_default_elsewhere():
    function = jax.jit(lambda x: lax.platform_dependent(x, tpu=jnp.sin, default=jnp.cos))
    np.testing.assert_allclose(function(X), np.cos(X), rtol=1e-6)


def test_platform_dependent_lowers_one_function_only():
    function = jax.jit(lambda x: lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos))
    text = function.lower(X).as_text()
    assert "sine" in text.replace("cosine", "")
    assert "cosine" not in text


def test_platform_dependent_has_the_gradient_of_the_function():
    gradient = jax.grad(lambda x: lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos))(0.5)
    assert gradient == pytest.approx(np.cos(0.5), rel=1e-6)


def test_platform_dependent_leaves_other_functions_untraced_where_it_runs_at_once():
    assert lax.platform_dependent(2.0, cpu=lambda x: x + 1, tpu=lambda x: x.no_such_name) == 3.0


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_platform_dependent_refuses_a_platform_without_function(wrap):
    function = wrap(lambda x: lax.platform_dependent(x, tpu=jnp.sin))
    with pytest.raises(NotImplementedError, match="no function for the platform 'cpu'"):
        function(X)


def test_platform_dependent_refuses_no_functions():
    with pytest.raises(NotImplementedError, match="or a default"):
        lax.platform_dependent(X)
