"""Functions that `vmap` maps by rules of their own.  Mirrors jax.custom_batching (0.10)."""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)
