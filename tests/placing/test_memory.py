"""Memories of devices as places."""

import numpy as np
import pytest

import minijax as jax
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
