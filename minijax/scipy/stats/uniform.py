"""The uniform distribution from `loc` to `loc + scale`."""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.lax.binary import add, bitwise_or, div, gt, lt, mul, sub
from minijax.lax.unary import exp, log, neg
from minijax.numpy.one_program import one_program
from minijax.numpy.selection import where
from minijax.scipy.stats.operands import floats

__all__ = ["cdf", "logpdf", "pdf", "ppf"]


@one_program()
def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density at `x`.

    Shapes: x: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.uniform.logpdf (0.10).

    Example:
        >>> minijax.scipy.stats.uniform.logpdf(3.0)
        Array(-inf, dtype=float32, weak_type=True)
    """
    x, loc, scale = floats("uniform.logpdf", x=x, loc=loc, scale=scale)
    outside = bitwise_or(lt(x, loc), gt(x, add(loc, scale)))
    return where(outside, -np.inf, add(neg(log(scale)), mul(x, 0.0)))


@one_program()
def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density at `x`.

    Shapes: x: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.uniform.pdf (0.10).

    Example:
        >>> minijax.scipy.stats.uniform.pdf(jnp.array([-1.0, 1.0, 3.0]), 0.0, 2.0)
        Array([0. , 0.5, 0. ], dtype=float32)
    """
    return exp(logpdf(x, loc, scale))


@one_program()
def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The mass up to `x`.

    Shapes: x: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.uniform.cdf (0.10).

    Example:
        >>> minijax.scipy.stats.uniform.cdf(jnp.array([-1.0, 1.0, 3.0]), 0.0, 2.0)
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    x, loc, scale = floats("uniform.cdf", x=x, loc=loc, scale=scale)
    z = div(sub(x, loc), scale)
    return where(lt(z, 0.0), 0.0, where(gt(z, 1.0), 1.0, z))


@one_program()
def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Below which number the mass is `q`: the inverse of `cdf`.

    Shapes: q: T[r], loc: T[s], scale: T[t] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.uniform.ppf (0.10).

    Example:
        >>> minijax.scipy.stats.uniform.ppf(0.5, loc=3.0)
        Array(3.5, dtype=float32, weak_type=True)
    """
    q, loc, scale = floats("uniform.ppf", q=q, loc=loc, scale=scale)
    outside = bitwise_or(lt(q, 0.0), gt(q, 1.0))
    return where(outside, np.nan, add(mul(q, scale), loc))


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
