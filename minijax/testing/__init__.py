"""What tests need, of this project and of programs written with it: a leaf of the layers.

The names that need Hypothesis, `given_mesh`, `laws` and `strategies`, load when they are first
named.
"""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)
