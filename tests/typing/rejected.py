"""Uses of the public API that a type checker refuses, each with the code it refuses them by.

A use that passes after all is reported as an unused `type: ignore`.
"""

import minijax as jax
import minijax.numpy as jnp
from minijax import lax


def loss(weights: jax.Array) -> jax.Array:
    total: jax.Array = jnp.sum(weights)
    return total


jax.jit(3)  # type: ignore[arg-type]
jax.jit(loss, static_argnum=0)  # type: ignore[call-arg]
jax.grad("loss")  # type: ignore[arg-type]
jax.vmap(loss, 0, 0, axes=0)  # type: ignore[call-arg]
jax.make_jaxpr()  # type: ignore[call-arg]
jax.ShapeDtypeStruct((2, 3))  # type: ignore[call-arg]
jnp.sum()  # type: ignore[call-arg]
lax.add(1.0)  # type: ignore[call-arg]
