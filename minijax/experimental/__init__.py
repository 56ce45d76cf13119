"""What JAX keeps under `jax.experimental`; nothing here is less tested than elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minijax.core import deferral
from minijax.lax.callbacks import io_callback

if TYPE_CHECKING:
    from minijax.experimental import checkify as checkify
    from minijax.experimental import compilation_cache as compilation_cache
    from minijax.experimental import jet as jet
    from minijax.experimental import maps as maps
    from minijax.experimental import mesh_utils as mesh_utils
    from minijax.experimental import multihost_utils as multihost_utils
    from minijax.experimental import pallas as pallas
    from minijax.experimental import pjit as pjit
    from minijax.experimental import pxla as pxla
    from minijax.experimental import shard_map as shard_map

__all__ = [
    "checkify",
    "compilation_cache",
    "io_callback",
    "jet",
    "maps",
    "mesh_utils",
    "multihost_utils",
    "pallas",
    "pjit",
    "pxla",
    "shard_map",
]


__getattr__ = deferral.attributes(__name__, modules=__all__)


def __dir__() -> list[str]:
    """The modules, loaded or not, and what stands beside them."""
    return sorted(__all__)
