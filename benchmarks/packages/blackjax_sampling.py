"""Samplers of blackjax: NUTS after its window adaptation, and HMC of several chains."""

import blackjax
import figures
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)


def density(x):
    return -0.5 * jnp.sum((x["mean"] - 1.0) ** 2 / jnp.array([1.0, 4.0])) - 0.5 * x["rest"] ** 2


def run(key, kernel, state, count):
    def step(state, key):
        state, info = kernel(key, state)
        return state, (state, info)

    return jax.lax.scan(step, state, jax.random.split(key, count))[1]


def main():
    start = {"mean": jnp.zeros(2), "rest": jnp.array(0.5)}
    adapted, info = blackjax.window_adaptation(blackjax.nuts, density).run(
        jax.random.key(0), start, 200
    )
    nuts = blackjax.nuts(density, **adapted.parameters)
    states, info = jax.jit(lambda key: run(key, nuts.step, adapted.state, 200))(jax.random.key(1))
    hmc = blackjax.hmc(density, 0.3, jnp.ones(3), 5)
    starts = jax.vmap(lambda s: jax.tree.map(lambda x: s + x, start))(jnp.arange(4.0))
    chains = jax.vmap(hmc.init)(starts)
    keys = jax.random.split(jax.random.key(2), 4)
    many, _ = jax.vmap(lambda key, state: run(key, hmc.step, state, 50))(keys, chains)
    return {
        "step size": adapted.parameters["step_size"],
        "mean": jax.tree.map(lambda x: x.mean(0), states.position),
        "accepted": info.acceptance_rate.mean(),
        "leapfrogs": info.num_integration_steps.sum(),
        "chains": jax.tree.map(lambda x: x.mean(1), many.position),
        "ess": blackjax.ess(many.position["mean"]),
    }


figures.show(main)
