"""Values that processes share.  Mirrors jax.experimental.multihost_utils."""

from minijax.core import deferral
from minijax.transforms.global_arrays import (
    assert_equal as assert_equal,
    broadcast_one_to_all as broadcast_one_to_all,
    global_array_to_host_local_array as global_array_to_host_local_array,
    host_local_array_to_global_array as host_local_array_to_global_array,
    process_allgather as process_allgather,
    sync_global_devices as sync_global_devices,
)

deferral.publish(globals())
