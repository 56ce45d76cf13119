"""Primitives of users' own: `minijax.extend.core.Primitive` and JAX's registration functions."""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)
