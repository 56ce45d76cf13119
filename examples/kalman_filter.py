"""A Kalman filter as a scan, and its noise levels learnt by differentiating it.

A drone drifts under random pushes, and each second its position is measured, badly. The filter
keeps a Gaussian belief about position and velocity. The log likelihood of all measurements falls
out on the way; its gradient, through the scan, tells how strong the pushes and how bad the
measurements are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from adam import adam_init, adam_update
from terminal import heading, paragraph, say

SECONDS = 200
PUSH = 0.3
ERROR = 4.0
FIT_STEPS = 300

# The state is (x, y, velocity of x, velocity of y); a push changes both velocity and position.
MOTION = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0], [0, 0, 0, 1]], np.float32)
PUSHES = np.array([[0.5, 0], [0, 0.5], [1, 0], [0, 1]], np.float32)


class Noise(NamedTuple):
    """Logarithms of the standard deviations of pushes and of measurement errors."""

    push: jax.Array
    error: jax.Array


class Belief(NamedTuple):
    """Mean [4] and covariance [4, 4] of the state."""

    mean: jax.Array
    covariance: jax.Array


class Result(NamedTuple):
    """Mean distances from the true path, and the noise levels learnt."""

    measured_error: float
    filtered_error: float
    push: float
    error: float


def main() -> Result:
    """Learns the noise from one flight, and follows another one with it."""
    heading(
        "A Kalman filter",
        f"""A drone's position is measured once a second, with an error of {ERROR:.0f} metres in
        each direction. The noise levels are learnt from one flight, starting ten times too
        large.""",
    )
    _, measured = fly(seed=0)
    start = Noise(push=jnp.log(10 * PUSH), error=jnp.log(10 * ERROR))
    noise = fit(start, measured)
    push, error = float(jnp.exp(noise.push)), float(jnp.exp(noise.error))
    say(f"  pushes    learnt {push:5.2f}   true {PUSH:5.2f}")
    say(f"  errors    learnt {error:5.2f}   true {ERROR:5.2f}\n")

    path, measured = fly(seed=1)
    beliefs, _ = follow(noise, measured)
    measured_error = mean_distance(measured, path)
    filtered_error = mean_distance(beliefs.mean[:, :2], path)
    paragraph(
        f"""On a second flight the measurements are off by {measured_error:.2f} metres on average,
        the filter by {filtered_error:.2f}."""
    )
    return Result(measured_error, filtered_error, push, error)


def fly(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """True and measured positions [seconds, 2] of a random flight."""
    rng = np.random.default_rng(seed)
    state, path = np.zeros(4), []
    for _ in range(SECONDS):
        state = MOTION @ state + PUSHES @ rng.normal(0, PUSH, 2)
        path.append(state[:2])
    measured = path + rng.normal(0, ERROR, (SECONDS, 2))
    return np.asarray(path, np.float32), measured.astype(np.float32)


def predict(belief: Belief, noise: Noise) -> Belief:
    """The belief one second later, before anything is measured."""
    spread = jnp.exp(2 * noise.push) * PUSHES @ PUSHES.T
    return Belief(MOTION @ belief.mean, MOTION @ belief.covariance @ MOTION.T + spread)


def update(
    belief: Belief, noise: Noise, coordinate: int, measured: jax.Array
) -> tuple[Belief, jax.Array]:
    """The belief after one coordinate was measured, and the log likelihood of what was."""
    # One number at a time: nothing has to be inverted.
    column = belief.covariance[:, coordinate]
    variance = column[coordinate] + jnp.exp(2 * noise.error)
    surprise = measured - belief.mean[coordinate]
    gain = column / variance
    after = Belief(belief.mean + gain * surprise, belief.covariance - jnp.outer(gain, column))
    return after, -(surprise**2 / variance + jnp.log(2 * jnp.pi * variance)) / 2


@jax.jit
def follow(noise: Noise, measured: jax.Array) -> tuple[Belief, jax.Array]:
    """The belief after each measurement, and the log likelihood of all of them."""

    def second(belief: Belief, position: jax.Array) -> tuple[Belief, tuple[Belief, jax.Array]]:
        belief = predict(belief, noise)
        belief, first = update(belief, noise, 0, position[0])
        belief, other = update(belief, noise, 1, position[1])
        return belief, (belief, first + other)

    start = Belief(jnp.zeros(4), jnp.eye(4))
    _, (beliefs, log_likelihoods) = jax.lax.scan(second, start, measured)
    return beliefs, jnp.sum(log_likelihoods)


@jax.jit
def fit(noise: Noise, measured: jax.Array) -> Noise:
    """The noise levels after gradient steps towards the largest likelihood."""

    def badness(noise: Noise) -> jax.Array:
        return -follow(noise, measured)[1]

    def step(_: int, carry: tuple) -> tuple:
        noise, state = carry
        return adam_update(noise, jax.grad(badness)(noise), state, 0.05)

    return jax.lax.fori_loop(0, FIT_STEPS, step, (noise, adam_init(noise)))[0]


def mean_distance(a: jax.Array, b: jax.Array) -> float:
    """The mean distance between two paths [seconds, 2]."""
    return float(jnp.mean(jnp.sqrt(jnp.sum((a - b) ** 2, axis=-1))))


if __name__ == "__main__":
    main()
