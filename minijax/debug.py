"""Looking at values while programs run, under the names of jax.debug."""

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

__all__ = [
    "DebugEffect",
    "OrderedDebugEffect",
    "breakpoint",
    "callback",
    "log",
    "print",
]
