"""Functions in machine code, such as kernels in C++, as operations of programs."""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)
