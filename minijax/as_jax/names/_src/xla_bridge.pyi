"""Needed by chex."""

from minijax.as_jax.placeholders import _backends as _backends
