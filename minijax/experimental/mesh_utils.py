"""Layouts of devices in meshes."""

from minijax.core import deferral
from minijax.runtime.mesh_layout import (
    create_device_mesh as create_device_mesh,
    create_hybrid_device_mesh as create_hybrid_device_mesh,
)

deferral.publish(globals())
