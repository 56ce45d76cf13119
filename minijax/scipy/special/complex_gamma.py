"""The logarithm of the gamma function of complex numbers, and its derivatives.

Arguments are moved to the right of 8 by the recurrence, where Stirling's series has the precision
of float64 (DLMF 5.11.1); those left of 1/2 are reflected first (DLMF 5.5.3).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from minijax.lax import families
from minijax.lax.binary import add, div, ge, lt, mul, sub
from minijax.lax.choice import select
from minijax.lax.unary import conj, exp, imag, log, log1p, neg, real, tan
from minijax.scipy.special.elementwise import Elementwise, number_like

_MOVES = 8

# B₂ₖ for k = 1, 2, ...
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)


def _moved(z: Any, term: Callable[[Any], Any], far: Callable[[Any], Any]) -> Any:
    """`far(z + n) - Σ term(z + k)` over k < n, where n is 8 or, far to the right, 0."""
    near = lt(real(z), float(_MOVES))
    zero = number_like(0, z)
    total: Any = None
    for k in range(_MOVES):
        value = term(add(z, number_like(k, z)))
        total = value if total is None else add(total, value)
    end = select(near, add(z, number_like(_MOVES, z)), z)
    return sub(far(end), select(near, total, mul(total, zero)))


def _reflected(z: Any, right: Callable[[Any], Any], mirror: Callable[[Any, Any], Any]) -> Any:
    """`right(z)`, or left of 1/2 what `mirror` makes of z and `right(1 - z)`.

    The mirror is for the upper half-plane; the lower one has conjugate values.
    """
    is_left = lt(real(z), 0.5)
    one = number_like(1, z)
    value = right(select(is_left, sub(one, z), z))
    is_upper = ge(imag(z), 0.0)
    upper = select(is_upper, z, conj(z))
    mirrored = mirror(upper, select(is_upper, value, conj(value)))
    mirrored = select(is_upper, mirrored, conj(mirrored))
    return select(is_left, mirrored, value)


def _series(z: Any, coefficients: list[float], power: Callable[[Any], Any]) -> Any:
    inverse = div(number_like(1, z), mul(z, z))
    total: Any = number_like(coefficients[-1], z)
    for c in reversed(coefficients[:-1]):
        total = add(mul(total, inverse), number_like(c, z))
    return mul(total, power(z))


def _stirling(z: Any) -> Any:
    half_log = number_like(math.log(2 * math.pi) / 2, z)
    main = add(sub(mul(sub(z, number_like(0.5, z)), log(z)), z), half_log)
    coefficients = [b / ((2 * k) * (2 * k - 1)) for k, b in enumerate(_BERNOULLI, 1)]
    return add(main, _series(z, coefficients, lambda z: div(number_like(1, z), z)))


def _loggamma(z: Any) -> Any:
    def mirror(z: Any, other: Any) -> Any:
        # ln sin πz, continued from z = 1/2 without a jump.
        turns = mul(z, number_like(2j * math.pi, z))
        sine = add(
            sub(number_like(0.5j * math.pi - math.log(2), z), mul(z, number_like(1j * math.pi, z))),
            log1p(neg(exp(turns))),
        )
        return sub(sub(number_like(math.log(math.pi), z), sine), other)

    return _reflected(z, lambda z: _moved(z, log, _stirling), mirror)


def _digamma(z: Any) -> Any:
    def far(z: Any) -> Any:
        one = number_like(1, z)
        main = sub(log(z), div(number_like(0.5, z), z))
        coefficients = [b / (2 * k) for k, b in enumerate(_BERNOULLI, 1)]
        return sub(main, _series(z, coefficients, lambda z: div(one, mul(z, z))))

    def mirror(z: Any, other: Any) -> Any:
        pi = number_like(math.pi, z)
        return sub(other, div(pi, tan(mul(z, pi))))

    def reciprocal(z: Any) -> Any:
        return div(number_like(1, z), z)

    return _reflected(z, lambda z: _moved(z, reciprocal, far), mirror)


complex_digamma_p = Elementwise("complex_digamma", _digamma, None, accepts=families.COMPLEX)

complex_loggamma_p = Elementwise(
    "complex_loggamma",
    _loggamma,
    lambda z, y: complex_digamma_p.bind(z),
    accepts=families.COMPLEX,
)
