"""Uses of the public API that a type checker accepts.  Checked, never run."""

import minijax as jax
import minijax.numpy as jnp
from minijax import lax


def loss(weights: jax.Array, inputs: jax.Array) -> jax.Array:
    total: jax.Array = jnp.sum(jnp.tanh(inputs @ weights) ** 2)
    return total


compiled = jax.jit(loss)
later = jax.jit(static_argnames="inputs")(loss)
with_options = jax.jit(loss, donate_argnums=0, static_argnames=("inputs",), keep_unused=True)
gradients = jax.grad(loss, argnums=(0, 1))
with_value = jax.value_and_grad(loss)
per_example = jax.vmap(jax.grad(loss), in_axes=(None, 0), out_axes=0)


def step(weights: jax.Array, inputs: jax.Array) -> jax.Array:
    moved: jax.Array = weights - 0.1 * jax.grad(loss)(weights, inputs)
    shifted: jax.Array = lax.add(moved, 1.0)
    return shifted


def operators(x: jax.Array) -> jax.Array:
    y: jax.Array = -x + 2 * x @ x.T - x[0]
    z: jax.Array = y.at[1:].set(0.0).astype(jnp.float32).reshape(-1)
    return z


def stages(x: jax.Array) -> str:
    lowered = compiled.lower(x, x)
    return f"{jax.make_jaxpr(loss)(x, x)} {lowered.as_text()} {lowered.compile()(x, x)}"


result = jax.ShapeDtypeStruct((2, 3), jnp.float32)
