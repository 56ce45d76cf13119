"""The generalised normal distribution of shape `beta`: normal for 2, Laplace's for 1."""

from __future__ import annotations

from minijax.lax.binary import add, div, mul, sub
from minijax.lax.unary import abs, exp, log, pow, sign
from minijax.numpy.one_program import one_program
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.scipy.special.gamma_functions import gammainc, gammaln
from minijax.scipy.stats.operands import floats

__all__ = ["cdf", "logpdf", "pdf"]


@one_program()
def logpdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The logarithm of the density at `x`.

    Shapes: x: T[r], beta: T[s] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.gennorm.logpdf (0.10).

    Example:
        >>> minijax.scipy.stats.gennorm.logpdf(jnp.inf, 2.0)
        Array(-inf, dtype=float32, weak_type=True)
    """
    x, beta = floats("gennorm.logpdf", x=x, beta=beta)
    return sub(sub(log(mul(beta, 0.5)), gammaln(div(1.0, beta))), pow(abs(x), beta))


@one_program()
def pdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The density at `x`.

    Shapes: x: T[r], beta: T[s] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.gennorm.pdf (0.10).

    Example:
        >>> minijax.scipy.stats.gennorm.pdf(jnp.inf, 2.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return exp(logpdf(x, beta))


@one_program()
def cdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The mass up to `x`.

    Shapes: x: T[r], beta: T[s] -> T[broadcast of all].
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.gennorm.cdf (0.10).

    Example:
        >>> minijax.scipy.stats.gennorm.cdf(0.0, 2.0)
        Array(0.5, dtype=float32, weak_type=True)
    """
    x, beta = floats("gennorm.cdf", x=x, beta=beta)
    return mul(0.5, add(1.0, mul(sign(x), gammainc(div(1.0, beta), pow(abs(x), beta)))))


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
