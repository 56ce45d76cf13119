"""Looking at values while programs run, under the names of jax.debug."""

from minijax.explain.drawing import visualize_array_sharding, visualize_sharding
from minijax.lax.breakpoints import debug_breakpoint as breakpoint
from minijax.lax.debugging import (
    DebugEffect,
    OrderedDebugEffect,
)
from minijax.lax.debugging import (
    debug_callback as callback,
)
from minijax.lax.debugging import (
    debug_log as log,
)
from minijax.lax.debugging import (
    debug_print as print,
)
from minijax.lax.inspection import inspect_array_sharding

__all__ = [
    "DebugEffect",
    "OrderedDebugEffect",
    "breakpoint",
    "callback",
    "inspect_array_sharding",
    "log",
    "print",
    "visualize_array_sharding",
    "visualize_sharding",
]
