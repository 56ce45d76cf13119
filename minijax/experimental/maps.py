"""Maps over named axes.  Mirrors jax.experimental.maps of JAX before 0.4.31."""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)
