"""Exponential, sine, cosine and Fresnel integrals.

Near 0 they are Chebyshev series; far off they fall, grow or oscillate in a known way, with
amplitudes that are Chebyshev series (Abramowitz and Stegun, Handbook of Mathematical Functions,
5.2.8 and 7.3.9).  The coefficients were computed to 40 digits by interpolation.  Near the root of
Ei the factor x - root is taken out, after Cody and Thacher, Math. Comp. 23 (1969), 289.
"""

from __future__ import annotations

import math

import numpy as np

from minijax.lax import special
from minijax.lax.binary import max, min, rem
from minijax.lax.choice import select
from minijax.lax.special import epsilon, full_like
from minijax.lax.unary import abs, cos, exp, floor, log, log1p, sign, sin, square
from minijax.numpy import creation, promotion
from minijax.numpy.one_program import one_program
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.scipy.special.elementwise import Elementwise, State, chebyshev, converge, real_operands

_EULER = 0.5772156649015329

# The root of Ei: a number of few bits, and the rest of it.
_EI_ROOT = 0.3725074107813666
_EI_ROOT_HIGH = 0.37249755859375
_EI_ROOT_LOW = 9.85218761663446199186580119e-06


def _e1(x: Array) -> Array:
    """E₁ of positive numbers."""
    near = x * chebyshev(x * 2.0 - 1.0, "E1 near") - (log(x) + _EULER)
    capped = min(x, 1e30)
    series = chebyshev((capped - 4.0) / (capped + 2.0), "E1 far")
    return select(x <= 1.0, near, exp(-x) / x * series)


def _ei(x: Array) -> Array:
    """Ei of positive numbers."""
    distance = x - _EI_ROOT_HIGH - _EI_ROOT_LOW
    logarithm = select(abs(distance) < 0.2, log1p(distance / _EI_ROOT), log(x / _EI_ROOT))
    near = logarithm + distance * chebyshev(x / 3.0 - 1.0, "Ei near")
    inverse = 48.0 / x
    middle = chebyshev((inverse - 5.0) / 3.0, "Ei middle")
    series = select(x < 24.0, middle, chebyshev(inverse - 1.0, "Ei far"))
    # The power by halves: it may be beyond the largest number where the quotient is not.
    half = exp(x * 0.5)
    far = half / x * series * half
    return select(x < 6.0, near, select(x == np.inf, x, far))


def _expi(x: Array) -> Array:
    return select(x < 0.0, -_e1(-x), select(x == 0.0, full_like(x, -np.inf), _ei(x)))


expi_p = Elementwise("expi", _expi, lambda x, y: exp(x) / x)


@one_program()
def expi(x: ArrayLike) -> Array:
    """Exponential integral `Ei(x)`, the principal value of `∫ exp(t)/t dt` from -∞ to x.

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


exp1_p = Elementwise("exp1", _e1, lambda x, y: -exp(-x) / x)


@one_program()
def exp1(x: ArrayLike) -> Array:
    """Exponential integral `E₁(x) = ∫ exp(-t)/t dt` from x to ∞; NaN for negative x.

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


def _expn(n: Array, x: Array) -> Array:
    near = _expn_near(n, min(x, 1.0))
    far = _expn_far(n, min(max(x, 1.0), 1e30))
    result = select(x <= 1.0, near, far)
    at_zero = select(n <= 1.0, full_like(x, np.inf), 1.0 / (n - 1.0))
    result = select(x == 0.0, at_zero, result)
    result = select(n == 0.0, exp(-x) / x, result)
    result = select(n == 1.0, _e1(x), result)
    valid = (n >= 0.0) & (n == floor(n)) & (x >= 0.0)
    return select(valid, result, full_like(x, np.nan))


def _expn_near(n: Array, x: Array) -> Array:
    """The power series for 0 < x <= 1, with the term that has a logarithm added to it."""
    last = n - 1.0

    def step(m: Array, state: State) -> Array:
        term, total, chosen = state
        distance = m - last
        is_last = distance == 0.0
        part = term / select(is_last, full_like(x, -1.0), -distance)
        total = select(is_last, total, total + part)
        changes = (m < 2.0) | (abs(part) > abs(total) * (epsilon(x) / 4))
        return changes, (term * -x / (m + 1.0), total, chosen)

    zero = full_like(x, 0.0)
    _, total, _ = converge(step, (full_like(x, 1.0), zero, zero), 100.0)
    odd = last - floor(last * 0.5) * 2.0 != 0.0
    power = exp(last * log(x) - special.lgamma(n))
    logarithmic = power * (special.digamma(n) - log(x))
    return total + select(odd, -logarithmic, logarithmic)


def _expn_far(n: Array, x: Array) -> Array:
    """The continued fraction for x >= 1 by Lentz's method (Abramowitz and Stegun, 5.1.22)."""

    def step(i: Array, state: State) -> Array:
        b, c, d, value = state
        i = i + 1.0
        numerator = -i * (n - 1.0 + i)
        b = b + 2.0
        d = 1.0 / (numerator * d + b)
        c = b + numerator / c
        factor = c * d
        changes = abs(factor - 1.0) > epsilon(x)
        return changes, (b, c, d, value * factor)

    b = x + n
    d = 1.0 / b
    _, _, _, value = converge(step, (b, full_like(x, 1e30), d, d), 500.0)
    return value * exp(-x)


def _expn_slope(n: Array, x: Array, y: Array) -> Array:
    # E₋₁ stands for what is below E₀.
    below = exp(-x) * (1.0 / x + 1.0) / x
    lower = expn_p.bind(max(n - 1.0, 0.0), x)
    return -promotion.pick(n == 0.0, below, lower)


expn_p: Elementwise = Elementwise(
    "expn",
    _expn,
    lambda n, x, y: full_like(x, 0.0),
    _expn_slope,
)


@one_program()
def expn(n: ArrayLike, x: ArrayLike) -> Array:
    """Generalized exponential integral `Eₙ(x) = ∫ exp(-xt)/tⁿ dt` from 1 to ∞, for integers n.

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


def _mapped(z: Array, start: float, scale: float) -> Array:
    """Numbers from `start` to infinity, mapped onto [-1, 1]."""
    z = min(z, 1e30)
    return (z - (start + scale)) / (z + (scale - start))


def _sici_amplitudes(x: Array) -> tuple[Array, Array]:
    z = square(x)
    f = chebyshev(_mapped(z, 36.0, 72.0), "Si and Ci far, f") / x
    g = chebyshev(_mapped(z, 36.0, 90.0), "Si and Ci far, g") / z
    return f, g


def _sine_integral(x: Array) -> Array:
    size = abs(x)
    near = x * chebyshev(square(x) / 18.0 - 1.0, "Si near")
    f, g = _sici_amplitudes(size)
    waves = f * cos(size) + g * sin(size)
    # The sine of infinity is no number; what it is multiplied with is 0.
    waves = select(size == np.inf, full_like(x, 0.0), waves)
    far = sign(x) * (math.pi / 2 - waves)
    return select(size < 6.0, near, far)


def _cosine_integral(x: Array) -> Array:
    size = abs(x)
    z = square(x)
    near = z * chebyshev(z / 18.0 - 1.0, "Ci near") + (log(size) + _EULER)
    f, g = _sici_amplitudes(size)
    far = f * sin(size) - g * cos(size)
    infinite = select(x < 0.0, full_like(x, np.nan), full_like(x, 0.0))
    return select(size < 6.0, near, select(size == np.inf, infinite, far))


def _sinc(x: Array, y: Array) -> Array:
    at_zero = x == 0.0
    return select(at_zero, full_like(x, 1.0), sin(x) / select(at_zero, full_like(x, 1.0), x))


sine_integral_p = Elementwise("sine_integral", _sine_integral, _sinc)
cosine_integral_p = Elementwise("cosine_integral", _cosine_integral, lambda x, y: cos(x) / x)


@one_program()
def sici(x: ArrayLike) -> tuple[Array, Array]:
    """Sine and cosine integrals, `∫₀ˣ sin(t)/t dt` and `γ + ln |x| + ∫₀ˣ (cos(t) - 1)/t dt`.

    Shapes:     x: T[s] -> (T[s], T[s]).
    Dtypes:     real; integers and booleans become floats.
    Derivative: sin(x)/x and cos(x)/x.
    Source:     mirrors jax.scipy.special.sici (0.10).

    Raises:
        ValueError: x is complex.

    Example:
        >>> minijax.scipy.special.sici(0.0)
        (Array(0., dtype=float32), Array(-inf, dtype=float32))
    """
    x = promotion.strong(*real_operands("sici", ValueError, x=x))
    return sine_integral_p.bind(x), cosine_integral_p.bind(x)


def _phase(x: Array) -> Array:
    """`π/2 x²` less a multiple of 2π.

    The square is taken of a part of x with few bits, of the rest, and of their product: each is
    exact, or so small that its rounding is of no account.
    """
    scale = 2.0 ** (24 - 12 if epsilon(x) > 1e-8 else 53 - 26) + 1
    spread = x * scale
    high = spread - (spread - x)
    low = x - high
    turns = rem(square(high), 4.0) + rem(high * low * 2.0, 4.0)
    return (turns + square(low)) * (math.pi / 2)


def _fresnel(x: Array, near: Array, cosine: bool) -> Array:
    size = abs(x)
    bounded = min(size, 1e9)
    z = square(square(bounded))
    f = chebyshev(_mapped(z, 16.0, 32.0), "C and S far, f") / bounded
    g = chebyshev(_mapped(z, 16.0, 40.0), "C and S far, g") / (square(bounded) * bounded)
    phase = _phase(bounded)
    s, c = sin(phase), cos(phase)
    waves = f * s - g * c if cosine else -(f * c + g * s)
    waves = select(size == np.inf, full_like(x, 0.0), waves)
    return select(size < 2.0, near, sign(x) * (waves + 0.5))


def _fresnel_sine(x: Array) -> Array:
    z = square(square(x))
    series = chebyshev(z / 8.0 - 1.0, "S near")
    return _fresnel(x, square(x) * x * series, False)


def _fresnel_cosine(x: Array) -> Array:
    z = square(square(x))
    return _fresnel(x, x * chebyshev(z / 8.0 - 1.0, "C near"), True)


fresnel_sine_p = Elementwise("fresnel_sine", _fresnel_sine, lambda x, y: sin(_phase(x)))
fresnel_cosine_p = Elementwise("fresnel_cosine", _fresnel_cosine, lambda x, y: cos(_phase(x)))


@one_program()
def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """Fresnel integrals, `∫₀ˣ sin(πt²/2) dt` and `∫₀ˣ cos(πt²/2) dt`.

    Shapes:     x: T[s] -> (T[s], T[s]).
    Dtypes:     real; integers and booleans become floats.
    Derivative: sin(πx²/2) and cos(πx²/2).
    Source:     mirrors jax.scipy.special.fresnel (0.10).

    Raises:
        NotImplementedError: x is complex.

    Example:
        >>> minijax.scipy.special.fresnel(jnp.inf)
        (Array(0.5, dtype=float32), Array(0.5, dtype=float32))
    """
    x = promotion.strong(*real_operands("fresnel", NotImplementedError, x=x))
    return fresnel_sine_p.bind(x), fresnel_cosine_p.bind(x)
