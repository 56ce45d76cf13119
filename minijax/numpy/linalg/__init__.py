"""Linear algebra as NumPy has it.  Mirrors jax.numpy.linalg."""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)
