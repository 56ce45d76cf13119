"""Where equations come from."""

from minijax.as_jax.placeholders import register_exclusion as register_exclusion
from minijax.core import deferral

deferral.publish(globals())
