"""A variational autoencoder: digits squeezed through eight numbers, and new ones drawn from them.

The encoder says where in an eight-dimensional space an image lies, and how sure it is; the decoder
paints an image from a point of that space. Training maximises a lower bound on the likelihood of
the data (D. P. Kingma and M. Welling, "Auto-encoding variational Bayes", 2014). Each pixel of these
images counts the inked dots in a block of 4 x 4 of the original scan, so it is treated as that:
sixteen draws of ink or no ink.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

import digits
import minijax as jax
import minijax.numpy as jnp
from adam import AdamState, adam_init, adam_update
from terminal import Progress, heading, paragraph, shown

OUTPUT = Path(__file__).parent / "output"
PIXELS = 64
HIDDEN = 128
LATENT = 8
DOTS = 16
BATCH = 64
EPOCHS = 60


class Dense(NamedTuple):
    """A layer: inputs @ weight + bias."""

    weight: jax.Array
    bias: jax.Array

    def __call__(self, x: jax.Array) -> jax.Array:
        return x @ self.weight + self.bias


class Autoencoder(NamedTuple):
    """Encoder (one hidden layer, then mean and log variance) and decoder (one hidden layer)."""

    encode: Dense
    mean: Dense
    log_variance: Dense
    decode: Dense
    paint: Dense


class Result(NamedTuple):
    """Nats per held-out image with the model, and with each pixel's mean alone; the picture."""

    model_nats: float
    baseline_nats: float
    picture: Path


def main(output: Path = OUTPUT) -> Result:
    """Trains the autoencoder, compares it with a model without structure, draws the picture."""
    train, held_out = digits.load()
    heading(
        "A variational autoencoder",
        f"""{len(train.labels):,} digits of {PIXELS} pixels are squeezed through {LATENT} numbers.
        The price of an image, in nats, is what it takes to name those numbers plus what the decoder
        gets wrong.""",
    )
    model = learn(train)
    model_nats = float(jnp.mean(nats(model, flat(held_out), jax.random.key(1))))
    baseline_nats = float(np.mean(cross_entropy(flat(held_out), mean_logits(train))))
    picture = draw(model, held_out, output / "vae_digits.png")
    paragraph(
        f"""A held-out image costs {model_nats:.0f} nats, or {baseline_nats:.0f} if every pixel is
        guessed by its mean. Picture: {shown(picture)}"""
    )
    return Result(model_nats, baseline_nats, picture)


def init_model(key: jax.Array) -> Autoencoder:
    """Random weights, scaled so that signals keep their size."""
    keys = iter(jax.random.split(key, 5))

    def dense(inputs: int, outputs: int) -> Dense:
        weight = jax.random.normal(next(keys), (inputs, outputs)) / inputs**0.5
        return Dense(weight, jnp.zeros(outputs))

    return Autoencoder(
        encode=dense(PIXELS, HIDDEN),
        mean=dense(HIDDEN, LATENT),
        log_variance=dense(HIDDEN, LATENT),
        decode=dense(LATENT, HIDDEN),
        paint=dense(HIDDEN, PIXELS),
    )


def encode(model: Autoencoder, images: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Mean and log variance of the point at which each image lies."""
    hidden = jax.nn.gelu(model.encode(images))
    return model.mean(hidden), model.log_variance(hidden)


def decode(model: Autoencoder, points: jax.Array) -> jax.Array:
    """The log odds of ink at every pixel."""
    return model.paint(jax.nn.gelu(model.decode(points)))


def nats(model: Autoencoder, images: jax.Array, key: jax.Array) -> jax.Array:
    """The price of each image: misfit plus divergence of its point from the prior."""
    mean, log_variance = encode(model, images)
    # The noise comes from outside, so that the sampled point has a derivative in mean and variance.
    noise = jax.random.normal(key, mean.shape)
    points = mean + jnp.exp(log_variance / 2) * noise
    misfit = cross_entropy(images, decode(model, points))
    divergence = 0.5 * jnp.sum(mean**2 + jnp.exp(log_variance) - log_variance - 1, axis=-1)
    return misfit + divergence


def cross_entropy(images: jax.Array, log_odds: jax.Array) -> jax.Array:
    """Nats to name the dots of each image, given the log odds of ink in every pixel."""
    return DOTS * jnp.sum(jax.nn.softplus(log_odds) - images * log_odds, axis=-1)


@jax.jit
def train_step(
    model: Autoencoder, state: AdamState, images: jax.Array, rate: jax.Array, key: jax.Array
) -> tuple[jax.Array, Autoencoder, AdamState]:
    """The mean price on `images`, and model and optimizer state after one step of Adam."""
    value, grads = jax.value_and_grad(lambda m: jnp.mean(nats(m, images, key)))(model)
    model, state = adam_update(model, grads, state, rate)
    return value, model, state


def learn(train: digits.Examples) -> Autoencoder:
    """The autoencoder after all epochs."""
    key = jax.random.key(0)
    model = init_model(key)
    state = adam_init(model)
    total = EPOCHS * (len(train.labels) // BATCH)
    progress = Progress(total, "training")
    for number, batch in enumerate(digits.batches(train, BATCH, EPOCHS), start=1):
        rate = np.float32(0.002 * (1 + np.cos(np.pi * number / total)))
        value, model, state = train_step(
            model, state, flat(batch), rate, jax.random.fold_in(key, number)
        )
        progress.advance(f"{float(value):.0f} nats")
    return model


def flat(examples: digits.Examples) -> np.ndarray:
    """The images as rows of pixels."""
    return examples.images.reshape(len(examples.images), PIXELS)


def mean_logits(examples: digits.Examples) -> np.ndarray:
    """The log odds of each pixel's mean, kept off zero and one."""
    mean = np.clip(flat(examples).mean(axis=0), 1e-3, 1 - 1e-3)
    return np.log(mean / (1 - mean))


def draw(model: Autoencoder, held_out: digits.Examples, path: Path) -> Path:
    """Draws digits, what the model makes of them, new ones, and the way from one to another."""
    originals = flat(held_out)[:16]
    means, _ = encode(model, originals)
    other = int(np.argmax(held_out.labels != held_out.labels[0]))
    start, end = np.asarray(means[0]), np.asarray(means[other])
    share = np.linspace(0, 1, 16, dtype=np.float32)[:, None]
    rows = {
        "held-out digits": originals,
        "squeezed through eight numbers": _painted(model, means),
        "drawn at random": _painted(model, jax.random.normal(jax.random.key(2), (16, LATENT))),
        "on the way from the first digit to another": _painted(
            model, (1 - share) * start + share * end
        ),
    }
    figure = Figure(figsize=(12, 4.2), layout="constrained")
    for part, (title, images) in zip(figure.subfigures(len(rows), 1), rows.items(), strict=True):
        part.suptitle(title, x=0.005, ha="left", fontsize=11)
        for axes, image in zip(part.subplots(1, 16).flat, images, strict=True):
            axes.imshow(np.reshape(image, (8, 8)), cmap="gray_r", vmin=0, vmax=1)
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set(color="lightgrey")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    return path


def _painted(model: Autoencoder, points: jax.Array) -> np.ndarray:
    return np.asarray(jax.nn.sigmoid(decode(model, points)))


if __name__ == "__main__":
    main()
