"""Maps over named axes.  Mirrors jax.experimental.maps of JAX before 0.4.31."""

from minijax.sharding import Mesh
from minijax.transforms.resources import custom_resource_typing_rules, resource_typecheck
from minijax.transforms.xmap import xmap

__all__ = ["Mesh", "custom_resource_typing_rules", "resource_typecheck", "xmap"]
