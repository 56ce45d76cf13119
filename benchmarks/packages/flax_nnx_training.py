"""A network in flax.nnx: layers made by vmap and scanned, batch norm, an optimizer, one split."""

import figures
import jax
import jax.numpy as jnp
import optax
from flax import nnx


class Block(nnx.Module):
    def __init__(self, width, rngs):
        self.linear = nnx.Linear(width, width, use_bias=False, rngs=rngs)
        self.norm = nnx.BatchNorm(width, rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)

    def __call__(self, x):
        return x + self.dropout(nnx.gelu(self.norm(self.linear(x))))


class Network(nnx.Module):
    def __init__(self, width, layers, rngs):
        self.first = nnx.Linear(8, width, rngs=rngs)

        @nnx.split_rngs(splits=layers)
        @nnx.vmap(in_axes=(0,), out_axes=0)
        def make(rngs):
            return Block(width, rngs)

        self.blocks = make(rngs)
        self.last = nnx.Linear(width, 2, rngs=rngs)

    def __call__(self, x):
        @nnx.scan(in_axes=(0, nnx.Carry), out_axes=nnx.Carry)
        def run(block, x):
            return block(x)

        return self.last(run(self.blocks, self.first(x)))


@nnx.jit
def step(model, optimizer, metrics, x, labels):
    def loss(model):
        logits = model(x)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean(), logits

    (value, logits), grads = nnx.value_and_grad(loss, has_aux=True)(model)
    optimizer.update(model, grads)
    metrics.update(loss=value, logits=logits, labels=labels)
    return value


def main():
    x = jax.random.normal(jax.random.key(0), (64, 8))
    labels = (x[:, 0] * x[:, 1] > 0).astype(jnp.int32)
    model = Network(16, 3, nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adamw(1e-2), wrt=nnx.Param)
    metrics = nnx.MultiMetric(accuracy=nnx.metrics.Accuracy(), loss=nnx.metrics.Average("loss"))
    losses = [step(model, optimizer, metrics, x, labels) for _ in range(20)]
    model.eval()
    graph, params, rest = nnx.split(model, nnx.Param, ...)
    merged = nnx.merge(graph, params, rest)
    return {
        "losses": losses,
        "metrics": metrics.compute(),
        "logits": merged(x[:4]),
        "parameters": sum(leaf.size for leaf in jax.tree.leaves(params)),
        "shape": nnx.eval_shape(lambda: Network(16, 3, nnx.Rngs(0))).first.kernel.shape,
    }


figures.show(main)
