"""Adam, written by hand: a running mean of the gradients, scaled by their running size.

D. P. Kingma and J. Ba, "Adam: a method for stochastic optimization", 2015. Parameters are any tree
of arrays.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import minijax as jax
import minijax.numpy as jnp

Params = TypeVar("Params")

MEAN_DECAY = 0.9
SQUARE_DECAY = 0.999


class AdamState(NamedTuple):
    """The number of steps taken, and for each parameter the running mean of g and of g²."""

    step: jax.Array
    mean: object
    square: object


def adam_init(params: Params) -> AdamState:
    """The state before the first step."""
    # Not one tree for both: an array whose memory is donated may be an argument once only.
    mean, square = (jax.tree.map(jnp.zeros_like, params) for _ in range(2))
    return AdamState(jnp.zeros((), jnp.float32), mean, square)


def adam_update(
    params: Params, grads: Params, state: AdamState, rate: float | jax.Array
) -> tuple[Params, AdamState]:
    """One step: `params` moved against `grads`, and the state after it."""
    step = state.step + 1
    mean = jax.tree.map(lambda m, g: MEAN_DECAY * m + (1 - MEAN_DECAY) * g, state.mean, grads)
    square = jax.tree.map(
        lambda s, g: SQUARE_DECAY * s + (1 - SQUARE_DECAY) * g * g, state.square, grads
    )
    # Both averages start at zero; dividing by the weight seen so far removes that bias.
    mean_weight = 1 - MEAN_DECAY**step
    square_weight = 1 - SQUARE_DECAY**step

    def move(p: jax.Array, m: jax.Array, s: jax.Array) -> jax.Array:
        return p - rate * (m / mean_weight) / (jnp.sqrt(s / square_weight) + 1e-8)

    return jax.tree.map(move, params, mean, square), AdamState(step, mean, square)
