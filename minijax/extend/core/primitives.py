"""The primitives by name, for rules of users' own.  Mirrors jax.extend.core.primitives."""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)
