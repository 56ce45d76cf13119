"""Registration of rules for batches of users' primitives.  Mirrors jax.interpreters.batching."""

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
"""Rules for batches: `rule(args, dims, **params)` gives the result and its batch dimension."""

fancy_primitive_batchers = RuleTable("batch", _with_axis)
"""As `primitive_batchers`, told the size of the batch: `rule(size, args, dims, **params)`."""

spmd_primitive_batchers = RuleTable("batch_spmd")
"""Rules for batches that mesh axes split: `rule(size, mesh axes, args, dims, **params)`."""


def bdim_at_front(x: Any, dim: int | None, size: int) -> Any:
    """A value with its batch dimension in front; repeated where it is not mapped.

    Args:
        x: an array.
        dim: which of its dimensions runs over the batch; None for none.
        size: the size of the batch.

    Source:     mirrors jax.interpreters.batching.bdim_at_front (0.10).

    Example:
        >>> jax.extend.batching.bdim_at_front(jnp.zeros((2, 3)), 1, 3).shape
        (3, 2)
        >>> jax.extend.batching.bdim_at_front(jnp.arange(2), None, 3).tolist()
        [[0, 1], [0, 1], [0, 1]]
    """
    return to_batch_dim(x, dim, 0, size)


def defvectorized(primitive: Primitive) -> None:
    """Says that a primitive with one argument treats every element alike.

    Source:     mirrors jax.interpreters.batching.defvectorized (0.10).

    Example:
        >>> double = jax.extend.core.Primitive("doubled")
        >>> _ = double.def_impl(lambda x: x + x), double.def_abstract_eval(lambda x: x)
        >>> jax.extend.batching.defvectorized(double)
        >>> jax.vmap(double.bind)(jnp.arange(3))
        Array([0, 2, 4], dtype=int32)
    """
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


def __dir__() -> list[str]:
    """The public names, without what the module is made of."""
    return sorted(__all__)
