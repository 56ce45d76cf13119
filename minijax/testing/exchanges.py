"""What simulated devices ask of each other, how requests differ, and the texts that say so.

Input: the requests of devices that wait, as coordinates, axes and arrays.  Output: the first fact
on which requests that should be one disagree; the text of a `CollectiveMismatch`.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from minijax.core import source
from minijax.core.aval import shaped_array
from minijax.core.errors import message
from minijax.core.native import Traceback
from minijax.testing import numpy_model

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


class Waiting(Protocol):
    """What texts tell of a device: a `coroutines.Device`."""

    coordinates: Coordinates
    state: str
    request: Request | None
    error: BaseException | None
    children: list[Any]


Devices = Mapping[Coordinates, Waiting]
Members = Callable[[Any], Sequence[Coordinates]]


class CollectiveMismatch(RuntimeError):  # noqa: N818  what does not match is the error
    """The devices of a simulation cannot go on: their collectives do not fit together.

    Attributes:
        devices: for each device, by its coordinates, what it does: what it waits in and for whom,
            that it has finished, or what it raised.
    """

    devices: Mapping[Coordinates, str]


def place_text(coordinates: Coordinates) -> str:
    """A device as texts name it: `(x=0, y=1)`."""
    return f"({', '.join(f'{name}={i}' for name, i in coordinates)})"


def places_text(devices: Sequence[Coordinates]) -> str:
    """Several devices as texts name them."""
    return ", ".join(map(place_text, devices))


def user_line(traceback: Traceback | None) -> str:
    """The line of the user's program that asked for something: its place and its code."""
    frame = source.user_frame(traceback)
    if frame is None:
        return "an unknown line"
    code = linecache.getline(frame.file_name, frame.line).strip()
    return f"{frame}: {code}" if code else str(frame)


def collective(request: Request) -> str:
    """A collective as texts name it: `psum over x of f32[4]`, and what else is special about it."""
    over = ", ".join(map(str, request.axes))
    operands = ", ".join(shaped_array(x.shape, x.dtype).str_short() for x in request.operands)
    shown = [
        f"{key}={value}"
        for key, value in request.params.items()
        if key in _TELLING and value is not None
    ]
    return " ".join(
        [
            numpy_model.PUBLIC.get(request.name, request.name),
            f"over {over}",
            f"of {operands}" if operands else "",
            *shown,
        ]
    ).replace("  ", " ")


_TELLING = (
    "axis_index_groups",
    "perm",
    "source",
    "split_axis",
    "concat_axis",
    "all_gather_dimension",
    "scatter_dimension",
    "tiled",
)


def status(device: Waiting, devices: Devices, members: Members) -> str:
    """What a device does, in one line."""
    if device.state == "raised":
        return f"has raised {type(device.error).__name__}: {_first_line(device.error)}"
    if device.state == "finished":
        return "has finished"
    request = device.request
    if request is None:
        return "waits for the devices within it" if device.children else "was still to go on"
    absent = [other for other in members(device) if not _is_for(request, devices.get(other))]
    whom = f", for {places_text(absent)}" if absent else ""
    return f"waits in {collective(request)}{whom}, at {user_line(request.source)}"


def _is_for(request: Request, device: Waiting | None) -> bool:
    """Whether a device waits in the collective that is asked for."""
    if device is None or device.request is None:
        return False
    return difference([request, device.request]) is None


def _first_line(error: BaseException | None) -> str:
    return (str(error).splitlines() or [""])[0]


def statuses(devices: Devices, members: Members) -> dict[Coordinates, str]:
    """What each device does, in one line each."""
    return {c: status(d, devices, members) for c, d in devices.items() if c}


def lines(found: Mapping[Coordinates, str]) -> str:
    """What each device does, a line each, for a message."""
    width = max(len(place_text(c)) for c in found)
    return "\n".join(f"{place_text(c):<{width}}  {text}" for c, text in found.items())


def note_of_failure(failed: Waiting, devices: Devices, members: Members) -> str:
    """What is added to an exception of one device: which one it was, and what all others do."""
    found = statuses(devices, members)
    return (
        f"on the device {place_text(failed.coordinates)} of those simulated; the devices:\n"
        + "\n".join(f"  {line}" for line in lines(found).splitlines())
    )


def mismatch(devices: Devices, members: Members, fault: str | None = None) -> CollectiveMismatch:
    """The error for devices of which none can go on.

    Args:
        devices: all devices, by coordinates.
        members: the group that a device waits for.
        fault: what is wrong with a collective on which its devices agree, if that is it.
    """
    found = statuses(devices, members)
    problem, expected = (fault, None) if fault is not None else _explanation(devices, members)
    error = CollectiveMismatch(
        message(
            "testing.simulate",
            f"{problem}.",
            got=lines(found),
            expected=expected,
            fix="let each device of a group come to the same collectives in the same order: what\n"
            "depends on the device may choose between results (lax.select), not between "
            "collectives",
            at="",
        )
    )
    error.devices = found
    return error


def _explanation(devices: Devices, members: Members) -> tuple[str, str | None]:
    """What is wrong, and what was expected: by the first device that waits with its whole group,
    else by the first whose group has a member that will never come.
    """
    waiting = [(d, d.request) for d in devices.values() if d.request is not None]
    asked = {device.coordinates: request for device, request in waiting}
    for device, _ in waiting:
        group = list(members(device))
        requests = [asked[c] for c in group if c in asked]
        if len(requests) == len(group) and (found := difference(requests)) is not None:
            return _difference_text(device, found, group)
    for device, request in waiting:
        gone = [c for c in members(device) if c not in devices or devices[c].state == "finished"]
        if gone:
            verb = "has" if len(gone) == 1 else "have"
            return (
                f"the device {place_text(device.coordinates)} waits in "
                f"{collective(request)} for {places_text(gone)}, which {verb} finished",
                "as many collectives on each device",
            )
    return "the devices wait for each other", None


def _difference_text(
    device: Waiting, found: Difference, group: Sequence[Coordinates]
) -> tuple[str, str]:
    by_value: dict[str, list[Coordinates]] = {}
    for value, coordinates in zip(found.values, group, strict=True):
        by_value.setdefault(_shown(value), []).append(coordinates)
    different = "; ".join(f"{value} on {places_text(on)}" for value, on in by_value.items())
    return (
        f"the devices that {place_text(device.coordinates)} waits for wait in other collectives",
        f"the same {found.fact}: {different}",
    )


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        inner = ", ".join(map(_shown, value))
        return inner if len(value) == 1 and not isinstance(value[0], int) else f"({inner})"
    return str(value)
