"""Three bodies on one figure of eight, by leapfrog; the start is found by differentiating it.

Equal masses can chase each other for ever along a figure of eight. Of the two unknown speeds only
rough values are given. Newton's method makes the bodies return to where they began after one
period: its Jacobian is forward mode through a thousand steps of the simulation.

A. Chenciner and R. Montgomery, "A remarkable periodic solution of the three-body problem in the
case of equal masses", 2000. The simulation runs in 64 bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from terminal import heading, paragraph, say

PERIOD = 6.32591398
STEPS = 2000
NEWTON_STEPS = 5

# The bodies start on a line, the third one in the middle, where the loops cross.
CORNER = (0.97000436, -0.24308753)
ROUGH_SPEED = (-0.93, -0.87)


class Bodies(NamedTuple):
    """Positions and velocities [body, 2]."""

    positions: jax.Array
    velocities: jax.Array


class Result(NamedTuple):
    """The speed found, how far each attempt missed its start, and the orbit [time, body, 2]."""

    speed: np.ndarray
    misses: list[float]
    orbit: np.ndarray
    energy_drift: float


def main() -> Result:
    """Finds the orbit and draws it."""
    with jax.enable_x64(True):
        heading(
            "Three bodies",
            f"""One period is {STEPS:,} steps of leapfrog. After it, all bodies should be where they
            began, with the velocities that they began with.""",
        )
        speed, misses = find_speed(jnp.array(ROUGH_SPEED))
        for number, miss in enumerate(misses):
            say(f"  step {number}   misses its start by {miss:.1e}")
        say()
        orbit, energies = trace(figure_of_eight(speed))
        drift = float(jnp.max(jnp.abs(energies / energies[0] - 1)))
        say(picture(np.asarray(orbit[:, 0])))
        paragraph(
            f"""The body in the middle starts with velocity ({float(speed[0]):.5f},
            {float(speed[1]):.5f}). The energy changes by {drift:.0e} of itself at most."""
        )
        return Result(np.asarray(speed), misses, np.asarray(orbit), drift)


def figure_of_eight(speed: jax.Array) -> Bodies:
    """The start, from the velocity of the body in the middle; the others balance it."""
    corner = jnp.array(CORNER)
    return Bodies(
        jnp.stack([corner, -corner, jnp.zeros(2)]), jnp.stack([-speed / 2, -speed / 2, speed])
    )


def accelerations(positions: jax.Array) -> jax.Array:
    """Gravity between unit masses [body, 2]."""
    away = positions[None, :, :] - positions[:, None, :]
    # No body pulls itself; a one on the diagonal keeps 0 / 0 out of the gradient, too.
    distances = jnp.sqrt(jnp.sum(away**2, axis=-1) + jnp.eye(len(positions)))
    return jnp.sum(away / distances[:, :, None] ** 3, axis=1)


def energy(bodies: Bodies) -> jax.Array:
    """Of motion and of position together."""
    first, second = np.triu_indices(len(bodies.positions), 1)
    away = bodies.positions[first] - bodies.positions[second]
    return jnp.sum(bodies.velocities**2) / 2 - jnp.sum(1 / jnp.sqrt(jnp.sum(away**2, axis=-1)))


def leapfrog(bodies: Bodies, time: float) -> Bodies:
    """One step: half a kick, a drift, half a kick."""
    velocities = bodies.velocities + time / 2 * accelerations(bodies.positions)
    positions = bodies.positions + time * velocities
    return Bodies(positions, velocities + time / 2 * accelerations(positions))


def after(bodies: Bodies, time: float, steps: int) -> Bodies:
    """The bodies some time later."""
    return jax.lax.fori_loop(0, steps, lambda _, now: leapfrog(now, time / steps), bodies)


@jax.jit
def miss(speed: jax.Array) -> jax.Array:
    """How far all bodies are from where they began after one period, as one vector."""
    start = figure_of_eight(speed)
    end = after(start, PERIOD, STEPS)
    return jnp.concatenate([jnp.ravel(b - a) for a, b in zip(start, end, strict=True)])


def find_speed(speed: jax.Array) -> tuple[jax.Array, list[float]]:
    """The speed that closes the orbit best, and the length of the miss before each step."""
    misses = []
    for _ in range(NEWTON_STEPS):
        vector, jacobian = miss(speed), jax.jacfwd(miss)(speed)
        misses.append(float(jnp.sqrt(jnp.vdot(vector, vector))))
        speed = speed - least_squares(jacobian, vector)
    return speed, misses


def least_squares(matrix: jax.Array, b: jax.Array) -> jax.Array:
    """The two unknowns x for which matrix @ x is nearest to b."""
    (a11, a12), (_, a22) = matrix.T @ matrix
    b1, b2 = matrix.T @ b
    return jnp.stack([a22 * b1 - a12 * b2, a11 * b2 - a12 * b1]) / (a11 * a22 - a12**2)


@jax.jit
def trace(bodies: Bodies) -> tuple[jax.Array, jax.Array]:
    """Positions [time, body, 2] and energy over one period."""

    def step(bodies: Bodies, _: None) -> tuple[Bodies, tuple[jax.Array, jax.Array]]:
        return leapfrog(bodies, PERIOD / STEPS), (bodies.positions, energy(bodies))

    return jax.lax.scan(step, bodies, length=STEPS)[1]


def picture(path: np.ndarray, rows: int = 9, columns: int = 60) -> str:
    """The path [time, 2] drawn with dots."""
    scaled = (path - path.min(axis=0)) / np.ptp(path, axis=0)
    across, up = np.round(scaled * [columns - 1, rows - 1]).astype(int).T
    canvas = np.full((rows, columns), " ")
    canvas[rows - 1 - up, across] = "·"
    return "\n".join(f"  {''.join(row)}".rstrip() for row in canvas) + "\n"


if __name__ == "__main__":
    main()
