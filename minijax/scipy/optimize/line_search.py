"""How far to go along a direction: a step that satisfies the strong Wolfe conditions.

Steps grow until some interval holds a good one; the interval then shrinks around it.  Both are one
loop, so that a program holds the function once.

Source: J. Nocedal and S. Wright, Numerical Optimization, 2006, algorithms 3.5 and 3.6.  That
slopes decide where rounding hides whether values sink is due to W. Hager and H. Zhang, A new
conjugate gradient method with guaranteed descent and an efficient line search, 2005.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from minijax.core import dtypes
from minijax.lax.control_flow.looping import while_loop
from minijax.numpy.arithmetic import absolute, clip, sqrt
from minijax.numpy.contraction import vdot
from minijax.numpy.creation import asarray
from minijax.numpy.logic import isfinite
from minijax.numpy.selection import where

# How far values must sink, and how much of the slope may be left, as shares of the first slope.
_SUFFICIENT, _CURVATURE = 1e-4, 0.9

GROWING, SHRINKING, FOUND = np.int32(0), np.int32(1), np.int32(2)


class Point(NamedTuple):
    """A place on the line: the step to it, the value there, and the slope along the line."""

    step: Any
    value: Any
    slope: Any


class Search(NamedTuple):
    """The state of a search, and its result.

    Attributes:
        stage: GROWING, SHRINKING or FOUND.
        count: how often the function was evaluated.
        trial: the step to look at next.
        low: the best place so far.
        high: the other end of the interval while that shrinks.
        gradient: the gradient at `low`.
    """

    stage: Any
    count: Any
    trial: Any
    low: Point
    high: Point
    gradient: Any


def _choose(condition: Any, first: Point, second: Point) -> Point:
    return Point(*(where(condition, a, b) for a, b in zip(first, second, strict=True)))


def _between(low: Point, high: Point) -> Any:
    """Where the cubic through both ends is least, kept away from them; else the middle."""
    width = high.step - low.step
    a = low.slope + high.slope - 3 * (high.value - low.value) / where(width == 0, 1, width)
    square = a * a - low.slope * high.slope
    root = where(width < 0, -1, 1) * sqrt(where(square > 0, square, 0))
    whole = high.slope - low.slope + 2 * root
    share = 1 - (high.slope + root - a) / where(whole == 0, 1, whole)
    is_usable = (square >= 0) & (whole != 0) & isfinite(share)
    return low.step + width * where(is_usable, clip(share, 0.1, 0.9), 0.5)


def search(
    function: Callable[[Any], tuple[Any, Any]],
    x: Any,
    value: Any,
    gradient: Any,
    direction: Any,
    first_step: Any,
    limit: int,
) -> Search:
    """Looks for a step from `x` along `direction`, a place from where the function sinks.

    Args:
        function: gives value and gradient, of the dtype of `x`.
        x: where to start.
        value: the value at `x`.
        gradient: the gradient at `x`.
        direction: where to go.
        first_step: the step to try first.
        limit: how often to evaluate the function.

    Shapes: x, gradient, direction: T[n] -> Search; its stage is FOUND if `low` is a good place.
    """
    start = Point(asarray(0, x.dtype), value, vdot(gradient, direction))
    noise = 10 * float(dtypes.finfo(x.dtype).eps) * absolute(value)

    def is_low(p: Point, than: Point) -> Any:
        sinks = p.value <= value + _SUFFICIENT * p.step * start.slope
        seems_to = (p.value <= value + noise) & (p.slope <= (2 * _SUFFICIENT - 1) * start.slope)
        level = (p.value <= than.value + noise) & (absolute(p.slope) < absolute(than.slope))
        return (sinks | seems_to) & ((p.value < than.value) | level)

    def advance(state: Search) -> Search:
        found, slopes = function(x + state.trial * direction)
        new = Point(state.trial, found, vdot(slopes, direction))
        low, high, is_growing = state.low, state.high, state.stage == GROWING
        is_better = is_low(new, low)
        is_flat = absolute(new.slope) <= -_CURVATURE * start.slope
        # Past the new place values rise again: the minimum is before it.
        is_past = new.slope * where(is_growing, 1, high.step - low.step) >= 0
        shrinks = ~is_growing | ~is_better | is_past
        high = _choose(is_better, _choose(is_past, low, high), new)
        low = _choose(is_better, new, low)
        return Search(
            where(is_better & is_flat, FOUND, where(shrinks, SHRINKING, GROWING)),
            state.count + np.int32(1),
            where(shrinks, _between(low, high), 2 * state.trial),
            low,
            high,
            where(is_better, slopes, state.gradient),
        )

    state = Search(asarray(GROWING), asarray(np.int32(0)), first_step, start, start, gradient)
    return while_loop(lambda s: (s.stage != FOUND) & (s.count < limit), advance, state)
