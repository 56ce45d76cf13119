"""A sorting network made smooth: learning what to sort by from sorted lists alone.

A sorting network compares fixed pairs, layer after layer. Let each pair swap by a fraction, a
sigmoid of the difference, and the network returns a soft permutation with a gradient. A score of
items is learnt through it: what is shown are lists and their right order, never a score.

K. E. Batcher, "Sorting networks and their applications", 1968; F. Petersen, C. Borgelt, H. Kuehne
and O. Deussen, "Differentiable sorting networks for scalable sorting and ranking supervision",
2021.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from adam import AdamState, adam_init, adam_update
from terminal import Progress, heading, paragraph

ITEMS = 8
FEATURES = 4
HIDDEN = 32
LISTS = 64
TEMPERATURE = 0.3
ROUNDS = 10
STEPS_PER_ROUND = 100


class Network(NamedTuple):
    """Two dense layers that give an item its score."""

    up: jax.Array
    bias: jax.Array
    down: jax.Array


class Result(NamedTuple):
    """The share of new lists sorted without a mistake, and that of neighbours in right order."""

    lists: float
    pairs: float


def main() -> Result:
    """Learns to sort points by their distance from a secret place."""
    heading(
        "A smooth sorting network",
        f"""{ITEMS} items go through {len(batcher(ITEMS))} layers of soft comparisons. The right
        order of random lists is shown; what it follows is a secret: the distance from a point.""",
    )
    network = learn()
    items = random_items(jax.random.key(7), 1000)
    order = jnp.argsort(jax.vmap(lambda items: scores(network, items))(items), axis=-1)
    secrets = jnp.take_along_axis(secret(items), order, axis=-1)
    right = secrets[:, :-1] < secrets[:, 1:]
    result = Result(float(jnp.mean(jnp.all(right, axis=-1))), float(jnp.mean(right)))
    paragraph(
        f"""Of 1,000 new lists {result.lists:.1%} are sorted without a mistake, {result.pairs:.1%}
        of all neighbours stand in the right order. By chance one list in 40,320 would be sorted."""
    )
    return result


def batcher(count: int) -> np.ndarray:
    """Batcher's network: for each layer and place, the place it is compared with, or itself.

    `count` is a power of two.
    """
    layers = []
    for block in (2**n for n in range(count.bit_length() - 1)):
        reach = block
        while reach:
            partners = np.arange(count)
            for i in range(reach % block, count - reach):
                pairs = (i - reach % block) // reach % 2 == 0
                if pairs and i // (2 * block) == (i + reach) // (2 * block):
                    partners[[i, i + reach]] = i + reach, i
            layers.append(partners)
            reach //= 2
    return np.stack(layers)


def soft_sort(values: jax.Array, temperature: float) -> tuple[jax.Array, jax.Array]:
    """The values sorted, softly, and the soft permutation [place, item] that sorts them."""
    places = jnp.arange(len(values))

    def layer(carry: tuple, partners: jax.Array) -> tuple[tuple, None]:
        values, permutation = carry
        # The place on the left shall get the smaller value, the one on the right the larger.
        rise = jnp.sign(partners - places) * (values[partners] - values)
        stay = jnp.where(partners == places, 1.0, jax.nn.sigmoid(rise / temperature))
        values = stay * values + (1 - stay) * values[partners]
        rows = stay[:, None]
        return (values, rows * permutation + (1 - rows) * permutation[partners]), None

    start = (values, jnp.eye(len(values)))
    return jax.lax.scan(layer, start, jnp.asarray(batcher(len(values))))[0]


def random_items(key: jax.Array, lists: int) -> jax.Array:
    """Lists [lists, items, features] of random items."""
    return jax.random.normal(key, (lists, ITEMS, FEATURES))


def secret(items: jax.Array) -> jax.Array:
    """What the lists are sorted by."""
    return jnp.sqrt(jnp.sum((items - jnp.array([1.0, -0.5, 0.0, 0.5])) ** 2, axis=-1))


def scores(network: Network, items: jax.Array) -> jax.Array:
    """The network's score of each item."""
    return jnp.tanh(items @ network.up + network.bias) @ network.down


def loss(network: Network, items: jax.Array, order: jax.Array) -> jax.Array:
    """Cross-entropy between the soft permutation and the right order of one list."""
    _, permutation = soft_sort(scores(network, items), TEMPERATURE)
    chosen = jnp.take_along_axis(permutation, order[:, None], axis=-1)
    return -jnp.mean(jnp.log(chosen + 1e-6))


@jax.jit
def train_round(
    network: Network, state: AdamState, key: jax.Array
) -> tuple[Network, AdamState, jax.Array]:
    """The network and the optimizer's state after some steps, and the mean loss."""

    def step(carry: tuple, key: jax.Array) -> tuple[tuple, jax.Array]:
        network, state = carry
        items = random_items(key, LISTS)
        orders = jnp.argsort(secret(items), axis=-1)

        def batch_loss(network: Network) -> jax.Array:
            return jnp.mean(jax.vmap(loss, in_axes=(None, 0, 0))(network, items, orders))

        value, grads = jax.value_and_grad(batch_loss)(network)
        return adam_update(network, grads, state, 0.01), value

    keys = jax.random.split(key, STEPS_PER_ROUND)
    (network, state), values = jax.lax.scan(step, (network, state), keys)
    return network, state, jnp.mean(values)


def learn() -> Network:
    """The network after all rounds."""
    keys = jax.random.split(jax.random.key(0))
    network = Network(
        up=jax.random.normal(keys[0], (FEATURES, HIDDEN)) / FEATURES**0.5,
        bias=jnp.zeros(HIDDEN),
        down=jax.random.normal(keys[1], (HIDDEN,)) / HIDDEN**0.5,
    )
    state = adam_init(network)
    progress = Progress(ROUNDS, "training")
    for key in jax.random.split(jax.random.key(1), ROUNDS):
        network, state, value = train_round(network, state, key)
        progress.advance(f"loss {float(value):.4f}")
    return network


if __name__ == "__main__":
    main()
