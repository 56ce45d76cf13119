from minijax.as_jax.names.extend.core import primitives as primitives
from minijax.as_jax.traces import (
    TraceTag as TraceTag,
    find_top_trace as find_top_trace,
    get_opaque_trace_state as get_opaque_trace_state,
    set_current_trace as set_current_trace,
    take_current_trace as take_current_trace,
)
from minijax.core.jaxpr import Effects as Effects
