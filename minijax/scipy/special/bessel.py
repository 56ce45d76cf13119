"""Bessel functions: modified ones of order 0 and 1, and those of the first kind."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import ConcretizationTypeError, error
from minijax.core.trace import Tracer
from minijax.lax import special
from minijax.lax.binary import add, div, eq, mul, sub
from minijax.lax.choice import select
from minijax.lax.control_flow.scanning import scan
from minijax.lax.cumulative import cumprod
from minijax.lax.reduction import reduce_sum
from minijax.lax.shape import broadcast_in_dim, concatenate, expand_dims
from minijax.lax.slicing import slice_in_dim
from minijax.lax.special import full_like
from minijax.lax.unary import abs, exp
from minijax.numpy import creation, promotion
from minijax.numpy.one_program import one_program
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.scipy.special.elementwise import real_operands


@one_program()
def i0e(x: ArrayLike) -> Array:
    """The modified Bessel function of order 0, scaled: `e^-|x| I₀(x)`.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     real; integers and booleans become floats.
    Derivative: i1e(x) - sign(x) i0e(x).
    Source:     mirrors jax.scipy.special.i0e (0.10).

    Example:
        >>> minijax.scipy.special.i0e(jnp.array([0.0, jnp.inf])).round(4)
        Array([1., 0.], dtype=float32)
    """
    return special.bessel_i0e(*real_operands("i0e", x=x))


@one_program()
def i1e(x: ArrayLike) -> Array:
    """The modified Bessel function of order 1, scaled: `e^-|x| I₁(x)`.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     real; integers and booleans become floats.
    Derivative: i0e(x) - (sign(x) + 1/x) i1e(x).
    Source:     mirrors jax.scipy.special.i1e (0.10).

    Example:
        >>> minijax.scipy.special.i1e(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return special.bessel_i1e(*real_operands("i1e", x=x))


@one_program()
def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of order 0.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     real; integers and booleans become floats.
    Derivative: i1(x).
    Source:     mirrors jax.scipy.special.i0 (0.10).

    Example:
        >>> minijax.scipy.special.i0(0.0).round(4)
        Array(1., dtype=float32, weak_type=True)
    """
    (x,) = real_operands("i0", x=x)
    return mul(exp(abs(x)), special.bessel_i0e(x))


@one_program()
def i1(x: ArrayLike) -> Array:
    """The modified Bessel function of order 1.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     real; integers and booleans become floats.
    Derivative: i0(x) - i1(x) / x.
    Source:     mirrors jax.scipy.special.i1 (0.10).

    Example:
        >>> minijax.scipy.special.i1(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    (x,) = real_operands("i1", x=x)
    return mul(exp(abs(x)), special.bessel_i1e(x))


def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """Bessel functions of the first kind, of all orders from 0 to `v`.

    They are computed by Miller's recurrence, which goes down from order `n_iter`: that should be
    some tens above both v and |z| (DLMF 3.6).

    Shapes:     z: T[s] -> T[v + 1, *s].
    Dtypes:     real; integers and booleans become floats.
    Derivative: that of the recurrence.
    Source:     mirrors jax.scipy.special.bessel_jn (0.10).

    Args:
        z: where.
        v: the highest order.
        n_iter: the order from which the recurrence goes down.

    Raises:
        ConcretizationTypeError: v or n_iter is traced.
        TypeError: v or n_iter is no integer, or z is complex.

    Example:
        >>> minijax.scipy.special.bessel_jn(jnp.array([0.0]), v=1)
        Array([[1.],
               [0.]], dtype=float32)
    """
    orders = {"v": v, "n_iter": n_iter}
    for name, order in orders.items():
        if isinstance(order, Tracer):
            error(
                ConcretizationTypeError,
                "scipy.special.bessel_jn",
                f"{name} must be known: it says how many orders there are.",
                got={name: aval_of(order)},
                fix=f"jit with static_argnames={name!r}",
            )
        if not hasattr(order, "__index__"):
            error(
                TypeError,
                "scipy.special.bessel_jn",
                f"{name} is no integer.",
                got={name: repr(order)},
                expected="a Python integer",
            )
    return _bessel_jn(z, operator.index(v), operator.index(n_iter))


@one_program(static=("v", "n_iter"))
def _bessel_jn(z: Any, v: int, n_iter: int) -> Any:
    (z,) = real_operands("bessel_jn", z=creation.asarray(z))
    z = promotion.strong(z)
    aval = aval_of(z)
    last = max(n_iter, v + 1)
    tiny = float(dtypes.finfo(aval.dtype).tiny)

    def step(above: Any, order: Any) -> tuple[Any, Any]:
        # The ratio of Bessel functions of this order and the one below it.
        divisor = sub(mul(order, 2.0), mul(z, above))
        ratio = div(z, select(eq(divisor, 0.0), full_like(z, tiny), divisor))
        return ratio, ratio

    orders = np.arange(1, last + 1).astype(aval.dtype)
    _, ratios = scan(step, full_like(z, 0.0), orders, reverse=True)
    quotients = cumprod(ratios, axis=0)
    # J0 + 2 J2 + 2 J4 + ... = 1.
    even = reduce_sum(slice_in_dim(quotients, 1, last, stride=2), (0,))
    first = div(1.0, add(mul(even, 2.0), 1.0))
    others = mul(
        broadcast_in_dim(first, (v, *aval.shape), range(1, aval.ndim + 1)),
        slice_in_dim(quotients, 0, v),
    )
    return concatenate([expand_dims(first, (0,)), others], 0)
