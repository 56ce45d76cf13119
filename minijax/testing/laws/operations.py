"""Every collective as a function of one device's block, for laws that hold of all of them.

Input: a `Case`.  Output: `Operation`s by name, each with the shape of the block it wants.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from minijax.testing.laws.cases import Case


class Operation(NamedTuple):
    """A collective, with all but its operand given.

    Attributes:
        name: its name.
        apply: the function of a block, of axes, and of further options such as groups.
        shape: of the block.
        is_linear: whether it is linear.
        takes_groups: whether it takes `axis_index_groups`.
        is_ordered: whether positions along several axes follow the order of their names; otherwise
            that of the mesh.
    """

    name: str
    apply: Callable[..., Any]
    shape: tuple[int, ...]
    is_linear: bool = True
    takes_groups: bool = True
    is_ordered: bool = True


def operations(case: Case, members: int | None = None) -> dict[str, Operation]:
    """All collectives, by name.

    Args:
        case: says over how many devices, and whether they are tiled.
        members: how many devices communicate, if not all along the axes.
    """
    lax, tiled = case.lax, case.tiled
    n = case.n if members is None else members
    scattered = (3, 2 * n) if tiled else (3, n)
    split = (2 * n, 3) if tiled else (n, 3)
    order = list(case.random.permutation(case.n))
    pairs = [(i, int(d)) for i, d in enumerate(order)]
    source = int(case.random.integers(case.n))

    def gather(x: Any, axes: Any, **options: Any) -> Any:
        return lax.all_gather(x, axes, axis=1, tiled=tiled, **options)

    def scatter(x: Any, axes: Any, **options: Any) -> Any:
        return lax.psum_scatter(x, axes, scatter_dimension=1, tiled=tiled, **options)

    def exchange(x: Any, axes: Any, **options: Any) -> Any:
        return lax.all_to_all(x, axes, 0, 1, tiled=tiled, **options)

    def permute(x: Any, axes: Any) -> Any:
        return lax.ppermute(x, axes, pairs[1:] or pairs)

    def broadcast(x: Any, axes: Any) -> Any:
        return lax.pbroadcast(x, axes, source)

    found = [
        Operation("psum", lax.psum, (2, 3)),
        Operation("pmean", lax.pmean, (2, 3)),
        Operation("all_gather", gather, (2, 3)),
        Operation("psum_scatter", scatter, scattered),
        Operation("all_to_all", exchange, split),
        Operation("ppermute", permute, (2, 3), takes_groups=False, is_ordered=False),
        Operation("pbroadcast", broadcast, (2, 3), takes_groups=False),
        Operation("pmax", lax.pmax, (2, 3), is_linear=False),
        Operation("pmin", lax.pmin, (2, 3), is_linear=False),
    ]
    return {operation.name: operation for operation in found}


def linear_operations(case: Case) -> list[Operation]:
    """The linear ones."""
    return [operation for operation in operations(case).values() if operation.is_linear]
