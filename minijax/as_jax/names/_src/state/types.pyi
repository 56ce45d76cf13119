"""Needed by flax.nnx."""

from minijax.core.refs import AbstractRef as AbstractRef
