"""Array mappings: which dimension each mesh axis splits, the other way round than specs.

Also the shapes that arrays have within one process of many.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from minijax.core.aval import ShapedArray
from minijax.core.errors import IndivisibleError, error
from minijax.core.specs import PartitionSpec, names_of
from minijax.sharding.mesh import Mesh

ArrayMapping = OrderedDict[Any, int]


def get_array_mapping(spec: PartitionSpec) -> ArrayMapping:
    """The dimension that each mesh axis splits, in order of the spec."""
    return OrderedDict((name, dim) for dim, entry in enumerate(spec) for name in names_of(entry))


def array_mapping_to_spec(mapping: Mapping[Any, int]) -> PartitionSpec:
    """The spec in which each mesh axis splits its dimension; the first is the outermost."""
    entries: list[list[Any]] = [[] for _ in range(1 + max(mapping.values(), default=-1))]
    for name, dim in mapping.items():
        entries[dim].append(name)
    return PartitionSpec(*entries)


def tile_aval(sizes: Mapping[Any, int], axes: Mapping[Any, int], aval: ShapedArray) -> ShapedArray:
    """The type of one piece of an array that mesh axes of these sizes split.

    Raises:
        IndivisibleError: a dimension is no multiple of its axes.
    """
    shape = list(aval.shape)
    for name, dim in axes.items():
        shape[dim], rest = divmod(shape[dim], sizes[name])
        if rest:
            error(
                IndivisibleError,
                "tile_aval",
                f"dimension {dim} cannot be split over axis {name!r} of size {sizes[name]}.",
                got=aval.str_short(),
            )
    return aval.with_shape(tuple(shape))


def untile_aval(
    sizes: Mapping[Any, int], axes: Mapping[Any, int], aval: ShapedArray
) -> ShapedArray:
    """The type of the array of which mesh axes of these sizes give pieces of type `aval`."""
    shape = list(aval.shape)
    for name, dim in axes.items():
        shape[dim] *= sizes[name]
    return aval.with_shape(tuple(shape))


def mesh_local_to_global(mesh: Mesh, axes: Mapping[Any, int], aval: ShapedArray) -> ShapedArray:
    """The type of a whole array of which this process holds a part of type `aval`."""
    return untile_aval(mesh.shape, axes, tile_aval(mesh.local_mesh.shape, axes, aval))


def mesh_global_to_local(mesh: Mesh, axes: Mapping[Any, int], aval: ShapedArray) -> ShapedArray:
    """The type of the part that this process holds of an array of type `aval`."""
    return untile_aval(mesh.local_mesh.shape, axes, tile_aval(mesh.shape, axes, aval))
