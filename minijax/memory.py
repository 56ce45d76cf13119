"""Memories of devices.  Mirrors jax.memory."""

from minijax.core import deferral
from minijax.core.meshes import Space as Space

deferral.publish(globals())
