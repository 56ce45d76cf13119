"""Operations on trees of values, under the names of jax.tree."""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)
