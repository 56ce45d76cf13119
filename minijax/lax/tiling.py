"""`tile`: copies of an array side by side."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from minijax.core.aval import Shape, ShapedArray
from minijax.core.errors import error
from minijax.core.primitive import Primitive
from minijax.core.specs import PartitionSpec
from minijax.interpreters import structural
from minijax.interpreters.tangents import jvp_of_unary_linear
from minijax.lax.arguments import int_tuple
from minijax.lax.shape import reshape
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.sharding import rules


class Tile(Primitive):
    """Lays copies of an array side by side.

    Shapes: operand: T[s] -> T[s * reps].  Linear.
    """

    name = "tile"
    fault_flow = "moves"
    jvp = jvp_of_unary_linear

    def abstract_eval(self, x: ShapedArray, *, reps: Shape) -> ShapedArray:
        if len(reps) != x.ndim or any(r < 0 for r in reps):
            error(
                TypeError,
                "lax.tile",
                "reps does not fit the operand.",
                got={"operand": x, "reps": reps},
                expected="one number of at least 0 for each dimension",
            )
        return x.with_shape(tuple(n * r for n, r in zip(x.shape, reps, strict=True)))

    def shard(self, avals: Sequence[Any], outs: Sequence[Any], *, reps: Shape) -> PartitionSpec:
        rules.check_unsharded(self, avals, [d for d, n in enumerate(reps) if n != 1])
        return rules.spec_of(avals[0])

    def lower(self, ctx: Any, x: Any, *, reps: Shape) -> Any:
        aval = ctx.avals_in[0]
        pairs = tuple(itertools.chain(*zip(reps, aval.shape, strict=True)))
        copies = ctx.broadcast(x, pairs, aval.dtype, range(1, len(pairs), 2))
        return ctx.op("stablehlo.reshape", [copies])

    def transpose(self, ct: Any, x: Any, *, reps: Shape) -> tuple[Any]:
        copies = reshape(ct, tuple(itertools.chain(*zip(reps, x.aval.shape, strict=True))))
        return (structural.reduce_sum(copies, range(0, 2 * len(reps), 2)),)

    def batch(
        self, size: int, args: Sequence[Any], dims: Sequence[Any], *, reps: Shape
    ) -> tuple[Any, int]:
        dim = dims[0]
        return self.bind(args[0], reps=(*reps[:dim], 1, *reps[dim:])), dim


tile_p = Tile()


def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """Lays copies of an array side by side: `reps[i]` of them along dimension i.

    Shapes:     operand: T[s] -> T[s * reps].
    Derivative: transposes to a sum over the copies.
    Lowers to:  stablehlo.broadcast_in_dim and stablehlo.reshape.
    Source:     mirrors jax.lax.tile.

    Raises:
        TypeError: `reps` has not one number of at least 0 for each dimension.

    Example:
        >>> lax.tile(jnp.array([[1, 2]]), (2, 3))
        Array([[1, 2, 1, 2, 1, 2],
               [1, 2, 1, 2, 1, 2]], dtype=int32)
    """
    return tile_p.bind(operand, reps=int_tuple(reps, "lax.tile", "reps"))
