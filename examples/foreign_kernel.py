"""Learning to rank through a kernel in C++: isotonic regression as a layer.

A soft rank is a smooth function that is nearly the rank of each number in a list. It is the
projection of the numbers onto the convex hull of all orders of 1, 2, …, n, which sorting turns into
isotonic regression: the decreasing numbers nearest to given ones. The algorithm for that goes from
left to right and pools neighbours that are out of order, so it has a loop in a loop whose ends
depend on the data, and it is in C++: `foreign_kernel.cc`. Its derivative averages over the pooled
blocks, which is a second kernel, joined to the first with `custom_vjp`.

M. Blondel, O. Teboul, Q. Berthet and J. Djolonga, "Fast differentiable sorting and ranking", 2020.
"""

from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

import minijax as jax
import minijax.numpy as jnp
import placements
from adam import adam_init, adam_update
from minijax import ffi
from minijax.sharding import AxisType, NamedSharding
from minijax.sharding import PartitionSpec as P
from terminal import Panel, heading, paragraph, say, show

DEVICES = 8
LISTS = 256
ITEMS = 12
FEATURES = 6
STRENGTH = 0.5
"""Below this distance, two scores share their ranks."""
STEPS = 200
RATE = 0.03


class Result(NamedTuple):
    """Rank correlation on new lists before and after learning; between true and found weights."""

    before: float
    after: float
    weights: float


def main() -> Result | None:
    """Learns what makes judges prefer an item; None where there is no compiler."""
    heading(
        "Ranks by a kernel in C++",
        f"""Judges have put {LISTS} lists of {ITEMS} items in order, and err in every tenth item.
        The weights behind their taste are found by gradients of rank correlation, on {DEVICES}
        devices, each with its own lists.""",
    )
    if not load_kernels():
        paragraph("There is no g++ here to compile foreign_kernel.cc with.")
        return None
    learn, (weights, lists) = workload()
    learned = learn(weights, lists)

    truth, new = judged(np.random.default_rng(1), LISTS, errors=0.0)
    before, after = (float(jnp.mean(correlation(w, new))) for w in (weights, learned))
    found = float(truth @ learned / np.linalg.norm(truth) / np.linalg.norm(learned))
    say(f"  rank correlation on new lists   {before:.3f} before, {after:.3f} after")
    say(f"  cosine of found and true weights   {found:.3f}\n")
    sent = jax.testing.assert_collectives(learn, exactly=True, all_reduce=1)(weights, lists)
    show(Panel("what devices send: the gradient, in each step", placements.sent(sent)))
    return Result(before, after, found)


@functools.cache
def load_kernels() -> bool:
    """Compiles the kernels and makes them known to the compiler; False if that is impossible."""
    compiler = shutil.which("g++")
    if compiler is None:
        return False
    source = Path(__file__).with_suffix(".cc")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "kernels.so")
        flags = ["-std=c++17", "-O2", "-shared", "-fPIC", "-isystem", ffi.include_dir()]
        subprocess.run([compiler, *flags, str(source), "-o", str(library)], check=True)
        loaded = ctypes.CDLL(str(library))
    for name in ("isotonic", "block_means"):
        ffi.register_ffi_target(name, ffi.pycapsule(getattr(loaded, name)))
        # Each row is computed by itself, so devices may divide them.
        ffi.register_ffi_target_as_batch_partitionable(name)
    return True


def call(name: str, *operands: jax.Array) -> jax.Array:
    """A kernel that works on rows, which are the last dimension of its operands."""
    like = jax.ShapeDtypeStruct(operands[0].shape, jnp.float32)
    batch = len(like.shape) - 1
    return ffi.ffi_call(name, like, vmap_method="broadcast_all", num_batch_dims=batch)(*operands)


@jax.custom_vjp
def isotonic(y: jax.Array) -> jax.Array:
    """In each row, the numbers v[0] >= v[1] >= … with the least squared distance from y."""
    return call("isotonic", y)


def _forward(y: jax.Array) -> tuple[jax.Array, jax.Array]:
    v = isotonic(y)
    return v, v


def _backward(v: jax.Array, ct: jax.Array) -> tuple[jax.Array]:
    # Within a block v is the mean of y, and which blocks there are does not change nearby.
    return (call("block_means", v, ct),)


isotonic.defvjp(_forward, _backward)


def soft_ranks(scores: jax.Array) -> jax.Array:
    """Nearly 1 for the least score of each row, nearly n for the greatest."""
    z = scores / STRENGTH
    # A one-hot matrix for the order: its products are permutations, forth and back.
    order = jax.nn.one_hot(jnp.argsort(-z, axis=-1), z.shape[-1])
    descending = jnp.einsum("...ij,...j->...i", order, z)
    ranks = jnp.arange(z.shape[-1], 0, -1, dtype=z.dtype)
    return z - jnp.einsum("...ij,...i->...j", order, isotonic(descending - ranks))


def correlation(weights: jax.Array, lists: tuple) -> jax.Array:
    """Spearman's coefficient of each list: the correlation of its soft ranks with the judges'."""
    items, ranks = lists
    return jax.vmap(_correlation)(soft_ranks(items @ weights), ranks)


def _correlation(x: jax.Array, y: jax.Array) -> jax.Array:
    x, y = x - jnp.mean(x), y - jnp.mean(y)
    return jnp.vdot(x, y) / jnp.sqrt(jnp.vdot(x, x) * jnp.vdot(y, y) + 1e-6)


def judged(rng: np.random.Generator, lists: int, errors: float) -> tuple[np.ndarray, tuple]:
    """The weights of the judges; items, and their ranks, of which some are anywhere."""
    weights = np.array([2, -1, 0.5, 0, 1, -0.2], np.float32)
    items = rng.normal(size=(lists, ITEMS, FEATURES)).astype(np.float32)
    scores = items @ weights
    wrong = rng.uniform(size=scores.shape) < errors
    scores = np.where(wrong, rng.normal(0, 10, scores.shape), scores)
    ranks = scores.argsort(axis=-1).argsort(axis=-1) + 1
    return weights, (items, ranks.astype(np.float32))


def workload() -> tuple:
    """The program that learns; weights to begin with, and lists that devices share."""
    mesh = jax.make_mesh((DEVICES,), ("lists",), axis_types=(AxisType.Auto,))
    rng = np.random.default_rng(0)
    _, lists = judged(rng, LISTS, errors=0.1)
    weights = jax.device_put(0.01 * rng.normal(size=FEATURES), NamedSharding(mesh, P()))
    return learn, (weights, jax.device_put(lists, NamedSharding(mesh, P("lists"))))


@jax.jit
def learn(weights: jax.Array, lists: tuple) -> jax.Array:
    """The weights after steps of Adam."""

    def loss(weights: jax.Array) -> jax.Array:
        return -jnp.mean(correlation(weights, lists))

    def step(_: int, carry: tuple) -> tuple:
        weights, state = carry
        return adam_update(weights, jax.grad(loss)(weights), state, RATE)

    return jax.lax.fori_loop(0, STEPS, step, (weights, adam_init(weights)))[0]


if __name__ == "__main__":
    jax.config.update("jax_num_cpu_devices", DEVICES)
    main()
