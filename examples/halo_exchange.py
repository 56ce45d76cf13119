"""The game of life on a torus of devices: a stencil needs what lies just beyond its border.

Each device has a tile of the board. To compute the next generation it needs a frame of cells around
its tile, its halo, which the neighbours send: rows first, then columns, corners included. A halo of
k cells lasts for k generations; so devices may talk less often, and compute some cells twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import minijax as jax
import minijax.numpy as jnp
import placements
from minijax import lax
from minijax.sharding import NamedSharding
from minijax.sharding import PartitionSpec as P
from terminal import Panel, heading, paragraph, show

MESH = (4, 2)
BOARD = (32, 64)
GENERATIONS = 96
HALOS = (1, 4)

GLIDER = ["·█·", "··█", "███"]


class Result(NamedTuple):
    """The board at the end; how often devices exchange halos, by width; what one device gets."""

    board: np.ndarray
    exchanges: dict[int, int]
    alone: np.ndarray


def main() -> Result:
    """Plays with narrow and with wide halos, and on one device."""
    alone = np.asarray(jax.jit(play_alone)(first_board()))
    heading(
        "The game of life on a torus of devices",
        f"""A board of {BOARD[0]} x {BOARD[1]} cells on {MESH[0]} x {MESH[1]} devices, for
        {GENERATIONS} generations. Gliders cross from device to device.""",
    )
    exchanges = {}
    for halo in HALOS:
        play, (board,) = workload(halo)
        last = np.asarray(play(board))
        np.testing.assert_array_equal(last, alone)
        sent = jax.testing.assert_collectives(play, exactly=True, collective_permute=4)(board)
        exchanges[halo] = sent[0].times or 0
        title = f"a halo of {halo}: sent in each of {exchanges[halo]} exchanges"
        show(Panel(title, placements.sent(sent)))
    show(Panel("the first generation", drawn(first_board())), Panel("the last", drawn(last)))
    paragraph("Both give what one device gives, cell by cell.")
    return Result(last, exchanges, alone)


def workload(halo: int = HALOS[0]) -> tuple[Callable[..., jax.Array], tuple[jax.Array]]:
    """The game on all devices with a halo of some width; a board."""
    mesh = jax.make_mesh(MESH, ("rows", "columns"))
    tiles = P("rows", "columns")

    def play(tile: jax.Array) -> jax.Array:
        return lax.fori_loop(0, GENERATIONS // halo, lambda _, t: advanced(t, halo), tile)

    board = jax.device_put(first_board(), NamedSharding(mesh, tiles))
    return jax.jit(jax.shard_map(play, mesh=mesh, in_specs=tiles, out_specs=tiles)), (board,)


def advanced(tile: jax.Array, halo: int) -> jax.Array:
    """A device's tile, `halo` generations later."""
    framed = with_halo(with_halo(tile, halo, "rows", 0), halo, "columns", 1)
    # The outermost cells lack neighbours, so each generation leaves one frame less.
    for _ in range(halo):
        framed = next_generation(framed)
    return framed


def with_halo(tile: jax.Array, halo: int, axis: str, dim: int) -> jax.Array:
    """The tile with `halo` rows or columns of the neighbours along an axis on either side."""
    n = lax.axis_size(axis)
    before, after = [(i, (i + 1) % n) for i in range(n)], [(i, (i - 1) % n) for i in range(n)]
    size = tile.shape[dim]
    first, last = (lax.slice_in_dim(tile, *s, axis=dim) for s in ((0, halo), (size - halo, size)))
    return jnp.concatenate(
        [lax.ppermute(last, axis, before), tile, lax.ppermute(first, axis, after)], axis=dim
    )


def next_generation(board: jax.Array) -> jax.Array:
    """The next generation of all cells but the outermost."""
    rows, columns = board.shape[0] - 2, board.shape[1] - 2
    block = sum(board[i : i + rows, j : j + columns] for i in range(3) for j in range(3))
    here = board[1:-1, 1:-1]
    # Of a cell and its neighbours three live, or four of which it is one.
    return ((block == 3) | ((block == 4) & (here == 1))).astype(board.dtype)


def play_alone(board: jax.Array) -> jax.Array:
    """The same on one device."""
    return lax.fori_loop(
        0, GENERATIONS, lambda _, b: next_generation(jnp.pad(b, 1, mode="wrap")), board
    )


def first_board() -> np.ndarray:
    """Gliders, and some noise in a corner."""
    board = np.zeros(BOARD, np.int32)
    glider = np.array([[cell == "█" for cell in row] for row in GLIDER])
    for row, column in ((1, 3), (9, 20), (20, 40), (6, 52)):
        board[row : row + 3, column : column + 3] = glider
    board[24:31, 4:14] = np.random.default_rng(3).integers(0, 2, (7, 10))
    return board


def drawn(board: np.ndarray) -> str:
    """The board, two rows of cells in a line; points show where the tiles of devices begin."""
    pairs = zip(board[0::2], board[1::2], strict=True)
    lines = [[" ▄▀█"[2 * up + down] for up, down in zip(*pair, strict=True)] for pair in pairs]
    tile_rows, tile_columns = BOARD[0] // MESH[0] // 2, BOARD[1] // MESH[1]
    for i in range(0, len(lines), tile_rows):
        for j in range(0, BOARD[1], tile_columns):
            lines[i][j] = "·" if lines[i][j] == " " else lines[i][j]
    return "\n".join(map("".join, lines))


if __name__ == "__main__":
    jax.config.update("jax_num_cpu_devices", MESH[0] * MESH[1])
    main()
