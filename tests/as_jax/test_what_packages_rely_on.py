"""What packages rely on, by specimens of each kind: figures are NumPy's, or those of JAX 0.10.2."""

import warnings

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import custom_derivatives, lax
from minijax.experimental import checkify

pytestmark = pytest.mark.feature("EC-02", "EC-06")


@pytest.mark.parametrize("kind", ["int8", "uint8", "int32", "uint32", "int64"])
def test_indices_of_different_dtypes_go_together(kind):
    x = np.arange(12.0).reshape(3, 4)
    with jax.enable_x64(True):
        i = jnp.asarray(1, kind)
        assert jnp.asarray(x)[i, 1] == x[1, 1]
        assert jnp.asarray(x)[2, i] == x[2, 1]
        assert jnp.asarray(x)[i, jnp.int32(-1)] == x[1, -1]
        assert jnp.asarray(x)[i, -1] == x[1, -1]
        np.testing.assert_array_equal(jnp.asarray(x)[i, 1:3], x[1, 1:3])
        np.testing.assert_array_equal(
            jax.jit(lambda x, i: (x[i, 1], x[i, -2], x[2, i]))(x, i), (x[1, 1], x[1, -2], x[2, 1])
        )
        assert jnp.asarray(x).at[i, -1].set(50.0)[1, 3] == 50


def test_negative_positions_do_not_wrap_where_they_must_not():
    x, y = jnp.arange(5.0), jnp.arange(6.0).reshape(2, 3)
    still = {"wrap_negative_indices": False}
    assert x.at[-1].get(mode="fill", fill_value=7.0, **still) == 7
    assert x.at[-1].get(**still) == 0
    np.testing.assert_array_equal(x.at[-1].set(3.0, **still), x)
    np.testing.assert_array_equal(x.at[-1].add(3.0, mode="clip", **still), [3, 1, 2, 3, 4])
    np.testing.assert_array_equal(x.at[-1].apply(jnp.cos, **still), x)
    assert y.at[-1, 0].get(mode="fill", fill_value=7.0, **still) == 7
    np.testing.assert_array_equal(y.at[:, -1].get(mode="fill", fill_value=7.0, **still), [7, 7])
    np.testing.assert_array_equal(y.at[0, -1].set(5.0, **still), y)
    jitted = jax.jit(lambda x: x.at[-1].get(mode="fill", fill_value=7.0, **still))
    assert jitted(x) == 7
    # Others count from the end.
    assert x.at[-1].get(mode="fill") == 4


def test_primals_with_perturbations_are_leaves():
    primal = custom_derivatives.CustomVJPPrimal(1.0, True)
    assert jax.tree.leaves([primal]) == [primal]
    assert custom_derivatives.custom_vjp_primal_tree_values({"x": primal}) == {"x": 1.0}


def test_auxiliary_results_may_be_anything():
    def f(x):
        return x * x, {"text": "s", "x": 2 * x, "class": object, "none": None}

    aux = {"text": "s", "x": 6.0, "class": object, "none": None}
    assert jax.grad(f, has_aux=True)(3.0) == (6.0, aux)
    assert jax.value_and_grad(f, has_aux=True)(3.0) == ((9.0, aux), 6.0)
    assert jax.jvp(f, (3.0,), (1.0,), has_aux=True) == (9.0, 6.0, aux)
    assert jax.vjp(f, 3.0, has_aux=True)[2] == aux
    assert jax.linearize(f, 3.0, has_aux=True)[2] == aux
    inside = []
    value, _ = jax.jit(lambda x: (jax.grad(f, has_aux=True)(x)[0], inside.append("s")))(3.0)
    assert value == 6


@pytest.mark.parametrize("name", [3, None, ("a",)])
def test_callables_need_no_text_as_a_name(name):
    class Twice:
        __name__ = name

        def __call__(self, x):
            return x * 2

    f = Twice()
    for transform in (jax.jit, jax.checkpoint, jax.named_call, jax.grad, lambda f: f):
        assert float(transform(f)(3.0)) in {6.0, 2.0}
    np.testing.assert_array_equal(jax.vmap(f)(jnp.ones(2)), [2, 2])
    np.testing.assert_array_equal(lax.map(f, jnp.ones(2)), [2, 2])


def test_zeros_of_trees_and_transposes_of_types():
    zeros = custom_derivatives.zero_from_primal({"a": 1.0, "b": jnp.ones(2)})
    np.testing.assert_array_equal(zeros["b"], [0, 0])
    assert zeros["a"] == 0
    of_type = jax.linear_transpose(lambda x: 2 * x, jax.core.ShapedArray((), np.dtype("float32")))
    assert of_type(1.0) == (2.0,)
    aval = jax.typeof(jnp.ones(2))
    assert aval.to_tangent_aval() is aval.at_least_vspace() is aval


def test_rules_of_wrapped_functions_are_set_from_outside():
    @jax.custom_vjp
    @jax.custom_batching.custom_vmap
    def f(x):
        return x * 2

    @f.def_vmap
    def _(size, batched, x):
        return x * 3, batched[0]

    f.defvjp(lambda x: (f(x), None), lambda _, ct: (ct * 5,))
    np.testing.assert_array_equal(jax.vmap(f)(jnp.ones(2)), [3, 3])
    assert jax.grad(f)(1.0) == 5
    with pytest.raises(AttributeError, match="absent"):
        _ = f.absent


def test_polynomials_of_matrices_and_long_masks():
    a, b = np.ones((3, 2)), np.full((2, 2), 2.0)
    np.testing.assert_array_equal(jnp.polyadd(a, b), [[1, 1], [3, 3], [3, 3]])
    np.testing.assert_array_equal(jnp.polysub(a, b), [[1, 1], [-1, -1], [-1, -1]])
    mask = np.array([True, False, True, False, False, False])
    np.testing.assert_array_equal(jnp.extract(mask, jnp.arange(5)), [0, 2])
    np.testing.assert_array_equal(jnp.compress(mask, jnp.arange(5)), [0, 2])
    with pytest.raises(ValueError, match="at most as long as the dimension"):
        jnp.extract(np.array([True, False, True]), jnp.arange(2))


def test_unknown_compiler_options_raise_the_error_of_xla():
    with pytest.raises(jax.errors.JaxRuntimeError, match="does not know a compiler option"):
        jax.jit(lambda x: x + 1, compiler_options={"nope": 1})(1.0)


def test_texts_have_the_words_that_packages_match():
    for call in (
        lambda: jnp.where(jnp.ones(3) > 0, jnp.ones(3), jnp.ones(4)),
        lambda: lax.broadcast_shapes((3,), (4,)),
        lambda: jnp.broadcast_arrays(jnp.ones(3), jnp.ones(4)),
    ):
        with pytest.raises(ValueError, match="Incompatible shapes for broadcasting"):
            call()
    with pytest.raises(TypeError, match="got incompatible shapes for broadcasting"):
        _ = jnp.ones(3) + jnp.ones(4)
    with warnings.catch_warnings():
        # The pattern is searched at the beginning of the text.
        warnings.filterwarnings("ignore", message="Some donated buffers were not usable*")
        jax.jit(lambda x: x.sum(), donate_argnums=0)(jnp.ones(3))
    found, _ = checkify.checkify(lambda x: checkify.check(x > 0, "must be positive"))(-1.0)
    assert "must be positive (`check` failed)" in found.get()


def test_known_values_of_dtypes_are_scalar_types():
    assert not isinstance(1.0, jax.dtypes.bfloat16)
    assert isinstance(jax.dtypes.bfloat16(1), jax.dtypes.bfloat16)
    assert jnp.zeros(2, jax.dtypes.bfloat16).dtype == jnp.bfloat16


@pytest.mark.parametrize("kind", ["bool", "int8", "uint16", "int32", "float32", "complex64"])
def test_bytes_of_elements_are_swapped(kind):
    x = np.arange(6).reshape(2, 3).astype(kind)
    swapped = jnp.asarray(x).byteswap()
    assert swapped.dtype == x.dtype
    assert np.asarray(swapped).tobytes() == x.byteswap().tobytes()
    assert np.asarray(jax.jit(lambda x: x.byteswap())(x[0, 1])).tobytes() == (
        x[0, 1].byteswap().tobytes()
    )


def test_parts_of_complex_views_are_kept():
    parts = np.array([np.inf, 0.0, 1.0, np.nan, 1e-40, -0.0], np.float32)
    seen = jnp.asarray(parts).view(jnp.complex64)
    assert np.asarray(seen).tobytes() == parts.tobytes()


def test_a_failed_check_says_so_when_it_is_raised():
    found, _ = checkify.checkify(lambda x: checkify.check(x > 0, "must be positive"))(-1.0)
    with pytest.raises(checkify.JaxRuntimeError, match=r"must be positive \(`check` failed\)"):
        found.throw()
    with pytest.raises(checkify.JaxRuntimeError, match=r"no \(`check` failed\)"):
        checkify.check(jnp.bool_(False), "no")


@pytest.mark.feature("EC-04")
def test_places_that_types_name_are_places_for_results():
    like = jnp.ones(3)
    where = jax.typeof(like).sharding
    assert jnp.zeros(3, out_sharding=where).sharding == like.sharding
    drawn = jax.random.normal(jax.random.key(0), (3,), out_sharding=where)
    np.testing.assert_array_equal(drawn, jax.random.normal(jax.random.key(0), (3,)))
    jitted = jax.jit(lambda x: jnp.zeros(3, device=jax.typeof(x).sharding) + x)
    np.testing.assert_array_equal(jitted(like), [1, 1, 1])
    with jax.cpu_devices(4):
        mesh = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Explicit,))
        with jax.set_mesh(mesh):
            split = jax.device_put(jnp.ones((4, 3)), jax.P("x", None))
            where = jax.typeof(split).sharding
            assert jnp.zeros((4, 3), out_sharding=where).sharding == split.sharding
            assert jnp.zeros((4, 3), device=where).sharding == split.sharding
            drawn = jax.random.normal(jax.random.key(0), (4, 3), out_sharding=where)
            assert drawn.sharding == split.sharding
        with pytest.raises(ValueError, match="names no devices"):
            jnp.zeros((4, 3), out_sharding=where)


def test_results_of_one_device_stay_on_it_while_a_mesh_of_it_is_set():
    with jax.cpu_devices(2):
        x = jax.device_put(jnp.arange(3.0), jax.devices()[1])
        with jax.set_mesh(jax.sharding.Mesh(np.array([x.device]), ("x",))):
            assert x[:1].device == lax.slice(x, (0,), (1,)).device == (x + 1).device == x.device
            assert isinstance(jnp.zeros(3).sharding, jax.sharding.NamedSharding)


def test_words_of_checkify_are_in_its_errors():
    failed, _ = checkify.checkify(jnp.sin, errors=checkify.float_checks)(jnp.inf)
    with pytest.raises(ValueError, match="nan generated by primitive: sin"):
        failed.throw()
    assert "nan generated by primitive: sin" in failed.get()


def test_types_stand_for_arguments_that_are_only_traced():
    aval = jax.core.ShapedArray((2,), np.dtype("float32"))
    double = jax.jit(lambda x: 2 * x)
    expected = jax.ShapeDtypeStruct((2,), np.float32)
    assert jax.make_jaxpr(double)(aval).in_avals == [aval]
    assert double.lower(aval).out_info == double.trace(aval).out_info == expected
    assert double.eval_shape(aval) == jax.eval_shape(double, aval) == expected
    with pytest.raises(TypeError, match="describes an array and is none"):
        double(aval)


class Standing:
    """Stands for an array and passes on the names that are asked of it, as variables of flax do."""

    def __init__(self, value):
        self.value = value

    def __jax_array__(self):
        return self.value

    def __getattr__(self, name):
        if name.startswith("__") or name == "value":
            raise AttributeError(name)
        return getattr(self.value, name)


class StandingInTrees(Standing):
    pass


jax.tree_util.register_pytree_node(
    StandingInTrees, lambda x: ((x.value,), None), lambda _, values: StandingInTrees(*values)
)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
@pytest.mark.parametrize("kind", [Standing, StandingInTrees])
def test_what_stands_for_an_array_is_an_operand(kind, wrap):
    values = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    x, row = jnp.array(values), kind(jnp.array([1.0, 2.0, 3.0]))
    for operate in (
        lambda x, y: x + y,
        lambda x, y: x - y,
        lambda x, y: x @ y,
        lambda x, y: x**y,
        lambda x, y: x == y,
        lambda x, y: x < y,
    ):
        expected = operate(values, np.array([1.0, 2.0, 3.0], np.float32))
        np.testing.assert_allclose(wrap(lambda x, f=operate: f(x, row))(x), expected, rtol=1e-6)
    assert wrap(lambda x: lax.convert_element_type(row, np.int32))(x).tolist() == [1, 2, 3]
    np.testing.assert_allclose(wrap(lambda x: lax.neg(row))(x), [-1, -2, -3])
    np.testing.assert_allclose(jax.grad(lambda x: (x * row).sum())(x), [[1, 2, 3]] * 2)


@pytest.mark.parametrize("function", [jnp.sin, jnp.sum, jax.nn.softmax, lambda y: jnp.add(2, y)])
def test_what_stands_for_a_traced_array_has_its_derivative(function):
    x = jnp.array([1.0, 2.0, 3.0])

    def f(x):
        return jnp.sum(jnp.square(jnp.asarray(function(StandingInTrees(x)))))

    def plain(x):
        return jnp.sum(jnp.square(function(x)))

    for wrap in (lambda f: f, jax.jit):
        np.testing.assert_allclose(jax.grad(wrap(f))(x), jax.grad(plain)(x), rtol=1e-6)


def test_a_traced_key_that_becomes_an_array_of_numpy_is_explained():
    with pytest.raises(jax.errors.TracerArrayConversionError, match="the argument key of"):
        jax.jit(lambda key: np.asarray(key))(jax.random.key(0))


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_backward_rules_get_arrays(wrap):
    @jax.custom_vjp
    def f(x, y):
        return 2 * x, 3 * y

    def backward(_, cts):
        return tuple(ct.at[...].multiply(5.0) for ct in cts)

    f.defvjp(lambda x, y: (f(x, y), None), backward)
    assert wrap(jax.grad(lambda x: f(x, 1.0)[0]))(1.0) == 5.0
    assert wrap(jax.grad(lambda x: f(x, 1.0)[1]))(1.0) == 0.0
