"""What JAX keeps under `jax.experimental`; nothing here is less tested than elsewhere."""

from minijax.experimental import checkify, mesh_utils, multihost_utils, pjit
from minijax.lax.host_callbacks import io_callback

__all__ = ["checkify", "io_callback", "mesh_utils", "multihost_utils", "pjit"]
