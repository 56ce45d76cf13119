"""`vmap`: axes, trees, names, sizes, errors; compared with loops."""

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.core import axes, config
from minijax.interpreters import staging


@pytest.mark.feature("BT-01")
@pytest.mark.parametrize("in_axis", [0, 1, 2, -1])
@pytest.mark.parametrize("out_axis", [0, 1, -1])
def test_vmap_equals_a_loop_for_every_axis(in_axis, out_axis):
    x = jnp.arange(24.0).reshape(2, 3, 4)
    f = lambda row: jnp.sin(row) @ jnp.arange(float(row.shape[-1]))
    rows = [np.asarray(f(jnp.asarray(r))) for r in np.moveaxis(np.asarray(x), in_axis, 0)]
    actual = jax.vmap(f, in_axes=in_axis, out_axes=out_axis)(x)
    np.testing.assert_allclose(actual, np.stack(rows, out_axis), rtol=1e-5)


def test_vmap_of_some_arguments():
    f = jax.vmap(lambda x, y: x * y, in_axes=(0, None))
    assert f(jnp.arange(3.0), 2.0).tolist() == [0.0, 2.0, 4.0]


def test_vmap_of_trees_with_prefixes():
    f = lambda p, x: p["w"] * x + p["b"]
    mapped = jax.vmap(f, in_axes=({"w": 0, "b": None}, None))
    out = mapped({"w": jnp.arange(3.0), "b": 1.0}, 2.0)
    assert out.tolist() == [1.0, 3.0, 5.0]


def test_vmap_out_axes_tree():
    a, b = jax.vmap(lambda x: (x, x * 2), out_axes=(0, 1))(jnp.ones((2, 3)))
    assert a.shape == (2, 3)
    assert b.shape == (3, 2)


def test_vmap_out_axes_none_for_shared_results():
    out, shared = jax.vmap(lambda x: (x, jnp.float32(3.0)), out_axes=(0, None))(jnp.ones(4))
    assert out.shape == (4,)
    assert shared.shape == ()


@pytest.mark.feature("BT-04")
def test_vmap_refuses_none_for_results_that_differ():
    with pytest.raises(ValueError, match="out_axes is None for result"):
        jax.vmap(lambda x: x, out_axes=None)(jnp.ones(3))


@pytest.mark.feature("BT-04")
def test_vmap_lists_sizes_that_disagree():
    with pytest.raises(ValueError, match="sizes of the mapped dimensions disagree") as caught:
        jax.vmap(lambda a, b: a)(jnp.ones(3), {"k": jnp.ones((4, 2))})
    text = str(caught.value)
    assert "a: f32[3], dimension 0 has size 3" in text
    assert "b['k']: f32[4,2], dimension 0 has size 4" in text


@pytest.mark.feature("BT-04")
def test_vmap_of_nothing_needs_axis_size():
    with pytest.raises(ValueError, match="no argument is mapped"):
        jax.vmap(lambda x: x, in_axes=None)(1.0)
    assert jax.vmap(lambda: 3.0, axis_size=4)().shape == (4,)


def test_vmap_of_a_scalar_names_the_argument():
    with pytest.raises(ValueError, match="axis 0 of the argument x does not exist"):
        jax.vmap(lambda x: x)(1.0)


def test_vmap_in_axes_length():
    with pytest.raises(ValueError, match="one entry for each positional argument"):
        jax.vmap(lambda x: x, in_axes=(0, 0))(jnp.ones(3))
    with pytest.raises(TypeError, match="in_axes"):
        jax.vmap(lambda x: x, in_axes="0")


def test_vmap_maps_keyword_arguments_over_dimension_zero():
    assert jax.vmap(lambda x, *, y: x + y)(jnp.arange(3.0), y=jnp.ones(3)).tolist() == [1, 2, 3]


def test_vmap_nests():
    x, y = jnp.arange(3.0), jnp.arange(4.0)
    out = jax.vmap(jax.vmap(lambda a, b: a * b, (None, 0)), (0, None))(x, y)
    np.testing.assert_allclose(out, np.outer(x, y))


def test_vmap_of_grad_is_per_example():
    x = jnp.arange(6.0).reshape(3, 2)
    grads = jax.vmap(jax.grad(lambda w, v: jnp.sum(jnp.tanh(w * v))), (None, 0))(jnp.ones(2), x)
    np.testing.assert_allclose(grads, x * (1 - np.tanh(x) ** 2), rtol=1e-4, atol=1e-5)


def test_vmap_of_a_jitted_function_is_cached():
    count = 0

    @jax.jit
    def f(x):
        nonlocal count
        count += 1
        return jnp.sin(x) * x

    g = jax.vmap(f)
    for _ in range(3):
        g(jnp.arange(4.0))
    assert count == 1


def test_vmap_of_zero_examples():
    assert jax.vmap(lambda x: x @ x)(jnp.zeros((0, 3))).shape == (0,)


def test_vmap_with_python_control_flow_on_shared_values():
    def f(x, flag):
        return x * 2 if flag else x

    assert jax.vmap(lambda x: f(x, True))(jnp.ones(2)).tolist() == [2.0, 2.0]


@pytest.mark.feature("CR-18")
def test_vmap_refuses_python_control_flow_on_mapped_values():
    with pytest.raises(jax.errors.TracerBoolConversionError, match="no concrete truth value"):
        jax.vmap(lambda x: x if x > 0 else -x)(jnp.ones(2))


@pytest.mark.feature("CR-07", "CR-08")
def test_vmap_axis_name_is_in_scope_inside_only():
    seen = []
    jax.vmap(lambda x: seen.append(axes.size("i")) or x, axis_name="i")(jnp.ones(5))
    assert seen == [5]
    with pytest.raises(NameError, match="unbound axis name 'i'"):
        axes.size("i")


@pytest.mark.feature("CR-07")
def test_nested_vmaps_of_one_name_see_the_inner_one():
    seen = []
    inner = jax.vmap(lambda x: seen.append(axes.size("i")) or x, axis_name="i")
    jax.vmap(inner, axis_name="i")(jnp.ones((2, 7)))
    assert seen == [7]


@pytest.mark.feature("BT-02")
def test_users_primitive_with_a_plain_batcher():
    double = jax.extend.core.Primitive("double_for_vmap")
    double.def_impl(lambda x: x * 2)
    double.def_abstract_eval(lambda x: x)
    jax.extend.batching.primitive_batchers[double] = lambda args, dims: (
        double.bind(args[0]),
        dims[0],
    )
    assert jax.vmap(double.bind)(jnp.arange(3.0)).tolist() == [0, 2, 4]


@pytest.mark.feature("BT-01")
def test_vmap_of_a_staged_program_that_holds_a_vmap():
    with config.checking({"nan"}):
        program = jax.make_jaxpr(jax.vmap(lambda x, y: x * y, in_axes=(0, None)))(jnp.ones(3), 2.0)
    assert [eqn.primitive.name for eqn in program.eqns] == ["vmap"]
    f = jax.vmap(lambda x, y: staging.eval_closed_jaxpr(program, x, y)[0], in_axes=(1, 0))
    x, y = jnp.arange(6.0).reshape(3, 2), jnp.arange(1.0, 3.0)
    assert f(x, y).tolist() == (x * y).T.tolist()


@pytest.mark.feature("BT-01")
@pytest.mark.parametrize("checking", [False, True])
def test_arguments_that_are_not_mapped_may_be_anything(checking):
    x = jnp.arange(3.0)
    with jax.check_tracer_leaks(checking):
        assert jax.vmap(lambda f, y: f(y), (None, 0))(jnp.sin, x).tolist() == jnp.sin(x).tolist()
        model = {"call": jnp.cos, "weight": 2.0, "name": "model"}
        axes = {"call": None, "weight": None, "name": None}
        mapped = jax.vmap(lambda m, y: m["call"](y) * m["weight"] + len(m["name"]), (axes, 0))
        np.testing.assert_allclose(mapped(model, x), np.cos(np.asarray(x)) * 2 + 5, rtol=1e-6)
        pairs = jax.vmap(lambda m, y, scale: m[0](y) * scale, (None, 0))
        assert pairs((jnp.negative, 1), x, scale=x).tolist() == (-x * x).tolist()
    with pytest.raises(TypeError, match="the argument f is neither"):
        jax.vmap(lambda f, y: f(y))(jnp.sin, x)
    with pytest.raises(ValueError, match="disagree"):
        jax.vmap(lambda f, y, z: y, (None, 0, 0))(jnp.sin, x, jnp.ones(2))
