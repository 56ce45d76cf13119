"""`lax.cond`: which function runs, types, derivatives, batches, dead code, and refusals."""

import gc
import weakref

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax

X = np.linspace(-1, 1, 5, dtype=np.float32)


def primitives(closed):
    return [str(eqn.primitive) for eqn in closed.jaxpr.eqns]


def signature(x):
    aval = jax.typeof(x)
    return str(aval.dtype), aval.shape, aval.weak_type


@pytest.mark.feature("NP-02")
@pytest.mark.parametrize(
    ("pred", "expected"),
    [(True, 1), (False, 2), (3, 1), (0, 2), (0.5, 1), (0.0, 2), (np.bool_(False), 2)],
)
def test_cond_takes_the_function_that_a_constant_chooses(pred, expected):
    assert lax.cond(pred, lambda: 1, lambda: 2) == expected


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float32", "bfloat16"])
@pytest.mark.parametrize("value", [0, 1])
def test_cond_of_a_traced_number_is_true_unless_zero(dtype, value):
    compiled = jax.jit(lambda pred: lax.cond(pred, lambda: 10, lambda: 20))
    assert compiled(jnp.asarray(value, dtype)) == (10 if value else 20)


def test_cond_of_nan_is_true():
    assert jax.jit(lambda pred: lax.cond(pred, lambda: 1, lambda: 2))(np.nan) == 1


def test_cond_passes_trees_with_none_through():
    operand = {"a": X, "b": (None, 2.0)}
    out = lax.cond(X[0] > 0, lambda d: d, lambda d: {"a": -d["a"], "b": (None, d["b"][1])}, operand)
    assert jax.tree.structure(out) == jax.tree.structure(operand)
    np.testing.assert_array_equal(out["a"], -X)


def test_cond_takes_an_operand_by_keyword():
    assert lax.cond(True, lambda x: x + 1, lambda x: x, operand=1) == 2


def test_cond_takes_none_as_operand():
    assert lax.cond(False, lambda _: 1, lambda _: 2, operand=None) == 2


@pytest.mark.parametrize(("pred", "expected"), [(True, 10), (False, -2)])
def test_cond_takes_an_operand_for_each_function(pred, expected):
    assert lax.cond(pred, 1, lambda x: x * 10, 2, lambda x: -x) == expected


def test_cond_of_a_constant_is_staged_with_its_index():
    closed = jax.make_jaxpr(lambda x: lax.cond(0, jnp.sin, jnp.cos, x))(X)
    assert primitives(closed) == ["cond"]


def test_cond_runs_one_function_only():
    def effectful(name):
        def function(x):
            seen.append(name)
            return x

        return function

    seen = []
    with jax.disable_jit():
        lax.cond(X[0] > 0, effectful("true"), effectful("false"), X)
    assert seen == ["false"]


@pytest.mark.parametrize(
    ("true", "false", "weak"),
    [
        (lambda: 1.0, lambda: 2.0, True),
        (lambda: 1.0, lambda: np.float32(2), False),
        (lambda: np.float32(1), lambda: 2.0, True),
    ],
)
@pytest.mark.parametrize("pred", [True, False])
def test_cond_has_the_weak_types_of_false_fun(true, false, weak, pred):
    # As JAX does: false_fun is branch 0, and the first branch decides.
    assert signature(lax.cond(pred, true, false)) == ("float32", (), weak)
    assert signature(jax.jit(lambda p: lax.cond(p, true, false))(pred)) == ("float32", (), weak)


@pytest.mark.parametrize("dtype", ["bfloat16", "complex64", "int8", "bool", "float16"])
def test_cond_keeps_dtypes(dtype):
    x = jnp.ones(3, dtype)
    compiled = jax.jit(lambda p, x: lax.cond(p, lambda x: x, lambda x: x[::-1], x))
    assert compiled(False, x).dtype == dtype


def test_cond_returns_random_keys():
    chosen = jax.jit(lambda p: lax.cond(p, lambda: jax.random.key(3), lambda: jax.random.key(4)))
    assert jax.random.key_data(chosen(True)).tolist() == [0, 3]


def test_cond_over_a_batch_chooses_random_keys():
    keys = jax.vmap(lambda p: lax.cond(p, lambda: jax.random.key(3), lambda: jax.random.key(4)))
    data = jax.random.key_data(keys(jnp.array([True, False])))
    assert data.tolist() == [[0, 3], [0, 4]]


def test_cond_takes_arrays_without_elements():
    empty = jnp.zeros((0, 3))
    assert jax.jit(lambda p: lax.cond(p, jnp.sin, jnp.cos, empty))(True).shape == (0, 3)


def test_cond_without_results_is_allowed():
    assert lax.cond(True, lambda: None, lambda: None) is None


@pytest.mark.feature("AD-01")
@pytest.mark.parametrize("pred", [True, False])
def test_cond_closes_over_tracers_of_grad(pred):
    def loss(x):
        return lax.cond(pred, lambda: jnp.sin(x), lambda: x**3)

    assert jax.grad(loss)(0.5) == pytest.approx(np.cos(0.5) if pred else 0.75, rel=1e-6)
    second = jax.grad(jax.grad(loss))(0.5)
    assert second == pytest.approx(-np.sin(0.5) if pred else 3.0, rel=1e-6)


def test_cond_closes_over_tracers_of_every_transformation():
    def loss(a, w):
        return jax.jit(lambda p: lax.cond(p > 0, lambda: a * w, lambda: a * a))(a)

    gradients = jax.jit(jax.vmap(jax.grad(loss), in_axes=(0, None)))(X, 3.0)
    np.testing.assert_allclose(gradients, np.where(X > 0, 3.0, 2 * X), rtol=1e-6)


def test_gradient_of_cond_takes_integer_operands_and_results():
    def loss(x, i):
        y, n = lax.cond(i > 0, lambda x, i: (x * i, i), lambda x, i: (x, i + 1), x, i)
        return y * n

    assert jax.grad(loss)(2.0, 3) == 9.0


def test_gradient_of_cond_by_an_integer_is_float0():
    function = lambda i: lax.cond(i > 0, lambda i: i * 2.0, lambda i: i * 3.0, i)
    assert jax.grad(function, allow_int=True)(3).dtype == jax.dtypes.float0


@pytest.mark.feature("PE-02")
def test_residuals_of_branches_share_places_by_type():
    def loss(x):
        return lax.cond(x.sum() > 0, lambda x: jnp.sin(x).sum(), lambda x: (x**3).sum(), x)

    closed = jax.make_jaxpr(jax.grad(loss))(X)
    forward = next(eqn for eqn in closed.jaxpr.eqns if str(eqn.primitive) == "cond")
    assert [v.aval.shape for v in forward.outvars] == [(), (5,)]


@pytest.mark.feature("PE-02")
def test_known_predicate_chooses_before_the_tangents_are_known():
    _, linear = jax.linearize(lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x), X)
    np.testing.assert_allclose(linear(X), -np.sin(X) * X, rtol=1e-6)


@pytest.mark.feature("BT-01")
def test_batched_predicate_becomes_a_selection():
    function = jax.vmap(lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x))
    closed = jax.make_jaxpr(function)(X > 0, X)
    assert "cond" not in primitives(closed)
    np.testing.assert_allclose(function(X > 0, X), np.where(X > 0, np.sin(X), np.cos(X)), rtol=1e-6)


@pytest.mark.feature("BT-01")
def test_predicate_of_all_examples_stays_a_branch():
    closed = jax.make_jaxpr(jax.vmap(lambda x: lax.cond(True, jnp.sin, jnp.cos, x)))(X)
    assert primitives(closed) == ["cond"]


def test_gradient_of_a_batched_cond_ignores_the_branch_not_taken():
    def safe_sqrt(x):
        return lax.cond(x > 0, jnp.sqrt, lambda x: 0.0 * x, x)

    gradients = jax.grad(lambda x: jax.vmap(safe_sqrt)(x).sum())(jnp.array([-1.0, 0.0, 4.0]))
    np.testing.assert_array_equal(gradients, [0, 0, 0.25])


def test_results_are_batched_if_some_branch_batches_them():
    function = jax.vmap(lambda x: lax.cond(False, lambda x: 1.0, lambda x: 2 * x, x))
    np.testing.assert_array_equal(function(X), 2 * X)


@pytest.mark.feature("PE-06")
def test_dead_results_and_operands_leave_the_branches():
    def function(p, x, y):
        return lax.cond(p, lambda x, y: (jnp.sin(x), jnp.exp(y)), lambda x, y: (x, y), x, y)[0]

    text = jax.jit(function).lower(True, X, X).as_text()
    assert "exponential" not in text


@pytest.mark.feature("PE-06")
def test_unused_cond_is_dropped():
    def function(p, x):
        lax.cond(p, jnp.sin, jnp.cos, x)
        return x

    assert "case" not in jax.jit(function).lower(True, X).as_text()


def test_functions_are_staged_once_for_a_signature():
    calls = []

    def true(x):
        calls.append(x)
        return x

    def false(x):
        return -x

    for _ in range(3):
        lax.cond(True, true, false, X)
    jax.grad(lambda x: lax.cond(True, true, false, x).sum())(X)
    assert len(calls) == 1


@pytest.mark.usefixtures("young_heap")
def test_staged_functions_live_no_longer_than_the_users():
    def use():
        def function(x):
            return x

        lax.cond(True, function, lambda x: -x, X)
        return weakref.ref(function)

    function = use()
    gc.collect()
    assert function() is None


def test_cond_in_cond_in_cond_agrees_with_python():
    def nested(x):
        return lax.cond(
            x > 0,
            lambda x: lax.cond(x > 1, lambda x: lax.cond(x > 2, jnp.sin, jnp.cos, x), jnp.exp, x),
            jnp.tanh,
            x,
        )

    def plain(x):
        if x > 0:
            if x > 1:
                return np.sin(x) if x > 2 else np.cos(x)
            return np.exp(x)
        return np.tanh(x)

    points = np.float32([-1, 0.5, 1.5, 2.5])
    expected = np.stack(list(map(plain, points)))
    np.testing.assert_allclose(jax.jit(jax.vmap(nested))(points), expected, rtol=1e-6)
    np.testing.assert_allclose(np.stack(list(map(nested, points))), expected, rtol=1e-6)


def test_disagreeing_types_name_the_leaf_both_types_and_the_line():
    def true(d):
        return {"a": d, "b": [d]}

    def false(d):
        short = d[:2]
        return {"a": short * 2, "b": [d]}

    with pytest.raises(TypeError) as caught:
        lax.cond(True, true, false, X)
    text = str(caught.value)
    assert "result['a']: f32[5] from true_fun, f32[2] from false_fun" in text
    assert "the shapes differ; first by slice at test_cond.py:" in text
    line = false.__code__.co_firstlineno + 1
    assert f"test_cond.py:{line} in" in text
    assert "'b'" not in text


def test_disagreeing_structures_name_the_place():
    with pytest.raises(TypeError, match="different structure") as caught:
        lax.cond(True, lambda x: {"a": [x]}, lambda x: {"a": (x,)}, X)
    assert "true_fun['a']: list of length 1   false_fun['a']: tuple of length 1" in str(
        caught.value
    )


@pytest.mark.parametrize(
    ("pred", "match"),
    [
        (X > 0, r"must be a scalar[\s\S]*bool\[5\][\s\S]*\.all\(\)"),
        (1j, "a boolean or a number"),
        (None, "must be a scalar"),
        (abs, "must be a scalar"),
        ("yes", "not a valid type"),
    ],
)
def test_cond_refuses_other_predicates(pred, match):
    with pytest.raises(TypeError, match=match):
        lax.cond(pred, lambda: 1, lambda: 2)


def test_cond_refuses_what_cannot_be_called():
    with pytest.raises(TypeError, match=r"lax.cond: expected a function"):
        lax.cond(True, 1, 2)


def test_cond_refuses_operands_in_both_ways():
    with pytest.raises(TypeError, match="not both"):
        lax.cond(True, lambda x: x, lambda x: x, 1, operand=2)


def test_cond_refuses_operands_that_are_no_arrays():
    with pytest.raises(
        TypeError, match=r"operands\[0\]\['name'\] is neither an array nor a number"
    ):
        lax.cond(True, lambda x: 1, lambda x: 2, {"name": "text"})
