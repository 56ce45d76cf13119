"""Shapes and dtypes in annotations, asked of arrays inside and outside of transformations."""

import figures
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree, Shaped, jaxtyped


@jaxtyped(typechecker=None)
def scaled(x, by):
    # Sizes with a name are the same in all of one call.
    if not isinstance(x, Float[Array, "batch width"]):
        raise TypeError("x")
    if not isinstance(by, Float[Array, " width"]):
        raise TypeError("by")
    return x * by


@jaxtyped(typechecker=None)
def sums(tree):
    if not isinstance(tree, PyTree[Float[Array, "..."]]):
        raise TypeError("tree")
    return sum(x.sum() for x in jax.tree.leaves(tree))


def refused(function, *args):
    try:
        function(*args)
    except TypeError:
        return 1
    return 0


def main():
    x, by = jnp.ones((4, 3)), jnp.arange(3.0)
    asked = [
        isinstance(x, Float[Array, "4 3"]),
        isinstance(x, Int[Array, "..."]),
        isinstance(x > 0, Bool[Array, "a b"]),
        isinstance(jax.random.key(0), Key[Array, ""]),
        isinstance(x.astype(jnp.bfloat16), Float[Array, "..."]),
        isinstance(jax.ShapeDtypeStruct((2,), jnp.float32), Float[jax.ShapeDtypeStruct, " n"]),
        isinstance(x[0, 0], Shaped[Array, ""]),
    ]
    return {
        "scaled": jax.jit(scaled)(x, by),
        "gradient": jax.grad(lambda x: scaled(x, by).sum())(x),
        "batch": jax.vmap(scaled, (0, None))(jnp.ones((2, 4, 3)), by),
        "sum": sums({"a": x, "b": by}),
        "refused": [
            refused(scaled, x, jnp.ones(4)),
            refused(jax.jit(scaled), x, by.astype(int)),
            refused(sums, {"a": 1}),
        ],
        "asked": asked,
    }


figures.show(main)
