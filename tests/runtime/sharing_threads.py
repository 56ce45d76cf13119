"""What threads share, used by all of them at once: a program that prints what went wrong.

Its argument names one thing that is shared.
"""

import json
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
from minijax import lax
from minijax import numpy as jnp
from minijax.core import monitoring
from minijax.sharding import AxisType, Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P

DEVICES = 4
THREADS = 4
SECONDS = 1.5
wrong: set[str] = set()
add = jax.jit(lambda x: x + 1)


def check(holds: object, what: str) -> None:
    if not holds:
        wrong.add(what)


def rows() -> Any:
    return NamedSharding(Mesh(np.array(jax.devices()), ("x",)), P("x"))


def caches(number: int, turn: int) -> None:
    """Functions are traced and compiled while caches are read and emptied."""
    if number == 0:
        stats = jax.cache_stats()
        check(all(info.hits >= 0 for info in stats.values() if info.is_counted), "counts")
    elif number == 1 and turn % 5 == 0:
        jax.clear_caches()
    else:
        found = jax.jit(lambda x: x * number + turn)(jnp.ones(2 + turn % 3))
        check(found[0] == number + turn, "a program of another thread")


def types(number: int, turn: int) -> None:
    """Equal types, meshes and placements are one object, whoever makes them."""
    start.wait()
    shape = (turn % 1000 + 2, 4)
    made[turn % 2][number] = (
        jax.make_jaxpr(lambda x: x)(np.zeros(shape, np.float32)).in_avals[0],
        Mesh(np.array(jax.devices()), (f"axis{turn}",)),
        jax.device_put(np.zeros(4), NamedSharding(Mesh(np.array(jax.devices()), ("x",)), P())),
    )
    start.wait()
    first = made[turn % 2][0]
    for own, other in zip(made[turn % 2][number][:2], first[:2], strict=True):
        check(own is other, f"two objects for one {type(own).__name__}")


def settings(number: int, turn: int) -> None:
    """A setting that a thread makes is its own."""
    with jax.enable_x64(number % 2 == 0):
        wide = jnp.asarray(1.5).dtype == np.float64
        check(wide == (number % 2 == 0), "enable_x64")
    with jax.cpu_devices(1 + number % 2):
        check(jax.device_count() == 1 + number % 2, "cpu_devices")
    with jax.default_device(jax.devices()[number % DEVICES]):
        check(jnp.ones(3).device == jax.devices()[number % DEVICES], "default_device")
    with jax.disable_jit(number % 2 == 0):
        ran: list[int] = []
        jax.jit(lambda x: (ran.append(isinstance(x, jax.core.Tracer)), x)[1])(jnp.ones(turn % 3))
        check(ran == [number % 2 == 1], "disable_jit")


def meshes(number: int, turn: int) -> None:
    """A mesh in force is that of one thread."""
    mesh = jax.make_mesh((DEVICES,), (f"of{number}",), axis_types=(AxisType.Auto,))
    with jax.set_mesh(mesh):
        check(jax.sharding.get_abstract_mesh().axis_names == (f"of{number}",), "set_mesh")
        found = jax.jit(lambda x: lax.with_sharding_constraint(x, P(f"of{number}")))(jnp.ones(8))
        check(found.sharding.mesh.axis_names == (f"of{number}",), "mesh of another thread")


def traces(number: int, turn: int) -> None:
    """What one thread traces does not enter the programs of others."""
    jaxpr = jax.make_jaxpr(lambda x: [x := x * number for _ in range(5)][-1])(1.0)
    check(len(jaxpr.eqns) == 5, "equations of another thread")
    slope = jax.grad(lambda x: jnp.sin(x) * number)(0.0)
    check(slope == number, "derivative")
    check(jax.vmap(lambda x: x + number)(jnp.arange(3)).tolist()[0] == number, "vmap")


def effects(number: int, turn: int) -> None:
    """A callback's failure is told to the thread that called the program, and to no other."""

    def fail(x: Any) -> None:
        if number % 2 and turn % 3 == 0:
            raise KeyError(f"of {number}")

    try:
        jax.jit(lambda x: (jax.debug.callback(fail, x), x + 1)[1])(jnp.ones(3)).block_until_ready()
        jax.effects_barrier()
    except KeyError as error:
        check(str(error) == f"'of {number}'", "a failure of another thread")
        check(number % 2, "a failure where there was none")


def barriers(number: int, turn: int) -> None:
    """One thread's failures do not surface where another waits for its own effects."""
    if number == 0:
        try:
            jax.effects_barrier()
            quiet(jnp.ones(3))
        except ZeroDivisionError:
            wrong.add("a failure of another thread")
        return
    try:
        loud(slow(jnp.ones(1 << 15)))
        jax.effects_barrier()
    except ZeroDivisionError:
        told.append(number)


def divide(x: Any) -> None:
    raise ZeroDivisionError


quiet = jax.jit(lambda x: (jax.debug.callback(lambda _: None, x), x + 1)[1])
slow = jax.jit(lambda x: lax.fori_loop(0, 50, lambda _, y: jnp.sin(y), x))
loud = jax.jit(lambda x: (jax.debug.callback(divide, x), x + 1)[1])
told: list[int] = []


def window(number: int, turn: int) -> None:
    """Programs over devices start in turn, at most 24 at once."""
    x = jax.device_put(jnp.arange(16.0) + number, rows())
    for _ in range(5):
        x = add(x)
    check(x.sum() == 16 * (number + 5) + 120, "a sum over devices")


def listeners(number: int, turn: int) -> None:
    """Listeners come and go while others are told."""
    heard: list[Any] = []

    def hear(event: str, **_: Any) -> None:
        heard.append(event)

    jax.monitoring.register_event_listener(hear)
    jax.monitoring.record_event(f"/of/{number}")
    jax.monitoring.unregister_event_listener(hear)
    check(f"/of/{number}" in heard, "an event")


def transfers(number: int, turn: int) -> None:
    """No transfer is left uncounted."""
    jax.device_put(jnp.ones(3), jax.devices()[1 + number % 3])
    counted[number] += 1


counted = [0] * THREADS
made: list[list[Any]] = [[None] * THREADS, [None] * THREADS]
start = threading.Barrier(THREADS)
SHARED: dict[str, Callable[[int, int], None]] = {
    f.__name__: f
    for f in (caches, types, settings, meshes, traces, effects, barriers, window, listeners)
}
SHARED["transfers"] = transfers


def main(name: str) -> None:
    work = SHARED[name]
    before = sum(monitoring.transfers.values())
    end = time.monotonic() + SECONDS
    # Where threads wait for one another, all take as many turns.
    turns = 200 if name == "types" else 1_000_000

    def run(number: int) -> None:
        for turn in range(turns):
            try:
                work(number, turn)
            except Exception as error:
                wrong.add(f"{type(error).__name__}: {error}"[:300])
            if name != "types" and time.monotonic() > end:
                break

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    sys.setswitchinterval(1e-6)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if name == "transfers":
        check(sum(monitoring.transfers.values()) - before == sum(counted), "counts")
    if name == "barriers":
        check(set(told) == set(range(1, THREADS)), "failures that nobody was told of")
    sys.stdout.write(json.dumps(sorted(wrong)) + "\n")


if __name__ == "__main__":
    jax.config.update("num_cpu_devices", DEVICES)
    main(sys.argv[1])
