"""Functions of SciPy on arrays, as `jax.scipy` has them; each part loads when it is first named."""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)
