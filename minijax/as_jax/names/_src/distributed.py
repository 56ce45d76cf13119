"""Needed by orbax."""

from minijax.as_jax.placeholders import global_state as global_state
from minijax.core import deferral

deferral.publish(globals())
