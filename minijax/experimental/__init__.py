"""What JAX keeps under `jax.experimental`; nothing here is less tested than elsewhere."""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)
