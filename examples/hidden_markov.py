"""A hidden Markov model learnt with one gradient per step: the dishonest casino.

The forward algorithm, a scan, sums the probability of the rolls over all histories of the hidden
state. The gradient of its logarithm with respect to the logarithms of the model's probabilities
holds the expected number of times that each was used. So reverse mode is the backward algorithm,
and a step of Baum and Welch (1970) is: take the gradient, normalise it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from terminal import heading, paragraph, say

ROLLS = 5000
STEPS = 200

# The croupier swaps a fair die for one that shows six half of the time, and back.
TRUE_CHANGES = np.array([[0.95, 0.05], [0.10, 0.90]])
TRUE_FACES = np.array([[1 / 6] * 6, [0.1] * 5 + [0.5]])


class Model(NamedTuple):
    """Log probabilities: the first die [2], the next die [die, next], the face [die, face]."""

    start: jax.Array
    changes: jax.Array
    faces: jax.Array


class Result(NamedTuple):
    """The model learnt, the log likelihood before each step, and how often the die is guessed."""

    model: Model
    log_likelihoods: np.ndarray
    guessed: float


def main() -> Result:
    """Watches the casino, learns its dice, and says which one was on the table."""
    heading(
        "A hidden Markov model",
        f"""A casino swaps a fair die for a loaded one now and then. {ROLLS} rolls are seen, the
        swaps are not.""",
    )
    dice, rolls = play()
    model, log_likelihoods = fit(first_guess(), rolls)
    for name, changes, faces in zip(
        ["fair", "loaded"], jnp.exp(model.changes), jnp.exp(model.faces), strict=True
    ):
        shown = " ".join(f"{p:.2f}" for p in faces.tolist())
        say(f"  {name:<8} faces {shown}   stays {max(changes.tolist()):.2f}")
    say()
    guess = jnp.argmax(posterior(model, rolls), axis=-1)
    guessed = float(jnp.mean(guess == dice))
    paragraph(
        f"""The log likelihood rose from {log_likelihoods[0]:.0f} to {log_likelihoods[-1]:.0f}. The
        die on the table is named rightly for {guessed:.1%} of the rolls; always saying "fair" would
        be right for {np.mean(dice == 0):.1%}."""
    )
    return Result(model, np.asarray(log_likelihoods), guessed)


def play() -> tuple[np.ndarray, np.ndarray]:
    """Which die was thrown, 0 for the fair one, and what it showed."""
    rng = np.random.default_rng(0)
    die, dice, rolls = 0, [], []
    for _ in range(ROLLS):
        dice.append(die)
        rolls.append(rng.choice(6, p=TRUE_FACES[die]))
        die = rng.choice(2, p=TRUE_CHANGES[die])
    return np.array(dice, np.int32), np.array(rolls, np.int32)


def first_guess() -> Model:
    """Dice that are changed seldom; the second one prefers high faces a little."""
    faces = np.stack([np.full(6, 1 / 6), np.linspace(0.1, 7 / 30, 6)])
    changes = np.array([[0.8, 0.2], [0.2, 0.8]])
    return Model(*(jnp.log(jnp.asarray(p, jnp.float32)) for p in (np.full(2, 0.5), changes, faces)))


def forward(start: jax.Array, changes: jax.Array, scores: jax.Array) -> jax.Array:
    """The log probability of all observations, given that of each in every state [time, state]."""

    def step(before: jax.Array, score: jax.Array) -> tuple[jax.Array, None]:
        return jax.nn.logsumexp(before[:, None] + changes, axis=0) + score, None

    last, _ = jax.lax.scan(step, start + scores[0], scores[1:])
    return jax.nn.logsumexp(last)


def log_likelihood(model: Model, rolls: jax.Array) -> jax.Array:
    """The log probability of the rolls."""
    return forward(model.start, model.changes, model.faces[:, rolls].T)


@jax.jit
def posterior(model: Model, rolls: jax.Array) -> jax.Array:
    """The probability of each die at each time, given all rolls: the gradient of `forward`."""
    return jax.grad(forward, argnums=2)(model.start, model.changes, model.faces[:, rolls].T)


def improved(counts: jax.Array) -> jax.Array:
    """Log probabilities from expected counts."""
    return jnp.log(counts / jnp.sum(counts, axis=-1, keepdims=True))


@jax.jit
def fit(model: Model, rolls: jax.Array) -> tuple[Model, jax.Array]:
    """The model after STEPS steps of Baum and Welch, and the log likelihood before each."""

    def step(model: Model, _: None) -> tuple[Model, jax.Array]:
        value, counts = jax.value_and_grad(log_likelihood)(model, rolls)
        return jax.tree.map(improved, counts), value

    return jax.lax.scan(step, model, length=STEPS)


if __name__ == "__main__":
    main()
