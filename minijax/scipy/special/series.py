"""Loops that run until every element has converged, and hypergeometric series.

These are parts of formulas: they are written with functions of `lax`, and their elements that have
converged keep their values while others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.core.aval import aval_of
from minijax.lax.binary import add, bitwise_and, bitwise_or, div, gt, lt, mul
from minijax.lax.choice import select
from minijax.lax.control_flow.looping import while_loop
from minijax.lax.creation import full
from minijax.lax.reduction import reduce_or
from minijax.lax.special import epsilon, full_like
from minijax.lax.unary import abs

State = tuple[Any, ...]


def converge(
    step: Callable[[Any, State], tuple[Any, State]], start: State, most_steps: float = 2000.0
) -> State:
    """Replaces the state by `step(n, state)` for n = 0, 1, ... until no element changes.

    Args:
        step: returns which elements still change, and the new state.
        start: arrays of one type.
        most_steps: after how many steps to give up.
    """
    like = aval_of(start[0])
    axes = tuple(range(like.ndim))

    def goes_on(carry: Any) -> Any:
        n, active, _ = carry
        return bitwise_and(lt(n, most_steps), reduce_or(active, axes))

    def body(carry: Any) -> Any:
        n, active, old = carry
        changes, new = step(n, old)
        kept = tuple(select(active, x, before) for x, before in zip(new, old, strict=True))
        return add(n, 1.0), bitwise_and(active, changes), kept

    carry = (full((), 0.0, like.dtype), full(like.shape, True), start)
    final: State = while_loop(goes_on, body, carry)[2]
    return final


def hypergeometric(
    upper: Sequence[Any],
    lower: Sequence[Any],
    x: Any,
    start: Any = None,
    slope_of: int | None = None,
    most_steps: float = 10000.0,
) -> Any:
    """The sum of `start Π (u)ₙ / Π (l)ₙ xⁿ / n!` over n, or its derivative by one parameter.

    A series that does not converge is cut off before its smallest term.

    Args:
        upper: parameters u.
        lower: parameters l.
        x: the variable.
        start: the term of n = 0; 1 by default.
        slope_of: by which parameter to differentiate, counted through `upper` and `lower`.
        most_steps: how many terms to add at most.
    """
    one, zero = full_like(x, 1.0), full_like(x, 0.0)
    term = one if start is None else start
    diverges = len(upper) > len(lower) + 1

    def step(n: Any, state: State) -> tuple[Any, State]:
        term, total, term_dot, total_dot = state
        tops, bottoms = [add(u, n) for u in upper], [add(v, n) for v in lower]
        scale = div(x, _product([*bottoms, full_like(x, 1.0)]))
        scale = div(scale, add(n, 1.0))
        ratio = mul(_product(tops), scale)
        new = mul(term, ratio)
        changes = gt(abs(new), mul(abs(total), epsilon(x) / 4))
        new_dot = term_dot
        if slope_of is not None:
            new_dot = add(
                mul(term_dot, ratio), mul(term, _ratio_slope(tops, bottoms, scale, slope_of))
            )
            moves = gt(abs(new_dot), mul(abs(total_dot), epsilon(x) / 4))
            changes = bitwise_or(changes, moves)
        if diverges:
            shrinks = lt(abs(new), abs(term))
            changes = bitwise_and(changes, shrinks)
            new = select(shrinks, new, zero)
            new_dot = select(shrinks, new_dot, zero)
        return changes, (new, add(total, new), new_dot, add(total_dot, new_dot))

    _, total, _, total_dot = converge(step, (term, term, zero, zero), most_steps)
    return total if slope_of is None else total_dot


def _product(factors: Sequence[Any]) -> Any:
    first, *others = factors
    for factor in others:
        first = mul(first, factor)
    return first


def _ratio_slope(tops: Sequence[Any], bottoms: Sequence[Any], scale: Any, index: int) -> Any:
    """The derivative of the ratio of two terms by a parameter: no factor is divided by."""
    if index >= len(tops):
        return div(mul(_product(tops), mul(scale, -1.0)), bottoms[index - len(tops)])
    others = [top for i, top in enumerate(tops) if i != index]
    return mul(_product(others), scale) if others else scale
