"""How arrays are cut: into how many parts, and who holds which."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Tiling(NamedTuple):
    """How an array is cut.

    Attributes:
        factors: into how many parts each dimension is cut.
        coordinates: for each device, in order, which part of each dimension it holds: [devices,
            dimensions].
    """

    factors: tuple[int, ...]
    coordinates: np.ndarray[Any, Any]

    def same_as(self, other: Tiling) -> bool:
        """Whether both give every device the same tile."""
        return self.factors == other.factors and np.array_equal(self.coordinates, other.coordinates)

    def devices_by_tile(self) -> np.ndarray[Any, Any]:
        """The numbers of the devices that hold each tile: [*factors, copies]."""
        tiles: dict[tuple[int, ...], list[int]] = {}
        for device, place in enumerate(map(tuple, self.coordinates.tolist())):
            tiles.setdefault(place, []).append(device)
        order = [tiles[place] for place in np.ndindex(*self.factors)]
        return np.array(order, np.int64).reshape(*self.factors, -1)

    def with_whole_dim(self, dim: int) -> Tiling:
        """The same for arrays with one more dimension, at `dim`, which is not cut."""
        factors = (*self.factors[:dim], 1, *self.factors[dim:])
        return Tiling(factors, np.insert(self.coordinates, dim, 0, axis=1))

    def key(self) -> tuple[Any, ...]:
        """A hashable value that is equal for the same tilings."""
        return self.factors, self.coordinates.shape, self.coordinates.tobytes()


def whole(ndim: int, count: int) -> Tiling:
    """The tiling that gives each of `count` devices the whole array."""
    return Tiling((1,) * ndim, np.zeros((count, ndim), np.int64))
