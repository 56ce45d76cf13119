"""Linear systems whose matrices need not be written out, by part."""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)
