"""Values that a program shall compute though nobody reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.core import effects, tree
from minijax.core.aval import ShapedArray
from minijax.core.primitive import Primitive
from minijax.interpreters import hlo_build, manual_regions
from minijax.interpreters.structural import moveaxis
from minijax.lax.families import operand as as_operand
from minijax.sharding import rules


class SinkEffect(effects.Effect):
    """An equation keeps its operands from being dropped."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Sink"


sink_effect = SinkEffect()
effects.lowerable_effects.add_type(SinkEffect)
effects.control_flow_allowed_effects.add_type(SinkEffect)
effects.unguarded_effects.add_type(SinkEffect)
effects.repeatable_effects.add_type(SinkEffect)


class DceSink(Primitive):
    """Takes values and returns none, so that they are not dropped from a jaxpr.

    Derivative: primal values are taken; without results there is nothing to transpose.
    """

    name = "dce_sink"
    multiple_results = True
    has_effects = True
    shard = rules.from_types

    def abstract_eval(self, *avals: ShapedArray, prevent_mlir_dce: bool) -> list[Any]:
        return []

    def effects(self, *avals: ShapedArray, prevent_mlir_dce: bool) -> frozenset[Any]:
        return frozenset({sink_effect})

    def impl(self, *args: Any, prevent_mlir_dce: bool) -> list[Any]:
        return []

    def lower(self, ctx: Any, *values: Any, prevent_mlir_dce: bool) -> list[Any]:
        if prevent_mlir_dce:
            attributes = {
                "call_target_name": hlo_build.string("dce_sink"),
                "has_side_effect": hlo_build.boolean(True),
                "api_version": hlo_build.integer(4, 32),
                "backend_config": hlo_build.dictionary({}),
            }

            def sink(ctx: Any, *values: Any) -> list[Any]:
                return list(ctx.ops("stablehlo.custom_call", values, attributes, types=[]))

            manual_regions.on_each_device(ctx, values, [], sink)
        return []

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, prevent_mlir_dce: bool
    ) -> tuple[list[Any], list[Any]]:
        self.bind(*primals, prevent_mlir_dce=prevent_mlir_dce)
        return [], []

    def batch(
        self, size: int, args: Sequence[Any], dims: Sequence[Any], *, prevent_mlir_dce: bool
    ) -> tuple[list[Any], list[Any]]:
        moved = [x if d is None else moveaxis(x, d, 0) for x, d in zip(args, dims, strict=True)]
        self.bind(*moved, prevent_mlir_dce=prevent_mlir_dce)
        return [], []


dce_sink_p = DceSink()


def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """Keeps values in a program that does not use them, for those who look at it.

    Jaxprs keep what leads to `val`.  The compiler drops it, unless it may not either.

    Derivative: none; values pass by.
    Lowers to:  nothing, or a stablehlo.custom_call with a side effect.
    Source:     mirrors jax.lax.dce_sink (0.10).

    Args:
        val: a tree of arrays.
        prevent_mlir_dce: whether the module keeps them too.

    Raises:
        TypeError: a leaf is no array.

    Example:
        >>> def f(x):
        ...     lax.dce_sink(lax.sin(x))
        ...     return x
        >>> [str(eqn.primitive) for eqn in minijax.make_jaxpr(f)(1.0).eqns]
        ['sin', 'dce_sink']
    """
    for leaf in tree.leaves(val):
        dce_sink_p.bind(as_operand(leaf), prevent_mlir_dce=bool(prevent_mlir_dce))
