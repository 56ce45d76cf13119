"""The array language: primitives with all their rules, and the functions under them.

Mirrors jax.lax.
"""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)
