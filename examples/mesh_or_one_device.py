"""One training script, for one device and for meshes: the losses are the same.

Nothing in it knows how many devices there are. The mesh is an argument, and specs name its axes: on
an axis of size one they ask for nothing. Random numbers do not depend on devices either; what
remains is the order of sums, which rounding sees.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import digits
import minijax as jax
from adam import AdamState, adam_init
from minijax.sharding import AxisType, Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P
from terminal import heading, paragraph, say

DEVICES = 8
BATCH = 64
STEPS = 30
SHAPES = [(1, 1), (8, 1), (4, 2)]

# Convolutions are split by what they give, the dense layer by what it takes.
SPECS = digits.Network(
    conv1=P(None, None, None, "model"),
    bias1=P("model"),
    conv2=P(None, None, None, "model"),
    bias2=P("model"),
    dense=P("model", None),
    bias3=P(),
)


class Result(NamedTuple):
    """The loss in every step, for each shape of the mesh; and how far they are apart at most."""

    losses: dict[tuple[int, int], list[float]]
    apart: float


def main(steps: int = STEPS) -> Result:
    """Trains on each mesh, and prints the losses side by side."""
    heading(
        "A mesh or one device",
        f"""The network of the demo, trained for {steps} steps on meshes of the axes `data` and
        `model`.""",
    )
    losses = {shape: train(mesh_of(shape), steps) for shape in SHAPES}
    say("  step" + "".join(f"{rows} x {columns}".rjust(13) for rows, columns in SHAPES))
    for step in range(0, steps, max(1, steps // 10)):
        say(f"{step:6}" + "".join(f"{losses[shape][step]:13.7f}" for shape in SHAPES))
    say()
    alone = losses[1, 1]
    for each in losses.values():
        np.testing.assert_allclose(each, alone, rtol=1e-3)
    apart = max(float(np.max(np.abs(np.divide(each, alone) - 1))) for each in losses.values())
    paragraph(f"The losses agree to {apart:.1e} of their size.")
    return Result(losses, apart)


def mesh_of(shape: tuple[int, int]) -> Mesh:
    """A mesh of as many devices as its shape needs."""
    return jax.make_mesh(shape, ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def train(mesh: Mesh, steps: int) -> list[float]:
    """The losses of the first training steps."""
    examples, _ = digits.load()
    key = jax.random.key(0)
    network = digits.init_network(key)
    model = network, adam_init(network)
    specs = SPECS, AdamState(step=P(), mean=SPECS, square=SPECS)
    where = jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs)
    network, state = jax.device_put(model, where)
    losses = []
    epochs = -(-steps // (len(examples.labels) // BATCH))
    for number, batch in enumerate(digits.batches(examples, BATCH, epochs)):
        if number == steps:
            break
        rows = jax.device_put(batch, NamedSharding(mesh, P("data")))
        step_key = jax.random.fold_in(key, number)
        value, network, state = digits.train_step(network, state, rows, 0.002, step_key)
        losses.append(float(value))
    return losses


if __name__ == "__main__":
    jax.config.update("jax_num_cpu_devices", DEVICES)
    main()
