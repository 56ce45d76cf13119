"""What `clear_caches` forgets, and what threads share."""

import gc
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minijax as jax
from minijax.core import caches
from minijax.runtime import placement
from minijax.sharding import AbstractMesh, Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P


def test_remembered_results_are_forgotten_together() -> None:
    calls = []
    found = caches.remembered(8)(calls.append)
    found(1)
    found(1)
    caches.clear()
    found(1)
    assert calls == [1, 1]


def test_remembered_results_are_bounded() -> None:
    calls = []
    found = caches.remembered(2)(calls.append)
    for i in (0, 1, 2, 0):
        found(i)
    assert calls == [0, 1, 2, 0]


def use(mesh: Mesh) -> None:
    x = jax.device_put(np.arange(8.0), NamedSharding(mesh, P("x")))
    jax.lax.with_sharding_constraint(x + 1, NamedSharding(mesh, P())).block_until_ready()
    assert len(x.addressable_shards) == 4


@pytest.mark.usefixtures("young_heap")
@pytest.mark.feature("MS-01")
def test_meshes_are_forgotten_with_the_caches() -> None:
    with jax.cpu_devices(4):
        mesh = Mesh(np.array(jax.devices())[[3, 1, 0, 2]], "x")
        use(mesh)
        found = weakref.ref(mesh)
        del mesh
        jax.clear_caches()
        gc.collect()
        assert found() is None


@pytest.mark.usefixtures("young_heap")
@pytest.mark.feature("MS-15")
def test_natives_live_as_long_as_what_is_placed_so() -> None:
    with jax.cpu_devices(4):
        sharding = NamedSharding(Mesh(np.array(jax.devices())[[2, 1, 0, 3]], "x"), P("x"))
        x = jax.device_put(np.arange(8.0), sharding)
        assert placement.native(sharding, 1) is x.buffer._sharding
        found = weakref.ref(x.buffer._sharding)
        del x
        gc.collect()
        assert found() is None


def in_threads(make: Callable[[], Any]) -> set[int]:
    """The identities of what eight threads make at a time."""
    barrier = threading.Barrier(8)
    made: list[Any] = []

    def run() -> None:
        barrier.wait()
        made.append(make())

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return set(map(id, made))


@pytest.mark.feature("MS-01", "MS-05")
def test_threads_that_make_one_mesh_get_one_object() -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for i in range(40):
            name = f"axis{i}"
            assert len(in_threads(lambda name=name: AbstractMesh((2,), (name,)))) == 1
            assert len(in_threads(lambda name=name: Mesh(np.array(["a", "b"]), name))) == 1
    finally:
        sys.setswitchinterval(before)


@pytest.mark.feature("LG-05")
def test_cache_stats_count_meshes_and_what_is_made_of_them() -> None:
    def counted() -> dict[str, tuple[int, int]]:
        return {name: tuple(info) for name, info in jax.cache_stats().items()}

    with jax.cpu_devices(4):
        devices = np.array(jax.devices())
        jax.clear_caches()
        before = counted()
        x = np.arange(8.0)
        for _ in range(2):
            mesh = Mesh(devices, ("x",))
            jax.device_put(x, NamedSharding(mesh, P("x")))
        after = counted()
    for name in ("meshes", "device lists", "index tables", "named shardings", "tilings"):
        assert name in after
    assert after["meshes"][0] > before["meshes"][0]
    assert after["index tables"] != before["index tables"]
