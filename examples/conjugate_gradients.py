"""Conjugate gradients in a while loop: the warmth of a plate whose rim is kept cold.

The stationary temperature solves A u = heat, where A u is four times the value at a point minus
those of its four neighbours. A is a function; the matrix, of five million numbers, is never built.
The loop runs until the residual is small, and `vmap` solves for several heaters at once, each with
as many steps as it needs.

M. R. Hestenes and E. Stiefel, "Methods of conjugate gradients for solving linear systems", 1952.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from terminal import heading, paragraph, say

SIZE = 48
TOLERANCE = 1e-4
LIMIT = 500


class State(NamedTuple):
    """The solution so far, what is left to explain, where to go, |residual|², and steps taken."""

    x: jax.Array
    residual: jax.Array
    direction: jax.Array
    size: jax.Array
    steps: jax.Array


class Result(NamedTuple):
    """For each heater its heat, the temperature [heater, row, column], and the steps taken."""

    heats: dict[str, np.ndarray]
    temperatures: np.ndarray
    steps: list[int]


def main() -> Result:
    """Warms the plate in three ways and prints how many steps each solution took."""
    heading(
        "Conjugate gradients",
        f"""A plate of {SIZE} x {SIZE} points is heated in three ways. One vectorised loop solves
        all three until each residual has shrunk by a factor of {1 / TOLERANCE:,.0f}.""",
    )
    heats = heaters()
    solved = solve_all(jnp.stack(list(heats.values())))
    temperatures, steps = np.asarray(solved.x), solved.steps.tolist()
    for name, temperature, count in zip(heats, temperatures, steps, strict=True):
        say(f"  {name:<14}{count:4} steps   hottest point {temperature.max():8.3f}")
    say()
    paragraph(
        """The wave is an eigenvector of A: its solution is a multiple of it, and one step finds the
        multiple."""
    )
    return Result(heats, temperatures, steps)


def heaters() -> dict[str, np.ndarray]:
    """Heat per point: the same everywhere, one point in the middle, and half a sine wave."""
    everywhere = np.ones((SIZE, SIZE), np.float32)
    point = np.zeros((SIZE, SIZE), np.float32)
    point[SIZE // 2, SIZE // 2] = 1
    half_wave = np.sin(np.pi * np.arange(1, SIZE + 1) / (SIZE + 1))
    return {
        "everywhere": everywhere,
        "in one point": point,
        "as a wave": np.outer(half_wave, half_wave).astype(np.float32),
    }


def loss_of_heat(u: jax.Array) -> jax.Array:
    """What each point gives to its four neighbours; outside of the plate it is 0 degrees."""
    around = jnp.pad(u, 1)
    neighbours = around[2:, 1:-1] + around[:-2, 1:-1] + around[1:-1, 2:] + around[1:-1, :-2]
    return 4 * u - neighbours


def solve(
    apply: Callable[[jax.Array], jax.Array], b: jax.Array, tolerance: float, limit: int
) -> State:
    """Solves A x = b for a symmetric positive definite A, given x -> A x."""
    target = tolerance**2 * jnp.vdot(b, b)

    def unfinished(state: State) -> jax.Array:
        return (state.size > target) & (state.steps < limit)

    def step(state: State) -> State:
        image = apply(state.direction)
        length = state.size / jnp.vdot(state.direction, image)
        residual = state.residual - length * image
        size = jnp.vdot(residual, residual)
        return State(
            x=state.x + length * state.direction,
            residual=residual,
            direction=residual + size / state.size * state.direction,
            size=size,
            steps=state.steps + 1,
        )

    start = State(jnp.zeros_like(b), residual=b, direction=b, size=jnp.vdot(b, b), steps=0)
    return jax.lax.while_loop(unfinished, step, start)


@jax.jit
def solve_all(heats: jax.Array) -> State:
    """The temperatures for a stack of heats."""
    return jax.vmap(lambda heat: solve(loss_of_heat, heat, TOLERANCE, LIMIT))(heats)


if __name__ == "__main__":
    main()
