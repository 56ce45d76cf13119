"""Random bits: the Threefry hash that `random` is built on, and XLA's own generators.

Threefry-2x32 is the counter-based generator of Salmon et al., "Parallel random numbers: as easy
as 1, 2, 3" (SC 2011): twenty rounds of additions, rotations and exclusive ors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core.aval import ShapedArray
from minijax.core.errors import message
from minijax.core.primitive import Primitive
from minijax.interpreters.tangents import jvp_of_constant
from minijax.lax.families import align_batched, broadcast_operands, broadcast_shape

_UINT32 = np.dtype(np.uint32)
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


class Threefry2x32(Primitive):
    """Hashes pairs of counters under pairs of keys.

    Shapes: key0, key1, x0, x1: u32[s] -> u32[s], u32[s]; shapes are broadcast.
    The result does not follow any tangent.
    """

    name = "threefry2x32"
    multiple_results = True
    jvp = jvp_of_constant

    def abstract_eval(self, *operands: ShapedArray) -> list[ShapedArray]:
        if len(operands) != 4 or any(x.dtype != _UINT32 for x in operands):
            raise TypeError(
                message(
                    "threefry2x32",
                    "needs four operands of dtype uint32.",
                    got=", ".join(map(str, operands)),
                )
            )
        named = {f"operand {i}": x for i, x in enumerate(operands)}
        return [ShapedArray(broadcast_shape("threefry2x32", **named), _UINT32)] * 2

    def lower(self, ctx: Any, *values: Any) -> list[Any]:
        key0, key1, x0, x1 = broadcast_operands(ctx, values)
        shape = ctx.avals_out[0].shape
        tensor = ctx.type_of(ctx.avals_out[0])

        def op(name: str, x: Any, y: Any) -> Any:
            return ctx.op(f"stablehlo.{name}", [x, y], None, tensor)

        def number(value: int) -> Any:
            return ctx.full(shape, value, _UINT32)

        key2 = op("xor", op("xor", key0, key1), number(_PARITY))
        schedule = (key0, key1, key2)
        x0, x1 = op("add", x0, key0), op("add", x1, key1)
        for group in range(5):
            for distance in _ROTATIONS[group % 2]:
                x0 = op("add", x0, x1)
                left = op("shift_left", x1, number(distance))
                right = op("shift_right_logical", x1, number(32 - distance))
                x1 = op("xor", op("or", left, right), x0)
            x0 = op("add", x0, schedule[(group + 1) % 3])
            x1 = op("add", x1, schedule[(group + 2) % 3])
            x1 = op("add", x1, number(group + 1))
        return [x0, x1]

    def batch(
        self, size: int, args: Sequence[Any], dims: Sequence[Any]
    ) -> tuple[list[Any], list[int]]:
        aligned, dim = align_batched(args, dims)
        return self.bind(*aligned), [dim, dim]


threefry2x32_p = Threefry2x32()
