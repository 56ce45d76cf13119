"""Placeholder until the real file lands."""
from __future__ import annotations
from jaxlib import _jax
registry = _jax.pytree.PyTreeRegistry()
dispatch_registry = _jax.pytree.PyTreeRegistry()
def register_dispatch_only_dataclass(cls, data_fields, meta_fields=()):
    dispatch_registry.register_dataclass_node(cls, list(data_fields), list(meta_fields))
def flatten(t, is_leaf=None): return registry.flatten(t, is_leaf)
def unflatten(td, leaves): return td.unflatten(leaves)
