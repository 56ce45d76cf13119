"""Training over two processes: each reads its half of every batch, and all learn one network.

The processes could be on two machines. Each runs this very program, has devices of its own, and
sees those of all. The training step knows nothing of it: the compiler adds up the gradients over
all devices of the mesh, wherever they are. Without arguments, the program starts itself twice.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

import digits
import minijax as jax
import minijax.numpy as jnp
from adam import AdamState, adam_init, adam_update
from minijax.sharding import AxisType, NamedSharding
from minijax.sharding import PartitionSpec as P
from terminal import heading, paragraph, say

PROCESSES = 2
DEVICES = 2
BATCH = 64
HIDDEN = 128
RATE = 0.01


class Network(NamedTuple):
    """Two layers: 64 pixels to features, and these to a score per class."""

    features: jax.Array
    classes: jax.Array


class Result(NamedTuple):
    """The losses that each process has seen, and those of one device."""

    losses: list[list[float]]
    alone: list[float]


def main(steps: int = 20) -> Result:
    """Starts the processes, and compares what they report with training on one device."""
    heading(
        "Training over two processes",
        f"""{PROCESSES} processes of {DEVICES} devices each. A process reads {BATCH // PROCESSES} of
        the {BATCH} images of each batch; gradients are added up over all devices.""",
    )
    losses = [json.loads(text.splitlines()[-1]) for text in outputs(steps)]
    alone = trained(init(), lambda batch: batch, steps)
    for step in range(0, steps, 5):
        shown = ", ".join(f"{own[step]:.4f}" for own in losses)
        say(f"  step {step + 1:2}: loss {shown} in the processes; {alone[step]:.4f} on one device")
    paragraph("Every process sees the loss of the whole batch, which is that on one device.")
    return Result(losses, alone)


def outputs(steps: int) -> list[str]:
    """What the processes print, each of which runs this file."""
    with socket.create_server(("localhost", 0)) as listener:
        address = f"localhost:{listener.getsockname()[1]}"
    running = [
        subprocess.Popen(
            [sys.executable, __file__, address, str(process), str(steps)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for process in range(PROCESSES)
    ]
    try:
        return [each.communicate(timeout=60)[0] for each in running]
    finally:
        for each in running:
            each.kill()


def take_part(address: str, process: int, steps: int) -> list[float]:
    """Trains as one of the processes."""
    jax.config.update("jax_num_cpu_devices", DEVICES)
    jax.distributed.initialize(address, PROCESSES, process)
    mesh = jax.make_mesh((jax.device_count(),), ("data",), axis_types=(AxisType.Auto,))
    everywhere, split = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
    share = BATCH // PROCESSES

    def placed(batch: digits.Examples) -> digits.Examples:
        mine = jax.tree.map(lambda x: x[process * share : (process + 1) * share], batch)
        return jax.make_array_from_process_local_data(split, mine)

    return trained(jax.device_put(init(), everywhere), placed, steps)


def trained(
    network: Network, placed: Callable[[digits.Examples], digits.Examples], steps: int
) -> list[float]:
    """The losses of some steps; `placed` puts each batch where it shall be."""
    state = jax.jit(adam_init)(network)
    examples, _ = digits.load()
    losses = []
    for _, batch in zip(range(steps), digits.batches(examples, BATCH, 1), strict=False):
        value, network, state = train_step(network, state, placed(batch))
        losses.append(float(value))
    return losses


@jax.jit
def train_step(
    network: Network, state: AdamState, batch: digits.Examples
) -> tuple[jax.Array, Network, AdamState]:
    """The loss on a batch, and the network and the optimizer's state after one step of Adam."""
    value, grads = jax.value_and_grad(loss)(network, batch)
    return value, *adam_update(network, grads, state, RATE)


def loss(network: Network, batch: digits.Examples) -> jax.Array:
    """The mean cross-entropy of the labels of a batch."""
    features = jnp.tanh(batch.images.reshape(len(batch.images), -1) @ network.features)
    scores = jax.nn.log_softmax(features @ network.classes)
    return -jnp.take_along_axis(scores, batch.labels[:, None], axis=1).mean()


def init() -> Network:
    """Small random weights, the same in all processes."""
    keys = jax.random.split(jax.random.key(0))
    features = jax.random.normal(keys[0], (64, HIDDEN)) / 8
    return Network(features, jax.random.normal(keys[1], (HIDDEN, digits.CLASSES)) / HIDDEN**0.5)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        print(json.dumps(take_part(sys.argv[1], *map(int, sys.argv[2:]))))
