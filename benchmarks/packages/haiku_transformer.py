"""A small transformer in haiku: a stack of layers, state, remat, and keys by position."""

import figures
import haiku as hk
import jax
import jax.numpy as jnp
import optax

WIDTH, HEADS, LAYERS, WORDS, LENGTH = 32, 4, 3, 17, 12


def block(x):
    y = hk.LayerNorm(-1, create_scale=True, create_offset=True)(x)
    mask = jnp.tril(jnp.ones((1, 1, LENGTH, LENGTH)))
    start = hk.initializers.VarianceScaling(2 / LAYERS)
    x = x + hk.MultiHeadAttention(HEADS, WIDTH // HEADS, w_init=start, model_size=WIDTH)(
        y, y, y, mask=mask
    )
    y = hk.nets.MLP([2 * WIDTH, WIDTH], activation=jax.nn.gelu)(x)
    return x + hk.dropout(hk.next_rng_key(), 0.1, y)


def network(ids):
    x = hk.Embed(WORDS, WIDTH)(ids)
    x = hk.experimental.layer_stack(LAYERS)(hk.remat(block))(x)
    calls = hk.get_state("calls", (), init=jnp.zeros)
    hk.set_state("calls", calls + 1)
    return hk.Linear(WORDS)(hk.BatchNorm(True, True, 0.9)(x, is_training=True))


def main():
    model = hk.transform_with_state(network)
    ids = jax.random.randint(jax.random.key(1), (16, LENGTH + 1), 0, WORDS)
    params, state = model.init(jax.random.key(0), ids[:, :-1])
    optimizer = optax.adam(3e-3)
    memory = optimizer.init(params)

    @jax.jit
    def step(params, state, memory, key):
        def loss(params):
            logits, after = model.apply(params, state, key, ids[:, :-1])
            value = optax.softmax_cross_entropy_with_integer_labels(logits, ids[:, 1:]).mean()
            return value, after

        (value, after), grads = jax.value_and_grad(loss, has_aux=True)(params)
        updates, memory = optimizer.update(grads, memory, params)
        return optax.apply_updates(params, updates), after, memory, value

    losses = []
    for key in jax.random.split(jax.random.key(2), 20):
        params, state, memory, value = step(params, state, memory, key)
        losses.append(value)
    recurrent = hk.without_apply_rng(
        hk.transform(lambda x: hk.dynamic_unroll(hk.LSTM(4), x, hk.LSTM(4).initial_state(2))[0])
    )
    x = jax.random.normal(jax.random.key(3), (5, 2, 3))
    weights = recurrent.init(jax.random.key(4), x)
    return {
        "losses": losses,
        "calls": state["~"]["calls"],
        "parameters": hk.data_structures.tree_size(params),
        "lstm": recurrent.apply(weights, x),
    }


figures.show(main)
