"""What steps so far tell about a function's second derivatives, as a direction to go.

Source: J. Nocedal and S. Wright, Numerical Optimization, 2006: equation 6.17 for the inverse
matrix of second derivatives, algorithm 7.4 for products with it from the last steps only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from minijax.lax.control_flow.looping import fori_loop
from minijax.numpy.contraction import outer, vdot
from minijax.numpy.creation import ones, zeros
from minijax.numpy.joining import concatenate
from minijax.numpy.matrices import eye
from minijax.numpy.selection import where


class Method(NamedTuple):
    """A way to remember curvature.

    Attributes:
        start: for the number of variables and a dtype, the memory at the start.
        direction: for memory and gradient, where to go.
        learn: for memory, a step and what the gradient changed by, the memory afterwards.
        inverse: for memory, the inverse matrix of second derivatives, or None.
    """

    start: Callable[[int, Any], Any]
    direction: Callable[[Any, Any], Any]
    learn: Callable[[Any, Any, Any], Any]
    inverse: Callable[[Any], Any]


def _learned(inverse: Any, step: Any, change: Any) -> Any:
    """The BFGS formula, H + (1 + ρ yᵀHy) ρ ssᵀ - ρ (s (Hy)ᵀ + Hy sᵀ) with ρ = 1 / yᵀs."""
    bend = vdot(change, step)
    rho = 1 / where(bend > 0, bend, 1)
    image = inverse @ change
    grown = (1 + rho * vdot(change, image)) * rho * outer(step, step)
    mixed = rho * outer(step, image)
    # A step along which the function does not bend upwards teaches nothing.
    return where(bend > 0, inverse + grown - mixed - mixed.T, inverse)


FULL = Method(
    start=lambda size, dtype: eye(size, dtype=dtype),
    direction=lambda inverse, gradient: -(inverse @ gradient),
    learn=_learned,
    inverse=lambda inverse: inverse,
)


class History(NamedTuple):
    """The last steps, the changes of the gradient, 1 / yᵀs of each, and the scale of the last."""

    steps: Any
    changes: Any
    rho: Any
    scale: Any


def _remembered(history: History, step: Any, change: Any) -> History:
    bend = vdot(change, step)
    is_useful = bend > 0
    rho = 1 / where(is_useful, bend, 1)
    square = vdot(change, change)
    found = History(
        concatenate([history.steps[1:], step[None]]),
        concatenate([history.changes[1:], change[None]]),
        concatenate([history.rho[1:], rho[None]]),
        bend / where(is_useful, square, 1),
    )
    return History(*(where(is_useful, a, b) for a, b in zip(found, history, strict=True)))


def _downhill(history: History, gradient: Any) -> Any:
    """The two-loop recursion: newest step first, then oldest first."""
    count = history.rho.shape[0]

    def back(i: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        rest, shares = carry
        k = count - 1 - i
        share = history.rho[k] * vdot(history.steps[k], rest)
        return rest - share * history.changes[k], shares.at[k].set(share)

    def forth(k: Any, product: Any) -> Any:
        share = history.rho[k] * vdot(history.changes[k], product)
        return product + (shares[k] - share) * history.steps[k]

    rest, shares = fori_loop(0, count, back, (gradient, zeros(count, gradient.dtype)))
    return -fori_loop(0, count, forth, history.scale * rest)


def limited(count: int) -> Method:
    """Curvature from the last `count` steps."""
    return Method(
        start=lambda size, dtype: History(
            zeros((count, size), dtype),
            zeros((count, size), dtype),
            zeros(count, dtype),
            ones((), dtype),
        ),
        direction=_downhill,
        learn=_remembered,
        inverse=lambda history: None,
    )
