"""What `jax.interpreters.batching` has besides."""

from minijax.as_jax.rules import (
    axis_primitive_batchers as axis_primitive_batchers,
    broadcast as broadcast,
    defbroadcasting as defbroadcasting,
)
from minijax.core import deferral

deferral.publish(globals())
