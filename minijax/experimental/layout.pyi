"""Layouts of arrays in memory.  Mirrors jax.experimental.layout."""

from minijax.sharding.base import Format as Format, Layout as Layout
