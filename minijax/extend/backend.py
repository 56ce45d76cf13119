"""Clients of devices, and how to add a platform.  Mirrors jax.extend.backend."""

import minijax.runtime.client
from minijax.core import deferral
from minijax.runtime.client import (
    get_backend as get_backend,
    register_backend_factory as register_backend_factory,
)

get_default_device = minijax.runtime.client.default_device

deferral.publish(globals())
