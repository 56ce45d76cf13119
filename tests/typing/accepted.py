"""Uses of the public API that a type checker accepts, and what it takes results for.

Checked by mypy and by pyright, never run.
"""

from typing import Any, assert_type

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.typing import ArrayLike, DTypeLike


def loss(weights: jax.Array, inputs: jax.Array) -> jax.Array:
    return jnp.sum(jnp.tanh(inputs @ weights) ** 2)


compiled = jax.jit(loss)
later = jax.jit(static_argnames="inputs")(loss)
with_options = jax.jit(loss, donate_argnums=0, static_argnames=("inputs",), keep_unused=True)
gradients = jax.grad(loss, argnums=(0, 1))
with_value = jax.value_and_grad(loss)
per_example = jax.vmap(jax.grad(loss), in_axes=(None, 0), out_axes=0)


def step(weights: jax.Array, inputs: jax.Array) -> jax.Array:
    moved: jax.Array = weights - 0.1 * jax.grad(loss)(weights, inputs)
    shifted: jax.Array = lax.add(moved, 1.0)
    return shifted


def operators(x: jax.Array) -> None:
    assert_type(-x + 2 * x @ x.T - x[0], jax.Array)
    assert_type(1 / abs(x) ** 2 // 3 % 5, jax.Array)
    assert_type((x > 0) & ~(x == 1) | (x >= 2), jax.Array)
    assert_type(divmod(x, 2), tuple[jax.Array, jax.Array])
    assert_type(x.at[1:].set(0.0).at[0].add(x), jax.Array)
    assert_type(x.at[0].get(mode="fill", fill_value=0), jax.Array)
    assert_type(x.astype(jnp.float32).reshape(-1, 2).sum(axis=(0, 1), keepdims=True), jax.Array)
    assert_type(x.real.mT.nonzero(), tuple[jax.Array, ...])
    assert_type((x.ndim, x.size, x.nbytes, len(x)), tuple[int, int, int, int])
    assert_type((float(x), int(x), bool(x), complex(x)), tuple[float, int, bool, complex])
    for row in x:
        assert_type(row, jax.Array)


def stages(x: jax.Array) -> str:
    lowered = compiled.lower(x, x)
    return f"{jax.make_jaxpr(loss)(x, x)} {lowered.as_text()} {lowered.compile()(x, x)}"


result = jax.ShapeDtypeStruct((2, 3), jnp.float32)


def creation(dtype: DTypeLike, mesh_size: int) -> None:
    assert_type(jnp.zeros((mesh_size, 3), dtype), jax.Array)
    assert_type(jnp.array([[1, 2], [3, 4]], dtype="float32"), jax.Array)
    assert_type(jnp.asarray(np.ones(3)), jax.Array)
    assert_type(jnp.arange(3, dtype=jnp.int8) + jnp.eye(3, dtype=np.float16), jax.Array)
    assert_type(jnp.full_like(np.ones(2), 3.0, device=jax.devices()[0]), jax.Array)
    assert_type(jnp.linspace(0, 1, 5), jax.Array)
    assert_type(jnp.linspace(0, 1, 5, retstep=True), tuple[jax.Array, jax.Array])
    assert_type(jnp.meshgrid(np.arange(2), jnp.arange(3), indexing="ij"), list[jax.Array])
    assert_type(jnp.indices((2, 3)), jax.Array)
    assert_type(jnp.indices((2, 3), sparse=True), tuple[jax.Array, ...])


def elementwise(x: ArrayLike, y: ArrayLike) -> None:
    assert_type(jnp.sin(x), jax.Array)
    assert_type(jnp.add(x, 1), jax.Array)
    assert_type(jnp.add.reduce(x, axis=0), jax.Array)
    assert_type(jnp.maximum(x, y), jax.Array)
    assert_type(jnp.where(jnp.isnan(x), 0.0, y), jax.Array)
    assert_type(jnp.where(x), tuple[jax.Array, ...])
    assert_type(jnp.clip(x, min=0), jax.Array)
    assert_type(jnp.modf(x), tuple[jax.Array, jax.Array])
    assert_type(jnp.allclose(x, y), jax.Array)
    assert_type(jnp.iscomplexobj(x), bool)


def reductions(x: ArrayLike) -> None:
    assert_type(jnp.sum(x, axis=(0, 1), dtype=jnp.float32, where=True), jax.Array)
    assert_type(jnp.mean(x, axis=-1, keepdims=True), jax.Array)
    assert_type(jnp.argmax(x), jax.Array)
    assert_type(jnp.average(x, weights=np.ones(3)), jax.Array)
    assert_type(jnp.average(x, returned=True), tuple[jax.Array, jax.Array])
    assert_type(jnp.quantile(x, np.array([0.1, 0.9]), method="nearest"), jax.Array)
    assert_type(jnp.histogram(x, bins=[0, 1, 2], range=(0, 2)), tuple[jax.Array, jax.Array])


def shaping(x: jax.Array, parts: list[jax.Array]) -> None:
    assert_type(jnp.concatenate([x, *parts], axis=1), jax.Array)
    assert_type(jnp.stack(parts), jax.Array)
    assert_type(jnp.split(x, 3), list[jax.Array])
    assert_type(jnp.moveaxis(x, (0, 1), (1, 0)), jax.Array)
    assert_type(jnp.unique(x), jax.Array)
    assert_type(jnp.unique(x, return_counts=True, size=3), tuple[jax.Array, ...])
    assert_type(jnp.unique_all(x).counts, jax.Array)
    assert_type(jnp.intersect1d(x, x, return_indices=True)[1], jax.Array)
    assert_type(jnp.pad(x, [(1, 1), (0, 0)], mode="edge"), jax.Array)
    assert_type(jnp.einsum("ij,jk->ik", x, x), jax.Array)
    assert_type(jnp.dot(x, x, precision="highest", preferred_element_type=jnp.float32), jax.Array)


def linear_algebra(a: jax.Array) -> None:
    q, r = jnp.linalg.qr(a)
    assert_type(q @ r, jax.Array)
    assert_type(jnp.linalg.qr(a, mode="r"), jax.Array)
    u, s, vh = jnp.linalg.svd(a, full_matrices=False)
    assert_type(u * s @ vh, jax.Array)
    assert_type(jnp.linalg.svd(a, compute_uv=False), jax.Array)
    assert_type(jnp.linalg.eigh(a).eigenvalues, jax.Array)
    assert_type(jnp.linalg.norm(a, axis=(0, 1)), jax.Array)
    assert_type(jnp.fft.rfft(a, n=4, axis=0), jax.Array)


def randomness(key: jax.Array) -> None:
    key, other = jax.random.split(key)
    assert_type(jax.random.normal(other, (2, 3), jnp.bfloat16), jax.Array)
    assert_type(jax.random.choice(jax.random.key(0), 5, (2,), replace=False), jax.Array)
    assert_type(jax.random.categorical(key, np.zeros(3), axis=-1), jax.Array)


def networks(x: jax.Array, key: jax.Array) -> None:
    assert_type(jax.nn.relu(x), jax.Array)
    assert_type(jax.nn.softmax(x, axis=-1), jax.Array)
    assert_type(jax.nn.one_hot(x, 3), jax.Array)
    assert_type(jax.nn.dot_product_attention(x, x, x, is_causal=True), jax.Array)
    assert_type(jax.nn.initializers.zeros(key, (2, 3), jnp.float32), jax.Array)
    assert_type(jax.image.resize(x, (4, 4), method="bilinear"), jax.Array)
    assert_type(jax.ops.segment_sum(x, np.array([0, 0, 1]), num_segments=2), jax.Array)


def science(a: jax.Array) -> None:
    assert_type(jax.scipy.special.logsumexp(a, axis=0), jax.Array)
    assert_type(jax.scipy.special.gammaln(2.0), jax.Array)
    assert_type(jax.scipy.linalg.solve(a, a), jax.Array)
    assert_type(jax.scipy.linalg.eigh(a), tuple[jax.Array, jax.Array])
    assert_type(jax.scipy.linalg.eigh(a, eigvals_only=True), jax.Array)
    assert_type(jax.scipy.stats.norm.logpdf(a, loc=1.0), jax.Array)
    assert_type(jax.scipy.signal.convolve(a, a, mode="same"), jax.Array)


def primitives(x: jax.Array) -> None:
    assert_type(lax.add(lax.sin(x), 1.0), jax.Array)
    assert_type(lax.broadcast_in_dim(x, (2, 3), (1,)), jax.Array)
    assert_type(lax.dynamic_slice(x, (0, 1), (2, 2)), jax.Array)
    assert_type(lax.select_n(x > 0, x, -x), jax.Array)
    assert_type(lax.scatter_add(x, x, x, lax.ScatterDimensionNumbers((), (0,), (0,))), jax.Array)
    assert_type(lax.axis_index("devices"), jax.Array)
    assert_type(lax.linalg.svd(x), tuple[jax.Array, jax.Array, jax.Array])
    assert_type(lax.cumsum(x, axis=1, reverse=True), jax.Array)


def contexts(x: jax.Array) -> jax.Array:
    with jax.disable_jit(), jax.cpu_devices(8), jax.enable_x64(True):
        return x


def trees(tree: Any) -> None:
    assert_type(jax.tree.leaves(tree), list[Any])
    assert_type(jax.tree.map(jnp.sin, tree), Any)
