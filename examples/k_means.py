"""k-means in a while loop, from many random starts at once.

Every point joins the nearest centre, every centre moves to the mean of its points, until nothing
changes. The result depends on the start: `vmap` tries a hundred, and the tightest grouping wins.
Starts are spread out: each next centre is a random point, with a probability that grows with the
squared distance from the centres so far.

S. P. Lloyd, "Least squares quantization in PCM", 1957 (published 1982); D. Arthur and
S. Vassilvitskii, "k-means++: the advantages of careful seeding", 2007.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from terminal import heading, paragraph, say

GROUPS = 15
POINTS = 1500
STARTS = 100


class Grouping(NamedTuple):
    """Centres [k, 2], the group of each point, steps taken, and whether the last one mattered."""

    centres: jax.Array
    groups: jax.Array
    steps: jax.Array
    changed: jax.Array


class Result(NamedTuple):
    """The points, their true groups, the best grouping, and the spread from every start."""

    points: np.ndarray
    truth: np.ndarray
    centres: np.ndarray
    groups: np.ndarray
    spreads: np.ndarray


def main() -> Result:
    """Finds fifteen heaps of points."""
    heading(
        "k-means",
        f"""{POINTS:,} points in {GROUPS} heaps, {STARTS} random starts in one vectorised loop.""",
    )
    points, truth = heaps()
    keys = jax.random.split(jax.random.key(0), STARTS)
    found, spreads = from_all_starts(keys, points)
    best = int(jnp.argmin(spreads))
    say(f"  steps    {int(found.steps.min()):3} to {int(found.steps.max())}")
    say(f"  spread   best {float(spreads.min()):.4f}   worst {float(spreads.max()):.4f}\n")
    groups = np.asarray(found.groups[best])
    together = np.mean([np.bincount(truth[groups == g]).max() for g in np.unique(groups)])
    paragraph(
        f"""In the best grouping {together * GROUPS / POINTS:.1%} of the points are with their own
        heap; {int(jnp.sum(spreads < 1.01 * spreads.min()))} of {STARTS} starts led to it."""
    )
    return Result(points, truth, np.asarray(found.centres[best]), groups, np.asarray(spreads))


def heaps() -> tuple[np.ndarray, np.ndarray]:
    """Points float32[n, 2] around centres in the unit square, and their heaps."""
    rng = np.random.default_rng(3)
    grid = np.stack(np.meshgrid(np.arange(4), np.arange(4)), axis=-1).reshape(-1, 2)[:GROUPS]
    centres = (grid + rng.uniform(0.25, 0.75, (GROUPS, 2))) / 4
    truth = rng.integers(0, GROUPS, POINTS)
    points = centres[truth] + rng.normal(0, 0.022, (POINTS, 2))
    return points.astype(np.float32), truth


def squared_distances(points: jax.Array, centres: jax.Array) -> jax.Array:
    """From every point to every centre [n, k]."""
    return jnp.sum((points[:, None, :] - centres) ** 2, axis=-1)


def spread_out(key: jax.Array, points: jax.Array, count: int) -> jax.Array:
    """Random points as first centres, far from each other."""
    first, *rest = jax.random.split(key, count)
    start = jax.random.choice(first, points)

    def choose(nearest: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        centre = points[jax.random.categorical(key, jnp.log(nearest))]
        return jnp.minimum(nearest, jnp.sum((points - centre) ** 2, axis=-1)), centre

    nearest = jnp.sum((points - start) ** 2, axis=-1)
    _, others = jax.lax.scan(choose, nearest, jnp.stack(rest))
    return jnp.concatenate([start[None], others])


def group(points: jax.Array, centres: jax.Array) -> Grouping:
    """Moves points and centres until no point changes its group."""

    def step(before: Grouping) -> Grouping:
        members = jax.nn.one_hot(before.groups, len(centres))
        sizes = jnp.sum(members, axis=0)[:, None]
        # A centre without points stays where it is.
        centres_now = jnp.where(
            sizes > 0, members.T @ points / jnp.maximum(sizes, 1), before.centres
        )
        groups = jnp.argmin(squared_distances(points, centres_now), axis=-1)
        changed = jnp.any(groups != before.groups)
        return Grouping(centres_now, groups, before.steps + 1, changed)

    groups = jnp.argmin(squared_distances(points, centres), axis=-1)
    return jax.lax.while_loop(lambda now: now.changed, step, Grouping(centres, groups, 0, True))


@jax.jit
def from_all_starts(keys: jax.Array, points: jax.Array) -> tuple[Grouping, jax.Array]:
    """The grouping from each start, and the mean distance of points from their centres."""

    def from_start(key: jax.Array) -> tuple[Grouping, jax.Array]:
        found = group(points, spread_out(key, points, GROUPS))
        nearest = jnp.min(squared_distances(points, found.centres), axis=-1)
        return found, jnp.sqrt(jnp.mean(nearest))

    return jax.vmap(from_start)(keys)


if __name__ == "__main__":
    main()
