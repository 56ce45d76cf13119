"""Sine, cosine and Fresnel integrals.

Near 0 they are Chebyshev series; far off they oscillate with phases that are known and amplitudes
that are Chebyshev series (Abramowitz and Stegun, Handbook of Mathematical Functions, 5.2.8 and
7.3.9).  The coefficients were computed to 40 digits by interpolation.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minijax.lax.binary import add, div, eq, lt, min, mul, rem, sub
from minijax.lax.choice import select
from minijax.lax.special import epsilon, full_like
from minijax.lax.unary import abs, cos, log, neg, sign, sin, square
from minijax.numpy import promotion
from minijax.numpy.one_program import one_program
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.scipy.special.elementwise import Elementwise, chebyshev, real_operands

_EULER = 0.5772156649015329

# Si(x) / x for |x| <= 6, in x²/18 - 1.
_SI_NEAR = (
    1.0175668393416928,
    -0.36229678488974704,
    0.10789221711536721,
    -0.018830204411799018,
    0.0020405502643601283,
    -0.0001487433956038126,
    7.766261124466676e-06,
    -3.044691359351253e-07,
    9.290471558889857e-09,
    -2.2692965524032308e-10,
    4.5379981848801926e-12,
    -7.567162163119217e-14,
    1.0683964853782718e-15,
)

# (Ci(x) - ln x - γ) / x² for x <= 6, in x²/18 - 1.
_CI_NEAR = (
    -0.2804486526288061,
    0.08875416506158704,
    -0.01841833890650003,
    0.0023858220785470917,
    -0.00020445746330252182,
    1.2322166011773935e-05,
    -5.487245229260128e-07,
    1.8765710225710948e-08,
    -5.080525355582219e-10,
    1.115695523277196e-11,
    -2.0271537211071305e-13,
    3.0979253389659693e-15,
    -4.0374463501384964e-17,
)

# The amplitudes of Si and Ci beyond 6, x f(x) in (x² - 108) / (x² + 36).
_SICI_F_FAR = (
    1.961162523983832,
    0.021709055130582487,
    -0.0026114627455306695,
    0.00036633281171301573,
    -5.195678183940394e-05,
    7.767615016222717e-06,
    -1.1540300038623998e-06,
    1.7922965082149316e-07,
    -2.7043930416074927e-08,
    4.367755593810957e-09,
    -6.468009376246685e-10,
    1.1300893887538433e-10,
    -1.4813744565998284e-11,
    3.3308138711489143e-12,
    -2.2386027941799594e-13,
    1.3975044021551469e-13,
    1.3414367494179236e-14,
    1.072313615786882e-14,
    3.0224322437261258e-15,
    1.3167941693601692e-15,
    4.896735643035622e-16,
    2.0086524588429852e-16,
    8.158890665816417e-17,
    3.4232618685101523e-17,
)

# x² g(x), in (x² - 126) / (x² + 54).
_SICI_G_FAR = (
    1.9001534422954514,
    0.05710590796718131,
    -0.00842077278833499,
    0.0014569460569829728,
    -0.00025963416081654483,
    4.851822121576517e-05,
    -9.183051441540228e-06,
    1.787563550509188e-06,
    -3.492792206952081e-07,
    6.985512055739965e-08,
    -1.3904226964684288e-08,
    2.8425926288734653e-09,
    -5.704089465714997e-10,
    1.1947037526446315e-10,
    -2.380351779032138e-11,
    5.191415424940095e-12,
    -9.89620396200363e-13,
    2.377810374993147e-13,
    -3.850500381998658e-14,
    1.2263772171062522e-14,
    -9.962100078159793e-16,
    8.273932439457875e-16,
    7.010002085459597e-17,
    8.459983967155277e-17,
)

# C(x) / x for |x| <= 2, in x⁴/8 - 1.
_C_NEAR = (
    0.7948143771519961,
    -0.3100070983680217,
    0.21349075614188737,
    -0.06678900553022198,
    0.011085973995082385,
    -0.0011365259733006202,
    7.927825032635591e-05,
    -4.013934222204706e-06,
    1.544413153283575e-07,
    -4.6730963378884215e-09,
    1.1418677215891532e-10,
    -2.301397740065535e-12,
    3.8926496918449476e-14,
    -5.605750788138861e-16,
)

# S(x) / x³ for |x| <= 2, in x⁴/8 - 1.
_S_NEAR = (
    0.3983734772838045,
    -0.22356648669212584,
    0.08202822552969624,
    -0.016602561737554058,
    0.0020382145350386067,
    -0.00016643843000521268,
    9.674781743977045e-06,
    -4.2065853292879686e-07,
    1.4200048580250818e-08,
    -3.8304499680234226e-10,
    8.448489681753256e-12,
    -1.5523581348897443e-13,
    2.4133399377221522e-15,
    -3.216107060101517e-17,
)

# The amplitudes of C and S beyond 2, x f(x) in (x⁴ - 48) / (x⁴ + 16).
_FRESNEL_F_FAR = (
    0.6321743007624936,
    0.002519521037116285,
    -0.00034023116857924115,
    4.992386021777969e-05,
    -7.472255803439941e-06,
    1.1478559602805428e-06,
    -1.7770658719368451e-07,
    2.7977279455730443e-08,
    -4.407054647279592e-09,
    7.062073301262673e-10,
    -1.1206831602073997e-10,
    1.8308109821673182e-11,
    -2.8824917175081125e-12,
    4.897131000496672e-13,
    -7.281002356913923e-14,
    1.4077200509478688e-14,
    -1.568404202493936e-15,
    5.103203751766996e-16,
    6.415771594901116e-18,
    3.202880930189173e-17,
)

# x³ g(x), in (x⁴ - 56) / (x⁴ + 24).
_FRESNEL_G_FAR = (
    0.19651408766870274,
    0.0035629692149091396,
    -0.0005891658101444411,
    0.00010720192538414229,
    -2.011608186682685e-05,
    3.886439967483979e-06,
    -7.62504005404286e-07,
    1.5204372527117804e-07,
    -3.058893721105273e-08,
    6.223908616310858e-09,
    -1.2727826815245317e-09,
    2.6276388415164265e-10,
    -5.4336469974304204e-11,
    1.1350464586723686e-11,
    -2.3634915431620236e-12,
    4.994594670389112e-13,
    -1.0415200414197654e-13,
    2.2365403760232365e-14,
    -4.6146866040263696e-15,
    1.0247384778796328e-15,
    -2.0186407202729403e-16,
    4.921370436575135e-17,
    -8.15740211276394e-18,
)


def _mapped(z: Any, start: float, scale: float) -> Any:
    """Numbers from `start` to infinity, mapped onto [-1, 1]."""
    z = min(z, 1e30)
    return div(sub(z, start + scale), add(z, scale - start))


def _sici_amplitudes(x: Any) -> tuple[Any, Any]:
    z = square(x)
    f = div(chebyshev(_mapped(z, 36.0, 72.0), _SICI_F_FAR), x)
    g = div(chebyshev(_mapped(z, 36.0, 90.0), _SICI_G_FAR), z)
    return f, g


def _sine_integral(x: Any) -> Any:
    size = abs(x)
    near = mul(x, chebyshev(sub(div(square(x), 18.0), 1.0), _SI_NEAR))
    f, g = _sici_amplitudes(size)
    waves = add(mul(f, cos(size)), mul(g, sin(size)))
    # The sine of infinity is no number; what it is multiplied with is 0.
    waves = select(eq(size, np.inf), full_like(x, 0.0), waves)
    far = mul(sign(x), sub(math.pi / 2, waves))
    return select(lt(size, 6.0), near, far)


def _cosine_integral(x: Any) -> Any:
    size = abs(x)
    z = square(x)
    near = add(mul(z, chebyshev(sub(div(z, 18.0), 1.0), _CI_NEAR)), add(log(size), _EULER))
    f, g = _sici_amplitudes(size)
    far = sub(mul(f, sin(size)), mul(g, cos(size)))
    infinite = select(lt(x, 0.0), full_like(x, np.nan), full_like(x, 0.0))
    return select(lt(size, 6.0), near, select(eq(size, np.inf), infinite, far))


def _sinc(x: Any, y: Any) -> Any:
    at_zero = eq(x, 0.0)
    return select(at_zero, full_like(x, 1.0), div(sin(x), select(at_zero, full_like(x, 1.0), x)))


sine_integral_p = Elementwise("sine_integral", _sine_integral, _sinc)
cosine_integral_p = Elementwise("cosine_integral", _cosine_integral, lambda x, y: div(cos(x), x))


@one_program()
def sici(x: ArrayLike) -> tuple[Array, Array]:
    """The sine and cosine integrals, `∫₀ˣ sin(t)/t dt` and `γ + ln |x| + ∫₀ˣ (cos(t) - 1)/t dt`.

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


def _phase(x: Any) -> Any:
    """`π/2 x²` less a multiple of 2π.

    The square is taken of a part of x with few bits, of the rest, and of their product: each is
    exact, or so small that its rounding is of no account.
    """
    scale = 2.0 ** (24 - 12 if epsilon(x) > 1e-8 else 53 - 26) + 1
    spread = mul(x, scale)
    high = sub(spread, sub(spread, x))
    low = sub(x, high)
    turns = add(rem(square(high), 4.0), rem(mul(mul(high, low), 2.0), 4.0))
    return mul(add(turns, square(low)), math.pi / 2)


def _fresnel(x: Any, near: Any, cosine: bool) -> Any:
    size = abs(x)
    bounded = min(size, 1e9)
    z = square(square(bounded))
    f = div(chebyshev(_mapped(z, 16.0, 32.0), _FRESNEL_F_FAR), bounded)
    g = div(chebyshev(_mapped(z, 16.0, 40.0), _FRESNEL_G_FAR), mul(square(bounded), bounded))
    phase = _phase(bounded)
    s, c = sin(phase), cos(phase)
    waves = sub(mul(f, s), mul(g, c)) if cosine else neg(add(mul(f, c), mul(g, s)))
    waves = select(eq(size, np.inf), full_like(x, 0.0), waves)
    return select(lt(size, 2.0), near, mul(sign(x), add(waves, 0.5)))


def _fresnel_sine(x: Any) -> Any:
    z = square(square(x))
    series = chebyshev(sub(div(z, 8.0), 1.0), _S_NEAR)
    return _fresnel(x, mul(mul(square(x), x), series), False)


def _fresnel_cosine(x: Any) -> Any:
    z = square(square(x))
    return _fresnel(x, mul(x, chebyshev(sub(div(z, 8.0), 1.0), _C_NEAR)), True)


fresnel_sine_p = Elementwise("fresnel_sine", _fresnel_sine, lambda x, y: sin(_phase(x)))
fresnel_cosine_p = Elementwise("fresnel_cosine", _fresnel_cosine, lambda x, y: cos(_phase(x)))


@one_program()
def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """The Fresnel integrals `∫₀ˣ sin(πt²/2) dt` and `∫₀ˣ cos(πt²/2) dt`.

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
