"""Primitives of users' own: `minijax.extend.core.Primitive` and JAX's registration functions."""

from minijax.extend import ad, batching, core, hooks, mlir

__all__ = ["ad", "batching", "core", "hooks", "mlir"]
