"""Uses of the public API that a type checker refuses, each with the code it refuses them by.

A use that passes after all is reported as an unused `type: ignore`.
"""

import minijax as jax
import minijax.numpy as jnp
from minijax import lax


def loss(weights: jax.Array) -> jax.Array:
    total: jax.Array = jnp.sum(weights)
    return total


jax.jit(3)  # type: ignore[call-overload]
jax.jit(loss, static_argnum=0)  # type: ignore[call-overload]
jax.grad("loss")  # type: ignore[arg-type]
jax.vmap(loss, 0, 0, axes=0)  # type: ignore[call-arg]
jax.make_jaxpr()  # type: ignore[call-overload]
jax.ShapeDtypeStruct((2, 3))  # type: ignore[call-arg]
jnp.sum()  # type: ignore[call-arg]
lax.add(1.0)  # type: ignore[call-arg]
jnp.sum([1, 2])  # type: ignore[arg-type]
jnp.sum("12")  # type: ignore[arg-type]
jnp.sum(1, axis=1.5)  # type: ignore[arg-type]
jnp.zeros((2, "3"))  # type: ignore[arg-type]
jnp.add(1)  # type: ignore[call-arg]
jnp.ones(3).summ()  # type: ignore[attr-defined]
jnp.linalg.qr(jnp.eye(2), "r").Q  # type: ignore[attr-defined]
jax.random.normal()  # type: ignore[call-arg]
jax.nn.relu("x")  # type: ignore[arg-type]
jax.jit(loss)(1.0).summ()  # type: ignore[attr-defined]
jax.jit(loss).lowered(1.0)  # type: ignore[attr-defined]
jax.vmap(loss)()  # type: ignore[call-arg]
jax.value_and_grad(loss)(1.0).T  # type: ignore[attr-defined]
lax.scan(loss, jnp.ones(3), None)  # type: ignore[arg-type]
lax.while_loop(True, loss, jnp.ones(3))  # type: ignore[arg-type]
lax.fori_loop(0, 3, loss, jnp.ones(3))  # type: ignore[arg-type]
jax.debug.print(3)  # type: ignore[call-overload]
