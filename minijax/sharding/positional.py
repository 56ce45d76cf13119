"""`PositionalSharding`: a grid of groups of devices, with as many dimensions as the array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core.errors import error
from minijax.sharding import tiling
from minijax.sharding.base import Sharding
from minijax.sharding.devices import device_list
from minijax.sharding.tiling import Tiling

Groups = np.ndarray[Any, Any]


class PositionalSharding(Sharding):
    """An array cut like a grid of devices: cell by cell, each tile lives on one group of them.

    The grid starts with a device in each cell; `replicate` unites cells, and all devices of a
    cell hold the same tile.  No axis has a name.

    Args:
        devices: the devices, in a box or a sequence.
        memory_kind: a kind of memory of the devices; None for their default.

    Source: mirrors jax.sharding.PositionalSharding, which JAX has since dropped.

    Raises:
        ValueError: the devices have no memory of that kind.

    Example:
        >>> grid = jax.sharding.PositionalSharding(jax.devices()).reshape(4, 2)
        >>> grid.shard_shape((8, 8)), grid.replicate(axis=1).shard_shape((8, 8))
        ((2, 4), (2, 8))
    """

    __slots__ = ("_devices", "_groups", "_memory_kind")

    def __init__(
        self, devices: Sequence[Any] | np.ndarray[Any, Any], *, memory_kind: str | None = None
    ) -> None:
        box = np.asarray(devices, dtype=object)
        groups = np.empty(box.size, object)
        groups[:] = [frozenset((place,)) for place in range(box.size)]
        self._devices = tuple(box.flat)
        self._groups = groups.reshape(box.shape)
        self._memory_kind = device_list(self._devices).special_memory_kind(memory_kind)

    @classmethod
    def of_tiling(
        cls, devices: Sequence[Any], tiling: Tiling, *, memory_kind: str | None = None
    ) -> PositionalSharding:
        """The grid that gives each device the tile that `tiling` gives it."""
        groups = np.empty(tiling.factors, object)
        for cell, group in zip(
            np.ndindex(*tiling.factors),
            tiling.devices_by_tile().reshape(groups.size, -1).tolist(),
            strict=True,
        ):
            groups[cell] = frozenset(group)
        return cls(devices, memory_kind=memory_kind)._with(groups)

    def _with(self, groups: Groups) -> PositionalSharding:
        made = PositionalSharding(self._devices, memory_kind=self._memory_kind)
        made._groups = groups
        return made

    @property
    def shape(self) -> tuple[int, ...]:
        """Into how many parts each dimension is cut."""
        return self._groups.shape

    @property
    def ndim(self) -> int:
        """The rank of the arrays that this cuts."""
        return self._groups.ndim

    def reshape(self, *shape: Any) -> PositionalSharding:
        """The same groups in a grid of another shape."""
        return self._with(self._groups.reshape(*shape))

    def transpose(self, *axes: Any) -> PositionalSharding:
        """The grid with its dimensions in another order."""
        return self._with(self._groups.transpose(*axes))

    T = property(transpose)

    def replicate(self, axis: int | None = None, keepdims: bool = True) -> PositionalSharding:
        """Unites the cells of each line along `axis`, or all: they hold the same tile."""
        axes = range(self.ndim) if axis is None else [range(self.ndim)[axis]]
        groups = self._groups
        for each in sorted(axes, reverse=True):
            united: Any = np.frompyfunc(frozenset.union, 2, 1).reduce(groups, axis=each)
            groups = np.expand_dims(united, each) if keepdims else np.asarray(united, object)
        return self._with(groups)

    @property
    def device_assignment(self) -> tuple[Any, ...]:
        return self._devices

    def check_rank(self, ndim: int) -> None:
        if ndim != self.ndim and not self.is_fully_replicated:
            error(
                ValueError,
                "PositionalSharding",
                "the grid of devices and the array differ in rank.",
                got=f"a grid of shape {self.shape} for an array of rank {ndim}",
                fix=f"reshape the sharding to {ndim} dimension(s)",
            )

    def tiling(self, ndim: int) -> Tiling:
        self.check_rank(ndim)
        if self.is_fully_replicated:
            return tiling.whole(ndim, len(self._devices))
        coordinates = np.zeros((len(self._devices), ndim), np.int64)
        for cell, group in np.ndenumerate(self._groups):
            coordinates[list(group)] = cell
        return Tiling(self.shape, coordinates)

    @property
    def special_memory_kind(self) -> str | None:
        return self._memory_kind

    def with_memory_kind(self, kind: str | None) -> PositionalSharding:
        made = PositionalSharding(self._devices, memory_kind=kind)
        made._groups = self._groups
        return made

    @property
    def is_fully_replicated(self) -> bool:
        return self._groups.size == 1

    def _key(self) -> tuple[Any, ...]:
        return self._devices, self._memory_kind, self.shape, tuple(self._groups.flat)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PositionalSharding) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        names = np.empty(self._groups.size, object)
        names[:] = [self._cell_text(group) for group in self._groups.flat]
        grid = np.array2string(names.reshape(self.shape), separator=" ", formatter={"object": str})
        kind = f", memory_kind={self.memory_kind}" if self.memory_kind else ""
        return f"PositionalSharding({grid}{kind}, shape={self.shape})"

    def _cell_text(self, group: frozenset[int]) -> str:
        devices = [self._devices[place] for place in sorted(group)]
        platform = str(getattr(devices[0], "platform", "device")).upper()
        return f"{{{platform} {', '.join(str(getattr(d, 'id', d)) for d in devices)}}}"
