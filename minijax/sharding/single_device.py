"""Placement of a whole array on one device."""

from __future__ import annotations

from typing import Any

from minijax.core.aval import Shape


class Sharding:
    """Base of all descriptions of where the pieces of an array live."""

    __slots__ = ()

    @property
    def device_set(self) -> set[Any]:
        """The devices that hold a piece."""
        raise NotImplementedError

    @property
    def memory_kind(self) -> str | None:
        """The kind of memory, or None for the device's default."""
        return None


class SingleDeviceSharding(Sharding):
    """The whole array on one device.  Mirrors jax.sharding.SingleDeviceSharding."""

    __slots__ = ("_device", "_memory_kind")

    def __init__(self, device: Any, *, memory_kind: str | None = None) -> None:
        self._device = device
        self._memory_kind = memory_kind

    @property
    def device(self) -> Any:
        """The device."""
        return self._device

    @property
    def device_set(self) -> set[Any]:
        return {self._device}

    @property
    def addressable_devices(self) -> set[Any]:
        """The devices of this process among them."""
        return {self._device}

    @property
    def memory_kind(self) -> str | None:
        return self._memory_kind

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process can reach every piece."""
        return True

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds the whole array."""
        return True

    @property
    def num_devices(self) -> int:
        """How many devices hold a piece."""
        return 1

    def shard_shape(self, global_shape: Shape) -> Shape:
        """The shape of each piece."""
        return global_shape

    def devices_indices_map(self, global_shape: Shape) -> dict[Any, tuple[slice, ...]]:
        """Which part of the array each device holds."""
        return {self._device: tuple(slice(None) for _ in global_shape)}

    def is_equivalent_to(self, other: Any, ndim: int) -> bool:
        """Whether both place an array of rank `ndim` alike."""
        return isinstance(other, Sharding) and other.device_set == self.device_set

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, SingleDeviceSharding)
            and self._device == other._device
            and self._memory_kind == other._memory_kind
        )

    def __hash__(self) -> int:
        return hash((self._device, self._memory_kind))

    def __repr__(self) -> str:
        kind = f", memory_kind={self._memory_kind}" if self._memory_kind else ""
        return f"SingleDeviceSharding(device={self._device!r}{kind})"
