"""Error functions of real numbers, Dawson's integral, and the Faddeeva function.

The scaled functions are Chebyshev series in variables that map a half-line onto [-1, 1], after
Shepherd and Laframboise, Math. Comp. 36 (1981), 249; their coefficients were computed to 40 digits
by interpolation.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.cache import Cache
from minijax.lax import families, special
from minijax.lax.binary import add, div, eq, lt, min, mul, sub
from minijax.lax.choice import select
from minijax.lax.convert import convert_element_type
from minijax.lax.special import epsilon
from minijax.lax.unary import abs, complex, exp, floor, imag, neg, real, square
from minijax.numpy import promotion
from minijax.numpy.one_program import one_program
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.scipy.special.elementwise import Elementwise, chebyshev, number_like, real_operands

_ROOT_OF_PI = math.sqrt(math.pi)

# (1 + 2x) erfcx(x) for x >= 0, in (x - 3.75) / (x + 3.75).
_ERFCX = (
    2.3551578691348034,
    -0.004590054580646478,
    -0.08424913336651792,
    0.05920993999819189,
    -0.026658668435305753,
    0.009074997670705265,
    -0.002413163540417608,
    0.0004907758365258086,
    -6.916973302501207e-05,
    4.13902798607301e-06,
    7.74038306619849e-07,
    -2.1886401049234397e-07,
    1.076499946567091e-08,
    4.521959811218287e-09,
    -7.754400208831351e-10,
    -6.318088340886684e-11,
    2.86879501093067e-11,
    1.9455868545777347e-13,
    -9.65469674843344e-13,
    3.25254814814874e-14,
    3.3478119482868056e-14,
    -1.864562880419313e-15,
    -1.2507950530688648e-15,
    7.418235256624044e-17,
    5.068148904796111e-17,
)

# dawsn(x) / x for x² <= 9, in 2x²/9 - 1.
_DAWSN_NEAR = (
    0.5908048988396808,
    -0.3686101010183668,
    0.19573707613330618,
    -0.08879096156869916,
    0.03474695286653526,
    -0.011869296283072076,
    0.0035806007478345527,
    -0.0009641999171742024,
    0.000233995670511025,
    -5.1608995394598965e-05,
    1.0421076949031142e-05,
    -1.9389463805581323e-06,
    3.34303921197687e-07,
    -5.367925612250851e-08,
    8.062713846388207e-09,
    -1.1373024279315408e-09,
    1.5118929297641922e-10,
    -1.900169309947957e-11,
    2.2642905752488e-12,
    -2.564881089929297e-13,
    2.768364064375852e-14,
    -2.853233414038453e-15,
    2.8136426898343644e-16,
    -2.6595536455748177e-17,
)

# x dawsn(x) for x² >= 9, in (x² - 39) / (x² + 21).
_DAWSN_FAR = (
    1.0227038867438223,
    -0.01525262137340777,
    0.005270925999433414,
    -0.0018639356178238465,
    0.0006760445498101108,
    -0.0002508830066414855,
    9.424771450131545e-05,
    -3.5066940932977705e-05,
    1.247043870332242e-05,
    -3.999199428465928e-06,
    1.0228451792620934e-06,
    -1.18649505994375e-07,
    -7.347064849520151e-08,
    6.751319313282685e-08,
    -3.3326855238746045e-08,
    1.1430851719868902e-08,
    -2.4463649806829688e-09,
    1.4185562883710989e-11,
    2.3306343041925075e-10,
    -9.296095510083819e-11,
    1.001150451388276e-11,
    6.49646633053627e-12,
    -3.202925272211979e-12,
    2.3153054383504025e-13,
    3.081659724673976e-13,
    -1.0899339671259177e-13,
    -1.1119748672288535e-14,
    1.626141486808017e-14,
    -1.995529820482059e-15,
    -1.7568753735212091e-15,
    5.827322124598567e-16,
    1.4677142362214823e-16,
    -1.0359375467626206e-16,
    -7.175365320510602e-18,
    1.597166559805642e-17,
)


@one_program()
def erf(x: ArrayLike) -> Array:
    """The error function `2/√π ∫₀ˣ exp(-t²) dt`.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     real; integers and booleans become floats.
    Derivative: 2/√π exp(-x²).
    Source:     mirrors jax.scipy.special.erf (0.10).

    Example:
        >>> minijax.scipy.special.erf(jnp.array([-jnp.inf, 0.0, jnp.inf]))
        Array([-1.,  0.,  1.], dtype=float32)
    """
    return special.erf(*real_operands("erf", x=x))


@one_program()
def erfc(x: ArrayLike) -> Array:
    """The complement of the error function, `1 - erf(x)`, exact also where that is small.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     real; integers and booleans become floats.
    Derivative: -2/√π exp(-x²).
    Source:     mirrors jax.scipy.special.erfc (0.10).

    Example:
        >>> minijax.scipy.special.erfc(jnp.array([-jnp.inf, 0.0, jnp.inf]))
        Array([2., 1., 0.], dtype=float32)
    """
    return special.erfc(*real_operands("erfc", x=x))


@one_program()
def erfinv(x: ArrayLike) -> Array:
    """The inverse of the error function, infinite at ±1 and NaN beyond.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     real; integers and booleans become floats.
    Derivative: √π/2 exp(y²), where y is the result.
    Source:     mirrors jax.scipy.special.erfinv (0.10).

    Example:
        >>> minijax.scipy.special.erfinv(jnp.array([-1.0, 0.0, 1.0]))
        Array([-inf,   0.,  inf], dtype=float32)
    """
    return special.erf_inv(*real_operands("erfinv", x=x))


def exp_of_square(x: Any, sign: float) -> Any:
    """`exp(sign x²)` without the loss of precision that the rounding of x² would bring.

    A multiple of 1/16 near x has an exact square; x² is that plus a product that is small.
    """
    coarse = mul(floor(mul(x, 16.0)), 1 / 16)
    fine = mul(sub(x, coarse), add(x, coarse))
    return mul(exp(mul(square(coarse), sign)), exp(mul(fine, sign)))


def scaled_erfc(x: Any) -> Any:
    """The formula of `erfcx`."""
    magnitude = abs(x)
    # Beyond 1e18, the mapped variable is 1.
    capped = min(magnitude, 1e18)
    series = chebyshev(div(sub(capped, 3.75), add(capped, 3.75)), _ERFCX)
    positive = div(series, add(mul(magnitude, 2.0), 1.0))
    # Where x² is not finite, neither is the function.
    bounded = min(magnitude, 30.0)
    return select(lt(x, 0.0), sub(mul(exp_of_square(bounded, 1.0), 2.0), positive), positive)


erfcx_p = Elementwise("erfcx", scaled_erfc, lambda x, y: sub(mul(mul(x, 2.0), y), 2 / _ROOT_OF_PI))


@one_program()
def erfcx(x: ArrayLike) -> Array:
    """The complementary error function, scaled: `exp(x²) erfc(x)`, which no large x makes 0.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.
    Derivative: 2 x erfcx(x) - 2/√π.
    Source:     mirrors jax.scipy.special.erfcx (0.10).

    Example:
        >>> minijax.scipy.special.erfcx(0.0).round(4)
        Array(1., dtype=float32)
    """
    x = promotion.strong(promotion.inexact("scipy.special.erfcx", x))
    if not dtypes.issubdtype(aval_of(x).dtype, np.complexfloating):
        return erfcx_p.bind(x)
    return wofz_p.bind(mul(x, number_like(1j, x)))


def _dawsn(x: Any) -> Any:
    z = min(square(x), 1e30)
    near = mul(x, chebyshev(sub(mul(z, 2 / 9), 1.0), _DAWSN_NEAR))
    far = div(chebyshev(div(sub(z, 39.0), add(z, 21.0)), _DAWSN_FAR), x)
    return select(lt(z, 9.0), near, far)


dawsn_p = Elementwise("dawsn", _dawsn, lambda x, y: sub(1.0, mul(mul(x, 2.0), y)))


@one_program()
def dawsn(x: ArrayLike) -> Array:
    """Dawson's integral `exp(-x²) ∫₀ˣ exp(t²) dt`.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     real; integers and booleans become floats.
    Derivative: 1 - 2 x dawsn(x).
    Source:     mirrors jax.scipy.special.dawsn (0.10).

    Raises:
        ValueError: x is complex.

    Example:
        >>> minijax.scipy.special.dawsn(jnp.array([0.0, jnp.inf]))
        Array([0., 0.], dtype=float32)
    """
    return dawsn_p.bind(promotion.strong(*real_operands("dawsn", ValueError, x=x)))


_coefficients = Cache(
    "Weideman's coefficients",
    "coefficients of approximations of `dawsn`",
    key="their number",
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


def _wofz(z: Any) -> Any:
    # The rational function converges in the upper half-plane; the lower one is reflected.
    is_lower = lt(imag(z), 0.0)
    upper = select(is_lower, neg(z), z)
    scale, coefficients = _weideman(18 if epsilon(z) > 1e-8 else 40)
    turned = complex(neg(imag(upper)), real(upper))
    below = div(number_like(1.0, z), sub(number_like(scale, z), turned))
    mapped = mul(add(number_like(scale, z), turned), below)
    total: Any = number_like(coefficients[0], z)
    for c in coefficients[1:]:
        total = add(mul(total, mapped), number_like(c, z))
    w = mul(
        below, add(mul(mul(total, below), number_like(2.0, z)), number_like(1 / _ROOT_OF_PI, z))
    )
    # On the real axis the real part is far smaller than the imaginary one, but known.
    gaussian = exp(neg(square(real(z))))
    w = complex(select(eq(imag(z), 0.0), gaussian, real(w)), imag(w))
    return select(is_lower, sub(mul(exp(neg(square(z))), number_like(2.0, z)), w), w)


wofz_p = Elementwise(
    "wofz",
    _wofz,
    lambda z, w: add(mul(mul(z, w), number_like(-2.0, z)), number_like(2j / _ROOT_OF_PI, z)),
    accepts=families.COMPLEX,
)


@one_program()
def wofz(z: ArrayLike) -> Array:
    """The Faddeeva function `exp(-z²) erfc(-iz)`.

    Weideman's rational series: SIAM J. Numer. Anal. 31 (1994), 1497.

    Shapes:     z: T[s] -> C[s].
    Dtypes:     numbers; the result is complex.
    Derivative: 2i/√π - 2 z w.
    Source:     mirrors jax.scipy.special.wofz (0.10).

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
