"""`GSPMDSharding`: devices, and XLA's own description of the tiling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.sharding import hlo
from minijax.sharding.base import Sharding
from minijax.sharding.devices import device_list
from minijax.sharding.tiling import Tiling


class GSPMDSharding(Sharding):
    """An array cut as an `HloSharding` says, for placements that no mesh and spec describe.

    Source:     mirrors jax.sharding.GSPMDSharding, which JAX has since dropped.

    Args:
        devices: the devices, in the order of the tiling.
        hlo_sharding: the tiling.
        memory_kind: a kind of memory of the devices; None for their default.

    Example:
        >>> spread = jax.sharding.GSPMDSharding.get_replicated(jax.devices())
        >>> spread.is_fully_replicated, spread.shard_shape((3,))
        (True, (3,))
    """

    __slots__ = ("_devices", "_hlo_sharding", "_memory_kind")

    def __init__(
        self, devices: Sequence[Any], hlo_sharding: Any, *, memory_kind: str | None = None
    ) -> None:
        self._devices = tuple(devices)
        self._hlo_sharding = hlo_sharding
        self._memory_kind = device_list(self._devices).special_memory_kind(memory_kind)

    @classmethod
    def get_replicated(
        cls, devices: Sequence[Any], *, memory_kind: str | None = None
    ) -> GSPMDSharding:
        """The placement of the whole array on every device."""
        return cls(devices, hlo.REPLICATED, memory_kind=memory_kind)

    @property
    def hlo_sharding(self) -> Any:
        """The tiling, in XLA's terms."""
        return self._hlo_sharding

    @property
    def device_assignment(self) -> tuple[Any, ...]:
        return self._devices

    def tiling(self, ndim: int) -> Tiling:
        return hlo.tiling_of(self._hlo_sharding, ndim, len(self._devices))

    def to_hlo(self, ndim: int) -> Any:
        return self._hlo_sharding

    @property
    def special_memory_kind(self) -> str | None:
        return self._memory_kind

    def with_memory_kind(self, kind: str | None) -> GSPMDSharding:
        return GSPMDSharding(self._devices, self._hlo_sharding, memory_kind=kind)

    @property
    def is_fully_replicated(self) -> bool:
        return bool(self._hlo_sharding.is_replicated()) or len(self._devices) == 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GSPMDSharding) and (
            (self._devices, self._hlo_sharding, self._memory_kind)
            == (other._devices, other._hlo_sharding, other._memory_kind)
        )

    def __hash__(self) -> int:
        return hash((self._devices, self._hlo_sharding, self._memory_kind))

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self._devices, str(self._hlo_sharding), self._memory_kind)

    def __repr__(self) -> str:
        kind = f", memory_kind={self.memory_kind}" if self.memory_kind else ""
        return f"GSPMDSharding({self._hlo_sharding!r}{kind})"


def _unpickle(devices: Any, text: str, memory_kind: Any) -> GSPMDSharding:
    return GSPMDSharding(devices, hlo.HloSharding.from_string(text), memory_kind=memory_kind)
