"""A product with a matrix that is mostly zeros, on the cores of one device.

Only the blocks that are not zero are stored, packed one after the other, with a table that tells
which column of blocks each belongs to. Each core has some rows of blocks. It first copies the
table into memory for scalars; then a pipeline goes through the blocks, and fetches the next block,
and the part of the other matrix that the table says it meets, while it multiplies. A block of the
result stays where it is until its row is summed up.

The host has no such cores: they are simulated one after the other, and the program is checked to
be one that cores side by side would run as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.experimental import pallas as pl
from minijax.experimental.pallas import tpu as pltpu
from terminal import Panel, heading, show

CORES = 4
ROWS, COLUMNS, FILLED = 8, 12, 3
"""Rows and columns of blocks, and how many blocks of each row are not zero."""
BLOCK = 16
WIDTH = 32
"""Columns of the other matrix."""


class Sparse(NamedTuple):
    """A matrix of blocks: those that are not zero, by rows, and the column of each."""

    columns: np.ndarray
    blocks: np.ndarray

    def dense(self) -> np.ndarray:
        """The matrix with its zeros."""
        whole = np.zeros((ROWS, BLOCK, COLUMNS, BLOCK), np.float32)
        for number, column in enumerate(self.columns):
            whole[number // FILLED, :, column] = self.blocks[number]
        return whole.reshape(ROWS * BLOCK, COLUMNS * BLOCK)


class Result(NamedTuple):
    """What the cores computed, the same by NumPy, and the gradient with respect to the blocks."""

    product: np.ndarray
    expected: np.ndarray
    gradient: np.ndarray


def main() -> Result:
    """Multiplies on one, two and four cores, and differentiates the product."""
    matrix, other = workload()
    expected = matrix.dense() @ other
    heading(
        "A product with a sparse matrix on cores",
        f"""{ROWS} x {COLUMNS} blocks, {FILLED} of them filled in each row; the rows are shared by
        {CORES} cores.""",
    )
    lines = []
    for cores in (1, 2, CORES):
        product = jax.jit(multiply(cores))(*matrix, other)
        error = np.abs(np.asarray(product) - expected).max()
        lines.append(f"{cores} cores   largest error {error:.1e}")
    gradient = jax.jit(jax.grad(loss))(matrix.blocks, matrix.columns, other)
    show(
        Panel("against the dense product", "\n".join(lines)),
        Panel("the filled blocks", pattern(matrix)),
        Panel("what if all cores wrote the first row?", refusal(matrix, other)),
    )
    return Result(np.asarray(product), expected, np.asarray(gradient))


def workload() -> tuple[Sparse, np.ndarray]:
    """A sparse matrix, and a dense one to multiply with."""
    rng = np.random.default_rng(0)
    columns = [np.sort(rng.choice(COLUMNS, FILLED, replace=False)) for _ in range(ROWS)]
    blocks = rng.normal(size=(ROWS * FILLED, BLOCK, BLOCK)).astype(np.float32)
    other = rng.normal(size=(COLUMNS * BLOCK, WIDTH)).astype(np.float32)
    return Sparse(np.concatenate(columns).astype(np.int32), blocks), other


def multiply(cores: int, *, row_of: Callable[[Any], Any] = lambda row: row) -> Callable[..., Any]:
    """The product on some cores; `row_of` says where each row of blocks is written."""

    @pl.kernel(
        out_type=jax.ShapeDtypeStruct((ROWS * BLOCK, WIDTH), jnp.float32),
        mesh=pltpu.create_tensorcore_mesh("core", num_cores=cores),
        interpret=pltpu.InterpretParams(detect_races=True),
    )
    def product(columns: Any, blocks: Any, other: Any, out: Any) -> None:
        def step(indices: Any, block: Any, part: Any, out: Any) -> None:
            @pl.when(indices[1] == 0)
            def _() -> None:
                out[...] = jnp.zeros_like(out[...])

            out[...] += block[...] @ part[...]

        def run(columns: Any) -> None:
            pltpu.emit_pipeline(
                step,
                grid=(ROWS, FILLED),
                in_specs=[
                    pl.BlockSpec((None, BLOCK, BLOCK), lambda i, k: (i * FILLED + k, 0, 0)),
                    pl.BlockSpec((BLOCK, WIDTH), lambda i, k: (columns[i * FILLED + k], 0)),
                ],
                out_specs=[pl.BlockSpec((BLOCK, WIDTH), lambda i, k: (row_of(i), 0))],
                core_axis_name="core",
                dimension_semantics=(pltpu.PARALLEL, pltpu.ARBITRARY),
                _explicit_indices=True,
            )(blocks, other, out)

        pltpu.prefetch_scalars(run, columns)

    return product


def loss(blocks: Any, columns: Any, other: Any) -> Any:
    """Half the sum of the squares of the product."""
    return jnp.sum(multiply(CORES)(columns, blocks, other) ** 2) / 2


def pattern(matrix: Sparse) -> str:
    """Which blocks are filled."""
    filled = np.full((ROWS, COLUMNS), ".")
    filled[np.arange(ROWS).repeat(FILLED), matrix.columns] = "#"
    return "\n".join("".join(row) for row in filled)


def refusal(matrix: Sparse, other: np.ndarray) -> str:
    """How a program is refused whose cores all write the same row."""
    try:
        multiply(CORES, row_of=lambda row: 0 * row)(*matrix, other)
    except ValueError as error:
        return str(error).splitlines()[0]
    return "nobody noticed"


if __name__ == "__main__":
    main()
