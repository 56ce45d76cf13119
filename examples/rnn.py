"""A recurrent network learns to add binary numbers, and adds longer ones than it has ever seen.

The network reads two numbers bit by bit, the lowest first, and writes their sum. What it has to
invent is the carry. The recurrence over bits is a scan, and so is the training over batches.
"""

from __future__ import annotations

from typing import NamedTuple

import minijax as jax
import minijax.numpy as jnp
from adam import AdamState, adam_init, adam_update
from terminal import Progress, heading, paragraph

HIDDEN = 16
TRAINED_BITS = 10
TESTED_BITS = 30
BATCH = 64
ROUNDS = 10
STEPS_PER_ROUND = 100


class Network(NamedTuple):
    """What the hidden state takes from the two bits and from itself, and how it is read."""

    from_bits: jax.Array
    from_hidden: jax.Array
    bias: jax.Array
    to_output: jax.Array
    output_bias: jax.Array


class Result(NamedTuple):
    """The network, and the share of sums that it gets right in every bit."""

    network: Network
    correct: float


def main() -> Result:
    """Trains on short numbers, tests on long ones."""
    heading(
        "A recurrent network",
        f"""It is trained on numbers of {TRAINED_BITS} bits. Then it adds numbers of {TESTED_BITS}
        bits, up to {2**TESTED_BITS - 1:,}.""",
    )
    network = learn()
    a, b = random_numbers(jax.random.key(1), 1000, TESTED_BITS)
    sums = add(network, a, b, TESTED_BITS)
    correct = float(jnp.mean(sums == a + b))
    paragraph(f"{correct:.1%} of 1,000 sums are right in every bit; for example:")
    paragraph(f"{int(a[0]):,} + {int(b[0]):,} = {int(sums[0]):,}")
    return Result(network, correct)


def init_network(key: jax.Array) -> Network:
    """Random weights, scaled so that signals keep their size."""
    keys = jax.random.split(key, 3)
    return Network(
        from_bits=jax.random.normal(keys[0], (2, HIDDEN)),
        from_hidden=jax.random.normal(keys[1], (HIDDEN, HIDDEN)) / HIDDEN**0.5,
        bias=jnp.zeros(HIDDEN),
        to_output=jax.random.normal(keys[2], (HIDDEN,)) / HIDDEN**0.5,
        output_bias=jnp.zeros(()),
    )


def logits(network: Network, bits: jax.Array) -> jax.Array:
    """From bits [time, 2] to a score [time] for each bit of the sum to be one."""

    def step(hidden: jax.Array, pair: jax.Array) -> tuple[jax.Array, jax.Array]:
        hidden = jnp.tanh(pair @ network.from_bits + hidden @ network.from_hidden + network.bias)
        return hidden, hidden @ network.to_output + network.output_bias

    return jax.lax.scan(step, jnp.zeros(HIDDEN), bits)[1]


def bits_of(number: jax.Array, count: int) -> jax.Array:
    """The lowest bits of a number, the lowest first, as 0.0 and 1.0."""
    return ((number >> jnp.arange(count)) & 1).astype(jnp.float32)


def random_numbers(key: jax.Array, count: int, bits: int) -> jax.Array:
    """Two rows of numbers of some length."""
    return jax.random.randint(key, (2, count), 0, 2**bits)


def scores(network: Network, a: jax.Array, b: jax.Array, bits: int) -> jax.Array:
    """The scores of one sum's bits: one more than the numbers have."""
    pairs = jnp.stack([bits_of(a, bits + 1), bits_of(b, bits + 1)], axis=-1)
    return logits(network, pairs)


def loss(network: Network, a: jax.Array, b: jax.Array) -> jax.Array:
    """Mean cross-entropy of the bits of one sum."""
    scored = scores(network, a, b, TRAINED_BITS)
    signs = 2 * bits_of(a + b, TRAINED_BITS + 1) - 1
    return jnp.mean(jax.nn.softplus(-signs * scored))


@jax.jit
def train_round(
    network: Network, state: AdamState, keys: jax.Array
) -> tuple[Network, AdamState, jax.Array]:
    """One step for each key; the network, the optimizer's state, and the mean loss."""

    def step(carry: tuple, key: jax.Array) -> tuple[tuple, jax.Array]:
        network, state = carry
        a, b = random_numbers(key, BATCH, TRAINED_BITS)

        def batch_loss(network: Network) -> jax.Array:
            return jnp.mean(jax.vmap(loss, in_axes=(None, 0, 0))(network, a, b))

        value, grads = jax.value_and_grad(batch_loss)(network)
        return adam_update(network, grads, state, 0.01), value

    (network, state), values = jax.lax.scan(step, (network, state), keys)
    return network, state, jnp.mean(values)


def learn() -> Network:
    """The network after all rounds."""
    network = init_network(jax.random.key(0))
    state = adam_init(network)
    progress = Progress(ROUNDS, "training")
    for key in jax.random.split(jax.random.key(2), ROUNDS):
        keys = jax.random.split(key, STEPS_PER_ROUND)
        network, state, value = train_round(network, state, keys)
        progress.advance(f"loss {float(value):.4f}")
    return network


def add(network: Network, a: jax.Array, b: jax.Array, bits: int) -> jax.Array:
    """The network's sums of two rows of numbers."""
    scored = jax.vmap(lambda a, b: scores(network, a, b, bits))(a, b)
    return jnp.sum((scored > 0) << jnp.arange(bits + 1), axis=-1)


if __name__ == "__main__":
    main()
