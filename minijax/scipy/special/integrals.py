"""Error functions, the normal distribution, exponential and Fresnel integrals, entropies.

Near 0, integrals are Chebyshev series; far off they fall, grow or oscillate in a known way, with
amplitudes that are Chebyshev series (Abramowitz and Stegun, Handbook of Mathematical Functions,
5.2.8 and 7.3.9).  The coefficients were computed to 40 digits by interpolation.  Near the root of
Ei the factor x - root is taken out, after Cody and Thacher, Math. Comp. 23 (1969), 289.
"""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.cache import Cache
from minijax.core.errors import error
from minijax.lax import families, special, unary
from minijax.lax.binary import max, min, rem, select
from minijax.lax.creation import convert_element_type
from minijax.lax.elementwise import Elementwise
from minijax.lax.families import INEXACT
from minijax.lax.special import chebyshev, epsilon, full_like
from minijax.lax.unary import abs, cos, exp, floor, imag, log, log1p, real, sign, sin, square
from minijax.numpy import creation, normalized_exponentials, promotion, selection
from minijax.numpy.logic import isnan
from minijax.numpy.promotion import one_program
from minijax.runtime.annotations import ArrayLike, Axis
from minijax.runtime.array import Array
from minijax.scipy.special import elementwise
from minijax.scipy.special.elementwise import number_like, real_operands

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

    def step(m: Array, state: elementwise.State) -> tuple[Array, elementwise.State]:
        term, total, chosen = state
        distance = m - last
        is_last = distance == 0.0
        part = term / select(is_last, full_like(x, -1.0), -distance)
        total = select(is_last, total, total + part)
        changes = (m < 2.0) | (abs(part) > abs(total) * (epsilon(x) / 4))
        return changes, (term * -x / (m + 1.0), total, chosen)

    zero = full_like(x, 0.0)
    _, total, _ = elementwise.converge(step, (full_like(x, 1.0), zero, zero), 100.0)
    odd = last - floor(last * 0.5) * 2.0 != 0.0
    power = exp(last * log(x) - special.lgamma(n))
    logarithmic = power * (special.digamma(n) - log(x))
    return total + select(odd, -logarithmic, logarithmic)


def _expn_far(n: Array, x: Array) -> Array:
    """The continued fraction for x >= 1 by Lentz's method (Abramowitz and Stegun, 5.1.22)."""

    def step(i: Array, state: elementwise.State) -> tuple[Array, elementwise.State]:
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
    _, _, _, value = elementwise.converge(step, (b, full_like(x, 1e30), d, d), 500.0)
    return value * exp(-x)


def _expn_slope(n: Array, x: Array, y: Array) -> Array:
    # E₋₁ stands for what is below E₀.
    below = exp(-x) * (1.0 / x + 1.0) / x
    lower = expn_p.bind(max(n - 1.0, 0.0), x)
    return -promotion.pick(n == 0.0, below, lower)


expn_p: Elementwise = Elementwise("expn", _expn, lambda n, x, y: full_like(x, 0.0), _expn_slope)


@one_program()
def expn(n: ArrayLike, x: ArrayLike) -> Array:
    """Generalized exponential integral `Eₙ(x) = ∫ exp(-xt)/tⁿ dt` from 1 to ∞, for integers n.

    Shapes:     n: T[s], x: T[t] -> T[broadcast of s and t].
    Dtypes:     real; integers and booleans become floats.
    Derivative: -Eₙ₋₁(x) by x.

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

    Raises:
        NotImplementedError: x is complex.

    Example:
        >>> minijax.scipy.special.fresnel(jnp.inf)
        (Array(0.5, dtype=float32), Array(0.5, dtype=float32))
    """
    x = promotion.strong(*real_operands("fresnel", NotImplementedError, x=x))
    return fresnel_sine_p.bind(x), fresnel_cosine_p.bind(x)


def _numbers(name: str, *args: ArrayLike) -> Any:
    name = f"scipy.special.{name}"
    if len(args) == 1:
        return promotion.inexact(name, args[0])
    return promotion.promote_all_inexact(name, *args)


@one_program()
def expit(x: ArrayLike) -> Array:
    """Expit (also known as the logistic sigmoid) function, `1 / (1 + exp(-x))`.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.
    Derivative: y (1 - y), where y is the result.

    Example:
        >>> minijax.scipy.special.expit(jnp.array([-jnp.inf, 0.0, jnp.inf]))
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    return unary.logistic(_numbers("expit", x))


def _logit(p: Array) -> Array:
    other = number_like(1, p) - p
    plain = log(p / other)
    if dtypes.issubdtype(aval_of(p).dtype, np.complexfloating):
        return plain
    # About one half the odds are about 1, and the logarithm of their excess is exact.
    offset = p - 0.5
    near = unary.abs(offset) < 0.25
    return select(near, log1p(offset * 2.0 / other), plain)


logit_p = Elementwise(
    "logit", _logit, lambda p, y: number_like(1, p) / (p * (number_like(1, p) - p)), accepts=INEXACT
)


@one_program()
def logit(x: ArrayLike) -> Array:
    """Logit function, `log(x / (1 - x))`, the inverse of `expit`.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.
    Derivative: 1 / (x (1 - x)).

    Example:
        >>> minijax.scipy.special.logit(jnp.array([0.0, 0.5, 1.0]))
        Array([-inf,   0.,  inf], dtype=float32)
    """
    return logit_p.bind(_numbers("logit", x))


def _where_zero(x: Array, y: Array, product: Array) -> Array:
    """`product`, but 0 where x is 0 and y is a number."""
    counts = (x != number_like(0, x)) | isnan(y)
    return select(counts, product, full_like(product, 0.0))


xlogy_p = Elementwise(
    "xlogy",
    lambda x, y: _where_zero(x, y, x * log(y)),
    lambda x, y, out: log(y),
    lambda x, y, out: x / y,
    accepts=INEXACT,
)


@one_program()
def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """Computes `x log(y)`, which is 0 where `x` is 0.

    Shapes:     x: T[s], y: T[t] -> T[broadcast of s and t].
    Dtypes:     inexact; integers and booleans become floats.
    Derivative: log(y) by x, x/y by y.

    Example:
        >>> minijax.scipy.special.xlogy(jnp.array([0.0, 1.0]), 0.0)
        Array([  0., -inf], dtype=float32)
    """
    return xlogy_p.bind(*_numbers("xlogy", x, y))


xlog1py_p = Elementwise(
    "xlog1py",
    lambda x, y: _where_zero(x, y, x * log1p(y)),
    lambda x, y, out: log1p(y),
    lambda x, y, out: x / (y + number_like(1, y)),
    accepts=INEXACT,
)


@one_program()
def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """Computes `x log(1 + y)`, which is 0 where `x` is 0, and accurate for small `y`.

    Shapes:     x: T[s], y: T[t] -> T[broadcast of s and t].
    Dtypes:     inexact; integers and booleans become floats.
    Derivative: log(1 + y) by x, x/(1 + y) by y.

    Example:
        >>> minijax.scipy.special.xlog1py(jnp.array([0.0, 1.0]), -1.0)
        Array([  0., -inf], dtype=float32)
    """
    return xlog1py_p.bind(*_numbers("xlog1py", x, y))


def _entr(x: Array) -> Array:
    entropy = -_where_zero(x, x, x * log(x))
    return select(x < 0.0, full_like(x, -np.inf), entropy)


entr_p = Elementwise("entr", _entr, lambda x, y: -1.0 - log(x))


@one_program()
def entr(x: ArrayLike) -> Array:
    """Elementwise function for computing entropy, `-x log(x)`: 0 at 0 and -inf below.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     real; integers and booleans become floats.
    Derivative: -1 - log(x).

    Raises:
        ValueError: x is complex.

    Example:
        >>> minijax.scipy.special.entr(jnp.array([-1.0, 1.0]))
        Array([-inf,  -0.], dtype=float32)
    """
    return entr_p.bind(*real_operands("entr", ValueError, x=x))


def _log_ratio(p: Array, q: Array) -> Array:
    """`log(p / q)`, also where the ratio is not finite."""
    ratio = p / q
    plain = (ratio > 0.0) & unary.is_finite(ratio)
    return select(plain, log(ratio), log(p) - log(q))


def _rel_entr(p: Array, q: Array) -> Array:
    both = (p > 0.0) & (q > 0.0)
    one, zero = full_like(p, 1.0), full_like(p, 0.0)
    entropy = p * _log_ratio(select(both, p, one), select(both, q, one))
    vanishes = (p == 0.0) & (q >= 0.0)
    outside = select(vanishes, zero, full_like(p, np.inf))
    unknown = isnan(p) | isnan(q)
    return select(unknown, full_like(p, np.nan), select(both, entropy, outside))


def _rel_entr_slope_p(p: Array, q: Array, out: Array) -> Array:
    return _within(p, q, out, _log_ratio(p, q) + 1.0)


def _rel_entr_slope_q(p: Array, q: Array, out: Array) -> Array:
    return _within(p, q, out, -(p / q))


def _within(p: Array, q: Array, out: Array, slope: Array) -> Array:
    """The slope, and 0 outside of the domain, where all results are infinite."""
    outside = (out == np.inf) & ((p <= 0.0) | (q <= 0.0))
    return select(outside, full_like(out, 0.0), slope)


rel_entr_p = Elementwise("rel_entr", _rel_entr, _rel_entr_slope_p, _rel_entr_slope_q)


@one_program()
def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """Elementwise function for computing relative entropy, `p log(p / q)`.

    It is 0 where p is 0 and q is not negative, and infinite elsewhere where one is not positive.

    Shapes:     p: T[s], q: T[t] -> T[broadcast of s and t].
    Dtypes:     real; integers and booleans become floats.
    Derivative: log(p/q) + 1 by p, -p/q by q; 0 outside of the domain.

    Raises:
        ValueError: an argument is complex.

    Example:
        >>> minijax.scipy.special.rel_entr(jnp.array([0.0, 1.0, -1.0]), 1.0)
        Array([ 0.,  0., inf], dtype=float32)
    """
    return rel_entr_p.bind(*real_operands("rel_entr", ValueError, p=p, q=q))


@one_program()
def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """Elementwise function for the Kullback-Leibler divergence, `p log(p / q) - p + q`.

    Shapes:     p: T[s], q: T[t] -> T[broadcast of s and t].
    Dtypes:     real; integers and booleans become floats.
    Derivative: log(p/q) by p, 1 - p/q by q.

    Raises:
        ValueError: an argument is complex.

    Example:
        >>> minijax.scipy.special.kl_div(jnp.array([0.0, 1.0]), 1.0)
        Array([1., 0.], dtype=float32)
    """
    p, q = real_operands("kl_div", ValueError, p=p, q=q)
    return rel_entr_p.bind(p, q) - p + q


def _power_transform(logarithm: Array, lmbda: ArrayLike) -> Array:
    """`(exp(λ l) - 1) / λ` for a logarithm l, which is l itself for λ = 0."""
    at_zero = lmbda == number_like(0, lmbda)
    safe = selection.where(at_zero, 1.0, lmbda)
    return selection.where(at_zero, logarithm, unary.expm1(safe * logarithm) / safe)


@one_program()
def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Box-Cox transformation, `(x^lmbda - 1) / lmbda`, or log(x) for lmbda = 0.

    Shapes:     x: T[s], lmbda: T[t] -> T[broadcast of s and t].
    Dtypes:     inexact; integers and booleans become floats.
    Derivative: x^(lmbda - 1) by x.
    Source:     mirrors jax.scipy.special.boxcox (0.10); Box and Cox, J. R. Stat. Soc. B 26
        (1964), 211.

    Example:
        >>> minijax.scipy.special.boxcox(jnp.array([1.0, 4.0]), 1.0)
        Array([0., 3.], dtype=float32)
    """
    x, lmbda = _numbers("boxcox", x, lmbda)
    return _power_transform(log(x), lmbda)


@one_program()
def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Box-Cox transformation of 1 + x, accurate for small `x`.

    Shapes:     x: T[s], lmbda: T[t] -> T[broadcast of s and t].
    Dtypes:     inexact; integers and booleans become floats.
    Derivative: (1 + x)^(lmbda - 1) by x.

    Example:
        >>> minijax.scipy.special.boxcox1p(jnp.array([0.0, 3.0]), 1.0)
        Array([0., 3.], dtype=float32)
    """
    x, lmbda = _numbers("boxcox1p", x, lmbda)
    return _power_transform(log1p(x), lmbda)


@one_program(static=("axis",))
def softmax(x: ArrayLike, /, *, axis: Axis = None) -> Array:
    """Softmax function: exp(x) divided by its sum along `axis`, or over all dimensions.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.

    Example:
        >>> minijax.scipy.special.softmax(jnp.zeros((2, 2)))
        Array([[0.25, 0.25],
               [0.25, 0.25]], dtype=float32)
    """
    return normalized_exponentials.softmax(x, axis=axis)


@one_program(static=("axis",))
def log_softmax(x: ArrayLike, /, *, axis: Axis = None) -> Array:
    """Logarithm of the softmax function, over all dimensions by default.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.

    Example:
        >>> minijax.scipy.special.log_softmax(jnp.array([-jnp.inf, 0.0]))
        Array([-inf,   0.], dtype=float32)
    """
    return normalized_exponentials.log_softmax(x, axis=axis)


_ROOT_OF_PI = math.sqrt(math.pi)


@one_program()
def erf(x: ArrayLike) -> Array:
    """Error function, `2/√π ∫₀ˣ exp(-t²) dt`.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     real; integers and booleans become floats.
    Derivative: 2/√π exp(-x²).

    Example:
        >>> minijax.scipy.special.erf(jnp.array([-jnp.inf, 0.0, jnp.inf]))
        Array([-1.,  0.,  1.], dtype=float32)
    """
    return special.erf(*real_operands("erf", x=x))


@one_program()
def erfc(x: ArrayLike) -> Array:
    """Complementary error function, `1 - erf(x)`, accurate also where that is small.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     real; integers and booleans become floats.
    Derivative: -2/√π exp(-x²).

    Example:
        >>> minijax.scipy.special.erfc(jnp.array([-jnp.inf, 0.0, jnp.inf]))
        Array([2., 1., 0.], dtype=float32)
    """
    return special.erfc(*real_operands("erfc", x=x))


@one_program()
def erfinv(x: ArrayLike) -> Array:
    """Inverse of the error function, infinite at ±1 and NaN beyond.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     real; integers and booleans become floats.
    Derivative: √π/2 exp(y²), where y is the result.

    Example:
        >>> minijax.scipy.special.erfinv(jnp.array([-1.0, 0.0, 1.0]))
        Array([-inf,   0.,  inf], dtype=float32)
    """
    return special.erf_inv(*real_operands("erfinv", x=x))


def exp_of_square(x: Array, sign: float) -> Array:
    """`exp(sign x²)` without the loss of precision that the rounding of x² would bring.

    A multiple of 1/16 near x has an exact square; x² is that plus a product that is small.
    """
    coarse = floor(x * 16.0) * (1 / 16)
    fine = (x - coarse) * (x + coarse)
    return exp(square(coarse) * sign) * exp(fine * sign)


def scaled_erfc(x: Array) -> Array:
    """The formula of `erfcx`."""
    magnitude = abs(x)
    # Beyond 1e18, the mapped variable is 1.
    capped = min(magnitude, 1e18)
    series = chebyshev((capped - 3.75) / (capped + 3.75), "erfcx")
    positive = series / (magnitude * 2.0 + 1.0)
    # Where x² is not finite, neither is the function.
    bounded = min(magnitude, 30.0)
    return select(x < 0.0, exp_of_square(bounded, 1.0) * 2.0 - positive, positive)


erfcx_p = Elementwise("erfcx", scaled_erfc, lambda x, y: x * 2.0 * y - 2 / _ROOT_OF_PI)


@one_program()
def erfcx(x: ArrayLike) -> Array:
    """Scaled complementary error function, `exp(x²) erfc(x)`, which does not underflow.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.
    Derivative: 2 x erfcx(x) - 2/√π.

    Example:
        >>> minijax.scipy.special.erfcx(0.0).round(4)
        Array(1., dtype=float32)
    """
    x = promotion.strong(promotion.inexact("scipy.special.erfcx", x))
    if not dtypes.issubdtype(aval_of(x).dtype, np.complexfloating):
        return erfcx_p.bind(x)
    return wofz_p.bind(x * 1j)


def _dawsn(x: Array) -> Array:
    z = min(square(x), 1e30)
    near = x * chebyshev(z * (2 / 9) - 1.0, "dawsn near")
    far = chebyshev((z - 39.0) / (z + 21.0), "dawsn far") / x
    return select(z < 9.0, near, far)


dawsn_p = Elementwise("dawsn", _dawsn, lambda x, y: 1.0 - x * 2.0 * y)


@one_program()
def dawsn(x: ArrayLike) -> Array:
    """Dawson's integral, `exp(-x²) ∫₀ˣ exp(t²) dt`.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     real; integers and booleans become floats.
    Derivative: 1 - 2 x dawsn(x).

    Raises:
        ValueError: x is complex.

    Example:
        >>> minijax.scipy.special.dawsn(jnp.array([0.0, jnp.inf]))
        Array([0., 0.], dtype=float32)
    """
    return dawsn_p.bind(promotion.strong(*real_operands("dawsn", ValueError, x=x)))


_coefficients = Cache(
    "Weideman's coefficients", "coefficients of approximations of `dawsn`", key="their number"
)


@_coefficients.function
def _weideman(count: int) -> tuple[float, tuple[float, ...]]:
    """Weideman's parameter L and coefficients, the highest first: Fourier coefficients of a
    Gaussian over the angle that the variable maps the line to.
    """
    scale = math.sqrt(count / math.sqrt(2))
    angles = np.arange(1 - 2 * count, 2 * count) * np.pi / (2 * count)
    points = scale * np.tan(angles / 2)
    samples = np.concatenate([[0.0], np.exp(-(points**2)) * (scale**2 + points**2)])
    transform = np.fft.fft(np.fft.fftshift(samples)).real / (4 * count)
    return scale, tuple(transform[count:0:-1].tolist())


def _wofz(z: Array) -> Array:
    # The rational function converges in the upper half-plane; the lower one is reflected.
    is_lower = imag(z) < 0.0
    upper = select(is_lower, -z, z)
    scale, coefficients = _weideman(18 if epsilon(z) > 1e-8 else 40)
    turned = unary.complex(-imag(upper), real(upper))
    below = 1.0 / (scale - turned)
    mapped = (scale + turned) * below
    total: Any = coefficients[0]
    for c in coefficients[1:]:
        total = total * mapped + c
    w = below * (total * below * 2.0 + (1 / _ROOT_OF_PI))
    # On the real axis the real part is far smaller than the imaginary one, but known.
    gaussian = exp(-square(real(z)))
    w = unary.complex(select(imag(z) == 0.0, gaussian, real(w)), imag(w))
    return select(is_lower, exp(-square(z)) * 2.0 - w, w)


wofz_p = Elementwise(
    "wofz", _wofz, lambda z, w: z * w * -2.0 + (2j / _ROOT_OF_PI), accepts=families.COMPLEX
)


@one_program()
def wofz(z: ArrayLike) -> Array:
    """Faddeeva function, `exp(-z²) erfc(-iz)`.

    Weideman's rational series: SIAM J. Numer. Anal. 31 (1994), 1497.

    Shapes:     z: T[s] -> C[s].
    Dtypes:     numbers; the result is complex.
    Derivative: 2i/√π - 2 z w.

    Example:
        >>> minijax.scipy.special.wofz(0.0).real
        Array(1., dtype=float32)
    """
    z = promotion.inexact("scipy.special.wofz", z)
    dtype = aval_of(z).dtype
    if not dtypes.issubdtype(dtype, np.complexfloating):
        wide = dtype == dtypes.float64
        z = convert_element_type(z, dtypes.complex128 if wide else dtypes.complex64)
    return wofz_p.bind(promotion.strong(z))


_ROOT_HALF = math.sqrt(0.5)
_ROOT_TWO_PI = math.sqrt(2 * math.pi)

_NDTRI_FAR_END = 0.7215777262180975


def normal_cdf(x: ArrayLike) -> Array:
    """The formula of `ndtr`."""
    return special.erfc(x * -_ROOT_HALF) * 0.5


@one_program()
def ndtr(x: ArrayLike) -> Array:
    """Cumulative distribution function of the standard normal distribution.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     float32 and float64.
    Derivative: the density exp(-x²/2) / √(2π).

    Raises:
        TypeError: x is of another dtype.

    Example:
        >>> minijax.scipy.special.ndtr(jnp.array([-jnp.inf, 0.0, jnp.inf]))
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    return normal_cdf(elementwise.plain_operand("ndtr", "x", x))


def _log_ndtr(x: Array) -> Array:
    scaled = scaled_erfc(x * -_ROOT_HALF)
    tail = log(scaled * 0.5) - square(x) * 0.5
    return select(x < -1.0, tail, log1p(-normal_cdf(-x)))


log_ndtr_p = Elementwise(
    "log_ndtr", _log_ndtr, lambda x, y: 2 / _ROOT_TWO_PI / scaled_erfc(x * -_ROOT_HALF)
)


@one_program(static=("series_order",))
def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """Logarithm of the Gaussian cumulative distribution function, accurate in both tails.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     float32 and float64.
    Derivative: the density divided by `ndtr`.

    Args:
        x: where.
        series_order: how many terms an asymptotic series would take; the function is computed
            to the precision of the dtype whatever this is.

    Raises:
        TypeError: x is of another dtype, or series_order is not a Python integer.
        ValueError: series_order is not between 0 and 30.

    Example:
        >>> minijax.scipy.special.log_ndtr(-1000.0).round()
        Array(-500008., dtype=float32)
    """
    if not isinstance(series_order, int):
        _refuse_order(TypeError, series_order, "must be a Python integer")
    if not 0 <= series_order <= 30:
        _refuse_order(ValueError, series_order, "is out of range")
    return log_ndtr_p.bind(elementwise.plain_operand("log_ndtr", "x", x))


def _refuse_order(kind: type[Exception], given: object, problem: str) -> NoReturn:
    got, expected = {"series_order": repr(given)}, "a Python integer from 0 to 30"
    error(kind, "scipy.special.log_ndtr", f"series_order {problem}.", got=got, expected=expected)


def _ndtri(p: Array) -> Array:
    q = p - 0.5
    z = square(q)
    near = q * chebyshev(z * (2 / 0.35**2) - 1.0, "ndtri near")
    # 1 - p is exact where it is below one half.
    tail = select(q > 0.0, 1.0 - p, p)
    s = unary.sqrt(log(tail) * -2.0)
    u = (s - 7.9) / (s + 4.1)
    t = (u + 1.0) * (2 / (1 + _NDTRI_FAR_END)) - 1.0
    far = s * sign(q) * chebyshev(t, "ndtri far")
    result = select(abs(q) <= 0.35, near, far)
    # At 0 and 1, s is infinite.
    return select(tail == 0.0, sign(q) * np.inf, result)


ndtri_p = Elementwise("ndtri", _ndtri, lambda p, y: exp(square(y) * 0.5) * _ROOT_TWO_PI)


@one_program()
def ndtri(p: ArrayLike) -> Array:
    """Inverse of `ndtr`: the percent point function of the standard normal distribution.

    Infinite at 0 and 1, NaN beyond.

    Shapes:     p: T[s] -> T[s].
    Dtypes:     float32 and float64.
    Derivative: √(2π) exp(y²/2), where y is the result.

    Raises:
        TypeError: p is of another dtype.

    Example:
        >>> minijax.scipy.special.ndtri(jnp.array([0.0, 0.5, 1.0]))
        Array([-inf,   0.,  inf], dtype=float32)
    """
    return ndtri_p.bind(elementwise.plain_operand("ndtri", "p", p))


def _owens_t(h: Array, a: Array) -> Array:
    h, slope = abs(h), abs(a)
    steep = slope > 1.0
    # T(h, a) = (Q(h) + Q(ah)) / 2 - Q(h) Q(ah) - T(ah, 1/a), where Q is the upper tail.
    product = select(h == 0.0, h, h * slope)
    height = select(steep, product, h)
    width = select(steep, 1.0 / slope, slope)
    inner = _owens_integral(min(height, 1e3), width)
    upper, lower = normal_cdf(-h), normal_cdf(-product)
    beyond = (upper + lower) * 0.5 - upper * lower - inner
    return sign(a) * select(steep, beyond, inner)


def _owens_integral(h: Array, a: Array) -> Array:
    """`∫₀ᵃ exp(-h²(1 + x²)/2) / (1 + x²) dx / 2π` for 0 <= a <= 1, by Gauss and Legendre.

    The integrand vanishes within the precision beyond 6/h, in float64 beyond 8.6/h.
    """
    is_wide = epsilon(h) < 1e-8
    reach = min(a, (8.6 if is_wide else 6.0) / max(h, 1.0))
    nodes, weights = np.polynomial.legendre.leggauss(26 if is_wide else 12)
    total: Any = full_like(h, 0.0)
    squared = square(h)
    for node, weight in zip((nodes + 1) / 2, weights / (4 * math.pi), strict=True):
        beside = square(reach * float(node)) + 1.0
        total = total + exp(squared * beside * -0.5) / beside * float(weight)
    return total * reach


def _owens_slope_h(h: Array, a: Array, y: Array) -> Array:
    # -φ(h) ∫₀ᵃʰ φ, both of which are even or odd as they ought to be.
    steepness = select(h == 0.0, h, a * h)
    return exp(square(h) * -0.5) * special.erf(steepness * _ROOT_HALF) * (-0.5 / _ROOT_TWO_PI)


def _owens_slope_a(h: Array, a: Array, y: Array) -> Array:
    beside = square(a) + 1.0
    return exp(square(h) * beside * -0.5) / (beside * (2 * math.pi))


owens_t_p = Elementwise("owens_t", _owens_t, _owens_slope_h, _owens_slope_a)


@one_program()
def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    """Owen's T function, `∫₀ᵃ exp(-h²(1 + x²)/2) / (1 + x²) dx / 2π`.

    It is the chance of X > h and 0 < Y < aX for independent standard normal X and Y.  Owen,
    Ann. Math. Statist. 27 (1956), 1075.

    Shapes:     h: T[s], a: T[t] -> T[broadcast of s and t].
    Dtypes:     real; integers, booleans and narrow floats become float32.
    Derivative: by h and by a.

    Raises:
        TypeError: an argument is complex.

    Example:
        >>> minijax.scipy.special.owens_t(0.0, 1.0).round(4)
        Array(0.125, dtype=float32)
    """
    h, a = real_operands("owens_t", h=h, a=a)
    wide = np.dtype(np.float32) if epsilon(h) > 1e-8 else np.dtype(np.float64)
    return owens_t_p.bind(*[promotion.strong(convert_element_type(x, wide)) for x in (h, a)])
