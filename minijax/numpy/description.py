"""What arrays are like without looking at their elements: shape, size, text, files."""

from __future__ import annotations

import math
import os
from typing import IO, Any

import numpy as np
from numpy import (
    get_printoptions,
    index_exp,
    iterable,
    printoptions,
    s_,
    save,
    savez,
    set_printoptions,
)

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.lax import arguments
from minijax.numpy.creation import asarray
from minijax.numpy.promotion import check_array
from minijax.runtime.annotations import ArrayLike, Axis
from minijax.runtime.array import Array as ndarray  # noqa: N813  NumPy's name


def ndim(a: ArrayLike) -> int:
    """The number of dimensions.

    Source:     mirrors jax.numpy.ndim.

    Raises:
        TypeError: `a` is no array.

    Example:
        >>> jnp.ndim(3.0), jnp.ndim(jnp.ones((2, 3)))
        (0, 2)
    """
    return len(shape(a))


def shape(a: ArrayLike) -> tuple[int, ...]:
    """The dimensions.

    Source:     mirrors jax.numpy.shape.

    Raises:
        TypeError: `a` is no array.

    Example:
        >>> jnp.shape(3.0), jnp.shape(jnp.ones((2, 3)))
        ((), (2, 3))
    """
    if hasattr(a, "shape"):
        return a.shape
    return aval_of(check_array("shape", a, "a")).shape


def size(a: ArrayLike, axis: Axis = None) -> int:
    """The number of elements, or the extent along one axis or several.

    Source:     mirrors jax.numpy.size.

    Raises:
        TypeError: `a` is no array.
        ValueError: an axis is out of range.

    Example:
        >>> jnp.size(jnp.ones((2, 3))), jnp.size(jnp.ones((2, 3)), axis=1)
        (6, 3)
    """
    dims = shape(a)
    if axis is None:
        return math.prod(dims)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    return math.prod(dims[d] for d in arguments.canonicalize_axes(axes, len(dims), "numpy.size"))


def array_repr(
    arr: ArrayLike,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """The text that describes an array.

    Source:     mirrors jax.numpy.array_repr.

    Example:
        >>> jnp.array_repr(jnp.array([0.5, 2.0]))
        'array([0.5, 2. ], dtype=float32)'
    """
    return np.array_repr(np.asarray(arr), max_line_width, precision, suppress_small)


def array_str(
    a: ArrayLike,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """The text of the elements of an array.

    Source:     mirrors jax.numpy.array_str.

    Example:
        >>> jnp.array_str(jnp.array([1 / 3, 2 / 3]), precision=2)
        '[0.33 0.67]'
    """
    return np.array_str(np.asarray(a), max_line_width, precision, suppress_small)


def load(file: IO[bytes] | str | os.PathLike[Any], *args: Any, **kwargs: Any) -> Any:
    """An array from a file that `save` has written; or, by their names, NumPy's of `savez`.

    Dtypes:     elements of two bytes that NumPy cannot name are those of bfloat16.
    Source:     mirrors jax.numpy.load.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile(suffix=".npy") as file:
        ...     jnp.save(file.name, jnp.arange(3))
        ...     jnp.load(file.name)
        Array([0, 1, 2], dtype=int32)
    """
    found = np.load(file, *args, **kwargs)
    if not isinstance(found, np.ndarray):
        return found
    return asarray(found.view(dtypes.bfloat16) if found.dtype == "V2" else found)


__all__ = [
    "array_repr",
    "array_str",
    "get_printoptions",
    "index_exp",
    "iterable",
    "load",
    "ndarray",
    "ndim",
    "printoptions",
    "s_",
    "save",
    "savez",
    "set_printoptions",
    "shape",
    "size",
]
