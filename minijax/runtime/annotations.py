"""Types for annotations of users' functions.  Mirrors jax.typing (0.10)."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

import numpy as np

from minijax.runtime.array import Array


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
