"""Logarithms of odds, entropies, power transforms, softmax: functions built from `x log y`.

`x log y` is 0 where x is, whatever its logarithm; its derivative by x is log y all the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.lax import unary
from minijax.lax.binary import add, bitwise_and, bitwise_or, div, eq, ge, gt, lt, mul, ne, sub
from minijax.lax.choice import select
from minijax.lax.families import INEXACT
from minijax.lax.special import full_like
from minijax.lax.unary import expm1, is_finite, log, log1p, neg
from minijax.numpy import normalized_exponentials, promotion, selection
from minijax.numpy.one_program import one_program
from minijax.runtime.annotations import ArrayLike, Axis
from minijax.runtime.array import Array
from minijax.scipy.special.elementwise import Elementwise, number_like, real_operands


def _numbers(name: str, *args: Any) -> Any:
    name = f"scipy.special.{name}"
    if len(args) == 1:
        return promotion.inexact(name, args[0])
    return promotion.promote_all_inexact(name, *args)


@one_program()
def expit(x: ArrayLike) -> Array:
    """The logistic function `1 / (1 + exp(-x))`: the chance that has `x` as the logarithm of odds.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.
    Derivative: y (1 - y), where y is the result.
    Source:     mirrors jax.scipy.special.expit (0.10).

    Example:
        >>> minijax.scipy.special.expit(jnp.array([-jnp.inf, 0.0, jnp.inf]))
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    return unary.logistic(_numbers("expit", x))


def _logit(p: Any) -> Any:
    other = sub(number_like(1, p), p)
    plain = log(div(p, other))
    if dtypes.issubdtype(aval_of(p).dtype, np.complexfloating):
        return plain
    # About one half the odds are about 1, and the logarithm of their excess is exact.
    offset = sub(p, 0.5)
    near = lt(unary.abs(offset), 0.25)
    return select(near, log1p(div(mul(offset, 2.0), other)), plain)


logit_p = Elementwise(
    "logit",
    _logit,
    lambda p, y: div(number_like(1, p), mul(p, sub(number_like(1, p), p))),
    accepts=INEXACT,
)


@one_program()
def logit(x: ArrayLike) -> Array:
    """The logarithm of odds, `log(x / (1 - x))`: the inverse of `expit`.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.
    Derivative: 1 / (x (1 - x)).
    Source:     mirrors jax.scipy.special.logit (0.10).

    Example:
        >>> minijax.scipy.special.logit(jnp.array([0.0, 0.5, 1.0]))
        Array([-inf,   0.,  inf], dtype=float32)
    """
    return logit_p.bind(_numbers("logit", x))


def _where_zero(x: Any, y: Any, product: Any) -> Any:
    """`product`, but 0 where x is 0 and y is a number."""
    counts = bitwise_or(ne(x, number_like(0, x)), ne(y, y))
    return select(counts, product, full_like(product, 0.0))


xlogy_p = Elementwise(
    "xlogy",
    lambda x, y: _where_zero(x, y, mul(x, log(y))),
    lambda x, y, out: log(y),
    lambda x, y, out: div(x, y),
    accepts=INEXACT,
)


@one_program()
def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """`x log(y)`, which is 0 where `x` is 0.

    Shapes:     x: T[s], y: T[t] -> T[broadcast of s and t].
    Dtypes:     inexact; integers and booleans become floats.
    Derivative: log(y) by x, x/y by y.
    Source:     mirrors jax.scipy.special.xlogy (0.10).

    Example:
        >>> minijax.scipy.special.xlogy(jnp.array([0.0, 1.0]), 0.0)
        Array([  0., -inf], dtype=float32)
    """
    return xlogy_p.bind(*_numbers("xlogy", x, y))


xlog1py_p = Elementwise(
    "xlog1py",
    lambda x, y: _where_zero(x, y, mul(x, log1p(y))),
    lambda x, y, out: log1p(y),
    lambda x, y, out: div(x, add(y, number_like(1, y))),
    accepts=INEXACT,
)


@one_program()
def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """`x log(1 + y)`, which is 0 where `x` is 0, and exact for small `y`.

    Shapes:     x: T[s], y: T[t] -> T[broadcast of s and t].
    Dtypes:     inexact; integers and booleans become floats.
    Derivative: log(1 + y) by x, x/(1 + y) by y.
    Source:     mirrors jax.scipy.special.xlog1py (0.10).

    Example:
        >>> minijax.scipy.special.xlog1py(jnp.array([0.0, 1.0]), -1.0)
        Array([  0., -inf], dtype=float32)
    """
    return xlog1py_p.bind(*_numbers("xlog1py", x, y))


def _entr(x: Any) -> Any:
    entropy = neg(_where_zero(x, x, mul(x, log(x))))
    return select(lt(x, 0.0), full_like(x, -np.inf), entropy)


entr_p = Elementwise("entr", _entr, lambda x, y: sub(-1.0, log(x)))


@one_program()
def entr(x: ArrayLike) -> Array:
    """The summand of entropy, `-x log(x)`: 0 at 0 and -inf below.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     real; integers and booleans become floats.
    Derivative: -1 - log(x).
    Source:     mirrors jax.scipy.special.entr (0.10).

    Raises:
        ValueError: x is complex.

    Example:
        >>> minijax.scipy.special.entr(jnp.array([-1.0, 1.0]))
        Array([-inf,  -0.], dtype=float32)
    """
    return entr_p.bind(*real_operands("entr", ValueError, x=x))


def _log_ratio(p: Any, q: Any) -> Any:
    """`log(p / q)`, also where the ratio is no finite number."""
    ratio = div(p, q)
    plain = bitwise_and(gt(ratio, 0.0), is_finite(ratio))
    return select(plain, log(ratio), sub(log(p), log(q)))


def _rel_entr(p: Any, q: Any) -> Any:
    both = bitwise_and(gt(p, 0.0), gt(q, 0.0))
    one, zero = full_like(p, 1.0), full_like(p, 0.0)
    entropy = mul(p, _log_ratio(select(both, p, one), select(both, q, one)))
    vanishes = bitwise_and(eq(p, 0.0), ge(q, 0.0))
    outside = select(vanishes, zero, full_like(p, np.inf))
    unknown = bitwise_or(ne(p, p), ne(q, q))
    return select(unknown, full_like(p, np.nan), select(both, entropy, outside))


def _rel_entr_slope_p(p: Any, q: Any, out: Any) -> Any:
    return add(_log_ratio(p, q), 1.0)


rel_entr_p = Elementwise("rel_entr", _rel_entr, _rel_entr_slope_p, lambda p, q, out: neg(div(p, q)))


@one_program()
def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """The summand of relative entropy, `p log(p / q)`.

    It is 0 where p is 0 and q is not negative, and infinite elsewhere where one is not positive.

    Shapes:     p: T[s], q: T[t] -> T[broadcast of s and t].
    Dtypes:     real; integers and booleans become floats.
    Derivative: log(p/q) + 1 by p, -p/q by q.
    Source:     mirrors jax.scipy.special.rel_entr (0.10).

    Raises:
        ValueError: an argument is complex.

    Example:
        >>> minijax.scipy.special.rel_entr(jnp.array([0.0, 1.0, -1.0]), 1.0)
        Array([ 0.,  0., inf], dtype=float32)
    """
    return rel_entr_p.bind(*real_operands("rel_entr", ValueError, p=p, q=q))


@one_program()
def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """The summand of the divergence of Kullback and Leibler, `p log(p / q) - p + q`.

    Shapes:     p: T[s], q: T[t] -> T[broadcast of s and t].
    Dtypes:     real; integers and booleans become floats.
    Derivative: log(p/q) by p, 1 - p/q by q.
    Source:     mirrors jax.scipy.special.kl_div (0.10).

    Raises:
        ValueError: an argument is complex.

    Example:
        >>> minijax.scipy.special.kl_div(jnp.array([0.0, 1.0]), 1.0)
        Array([1., 0.], dtype=float32)
    """
    p, q = real_operands("kl_div", ValueError, p=p, q=q)
    return add(sub(rel_entr_p.bind(p, q), p), q)


def _power_transform(logarithm: Any, lmbda: Any) -> Any:
    """`(exp(λ l) - 1) / λ` for a logarithm l, which is l itself for λ = 0."""
    at_zero = eq(lmbda, number_like(0, lmbda))
    safe = selection.where(at_zero, 1.0, lmbda)
    return selection.where(at_zero, logarithm, div(expm1(mul(safe, logarithm)), safe))


@one_program()
def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """The power transform `(x^lmbda - 1) / lmbda`, which is log(x) for lmbda = 0.

    Shapes:     x: T[s], lmbda: T[t] -> T[broadcast of s and t].
    Dtypes:     inexact; integers and booleans become floats.
    Derivative: x^(lmbda - 1) by x.
    Source:     mirrors jax.scipy.special.boxcox (0.10); Box and Cox, J. R. Stat. Soc. B 26
        (1964), 211.

    Example:
        >>> minijax.scipy.special.boxcox(jnp.array([1.0, 4.0]), 1.0)
        Array([0., 3.], dtype=float32)
    """
    x, lmbda = _numbers("boxcox", x, lmbda)
    return _power_transform(log(x), lmbda)


@one_program()
def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """`boxcox(1 + x, lmbda)`, exact for small `x`.

    Shapes:     x: T[s], lmbda: T[t] -> T[broadcast of s and t].
    Dtypes:     inexact; integers and booleans become floats.
    Derivative: (1 + x)^(lmbda - 1) by x.
    Source:     mirrors jax.scipy.special.boxcox1p (0.10).

    Example:
        >>> minijax.scipy.special.boxcox1p(jnp.array([0.0, 3.0]), 1.0)
        Array([0., 3.], dtype=float32)
    """
    x, lmbda = _numbers("boxcox1p", x, lmbda)
    return _power_transform(log1p(x), lmbda)


@one_program(static=("axis",))
def softmax(x: ArrayLike, /, *, axis: Axis = None) -> Array:
    """exp(x) divided by its sum along `axis`, over all dimensions by default.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.
    Source:     mirrors jax.scipy.special.softmax (0.10).

    Example:
        >>> minijax.scipy.special.softmax(jnp.zeros((2, 2)))
        Array([[0.25, 0.25],
               [0.25, 0.25]], dtype=float32)
    """
    return normalized_exponentials.softmax(x, axis=axis)


@one_program(static=("axis",))
def log_softmax(x: ArrayLike, /, *, axis: Axis = None) -> Array:
    """The logarithm of `softmax`, over all dimensions by default.

    Shapes:     x: T[s] -> T[s].
    Dtypes:     inexact; integers and booleans become floats.
    Source:     mirrors jax.scipy.special.log_softmax (0.10).

    Example:
        >>> minijax.scipy.special.log_softmax(jnp.array([-jnp.inf, 0.0]))
        Array([-inf,   0.], dtype=float32)
    """
    return normalized_exponentials.log_softmax(x, axis=axis)
