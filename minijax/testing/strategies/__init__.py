"""Hypothesis strategies for arrays, meshes, and whole per-device programs; failures shrink well.

`device_programs` draws programs that print as code; the others draw what tests of collectives and
shardings need: meshes, partition specs, types, trees, blocks, groups, permutations.
"""

from minijax.core import deferral

__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)
