"""Data-parallel training by `pmap`: one program for each device, and one line where they meet.

Every array has a leading dimension, of which each device has one slice: its copy of the network,
and its images of the batch. The program sees the slice alone. `pmean` over the named axis makes the
gradients those of the whole batch, so all copies take the same step.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import digits
import minijax as jax
import placements
from adam import AdamState, adam_init, adam_update
from minijax import lax
from terminal import Panel, heading, paragraph, show

DEVICES = 8
BATCH = 64
RATE = 0.002


class Result(NamedTuple):
    """The losses, on all devices and on one; and by how much copies of the network differ."""

    losses: list[float]
    alone: list[float]
    apart: float


def main(steps: int = 10) -> Result:
    """Trains on all devices and on one."""
    step, args = workload()
    sent = jax.testing.assert_collectives(step, exactly=True, all_reduce=1)(*args)
    heading(
        "Data-parallel training by pmap",
        f"{DEVICES} copies of a network; each sees {BATCH // DEVICES} of {BATCH} images.",
    )
    show(Panel("collectives of a training step", placements.sent(sent)))

    network, losses = trained(step, *args[:2], steps, by_device)
    copies = [np.asarray(leaf) for leaf in jax.tree.leaves(network)]
    apart = max(float(np.ptp(copy, axis=0).max()) for copy in copies)
    _, alone = trained(plain_step, *init(jax.random.key(0)), steps, lambda batch: batch)
    np.testing.assert_allclose(losses, alone, rtol=1e-3)
    paragraph(
        f"""The loss falls from {losses[0]:.3f} to {losses[-1]:.3f}, step by step as on one device.
        The copies of the network differ by {apart}."""
    )
    return Result(losses, alone, apart)


def workload() -> tuple[Callable[..., tuple], tuple[digits.Network, AdamState, digits.Examples]]:
    """The training step on all devices; networks, states of Adam and a batch [device, …]."""
    # Each device draws the same numbers.
    network, state = jax.pmap(lambda _: init(jax.random.key(0)))(np.arange(DEVICES))
    examples, _ = digits.load()
    return train_step, (network, state, by_device(next(digits.batches(examples, BATCH, 1))))


def trained(
    step: Callable[..., tuple],
    network: digits.Network,
    state: AdamState,
    steps: int,
    place: Callable[[digits.Examples], digits.Examples],
) -> tuple[digits.Network, list[float]]:
    """The network after some steps, and the loss of each."""
    examples, _ = digits.load()
    losses = []
    for _, batch in zip(range(steps), digits.batches(examples, BATCH, 1), strict=False):
        value, network, state = step(network, state, place(batch))
        losses.append(float(np.mean(value)))
    return network, losses


def by_device(batch: digits.Examples) -> digits.Examples:
    """The batch [device, image, …]."""
    return jax.tree.map(lambda x: x.reshape(DEVICES, -1, *x.shape[1:]), batch)


def init(key: jax.Array) -> tuple[digits.Network, AdamState]:
    """A network, and what Adam remembers at first."""
    network = digits.init_network(key)
    return network, adam_init(network)


@functools.partial(jax.pmap, axis_name="devices")
def train_step(
    network: digits.Network, state: AdamState, batch: digits.Examples
) -> tuple[jax.Array, digits.Network, AdamState]:
    """One device's part of a step: its images, and everybody's gradient."""
    result = jax.value_and_grad(digits.loss)(network, batch)
    value, gradient = lax.pmean(result, "devices")
    return value, *adam_update(network, gradient, state, RATE)


@jax.jit
def plain_step(
    network: digits.Network, state: AdamState, batch: digits.Examples
) -> tuple[jax.Array, digits.Network, AdamState]:
    """The same on one device, for the whole batch."""
    value, gradient = jax.value_and_grad(digits.loss)(network, batch)
    return value, *adam_update(network, gradient, state, RATE)


if __name__ == "__main__":
    jax.config.update("jax_num_cpu_devices", DEVICES)
    main()
