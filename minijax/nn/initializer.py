"""The type of initializers."""

from __future__ import annotations

from typing import Any, Protocol


class Initializer(Protocol):
    """What makes parameters: a function of a key, a shape and a dtype.

    Source:     mirrors jax.nn.initializers.Initializer (0.10).

    Example:
        >>> def tenth(key, shape, dtype=jnp.float32, out_sharding=None):
        ...     return jnp.full(shape, 0.1, dtype)
        >>> make: jax.nn.initializers.Initializer = tenth
        >>> make(jax.random.key(0), (2,))
        Array([0.1, 0.1], dtype=float32)
    """

    def __call__(self, key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
        """The parameters."""
