"""Arrays deleted and donated while NumPy or another array has their memory: it may die of it.

Each case returns what the other hand holds, and the arrays that were deleted or donated.
"""

import ctypes
import gc
import json
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
from minijax import numpy as jnp
from minijax.sharding import Mesh, NamedSharding, SingleDeviceSharding
from minijax.sharding import PartitionSpec as P

DEVICES = 4
CASES: dict[str, Callable[[], tuple[Any, ...]]] = {}
take = jax.jit(lambda x: x + 1, donate_argnums=0)
add = jax.jit(lambda x: x + 1)


def case(function: Callable[[], tuple[Any, ...]]) -> Callable[[], tuple[Any, ...]]:
    CASES[function.__name__] = function
    return function


def one() -> Any:
    return add(jnp.arange(1024.0) - 1)


def split() -> Any:
    rows = NamedSharding(Mesh(np.array(jax.devices()), ("x",)), P("x"))
    return jax.device_put(jnp.tile(jnp.arange(1024.0), DEVICES), rows)


def of_pieces() -> tuple[Any, list[Any]]:
    pieces = [jax.device_put(jnp.arange(1024.0), d) for d in jax.devices()]
    rows = NamedSharding(Mesh(np.array(jax.devices()), ("x",)), P("x"))
    return jax.make_array_from_single_device_arrays((4096,), rows, pieces), pieces


@case
def exported_and_deleted() -> tuple[Any, ...]:
    x = one()
    held = np.from_dlpack(x)
    x.delete()
    return held, x


@case
def exported_twice_and_deleted() -> tuple[Any, ...]:
    x = one()
    np.from_dlpack(x)
    held = np.from_dlpack(x)
    x.delete()
    return held, x


@case
def exported_in_another_thread_and_deleted() -> tuple[Any, ...]:
    x, held = one(), []
    thread = threading.Thread(target=lambda: held.append(np.from_dlpack(x)))
    thread.start()
    thread.join()
    x.delete()
    return held[0], x


@case
def capsule_that_nobody_takes() -> tuple[Any, ...]:
    x = one()
    capsule = x.__dlpack__()
    x.delete()
    del capsule
    gc.collect()
    return one(), x


@case
def capsule_taken_after_deletion() -> tuple[Any, ...]:
    x = one()
    capsule = x.__dlpack__()
    x.delete()

    class Exporter:
        def __dlpack__(self, **_: Any) -> Any:
            return capsule

        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

    return np.from_dlpack(Exporter()), x


@case
def imported_again_and_deleted() -> tuple[Any, ...]:
    x = one()
    held = jax.dlpack.from_dlpack(x)
    x.delete()
    return held, x


@case
def viewed_and_deleted() -> tuple[Any, ...]:
    x = one()
    held = np.asarray(x)
    x.delete()
    return held, x


@case
def exported_and_found_among_live_arrays() -> tuple[Any, ...]:
    x = one()
    held = np.from_dlpack(x)
    for other in jax.live_arrays():
        other.delete()
    return held, x


@case
def exported_and_moved() -> tuple[Any, ...]:
    x = one()
    held = np.from_dlpack(x)
    jax.device_put(x, jax.devices()[1], donate=True)
    return held, x


@case
def exported_and_given_to_itself() -> tuple[Any, ...]:
    x = one()
    held = np.from_dlpack(x)
    y = jax.device_put(x, x.sharding, donate=True)
    y.delete()
    return held, x, y


@case
def integers_exported_and_deleted() -> tuple[Any, ...]:
    keys = jax.random.wrap_key_data(jnp.tile(jnp.arange(1024, dtype=jnp.uint32)[:, None], 2))
    data = jax.random.key_data(keys)
    held = np.from_dlpack(data)[:, 0]
    keys.delete()
    data.delete()
    return held, keys, data


@case
def exported_under_another_name() -> tuple[Any, ...]:
    x = one()
    y = jax.device_put(x, SingleDeviceSharding(jax.devices()[0]))
    held = np.from_dlpack(y)
    x.delete()
    y.delete()
    return held, x, y


@case
def piece_exported_and_whole_deleted() -> tuple[Any, ...]:
    x = split()
    piece = x.addressable_shards[1].data
    held = np.from_dlpack(piece)
    x.delete()
    return held, x, piece


@case
def piece_exported_and_deleted() -> tuple[Any, ...]:
    x = split()
    piece = x.addressable_shards[1].data
    held = np.from_dlpack(piece)
    piece.delete()
    return held, x, piece


@case
def piece_viewed_and_whole_deleted() -> tuple[Any, ...]:
    x = split()
    held = np.asarray(x.addressable_shards[1].data)
    x.delete()
    return held, x


@case
def piece_exported_and_whole_donated() -> tuple[Any, ...]:
    x = split()
    held = np.from_dlpack(x.addressable_shards[1].data)
    take(x)
    return held, x


@case
def piece_exported_and_donated() -> tuple[Any, ...]:
    x = split()
    piece = x.addressable_shards[1].data
    held = np.from_dlpack(piece)
    take(piece)
    return held, piece


@case
def part_exported_and_whole_deleted() -> tuple[Any, ...]:
    x, pieces = of_pieces()
    held = np.from_dlpack(pieces[2])
    x.delete()
    return held, x, pieces[2]


@case
def part_exported_and_whole_donated() -> tuple[Any, ...]:
    x, pieces = of_pieces()
    held = np.from_dlpack(pieces[2])
    take(x)
    return held, x


@case
def memory_of_numpy_imported_and_deleted() -> tuple[Any, ...]:
    held = aligned()
    x = jax.dlpack.from_dlpack(held)
    x.delete()
    return held, x


@case
def memory_of_numpy_imported_and_donated() -> tuple[Any, ...]:
    held = aligned()
    x = jax.dlpack.from_dlpack(held)
    take(x).block_until_ready()
    return held, x


def aligned() -> Any:
    memory = np.zeros(1024 + 16, np.float32)
    first = -memory.ctypes.data // ctypes.sizeof(ctypes.c_float) % 16
    memory[first : first + 1024] = np.arange(1024)
    return memory[first : first + 1024]


def outcome(function: Callable[[], tuple[Any, ...]]) -> list[Any]:
    """Whether the other hand holds what it held, and whether all that was given away is refused."""
    held, *gone = function()
    # Memory that was freed is given to the next that ask.
    others = [add(jnp.zeros(1024) - i).block_until_ready() for i in range(8)]
    is_whole = np.array_equal(np.asarray(held), np.arange(1024))
    del others
    return [is_whole, [refusal(x) for x in gone]]


def refusal(x: Any) -> str:
    try:
        x.block_until_ready()
    except Exception as error:
        return type(error).__name__
    return "none"


if __name__ == "__main__":
    with jax.cpu_devices(DEVICES):
        for _ in range(3):
            take(one())
            take(split())
        for name in sys.argv[1:] or CASES:
            sys.stdout.write(json.dumps([name, outcome(CASES[name])]) + "\n")
            sys.stdout.flush()
