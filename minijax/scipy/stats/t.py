"""Student's distribution with `df` degrees of freedom."""

from __future__ import annotations

from typing import Any

from minijax.lax.binary import add, div, mul, sub
from minijax.lax.unary import exp, log, log1p, neg, square
from minijax.numpy.one_program import one_program
from minijax.scipy.special.gamma_functions import betaln
from minijax.scipy.stats.operands import floats

__all__ = ["logpdf", "pdf"]


@one_program()
def logpdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density at `x`.

    Shapes: x: T[r], df: T[s], loc: T[t], scale: T[u] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.t.logpdf (0.10).

    Example:
        >>> minijax.scipy.stats.t.logpdf(jnp.inf, 2.0)
        Array(-inf, dtype=float32, weak_type=True)
    """
    x, df, loc, scale = floats("t.logpdf", x=x, df=df, loc=loc, scale=scale)
    z = div(sub(x, loc), scale)
    half = mul(df, 0.5)
    norm = add(add(betaln(0.5, half), mul(log(df), 0.5)), log(scale))
    return neg(add(norm, mul(add(half, 0.5), log1p(div(square(z), df)))))


@one_program()
def pdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density at `x`.

    Shapes: x: T[r], df: T[s], loc: T[t], scale: T[u] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.t.pdf (0.10).

    Example:
        >>> minijax.scipy.stats.t.pdf(jnp.inf, 2.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return exp(logpdf(x, df, loc, scale))


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
