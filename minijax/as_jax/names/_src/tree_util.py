"""Needed by flax.nnx (_registry) and orbax (flatten_one_level)."""

import minijax.as_jax.placeholders
from minijax.core import deferral
from minijax.core.tree import flatten_one_level as flatten_one_level

_registry = minijax.as_jax.placeholders.registry

deferral.publish(globals())
