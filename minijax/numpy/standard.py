"""What the array API standard asks a namespace about itself.

Specification: Python array API standard 2024.12, "inspection".
"""

from __future__ import annotations

from typing import Any

from minijax.core import dtypes
from minijax.core.dtype_queries import isdtype
from minijax.runtime import client

__array_api_version__ = "2024.12"

_NAMED = (
    dtypes.bool_,
    *(dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64),
    *(dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64),
    *(dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128),
)
"""The dtypes that the standard knows."""


class __array_namespace_info__:  # noqa: N801  the standard's name
    """What `minijax.numpy` says of itself: devices, dtypes, and what it can do.

    Source:     mirrors jax.numpy.__array_namespace_info__ (0.10); Python array API standard.

    Example:
        >>> jnp.__array_namespace_info__().default_dtypes()["real floating"]
        dtype('float32')
    """

    __slots__ = ()

    def capabilities(self) -> dict[str, Any]:
        """What functions can do, also while they are traced.

        Example:
            >>> jnp.__array_namespace_info__().capabilities()["data-dependent shapes"]
            False
        """
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self) -> None:
        """No device by name: arrays go where `default_device` or their operands say.

        Example:
            >>> jnp.__array_namespace_info__().default_device() is None
            True
        """
        return

    def devices(self) -> list[Any]:
        """What the argument `device` of functions may be: None, or a device of any platform.

        Example:
            >>> None in jnp.__array_namespace_info__().devices()
            True
        """
        return [None, *client.devices()]

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The dtypes of functions that are given none; x64 makes them twice as wide.

        Example:
            >>> jnp.__array_namespace_info__().default_dtypes()["integral"]
            dtype('int32')
        """
        return {
            "real floating": dtypes.default_float_dtype(),
            "complex floating": dtypes.default_complex_dtype(),
            "integral": dtypes.default_int_dtype(),
            "indexing": dtypes.default_int_dtype(),
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The standard's dtypes that arrays can have, by name: of a kind, or of all.

        Args:
            device: any; all have the same.
            kind: such as "integral", or a tuple of such.

        Raises:
            ValueError: there is no such kind.

        Example:
            >>> list(jnp.__array_namespace_info__().dtypes(kind="signed integer"))
            ['int8', 'int16', 'int32']
        """
        possible = [d for d in _NAMED if dtypes.canonicalize_dtype(d) == d]
        return {d.name: d for d in possible if kind is None or isdtype(d, kind)}
