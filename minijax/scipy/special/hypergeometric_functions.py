"""Kummer's and Gauss's hypergeometric functions of real arguments.

Each is a power series where that converges; elsewhere a transformation leads there, or to an
asymptotic series (DLMF 13 and 15).  Derivatives by parameters are sums of differentiated terms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.lax import special
from minijax.lax.binary import (
    add,
    bitwise_and,
    bitwise_or,
    div,
    eq,
    gt,
    le,
    lt,
    max,
    mul,
    ne,
    sub,
)
from minijax.lax.choice import select
from minijax.lax.special import epsilon, full_like
from minijax.lax.unary import abs, bitwise_not, exp, floor, log, neg, round
from minijax.numpy import creation, promotion
from minijax.numpy.one_program import one_program
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.scipy.special.elementwise import Elementwise, real_operands
from minijax.scipy.special.gamma_functions import gamma_sign
from minijax.scipy.special.series import converge, hypergeometric

# From here on the asymptotic series of Kummer's function is as precise as the dtype.
_FAR = 80.0


def _is_pole(x: Any) -> Any:
    """Whether the gamma function of `x` is infinite."""
    return bitwise_and(le(x, 0.0), eq(x, floor(x)))


def _gamma_quotient(tops: Sequence[Any], bottoms: Sequence[Any]) -> Any:
    """The product of gamma functions over others, 0 where one of the latter is infinite."""
    logarithm: Any = 0.0
    sign: Any = 1.0
    vanishes: Any = False
    for x in tops:
        logarithm = add(special.lgamma(x), logarithm)
        sign = mul(gamma_sign(x), sign)
    for x in bottoms:
        logarithm = sub(logarithm, special.lgamma(x))
        sign = mul(sign, gamma_sign(x))
        vanishes = bitwise_or(_is_pole(x), vanishes)
    return select(vanishes, mul(full_like(sign, 0.0), 0.0), mul(sign, exp(logarithm)))


def _kummer(a: Any, b: Any, x: Any) -> tuple[Any, Any, Any, Any]:
    """The parameter f and variable y >= 0 of the series, whether it is transformed, and is far.

    M(a, b, x) = exp(x) M(b - a, b, -x), where for negative x all terms have one sign.
    """
    finite = bitwise_or(_is_pole(a), _is_pole(b))
    turned = bitwise_and(lt(x, 0.0), bitwise_not(finite))
    f = select(turned, sub(b, a), a)
    y = select(turned, neg(x), x)
    # The asymptotic series needs a variable that is large against the parameters.
    reach = mul(add(abs(sub(b, f)), 1.0), add(abs(f), 1.0))
    far = bitwise_and(gt(y, max(reach, _FAR)), bitwise_not(bitwise_or(finite, _is_pole(f))))
    return f, y, turned, far


def _hyp1f1(a: Any, b: Any, x: Any) -> Any:
    f, y, turned, far = _kummer(a, b, x)
    one = full_like(x, 1.0)
    # Half of the exponential before the sum, half after it: neither vanishes too early.
    half = select(turned, exp(mul(y, -0.5)), one)
    near = mul(hypergeometric([f], [b], select(far, one, y), half), half)
    weight = _far_weight(f, b, y, turned, far)
    distant = mul(weight, hypergeometric(*_far_parameters(f, b, y, far)))
    result = select(far, distant, near)
    return select(bitwise_or(eq(a, 0.0), eq(x, 0.0)), one, result)


def _far_weight(f: Any, b: Any, y: Any, turned: Any, far: Any) -> Any:
    """`exp(y) y^(f - b) Γ(b) / Γ(f)`, without the exponential where that was taken out."""
    one = full_like(y, 1.0)
    safe = select(far, y, one)
    exponent = add(mul(sub(f, b), log(safe)), select(turned, full_like(y, 0.0), y))
    exponent = add(exponent, sub(special.lgamma(b), special.lgamma(f)))
    return mul(mul(gamma_sign(b), gamma_sign(f)), exp(exponent))


def _far_parameters(f: Any, b: Any, y: Any, far: Any) -> tuple[list[Any], list[Any], Any]:
    safe = select(far, div(1.0, y), full_like(y, 0.0))
    return [sub(b, f), sub(1.0, f)], [], safe


def _hyp1f1_slope(index: int) -> Callable[..., Any]:
    """The derivative by parameter a (0) or b (1)."""

    def compute(a: Any, b: Any, x: Any) -> Any:
        f, y, turned, far = _kummer(a, b, x)
        one = full_like(x, 1.0)
        half = select(turned, exp(mul(y, -0.5)), one)
        weight = _far_weight(f, b, y, turned, far)
        parameters = _far_parameters(f, b, y, far)
        log_y = log(select(far, y, one))

        def near(i: int) -> Any:
            return mul(hypergeometric([f], [b], select(far, one, y), half, slope_of=i), half)

        total = hypergeometric(*parameters)
        by_first = hypergeometric(*parameters, slope_of=0)
        by_second = hypergeometric(*parameters, slope_of=1)
        far_f = sub(mul(total, sub(log_y, special.digamma(f))), add(by_first, by_second))
        by_f = select(far, mul(weight, far_f), near(0))
        if index == 0:
            return select(turned, neg(by_f), by_f)
        far_b = add(mul(total, sub(special.digamma(b), log_y)), by_first)
        by_b = select(far, mul(weight, far_b), near(1))
        return select(turned, add(by_b, by_f), by_b)

    return compute


_hyp1f1_slopes = [
    Elementwise(f"hyp1f1_slope_{name}", _hyp1f1_slope(i), None, None, None)
    for i, name in enumerate("ab")
]


def _hyp1f1_slope_x(a: Any, b: Any, x: Any, y: Any) -> Any:
    return mul(div(a, b), hyp1f1_p.bind(add(a, 1.0), add(b, 1.0), x))


hyp1f1_p = Elementwise(
    "hyp1f1",
    _hyp1f1,
    lambda a, b, x, y: _hyp1f1_slopes[0].bind(a, b, x),
    lambda a, b, x, y: _hyp1f1_slopes[1].bind(a, b, x),
    _hyp1f1_slope_x,
)


@one_program()
def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Kummer's confluent hypergeometric function `Σ (a)ₙ xⁿ / ((b)ₙ n!)`.

    Shapes:     a: T[r], b: T[s], x: T[t] -> T[broadcast of r, s and t].
    Dtypes:     real; integers and booleans become floats.
    Derivative: by all arguments; a/b hyp1f1(a + 1, b + 1, x) by x.
    Source:     mirrors jax.scipy.special.hyp1f1 (0.10); DLMF 13.2.39 and 13.7.2.

    Raises:
        ValueError: an argument is complex.

    Example:
        >>> minijax.scipy.special.hyp1f1(-1.0, 2.0, 4.0)
        Array(-1., dtype=float32)
    """
    a, b, x = map(creation.asarray, (a, b, x))
    arrays = real_operands("hyp1f1", ValueError, a=a, b=b, x=x)
    return hyp1f1_p.bind(*map(promotion.strong, arrays))


# From here to 1, the series in 1 - z converges faster than that in z.
_NEAR_ONE = 0.9


class _Gauss(NamedTuple):
    """A function F(a, b; c; z) with 0 <= z <= 1, or one that ends; `w` is 1 - z."""

    a: Any
    b: Any
    c: Any
    z: Any
    w: Any
    factor: Any


def _is_finite_series(a: Any, b: Any) -> Any:
    return bitwise_or(_is_pole(a), _is_pole(b))


def _pfaff(a: Any, b: Any, c: Any, x: Any) -> _Gauss:
    """The function of a negative x as one of x / (x - 1), times (1 - x)^-a."""
    swaps = bitwise_or(_is_pole(b), bitwise_and(lt(abs(b), abs(a)), bitwise_not(_is_pole(a))))
    a, b = select(swaps, b, a), select(swaps, a, b)
    negative = lt(x, 0.0)
    one = full_like(x, 1.0)
    w = select(negative, div(1.0, sub(1.0, x)), sub(1.0, x))
    z = select(negative, mul(neg(x), w), x)
    factor = exp(mul(a, log(select(negative, w, one))))
    return _Gauss(a, select(negative, sub(c, b), b), c, z, w, factor)


def _hyp2f1(a: Any, b: Any, c: Any, x: Any) -> Any:
    g = _pfaff(a, b, c, x)
    one, zero = full_like(x, 1.0), full_like(x, 0.0)
    s = sub(sub(g.c, g.a), g.b)
    ends = _is_finite_series(g.a, g.b)
    # (1 - z)^s F(c - a, c - b; c; z): a function that ends, or one that converges faster.
    ends_after = bitwise_and(_is_finite_series(sub(g.c, g.a), sub(g.c, g.b)), bitwise_not(ends))
    off = abs(sub(s, round(s)))
    is_whole = lt(off, 8 * epsilon(x))
    close = bitwise_and(gt(g.z, _NEAR_ONE), bitwise_not(bitwise_or(ends, ends_after)))
    blurred = bitwise_and(bitwise_not(is_whole), lt(off, 0.01))
    logarithmic = bitwise_and(close, is_whole)
    distinct = bitwise_and(close, bitwise_not(bitwise_or(is_whole, blurred)))
    direct = bitwise_not(bitwise_or(logarithmic, distinct))
    first = select(ends_after, sub(g.c, g.a), g.a)
    second = select(ends_after, sub(g.c, g.b), g.b)
    inside = bitwise_and(direct, bitwise_or(le(g.z, 1.0), ends))
    series = hypergeometric([first, second], [g.c], select(inside, g.z, zero))
    positive = gt(g.w, 0.0)
    power = exp(mul(s, log(select(positive, g.w, one))))
    value = mul(series, select(ends_after, power, one))
    value = select(distinct, _about_one(g, s, distinct, power), value)
    value = select(logarithmic, _with_logarithm(g, s, logarithmic), value)
    at_one = bitwise_and(eq(g.z, 1.0), bitwise_not(ends))
    limit = _gamma_quotient([g.c, s], [sub(g.c, g.a), sub(g.c, g.b)])
    value = select(at_one, select(gt(s, 0.0), limit, mul(one, np.inf)), value)
    beyond = bitwise_and(gt(x, 1.0), bitwise_not(ends))
    result = select(beyond, mul(one, np.inf), mul(g.factor, value))
    return select(ne(x, x), x, result)


def _about_one(g: _Gauss, s: Any, used: Any, power: Any) -> Any:
    """The two series in 1 - z where s = c - a - b is not whole (DLMF 15.8.4)."""
    w = select(used, g.w, full_like(g.w, 0.0))
    ca, cb = sub(g.c, g.a), sub(g.c, g.b)
    regular = hypergeometric([g.a, g.b], [sub(1.0, s)], w)
    singular = hypergeometric([ca, cb], [add(s, 1.0)], w)
    regular = mul(_gamma_quotient([g.c, s], [ca, cb]), regular)
    singular = mul(_gamma_quotient([g.c, neg(s)], [g.a, g.b]), singular)
    return add(regular, mul(power, singular))


def _with_logarithm(g: _Gauss, s: Any, used: Any) -> Any:
    """The same where s is whole, the limit of which has a logarithm (DLMF 15.8.10)."""
    one, zero = full_like(s, 1.0), full_like(s, 0.0)
    used = bitwise_and(used, gt(g.w, 0.0))
    m = select(used, abs(round(s)), zero)
    w = select(used, g.w, full_like(s, 0.5))
    # For s < 0 Euler's transformation turns its sign.
    turned = lt(s, -0.5)
    a = select(used, select(turned, sub(g.c, g.a), g.a), one)
    b = select(used, select(turned, sub(g.c, g.b), g.b), one)
    outer = select(turned, exp(neg(mul(m, log(w)))), one)
    am, bm = add(a, m), add(b, m)

    def finite_step(n: Any, state: Any) -> tuple[Any, Any]:
        term, total = state
        divisor = mul(add(sub(1.0, m), n), add(n, 1.0))
        divisor = select(eq(divisor, 0.0), one, divisor)
        new = mul(term, div(mul(mul(add(a, n), add(b, n)), w), divisor))
        goes_on = lt(add(n, 1.0), m)
        new = select(goes_on, new, zero)
        return goes_on, (new, add(total, new))

    def step(n: Any, state: Any) -> tuple[Any, Any]:
        term, digammas, total = state
        down, up = add(n, 1.0), add(add(n, 1.0), m)
        new = mul(term, div(mul(mul(add(am, n), add(bm, n)), w), mul(down, up)))
        rise = add(div(1.0, add(am, n)), div(1.0, add(bm, n)))
        digammas = add(digammas, sub(rise, add(div(1.0, down), div(1.0, up))))
        part = mul(new, digammas)
        changes = bitwise_or(lt(n, 2.0), gt(abs(part), mul(abs(total), epsilon(w) / 4)))
        return changes, (new, digammas, add(total, part))

    start = select(gt(m, 0.0), one, zero)
    finite = converge(finite_step, (start, start))[1]
    digammas = add(special.digamma(am), special.digamma(bm))
    digammas = sub(digammas, add(special.digamma(one), special.digamma(add(m, 1.0))))
    digammas = add(digammas, log(w))
    term = exp(sub(mul(m, log(w)), special.lgamma(add(m, 1.0))))
    infinite = converge(step, (term, digammas, mul(term, digammas)))[2]
    odd = ne(mul(floor(mul(m, 0.5)), 2.0), m)
    infinite = mul(infinite, _gamma_quotient([g.c], [a, b]))
    finite = mul(finite, _gamma_quotient([g.c, max(m, 1.0)], [am, bm]))
    return mul(outer, add(finite, select(odd, infinite, neg(infinite))))


def _hyp2f1_slope(index: int) -> Callable[..., Any]:
    """The derivative by parameter a (0), b (1) or c (2), by the series in z alone."""

    def compute(a: Any, b: Any, c: Any, x: Any) -> Any:
        negative = lt(x, 0.0)
        w = select(negative, div(1.0, sub(1.0, x)), full_like(x, 1.0))
        z = select(negative, mul(neg(x), w), x)
        second = select(negative, sub(c, b), b)
        factor = exp(mul(a, log(w)))

        def by(i: int) -> Any:
            return hypergeometric([a, second], [c], z, slope_of=i, most_steps=20000.0)

        if index == 1:
            return mul(
                factor, mul(by(1), select(negative, neg(full_like(x, 1.0)), full_like(x, 1.0)))
            )
        if index == 2:
            return mul(factor, add(by(2), select(negative, by(1), full_like(x, 0.0))))
        value = hypergeometric([a, second], [c], z, most_steps=20000.0)
        return mul(factor, add(by(0), mul(log(w), value)))

    return compute


_hyp2f1_slopes = [
    Elementwise(f"hyp2f1_slope_{name}", _hyp2f1_slope(i), None, None, None, None)
    for i, name in enumerate("abc")
]


def _hyp2f1_slope_x(a: Any, b: Any, c: Any, x: Any, y: Any) -> Any:
    raised = hyp2f1_p.bind(add(a, 1.0), add(b, 1.0), add(c, 1.0), x)
    return mul(div(mul(a, b), c), raised)


hyp2f1_p = Elementwise(
    "hyp2f1",
    _hyp2f1,
    lambda a, b, c, x, y: _hyp2f1_slopes[0].bind(a, b, c, x),
    lambda a, b, c, x, y: _hyp2f1_slopes[1].bind(a, b, c, x),
    lambda a, b, c, x, y: _hyp2f1_slopes[2].bind(a, b, c, x),
    _hyp2f1_slope_x,
)


@one_program()
def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    """Gauss's hypergeometric function `Σ (a)ₙ (b)ₙ xⁿ / ((c)ₙ n!)`, continued to x < -1.

    Shapes:     a: T[q], b: T[r], c: T[s], x: T[t] -> T[broadcast of all].
    Dtypes:     real; integers and booleans become floats.  Infinite for x > 1, where it is
        complex, unless the series ends.
    Derivative: by all arguments; ab/c hyp2f1(a + 1, b + 1, c + 1, x) by x.
    Source:     mirrors jax.scipy.special.hyp2f1 (0.10); DLMF 15.8.

    Raises:
        TypeError: an argument is complex.

    Example:
        >>> minijax.scipy.special.hyp2f1(-1.0, 2.0, 4.0, 4.0)
        Array(-1., dtype=float32)
    """
    a, b, c, x = map(creation.asarray, (a, b, c, x))
    arrays = real_operands("hyp2f1", a=a, b=b, c=c, x=x)
    return hyp2f1_p.bind(*map(promotion.strong, arrays))
