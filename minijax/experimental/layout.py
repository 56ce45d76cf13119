"""Layouts of arrays in memory.  Mirrors jax.experimental.layout."""

from minijax.core import deferral
from minijax.transforms.layout_constraint import with_layout_constraint as with_layout_constraint
from minijax.sharding.base import Format as Format, Layout as Layout

deferral.publish(globals())
