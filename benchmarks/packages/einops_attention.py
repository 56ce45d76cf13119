"""Patterns of einops on arrays inside and outside of jit, with gradients and batches."""

import figures
import jax
import jax.numpy as jnp
from einops import einsum, pack, rearrange, reduce, repeat, unpack


def attention(qkv, heads):
    q, k, v = rearrange(qkv, "b t (three h d) -> three b h t d", three=3, h=heads)
    weights = jax.nn.softmax(einsum(q, k, "b h t d, b h s d -> b h t s") / q.shape[-1] ** 0.5)
    return rearrange(einsum(weights, v, "b h t s, b h s d -> b h t d"), "b h t d -> b t (h d)")


def main():
    qkv = jax.random.normal(jax.random.key(0), (2, 5, 24))
    images = jnp.arange(2 * 4 * 4 * 3.0).reshape(2, 4, 4, 3)
    patches = jax.jit(lambda x: rearrange(x, "b (h p) (w q) c -> b (h w) (p q c)", p=2, q=2))(
        images
    )
    packed, shapes = pack([images[:, 0, 0], images], "b * c")
    first, second = unpack(packed, shapes, "b * c")
    return {
        "attention": attention(qkv, 4),
        "gradient": jax.jit(jax.grad(lambda x: (attention(x, 2) ** 2).sum()))(qkv),
        "patches": patches,
        "pooled": reduce(images, "b (h p) (w q) c -> b h w c", "max", p=2, q=2),
        "batched": jax.vmap(lambda x: reduce(x, "h w c -> c", "mean"))(images),
        "repeated": repeat(images[0, :, :, 0], "h w -> (h 2) w"),
        "packed": [packed.shape, first, second.sum()],
    }


figures.show(main)
