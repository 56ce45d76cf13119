"""Devices that are none: placements are plain data, and ask of devices only to be hashable."""

import functools


class Mock:
    """A device of some process."""

    def __init__(self, number: int, process: int = 0) -> None:
        self.id = number
        self.process_index = process

    def __repr__(self) -> str:
        return f"Mock({self.id})"

    def __reduce__(self) -> tuple[object, ...]:
        return mock, (self.id, self.process_index)


@functools.cache
def mock(number: int, process: int = 0) -> Mock:
    """The mock of this number; always the same."""
    return Mock(number, process)


def mocks(count: int) -> list[Mock]:
    """The first mocks."""
    return [mock(number) for number in range(count)]
