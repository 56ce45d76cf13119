"""Functions that `vmap` maps by rules of their own.  Mirrors jax.custom_batching (0.10)."""

from minijax.core import deferral
from minijax.transforms.autodiff.custom_batching import (
    custom_vmap as custom_vmap,
    sequential_vmap as sequential_vmap,
)

deferral.publish(globals())
