"""A transformer on a mesh of two axes: `data` splits its batches, `model` splits its layers.

Attention heads, and units of the dense layers, do not need each other until they are added up. So
each device of a row of the mesh computes its own heads and its own units, and the row adds up once
after each half of a layer (M. Shoeybi and others, "Megatron-LM", 2019). Specs for the parameters
say so, and constraints on what flows from layer to layer say where rows of the batch live.
"""

from __future__ import annotations

import random
from typing import NamedTuple

import numpy as np

import charlm
import minijax as jax
import placements
from adam import AdamState, adam_init, adam_update
from minijax.sharding import AxisType
from minijax.sharding import PartitionSpec as P
from terminal import Panel, Progress, heading, paragraph, say, show

MESH = (2, 4)
BATCH = 16
STEPS = 200
RATE = 0.003

# Heads stand side by side in the columns of `qkv` and the rows of `mix`.
LAYER = charlm.Layer(
    qkv=P(None, "model"), mix=P("model", None), up=P(None, "model"), down=P("model", None)
)
MODEL = charlm.Transformer(characters=P(), positions=P(), layers=[LAYER] * charlm.LAYERS)


class Result(NamedTuple):
    """The mean bits per sentence in every step, and what is sent in one."""

    bits: list[float]
    collectives: jax.explain.Collectives


def main(steps: int = STEPS) -> Result:
    """Trains the transformer on the mesh; shows what lies where, and what is sent."""
    mesh = jax.make_mesh(MESH, ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    # Specs that stand alone, here and in the model, are for this mesh.
    with jax.set_mesh(mesh):
        return train(steps)


def train(steps: int) -> Result:
    """Trains the transformer on the mesh in force."""
    model = jax.device_put(charlm.init_model(jax.random.key(0)), MODEL)
    state = jax.device_put(adam_init(model), AdamState(step=P(), mean=MODEL, square=MODEL))
    heading(
        "A transformer on a mesh of two axes",
        f"""{MESH[0]} x {MESH[1]} devices: batches are split in {MESH[0]}, heads and dense layers in
        {MESH[1]}.""",
    )
    show(Panel("one layer", placements.table(model.layers[0])))
    say("  The matrix `up` of a layer, by device:\n")
    jax.debug.visualize_array_sharding(model.layers[0].up)
    say()

    rng, bits = random.Random(0), []
    progress = Progress(steps, "training")
    for number in range(1, steps + 1):
        sentences = [charlm.sentence(rng) for _ in range(BATCH)]
        rows = jax.device_put(charlm.encode(sentences), P("data"))
        rate = np.float32(RATE * min(1, number / 30))
        value, model, state = train_step(model, state, rows, rate)
        bits.append(float(value))
        progress.advance(f"{bits[-1]:.2f} bits per sentence")

    collectives = jax.explain.collectives(train_step)(model, state, rows, rate)
    paragraph(
        f"""Over the axis `model` the devices add up once for each half of {charlm.LAYERS} layers,
        and once more for its gradient; over `data`, once for all gradients of parameters."""
    )
    show(Panel("collectives of a training step", placements.sent(collectives)))
    return Result(bits, collectives)


@jax.jit
def train_step(
    model: charlm.Transformer, state: AdamState, rows: jax.Array, rate: jax.Array
) -> tuple[jax.Array, charlm.Transformer, AdamState]:
    """The mean bits per sentence, and model and optimizer state after one step of Adam."""

    def loss(model: charlm.Transformer) -> jax.Array:
        return charlm.bits_of(logits(model, rows[:, :-1]), rows).mean()

    value, grads = jax.value_and_grad(loss)(model)
    model, state = adam_update(model, grads, state, rate)
    return value, model, state


def logits(model: charlm.Transformer, rows: jax.Array) -> jax.Array:
    """The scores of `charlm.logits`, with constraints on where values between layers live."""
    x = by_row(model.characters[rows] + model.positions[: rows.shape[1]])
    for layer in model.layers:
        x = by_row(x + charlm.attend(layer, charlm.normalized(x)))
        hidden = by_unit(jax.nn.gelu(charlm.normalized(x) @ layer.up))
        x = by_row(x + hidden @ layer.down)
    return charlm.normalized(x) @ model.characters.T


def by_row(x: jax.Array) -> jax.Array:
    """Values [row, position, feature], complete for each row."""
    return jax.lax.with_sharding_constraint(x, P("data", None, None))


def by_unit(x: jax.Array) -> jax.Array:
    """Values [row, position, unit], split among devices that share a row."""
    return jax.lax.with_sharding_constraint(x, P("data", None, "model"))


if __name__ == "__main__":
    jax.config.update("jax_num_cpu_devices", MESH[0] * MESH[1])
    main()
