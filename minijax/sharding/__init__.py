"""Where data lives: devices, meshes and specs as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minijax.core import deferral
from minijax.core.aval import ManualAxisType
from minijax.core.meshes import AbstractMesh, AxisType, get_abstract_mesh
from minijax.core.specs import PartitionSpec
from minijax.sharding.base import Sharding
from minijax.sharding.contexts import get_mesh, set_mesh, use_abstract_mesh, use_mesh
from minijax.sharding.mesh import Mesh
from minijax.sharding.named import NamedSharding
from minijax.sharding.single_device import SingleDeviceSharding, make_single_device_sharding

if TYPE_CHECKING:
    from minijax.sharding.gspmd import GSPMDSharding
    from minijax.sharding.positional import PositionalSharding

__all__ = [
    "AbstractMesh",
    "AxisType",
    "GSPMDSharding",
    "ManualAxisType",
    "Mesh",
    "NamedSharding",
    "PartitionSpec",
    "PmapSharding",
    "PositionalSharding",
    "Sharding",
    "SingleDeviceSharding",
    "auto_axes",
    "explicit_axes",
    "get_abstract_mesh",
    "get_mesh",
    "make_single_device_sharding",
    "reshard",
    "set_mesh",
    "use_abstract_mesh",
    "use_mesh",
]


__getattr__ = deferral.attributes(
    __name__,
    names={
        "runtime.pmap_sharding": "PmapSharding",
        "sharding.gspmd": "GSPMDSharding",
        "sharding.positional": "PositionalSharding",
        "transforms.explicit": "auto_axes explicit_axes reshard",
    },
)


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
