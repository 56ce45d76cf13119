"""Names that jax.interpreters.pxla had in earlier versions of JAX."""

from minijax.core import deferral
from minijax.runtime.transfer import (
    InputsHandler as InputsHandler,
    ResultsHandler as ResultsHandler,
)
from minijax.experimental.legacy.older import (
    ShardedDeviceArray as ShardedDeviceArray,
    device_put as device_put,
    full_to_shard as full_to_shard,
    full_to_shard_p as full_to_shard_p,
    make_sharded_device_array as make_sharded_device_array,
    manual_proto as manual_proto,
    shard_to_full as shard_to_full,
    shard_to_full_p as shard_to_full_p,
)
from minijax.experimental.legacy.tiling import (
    NamedAval as NamedAval,
    TileManual as TileManual,
    TileVectorize as TileVectorize,
    lower_mesh_computation as lower_mesh_computation,
    mesh_computation as mesh_computation,
    tile_aval_nd as tile_aval_nd,
    untile_aval_nd as untile_aval_nd,
    vtile as vtile,
    vtile_by_mesh as vtile_by_mesh,
    vtile_manual as vtile_manual,
)

deferral.publish(globals())
