"""SUMMA: a product of matrices that no device holds, on a grid of devices.

Each device has one block of A, of B and of C. Step by step, the devices of a column of the grid
hand a narrow panel of A along their rows, those of a row a panel of B along their columns; each
device multiplies the two panels that it gets and adds the product to its block of C. So beyond its
blocks a device needs memory for two panels only, however large the grid.

R. van de Geijn and J. Watts, "SUMMA: scalable universal matrix multiplication algorithm", 1997.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import minijax as jax
import minijax.numpy as jnp
import placements
from minijax import lax
from minijax.sharding import AxisType, NamedSharding
from minijax.sharding import PartitionSpec as P
from terminal import Panel, heading, show

GRID = (4, 2)
SIZES = (256, 512, 128)
"""Rows of A, columns of A, columns of B."""
PANEL = 32

BLOCKS = P("rows", "columns")


class Result(NamedTuple):
    """The product; what a device sends in a step, and what the compiler would have it send."""

    product: np.ndarray
    panel_bytes: int
    gathered_bytes: int


def main() -> Result:
    """Multiplies on the grid, and compares with NumPy and with what the compiler does by itself."""
    multiply, (a, b) = workload()
    product = np.asarray(multiply(a, b))
    np.testing.assert_allclose(product, np.asarray(a) @ np.asarray(b), atol=1e-3)

    sent = jax.testing.assert_collectives(multiply, exactly=True, all_reduce=2)(a, b)
    by_compiler = jax.explain.collectives(
        jax.jit(jnp.matmul, out_shardings=NamedSharding(a.sharding.mesh, BLOCKS))
    )(a, b)
    heading(
        "A product of matrices on a grid",
        f"""{SIZES[0]} x {SIZES[1]} times {SIZES[1]} x {SIZES[2]} on {GRID[0]} x {GRID[1]} devices,
        in {SIZES[1] // PANEL} steps.""",
    )
    show(Panel("what lies where", placements.table({"a": a, "b": b, "c": multiply(a, b)})))
    show(Panel(f"sent in each of {sent[0].times} steps", placements.sent(sent)))
    show(Panel("what the compiler would do by itself", placements.sent(by_compiler)))
    panel_bytes, gathered_bytes = (sum(x.bytes for x in each) for each in (sent, by_compiler))
    return Result(product, panel_bytes, gathered_bytes)


def workload() -> tuple[Callable[..., jax.Array], tuple[jax.Array, jax.Array]]:
    """The product on the grid, and two matrices."""
    mesh = jax.make_mesh(GRID, ("rows", "columns"), axis_types=(AxisType.Auto,) * 2)
    rng = np.random.default_rng(0)
    shapes = SIZES[:2], SIZES[1:]
    matrices = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    split = jax.shard_map(summa, mesh=mesh, in_specs=BLOCKS, out_specs=BLOCKS)
    return jax.jit(split), tuple(jax.device_put(matrices, NamedSharding(mesh, BLOCKS)))


def summa(a: jax.Array, b: jax.Array) -> jax.Array:
    """A device's block of the product, from its blocks of the factors."""
    steps = a.shape[1] * lax.axis_size("columns") // PANEL

    def step(number: jax.Array, c: jax.Array) -> jax.Array:
        left = panel(a, number, "columns", dim=1)
        right = panel(b, number, "rows", dim=0)
        return c + left @ right

    nothing = jnp.zeros((a.shape[0], b.shape[1]), a.dtype)
    return lax.fori_loop(0, steps, step, lax.pcast(nothing, ("rows", "columns"), to="varying"))


def panel(block: jax.Array, number: jax.Array, axis: str, dim: int) -> jax.Array:
    """A panel of the whole matrix, which one device along the axis has: it is handed to all."""
    start = number * PANEL
    owner, offset = start // block.shape[dim], start % block.shape[dim]
    own = lax.dynamic_slice_in_dim(block, offset, PANEL, axis=dim)
    return lax.psum(jnp.where(lax.axis_index(axis) == owner, own, 0), axis)


if __name__ == "__main__":
    jax.config.update("jax_num_cpu_devices", GRID[0] * GRID[1])
    main()
