"""Primitives of users' own: `minijax.extend.core.Primitive` and JAX's registration functions."""

from minijax.extend import ad, backend, batching, core, hooks, mlir

__all__ = ["ad", "backend", "batching", "core", "hooks", "mlir"]


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
