"""The models that the benchmarks trace and train, as plain functions of the library and its arrays.

Parameters are trees of NumPy arrays from a fixed seed, the same for every library.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

CLASSES = 10
VOCABULARY = 64


def _normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    fan_in = math.prod(shape[:-1])
    return (rng.standard_normal(shape) / np.sqrt(fan_in)).astype(np.float32)


def mlp_parameters(widths: Sequence[int] = (16, 32, 32, 4)) -> list[Any]:
    """One weight and one bias per layer."""
    rng = np.random.default_rng(0)
    return [(_normal(rng, m, n), np.zeros(n, np.float32)) for m, n in itertools.pairwise(widths)]


def mlp_loss(jax: Any, params: Any, x: Any, y: Any) -> Any:
    """Mean squared error of a multi-layer perceptron with tanh."""
    jnp = jax.numpy
    for weight, bias in params[:-1]:
        x = jnp.tanh(x @ weight + bias)
    weight, bias = params[-1]
    return jnp.mean((x @ weight + bias - y) ** 2)


def transformer_parameters(layers: int, width: int = 64, heads: int = 4, length: int = 32) -> Any:
    """A decoder-only transformer with learnt positions."""
    rng = np.random.default_rng(1)
    head = width // heads

    def layer() -> dict[str, Any]:
        return {
            "norm1": _norm_parameters(width),
            "query": _normal(rng, width, heads, head),
            "key": _normal(rng, width, heads, head),
            "value": _normal(rng, width, heads, head),
            "out": _normal(rng, heads, head, width),
            "norm2": _norm_parameters(width),
            "up": (_normal(rng, width, 4 * width), np.zeros(4 * width, np.float32)),
            "down": (_normal(rng, 4 * width, width), np.zeros(width, np.float32)),
        }

    return {
        "tokens": _normal(rng, VOCABULARY, width),
        "positions": _normal(rng, length, width),
        "layers": [layer() for _ in range(layers)],
        "norm": _norm_parameters(width),
    }


def tokens(*shape: int) -> np.ndarray:
    """Random text."""
    return np.random.default_rng(2).integers(0, VOCABULARY, shape).astype(np.int32)


def _as_is(x: Any) -> Any:
    return x


def transformer_loss(
    jax: Any,
    params: Any,
    text: Any,
    place: Callable[[Any], Any] = _as_is,
    total: Callable[[Any], Any] = _as_is,
) -> Any:
    """Mean cross-entropy of predicting each token of int32[..., n] from those before it.

    `place` says where what goes from layer to layer shall live; `total` adds up what devices with
    some of the heads and hidden units each have found.
    """
    jnp = jax.numpy
    scores = _transformer_scores(jax, params, text[..., :-1], place, total)
    log_probabilities = jax.nn.log_softmax(scores, axis=-1)
    chosen = jnp.take_along_axis(log_probabilities, text[..., 1:, None], axis=-1)
    return -jnp.mean(chosen)


def _transformer_scores(
    jax: Any,
    params: Any,
    text: Any,
    place: Callable[[Any], Any],
    total: Callable[[Any], Any],
) -> Any:
    jnp = jax.numpy
    x = place(params["tokens"][text] + params["positions"][: text.shape[-1]])
    for layer in params["layers"]:
        x = place(_transformer_layer(jax, layer, x, total))
    return _layer_norm(jax, params["norm"], x) @ jnp.transpose(params["tokens"])


def _transformer_layer(jax: Any, layer: Any, x: Any, total: Callable[[Any], Any] = _as_is) -> Any:
    x = x + total(_attention(jax, layer, _layer_norm(jax, layer["norm1"], x)))
    (up, up_bias), (down, down_bias) = layer["up"], layer["down"]
    hidden = jax.nn.gelu(_layer_norm(jax, layer["norm2"], x) @ up + up_bias)
    return x + total(hidden @ down) + down_bias


def stacked(params: Any) -> Any:
    """The parameters of a transformer with those of its layers stacked, to be scanned over."""

    def stack(layers: Sequence[Any]) -> Any:
        if isinstance(layers[0], dict):
            return {key: stack([layer[key] for layer in layers]) for key in layers[0]}
        if isinstance(layers[0], tuple):
            return tuple(map(stack, zip(*layers, strict=True)))
        return np.stack(layers)

    return {**params, "layers": stack(params["layers"])}


def scanned_transformer_loss(jax: Any, params: Any, text: Any, *, remat: bool = False) -> Any:
    """`transformer_loss` for stacked layers, each of them rematerialized on request."""
    jnp = jax.numpy
    x = params["tokens"][text[..., :-1]] + params["positions"][: text.shape[-1] - 1]

    def layer(x: Any, layer: Any) -> Any:
        return _transformer_layer(jax, layer, x), None

    x, _ = jax.lax.scan(jax.checkpoint(layer) if remat else layer, x, params["layers"])
    scores = _layer_norm(jax, params["norm"], x) @ jnp.transpose(params["tokens"])
    log_probabilities = jax.nn.log_softmax(scores, axis=-1)
    return -jnp.mean(jnp.take_along_axis(log_probabilities, text[..., 1:, None], axis=-1))


def rnn_parameters(inputs: int = 8, width: int = 32) -> dict[str, np.ndarray]:
    """An Elman network with a linear read-out."""
    rng = np.random.default_rng(5)
    return {
        "input": _normal(rng, inputs, width),
        "state": _normal(rng, width, width),
        "bias": np.zeros(width, np.float32),
        "output": _normal(rng, width, 1),
    }


def sequences(count: int, length: int, inputs: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Random sequences [length, count, inputs], and the running mean of their first feature."""
    x = np.random.default_rng(6).standard_normal((length, count, inputs)).astype(np.float32)
    steps = np.arange(1, length + 1, dtype=np.float32)[:, None]
    return x, np.cumsum(x[..., 0], axis=0) / steps


def rnn_loss(jax: Any, params: Any, x: Any, y: Any) -> Any:
    """Mean squared error of a recurrent network."""
    jnp = jax.numpy

    def step(state: Any, x: Any) -> Any:
        state = jnp.tanh(x @ params["input"] + state @ params["state"] + params["bias"])
        return state, (state @ params["output"])[:, 0]

    start = jnp.zeros((x.shape[1], params["state"].shape[0]), jnp.float32)
    _, found = jax.lax.scan(step, start, x)
    return jnp.mean((found - y) ** 2)


def linear_system(size: int) -> tuple[np.ndarray, np.ndarray]:
    """A symmetric positive definite matrix and a right side."""
    rng = np.random.default_rng(7)
    factor = rng.standard_normal((size, size)).astype(np.float32)
    return factor @ factor.T / size + np.eye(size, dtype=np.float32), factor[0]


def conjugate_gradients(jax: Any, matrix: Any, right: Any) -> Any:
    """The solution of a linear system, and the number of steps it took."""
    jnp = jax.numpy

    def goes_on(state: Any) -> Any:
        _, _, _, square, steps = state
        return (square > 1e-8) & (steps < 100)

    def step(state: Any) -> Any:
        x, rest, direction, square, steps = state
        image = matrix @ direction
        length = square / jnp.dot(direction, image)
        x, rest = x + length * direction, rest - length * image
        new = jnp.dot(rest, rest)
        return x, rest, rest + new / square * direction, new, steps + 1

    start = (jnp.zeros_like(right), right, right, jnp.dot(right, right), 0)
    x, _, _, _, steps = jax.lax.while_loop(goes_on, step, start)
    return x, steps


def _attention(jax: Any, layer: Any, x: Any) -> Any:
    jnp = jax.numpy
    query = jnp.einsum("...td,dhk->...htk", x, layer["query"])
    key = jnp.einsum("...td,dhk->...htk", x, layer["key"])
    value = jnp.einsum("...td,dhk->...htk", x, layer["value"])
    scores = query @ jnp.swapaxes(key, -1, -2) / np.sqrt(key.shape[-1])
    length = x.shape[-2]
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
    mixed = jax.nn.softmax(scores, axis=-1) @ value
    return jnp.einsum("...htk,hkd->...td", mixed, layer["out"])


def _norm_parameters(width: int) -> tuple[np.ndarray, np.ndarray]:
    return np.ones(width, np.float32), np.zeros(width, np.float32)


def _layer_norm(jax: Any, params: Any, x: Any) -> Any:
    jnp = jax.numpy
    scale, shift = params
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean(centred**2, axis=-1, keepdims=True)
    return centred / jnp.sqrt(variance + 1e-5) * scale + shift


def cnn_parameters() -> dict[str, np.ndarray]:
    """Two convolutions, of which the second halves the image, and a dense layer."""
    rng = np.random.default_rng(3)
    return {
        "conv1": _normal(rng, 3, 3, 1, 32),
        "bias1": np.zeros(32, np.float32),
        "conv2": _normal(rng, 3, 3, 32, 64),
        "bias2": np.zeros(64, np.float32),
        "dense": _normal(rng, 4 * 4 * 64, CLASSES),
        "bias3": np.zeros(CLASSES, np.float32),
    }


def digits(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Images [n, 8, 8, 1] and labels of the shape and range of the digits of the demo."""
    rng = np.random.default_rng(4)
    images = rng.integers(0, 17, (count, 8, 8, 1)).astype(np.float32) / 16
    return images, rng.integers(0, CLASSES, count).astype(np.int32)


def cnn_loss(jax: Any, params: Any, images: Any, labels: Any) -> Any:
    """Mean cross-entropy of the network of the demo."""
    jnp = jax.numpy
    x = jax.nn.relu(_conv(jax, images, params["conv1"], stride=1) + params["bias1"])
    x = jax.nn.relu(_conv(jax, x, params["conv2"], stride=2) + params["bias2"])
    scores = x.reshape(x.shape[0], -1) @ params["dense"] + params["bias3"]
    targets = jax.nn.one_hot(labels, CLASSES)
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(scores) * targets, axis=-1))


def _conv(jax: Any, x: Any, kernel: Any, stride: int) -> Any:
    return jax.lax.conv_general_dilated(
        x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def adam_state(params: Any) -> tuple[Any, np.float32]:
    """What Adam starts with; NumPy trees of dicts, lists and tuples only."""

    def zeros(tree: Any) -> Any:
        if isinstance(tree, dict):
            return {key: zeros(value) for key, value in tree.items()}
        if isinstance(tree, (list, tuple)):
            return type(tree)(zeros(value) for value in tree)
        return np.zeros_like(tree)

    return (zeros(params), zeros(params)), np.float32(0)


def adam_step(jax: Any, loss: Any, params: Any, state: Any, *batch: Any) -> tuple[Any, Any, Any]:
    """The loss, and the parameters and state after one step of Adam."""
    jnp, tree = jax.numpy, jax.tree
    value, grads = jax.value_and_grad(loss)(params, *batch)
    (mean, square), step = state
    step = step + 1
    mean = tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, grads)
    square = tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, square, grads)
    rate = 1e-3 * jnp.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    params = tree.map(lambda p, m, s: p - rate * m / (jnp.sqrt(s) + 1e-8), params, mean, square)
    return value, params, ((mean, square), step)
