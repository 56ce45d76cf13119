"""Names of JAX that minijax has not by itself, in modules as JAX has them."""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)
