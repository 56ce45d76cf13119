from minijax.testing.strategies.arguments import (
    RaggedSizes as RaggedSizes,
    SHAPES_OF_MESHES as SHAPES_OF_MESHES,
    array as array,
    avals as avals,
    axis_index_groups as axis_index_groups,
    axis_subsets as axis_subsets,
    meshes as meshes,
    partition_specs as partition_specs,
    pattern as pattern,
    per_device_inputs as per_device_inputs,
    permutations as permutations,
    ragged_sizes as ragged_sizes,
    shapes as shapes,
    specs as specs,
    trees as trees,
)
from minijax.testing.strategies.device_programs import device_programs as device_programs
