"""What `jax.experimental.multihost_utils` has besides; needed by orbax."""

from minijax.as_jax.placeholders import (
    reached_preemption_sync_point as reached_preemption_sync_point,
)
from minijax.core import deferral

deferral.publish(globals())
