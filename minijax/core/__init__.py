"""The language: types, jaxprs, primitives and the tracing context.  Imports no other room.

What JAX shows as jax.core is found here too, and loaded when it is named.
"""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)
