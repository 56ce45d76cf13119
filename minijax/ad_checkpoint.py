"""Names and residuals of functions under `checkpoint`.  Mirrors jax.ad_checkpoint."""

from minijax import checkpoint_policies
from minijax.interpreters.rematerialization import Offloadable, Recompute, Saveable
from minijax.transforms.checkpoint import checkpoint, checkpoint_name, remat
from minijax.transforms.residuals import print_saved_residuals, saved_residuals

__all__ = [
    "Offloadable",
    "Recompute",
    "Saveable",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "print_saved_residuals",
    "remat",
    "saved_residuals",
]
