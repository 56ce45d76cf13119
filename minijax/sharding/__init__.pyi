from minijax.core.value_placement import ManualAxisType as ManualAxisType
from minijax.core.meshes import (
    AbstractMesh as AbstractMesh,
    AxisType as AxisType,
    get_abstract_mesh as get_abstract_mesh,
)
from minijax.core.meshes import PartitionSpec as PartitionSpec
from minijax.runtime.pmap_sharding import PmapSharding as PmapSharding
from minijax.sharding.base import Sharding as Sharding
from minijax.sharding.contexts import (
    get_mesh as get_mesh,
    set_mesh as set_mesh,
    use_abstract_mesh as use_abstract_mesh,
    use_mesh as use_mesh,
)
from minijax.sharding.named import GSPMDSharding as GSPMDSharding
from minijax.sharding.mesh import Mesh as Mesh
from minijax.sharding.named import NamedSharding as NamedSharding
from minijax.sharding.older import PositionalSharding as PositionalSharding
from minijax.sharding.named import (
    SingleDeviceSharding as SingleDeviceSharding,
    make_single_device_sharding as make_single_device_sharding,
)
from minijax.transforms.explicit import (
    auto_axes as auto_axes,
    explicit_axes as explicit_axes,
    reshard as reshard,
)
