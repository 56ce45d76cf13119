"""Operations for the law of sharding: each with operands that many meshes divide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import minijax as jax
from minijax import lax, random
from minijax import numpy as jnp

FLOATS = ("float32", "bfloat16", "float16")
ALL = (*FLOATS, "complex64", "int32", "int8", "uint8", "bool")
ORDERED = (*FLOATS, "int32", "int8", "uint8")
NUMBERS = (*FLOATS, "complex64", "int32")


class Operation(NamedTuple):
    """A function of arrays of these shapes; integers follow that index dimension 0 of the first."""

    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...] = ("float32",)
    indices: tuple[tuple[int, ...], ...] = ()

    def operands(self, dtype: str, seed: int) -> list[np.ndarray]:
        """Values without order, and without repetition where the dtype allows it."""
        generator = np.random.default_rng(seed)
        found = []
        for shape in self.shapes:
            count = int(np.prod(shape))
            values = generator.permutation(count).reshape(shape) - count // 2
            if dtype == "bool":
                found.append(values % 3 == 0)
            elif dtype in ("int32", "int8", "uint8"):
                found.append(values.astype(dtype))
            else:
                scale = 8.0 / max(count, 1)
                found.append(
                    (values * scale * (1 + 1j if dtype == "complex64" else 1)).astype(dtype)
                )
        for shape in self.indices:
            most = self.shapes[0][0]
            found.append(generator.integers(-most - 2, most + 2, shape).astype(np.int32))
        return found


def _counted(x: Any, y: Any) -> Any:
    def body(carry: Any, row: Any) -> Any:
        total, count, _ = carry
        return (total + row, count + 1, jnp.sin(row)), (total * 2, count, row[::-1])

    return lax.scan(body, (jnp.zeros(x.shape[1:], x.dtype), 0, y), x, reverse=True)


def _while(x: Any) -> Any:
    return lax.while_loop(
        lambda c: (c[0] < 5) & (jnp.abs(c[1]).max() < 1e4),
        lambda c: (c[0] + 1, c[1] * 2, c[2] + c[1].sum(0)),
        (0, x, jnp.zeros(x.shape[1:], x.dtype)),
    )


def _fori(x: Any, y: Any) -> Any:
    def body(i: Any, y: Any) -> Any:
        row = lax.dynamic_index_in_dim(x, i, 0, keepdims=False)
        return lax.dynamic_update_index_in_dim(y, row * 2, (i * 5) % 12, 0)

    return lax.fori_loop(0, 14, body, y)


@jax.custom_jvp
def _custom(x: Any) -> Any:
    return jnp.sum(x**2, 0)


@_custom.defjvp
def _custom_rule(primals: Any, tangents: Any) -> Any:
    return _custom(*primals), jnp.sum(3 * primals[0] * tangents[0], 0)


@jax.custom_vjp
def _custom_back(x: Any) -> Any:
    return jnp.cumsum(x, 0)


_custom_back.defvjp(lambda x: (jnp.cumsum(x, 0), x), lambda x, ct: (ct * x * 2,))


def _layer(x: Any, w: Any) -> Any:
    return jnp.tanh(x @ w).sum(1)


def _drawn(name: str, **options: Any) -> Operation:
    def function(bits: Any) -> Any:
        key = random.wrap_key_data(bits)
        return getattr(random, name)(key, shape=(12, 10), **options)

    return Operation(function, ((2,),), ("uint32",))


def _conv(**options: Any) -> Callable[..., Any]:
    options = {"window_strides": (1, 1), "padding": "SAME"} | options
    return lambda x, w: lax.conv_general_dilated(x, w, **options)


def _pool(name: str, init: Any, **options: Any) -> Callable[..., Any]:
    sizes = {"window_dimensions": (3, 2), "window_strides": (2, 1), "padding": "SAME"} | options
    return lambda x: lax.reduce_window(x, np.array(init, x.dtype)[()], getattr(lax, name), **sizes)


M = (12, 10)
T = (6, 4, 10)
IMAGES, KERNELS = (4, 6, 12, 10), (12, 6, 3, 2)
OPERATIONS: dict[str, Operation] = {
    "conv": Operation(_conv(), (IMAGES, KERNELS)),
    "conv valid": Operation(_conv(padding="VALID", window_strides=(2, 3)), (IMAGES, KERNELS)),
    "conv dilated": Operation(
        _conv(lhs_dilation=(2, 1), rhs_dilation=(1, 3), padding=((1, 2), (3, 0))), (IMAGES, KERNELS)
    ),
    "conv groups": Operation(_conv(feature_group_count=2), (IMAGES, (12, 3, 3, 2))),
    "conv depthwise": Operation(_conv(feature_group_count=6), (IMAGES, (6, 1, 3, 2))),
    "conv batch groups": Operation(_conv(batch_group_count=2), (IMAGES, KERNELS)),
    "conv last": Operation(
        _conv(dimension_numbers=("NHWC", "HWIO", "NHWC")), ((4, 12, 10, 6), (3, 2, 6, 12)), FLOATS
    ),
    "conv grad": Operation(
        lambda x, w: jax.grad(lambda x, w: (_conv()(x, w) ** 2).sum(), (0, 1))(x, w),
        (IMAGES, KERNELS),
    ),
    "max pool": Operation(_pool("max", 0), (M,), ORDERED),
    "sum pool": Operation(_pool("add", 0), (M,), NUMBERS),
    "valid pool": Operation(_pool("add", 0, padding="VALID"), (M,), NUMBERS),
    "pool grad": Operation(jax.grad(lambda x: (_pool("max", -np.inf)(x) ** 2).sum()), (M,)),
    "get": Operation(lambda x, i: x.at[i].get(), (M,), ALL, ((8,),)),
    "get fill": Operation(
        lambda x, i: x.at[i].get(mode="fill", fill_value=3), (M,), ALL, ((8, 3),)
    ),
    "get clip": Operation(lambda x, i: x.at[i].get(mode="clip"), (M,), ALL, ((8,),)),
    "get wrap": Operation(lambda x, i: jnp.take(x, i, 1, mode="wrap"), (M,), ALL, ((8, 3),)),
    "get two": Operation(lambda x, i, j: x[i, j], (M,), ALL, ((8,), (6, 1))),
    "get column": Operation(lambda x, i: x[:, i, None, ::2], (T,), ALL, ((8,),)),
    "get grad": Operation(
        lambda x, i: jax.grad(lambda x: (x[i] ** 3).sum())(x), (M,), FLOATS[:1], ((8,),)
    ),
    "set": Operation(lambda x, y: x.at[jnp.array([5, 0, -1, 30])].set(y), (M, (4, 10)), ALL),
    "set column": Operation(lambda x, y: x.at[:, jnp.array([5, 0, -1])].set(y), (M, (12, 3)), ALL),
    "add": Operation(lambda x, y, i: x.at[i].add(y), (M, (8, 10)), NUMBERS, ((8,),)),
    "add clip": Operation(
        lambda x, y, i: x.at[i].add(y, mode="clip"), (M, (8, 10)), NUMBERS, ((8,),)
    ),
    "add drop": Operation(
        lambda x, y, i: x.at[i].add(y, mode="drop"), (M, (8, 10)), NUMBERS, ((8,),)
    ),
    "multiply": Operation(
        lambda x, y, i: x.at[i].multiply(y), (M, (8, 10)), ("int32", "float32"), ((8,),)
    ),
    "max at": Operation(lambda x, y, i: x.at[i].max(y), (M, (8, 10)), ORDERED, ((8,),)),
    "min at": Operation(lambda x, y, i: x.at[:, i].min(y), (M, (12, 8)), ORDERED, ((8,),)),
    "add at two": Operation(
        lambda x, y, i, j: x.at[i, j].add(y), (M, (8, 6)), NUMBERS, ((8, 1), (6,))
    ),
    "add batched": Operation(
        lambda x, y, i: jax.vmap(lambda x, y, i: x.at[i].add(y))(x, y, i),
        ((6, 8), (6, 4)),
        NUMBERS,
        ((6, 4),),
    ),
    "get batched": Operation(
        lambda x, i: jax.vmap(lambda x, i: x[i])(x, i), ((6, 8, 5),), NUMBERS, ((6, 4),)
    ),
    "bincount": Operation(
        lambda x, i: jnp.bincount(jnp.abs(i), x[:, 0], length=15), (M,), ("float32",), ((12,),)
    ),
    "dynamic slice": Operation(
        lambda x, i: lax.dynamic_slice(x, (i[0], i[1]), (6, 5)), (M,), ALL, ((2,),)
    ),
    "dynamic slice one": Operation(
        lambda x, i: lax.dynamic_slice(x, (i[0], i[1]), (1, 10)), (M,), ALL, ((2,),)
    ),
    "dynamic update": Operation(
        lambda x, y, i: lax.dynamic_update_slice(x, y, (i[0], i[1])), (M, (6, 5)), ALL, ((2,),)
    ),
    "dynamic update one": Operation(
        lambda x, y, i: lax.dynamic_update_slice(x, y, (i[0], i[1])), (M, (1, 10)), ALL, ((2,),)
    ),
    "dynamic batched": Operation(
        lambda x, i: jax.vmap(lambda r, j: lax.dynamic_slice(r, (j,), (3,)))(x, i),
        (M,),
        ALL,
        ((12,),),
    ),
    "dynamic update batched": Operation(
        lambda x, y, i: jax.vmap(lambda r, u, j: lax.dynamic_update_slice(r, u, (j,)))(x, y, i),
        (M, (12, 3)),
        ALL,
        ((12,),),
    ),
    "scan": Operation(_counted, (M, (10,))),
    "while": Operation(_while, (M,)),
    "fori": Operation(_fori, (M, (12, 10)), FLOATS),
    "scan grad": Operation(
        lambda x, y: jax.grad(lambda x, y: _counted(x, y)[1][0].sum(), (0, 1))(x, y), (M, (10,))
    ),
    "cond": Operation(
        lambda x, y: lax.cond(x[0, 0] > y[0, 0], jnp.add, lambda a, b: (a * b)[::-1], x, y), (M, M)
    ),
    "cond grad": Operation(
        jax.grad(lambda x: lax.cond(x.sum() > 0, jnp.sin, lambda a: a**2, x).sum()), (M,)
    ),
    "switch": Operation(
        lambda x, i: lax.switch(
            i[0], [jnp.negative, lambda x: x.sum(0) + x, lambda x: jnp.cumsum(x, 1)], x
        ),
        (M,),
        FLOATS[:1],
        ((2,),),
    ),
    "map": Operation(lambda x: lax.map(lambda r: jnp.sort(r)[::-1], x), (M,), ORDERED),
    "map batches": Operation(lambda x: lax.map(jnp.sum, x, batch_size=5), (M,)),
    "scan unrolled": Operation(
        lambda x: lax.scan(lambda c, r: (c + r, c), x[0], x, unroll=5), (M,), NUMBERS
    ),
    "associative scan": Operation(lambda x: lax.associative_scan(jnp.add, x), (M,), NUMBERS),
    "associative scan 1": Operation(
        lambda x: lax.associative_scan(jnp.maximum, x, axis=1, reverse=True), (M,), ORDERED
    ),
    "vmap": Operation(lambda x, w: jax.vmap(_layer, (0, None))(x, w), (T, (10, 6))),
    "vmap of grad": Operation(
        lambda x, w: jax.vmap(jax.grad(lambda *a: _layer(*a).sum(), (0, 1)), (0, None))(x, w),
        (T, (10, 6)),
    ),
    "vmap middle": Operation(jax.vmap(lambda x: jnp.cumsum(x, 0), 1, 2), (T,)),
    "jit inside": Operation(
        lambda x, w: jax.jit(_layer)(x, w) + jax.jit(_layer)(x * 2, w), (M, (10, 6))
    ),
    "checkpoint": Operation(
        lambda x, w: jax.grad(lambda *a: jax.checkpoint(_layer)(*a).sum(), (0, 1))(x, w),
        (M, (10, 6)),
    ),
    "custom jvp": Operation(jax.grad(lambda x: _custom(x).sum()), (M,)),
    "custom vjp": Operation(jax.grad(lambda x: _custom_back(x).sum()), (M,)),
    "jacobians": Operation(
        lambda x, w: (jax.jacrev(_layer)(x, w), jax.jacfwd(_layer, 1)(x, w)), ((6, 4), (4, 5))
    ),
    "hessian": Operation(jax.hessian(lambda x: jnp.sum(jnp.tanh(x[0]) * x[1] ** 2)), ((2, 6),)),
    "top k": Operation(lambda x: lax.top_k(x, 3), (M,), ORDERED),
    "approx max k": Operation(lambda x: lax.approx_max_k(x, 3), (M,)),
    "argsort": Operation(jnp.argsort, (M,), ORDERED),
    "argsort 0": Operation(lambda x: jnp.argsort(x, 0, descending=True), (M,), ORDERED),
    "sort pairs": Operation(
        lambda x, y: lax.sort((x, y), dimension=0, num_keys=2), (M, M), ORDERED
    ),
    "argmax": Operation(lambda x: jnp.argmax(x, 0), (M,), ORDERED),
    "argmin": Operation(lambda x: jnp.argmin(x, 1), (M,), ORDERED),
    "argmax all": Operation(jnp.argmax, (M,), ORDERED),
    "searchsorted": Operation(
        lambda x, y: jnp.searchsorted(jnp.sort(x), y), ((12,), (20,)), ORDERED
    ),
    "median": Operation(lambda x: jnp.median(x, 0), (M,)),
    "quantile": Operation(lambda x: jnp.quantile(x, jnp.array([0.1, 0.7]), 1), (M,)),
    "unique": Operation(lambda x: jnp.unique(x // 3, size=12, fill_value=0), ((12,),), ("int32",)),
    "nonzero": Operation(lambda x: jnp.nonzero(x > 0, size=12), ((12,),), ORDERED),
    "cumprod": Operation(lambda x: jnp.cumprod(x / 4, 0), (M,)),
    "cumprod 1": Operation(lambda x: lax.cumprod(x, 1, reverse=True), (M,), ("int32", "float32")),
    "cummax": Operation(lambda x: lax.cummax(x, 0), (M,), ORDERED),
    "cummin": Operation(lambda x: lax.cummin(x, 1, reverse=True), (M,), ORDERED),
    "cumlogsumexp": Operation(lambda x: lax.cumlogsumexp(x, 0), (M,)),
    "logsumexp": Operation(lambda x: jax.nn.logsumexp(x, 1), (M,)),
    "reduce": Operation(
        lambda x: [f(x, a) for f in (jnp.sum, jnp.prod) for a in (0, 1, None)], (M,), ("int32",)
    ),
    "extremes": Operation(
        lambda x: [f(x, a) for f in (jnp.max, jnp.min) for a in (0, 1, None)], (T,), ORDERED
    ),
    "all any": Operation(
        lambda x: [f(x, a) for f in (jnp.all, jnp.any) for a in (0, 1, None)],
        (M,),
        ("bool", "int8"),
    ),
    "reduce two": Operation(
        lambda x, y: lax.reduce(
            (x, y),
            (x.dtype.type(0), y.dtype.type(1)),
            lambda a, b: (a[0] + b[0], jnp.maximum(a[1], b[1])),
            (0,),
        ),
        (M, M),
        ("float32", "int32"),
    ),
    "var": Operation(lambda x: (jnp.var(x, 0), jnp.std(x, 1)), (M,)),
    "norm": Operation(lambda x: jnp.sqrt(jnp.sum(x * x, 1, keepdims=True)), (M,)),
    "attention": Operation(
        lambda q, k, v: jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", q, k)) @ v, (T, T, T)
    ),
    "einsum": Operation(lambda x, y: jnp.einsum("ijk,ilk->jl", x, y), (T, (6, 5, 10)), NUMBERS),
    "einsum batch": Operation(
        lambda x, y: jnp.einsum("ijk,kli->ilj", x, y), (T, (10, 3, 6)), NUMBERS
    ),
    "einsum diagonal": Operation(lambda x: jnp.einsum("iij->ij", x), ((6, 6, 4),), NUMBERS),
    "einsum trace": Operation(lambda x: jnp.einsum("ii->", x), ((12, 12),), NUMBERS),
    "einsum outer": Operation(lambda x, y: jnp.einsum("i,jk->kij", x, y), ((6,), M), NUMBERS),
    "dot int8": Operation(
        lambda x, y: lax.dot(x, y, preferred_element_type=np.int32), (M, (10, 6)), ("int8", "uint8")
    ),
    "matmul": Operation(jnp.matmul, (T, (6, 10, 8)), NUMBERS),
    "vecmat": Operation(lambda x, y: x @ y, ((12,), M), NUMBERS),
    "tensordot": Operation(lambda x, y: jnp.tensordot(x, y, 2), (T, (4, 10, 3)), NUMBERS),
    "kron": Operation(jnp.kron, ((6, 2), (4, 5)), NUMBERS),
    "tril": Operation(lambda x: jnp.tril(x, -1), (M,), ALL),
    "triu": Operation(lambda x: jnp.triu(x, 2), (M,), ALL),
    "diag": Operation(lambda x: (jnp.diag(x), jnp.diagonal(jnp.outer(x, x), 2)), ((12,),), NUMBERS),
    "one hot": Operation(lambda x, i: jax.nn.one_hot(i, 12), (M,), FLOATS[:1], ((8, 3),)),
    "take along": Operation(lambda x, i: jnp.take_along_axis(x, i, 0), (M,), ALL, ((6, 10),)),
    "take along 1": Operation(
        lambda x, i: jnp.take_along_axis(x, i % 10, 1), (M,), ALL, ((12, 6),)
    ),
    "concatenate": Operation(
        lambda x, y: (jnp.concatenate([x, y, x]), jnp.concatenate([x, x], 1)), (M, (6, 10)), ALL
    ),
    "stack": Operation(lambda x, y: jnp.stack([x, y, x], 1), (M, M), ALL),
    "pad": Operation(lambda x: jnp.pad(x, ((2, 1), (0, 3)), "wrap"), (M,), ALL),
    "pad reflect": Operation(lambda x: jnp.pad(x, ((2, 1), (4, 3)), "reflect"), (M,), NUMBERS),
    "pad interior": Operation(
        lambda x: lax.pad(x, x.dtype.type(1), ((2, -1, 2), (-3, 1, 0))), (M,), ALL
    ),
    "roll": Operation(lambda x: jnp.roll(x, (3, -4), (0, 1)), (M,), ALL),
    "roll traced": Operation(lambda x, i: jnp.roll(x, i[0], 0), (M,), ALL, ((2,),)),
    "flip": Operation(lambda x: x[::-1, ::-3], (M,), ALL),
    "slice": Operation(lambda x: x[1:11:3, 2:9], (M,), ALL),
    "slice one": Operation(lambda x: (x[5:6], x[:, 9:]), (M,), ALL),
    "slice none": Operation(lambda x: (x[5:5], x[:, 10:].sum(1)), (M,), NUMBERS),
    "reshape": Operation(lambda x: x.reshape(4, 6, 5), (M,), ALL),
    "reshape last": Operation(lambda x: x.reshape(6, 2, 10).reshape(-1), (M,), ALL),
    "reshape mixed": Operation(lambda x: x.reshape(10, 12), (M,), ALL),
    "tile": Operation(lambda x: jnp.tile(x, (2, 3)), (M,), ALL),
    "repeat": Operation(lambda x: jnp.repeat(x, 3, 0), (M,), ALL),
    "split": Operation(lambda x: jnp.split(x, 3), (M,), ALL),
    "transpose": Operation(lambda x: jnp.transpose(x, (2, 0, 1)), (T,), ALL),
    "where": Operation(lambda x, y: jnp.where(x > y, x, y[0]), (M, M), ORDERED),
    "clip": Operation(lambda x, y: lax.clamp(y.min(), x, y.max()), (M, M), ORDERED),
    "select n": Operation(
        lambda x, y, i: lax.select_n(i % 3, x, y, x + y), (M, M), NUMBERS, ((12, 10),)
    ),
    "convert": Operation(lambda x: (x.astype(np.int32), x.astype(jnp.bfloat16)), (M,), ORDERED),
    "float8": Operation(
        lambda x: x.astype(jnp.float8_e4m3fn).astype(np.float32) + x[::-1], (M,), FLOATS[:1]
    ),
    "bitcast": Operation(lambda x: lax.bitcast_convert_type(x, np.uint8), (M,), FLOATS),
    "bitcast wide": Operation(
        lambda x: lax.bitcast_convert_type(x, np.uint32), ((12, 4),), ("int8", "uint8")
    ),
    "complex": Operation(lambda x: (x.real, x.imag, jnp.conj(x), jnp.abs(x)), (M,), ("complex64",)),
    "iota": Operation(lambda x: x + jnp.arange(10) - lax.broadcasted_iota(np.int32, M, 0), (M,)),
    "convolve": Operation(lambda x, y: jnp.convolve(x, y, "full"), ((24,), (5,))),
    "cross": Operation(jnp.cross, ((12, 3), (12, 3))),
    "interp": Operation(lambda x, y: jnp.interp(x, jnp.linspace(-4.0, 4.0, 12), y), ((20,), (12,))),
    "histogram": Operation(lambda x: jnp.histogram(x, 5)[0], ((24,),)),
    "polyval": Operation(jnp.polyval, ((6,), (12,))),
    "gelu": Operation(lambda x: jax.nn.gelu(x), (M,), FLOATS),
    "zero rows": Operation(
        lambda x: (x.sum(0), x @ jnp.ones((10, 6), x.dtype), x.reshape(10, 0)), ((0, 10),), NUMBERS
    ),
    "one row": Operation(lambda x, y: (x + y, (x * y).sum(0)), ((1, 10), (12, 1)), NUMBERS),
    "scalars": Operation(lambda x: (x * 2, jnp.broadcast_to(x, M)), ((),), NUMBERS),
    "bits": _drawn("bits"),
    "normal": _drawn("normal"),
    "uniform": _drawn("uniform", dtype=np.float16),
    "bernoulli": _drawn("bernoulli"),
    "truncated": _drawn("truncated_normal", lower=-1.0, upper=2.0),
    "permutation": Operation(
        lambda bits, x: random.permutation(random.wrap_key_data(bits), x), ((2,), M), ("uint32",)
    ),
    "split keys": Operation(
        lambda bits: jax.vmap(lambda k: random.uniform(k, (5,)))(
            random.split(random.wrap_key_data(bits), 12)
        ),
        ((2,),),
        ("uint32",),
    ),
    "keys in parts": Operation(
        lambda bits: jax.vmap(random.bits)(
            jax.vmap(random.fold_in)(random.wrap_key_data(bits), jnp.arange(12))
        ),
        ((12, 2),),
        ("uint32",),
    ),
}
