"""Threads tell each other nothing that they should not: a stress of all that they share."""

import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jaxlib.xla_client import XlaRuntimeError

import minijax as jax
from minijax import numpy as jnp
from minijax.core import cache
from minijax.runtime import effect_tokens, in_flight
from minijax.sharding import Mesh

pytestmark = pytest.mark.feature("RB-06")
PROGRAM = str(Path(__file__).with_name("sharing_threads.py"))


@pytest.mark.turns(3)
@pytest.mark.slow
@pytest.mark.parametrize(
    "shared",
    [
        "caches",
        "types",
        "settings",
        "meshes",
        "traces",
        "effects",
        "barriers",
        "window",
        "listeners",
        "transfers",
    ],
)
def test_threads_share_only_what_they_should(shared: str) -> None:
    found = subprocess.run(
        [sys.executable, PROGRAM, shared], capture_output=True, text=True, check=False, timeout=100
    )
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines()[-1] == "[]"


class Failed:
    """The token of a program whose callback has failed with `error`."""

    def __init__(self, error: Exception) -> None:
        self.text = str(in_flight.keep(in_flight.Failure(error)))

    def block_until_ready(self) -> None:
        raise XlaRuntimeError(self.text)


def test_calls_of_one_thread_do_not_raise_what_those_of_another_have() -> None:
    def leave_a_failure() -> None:
        effect_tokens.add_pending(Failed(KeyError("of another thread")))

    thread = threading.Thread(target=leave_a_failure)
    thread.start()
    thread.join()
    program = jax.jit(lambda x: (jax.debug.callback(lambda _: None, x), x + 1)[1])
    for _ in range(2 * effect_tokens._MOST_PENDING):
        program(jnp.ones(3))
    with pytest.raises(KeyError, match="of another thread"):
        jax.effects_barrier()
    jax.effects_barrier()


def test_failures_that_nobody_was_told_of_are_kept_longest() -> None:
    untold = str(in_flight.keep(in_flight.Failure(KeyError("first"))))
    for number in range(2 * in_flight._MOST_KEPT):
        found = in_flight.behind(in_flight.keep(in_flight.Failure(ValueError(number))))
        assert found is not None
        found.surface()
    kept = in_flight.behind(RuntimeError(untold))
    assert kept is not None
    assert str(kept.error) == "'first'"
    kept.surface()


def test_callback_inside_a_callback_leaves_the_outer_one_inside() -> None:
    # Without the memory of the outer one: hangs, as each program waits for the other.
    with jax.cpu_devices(4):
        rows = jax.NamedSharding(Mesh(np.array(jax.devices()), ("x",)), jax.P("x"))
        x = jax.device_put(np.arange(8.0, dtype=np.float32), rows)
        seen: list[str] = []

        def negative(y: Any) -> Any:
            return -np.asarray(y)

        def outer(y: Any) -> Any:
            here = jnp.asarray(np.asarray(y))
            jax.jit(lambda z: jax.pure_callback(negative, z, z))(here).block_until_ready()
            try:
                jax.jit(lambda z: z + 1)(x)
            except RuntimeError as error:
                seen.append(str(error))
            return np.asarray(y)

        jax.jit(lambda y: jax.pure_callback(outer, y, y))(x).block_until_ready()
        assert len(seen) >= 1
        assert all("cannot run another one" in text for text in seen)


def test_cache_is_counted_and_emptied_while_another_thread_adds_owners() -> None:
    # With `values`: "dictionary changed size during iteration".
    table: Any = weakref.WeakKeyDictionary()
    owners = [type("Owner", (), {})() for _ in range(30_000)]

    def add() -> None:
        for owner in owners:
            table[owner] = {}

    thread = threading.Thread(target=add)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        thread.start()
        while thread.is_alive():
            assert len(cache._held(table)) <= len(owners)
        thread.join()
    finally:
        sys.setswitchinterval(before)
    assert len(cache._held(table)) == len(owners)
