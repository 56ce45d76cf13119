"""Integrals of sampled values.  Mirrors jax.scipy.integrate."""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)
