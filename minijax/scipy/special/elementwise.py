"""What formulas of special functions share: operands, polynomials, and series that converge.

The formulas are written with operators and functions of `lax`; `lax/elementwise.py` makes
primitives of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.lax.binary import select
from minijax.lax.control_flow.looping import while_loop
from minijax.lax.creation import full
from minijax.lax.reduction import reduce_or
from minijax.lax.special import epsilon, full_like
from minijax.numpy import creation, promotion
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array

_PLAIN = frozenset({dtypes.float32, dtypes.float64})


def real_operands(
    name: str, exception: type[Exception] = TypeError, /, **arguments: Any
) -> Sequence[Any]:
    """Arguments of a public function as real floats of one dtype and of one rank.

    Args:
        name: the function, of `scipy.special` unless it says where it lives.
        exception: what JAX raises for complex numbers.
        arguments: by their names.
    """
    name = name if "." in name else f"scipy.special.{name}"
    arrays = list(arguments.values())
    if len(arrays) == 1:
        arrays = [promotion.inexact(name, arrays[0])]
    else:
        arrays = promotion.promote_all_inexact(name, *arrays)
    if dtypes.issubdtype(aval_of(arrays[0]).dtype, np.complexfloating):
        problem = "complex numbers are not accepted."
        got = {k: aval_of(promotion.check_array(name, x)) for k, x in arguments.items()}
        fix = "numpy.real, numpy.imag or numpy.abs first"
        error(exception, name, problem, got=got, expected="real arrays", fix=fix)
    return arrays


def plain_operand(name: str, argument: str, x: ArrayLike) -> Array:
    """The argument of a function of float32 and float64 alone; lists count as arrays.

    Raises:
        TypeError: it is of another dtype.
    """
    x = creation.asarray(x)
    fits = aval_of(x).dtype in _PLAIN
    problem = "only float32 and float64 are accepted."
    fix = f"{argument}.astype('float32')"
    promotion.check_that(
        fits, f"scipy.special.{name}", problem, error=TypeError, got={argument: aval_of(x)}, fix=fix
    )
    return promotion.strong(x)


def number_like(value: complex, like: ArrayLike) -> Any:
    """A number of the dtype of `like`."""
    return aval_of(like).dtype.type(value)


def polynomial(x: Array, *coefficients: float) -> Array:
    """`c₀ + c₁ x + c₂ x² + ...` by Horner's rule."""
    *lower, highest = coefficients
    total: Any = highest
    for c in reversed(lower):
        total = x * total + c
    return total


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

    def goes_on(carry: tuple[Array, Array, State]) -> Array:
        n, active, _ = carry
        return (n < most_steps) & reduce_or(active, axes)

    def body(carry: tuple[Array, Array, State]) -> tuple[Array, Array, State]:
        n, active, old = carry
        changes, new = step(n, old)
        kept = tuple(select(active, x, before) for x, before in zip(new, old, strict=True))
        return n + 1.0, active & changes, kept

    carry = (full((), 0.0, like.dtype), full(like.shape, True), start)
    final: State = while_loop(goes_on, body, carry)[2]
    return final


def hypergeometric(
    upper: Sequence[Any],
    lower: Sequence[Any],
    x: Array,
    start: Array | None = None,
    slope_of: int | None = None,
    most_steps: float = 10000.0,
) -> Array:
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

    def step(n: Array, state: State) -> tuple[Array, State]:
        term, total, term_dot, total_dot = state
        tops, bottoms = [u + n for u in upper], [v + n for v in lower]
        scale = x / _product([*bottoms, full_like(x, 1.0)])
        scale = scale / (n + 1.0)
        ratio = _product(tops) * scale
        new = term * ratio
        changes = abs(new) > abs(total) * (epsilon(x) / 4)
        new_dot = term_dot
        if slope_of is not None:
            new_dot = term_dot * ratio + term * _ratio_slope(tops, bottoms, scale, slope_of)
            moves = abs(new_dot) > abs(total_dot) * (epsilon(x) / 4)
            changes = changes | moves
        if diverges:
            shrinks = abs(new) < abs(term)
            changes = changes & shrinks
            new = select(shrinks, new, zero)
            new_dot = select(shrinks, new_dot, zero)
        return changes, (new, total + new, new_dot, total_dot + new_dot)

    _, total, _, total_dot = converge(step, (term, term, zero, zero), most_steps)
    return total if slope_of is None else total_dot


def _product(factors: Sequence[Any]) -> Array:
    first, *others = factors
    for factor in others:
        first = first * factor
    return first


def _ratio_slope(tops: Sequence[Any], bottoms: Sequence[Any], scale: Array, index: int) -> Array:
    """The derivative of the ratio of two terms by a parameter: no factor is divided by."""
    if index >= len(tops):
        return _product(tops) * (scale * -1.0) / bottoms[index - len(tops)]
    others = [top for i, top in enumerate(tops) if i != index]
    return _product(others) * scale if others else scale
