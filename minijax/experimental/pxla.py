"""Names that jax.interpreters.pxla had in earlier versions of JAX."""

from minijax.runtime.transfer import InputsHandler, ResultsHandler
from minijax.transforms.full_to_shard import (
    full_to_shard,
    full_to_shard_p,
    manual_proto,
    shard_to_full,
    shard_to_full_p,
)
from minijax.transforms.older_arrays import (
    ShardedDeviceArray,
    device_put,
    make_sharded_device_array,
)
from minijax.transforms.tiling import (
    NamedAval,
    TileManual,
    TileVectorize,
    lower_mesh_computation,
    mesh_computation,
    tile_aval_nd,
    untile_aval_nd,
    vtile,
    vtile_by_mesh,
    vtile_manual,
)

__all__ = [
    "InputsHandler",
    "NamedAval",
    "ResultsHandler",
    "ShardedDeviceArray",
    "TileManual",
    "TileVectorize",
    "device_put",
    "full_to_shard",
    "full_to_shard_p",
    "lower_mesh_computation",
    "make_sharded_device_array",
    "manual_proto",
    "mesh_computation",
    "shard_to_full",
    "shard_to_full_p",
    "tile_aval_nd",
    "untile_aval_nd",
    "vtile",
    "vtile_by_mesh",
    "vtile_manual",
]
