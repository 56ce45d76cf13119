"""A small transformer in equinox: layers scanned, trained on 8 devices, written and read back."""

import io

import equinox as eqx
import figures
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)

WIDTH, HEADS, LAYERS, WORDS, LENGTH = 32, 4, 3, 17, 12


class Block(eqx.Module):
    norm: eqx.nn.LayerNorm
    attention: eqx.nn.MultiheadAttention
    mlp: eqx.nn.MLP
    dropout: eqx.nn.Dropout

    def __init__(self, key):
        one, two = jax.random.split(key)
        self.norm = eqx.nn.LayerNorm(WIDTH)
        self.attention = eqx.nn.MultiheadAttention(HEADS, WIDTH, key=one)
        self.mlp = eqx.nn.MLP(WIDTH, WIDTH, 2 * WIDTH, 1, jax.nn.gelu, key=two)
        self.dropout = eqx.nn.Dropout(0.1)

    def __call__(self, x, key):
        y = jax.vmap(self.norm)(x)
        mask = jnp.tril(jnp.ones((len(x), len(x)), bool))
        x = x + self.attention(y, y, y, mask=mask)
        return x + self.dropout(jax.vmap(self.mlp)(x), key=key)


class Transformer(eqx.Module):
    words: eqx.nn.Embedding
    blocks: Block
    out: eqx.nn.Linear

    def __init__(self, key):
        one, two, three = jax.random.split(key, 3)
        self.words = eqx.nn.Embedding(WORDS, WIDTH, key=one)
        self.blocks = eqx.filter_vmap(Block)(jax.random.split(two, LAYERS))
        self.out = eqx.nn.Linear(WIDTH, WORDS, key=three)

    def __call__(self, ids, key):
        arrays, rest = eqx.partition(self.blocks, eqx.is_array)

        def layer(x, each):
            arrays, key = each
            return eqx.combine(arrays, rest)(x, key), None

        x = jax.vmap(self.words)(ids)
        x, _ = jax.lax.scan(jax.checkpoint(layer), x, (arrays, jax.random.split(key, LAYERS)))
        return jax.vmap(self.out)(x)


@eqx.filter_value_and_grad
def loss(model, ids, key):
    logits = jax.vmap(model)(ids[:, :-1], jax.random.split(key, len(ids)))
    return optax.softmax_cross_entropy_with_integer_labels(logits, ids[:, 1:]).mean()


def main():
    model = Transformer(jax.random.key(0))
    optimizer = optax.adam(3e-3)
    state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))
    mesh = jax.make_mesh((8,), ("batch",), axis_types=(jax.sharding.AxisType.Auto,))
    ids = jax.random.randint(jax.random.key(1), (16, LENGTH + 1), 0, WORDS)
    ids = jax.device_put(ids, NamedSharding(mesh, P("batch")))
    replicated = NamedSharding(mesh, P())
    model, state = eqx.filter_shard((model, state), replicated)

    @eqx.filter_jit(donate="all-except-first")
    def step(ids, model, state, key):
        value, grads = loss(model, ids, key)
        updates, state = optimizer.update(grads, state, eqx.filter(model, eqx.is_inexact_array))
        return eqx.apply_updates(model, updates), state, value

    losses = []
    for key in jax.random.split(jax.random.key(2), 20):
        model, state, value = step(ids, model, state, key)
        losses.append(value)

    file = io.BytesIO()
    eqx.tree_serialise_leaves(file, model)
    file.seek(0)
    read = eqx.tree_deserialise_leaves(file, Transformer(jax.random.key(5)))
    read = eqx.nn.inference_mode(read)
    logits = eqx.filter_jit(read)(jnp.arange(LENGTH), jax.random.key(0))
    checked = eqx.filter_jit(lambda x: eqx.error_if(x, x.sum() > 1e6, "too large"))
    return {"losses": losses, "logits": checked(logits)}


figures.show(main)
