"""Values that processes share.  Mirrors jax.experimental.multihost_utils."""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)
