"""Per-example gradient clipping: learning although some of the data are nonsense.

`vmap(grad(loss))` gives the gradient of every example of a batch at once. Shortening each of them
to a given length before they are averaged bounds what one example can do. It is the core of
differentially private training, and here it protects the network from a broken camera: three images
in a hundred are a thousand times too bright and wrongly labelled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import digits
import minijax as jax
import minijax.numpy as jnp
from terminal import Progress, heading, paragraph, say

LIMIT = 1.0
RATE = 0.5
BATCH = 64
EPOCHS = 40


class Network(NamedTuple):
    """One hidden layer."""

    hidden: jax.Array
    bias1: jax.Array
    dense: jax.Array
    bias2: jax.Array


class Result(NamedTuple):
    """Held-out accuracy with plain gradients and with clipped ones."""

    plain: float
    clipped: float


def main() -> Result:
    """Trains the same network on the same spoilt data, with and without clipping."""
    train, held_out = digits.load()
    train = spoil(train)
    heading(
        "Per-example gradient clipping",
        """Three training images in a hundred are a thousand times too bright and carry a wrong
        label. The same network learns from all of them, first with plain gradients, then with each
        example's gradient clipped.""",
    )
    norms = np.asarray(gradient_norms(per_example_gradients(init_network(), first_batch(train))))
    paragraph(
        f"""Length of the gradients in the first batch: {np.median(norms):.1f} is the median,
        {norms.max():,.0f} the largest."""
    )
    plain = accuracy(learn(train, limit=np.inf, label="plain  "), held_out)
    clipped = accuracy(learn(train, limit=LIMIT, label="clipped"), held_out)
    say(f"  held-out accuracy, plain gradients    {plain:6.1%}")
    say(f"  held-out accuracy, clipped gradients  {clipped:6.1%}\n")
    return Result(plain, clipped)


def spoil(examples: digits.Examples, share: float = 0.03) -> digits.Examples:
    """Makes a share of the images far too bright and labels them at random."""
    rng = np.random.default_rng(0)
    broken = rng.random(len(examples.labels)) < share
    images = np.where(broken[:, None, None, None], 1000 * examples.images, examples.images)
    labels = np.where(broken, rng.integers(0, digits.CLASSES, len(broken)), examples.labels)
    return digits.Examples(images.astype(np.float32), labels.astype(np.int32))


def first_batch(examples: digits.Examples) -> digits.Examples:
    """The batch that training starts with."""
    return next(digits.batches(examples, BATCH, epochs=1))


def init_network() -> Network:
    """Random weights from a fixed seed."""
    keys = jax.random.split(jax.random.key(0), 2)
    return Network(
        hidden=jax.random.normal(keys[0], (64, 64)) / 8,
        bias1=jnp.zeros(64),
        dense=jax.random.normal(keys[1], (64, digits.CLASSES)) / 8,
        bias2=jnp.zeros(digits.CLASSES),
    )


def logits(network: Network, image: jax.Array) -> jax.Array:
    """The scores of one image; there is no batch in sight, `vmap` brings it."""
    hidden = jax.nn.relu(image.ravel() @ network.hidden + network.bias1)
    return hidden @ network.dense + network.bias2


def loss(network: Network, image: jax.Array, label: jax.Array) -> jax.Array:
    """Cross-entropy of one example."""
    return -jax.nn.log_softmax(logits(network, image))[label]


def per_example_gradients(network: Network, batch: digits.Examples) -> Network:
    """One gradient per example: a network whose leaves have a leading batch axis."""
    return jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(network, *batch)


def gradient_norms(gradients: Network) -> jax.Array:
    """The length of each example's gradient, over all parameters together."""
    squares = [jnp.sum(leaf.reshape(leaf.shape[0], -1) ** 2, axis=1) for leaf in gradients]
    return jnp.sqrt(sum(squares))


def clipped_mean(gradients: Network, limit: jax.Array) -> Network:
    """The mean of the gradients, each shortened to `limit` where it is longer."""
    norms = gradient_norms(gradients)
    scales = jnp.minimum(1, limit / norms) / len(norms)
    return jax.tree.map(lambda leaf: jnp.tensordot(scales, leaf, axes=1), gradients)


@jax.jit
def train_step(network: Network, batch: digits.Examples, limit: jax.Array) -> Network:
    """One step of gradient descent with clipped gradients."""
    mean = clipped_mean(per_example_gradients(network, batch), limit)
    return jax.tree.map(lambda parameter, slope: parameter - RATE * slope, network, mean)


def learn(train: digits.Examples, limit: float, label: str) -> Network:
    """The network after all epochs."""
    network = init_network()
    progress = Progress(EPOCHS * (len(train.labels) // BATCH), label)
    for batch in digits.batches(train, BATCH, EPOCHS):
        network = train_step(network, batch, np.float32(limit))
        progress.advance()
    return network


def accuracy(network: Network, examples: digits.Examples) -> float:
    """The share of images whose label scores highest."""
    scores = jax.vmap(logits, in_axes=(None, 0))(network, examples.images)
    return float(jnp.mean(jnp.argmax(scores, axis=1) == examples.labels))


if __name__ == "__main__":
    main()
