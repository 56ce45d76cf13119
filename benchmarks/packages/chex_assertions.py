"""Checks of chex: dataclasses as trees, assertions on shapes and values, and variants of a test."""

import chex
import figures
import jax
import jax.numpy as jnp


@chex.dataclass
class Moments:
    mean: chex.Array
    square: chex.Array


@chex.assert_max_traces(n=2)
def updated(moments: Moments, x: chex.Array) -> Moments:
    chex.assert_rank(x, 1)
    chex.assert_equal_shape([moments.mean, x])
    return Moments(mean=0.9 * moments.mean + 0.1 * x, square=0.9 * moments.square + 0.1 * x**2)


def refused(function, *args):
    try:
        function(*args)
    except AssertionError:
        return 1
    return 0


def main():
    moments = Moments(mean=jnp.zeros(3), square=jnp.ones(3))
    step = jax.jit(updated)
    for row in jnp.arange(12.0).reshape(4, 3):
        moments = step(moments, row)
    chex.assert_tree_all_finite(moments)
    chex.assert_trees_all_close(moments, jax.tree.map(lambda x: x + 0.0, moments))
    chex.assert_shape(moments.mean, (3,))

    @chex.chexify
    @jax.jit
    def positive(x):
        chex.assert_tree_all_finite(x)
        return jnp.log(x)

    positive(jnp.ones(2)).block_until_ready()
    positive.wait_checks()
    with chex.fake_pmap_and_jit():
        mapped = jax.pmap(lambda x: x * 2)(jnp.ones((4, 2)))
    return {
        "moments": dict(moments.items()),
        "fake": mapped,
        "refused": [
            refused(chex.assert_shape, moments.mean, (4,)),
            refused(chex.assert_rank, moments.mean, 2),
            refused(chex.assert_trees_all_close, moments, jax.tree.map(jnp.zeros_like, moments)),
            refused(chex.assert_type, moments.mean, int),
            refused(chex.assert_trees_all_equal_shapes, {"a": jnp.ones(2)}, {"a": jnp.ones(3)}),
        ],
        "replaced": moments.replace(mean=jnp.ones(3)).mean,
    }


figures.show(main)
