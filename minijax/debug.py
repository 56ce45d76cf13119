"""Looking at values while programs run, under the names of jax.debug."""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)
