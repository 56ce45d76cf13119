"""Hypothesis strategies for meshes and shardings; failures shrink to small ones.

Input: what must be respected, such as a shape.  Output: strategies of values of this package.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies

from minijax.core.meshes import AxisType, MeshAxes
from minijax.core.specs import PartitionSpec
from minijax.sharding.mesh import Mesh

SHAPES_OF_MESHES: tuple[tuple[int, ...], ...] = (
    (1,),
    (2,),
    (1, 2),
    (2, 1),
    (4,),
    (2, 2),
    (8,),
    (2, 4),
    (4, 2),
    (2, 2, 2),
)


@strategies.composite
def meshes(
    draw: Any,
    devices: Sequence[Any],
    axis_types: Sequence[AxisType] = (AxisType.Auto,),
    *,
    shapes: Sequence[tuple[int, ...]] = SHAPES_OF_MESHES,
) -> Mesh:
    """Meshes over some of `devices`, from one device to eight, of one to three axes.

    Source: a strategy of Hypothesis.

    Args:
        draw: given by Hypothesis.
        devices: the devices to choose from; the first ones are taken, in any order.
        axis_types: the types that axes may have.
        shapes: the sizes that axes may have.

    Example:
        >>> from hypothesis import find
        >>> from minijax.testing import strategies
        >>> dict(find(strategies.meshes(jax.devices()), lambda mesh: mesh.size == 4).shape)
        {'x': 4}
    """
    possible = [shape for shape in shapes if math.prod(shape) <= len(devices)]
    shape = draw(strategies.sampled_from(possible))
    order = draw(strategies.permutations(range(math.prod(shape))))
    box = np.empty(len(order), object)
    box[:] = [devices[i] for i in order]
    types = tuple(draw(strategies.sampled_from(axis_types)) for _ in shape)
    return Mesh(box.reshape(shape), tuple("xyz"[: len(shape)]), types)


@strategies.composite
def specs(draw: Any, mesh: MeshAxes, shape: Sequence[int]) -> PartitionSpec:
    """Specs on `mesh` that cut an array of this shape into equal parts.

    Every such spec may come: several axes on a dimension in any order, trailing entries left out.

    Source: a strategy of Hypothesis.

    Example:
        >>> from hypothesis import find
        >>> from minijax.testing import strategies
        >>> mesh = jax.sharding.AbstractMesh((2, 2), ("x", "y"))
        >>> find(strategies.specs(mesh, (4, 3)), lambda spec: len(set(spec.names())) == 2)
        P(('x', 'y'), None)
    """
    entries: list[Any] = [[] for _ in shape]
    for name in draw(strategies.permutations(mesh.axis_names)):
        size = mesh.axis_size(name)
        fitting = [
            dim
            for dim, length in enumerate(shape)
            if length % (size * math.prod(map(mesh.axis_size, entries[dim]))) == 0
        ]
        dim = draw(strategies.sampled_from([None, *fitting]))
        if dim is not None:
            entries[dim].append(name)
    found = [tuple(names) or None for names in entries]
    while found and found[-1] is None and draw(strategies.booleans()):
        found.pop()
    return PartitionSpec(*found)


partition_specs = specs
