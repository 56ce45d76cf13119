"""Tensor parallelism with everything said by hand: what is sent, and the derivative.

The hidden units of a dense block are split over the axis `model`: each device computes its own
units, and the devices add up. A rule for `custom_vjp` says what the way back is, where they add up
once more. The batch is split over the axis `data`, of which the rule knows nothing: parameters are
cast to vary over it, and the cast's derivative adds up their gradients.

M. Shoeybi and others, "Megatron-LM: training multi-billion parameter language models using model
parallelism", 2019.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import digits
import minijax as jax
import minijax.numpy as jnp
import placements
from minijax import lax
from minijax.sharding import AxisType, NamedSharding
from minijax.sharding import PartitionSpec as P
from terminal import Panel, heading, paragraph, show

MESH = (2, 4)
BLOCKS = 2
WIDTH = 64
HIDDEN = 256
BATCH = 64
RATE = 0.2


class Block(NamedTuple):
    """Two dense layers, to the hidden units and back."""

    up: jax.Array
    down: jax.Array


class Model(NamedTuple):
    """Residual blocks, and scores for the classes."""

    blocks: list[Block]
    scores: jax.Array


SPECS = Model([Block(up=P(None, "model"), down=P("model", None))] * BLOCKS, scores=P())


class Result(NamedTuple):
    """The losses, on all devices and on one; and the held-out accuracy."""

    losses: list[float]
    alone: list[float]
    accuracy: float


def main(epochs: int = 2) -> Result:
    """Trains on the mesh and on one device."""
    step, args = workload()
    # Each block adds up once each way, but nothing is owed to the images; then, over `data`, one
    # for the loss and all gradients.
    sent = jax.testing.assert_collectives(step, exactly=True, all_reduce=2 * BLOCKS)(*args)
    heading(
        "Tensor parallelism by hand",
        f"""{MESH[0]} x {MESH[1]} devices: {HIDDEN} hidden units in {MESH[1]} parts, batches in
        {MESH[0]}.""",
    )
    show(Panel("one block", placements.table(args[0].blocks[0])))
    show(Panel("collectives of a training step", placements.sent(sent)))

    examples, held_out = digits.load()
    model, losses = trained(step, args[0], examples, epochs)
    _, alone = trained(plain_step, init_model(), examples, epochs)
    np.testing.assert_allclose(losses, alone, rtol=1e-3)
    read = np.argmax(np.asarray(logits(plain_block, jax.device_get(model), held_out.images)), -1)
    accuracy = float(np.mean(read == held_out.labels))
    paragraph(
        f"""The loss falls from {losses[0]:.3f} to {losses[-1]:.3f}, on one device to
        {alone[-1]:.3f}; {accuracy:.1%} of {len(read)} held-out digits are read correctly."""
    )
    return Result(losses, alone, accuracy)


def workload() -> tuple[Callable[..., tuple[jax.Array, Model]], tuple[Model, digits.Examples]]:
    """The training step on all devices; a model, and a batch."""
    mesh = jax.make_mesh(MESH, ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    specs = jax.tree.map(lambda spec: NamedSharding(mesh, spec), SPECS)
    examples, _ = digits.load()
    batch = next(digits.batches(examples, BATCH, 1))
    step = jax.shard_map(train_step, mesh=mesh, in_specs=(SPECS, P("data")), out_specs=(P(), SPECS))
    args = (
        jax.device_put(init_model(), specs),
        jax.device_put(batch, NamedSharding(mesh, P("data"))),
    )
    return jax.jit(step), args


def trained(
    step: Callable[..., tuple[jax.Array, Model]],
    model: Model,
    examples: digits.Examples,
    epochs: int,
) -> tuple[Model, list[float]]:
    """A model after some epochs, and the loss of each step."""
    losses = []
    for batch in digits.batches(examples, BATCH, epochs):
        loss, model = step(model, batch)
        losses.append(float(loss))
    return model, losses


def train_step(model: Model, batch: digits.Examples) -> tuple[jax.Array, Model]:
    """The loss of all devices' examples, and the model after a step down its gradient."""

    def loss(model: Model) -> jax.Array:
        everywhere = jax.tree.map(lambda w: lax.pcast(w, "data", to="varying"), model)
        return lax.pmean(cross_entropy(split_block, everywhere, batch), "data")

    return descended(loss, model)


@jax.jit
def plain_step(model: Model, batch: digits.Examples) -> tuple[jax.Array, Model]:
    """The same on one device."""
    return descended(lambda model: cross_entropy(plain_block, model, batch), model)


def descended(loss: Callable[[Model], jax.Array], model: Model) -> tuple[jax.Array, Model]:
    """The loss, and the model after a step down its gradient."""
    value, gradient = jax.value_and_grad(loss)(model)
    return value, jax.tree.map(lambda w, g: w - RATE * g, model, gradient)


@jax.custom_vjp
def split_block(x: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
    """Two dense layers; each device has some hidden units: columns of `up` and rows of `down`."""
    return lax.psum(jnp.maximum(x @ up, 0) @ down, "model")


def split_block_forward(x: jax.Array, up: jax.Array, down: jax.Array) -> tuple:
    """The same, and what the way back needs."""
    hidden = jnp.maximum(x @ up, 0)
    return lax.psum(hidden @ down, "model"), (x, hidden, up, down)


def split_block_backward(kept: tuple[jax.Array, ...], ct: jax.Array) -> tuple[jax.Array, ...]:
    """What is owed to the arguments, where `ct` is owed to the result."""
    x, hidden, up, down = kept
    # `ct` is the same on all devices of a row, and so must be what `x` gets: each adds its units'.
    ct_hidden = jnp.where(hidden > 0, ct @ down.T, 0)
    return lax.psum(ct_hidden @ up.T, "model"), x.T @ ct_hidden, hidden.T @ ct


split_block.defvjp(split_block_forward, split_block_backward)


def plain_block(x: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
    """The same with all units on one device, for automatic differentiation."""
    return jnp.maximum(x @ up, 0) @ down


def cross_entropy(
    block: Callable[..., jax.Array], model: Model, batch: digits.Examples
) -> jax.Array:
    """The mean over a batch."""
    log_probs = jax.nn.log_softmax(logits(block, model, batch.images))
    return -jnp.mean(jnp.take_along_axis(log_probs, batch.labels[:, None], axis=-1))


def logits(block: Callable[..., jax.Array], model: Model, images: jax.Array) -> jax.Array:
    """A score for each image and class."""
    x = images.reshape(len(images), -1) - 0.5
    for up, down in model.blocks:
        x = x + block(x, up, down)
    return x @ model.scores


def init_model() -> Model:
    """Random weights; the last layer starts at zero."""
    rng = np.random.default_rng(0)

    def normal(rows: int, columns: int) -> jax.Array:
        return jnp.asarray(rng.normal(size=(rows, columns)) / np.sqrt(rows), jnp.float32)

    blocks = [Block(normal(WIDTH, HIDDEN), 0.1 * normal(HIDDEN, WIDTH)) for _ in range(BLOCKS)]
    return Model(blocks, jnp.zeros((WIDTH, digits.CLASSES)))


if __name__ == "__main__":
    jax.config.update("jax_num_cpu_devices", MESH[0] * MESH[1])
    main()
