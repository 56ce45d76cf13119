"""The regularised incomplete gamma functions and their derivatives.  All are elementwise.

P(a, x) is computed from a power series where x is small against a, and from a continued fraction
for Q = 1 - P elsewhere (Abramowitz and Stegun, Handbook of Mathematical Functions, 6.5.29 and
6.5.31).  Both are differentiated term by term for derivatives with respect to a.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.lax.binary import (
    add,
    bitwise_and,
    bitwise_or,
    div,
    eq,
    ge,
    gt,
    le,
    lt,
    max,
    mul,
    select,
    sub,
)
from minijax.lax.families import FLOAT, Binary, operands
from minijax.lax.special import Computation, digamma, epsilon, full_like, lgamma
from minijax.lax.unary import abs, bitwise_not, exp, log, log1p, neg, square
from minijax.lowering.stablehlo import LoweringContext, Value
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array


class _Series(NamedTuple):
    """The terms xⁿ / ((a + 1) … (a + n)), their sum, and the derivatives of both."""

    a: Any
    x: Any
    term: Any
    total: Any
    term_dot: Any
    total_dot: Any


def _series_start(a: Array, x: Array) -> _Series:
    one, zero = full_like(a, 1.0), full_like(a, 0.0)
    return _Series(a, x, one, one, zero, zero)


def _series_step(n: Array, s: _Series, differentiate: bool) -> tuple[Any, _Series]:
    divisor = add(s.a, n)
    ratio = div(s.x, divisor)
    term = mul(s.term, ratio)
    term_dot = sub(mul(s.term_dot, ratio), div(term, divisor))
    total, total_dot = add(s.total, term), add(s.total_dot, term_dot)
    changes = _is_more(term, total)
    if differentiate:
        changes = bitwise_or(changes, _is_more(term_dot, total_dot))
    return changes, _Series(s.a, s.x, term, total, term_dot, total_dot)


class _Fraction(NamedTuple):
    """The last two convergents p/q, scaled so that the last q is 1, and their derivatives."""

    a: Any
    x: Any
    p: Any
    p_before: Any
    q_before: Any
    p_dot: Any
    q_dot: Any
    p_before_dot: Any
    q_before_dot: Any

    def slope(self) -> Any:
        """The derivative of p/q."""
        return sub(self.p_dot, mul(self.p, self.q_dot))


def _fraction_start(a: Array, x: Array) -> _Fraction:
    one, zero = full_like(a, 1.0), full_like(a, 0.0)
    q = mul(x, add(sub(x, a), 2.0))
    p_before, q_before = div(one, q), div(x, q)
    return _Fraction(a, x, div(add(x, 1.0), q), p_before, q_before, zero, neg(q_before), zero, zero)


def _fraction_step(n: Array, s: _Fraction, differentiate: bool) -> tuple[Any, _Fraction]:
    # p_new = z p - w p_before and likewise q, where z = x - a + 2 (n + 1), w = n (n + 1 - a).
    z = add(sub(s.x, s.a), mul(add(n, 1.0), 2.0))
    w = mul(sub(add(n, 1.0), s.a), n)
    p = sub(mul(z, s.p), mul(w, s.p_before))
    q = sub(z, mul(w, s.q_before))
    p_dot = add(sub(mul(z, s.p_dot), s.p), sub(mul(n, s.p_before), mul(w, s.p_before_dot)))
    q_dot = add(sub(mul(z, s.q_dot), 1.0), sub(mul(n, s.q_before), mul(w, s.q_before_dot)))
    scale = div(1.0, select(eq(q, 0.0), full_like(q, 1.0), q))
    new = _Fraction(
        s.a, s.x, *(mul(v, scale) for v in (p, s.p, 1.0, p_dot, q_dot, s.p_dot, s.q_dot))
    )
    changes = _is_more(sub(new.p, s.p), new.p)
    if differentiate:
        slope = new.slope()
        changes = bitwise_or(changes, _is_more(sub(slope, s.slope()), slope))
    return changes, new


def _is_more(change: Array, value: Any) -> Any:
    return gt(abs(change), mul(abs(value), epsilon(value)))


def _by_series(a: Array, x: Array) -> Any:
    return bitwise_or(le(x, 1.0), le(x, a))


def _gamma(differentiate: bool, finish: Callable[..., Any]) -> Callable[..., Any]:
    """Lowers `finish(a, x, s, s_dot, f, f_dot)` of the series, the fraction and their derivatives.

    With S the series and F the fraction, P = xᵃ e⁻ˣ S / Γ(a + 1) and Q = xᵃ e⁻ˣ F / Γ(a).
    """

    def used(use: Array, a: Array, x: Array) -> tuple[Any, Any]:
        # Elements that the other method computes get arguments that converge fast.
        one = full_like(a, 1.0)
        return select(use, a, one), select(use, x, one)

    def for_series(a: Array, x: Array) -> Sequence[Any]:
        return _series_start(*used(_by_series(a, x), a, x))

    def for_fraction(a: Array, x: Array) -> Sequence[Any]:
        return _fraction_start(*used(bitwise_not(_by_series(a, x)), a, x))

    def lower(ctx: LoweringContext, *values: Value) -> Any:
        computation = Computation(ctx, values)
        a, x = computation.values
        series = computation.iterate(
            lambda n, s: _series_step(n, s, differentiate),
            _Series(*computation.apply(for_series, a, x)),
            # Its terms only ever decrease; near x = a, some √a of them matter.
            most_steps=1e6,
        )
        fraction = computation.iterate(
            lambda n, s: _fraction_step(n, s, differentiate),
            _Fraction(*computation.apply(for_fraction, a, x)),
        )

        def combine(a: Array, x: Array, *states: Any) -> Sequence[Any]:
            s, f = _Series(*states[:6]), _Fraction(*states[6:])
            return [finish(a, x, s.total, s.total_dot, f.p, f.slope())]

        return computation.result(*computation.apply(combine, a, x, *series, *fraction))

    return lower


# Of 1/x, 1/x³, ... (DLMF 5.11.1), as many as float64 needs from 8 on.
_STIRLING = (
    1 / 12,
    -1 / 360,
    1 / 1260,
    -1 / 1680,
    1 / 1188,
    -691 / 360360,
    1 / 156,
    -3617 / 122400,
)


def stirling_rest(x: Array) -> Any:
    """`ln Γ(x) - (x - 1/2) ln x + x - ln √(2π)` for x >= 8."""
    z = div(1.0, square(x))
    series: Any = full_like(x, _STIRLING[-1])
    for coefficient in reversed(_STIRLING[:-1]):
        series = add(mul(series, z), coefficient)
    return div(series, x)


def _log_weight(a: Array, x: Array, shift: float) -> Any:
    """`ln(xᵃ e⁻ˣ / Γ(a + shift))` for a shift of 0 or 1."""
    plain = sub(sub(mul(a, log(x)), x), lgamma(add(a, shift)))
    # Where a is large, the terms cancel: by Stirling's series before they are made.
    size = max(a, 8.0)
    deviation = div(sub(x, size), size)
    exponent = sub(mul(size, sub(log1p(deviation), deviation)), stirling_rest(size))
    exponent = add(exponent, mul(log(size), 0.5 - shift))
    stirling = sub(exponent, math.log(2 * math.pi) / 2)
    return select(gt(a, 8.0), stirling, plain)


def _lower_tail(a: Array, x: Array, s: Array, s_dot: Array, f: Array, f_dot: Array) -> Any:
    p = mul(exp(_log_weight(a, x, 1.0)), s)
    q = mul(exp(_log_weight(a, x, 0.0)), f)
    return _within_domain(a, x, select(_by_series(a, x), p, sub(1.0, q)), 1.0)


def _upper_tail(a: Array, x: Array, s: Array, s_dot: Array, f: Array, f_dot: Array) -> Any:
    p = mul(exp(_log_weight(a, x, 1.0)), s)
    q = mul(exp(_log_weight(a, x, 0.0)), f)
    return _within_domain(a, x, select(_by_series(a, x), sub(1.0, p), q), 0.0)


def _within_domain(a: Array, x: Array, result: Array, at_infinity: float) -> Any:
    # All mass is below x where x is infinite, or a is zero.
    all_below = bitwise_or(eq(x, np.inf), bitwise_and(eq(a, 0.0), gt(x, 0.0)))
    result = select(all_below, full_like(x, at_infinity), result)
    # What is not at least zero may be NaN.
    return select(bitwise_and(ge(a, 0.0), ge(x, 0.0)), result, full_like(result, np.nan))


def _nan_where(outside: Array, result: Array) -> Any:
    return select(outside, full_like(result, np.nan), result)


def _logarithmic_slopes(
    a: Array, x: Array, s: Array, s_dot: Array, f: Array, f_dot: Array
) -> tuple[Any, Any]:
    """The derivatives by a of P and Q, each divided by its weight."""
    log_x = log(x)
    by_series = add(mul(sub(log_x, digamma(add(a, 1.0))), s), s_dot)
    by_fraction = add(mul(sub(log_x, digamma(a)), f), f_dot)
    return by_series, by_fraction


def _slope(a: Array, x: Array, *parts: Any) -> Any:
    by_series, by_fraction = _logarithmic_slopes(a, x, *parts)
    result = select(
        _by_series(a, x),
        mul(exp(_log_weight(a, x, 1.0)), by_series),
        neg(mul(exp(_log_weight(a, x, 0.0)), by_fraction)),
    )
    return _slope_within_domain(a, x, result)


def _sample_slope(a: Array, x: Array, *parts: Any) -> Any:
    # The weights cancel against the density xᵃ⁻¹ e⁻ˣ / Γ(a).
    by_series, by_fraction = _logarithmic_slopes(a, x, *parts)
    result = select(_by_series(a, x), neg(mul(div(x, a), by_series)), mul(x, by_fraction))
    return _slope_within_domain(a, x, result)


def _slope_within_domain(a: Array, x: Array, result: Array) -> Any:
    result = select(eq(x, 0.0), full_like(x, 0.0), result)
    return _nan_where(bitwise_or(le(a, 0.0), lt(x, 0.0)), result)


def _density(a: Array, x: Array) -> Any:
    """The derivative of P by x, `xᵃ⁻¹ e⁻ˣ / Γ(a)`."""
    return exp(sub(mul(sub(a, 1.0), log(x)), add(x, lgamma(a))))


igamma_grad_a_p = Binary("igamma_grad_a", _gamma(True, _slope), accepts=FLOAT, derivatives=None)


def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Array:
    """The derivatives of `igamma(a, x)` with respect to a.

    Shapes:     a: T[s], x: T[t] -> T[broadcast of s and t].
    Dtypes:     floating.
    Derivative: none.
    Lowers to:  stablehlo.while.

    Example:
        >>> slope = (lax.igamma(2.01, 2.0) - lax.igamma(1.99, 2.0)) / 0.02
        >>> jnp.isclose(lax.igamma_grad_a(2.0, 2.0), slope, rtol=1e-3)
        Array(True, dtype=bool)
    """
    return igamma_grad_a_p.bind(*operands(a, x))


igamma_p = Binary(
    "igamma",
    _gamma(False, _lower_tail),
    accepts=FLOAT,
    derivatives=(
        lambda g, a, x, out: mul(g, igamma_grad_a(a, x)),
        lambda g, a, x, out: mul(g, _density(a, x)),
    ),
)


def igamma(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized lower incomplete gamma function `P(a, x) = ∫₀ˣ tᵃ⁻¹ e⁻ᵗ dt / Γ(a)`.

    Shapes:     a: T[s], x: T[t] -> T[broadcast of s and t].
    Dtypes:     floating.
    Derivative: `igamma_grad_a` by a, xᵃ⁻¹ e⁻ˣ / Γ(a) by x.
    Lowers to:  stablehlo.while.

    Example:
        >>> lax.igamma(1.0, jnp.array([0.0, jnp.inf]))
        Array([0., 1.], dtype=float32)
        >>> jnp.isclose(lax.igamma(1.0, 2.0), 1 - jnp.exp(-2.0))
        Array(True, dtype=bool)
    """
    return igamma_p.bind(*operands(a, x))


igammac_p = Binary(
    "igammac",
    _gamma(False, _upper_tail),
    accepts=FLOAT,
    derivatives=(
        lambda g, a, x, out: mul(neg(g), igamma_grad_a(a, x)),
        lambda g, a, x, out: mul(neg(g), _density(a, x)),
    ),
)


def igammac(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized upper incomplete gamma function `Q(a, x) = 1 - P(a, x)`.

    Shapes:     a: T[s], x: T[t] -> T[broadcast of s and t].
    Dtypes:     floating.
    Derivative: those of `igamma`, negated.
    Lowers to:  stablehlo.while.

    Example:
        >>> lax.igammac(2.0, jnp.array([0.0, jnp.inf]))
        Array([1., 0.], dtype=float32)
    """
    return igammac_p.bind(*operands(a, x))


random_gamma_grad_p = Binary(
    "random_gamma_grad", _gamma(True, _sample_slope), accepts=FLOAT, derivatives=None
)


def random_gamma_grad(a: ArrayLike, x: ArrayLike) -> Array:
    """How samples `x` of the gamma distribution move with its parameter `a`: -(dP/da) / (dP/dx).

    Shapes:     a: T[s], x: T[t] -> T[broadcast of s and t].
    Dtypes:     floating.
    Derivative: none.
    Lowers to:  stablehlo.while.

    Example:
        >>> rate = lax.random_gamma_grad(2.0, 2.0)
        >>> jnp.isclose(lax.igamma(2.01, 2.0 + 0.01 * rate), lax.igamma(2.0, 2.0), rtol=1e-3)
        Array(True, dtype=bool)
    """
    return random_gamma_grad_p.bind(*operands(a, x))
