"""Registration of batching rules for primitives of users' own, by JAX's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minijax.core.primitive import Primitive
from minijax.extend.ad import RuleTable
from minijax.interpreters.batching import not_mapped
from minijax.interpreters.structural import moveaxis, to_batch_dim


def _plain(rule: Callable[..., Any]) -> Callable[..., Any]:
    """JAX's form, without the size of the batch, as our own."""

    def batch(size: int, args: Any, dims: Any, **params: Any) -> Any:
        return rule(args, dims, **params)

    return batch


def _with_axis(rule: Callable[..., Any]) -> Callable[..., Any]:
    def batch(size: int, args: Any, dims: Any, **params: Any) -> Any:
        return rule(size, args, dims, **params)

    return batch


primitive_batchers = RuleTable("batch", _plain)
fancy_primitive_batchers = RuleTable("batch", _with_axis)
spmd_primitive_batchers = RuleTable("batch_spmd")
"""Rules for batches that mesh axes split: `rule(size, mesh axes, args, dims, **params)`."""


def bdim_at_front(x: Any, dim: int | None, size: int) -> Any:
    """A value with its batch dimension in front; repeated where it is not mapped."""
    return to_batch_dim(x, dim, 0, size)


def defvectorized(primitive: Primitive) -> None:
    """Says that a primitive with one argument treats every element alike."""
    primitive_batchers[primitive] = lambda args, dims, **params: (
        primitive.bind(args[0], **params),
        dims[0],
    )


__all__ = [
    "bdim_at_front",
    "defvectorized",
    "fancy_primitive_batchers",
    "moveaxis",
    "not_mapped",
    "primitive_batchers",
    "spmd_primitive_batchers",
]
