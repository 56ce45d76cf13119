"""Ordered lists of devices: what placements have in common, found out once for each list.

Devices are those of a client, or any hashable objects: meshes of mocks are as good as others
until something is placed on them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

from minijax.core.cache import Cache
from minijax.core.errors import message

MEMORY_KINDS = ("device", "pinned_host", "unpinned_host")
"""The kinds of memory that devices may have; the first is the default where none is known."""


class DeviceList:
    """Devices in order.  `device_list` gives the same object for the same devices."""

    def __init__(self, devices: Sequence[Any]) -> None:
        self._devices = tuple(devices)
        self._hash = hash(self._devices)

    def __len__(self) -> int:
        return len(self._devices)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._devices)

    def __getitem__(self, index: Any) -> Any:
        return self._devices[index]

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, DeviceList)
            and self._hash == other._hash
            and self._devices == other._devices
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"DeviceList{self._devices}"

    def __reduce__(self) -> tuple[Any, ...]:
        return device_list, (self._devices,)

    @functools.cached_property
    def addressable_device_list(self) -> DeviceList:
        """The devices of this process among them."""
        own = tuple(filter(is_local, self._devices))
        return self if len(own) == len(self._devices) else device_list(own)

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all devices belong to this process."""
        return self.addressable_device_list is self

    @functools.cached_property
    def process_indices(self) -> frozenset[int]:
        """The numbers of the processes that hold the devices."""
        return frozenset(getattr(device, "process_index", 0) for device in self._devices)

    @functools.cached_property
    def default_memory_kind(self) -> str | None:
        """The kind of memory that arrays live in by default; None if the devices do not tell."""
        device = self._typical
        return device.default_memory().kind if hasattr(device, "default_memory") else None

    @functools.cached_property
    def memory_kinds(self) -> tuple[str, ...]:
        """The kinds of memory that the devices have."""
        device = self._typical
        if not hasattr(device, "addressable_memories"):
            return ()
        return tuple(memory.kind for memory in device.addressable_memories())

    @property
    def _typical(self) -> Any:
        """A device of this process, as others cannot be asked about their memory."""
        return next(iter(self.addressable_device_list), None)

    def special_memory_kind(self, kind: str | None) -> str | None:
        """`kind`, or None where it is the default.

        Raises:
            ValueError: the devices have no such memory; the text lists the kinds they have.
        """
        if kind is None or kind == self.default_memory_kind:
            return None
        if self.memory_kinds:
            check_memory_kind(kind, self.memory_kinds, f"{self._typical.platform.upper()} devices")
        return kind


_lists = Cache(
    "device lists",
    "lists of devices, each one object",
    key="devices",
    most=2048,
    emptied=True,
)


@_lists.function
def device_list(devices: tuple[Any, ...]) -> DeviceList:
    """The list of these devices; the same object while it is remembered."""
    return DeviceList(devices)


def is_local(device: Any) -> bool:
    """Whether this process can reach a device; mocks count as reachable."""
    client = getattr(device, "client", None)
    return client is None or device.process_index == client.process_index()


def check_memory_kind(kind: str, kinds: Sequence[str], owner: str) -> None:
    """Refuses a kind of memory that `owner` does not have.

    Raises:
        ValueError: the text lists the kinds it has.
    """
    if kind not in kinds:
        raise ValueError(
            message(
                "sharding",
                f"there is no memory of kind {kind!r}.",
                got=owner,
                expected="one of " + ", ".join(kinds),
            )
        )
