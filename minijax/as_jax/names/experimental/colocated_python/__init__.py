"""Modules of `jax.experimental.colocated_python`."""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)
