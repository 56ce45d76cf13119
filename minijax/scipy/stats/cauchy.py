"""The Cauchy distribution, with median `loc` and half its middle quartiles `scale`."""

from __future__ import annotations

import math
from typing import Any

from minijax.lax.binary import add, atan2, div, lt, min, mul, sub
from minijax.lax.unary import abs, exp, log, log1p, neg, square, tan
from minijax.numpy.one_program import one_program
from minijax.numpy.selection import where
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.scipy.stats.operands import floats

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def _standard_quantile(q: Any) -> Any:
    """Where the mass below is q: the tangent of an angle that is taken from the nearer end."""
    center = tan(mul(sub(q, 0.5), math.pi))
    tail = div(1.0, tan(mul(min(q, sub(1.0, q)), math.pi)))
    near = lt(abs(sub(q, 0.5)), 0.25)
    return where(near, center, where(lt(q, 0.5), neg(tail), tail))


def _log_angle(mass: Any, rest: Any) -> Any:
    """The logarithm of a mass, from the one on the other side where that is the smaller."""
    most = lt(rest, 0.5)
    return where(most, log1p(neg(where(most, rest, 0.5))), log(mass))


@one_program()
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density at `x`.

    Shapes: x: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.cauchy.logpdf (0.10).

    Example:
        >>> minijax.scipy.stats.cauchy.logpdf(jnp.inf)
        Array(-inf, dtype=float32, weak_type=True)
    """
    x, loc, scale = floats("cauchy.logpdf", x=x, loc=loc, scale=scale)
    z = div(sub(x, loc), scale)
    return neg(add(log1p(square(z)), log(mul(scale, math.pi))))


@one_program()
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density at `x`.

    Shapes: x: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.cauchy.pdf (0.10).

    Example:
        >>> minijax.scipy.stats.cauchy.pdf(jnp.inf)
        Array(0., dtype=float32, weak_type=True)
    """
    return exp(logpdf(x, loc, scale))


@one_program()
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The mass up to `x`.

    Shapes: x: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.cauchy.cdf (0.10).

    Example:
        >>> minijax.scipy.stats.cauchy.cdf(0.0)
        Array(0.5, dtype=float32, weak_type=True)
    """
    x, loc, scale = floats("cauchy.cdf", x=x, loc=loc, scale=scale)
    # The angle from below, which is exact also where it is small.
    return div(atan2(1.0, div(sub(loc, x), scale)), math.pi)


@one_program()
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the mass up to `x`.

    Shapes: x: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.cauchy.logcdf (0.10).

    Example:
        >>> minijax.scipy.stats.cauchy.logcdf(-jnp.inf)
        Array(-inf, dtype=float32, weak_type=True)
    """
    return _log_angle(cdf(x, loc, scale), sf(x, loc, scale))


@one_program()
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The mass beyond `x`.

    Shapes: x: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.cauchy.sf (0.10).

    Example:
        >>> minijax.scipy.stats.cauchy.sf(0.0)
        Array(0.5, dtype=float32, weak_type=True)
    """
    x, loc, scale = floats("cauchy.sf", x=x, loc=loc, scale=scale)
    # The angle from above, which is exact also where it is small.
    return div(atan2(1.0, div(sub(x, loc), scale)), math.pi)


@one_program()
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the mass beyond `x`.

    Shapes: x: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.cauchy.logsf (0.10).

    Example:
        >>> minijax.scipy.stats.cauchy.logsf(jnp.inf)
        Array(-inf, dtype=float32, weak_type=True)
    """
    return _log_angle(sf(x, loc, scale), cdf(x, loc, scale))


@one_program()
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Below which number the mass is `q`: the inverse of `cdf`.

    Shapes: q: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.cauchy.ppf (0.10).

    Example:
        >>> minijax.scipy.stats.cauchy.ppf(0.5, loc=3.0)
        Array(3., dtype=float32, weak_type=True)
    """
    q, loc, scale = floats("cauchy.ppf", q=q, loc=loc, scale=scale)
    return add(loc, mul(scale, _standard_quantile(q)))


@one_program()
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Beyond which number the mass is `q`: the inverse of `sf`.

    Shapes: q: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.cauchy.isf (0.10).

    Example:
        >>> minijax.scipy.stats.cauchy.isf(0.5, loc=3.0)
        Array(3., dtype=float32, weak_type=True)
    """
    q, loc, scale = floats("cauchy.isf", q=q, loc=loc, scale=scale)
    return sub(loc, mul(scale, _standard_quantile(q)))


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
