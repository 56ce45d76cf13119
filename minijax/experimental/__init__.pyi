from minijax.experimental import (
    checkify as checkify,
    compilation_cache as compilation_cache,
    custom_partitioning as custom_partitioning,
    jet as jet,
    layout as layout,
    maps as maps,
    mesh_utils as mesh_utils,
    multihost_utils as multihost_utils,
    ode as ode,
    pallas as pallas,
    pjit as pjit,
    pxla as pxla,
    serialize_executable as serialize_executable,
    shard_map as shard_map,
    sparse as sparse,
)
from minijax.lax.callbacks import io_callback as io_callback
