"""Clients of devices, and how to add a platform.  Mirrors jax.extend.backend."""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)
