"""How often a jitted function is traced, lowered and compiled as devices and shardings change."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import minijax as jax
from minijax import explain
from minijax.sharding import Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P

X = np.arange(8, dtype=np.float32)
WHOLE = P()


class Meshes(NamedTuple):
    first: Mesh
    second: Mesh
    reverse: Mesh


@pytest.fixture
def meshes() -> Iterator[Meshes]:
    """Meshes over devices 0 and 1, over 2 and 3, and over 1 and 0."""
    jax.clear_caches()  # equal programs of other tests would serve
    with jax.cpu_devices(8):
        devices = np.array(jax.devices())
        yield Meshes(*(Mesh(devices[chosen], "x") for chosen in ([0, 1], [2, 3], [1, 0])))


def put(mesh: Mesh, spec: P = WHOLE) -> Any:
    return jax.device_put(X, NamedSharding(mesh, spec))


def work(call: Callable[[], Any]) -> tuple[int, int, int]:
    """How many traces, lowerings and compilations a call costs."""
    before = jax.cache_stats()
    jax.block_until_ready(call())
    after = jax.cache_stats()
    return tuple(after[kind].misses - before[kind].misses for kind in ("trace", "lower", "compile"))


@pytest.mark.feature("JT-11")
def test_constraint_on_devices_compiles_once_and_refuses_others(meshes: Meshes) -> None:
    placed = NamedSharding(meshes.first, P("x"))
    f = jax.jit(lambda a: jax.lax.with_sharding_constraint(a * 2, placed))

    assert work(lambda: f(put(meshes.first))) == (1, 1, 1)
    with pytest.raises(
        ValueError,
        match=r"argument a of <lambda>.*ids \[2, 3\].*\n.*"
        r"sharding_constraint inside jit of <lambda>, at .*test_jit_sharded_caches.py:\d+",
    ):
        f(put(meshes.second))


@pytest.mark.feature("JT-10")
def test_constraint_on_an_abstract_mesh_compiles_again_for_other_devices(meshes: Meshes) -> None:
    placed = NamedSharding(meshes.first.abstract_mesh, P("x"))
    f = jax.jit(lambda a: jax.lax.with_sharding_constraint(a * 2, placed))

    assert work(lambda: f(put(meshes.first))) == (1, 1, 1)
    assert work(lambda: f(put(meshes.second))) == (0, 0, 1)
    assert f(put(meshes.second)).sharding == NamedSharding(meshes.second, P("x"))


def test_bare_spec_follows_the_mesh_in_force(meshes: Meshes) -> None:
    f = jax.jit(lambda a: jax.lax.with_sharding_constraint(a * 2, P("x")))

    def under(mesh: Mesh) -> Any:
        with jax.set_mesh(mesh):
            return f(X)

    assert work(lambda: under(meshes.first)) == (1, 1, 1)
    assert work(lambda: under(meshes.second)) == (0, 0, 1)
    assert under(meshes.second).sharding == NamedSharding(meshes.second, P("x"))


def test_bare_spec_in_shardings_follows_the_mesh_in_force(meshes: Meshes) -> None:
    f = jax.jit(lambda a: a * 2, in_shardings=P("x"), out_shardings=P())

    def under(mesh: Mesh) -> Any:
        with jax.set_mesh(mesh):
            return f(X)

    assert work(lambda: under(meshes.first)) == (1, 1, 1)
    assert work(lambda: under(meshes.second)) == (0, 0, 1)
    assert under(meshes.second).sharding == NamedSharding(meshes.second, P())


@pytest.mark.feature("JT-09")
def test_notations_of_one_sharding_share_all(meshes: Meshes) -> None:
    f = jax.jit(lambda a: a * 2)
    whole = np.ones((4, 4), np.float32)

    def call(spec: P) -> Any:
        return f(jax.device_put(whole, NamedSharding(meshes.first, spec)))

    assert work(lambda: call(P("x"))) == (1, 1, 1)
    assert work(lambda: call(P("x", None))) == (0, 0, 0)
    assert work(lambda: call(P(("x",)))) == (0, 0, 0)


def test_another_sharding_is_lowered_and_compiled_but_not_traced(meshes: Meshes) -> None:
    f = jax.jit(lambda a: a * 2)
    f(put(meshes.first, P("x")))

    assert work(lambda: f(put(meshes.first, P()))) == (0, 1, 1)


@pytest.mark.feature("JT-02", "JT-22")
def test_other_devices_are_compiled_for_but_nothing_else(meshes: Meshes) -> None:
    f = jax.jit(lambda a: a * 2)
    f(put(meshes.first, P("x")))

    assert work(lambda: f(put(meshes.second, P("x")))) == (0, 0, 1)


def test_repeated_call_costs_nothing(meshes: Meshes) -> None:
    f = jax.jit(lambda a: a * 2)
    split = put(meshes.first, P("x"))
    f(split)

    assert work(lambda: f(split)) == (0, 0, 0)


@pytest.mark.feature("JT-30")
def test_repeated_call_on_one_device_is_answered_in_cpp(meshes: Meshes) -> None:
    f = jax.jit(lambda a: a * 2)
    there = jax.device_put(X, jax.devices()[5])
    f(there)
    before = jax.cache_stats()

    f(there)

    assert jax.cache_stats() == before


def test_meshes_in_different_orders_do_not_mix(meshes: Meshes) -> None:
    f = jax.jit(lambda a, b: a + b)

    with pytest.raises(ValueError, match="same devices in different orders"):
        f(put(meshes.first), put(meshes.reverse))


def test_log_compiles_keeps_all_hits(meshes: Meshes) -> None:
    f = jax.jit(lambda a: a * 2)
    split = put(meshes.first, P("x"))
    f(split)

    with jax.log_compiles(True):
        assert work(lambda: f(split)) == (0, 0, 0)


def test_enable_x64_traces_again(meshes: Meshes) -> None:
    f = jax.jit(lambda a: a * 2)
    split = put(meshes.first, P("x"))
    f(split)

    with jax.enable_x64(True):
        assert work(lambda: f(split))[0] == 1


def test_partitioner_is_a_key_of_lowering_and_compilation_alone(meshes: Meshes) -> None:
    f = jax.jit(lambda a: a * 2)
    split = put(meshes.first, P("x"))
    f(split)

    jax.config.update("jax_use_shardy_partitioner", False)
    try:
        assert work(lambda: f(split)) == (0, 1, 1)
    finally:
        jax.config.update("jax_use_shardy_partitioner", True)
    assert work(lambda: f(split)) == (0, 0, 0)


def test_mesh_of_a_thread_does_not_disturb_others(meshes: Meshes) -> None:
    f = jax.jit(lambda a: a * 2)
    f(X)

    def elsewhere() -> None:
        with jax.set_mesh(meshes.second):
            f(X)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()

    assert work(lambda: f(X)) == (0, 0, 0)
    assert len(f(X).devices()) == 1


def test_recompilation_for_another_sharding_is_explained(meshes: Meshes) -> None:
    f = jax.jit(lambda a: a * 2)
    f(put(meshes.first, P("x")))
    f(put(meshes.first, P()))

    (retrace,) = explain.retraces(f).retraces

    assert "a: sharding of an argument" in str(retrace)


def test_recompilation_for_other_devices_is_explained(meshes: Meshes) -> None:
    f = jax.jit(lambda a: a * 2)
    f(put(meshes.first))
    f(put(meshes.second))

    assert "a: devices of the program, [0, 1] -> [2, 3]" in str(explain.retraces(f))


def test_recompilation_for_another_order_is_explained(meshes: Meshes) -> None:
    f = jax.jit(lambda a: a * 2)
    f(put(meshes.first))
    f(put(meshes.reverse))

    assert "a: order of the devices of the program" in str(explain.retraces(f))


def test_retrace_for_a_mesh_in_force_is_explained(meshes: Meshes) -> None:
    f = jax.jit(lambda a: a * 2)
    f(X)
    with jax.set_mesh(meshes.first):
        f(X)

    assert "set_mesh: mesh in force, none -> AbstractMesh" in str(explain.retraces(f))
