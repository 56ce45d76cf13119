"""A classifier trained with optax: a schedule, clipping, weight decay, masks, and L-BFGS."""

import pickle
import tempfile
from pathlib import Path

import figures
import jax
import jax.numpy as jnp
import optax


def predict(params, x):
    for w, b in params[:-1]:
        x = jax.nn.gelu(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def loss(params, x, labels):
    return optax.softmax_cross_entropy_with_integer_labels(predict(params, x), labels).mean()


def init(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    shapes = zip(sizes[:-1], sizes[1:], keys, strict=True)
    return [(jax.random.normal(k, (m, n)) / m**0.5, jnp.zeros(n)) for m, n, k in shapes]


def trained(params, data, optimizer, steps):
    @jax.jit
    def step(params, state):
        value, grads = jax.value_and_grad(loss)(params, *data)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    state, losses = optimizer.init(params), []
    for count in range(steps):
        params, state, value = step(params, state)
        losses.append(value)
        if count == steps // 2:
            # A checkpoint: all that goes on is read back.
            file = Path(tempfile.mkdtemp()) / "state"
            file.write_bytes(pickle.dumps(jax.device_get((params, state))))
            params, state = pickle.loads(file.read_bytes())
    return params, losses


def main():
    key = jax.random.key(0)
    x = jax.random.normal(key, (64, 8))
    labels = (x[:, 0] * x[:, 1] > 0).astype(jnp.int32)
    params = init(jax.random.key(1), (8, 32, 32, 2))
    optimizers = {
        "adamw": optax.chain(
            optax.clip_by_global_norm(1.0),
            optax.adamw(
                optax.warmup_cosine_decay_schedule(0.0, 1e-2, 5, 40),
                weight_decay=1e-3,
                mask=lambda params: jax.tree.map(lambda x: x.ndim > 1, params),
            ),
        ),
        "lion": optax.lion(1e-3),
        "adafactor": optax.adafactor(1e-2),
        "muon": optax.contrib.muon(1e-2),
        "averaged": optax.MultiSteps(optax.sgd(0.1, momentum=0.9, nesterov=True), 2),
    }
    told = {}
    for name, optimizer in optimizers.items():
        after, losses = trained(params, (x, labels), optimizer, 40)
        told[name] = losses[::10]
        told[f"{name} norm"] = optax.global_norm(after)

    solver = optax.lbfgs()
    weights, state = jnp.zeros(8), solver.init(jnp.zeros(8))

    def convex(w):
        return jnp.mean(jnp.logaddexp(0.0, -(2 * labels - 1) * (x @ w))) + 0.01 * w @ w

    value_and_grad = optax.value_and_grad_from_state(convex)
    for _ in range(5):
        value, grad = value_and_grad(weights, state=state)
        updates, state = solver.update(
            grad, state, weights, value=value, grad=grad, value_fn=convex
        )
        weights = optax.apply_updates(weights, updates)
    told["lbfgs"] = weights
    return told


figures.show(main)
