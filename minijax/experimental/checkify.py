"""Errors of compiled programs as values.  Mirrors jax.experimental.checkify."""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)
