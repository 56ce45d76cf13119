"""Memory in two hands, and deletion while others read: an exception at worst, not an abort."""

import ast
import gc
import json
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minijax as jax
from minijax import numpy as jnp

pytestmark = pytest.mark.feature("RB-05")
EXPORTED = Path(__file__).with_name("exported_memory.py")
RACING = Path(__file__).with_name("racing_deletion.py")


def outcomes(*command: str) -> dict[str, Any]:
    """What became of each case of a program, as far as it got."""
    found = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=False, timeout=240
    )
    assert found.returncode == 0, found.stderr
    return dict(map(json.loads, found.stdout.splitlines()))


@pytest.mark.turns(3)
@pytest.mark.slow
def test_what_is_exported_stays_and_what_is_given_away_is_refused() -> None:
    tree = ast.parse(EXPORTED.read_text(encoding="utf-8"))
    names = [f.name for f in tree.body if isinstance(f, ast.FunctionDef) and f.decorator_list]
    found = outcomes(str(EXPORTED))
    assert list(found) == [name for name in names if name != "case"]
    wrong = {
        name: outcome
        for name, outcome in found.items()
        if not outcome[0] or set(outcome[1]) != {"DeletedArrayError"}
    }
    assert wrong == {}


@pytest.mark.slow
@pytest.mark.turns(3)
@pytest.mark.parametrize("maker", ["one", "busy", "narrow", "split", "whole"])
def test_reading_what_another_thread_deletes_raises_one_error(maker: str) -> None:
    found = outcomes(str(RACING), maker)
    assert len(found) >= 140
    assert {name: errors for name, errors in found.items() if errors} == {}


def test_deletion_lets_go_of_memory() -> None:
    host = np.zeros(1 << 22, np.float32)
    memory = weakref.ref(host)
    x = jax.device_put(host[-host.ctypes.data % 64 // 4 :], may_alias=True)
    del host
    assert memory() is not None
    x.delete()
    # Where there are other threads it stays a second, for those that have begun to read it.
    end = time.monotonic() + 20
    while memory() is not None and time.monotonic() < end:
        time.sleep(0.05)
        gc.collect()
        jnp.zeros(3).block_until_ready()
    assert memory() is None


def test_memory_stays_for_an_array_that_has_it_too() -> None:
    x = jnp.arange(1000.0) + 1
    y = jax.device_put(x, jax.devices()[0])
    assert y.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    x.delete()
    assert y.sum() == 500500


def test_deleting_an_array_deletes_its_pieces_and_theirs_alone() -> None:
    with jax.cpu_devices(4):
        rows = jax.NamedSharding(jax.make_mesh((4,), ("x",)), jax.P("x"))
        x, y = (jax.device_put(np.arange(8.0), rows) for _ in range(2))
        first, again = x.addressable_shards[1].data, x.addressable_shards[1].data
        other = y.addressable_shards[1].data
        x.delete()
        assert first.is_deleted()
        assert again.is_deleted()
        assert other.tolist() == [2, 3]
        assert y.sum() == 28


def test_live_arrays_are_those_that_users_hold() -> None:
    x = jnp.arange(4321.0)
    found = [y for y in jax.live_arrays() if y.shape == (4321,)]
    assert len(found) == 1
    assert found[0] is x
    found[0].delete()
    assert x.is_deleted()
    assert not any(y.shape == (4321,) for y in jax.live_arrays())


def test_pieces_that_threads_ask_for_at_once_are_the_same() -> None:
    with jax.cpu_devices(4):
        rows = jax.NamedSharding(jax.make_mesh((4,), ("x",)), jax.P("x"))
        for _ in range(20):
            x = jax.device_put(np.arange(8.0), rows)
            addresses: list[tuple[int, ...]] = []
            start = threading.Barrier(4)

            def ask(x: Any = x, start: Any = start, addresses: Any = addresses) -> None:
                start.wait()
                pieces = [shard.data.unsafe_buffer_pointer() for shard in x.addressable_shards]
                addresses.append(tuple(pieces))

            threads = [threading.Thread(target=ask) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(addresses) == 4
            assert len(set(addresses)) == 1


def test_deleted_array_says_what_it_was() -> None:
    x = jnp.arange(3.0)
    x.delete()
    gc.collect()
    assert str(x) == repr(x) == "Array(deleted, f32[3])"
    assert (x.shape, x.committed, x.devices()) == ((3,), False, {jax.devices()[0]})
    for name in ("block_until_ready", "is_ready", "unsafe_buffer_pointer", "__dlpack__"):
        with pytest.raises(jax.errors.DeletedArrayError, match="has been deleted"):
            getattr(x, name)()
