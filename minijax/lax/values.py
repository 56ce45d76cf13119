"""Facts of values, and values of facts: dtypes, shapes as arrays, values in the current trace."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.lax import families, shape
from minijax.lax.convert import convert_element_type
from minijax.lax.creation import full
from minijax.runtime.array import Array, array_from_host


def dtype(x: Any) -> np.dtype[Any]:
    """The dtype that a value has as an array.

    Dtypes: of Python's scalars, the default one of their kind.
    Source: mirrors jax.lax.dtype (0.10).

    Raises:
        TypeError: `x` is no array and no number.

    Example:
        >>> lax.dtype(1.5)
        dtype('float32')
    """
    return aval_of(x).dtype


def shape_as_value(shape: Sequence[Any]) -> Array:  # noqa: A002 RUF100
    """A shape as an array of integers.

    Shapes: n sizes -> int[n].
    Source: mirrors jax.lax.shape_as_value (0.10).

    Raises:
        TypeError: a size is no integer.

    Example:
        >>> lax.shape_as_value((2, 3))
        Array([2, 3], dtype=int32)
    """
    return _stacked(shape)


def _stacked(sizes: Sequence[Any]) -> Any:
    wanted = dtypes.default_int_dtype()
    if not any(hasattr(size, "aval") for size in sizes):
        return array_from_host(np.array([operator.index(size) for size in sizes], wanted))
    parts = [
        shape.reshape(convert_element_type(size, wanted), (1,))
        if hasattr(size, "aval")
        else full((1,), operator.index(size), wanted)
        for size in sizes
    ]
    return shape.concatenate(parts, 0)


def stage(x: Any, /) -> Array:
    """`x` as an array, of a weak type if it is a Python scalar.

    Source: mirrors jax.lax.stage (0.10).

    Raises:
        TypeError: `x` is no array and no number.

    Example:
        >>> lax.stage(1.5)
        Array(1.5, dtype=float32, weak_type=True)
    """
    x = families.operand(x)
    return x if hasattr(x, "aval") else array_from_host(x)
