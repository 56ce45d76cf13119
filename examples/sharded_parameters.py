"""Fully sharded training: no device holds the whole network, or what the optimizer remembers of it.

Adam keeps two numbers for each parameter, so a copy of everything on each device costs three times
the network. Here each device keeps its share of all three. Parameters are gathered for the time of
a step; gradients are summed up, and each device moves its own share. In the literature this is the
third stage of ZeRO, or FSDP. Two constraints in the training step say it all. (XLA adds up whole
gradients on host devices and keeps a share of the sum; accelerators compute the share alone.)

S. Rajbhandari, J. Rasley, O. Ruwase and Y. He, "ZeRO: memory optimizations toward training trillion
parameter models", 2020.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

import digits
import minijax as jax
import placements
from adam import AdamState, adam_init, adam_update
from minijax.sharding import AxisType
from minijax.sharding import PartitionSpec as P
from terminal import Panel, Progress, heading, paragraph, show

DEVICES = 8
BATCH = 64
EPOCHS = 8


class Result(NamedTuple):
    """The losses and the held-out accuracy; the bytes that each device holds, and of a copy."""

    losses: list[float]
    accuracy: float
    held: int
    whole: int


def main(epochs: int = EPOCHS) -> Result:
    """Trains the network with everything split over the devices; shows what each of them holds."""
    mesh = jax.make_mesh((jax.device_count(),), ("data",), axis_types=(AxisType.Auto,))
    # Specs that stand alone, here and in the training step, are for this mesh.
    with jax.set_mesh(mesh):
        return train(epochs)


def train(epochs: int) -> Result:
    """Trains the network on the mesh in force."""
    examples, held_out = digits.load()
    key = jax.random.key(0)
    network = digits.init_network(key)
    model = network, adam_init(network)
    network, state = jax.device_put(model, jax.tree.map(share, model))
    whole = sum(leaf.nbytes for leaf in jax.tree.leaves(model))
    held = placements.bytes_on_each_device((network, state))
    heading(
        "Fully sharded training",
        f"""Network and optimizer take {whole:,} bytes. Each of {jax.device_count()} devices holds
        {held:,} of them, or {held / whole:.1%}: only arrays that the devices cannot share evenly
        are copied.""",
    )
    show(Panel("the network", placements.table(network)))

    losses = []
    progress = Progress(epochs * (len(examples.labels) // BATCH), "training")
    for number, chosen in enumerate(digits.batches(examples, BATCH, epochs), start=1):
        batch = jax.device_put(chosen, P("data"))
        step_key = jax.random.fold_in(key, number)
        value, network, state = train_step(network, state, batch, 0.002, step_key)
        losses.append(float(value))
        progress.advance(f"loss {losses[-1]:.3f}")

    held = placements.bytes_on_each_device((network, state))
    images = jax.device_put(held_out.images, P("data"))
    accuracy = float(np.mean(np.asarray(digits.predict(network, images)) == held_out.labels))
    paragraph(
        f"""{accuracy:.1%} of {len(held_out.labels)} held-out digits are read correctly. Each device
        still holds {held:,} bytes."""
    )
    collectives = jax.explain.collectives(train_step)(network, state, batch, 0.002, key)
    show(Panel("collectives of a training step", placements.sent(collectives)))
    return Result(losses, accuracy, held, whole)


@functools.partial(jax.jit, donate_argnums=(0, 1))
def train_step(
    network: digits.Network, state: AdamState, batch: digits.Examples, rate: float, key: jax.Array
) -> tuple[jax.Array, digits.Network, AdamState]:
    """The training step of the demo, for parameters that are split over the mesh."""
    gathered = jax.lax.with_sharding_constraint(network, P())
    value, grads = jax.value_and_grad(digits.loss)(gathered, digits.jiggled(key, batch))
    grads = jax.lax.with_sharding_constraint(grads, jax.tree.map(share, grads))
    network, state = adam_update(network, grads, state, rate)
    return value, network, state


def share(leaf: jax.Array) -> P:
    """The largest dimension that the devices can share evenly is split, if there is one."""
    devices = jax.sharding.get_abstract_mesh().size
    for dimension in np.argsort(leaf.shape)[::-1]:
        if leaf.shape[dimension] % devices == 0:
            return P(*[None] * dimension, "data")
    return P()


if __name__ == "__main__":
    jax.config.update("jax_num_cpu_devices", DEVICES)
    main()
