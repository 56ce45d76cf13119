"""A pipeline: a layer on each device, and microbatches that pass like cars through a factory.

At every tick each device applies its layer to what it has, and hands the result to the next device.
The first ticks fill the pipeline and the last ones drain it; in between all devices work. Nothing
is said of the way back: the derivative of handing on is handing back, so the gradient is a pipeline
too, which runs from the last device to the first.

Y. Huang and others, "GPipe: efficient training of giant neural networks using pipeline
parallelism", 2019.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import minijax as jax
import minijax.numpy as jnp
import placements
from minijax import lax
from minijax.sharding import NamedSharding
from minijax.sharding import PartitionSpec as P
from terminal import Panel, heading, paragraph, show

DEVICES = 8
MICROBATCHES = 16
EXAMPLES = 8
WIDTH = 32
RATE = 0.05


class Layers(NamedTuple):
    """Dense layers [layer, …], one for each device."""

    kernel: jax.Array
    bias: jax.Array


class Batch(NamedTuple):
    """Inputs and the wanted outputs [microbatch, example, feature]."""

    x: jax.Array
    y: jax.Array


class Result(NamedTuple):
    """The losses, in the pipeline and on one device; and what share of its time a device idles."""

    losses: list[float]
    alone: list[float]
    idle: float


def main(steps: int = 20) -> Result:
    """Trains in the pipeline and on one device."""
    step, (layers, batch) = workload()
    # There and back, one each; the loss is known to the last device, and its sum to all.
    sent = jax.testing.assert_collectives(step, exactly=True, collective_permute=2, all_reduce=1)(
        layers, batch
    )
    ticks = MICROBATCHES + DEVICES - 1
    idle = 1 - MICROBATCHES / ticks
    heading(
        "A pipeline",
        f"""{DEVICES} devices with a layer each, and {MICROBATCHES} microbatches of {EXAMPLES}
        examples. It takes {ticks} ticks, and a device idles in {idle:.0%} of them.""",
    )
    show(Panel("which microbatch each device works on, by tick", schedule()))
    show(Panel("collectives of a training step", placements.sent(sent)))

    losses, alone = trained(step, layers, batch, steps), trained(plain_step, *problem(), steps)
    np.testing.assert_allclose(losses, alone, rtol=1e-4)
    paragraph(
        f"""The loss falls from {losses[0]:.4f} to {losses[-1]:.4f}, step by step as on one
        device."""
    )
    return Result(losses, alone, idle)


def workload() -> tuple[Callable[..., tuple[jax.Array, Layers]], tuple[Layers, Batch]]:
    """The training step on all devices; layers and a batch."""
    mesh = jax.make_mesh((DEVICES,), ("stage",))
    layers, batch = problem()
    placed = (
        jax.device_put(layers, NamedSharding(mesh, P("stage"))),
        jax.device_put(batch, NamedSharding(mesh, P())),
    )
    piped = jax.shard_map(pipeline_loss, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P())
    return jax.jit(stepping(piped)), placed


def trained(
    step: Callable[..., tuple[jax.Array, Layers]], layers: Layers, batch: Batch, steps: int
) -> list[float]:
    """The loss of each step."""
    losses = []
    for _ in range(steps):
        value, layers = step(layers, batch)
        losses.append(float(value))
    return losses


def stepping(loss: Callable[..., jax.Array]) -> Callable[..., tuple[jax.Array, Layers]]:
    """A step down the gradient."""

    def step(layers: Layers, batch: Batch) -> tuple[jax.Array, Layers]:
        value, gradient = jax.value_and_grad(loss)(layers, batch)
        return value, jax.tree.map(lambda w, g: w - RATE * g, layers, gradient)

    return step


def pipeline_loss(layers: Layers, batch: Batch) -> jax.Array:
    """The mean loss of all microbatches; this device has one layer, and all devices the batch."""
    mine = jax.tree.map(lambda w: w[0], layers)
    outs = piped(lambda x: layer(mine, x), batch.x)
    is_last = lax.axis_index("stage") == lax.axis_size("stage") - 1
    return lax.psum(jnp.where(is_last, jnp.mean((outs - batch.y) ** 2), 0), "stage")


def piped(apply: Callable[[jax.Array], jax.Array], xs: jax.Array) -> jax.Array:
    """What the last device gives for each microbatch in `xs`; elsewhere it means nothing."""
    n, here = lax.axis_size("stage"), lax.axis_index("stage")
    onward = [(i, i + 1) for i in range(n - 1)]
    # While the pipeline drains, what enters it does not matter.
    entering = jnp.concatenate([xs, jnp.zeros((n - 1, *xs.shape[1:]), xs.dtype)])

    def tick(arrived: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        out = apply(jnp.where(here == 0, x, arrived))
        return lax.ppermute(out, "stage", onward), out

    nothing = lax.pcast(jnp.zeros_like(xs[0]), "stage", to="varying")
    _, outs = lax.scan(tick, nothing, entering)
    return outs[n - 1 :]


@jax.jit
@stepping
def plain_step(layers: Layers, batch: Batch) -> jax.Array:
    """The same on one device: a layer after the other, for the whole batch."""
    outs, _ = lax.scan(lambda x, mine: (layer(mine, x), None), batch.x, layers)
    return jnp.mean((outs - batch.y) ** 2)


def layer(mine: Layers, x: jax.Array) -> jax.Array:
    """A residual layer of examples [example, feature]."""
    return x + jnp.tanh(x @ mine.kernel + mine.bias)


def problem() -> tuple[Layers, Batch]:
    """Random layers, and a batch made by other ones."""
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype(np.float32)

    layers = Layers(0.1 * normal(DEVICES, WIDTH, WIDTH), np.zeros((DEVICES, WIDTH), np.float32))
    x = normal(MICROBATCHES, EXAMPLES, WIDTH)
    return layers, Batch(x, x + np.tanh(x @ normal(WIDTH, WIDTH) / np.sqrt(WIDTH)))


def schedule() -> str:
    """The microbatches that pass each device; dots are ticks whose result nobody asks for."""
    ticks = MICROBATCHES + DEVICES - 1
    rows = [
        [f"{t - i:2}" if 0 <= t - i < MICROBATCHES else " ·" for t in range(ticks)]
        for i in range(DEVICES)
    ]
    return "\n".join(f"device {i}  {' '.join(row)}" for i, row in enumerate(rows))


if __name__ == "__main__":
    jax.config.update("jax_num_cpu_devices", DEVICES)
    main()
