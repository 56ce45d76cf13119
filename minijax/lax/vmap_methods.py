"""How `vmap` calls functions of which it knows nothing: the values of `vmap_method`.

Input: a function for one example, and a batch of arguments.  Output: stacked results.  Callbacks
and foreign functions share this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.core.errors import error
from minijax.interpreters.structural import moveaxis, new_axis, to_batch_dim
from minijax.lax import slicing, stacking
from minijax.lax.control_flow import mapping

_ONE_BY_ONE = ("sequential", "sequential_unrolled")
NAMES = (*_ONE_BY_ONE, "expand_dims", "broadcast_all", "legacy_vectorized")


def check(name: str, method: Any) -> None:
    """Refuses what is no method.

    Args:
        name: the public function, for messages.
        method: what the user gave as `vmap_method`.

    Raises:
        ValueError: there is no such method.
    """
    if method is not None and method not in NAMES:
        error(
            ValueError,
            name,
            f"unknown vmap_method {method!r}.",
            expected=f"None or one of {', '.join(map(repr, NAMES))}",
        )


def check_chosen(name: str, what: str, method: str | None) -> None:
    """Refuses to batch where the user has not said how.

    Raises:
        NotImplementedError: there is no method.
    """
    if method is None:
        error(
            NotImplementedError,
            name,
            f"vmap does not know how to call {what} for a batch.",
            got="vmap_method=None",
            expected=f"one of {', '.join(map(repr, NAMES))}",
            fix="vmap_method='sequential' calls it once per example; with 'expand_dims' "
            "or 'broadcast_all' it gets the whole batch along axis 0",
        )


def is_one_by_one(method: str) -> bool:
    """Whether the function is called for each example, not with the whole batch."""
    return method in _ONE_BY_ONE


def call_for_each(
    method: str,
    call: Callable[..., Sequence[Any]],
    args: Sequence[Any],
    dims: Sequence[int | None],
    size: int,
) -> tuple[list[Any], list[int]]:
    """The results of `call` for each example of a batch in turn, stacked."""
    # Without examples, only a loop knows the types of the results.
    if method == "sequential" or size == 0:
        return call_in_loop(call, args, dims)
    rows = [call(*example(i, args, dims)) for i in range(size)]
    outs = [stacking.stack(column) for column in zip(*rows, strict=True)]
    return outs, [0] * len(outs)


def example(i: int, args: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
    """The arguments of one example of a batch."""
    return [
        x if d is None else slicing.index_in_dim(x, i, d, keepdims=False)
        for x, d in zip(args, dims, strict=True)
    ]


def call_in_loop(
    call: Callable[..., Sequence[Any]], args: Sequence[Any], dims: Sequence[int | None]
) -> tuple[list[Any], list[int]]:
    """The results of `call` for each example of a batch in turn, stacked, by a loop."""
    mapped = [moveaxis(x, d, 0) for x, d in zip(args, dims, strict=True) if d is not None]

    def step(slices: Sequence[Any]) -> Sequence[Any]:
        given = iter(slices)
        return call(*(x if d is None else next(given) for x, d in zip(args, dims, strict=True)))

    outs = list(mapping.map(step, mapped))
    return outs, [0] * len(outs)


def whole(method: str, x: Any, dim: int | None, size: int) -> Any:
    """An operand for a call with the whole batch.

    Args:
        method: `"expand_dims"`, `"broadcast_all"` or `"legacy_vectorized"`.
        x: the operand.
        dim: its batch dimension; None if it is the same for all examples.
        size: the size of the batch.
    """
    if dim is not None or method == "broadcast_all":
        return to_batch_dim(x, dim, 0, size)
    return new_axis(x, 1, 0) if method == "expand_dims" else x
