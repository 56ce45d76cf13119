"""What the function does that a program calls: a process tries it all in one situation.

`python calling_back.py SITUATION` prints a line for each deed: its name, and `done` or the error.
A deed that takes half a minute ends the process, with a traceback of each thread.
"""

from __future__ import annotations

import faulthandler
import pickle
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.experimental import io_callback
from minijax.runtime import in_flight
from minijax.sharding import Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P

# In seconds.
LIMIT = 30
in_flight._LONGEST_IDLE = 0.3

DEVICES = jax.devices()
FIRST, LAST = DEVICES[0], DEVICES[-1]
MESH = Mesh(np.array(DEVICES), ("x",))
SPREAD = NamedSharding(MESH, P("x"))
X = np.arange(16, dtype=np.float32)
LIKE_X = jax.ShapeDtypeStruct(X.shape, X.dtype)
on_first = jax.device_put(X, FIRST)
on_last = jax.device_put(X, LAST)
on_all = jax.device_put(X, SPREAD)
matrix = jax.device_put(np.full((500, 500), 1 / 500, np.float32), FIRST)
there = jax.device_put(matrix, LAST)
workers = ThreadPoolExecutor(1)
workers.submit(int).result()

total = jax.jit(jnp.sum)
shift = jax.jit(lambda x: x + x.sum())
inner = jax.jit(lambda x: jax.pure_callback(lambda v: np.asarray(v) * 2, LIKE_X, x))
ordered = jax.jit(lambda x: io_callback(lambda v: np.asarray(v) * 2, LIKE_X, x, ordered=True))
heard = jax.jit(lambda x: jax.debug.callback(lambda v: None, x))
slow = jax.jit(lambda x, m: x + jax.lax.fori_loop(0, 3, lambda i, n: n @ m, m)[0, 0] * 0)
wide = jnp.full((1000, 1000), 1e-3)


def in_thread(function: Callable[[], Any]) -> Any:
    """The result of a function that another thread calls, for which this one waits."""
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(function).result()


def in_plain_thread(function: Callable[[], Any]) -> Any:
    """The same, without an executor."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(function())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]


made: list[Any] = []
"""An array that is computed after the program that calls, where the situation has one."""
is_called = threading.Event()
is_made = threading.Event()


def later() -> Any:
    """The array that is computed after the program that calls."""
    assert is_made.wait(10)
    return made[0]


SMALL: dict[str, Callable[[Any], Any]] = {
    "sum": lambda v: float(jnp.sum(v)),
    "print": str,
    "product": lambda v: float((matrix @ matrix).sum()),
    "product elsewhere": lambda v: np.asarray(there @ there),
    "random": lambda v: np.asarray(jax.random.normal(jax.random.key(1), (300, 300))),
    "derivative": lambda v: np.asarray(jax.grad(lambda x: (x * x).sum())(on_first)),
    "read all": lambda v: np.asarray(on_all),
    "put": lambda v: np.asarray(jax.device_put(v, LAST)),
    "put from there": lambda v: np.asarray(jax.device_put(there, FIRST)),
    "put on all": lambda v: np.asarray(jax.device_put(np.ones((512, 512), np.float32), SPREAD)),
    "thread sums": lambda v: in_thread(lambda: float(jnp.sum(on_first))),
    "thread multiplies": lambda v: in_thread(lambda: float((matrix @ matrix).sum())),
    "thread puts": lambda v: in_plain_thread(lambda: np.asarray(jax.device_put(there, FIRST))),
    "nested": lambda v: np.asarray(inner(on_first)),
    "nested elsewhere": lambda v: np.asarray(inner(on_last)),
    "nested ordered": lambda v: np.asarray(ordered(on_first)),
    "nested often": lambda v: [heard(on_first) for _ in range(150)],
    "thread nests": lambda v: in_thread(lambda: np.asarray(inner(on_first))),
    "copy async": lambda v: on_last.copy_to_host_async(),
    "delete": lambda v: jax.device_put(X, LAST).delete(),
    "compile": lambda v: jax.jit(lambda x: x - 1).lower(on_first).compile()(on_first).tolist(),
}
"""What is small, or needs devices that are idle: all of it works everywhere."""

OVER_DEVICES: dict[str, Callable[[Any], Any]] = {
    "all": lambda v: float(total(on_all)),
    "eager": lambda v: np.asarray(on_all + 1),
    "pmap": lambda v: np.asarray(jax.pmap(lambda x: 2 * x)(X.reshape(len(DEVICES), -1))),
    "thread": lambda v: in_plain_thread(lambda: float(total(on_all))),
    "thread of a thread": lambda v: in_plain_thread(
        lambda: in_plain_thread(lambda: float(total(on_all)))
    ),
    "new executor": lambda v: in_thread(lambda: float(total(on_all))),
    "old executor": lambda v: workers.submit(lambda: float(total(on_all))).result(),
    "after a nested": lambda v: (np.asarray(inner(on_first)), float(total(on_all))),
}
"""Programs over all devices."""

EFFECTS: dict[str, Callable[[Any], Any]] = {
    "barrier": lambda v: jax.effects_barrier(),
    "barrier of a thread": lambda v: in_thread(jax.effects_barrier),
}
"""Waits for effects."""

LATER: dict[str, Callable[[Any], Any]] = {
    "asarray": lambda v: np.asarray(later()),
    "block": lambda v: later().block_until_ready(),
    "block tree": lambda v: jax.block_until_ready({"a": later()}),
    "str": lambda v: str(later()),
    "get": lambda v: jax.device_get(later()),
    "tolist": lambda v: later().tolist(),
    "pickle": lambda v: pickle.dumps(later()),
    "piece": lambda v: np.asarray(later().addressable_shards[0].data),
    "dlpack": lambda v: np.from_dlpack(later().addressable_shards[0].data),
    "put": lambda v: np.asarray(jax.device_put(later(), LAST)),
    "piece plus one": lambda v: np.asarray(later().addressable_shards[0].data + 1),
    "thread": lambda v: in_thread(lambda: np.asarray(later())),
}
"""Uses of an array that is computed after the program that calls."""

HARMLESS: dict[str, Callable[[Any], Any]] = {
    "copy async": lambda v: later().copy_to_host_async(),
    "shape": lambda v: (later().shape, later().is_ready(), later().sharding),
    "delete": lambda v: later().delete(),
}
"""Uses that need no elements."""


deed: list[Callable[[Any], Any]] = [str]
"""What the function does."""
outcomes: set[str] = set()


def call(v: Any) -> Any:
    """The function that programs call."""
    is_called.set()
    try:
        deed[0](v)
        outcomes.add("done")
    except Exception as error:
        outcomes.add(f"{type(error).__name__} {str(error).splitlines()[0]}")
    return np.asarray(v) * 2


def call_io(x: Any) -> Any:
    return io_callback(call, jax.typeof(x), x) + 1


def call_pure(x: Any) -> Any:
    like = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return jax.pure_callback(call, like, x, vmap_method="sequential") + 1


def call_debug(x: Any) -> Any:
    jax.debug.callback(call, x)
    return x * 2


def in_scan(x: Any) -> Any:
    return jax.lax.scan(lambda c, _: (call_pure(c), None), x, None, length=2)[0]


def reduced(x: Any) -> Any:
    return jax.lax.psum(call_pure(x), "x")


def mapped(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return jax.shard_map(function, mesh=MESH, in_specs=P("x"), out_specs=P(), check_vma=False)


in_jit = jax.jit(call_io)
in_loop = jax.jit(in_scan)
in_batch = jax.jit(jax.vmap(call_pure))
in_gradient = jax.jit(jax.grad(lambda x: call_debug(x).sum()))
over_all = jax.jit(lambda x: call_io(x) + x.sum())
over_all_heard = jax.jit(lambda x: call_debug(x) + x.sum())
gradient_over_all = jax.jit(jax.grad(lambda x: (call_debug(x) ** 2).sum()))
on_each = jax.jit(mapped(reduced))
on_each_eager = mapped(reduced)
in_loops = jax.jit(mapped(lambda x: jax.lax.psum(in_scan(x), "x")))
by_pmap = jax.pmap(reduced, axis_name="x")
compiled = jax.jit(call_io).lower(on_first).compile()


may_go = threading.Event()


def hold(v: Any) -> Any:
    """Keeps a program from its end, unless that would keep the thread that has started it."""
    assert threading.current_thread() is threading.main_thread() or may_go.wait(10)
    return np.asarray(v)


holding = jax.jit(lambda x: jax.pure_callback(hold, LIKE_X, x)).lower(on_first).compile()


def started_late() -> Any:
    """A program whose arguments are not there yet: XLA runs it on a thread of its own."""
    may_go.clear()
    x = on_first
    while x.is_ready():
        x = holding(slow(on_first, wide))
    made[:] = [compiled(x)]
    is_made.set()
    may_go.set()
    return made[0]


def overtaken() -> Any:
    """A program over all devices, during whose call another thread starts one."""

    def other() -> None:
        assert is_called.wait(10)
        made[:] = [shift(on_all)]
        is_made.set()

    thread = threading.Thread(target=other)
    thread.start()
    out = on_each(on_all)
    thread.join()
    return out


Deeds = dict[str, Callable[[Any], Any]]
NOTHING_COMES_LATER = {**SMALL, **OVER_DEVICES, **EFFECTS}
SITUATIONS: dict[str, tuple[Callable[[], Any], Deeds]] = {
    "eager": (lambda: call_io(on_first), NOTHING_COMES_LATER),
    "jit": (lambda: in_jit(on_first), NOTHING_COMES_LATER),
    "jit elsewhere": (lambda: in_jit(on_last), NOTHING_COMES_LATER),
    "scan": (lambda: in_loop(on_first), NOTHING_COMES_LATER),
    "vmap": (lambda: in_batch(X.reshape(4, 4)), NOTHING_COMES_LATER),
    "grad": (lambda: in_gradient(on_first), NOTHING_COMES_LATER),
    "late": (started_late, NOTHING_COMES_LATER),
    "late, its result": (started_late, {**LATER, **HARMLESS}),
    "sharded": (lambda: over_all(on_all), NOTHING_COMES_LATER),
    "sharded debug": (lambda: over_all_heard(on_all), NOTHING_COMES_LATER),
    "sharded grad": (lambda: gradient_over_all(on_all), NOTHING_COMES_LATER),
    "shard_map": (lambda: on_each(on_all), NOTHING_COMES_LATER),
    "eager shard_map": (lambda: on_each_eager(on_all), NOTHING_COMES_LATER),
    "scan in shard_map": (lambda: in_loops(on_all), NOTHING_COMES_LATER),
    "pmap": (lambda: by_pmap(X.reshape(len(DEVICES), -1)), NOTHING_COMES_LATER),
    "overtaken": (overtaken, {**LATER, **HARMLESS}),
}


def main() -> None:
    run, deeds = SITUATIONS[sys.argv[1]]
    for warm in (slow(on_first, wide), total(on_all), shift(on_all), inner(on_last)):
        warm.block_until_ready()
    for name, function in deeds.items():
        faulthandler.dump_traceback_later(LIMIT, exit=True)
        deed[0] = function
        outcomes.clear()
        made.clear()
        is_called.clear()
        is_made.clear()
        jax.block_until_ready(run())
        jax.effects_barrier()
        sys.stdout.write(f"{name}\t{sorted(outcomes)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
