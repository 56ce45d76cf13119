"""Names and residuals of functions under `checkpoint`.  Mirrors jax.ad_checkpoint."""

from minijax import checkpoint_policies as checkpoint_policies
from minijax.core import deferral
from minijax.interpreters.remat import (
    Offloadable as Offloadable,
    Recompute as Recompute,
    Saveable as Saveable,
)
from minijax.transforms.autodiff.checkpoint import (
    checkpoint as checkpoint,
    checkpoint_name as checkpoint_name,
    print_saved_residuals as print_saved_residuals,
    remat as remat,
    saved_residuals as saved_residuals,
)

deferral.publish(globals())
