"""`PmapSharding`: slices of arrays on devices, one each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from minijax.core import deferral, source
from minijax.core.aval import Shape
from minijax.core.errors import error
from minijax.runtime import client
from minijax.sharding.base import Sharding
from minijax.sharding.hlo import Tiling
from minijax.sharding.mesh import device_list

if TYPE_CHECKING:
    from minijax.sharding import older
    from minijax.sharding.older import ShardingSpec
else:
    older = deferral.module("minijax.sharding.older")


@source.boundaries("__init__", "default", "shard_shape")
class PmapSharding(Sharding):
    """An array cut as a `ShardingSpec` says, over a box of devices.

    Pieces lack the dimension along which the array is taken apart.

    Args:
        devices: the devices, of the shape that the spec's `mesh_shape` says, or in its order.
        sharding_spec: how the array is cut.

    Source: mirrors jax.sharding.PmapSharding, which JAX has since dropped.

    Raises:
        ValueError: there are not as many devices as the spec cuts for.

    Example:
        >>> jax.sharding.PmapSharding.default((8, 3)).shard_shape((8, 3))
        (3,)
    """

    __slots__ = ("_devices", "_memory_kind", "sharding_spec")

    older: ShardingSpec

    def __init__(
        self, devices: object, sharding_spec: ShardingSpec, *, memory_kind: str | None = None
    ) -> None:
        self._devices = tuple(np.asarray(devices, dtype=object).flat)
        self.sharding_spec = sharding_spec
        self._memory_kind = device_list(self._devices).special_memory_kind(memory_kind)
        shape = sharding_spec.mesh_shape
        if len(self._devices) != np.prod(shape, dtype=int):
            problem = "the numbers of devices and of pieces differ."
            got = f"{len(self._devices)} devices, pieces in a box of shape {shape}"
            error(ValueError, "PmapSharding", problem, got=got)

    @classmethod
    def default(
        cls, shape: Shape, sharded_dim: int | None = 0, devices: Sequence[Any] | None = None
    ) -> PmapSharding:
        """One slice along `sharded_dim` for each device; all of the array if it is None.

        Args:
            shape: the shape of the array.
            sharded_dim: the dimension to take apart.
            devices: the devices; the first ones of this process if absent.
        """
        found = client.local_devices() if devices is None else list(devices)
        if sharded_dim is None:
            spec = older.create_pmap_sharding_spec(shape, None, len(found))
        else:
            spec = older.create_pmap_sharding_spec(shape, sharded_dim)
        if devices is None:
            found = found[: np.prod(spec.mesh_shape, dtype=int)]
        return cls(found, spec)

    @property
    def device_assignment(self) -> tuple[Any, ...]:
        return self._devices

    def tiling(self, ndim: int) -> Tiling:
        return self._spec_for(ndim).tiling()

    def _spec_for(self, ndim: int) -> ShardingSpec:
        """The spec for arrays with further dimensions, that of elements of extended dtypes."""
        spec = self.sharding_spec
        more = ndim - len(spec.sharding)
        if more <= 0:
            return spec
        whole = [older.NoSharding()] * more
        return older.ShardingSpec([*spec.sharding, *whole], spec.mesh_mapping)

    @property
    def unstacked_dims(self) -> tuple[int, ...]:
        return self.sharding_spec.unstacked_dims

    def to_hlo(self, ndim: int) -> Any:
        return self.sharding_spec.sharding_proto()

    def shard_shape(self, global_shape: Shape) -> Shape:
        sizes = self._spec_for(len(global_shape)).piece_sizes(tuple(global_shape))
        gone = self.unstacked_dims
        return tuple(size for d, size in enumerate(sizes) if d not in gone)

    def indices(self, global_shape: Shape) -> list[Any]:
        spec = self._spec_for(len(global_shape))
        return list(older.spec_to_indices(tuple(global_shape), spec))

    def with_memory_kind(self, kind: str | None) -> PmapSharding:
        return PmapSharding(self._devices, self.sharding_spec, memory_kind=kind)

    @property
    def is_fully_replicated(self) -> bool:
        factors = self.sharding_spec.tiling().factors
        return not self.unstacked_dims and max(factors, default=1) == 1

    def _facts(self) -> tuple[Any, ...]:
        return self._devices, self.sharding_spec, self._memory_kind

    def __repr__(self) -> str:
        ids = [getattr(device, "id", device) for device in self._devices]
        return f"PmapSharding({self.sharding_spec}, device_ids={ids}{self._memory_text()})"
