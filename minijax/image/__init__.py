"""Resampling of images, and of arrays of any rank.  Mirrors jax.image."""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)
