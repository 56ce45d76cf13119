"""Programs as users write them, and what a type checker takes their values for.

Checked by mypy and by pyright, both strict, without one ignored line; never run.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, assert_type

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax import lax, random
from minijax.sharding import AxisType, Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P
from minijax.typing import ArrayLike, DTypeLike

Params = dict[str, jax.Array]
Batch = tuple[jax.Array, jax.Array]


class State(NamedTuple):
    params: Params
    velocity: Params
    step: jax.Array


def predict(params: Params, x: jax.Array) -> jax.Array:
    hidden = jax.nn.relu(x @ params["w"] + params["b"])
    return jnp.dot(hidden, params["out"])


def loss(params: Params, batch: Batch) -> jax.Array:
    x, y = batch
    return jnp.mean((predict(params, x) - y) ** 2)


# A training loop: the step is jitted, and fed with NumPy's arrays.
@jax.jit
def update(state: State, batch: Batch) -> tuple[State, jax.Array]:
    def heavier(v: jax.Array, g: jax.Array) -> jax.Array:
        return 0.9 * v + g

    def moved(p: jax.Array, v: jax.Array) -> jax.Array:
        return p - 0.1 * v

    value, grads = jax.value_and_grad(loss)(state.params, batch)
    assert_type(value, jax.Array)
    velocity = jax.tree.map(heavier, state.velocity, grads)
    params = jax.tree.map(moved, state.params, velocity)
    return State(params, velocity, state.step + 1), value


def train(
    state: State, batches: Iterator[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]
) -> State:
    for batch in batches:
        state, value = update(state, batch)
        assert_type(state, State)
        assert_type(f"{int(state.step)}: {float(value):.3f}", str)
    return state


# The same with auxiliary results, and the other forms of the decorator.
@functools.partial(jax.jit, static_argnames=("deep",))
def evaluate(params: Params, batch: Batch, deep: bool = False) -> jax.Array:
    return loss(params, batch)


@jax.jit(static_argnums=(2,), inline=True)
def accuracy(params: Params, batch: Batch, classes: int) -> jax.Array:
    labels = jnp.clip(predict(params, batch[0]), 0, classes - 1).astype(jnp.int32)
    return jnp.mean(labels == batch[1])


def with_auxiliary(params: Params, batch: Batch) -> None:
    def both(params: Params) -> tuple[jax.Array, Params]:
        return loss(params, batch), params

    (value, aux), _ = jax.value_and_grad(both, has_aux=True)(params)
    assert_type(value, jax.Array)
    assert_type(aux, Params)
    assert_type(accuracy(params, batch, 10), jax.Array)
    assert_type(accuracy(params, batch, classes=10).item(), Any)
    assert_type(jax.jit(jax.value_and_grad(both, has_aux=True))(params)[0][1], Params)


# What a jitted function is: stages, shapes, the function itself.
def stages(params: Params, batch: Batch) -> None:
    traced = update.trace(State(params, params, jnp.zeros((), jnp.int32)), batch)
    assert_type(traced.jaxpr, jax.ClosedJaxpr)
    lowered = evaluate.lower(params, (jax.ShapeDtypeStruct((7, 3), jnp.float32), np.ones(7)))
    assert_type(lowered, jax.stages.Lowered)
    assert_type(lowered.compile(), jax.stages.Compiled)
    assert_type(update.__wrapped__(State(params, params, jnp.int32(0)), batch)[1], jax.Array)
    wrapped: jax.stages.Wrapped = evaluate
    wrapped.lower(params, batch).as_text()
    assert_type(update.__name__, str)
    assert_type(jax.make_jaxpr(loss)(params, batch), jax.ClosedJaxpr)
    assert_type(jax.make_jaxpr(loss, return_shape=True)(params, batch)[0], jax.ClosedJaxpr)


# Recurrence: a cell scanned over time, from numbers as well as from arrays.
class Cell(NamedTuple):
    hidden: jax.Array
    memory: jax.Array


def recurrent(weights: jax.Array, xs: jax.Array) -> jax.Array:
    def cell(carry: Cell, x: jax.Array) -> tuple[Cell, jax.Array]:
        forget, value = jnp.split(jnp.concatenate([x, carry.hidden]) @ weights, 2)
        memory = jax.nn.sigmoid(forget) * carry.memory + jnp.tanh(value)
        return Cell(jnp.tanh(memory), memory), memory

    zeros = jnp.zeros(weights.shape[-1] // 2)
    last, outs = lax.scan(jax.checkpoint(cell), Cell(zeros, zeros), xs)
    assert_type(last, Cell)
    assert_type(outs, jax.Array)
    return outs


def running_sum(xs: Sequence[float]) -> None:
    def add(total: jax.Array, x: jax.Array) -> tuple[jax.Array, None]:
        return total + x, None

    assert_type(lax.scan(add, 0.0, np.array(xs)), tuple[jax.Array, None])
    assert_type(lax.scan(jax.jit(add), jnp.zeros(()), np.array(xs), 2, unroll=True)[0], jax.Array)
    assert_type(lax.associative_scan(jnp.maximum, jnp.array(xs), reverse=True), jax.Array)
    assert_type(lax.map(jnp.sin, np.array(xs), batch_size=2), jax.Array)


# Loops and choices.
def solve(tolerance: float, x0: jax.Array) -> tuple[jax.Array, jax.Array]:
    def unsolved(state: tuple[jax.Array, jax.Array]) -> jax.Array:
        return jnp.linalg.norm(state[1]) > tolerance

    def newton(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        count, x = state
        return count + 1, x - 0.5 * x

    steps, x = lax.while_loop(unsolved, newton, (0, x0))
    assert_type(steps, jax.Array)
    return steps, x


def choose(flag: jax.Array, index: jax.Array, x: jax.Array) -> None:
    def double(x: jax.Array) -> jax.Array:
        return x * 2

    def halve(x: jax.Array) -> jax.Array:
        return x / 2

    assert_type(lax.cond(flag, double, halve, x), jax.Array)
    assert_type(lax.cond(flag, lambda: (x, x), lambda: (x, -x)), tuple[jax.Array, jax.Array])
    assert_type(lax.switch(index, [double, halve], x), jax.Array)

    def power(i: jax.Array, y: jax.Array) -> jax.Array:
        return y * x**i

    assert_type(lax.fori_loop(0, 3, power, 1.0), jax.Array)
    assert_type(lax.platform_dependent(x, cpu=double, default=halve), jax.Array)


# Replicas that average their gradients.
@functools.partial(jax.pmap, axis_name="replicas", donate_argnums=(0,))
def replicated_step(params: Params, batch: Batch) -> tuple[Params, jax.Array]:
    grads: Params = jax.grad(loss)(params, batch)
    shared = lax.pmean(grads, "replicas")
    assert_type(shared, Params)
    count = lax.psum(1, "replicas")
    assert_type(count, int)
    assert_type(lax.axis_index("replicas") + lax.axis_size("replicas"), jax.Array)
    return jax.tree.map(jnp.subtract, params, shared), lax.pmax(loss(params, batch), "replicas")


def replicated(params: Params, batch: Batch) -> None:
    def copies(x: jax.Array) -> jax.Array:
        return jnp.stack([x] * jax.local_device_count())

    spread: Params = jax.tree.map(copies, params)
    batches: Batch = jax.tree.map(copies, batch)
    assert_type(jax.pmap(loss)(spread, batches), jax.Array)
    new, worst = replicated_step(spread, batches)
    assert_type(jax.device_get(new), Any)
    assert_type(worst[0], jax.Array)


# Programs per device of a mesh.
def per_device(mesh: Mesh, x: jax.Array) -> None:
    @jax.shard_map(mesh=mesh, in_specs=P("rows", None), out_specs=P("rows"))
    def normalized(block: jax.Array) -> jax.Array:
        total = lax.psum(jnp.sum(block), "rows")
        ring = [(i, (i + 1) % lax.axis_size("rows")) for i in range(4)]
        assert_type(lax.ppermute(block, "rows", ring), jax.Array)
        assert_type(lax.all_gather(block, "rows", tiled=True), jax.Array)
        return block / total

    assert_type(normalized(x), jax.Array)

    def total(block: jax.Array) -> jax.Array:
        return lax.psum(block, "rows")

    mapped = jax.shard_map(total, mesh=mesh, in_specs=P("rows"), out_specs=P())
    assert_type(jax.jit(mapped)(x), jax.Array)


# Arrays over a mesh, which the compiler divides.
def placed(params: Params) -> Params:
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto, AxisType.Auto))
    rows = NamedSharding(mesh, P("data"))
    with jax.set_mesh(mesh):
        x = jax.device_put(np.ones((8, 8)), rows)
        constrained = lax.with_sharding_constraint(params, rows)
    assert_type(constrained, Params)
    assert_type(jax.make_array_from_callback((8,), rows, lambda index: np.ones(2)), jax.Array)
    assert_type([piece.data for piece in jnp.asarray(x).addressable_shards], list[jax.Array])
    assert_type([d.platform for d in jax.devices()], list[str])
    return jax.block_until_ready(constrained)


# Functions with derivatives of their own.
@jax.custom_jvp
def log1pexp(x: jax.Array) -> jax.Array:
    return jnp.log(1 + jnp.exp(x))


@log1pexp.defjvp
def log1pexp_jvp(
    primals: tuple[jax.Array], tangents: tuple[jax.Array]
) -> tuple[jax.Array, jax.Array]:
    return log1pexp(*primals), jax.nn.sigmoid(primals[0]) * tangents[0]


@jax.custom_vjp
def clipped(x: jax.Array, limit: float) -> jax.Array:
    return x


def clipped_fwd(x: jax.Array, limit: float) -> tuple[jax.Array, float]:
    return x, limit


def clipped_bwd(limit: float, ct: jax.Array) -> tuple[jax.Array, None]:
    return jnp.clip(ct, -limit, limit), None


clipped.defvjp(clipped_fwd, clipped_bwd)


@jax.custom_gradient
def doubled(x: jax.Array) -> tuple[jax.Array, Callable[[jax.Array], jax.Array]]:
    return 2 * x, lambda ct: 2 * ct


def own_derivatives(x: jax.Array) -> None:
    assert_type(log1pexp(x), jax.Array)
    assert_type(clipped(x, 1.0), jax.Array)
    assert_type(doubled(x), jax.Array)
    assert_type(jax.custom_batching.sequential_vmap(jnp.sin)(x), jax.Array)
    assert_type(log1pexp_jvp((x,), (x,))[1], jax.Array)


# Derivatives in both modes, and of higher order.
def derivatives(x: jax.Array) -> None:
    def f(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jnp.sin(x), x

    (y, _), (dy, _) = jax.jvp(f, (x,), (x,))
    assert_type((y, dy), tuple[jax.Array, jax.Array])
    (y, _), pull_back = jax.vjp(f, x)
    assert_type(pull_back((y, y)), tuple[Any, ...])
    assert_type(jax.vjp(f, x, has_aux=True)[2], jax.Array)
    value, push_forward = jax.linearize(jnp.sin, x)
    assert_type(value + push_forward(x), jax.Array)

    def hessian_vector(v: jax.Array) -> jax.Array:
        gradient: jax.Array = jax.jvp(jax.grad(jnp.sum), (x,), (v,))[1]
        return gradient

    assert_type(jax.vmap(hessian_vector)(jnp.diag(x)), jax.Array)
    assert_type(jax.eval_shape(jax.hessian(jnp.sum), x), Any)


# Batches: what is mapped keeps its parameters.
def batches(keys: jax.Array, params: Params, xs: jax.Array) -> None:
    assert_type(jax.vmap(predict, in_axes=(None, 0))(params, xs), jax.Array)
    assert_type(jax.vmap(jax.vmap(jnp.dot, (0, None)), (None, 1))(xs, xs), jax.Array)

    @functools.partial(jax.vmap, in_axes=(0, None), axis_name="draws")
    def draw(key: jax.Array, scale: float) -> jax.Array:
        sample = scale * random.normal(key, (3,))
        return sample - lax.pmean(sample, "draws")

    assert_type(draw(keys, 2.0), jax.Array)


# Keys: made, split, folded, drawn from.
def keys(seed: int) -> jax.Array:
    key = random.key(seed, impl="threefry2x32")
    key, *rest = random.split(key, 3)
    assert_type(rest, list[jax.Array])
    shuffled = random.permutation(random.fold_in(key, 1), 10, independent=True)
    noise = random.truncated_normal(rest[0], -2.0, 2.0, (2, 3), jnp.bfloat16)
    chosen = random.choice(rest[1], shuffled, (2,), replace=False, p=np.ones(10) / 10)
    assert_type(random.key_data(key), jax.Array)
    assert_type(key.dtype == random.key_dtype("threefry2x32"), bool)
    return noise[:, 0] + chosen


# Trees, with classes of the user's own.
@functools.partial(jax.tree_util.register_dataclass, data_fields=["w"], meta_fields=["name"])
@dataclasses.dataclass
class Layer:
    w: jax.Array
    name: str = "layer"


@jax.tree_util.register_pytree_node_class
class Pair:
    def __init__(self, left: Any, right: Any) -> None:
        self.left = left
        self.right = right

    def tree_flatten(self) -> tuple[tuple[Any, Any], None]:
        return (self.left, self.right), None

    @classmethod
    def tree_unflatten(cls, aux: None, children: tuple[Any, Any]) -> "Pair":
        return cls(*children)


def trees(layer: Layer, params: Params) -> None:
    leaves, structure = jax.tree.flatten(params)
    assert_type(structure, jax.tree_util.PyTreeDef)
    assert_type(structure.num_leaves, int)
    rebuilt: Params = jax.tree.unflatten(structure, [2 * leaf for leaf in leaves])
    squares = jax.tree.map(jnp.square, rebuilt)
    norm = jnp.sqrt(jax.tree.reduce(jnp.add, jax.tree.map(jnp.sum, squares)))
    assert_type(norm, jax.Array)
    for path, leaf in jax.tree.leaves_with_path(params):
        assert_type(jax.tree_util.keystr(path), str)
        assert_type(jnp.shape(leaf), tuple[int, ...])
    scaled: Layer = jax.tree.map(functools.partial(jnp.multiply, norm), layer)

    @jax.jit
    def left(layer: Layer, pair: Pair) -> Layer:
        return layer

    assert_type(left(scaled, Pair(1, 2)), Layer)
    assert_type(jax.tree.all(jax.tree.map(jnp.allclose, params, params)), bool)


# Dtypes, named in the ways there are.
def dtypes(x: ArrayLike, dtype: DTypeLike) -> None:
    y = jnp.asarray(x, dtype=jnp.promote_types(dtype, jnp.bfloat16))
    assert_type(y.dtype, np.dtype[Any])
    assert_type(jnp.result_type(y, 1.0).itemsize, int)
    assert_type(jnp.issubdtype(y.dtype, jnp.floating), bool)
    assert_type(y.astype("int8") + jnp.finfo(jnp.float16).bits, jax.Array)
    assert_type(jnp.zeros_like(y, dtype=np.float32, shape=(2,)), jax.Array)
    with jax.enable_x64(True):
        assert_type(jnp.add(jnp.int64(1), y), jax.Array)


# Linear algebra: least squares and a covariance.
def linear(a: jax.Array, b: jax.Array) -> jax.Array:
    solution, _, rank, singular = jnp.linalg.lstsq(a, b)
    assert_type((rank, singular), tuple[jax.Array, jax.Array])
    factor = jax.scipy.linalg.cho_factor(a @ a.T)
    values, vectors = jnp.linalg.eigh(a.T @ a)
    sign, log = jnp.linalg.slogdet(a)
    assert_type(vectors * values + sign * log, jax.Array)
    assert_type(lax.linalg.cholesky(a @ a.T), jax.Array)
    return jax.scipy.linalg.cho_solve(factor, b) + solution


# A network of layers that are drawn, normalized and attended over.
def network(key: jax.Array, x: jax.Array, training: bool) -> jax.Array:
    initialize = jax.nn.initializers.he_normal()
    weights = initialize(key, (x.shape[-1], 16), jnp.float32)
    hidden = jax.nn.gelu(x @ weights, approximate=False)
    hidden = jax.nn.standardize(hidden, axis=-1)
    mask = random.bernoulli(key, 0.9, hidden.shape) if training else jnp.ones(hidden.shape, bool)
    attended = jax.nn.dot_product_attention(hidden, hidden, hidden)
    return jnp.where(mask, attended / 0.9, 0.0)


# References, callbacks, and what is looked at on the way.
@jax.jit
def observed(x: jax.Array) -> jax.Array:
    count = jax.new_ref(jnp.zeros((), jnp.int32))
    assert_type(count, jax.Ref)
    count[...] += 1
    jax.debug.print("x = {x}, {}", count[...], x=x, ordered=True)
    jax.debug.callback(print, x)
    host = jax.pure_callback(np.sort, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
    with jax.named_scope("sum"):
        total = lax.stop_gradient(x) + lax.optimization_barrier(jnp.asarray(host))
    return total + jax.freeze(count)


# Methods: a class whose functions are jitted and checkpointed.
class Model:
    def __init__(self, scale: float) -> None:
        self.scale = scale

    @functools.partial(jax.jit, static_argnums=0)
    def forward(self, x: jax.Array) -> jax.Array:
        return self.scale * x

    @functools.partial(
        jax.checkpoint, static_argnums=0, policy=jax.checkpoint_policies.dots_saveable
    )
    def block(self, x: jax.Array) -> jax.Array:
        return jnp.tanh(self.scale * x)

    @staticmethod
    @jax.jit
    def norm(x: jax.Array) -> jax.Array:
        return jnp.linalg.norm(x)


def models(x: jax.Array) -> None:
    model = Model(2.0)
    y: jax.Array = model.forward(x)
    assert_type(Model.norm(y), jax.Array)
    z: jax.Array = model.block(y)
    assert_type(jax.jit(model.block)(z), jax.Array)
