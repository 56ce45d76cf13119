"""While loops as `stablehlo.while`, with tokens of ordered effects and batched conditions.

Input: the jaxprs of a condition and a body, and MLIR values.  Output: one operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import effects
from minijax.core.aval import AbstractToken
from minijax.core.jaxpr import ClosedJaxpr
from minijax.interpreters import lowering
from minijax.runtime.array import physical_aval


class _Loop(NamedTuple):
    """A loop to lower; a state is the tokens of its ordered effects, then the carry."""

    condition: ClosedJaxpr
    condition_consts: Sequence[Any]
    body: ClosedJaxpr
    body_consts: Sequence[Any]
    ordered: list[Any]

    def holds(self, ctx: Any, state: Sequence[Any]) -> Any:
        """The condition, for each example of a batch; `ctx.tokens` are those after it."""
        count = len(self.ordered)
        ctx.tokens = dict(zip(self.ordered, state[:count], strict=True))
        args = [*self.condition_consts, *state[count:]]
        jaxpr = self.condition.jaxpr
        return lowering.lower_jaxpr(ctx, jaxpr, self.condition.consts, args)[0]

    def holds_for_some(self, ctx: Any, state: Sequence[Any]) -> Any:
        """Whether the condition holds for some example."""
        aval = self.condition.out_avals[0]
        pred = self.holds(ctx, state)
        if not aval.shape:
            return pred
        scalar = ctx.tensor_type((), np.bool_)

        def either(inner: Any, a: Any, b: Any) -> list[Any]:
            return [inner.op("stablehlo.or", [a, b], None, scalar)]

        return ctx.ops(
            "stablehlo.reduce",
            [pred, ctx.constant(False, np.bool_)],
            {"dimensions": ctx.i64_array(range(aval.ndim))},
            types=[scalar],
            regions=[([scalar, scalar], either)],
        )[0]

    def step(self, ctx: Any, state: Sequence[Any]) -> list[Any]:
        """The next state; examples for which the condition fails keep theirs."""
        count = len(self.ordered)
        args = [*state[:count], *self.body_consts, *state[count:]]
        new = lowering.lower_region(ctx, self.body, self.ordered, args)
        if not self.condition.out_avals[0].shape:
            return new
        pred = self.holds(ctx, state)
        return new[:count] + [
            self._kept_where_done(ctx, pred, x, before, aval)
            for x, before, aval in zip(new[count:], state[count:], self.body.out_avals, strict=True)
        ]

    def _kept_where_done(self, ctx: Any, pred: Any, x: Any, before: Any, aval: Any) -> Any:
        if isinstance(aval, AbstractToken):
            return x
        shape = physical_aval(aval).shape
        which = ctx.broadcast(pred, shape, np.bool_, range(self.condition.out_avals[0].ndim))
        return ctx.op("stablehlo.select", [which, x, before], None, ctx.type_of(aval))


def lower(
    ctx: Any,
    values: Sequence[Any],
    *,
    cond_nconsts: int,
    cond_jaxpr: ClosedJaxpr,
    body_nconsts: int,
    body_jaxpr: ClosedJaxpr,
) -> list[Any]:
    """The MLIR values of a loop's results."""
    num_consts = cond_nconsts + body_nconsts
    ordered = effects.ordered_among(cond_jaxpr.effects | body_jaxpr.effects)
    loop = _Loop(
        cond_jaxpr, values[:cond_nconsts], body_jaxpr, values[cond_nconsts:num_consts], ordered
    )
    state = [*(ctx.tokens[effect] for effect in ordered), *values[num_consts:]]
    if effects.ordered_among(cond_jaxpr.effects):
        outs = _with_carried_condition(ctx, loop, state)
    else:
        types = [x.type for x in state]
        outs = ctx.ops(
            "stablehlo.while",
            state,
            types=types,
            regions=[
                (types, lambda inner, *now: [loop.holds_for_some(inner, now)]),
                (types, lambda inner, *now: loop.step(inner, now)),
            ],
        )
    count = len(ordered)
    ctx.tokens.update(zip(ordered, outs[:count], strict=True))
    return list(outs[count:])


def _with_carried_condition(ctx: Any, loop: _Loop, state: list[Any]) -> list[Any]:
    """A loop whose condition has ordered effects: it is computed by the body, and carried."""
    count = len(loop.ordered)

    def after_condition(inner: Any, state: Sequence[Any]) -> list[Any]:
        goes_on = loop.holds_for_some(inner, state)
        return [goes_on, *(inner.tokens[effect] for effect in loop.ordered), *state[count:]]

    start = after_condition(ctx, state)
    types = [x.type for x in start]
    outs: list[Any] = ctx.ops(
        "stablehlo.while",
        start,
        types=types,
        regions=[
            (types, lambda inner, goes_on, *_: [goes_on]),
            (types, lambda inner, _, *now: after_condition(inner, loop.step(inner, now))),
        ],
    )
    return outs[1:]
