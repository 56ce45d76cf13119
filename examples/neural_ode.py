"""A neural differential equation, and its gradient by an adjoint that stores no steps.

A network is taught to be the right-hand side of dx/dt = field(x), from trajectories alone. The
solver takes many small steps between observations. Its derivative is given by hand, with
`custom_vjp`: the adjoint equation da/dt = -a · d(field)/dx is solved backward in time, together
with the state, so nothing but the observed states has to be kept.

R. T. Q. Chen, Y. Rubanova, J. Bettencourt and D. Duvenaud, "Neural ordinary differential
equations", 2018. The true system, a limit cycle, has a closed solution to compare with.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from adam import AdamState, adam_init, adam_update
from terminal import Progress, heading, paragraph, say

Tree = TypeVar("Tree")
Field = Callable[[Tree, jax.Array], jax.Array]

HIDDEN = 32
ROUNDS = 10
STEPS_PER_ROUND = 150


class Grid(NamedTuple):
    """Equally spaced times of observation, and the solver's steps from one to the next."""

    interval: float
    intervals: int
    steps: int


class Network(NamedTuple):
    """Two dense layers."""

    up: jax.Array
    bias: jax.Array
    down: jax.Array


class Result(NamedTuple):
    """The field learnt, and the mean error on new trajectories: in the trained time, and after."""

    network: Network
    error: float
    later_error: float


TRAINED = Grid(interval=0.25, intervals=16, steps=4)
TESTED = Grid(interval=0.25, intervals=48, steps=4)


def main() -> Result:
    """Learns the limit cycle and follows it three times longer than it was ever shown."""
    heading(
        "A neural differential equation",
        f"""Sixteen trajectories of {TRAINED.interval * TRAINED.intervals:.0f} seconds are shown. A
        network learns the velocity at every point, and continues other trajectories to
        {TESTED.interval * TESTED.intervals:.0f} seconds.""",
    )
    network = learn(trajectories(starts(seed=0), TRAINED))
    truth = trajectories(starts(seed=1), TESTED)
    errors = jnp.sqrt(jnp.sum((follow(network, truth[:, 0], TESTED) - truth) ** 2, axis=-1))
    error = float(jnp.mean(errors[:, : TRAINED.intervals + 1]))
    later_error = float(jnp.mean(errors[:, TRAINED.intervals + 1 :]))
    say(f"  mean distance from the true path  {error:.3f}")
    say(f"  after the time that was shown     {later_error:.3f}\n")
    paragraph("The cycle has radius 1.")
    return Result(network, error, later_error)


def starts(seed: int) -> np.ndarray:
    """Random points [16, 2], inside and outside of the cycle."""
    rng = np.random.default_rng(seed)
    radius, angle = rng.uniform(0.3, 1.8, 16), rng.uniform(0, 2 * np.pi, 16)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1).astype(np.float32)


def trajectories(points: np.ndarray, grid: Grid) -> np.ndarray:
    """The true states [start, time, 2] of dr/dt = r (1 - r²), d(angle)/dt = 1.5, in closed form."""
    times = grid.interval * np.arange(grid.intervals + 1)
    squared = np.sum(points**2, axis=-1)[:, None]
    radius = 1 / np.sqrt(1 + (1 / squared - 1) * np.exp(-2 * times))
    angle = np.arctan2(points[:, 1], points[:, 0])[:, None] + 1.5 * times
    states = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)
    return states.astype(np.float32)


def plus(x: Tree, scale: float, y: Tree) -> Tree:
    """x + scale * y, for trees."""
    return jax.tree.map(lambda a, b: a + scale * b, x, y)


def runge_kutta(field: Callable[[Tree], Tree], x: Tree, time: float, steps: int) -> Tree:
    """The state `time` later, by the classical method of order four."""
    h = time / steps

    def step(_: int, x: Tree) -> Tree:
        k1 = field(x)
        k2 = field(plus(x, h / 2, k1))
        k3 = field(plus(x, h / 2, k2))
        k4 = field(plus(x, h, k3))
        return plus(plus(x, h / 6, plus(k1, 1, k4)), h / 3, plus(k2, 1, k3))

    return jax.lax.fori_loop(0, steps, step, x)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def integrate(field: Field, grid: Grid, params: Tree, start: jax.Array) -> jax.Array:
    """The states [time, n] of dx/dt = field(params, x), `start` first."""

    def interval(x: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
        x = runge_kutta(lambda x: field(params, x), x, grid.interval, grid.steps)
        return x, x

    _, states = jax.lax.scan(interval, start, length=grid.intervals)
    return jnp.concatenate([start[None], states])


def _forward(field: Field, grid: Grid, params: Tree, start: jax.Array) -> tuple:
    states = integrate(field, grid, params, start)
    return states, (params, states)


def _backward(field: Field, grid: Grid, residuals: tuple, cts: jax.Array) -> tuple:
    params, states = residuals

    def backward_in_time(now: tuple) -> tuple:
        x, adjoint, _ = now
        velocity, pull = jax.vjp(field, params, x)
        params_ct, x_ct = pull(adjoint)
        return -velocity, x_ct, params_ct

    def interval(carry: tuple, observed: tuple) -> tuple[tuple, None]:
        adjoint, params_ct = carry
        # Starting from the observed state keeps errors of the way back from piling up.
        x, ct = observed
        now = (x, adjoint + ct, params_ct)
        _, adjoint, params_ct = runge_kutta(backward_in_time, now, grid.interval, grid.steps)
        return (adjoint, params_ct), None

    nothing = (jnp.zeros_like(cts[0]), jax.tree.map(jnp.zeros_like, params))
    last_first = (states[1:], cts[1:])
    (adjoint, params_ct), _ = jax.lax.scan(interval, nothing, last_first, reverse=True)
    return params_ct, adjoint + cts[0]


integrate.defvjp(_forward, _backward)


def field(network: Network, x: jax.Array) -> jax.Array:
    """The velocity at `x`."""
    return jnp.tanh(x @ network.up + network.bias) @ network.down


def follow(network: Network, points: jax.Array, grid: Grid) -> jax.Array:
    """The network's trajectories [start, time, 2]."""
    return jax.vmap(lambda start: integrate(field, grid, network, start))(points)


@jax.jit
def train_round(
    network: Network, state: AdamState, truth: jax.Array
) -> tuple[Network, AdamState, jax.Array]:
    """The network and the optimizer's state after some steps, and the last loss."""

    def loss(network: Network) -> jax.Array:
        return jnp.mean((follow(network, truth[:, 0], TRAINED) - truth) ** 2)

    def step(carry: tuple, _: None) -> tuple[tuple, jax.Array]:
        network, state = carry
        value, grads = jax.value_and_grad(loss)(network)
        return adam_update(network, grads, state, 0.01), value

    (network, state), values = jax.lax.scan(step, (network, state), length=STEPS_PER_ROUND)
    return network, state, values[-1]


def learn(truth: np.ndarray) -> Network:
    """The network after all rounds."""
    keys = jax.random.split(jax.random.key(0))
    network = Network(
        up=jax.random.normal(keys[0], (2, HIDDEN)),
        bias=jnp.zeros(HIDDEN),
        down=0.1 * jax.random.normal(keys[1], (HIDDEN, 2)),
    )
    state = adam_init(network)
    progress = Progress(ROUNDS, "training")
    for _ in range(ROUNDS):
        network, state, value = train_round(network, state, truth)
        progress.advance(f"loss {float(value):.5f}")
    return network


if __name__ == "__main__":
    main()
