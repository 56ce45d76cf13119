"""Random numbers from explicit keys, with the figures of `jax.random`."""

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

__all__ = [
    "PRNGKey",
    "bernoulli",
    "bits",
    "categorical",
    "cauchy",
    "choice",
    "clone",
    "double_sided_maxwell",
    "exponential",
    "fold_in",
    "geometric",
    "gumbel",
    "key",
    "key_data",
    "key_dtype",
    "key_impl",
    "laplace",
    "logistic",
    "lognormal",
    "maxwell",
    "normal",
    "pareto",
    "permutation",
    "rademacher",
    "randint",
    "rayleigh",
    "split",
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
