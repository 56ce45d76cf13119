"""make_jaxpr, eval_shape, leaks, compile-time evaluation, ShapeDtypeStruct."""

import re

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.core import source


@pytest.mark.feature("CR-03", "PE-01")
def test_make_jaxpr_prints_in_the_usual_notation():
    text = str(jax.make_jaxpr(lambda x: jnp.sin(x) * 2)(jnp.ones(3)))
    assert text == (
        "{ lambda ; a:f32[3]. let\n"
        "    b:f32[3] = sin a\n"
        "    c:f32[3] = mul b 2.0:f32[]\n"
        "  in (c,) }"
    )


@pytest.mark.feature("CR-03")
def test_jaxpr_evaluates_to_what_the_function_gives():
    f = lambda x, y: (jnp.sin(x) @ y, x.sum())
    x, y = jnp.ones((2, 3)), jnp.arange(3.0)
    closed = jax.make_jaxpr(f)(x, y)
    for actual, expected in zip(
        jax.eval_jaxpr(closed.jaxpr, closed.consts, x, y), f(x, y), strict=True
    ):
        np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_make_jaxpr_stages_as_if_mapped_over_axes():
    f = lambda x: lax.psum(x, ("i", "j")) / lax.axis_size("j")
    closed = jax.make_jaxpr(f, axis_env=[("i", 4), ("j", 3)])(1.0)
    assert [eqn.primitive.name for eqn in closed.eqns] == ["psum", "div"]
    assert closed.eqns[1].invars[1].val == 3
    with pytest.raises(NameError, match="unbound axis name 'j'"):
        jax.make_jaxpr(f, axis_env=[("i", 4)])(1.0)


def test_make_jaxpr_with_static_arguments_and_shape():
    staged = jax.make_jaxpr(lambda x, n: [x] * n, static_argnums=1, return_shape=True)
    closed, shape = staged(1.0, 2)
    assert len(closed.jaxpr.outvars) == len(shape) == 2


@pytest.mark.feature("PE-01")
def test_make_jaxpr_is_deterministic():
    f = lambda x: jnp.tanh(x @ x.T).sum()
    assert str(jax.make_jaxpr(f)(jnp.ones((2, 2)))) == str(jax.make_jaxpr(f)(jnp.ones((2, 2))))


def test_jaxpr_shows_users_lines_on_request():
    closed = jax.make_jaxpr(lambda x: jnp.sin(x))(1.0)
    assert "test_tracing.py" in closed.pretty_print(source_info=True)


@pytest.mark.feature("UX-02")
def test_jaxprs_are_printed_in_colors_on_request():
    closed = jax.make_jaxpr(lambda x: jax.lax.cumsum(x) * 2)(jnp.ones(3))
    for jaxpr in (closed, closed.jaxpr):
        text = jaxpr.pretty_print(use_color=True)
        assert "\x1b[35mlambda\x1b[0m" in text
        assert re.sub(r"\x1b\[\d+m", "", text) == jaxpr.pretty_print()


@pytest.mark.feature("CR-14")
def test_equations_know_the_line_of_the_user():
    (eqn,) = jax.make_jaxpr(lambda x: jnp.sin(x))(1.0).eqns
    assert source.user_frame(eqn.source).file_name == __file__


def test_eval_shape_computes_nothing():
    out = jax.eval_shape(lambda x: {"y": x @ x}, jax.ShapeDtypeStruct((3, 3), jnp.bfloat16))
    assert out == {"y": jax.ShapeDtypeStruct((3, 3), jnp.bfloat16)}


def test_eval_shape_of_a_jitted_function():
    assert jax.eval_shape(jax.jit(jnp.sum), jnp.ones((2, 3))).shape == ()


def test_shape_dtype_struct_compares_and_hashes():
    a, b = (jax.ShapeDtypeStruct((2,), np.float32) for _ in range(2))
    assert a == b
    assert hash(a) == hash(b)
    assert a != a.update(shape=(3,))
    assert len(a) == 2
    assert a.ndim == 1
    assert a.size == 2
    with pytest.raises(ValueError, match="dtype must be given"):
        jax.ShapeDtypeStruct((2,), None)


@pytest.mark.feature("CR-06")
def test_typeof_shows_weak_types():
    assert str(jax.typeof(1.0)) == "~f32[]"
    assert str(jax.typeof(jnp.ones((2, 3), jnp.int8))) == "i8[2,3]"
    with pytest.raises(TypeError, match="not a valid type"):
        jax.typeof("text")


@pytest.mark.feature("CR-02", "CR-18")
def test_leaked_tracer_names_the_function_and_its_origin():
    held = []

    @jax.jit
    def leaky(x):
        held.append(jnp.sin(x))
        return x

    leaky(1.0)
    with pytest.raises(jax.errors.UnexpectedTracerError, match="leaky: a traced value") as caught:
        held[0] + 1
    assert "computed by sin at test_tracing.py" in str(caught.value)


@pytest.mark.feature("CR-02")
def test_leaked_tracer_used_in_another_trace():
    held = []
    jax.jit(lambda x: held.append(x) or x)(1.0)
    with pytest.raises(jax.errors.UnexpectedTracerError, match="it leaked"):
        jax.jit(lambda y: y + held[0])(2.0)


@pytest.mark.feature("CR-02")
def test_leaked_tracers_of_grad_and_vmap():
    held = []
    jax.grad(lambda x: held.append(x) or x)(1.0)
    jax.vmap(lambda x: held.append(x) or x)(jnp.ones(2))
    for tracer in held:
        with pytest.raises(jax.errors.UnexpectedTracerError):
            tracer * 2


@pytest.mark.usefixtures("young_heap")
@pytest.mark.feature("CR-02")
def test_checking_leaks_says_who_holds_the_tracer():
    held = {}

    def leaky(x):
        held["secret"] = x
        return x

    with jax.checking_leaks(), pytest.raises(Exception, match="outlive the function") as caught:
        jax.jit(leaky)(1.0)
    assert "'secret'" in str(caught.value)


@pytest.mark.usefixtures("young_heap")
def test_checking_leaks_accepts_functions_that_do_not_leak():
    with jax.checking_leaks():
        assert float(jax.jit(lambda x: jnp.sum(x * 2))(jnp.ones(3))) == 6.0


@pytest.mark.feature("CR-18")
@pytest.mark.parametrize(
    ("use", "error", "remedy"),
    [
        (lambda x: 1 if x else 2, "TracerBoolConversionError", "lax.cond"),
        (lambda x: int(x), "ConcretizationTypeError", "astype"),
        (lambda x: float(x), "ConcretizationTypeError", "astype"),
        (lambda x: [1, 2, 3][x.astype(int)], "TracerIntegerConversionError", "static"),
        (lambda x: jnp.zeros(x.astype(int)), "TypeError", "static"),
        (lambda x: np.sin(x), "TracerArrayConversionError", "minijax.numpy"),
        (lambda x: range(x.astype(int)), "TracerIntegerConversionError", "static"),
    ],
)
def test_traced_value_where_a_known_one_is_needed(use, error, remedy):
    expected = TypeError if error == "TypeError" else getattr(jax.errors, error)
    with pytest.raises(expected) as caught:
        jax.jit(use)(1.0)
    assert remedy in str(caught.value)
    assert "test_tracing.py" in str(caught.value)


def test_ensure_compile_time_eval_computes_while_tracing():
    @jax.jit
    def f(x):
        with jax.ensure_compile_time_eval():
            table = jnp.arange(4.0)
            assert float(table.sum()) == 6.0
        return x + table

    assert f(1.0).tolist() == [1, 2, 3, 4]


def test_block_until_ready_and_device_get():
    tree = {"a": jnp.ones(2), "b": 3}
    assert jax.block_until_ready(tree) is tree
    host = jax.device_get(tree)
    assert isinstance(host["a"], np.ndarray)
    assert host["b"] == 3


def test_clear_caches_traces_again():
    count = 0

    @jax.jit
    def f(x):
        nonlocal count
        count += 1
        return x

    f(1.0)
    f.clear_cache()
    jax.clear_caches()
    f(1.0)
    assert count == 2


def test_named_call_names_the_operations_of_a_function():
    def body(x):
        return jnp.sin(x)

    (eqn,) = jax.make_jaxpr(jax.named_call(body))(1.0).eqns
    (other,) = jax.make_jaxpr(jax.named_call(body, name="other"))(1.0).eqns
    assert (eqn.scope, other.scope) == (("body",), ("other",))


def test_all_public_names_are_listed_and_can_be_loaded():
    assert set(jax.__all__) <= set(dir(jax))
    assert all(getattr(jax, name) is not None for name in jax.__all__)


@pytest.mark.feature("EC-02")
def test_ensure_compile_time_eval_stages_what_is_traced():
    def f(x, y):
        with jax.ensure_compile_time_eval():
            known = jnp.sin(2.0) + 1
            assert not isinstance(known, jax.core.Tracer)
            z = x * known
            # A jitted function, control flow and derivatives of both kinds of values.
            z = jax.jit(lambda z, k: z + k)(z, known) + jax.jit(jnp.cos)(known)
            z = jax.lax.fori_loop(0, 3, lambda i, z: z * 2, z)
            return z + jax.grad(jnp.sin)(y)

    def expected(x, y):
        known = np.sin(2.0) + 1
        return 8 * (x * known + known + np.cos(known)) + np.cos(y)

    for transformed in (f, jax.jit(f)):
        np.testing.assert_allclose(transformed(3.0, 0.5), expected(3.0, 0.5), rtol=1e-5)
    batch = jax.jit(jax.vmap(f))(jnp.array([3.0, 1.0]), jnp.array([0.5, 0.5]))
    np.testing.assert_allclose(batch, [expected(3.0, 0.5), expected(1.0, 0.5)], rtol=1e-5)
    slope = jax.jit(jax.grad(f))(3.0, 0.5)
    np.testing.assert_allclose(slope, 8 * (np.sin(2.0) + 1), rtol=1e-5)


@pytest.mark.feature("EC-02")
def test_ensure_compile_time_eval_as_a_decorator_knows_what_is_traced_when_it_is_called():
    @jax.ensure_compile_time_eval()
    def twice(x):
        return x * 2, jnp.arange(3)[1]

    def f(x):
        double, one = twice(x)
        return double + int(one)

    assert jax.jit(f)(3) == 7
    assert f(3) == 7
