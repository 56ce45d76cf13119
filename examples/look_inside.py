"""Attention by blocks holds a fraction of the memory: what XLA made of it says so.

The same attention is written twice: as a whole, with a matrix of all pairs, and by blocks of
queries, of which a checkpoint keeps nothing but what goes in.  `explain.memory` tells what is alive
at the peak of each gradient, `explain.fusions` what the kernels of the forward pass move, and
`explain.profile` where the time of a few steps goes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import minijax as jax
import minijax.numpy as jnp
import terminal
from minijax import explain, lax

LENGTH = 1024
WIDTH = 64
BLOCK = 64


def attended(q: Any, k: Any, v: Any) -> Any:
    """The values that some queries ask for."""
    scores = q @ k.T / np.sqrt(WIDTH).astype(np.float32)
    weights = jnp.exp(scores - scores.max(1, keepdims=True))
    return weights @ v / weights.sum(1, keepdims=True)


def at_once(q: Any, k: Any, v: Any) -> Any:
    """A loss of attention with a matrix of all pairs."""
    return jnp.mean(attended(q, k, v) ** 2)


def by_blocks(q: Any, k: Any, v: Any) -> Any:
    """The same loss, where a block of queries is forgotten before the next one comes."""

    @jax.checkpoint
    def block(total: Any, q: Any) -> Any:
        return total + jnp.sum(attended(q, k, v) ** 2), None

    total, _ = lax.scan(block, jnp.float32(0), q.reshape(-1, BLOCK, WIDTH))
    return total / q.size


class Result(NamedTuple):
    """What was found: reports on both forms, and how far their gradients differ."""

    whole: explain.Memory
    blocks: explain.Memory
    kernels: explain.Fusions
    profile: explain.Profile
    difference: float


def main() -> Result:
    """Looks at both forms."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(LENGTH, WIDTH)).astype(np.float32) for _ in range(3))

    whole, blocks = (explain.memory(jax.grad(f))(q, k, v) for f in (at_once, by_blocks))
    terminal.heading("memory of the gradient", "as a whole, then by blocks")
    print(whole, blocks, sep="\n\n", end="\n\n")

    kernels = explain.fusions(at_once)(q, k, v)
    terminal.heading("kernels", "of the loss as a whole")
    print(kernels, end="\n\n")

    slope = jax.jit(jax.grad(by_blocks))

    def descend(q: Any) -> Any:
        for _ in range(3):
            q = q - slope(q, k, v)
        return q

    profile = explain.profile(descend)(q)
    terminal.heading("time", "of three steps by blocks")
    print(profile, end="\n\n")

    one, other = jax.grad(at_once)(q, k, v), jax.grad(by_blocks)(q, k, v)
    difference = float(jnp.abs(one - other).max() / jnp.abs(one).max())
    less = whole.bytes / blocks.bytes
    print(f"{less:.1f} times less memory by blocks; the gradients differ by {difference:.0e}.")
    return Result(whole, blocks, kernels, profile, difference)


if __name__ == "__main__":
    main()
