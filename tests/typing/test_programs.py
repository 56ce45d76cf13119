"""The programs that are type-checked are no fiction: they run."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from tests.typing import programs

PARAMS = {"w": np.ones((3, 4)), "b": np.zeros(4), "out": np.ones(4)}
BATCH = (np.ones((5, 3)), np.ones(5))


def _state() -> programs.State:
    params = jax.tree.map(jnp.float32, PARAMS)
    return programs.State(params, jax.tree.map(jnp.zeros_like, params), jnp.int32(0))


def _batches() -> Iterator[Any]:
    return iter([BATCH, BATCH])


def _rows() -> jax.sharding.Mesh:
    return jax.make_mesh((4,), ("rows",))


RUNS: dict[Callable[..., Any], Callable[[], Sequence[Any]]] = {
    programs.train: lambda: (_state(), _batches()),
    programs.with_auxiliary: lambda: (PARAMS, BATCH),
    programs.stages: lambda: (_state().params, BATCH),
    programs.recurrent: lambda: (jnp.ones((7, 8)), jnp.ones((6, 3))),
    programs.running_sum: lambda: ([1.0, 2.0],),
    programs.solve: lambda: (0.1, jnp.ones(3)),
    programs.choose: lambda: (True, 0, jnp.float32(2)),
    programs.replicated: lambda: (PARAMS, BATCH),
    programs.per_device: lambda: (_rows(), jnp.ones((8, 2))),
    programs.placed: lambda: ({"w": jnp.ones((8, 8))},),
    programs.own_derivatives: lambda: (jnp.float32(1),),
    programs.derivatives: lambda: (jnp.ones(3),),
    programs.batches: lambda: (
        jax.random.split(jax.random.key(0), 3),
        _state().params,
        jnp.ones((3, 3)),
    ),
    programs.keys: lambda: (0,),
    programs.trees: lambda: (programs.Layer(jnp.ones(2)), _state().params),
    programs.dtypes: lambda: (1.0, "int8"),
    programs.linear: lambda: (2 * jnp.eye(3), jnp.ones(3)),
    programs.network: lambda: (jax.random.key(0), jnp.ones((2, 5, 2, 16)), True),
    programs.observed: lambda: (jnp.ones(3),),
    programs.models: lambda: (jnp.ones(3),),
}


@pytest.mark.slow
@pytest.mark.feature("NP-06")
@pytest.mark.parametrize("program", RUNS, ids=lambda program: program.__name__)
def test_program_runs_as_it_is_annotated(program: Callable[..., Any]) -> None:
    with jax.cpu_devices(8):
        jax.block_until_ready(program(*RUNS[program]()))
        jax.effects_barrier()
