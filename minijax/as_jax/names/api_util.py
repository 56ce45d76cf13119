"""What functions of trees and of flat values have to do with each other."""

import minijax.core.tree
import minijax.transforms.jit.tracing
from minijax.as_jax.functions import (
    argnums_partial as argnums_partial,
    debug_info as debug_info,
    flatten_fun as flatten_fun,
    flatten_fun_nokwargs as flatten_fun_nokwargs,
    safe_map as safe_map,
)
from minijax.core import deferral

flatten_axes = minijax.core.tree.flatten_axes
shaped_abstractify = minijax.transforms.jit.tracing.typeof

deferral.publish(globals())
