"""Programs whose end, or whose children, may hang or die; the argument says which one to run."""

import itertools
import multiprocessing
import os
import pickle
import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
from minijax import lax
from minijax import numpy as jnp

DEVICES = 4
EXIT_CODE = 3
add = jax.jit(lambda x: x + 1)
slow = jax.jit(lambda x: lax.fori_loop(0, 200, lambda _, y: jnp.sin(y), x))
told = jax.jit(lambda x: (jax.debug.callback(lambda _: None, x), x + 1)[1])
asked = jax.jit(lambda x: jax.pure_callback(np.negative, jax.ShapeDtypeStruct((8,), x.dtype), x))


def split(x: Any) -> Any:
    return jax.device_put(x, jax.NamedSharding(jax.make_mesh((DEVICES,), ("x",)), jax.P("x")))


def removed(x: Any) -> None:
    add(x).delete()


# What a thread does again and again while the process ends.
WORK: dict[str, Callable[[], Any]] = {
    "call": lambda: add(jnp.ones(8)),
    "wait": lambda: slow(jnp.ones(1 << 16)).block_until_ready(),
    "run ahead": lambda: slow(jnp.ones(1 << 14)),
    "several devices": lambda: add(split(jnp.arange(16.0))),
    "read": lambda: repr(jnp.arange(8.0) + 1),
    "compile": lambda: jax.jit(lambda x: x + 2)(1.0),
    "move": lambda: jax.device_put(jnp.ones(1 << 18), jax.devices()[1]),
    "delete": lambda: removed(jnp.ones(8)),
    "effect": lambda: told(jnp.ones(8)),
    "callback": lambda: asked(jnp.ones(8)),
    "sleep": lambda: time.sleep(1000),
    "no devices": lambda: sum(range(1000)),
}


def end(name: str) -> None:
    """Ends while two daemon threads are at work."""

    def work() -> None:
        for _ in itertools.count():
            WORK[name]()

    for _ in range(2):
        threading.Thread(target=work, daemon=True).start()
    time.sleep(0.5)
    sys.exit(EXIT_CODE)


def child(function: Callable[[], Any]) -> str:
    """What a forked child says of a function, or that it hangs."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pid = os.fork()
    if not pid:
        try:
            text = f"result {function()}"
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
        os.write(write, text.encode())
        os._exit(0)
    end = time.monotonic() + 20
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        if time.monotonic() > end:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
            return "hangs"
        time.sleep(0.005)
    os.close(write)
    with open(read, "rb") as file:
        return file.read().decode()


def fork() -> None:
    """Prints what works in a forked child."""
    x, narrow, spread = add(jnp.arange(8.0)), jnp.ones(8, jnp.bfloat16), split(jnp.arange(8.0))
    compiled = add.lower(x).compile()
    for ready in (x + x, x[0], add(spread), slow(jnp.ones(1 << 18)), narrow):
        ready.block_until_ready()
    attempts: dict[str, Callable[[], Any]] = {
        "read": lambda: x.tolist(),
        "read narrow": lambda: narrow.sum.__name__ + str(np.asarray(narrow, np.float32).sum()),
        "read split": lambda: np.asarray(spread).sum(),
        "export": lambda: np.from_dlpack(x).sum(),
        "pickle": lambda: len(pickle.dumps(x)) > 0,
        "delete": lambda: x.delete(),
        "trace": lambda: len(jax.make_jaxpr(add)(x).eqns),
        "call": lambda: add(x),
        "call of the compiled": lambda: compiled(x),
        "call over devices": lambda: add(spread),
        "call of the large": lambda: slow(jnp.ones(1 << 18)),
        "operator": lambda: x + x,
        "index": lambda: x[0],
        "compile": lambda: jax.jit(lambda y: y * 3)(x),
        "compile ahead": lambda: add.lower(jnp.ones(3)).compile(),
        "move": lambda: jax.device_put(x, jax.devices()[1]),
        "key": lambda: jax.random.key(0),
        "other devices": lambda: jax.config.update("num_cpu_devices", 2) or jnp.ones(3) + 1,
    }
    for name, attempt in attempts.items():
        text = child(attempt).replace("\n", " ")
        sys.stdout.write(f"{name}\t{text}\n")


def fork_among_threads() -> None:
    """Forks while other threads delete, and read what needs a lock."""
    narrow = jnp.ones(8, jnp.bfloat16)

    def work() -> None:
        while not done:
            add(jnp.ones(8)).delete()
            np.asarray(narrow)
            split(np.ones(8)).addressable_shards[0].data.delete()

    done: list[bool] = []
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    kept = [add(jnp.ones(8)) for _ in range(30)]
    texts = {child(lambda x=x: (x.delete(), sum(narrow.tolist()))) for x in kept}
    done.append(True)
    for thread in threads:
        thread.join()
    sys.stdout.write(f"{texts}\n")


def answer(x: float) -> float:
    return float(add(jnp.asarray(x)))


def spawn() -> None:
    """Computes in a process that is not forked."""
    add(jnp.ones(3))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        sys.stdout.write(f"{pool.apply(answer, (1.0,))}\n")


if __name__ == "__main__":
    jax.config.update("num_cpu_devices", DEVICES)
    what, *arguments = sys.argv[1:]
    {"end": end, "fork": fork, "among": fork_among_threads, "spawn": spawn}[what](*arguments)
