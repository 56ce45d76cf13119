"""The normal distribution function, its logarithm and inverse, and Owen's function.

Coefficients were computed to 40 digits by interpolation.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minijax.core.errors import message
from minijax.lax import special
from minijax.lax.binary import add, div, eq, gt, le, lt, max, min, mul, sub
from minijax.lax.choice import select
from minijax.lax.convert import convert_element_type
from minijax.lax.special import epsilon, full_like
from minijax.lax.unary import abs, exp, log, log1p, neg, sign, sqrt, square
from minijax.numpy import promotion
from minijax.numpy.one_program import one_program
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.scipy.special.elementwise import Elementwise, chebyshev, plain_operand, real_operands
from minijax.scipy.special.error_functions import scaled_erfc

_ROOT_HALF = math.sqrt(0.5)
_ROOT_TWO_PI = math.sqrt(2 * math.pi)

# ndtri(p) / q for q = p - 1/2, q² <= 0.35², in 2q²/0.35² - 1.
_NDTRI_NEAR = (
    5.426855785430703,
    0.2250027472175166,
    0.020218488692320458,
    0.0022642477629148373,
    0.00028164635470202126,
    3.7252961403070064e-05,
    5.129881482784672e-06,
    7.26768990009207e-07,
    1.0516148053931206e-07,
    1.546669018209902e-08,
    2.304453149088165e-09,
    3.4699320835726427e-10,
    5.2707952061988384e-11,
    8.065591081194678e-12,
    1.2420358063685861e-12,
    1.923081990099916e-13,
    2.991755056758413e-14,
    4.673815502290039e-15,
    7.328734026322033e-16,
    1.1529903968763743e-16,
)

# -ndtri(p) / s for s = √(-2 ln p) from 1.9 to 39, in u = (s - 7.9) / (s + 4.1), from -1 to
# 0.7215777262180975, mapped linearly onto [-1, 1].
_NDTRI_FAR = (
    1.7026431879517023,
    0.21233156929414856,
    -0.08749398601138618,
    0.026932838634747235,
    -0.00779944166743669,
    0.002155210568492548,
    -0.0005874983179171467,
    0.00015712294601750608,
    -4.1959050414162024e-05,
    1.1056505073770576e-05,
    -2.926583600249193e-06,
    7.635911350464031e-07,
    -2.0152684992608953e-07,
    5.208819939833803e-08,
    -1.3785181330397034e-08,
    3.5165308381702323e-09,
    -9.41671175657912e-10,
    2.344833039500049e-10,
    -6.47207848600584e-11,
    1.5304837447419853e-11,
    -4.539917091592321e-12,
    9.518362165095805e-13,
    -3.3456984210777695e-13,
    5.16082016301197e-14,
    -2.728967758270041e-14,
    1.4601704432434978e-15,
    -2.6338256107123272e-15,
    -2.342692411569672e-16,
    -3.119187570897829e-16,
    -7.174763952022556e-17,
    -4.3987688170267813e-17,
)
_NDTRI_FAR_END = 0.7215777262180975


def normal_cdf(x: ArrayLike) -> Array:
    """The formula of `ndtr`."""
    return mul(special.erfc(mul(x, -_ROOT_HALF)), 0.5)


@one_program()
def ndtr(x: ArrayLike) -> Array:
    """The distribution function of the standard normal distribution: its mass below `x`.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     float32 and float64.
    Derivative: the density exp(-x²/2) / √(2π).
    Source:     mirrors jax.scipy.special.ndtr (0.10).

    Raises:
        TypeError: x is of another dtype.

    Example:
        >>> minijax.scipy.special.ndtr(jnp.array([-jnp.inf, 0.0, jnp.inf]))
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    return normal_cdf(plain_operand("ndtr", "x", x))


def _log_ndtr(x: Any) -> Any:
    scaled = scaled_erfc(mul(x, -_ROOT_HALF))
    tail = sub(log(mul(scaled, 0.5)), mul(square(x), 0.5))
    return select(lt(x, -1.0), tail, log1p(neg(normal_cdf(neg(x)))))


log_ndtr_p = Elementwise(
    "log_ndtr", _log_ndtr, lambda x, y: div(2 / _ROOT_TWO_PI, scaled_erfc(mul(x, -_ROOT_HALF)))
)


@one_program(static=("series_order",))
def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """The logarithm of `ndtr`, exact also where that is 0 or 1.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     float32 and float64.
    Derivative: the density divided by `ndtr`.
    Source:     mirrors jax.scipy.special.log_ndtr (0.10).

    Args:
        x: where.
        series_order: how many terms an asymptotic series would take; the function is computed
            to the precision of the dtype whatever this is.

    Raises:
        TypeError: x is of another dtype, or series_order is no Python integer.
        ValueError: series_order is not between 0 and 30.

    Example:
        >>> minijax.scipy.special.log_ndtr(-1000.0).round()
        Array(-500008., dtype=float32)
    """
    if not isinstance(series_order, int):
        raise TypeError(_series_order_text(series_order, "must be a Python integer"))
    if not 0 <= series_order <= 30:
        raise ValueError(_series_order_text(series_order, "is out of range"))
    return log_ndtr_p.bind(plain_operand("log_ndtr", "x", x))


def _series_order_text(given: Any, problem: str) -> str:
    return message(
        "scipy.special.log_ndtr",
        f"series_order {problem}.",
        got={"series_order": repr(given)},
        expected="a Python integer from 0 to 30",
    )


def _ndtri(p: Any) -> Any:
    q = sub(p, 0.5)
    z = square(q)
    near = mul(q, chebyshev(sub(mul(z, 2 / 0.35**2), 1.0), _NDTRI_NEAR))
    # 1 - p is exact where it is below one half.
    tail = select(gt(q, 0.0), sub(1.0, p), p)
    s = sqrt(mul(log(tail), -2.0))
    u = div(sub(s, 7.9), add(s, 4.1))
    t = sub(mul(add(u, 1.0), 2 / (1 + _NDTRI_FAR_END)), 1.0)
    far = mul(mul(s, sign(q)), chebyshev(t, _NDTRI_FAR))
    result = select(le(abs(q), 0.35), near, far)
    # At 0 and 1, s is infinite.
    return select(eq(tail, 0.0), mul(sign(q), np.inf), result)


ndtri_p = Elementwise("ndtri", _ndtri, lambda p, y: mul(exp(mul(square(y), 0.5)), _ROOT_TWO_PI))


@one_program()
def ndtri(p: ArrayLike) -> Array:
    """The inverse of `ndtr`: below which number the standard normal distribution has mass `p`.

    Infinite at 0 and 1, NaN beyond.

    Shapes:     p: T[s] -> T[s].
    Dtypes:     float32 and float64.
    Derivative: √(2π) exp(y²/2), where y is the result.
    Source:     mirrors jax.scipy.special.ndtri (0.10).

    Raises:
        TypeError: p is of another dtype.

    Example:
        >>> minijax.scipy.special.ndtri(jnp.array([0.0, 0.5, 1.0]))
        Array([-inf,   0.,  inf], dtype=float32)
    """
    return ndtri_p.bind(plain_operand("ndtri", "p", p))


def _owens_t(h: Any, a: Any) -> Any:
    h, slope = abs(h), abs(a)
    steep = gt(slope, 1.0)
    # T(h, a) = (Q(h) + Q(ah)) / 2 - Q(h) Q(ah) - T(ah, 1/a), where Q is the upper tail.
    product = select(eq(h, 0.0), h, mul(h, slope))
    height = select(steep, product, h)
    width = select(steep, div(1.0, slope), slope)
    inner = _owens_integral(min(height, 1e3), width)
    upper, lower = normal_cdf(neg(h)), normal_cdf(neg(product))
    beyond = sub(sub(mul(add(upper, lower), 0.5), mul(upper, lower)), inner)
    return mul(sign(a), select(steep, beyond, inner))


def _owens_integral(h: Any, a: Any) -> Any:
    """`∫₀ᵃ exp(-h²(1 + x²)/2) / (1 + x²) dx / 2π` for 0 <= a <= 1, by Gauss and Legendre.

    The integrand vanishes within the precision beyond 6/h, in float64 beyond 8.6/h.
    """
    is_wide = epsilon(h) < 1e-8
    reach = min(a, div(8.6 if is_wide else 6.0, max(h, 1.0)))
    nodes, weights = np.polynomial.legendre.leggauss(26 if is_wide else 12)
    total: Any = full_like(h, 0.0)
    squared = square(h)
    for node, weight in zip((nodes + 1) / 2, weights / (4 * math.pi), strict=True):
        beside = add(square(mul(reach, float(node))), 1.0)
        total = add(total, mul(div(exp(mul(mul(squared, beside), -0.5)), beside), float(weight)))
    return mul(total, reach)


def _owens_slope_h(h: Any, a: Any, y: Any) -> Any:
    # -φ(h) ∫₀ᵃʰ φ, both of which are even or odd as they ought to be.
    steepness = select(eq(h, 0.0), h, mul(a, h))
    return mul(
        mul(exp(mul(square(h), -0.5)), special.erf(mul(steepness, _ROOT_HALF))), -0.5 / _ROOT_TWO_PI
    )


def _owens_slope_a(h: Any, a: Any, y: Any) -> Any:
    beside = add(square(a), 1.0)
    return div(exp(mul(mul(square(h), beside), -0.5)), mul(beside, 2 * math.pi))


owens_t_p = Elementwise("owens_t", _owens_t, _owens_slope_h, _owens_slope_a)


@one_program()
def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    """Owen's function `∫₀ᵃ exp(-h²(1 + x²)/2) / (1 + x²) dx / 2π`.

    It is the chance of X > h and 0 < Y < aX for independent standard normal X and Y.  Owen,
    Ann. Math. Statist. 27 (1956), 1075.

    Shapes:     h: T[s], a: T[t] -> T[broadcast of s and t].
    Dtypes:     real; integers, booleans and narrow floats become float32.
    Derivative: by h and by a.
    Source:     mirrors jax.scipy.special.owens_t (0.10).

    Raises:
        TypeError: an argument is complex.

    Example:
        >>> minijax.scipy.special.owens_t(0.0, 1.0).round(4)
        Array(0.125, dtype=float32)
    """
    h, a = real_operands("owens_t", h=h, a=a)
    wide = np.dtype(np.float32) if epsilon(h) > 1e-8 else np.dtype(np.float64)
    return owens_t_p.bind(*[promotion.strong(convert_element_type(x, wide)) for x in (h, a)])
