"""Loops in StableHLO: `while`, and scans as loops with a counter.

Input: the parameters of `while` and `scan`, as named tuples, and MLIR values.  Output: one
`stablehlo.while`, with tokens of ordered effects and batched conditions.  That of a scan takes
slices of what is scanned over and updates what is stacked; its body holds `unroll` steps, and the
steps that are left over follow it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from minijax.core import dtypes, effects
from minijax.core.aval import AbstractToken, AbstractValue, ShapedArray, shaped_array
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.sequences import split_list
from minijax.lax.shape import slice_op
from minijax.lowering import module
from minijax.lowering.stablehlo import LoweringContext, Value
from minijax.runtime.array import physical_aval

T = TypeVar("T")


class WhileParams(NamedTuple):
    """The parameters of `while`.

    Attributes:
        cond_nconsts: how many constants the condition takes.
        cond_jaxpr: its constants, then the carry, to a boolean.
        body_nconsts: how many constants the body takes.
        body_jaxpr: its constants, then the carry, to the next carry.
    """

    cond_nconsts: int
    cond_jaxpr: ClosedJaxpr
    body_nconsts: int
    body_jaxpr: ClosedJaxpr

    def split(self, values: Sequence[T]) -> tuple[list[T], list[T], list[T]]:
        """Of something for each operand: for constants of the condition, of the body, the carry."""
        test, body, carry = split_list(values, [self.cond_nconsts, self.body_nconsts])
        return test, body, carry


class ScanParams(NamedTuple):
    """The parameters of `scan`.

    Attributes:
        jaxpr: the body, from constants, carry and slices to carry and slices.
        length: the number of steps.
        reverse: whether they run from the last slice to the first.
        num_consts: how many constants the body takes.
        num_carry: how many parts the carry has.
        unroll: how many steps one trip of the compiled loop does.
    """

    jaxpr: ClosedJaxpr
    length: int
    reverse: bool
    num_consts: int
    num_carry: int
    unroll: int

    def split(self, values: Sequence[T]) -> tuple[list[T], list[T], list[T]]:
        """Of something for each operand: for constants, the carry, what is scanned over."""
        consts, carry, slices = split_list(values, [self.num_consts, self.num_carry])
        return consts, carry, slices


class _WhileLoop(NamedTuple):
    """A loop to lower; a state is the tokens of its ordered effects, then the carry."""

    condition: ClosedJaxpr
    condition_consts: Sequence[Any]
    body: ClosedJaxpr
    body_consts: Sequence[Any]
    ordered: list[Any]

    def holds(self, ctx: LoweringContext, state: Sequence[Any]) -> Any:
        """The condition, for each example of a batch; `ctx.tokens` are those after it."""
        count = len(self.ordered)
        ctx.tokens = dict(zip(self.ordered, state[:count], strict=True))
        args = [*self.condition_consts, *state[count:]]
        jaxpr = self.condition.jaxpr
        return module.lower_jaxpr(ctx, jaxpr, self.condition.consts, args)[0]

    def holds_for_some(self, ctx: LoweringContext, state: Sequence[Any]) -> Any:
        """Whether the condition holds for some example."""
        aval = self.condition.out_avals[0]
        pred = self.holds(ctx, state)
        if not aval.shape:
            return pred
        scalar = ctx.tensor_type((), np.bool_)

        def either(inner: LoweringContext, a: Value, b: Value) -> list[Any]:
            return [inner.op("stablehlo.or", [a, b], None, scalar)]

        return ctx.ops(
            "stablehlo.reduce",
            [pred, ctx.constant(False, np.bool_)],
            {"dimensions": ctx.i64_array(range(aval.ndim))},
            types=[scalar],
            regions=[([scalar, scalar], either)],
        )[0]

    def step(self, ctx: LoweringContext, state: Sequence[Any]) -> list[Any]:
        """The next state; examples for which the condition fails keep theirs."""
        count = len(self.ordered)
        args = [*state[:count], *self.body_consts, *state[count:]]
        new = module.lower_region(ctx, self.body, self.ordered, args)
        if not self.condition.out_avals[0].shape:
            return new
        pred = self.holds(ctx, state)
        return new[:count] + [
            self._kept_where_done(ctx, pred, x, before, aval)
            for x, before, aval in zip(new[count:], state[count:], self.body.out_avals, strict=True)
        ]

    def _kept_where_done(
        self, ctx: LoweringContext, pred: Value, x: Value, before: Value, aval: AbstractValue
    ) -> Any:
        if isinstance(aval, AbstractToken):
            return x
        shape = physical_aval(aval).shape
        which = ctx.broadcast(pred, shape, dtypes.bool_, range(self.condition.out_avals[0].ndim))
        return ctx.op("stablehlo.select", [which, x, before], None, ctx.type_of(aval))


def lower_while(ctx: LoweringContext, values: Sequence[Any], params: WhileParams) -> list[Any]:
    """The MLIR values of a loop's results."""
    test, body = params.cond_jaxpr, params.body_jaxpr
    test_consts, body_consts, carry = params.split(values)
    ordered = effects.ordered_among(test.effects | body.effects)
    loop = _WhileLoop(test, test_consts, body, body_consts, ordered)
    state = [*(ctx.tokens[effect] for effect in ordered), *carry]
    if effects.ordered_among(test.effects):
        outs = _with_carried_condition(ctx, loop, state)
    else:
        outs = ctx.loop(
            state,
            lambda inner, *now: [loop.holds_for_some(inner, now)],
            lambda inner, *now: loop.step(inner, now),
        )
    count = len(ordered)
    ctx.tokens.update(zip(ordered, outs[:count], strict=True))
    return list(outs[count:])


def _with_carried_condition(ctx: LoweringContext, loop: _WhileLoop, state: list[Any]) -> list[Any]:
    """A loop whose condition has ordered effects: it is computed by the body, and carried."""
    count = len(loop.ordered)

    def after_condition(inner: LoweringContext, state: Sequence[Any]) -> list[Any]:
        goes_on = loop.holds_for_some(inner, state)
        return [goes_on, *(inner.tokens[effect] for effect in loop.ordered), *state[count:]]

    return ctx.loop(
        after_condition(ctx, state),
        lambda inner, goes_on, *_: [goes_on],
        lambda inner, _, *now: after_condition(inner, loop.step(inner, now)),
    )[1:]


_INT32 = shaped_array((), np.dtype(np.int32))


class _ScanLoop(NamedTuple):
    """A scan to lower: its body, and the values that every step reads.

    Attributes:
        body: constants, carry, slices to carry, slices.
        ordered: its ordered effects, whose tokens come before the carry.
        consts: values of the constants.
        xs: the arrays that are scanned over.
        slice_avals: types of their slices, as XLA computes with them.
        y_avals: types of the slices that are stacked.
        length: the number of steps.
        reverse: whether the steps run from the last slice to the first.
    """

    body: ClosedJaxpr
    ordered: list[Any]
    consts: Sequence[Any]
    xs: Sequence[Any]
    slice_avals: list[Any]
    y_avals: list[Any]
    length: int
    reverse: bool

    def step(
        self, ctx: LoweringContext, carry: Sequence[Any], slices: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """One step: tokens and carry, and the slices to stack."""
        count = len(self.ordered)
        args = [*carry[:count], *self.consts, *carry[count:], *slices]
        outs = module.lower_region(ctx, self.body, self.ordered, args)
        return outs[: len(carry)], outs[len(carry) :]

    def known_step(
        self, ctx: LoweringContext, number: int, carry: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """The step of a number known now."""
        i = self.length - 1 - number if self.reverse else number
        slices = [
            _static_slice(ctx, x, i, aval)
            for x, aval in zip(self.xs, self.slice_avals, strict=True)
        ]
        return self.step(ctx, carry, slices)

    def counted_step(
        self, ctx: LoweringContext, number: Value, carry: Sequence[Any], ys: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """The step of a number computed by the loop; the slices are written into `ys`."""
        int32 = ctx.tensor_type((), np.int32)
        i = number
        if self.reverse:
            last = ctx.constant(self.length - 1, np.int32)
            i = ctx.op("stablehlo.subtract", [last, number], None, int32)
        slices = [
            _slice(ctx, x, i, aval) for x, aval in zip(self.xs, self.slice_avals, strict=True)
        ]
        carry, outs = self.step(ctx, carry, slices)
        written = [
            _update(ctx, y, out, i, aval)
            for y, out, aval in zip(ys, outs, self.y_avals, strict=True)
        ]
        return carry, written


def lower_scan(ctx: LoweringContext, values: Sequence[Any], params: ScanParams) -> list[Any]:
    """The MLIR values of a scan's results."""
    consts, init, xs = params.split(values)
    _, _, slice_avals = params.split(params.jaxpr.in_avals)
    ordered = effects.ordered_among(params.jaxpr.effects)
    loop = _ScanLoop(
        params.jaxpr,
        ordered,
        consts,
        xs,
        list(map(physical_aval, slice_avals)),
        list(map(physical_aval, params.jaxpr.out_avals[params.num_carry :])),
        params.length,
        params.reverse,
    )
    carry = [*(ctx.tokens[effect] for effect in ordered), *init]
    if params.unroll >= params.length > 0:
        carry, ys = _unrolled(ctx, loop, carry)
    else:
        carry, ys = _while(ctx, loop, carry, params.unroll)
    count = len(ordered)
    ctx.tokens.update(zip(ordered, carry[:count], strict=True))
    return [*carry[count:], *ys]


def _while(
    ctx: LoweringContext, loop: _ScanLoop, carry: list[Any], unroll: int
) -> tuple[list[Any], list[Any]]:
    ys = [ctx.full((loop.length, *a.shape), 0, a.dtype) for a in loop.y_avals]
    left_over = loop.length % unroll
    trips = loop.length - left_over
    if trips:
        int32 = ctx.tensor_type((), np.int32)

        def condition(inner: LoweringContext, number: Value, *_: Any) -> list[Any]:
            return [inner.compare("LT", number, inner.constant(trips, np.int32), _INT32)]

        def body(inner: LoweringContext, number: Value, *rest: Any) -> list[Any]:
            now, written = list(rest[: len(carry)]), list(rest[len(carry) :])
            one = inner.constant(1, np.int32)
            for _ in range(unroll):
                now, written = loop.counted_step(inner, number, now, written)
                number = inner.op("stablehlo.add", [number, one], None, int32)
            return [number, *now, *written]

        outs = ctx.loop([ctx.constant(0, np.int32), *carry, *ys], condition, body)
        carry, ys = outs[1 : 1 + len(carry)], outs[1 + len(carry) :]
    for k in range(trips, loop.length):
        number = ctx.constant(k, np.int32)
        carry, ys = loop.counted_step(ctx, number, carry, ys)
    return carry, ys


def _unrolled(
    ctx: LoweringContext, loop: _ScanLoop, carry: list[Any]
) -> tuple[list[Any], list[Any]]:
    steps = []
    for k in range(loop.length):
        carry, outs = loop.known_step(ctx, k, carry)
        steps.append(outs)
    if loop.reverse:
        steps.reverse()
    ys = []
    for aval, column in zip(loop.y_avals, zip(*steps, strict=True), strict=True):
        parts = [ctx.reshape(y, (1, *aval.shape), aval.dtype) for y in column]
        ys.append(
            ctx.op(
                "stablehlo.concatenate",
                parts,
                {"dimension": ctx.integer(0)},
                ctx.tensor_type((loop.length, *aval.shape), aval.dtype),
            )
        )
    return carry, ys


def _starts(ctx: LoweringContext, i: Value, ndim: int) -> list[Any]:
    return [i, *[ctx.constant(0, np.int32)] * ndim] if ndim else [i]


def _slice(ctx: LoweringContext, x: Value, i: Value, aval: ShapedArray) -> Any:
    """Slice number `i` of `x`, of type `aval`."""
    sliced = ctx.op(
        "stablehlo.dynamic_slice",
        [x, *_starts(ctx, i, aval.ndim)],
        {"slice_sizes": ctx.i64_array((1, *aval.shape))},
        ctx.tensor_type((1, *aval.shape), aval.dtype),
    )
    return ctx.reshape(sliced, aval.shape, aval.dtype)


def _static_slice(ctx: LoweringContext, x: Value, i: int, aval: ShapedArray) -> Any:
    kind = ctx.tensor_type((1, *aval.shape), aval.dtype)
    sliced = slice_op(ctx, x, (i, *[0] * aval.ndim), (i + 1, *aval.shape), type=kind)
    return ctx.reshape(sliced, aval.shape, aval.dtype)


def _update(ctx: LoweringContext, ys: Value, y: Value, i: Value, aval: ShapedArray) -> Any:
    """`ys` with `y` in place of slice number `i`."""
    row = ctx.reshape(y, (1, *aval.shape), aval.dtype)
    return ctx.op(
        "stablehlo.dynamic_update_slice", [ys, row, *_starts(ctx, i, aval.ndim)], None, ys.type
    )
