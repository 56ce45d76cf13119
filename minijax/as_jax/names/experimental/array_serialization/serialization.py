"""Needed by orbax, whose managers have this base, and by flax.training.checkpoints."""

from minijax.as_jax.placeholders import (
    GlobalAsyncCheckpointManager as GlobalAsyncCheckpointManager,
    GlobalAsyncCheckpointManagerBase as GlobalAsyncCheckpointManagerBase,
    get_tensorstore_spec as get_tensorstore_spec,
)
from minijax.core import deferral

deferral.publish(globals())
