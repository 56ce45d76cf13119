"""Types for annotations, of users' functions and of our public ones.  Mirrors jax.typing (0.10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, SupportsIndex, TypeAlias

import numpy as np

from minijax.core.meshes import PartitionSpec
from minijax.core.native import Device
from minijax.runtime.array import Array
from minijax.sharding.base import Sharding


class SupportsDType(Protocol):
    """Anything with a dtype."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype."""


ArrayLike: TypeAlias = (
    Array | np.ndarray[Any, Any] | np.bool_ | np.number | bool | int | float | complex
)
"""What functions of arrays take where they want one: an array, ours or NumPy's, or a number."""

DTypeLike: TypeAlias = str | type[Any] | np.dtype[Any] | SupportsDType
"""What functions take where they want a dtype."""

Axis: TypeAlias = int | Sequence[int] | None
"""Which dimensions a function works on: one, several, or all."""

NamedAxis: TypeAlias = int | str | Sequence[int | str] | None
"""What a reduction works on: dimensions, and mapped axes by their names."""

ShapeLike: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
"""What functions take where they want a shape; a number is that of the only dimension."""

Placement: TypeAlias = Device | Sharding | None
"""Where a new array goes."""

ShardingLike: TypeAlias = Sharding | PartitionSpec | None
"""How a new array is split over a mesh."""

ArrayOrLists: TypeAlias = ArrayLike | Sequence[Any]
"""What functions take that make arrays of nested lists too."""
