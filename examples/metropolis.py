"""A Metropolis sampler: many chains explore a curved distribution at once.

A chain proposes a random move and accepts it with probability min(1, p(new) / p(old)). One chain is
a scan over random keys; `vmap` makes it hundreds. The target is a banana: x is normal and y normal
around x², so its moments are known exactly.

N. Metropolis, A. W. Rosenbluth, M. N. Rosenbluth, A. H. Teller and E. Teller, 1953.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from terminal import heading, paragraph, say

CHAINS = 1000
STEPS = 3000
WARM_UP = 500
MOVE = 0.8
NOISE = 0.5


class Chain(NamedTuple):
    """Where a chain is [2], and the log density there."""

    point: jax.Array
    height: jax.Array


class Result(NamedTuple):
    """The samples [chain, step, 2], the accepted share, and mean and covariance of the samples."""

    samples: np.ndarray
    accepted: float
    mean: np.ndarray
    covariance: np.ndarray


def main() -> Result:
    """Samples the banana and compares the moments with the exact ones."""
    heading(
        "A Metropolis sampler",
        f"{CHAINS:,} chains of {STEPS:,} steps each explore a distribution shaped like a banana.",
    )
    keys = jax.random.split(jax.random.key(0), CHAINS)
    starts = 3 * jax.random.normal(jax.random.key(1), (CHAINS, 2))
    samples, moved = sample_all(keys, starts)
    samples, accepted = np.asarray(samples[:, WARM_UP:]), float(jnp.mean(moved))
    points = samples.reshape(-1, 2)
    mean, covariance = points.mean(axis=0), np.cov(points.T)
    rows = [
        ("mean of x", mean[0], 0.0),
        ("mean of y", mean[1], 1.0),
        ("variance of x", covariance[0, 0], 1.0),
        ("variance of y", covariance[1, 1], 2 + NOISE**2),
        ("covariance", covariance[0, 1], 0.0),
    ]
    for name, found, exact in rows:
        say(f"  {name:<14} sampled {found:6.2f}   exact {exact:6.2f}")
    say()
    paragraph(f"{accepted:.0%} of the moves were accepted.")
    return Result(samples, accepted, mean, covariance)


def log_density(point: jax.Array) -> jax.Array:
    """The logarithm of the banana's density, up to a constant."""
    x, y = point
    return -(x**2) / 2 - ((y - x**2) / NOISE) ** 2 / 2


def sample(
    log_density: Callable[[jax.Array], jax.Array],
    key: jax.Array,
    start: jax.Array,
    steps: int,
    move: float,
) -> tuple[jax.Array, jax.Array]:
    """The points [steps, n] of one chain, and which of its moves were accepted."""

    def step(chain: Chain, key: jax.Array) -> tuple[Chain, tuple[jax.Array, jax.Array]]:
        direction, dice = jax.random.split(key)
        point = chain.point + move * jax.random.normal(direction, start.shape)
        proposal = Chain(point, log_density(point))
        accepted = jnp.log(jax.random.uniform(dice)) < proposal.height - chain.height
        chain = jax.tree.map(lambda new, old: jnp.where(accepted, new, old), proposal, chain)
        return chain, (chain.point, accepted)

    first = Chain(start, log_density(start))
    return jax.lax.scan(step, first, jax.random.split(key, steps))[1]


@jax.jit
def sample_all(keys: jax.Array, starts: jax.Array) -> tuple[jax.Array, jax.Array]:
    """One chain for each key."""
    return jax.vmap(lambda key, start: sample(log_density, key, start, STEPS, MOVE))(keys, starts)


if __name__ == "__main__":
    main()
