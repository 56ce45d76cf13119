"""Compiled programs on disk, under the names of jax.experimental.compilation_cache."""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)
