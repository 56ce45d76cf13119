"""Learning to learn: a network that fits a new sine wave from ten points and five steps.

The meta-gradient is the gradient of the loss *after* some steps of gradient descent, with respect
to the weights before them: reverse mode over a scan that itself takes gradients, for many waves at
once by `vmap`.

C. Finn, P. Abbeel and S. Levine, "Model-agnostic meta-learning for fast adaptation of deep
networks", 2017.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import minijax as jax
import minijax.numpy as jnp
from adam import AdamState, adam_init, adam_update
from terminal import Progress, heading, paragraph, say

Params = TypeVar("Params")
Predict = Callable[[Params, jax.Array], jax.Array]

HIDDEN = 40
SHOTS = 10
INNER_STEPS = 5
INNER_RATE = 0.02
WAVES = 32
ROUNDS = 10
STEPS_PER_ROUND = 200


class Network(NamedTuple):
    """Three dense layers."""

    up: jax.Array
    bias1: jax.Array
    middle: jax.Array
    bias2: jax.Array
    down: jax.Array


class Task(NamedTuple):
    """Points to learn a wave from, and points to test what was learnt."""

    x: jax.Array
    y: jax.Array
    test_x: jax.Array
    test_y: jax.Array


class Result(NamedTuple):
    """Mean squared errors on new waves: trained to adapt, trained without that, and not adapted."""

    meta: float
    plain: float
    unadapted: float


def main() -> Result:
    """Trains one network to adapt and another one plainly, then lets both adapt to new waves."""
    heading(
        "Learning to learn",
        f"""Sine waves differ in height and phase. A network sees {SHOTS} points of a new one and
        takes {INNER_STEPS} steps of gradient descent.""",
    )
    meta = learn(INNER_STEPS, "trained to adapt")
    plain = learn(0, "trained plainly ")
    waves = random_tasks(jax.random.key(9), 1000)
    result = Result(
        meta=float(mean_loss(meta, waves, INNER_STEPS)),
        plain=float(mean_loss(plain, waves, INNER_STEPS)),
        unadapted=float(mean_loss(meta, waves, 0)),
    )
    say(f"  trained to adapt, after {INNER_STEPS} steps   {result.meta:.3f}")
    say(f"  trained to adapt, before them     {result.unadapted:.3f}")
    say(f"  trained plainly, after {INNER_STEPS} steps    {result.plain:.3f}\n")
    paragraph("These are mean squared errors on 1,000 new waves, whose mean square is about 4.")
    return result


def random_tasks(key: jax.Array, count: int) -> Task:
    """Waves of random height (up to 5) and phase, seen at random points of [-5, 5]."""
    keys = jax.random.split(key, 3)
    height = jax.random.uniform(keys[0], (count, 1), minval=0.1, maxval=5.0)
    phase = jax.random.uniform(keys[1], (count, 1), maxval=jnp.pi)
    x = jax.random.uniform(keys[2], (count, 2 * SHOTS), minval=-5.0, maxval=5.0)
    y = height * jnp.sin(x - phase)
    return Task(x[:, :SHOTS], y[:, :SHOTS], x[:, SHOTS:], y[:, SHOTS:])


def init_network(key: jax.Array) -> Network:
    """Random weights, scaled so that signals keep their size."""
    keys = jax.random.split(key, 3)
    return Network(
        up=jax.random.normal(keys[0], (1, HIDDEN)),
        bias1=jnp.zeros(HIDDEN),
        middle=jax.random.normal(keys[1], (HIDDEN, HIDDEN)) / HIDDEN**0.5,
        bias2=jnp.zeros(HIDDEN),
        down=jax.random.normal(keys[2], (HIDDEN,)) / HIDDEN**0.5,
    )


def predict(network: Network, x: jax.Array) -> jax.Array:
    """From numbers [n] to numbers [n]."""
    hidden = jnp.tanh(x[:, None] @ network.up + network.bias1)
    return jnp.tanh(hidden @ network.middle + network.bias2) @ network.down


def loss(predict: Predict, params: Params, x: jax.Array, y: jax.Array) -> jax.Array:
    """Mean squared error."""
    return jnp.mean((predict(params, x) - y) ** 2)


def adapt(predict: Predict, params: Params, task: Task, steps: int) -> Params:
    """The parameters after some steps of gradient descent on a task's points."""

    def step(params: Params, _: None) -> tuple[Params, None]:
        grads = jax.grad(lambda p: loss(predict, p, task.x, task.y))(params)
        return jax.tree.map(lambda p, g: p - INNER_RATE * g, params, grads), None

    return jax.lax.scan(step, params, length=steps)[0]


def loss_after(predict: Predict, params: Params, task: Task, steps: int) -> jax.Array:
    """The loss on a task's test points after adapting to the others."""
    return loss(predict, adapt(predict, params, task, steps), task.test_x, task.test_y)


def mean_loss(network: Network, tasks: Task, steps: int) -> jax.Array:
    """The mean of `loss_after` over many tasks."""
    return jnp.mean(jax.vmap(lambda task: loss_after(predict, network, task, steps))(tasks))


def learn(steps: int, label: str) -> Network:
    """A network whose loss after `steps` steps of adaption is small."""

    @jax.jit
    def train_round(
        network: Network, state: AdamState, key: jax.Array
    ) -> tuple[Network, AdamState, jax.Array]:
        def step(carry: tuple, key: jax.Array) -> tuple[tuple, jax.Array]:
            network, state = carry
            tasks = random_tasks(key, WAVES)
            value, grads = jax.value_and_grad(mean_loss)(network, tasks, steps)
            return adam_update(network, grads, state, 0.002), value

        keys = jax.random.split(key, STEPS_PER_ROUND)
        (network, state), values = jax.lax.scan(step, (network, state), keys)
        return network, state, jnp.mean(values)

    network = init_network(jax.random.key(0))
    state = adam_init(network)
    progress = Progress(ROUNDS, label)
    for key in jax.random.split(jax.random.key(1), ROUNDS):
        network, state, value = train_round(network, state, key)
        progress.advance(f"loss {float(value):.3f}")
    return network


if __name__ == "__main__":
    main()
