"""Fully sharded training by hand: layers gather their parameters, and nobody asks for the rest.

Each device holds an eighth of every matrix, and of what Adam remembers. A layer gathers its matrix
when it needs it, and again on the way back. The derivative of a gather is a reduce-scatter, so each
device receives the gradient of its share, summed up, and no line of this program says so.
`sharded_parameters.py` leaves all of it to the compiler.

S. Rajbhandari, J. Rasley, O. Ruwase and Y. He, "ZeRO: memory optimizations toward training trillion
parameter models", 2020.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import digits
import minijax as jax
import minijax.numpy as jnp
import placements
from adam import AdamState, adam_init, adam_update
from minijax import lax
from minijax.sharding import AxisType, NamedSharding
from minijax.sharding import PartitionSpec as P
from terminal import Panel, heading, paragraph, show

DEVICES = 8
SIZES = (64, 256, 256, digits.CLASSES)
BATCH = 64
RATE = 0.002

Model = list[jax.Array]


class Result(NamedTuple):
    """The losses, on all devices and on one; the bytes that a device holds, and of everything."""

    losses: list[float]
    alone: list[float]
    held: int
    whole: int


def main(epochs: int = 2) -> Result:
    """Trains on all devices and on one."""
    step, args = workload()
    layers = len(SIZES) - 1
    sent = jax.testing.assert_collectives(step, reduce_scatter=layers, all_reduce=1)(*args)
    # All layers but the first gather again on the way back, unless XLA knows that nothing is saved
    # by it: for host devices it did so until jaxlib 0.11.
    assert sent.counts["all_gather"] in {layers, 2 * layers - 1}
    assert len(sent) == sent.counts["all_gather"] + layers + 1
    held, whole = (
        placements.bytes_on_each_device(args[:2]),
        sum(leaf.nbytes for leaf in jax.tree.leaves(args[:2])),
    )
    heading(
        "Fully sharded training by hand",
        f"""Parameters and optimizer take {whole:,} bytes, and each of {DEVICES} devices holds
        {held:,} of them.""",
    )
    show(Panel("the parameters", placements.table(args[0])))
    show(Panel("collectives of a training step", placements.sent(sent)))

    losses = trained(step, *args[:2], epochs)
    model = init_model()
    alone = trained(plain_step, model, adam_init(model), epochs)
    np.testing.assert_allclose(losses, alone, rtol=1e-3)
    paragraph(
        f"""The loss falls from {losses[0]:.3f} to {losses[-1]:.3f}, step by step as on one
        device."""
    )
    return Result(losses, alone, held, whole)


def workload() -> tuple[Callable[..., tuple], tuple[Model, AdamState, digits.Examples]]:
    """The training step on all devices; parameters, the state of Adam, and a batch."""
    mesh = jax.make_mesh((DEVICES,), ("data",), axis_types=(AxisType.Auto,))
    rows = NamedSharding(mesh, P("data"))
    model = jax.device_put(init_model(), rows)
    state = adam_init(model)
    examples, _ = digits.load()
    batch = jax.device_put(next(digits.batches(examples, BATCH, 1)), rows)
    split = jax.shard_map(loss, mesh=mesh, in_specs=P("data"), out_specs=P())
    return jax.jit(stepping(split)), (model, state, batch)


def trained(step: Callable[..., tuple], model: Model, state: AdamState, epochs: int) -> list[float]:
    """The loss of each step."""
    examples, _ = digits.load()
    losses = []
    for batch in digits.batches(examples, BATCH, epochs):
        value, model, state = step(model, state, batch)
        losses.append(float(value))
    return losses


def stepping(loss: Callable[..., jax.Array]) -> Callable[..., tuple[jax.Array, Model, AdamState]]:
    """A step of Adam for a loss of parameters and a batch; whole arrays are all that it knows."""

    def step(
        model: Model, state: AdamState, batch: digits.Examples
    ) -> tuple[jax.Array, Model, AdamState]:
        value, gradient = jax.value_and_grad(loss)(model, batch)
        return value, *adam_update(model, gradient, state, RATE)

    return step


def loss(shares: Model, batch: digits.Examples) -> jax.Array:
    """The mean loss of all devices' examples, from this device's share of the parameters."""
    # What `checkpoint` computes again on the way back is the gathered matrix.
    layer = jax.checkpoint(lambda x, share: x @ lax.all_gather(share, "data", tiled=True))
    return lax.pmean(cross_entropy(layer, shares, batch), "data")


@jax.jit
@stepping
def plain_step(model: Model, batch: digits.Examples) -> jax.Array:
    """The same on one device."""
    return cross_entropy(jnp.matmul, model, batch)


def cross_entropy(
    layer: Callable[..., jax.Array], model: Model, batch: digits.Examples
) -> jax.Array:
    """The mean over a batch, of a network of dense layers."""
    x = batch.images.reshape(len(batch.images), -1) - 0.5
    for matrix in model[:-1]:
        x = jax.nn.gelu(layer(x, matrix))
    log_probs = jax.nn.log_softmax(layer(x, model[-1]))
    return -jnp.mean(jnp.take_along_axis(log_probs, batch.labels[:, None], axis=-1))


def init_model() -> Model:
    """Random weights, scaled so that signals keep their size from layer to layer."""
    rng = np.random.default_rng(0)
    return [
        jnp.asarray(rng.normal(size=shape) * np.sqrt(2 / shape[0]), jnp.float32)
        for shape in itertools.pairwise(SIZES)
    ]


if __name__ == "__main__":
    jax.config.update("jax_num_cpu_devices", DEVICES)
    main()
