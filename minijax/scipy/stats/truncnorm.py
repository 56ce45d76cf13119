"""The normal distribution truncated to z from `a` to `b`, where x is `loc + scale z`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minijax.lax.binary import add, bitwise_and, bitwise_or, div, ge, gt, le, lt, mul, sub
from minijax.lax.unary import exp, log, log1p, neg, square
from minijax.numpy.arithmetic import clip
from minijax.numpy.one_program import one_program
from minijax.numpy.promotion import strong
from minijax.numpy.selection import where
from minijax.scipy.special.normal_distribution import log_ndtr_p, normal_cdf
from minijax.scipy.stats.operands import floats, log_complement

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def _log_difference(large: Any, small: Any) -> Any:
    """`log(exp(large) - exp(small))`."""
    nothing = le(large, small)
    gap = where(nothing, -1.0, sub(small, large))
    return where(nothing, -np.inf, add(large, log_complement(gap)))


def _log_mass(a: Any, b: Any) -> Any:
    """The logarithm of the normal mass from a to b, from whichever tails are exact."""
    left = _log_difference(log_ndtr_p.bind(b), log_ndtr_p.bind(a))
    right = _log_difference(log_ndtr_p.bind(neg(a)), log_ndtr_p.bind(neg(b)))
    astride = bitwise_and(le(a, 0.0), gt(b, 0.0))
    across = log1p(neg(where(astride, add(normal_cdf(a), normal_cdf(neg(b))), 0.0)))
    return where(astride, across, where(le(b, 0.0), left, right))


def _prepared(name: str, x: Any, a: Any, b: Any, loc: Any, scale: Any) -> list[Any]:
    arrays = floats(f"truncnorm.{name}", x=x, a=a, b=b, loc=loc, scale=scale)
    x, a, b, loc, scale = map(strong, arrays)
    return [div(sub(x, loc), scale), a, b, scale]


@one_program()
def logpdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density at `x`.

    Shapes: x: T[r], a: T[s], b: T[t], loc: T[u], scale: T[v] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.truncnorm.logpdf (0.10).

    Example:
        >>> minijax.scipy.stats.truncnorm.logpdf(2.0, -1.0, 1.0)
        Array(-inf, dtype=float32)
    """
    value, empty = _logpdf(*_prepared("logpdf", x, a, b, loc, scale))
    return where(empty, np.nan, value)


def _logpdf(z: Any, a: Any, b: Any, scale: Any) -> tuple[Any, Any]:
    """The logarithm of the density, and whether there is none."""
    density = sub(mul(square(z), -0.5), log(mul(scale, math.sqrt(2 * math.pi))))
    outside = bitwise_or(lt(z, a), gt(z, b))
    return where(outside, -np.inf, sub(density, _log_mass(a, b))), ge(a, b)


@one_program()
def pdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density at `x`.

    Shapes: x: T[r], a: T[s], b: T[t], loc: T[u], scale: T[v] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.truncnorm.pdf (0.10).

    Example:
        >>> minijax.scipy.stats.truncnorm.pdf(2.0, -1.0, 1.0)
        Array(0., dtype=float32)
    """
    value, empty = _logpdf(*_prepared("pdf", x, a, b, loc, scale))
    # The exponential comes first: XLA's is undefined where it finds a constant NaN.
    return where(empty, np.nan, exp(value))


@one_program()
def logcdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the mass up to `x`.

    Shapes: x: T[r], a: T[s], b: T[t], loc: T[u], scale: T[v] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.truncnorm.logcdf (0.10).

    Example:
        >>> minijax.scipy.stats.truncnorm.logcdf(1.0, -1.0, 1.0)
        Array(0., dtype=float32)
    """
    value, empty = _logcdf(*_prepared("logcdf", x, a, b, loc, scale)[:3])
    return where(empty, np.nan, value)


def _logcdf(z: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """The logarithm of the mass from below, and whether there is none."""
    z, whole = clip(z, a, b), _log_mass(a, b)
    below, above = sub(_log_mass(a, z), whole), sub(_log_mass(z, b), whole)
    # The difference loses what is near 0, where the mass on the other side still has it.
    most = gt(below, -0.7)
    below = where(most, log1p(neg(exp(where(most, above, -1.0)))), below)
    return where(le(z, a), -np.inf, where(ge(z, b), 0.0, below)), ge(a, b)


@one_program()
def cdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The mass up to `x`.

    Shapes: x: T[r], a: T[s], b: T[t], loc: T[u], scale: T[v] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.truncnorm.cdf (0.10).

    Example:
        >>> minijax.scipy.stats.truncnorm.cdf(1.0, -1.0, 1.0)
        Array(1., dtype=float32)
    """
    value, empty = _logcdf(*_prepared("cdf", x, a, b, loc, scale)[:3])
    return where(empty, np.nan, exp(value))


@one_program()
def logsf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the mass beyond `x`.

    Shapes: x: T[r], a: T[s], b: T[t], loc: T[u], scale: T[v] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.truncnorm.logsf (0.10).

    Example:
        >>> minijax.scipy.stats.truncnorm.logsf(-1.0, -1.0, 1.0)
        Array(0., dtype=float32)
    """
    z, a, b, _ = _prepared("logsf", x, a, b, loc, scale)
    value, empty = _logcdf(neg(z), neg(b), neg(a))
    return where(empty, np.nan, value)


@one_program()
def sf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The mass beyond `x`.

    Shapes: x: T[r], a: T[s], b: T[t], loc: T[u], scale: T[v] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.truncnorm.sf (0.10).

    Example:
        >>> minijax.scipy.stats.truncnorm.sf(-1.0, -1.0, 1.0)
        Array(1., dtype=float32)
    """
    z, a, b, _ = _prepared("sf", x, a, b, loc, scale)
    value, empty = _logcdf(neg(z), neg(b), neg(a))
    return where(empty, np.nan, exp(value))


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
