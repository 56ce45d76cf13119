"""Random numbers from explicit keys, with the figures of `jax.random`."""

from typing import TYPE_CHECKING

from minijax.core import deferral
from minijax.random.counts import binomial, multinomial, poisson
from minijax.random.discrete import (
    bernoulli,
    categorical,
    choice,
    geometric,
    permutation,
    rademacher,
    randint,
)
from minijax.random.distributions import (
    bits,
    cauchy,
    exponential,
    gumbel,
    laplace,
    logistic,
    maxwell,
    normal,
    truncated_normal,
    uniform,
)
from minijax.random.gamma import gamma, loggamma, random_gamma_p
from minijax.random.gamma_family import (
    ball,
    beta,
    chisquare,
    dirichlet,
    f,
    generalized_normal,
    t,
)
from minijax.random.keys import (
    PRNGKey,
    clone,
    fold_in,
    key,
    key_data,
    key_dtype,
    key_impl,
    split,
    wrap_key_data,
)
from minijax.random.parametric import (
    double_sided_maxwell,
    lognormal,
    pareto,
    rayleigh,
    triangular,
    wald,
    weibull_min,
)

if TYPE_CHECKING:
    from minijax.random.multivariate import multivariate_normal, orthogonal

__all__ = [
    "PRNGKey",
    "ball",
    "bernoulli",
    "beta",
    "binomial",
    "bits",
    "categorical",
    "cauchy",
    "chisquare",
    "choice",
    "clone",
    "dirichlet",
    "double_sided_maxwell",
    "exponential",
    "f",
    "fold_in",
    "gamma",
    "generalized_normal",
    "geometric",
    "gumbel",
    "key",
    "key_data",
    "key_dtype",
    "key_impl",
    "laplace",
    "loggamma",
    "logistic",
    "lognormal",
    "maxwell",
    "multinomial",
    "multivariate_normal",
    "normal",
    "orthogonal",
    "pareto",
    "permutation",
    "poisson",
    "rademacher",
    "randint",
    "random_gamma_p",
    "rayleigh",
    "split",
    "t",
    "triangular",
    "truncated_normal",
    "uniform",
    "wald",
    "weibull_min",
    "wrap_key_data",
]


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)


__getattr__ = deferral.attributes(
    __name__, names={"random.multivariate": "multivariate_normal orthogonal"}
)
