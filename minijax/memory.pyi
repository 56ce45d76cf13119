"""Memories of devices.  Mirrors jax.memory."""

from minijax.core.meshes import Space as Space
