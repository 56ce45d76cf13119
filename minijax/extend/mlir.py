"""Registration of lowering rules for primitives of users' own.  Mirrors jax.interpreters.mlir."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minijax.core.primitive import Primitive
from minijax.lowering.module import lower_function
from minijax.lowering.stablehlo import LoweringContext
from minijax.lowering.stablehlo import type_of as aval_to_ir_type

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

    Example:
        >>> flip = jax.extend.core.Primitive("flipped_sign")
        >>> _ = flip.def_abstract_eval(lambda x: x)
        >>> rule = lambda ctx, x: [ctx.op("stablehlo.negate", [x])]
        >>> _ = jax.extend.mlir.register_lowering(flip, rule)
        >>> jax.jit(flip.bind)(3)
        Array(-3, dtype=int32, weak_type=True)
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

    Args:
        function: takes the arguments and parameters of a primitive.
        multiple_results: whether it returns a sequence of results, and not one.

    Returns:
        A rule, `(ctx, *values, **params)`.

    Example:
        >>> triple = jax.extend.core.Primitive("tripled")
        >>> _ = triple.def_abstract_eval(lambda x: x)
        >>> rule = jax.extend.mlir.lower_fun(lambda x: 3 * x, multiple_results=False)
        >>> _ = jax.extend.mlir.register_lowering(triple, rule)
        >>> jax.jit(triple.bind)(2)
        Array(6, dtype=int32, weak_type=True)
    """

    def rule(ctx: LoweringContext, *values: Any, **params: Any) -> list[Any]:
        def flat(*args: Any) -> Any:
            out = function(*args, **params)
            return out if multiple_results else [out]

        return lower_function(ctx, flat, *values)

    return rule


__all__ = ["LoweringRuleContext", "aval_to_ir_type", "lower_fun", "register_lowering"]


def __dir__() -> list[str]:
    """The public names, without what the module is made of."""
    return sorted(__all__)
