"""The programs over eight devices that both libraries run for the comparison of their partitioning.

Each is a function, its arguments, placed, and what `jit` is told; small enough for its StableHLO to
be read.  The mesh has axes x of size 4 and y of size 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np


class Sharded(NamedTuple):
    """A program.

    Attributes:
        function: what is jitted.
        args: its arguments.
        options: what `jit` is told.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    options: dict[str, Any]


Programs = dict[str, Sharded]


class Place:
    """One library, its mesh of eight devices, and arrays on it."""

    def __init__(self, jax: Any) -> None:
        self.jax = jax
        self.P = jax.sharding.PartitionSpec
        devices = np.array(jax.devices()[:8]).reshape(4, 2)
        self.mesh = jax.sharding.Mesh(devices, ("x", "y"))

    def at(self, *entries: Any, **more: Any) -> Any:
        """The placement of a spec with these entries."""
        return self.jax.sharding.NamedSharding(self.mesh, self.P(*entries), **more)

    def put(self, value: np.ndarray[Any, Any], *entries: Any) -> Any:
        """A value placed so."""
        return self.jax.device_put(value, self.at(*entries))

    def floats(self, shape: tuple[int, ...], *entries: Any) -> Any:
        """Numbers between -1 and 1, placed so."""
        return self.put(_floats(shape), *entries)

    def constrain(self, x: Any, *entries: Any) -> Any:
        """A value inside a program, placed so."""
        return self.jax.lax.with_sharding_constraint(x, self.at(*entries))


def build(jax: Any) -> Programs:
    """Every program by its name."""
    place = Place(jax)
    programs: Programs = {}
    for group in (
        _elementwise,
        _contractions,
        _reductions,
        _shapes,
        _indexing,
        _placements,
        _layers,
        _loops,
        _gradients,
        _training,
        _random,
        _calls,
        _explicit,
    ):
        for name, program in group(jax, place).items():
            if name in programs:
                raise ValueError(f"two programs are called {name}")
            programs[name] = program
    return programs


def _program(function: Callable[..., Any], *args: Any, **options: Any) -> Sharded:
    return Sharded(function, args, options)


def _floats(shape: Sequence[int]) -> np.ndarray[Any, Any]:
    count = int(np.prod(shape))
    return np.cos(np.arange(count)).astype(np.float32).reshape(shape)


def _elementwise(jax: Any, place: Place) -> Programs:
    jnp, f = jax.numpy, place.floats
    return {
        "elementwise": _program(
            lambda x, y: jnp.sin(x) * y + x, f((8, 4), "x", "y"), f((8, 4), "x", "y")
        ),
        "elementwise-broadcast": _program(lambda x, b: x + b, f((8, 4), "x", "y"), f((4,), "y")),
        "elementwise-conflict": _program(lambda x, y: x + y, f((8, 4), "x"), f((8, 4), None, "y")),
        "multiple-axes": _program(lambda x: x * 2.0, f((16, 4), ("x", "y"))),
        "reversed-axes": _program(lambda x: x * 2.0, f((16, 4), ("y", "x"))),
        "replicated": _program(lambda x: x - 1.0, f((8, 4))),
        "scalar": _program(lambda x, s: x * s, f((8, 4), "x"), 3.0),
    }


def _contractions(jax: Any, place: Place) -> Programs:
    jnp, f = jax.numpy, place.floats
    a, b = (8, 16), (16, 8)
    return {
        "matmul-rows": _program(jnp.dot, f(a, "x"), f(b)),
        "matmul-columns": _program(jnp.dot, f(a), f(b, None, "y")),
        "matmul-contracted": _program(jnp.dot, f(a, None, "x"), f(b, "x")),
        "matmul-rows-columns": _program(jnp.dot, f(a, "x"), f(b, None, "y")),
        "matmul-gathered": _program(jnp.dot, f(a, "x"), f(b, "x"), out_shardings=place.at("x")),
        "matmul-scattered": _program(
            jnp.dot, f(a, None, "x"), f(b, "x"), out_shardings=place.at("x")
        ),
        "einsum-batch": _program(
            lambda x, y: jnp.einsum("bij,bjk->bik", x, y),
            f((8, 4, 6), "x"),
            f((8, 6, 4), "x", None, "y"),
        ),
        "convolution-batch": _program(
            lambda x, k: jax.lax.conv_general_dilated(
                x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            ),
            f((8, 6, 6, 3), ("x", "y")),
            f((3, 3, 3, 4)),
        ),
    }


def _reductions(jax: Any, place: Place) -> Programs:
    jnp, lax, f = jax.numpy, jax.lax, place.floats
    x = f((8, 16), "x", "y")
    return {
        "sum": _program(lambda x: [jnp.sum(x), jnp.sum(x, axis=0), jnp.sum(x, axis=1)], x),
        "extrema": _program(lambda x: [jnp.max(x, axis=0), jnp.argmax(x, axis=1)], x),
        "softmax": _program(lambda x: jax.nn.softmax(x, axis=1), x),
        "sort": _program(lambda x: lax.sort(x, dimension=1), x),
        "sort-free": _program(lambda x: lax.sort(x, dimension=1), f((8, 16), "x")),
        "cumulative-sum": _program(lambda x: lax.cumsum(x, axis=1), f((8, 16), "x")),
        "top-k": _program(lambda x: lax.top_k(x, 3), f((8, 16), "x")),
    }


def _shapes(jax: Any, place: Place) -> Programs:
    jnp, lax, f = jax.numpy, jax.lax, place.floats
    x = f((8, 16), "x", "y")
    return {
        "transpose": _program(jnp.transpose, x),
        "reshape-merged": _program(lambda x: jnp.reshape(x, (128,)), f((8, 16), "x")),
        "reshape-split": _program(lambda x: jnp.reshape(x, (4, 2, 16)), f((8, 16), "x")),
        "concatenate": _program(lambda x, y: lax.concatenate([x, y], 1), x, f((8, 4), "x", "y")),
        "pad": _program(lambda x: lax.pad(x, 0.0, ((0, 0, 0), (1, 1, 0))), f((8, 6), "x")),
    }


def _indexing(jax: Any, place: Place) -> Programs:
    lax, f = jax.lax, place.floats
    tokens = np.arange(32, dtype=np.int32).reshape(8, 4) % 16
    return {
        "slice-dynamic": _program(
            lambda x, i: lax.dynamic_slice(x, (0, i), (8, 4)), f((8, 16), "x"), np.int32(3)
        ),
        "update-dynamic": _program(
            lambda x, u, i: lax.dynamic_update_slice(x, u, (0, i)),
            f((8, 16), "x"),
            f((8, 2), "x"),
            np.int32(5),
        ),
        "embedding": _program(lambda t, i: t[i], f((16, 6), "y"), place.put(tokens, "x")),
        "embedding-columns": _program(
            lambda t, i: t[i], f((16, 6), None, "y"), place.put(tokens, "x")
        ),
        "scatter-add": _program(
            lambda t, i, u: t.at[i].add(u),
            f((16, 6), None, "y"),
            place.put(tokens, "x"),
            f((8, 4, 6), "x"),
        ),
    }


def _placements(jax: Any, place: Place) -> Programs:
    jnp, f, open_ = jax.numpy, place.floats, place.P.UNCONSTRAINED
    x = f((8, 16), "x")
    abstract = jax.sharding.NamedSharding(place.mesh.abstract_mesh, place.P(None, "y"))
    return {
        "constraint": _program(lambda x: place.constrain(x * 2.0, None, "y") + 1.0, x),
        "constraint-open": _program(lambda x: place.constrain(x * 2.0, open_, "y"), x),
        "constraint-abstract": _program(
            lambda x: jax.lax.with_sharding_constraint(x * 2.0, abstract), x
        ),
        "constraint-host-argument": _program(
            lambda x: place.constrain(x, ("x", "y")) * 2.0, _floats((8, 4))
        ),
        "resharded": _program(lambda x: x * 2.0, x, out_shardings=place.at(None, "x")),
        "gathered": _program(lambda x: x * 2.0, x, out_shardings=place.at()),
        "in-shardings": _program(
            lambda x, y: x @ y,
            _floats((8, 16)),
            _floats((16, 4)),
            in_shardings=(place.at("x"), place.at(None, "y")),
        ),
        "donated": _program(lambda x, y: (x + y, jnp.sum(y)), f((8, 16), "x"), x, donate_argnums=0),
        "donated-placed": _program(
            lambda x, y: x + y, f((8, 16), "x"), x, donate_argnums=0, out_shardings=place.at("x")
        ),
        "identity": _program(lambda x, y: (x, y), x, f((4,), "y")),
        "unused": _program(lambda x, y: x * 2.0, x, f((4,), "y")),
        "put-inside": _program(lambda x: jax.device_put(x * 2.0, place.at(None, "y")), x),
        "put-other-memory": _program(
            lambda x: jax.device_put(x * 2.0, place.at("x", memory_kind="pinned_host")), x
        ),
        "result-other-memory": _program(
            lambda x: x * 2.0, x, out_shardings=place.at("x", memory_kind="pinned_host")
        ),
    }


def _layers(jax: Any, place: Place) -> Programs:
    jnp, f = jax.numpy, place.floats

    def layer_norm(x: Any, scale: Any) -> Any:
        centred = x - jnp.mean(x, axis=-1, keepdims=True)
        return (
            centred * jax.lax.rsqrt(jnp.mean(centred * centred, -1, keepdims=True) + 1e-5) * scale
        )

    def attention(q: Any, k: Any, v: Any) -> Any:
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / 2.0
        weights = jnp.exp(scores - jnp.max(scores, axis=-1, keepdims=True))
        return jnp.einsum("bhqk,bkhd->bqhd", weights / jnp.sum(weights, -1, keepdims=True), v)

    heads = f((4, 6, 2, 4), "x", None, "y")
    return {
        "layer-norm": _program(layer_norm, f((8, 16), "x"), f((16,))),
        "layer-norm-features": _program(layer_norm, f((8, 16), "x", "y"), f((16,), "y")),
        "attention": _program(attention, heads, heads, heads),
        "mlp-tensor-parallel": _program(
            lambda x, a, b: jnp.tanh(x @ a) @ b,
            f((8, 16), "x"),
            f((16, 8), None, "y"),
            f((8, 16), "y"),
        ),
        "vmap-constraint": _program(
            jax.vmap(lambda x, w: place.constrain(x @ w, "y"), in_axes=(0, None)),
            f((8, 16), "x"),
            f((16, 4)),
        ),
    }


def _loops(jax: Any, place: Place) -> Programs:
    jnp, lax, f = jax.numpy, jax.lax, place.floats
    layers = f((3, 16, 16), None, "x", "y")

    def fully_sharded(x: Any, layers: Any) -> Any:
        def layer(x: Any, w: Any) -> Any:
            return place.constrain(jnp.tanh(x @ w), "x"), None

        return lax.scan(layer, x, layers)[0]

    return {
        "scan": _program(
            lambda x, ws: lax.scan(lambda x, w: (jnp.tanh(x @ w), jnp.sum(x)), x, ws),
            f((8, 16), "x"),
            layers,
        ),
        "scan-constraint": _program(fully_sharded, f((8, 16), "x"), layers),
        "while": _program(
            lambda x: lax.while_loop(lambda x: jnp.sum(x) < 100.0, lambda x: x * x + 1.0, x),
            f((8, 4), "x", "y"),
        ),
        "cond": _program(
            lambda p, x: lax.cond(p, lambda x: x.sum(0), lambda x: x.max(0), x),
            True,
            f((8, 4), "x", "y"),
        ),
    }


def _gradients(jax: Any, place: Place) -> Programs:
    jnp, f = jax.numpy, place.floats

    def loss(params: Any, x: Any, y: Any) -> Any:
        a, b = params
        return jnp.mean((jnp.tanh(x @ a) @ b - y) ** 2)

    def scanned(layers: Any, x: Any) -> Any:
        def layer(x: Any, w: Any) -> Any:
            return place.constrain(jnp.tanh(x @ w), "x"), None

        return jnp.sum(jax.lax.scan(jax.checkpoint(layer), x, layers)[0])

    x, y = f((8, 16), "x"), f((8, 4), "x")
    return {
        "grad-data-parallel": _program(jax.grad(loss), (f((16, 8)), f((8, 4))), x, y),
        "grad-fully-sharded": _program(
            jax.grad(loss),
            (f((16, 8), "x"), f((8, 4), "x")),
            x,
            y,
            out_shardings=(place.at("x"), place.at("x")),
        ),
        "grad-tensor-parallel": _program(
            jax.grad(loss), (f((16, 8), None, "y"), f((8, 4), "y")), x, y
        ),
        "grad-scan-checkpoint": _program(jax.grad(scanned), f((3, 16, 16), None, "x", "y"), x),
        "grad-constraint": _program(
            jax.grad(lambda x: jnp.sum(place.constrain(jnp.sin(x), None, "x") ** 2)), x
        ),
    }


def _training(jax: Any, place: Place) -> Programs:
    jnp, f = jax.numpy, place.floats

    def step(params: Any, x: Any, y: Any) -> Any:
        def loss(params: Any) -> Any:
            return jnp.mean((jnp.maximum(x @ params["a"], 0.0) @ params["b"] - y) ** 2)

        value, grads = jax.value_and_grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    params = {"a": f((16, 8)), "b": f((8, 4))}
    sharded = {"a": f((16, 8), "x", "y"), "b": f((8, 4), "y", "x")}
    x, y = f((8, 16), "x"), f((8, 4), "x")
    return {
        "step-data-parallel": _program(step, params, x, y, donate_argnums=0),
        "step-sharded": _program(
            step,
            sharded,
            x,
            y,
            donate_argnums=0,
            out_shardings=({"a": place.at("x", "y"), "b": place.at("y", "x")}, place.at()),
        ),
    }


def _random(jax: Any, place: Place) -> Programs:
    random = jax.random
    keys = jax.device_put(random.split(random.key(3), 8), place.at("x"))
    return {
        "random-bits": _program(
            lambda: random.bits(random.key(0), (8, 4)), out_shardings=place.at("x", "y")
        ),
        "random-uniform": _program(
            lambda key: random.uniform(key, (8, 4)), random.key(1), out_shardings=place.at("x")
        ),
        "random-keys": _program(jax.vmap(lambda key: random.uniform(key, (4,))), keys),
        "keys-constraint": _program(
            lambda key: place.constrain(random.split(key, 8), "x"), random.key(2)
        ),
    }


def _calls(jax: Any, place: Place) -> Programs:
    f = place.floats
    table = np.cos(np.arange(4096)).astype(np.float32).reshape(8, 512)
    inner = jax.jit(lambda x: place.constrain(x * 2.0, None, "x"))
    return {
        "call-twice": _program(lambda x: inner(inner(x) + 1.0), f((8, 4), "x")),
        "call-placed": _program(
            lambda x: jax.jit(lambda x: x * 2.0, out_shardings=place.at("y"))(x) + 1.0,
            f((8, 4), "x"),
        ),
        "large-constant": _program(lambda x: x * table, f((8, 512), "x")),
        "callback": _program(
            lambda x: jax.pure_callback(lambda a: np.asarray(a) * 2, x, x) + 1.0, f((8, 4), "x")
        ),
    }


def _explicit(jax: Any, place: Place) -> Programs:
    """Programs whose types show shardings."""
    jnp, spec = jax.numpy, place.P
    mesh = place.mesh.update(axis_types=(jax.sharding.AxisType.Explicit,) * 2)

    def f(shape: tuple[int, ...], *entries: Any) -> Any:
        return jax.device_put(_floats(shape), jax.sharding.NamedSharding(mesh, spec(*entries)))

    def loss(w: Any, x: Any) -> Any:
        return jnp.sum(jnp.tanh(jnp.dot(x, w)) ** 2)

    return {
        "explicit-elementwise": _program(
            lambda x, y: jnp.sin(x) * y, f((8, 4), "x", "y"), f((8, 4), "x", "y")
        ),
        "explicit-reduction": _program(lambda x: jnp.sum(x, axis=0), f((8, 4), "x", "y")),
        "explicit-transpose": _program(jnp.transpose, f((8, 4), "x", "y")),
        "explicit-dot": _program(jnp.dot, f((8, 16), "x"), f((16, 4), None, "y")),
        "explicit-dot-contracted": _program(
            lambda x, y: jnp.dot(x, y, out_sharding=jax.sharding.NamedSharding(mesh, spec("x"))),
            f((8, 16), None, "y"),
            f((16, 4), "y"),
        ),
        "explicit-reshard": _program(
            lambda x: (
                jax.sharding.reshard(x, jax.sharding.NamedSharding(mesh, spec(None, "x"))) * 2.0
            ),
            f((8, 4), "x"),
        ),
        "explicit-grad": _program(jax.grad(loss), f((16, 4), None, "y"), f((8, 16), "x")),
    }
