"""Gamma, beta, zeta and polygamma functions, factorials, and the dilogarithm.

Quotients of gamma functions are taken of logarithms, in which Stirling's large terms cancel before
they are computed where arguments are large.
"""

from __future__ import annotations

import fractions
import math
import operator
from collections.abc import Callable
from typing import Any, SupportsIndex

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.cache import Cache
from minijax.core.errors import ConcretizationTypeError, error
from minijax.core.trace import Tracer
from minijax.lax import families, incomplete_gamma, special, unary
from minijax.lax.binary import max, min, select
from minijax.lax.elementwise import Elementwise
from minijax.lax.incomplete_gamma import stirling_rest
from minijax.lax.special import epsilon, full_like
from minijax.lax.unary import abs, exp, floor, log, log1p, square
from minijax.numpy import creation, promotion, reductions, selection, shaping
from minijax.numpy.logic import isnan
from minijax.numpy.promotion import check_that, one_program
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.scipy.special.elementwise import plain_operand, polynomial, real_operands

_MOVES = 8

# B₂ₖ for k = 1, 2, ...
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)


def _moved(z: Array, term: Callable[[Any], Any], far: Callable[[Any], Any]) -> Array:
    """`far(z + n) - Σ term(z + k)` over k < n, where n is 8 or, far to the right, 0."""
    near = unary.real(z) < float(_MOVES)
    total: Any = None
    for k in range(_MOVES):
        value = term(z + k)
        total = value if total is None else total + value
    end = select(near, z + _MOVES, z)
    return far(end) - select(near, total, total * 0)


def _reflected(z: Array, right: Callable[[Any], Any], mirror: Callable[[Any, Any], Any]) -> Array:
    """`right(z)`, or left of 1/2 what `mirror` makes of z and `right(1 - z)`.

    The mirror is for the upper half-plane; the lower one has conjugate values.
    """
    is_left = unary.real(z) < 0.5
    value = right(select(is_left, 1 - z, z))
    is_upper = unary.imag(z) >= 0.0
    upper = select(is_upper, z, unary.conj(z))
    mirrored = mirror(upper, select(is_upper, value, unary.conj(value)))
    mirrored = select(is_upper, mirrored, unary.conj(mirrored))
    return select(is_left, mirrored, value)


def _series(z: Array, coefficients: list[float], power: Callable[[Any], Any]) -> Array:
    inverse = 1 / (z * z)
    total: Any = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = total * inverse + c
    return total * power(z)


def _stirling(z: Array) -> Array:
    main = (z - 0.5) * log(z) - z + math.log(2 * math.pi) / 2
    coefficients = [b / ((2 * k) * (2 * k - 1)) for k, b in enumerate(_BERNOULLI, 1)]
    return main + _series(z, coefficients, lambda z: 1 / z)


def _loggamma(z: Array) -> Array:
    def mirror(z: Array, other: Array) -> Array:
        # ln sin πz, continued from z = 1/2 without a jump.
        turns = z * (2j * math.pi)
        sine = (0.5j * math.pi - math.log(2)) - z * (1j * math.pi) + log1p(-exp(turns))
        return math.log(math.pi) - sine - other

    return _reflected(z, lambda z: _moved(z, log, _stirling), mirror)


def _digamma(z: Array) -> Array:
    def far(z: Array) -> Array:
        main = log(z) - 0.5 / z
        coefficients = [b / (2 * k) for k, b in enumerate(_BERNOULLI, 1)]
        return main - _series(z, coefficients, lambda z: 1 / (z * z))

    def mirror(z: Array, other: Array) -> Array:
        return other - math.pi / unary.tan(z * math.pi)

    def reciprocal(z: Array) -> Array:
        return 1 / z

    return _reflected(z, lambda z: _moved(z, reciprocal, far), mirror)


complex_digamma_p = Elementwise("complex_digamma", _digamma, None, accepts=families.COMPLEX)

complex_loggamma_p = Elementwise(
    "complex_loggamma", _loggamma, lambda z, y: complex_digamma_p.bind(z), accepts=families.COMPLEX
)


def _is_complex(x: Array) -> bool:
    return bool(dtypes.issubdtype(aval_of(x).dtype, np.complexfloating))


def _is_whole(x: Array) -> Array:
    return x == floor(x)


def _rounded(y: Array, whole: Array) -> Array:
    """`y`, rounded where it is known to be whole and that changes little."""
    small = abs(y) < 1 / (16 * epsilon(y))
    return select(small & whole, unary.round(y), y)


@one_program()
def gammaln(x: ArrayLike) -> Array:
    """Logarithm of the absolute value of the gamma function, `ln |Γ(x)|`.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     real; integers and booleans become floats.
    Derivative: digamma(x).

    Example:
        >>> minijax.scipy.special.gammaln(0.0)
        Array(inf, dtype=float32, weak_type=True)
    """
    return special.lgamma(*real_operands("gammaln", x=x))


@one_program()
def loggamma(x: ArrayLike) -> Array:
    """Principal branch of the logarithm of the gamma function.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.  Negative reals give NaN.
    Derivative: digamma(x).

    Example:
        >>> minijax.scipy.special.loggamma(-1.0)
        Array(nan, dtype=float32, weak_type=True)
    """
    x = promotion.inexact("scipy.special.loggamma", x)
    if _is_complex(x):
        return complex_loggamma_p.bind(x)
    # A product with NaN would make the derivative NaN wherever the operand is.
    return selection.where(x > 0.0, special.lgamma(x), np.nan)


@one_program()
def digamma(x: ArrayLike) -> Array:
    """Digamma function, the derivative of `gammaln`.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     real; integers and booleans become floats.
    Derivative: polygamma(1, x).

    Example:
        >>> minijax.scipy.special.digamma(jnp.inf)
        Array(inf, dtype=float32, weak_type=True)
    """
    return special.digamma(*real_operands("digamma", x=x))


def gamma_sign(x: Array) -> Array:
    """The formula of `gammasgn`."""
    down = floor(x)
    odd = floor(down * 0.5) * 2.0 != down
    one = full_like(x, 1.0)
    # The reciprocal tells the zeros apart.
    below_zero = (x == 0.0) & (one / x < 0.0)
    negative = ((x < 0.0) & odd) | below_zero
    undefined = ((x < 0.0) & (x == down)) | isnan(x)
    return select(undefined, one * np.nan, select(negative, -one, one))


gammasgn_p = Elementwise("gammasgn", gamma_sign, lambda x, y: full_like(x, 0.0))


@one_program()
def gammasgn(x: ArrayLike) -> Array:
    """Sign of the gamma function: 1, -1, or NaN at its poles.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     real; integers and booleans become floats.
    Derivative: zero.

    Raises:
        ValueError: x is complex.

    Example:
        >>> minijax.scipy.special.gammasgn(jnp.array([-1.5, -1.0, -0.5, 2.0]))
        Array([ 1., nan, -1.,  1.], dtype=float32)
    """
    return gammasgn_p.bind(promotion.strong(*real_operands("gammasgn", ValueError, x=x)))


def _gamma(x: Array) -> Array:
    return gamma_sign(x) * _rounded(exp(special.lgamma(x)), _is_whole(x))


gamma_p = Elementwise("gamma", _gamma, lambda x, y: y * special.digamma(x))


@one_program()
def gamma(x: ArrayLike) -> Array:
    """Gamma function, `∫ tˣ⁻¹ exp(-t) dt` from 0 to ∞; `Γ(n + 1) = n!`.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.
    Derivative: Γ(x) digamma(x).

    Example:
        >>> minijax.scipy.special.gamma(jnp.array([-1.0, 0.0, 5.0]))
        Array([nan, inf, 24.], dtype=float32)
    """
    x = promotion.strong(promotion.inexact("scipy.special.gamma", x))
    return exp(complex_loggamma_p.bind(x)) if _is_complex(x) else gamma_p.bind(x)


@one_program()
def gammainc(a: ArrayLike, x: ArrayLike) -> Array:
    """Regularized lower incomplete gamma function, `P(a, x) = ∫₀ˣ tᵃ⁻¹ e⁻ᵗ dt / Γ(a)`.

    Shapes:     a: T[s], x: T[t] -> T[broadcast of s and t].
    Dtypes:     real; integers and booleans become floats.
    Derivative: by a and by x.

    Example:
        >>> minijax.scipy.special.gammainc(2.0, jnp.array([0.0, jnp.inf]))
        Array([0., 1.], dtype=float32)
    """
    return incomplete_gamma.igamma(*real_operands("gammainc", a=a, x=x))


@one_program()
def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """Regularized upper incomplete gamma function, `1 - gammainc(a, x)`.

    Shapes:     a: T[s], x: T[t] -> T[broadcast of s and t].
    Dtypes:     real; integers and booleans become floats.
    Derivative: by a and by x.

    Example:
        >>> minijax.scipy.special.gammaincc(2.0, jnp.array([0.0, jnp.inf]))
        Array([1., 0.], dtype=float32)
    """
    return incomplete_gamma.igammac(*real_operands("gammaincc", a=a, x=x))


def log_beta(a: Array, b: Array) -> Array:
    """The formula of `betaln`."""
    small, large = min(a, b), max(a, b)
    plain = special.lgamma(small) + (special.lgamma(large) - special.lgamma(a + b))
    # Where one or both are large, Stirling's formula for them, of which the large terms cancel.
    size = max(large, 8.0)
    rest = stirling_rest(size) - stirling_rest(max(size + small, 8.0))
    quotient = small / size
    one = rest - (size + small - 0.5) * log1p(quotient) - small * (log(size) - 1.0)
    one = special.lgamma(small) + one
    both = rest + stirling_rest(max(small, 8.0)) + math.log(2 * math.pi) / 2
    both = both - (small - 0.5) * log1p(size / small)
    both = both - (size * log1p(quotient) + log(size) * 0.5)
    result = select(small < 8.0, one, both)
    # Also where the smaller is negative, if it leaves the sum large.
    enough = (small >= 0.0) | (large + small >= 8.0)
    usable = enough & (large >= 8.0) & unary.is_finite(large)
    return select(usable, result, plain)


betaln_p = Elementwise(
    "betaln",
    log_beta,
    lambda a, b, y: special.digamma(a) - special.digamma(a + b),
    lambda a, b, y: special.digamma(b) - special.digamma(a + b),
)


@one_program()
def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """Natural logarithm of the absolute value of the beta function.

    Shapes:     a: T[s], b: T[t] -> T[broadcast of s and t].
    Dtypes:     real; integers and booleans become floats.
    Derivative: digamma(a) - digamma(a + b) by a, and likewise by b.
    Source:     mirrors jax.scipy.special.betaln (0.10); Didonato and Morris, ACM Trans. Math.
        Software 18 (1992), 360, on large arguments.

    Example:
        >>> minijax.scipy.special.betaln(1.0, 0.0)
        Array(inf, dtype=float32, weak_type=True)
    """
    return betaln_p.bind(*real_operands("betaln", a=a, b=b))


@one_program()
def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """Beta function, `Γ(a) Γ(b) / Γ(a + b)`.

    Shapes:     a: T[s], b: T[t] -> T[broadcast of s and t].
    Dtypes:     real; integers and booleans become floats.
    Derivative: B(a, b) (digamma(a) - digamma(a + b)) by a, and likewise by b.

    Raises:
        ValueError: an argument is complex.

    Example:
        >>> minijax.scipy.special.beta(1.0, 1.0).round(4)
        Array(1., dtype=float32)
    """
    a, b = map(promotion.strong, real_operands("beta", ValueError, a=a, b=b))
    sign = gammasgn_p.bind(a) * gammasgn_p.bind(b) * gammasgn_p.bind(a + b)
    return sign * exp(betaln_p.bind(a, b))


@one_program()
def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Regularized incomplete beta function, `∫₀ˣ tᵃ⁻¹ (1 - t)ᵇ⁻¹ dt / B(a, b)`.

    Shapes:     a: T[r], b: T[s], x: T[t] -> T[broadcast of r, s and t].
    Dtypes:     real; integers and booleans become floats.
    Derivative: xᵃ⁻¹ (1 - x)ᵇ⁻¹ / B(a, b) by x.

    Raises:
        ValueError: an argument is complex, or it is differentiated by a or b.

    Example:
        >>> minijax.scipy.special.betainc(1.0, 1.0, jnp.array([0.0, 0.25, 1.0])).round(4)
        Array([0.  , 0.25, 1.  ], dtype=float32)
    """
    return special.betainc(*real_operands("betainc", ValueError, a=a, b=b, x=x))


def _factorial(n: Array) -> Array:
    result = _rounded(exp(special.lgamma(n + 1.0)), _is_whole(n))
    return select(n < 0.0, full_like(n, 0.0), result)


factorial_p = Elementwise(
    "factorial", _factorial, lambda n, y: y * special.digamma(max(n, 0.0) + 1.0)
)


@one_program(static=("exact",))
def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """Factorial `n!`, or `Γ(n + 1)` for n that is not an integer; 0 for negative n.

    Shapes:     n: T[s] -> T[s].
    Dtypes:     real; integers and booleans become floats.
    Derivative: n! digamma(n + 1).

    Raises:
        NotImplementedError: exact integers are asked for.

    Example:
        >>> minijax.scipy.special.factorial(jnp.arange(6))
        Array([  1.,   1.,   2.,   6.,  24., 120.], dtype=float32)
    """
    fits = not exact
    problem = "integers of any size are not arrays."
    fix = "exact=False, or math.factorial"
    check_that(
        fits, "scipy.special.factorial", problem, error=NotImplementedError, exact=exact, fix=fix
    )
    return factorial_p.bind(*real_operands("factorial", n=n))


def _comb(n: Array, k: Array) -> Array:
    valid = (n >= 0.0) & (k >= 0.0) & (k <= n)
    zero = full_like(n, 0.0)
    n, k = select(valid, n, zero), select(valid, k, zero)
    logarithm = log_beta(n - k + 1.0, k + 1.0) + log(n + 1.0)
    result = _rounded(exp(-logarithm), _is_whole(n) & _is_whole(k))
    return select(valid, result, zero)


def _slope_of_comb(plus: Array, minus: Array, y: Array) -> Array:
    return y * (special.digamma(plus + 1.0) - special.digamma(minus + 1.0))


comb_p = Elementwise(
    "comb",
    _comb,
    lambda n, k, y: select(y == 0.0, y * 0.0, _slope_of_comb(n, n - k, y)),
    lambda n, k, y: select(y == 0.0, y * 0.0, _slope_of_comb(n - k, k, y)),
)


@one_program(static=("repetition",))
def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:
    """The number of combinations of `N` things taken `k` at a time; 0 where there are none.

    Shapes:     N: T[s], k: T[t] -> T[broadcast of s and t].
    Dtypes:     real; integers and booleans become floats.
    Derivative: by N and by k, as the gamma functions' that factorials are.

    Args:
        N: how many things there are.
        k: how many are chosen.
        repetition: whether a thing may be chosen more than once.

    Example:
        >>> minijax.scipy.special.comb(5, jnp.arange(7))
        Array([ 1.,  5., 10., 10.,  5.,  1.,  0.], dtype=float32)
    """
    n, k = real_operands("comb", N=N, k=k)
    if repetition:
        n = n + k - 1.0
    return comb_p.bind(n, k)


def _poch(z: Array, m: Array) -> Array:
    end = z + m
    # From a pole to a pole the ratio is finite, by reflection; from a pole elsewhere it is 0.
    from_pole = (z <= 0.0) & _is_whole(z)
    to_pole = (end <= 0.0) & _is_whole(end)
    top = select(from_pole, 1.0 - z, end)
    bottom = select(from_pole, 1.0 - end, z)
    ratio = exp(special.lgamma(top) - special.lgamma(bottom))
    positive = exp(special.lgamma(m) - log_beta(z, m))
    positive = select(m == np.inf, full_like(m, np.inf), positive)
    regular = select((z > 0.0) & (m > 0.0), positive, ratio)
    regular = gamma_sign(end) * gamma_sign(z) * regular
    odd = floor(m * 0.5) * 2.0 != floor(m)
    mirrored = select(odd, -ratio, ratio)
    at_pole = select(to_pole, mirrored, full_like(z, 0.0))
    result = select(from_pole, at_pole, regular)
    whole = _is_whole(z) & _is_whole(m) & (m > 0.0)
    result = _rounded(result, whole)
    return select(m == 0.0, full_like(z, 1.0), result)


poch_p = Elementwise(
    "poch",
    _poch,
    lambda z, m, y: y * (special.digamma(z + m) - special.digamma(z)),
    lambda z, m, y: y * special.digamma(z + m),
)


@one_program()
def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """Pochhammer symbol (the rising factorial), `Γ(z + m) / Γ(z)`.

    Shapes:     z: T[s], m: T[t] -> T[broadcast of s and t].
    Dtypes:     real; integers and booleans become floats.
    Derivative: y (digamma(z + m) - digamma(z)) by z, and y digamma(z + m) by m.

    Raises:
        ValueError: an argument is complex.

    Example:
        >>> minijax.scipy.special.poch(2.0, 3.0)
        Array(24., dtype=float32)
    """
    z, m = map(promotion.strong, real_operands("poch", ValueError, z=z, m=m))
    return poch_p.bind(z, m)


def multigammaln(a: ArrayLike, d: int | Array) -> Array:
    """Logarithm of the multivariate gamma function of dimension `d`.

    Shapes:     a: T[s] -> T[s]; d is a whole number that is known.
    Dtypes:     real; integers and booleans become floats.
    Derivative: the sum of digamma(a - i/2) over i below d.

    Raises:
        ConcretizationTypeError: d is traced.

    Example:
        >>> minijax.scipy.special.multigammaln(jnp.float32(1.0), 1).round(4)
        Array(0., dtype=float32)
    """
    if isinstance(d, Tracer):
        problem = "the dimension must be known: it says how many terms there are."
        got = {"d": aval_of(d)}
        fix = "jit with static_argnames='d'"
        error(ConcretizationTypeError, "scipy.special.multigammaln", problem, got=got, fix=fix)
    return _multigammaln(a, int(d))


@one_program(static=("d",))
def _multigammaln(a: ArrayLike, d: int) -> Array:
    (a,) = real_operands("multigammaln", a=a)
    halves = (np.arange(d) / 2).astype(aval_of(a).dtype)
    terms = special.lgamma(shaping.expand_dims(a, -1) - halves)
    return reductions.sum(terms, axis=-1) + d * (d - 1) / 4 * math.log(math.pi)


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
    """Bernoulli numbers B₀ to Bₙ, with B₁ = -1/2.

    Shapes:     -> T[n + 1].
    Dtypes:     the default floating dtype.

    Raises:
        ConcretizationTypeError: n is traced.
        TypeError: n is not an integer.
        ValueError: n is negative.

    Example:
        >>> minijax.scipy.special.bernoulli(3)[:2]
        Array([ 1. , -0.5], dtype=float32)
    """
    if isinstance(n, Tracer):
        problem = "n must be known: it says how many numbers there are."
        got = {"n": aval_of(n)}
        fix = "jit with static_argnames='n'"
        error(ConcretizationTypeError, "scipy.special.bernoulli", problem, got=got, fix=fix)
    n = operator.index(n)
    check_that(n >= 0, "scipy.special.bernoulli", "n is negative.", n=n, expected="n >= 0")
    largest = float(np.finfo(dtypes.canonicalize_dtype(np.float64)).max)
    bound = fractions.Fraction(largest)
    values = [
        float(b) if -bound <= b <= bound else math.copysign(math.inf, b)
        for b in _bernoulli_numbers(n)
    ]
    return creation.asarray(np.array(values), dtype=float)


_EULER_MACLAURIN_TERMS = 12


def _zeta_slope(s: Array, q: Array) -> Array:
    """`-Σ ln(k + q) / (k + q)ˢ` over k >= 0, by Euler and Maclaurin's formula (DLMF 25.11.7)."""
    total: Any = full_like(s, 0.0)
    for k in range(_EULER_MACLAURIN_TERMS):
        base = q + float(k)
        logarithm = log(base)
        total = total + logarithm * exp(-(s * logarithm))
    # Of f(t) = ln(t) t⁻ˢ: the integral from the end on, half the end, and odd derivatives there.
    end = q + float(_EULER_MACLAURIN_TERMS)
    logarithm = log(end)
    power = exp(-(s * logarithm))
    past = s - 1.0
    integral = end * power * (logarithm + 1.0 / past) / past
    total = total + (integral + logarithm * power * 0.5)
    # The derivatives are (-1)ʲ t⁻ˢ⁻ʲ (pⱼ ln t - pⱼ'), with the rising factorial pⱼ = s (s+1) ....
    rising, rising_dot = s, full_like(s, 1.0)
    scale = power / end
    for k in range(1, 8):
        weight = float(_bernoulli_numbers(2 * k)[2 * k]) / math.factorial(2 * k)
        total = total + scale * (rising * logarithm - rising_dot) * weight
        for j in (2 * k - 1, 2 * k):
            factor = s + float(j)
            rising, rising_dot = rising * factor, rising_dot * factor + rising
        scale = scale / square(end)
    return -total


zeta_slope_p = Elementwise("zeta_slope", _zeta_slope, None, None)


def _zeta_formula(x: Array, q: Array) -> Array:
    # The first term alone is left where x is infinite.
    alone = (x == np.inf) & (q >= 1.0)
    first = select(q == 1.0, full_like(x, 1.0), full_like(x, 0.0))
    return select(alone, first, special.zeta(x, q))


zeta_function_p = Elementwise(
    "zeta_function",
    _zeta_formula,
    lambda x, q, y: zeta_slope_p.bind(x, q),
    lambda x, q, y: -(x * special.zeta(x + 1.0, q)),
)


def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """Hurwitz zeta function: the sum of `1 / (k + q)ˣ` over all integers k from 0 on.

    Shapes:     x: T[s], q: T[t] -> T[broadcast of s and t].
    Dtypes:     real; integers and booleans become floats.
    Derivative: -Σ ln(k + q) / (k + q)ˣ by x, -x ζ(x + 1, q) by q.

    Raises:
        NotImplementedError: there is no q.

    Example:
        >>> (6 * minijax.scipy.special.zeta(2.0, 1.0) / jnp.pi**2).round(4)
        Array(1., dtype=float32, weak_type=True)
    """
    if q is None:
        problem = "q must be given."
        error(NotImplementedError, "scipy.special.zeta", problem, fix="q=1 for Riemann's function")
    return _zeta(x, q)


@one_program()
def _zeta(x: ArrayLike, q: ArrayLike) -> Array:
    return zeta_function_p.bind(*real_operands("zeta", x=x, q=q))


def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """Polygamma function: the derivative of order `n` of the digamma function.

    Shapes:     n: integers[s], x: T[t] -> T[broadcast of s and t].
    Dtypes:     n of integers; x real, where integers and booleans become floats.
    Derivative: polygamma(n + 1, x) by x.

    Raises:
        ValueError: n is not of an integer dtype, or x is complex.

    Example:
        >>> minijax.scipy.special.polygamma(1, jnp.inf)
        Array(0., dtype=float32, weak_type=True)
    """
    n = promotion.check_array("scipy.special.polygamma", n, "n")
    fits = dtypes.issubdtype(aval_of(n).dtype, np.integer)
    problem = "n is not of an integer dtype."
    check_that(fits, "scipy.special.polygamma", problem, n=aval_of(n), fix="n.astype(int)")
    return _polygamma(n, x)


def _polygamma_formula(n: Array, x: Array) -> Array:
    # The limits that a zeta function of two infinities does not find.
    value = special.polygamma(n, x)
    vanishes = (x == np.inf) & (n > 0.0)
    return select(vanishes, full_like(x, 0.0), value)


polygamma_function_p: Elementwise = Elementwise(
    "polygamma_function",
    _polygamma_formula,
    None,
    lambda n, x, y: polygamma_function_p.bind(n + 1.0, x),
)


@one_program()
def _polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    n, x = real_operands("polygamma", ValueError, n=n, x=x)
    return polygamma_function_p.bind(n, x)


def _spence(x: Array) -> Array:
    # The inverse of numbers above 2 and the complement of those below 1/2 lead to [1/2, 2].
    one = full_like(x, 1.0)
    positive = select(x > 0.0, x, one)
    far = positive > 2.0
    lower = select(far, 1.0 / positive, positive)
    near = lower < 0.5
    inner = select(near, 1.0 - lower, lower)
    # There it is a series in u = -ln x with Bernoulli's numbers.
    u = -log(inner)
    numbers = _bernoulli_numbers(20)[2::2]
    terms = [float(b / math.factorial(2 * k + 3)) for k, b in enumerate(numbers)]
    z = square(u)
    value = u * (1.0 - u * 0.25 + z * polynomial(z, *terms))
    logarithm = log(select(lower == 0.0, one, lower))
    reflected = math.pi**2 / 6 - value + logarithm * u
    value = select(near, reflected, value)
    value = select(far, square(logarithm) * -0.5 - value, value)
    value = select(x == 0.0, one * (math.pi**2 / 6), value)
    value = select(x == np.inf, -x, value)
    outside = (x < 0.0) | isnan(x)
    return select(outside, one * np.nan, value)


def _spence_slope(x: Array, y: Array) -> Array:
    at_one = x == 1.0
    safe = select(at_one, full_like(x, 2.0), x)
    return select(at_one, full_like(x, -1.0), log(safe) / (1.0 - safe))


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
