"""jvp, vjp, grad, linearize, Jacobians: values against hand-derived ones, and the errors."""

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.core import dtypes


def cube(x):
    return x**3


@pytest.mark.feature("AD-01")
def test_grad_of_a_scalar_function():
    assert float(jax.grad(cube)(2.0)) == 12.0


@pytest.mark.feature("AD-01")
def test_grad_nests():
    assert float(jax.grad(jax.grad(cube))(2.0)) == 12.0
    assert float(jax.grad(jax.grad(jax.grad(cube)))(2.0)) == 6.0


def test_grad_of_a_tree():
    params = {"w": jnp.arange(3.0), "b": 2.0}
    grads = jax.grad(lambda p: jnp.sum(p["w"] ** 2) * p["b"])(params)
    assert grads["w"].tolist() == [0.0, 4.0, 8.0]
    assert float(grads["b"]) == 5.0


def test_grad_of_several_arguments():
    f = lambda x, y, z: x * y + z
    assert [float(g) for g in jax.grad(f, argnums=(0, 1))(2.0, 3.0, 4.0)] == [3.0, 2.0]
    assert float(jax.grad(f, argnums=-1)(2.0, 3.0, 4.0)) == 1.0


def test_grad_with_aux():
    grads, aux = jax.grad(lambda x: (x**2, {"twice": 2 * x}), has_aux=True)(3.0)
    assert float(grads) == 6.0
    assert float(aux["twice"]) == 6.0


def test_value_and_grad_with_aux():
    (value, aux), grads = jax.value_and_grad(lambda x: (x**2, x), has_aux=True)(3.0)
    assert (float(value), float(aux), float(grads)) == (9.0, 3.0, 6.0)


def test_grad_passes_keyword_arguments_through():
    assert float(jax.grad(lambda x, *, scale: x * scale)(1.0, scale=4.0)) == 4.0


def test_grad_through_python_control_flow_on_values():
    def f(x):
        return x * 3 if x > 0 else x * 5

    assert float(jax.grad(f)(1.0)) == 3.0
    assert float(jax.grad(f)(-1.0)) == 5.0


def test_grad_through_a_python_loop_until_convergence():
    def square_root(a):
        x = a
        while abs(x * x - a) > 1e-3:
            x = (x + a / x) / 2
        return x

    np.testing.assert_allclose(jax.grad(square_root)(4.0), 0.25, rtol=1e-2)


def test_grad_of_a_jitted_function_is_not_staged_twice():
    count = 0

    @jax.jit
    def f(x):
        nonlocal count
        count += 1
        return jnp.sum(jnp.sin(x))

    g = jax.grad(f)
    for _ in range(3):
        np.testing.assert_allclose(g(jnp.zeros(3)), np.ones(3))
    assert count == 1


def test_grad_of_unused_argument_is_zero():
    assert jax.grad(lambda x, y: y * 2.0)(jnp.float32(1.0), 2.0).tolist() == 0.0


def test_grad_of_a_constant_function_is_zero():
    assert jax.grad(lambda x: 3.0)(jnp.ones(())).tolist() == 0.0


def test_grad_of_an_array_used_many_times_adds_up():
    assert float(jax.grad(lambda x: x * x * x + x + x)(2.0)) == 14.0


def test_grad_keeps_the_dtype_of_the_argument():
    x = jnp.ones((), jnp.bfloat16)
    assert jax.grad(lambda x: x.astype(jnp.float32) ** 2)(x).dtype == jnp.bfloat16


def test_grad_under_jit_and_vmap():
    x = jnp.arange(4.0)
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(jnp.sin)))(x), np.cos(x), rtol=1e-6)


def test_grad_refuses_results_that_are_no_scalars():
    with pytest.raises(TypeError, match="must return a scalar") as caught:
        jax.grad(lambda x: x)(jnp.ones(3))
    assert "f32[3]" in str(caught.value)
    with pytest.raises(TypeError, match="must return a scalar"):
        jax.grad(lambda x: (x, x))(1.0)


def test_grad_refuses_integers_and_names_the_argument():
    with pytest.raises(TypeError, match=r"params\['n'\]") as caught:
        jax.grad(lambda params: params["n"] * 1.0)({"n": 3})
    assert "allow_int=True" in str(caught.value)


@pytest.mark.feature("CR-13")
def test_grad_of_integers_with_allow_int_is_float0():
    out = jax.grad(lambda n, x: x * n, allow_int=True)(3, 2.0)
    assert out.dtype == dtypes.float0


def test_grad_argnums_out_of_range():
    with pytest.raises(TypeError, match="argnums 2 is out of range"):
        jax.grad(lambda x: x, argnums=2)(1.0)


def test_grad_of_complex_input_with_a_real_result():
    z = jnp.complex64(3.0 + 4.0j)
    np.testing.assert_allclose(jax.grad(lambda z: jnp.abs(z) ** 2)(z), 2 * np.conj(z), rtol=1e-6)
    with pytest.raises(TypeError, match="real scalar"):
        jax.grad(lambda z: z * z)(z)


def test_grad_of_python_scalars_stays_weak():
    assert jax.grad(lambda x: x**3)(2.0).weak_type
    assert not jax.grad(lambda x: x**3)(jnp.float32(2.0)).weak_type


@pytest.mark.parametrize("x", [0.0, 2.0, -30.0])
def test_grad_of_softplus_is_the_sigmoid(x):
    np.testing.assert_allclose(jax.grad(jax.nn.softplus)(x), 1 / (1 + np.exp(-x)), rtol=1e-5)


def test_grad_holomorphic():
    z = jnp.complex64(1.0 + 2.0j)
    np.testing.assert_allclose(jax.grad(lambda z: z**3, holomorphic=True)(z), 3 * z**2, rtol=1e-6)


def test_vjp_of_complex_functions_follows_jax():
    # For f(z) = |z|², JAX's pull-back of 1 is 2·conj(z).
    z = jnp.complex64(3.0 - 4.0j)
    out, pull = jax.vjp(lambda z: jnp.real(z * jnp.conj(z)), z)
    assert float(out) == 25.0
    np.testing.assert_allclose(pull(jnp.float32(1.0))[0], 2 * np.conj(np.asarray(z)))


def test_cotangents_of_integers_are_ignored():
    x = jnp.array([0.0, 1.0, 2.0])
    _, pull = jax.vjp(lambda x: (x * 2, x.astype(int), x > 1), x)
    for integers in (jnp.arange(3), jnp.ones(3), np.zeros(3, dtypes.float0)):
        (ct,) = pull((x, integers, integers))
        np.testing.assert_array_equal(ct, 2 * x)
    with pytest.raises(ValueError, match="wrong type"):
        pull((x, jnp.arange(2), jnp.arange(3)))


@pytest.mark.parametrize("fun", [lambda x: x * 2.0, lambda x: x * jnp.float32(2), lambda x: 1.0])
@pytest.mark.parametrize("x", [3.0, jnp.float32(3)])
def test_cotangents_are_as_weak_as_what_they_belong_to(fun, x):
    out, pull = jax.vjp(fun, x)
    assert jax.typeof(pull(jnp.ones_like(out))[0]).weak_type == jax.typeof(x).weak_type


@pytest.mark.parametrize("through", ["jit", "map", "scan", "vmap"])
def test_tangents_of_integers_are_results_of_programs(through):
    known, x = jnp.arange(4), jnp.ones(3)
    tangent = lambda x: jax.linearize(lambda x: known, x)[1](x)
    made = {
        "jit": lambda: jax.jit(tangent)(1.0),
        "map": lambda: jax.lax.map(tangent, x),
        "scan": lambda: jax.lax.scan(lambda c, x: (c, tangent(x)), 0, x)[1],
        "vmap": lambda: jax.vmap(tangent)(x),
    }[through]()
    assert made.dtype == dtypes.float0
    assert made.shape == ((4,) if through == "jit" else (3, 4))


@pytest.mark.feature("AD-01")
def test_jvp_gives_value_and_directional_derivative():
    y, y_dot = jax.jvp(lambda x: x**2, (3.0,), (2.0,))
    assert (float(y), float(y_dot)) == (9.0, 12.0)


def test_jvp_of_integers_needs_float0():
    tangent = np.zeros((), dtypes.float0)
    y, y_dot = jax.jvp(lambda n, x: n * x, (2, 3.0), (tangent, 1.0))
    assert (float(y), float(y_dot)) == (6.0, 2.0)
    with pytest.raises(TypeError, match="the tangent of n has the wrong type"):
        jax.jvp(lambda n, x: n * x, (2, 3.0), (1, 1.0))


def test_jvp_refuses_tangents_of_another_shape():
    with pytest.raises(ValueError, match="tangent of x has the wrong type"):
        jax.jvp(lambda x: x, (jnp.ones(3),), (jnp.ones(2),))
    with pytest.raises(TypeError, match="different trees"):
        jax.jvp(lambda x: x, ((1.0, 2.0),), (1.0,))
    with pytest.raises(TypeError, match="tuples or lists"):
        jax.jvp(lambda x: x, 1.0, 1.0)


def test_jvp_with_aux():
    y, y_dot, aux = jax.jvp(lambda x: (x * 2, "note" if False else x), (1.0,), (1.0,), has_aux=True)
    assert (float(y), float(y_dot), float(aux)) == (2.0, 2.0, 1.0)


@pytest.mark.feature("AD-01")
def test_linearize_is_linear_and_reusable():
    y, push = jax.linearize(jnp.sin, 1.0)
    np.testing.assert_allclose(y, np.sin(1.0), rtol=1e-6)
    np.testing.assert_allclose([push(1.0), push(2.0)], [np.cos(1.0), 2 * np.cos(1.0)], rtol=1e-6)


def test_linearize_runs_the_function_once():
    count = 0

    def f(x):
        nonlocal count
        count += 1
        return jnp.sin(x)

    _, push = jax.linearize(f, 1.0)
    push(1.0), push(2.0)
    assert count == 1


def test_vjp_of_a_tree():
    out, pull = jax.vjp(lambda p: {"s": p["a"] * p["b"]}, {"a": 2.0, "b": 3.0})
    (grads,) = pull({"s": 1.0})
    assert (float(out["s"]), float(grads["a"]), float(grads["b"])) == (6.0, 3.0, 2.0)


def test_vjp_refuses_cotangents_of_another_type():
    _, pull = jax.vjp(jnp.sin, jnp.ones(3))
    with pytest.raises(ValueError, match="wrong type"):
        pull(jnp.ones(2))
    with pytest.raises(ValueError, match="wrong tree"):
        pull((jnp.ones(3), jnp.ones(3)))


def test_vjp_function_passes_through_jit():
    pull = jax.jit(lambda x: jax.vjp(jnp.sin, x)[1])(1.0)
    np.testing.assert_allclose(pull(1.0)[0], np.cos(1.0), rtol=1e-6)


@pytest.mark.feature("AD-01")
def test_linear_transpose_of_a_matrix():
    matrix = jnp.arange(6.0).reshape(2, 3)
    transposed = jax.linear_transpose(lambda x: matrix @ x, jnp.ones(3))
    np.testing.assert_allclose(transposed(jnp.array([1.0, 2.0]))[0], matrix.T @ np.array([1.0, 2]))


def test_linear_transpose_takes_shapes_only():
    shape = jax.ShapeDtypeStruct((3,), jnp.float32)
    (out,) = jax.linear_transpose(lambda x: 2.0 * x[1:], shape)(jnp.ones(2))
    assert out.tolist() == [0.0, 2.0, 2.0]


def test_jacobians_agree_and_match_the_formula():
    f = lambda x: jnp.stack([x[0] * x[1], jnp.sin(x[1]), x[0] ** 2])
    x = jnp.array([2.0, 3.0])
    expected = np.array([[3.0, 2.0], [0.0, np.cos(3.0)], [4.0, 0.0]])
    np.testing.assert_allclose(jax.jacfwd(f)(x), expected, rtol=1e-6)
    np.testing.assert_allclose(jax.jacrev(f)(x), expected, rtol=1e-6)


def test_jacobian_of_trees():
    f = lambda p: {"out": p["a"] * p["b"][:, None]}
    p = {"a": jnp.arange(2.0), "b": jnp.arange(3.0)}
    for jacobian in (jax.jacfwd, jax.jacrev):
        out = jacobian(f)(p)
        assert out["out"]["a"].shape == (3, 2, 2)
        assert out["out"]["b"].shape == (3, 2, 3)
        np.testing.assert_allclose(out["out"]["b"][2, 1], [0.0, 0.0, 1.0])


@pytest.mark.feature("AD-01")
def test_hessian_of_a_quadratic_form():
    matrix = jnp.array([[2.0, 1.0], [0.0, 3.0]])
    h = jax.hessian(lambda x: x @ matrix @ x)(jnp.ones(2))
    np.testing.assert_allclose(h, matrix + matrix.T)


def test_hessian_vector_product_by_forward_over_reverse():
    f = lambda x: jnp.sum(x**3)
    x, v = jnp.array([1.0, 2.0]), jnp.array([1.0, 0.5])
    _, product = jax.jvp(jax.grad(f), (x,), (v,))
    np.testing.assert_allclose(product, 6 * x * v)


def test_closure_convert_hoists_traced_values():
    def outer(x):
        converted, values = jax.closure_convert(lambda y: x * y, 1.0)
        assert len(values) == 1
        return converted(3.0, *values)

    assert float(jax.grad(outer)(2.0)) == 3.0


@pytest.mark.feature("AD-07", "CR-01")
def test_differentiating_without_a_rule_names_the_primitive():
    opaque = jax.extend.core.Primitive("opaque_for_grad")
    opaque.def_impl(lambda x: x)
    opaque.def_abstract_eval(lambda x: x)
    with pytest.raises(NotImplementedError, match=r"opaque_for_grad.*forward-mode"):
        jax.grad(lambda x: opaque.bind(x))(1.0)


def test_zero_size_arrays_have_gradients():
    assert jax.grad(lambda x: jnp.sum(x))(jnp.zeros((0, 3))).shape == (0, 3)


def test_grad_of_an_integer_leaves_a_jitted_function():
    grads = jax.jit(jax.grad(lambda x, n: x * n, (0, 1), allow_int=True))(2.0, 3)
    assert (float(grads[0]), grads[1].dtype) == (3.0, dtypes.float0)


@pytest.mark.usefixtures("young_heap")
def test_grad_of_a_jitted_function_leaks_nothing():
    with jax.checking_leaks():
        assert float(jax.grad(jax.jit(lambda x: jnp.sin(x)))(0.0)) == 1.0


def test_pull_backs_tell_their_trees():
    _, pull_back = jax.vjp(lambda p, x: {"y": p["w"] * x}, {"w": 2.0}, 3.0)
    assert pull_back.in_tree == jax.tree.structure(({"w": 0}, 0))
    assert pull_back.out_tree == jax.tree.structure({"y": 0})
    assert len(pull_back.jaxpr.invars) == 2


def product(a, b):
    return a * b["w"] * jnp.sin(b["w"])


@pytest.mark.feature("UX-06")
@pytest.mark.parametrize("is_jitted", [False, True])
def test_what_a_pull_back_keeps_of_its_arguments(is_jitted):
    x = jnp.arange(3.0)

    def pulled_back(x):
        return jax.vjp(product, x, {"w": x + 1, "unread": x})[1]

    pull_back = (jax.jit(pulled_back) if is_jitted else pulled_back)(x)
    first, second = pull_back.args_res
    sines = np.sin([1.0, 2.0, 3.0])

    assert first.tolist() == [0.0, 1.0, 2.0]
    assert second["w"].tolist() == [1.0, 2.0, 3.0]
    assert repr(second["unread"]) == "NotNeeded()"
    assert any(np.allclose(x, sines) for x in pull_back.opaque_residuals)


@pytest.mark.feature("UX-06")
def test_arguments_can_be_put_back_before_a_pull_back_is_called():
    x = jnp.arange(3.0)
    _, pull_back = jax.vjp(lambda a, b: a * b, x, x + 1)
    pull_back.args_res[0] = None
    assert len(jax.tree.leaves(pull_back)) == 1

    with pytest.raises(ValueError, match="args_res lacks an argument that the derivative reads"):
        pull_back(x)
    pull_back.args_res[0] = x * 10
    assert jax.tree.map(lambda y: 2 * y, pull_back)(x)[1].tolist() == [0.0, 20.0, 80.0]
    assert pull_back(x)[1].tolist() == [0.0, 10.0, 40.0]
    pull_back.args_res.pop()
    with pytest.raises(ValueError, match="args_res: the structure"):
        pull_back(x)


@pytest.mark.feature("PG-06")
def test_results_of_linearize_and_vjp_print_their_linear_program():
    for linear in (jax.linearize(jnp.sin, 2.0)[1], jax.vjp(jnp.sin, 2.0)[1]):
        assert repr(linear) == "{ lambda a:f32[]; b:f32[]. let c:f32[] = mul b a in (c,) }"
