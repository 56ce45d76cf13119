"""Bits of bytes as elements of their own, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.errors import error
from minijax.numpy.creation import asarray
from minijax.numpy.joining import concatenate
from minijax.numpy.one_program import one_program
from minijax.numpy.promotion import check_array
from minijax.numpy.ranges import arange
from minijax.numpy.shaping import moveaxis, ravel, reshape
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array


def _places(name: str, bitorder: str) -> Any:
    """The bits of a byte in the order in which elements stand for them."""
    if bitorder not in {"big", "little"}:
        error(
            ValueError,
            f"numpy.{name}",
            "unknown order of bits.",
            got=repr(bitorder),
            expected="'big' or 'little'",
        )
    places = arange(8, dtype=dtypes.uint8)
    return places if bitorder == "little" else 7 - places


@one_program(static=("axis", "bitorder"))
def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Bytes whose bits say which of eight elements along `axis` differ from zero.

    Shapes:     a: T[.., n, ..] -> uint8[.., ceil(n / 8), ..]; without an axis, of the flat array.
    Dtypes:     integer or bool.
    Source:     mirrors jax.numpy.packbits.

    Raises:
        TypeError: `a` holds neither integers nor booleans.
        ValueError: the order of bits is not known.

    Example:
        >>> jnp.packbits(jnp.array([1, 0, 0, 0, 0, 0, 1, 1, 1]))
        Array([131, 128], dtype=uint8)
    """
    places = _places("packbits", bitorder)
    a = asarray(check_array("packbits", a))
    if not dtypes.issubdtype(a.dtype, np.integer) and a.dtype != dtypes.bool_:
        error(TypeError, "numpy.packbits", "integers or booleans are packed.", got={"a": a.aval})
    a = (ravel(a) if axis is None else moveaxis(a, axis, -1)) != 0
    *lead, size = a.shape
    filling = np.zeros((*lead, -size % 8), np.bool_)
    eights = reshape(concatenate([a, filling], -1), (*lead, -(-size // 8), 8))
    packed = (eights.astype(dtypes.uint8) << places).sum(-1, dtype=dtypes.uint8)
    return packed if axis is None else moveaxis(packed, -1, axis)


@one_program(static=("axis", "count", "bitorder"))
def unpackbits(
    a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Array:
    """The bits of bytes along `axis`, as elements of their own.

    Args:
        a: the bytes.
        axis: the axis; by default the array is flattened.
        count: how many bits to keep; if negative, how many to drop at the end.
        bitorder: "big" if the highest bit comes first, else "little".

    Shapes:     a: uint8[.., n, ..] -> uint8[.., 8 n, ..]; without an axis, of the flat array.
    Source:     mirrors jax.numpy.unpackbits.

    Raises:
        TypeError: `a` does not hold bytes.
        ValueError: the order of bits is not known.

    Example:
        >>> jnp.unpackbits(jnp.array([131], dtype=jnp.uint8))
        Array([1, 0, 0, 0, 0, 0, 1, 1], dtype=uint8)
    """
    places = _places("unpackbits", bitorder)
    a = asarray(check_array("unpackbits", a))
    if a.dtype != dtypes.uint8:
        error(TypeError, "numpy.unpackbits", "bytes are unpacked.", got={"a": a.aval})
    a = ravel(a) if axis is None else moveaxis(a, axis, -1)
    bits = reshape((a[..., None] >> places) & 1, (*a.shape[:-1], -1))
    if count is not None and count > bits.shape[-1]:
        filling = np.zeros((*bits.shape[:-1], count - bits.shape[-1]), np.uint8)
        bits = concatenate([bits, filling], -1)
    bits = bits[..., :count]
    return bits if axis is None else moveaxis(bits, -1, axis)
