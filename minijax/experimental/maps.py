"""Maps over named axes.  Mirrors jax.experimental.maps of JAX before 0.4.31."""

from minijax.core import deferral
from minijax.sharding import Mesh as Mesh
from minijax.experimental.legacy.tiling import (
    custom_resource_typing_rules as custom_resource_typing_rules,
    resource_typecheck as resource_typecheck,
)
from minijax.experimental.legacy.xmap import xmap as xmap

deferral.publish(globals())
