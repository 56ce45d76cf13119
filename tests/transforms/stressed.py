"""Threads that use what they share, all at once: `python stressed.py STATE` does so for a while.

Python may change threads after each instruction.  A wrong result, or an exception, is printed; what
hangs ends the process, with a traceback of each thread.
"""

from __future__ import annotations

import faulthandler
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax import explain, lax, testing
from minijax.experimental import checkify, io_callback
from minijax.interpreters import recordings
from minijax.lowering import program
from minijax.sharding import Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P

# In seconds.
LIMIT = 100
DURATION = 1.5

X = np.arange(8, dtype=np.float32)
DEVICES = jax.devices()
ROWS = X.reshape(len(DEVICES), -1)
SPLIT = jax.device_put(X, NamedSharding(Mesh(np.array(DEVICES), "x"), P("x")))
# Few, so that others are thrown out all the time.
program._MOST_SHARED = 2
recordings.MOST = 2


def equal(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def new_functions(i: int, k: int) -> None:
    equal(jax.jit(lambda x: jnp.tanh(x) * (i % 3) + k % 5)(X), np.tanh(X) * (i % 3) + k % 5)


def clear(i: int, k: int) -> None:
    jax.clear_caches()
    jax.cache_stats()
    time.sleep(0.003)


def body(carry: Any, x: Any) -> tuple[Any, Any]:
    return carry + x, carry * x


carries = np.concatenate([[0], np.cumsum(X)[:-1]]) * X
looped = jax.jit(lambda x: lax.scan(body, jnp.float32(0), x)[1])


def same_bodies(i: int, k: int) -> None:
    equal(looped(X) if k % 2 else lax.scan(body, jnp.float32(0), X)[1], carries)


@jax.custom_vjp
def square(x: Any) -> Any:
    return x * x


square.defvjp(lambda x: (square(x), x), lambda x, ct: (3 * x * ct,))


def custom_rules(i: int, k: int) -> None:
    equal(jax.grad(lambda x: jax.vmap(square)(x).sum())(X), 3 * X)


def ordered_effects(i: int, k: int) -> None:
    seen: list[int] = []

    def step(j: Any, carry: Any) -> Any:
        io_callback(lambda v: seen.append(int(v)), None, j, ordered=True)
        return carry

    run = jax.jit(lambda x: lax.fori_loop(0, 3, step, x))
    run(k).block_until_ready()
    run(k).block_until_ready()
    assert seen == [0, 1, 2] * 2, seen


def shared_callback(i: int, k: int) -> None:
    value = i * 1000.0 + k
    equal(echo(value), value)


echo = jax.jit(lambda x: jax.pure_callback(lambda v: np.asarray(v), jax.typeof(x), x))


def inspections(i: int, k: int) -> None:
    seen: list[Any] = []

    def show(x: Any) -> Any:
        jax.debug.inspect_array_sharding(x, callback=seen.append)
        return x + k

    jax.jit(show)(SPLIT)
    assert [found.spec for found in seen] == [P("x")], seen


def references(i: int, k: int) -> None:
    def add(ref: Any) -> Any:
        ref[...] += i
        return ref[...]

    equal(jax.jit(add)(jax.new_ref(jnp.zeros(3))), i)


def maps(i: int, k: int) -> None:
    with jax.disable_jit(k % 2 == 0):
        found = jax.pmap(lambda x: lax.psum(x + i, "i"), axis_name="i")(ROWS)
    equal(found[0], (ROWS + i).sum(0))


def regions(i: int, k: int) -> None:
    mesh = SPLIT.sharding.mesh
    run = jax.shard_map(lambda x: lax.psum(x * i, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
    equal(run(SPLIT), ROWS.sum(0) * i)


def checks(i: int, k: int) -> None:
    def check(x: Any) -> Any:
        checkify.check(x.sum() < i, "sum {s}", s=x.sum())
        return x

    error, _ = checkify.checkify(jax.jit(check))(X)
    assert "sum 28.0" in str(error.get())


scaled = jax.jit(lambda x, n: x * n, static_argnums=1)


def traces(i: int, k: int) -> None:
    equal(scaled(X, k % 50), X * (k % 50))


def explanations(i: int, k: int) -> None:
    assert str(explain.retraces(scaled))
    assert str(explain.retraces())
    assert "stablehlo" in explain.stages(lambda x: x * i)(X)["stablehlo"]


def simulations(i: int, k: int) -> None:
    run = testing.simulate(lambda x: lax.psum(x * i, "x"), {"x": 4}, in_specs=P("x"), out_specs=P())
    equal(run(X), X.reshape(4, -1).sum(0) * i)


def random_keys(i: int, k: int) -> None:
    """One key, which four threads use at once: one of them may."""
    key = jax.random.key(k)
    barrier, used = threading.Barrier(4), []

    def use() -> None:
        with jax.debug_key_reuse(True):
            barrier.wait()
            try:
                used.append(jax.random.normal(key, (3,)))
            except jax.errors.KeyReuseError:
                return

    together([use] * 4)
    assert len(used) == 1, used


def together(functions: Sequence[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


STATES: dict[str, list[Callable[[int, int], None]]] = {
    "caches": [new_functions] * 4 + [clear],
    "bodies": [same_bodies] * 4 + [clear],
    "rules": [custom_rules] * 3 + [references] * 2 + [clear],
    "effects": [ordered_effects] * 2 + [shared_callback] * 3,
    "inspections": [inspections] * 3 + [new_functions],
    "devices": [maps] * 2 + [regions] * 2 + [clear],
    "reports": [traces] * 2 + [explanations] * 2 + [checks],
    "simulations": [simulations] * 4,
    "keys": [random_keys],
}


def main() -> None:
    faulthandler.dump_traceback_later(LIMIT, exit=True)
    functions = STATES[sys.argv[1]]
    for i, function in enumerate(functions):
        function(i, i)
    sys.setswitchinterval(1e-6)
    end = time.monotonic() + DURATION
    failures: list[str] = []

    def repeat(i: int, function: Callable[[int, int], None]) -> None:
        k = 0
        while time.monotonic() < end and not failures:
            try:
                function(i, k)
            except BaseException:
                failures.append(traceback.format_exc())
            k += 1

    together([lambda i=i, f=f: repeat(i, f) for i, f in enumerate(functions)])
    sys.stdout.write("".join(failures[:1]))


if __name__ == "__main__":
    main()
