"""Profiles that are taken and read here: what ran on which thread, and for how long.

Input: a function to run.  Output: events of jaxlib's profiler, by thread.
"""

from __future__ import annotations

import contextlib
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jaxlib.xla_client import XlaRuntimeError

from minijax.core import native
from minijax.runtime import profiling, watch

Interval = tuple[float, float]
"""The seconds at which something begins and ends."""

RUN = "minijax.explain"
"""What the profile calls the run of the function, in the thread that ran it."""


WAIT = "wait"
"""What the profile calls the time in which a thread waits for an array."""


class Event(NamedTuple):
    """Something that a thread did, in seconds since the profile began.

    Attributes:
        operation: the HLO instruction that ran; empty for all else.
        program: the name of its module.
    """

    name: str
    start: float
    end: float
    operation: str = ""
    program: str = ""

    @property
    def interval(self) -> Interval:
        """When it was."""
        return self.start, self.end


class Run(NamedTuple):
    """A kernel that ran once on one device; `seconds` leave out the kernels that it ran."""

    program: str
    operation: str
    seconds: float


def recorded(run: Callable[[], object]) -> list[list[Event]]:
    """What each thread did while a function ran, by the time at which it began.

    The Python interpreter is not traced, as that would make it slower.

    Raises:
        RuntimeError: a profile is being taken already.
    """
    options = profiling.ProfileOptions()
    options.python_tracer_level = 0
    with tempfile.TemporaryDirectory() as folder:
        with (
            profiling.trace(folder, profiler_options=options),
            watch.waiting_by(_wait),
            profiling.TraceAnnotation(RUN),
        ):
            run()
        (file,) = Path(folder).glob("plugins/profile/*/*.xplane.pb")
        data = profiling.ProfileData.from_file(str(file))
    with warnings.catch_warnings():
        # A type that jaxlib makes at its first use does not say its module.
        warnings.simplefilter("ignore", DeprecationWarning)
        return [
            sorted(map(_event, line.events), key=lambda event: (event.start, -event.end))
            for plane in data.planes
            for line in plane.lines
        ]


def _wait(buffer: Any, others: Callable[[Any], None] | None) -> None:
    """Waits under a name; what has failed is told where the array is used."""
    with profiling.TraceAnnotation(WAIT), contextlib.suppress(XlaRuntimeError):
        if others is not None:
            others(buffer)
        native.block_until_ready(buffer)


def _event(event: Any) -> Event:
    known = dict(event.stats)
    start, end = event.start_ns / 1e9, (event.start_ns + event.duration_ns) / 1e9
    return Event(event.name, start, end, known.get("hlo_op", ""), str(known.get("hlo_module", "")))


def kernel_runs(threads: Sequence[Sequence[Event]]) -> Iterator[Run]:
    """The kernels that ran; a loop, which runs others, counts without them."""
    for events in threads:
        open_runs: list[tuple[Event, list[float]]] = []
        for event in [*events, Event("", float("inf"), float("inf"), "end")]:
            if not event.operation:
                continue
            while open_runs and open_runs[-1][0].end <= event.start:
                ended, inside = open_runs.pop()
                yield Run(ended.program, ended.operation, _length(ended) - sum(inside))
            if open_runs:
                open_runs[-1][1].append(_length(event))
            open_runs.append((event, []))


def _length(event: Event) -> float:
    return event.end - event.start


def covered(intervals: Sequence[Interval]) -> float:
    """For how many seconds at least one of the intervals lasts."""
    total, reached = 0.0, -float("inf")
    for start, end in sorted(intervals):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total
