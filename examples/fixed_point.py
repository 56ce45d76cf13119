"""Differentiating through a fixed point without its iterations: the orbit of a planet.

Where a planet stands on its ellipse at a given time follows from Kepler's equation
E = M + e sin E, which has no closed solution; iterating it finds E. The derivative of x = f(a, x)
needs no iterations: dx = (1 - df/dx)⁻¹ df/da da, and in reverse the solution u of
u = ct + u · df/dx, another fixed point. That rule, given with `custom_vjp`, lets gradients fit an
orbit to observations through a while loop.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from adam import adam_init, adam_update
from terminal import heading, paragraph, say

Tree = TypeVar("Tree")
Step = Callable[[Tree, jax.Array], jax.Array]

LIMIT = 200
TOLERANCE = 1e-6
FIT_STEPS = 3000
OBSERVATIONS = 40
ERROR = 0.02


class Orbit(NamedTuple):
    """Half the long axis, eccentricity, period, and the time at which it is nearest to the sun."""

    axis: jax.Array
    eccentricity: jax.Array
    period: jax.Array
    nearest: jax.Array


TRUE_ORBIT = Orbit(axis=1.5, eccentricity=0.45, period=1.9, nearest=0.4)


class Result(NamedTuple):
    """The orbit found, and the mean distance of the observations from it."""

    orbit: Orbit
    distance: float


def main() -> Result:
    """Fits an ellipse to noisy positions."""
    heading(
        "Through a fixed point",
        f"""{OBSERVATIONS} positions of a planet were measured over two years, with an error of
        {ERROR} in each direction. Gradient steps lead from a circle to its orbit.""",
    )
    times, seen = observe()
    start = Orbit(*map(jnp.float32, (1.2, 0.1, 2.0, 0.2)))
    orbit = fit(start, times, seen)
    for name, value, true in zip(Orbit._fields, orbit, TRUE_ORBIT, strict=True):
        say(f"  {name:<13} found {float(value):6.3f}   true {true:6.3f}")
    say()
    distance = float(jnp.sqrt(mean_squared_distance(orbit, times, seen)))
    paragraph(f"The observations are {distance:.3f} away from the orbit found.")
    return Result(orbit, distance)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def fixed_point(f: Step, a: Tree, guess: jax.Array) -> jax.Array:
    """The x with x = f(a, x), by iteration from a guess."""

    def unfinished(state: tuple) -> jax.Array:
        before, x, steps = state
        moved = jnp.max(jnp.abs(x - before))
        return (moved > TOLERANCE * (1 + jnp.max(jnp.abs(x)))) & (steps < LIMIT)

    def step(state: tuple) -> tuple:
        _, x, steps = state
        return x, f(a, x), steps + 1

    return jax.lax.while_loop(unfinished, step, (guess, f(a, guess), 1))[1]


def _forward(f: Step, a: Tree, guess: jax.Array) -> tuple:
    x = fixed_point(f, a, guess)
    return x, (a, x)


def _backward(f: Step, residuals: tuple, ct: jax.Array) -> tuple:
    a, x = residuals
    u = fixed_point(functools.partial(_adjoint, f), (a, x, ct), ct)
    (a_ct,) = jax.vjp(lambda a: f(a, x), a)[1](u)
    # The result does not depend on where the iteration began.
    return a_ct, jnp.zeros_like(x)


def _adjoint(f: Step, given: tuple, u: jax.Array) -> jax.Array:
    a, x, ct = given
    return ct + jax.vjp(lambda x: f(a, x), x)[1](u)[0]


fixed_point.defvjp(_forward, _backward)


def kepler(given: tuple, angle: jax.Array) -> jax.Array:
    """One iteration of Kepler's equation E = M + e sin E."""
    eccentricity, mean_angle = given
    return mean_angle + eccentricity * jnp.sin(angle)


def position(orbit: Orbit, time: jax.Array) -> jax.Array:
    """Where the planet stands; the sun is at (0, 0)."""
    e = orbit.eccentricity
    mean_angle = 2 * jnp.pi * (time - orbit.nearest) / orbit.period
    angle = fixed_point(kepler, (e, mean_angle), mean_angle)
    return orbit.axis * jnp.stack([jnp.cos(angle) - e, jnp.sqrt(1 - e**2) * jnp.sin(angle)])


def observe() -> tuple[np.ndarray, np.ndarray]:
    """Times and noisy positions of the true planet."""
    rng = np.random.default_rng(0)
    times = np.sort(rng.uniform(0, 2, OBSERVATIONS)).astype(np.float32)
    orbit = Orbit(*map(jnp.float32, TRUE_ORBIT))
    truth = jax.vmap(position, in_axes=(None, 0))(orbit, times)
    return times, np.asarray(truth + rng.normal(0, ERROR, truth.shape).astype(np.float32))


def mean_squared_distance(orbit: Orbit, times: jax.Array, seen: jax.Array) -> jax.Array:
    """Between the observed positions and those on an orbit."""
    away = jax.vmap(position, in_axes=(None, 0))(orbit, times) - seen
    return jnp.mean(jnp.sum(away**2, axis=-1))


@jax.jit
def fit(orbit: Orbit, times: jax.Array, seen: jax.Array) -> Orbit:
    """The orbit after steps of Adam."""

    def step(_: int, carry: tuple) -> tuple:
        orbit, state = carry
        grads = jax.grad(mean_squared_distance)(orbit, times, seen)
        return adam_update(orbit, grads, state, 0.003)

    return jax.lax.fori_loop(0, FIT_STEPS, step, (orbit, adam_init(orbit)))[0]


if __name__ == "__main__":
    main()
