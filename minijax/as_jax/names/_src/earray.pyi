"""Needed by flax."""

from minijax.as_jax.placeholders import EArray as EArray
