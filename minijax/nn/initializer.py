"""The type of initializers."""

from __future__ import annotations

from typing import Any, Protocol


class Initializer(Protocol):
    """What makes parameters: a function of a key, a shape and a dtype."""

    def __call__(self, key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
        """The parameters."""
