"""Devices of several processes, as far as placements look at them."""

from typing import NamedTuple


class Process(NamedTuple):
    """The client of a process, as far as devices tell of it."""

    number: int

    def process_index(self) -> int:
        return self.number


class Device(NamedTuple):
    """A device of some process, seen from process 1."""

    id: int
    process_index: int
    client: Process = Process(1)
