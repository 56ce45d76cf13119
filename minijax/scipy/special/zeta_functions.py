"""Zeta and polygamma functions, the dilogarithm, and Bernoulli's numbers.

Bernoulli's numbers are what all of them are made of, and are computed exactly.
"""

from __future__ import annotations

import fractions
import math
import operator
from typing import Any, SupportsIndex

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.cache import Cache
from minijax.core.errors import ConcretizationTypeError, error
from minijax.core.trace import Tracer
from minijax.lax import special
from minijax.lax.binary import add, bitwise_and, bitwise_or, div, eq, ge, gt, lt, mul, ne, sub
from minijax.lax.choice import select
from minijax.lax.special import full_like
from minijax.lax.unary import exp, log, neg, square
from minijax.numpy import creation, promotion
from minijax.numpy.one_program import one_program
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.scipy.special.elementwise import (
    Elementwise,
    plain_operand,
    polynomial,
    real_operands,
)

_known = Cache("Bernoulli numbers", "Bernoulli's numbers", key="their number")


@_known.function
def _bernoulli_numbers(n: int) -> tuple[fractions.Fraction, ...]:
    """B₀ to Bₙ, where B₁ = -1/2: all but the first sum to 0 with Pascal's triangle."""
    zero = fractions.Fraction(0)
    numbers = [fractions.Fraction(1)]
    for m in range(1, n + 1):
        rest = sum((math.comb(m + 1, k) * b for k, b in enumerate(numbers)), zero)
        numbers.append(zero if m > 1 and m % 2 else -rest / (m + 1))
    return tuple(numbers)


def bernoulli(n: SupportsIndex) -> Array:
    """Bernoulli's numbers B₀ to Bₙ, of which B₁ is -1/2.

    Shapes:     -> T[n + 1].
    Dtypes:     the default floating dtype.
    Source:     mirrors jax.scipy.special.bernoulli (0.10).

    Raises:
        ConcretizationTypeError: n is traced.
        TypeError: n is no integer.
        ValueError: n is negative.

    Example:
        >>> minijax.scipy.special.bernoulli(3)[:2]
        Array([ 1. , -0.5], dtype=float32)
    """
    if isinstance(n, Tracer):
        error(
            ConcretizationTypeError,
            "scipy.special.bernoulli",
            "n must be known: it says how many numbers there are.",
            got={"n": aval_of(n)},
            fix="jit with static_argnames='n'",
        )
    n = operator.index(n)
    if n < 0:
        error(
            ValueError, "scipy.special.bernoulli", "n is negative.", got={"n": n}, expected="n >= 0"
        )
    largest = float(np.finfo(dtypes.canonicalize_dtype(np.float64)).max)
    bound = fractions.Fraction(largest)
    values = [
        float(b) if -bound <= b <= bound else math.copysign(math.inf, b)
        for b in _bernoulli_numbers(n)
    ]
    return creation.asarray(np.array(values), dtype=float)


_EULER_MACLAURIN_TERMS = 12


def _zeta_slope(s: Any, q: Any) -> Any:
    """`-Σ ln(k + q) / (k + q)ˢ` over k >= 0, by Euler and Maclaurin's formula (DLMF 25.11.7)."""
    total: Any = full_like(s, 0.0)
    for k in range(_EULER_MACLAURIN_TERMS):
        base = add(q, float(k))
        logarithm = log(base)
        total = add(total, mul(logarithm, exp(neg(mul(s, logarithm)))))
    # Of f(t) = ln(t) t⁻ˢ: the integral from the end on, half the end, and odd derivatives there.
    end = add(q, float(_EULER_MACLAURIN_TERMS))
    logarithm = log(end)
    power = exp(neg(mul(s, logarithm)))
    past = sub(s, 1.0)
    integral = div(mul(mul(end, power), add(logarithm, div(1.0, past))), past)
    total = add(total, add(integral, mul(mul(logarithm, power), 0.5)))
    # The derivatives are (-1)ʲ t⁻ˢ⁻ʲ (pⱼ ln t - pⱼ'), with the rising factorial pⱼ = s (s+1) ....
    rising, rising_dot = s, full_like(s, 1.0)
    scale = div(power, end)
    for k in range(1, 8):
        weight = float(_bernoulli_numbers(2 * k)[2 * k]) / math.factorial(2 * k)
        total = add(total, mul(mul(scale, sub(mul(rising, logarithm), rising_dot)), weight))
        for j in (2 * k - 1, 2 * k):
            factor = add(s, float(j))
            rising, rising_dot = mul(rising, factor), add(mul(rising_dot, factor), rising)
        scale = div(scale, square(end))
    return neg(total)


zeta_slope_p = Elementwise("zeta_slope", _zeta_slope, None, None)


def _zeta_formula(x: Any, q: Any) -> Any:
    # The first term alone is left where x is infinite.
    alone = bitwise_and(eq(x, np.inf), ge(q, 1.0))
    first = select(eq(q, 1.0), full_like(x, 1.0), full_like(x, 0.0))
    return select(alone, first, special.zeta(x, q))


zeta_function_p = Elementwise(
    "zeta_function",
    _zeta_formula,
    lambda x, q, y: zeta_slope_p.bind(x, q),
    lambda x, q, y: neg(mul(x, special.zeta(add(x, 1.0), q))),
)


def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """The Hurwitz zeta function: the sum of `1 / (k + q)ˣ` over all whole k from 0 on.

    Shapes:     x: T[s], q: T[t] -> T[broadcast of s and t].
    Dtypes:     real; integers and booleans become floats.
    Derivative: -Σ ln(k + q) / (k + q)ˣ by x, -x ζ(x + 1, q) by q.
    Source:     mirrors jax.scipy.special.zeta (0.10).

    Raises:
        NotImplementedError: there is no q.

    Example:
        >>> (6 * minijax.scipy.special.zeta(2.0, 1.0) / jnp.pi**2).round(4)
        Array(1., dtype=float32, weak_type=True)
    """
    if q is None:
        error(
            NotImplementedError,
            "scipy.special.zeta",
            "q must be given.",
            fix="q=1 for Riemann's function",
        )
    return _zeta(x, q)


@one_program()
def _zeta(x: Any, q: Any) -> Any:
    return zeta_function_p.bind(*real_operands("zeta", x=x, q=q))


def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of order `n` of the digamma function.

    Shapes:     n: integers[s], x: T[t] -> T[broadcast of s and t].
    Dtypes:     n of integers; x real, where integers and booleans become floats.
    Derivative: polygamma(n + 1, x) by x.
    Source:     mirrors jax.scipy.special.polygamma (0.10).

    Raises:
        ValueError: n is not of an integer dtype, or x is complex.

    Example:
        >>> minijax.scipy.special.polygamma(1, jnp.inf)
        Array(0., dtype=float32, weak_type=True)
    """
    n = promotion.check_array("scipy.special.polygamma", n, "n")
    if not dtypes.issubdtype(aval_of(n).dtype, np.integer):
        error(
            ValueError,
            "scipy.special.polygamma",
            "n is not of an integer dtype.",
            got={"n": aval_of(n)},
            fix="n.astype(int)",
        )
    return _polygamma(n, x)


def _polygamma_formula(n: Any, x: Any) -> Any:
    # The limits that a zeta function of two infinities does not find.
    value = special.polygamma(n, x)
    vanishes = bitwise_and(eq(x, np.inf), gt(n, 0.0))
    return select(vanishes, full_like(x, 0.0), value)


polygamma_function_p: Elementwise = Elementwise(
    "polygamma_function",
    _polygamma_formula,
    None,
    lambda n, x, y: polygamma_function_p.bind(add(n, 1.0), x),
)


@one_program()
def _polygamma(n: Any, x: Any) -> Any:
    n, x = real_operands("polygamma", ValueError, n=n, x=x)
    return polygamma_function_p.bind(n, x)


def _spence(x: Any) -> Any:
    # The inverse of numbers above 2 and the complement of those below 1/2 lead to [1/2, 2].
    one = full_like(x, 1.0)
    positive = select(gt(x, 0.0), x, one)
    far = gt(positive, 2.0)
    lower = select(far, div(1.0, positive), positive)
    near = lt(lower, 0.5)
    inner = select(near, sub(1.0, lower), lower)
    # There it is a series in u = -ln x with Bernoulli's numbers.
    u = neg(log(inner))
    numbers = _bernoulli_numbers(20)[2::2]
    terms = [float(b / math.factorial(2 * k + 3)) for k, b in enumerate(numbers)]
    z = square(u)
    value = mul(u, add(sub(1.0, mul(u, 0.25)), mul(z, polynomial(z, *terms))))
    logarithm = log(select(eq(lower, 0.0), one, lower))
    reflected = add(sub(math.pi**2 / 6, value), mul(logarithm, u))
    value = select(near, reflected, value)
    value = select(far, sub(mul(square(logarithm), -0.5), value), value)
    value = select(eq(x, 0.0), mul(one, math.pi**2 / 6), value)
    value = select(eq(x, np.inf), neg(x), value)
    outside = bitwise_or(lt(x, 0.0), ne(x, x))
    return select(outside, mul(one, np.nan), value)


def _spence_slope(x: Any, y: Any) -> Any:
    at_one = eq(x, 1.0)
    safe = select(at_one, full_like(x, 2.0), x)
    return select(at_one, full_like(x, -1.0), div(log(safe), sub(1.0, safe)))


spence_p = Elementwise("spence", _spence, _spence_slope)


@one_program()
def spence(x: ArrayLike) -> Array:
    """Spence's function, the dilogarithm of `1 - x`: `∫ ln(t)/(1 - t) dt` from 1 to x.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     float32 and float64; NaN for negative x.
    Derivative: log(x) / (1 - x).
    Source:     mirrors jax.scipy.special.spence (0.10); 't Hooft and Veltman, Nucl. Phys. B 153
        (1979), 365, on the series.

    Raises:
        TypeError: x is of another dtype.

    Example:
        >>> (6 * minijax.scipy.special.spence(jnp.array([-1.0, 0.0])) / jnp.pi**2).round(4)
        Array([nan,  1.], dtype=float32)
    """
    return spence_p.bind(plain_operand("spence", "x", x))
