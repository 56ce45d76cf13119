"""Programs inside `shard_map`, found by comparing generated programs with JAX 0.10.2.

What is expected was recorded from JAX, or is the derivative of the same program on one device where
JAX takes the first device's way through control flow for all.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import minijax
from minijax import lax
from minijax import numpy as jnp
from minijax.sharding import AxisType, Mesh
from minijax.sharding import PartitionSpec as P

pytestmark = pytest.mark.feature("SM-01")

A = np.arange(4, dtype=np.float32)
B = np.array([0.5, -1.0, 2.0], np.float32)


@pytest.fixture
def mesh() -> Iterator[Mesh]:
    with minijax.cpu_devices(8):
        yield minijax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))


def of_device(branch: Callable[..., Any]) -> Callable[..., Any]:
    """A function of one device whose predicate holds on some devices only."""
    return lambda a, b: lax.cond(
        a.sum() > 1.5, lambda v: branch(a, v), lambda v: a * 2 * v.sum(), b
    )


@pytest.mark.parametrize(
    "branch",
    [
        lambda a, b: a * (b * b).sum(),
        lambda a, b: (minijax.jit(lambda v: v * 3 + 1)(b) * a).sum()[None],
        lambda a, b: minijax.checkpoint(lambda v: jnp.sin(v) * a)(b).sum()[None],
        lambda a, b: lax.fori_loop(0, 3, lambda _, c: c * b, b).sum()[None] + a,
        lambda a, b: lax.scan(lambda c, v: (c + v * a, None), 0 * a, b)[0],
        lambda a, b: lax.cond(b.sum() > 0, lambda v: v * v, lambda v: v, b).sum()[None] * a,
        lambda a, b: minijax.vmap(lambda v: v * a[0])(b).sum()[None],
        lambda a, b: minijax.grad(lambda v: (v**3).sum())(b).sum()[None] + a,
    ],
    ids=["plain", "jit", "checkpoint", "fori", "scan", "cond", "vmap", "grad"],
)
def test_divergent_branches_use_what_was_the_same_everywhere(mesh: Mesh, branch: Any) -> None:
    f = minijax.shard_map(of_device(branch), mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x"))
    found = minijax.jit(minijax.grad(lambda a, b: f(a, b).sum(), (0, 1)))(A, B)

    def one_device(a: Any, b: Any) -> Any:
        return sum(of_device(branch)(a[i : i + 1], b).sum() for i in range(4))

    wanted = minijax.jit(minijax.grad(one_device, (0, 1)))(A, B)
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6)


def test_divergent_loop_makes_its_whole_carry_vary(mesh: Mesh) -> None:
    def body(a: Any, b: Any) -> Any:
        def step(state: Any) -> Any:
            count, value = state
            return count + 1, minijax.jit(lambda v: v * 2)(lax.pvary(b, "x") * 0 + value)

        def until(state: Any) -> Any:
            return state[0] < a.sum()

        return lax.while_loop(until, step, (0.0, lax.pvary(b, "x")))[1]

    f = minijax.shard_map(body, mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x"))
    wanted = np.concatenate([B * 2**i for i in range(4)])
    np.testing.assert_array_equal(minijax.jit(f)(A, B), wanted)
