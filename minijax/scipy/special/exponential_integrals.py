"""Exponential integrals: Ei, E₁ and Eₙ.

Near the root of Ei the factor x - root is taken out, after Cody and Thacher, Math. Comp. 23 (1969),
289.  The Chebyshev coefficients were computed to 40 digits by interpolation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.lax import special
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
    min,
    mul,
    ne,
    sub,
)
from minijax.lax.choice import select
from minijax.lax.special import epsilon, full_like
from minijax.lax.unary import abs, exp, floor, log, log1p, neg
from minijax.numpy import creation, promotion
from minijax.numpy.one_program import one_program
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.scipy.special.elementwise import Elementwise, chebyshev, real_operands
from minijax.scipy.special.series import converge

_EULER = 0.5772156649015329

# The root of Ei: a number of few bits, and the rest of it.
_EI_ROOT = 0.3725074107813666
_EI_ROOT_HIGH = 0.37249755859375
_EI_ROOT_LOW = 9.85218761663446199186580119e-06

# E₁(x) + ln x + γ, divided by x, for 0 <= x <= 1, in 2x - 1.
_E1_NEAR = (
    1.7859653763326873,
    -0.101460888300299,
    0.00530781119573653,
    -0.00023899597694710021,
    9.290769396383831e-06,
    -3.1581738828230066e-07,
    9.510775521324008e-09,
    -2.566991224055996e-10,
    6.27159499700903e-12,
    -1.3988053416635327e-13,
    2.8688702680848184e-15,
    -5.4444045385000516e-17,
)

# x exp(x) E₁(x) for x >= 1, in (x - 4) / (x + 2).
_E1_FAR = (
    1.6243390958583401,
    0.19877948214947017,
    -0.013589634127867593,
    0.0029498916375537004,
    -0.0003907636762266594,
    9.295514456059183e-05,
    -1.4795052892102334e-05,
    3.8005682780246923e-06,
    -6.424367330990174e-07,
    1.794013017306885e-07,
    -2.997531758156375e-08,
    9.367192724736652e-09,
    -1.430990110218307e-09,
    5.340360951053552e-10,
    -6.525881950383355e-11,
    3.344891116610805e-11,
    -2.330605548854824e-12,
    2.350337637930449e-12,
    1.921631896960905e-14,
    1.9034983784207435e-13,
    1.9976803734972913e-14,
    1.8061305202331017e-14,
    3.647060613875213e-15,
    1.992148815013435e-15,
    5.5754607643578855e-16,
    2.4856648220534434e-16,
    8.263153846691172e-17,
    3.402500091202205e-17,
)

# (Ei(x) - ln(x / root)) / (x - root) for 0 <= x <= 6, in x/3 - 1.
_EI_NEAR = (
    10.515916453886964,
    6.004639395661629,
    2.469688170948231,
    0.7902956029932626,
    0.2071548491532639,
    0.04602682604407321,
    0.008880237057344323,
    0.0015146911094885722,
    0.00023159134968734474,
    3.2092485124027427e-05,
    4.066921310320624e-06,
    4.748419512679941e-07,
    5.140302084703391e-08,
    5.187110649842181e-09,
    4.902148216697985e-10,
    4.356558086355594e-11,
    3.6539244499196015e-12,
    2.901505315385807e-13,
    2.1876473555324577e-14,
    1.5701440360230516e-15,
)

# x exp(-x) Ei(x) for 6 <= x <= 24, in (48/x - 5) / 3.
_EI_MIDDLE = (
    2.302911165479912,
    0.11714903507018536,
    0.011472244627728957,
    -0.0005007729858989506,
    -0.0006963966571406743,
    -3.98250103460054e-05,
    4.6904002103762074e-05,
    5.130496015386443e-08,
    -3.6875912156397035e-06,
    6.306495021606828e-07,
    1.7980578713232585e-07,
    -1.0079826570271972e-07,
    1.2259676327834634e-08,
    5.501398516583584e-09,
    -2.9916534532866193e-09,
    5.391460293938023e-10,
    8.717219835695692e-11,
    -8.679245071196351e-11,
    2.6673900881223756e-11,
    -2.567498334381883e-12,
    -1.5643374640444126e-12,
    9.5314321796165e-13,
    -2.737487274360451e-13,
    2.95060055741726e-14,
    1.4160075363763422e-14,
    -9.834794978247951e-15,
    3.3265976294291275e-15,
    -6.222888395741241e-16,
    -3.516329313239749e-17,
    8.281990621842193e-17,
    -3.869914393213294e-17,
)

# The same for x >= 24, in 48/x - 1.
_EI_FAR = (
    2.0445914721909335,
    0.022812793514753286,
    0.0005360936928493524,
    2.0034094292122614e-05,
    1.0686092350144287e-06,
    7.746060698591084e-08,
    7.504513851387549e-09,
    9.65386432321799e-10,
    1.5701407029249868e-10,
    2.779058341161681e-11,
    3.828483997307224e-12,
    -1.9274603059481113e-13,
    -3.984438522784285e-13,
    -1.5561943489863476e-13,
    -2.6325433913268538e-14,
    5.119012243843834e-15,
    4.450825135967824e-15,
    8.977579029888121e-16,
    -2.2282754984589544e-16,
    -1.6452081405038015e-16,
)


def _e1(x: Any) -> Any:
    """E₁ of positive numbers."""
    near = sub(mul(x, chebyshev(sub(mul(x, 2.0), 1.0), _E1_NEAR)), add(log(x), _EULER))
    capped = min(x, 1e30)
    series = chebyshev(div(sub(capped, 4.0), add(capped, 2.0)), _E1_FAR)
    return select(le(x, 1.0), near, mul(div(exp(neg(x)), x), series))


def _ei(x: Any) -> Any:
    """Ei of positive numbers."""
    distance = sub(sub(x, _EI_ROOT_HIGH), _EI_ROOT_LOW)
    logarithm = select(
        lt(abs(distance), 0.2), log1p(div(distance, _EI_ROOT)), log(div(x, _EI_ROOT))
    )
    near = add(logarithm, mul(distance, chebyshev(sub(div(x, 3.0), 1.0), _EI_NEAR)))
    inverse = div(48.0, x)
    middle = chebyshev(div(sub(inverse, 5.0), 3.0), _EI_MIDDLE)
    series = select(lt(x, 24.0), middle, chebyshev(sub(inverse, 1.0), _EI_FAR))
    # The power by halves: it may be beyond the largest number where the quotient is not.
    half = exp(mul(x, 0.5))
    far = mul(mul(div(half, x), series), half)
    return select(lt(x, 6.0), near, select(eq(x, np.inf), x, far))


def _expi(x: Any) -> Any:
    return select(lt(x, 0.0), neg(_e1(neg(x))), select(eq(x, 0.0), full_like(x, -np.inf), _ei(x)))


expi_p = Elementwise("expi", _expi, lambda x, y: div(exp(x), x))


@one_program()
def expi(x: ArrayLike) -> Array:
    """The exponential integral `Ei(x)`, the principal value of `∫ exp(t)/t dt` from -∞ to x.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     real; integers and booleans become floats.
    Derivative: exp(x) / x.
    Source:     mirrors jax.scipy.special.expi (0.10).

    Raises:
        ValueError: x is complex.

    Example:
        >>> minijax.scipy.special.expi(jnp.array([-jnp.inf, 0.0, jnp.inf]))
        Array([ -0., -inf,  inf], dtype=float32)
    """
    return expi_p.bind(promotion.strong(*real_operands("expi", ValueError, x=x)))


exp1_p = Elementwise("exp1", _e1, lambda x, y: div(neg(exp(neg(x))), x))


@one_program()
def exp1(x: ArrayLike) -> Array:
    """The exponential integral `E₁(x) = ∫ exp(-t)/t dt` from x to ∞; NaN for negative x.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     real; integers and booleans become floats.
    Derivative: -exp(-x) / x.
    Source:     mirrors jax.scipy.special.exp1 (0.10).

    Raises:
        ValueError: x is complex.

    Example:
        >>> minijax.scipy.special.exp1(jnp.array([0.0, jnp.inf]))
        Array([inf,  0.], dtype=float32)
    """
    return exp1_p.bind(promotion.strong(*real_operands("exp1", ValueError, x=x)))


def _expn(n: Any, x: Any) -> Any:
    near = _expn_near(n, min(x, 1.0))
    far = _expn_far(n, min(max(x, 1.0), 1e30))
    result = select(le(x, 1.0), near, far)
    at_zero = select(le(n, 1.0), full_like(x, np.inf), div(1.0, sub(n, 1.0)))
    result = select(eq(x, 0.0), at_zero, result)
    result = select(eq(n, 0.0), div(exp(neg(x)), x), result)
    result = select(eq(n, 1.0), _e1(x), result)
    valid = bitwise_and(bitwise_and(ge(n, 0.0), eq(n, floor(n))), ge(x, 0.0))
    return select(valid, result, full_like(x, np.nan))


def _expn_near(n: Any, x: Any) -> Any:
    """The power series for 0 < x <= 1, with the term that has a logarithm added to it."""
    last = sub(n, 1.0)

    def step(m: Any, state: Any) -> Any:
        term, total, chosen = state
        distance = sub(m, last)
        is_last = eq(distance, 0.0)
        part = div(term, select(is_last, full_like(x, -1.0), neg(distance)))
        total = select(is_last, total, add(total, part))
        changes = bitwise_or(lt(m, 2.0), gt(abs(part), mul(abs(total), epsilon(x) / 4)))
        return changes, (div(mul(term, neg(x)), add(m, 1.0)), total, chosen)

    zero = full_like(x, 0.0)
    _, total, _ = converge(step, (full_like(x, 1.0), zero, zero), 100.0)
    odd = ne(sub(last, mul(floor(mul(last, 0.5)), 2.0)), 0.0)
    power = exp(sub(mul(last, log(x)), special.lgamma(n)))
    logarithmic = mul(power, sub(special.digamma(n), log(x)))
    return add(total, select(odd, neg(logarithmic), logarithmic))


def _expn_far(n: Any, x: Any) -> Any:
    """The continued fraction for x >= 1 by Lentz's method (Abramowitz and Stegun, 5.1.22)."""

    def step(i: Any, state: Any) -> Any:
        b, c, d, value = state
        i = add(i, 1.0)
        numerator = mul(neg(i), add(sub(n, 1.0), i))
        b = add(b, 2.0)
        d = div(1.0, add(mul(numerator, d), b))
        c = add(b, div(numerator, c))
        factor = mul(c, d)
        changes = gt(abs(sub(factor, 1.0)), epsilon(x))
        return changes, (b, c, d, mul(value, factor))

    b = add(x, n)
    d = div(1.0, b)
    _, _, _, value = converge(step, (b, full_like(x, 1e30), d, d), 500.0)
    return mul(value, exp(neg(x)))


def _expn_slope(n: Any, x: Any, y: Any) -> Any:
    # E₋₁ stands for what is below E₀.
    below = div(mul(exp(neg(x)), add(div(1.0, x), 1.0)), x)
    lower = expn_p.bind(max(sub(n, 1.0), 0.0), x)
    return neg(promotion.pick(eq(n, 0.0), below, lower))


expn_p: Elementwise = Elementwise(
    "expn",
    _expn,
    lambda n, x, y: full_like(x, 0.0),
    _expn_slope,
)


@one_program()
def expn(n: ArrayLike, x: ArrayLike) -> Array:
    """The exponential integrals `Eₙ(x) = ∫ exp(-xt)/tⁿ dt` from 1 to ∞, for whole n.

    Shapes:     n: T[s], x: T[t] -> T[broadcast of s and t].
    Dtypes:     real; integers and booleans become floats.
    Derivative: -Eₙ₋₁(x) by x.
    Source:     mirrors jax.scipy.special.expn (0.10).

    Raises:
        ValueError: an argument is complex.

    Example:
        >>> minijax.scipy.special.expn(3, 0.0)
        Array(0.5, dtype=float32)
    """
    n, x = creation.asarray(n), creation.asarray(x)
    n, x = real_operands("expn", ValueError, n=n, x=x)
    return expn_p.bind(promotion.strong(n), promotion.strong(x))
