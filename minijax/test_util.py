"""Checks of derivatives for users' tests.  Mirrors jax.test_util."""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)
