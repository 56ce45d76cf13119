"""What `checkpoint` can save for the backward pass.  Mirrors jax.checkpoint_policies."""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)
