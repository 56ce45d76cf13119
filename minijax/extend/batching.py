"""Registration of rules for batches of users' primitives.  Mirrors jax.interpreters.batching."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any

from minijax.core import axes, rules
from minijax.core.errors import error
from minijax.core.primitive import PRIMITIVES, Primitive
from minijax.extend.ad import RuleTable
from minijax.interpreters.batching import not_mapped
from minijax.interpreters.structural import moveaxis, to_batch_dim
from minijax.runtime.annotations import ArrayLike


def _plain(rule: Callable[..., Any]) -> Callable[..., Any]:
    """JAX's form, without the size of the batch, as our own."""

    def batch(size: int, args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
        return rule(args, dims, **params)

    return batch


def _with_axis(rule: Callable[..., Any]) -> Callable[..., Any]:
    def batch(size: int, args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
        return rule(size, args, dims, **params)

    return batch


class _Declared(MutableMapping[Primitive, Callable[..., Any]]):
    """A table of rules of the package: setting an entry declares the rule of one primitive."""

    def __init__(self, table: rules.Rules) -> None:
        self._table = table

    def __setitem__(self, primitive: Primitive, rule: Callable[..., Any]) -> None:
        self._table.set(rule, primitive)

    def __getitem__(self, primitive: Primitive) -> Callable[..., Any]:
        found: Callable[..., Any] | None = self._table.of(primitive)
        if found is None:
            name = self._table.name
            error(KeyError, primitive.name, f"the primitive has no rule {name!r}.")
        return found

    def __delitem__(self, primitive: Primitive) -> None:
        self._table.remove(primitive)

    def __contains__(self, primitive: object) -> bool:
        return self._table.of(primitive) is not None

    def __iter__(self) -> Iterator[Primitive]:
        return (p for p in PRIMITIVES.values() if p in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


primitive_batchers = RuleTable("batch", _plain)
"""Rules for batches: `rule(args, dims, **params)` gives the result and its batch dimension."""

fancy_primitive_batchers = RuleTable("batch", _with_axis)
"""As `primitive_batchers`, told the size of the batch: `rule(size, args, dims, **params)`."""

spmd_primitive_batchers = _Declared(axes.batch_spmd)
"""Rules for batches that mesh axes split: `rule(size, mesh axes, args, dims, **params)`."""


def bdim_at_front(x: ArrayLike, dim: int | None, size: int) -> Any:
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
