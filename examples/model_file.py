"""A model that leaves the process: trained here, asked and taught elsewhere, from one file.

The file holds the compiled form of the model, not its Python: StableHLO, in the format that JAX
writes and reads. The number of images is a symbol, so that one program serves batches of any size;
and the derivative is in the file too, so that who has it can go on learning.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits

import minijax as jax
import minijax.numpy as jnp
from minijax import export
from terminal import heading, paragraph, say

STEPS = 60
RATE = 0.5
BATCHES = (1, 10, 297)


class Data(NamedTuple):
    """Images float32[n, 64] from 0 to 1, and which digits they show."""

    images: np.ndarray
    digits: np.ndarray


class Model(NamedTuple):
    """Scores are images @ weights + bias."""

    weights: jax.Array
    bias: jax.Array


export.register_namedtuple_serialization(Model, serialized_name="examples.Model")


class Result(NamedTuple):
    """Accuracies on held-out digits, by size of the batch; the losses of learning from the file."""

    here: float
    elsewhere: dict[int, float]
    losses: list[float]
    file_size: int


def main() -> Result:
    """Trains a model, writes it, asks another process, and goes on learning from the file."""
    train, held_out = load()
    heading("A model in a file", "Scores of handwritten digits, from 64 pixels each.")
    model = fit(train)
    here = float(jnp.mean(jnp.argmax(scores(model, held_out.images), 1) == held_out.digits))
    say(f"  accuracy here             {here:.1%}")

    (count,) = export.symbolic_shape("count")
    images = jax.ShapeDtypeStruct((count, 64), np.float32)
    program = export.export(jax.jit(scores))(model, images)
    say(f"  exported                  {program.in_avals[-1]} -> {program.out_avals[0]}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "digits.export")
        path.write_bytes(program.serialize(vjp_order=1))
        elsewhere = {}
        for size in BATCHES:
            np.savez(Path(folder, "inputs.npz"), *model, held_out.images[:size])
            answers = ask(path)
            elsewhere[size] = float(np.mean(answers == held_out.digits[:size]))
            say(f"  another process, {size:>3}      {elsewhere[size]:.1%}")
        losses = learn(path, model, train)
        file_size = path.stat().st_size
    say(f"  learning from the file    loss {losses[0]:.3f} -> {losses[-1]:.3f}\n")
    paragraph(f"The file has {file_size:,} bytes, and no Python in it.")
    return Result(here, elsewhere, losses, file_size)


def load(held_out: int = 297) -> tuple[Data, Data]:
    """The digits in a fixed random order: those to learn from, and those held out."""
    source = load_digits()
    order = np.random.default_rng(0).permutation(len(source.target))
    images, digits = (source.data[order] / 16).astype(np.float32), source.target[order]
    return Data(images[held_out:], digits[held_out:]), Data(images[:held_out], digits[:held_out])


def scores(model: Model, images: jax.Array) -> jax.Array:
    """How much each image float32[n, 64] looks like each digit: float32[n, 10]."""
    return images @ model.weights + model.bias


def loss_of(all_scores: jax.Array, digits: np.ndarray) -> jax.Array:
    """The mean of -log p of the right digits."""
    right = jax.nn.one_hot(digits, 10)
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(all_scores) * right, axis=1))


def fit(data: Data) -> Model:
    """Trains by plain gradient descent."""
    model = Model(jnp.zeros((64, 10)), jnp.zeros(10))
    slope = jax.jit(jax.grad(lambda model: loss_of(scores(model, data.images), data.digits)))
    for _ in range(STEPS):
        model = jax.tree.map(lambda x, g: x - RATE * g, model, slope(model))
    return model


ELSEWHERE = """
import sys
from pathlib import Path
from typing import NamedTuple
import numpy as np
from minijax import export

class Model(NamedTuple):
    weights: object
    bias: object

export.register_namedtuple_serialization(Model, serialized_name="examples.Model")
path = Path(sys.argv[1])
program = export.deserialize(path.read_bytes())
with np.load(path.parent / "inputs.npz") as inputs:
    weights, bias, images = (inputs[key] for key in inputs)
answers = np.argmax(program.call(Model(weights, bias), images), axis=1)
np.save(path.parent / "answers.npy", answers)
"""


def ask(path: Path) -> np.ndarray:
    """What a process that has nothing but the file says of the images beside it."""
    subprocess.run([sys.executable, "-c", ELSEWHERE, str(path)], check=True, timeout=120)
    return np.load(path.parent / "answers.npy")


def learn(path: Path, model: Model, data: Data, steps: int = 40) -> list[float]:
    """Goes on learning, by the derivative that is in the file; the loss at each step."""
    program = export.deserialize(path.read_bytes())

    @jax.jit
    def step(model: Model) -> tuple[jax.Array, Model]:
        def loss(model: Model) -> jax.Array:
            return loss_of(program.call(model, data.images), data.digits)

        now, slope = jax.value_and_grad(loss)(model)
        return now, jax.tree.map(lambda x, g: x - RATE * g, model, slope)

    losses = []
    for _ in range(steps):
        now, model = step(model)
        losses.append(float(now))
    return losses


if __name__ == "__main__":
    main()
