"""What is computed before what: barriers, tokens, and values that nobody reads.

A barrier for the compiler: values on its far side are computed after all on its near side.

Tokens: values without content that put side effects in order.

Values that a program shall compute though nobody reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from minijax.core import dtypes, effects, tree, vma
from minijax.core.aval import AbstractToken, ShapedArray, abstract_token
from minijax.core.errors import error
from minijax.core.primitive import Primitive
from minijax.interpreters import checking
from minijax.interpreters.jvp import Zero
from minijax.interpreters.structural import instantiate, moveaxis
from minijax.lax.families import operand as as_operand
from minijax.lowering import regions, stablehlo
from minijax.sharding import rules

T = TypeVar("T")


class OptimizationBarrier(Primitive):
    """Returns its arguments; the compiler moves no operation across.

    Shapes: x_i: T_i[s_i] -> T_i[s_i].  Linear.
    """

    name = "optimization_barrier"
    multiple_results = True
    shard = rules.each_for_itself

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


checking.fault_flow.set(checking.COPIES, OptimizationBarrier)
vma.vary.rule(OptimizationBarrier)(vma.from_types)


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


class CreateToken(Primitive):
    """A new token.  It has no derivative, and is the same for all examples of a batch."""

    name = "create_token"
    shard = rules.from_types

    def abstract_eval(self) -> AbstractToken:
        return abstract_token

    def lower(self, ctx: Any) -> Any:
        return ctx.op("stablehlo.create_token", [])


dtypes.knows_extended.set(True, CreateToken)


class AfterAll(Primitive):
    """A token that comes after all its operands.  Tokens have neither derivative nor batch."""

    name = "after_all"
    shard = rules.from_types

    def abstract_eval(self, *tokens: Any) -> AbstractToken:
        for token in tokens:
            if not isinstance(token, AbstractToken):
                error(TypeError, "lax.after_all", "operands must be tokens.", got=str(token))
        return abstract_token

    def lower(self, ctx: Any, *tokens: Any) -> Any:
        return ctx.op("stablehlo.after_all", tokens)


dtypes.knows_extended.set(True, AfterAll)


create_token_p = CreateToken()
after_all_p = AfterAll()


def create_token(_: Any = None) -> Any:
    """A new token.

    Source:     mirrors jax.lax.create_token (0.10).

    Example:
        >>> jax.typeof(lax.create_token())
        Token()
    """
    return create_token_p.bind()


def after_all(*operands: Any) -> Any:
    """A token that comes after all of `operands`.

    Source:     mirrors jax.lax.after_all (0.10).

    Raises:
        TypeError: an operand is no token.

    Example:
        >>> jax.make_jaxpr(lambda: lax.after_all(lax.create_token(), lax.create_token()))()
        { lambda ; . let
            a:Tok = create_token
            b:Tok = create_token
            c:Tok = after_all a b
          in (c,) }
    """
    return after_all_p.bind(*operands)


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
                "call_target_name": stablehlo.string("dce_sink"),
                "has_side_effect": stablehlo.boolean(True),
                "api_version": stablehlo.integer(4, 32),
                "backend_config": stablehlo.dictionary({}),
            }

            def sink(ctx: Any, *values: Any) -> list[Any]:
                return list(ctx.ops("stablehlo.custom_call", values, attributes, types=[]))

            regions.on_each_device(ctx, values, [], sink)
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
