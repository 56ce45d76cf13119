"""What simulated devices ask of each other, and how requests that should be one differ."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

Coordinates = tuple[tuple[Hashable, int], ...]
"""Where a device is: for each mesh axis, the outermost first, its position."""

Arrays = tuple[np.ndarray[Any, Any], ...]


class Request(NamedTuple):
    """A collective that a device waits in.

    Attributes:
        name: the primitive.
        axes: the mesh axes it works over, in the order of its groups.
        params: its parameters, on which all devices must agree.
        operands: this device's arrays.
        source: the traceback of where the user's program asks for it.
    """

    name: str
    axes: tuple[Any, ...]
    params: Mapping[str, Any]
    operands: Arrays
    source: Any


class Exchange(NamedTuple):
    """One collective that took place: what each device of a group gave and got.

    Attributes:
        name: the primitive.
        axes: the mesh axes it works over.
        params: its parameters.
        line: `file:line in function` of the user's program.
        members: the coordinates of the devices, in the order in which the collective counts them.
        inputs: the operands of each.
        outputs: the results of each.
    """

    name: str
    axes: tuple[Any, ...]
    params: Mapping[str, Any]
    line: str
    members: tuple[Coordinates, ...]
    inputs: tuple[Arrays, ...]
    outputs: tuple[Arrays, ...]


class Difference(NamedTuple):
    """A fact that the requests of a group disagree on, and what it is for each member."""

    fact: str
    values: Sequence[Any]


_FACTS: tuple[tuple[str, Callable[[Request], Any]], ...] = (
    ("collective", lambda r: r.name),
    ("axes", lambda r: r.axes),
    ("shapes of operands", lambda r: tuple(x.shape for x in r.operands)),
    ("dtypes of operands", lambda r: tuple(x.dtype for x in r.operands)),
)


def difference(requests: Sequence[Request]) -> Difference | None:
    """The first fact that requests disagree on; None where all are the same collective."""
    for fact, of in _FACTS:
        values = [of(r) for r in requests]
        if any(v != values[0] for v in values):
            return Difference(fact, values)
    for key in requests[0].params:
        values = [r.params.get(key) for r in requests]
        if any(v != values[0] for v in values):
            return Difference(key, values)
    return None
