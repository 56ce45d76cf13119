"""Jaxprs, types and primitives, for tools and rules of users' own.  Mirrors jax.extend.core."""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)
