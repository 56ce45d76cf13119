"""Needed by flax.nnx (_registry) and orbax (flatten_one_level)."""

from minijax.as_jax.placeholders import _registry as _registry
from minijax.core.tree import flatten_one_level as flatten_one_level
