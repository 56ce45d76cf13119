"""The digits of `demo.py`, learnt as programs of older courses do: with `stax` and `optimizers`.

A layer is a pair of functions, one that makes its parameters and one that applies it; an optimizer
is three, and its state a tree. The network has a branch: beside two convolutions goes the image as
it is, made smaller by averages.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import digits
import minijax as jax
import minijax.numpy as jnp
from digits import Examples
from minijax.example_libraries import optimizers, stax
from terminal import Progress, heading, say

EPOCHS = 12
BATCH = 64


class Result(NamedTuple):
    """The share of held-out digits that are read rightly, and the number of weights."""

    accuracy: float
    weights: int


def block(features: int) -> stax.Layer:
    """A convolution that halves the image, with what comes before added to it."""
    way = stax.serial(
        stax.Conv(features, (3, 3), strides=(2, 2), padding="SAME"), stax.BatchNorm(), stax.Relu
    )
    past = stax.serial(stax.AvgPool((2, 2), strides=(2, 2)), stax.Conv(features, (1, 1)))
    return stax.serial(stax.FanOut(2), stax.parallel(way, past), stax.FanInSum)


init_network, apply_network = stax.serial(
    block(32), block(64), stax.Flatten, stax.Dense(64), stax.Gelu, stax.Dense(10), stax.LogSoftmax
)
init_state, update_state, get_params = optimizers.adam(
    optimizers.polynomial_decay(3e-3, EPOCHS * 22, 1e-4)
)


def main() -> Result:
    """Learns to read digits."""
    heading("Layers and optimizers", "A network of pairs of functions learns to read digits.")
    train, test = digits.load()
    shape, params = init_network(jax.random.key(0), (-1, *train.images.shape[1:]))
    assert shape == (-1, digits.CLASSES)

    state = init_state(params)
    progress = Progress(EPOCHS, "training")
    for i, batch in enumerate(digits.batches(train, BATCH, EPOCHS)):
        state, value = step(i, state, batch)
        if (i + 1) % (len(train.labels) // BATCH) == 0:
            progress.advance(f"loss {float(value):.4f}")

    found = jnp.argmax(apply_network(get_params(state), test.images), axis=-1)
    accuracy = float(jnp.mean(found == test.labels))
    weights = sum(leaf.size for leaf in jax.tree.leaves(params))
    say(f"  {100 * accuracy:.1f} % of held-out digits are read rightly, by {weights:,} weights\n")
    return Result(accuracy, weights)


def loss(params: Any, batch: Examples) -> jax.Array:
    """Mean cross-entropy between the scores and the labels."""
    scores = apply_network(params, batch.images)
    return -jnp.mean(jnp.take_along_axis(scores, batch.labels[:, None], axis=-1))


@jax.jit
def step(i: int, state: Any, batch: Examples) -> tuple[Any, jax.Array]:
    """The state after one step of Adam, and the loss before."""
    value, gradients = jax.value_and_grad(loss)(get_params(state), batch)
    return update_state(i, optimizers.clip_grads(gradients, 5.0), state), value


if __name__ == "__main__":
    main()
