"""Needed by numpyro (trace_state_clean) and flax (ShapedArray)."""

from minijax.as_jax.traces import trace_state_clean as trace_state_clean
from minijax.core import deferral
from minijax.core.aval import ShapedArray as ShapedArray

deferral.publish(globals())
