"""Programs whose pages the browser opens: one device, many, derivatives, batches, loops."""

from collections.abc import Iterator

import minijax as jax
import minijax.numpy as jnp
from minijax import explain
from minijax.core import config
from minijax.explain.pages.making import Page
from minijax.sharding import AxisType, NamedSharding, PartitionSpec

P = PartitionSpec


def wave(w, x):
    return jnp.sum(x * jnp.sin(w * x))


def scanned(x):
    def body(carry, t):
        return jnp.tanh(carry) * t, carry

    last, every = jax.lax.scan(body, x, jnp.arange(1.0, 5.0))
    return jax.lax.cond(last > 0, lambda: last * 2, lambda: last + 1), every


def attention(x, w):
    q, k, v = jnp.split(x @ w, 3, axis=-1)
    return jax.nn.softmax(q @ k.T / 4.0) @ v


def transformer(params, x):
    for w, up, down in params:
        x = x + attention(x, w)
        x = x + jax.nn.gelu(x @ up) @ down
    return jnp.mean(x**2)


def layer(params, x):
    up, down = params
    return jnp.mean((jnp.tanh(x @ up) @ down) ** 2)


def ring(a):
    total = piece = a
    for _ in range(3):
        piece = jax.lax.ppermute(piece, "x", [(i, (i + 1) % 4) for i in range(4)])
        total = total + piece
    return total


def stuck(a):
    onward = [(i, (i + 1) % 4) for i in range(4)]
    moved = a + jax.lax.ppermute(a, "x", onward)
    is_first = jax.lax.axis_index("x") == 0
    return jax.lax.cond(is_first, lambda: jax.lax.ppermute(moved, "x", onward), lambda: 2 * moved)


def centered(rows):
    return rows - jax.lax.pmean(jnp.mean(rows, 0), "x")


def pages() -> Iterator[tuple[str, Page]]:
    """The pages by name."""
    called = jax.jit(wave)
    called(2.0, jnp.arange(3.0))
    called(2, jnp.arange(3))
    yield "wave", explain.page(called)(2.0, jnp.arange(6.0))
    yield "again", explain.page(called)(2.0, jnp.arange(6.0))
    yield "slope", explain.page(jax.grad(wave))(2.0, jnp.arange(6.0))
    batched = jax.vmap(jax.grad(wave), in_axes=(None, 0))
    yield "batch", explain.page(batched)(2.0, jnp.arange(12.0).reshape(3, 4))
    yield "loop", explain.page(scanned)(0.5)
    block = jnp.ones((8, 24)) / 8, jnp.ones((8, 16)) / 8, jnp.ones((16, 8)) / 8
    step = jax.value_and_grad(transformer)
    yield "transformer", explain.page(step)([block] * 12, jnp.arange(32.0).reshape(4, 8) / 32)
    yield (
        "struct",
        explain.page(layer)(
            (
                jax.ShapeDtypeStruct((8, 16), jnp.float32),
                jax.ShapeDtypeStruct((16, 4), jnp.float32),
            ),
            jax.ShapeDtypeStruct((32, 8), jnp.float32),
        ),
    )
    with jax.cpu_devices(8):
        mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

        def put(value, *spec):
            return jax.device_put(value, NamedSharding(mesh, P(*spec)))

        params = put(jnp.ones((8, 16)) / 9, None, "y"), put(jnp.ones((16, 4)) / 9, "y")
        x = put(jnp.arange(64.0).reshape(8, 8) / 64, "x")
        choices = {
            "data": ((P(), P()), P("x")),
            "data and model": ((P(None, "y"), P("y")), P("x")),
            "whole": P(),
        }
        compared = explain.compare(jax.value_and_grad(layer), mesh.abstract_mesh, choices)
        yield "choices", compared(params, x).page()
        yield "sharded", explain.page(jax.value_and_grad(layer))(params, x)
        wide, tall = put(jnp.ones((2, 8)), None, "x"), put(jnp.ones((8, 2)), "x")
        yield "product", explain.page(jax.jit(jnp.matmul))(wide, tall)
        line = jax.make_mesh((4,), ("x",))
        cut = {"mesh": line, "in_specs": P("x"), "out_specs": P("x")}
        yield "ring", explain.page(jax.shard_map(ring, **cut))(jnp.arange(8.0))
        yield "centered", explain.page(jax.shard_map(centered, **cut))(jnp.ones((8, 2)))
        with config.allow_divergent_collectives(True):
            yield "stuck", explain.page(jax.shard_map(stuck, **cut))(jnp.arange(4.0))
        scale = jax.pmap(lambda x: x / jax.lax.psum(x, "i"), axis_name="i")
        yield "pmap", explain.page(scale)(jnp.ones((8, 3)))
