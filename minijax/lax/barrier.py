"""A barrier for the compiler: values on its far side are computed after all on its near side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from minijax.core import tree, variance
from minijax.core.aval import ShapedArray
from minijax.core.primitive import Primitive
from minijax.interpreters.structural import instantiate
from minijax.interpreters.tangents import Zero
from minijax.lax.families import operand as as_operand
from minijax.sharding import rules

T = TypeVar("T")


class OptimizationBarrier(Primitive):
    """Returns its arguments; the compiler moves no operation across.

    Shapes: x_i: T_i[s_i] -> T_i[s_i].  Linear.
    """

    name = "optimization_barrier"
    fault_flow = "copies"
    multiple_results = True
    shard = rules.each_for_itself
    vary = variance.from_types

    def abstract_eval(self, *avals: ShapedArray) -> list[ShapedArray]:
        return list(avals)

    def lower(self, ctx: Any, *values: Any) -> list[Any]:
        return ctx.ops("stablehlo.optimization_barrier", values)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        outs = self.bind(*primals)
        moving = [i for i, t in enumerate(tangents) if type(t) is not Zero]
        out_dots: list[Any] = [Zero.like(x) for x in outs]
        if moving:
            passed = self.bind(*[tangents[i] for i in moving])
            for i, tangent in zip(moving, passed, strict=True):
                out_dots[i] = tangent
        return outs, out_dots

    def transpose(self, ct: Any, *args: Any) -> tuple[Any, ...]:
        return tuple(self.bind(*map(instantiate, ct)))

    def batch(
        self, size: int, args: Sequence[Any], dims: Sequence[Any]
    ) -> tuple[list[Any], Sequence[Any]]:
        return self.bind(*args), dims


optimization_barrier_p = OptimizationBarrier()


def optimization_barrier(operand: T, /) -> T:
    """Returns `operand`, and keeps the compiler from moving operations across.

    What uses the result is computed after all of `operand` is; nothing is merged, reordered or
    computed anew across the barrier.

    Shapes:     operand: a tree of T_i[s_i] -> T_i[s_i].
    Derivative: tangents and cotangents pass a barrier of their own.
    Lowers to:  stablehlo.optimization_barrier.
    Source:     mirrors jax.lax.optimization_barrier.

    Example:
        >>> jax.make_jaxpr(lambda x: lax.optimization_barrier(x * 2) / 2)(1.0)
        { lambda ; a:f32[]. let
            b:f32[] = mul a 2.0:f32[]
            c:f32[] = optimization_barrier b
            d:f32[] = div c 2.0:f32[]
          in (d,) }
    """
    leaves, structure = tree.flatten(operand)
    if not leaves:
        return operand
    return tree.unflatten(structure, optimization_barrier_p.bind(*map(as_operand, leaves)))
