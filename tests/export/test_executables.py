"""Compiled programs as bytes."""

import os
import pickle
import textwrap

import numpy as np
import pytest

import minijax as jax
from minijax import lax
from minijax.core import config
from minijax.experimental import serialize_executable
from minijax.extend import hooks
from tests import children

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(autouse=True, scope="module")
def eight_devices():
    with jax.cpu_devices(8):
        yield


def compiled(function, *args, **kwargs):
    return jax.jit(function).lower(*args, **kwargs).compile()


def through_bytes(program):
    return serialize_executable.deserialize_and_load(*serialize_executable.serialize(program))


@pytest.mark.feature("EX-05")
def test_program_computes_as_before():
    program = compiled(lambda x, unused, *, by: {"a": x @ x.T, "b": (x * by).sum()}, X, 1, by=2.0)
    loaded = through_bytes(program)
    found, expected = loaded(X, 1, by=3.0), program(X, 1, by=3.0)
    jax.tree.map(np.testing.assert_array_equal, found, expected)
    assert loaded.fun_name == program.fun_name
    assert str(loaded.in_avals) == str(program.in_avals)
    assert loaded.cost_analysis() == program.cost_analysis()
    with pytest.raises(TypeError, match="types of arguments differ"):
        loaded(X[0], 1, by=3.0)
    with pytest.raises(TypeError, match="another tree"):
        loaded([X], 1, by=3.0)


@pytest.mark.feature("EX-05")
def test_programs_from_a_store_are_written_again():
    class Store(dict):
        put = dict.__setitem__

    def anew():
        jax.clear_caches()
        return compiled(lambda x: jax.numpy.sin(x) @ x.T, X)

    hooks.set_program_store(Store())
    try:
        with config.persistent_cache_min_compile_time_secs(0):
            made, found = anew(), anew()
    finally:
        hooks.set_program_store(None)
    assert (made._executable.code, type(found._executable.code)) == (None, bytes)
    for program in made, found:
        again = through_bytes(through_bytes(program))
        np.testing.assert_array_equal(again(X), program(X))


@pytest.mark.feature("EX-05")
def test_program_over_devices_and_its_donation():
    mesh = jax.make_mesh((8,), ("x",))
    place = jax.NamedSharding(mesh, jax.P("x"))
    rows = np.arange(16, dtype=np.float32).reshape(8, 2)
    total = jax.shard_map(
        lambda x: (x * 2, lax.psum(x, "x")),
        mesh=mesh,
        in_specs=jax.P("x"),
        out_specs=(jax.P("x"), jax.P()),
    )
    loaded = through_bytes(compiled(total, jax.device_put(rows, place)))
    doubled, summed = loaded(jax.device_put(rows, place))
    np.testing.assert_array_equal(doubled, rows * 2)
    np.testing.assert_array_equal(summed, rows.sum(0, keepdims=True))
    assert doubled.sharding.is_equivalent_to(place, 2)
    step = jax.jit(lambda x: x + 1, donate_argnums=0)
    loaded = through_bytes(step.lower(jax.numpy.ones(3)).compile())
    given = jax.numpy.ones(3)
    np.testing.assert_array_equal(loaded(given), [2, 2, 2])
    assert given.is_deleted()


_ELSEWHERE = """
    import os, pickle, sys
    import numpy as np
    del os.environ["XLA_FLAGS"]
    os.environ.update(pair.split("=", 1) for pair in sys.argv[2:])
    import minijax as jax
    from minijax.experimental import serialize_executable

    with jax.cpu_devices(8), open(sys.argv[1], "rb") as file:
        program = serialize_executable.deserialize_and_load(*pickle.load(file))
        print(program(np.ones((2, 3), np.float32)).sum())
"""


@pytest.mark.feature("EX-05")
@pytest.mark.slow
def test_program_runs_in_another_process(tmp_path):
    path = tmp_path / "program"
    path.write_bytes(pickle.dumps(serialize_executable.serialize(compiled(lambda x: x * 2, X))))
    program = textwrap.dedent(_ELSEWHERE)
    own = [f"{name}={value}" for name, value in os.environ.items() if name == "XLA_FLAGS"]
    same = children.run("-c", program, str(path), *own, devices=8, timeout=60)
    assert same.returncode == 0, same.stderr
    assert float(same.stdout) == 12
    flags = "XLA_FLAGS=--xla_cpu_enable_fast_math=true"
    other = children.run("-c", program, str(path), flags, devices=8, timeout=60)
    assert "another processor, jaxlib or kind of devices" in other.stderr


@pytest.mark.feature("EX-05")
def test_what_does_not_fit_is_refused(monkeypatch):
    data, *trees = serialize_executable.serialize(compiled(lambda x: x * 2, X))
    load = serialize_executable.deserialize_and_load
    for place in range(0, len(data), 211):
        damaged = bytearray(data)
        damaged[place] ^= 4
        with pytest.raises(ValueError, match="no compiled program, or a damaged one"):
            load(bytes(damaged), *trees)
    with pytest.raises(TypeError, match="takes bytes"):
        load("text", *trees)
    with pytest.raises(ValueError, match="devices are others"):
        load(data, *trees, execution_devices=jax.devices()[1:2])
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    with pytest.raises(ValueError, match="another processor, jaxlib or kind of devices"):
        load(data, *trees)


@pytest.mark.feature("EX-05")
def test_what_cannot_leave_is_refused():
    serialize = serialize_executable.serialize
    with pytest.raises(TypeError, match="takes a compiled program"):
        serialize(jax.jit(lambda x: x))
    with pytest.raises(ValueError, match="it calls Python"):
        serialize(compiled(lambda x: jax.debug.print("{}", x), X))
    table = jax.numpy.arange(5000.0)
    with pytest.raises(ValueError, match="large constants"):
        serialize(compiled(lambda i: table[i], 0))
