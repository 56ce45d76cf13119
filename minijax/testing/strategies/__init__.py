"""Hypothesis strategies for arrays, meshes, and whole per-device programs; failures shrink well.

`device_programs` draws programs that print as code; the others draw what tests of collectives and
shardings need: meshes, partition specs, types, trees, blocks, groups, permutations.
"""

from minijax.testing.strategies.arguments import (
    SHAPES_OF_MESHES,
    RaggedSizes,
    array,
    avals,
    axis_index_groups,
    axis_subsets,
    meshes,
    partition_specs,
    pattern,
    per_device_inputs,
    permutations,
    ragged_sizes,
    shapes,
    specs,
    trees,
)
from minijax.testing.strategies.device_programs import device_programs

__all__ = [
    "SHAPES_OF_MESHES",
    "RaggedSizes",
    "array",
    "avals",
    "axis_index_groups",
    "axis_subsets",
    "device_programs",
    "meshes",
    "partition_specs",
    "pattern",
    "per_device_inputs",
    "permutations",
    "ragged_sizes",
    "shapes",
    "specs",
    "trees",
]


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
