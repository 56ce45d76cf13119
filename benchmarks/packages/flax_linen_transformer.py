"""A small transformer in flax.linen: layers scanned with weights of their own, on 8 devices."""

import figures
import flax
import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training import train_state
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)

WIDTH, HEADS, LAYERS, WORDS, LENGTH = 32, 4, 3, 17, 12


class Block(nn.Module):
    train: bool

    @nn.compact
    def __call__(self, x, _):
        y = nn.LayerNorm()(x)
        mask = nn.make_causal_mask(jnp.ones(x.shape[:-1]))
        x = x + nn.MultiHeadDotProductAttention(HEADS, qkv_features=WIDTH)(y, mask=mask)
        y = nn.Dense(2 * WIDTH)(nn.LayerNorm()(x))
        y = nn.Dropout(0.1, deterministic=not self.train)(nn.Dense(WIDTH)(nn.gelu(y)))
        self.sow("intermediates", "size", jnp.abs(y).mean())
        return x + y, None


class Transformer(nn.Module):
    train: bool = True

    @nn.compact
    def __call__(self, ids):
        x = nn.Embed(WORDS, WIDTH)(ids)
        layers = nn.scan(
            nn.remat(Block),
            variable_axes={"params": 0, "intermediates": 0},
            split_rngs={"params": True, "dropout": True},
            length=LAYERS,
        )
        x, _ = layers(self.train)(x, None)
        x = nn.BatchNorm(use_running_average=not self.train)(x)
        return nn.Dense(WORDS)(x)


class State(train_state.TrainState):
    averages: dict


@jax.jit
def step(state, ids, key):
    def loss(params):
        logits, more = state.apply_fn(
            {"params": params, "batch_stats": state.averages},
            ids[:, :-1],
            rngs={"dropout": key},
            mutable=["batch_stats", "intermediates"],
        )
        value = optax.softmax_cross_entropy_with_integer_labels(logits, ids[:, 1:]).mean()
        return value, more

    (value, more), grads = jax.value_and_grad(loss, has_aux=True)(state.params)
    state = state.apply_gradients(grads=grads, averages=more["batch_stats"])
    return state, value, more["intermediates"]


def main():
    model = Transformer()
    ids = jax.random.randint(jax.random.key(1), (16, LENGTH + 1), 0, WORDS)
    keys = {"params": jax.random.key(0), "dropout": jax.random.key(3)}
    variables = model.init(keys, ids[:, :-1])
    state = State.create(
        apply_fn=model.apply,
        params=variables["params"],
        averages=variables["batch_stats"],
        tx=optax.adam(3e-3),
    )
    mesh = jax.make_mesh((8,), ("batch",), axis_types=(jax.sharding.AxisType.Auto,))
    ids = jax.device_put(ids, NamedSharding(mesh, P("batch")))
    state = jax.device_put(state, NamedSharding(mesh, P()))
    losses = []
    for key in jax.random.split(jax.random.key(2), 20):
        state, value, seen = step(state, ids, key)
        losses.append(value)

    data = flax.serialization.to_bytes(state)
    state = flax.serialization.from_bytes(state, data)
    logits = Transformer(train=False).apply(
        {"params": state.params, "batch_stats": state.averages}, jnp.arange(LENGTH)[None]
    )
    table = Transformer().tabulate(keys, ids[:, :-1], console_kwargs={"width": 200})
    return {
        "losses": losses,
        "logits": logits,
        "seen": jax.tree.leaves(seen),
        "parameters": sum(x.size for x in jax.tree.leaves(state.params)),
        "lines of the table": len(table.splitlines()),
    }


figures.show(main)
