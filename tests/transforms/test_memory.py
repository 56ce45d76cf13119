"""Memories of devices as places."""

import numpy as np
import pytest

import minijax as jax
from minijax import lax
from minijax import numpy as jnp
from minijax.memory import Space

X = np.arange(8, dtype=np.float32)


@pytest.fixture(autouse=True, scope="module")
def eight_devices():
    with jax.cpu_devices(8):
        yield


@pytest.mark.feature("EX-15")
def test_arrays_change_their_memory_and_stay_on_their_devices():
    spread = jax.NamedSharding(jax.make_mesh((8,), ("x",)), jax.P("x"))
    for x in (jnp.asarray(X), jax.device_put(X, spread), jax.device_put(X, jax.devices()[3])):
        there = jax.device_put(x, Space.Host)
        assert there.sharding == x.sharding.with_memory_kind("pinned_host")
        assert there.committed
        np.testing.assert_array_equal(there, X)
        assert jax.device_put(there, Space.Device).sharding == x.sharding
    assert jax.device_put(X, Space.Host).sharding.memory_kind == "pinned_host"
    mixed = jax.device_put([X, X], [Space.Host, jax.devices()[1]])
    assert [x.sharding.memory_kind for x in mixed] == ["pinned_host", "device"]


@pytest.mark.feature("EX-15")
def test_types_inside_of_programs_show_the_memory():
    def f(x):
        return jax.device_put(jax.device_put(2 * x, Space.Host), Space.Device) + 1

    text = str(jax.make_jaxpr(f)(X))
    assert "c:f32<host>[8] = device_put b" in text
    assert "d:f32[8] = device_put c" in text
    aval = jax.make_jaxpr(lambda x: jax.device_put(x, Space.Host))(X).out_avals[0]
    assert repr(aval) == "ShapedArray(float32<host>[8])"
    np.testing.assert_array_equal(jax.jit(f)(X), 2 * X + 1)
    np.testing.assert_array_equal(jax.grad(lambda x: f(x).sum())(X), 2 + 0 * X)
    backward = str(jax.make_jaxpr(jax.grad(lambda x: f(x).sum()))(X))
    assert backward.count("<host>[8] = device_put") == 2
    np.testing.assert_array_equal(jax.vmap(f)(X), 2 * X + 1)


HOST = jax.ShapeDtypeStruct((8,), np.float32).aval.update(memory_space=Space.Host)


@pytest.mark.feature("EX-15")
def test_types_have_a_memory():
    x, there = jnp.asarray(X), jax.device_put(X, Space.Host)
    assert (
        jax.typeof(there) is HOST is jax.core.ShapedArray((8,), "float32", memory_space=Space.Host)
    )
    assert (HOST.memory_space, x.aval.memory_space) == (Space.Host, Space.Device)
    assert (str(HOST), x.aval == HOST) == ("f32<host>[8]", False)
    text = str(jax.make_jaxpr(lambda x: x + 1)(there))
    assert text == "{ lambda ; a:f32<host>[8]. let b:f32<host>[8] = add a 1.0:f32[] in (b,) }"
    mesh = jax.make_mesh((8,), ("x",))
    spread = jax.NamedSharding(mesh, jax.P("x"), memory_kind="pinned_host")
    assert str(jax.typeof(jax.device_put(X, spread) * 2)) == "f32<host>[8@x]"
    f = jax.jit(lambda x: x * 2, out_shardings=spread.with_memory_kind("device"))
    assert str(jax.typeof(f(jax.device_put(X, spread)))) == "f32[8@x]"


@pytest.mark.feature("EX-15")
@pytest.mark.parametrize(
    ("function", "is_host"),
    [
        (lambda x: x * 2, True),
        (lambda x: x * jnp.float32(2), True),
        (lambda x: jnp.stack([x, x]) @ x, True),
        (lambda x: x.at[0].set(1.0), True),
        (lambda x: lax.fori_loop(0, 3, lambda i, c: c * 2, x), True),
        (lambda x: lax.cond(True, lambda x: x, lambda x: 2 * x, x), True),
        (jax.vmap(jnp.sin), True),
        (jax.checkpoint(jnp.cos), True),
        (lambda x: jax.device_put(x, Space.Device) * 2, False),
        (lambda x: x + X, False),
        (lambda x: jnp.where(x > 3, x, 0.0), False),
    ],
)
def test_results_are_where_all_operands_are(function, is_host):
    # As in JAX, which refuses the last two, whose operands are in two memories.
    x = jax.device_put(X, Space.Host)
    kind = "pinned_host" if is_host else "device"
    for given in (function, jax.jit(function)):
        found = given(x)
        np.testing.assert_allclose(found, function(jnp.asarray(X)), rtol=1e-6)
        assert found.sharding.memory_kind == kind
    assert jax.make_jaxpr(function)(x).out_avals[0] is found.aval


@pytest.mark.feature("EX-15")
def test_cotangents_go_back_to_the_memory_of_an_argument():
    x = jax.device_put(X, Space.Host)
    gradient = jax.grad(lambda x: (jax.device_put(x, Space.Device) ** 2).sum())
    for given in (gradient, jax.jit(gradient)):
        assert jax.typeof(given(x)) is HOST
        np.testing.assert_array_equal(given(x), 2 * X)
    np.testing.assert_array_equal(jax.grad(lambda x: (x**2).sum())(x), 2 * X)


@pytest.mark.feature("EX-15")
def test_results_are_where_the_program_puts_them():
    spread = jax.NamedSharding(jax.make_mesh((8,), ("x",)), jax.P("x"))
    f = jax.jit(lambda x: jax.device_put(2 * x, Space.Host))
    assert f(X).sharding.memory_kind == "pinned_host"
    assert 'mhlo.memory_kind = "pinned_host"' in f.lower(X).as_text()
    found = f(jax.device_put(X, spread))
    assert found.sharding == spread.with_memory_kind("pinned_host")
    np.testing.assert_array_equal(found, 2 * X)


@pytest.mark.feature("EX-15")
def test_spaces_are_shown_as_in_jax():
    assert list(map(repr, Space)) == ["MemorySpace.Device", "MemorySpace.Host", "MemorySpace.Any"]
    with pytest.raises(ValueError, match="not a place for arrays"):
        jax.device_put(X, Space.Any)
