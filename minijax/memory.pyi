"""Memories of devices.  Mirrors jax.memory."""

from minijax.sharding.mesh import Space as Space
