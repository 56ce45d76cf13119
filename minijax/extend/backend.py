"""Clients of devices, and how to add a platform.  Mirrors jax.extend.backend."""

from minijax.runtime.client import default_device as get_default_device
from minijax.runtime.client import get_backend, register_backend_factory

__all__ = ["get_backend", "get_default_device", "register_backend_factory"]


def __dir__() -> list[str]:
    """The public names, without what the module is made of."""
    return sorted(__all__)
