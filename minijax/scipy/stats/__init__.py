"""Distributions and statistics, as `jax.scipy.stats` has them."""

from minijax.core import deferral

# Programs may import each distribution by its path, which exists once it is made.
__getattr__, __dir__, __all__ = deferral.attach(
    __name__, __file__, at_once=("minijax.scipy.stats.distributions",)
)
