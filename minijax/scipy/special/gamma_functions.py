"""The gamma function, its logarithm and logarithmic derivative, and quotients of gamma functions.

Quotients are taken of logarithms, in which Stirling's large terms cancel before they are computed
where arguments are large; see also `complex_gamma.py`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import ConcretizationTypeError, error
from minijax.core.trace import Tracer
from minijax.lax import incomplete_gamma, special
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
from minijax.lax.incomplete_gamma import stirling_rest
from minijax.lax.special import epsilon, full_like
from minijax.lax.unary import abs, exp, floor, is_finite, log, log1p, neg, round
from minijax.numpy import arithmetic, promotion, reductions, selection, shaping
from minijax.numpy.one_program import one_program
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.scipy.special.complex_gamma import complex_loggamma_p
from minijax.scipy.special.elementwise import Elementwise, real_operands


def _is_complex(x: Any) -> bool:
    return bool(dtypes.issubdtype(aval_of(x).dtype, np.complexfloating))


def _is_whole(x: Any) -> Any:
    return eq(x, floor(x))


def _rounded(y: Any, whole: Any) -> Any:
    """`y`, rounded where it is known to be whole and that changes little."""
    small = lt(abs(y), 1 / (16 * epsilon(y)))
    return select(bitwise_and(small, whole), round(y), y)


@one_program()
def gammaln(x: ArrayLike) -> Array:
    """The logarithm of the magnitude of the gamma function, `ln |Γ(x)|`.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     real; integers and booleans become floats.
    Derivative: digamma(x).
    Source:     mirrors jax.scipy.special.gammaln (0.10).

    Example:
        >>> minijax.scipy.special.gammaln(0.0)
        Array(inf, dtype=float32, weak_type=True)
    """
    return special.lgamma(*real_operands("gammaln", x=x))


@one_program()
def loggamma(x: ArrayLike) -> Array:
    """The logarithm of the gamma function: its principal branch for complex numbers.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.  Negative reals give NaN.
    Derivative: digamma(x).
    Source:     mirrors jax.scipy.special.loggamma (0.10).

    Example:
        >>> minijax.scipy.special.loggamma(-1.0)
        Array(nan, dtype=float32, weak_type=True)
    """
    x = promotion.inexact("scipy.special.loggamma", x)
    if _is_complex(x):
        return complex_loggamma_p.bind(x)
    # A product with NaN would make the derivative NaN wherever the operand is.
    return selection.where(gt(x, 0.0), special.lgamma(x), np.nan)


@one_program()
def digamma(x: ArrayLike) -> Array:
    """The digamma function, the derivative of `gammaln`.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     real; integers and booleans become floats.
    Derivative: polygamma(1, x).
    Source:     mirrors jax.scipy.special.digamma (0.10).

    Example:
        >>> minijax.scipy.special.digamma(jnp.inf)
        Array(inf, dtype=float32, weak_type=True)
    """
    return special.digamma(*real_operands("digamma", x=x))


def gamma_sign(x: Any) -> Any:
    """The formula of `gammasgn`."""
    down = floor(x)
    odd = ne(mul(floor(mul(down, 0.5)), 2.0), down)
    one = full_like(x, 1.0)
    # The reciprocal tells the zeros apart.
    below_zero = bitwise_and(eq(x, 0.0), lt(div(one, x), 0.0))
    negative = bitwise_or(bitwise_and(lt(x, 0.0), odd), below_zero)
    undefined = bitwise_or(bitwise_and(lt(x, 0.0), eq(x, down)), ne(x, x))
    return select(undefined, mul(one, np.nan), select(negative, neg(one), one))


gammasgn_p = Elementwise("gammasgn", gamma_sign, lambda x, y: full_like(x, 0.0))


@one_program()
def gammasgn(x: ArrayLike) -> Array:
    """The sign of the gamma function: 1, -1, or NaN at its poles.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     real; integers and booleans become floats.
    Derivative: zero.
    Source:     mirrors jax.scipy.special.gammasgn (0.10).

    Raises:
        ValueError: x is complex.

    Example:
        >>> minijax.scipy.special.gammasgn(jnp.array([-1.5, -1.0, -0.5, 2.0]))
        Array([ 1., nan, -1.,  1.], dtype=float32)
    """
    return gammasgn_p.bind(promotion.strong(*real_operands("gammasgn", ValueError, x=x)))


def _gamma(x: Any) -> Any:
    return mul(gamma_sign(x), _rounded(exp(special.lgamma(x)), _is_whole(x)))


gamma_p = Elementwise("gamma", _gamma, lambda x, y: mul(y, special.digamma(x)))


@one_program()
def gamma(x: ArrayLike) -> Array:
    """The gamma function, `∫ tˣ⁻¹ exp(-t) dt` from 0 to ∞: factorials, moved by one.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.
    Derivative: Γ(x) digamma(x).
    Source:     mirrors jax.scipy.special.gamma (0.10).

    Example:
        >>> minijax.scipy.special.gamma(jnp.array([-1.0, 0.0, 5.0]))
        Array([nan, inf, 24.], dtype=float32)
    """
    x = promotion.strong(promotion.inexact("scipy.special.gamma", x))
    return exp(complex_loggamma_p.bind(x)) if _is_complex(x) else gamma_p.bind(x)


@one_program()
def gammainc(a: ArrayLike, x: ArrayLike) -> Array:
    """The lower regularised incomplete gamma function `P(a, x) = ∫₀ˣ tᵃ⁻¹ e⁻ᵗ dt / Γ(a)`.

    Shapes:     a: T[s], x: T[t] -> T[broadcast of s and t].
    Dtypes:     real; integers and booleans become floats.
    Derivative: by a and by x.
    Source:     mirrors jax.scipy.special.gammainc (0.10).

    Example:
        >>> minijax.scipy.special.gammainc(2.0, jnp.array([0.0, jnp.inf]))
        Array([0., 1.], dtype=float32)
    """
    return incomplete_gamma.igamma(*real_operands("gammainc", a=a, x=x))


@one_program()
def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """The upper regularised incomplete gamma function, `1 - gammainc(a, x)`.

    Shapes:     a: T[s], x: T[t] -> T[broadcast of s and t].
    Dtypes:     real; integers and booleans become floats.
    Derivative: by a and by x.
    Source:     mirrors jax.scipy.special.gammaincc (0.10).

    Example:
        >>> minijax.scipy.special.gammaincc(2.0, jnp.array([0.0, jnp.inf]))
        Array([1., 0.], dtype=float32)
    """
    return incomplete_gamma.igammac(*real_operands("gammaincc", a=a, x=x))


def log_beta(a: Any, b: Any) -> Any:
    """The formula of `betaln`."""
    small, large = min(a, b), max(a, b)
    plain = add(special.lgamma(small), sub(special.lgamma(large), special.lgamma(add(a, b))))
    # Where one or both are large, Stirling's formula for them, of which the large terms cancel.
    size = max(large, 8.0)
    rest = sub(stirling_rest(size), stirling_rest(max(add(size, small), 8.0)))
    quotient = div(small, size)
    one = sub(
        sub(rest, mul(sub(add(size, small), 0.5), log1p(quotient))), mul(small, sub(log(size), 1.0))
    )
    one = add(special.lgamma(small), one)
    both = add(add(rest, stirling_rest(max(small, 8.0))), math.log(2 * math.pi) / 2)
    both = sub(both, mul(sub(small, 0.5), log1p(div(size, small))))
    both = sub(both, add(mul(size, log1p(quotient)), mul(log(size), 0.5)))
    result = select(lt(small, 8.0), one, both)
    # Also where the smaller is negative, if it leaves the sum large.
    enough = bitwise_or(ge(small, 0.0), ge(add(large, small), 8.0))
    usable = bitwise_and(enough, bitwise_and(ge(large, 8.0), is_finite(large)))
    return select(usable, result, plain)


betaln_p = Elementwise(
    "betaln",
    log_beta,
    lambda a, b, y: sub(special.digamma(a), special.digamma(add(a, b))),
    lambda a, b, y: sub(special.digamma(b), special.digamma(add(a, b))),
)


@one_program()
def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """The logarithm of the magnitude of the beta function.

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
    """The beta function `Γ(a) Γ(b) / Γ(a + b)`.

    Shapes:     a: T[s], b: T[t] -> T[broadcast of s and t].
    Dtypes:     real; integers and booleans become floats.
    Derivative: B(a, b) (digamma(a) - digamma(a + b)) by a, and likewise by b.
    Source:     mirrors jax.scipy.special.beta (0.10).

    Raises:
        ValueError: an argument is complex.

    Example:
        >>> minijax.scipy.special.beta(1.0, 1.0).round(4)
        Array(1., dtype=float32)
    """
    a, b = map(promotion.strong, real_operands("beta", ValueError, a=a, b=b))
    sign = mul(mul(gammasgn_p.bind(a), gammasgn_p.bind(b)), gammasgn_p.bind(add(a, b)))
    return mul(sign, exp(betaln_p.bind(a, b)))


@one_program()
def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularised incomplete beta function `∫₀ˣ tᵃ⁻¹ (1 - t)ᵇ⁻¹ dt / B(a, b)`.

    Shapes:     a: T[r], b: T[s], x: T[t] -> T[broadcast of r, s and t].
    Dtypes:     real; integers and booleans become floats.
    Derivative: xᵃ⁻¹ (1 - x)ᵇ⁻¹ / B(a, b) by x.
    Source:     mirrors jax.scipy.special.betainc (0.10).

    Raises:
        ValueError: an argument is complex, or it is differentiated by a or b.

    Example:
        >>> minijax.scipy.special.betainc(1.0, 1.0, jnp.array([0.0, 0.25, 1.0])).round(4)
        Array([0.  , 0.25, 1.  ], dtype=float32)
    """
    return special.betainc(*real_operands("betainc", ValueError, a=a, b=b, x=x))


def _factorial(n: Any) -> Any:
    result = _rounded(exp(special.lgamma(add(n, 1.0))), _is_whole(n))
    return select(lt(n, 0.0), full_like(n, 0.0), result)


factorial_p = Elementwise(
    "factorial", _factorial, lambda n, y: mul(y, special.digamma(add(max(n, 0.0), 1.0)))
)


@one_program(static=("exact",))
def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """The factorial `n!`, or `Γ(n + 1)` for numbers that are not whole; 0 for negative ones.

    Shapes:     n: T[s] -> T[s].
    Dtypes:     real; integers and booleans become floats.
    Derivative: n! digamma(n + 1).
    Source:     mirrors jax.scipy.special.factorial (0.10).

    Raises:
        NotImplementedError: exact integers are asked for.

    Example:
        >>> minijax.scipy.special.factorial(jnp.arange(6))
        Array([  1.,   1.,   2.,   6.,  24., 120.], dtype=float32)
    """
    if exact:
        error(
            NotImplementedError,
            "scipy.special.factorial",
            "integers of any size are not arrays.",
            got={"exact": exact},
            fix="exact=False, or math.factorial",
        )
    return factorial_p.bind(*real_operands("factorial", n=n))


def _comb(n: Any, k: Any) -> Any:
    valid = bitwise_and(bitwise_and(ge(n, 0.0), ge(k, 0.0)), le(k, n))
    zero = full_like(n, 0.0)
    n, k = select(valid, n, zero), select(valid, k, zero)
    logarithm = add(log_beta(add(sub(n, k), 1.0), add(k, 1.0)), log(add(n, 1.0)))
    result = _rounded(exp(neg(logarithm)), bitwise_and(_is_whole(n), _is_whole(k)))
    return select(valid, result, zero)


def _slope_of_comb(plus: Any, minus: Any, y: Any) -> Any:
    return mul(y, sub(special.digamma(add(plus, 1.0)), special.digamma(add(minus, 1.0))))


comb_p = Elementwise(
    "comb",
    _comb,
    lambda n, k, y: select(eq(y, 0.0), mul(y, 0.0), _slope_of_comb(n, sub(n, k), y)),
    lambda n, k, y: select(eq(y, 0.0), mul(y, 0.0), _slope_of_comb(sub(n, k), k, y)),
)


@one_program(static=("repetition",))
def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:  # noqa: N803  SciPy's name
    """In how many ways `k` things are chosen of `N`; 0 where they cannot be.

    Shapes:     N: T[s], k: T[t] -> T[broadcast of s and t].
    Dtypes:     real; integers and booleans become floats.
    Derivative: by N and by k, as the gamma functions' that factorials are.
    Source:     mirrors jax.scipy.special.comb (0.10).

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
        n = sub(add(n, k), 1.0)
    return comb_p.bind(n, k)


def _poch(z: Any, m: Any) -> Any:
    end = add(z, m)
    # From a pole to a pole the ratio is finite, by reflection; from a pole elsewhere it is 0.
    from_pole = bitwise_and(le(z, 0.0), _is_whole(z))
    to_pole = bitwise_and(le(end, 0.0), _is_whole(end))
    top = select(from_pole, sub(1.0, z), end)
    bottom = select(from_pole, sub(1.0, end), z)
    ratio = exp(sub(special.lgamma(top), special.lgamma(bottom)))
    positive = exp(sub(special.lgamma(m), log_beta(z, m)))
    positive = select(eq(m, np.inf), full_like(m, np.inf), positive)
    regular = select(bitwise_and(gt(z, 0.0), gt(m, 0.0)), positive, ratio)
    regular = mul(mul(gamma_sign(end), gamma_sign(z)), regular)
    odd = ne(mul(floor(mul(m, 0.5)), 2.0), floor(m))
    mirrored = select(odd, neg(ratio), ratio)
    at_pole = select(to_pole, mirrored, full_like(z, 0.0))
    result = select(from_pole, at_pole, regular)
    whole = bitwise_and(bitwise_and(_is_whole(z), _is_whole(m)), gt(m, 0.0))
    result = _rounded(result, whole)
    return select(eq(m, 0.0), full_like(z, 1.0), result)


poch_p = Elementwise(
    "poch",
    _poch,
    lambda z, m, y: mul(y, sub(special.digamma(add(z, m)), special.digamma(z))),
    lambda z, m, y: mul(y, special.digamma(add(z, m))),
)


@one_program()
def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """The rising factorial `Γ(z + m) / Γ(z)`, after Pochhammer.

    Shapes:     z: T[s], m: T[t] -> T[broadcast of s and t].
    Dtypes:     real; integers and booleans become floats.
    Derivative: y (digamma(z + m) - digamma(z)) by z, and y digamma(z + m) by m.
    Source:     mirrors jax.scipy.special.poch (0.10).

    Raises:
        ValueError: an argument is complex.

    Example:
        >>> minijax.scipy.special.poch(2.0, 3.0)
        Array(24., dtype=float32)
    """
    z, m = map(promotion.strong, real_operands("poch", ValueError, z=z, m=m))
    return poch_p.bind(z, m)


def multigammaln(a: ArrayLike, d: int | Array) -> Array:
    """The logarithm of the multivariate gamma function of dimension `d`.

    Shapes:     a: T[s] -> T[s]; d is a whole number that is known.
    Dtypes:     real; integers and booleans become floats.
    Derivative: the sum of digamma(a - i/2) over i below d.
    Source:     mirrors jax.scipy.special.multigammaln (0.10).

    Raises:
        ConcretizationTypeError: d is traced.

    Example:
        >>> minijax.scipy.special.multigammaln(jnp.float32(1.0), 1).round(4)
        Array(0., dtype=float32)
    """
    if isinstance(d, Tracer):
        error(
            ConcretizationTypeError,
            "scipy.special.multigammaln",
            "the dimension must be known: it says how many terms there are.",
            got={"d": aval_of(d)},
            fix="jit with static_argnames='d'",
        )
    return _multigammaln(a, int(d))


@one_program(static=("d",))
def _multigammaln(a: Any, d: int) -> Any:
    (a,) = real_operands("multigammaln", a=a)
    halves = (np.arange(d) / 2).astype(aval_of(a).dtype)
    terms = special.lgamma(arithmetic.subtract(shaping.expand_dims(a, -1), halves))
    return arithmetic.add(reductions.sum(terms, axis=-1), d * (d - 1) / 4 * math.log(math.pi))
