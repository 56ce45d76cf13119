"""Linear algebra on the last two dimensions of arrays; the others are a batch."""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)
