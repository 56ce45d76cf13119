"""Random numbers from explicit keys, with the figures of `jax.random`."""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)
