"""Programs written for each device, for the benchmarks: `shard_map`, `pmap` and collectives.

Each builder takes the library and returns a `measured.Program`, as those of `programs.py` do.
"""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import importlib.machinery
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import meshes
import models
from budgets import DEVICES
from measured import LENGTH, Builder, Program, lowering, repeated, staging, steps

EXAMPLES = Path(__file__).parents[1] / "examples"
LAYERS = 4
HEADS = 4
ROWS = 2 * DEVICES
FEATURES = 256
_VECTOR = np.linspace(0, 1, ROWS, dtype=np.float32)


def _transformer(jax: Any, *, check: bool, grad: bool) -> tuple[Callable[..., Any], Any, Any]:
    """A transformer's loss, its heads and hidden units split; its parameters and a text."""
    spec = jax.sharding.PartitionSpec
    mesh = meshes.mesh_of(jax, data=2, model=HEADS)
    params = models.transformer_parameters(LAYERS, heads=HEADS, length=LENGTH)
    specs = jax.tree_util.tree_map_with_path(
        lambda path, leaf: spec(*meshes.tensor_spec(path, leaf)), params
    )

    def total(x: Any) -> Any:
        return jax.lax.psum(x, "model")

    def loss(params: Any, text: Any) -> Any:
        return jax.lax.pmean(models.transformer_loss(jax, params, text, total=total), "data")

    mapped = jax.shard_map(
        loss, mesh=mesh, in_specs=(specs, spec("data")), out_specs=spec(), check_vma=check
    )
    return (jax.grad(mapped) if grad else mapped), params, models.tokens(4, LENGTH)


def _stage(jax: Any, *, check: bool = True, grad: bool = False) -> Program:
    return staging(jax, *_transformer(jax, check=check, grad=grad))


def _lower(jax: Any, *, check: bool = True, grad: bool = False) -> Program:
    return lowering(jax, *_transformer(jax, check=check, grad=grad))


def _rows(jax: Any, function: Callable[..., Any]) -> tuple[Callable[..., Any], Any]:
    """A function of blocks of rows over all devices, and where such rows live."""
    mesh = meshes.mesh_of(jax, x=DEVICES)
    spec = jax.sharding.PartitionSpec("x")
    mapped = jax.shard_map(function, mesh=mesh, in_specs=spec, out_specs=spec)
    return mapped, jax.sharding.NamedSharding(mesh, spec)


def _tree(leaves: int, value: Any) -> Any:
    return value if leaves == 1 else {f"leaf{i}": value for i in range(leaves)}


def _call(jax: Any, leaves: int) -> Program:
    mapped, rows = _rows(jax, lambda tree: jax.tree.map(lambda x: x + 1, tree))
    args = jax.device_put(_tree(leaves, _VECTOR), rows)
    jitted = jax.jit(mapped)
    return repeated(lambda: jitted(args), lambda: jitted.lower(args).as_text())


def _call_pmap(jax: Any, leaves: int) -> Program:
    mapped = jax.pmap(lambda tree: jax.tree.map(lambda x: x + 1, tree))
    args = mapped(_tree(leaves, _VECTOR.reshape(DEVICES, -1)))
    return repeated(lambda: mapped(args))


def _share(jax: Any, x: Any) -> Any:
    return x / jax.lax.psum(x, "x")


def _waited(jax: Any, call: Callable[[], Any]) -> Program:
    """Calls that are waited for: JAX's process aborts where too many collectives are in flight."""
    return Program(result=call, action=lambda: jax.block_until_ready(call()))


def _sum(jax: Any) -> Program:
    mapped, rows = _rows(jax, functools.partial(_share, jax))
    x, jitted = jax.device_put(_VECTOR, rows), jax.jit(mapped)
    return _waited(jax, lambda: jitted(x))


def _sum_pmap(jax: Any) -> Program:
    mapped = jax.pmap(functools.partial(_share, jax), axis_name="x")
    x = mapped(_VECTOR.reshape(DEVICES, -1))
    return _waited(jax, lambda: mapped(x))


def _eager(jax: Any) -> Program:
    mapped, rows = _rows(jax, functools.partial(_share, jax))
    x = jax.device_put(_VECTOR, rows)
    return _waited(jax, lambda: mapped(x))


def _sharded_layer(jax: Any) -> tuple[Callable[..., Any], Any, Any]:
    """The gradient of a dense layer that gathers its parameters; shares of these, and inputs."""
    spec = jax.sharding.PartitionSpec("x")

    def loss(share: Any, x: Any) -> Any:
        kernel = jax.lax.all_gather(share, "x", tiled=True)
        return jax.lax.pmean(jax.numpy.sum(jax.numpy.tanh(x @ kernel)), "x")

    mesh = meshes.mesh_of(jax, x=DEVICES)
    none = jax.sharding.PartitionSpec()
    mapped = jax.shard_map(loss, mesh=mesh, in_specs=(spec, spec), out_specs=none)
    kernel = np.cos(np.arange(FEATURES * FEATURES, dtype=np.float32)).reshape(FEATURES, FEATURES)
    rows = jax.sharding.NamedSharding(mesh, spec)
    return jax.grad(mapped), jax.device_put(kernel / FEATURES, rows), jax.device_put(kernel, rows)


def _stage_sharded(jax: Any) -> Program:
    return staging(jax, *_sharded_layer(jax))


def _run_sharded(jax: Any) -> Program:
    gradient, *args = _sharded_layer(jax)
    jitted = jax.jit(gradient)
    return _waited(jax, lambda: jitted(*args))


def _along_batch(jax: Any) -> Callable[[Any], Any]:
    """Collectives over the examples of a batch."""
    lax = jax.lax

    def one(x: Any) -> Any:
        onward = [(i, (i + 1) % ROWS) for i in range(ROWS)]
        mean = lax.pmean(x, "batch")
        moved = lax.ppermute(x - mean, "batch", onward)
        return moved * lax.axis_index("batch") + lax.all_gather(x, "batch").sum(axis=0) / mean

    return jax.vmap(one, axis_name="batch")


_BATCH = np.linspace(1, 2, ROWS * 4, dtype=np.float32).reshape(ROWS, 4)


def _stage_vmap(jax: Any) -> Program:
    return staging(jax, _along_batch(jax), _BATCH)


def _eager_vmap(jax: Any) -> Program:
    batched, x = _along_batch(jax), jax.numpy.asarray(_BATCH)
    return repeated(lambda: batched(x))


class _ImportChanged(importlib.abc.InspectLoader):
    """Loads the examples with their `import minijax` changed to the library's name."""

    def __init__(self, library: str) -> None:
        self._library = library

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        found = path is None and (EXAMPLES / f"{name}.py").exists()
        return importlib.machinery.ModuleSpec(name, self) if found else None

    def get_source(self, fullname: str) -> str:
        text = (EXAMPLES / f"{fullname}.py").read_text(encoding="utf-8")
        return text.replace("minijax", self._library)


def _example(jax: Any, name: str) -> Any:
    if not any(isinstance(each, _ImportChanged) for each in sys.meta_path):
        sys.meta_path.append(_ImportChanged(jax.__name__))
    return importlib.import_module(name)


def _run_example(jax: Any, name: str) -> Program:
    """The program of an example, again and again with the same arguments."""
    run, args = _example(jax, name).workload()
    return _waited(jax, lambda: run(*args))


def _train_example(jax: Any, name: str, carried: int) -> Program:
    """Training steps of an example, which give a value and what the next step takes."""
    step, args = _example(jax, name).workload()

    def advanced(*args: Any) -> tuple[Any, ...]:
        value, *state = jax.block_until_ready(step(*args))
        return value, *state

    return steps(advanced, args[:carried], args[carried:])


_GENERATED = 60


def _simulate(jax: Any) -> Program:
    """Simulation of programs that Hypothesis generates, the same ones every time."""
    hypothesis = importlib.import_module("hypothesis")
    strategies = importlib.import_module(f"{jax.__name__}.testing.strategies")
    engines = importlib.import_module(f"{jax.__name__}.testing.programs")
    programs: list[Any] = []

    @hypothesis.settings(max_examples=_GENERATED, derandomize=True, database=None, deadline=None)
    @hypothesis.given(strategies.device_programs(num_devices=DEVICES))
    def generate(program: Any) -> None:
        programs.append(program)

    generate()

    def figure() -> float:
        start = time.perf_counter()
        for program in programs:
            engines.simulated(program)
        return (time.perf_counter() - start) / len(programs)

    return Program(result=list, figure=figure)


BUILDERS: dict[str, Builder] = {
    "shmap_stage": _stage,
    "shmap_stage_unchecked": functools.partial(_stage, check=False),
    "shmap_stage_grad": functools.partial(_stage, grad=True),
    "shmap_lower": _lower,
    "shmap_lower_grad": functools.partial(_lower, grad=True),
    "shmap_call_1": functools.partial(_call, leaves=1),
    "shmap_call_20": functools.partial(_call, leaves=20),
    "pmap_call_1": functools.partial(_call_pmap, leaves=1),
    "pmap_call_20": functools.partial(_call_pmap, leaves=20),
    "shmap_sum": _sum,
    "pmap_sum": _sum_pmap,
    "shmap_eager": _eager,
    "shmap_fsdp_stage": _stage_sharded,
    "shmap_fsdp_run": _run_sharded,
    "simulate": _simulate,
    "vmap_collectives_stage": _stage_vmap,
    "vmap_collectives_eager": _eager_vmap,
    **{
        f"example_{name}": functools.partial(_run_example, name=name)
        for name in ("ring_all_reduce", "ring_attention", "halo_exchange", "summa", "transpose_fft")
    },
    **{
        f"example_{name}": functools.partial(_train_example, name=name, carried=carried)
        for name, carried in (
            ("tensor_parallel_by_hand", 1),
            ("fsdp_by_hand", 2),
            ("pipeline", 1),
            ("expert_mixture", 2),
            ("pmap_training", 2),
        )
    },
}
