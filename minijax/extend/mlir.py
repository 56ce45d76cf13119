"""Registration of lowering rules for primitives of users' own, by JAX's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minijax.core.primitive import Primitive
from minijax.interpreters.hlo_build import LoweringContext
from minijax.interpreters.hlo_build import type_of as aval_to_ir_type
from minijax.interpreters.lowering import lower_function

LoweringRuleContext = LoweringContext


def register_lowering(
    primitive: Primitive, rule: Callable[..., Any], platform: str | None = None
) -> Callable[..., Any]:
    """Gives the rule from MLIR values of arguments to those of results.

    Source: mirrors jax.interpreters.mlir.register_lowering (0.10).

    Args:
        primitive: the operation.
        rule: `(ctx, *values, **params)`, returns a sequence of values.
        platform: where the rule holds; everywhere by default.

    Returns:
        The rule.
    """
    general = vars(primitive).get("lower")

    def lower(ctx: LoweringContext, *values: Any, **params: Any) -> Any:
        chosen = rule if platform in (None, ctx.platform) else general
        if chosen is None:
            return Primitive.lower(primitive, ctx, *values, **params)
        outs = chosen(ctx, *values, **params)
        if primitive.multiple_results:
            return list(outs)
        # MLIR's lists of results are sequences by their methods only.
        return outs[0] if hasattr(outs, "__getitem__") else outs

    primitive.lower = lower  # type: ignore[method-assign]
    return rule


def lower_fun(function: Callable[..., Any], multiple_results: bool = True) -> Callable[..., Any]:
    """A lowering rule that composes the operations that `function` calls.

    Source: mirrors jax.interpreters.mlir.lower_fun (0.10).
    """

    def rule(ctx: LoweringContext, *values: Any, **params: Any) -> list[Any]:
        def flat(*args: Any) -> Any:
            out = function(*args, **params)
            return out if multiple_results else [out]

        return lower_function(ctx, flat, *values)

    return rule


__all__ = ["LoweringRuleContext", "aval_to_ir_type", "lower_fun", "register_lowering"]
