"""Data-parallel training: every device learns from its share of each batch.

The network and its training step are those of the demo, and know nothing of devices. Copies of the
parameters lie on all devices, each batch is split among them: that is said once, by placing the
arguments. From there on the compiler knows what each device computes, and where they must talk.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import digits
import minijax as jax
import placements
from adam import adam_init
from minijax.sharding import AxisType, NamedSharding
from minijax.sharding import PartitionSpec as P
from terminal import Panel, Progress, heading, paragraph, say, show

DEVICES = 8
BATCH = 64
EPOCHS = 8


class Result(NamedTuple):
    """The loss after every step, the held-out accuracy, and what was sent in each step."""

    losses: list[float]
    accuracy: float
    collectives: jax.explain.Collectives


def main(epochs: int = EPOCHS) -> Result:
    """Trains the network on all devices; shows what lies where, and what is sent."""
    mesh = jax.make_mesh((jax.device_count(),), ("data",), axis_types=(AxisType.Auto,))
    everywhere, split = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
    train, held_out = digits.load()
    key = jax.random.key(0)
    network = digits.init_network(key)
    network, state = jax.device_put((network, adam_init(network)), everywhere)
    batch = jax.device_put(next(digits.batches(train, BATCH, 1)), split)
    heading(
        "Data-parallel training",
        f"""{mesh.size} devices in a row. Each holds the whole network, and {BATCH // mesh.size} of
        the {BATCH} images of a batch:""",
    )
    show(Panel("what lies where", placements.table((network, batch))))
    say("  The images of a batch, by device:\n")
    jax.debug.visualize_array_sharding(batch.images.reshape(BATCH, -1))
    say("\n  A kernel of the network:\n")
    jax.debug.visualize_array_sharding(network.dense)

    collectives = jax.explain.collectives(digits.train_step)(network, state, batch, 0.002, key)
    heading(
        "What is sent",
        """The loss is a mean over all images, so its gradient is one too. That is the only place
        where the devices meet: once in each step they add up their gradients.""",
    )
    show(Panel("collectives of a training step", placements.sent(collectives)))

    losses = []
    progress = Progress(epochs * (len(train.labels) // BATCH), "training")
    for number, examples in enumerate(digits.batches(train, BATCH, epochs), start=1):
        batch = jax.device_put(examples, split)
        step_key = jax.random.fold_in(key, number)
        value, network, state = digits.train_step(network, state, batch, 0.002, step_key)
        losses.append(float(value))
        progress.advance(f"loss {losses[-1]:.3f}")

    images = jax.device_put(held_out.images, split)
    accuracy = float(np.mean(np.asarray(digits.predict(network, images)) == held_out.labels))
    paragraph(f"{accuracy:.1%} of {len(held_out.labels)} held-out digits are read correctly.")
    return Result(losses, accuracy, collectives)


if __name__ == "__main__":
    jax.config.update("jax_num_cpu_devices", DEVICES)
    main()
