"""Programs over several devices, for the benchmarks.

Each builder takes the library and returns a `measured.Program`, as those of `programs.py` do.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import models
from budgets import DEVICES
from measured import LENGTH, Builder, Program, steps, unseen

EXAMPLES = 65_536
LAYERS = 4
HEADS = 4


def mesh_of(jax: Any, **sizes: int) -> Any:
    """A mesh of devices, or an abstract one where there are not so many; all axes are Auto."""
    types = (jax.sharding.AxisType.Auto,) * len(sizes)
    if np.prod(list(sizes.values())) > DEVICES:
        return jax.sharding.AbstractMesh(tuple(sizes.values()), tuple(sizes), axis_types=types)
    return jax.make_mesh(tuple(sizes.values()), tuple(sizes), axis_types=types)


def _on(jax: Any, mesh: Any, *spec: Any) -> Any:
    """The placement on a mesh that a spec describes."""
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec))


_VECTOR = np.linspace(0, 1, 2 * DEVICES, dtype=np.float32)


def _calling(
    jax: Any, function: Callable[..., Any], leaves: int, *rest: Any, floor: bool = True
) -> Program:
    """Calls of a jitted function with one array or a dict of arrays, split over the devices."""
    value = _VECTOR if leaves == 1 else {f"leaf{i}": _VECTOR for i in range(leaves)}
    args = (jax.device_put(value, _on(jax, mesh_of(jax, x=DEVICES), "x")), *rest)
    jitted = jax.jit(function)
    return Program(
        result=lambda: jitted(*args),
        action=lambda: jitted(*args),
        stablehlo=(lambda: jitted.lower(*args).as_text()) if floor else None,
    )


def _call(jax: Any, leaves: int) -> Program:
    return _calling(jax, lambda tree: jax.tree.map(lambda x: x + 1, tree), leaves)


def _sum(jax: Any, leaves: int) -> Program:
    """A program with a collective, and as many results as arguments.

    Each call is waited for: JAX's process aborts where too many such programs are in flight.
    """

    def function(tree: Any) -> Any:
        total = sum(jax.numpy.sum(x) for x in jax.tree.leaves(tree))
        return jax.tree.map(lambda x: x + total, tree)

    program = _calling(jax, function, leaves, floor=False)
    return program._replace(action=lambda: jax.block_until_ready(program.result()))


def _number(jax: Any) -> Program:
    return _calling(jax, lambda x, factor: x * factor, 1, np.float32(3), floor=False)


_LARGE = (1_000, 25_000)


def _put(jax: Any, shape: tuple[int, int] = _LARGE) -> Program:
    values, rows = np.ones(shape, np.float32), _on(jax, mesh_of(jax, x=DEVICES), "x")
    return Program(
        result=lambda: jax.device_put(values, rows)[-1, -3:],
        action=lambda: jax.block_until_ready(jax.device_put(values, rows)),
    )


def _get(jax: Any) -> Program:
    values, rows = np.ones(_LARGE, np.float32), _on(jax, mesh_of(jax, x=DEVICES), "x")

    def fresh() -> Callable[[], Any]:
        # Arrays remember their NumPy value, so each is read once only.
        return functools.partial(np.asarray, jax.block_until_ready(jax.device_put(values, rows)))

    return Program(result=lambda: fresh()()[-1, -3:], fresh=fresh)


def _reshard(jax: Any) -> Program:
    mesh, values = mesh_of(jax, x=DEVICES), np.ones(_LARGE, np.float32)
    rows, columns = _on(jax, mesh, "x"), _on(jax, mesh, None, "x")

    def fresh() -> Callable[[], Any]:
        # JAX reads an array into NumPy for this, and remembers that.
        source = jax.block_until_ready(jax.device_put(values, rows))
        return lambda: jax.block_until_ready(jax.device_put(source, columns))

    return Program(result=lambda: fresh()()[-1, -3:], fresh=fresh)


def tensor_spec(path: Any, leaf: Any) -> tuple[Any, ...]:
    """How tensor parallelism cuts a parameter of the transformer: by heads and hidden units."""
    names = [getattr(key, "key", getattr(key, "idx", None)) for key in path]
    if names[-1] in ("query", "key", "value"):
        return (None, "model", None)
    if names[-1] == "out":
        return ("model",)
    if "up" in names:
        return (None, "model") if leaf.ndim == 2 else ("model",)
    if "down" in names and leaf.ndim == 2:
        return ("model", None)
    return ()


def _tensor_parallel(jax: Any, mesh: Any, layers: int) -> tuple[Callable[..., Any], Any, Any]:
    """A transformer's loss, and the placements of its parameters and of its text."""
    activations = _on(jax, mesh, "data", None, None)

    def place(x: Any) -> Any:
        return jax.lax.with_sharding_constraint(x, activations)

    def loss(jax: Any, params: Any, text: Any) -> Any:
        return models.transformer_loss(jax, params, text, place)

    params = models.transformer_parameters(layers, heads=HEADS, length=LENGTH)
    placements = jax.tree_util.tree_map_with_path(
        lambda path, leaf: _on(jax, mesh, *tensor_spec(path, leaf)), params
    )
    return loss, params, placements


def _compiling(jax: Any, size: int, *, lower: bool) -> Program:
    """Staging or lowering of a transformer's gradient for a mesh of `size` devices."""
    model = min(size, HEADS)
    mesh = mesh_of(jax, data=size // model, model=model)
    loss, params, placements = _tensor_parallel(jax, mesh, LAYERS)

    def described(leaf: Any, sharding: Any) -> Any:
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)

    text = np.empty((EXAMPLES, LENGTH), np.int32)
    args = (
        jax.tree.map(described, params, placements),
        described(text, _on(jax, mesh, "data", None)),
    )
    gradient = jax.grad(functools.partial(loss, jax))

    def stage() -> Any:
        return jax.jit(unseen(gradient)).trace(*args)

    def fresh() -> Callable[[], Any]:
        if not lower:
            return stage
        return functools.partial(stage().lower, lowering_platforms=("cpu",))

    return Program(result=lambda: jax.eval_shape(gradient, *args), fresh=fresh)


def _growth(jax: Any, *, lower: bool) -> Program:
    """How many times longer it takes for the largest mesh than for one device."""
    small, large = (_compiling(jax, size, lower=lower) for size in (1, EXAMPLES))

    def seconds(program: Program) -> float:
        assert program.fresh is not None
        action = program.fresh()
        start = time.perf_counter()
        action()
        return time.perf_counter() - start

    def figure() -> float:
        # Turn by turn, so that a busy moment of the machine hits both.
        turns = [(seconds(large), seconds(small)) for _ in range(10)]
        return min(large for large, _ in turns) / min(small for _, small in turns)

    return Program(result=large.result, figure=figure)


def _training(
    jax: Any, loss: Callable[..., Any], params: Any, placements: Any, *batch: Any
) -> Program:
    """Steps of Adam with parameters, and what Adam remembers of each, placed on a mesh.

    The batch comes with its placements: pairs of values and shardings.
    """
    step = functools.partial(models.adam_step, jax, functools.partial(loss, jax))
    mesh = jax.tree.leaves(placements)[0].mesh
    whole = _on(jax, mesh)
    state = ((placements, placements), whole)
    start = jax.device_put((params, models.adam_state(params)), (placements, state))
    jitted = jax.jit(step, out_shardings=(whole, placements, state))
    return steps(jitted, start, [jax.device_put(*each) for each in batch])


def _train_cnn(jax: Any, spec: Callable[[Any], tuple[Any, ...]], **sizes: int) -> Program:
    """Training of the network of the demo, whose batches are split over the first axis."""
    mesh = mesh_of(jax, **sizes)
    params = models.cnn_parameters()
    placements = jax.tree.map(lambda leaf: _on(jax, mesh, *spec(leaf)), params)
    rows = _on(jax, mesh, next(iter(sizes)))
    batch = [(values, rows) for values in models.digits(64)]
    return _training(jax, models.cnn_loss, params, placements, *batch)


def _largest(leaf: Any) -> tuple[Any, ...]:
    """The largest dimension split over the axis `data`, where that divides it."""
    dimension = int(np.argmax(leaf.shape))
    return (None,) * dimension + ("data",) if leaf.shape[dimension] % DEVICES == 0 else ()


def _outputs(leaf: Any) -> tuple[Any, ...]:
    """The output channels of a layer split over the axis `model`, where that divides them."""
    return (None,) * (leaf.ndim - 1) + ("model",) if leaf.shape[-1] % 2 == 0 else ()


def _train_tensor(jax: Any) -> Program:
    mesh = mesh_of(jax, data=2, model=4)
    loss, params, placements = _tensor_parallel(jax, mesh, 2)
    text = (models.tokens(16, LENGTH), _on(jax, mesh, "data"))
    return _training(jax, loss, params, placements, text)


BUILDERS: dict[str, Builder] = {
    "mesh_call_1": functools.partial(_call, leaves=1),
    "mesh_call_20": functools.partial(_call, leaves=20),
    "mesh_sum_1": functools.partial(_sum, leaves=1),
    "mesh_sum_20": functools.partial(_sum, leaves=20),
    "mesh_number": _number,
    "mesh_put": _put,
    "mesh_put_1_KB": functools.partial(_put, shape=(8, 32)),
    "mesh_put_1_MB": functools.partial(_put, shape=(1_000, 250)),
    "mesh_get": _get,
    "mesh_reshard": _reshard,
    **{
        f"mesh_{name}_{size}": functools.partial(_compiling, size=size, lower=name == "lower")
        for name in ("stage", "lower")
        for size in (1, DEVICES, EXAMPLES)
    },
    "mesh_stage_growth": functools.partial(_growth, lower=False),
    "mesh_lower_growth": functools.partial(_growth, lower=True),
    "mesh_train_data": functools.partial(_train_cnn, spec=lambda leaf: (), data=DEVICES),
    "mesh_train_sharded": functools.partial(_train_cnn, spec=_largest, data=DEVICES),
    "mesh_train_tensor": _train_tensor,
    "mesh_train_square": functools.partial(_train_cnn, spec=_outputs, data=4, model=2),
}
