"""Attention over a sequence that no device holds: keys and values travel round a ring.

Each device keeps the queries of its part of a text. Blocks of keys and values pass by, one after
the other, and a softmax is continued with each: the weights so far are scaled down when a larger
score turns up. No device ever sees more than two blocks, nor a matrix of all scores. The gradient
travels the other way round.

H. Liu, M. Zaharia and P. Abbeel, "Ring attention with blockwise transformers for near-infinite
context", 2023.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import minijax as jax
import minijax.numpy as jnp
import placements
from minijax import lax
from minijax.sharding import NamedSharding
from minijax.sharding import PartitionSpec as P
from terminal import Panel, heading, paragraph, show

DEVICES = 8
LENGTH = 512
HEADS = 4
WIDTH = 16


class Result(NamedTuple):
    """What attention gives, and its gradient by queries, keys and values: ring and one device."""

    ring: tuple[np.ndarray, ...]
    alone: tuple[np.ndarray, ...]


class Softmax(NamedTuple):
    """A softmax under way: highest score, sum of weights, and weighted sum of values so far.

    The first two are [head, query], the last is [head, query, feature].
    """

    highest: jax.Array
    weight: jax.Array
    total: jax.Array


def main() -> Result:
    """Attends on the ring and on one device, there and back."""
    run, args = workload()
    ring = jax.tree.leaves(jax.device_get(run(*args)))
    alone = jax.tree.leaves(jax.jit(with_gradient(attention))(*map(np.asarray, args)))
    for found, expected in zip(ring, alone, strict=True):
        np.testing.assert_allclose(found, expected, atol=2e-5)

    # Keys and values go round once; once more, for the gradient, with what is owed to them.
    sent = jax.testing.assert_collectives(run, exactly=True, collective_permute=4)(*args)
    heading(
        "Attention on a ring",
        f"""A text of {LENGTH} positions on {DEVICES} devices; none sees the future. The program
        gives what attention gives, and its gradient.""",
    )
    show(Panel("what each device sends when a block moves on", placements.sent(sent)))
    paragraph(
        f"""A device computes {LENGTH // DEVICES} x {LENGTH // DEVICES} scores at a time, and one
        device alone {LENGTH} x {LENGTH}. The results agree."""
    )
    return Result(tuple(ring), tuple(map(np.asarray, alone)))


def workload() -> tuple[Callable[..., object], tuple[jax.Array, ...]]:
    """Attention and its gradient on all devices; queries, keys and values [position, head, …]."""
    mesh = jax.make_mesh((DEVICES,), ("ring",))
    rng = np.random.default_rng(0)
    shape = (LENGTH, HEADS, WIDTH)
    values = [rng.normal(size=shape).astype(np.float32) for _ in range(3)]
    ring = jax.shard_map(ring_attention, mesh=mesh, in_specs=P("ring"), out_specs=P("ring"))
    placed = [jax.device_put(each, NamedSharding(mesh, P("ring"))) for each in values]
    return jax.jit(with_gradient(ring)), tuple(placed)


def with_gradient(attend: Callable[..., jax.Array]) -> Callable[..., object]:
    """What `attend` gives, and the gradient of the sum of its squares."""

    def run(*args: jax.Array) -> object:
        out, back = jax.vjp(attend, *args)
        return out, back(2 * out)

    return run


def ring_attention(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
    """Causal attention from one block of queries to the keys of all devices."""
    n, here = lax.axis_size("ring"), lax.axis_index("ring")
    onward = [(i, (i + 1) % n) for i in range(n)]
    positions = jnp.arange(query.shape[0])

    # Scores are computed again on the way back, rather than kept for all blocks.
    @jax.checkpoint
    def visit(carry: tuple[Softmax, jax.Array, jax.Array], step: jax.Array) -> tuple:
        softmax, key, value = carry
        ahead = ((here - step) % n - here) * len(positions)
        seen = positions + ahead <= positions[:, None]
        softmax = continued(softmax, query, key, value, seen)
        return (softmax, *lax.ppermute((key, value), "ring", onward)), None

    rows = (query.shape[1], query.shape[0])
    start = Softmax(jnp.full(rows, -jnp.inf), jnp.zeros(rows), jnp.zeros((*rows, value.shape[2])))
    start = lax.pcast(start, "ring", to="varying")
    (softmax, _, _), _ = lax.scan(visit, (start, key, value), jnp.arange(n))
    return (softmax.total / softmax.weight[..., None]).transpose(1, 0, 2)


def continued(
    softmax: Softmax, query: jax.Array, key: jax.Array, value: jax.Array, seen: jax.Array
) -> Softmax:
    """The softmax, with one more block of keys and values."""
    scores = jnp.where(seen, scores_of(query, key), -jnp.inf)
    highest = jnp.maximum(softmax.highest, lax.stop_gradient(scores.max(axis=-1)))
    weights = jnp.exp(scores - highest[..., None])
    shrink = jnp.exp(softmax.highest - highest)
    return Softmax(
        highest,
        softmax.weight * shrink + weights.sum(axis=-1),
        softmax.total * shrink[..., None] + jnp.einsum("hqk,khd->hqd", weights, value),
    )


def attention(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
    """The same for whole texts, on one device."""
    seen = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
    weights = jax.nn.softmax(jnp.where(seen, scores_of(query, key), -jnp.inf))
    return jnp.einsum("hqk,khd->qhd", weights, value)


def scores_of(query: jax.Array, key: jax.Array) -> jax.Array:
    """Scores [head, query, key]."""
    return jnp.einsum("qhd,khd->hqk", query, key) / np.float32(np.sqrt(WIDTH))


if __name__ == "__main__":
    jax.config.update("jax_num_cpu_devices", DEVICES)
    main()
