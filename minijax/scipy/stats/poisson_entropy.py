"""The entropy of the Poisson distribution: a sum, or far off an asymptotic series.

Evans and Boersma, SIAM Review 30 (1988), 314.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.lax import special
from minijax.lax.binary import add, bitwise_or, div, eq, gt, le, lt, max, min, mul, sub
from minijax.lax.choice import select
from minijax.lax.special import epsilon, full_like
from minijax.lax.unary import abs, exp, log, neg
from minijax.scipy.special.elementwise import Elementwise, polynomial
from minijax.scipy.special.series import converge

# H = ln √(2πe μ) + Σ cₖ μ⁻ᵏ for k = 1, 2, ...
_COEFFICIENTS = (-1 / 12, -1 / 24, -19 / 360, -9 / 80, -863 / 2520, -1375 / 1008)


def _far_from(mu: Any) -> float:
    """From where on the asymptotic series is as precise as the dtype."""
    return 30.0 if epsilon(mu) > 1e-8 else 150.0


def _expectation(mu: Any, value: Callable[[Any], Any]) -> Any:
    """The mean of `value(k)`, which grows slowly, for numbers `mu` that are not large."""

    def step(n: Any, state: Any) -> tuple[Any, Any]:
        mass, total = state
        k = add(n, 1.0)
        mass = div(mul(mass, mu), k)
        part = mul(mass, value(mul(full_like(mu, 1.0), k)))
        changes = bitwise_or(lt(k, add(mu, 2.0)), gt(abs(part), mul(abs(total), epsilon(mu) / 4)))
        return changes, (mass, add(total, part))

    mass = exp(neg(mu))
    return converge(step, (mass, mul(mass, value(full_like(mu, 0.0)))))[1]


def _split(mu: Any) -> tuple[Any, Any]:
    """Two numbers: one that is small enough to sum for, and one that is far."""
    limit = _far_from(mu)
    return min(max(mu, 0.0), limit), max(mu, limit)


def _entropy(mu: Any) -> Any:
    small, large = _split(mu)
    mean = _expectation(small, lambda k: special.lgamma(add(k, 1.0)))
    logarithm = log(select(eq(small, 0.0), full_like(mu, 1.0), small))
    near = add(mul(small, sub(1.0, logarithm)), mean)
    inverse = div(1.0, large)
    far = add(mul(log(large), 0.5), (math.log(2 * math.pi) + 1) / 2)
    far = add(far, mul(inverse, polynomial(inverse, *_COEFFICIENTS)))
    result = select(lt(mu, _far_from(mu)), near, far)
    return select(le(0.0, mu), result, full_like(mu, np.nan))


def _slope(mu: Any) -> Any:
    # dH/dμ is the mean of ln(K + 1) - ln μ.
    small, large = _split(mu)
    near = sub(_expectation(small, lambda k: log(add(k, 1.0))), log(small))
    inverse = div(1.0, large)
    weights = [-(k + 1) * c for k, c in enumerate(_COEFFICIENTS)]
    far = mul(inverse, add(mul(inverse, polynomial(inverse, *weights)), 0.5))
    return select(lt(mu, _far_from(mu)), near, far)


poisson_entropy_slope_p = Elementwise("poisson_entropy_slope", _slope, None)
poisson_entropy_p = Elementwise(
    "poisson_entropy", _entropy, lambda mu, y: poisson_entropy_slope_p.bind(mu)
)
