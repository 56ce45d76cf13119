"""Hypothesis strategies for arrays, meshes, and whole per-device programs; failures shrink well.

`device_programs` draws programs that print as code; the others draw what tests of collectives and
shardings need: meshes, partition specs, types, trees, blocks, groups, permutations.
"""

from minijax.testing.strategies.communication import (
    RaggedSizes,
    axis_index_groups,
    axis_subsets,
    permutations,
    ragged_sizes,
)
from minijax.testing.strategies.device_programs import device_programs
from minijax.testing.strategies.placements import (
    SHAPES_OF_MESHES,
    meshes,
    partition_specs,
    specs,
)
from minijax.testing.strategies.values import (
    array,
    avals,
    pattern,
    per_device_inputs,
    shapes,
    trees,
)

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
