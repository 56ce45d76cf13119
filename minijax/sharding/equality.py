"""When two of XLA's tilings are the same, whatever their notation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from minijax.core.cache import Cache
from minijax.sharding import hlo
from minijax.sharding.gspmd import GSPMDSharding

_keys = Cache(
    "equal tilings",
    "what is equal for tilings that mean the same",
    key="XLA's tiling, rank",
    most=4096,
    emptied=True,
)


@_keys.function
def semantic_key(hlo_sharding: Any, ndim: int) -> Any:
    """A value that is equal for tilings that give every device the same tile at this rank.

    All replicated forms are equal.  Tilings with manual or unreduced parts, which are more than
    tiles, stand for themselves; those of tuples go element by element.
    """
    elements = hlo_sharding.tuple_elements()
    if elements:
        return tuple(semantic_key(element, ndim) for element in elements)
    if hlo_sharding.is_replicated():
        return "replicated"
    if not hlo.is_plain(hlo_sharding):
        return hlo_sharding
    tiling = hlo.tiling_of(hlo_sharding, ndim, hlo_sharding.num_devices())
    return "replicated" if set(tiling.factors) <= {1} else tiling.key()


def are_hlo_shardings_equal(first: Any, second: Any, ndim: int) -> bool:
    """Whether two tilings give every device the same tile of arrays of rank `ndim`."""
    return first is second or semantic_key(first, ndim) == semantic_key(second, ndim)


class SemanticallyEqualShardings:
    """Placements as a key of caches: those in XLA's terms count as what they do, not as written.

    Args:
        shardings: placements, or marks in their place.
        ranks: the rank of the array that each places.
    """

    __slots__ = ("_key", "shardings")

    def __init__(self, shardings: Iterable[Any], ranks: Sequence[int]) -> None:
        self.shardings = tuple(shardings)
        self._key = tuple(map(_part, self.shardings, ranks))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SemanticallyEqualShardings) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def _part(sharding: Any, ndim: int) -> Any:
    if not isinstance(sharding, GSPMDSharding):
        return sharding
    tiling = semantic_key(sharding.hlo_sharding, ndim)
    return sharding.device_assignment, sharding.special_memory_kind, tiling
