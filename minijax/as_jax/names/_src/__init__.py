"""Modules that JAX keeps to itself, as far as packages reach for them."""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)
