"""Layouts as users write them, and as XLA reads them.

Users list dimensions from major to minor, which is `(0, 1, …)` in C's order; XLA the other way
round.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

from minijax.core.errors import error
from minijax.interpreters.custom_calls import Layout


def minor_to_major(
    name: str, argument: str, layout: Any, ndim: int, *, reverse: bool = True
) -> Layout | None:
    """The layout of one array in XLA's order; None for None.

    Args:
        name: the public function, for messages.
        argument: what the user calls it.
        layout: what the user gave: a sequence of dimensions, an object with the attribute
            `major_to_minor`, or None.
        ndim: the rank of the array.
        reverse: whether a sequence goes from major to minor.

    Raises:
        TypeError: it is none of these.
        ValueError: it is tiled, or no order of the array's dimensions.
    """
    if layout is None:
        return None
    given = layout
    if hasattr(layout, "major_to_minor"):
        if getattr(layout, "tiling", None) is not None:
            error(
                ValueError,
                name,
                f"{argument} is tiled, and foreign functions get arrays in strides.",
                got=str(given),
                expected="a layout without tiling",
            )
        layout, reverse = layout.major_to_minor, True
    if not isinstance(layout, Iterable) or isinstance(layout, str | bytes):
        error(
            TypeError,
            name,
            f"{argument} is no layout.",
            got=f"{given!r} of type {type(given).__name__}",
            expected="dimensions from major to minor, such as (0, 1), or None for C's order",
        )
    dims = tuple(map(operator.index, layout))
    if sorted(dims) != list(range(ndim)):
        error(
            ValueError,
            name,
            f"{argument} is no order of the dimensions of its array.",
            got=f"{given!r} for rank {ndim}",
            expected=f"the numbers from 0 to {ndim - 1}, each once" if ndim else "() for a scalar",
        )
    return dims[::-1] if reverse else dims


def all_minor_to_major(
    name: str, argument: str, layouts: Any, ranks: Sequence[int], of_what: str
) -> list[Layout | None]:
    """The layouts of several arrays in XLA's order.

    Args:
        name: the public function, for messages.
        argument: what the user calls them.
        layouts: one for each array, or None for none.
        ranks: of the arrays.
        of_what: what the arrays are, for messages: operands or results.

    Raises:
        TypeError: one is no layout.
        ValueError: there are more or fewer than arrays, or one does not fit to its array.
    """
    if layouts is None:
        return [None] * len(ranks)
    given = list(layouts)
    if len(given) != len(ranks):
        error(
            ValueError,
            name,
            f"{argument} must have a layout for each of the {of_what}.",
            got=f"{len(given)} layouts for {len(ranks)} {of_what}",
            fix="None stands for C's order",
        )
    return [
        minor_to_major(name, f"{argument}[{i}]", layout, ndim)
        for i, (layout, ndim) in enumerate(zip(given, ranks, strict=True))
    ]
