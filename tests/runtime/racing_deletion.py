"""Arrays read in two threads while a third deletes or donates them: a program, as it may die.

Its argument names a kind of arrays.  For each way to read and each way to delete, it prints the
errors that readers got besides those that say that the array is deleted.
"""

import copy
import json
import pickle
import random
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
from minijax import lax
from minijax import numpy as jnp
from minijax.sharding import Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P

DEVICES = 4
ROUNDS = 3
SECONDS = 0.001

add = jax.jit(lambda x: x + 1)
take = jax.jit(lambda x: x + 1, donate_argnums=0)
slow = jax.jit(lambda x: lax.fori_loop(0, 20, lambda _, y: jnp.sin(y), x))


def placed(*spec: Any) -> Any:
    return NamedSharding(Mesh(np.array(jax.devices()), ("x",)), P(*spec))


MAKERS: dict[str, Callable[[], Any]] = {
    "one": lambda: add(jnp.arange(4096.0)),
    "busy": lambda: slow(jnp.ones(1 << 15)),
    "narrow": lambda: add(jnp.arange(4096.0)).astype(jnp.bfloat16),
    "split": lambda: jax.device_put(jnp.arange(4096.0), placed("x")),
    "whole": lambda: jax.device_put(jnp.arange(4096.0), placed()),
}


def anew(x: Any) -> Any:
    pieces = [shard.data for shard in x.addressable_shards]
    return jax.make_array_from_single_device_arrays(x.shape, x.sharding, pieces)


READERS: dict[str, Callable[[Any], Any]] = {
    "tolist": lambda x: x.tolist(),
    "asarray": np.asarray,
    "NumPy": lambda x: np.add(x, 1),
    "bytes": lambda x: x.tobytes(),
    "repr": repr,
    "format": lambda x: f"{x}",
    "pickle": pickle.dumps,
    "copy": copy.copy,
    "device_get": jax.device_get,
    "device_put": lambda x: jax.device_put(x, jax.devices()[1]),
    "device_put in place": lambda x: jax.device_put(x, x.sharding),
    "device_put split": lambda x: jax.device_put(x, placed("x")),
    "device_put copied": lambda x: jax.device_put(x, x.sharding, may_alias=False),
    "from pieces": anew,
    "pieces": lambda x: [np.asarray(shard.data) for shard in x.addressable_shards],
    "wait": lambda x: x.block_until_ready(),
    "wait for several": lambda x: jax.block_until_ready([x, x]),
    "is_ready": lambda x: x.is_ready(),
    "copy_to_host_async": lambda x: x.copy_to_host_async(),
    "size": lambda x: x.on_device_size_in_bytes(),
    "facts": lambda x: (x.aval, x.sharding, x.device, x.devices(), x.committed, x.is_deleted()),
    "add": lambda x: x + x,
    "equal": lambda x: x == 1,
    "sum": lambda x: x.sum(),
    "jit": add,
    "donate": take,
    "delete": lambda x: x.delete(),
    "live_arrays": lambda x: [y.shape for y in jax.live_arrays()],
}
OF_ONE_DEVICE: dict[str, Callable[[Any], Any]] = {
    "index": lambda x: x[0],
    "slice": lambda x: x[1:3],
    "at": lambda x: x.at[0].set(1.0),
    "address": lambda x: x.unsafe_buffer_pointer(),
}
EXPORTED: dict[str, Callable[[Any], Any]] = {"dlpack": np.from_dlpack}

DELETERS: dict[str, Callable[[Any], Any]] = {
    "delete": lambda x: x.delete(),
    "donate": take,
    "delete a piece": lambda x: x.addressable_shards[0].data.delete(),
    "move": lambda x: jax.device_put(x, jax.devices()[1], donate=True),
    "rename": lambda x: jax.device_put(x, x.sharding, donate=True),
}


def tells_of_deletion(error: Exception) -> bool:
    # A jitted function whose call C++ answers has no frame in which to say it in other words.
    of_cpp = isinstance(error, ValueError) and "deleted or donated" in str(error)
    return isinstance(error, jax.errors.DeletedArrayError) or of_cpp


def race(make: Callable[[], Any], read: Callable[[Any], Any], delete: Callable[[Any], Any]) -> Any:
    """The errors of all kinds but that the array is deleted."""
    wrong: list[str] = []

    def attempt(function: Callable[[Any], Any], x: Any) -> bool:
        try:
            function(x)
        except Exception as error:
            if not tells_of_deletion(error):
                wrong.append(f"{type(error).__name__}: {error}".splitlines()[0])
            return False
        return True

    def keep_reading(x: Any, until: threading.Event) -> None:
        while attempt(read, x) and not until.is_set():
            pass

    for _ in range(ROUNDS):
        x, stop = make(), threading.Event()
        threads = [threading.Thread(target=keep_reading, args=(x, stop)) for _ in range(2)]
        for thread in threads:
            thread.start()
        time.sleep(SECONDS * random.random())
        attempt(delete, x)
        stop.set()
        for thread in threads:
            thread.join()
    return sorted(set(wrong))


if __name__ == "__main__":
    jax.config.update("num_cpu_devices", DEVICES)
    maker = sys.argv[1]
    ways = dict(READERS)
    if maker not in ("split", "whole"):
        ways.update(OF_ONE_DEVICE)
        ways.update({} if maker == "narrow" else EXPORTED)
    for read in ways.values():
        read(MAKERS[maker]())
    sys.setswitchinterval(1e-6)
    for name, read in ways.items():
        for way, delete in DELETERS.items():
            if (name, way) == ("add", "donate") and maker not in ("split", "whole"):
                # XLA waits for ever, in JAX too: `x + x` holds x once, and waits for the donation,
                # which waits for that hold.
                continue
            found = race(MAKERS[maker], read, delete)
            sys.stdout.write(json.dumps([f"{name}, {way}", found]) + "\n")
            sys.stdout.flush()
