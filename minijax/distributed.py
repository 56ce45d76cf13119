"""Programs of several processes, under the names of jax.distributed."""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)
