"""Elementwise functions that are computed by iteration: a loop until every element converges.

Input: the steps of an iteration, written with functions of `lax`.  Output: a `stablehlo.while`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import ShapedArray, aval_of, shaped_array
from minijax.interpreters import lowering
from minijax.interpreters.structural import full
from minijax.lax.binary import add, bitwise_and, le
from minijax.lax.choice import select
from minijax.lax.reduction import reduce_or

_State = TypeVar("_State", bound=tuple[Any, ...])


def full_like(x: Any, value: float) -> Any:
    """An array of one repeated number, of the type of `x`."""
    aval = aval_of(x)
    return full(aval.shape, value, aval.dtype)


def epsilon(x: Any) -> float:
    """The relative precision of the dtype of `x`."""
    return float(dtypes.finfo(aval_of(x).dtype).eps)


class Computation:
    """Lowers an elementwise function of floats in parts, each written with functions of `lax`.

    Numbers narrower than float32 are computed with as float32.
    """

    def __init__(self, ctx: Any, values: Sequence[Any]) -> None:
        (out,) = ctx.avals_out
        self.ctx = ctx
        self.out = out
        dtype = dtypes.float32 if dtypes.bit_width(out.dtype) < 32 else out.dtype
        self.aval = shaped_array(out.shape, dtype)
        self.values = [self._converted(x, dtype) for x in values]

    def _converted(self, x: Any, dtype: Any) -> Any:
        return (
            x if self.out.dtype == self.aval.dtype else self.ctx.convert(x, self.out.shape, dtype)
        )

    def apply(self, function: Callable[..., Sequence[Any]], *values: Any) -> list[Any]:
        """The results of `function` on values of the type computed with."""
        return self._lower(self.ctx, function, [self.aval] * len(values), values)

    def result(self, x: Any) -> Any:
        """A value of the type computed with, as the equation's result."""
        return self._converted(x, self.out.dtype)

    def iterate(
        self,
        step: Callable[[Any, _State], tuple[Any, _State]],
        state: _State,
        most_steps: float = 2000.0,
    ) -> _State:
        """Replaces `state` by `step(n, state)` for n = 1, 2, … until every element converges.

        Args:
            step: returns which elements still change, and the new state; elements that have
                converged keep theirs.
            state: a named tuple.
            most_steps: after how many steps to give up.
        """
        as_state: Callable[..., _State] = type(state)
        count = shaped_array((), self.aval.dtype)
        mask = shaped_array(self.out.shape, dtypes.bool_)
        avals = [count, mask, *[self.aval] * len(state)]
        axes = tuple(range(len(self.out.shape)))

        def condition(n: Any, active: Any, *_: Any) -> Sequence[Any]:
            return [bitwise_and(le(n, most_steps), reduce_or(active, axes))]

        def body(n: Any, active: Any, *old: Any) -> Sequence[Any]:
            changes, new = step(n, as_state(*old))
            kept = [select(active, x, before) for x, before in zip(new, old, strict=True)]
            return [add(n, 1.0), bitwise_and(active, changes), *kept]

        ctx = self.ctx
        types = [ctx.type_of(aval) for aval in avals]
        start = [ctx.constant(1.0, count.dtype), ctx.full(mask.shape, True, np.bool_), *state]
        _, _, *final = ctx.ops(
            "stablehlo.while",
            start,
            types=types,
            regions=[
                (types, lambda ctx, *args: self._lower(ctx, condition, avals, args)),
                (types, lambda ctx, *args: self._lower(ctx, body, avals, args)),
            ],
        )
        return as_state(*final)

    @staticmethod
    def _lower(
        ctx: Any, function: Callable[..., Sequence[Any]], avals: Sequence[ShapedArray], values: Any
    ) -> list[Any]:
        ctx.avals_in = avals
        return lowering.lower_function(ctx, function, *values)
