"""Programs per device, each with what it computes written in NumPy for whole arrays."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import minijax
from minijax import lax, random
from minijax import numpy as jnp
from minijax.sharding import PartitionSpec as P

X = (np.arange(64, dtype=np.float32).reshape(8, 8) - 20) / 10
V = np.array([0.5, -1.0, 2.0, 1.5], np.float32)


class Program(NamedTuple):
    """A function of blocks on a mesh x=4, y=2, and the same of whole arrays."""

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    in_specs: Any
    out_specs: Any
    oracle: Callable[..., Any]
    # Whether gradients are compared, too: by those of finite differences.
    smooth: bool = True


def blocks_of(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The blocks of a matrix split by P('x', 'y'), with dimensions for x and y first."""
    rows, columns = x.shape[0] // 4, x.shape[1] // 2
    return x.reshape(4, rows, 2, columns).transpose(0, 2, 1, 3)


def whole_of(blocks: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The matrix of such blocks."""
    return np.concatenate([np.concatenate(list(row), 1) for row in blocks])


def each(function: Callable[..., Any]) -> Callable[..., Any]:
    """An oracle: `function` of all blocks at once, dimensions for x and y first."""
    return lambda x: whole_of(function(blocks_of(x)))


def loop(a: Any) -> Any:
    return lax.scan(lambda c, row: (c * 0.5 + row, c + row), a[0], a)[1]


def loop_oracle(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    b = blocks_of(x)
    return whole_of(np.stack([2 * b[:, :, 0], b[:, :, 0] * 1.5 + b[:, :, 1]], 2))


@minijax.custom_vjp
def scaled_backward(a: Any) -> Any:
    return a * a


scaled_backward.defvjp(lambda a: (a * a, a), lambda a, ct: (2 * a * ct,))


@minijax.custom_jvp
def cubed(a: Any) -> Any:
    return a**3


cubed.defjvp(lambda primals, dots: (cubed(primals[0]), 3 * primals[0] ** 2 * dots[0]))

RING = [(i, (i + 1) % 4) for i in range(4)]

PROGRAMS = [
    Program("local", lambda a: a * 2 + 1, (X,), P("x", "y"), P("x", "y"), lambda x: x * 2 + 1),
    Program(
        "psum",
        lambda a: lax.psum(a * a, "x"),
        (X,),
        P("x", "y"),
        P(None, "y"),
        lambda x: (x * x).reshape(4, 2, 8).sum(0),
    ),
    Program(
        "psum_over_all",
        lambda a: lax.psum(jnp.sum(a), ("x", "y")) * a,
        (X,),
        P("x", "y"),
        P("x", "y"),
        lambda x: x.sum() * x,
    ),
    Program(
        "axis_index",
        lambda a: a * lax.axis_index("x") + lax.axis_index("y"),
        (X,),
        P("x", "y"),
        P("x", "y"),
        each(lambda b: b * np.arange(4).reshape(4, 1, 1, 1) + np.arange(2).reshape(2, 1, 1)),
    ),
    Program("scan", loop, (X,), P("x", "y"), P("x", "y"), loop_oracle),
    Program(
        "cond_on_what_varies",
        lambda a: lax.cond(jnp.sum(a) > 0, lambda b: b * b, lambda b: -b, a),
        (X,),
        P("x", "y"),
        P("x", "y"),
        each(lambda b: np.where(b.sum((2, 3), keepdims=True) > 0, b * b, -b)),
    ),
    Program(
        "cond_on_what_is_the_same",
        lambda a: lax.cond(lax.psum(jnp.sum(a), ("x", "y")) > 0, jnp.sin, jnp.cos, a),
        (X,),
        P("x", "y"),
        P("x", "y"),
        np.sin,
    ),
    Program(
        "while_on_what_varies",
        lambda a: lax.while_loop(
            lambda c: c[0] < lax.axis_index("x"), lambda c: (c[0] + 1, c[1] * 2), (0, a)
        )[1],
        (X,),
        P("x", "y"),
        P("x", "y"),
        each(lambda b: b * 2.0 ** np.arange(4).reshape(4, 1, 1, 1)),
        smooth=False,
    ),
    Program(
        "jit_inside",
        minijax.jit(lambda a: jnp.sin(a) * lax.pmax(a, "y")),
        (X,),
        P("x", "y"),
        P("x", "y"),
        each(lambda b: np.sin(b) * b.max(1, keepdims=True)),
        smooth=False,
    ),
    Program(
        "vmap_inside",
        minijax.vmap(lambda row: row * lax.psum(jnp.sum(row), "y")),
        (X,),
        P("x", "y"),
        P("x", "y"),
        lambda x: x * x.sum(1, keepdims=True),
    ),
    Program(
        "vmap_with_a_name_inside",
        minijax.vmap(lambda row: row * lax.psum(jnp.sum(row), ("y", "i")), axis_name="i"),
        (X,),
        P("x", "y"),
        P("x", "y"),
        each(lambda b: b * b.sum((1, 2, 3), keepdims=True)),
    ),
    Program(
        "grad_inside",
        lambda a: minijax.grad(lambda b: jnp.sum(jnp.sin(b) * b))(a),
        (X,),
        P("x", "y"),
        P("x", "y"),
        lambda x: np.cos(x) * x + np.sin(x),
    ),
    Program(
        "checkpoint_inside",
        minijax.checkpoint(lambda a: jnp.sin(jnp.sin(a) * lax.psum(a, "y"))),
        (X,),
        P("x", "y"),
        P("x", "y"),
        each(lambda b: np.sin(np.sin(b) * b.sum(1, keepdims=True))),
    ),
    Program(
        "custom_vjp",
        lambda a: scaled_backward(a) * a,
        (X,),
        P("x", "y"),
        P("x", "y"),
        lambda x: x**3,
    ),
    Program("custom_jvp", lambda a: cubed(a) * a, (X,), P("x", "y"), P("x", "y"), lambda x: x**4),
    Program(
        "scalar_inside",
        lambda a: a * jnp.sin(jnp.sum(a)),
        (X,),
        P("x", "y"),
        P("x", "y"),
        each(lambda b: b * np.sin(b.sum((2, 3), keepdims=True))),
    ),
    Program(
        "whole_weights",
        lambda w, a: jnp.sin(a @ w),
        (X[:, :3], X),
        (P(), P("x")),
        P("x"),
        lambda w, x: np.sin(x @ w),
    ),
    Program(
        "split_contraction",
        lambda w, a: lax.psum(a @ w, "y") ** 2,
        (X[:, :3], X),
        (P("y"), P("x", "y")),
        P("x"),
        lambda w, x: (x @ w) ** 2,
    ),
    Program(
        "gathered_weights",
        lambda w, a: a @ lax.all_gather(w, "x", tiled=True),
        (X[:, :3], X),
        (P("x"), P("x")),
        P("x"),
        lambda w, x: x @ w,
    ),
    Program(
        "psum_scatter",
        lambda a: lax.psum_scatter(a, "x", tiled=True) * 2,
        (X,),
        P(None, "x"),
        P("x"),
        lambda x: 2 * x.reshape(8, 4, 2).sum(1),
    ),
    Program(
        "ring",
        lambda a: a * lax.ppermute(a, "x", RING),
        (X,),
        P("x"),
        P("x"),
        lambda x: x * np.roll(x, 2, 0),
    ),
    Program(
        "all_to_all",
        lambda a: lax.all_to_all(a, "x", 1, 0, tiled=True),
        (X,),
        P("x"),
        P(None, "x"),
        lambda x: x,
    ),
    Program(
        "product_of_axes",
        lambda a: a * lax.axis_index(("y", "x")),
        (X,),
        P(("y", "x")),
        P(("y", "x")),
        lambda x: x * np.arange(8).reshape(8, 1),
    ),
    Program(
        "trees",
        lambda d: {"c": d["a"] + 1, "d": (jnp.sum(d["b"], keepdims=True),)},
        ({"a": X, "b": V},),
        ({"a": P("x"), "b": P("y")},),
        {"c": P("x"), "d": P("y")},
        lambda d: {"c": d["a"] + 1, "d": (d["b"].reshape(2, 2).sum(1),)},
    ),
    Program(
        "numbers",
        lambda a, n: a * n + 1.5,
        (X, 2),
        (P("x"), P()),
        P("x"),
        lambda x, n: x * n + 1.5,
        smooth=False,
    ),
    Program("nothing", lambda: jnp.arange(2) + lax.axis_index("x"), (), (), P("x"), lambda: NAT),
    Program("constant", lambda a: jnp.ones(3), (X,), P("x"), P("x"), lambda x: np.ones(12)),
    Program("booleans", lambda a: ~a, (X > 0,), P("x"), P("x"), lambda x: ~x, smooth=False),
    Program(
        "complex",
        lambda a: lax.psum(a * 1j, "x"),
        (X,),
        P("x"),
        P(),
        lambda x: 1j * x.reshape(4, 2, 8).sum(0),
        smooth=False,
    ),
    Program(
        "bytes",
        lambda a: lax.psum(a, "x"),
        (np.arange(8, dtype=np.int8),),
        P("x"),
        P(),
        lambda x: x.reshape(4, 2).sum(0, dtype=np.int8),
        smooth=False,
    ),
    Program(
        "empty",
        lambda a: lax.psum(a, "x"),
        (np.ones((8, 0), np.float32),),
        P("x"),
        P(),
        lambda x: np.ones((2, 0)),
        smooth=False,
    ),
    Program(
        "keys",
        lambda d: random.key_data(minijax.vmap(lambda k: random.fold_in(k, 3))(keys_of(d))),
        (np.arange(16, dtype=np.uint32).reshape(8, 2),),
        P("x"),
        P("x"),
        lambda d: random.key_data(minijax.vmap(lambda k: random.fold_in(k, 3))(keys_of(d))),
        smooth=False,
    ),
    Program(
        "references",
        lambda a: doubled_in_place(a),
        (X,),
        P("x", "y"),
        P("x", "y"),
        lambda x: x * 2,
    ),
    Program(
        "started",
        lambda a: a * lax.psum_start(a, "y").done(),
        (X,),
        P("x", "y"),
        P("x", "y"),
        each(lambda b: b * b.sum(1, keepdims=True)),
        smooth=False,
    ),
]
NAT = np.array([0, 1, 1, 2, 2, 3, 3, 4])


def keys_of(data: Any) -> Any:
    return random.wrap_key_data(data)


def doubled_in_place(a: Any) -> Any:
    ref = minijax.new_ref(a)
    ref[...] = ref[...] + a
    return ref[...]
