"""Programs over the devices of two processes, as each of them sees these."""

from typing import Any

import numpy as np

import minijax as jax
from minijax import lax
from minijax.sharding import Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P
from tests.runtime.processes.part import pieces, refusal, take_part

VALUES = np.arange(8, dtype=np.float32)
RING = [(i, (i + 1) % 4) for i in range(4)]
COLLECTIVES = {
    "psum": lambda x: lax.psum(x, "x"),
    "pmax": lambda x: lax.pmax(x, "x"),
    "all_gather": lambda x: lax.all_gather(x, "x", tiled=True),
    "psum_scatter": lambda x: lax.psum_scatter(x.repeat(2), "x", tiled=True),
    "all_to_all": lambda x: lax.all_to_all(x.repeat(2), "x", 0, 0, tiled=True),
    "ppermute": lambda x: lax.ppermute(x, "x", RING),
    "axis_index": lambda x: x + 10 * lax.axis_index("x"),
    "groups": lambda x: lax.psum(x, "x", axis_index_groups=[[0, 2], [1, 3]]),
}


def facts() -> dict[str, Any]:
    mesh = Mesh(np.array(jax.devices()), "x")
    split = NamedSharding(mesh, P("x"))
    x = jax.device_put(VALUES, split)
    return partitioned(x, split) | per_device(x, mesh) | single_operations(x) | effects(x, mesh)


def partitioned(x: jax.Array, split: NamedSharding) -> dict[str, Any]:
    gradient = jax.jit(jax.grad(lambda x: (x * x).sum()))
    sent = jax.explain.collectives(lambda x: x.sum())(x)
    return {
        "sum": float(jax.jit(lambda x: x.sum())(x)),
        "host operand": pieces(jax.jit(lambda x, y: x + y)(x, VALUES)),
        "gradient": pieces(gradient(x)),
        "host value to be split": refusal(lambda: jax.jit(lambda x: x, in_shardings=split)(VALUES)),
        "collectives": [each.kind for each in sent],
        "compiled": pieces(jax.jit(lambda x: x + 1).lower(x).compile()(x)),
    }


def per_device(x: jax.Array, mesh: Mesh) -> dict[str, Any]:
    def mapped(function: Any) -> Any:
        return jax.jit(
            jax.shard_map(function, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
        )

    around = mapped(lambda x: lax.ppermute(x, "x", RING))
    minus_mean = mapped(lambda x: x - lax.pmean(x, "x"))
    total = jax.jit(lambda x: x.sum())
    many, sums = x, []
    for _ in range(40):
        many = minus_mean(around(many))
        sums.append(total(many))
    collectives = {name: pieces(mapped(function)(x)) for name, function in COLLECTIVES.items()}
    return {
        "results of collectives": collectives,
        "many": pieces(many),
        "sums": sorted({float(value) for value in sums}),
    }


def single_operations(x: jax.Array) -> dict[str, Any]:
    refused = refusal(lambda: lax.add(x, x))
    with jax.config.state("spmd_mode")("allow_all"):
        allowed = pieces(lax.add(x, x))
    return {"operation": refused, "allowed operation": allowed}


def effects(x: jax.Array, mesh: Mesh) -> dict[str, Any]:
    seen: list[Any] = []

    def function(x: jax.Array) -> jax.Array:
        jax.debug.callback(lambda x: seen.append(np.asarray(x).tolist()), x)
        return x

    jax.jit(jax.shard_map(function, mesh=mesh, in_specs=P("x"), out_specs=P("x")))(x)
    jax.effects_barrier()
    pieces_seen, seen[:] = sorted(seen), []
    jax.jit(function)(x)
    jax.effects_barrier()
    return {"pieces seen": pieces_seen, "whole seen": list(seen)}


if __name__ == "__main__":
    take_part(facts)
