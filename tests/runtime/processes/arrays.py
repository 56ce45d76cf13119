"""Arrays over the devices of two processes, as each of them sees these."""

from typing import Any

import numpy as np

import minijax as jax
from minijax.experimental import multihost_utils
from minijax.sharding import Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P
from tests.runtime.processes.part import pieces, refusal, take_part

VALUES = np.arange(8, dtype=np.float32)


def facts() -> dict[str, Any]:
    return devices() | made() | read() | placed() | shared()


def devices() -> dict[str, Any]:
    numbers = [[d.id, d.process_index] for d in jax.devices()]
    local = [d.process_index for d in jax.local_devices()]
    counts = [jax.device_count(), jax.local_device_count(), jax.process_count()]
    with jax.cpu_devices(3):
        other = refusal(jax.devices)
    return {
        "process": jax.process_index(),
        "devices": numbers,
        "local": local,
        "counts": counts,
        "other number of devices": other,
        "initialized twice": refusal(jax.distributed.initialize),
    }


def shared() -> dict[str, Any]:
    here = jax.process_index()
    mesh = whole().mesh
    own = {"a": VALUES[:2] + 10 * here, "b": np.int8(here)}
    multihost_utils.sync_global_devices("begin")
    joined = multihost_utils.host_local_array_to_global_array(own["a"], mesh, P("x"))
    part = multihost_utils.global_array_to_host_local_array(joined, mesh, P("x"))
    return {
        "gathered": jax.tree.map(np.ndarray.tolist, multihost_utils.process_allgather(own)),
        "tiled": multihost_utils.process_allgather(own["a"], tiled=True).tolist(),
        "gathered whole": multihost_utils.process_allgather(joined, tiled=True).tolist(),
        "whole stacked": refusal(lambda: multihost_utils.process_allgather(joined)),
        "from the first": multihost_utils.broadcast_one_to_all(own)["a"].tolist(),
        "from the second": multihost_utils.broadcast_one_to_all(own, here == 1)["a"].tolist(),
        "joined": [list(joined.shape), pieces(joined)],
        "part": [part.is_fully_addressable, np.asarray(part).tolist()],
        "equal": refusal(lambda: multihost_utils.assert_equal(VALUES)),
        "not equal": refusal(lambda: multihost_utils.assert_equal(own, "own values")),
    }


def whole() -> NamedSharding:
    return NamedSharding(Mesh(np.array(jax.devices()), "x"), P("x"))


def made() -> dict[str, Any]:
    here = jax.process_index()
    asked = []

    def part(index: Any) -> Any:
        asked.append(index[0].start)
        return VALUES[index]

    from_callback = jax.make_array_from_callback((8,), whole(), part)
    from_local = jax.make_array_from_process_local_data(whole(), VALUES[:4] + 10 * here)
    singles = [jax.device_put(VALUES[:2] + d.id, d) for d in jax.local_devices()]
    from_singles = jax.make_array_from_single_device_arrays((8,), whole(), singles)
    few = refusal(lambda: jax.make_array_from_single_device_arrays((8,), whole(), singles[:1]))
    return {
        "asked": asked,
        "from callback": pieces(from_callback),
        "from local": [list(from_local.shape), pieces(from_local)],
        "from singles": pieces(from_singles),
        "too few": few,
    }


def read() -> dict[str, Any]:
    x = jax.device_put(VALUES, whole())
    same = jax.device_put(VALUES, NamedSharding(whole().mesh, P()))
    far = jax.device_put(VALUES, jax.devices()[0])
    return {
        "addressable": [x.is_fully_addressable, x.is_fully_replicated],
        "numpy": refusal(lambda: np.asarray(x)),
        "device_get": refusal(lambda: jax.device_get({"x": x})),
        "str": str(x),
        "repr": repr(x),
        "global shards": [shard.data is None for shard in x.global_shards],
        "replicated": np.asarray(same).tolist(),
        "far": [far.is_fully_addressable, len(far.addressable_shards)],
        "far numpy": refusal(lambda: np.asarray(far)),
    }


def placed() -> dict[str, Any]:
    x = jax.device_put(VALUES, whole())
    mesh = whole().mesh
    reversed_mesh = Mesh(np.array(jax.devices())[::-1], "x")
    local = NamedSharding(Mesh(np.array(jax.local_devices()), "x"), P("x"))
    different = VALUES + jax.process_index()
    return {
        "put": pieces(x),
        "put local array": pieces(jax.device_put(jax.numpy.asarray(VALUES), whole())),
        "replicate": pieces(jax.device_put(x, NamedSharding(mesh, P()))),
        "reverse": pieces(jax.device_put(x, NamedSharding(reversed_mesh, P("x")))),
        "keys": list(jax.device_put(jax.random.split(jax.random.key(0), 4), whole()).shape),
        "different": refusal(lambda: jax.device_put(different, whole())),
        "to a device": refusal(lambda: jax.device_put(x, jax.local_devices()[0])),
        "to own mesh": refusal(lambda: jax.device_put(x, local)),
        "replicated to a device": np.asarray(
            jax.device_put(jax.device_put(x, NamedSharding(mesh, P())), jax.local_devices()[0])
        ).tolist(),
    }


if __name__ == "__main__":
    take_part(facts)
