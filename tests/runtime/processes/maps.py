"""`pmap` over the devices of two processes, as each of them sees it."""

from typing import Any

import numpy as np

import minijax as jax
from minijax import lax
from minijax.core import config
from tests.runtime.processes.part import pieces, refusal, take_part


def facts() -> dict[str, Any]:
    x = np.arange(2, dtype=np.float32) + 10 * jax.process_index()
    return slices(x) | devices(x) | sizes(x) | refused(x)


def total(x: Any) -> Any:
    return lax.psum(x, "i")


def slices(x: np.ndarray[Any, Any]) -> dict[str, Any]:
    result = jax.pmap(lambda x: x + total(x), "i")(x)
    stacked = np.stack([x, x, x])
    columns = jax.pmap(lambda x: 2 * x, in_axes=1, out_axes=1)(stacked)
    around = jax.pmap(lambda x: lax.ppermute(x, "i", [(i, (i + 1) % 4) for i in range(4)]), "i")
    given = jax.pmap(lambda x: x + 1, donate_argnums=0)
    before = given(x)
    after = given(before)
    gradient = jax.grad(lambda x: jax.pmap(lambda x: total(x) ** 2, "i")(x).sum())
    jax.config.update("disable_jit", True)
    eager = jax.pmap(total, "i")(x).tolist()
    jax.config.update("disable_jit", False)
    with config.pmap_results_unstacked(True):
        gathered = pieces(jax.pmap(lambda x: lax.all_gather(x, "i"), "i")(x))
    return {
        "result": [result.is_fully_addressable, result.tolist()],
        "homes": sorted(d.process_index for d in result.devices()),
        "again": jax.pmap(total, "i")(result).tolist(),
        "afterwards": float((result + 1).sum()),
        "columns": [list(columns.shape), columns.tolist()],
        "one copy": float(jax.pmap(total, "i", out_axes=None)(x)),
        "shared": jax.pmap(lambda x, y: x + y, in_axes=(0, None))(x, 0.5).tolist(),
        "around": around(x).tolist(),
        "index": jax.pmap(lambda x: lax.axis_index("i"), "i")(x).tolist(),
        "gathered": gathered,
        "donated": [before.is_deleted(), after.tolist()],
        "gradient": gradient(x).tolist(),
        "nested": jax.pmap(jax.pmap(lambda x: lax.psum(x, ("i", "j")), "j"), "i")(x[None]).tolist(),
        "under disable_jit": eager,
    }


def devices(x: np.ndarray[Any, Any]) -> dict[str, Any]:
    def index(devices: Any) -> Any:
        return jax.pmap(lambda x: lax.axis_index("i"), "i", devices=devices)

    everyone = jax.devices()
    others = [d for d in everyone if d not in jax.local_devices()]
    in_turn = [everyone[i] for i in (0, 2, 1, 3)]
    return {
        "backwards": index(everyone[::-1])(x).tolist(),
        "in turn": index(in_turn)(x).tolist(),
        "own": index(jax.local_devices())(x).tolist(),
        "one of each": index(everyone[::2])(x[:1]).tolist(),
        "of others": refusal(lambda: index(others)),
        "with a map inside": refusal(
            lambda: jax.pmap(jax.pmap(total, "i"), devices=everyone)(x[:, None])
        ),
    }


def sizes(x: np.ndarray[Any, Any]) -> dict[str, Any]:
    return {
        "size of all": jax.pmap(total, "i", axis_size=4)(x).tolist(),
        "size of own": jax.pmap(total, "i", axis_size=2)(x).tolist(),
        "wrong size": refusal(lambda: jax.pmap(total, "i", axis_size=6)(x)),
        "too few": refusal(lambda: jax.pmap(total, "i")(x[:1])),
        "too few inside": refusal(lambda: jax.pmap(jax.pmap(total, "i"))(np.ones((2, 2)))),
    }


def refused(x: np.ndarray[Any, Any]) -> dict[str, Any]:
    ones = np.ones((len(x), 4), np.int32)

    def ragged(out: Any, size: Any) -> Any:
        return lax.ragged_all_to_all(out, out, size, size, size, size, axis_name="i")

    return {
        "in jit": refusal(lambda: jax.jit(jax.pmap(lambda x: x))(x)),
        "not on the list": refusal(lambda: jax.pmap(ragged, "i")(ones, ones)),
    }


if __name__ == "__main__":
    take_part(facts)
