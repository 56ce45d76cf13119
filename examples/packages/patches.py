"""Reads digits by attention between patches, whose shapes einops moves; `jax` means minijax here.

Nothing below the first import knows of minijax: it is a program for JAX, with a package that was
written for JAX. Patterns such as `"b (h p) (w q) -> b (h w) (p q)"` say what happens to dimensions.
"""

from __future__ import annotations

import minijax.as_jax  # `jax` means minijax from here on
import jax
import jax.numpy as jnp
import numpy as np
from einops import einsum, rearrange, reduce
from sklearn.datasets import load_digits

WIDTH, HEADS = 32, 4
STEPS, RATE = 300, 0.2


def init(key: jax.Array) -> dict[str, jax.Array]:
    """Parameters; patches have four pixels, and there are sixteen of them."""
    shapes = {
        "embed": (4, WIDTH),
        "place": (16, WIDTH),
        "qkv": (WIDTH, 3 * WIDTH),
        "read": (WIDTH, 10),
    }
    keys = jax.random.split(key, len(shapes))
    return {
        name: jax.random.normal(k, shape) / shape[0] ** 0.5
        for k, (name, shape) in zip(keys, shapes.items(), strict=True)
    }


def logits(params: dict[str, jax.Array], images: jax.Array) -> jax.Array:
    """What speaks for each digit: f32[b, 8, 8] -> f32[b, 10]."""
    x = rearrange(images, "b (h p) (w q) -> b (h w) (p q)", p=2, q=2) @ params["embed"]
    x = x + params["place"]
    q, k, v = rearrange(x @ params["qkv"], "b t (n h d) -> n b h t d", n=3, h=HEADS)
    scores = einsum(q, k, "b h t d, b h s d -> b h t s") / (WIDTH / HEADS) ** 0.5
    mixed = einsum(jax.nn.softmax(scores), v, "b h t s, b h s d -> b h t d")
    x = x + rearrange(mixed, "b h t d -> b t (h d)")
    return reduce(jnp.tanh(x), "b t c -> b c", "mean") @ params["read"]


def loss(params: dict[str, jax.Array], images: jax.Array, labels: jax.Array) -> jax.Array:
    """The mean surprise at the right digits."""
    logs = jax.nn.log_softmax(logits(params, images))
    return -jnp.take_along_axis(logs, labels[:, None], 1).mean()


@jax.jit
def step(params: dict[str, jax.Array], velocity: dict[str, jax.Array], batch: tuple) -> tuple:
    """A step of gradient descent with momentum."""
    slope = jax.grad(loss)(params, *batch)
    velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, slope)
    return jax.tree.map(lambda p, v: p - RATE * v, params, velocity), velocity


def main() -> float:
    """Trains on three quarters of the digits; the share of the others that is read rightly."""
    digits = load_digits()
    images, labels = (digits.images / 16).astype(np.float32), digits.target.astype(np.int32)
    order = np.random.default_rng(0).permutation(len(labels))
    train, held = order[: len(order) * 3 // 4], order[len(order) * 3 // 4 :]
    params = init(jax.random.key(0))
    velocity = jax.tree.map(jnp.zeros_like, params)
    generator = np.random.default_rng(1)
    for _ in range(STEPS):
        rows = generator.choice(train, 128)
        params, velocity = step(params, velocity, (images[rows], labels[rows]))
    found = jnp.argmax(logits(params, images[held]), 1)
    accuracy = float((found == labels[held]).mean())
    print(f"jax is minijax {minijax.__version__}, with the interface of JAX {jax.__version__}")
    print(f"{accuracy:.1%} of {len(held)} digits that it has not seen")
    return accuracy


if __name__ == "__main__":
    main()
