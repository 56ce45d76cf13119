"""Functions with derivatives of their own.  Mirrors jax.custom_derivatives (0.10)."""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)
