"""Uses of the public API that a type checker accepts.  Checked, never run."""

import minijax as jax
import minijax.numpy as jnp
from minijax import lax


def loss(weights: jax.Array, inputs: jax.Array) -> jax.Array:
    return jnp.sum(jnp.tanh(inputs @ weights) ** 2)


compiled = jax.jit(loss)
with_options = jax.jit(loss, donate_argnums=0, static_argnames=("inputs",), keep_unused=True)
gradients = jax.grad(loss, argnums=(0, 1))
with_value = jax.value_and_grad(loss)
per_example = jax.vmap(jax.grad(loss), in_axes=(None, 0), out_axes=0)


@jax.jit
def step(weights: jax.Array, inputs: jax.Array) -> jax.Array:
    return weights - 0.1 * jax.grad(loss)(weights, inputs)


@jax.jit(static_argnames="times")
def repeated(weights: jax.Array, times: int) -> jax.Array:
    return lax.add(weights, 1.0 * times)


def operators(x: jax.Array) -> jax.Array:
    y: jax.Array = -x + 2 * x @ x.T - x[0]
    return y.at[1:].set(0.0).astype(jnp.float32).reshape(-1)


def stages(x: jax.Array) -> str:
    lowered = compiled.lower(x, x)
    return f"{jax.make_jaxpr(loss)(x, x)} {lowered.as_text()} {lowered.compile()(x, x)}"


result = jax.ShapeDtypeStruct((2, 3), jnp.float32)
