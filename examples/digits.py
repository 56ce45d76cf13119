"""Handwritten digits and a small convolutional network that reads them.

The data are the 1,797 images of 8 x 8 pixels that scikit-learn brings along: real handwriting, no
download.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits

import minijax as jax
import minijax.numpy as jnp
from adam import AdamState, adam_update

CLASSES = 10


class Examples(NamedTuple):
    """Images float32[n, 8, 8, 1] with values in [0, 1], and their labels int32[n]."""

    images: np.ndarray
    labels: np.ndarray


class Network(NamedTuple):
    """Two convolutions and a dense layer; the second convolution halves the image."""

    conv1: jax.Array
    bias1: jax.Array
    conv2: jax.Array
    bias2: jax.Array
    dense: jax.Array
    bias3: jax.Array


def load(held_out: int = 360, seed: int = 0) -> tuple[Examples, Examples]:
    """The digits in a fixed random order: those to learn from, and those held out."""
    data = load_digits()
    images = (data.images / 16).astype(np.float32)[..., None]
    labels = data.target.astype(np.int32)
    order = np.random.default_rng(seed).permutation(len(labels))
    train, test = order[held_out:], order[:held_out]
    return Examples(images[train], labels[train]), Examples(images[test], labels[test])


def batches(examples: Examples, size: int, epochs: int, seed: int = 0) -> Iterator[Examples]:
    """Every example once per epoch, shuffled anew each time, in batches of one size."""
    rng = np.random.default_rng(seed)
    for _ in range(epochs):
        order = rng.permutation(len(examples.labels))
        for start in range(0, len(order) - size + 1, size):
            chosen = order[start : start + size]
            yield Examples(examples.images[chosen], examples.labels[chosen])


def init_network(key: jax.Array) -> Network:
    """Random weights, scaled so that signals keep their size from layer to layer."""
    keys = jax.random.split(key, 3)
    return Network(
        conv1=_scaled_normal(keys[0], (3, 3, 1, 64)),
        bias1=jnp.zeros(64),
        conv2=_scaled_normal(keys[1], (3, 3, 64, 128)),
        bias2=jnp.zeros(128),
        dense=_scaled_normal(keys[2], (4 * 4 * 128, CLASSES)),
        bias3=jnp.zeros(CLASSES),
    )


def logits(network: Network, images: jax.Array) -> jax.Array:
    """Images [n, 8, 8, 1] to one score per class [n, 10]."""
    x = jax.nn.gelu(_conv(images, network.conv1, stride=1) + network.bias1)
    x = jax.nn.gelu(_conv(x, network.conv2, stride=2) + network.bias2)
    x = x.reshape(x.shape[0], -1)
    return x @ network.dense + network.bias3


def loss(network: Network, batch: Examples) -> jax.Array:
    """Mean cross-entropy between the scores and the labels."""
    log_probs = jax.nn.log_softmax(logits(network, batch.images))
    targets = jax.nn.one_hot(batch.labels, CLASSES)
    return -jnp.mean(jnp.sum(log_probs * targets, axis=-1))


def jiggle(key: jax.Array, image: jax.Array) -> jax.Array:
    """The image moved by up to one pixel each way, so that no exact position is learnt by heart."""
    row, column = jax.random.randint(key, (2,), 0, 3)
    padded = jnp.pad(image, ((1, 1), (1, 1), (0, 0)))
    return jax.lax.dynamic_slice(padded, (row, column, 0), image.shape)


def jiggled(key: jax.Array, batch: Examples) -> Examples:
    """The batch with each image jiggled in its own way."""
    keys = jax.random.split(key, len(batch.labels))
    return batch._replace(images=jax.vmap(jiggle)(keys, batch.images))


@jax.jit
def train_step(
    network: Network, state: AdamState, batch: Examples, rate: jax.Array, key: jax.Array
) -> tuple[jax.Array, Network, AdamState]:
    """The loss on `batch`, and the network and optimizer state after one step of Adam."""
    value, grads = jax.value_and_grad(loss)(network, jiggled(key, batch))
    network, state = adam_update(network, grads, state, rate)
    return value, network, state


@jax.jit
def predict(network: Network, images: jax.Array) -> jax.Array:
    """The most likely class of each image."""
    return jnp.argmax(logits(network, images), axis=-1)


def _conv(x: jax.Array, kernel: jax.Array, stride: int) -> jax.Array:
    return jax.lax.conv_general_dilated(
        x,
        kernel,
        window_strides=(stride, stride),
        padding="SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )


def _scaled_normal(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    fan_in = np.prod(shape[:-1])
    return jax.random.normal(key, shape) * np.float32(np.sqrt(2 / fan_in))
