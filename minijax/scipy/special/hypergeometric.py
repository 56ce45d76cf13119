"""Bessel functions, spherical harmonics, and hypergeometric functions.

Bessel and Legendre functions come by recurrences over their order or degree.  Kummer's and Gauss's
functions of real arguments are power series where those converge; elsewhere a transformation leads
there, or to an asymptotic series (DLMF 13 and 15).  Derivatives by parameters are sums of
differentiated terms.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import ConcretizationTypeError, error
from minijax.core.trace import Tracer
from minijax.lax import special
from minijax.lax.binary import max, select
from minijax.lax.control_flow.scanning import scan
from minijax.lax.creation import convert_element_type
from minijax.lax.elementwise import Elementwise
from minijax.lax.reduction import reduce_sum
from minijax.lax.shape import broadcast_in_dim, concatenate, expand_dims
from minijax.lax.slicing import slice_in_dim
from minijax.lax.special import epsilon, full_like
from minijax.lax.unary import abs, complex, cos, exp, floor, log, round, sin, sqrt, square
from minijax.lax.window_reduction import cumprod
from minijax.numpy import creation, promotion, shaping
from minijax.numpy.logic import isnan
from minijax.numpy.promotion import one_program
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.scipy.special import elementwise
from minijax.scipy.special.elementwise import State, hypergeometric, real_operands
from minijax.scipy.special.gamma_functions import gamma_sign


@one_program()
def i0e(x: ArrayLike) -> Array:
    """Exponentially scaled modified Bessel function of order 0, `e^-|x| I₀(x)`.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     real; integers and booleans become floats.
    Derivative: i1e(x) - sign(x) i0e(x).

    Example:
        >>> minijax.scipy.special.i0e(jnp.array([0.0, jnp.inf])).round(4)
        Array([1., 0.], dtype=float32)
    """
    return special.bessel_i0e(*real_operands("i0e", x=x))


@one_program()
def i1e(x: ArrayLike) -> Array:
    """Exponentially scaled modified Bessel function of order 1, `e^-|x| I₁(x)`.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     real; integers and booleans become floats.
    Derivative: i0e(x) - (sign(x) + 1/x) i1e(x).

    Example:
        >>> minijax.scipy.special.i1e(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return special.bessel_i1e(*real_operands("i1e", x=x))


@one_program()
def i0(x: ArrayLike) -> Array:
    """Modified Bessel function of order 0.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     real; integers and booleans become floats.
    Derivative: i1(x).

    Example:
        >>> minijax.scipy.special.i0(0.0).round(4)
        Array(1., dtype=float32, weak_type=True)
    """
    (x,) = real_operands("i0", x=x)
    return exp(abs(x)) * special.bessel_i0e(x)


@one_program()
def i1(x: ArrayLike) -> Array:
    """Modified Bessel function of order 1.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     real; integers and booleans become floats.
    Derivative: i0(x) - i1(x) / x.

    Example:
        >>> minijax.scipy.special.i1(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    (x,) = real_operands("i1", x=x)
    return exp(abs(x)) * special.bessel_i1e(x)


def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """Bessel functions of the first kind, of all integer orders from 0 to `v`.

    They are computed by Miller's recurrence, which goes down from order `n_iter`: that should be
    some tens above both v and |z| (DLMF 3.6).

    Shapes:     z: T[s] -> T[v + 1, *s].
    Dtypes:     real; integers and booleans become floats.
    Derivative: that of the recurrence.

    Args:
        z: where.
        v: the highest order.
        n_iter: the order from which the recurrence goes down.

    Raises:
        ConcretizationTypeError: v or n_iter is traced.
        TypeError: v or n_iter is not an integer, or z is complex.

    Example:
        >>> minijax.scipy.special.bessel_jn(jnp.array([0.0]), v=1)
        Array([[1.],
               [0.]], dtype=float32)
    """
    orders = {"v": v, "n_iter": n_iter}
    for name, order in orders.items():
        if isinstance(order, Tracer):
            problem = f"{name} must be known: it says how many orders there are."
            got = {name: aval_of(order)}
            fix = f"jit with static_argnames={name!r}"
            error(ConcretizationTypeError, "scipy.special.bessel_jn", problem, got=got, fix=fix)
        if not hasattr(order, "__index__"):
            problem, got = f"{name} is no integer.", {name: repr(order)}
            expected = "a Python integer"
            error(TypeError, "scipy.special.bessel_jn", problem, got=got, expected=expected)
    return _bessel_jn(z, operator.index(v), operator.index(n_iter))


@one_program(static=("v", "n_iter"))
def _bessel_jn(z: ArrayLike, v: int, n_iter: int) -> Array:
    (z,) = real_operands("bessel_jn", z=creation.asarray(z))
    z = promotion.strong(z)
    aval = aval_of(z)
    last = n_iter if n_iter > v else v + 1
    tiny = float(dtypes.finfo(aval.dtype).tiny)

    def step(above: Array, order: Array) -> tuple[Array, Array]:
        # The ratio of Bessel functions of this order and the one below it.
        divisor = order * 2.0 - z * above
        ratio = z / select(divisor == 0.0, full_like(z, tiny), divisor)
        return ratio, ratio

    orders = np.arange(1, last + 1).astype(aval.dtype)
    _, ratios = scan(step, full_like(z, 0.0), orders, reverse=True)
    quotients = cumprod(ratios, axis=0)
    # J0 + 2 J2 + 2 J4 + ... = 1.
    even = reduce_sum(slice_in_dim(quotients, 1, last, stride=2), (0,))
    first = 1.0 / (even * 2.0 + 1.0)
    others = broadcast_in_dim(first, (v, *aval.shape), range(1, aval.ndim + 1)) * slice_in_dim(
        quotients, 0, v
    )
    return concatenate([expand_dims(first, (0,)), others], 0)


def sph_harm_y(
    n: ArrayLike,
    m: ArrayLike,
    theta: ArrayLike,
    phi: ArrayLike,
    diff_n: int | None = None,
    n_max: int | None = None,
) -> Array:
    """Spherical harmonics of degree `n` and order `m`, orthonormal over the sphere.

    They are 0 where |m| > n, and NaN where n > n_max.  The associated Legendre functions come by
    the recurrence over degrees of normalised ones (DLMF 14.10.3, 14.30.1).

    Shapes:     n: I[r], m: I[s], theta: T[t], phi: T[u] -> C[broadcast of all].
    Dtypes:     n and m of integers; theta and phi real; the result is complex.
    Derivative: by theta and phi.

    Args:
        n: degrees.
        m: orders.
        theta: polar angles, from 0 to π.
        phi: azimuths, from 0 to 2π.
        diff_n: derivatives, which SciPy returns; not supported.
        n_max: the largest degree, which must be given where `n` is traced.

    Raises:
        ConcretizationTypeError: n is traced and there is no n_max.
        NotImplementedError: diff_n is given.
        TypeError: n or m is not of integers.

    Example:
        >>> zero = jnp.array([0])
        >>> minijax.scipy.special.sph_harm_y(zero, zero, jnp.zeros(1), jnp.zeros(1)).round(4)
        Array([0.2821+0.j], dtype=complex64)
    """
    if diff_n is not None:
        problem = "derivatives are not returned."
        got = {"diff_n": diff_n}
        fix = "minijax.jacfwd"
        error(NotImplementedError, "scipy.special.sph_harm_y", problem, got=got, fix=fix)
    for name, x in (("n", n), ("m", m)):
        if not dtypes.issubdtype(aval_of(x).dtype, np.integer):
            problem = f"{name} is not of integers."
            fix = f"{name}.astype(int)"
            error(TypeError, "scipy.special.sph_harm_y", problem, got={name: aval_of(x)}, fix=fix)
    if n_max is None:
        if isinstance(n, Tracer):
            name, problem = (
                "scipy.special.sph_harm_y",
                "n is traced, so the largest degree is unknown.",
            )
            got, fix = {"n": aval_of(n)}, "n_max=, a Python integer"
            error(ConcretizationTypeError, name, problem, got=got, fix=fix)
        n_max = int(np.max(np.asarray(n), initial=0))
    return _sph_harm_y(n, m, theta, phi, operator.index(n_max))


@one_program(static=("n_max",))
def _sph_harm_y(n: ArrayLike, m: ArrayLike, theta: ArrayLike, phi: ArrayLike, n_max: int) -> Array:
    angles = promotion.promote_all_inexact("scipy.special.sph_harm_y", theta, phi)
    dtype = aval_of(angles[0]).dtype
    same = [convert_element_type(creation.asarray(x), dtype) for x in (n, m, *angles)]
    n, m, theta, phi = shaping.broadcast_arrays(*same)
    order = abs(m)
    legendre = _normalised_legendre(n, order, theta, n_max)
    odd = floor(order * 0.5) * 2.0 != order
    legendre = select((m < 0.0) & odd, -legendre, legendre)
    known = (n >= 0.0) & (n <= float(n_max))
    legendre = select(known, legendre, full_like(legendre, np.nan))
    turn = m * phi
    return complex(legendre * cos(turn), legendre * sin(turn))


def _normalised_legendre(n: Array, m: Array, theta: Array, n_max: int) -> Array:
    """The associated Legendre functions with the factors of spherical harmonics, for m >= 0."""
    # The sine is the root of 1 - c², which is what the functions are of.
    c, s = cos(theta), abs(sin(theta))
    one, zero = full_like(c, 1.0), full_like(c, 0.0)
    first = full_like(c, 0.5 / math.sqrt(math.pi))

    def step(state: State, degree: Array) -> tuple[State, None]:
        diagonal, here, before = state
        # Up to degree m: the function of equal degree and order.
        twice = degree * 2.0
        root = sqrt((twice + 1.0) / twice)
        diagonal = select(m >= degree, s * -root * diagonal, diagonal)
        # Beyond: the recurrence.
        is_beyond = m < degree
        lower = degree - 1.0
        gap = select(is_beyond, _difference_of_squares(degree, m), one)
        gap_before = select(is_beyond, _difference_of_squares(lower, m), zero)
        factor = sqrt((square(twice) - 1.0) / gap)
        share = sqrt(gap_before / abs(square(lower * 2.0) - 1.0))
        above = factor * (c * here - share * before)
        new = select(m == degree, diagonal, select(is_beyond, above, zero))
        is_past = n < degree
        return (diagonal, select(is_past, here, new), select(is_past, before, here)), None

    degrees = np.arange(1, n_max + 1).astype(aval_of(c).dtype)
    start = (first, select(m == 0.0, first, zero), zero)
    (_, found, _), _ = scan(step, start, degrees)
    return found


def _difference_of_squares(x: Array, y: Array) -> Array:
    return (x - y) * (x + y)


# From here on the asymptotic series of Kummer's function is as precise as the dtype.
_FAR = 80.0


def _is_pole(x: Array) -> Array:
    """Whether the gamma function of `x` is infinite."""
    return (x <= 0.0) & (x == floor(x))


def _gamma_quotient(tops: Sequence[Any], bottoms: Sequence[Any]) -> Array:
    """The product of gamma functions over others, 0 where one of the latter is infinite."""
    logarithm: Any = 0.0
    sign: Any = 1.0
    vanishes: Any = False
    for x in tops:
        logarithm = special.lgamma(x) + logarithm
        sign = gamma_sign(x) * sign
    for x in bottoms:
        logarithm = logarithm - special.lgamma(x)
        sign = sign * gamma_sign(x)
        vanishes = _is_pole(x) | vanishes
    return select(vanishes, full_like(sign, 0.0) * 0.0, sign * exp(logarithm))


def _kummer(a: Array, b: Array, x: Array) -> tuple[Array, Array, Array, Array]:
    """The parameter f and variable y >= 0 of the series, whether it is transformed, and is far.

    M(a, b, x) = exp(x) M(b - a, b, -x), where for negative x all terms have one sign.
    """
    finite = _is_pole(a) | _is_pole(b)
    turned = (x < 0.0) & ~finite
    f = select(turned, b - a, a)
    y = select(turned, -x, x)
    # The asymptotic series needs a variable that is large against the parameters.
    reach = (abs(b - f) + 1.0) * (abs(f) + 1.0)
    far = (y > max(reach, _FAR)) & ~(finite | _is_pole(f))
    return f, y, turned, far


def _hyp1f1(a: Array, b: Array, x: Array) -> Array:
    f, y, turned, far = _kummer(a, b, x)
    one = full_like(x, 1.0)
    # Half of the exponential before the sum, half after it: neither vanishes too early.
    half = select(turned, exp(y * -0.5), one)
    near = hypergeometric([f], [b], select(far, one, y), half) * half
    weight = _far_weight(f, b, y, turned, far)
    distant = weight * hypergeometric(*_far_parameters(f, b, y, far))
    result = select(far, distant, near)
    return select((a == 0.0) | (x == 0.0), one, result)


def _far_weight(f: Array, b: Array, y: Array, turned: Array, far: Array) -> Array:
    """`exp(y) y^(f - b) Γ(b) / Γ(f)`, without the exponential where that was taken out."""
    one = full_like(y, 1.0)
    safe = select(far, y, one)
    exponent = (f - b) * log(safe) + select(turned, full_like(y, 0.0), y)
    exponent = exponent + (special.lgamma(b) - special.lgamma(f))
    return gamma_sign(b) * gamma_sign(f) * exp(exponent)


def _far_parameters(
    f: Array, b: Array, y: Array, far: Array
) -> tuple[list[Array], list[Array], Array]:
    safe = select(far, 1.0 / y, full_like(y, 0.0))
    return [b - f, 1.0 - f], [], safe


def _hyp1f1_slope(index: int) -> Callable[..., Any]:
    """The derivative by parameter a (0) or b (1)."""

    def compute(a: Array, b: Array, x: Array) -> Array:
        f, y, turned, far = _kummer(a, b, x)
        one = full_like(x, 1.0)
        half = select(turned, exp(y * -0.5), one)
        weight = _far_weight(f, b, y, turned, far)
        parameters = _far_parameters(f, b, y, far)
        log_y = log(select(far, y, one))

        def near(i: int) -> Array:
            return hypergeometric([f], [b], select(far, one, y), half, slope_of=i) * half

        total = hypergeometric(*parameters)
        by_first = hypergeometric(*parameters, slope_of=0)
        by_second = hypergeometric(*parameters, slope_of=1)
        far_f = total * (log_y - special.digamma(f)) - (by_first + by_second)
        by_f = select(far, weight * far_f, near(0))
        if index == 0:
            return select(turned, -by_f, by_f)
        far_b = total * (special.digamma(b) - log_y) + by_first
        by_b = select(far, weight * far_b, near(1))
        return select(turned, by_b + by_f, by_b)

    return compute


_hyp1f1_slopes = [
    Elementwise(f"hyp1f1_slope_{name}", _hyp1f1_slope(i), None, None, None)
    for i, name in enumerate("ab")
]


def _hyp1f1_slope_x(a: Array, b: Array, x: Array, y: Array) -> Array:
    return a / b * hyp1f1_p.bind(a + 1.0, b + 1.0, x)


hyp1f1_p = Elementwise(
    "hyp1f1",
    _hyp1f1,
    lambda a, b, x, y: _hyp1f1_slopes[0].bind(a, b, x),
    lambda a, b, x, y: _hyp1f1_slopes[1].bind(a, b, x),
    _hyp1f1_slope_x,
)


@one_program()
def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Confluent hypergeometric function 1F1 (Kummer's function), `Σ (a)ₙ xⁿ / ((b)ₙ n!)`.

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


def _is_finite_series(a: Array, b: Array) -> Array:
    return _is_pole(a) | _is_pole(b)


def _pfaff(a: Array, b: Array, c: Array, x: Array) -> _Gauss:
    """The function of a negative x as one of x / (x - 1), times (1 - x)^-a."""
    swaps = _is_pole(b) | ((abs(b) < abs(a)) & ~_is_pole(a))
    a, b = select(swaps, b, a), select(swaps, a, b)
    negative = x < 0.0
    one = full_like(x, 1.0)
    w = select(negative, 1.0 / (1.0 - x), 1.0 - x)
    z = select(negative, -x * w, x)
    factor = exp(a * log(select(negative, w, one)))
    return _Gauss(a, select(negative, c - b, b), c, z, w, factor)


def _hyp2f1(a: Array, b: Array, c: Array, x: Array) -> Array:
    g = _pfaff(a, b, c, x)
    one, zero = full_like(x, 1.0), full_like(x, 0.0)
    s = g.c - g.a - g.b
    ends = _is_finite_series(g.a, g.b)
    # (1 - z)^s F(c - a, c - b; c; z): a function that ends, or one that converges faster.
    ends_after = _is_finite_series(g.c - g.a, g.c - g.b) & ~ends
    off = abs(s - round(s))
    is_whole = off < 8 * epsilon(x)
    close = (g.z > _NEAR_ONE) & ~(ends | ends_after)
    blurred = ~is_whole & (off < 0.01)
    logarithmic = close & is_whole
    distinct = close & ~(is_whole | blurred)
    direct = ~(logarithmic | distinct)
    first = select(ends_after, g.c - g.a, g.a)
    second = select(ends_after, g.c - g.b, g.b)
    inside = direct & ((g.z <= 1.0) | ends)
    series = hypergeometric([first, second], [g.c], select(inside, g.z, zero))
    positive = g.w > 0.0
    power = exp(s * log(select(positive, g.w, one)))
    value = series * select(ends_after, power, one)
    value = select(distinct, _about_one(g, s, distinct, power), value)
    value = select(logarithmic, _with_logarithm(g, s, logarithmic), value)
    at_one = (g.z == 1.0) & ~ends
    limit = _gamma_quotient([g.c, s], [g.c - g.a, g.c - g.b])
    value = select(at_one, select(s > 0.0, limit, one * np.inf), value)
    beyond = (x > 1.0) & ~ends
    result = select(beyond, one * np.inf, g.factor * value)
    return select(isnan(x), x, result)


def _about_one(g: _Gauss, s: Array, used: Array, power: Array) -> Array:
    """The two series in 1 - z where s = c - a - b is not whole (DLMF 15.8.4)."""
    w = select(used, g.w, full_like(g.w, 0.0))
    ca, cb = g.c - g.a, g.c - g.b
    regular = hypergeometric([g.a, g.b], [1.0 - s], w)
    singular = hypergeometric([ca, cb], [s + 1.0], w)
    regular = _gamma_quotient([g.c, s], [ca, cb]) * regular
    singular = _gamma_quotient([g.c, -s], [g.a, g.b]) * singular
    return regular + power * singular


def _with_logarithm(g: _Gauss, s: Array, used: Array) -> Array:
    """The same where s is whole, the limit of which has a logarithm (DLMF 15.8.10)."""
    one, zero = full_like(s, 1.0), full_like(s, 0.0)
    used = used & (g.w > 0.0)
    m = select(used, abs(round(s)), zero)
    w = select(used, g.w, full_like(s, 0.5))
    # For s < 0 Euler's transformation turns its sign.
    turned = s < -0.5
    a = select(used, select(turned, g.c - g.a, g.a), one)
    b = select(used, select(turned, g.c - g.b, g.b), one)
    outer = select(turned, exp(-(m * log(w))), one)
    am, bm = a + m, b + m

    def finite_step(n: Array, state: State) -> tuple[Array, State]:
        term, total = state
        divisor = (1.0 - m + n) * (n + 1.0)
        divisor = select(divisor == 0.0, one, divisor)
        new = term * ((a + n) * (b + n) * w / divisor)
        goes_on = n + 1.0 < m
        new = select(goes_on, new, zero)
        return goes_on, (new, total + new)

    def step(n: Array, state: State) -> tuple[Array, State]:
        term, digammas, total = state
        down, up = n + 1.0, n + 1.0 + m
        new = term * ((am + n) * (bm + n) * w / (down * up))
        rise = 1.0 / (am + n) + 1.0 / (bm + n)
        digammas = digammas + (rise - (1.0 / down + 1.0 / up))
        part = new * digammas
        changes = (n < 2.0) | (abs(part) > abs(total) * (epsilon(w) / 4))
        return changes, (new, digammas, total + part)

    start = select(m > 0.0, one, zero)
    finite = elementwise.converge(finite_step, (start, start))[1]
    digammas = special.digamma(am) + special.digamma(bm)
    digammas = digammas - (special.digamma(one) + special.digamma(m + 1.0))
    digammas = digammas + log(w)
    term = exp(m * log(w) - special.lgamma(m + 1.0))
    infinite = elementwise.converge(step, (term, digammas, term * digammas))[2]
    odd = floor(m * 0.5) * 2.0 != m
    infinite = infinite * _gamma_quotient([g.c], [a, b])
    finite = finite * _gamma_quotient([g.c, max(m, 1.0)], [am, bm])
    return outer * (finite + select(odd, infinite, -infinite))


def _hyp2f1_slope(index: int) -> Callable[..., Any]:
    """The derivative by parameter a (0), b (1) or c (2), by the series in z alone."""

    def compute(a: Array, b: Array, c: Array, x: Array) -> Array:
        negative = x < 0.0
        w = select(negative, 1.0 / (1.0 - x), full_like(x, 1.0))
        z = select(negative, -x * w, x)
        second = select(negative, c - b, b)
        factor = exp(a * log(w))

        def by(i: int) -> Array:
            return hypergeometric([a, second], [c], z, slope_of=i, most_steps=20000.0)

        if index == 1:
            return factor * (by(1) * select(negative, -full_like(x, 1.0), full_like(x, 1.0)))
        if index == 2:
            return factor * (by(2) + select(negative, by(1), full_like(x, 0.0)))
        value = hypergeometric([a, second], [c], z, most_steps=20000.0)
        return factor * (by(0) + log(w) * value)

    return compute


_hyp2f1_slopes = [
    Elementwise(f"hyp2f1_slope_{name}", _hyp2f1_slope(i), None, None, None, None)
    for i, name in enumerate("abc")
]


def _hyp2f1_slope_x(a: Array, b: Array, c: Array, x: Array, y: Array) -> Array:
    raised = hyp2f1_p.bind(a + 1.0, b + 1.0, c + 1.0, x)
    return a * b / c * raised


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
    """Gauss hypergeometric function 2F1, `Σ (a)ₙ (b)ₙ xⁿ / ((c)ₙ n!)`, continued to x < -1.

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
