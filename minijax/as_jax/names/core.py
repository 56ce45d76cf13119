"""What `jax.core` has besides."""

from minijax.as_jax.traces import (
    find_top_trace as find_top_trace,
    get_opaque_trace_state as get_opaque_trace_state,
)
from minijax.core import deferral
from minijax.core.jaxpr import Atom as Atom
from minijax.extend.declaration import DropVar as DropVar

deferral.publish(globals())
