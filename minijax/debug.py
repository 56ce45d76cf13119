"""Looking at values while programs run, under the names of jax.debug."""

import minijax.lax.debugging
from minijax.core import deferral
from minijax.explain.display.drawing import (
    visualize_array_sharding as visualize_array_sharding,
    visualize_sharding as visualize_sharding,
)
from minijax.lax.debugging import (
    DebugEffect as DebugEffect,
    OrderedDebugEffect as OrderedDebugEffect,
    inspect_array_sharding as inspect_array_sharding,
)

breakpoint = minijax.lax.debugging.debug_breakpoint
callback = minijax.lax.debugging.debug_callback
log = minijax.lax.debugging.debug_log
print = minijax.lax.debugging.debug_print

deferral.publish(globals())
