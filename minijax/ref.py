"""Mutable references to arrays.  Mirrors jax.ref."""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)
