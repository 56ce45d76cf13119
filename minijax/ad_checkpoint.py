"""Names and residuals of functions under `checkpoint`.  Mirrors jax.ad_checkpoint."""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)
