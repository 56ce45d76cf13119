"""Named shardings in the notation of Shardy, the partitioner's dialect."""

from __future__ import annotations

import json
from typing import Any

from minijax.core.meshes import MeshAxes
from minijax.core.specs import UNCONSTRAINED, PartitionSpec, names_of

EMPTY_MESH = "#sdy.mesh<[]>"
"""A mesh without axes, for values that are replicated on any mesh."""

FIRST_DEVICE = "#sdy.mesh<[], device_ids=[0]>"
"""The mesh of the first device alone."""


def mesh_text(mesh: MeshAxes) -> str:
    """The attribute that holds a mesh's axes: `#sdy.mesh<["x"=4, "y"=2]>`."""
    axes = ", ".join(f"{axis_text(name)}={size}" for name, size in mesh.shape_tuple)
    return f"#sdy.mesh<[{axes}]>"


def axis_text(name: Any) -> str:
    """The name of an axis as Shardy writes it."""
    return json.dumps(str(name))


def sharding_text(symbol: str, spec: PartitionSpec, ndim: int, *, is_open: bool = False) -> str:
    """The attribute that places a value: `#sdy.sharding<@mesh, [{"x"}, {?}]>`.

    Where it `is_open`, the partitioner may split every dimension over further axes.
    """
    entries = [*spec, *[None] * (ndim - len(spec))]
    dims = ", ".join(_dim_text(entry, is_open) for entry in entries)
    unreduced = ""
    if spec.unreduced:
        axes = ", ".join(sorted(map(axis_text, spec.unreduced)))
        unreduced = f", unreduced={{{axes}}}"
    return f"#sdy.sharding<@{symbol}, [{dims}]{unreduced}>"


def _dim_text(entry: Any, is_open: bool) -> str:
    axes = list(map(axis_text, names_of(entry)))
    if is_open or entry is UNCONSTRAINED:
        axes.append("?")
    return "{" + ", ".join(axes) + "}"
