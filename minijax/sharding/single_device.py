"""Placement of a whole array on one device."""

from __future__ import annotations

from typing import Any

from minijax.core.aval import Shape
from minijax.sharding import tiling
from minijax.sharding.base import Index, Sharding
from minijax.sharding.devices import device_list
from minijax.sharding.tiling import Tiling


class SingleDeviceSharding(Sharding):
    """The whole array on one device.

    Source:     mirrors jax.sharding.SingleDeviceSharding (0.10).

    Raises:
        ValueError: the device has no memory of kind `memory_kind`.

    Example:
        >>> there = jax.sharding.SingleDeviceSharding(jax.devices()[3])
        >>> jax.device_put(jnp.ones(3), there).devices()
        {CpuDevice(id=3)}
    """

    __slots__ = ("_device", "_memory_kind")

    def __init__(self, device: Any, *, memory_kind: str | None = None) -> None:
        self._device = device
        self._memory_kind = device_list((device,)).special_memory_kind(memory_kind)

    @property
    def device(self) -> Any:
        """The device."""
        return self._device

    @property
    def device_assignment(self) -> tuple[Any, ...]:
        return (self._device,)

    def tiling(self, ndim: int) -> Tiling:
        return tiling.whole(ndim, 1)

    @property
    def special_memory_kind(self) -> str | None:
        return self._memory_kind

    def with_memory_kind(self, kind: str | None) -> SingleDeviceSharding:
        return SingleDeviceSharding(self._device, memory_kind=kind)

    @property
    def is_fully_replicated(self) -> bool:
        return True

    def shard_shape(self, global_shape: Shape) -> Shape:
        return tuple(global_shape)

    def indices(self, global_shape: Shape) -> list[Index]:
        return [(slice(None),) * len(tuple(global_shape))]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, SingleDeviceSharding)
            and self._device == other._device
            and self._memory_kind == other._memory_kind
        )

    def __hash__(self) -> int:
        return hash((self._device, self._memory_kind))

    def __repr__(self) -> str:
        kind = f", memory_kind={self.memory_kind}" if self.memory_kind else ""
        return f"SingleDeviceSharding(device={self._device!r}{kind})"


def make_single_device_sharding(
    device: Any, *, memory_kind: str | None = None
) -> SingleDeviceSharding:
    """The placement of a whole array on one device.

    Source: mirrors jax.sharding.make_single_device_sharding (0.10).

    Raises:
        ValueError: the device has no memory of kind `memory_kind`.

    Example:
        >>> device = jax.devices()[0]
        >>> jax.sharding.make_single_device_sharding(device).device_set == {device}
        True
    """
    return SingleDeviceSharding(device, memory_kind=memory_kind)
