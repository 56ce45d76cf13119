"""The former name of `jit`.  Mirrors jax.experimental.pjit."""

from minijax.lax.shardings import with_sharding_constraint
from minijax.transforms.explicit import auto_axes, explicit_axes, reshard
from minijax.transforms.jit import jit as pjit

__all__ = ["auto_axes", "explicit_axes", "pjit", "reshard", "with_sharding_constraint"]
