"""Functions of arrays as NumPy has them.  Mirrors jax.numpy.

Importing this gives arrays their operators and methods.
"""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(
    __name__, __file__, at_once=("minijax.numpy.operators",)
)
