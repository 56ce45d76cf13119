"""Modules of `jax.experimental.array_serialization`."""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)
