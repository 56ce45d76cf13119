"""Programs that leave the process: exported functions, their files, and sizes that are symbols."""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)
