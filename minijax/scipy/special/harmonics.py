"""Spherical harmonics."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import ConcretizationTypeError, error
from minijax.core.trace import Tracer
from minijax.lax.binary import add, bitwise_and, div, eq, ge, le, lt, mul, ne, sub
from minijax.lax.choice import select
from minijax.lax.control_flow.scanning import scan
from minijax.lax.convert import convert_element_type
from minijax.lax.special import full_like
from minijax.lax.unary import abs, complex, cos, floor, neg, sin, sqrt, square
from minijax.numpy import creation, promotion, shaping
from minijax.numpy.one_program import one_program
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array


def sph_harm_y(
    n: ArrayLike,
    m: ArrayLike,
    theta: ArrayLike,
    phi: ArrayLike,
    diff_n: int | None = None,
    n_max: int | None = None,
) -> Array:
    """The spherical harmonics of degree `n` and order `m`, orthonormal over the sphere.

    They are 0 where |m| > n, and NaN where n > n_max.  The associated Legendre functions come by
    the recurrence over degrees of normalised ones (DLMF 14.10.3, 14.30.1).

    Shapes:     n: I[r], m: I[s], theta: T[t], phi: T[u] -> C[broadcast of all].
    Dtypes:     n and m of integers; theta and phi real; the result is complex.
    Derivative: by theta and phi.
    Source:     mirrors jax.scipy.special.sph_harm_y (0.10).

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
        error(
            NotImplementedError,
            "scipy.special.sph_harm_y",
            "derivatives are not returned.",
            got={"diff_n": diff_n},
            fix="minijax.jacfwd",
        )
    for name, x in (("n", n), ("m", m)):
        if not dtypes.issubdtype(aval_of(x).dtype, np.integer):
            error(
                TypeError,
                "scipy.special.sph_harm_y",
                f"{name} is not of integers.",
                got={name: aval_of(x)},
                fix=f"{name}.astype(int)",
            )
    if n_max is None:
        if isinstance(n, Tracer):
            error(
                ConcretizationTypeError,
                "scipy.special.sph_harm_y",
                "n is traced, so the largest degree is unknown.",
                got={"n": aval_of(n)},
                fix="n_max=, a Python integer",
            )
        n_max = int(np.max(np.asarray(n), initial=0))
    return _sph_harm_y(n, m, theta, phi, operator.index(n_max))


@one_program(static=("n_max",))
def _sph_harm_y(n: Any, m: Any, theta: Any, phi: Any, n_max: int) -> Any:
    angles = promotion.promote_all_inexact("scipy.special.sph_harm_y", theta, phi)
    dtype = aval_of(angles[0]).dtype
    same = [convert_element_type(creation.asarray(x), dtype) for x in (n, m, *angles)]
    n, m, theta, phi = shaping.broadcast_arrays(*same)
    order = abs(m)
    legendre = _normalised_legendre(n, order, theta, n_max)
    odd = ne(mul(floor(mul(order, 0.5)), 2.0), order)
    legendre = select(bitwise_and(lt(m, 0.0), odd), neg(legendre), legendre)
    known = bitwise_and(ge(n, 0.0), le(n, float(n_max)))
    legendre = select(known, legendre, full_like(legendre, np.nan))
    turn = mul(m, phi)
    return complex(mul(legendre, cos(turn)), mul(legendre, sin(turn)))


def _normalised_legendre(n: Any, m: Any, theta: Any, n_max: int) -> Any:
    """The associated Legendre functions with the factors of spherical harmonics, for m >= 0."""
    c, s = cos(theta), sin(theta)
    one, zero = full_like(c, 1.0), full_like(c, 0.0)
    first = full_like(c, 0.5 / math.sqrt(math.pi))

    def step(state: Any, degree: Any) -> tuple[Any, None]:
        diagonal, here, before = state
        # Up to degree m: the function of equal degree and order.
        twice = mul(degree, 2.0)
        root = sqrt(div(add(twice, 1.0), twice))
        diagonal = select(ge(m, degree), mul(mul(s, neg(root)), diagonal), diagonal)
        # Beyond: the recurrence.
        is_beyond = lt(m, degree)
        lower = sub(degree, 1.0)
        gap = select(is_beyond, _difference_of_squares(degree, m), one)
        gap_before = select(is_beyond, _difference_of_squares(lower, m), zero)
        factor = sqrt(div(sub(square(twice), 1.0), gap))
        share = sqrt(div(gap_before, abs(sub(square(mul(lower, 2.0)), 1.0))))
        above = mul(factor, sub(mul(c, here), mul(share, before)))
        new = select(eq(m, degree), diagonal, select(is_beyond, above, zero))
        is_past = lt(n, degree)
        return (diagonal, select(is_past, here, new), select(is_past, before, here)), None

    degrees = np.arange(1, n_max + 1).astype(aval_of(c).dtype)
    start = (first, select(eq(m, 0.0), first, zero), zero)
    (_, found, _), _ = scan(step, start, degrees)
    return found


def _difference_of_squares(x: Any, y: Any) -> Any:
    return mul(sub(x, y), add(x, y))
