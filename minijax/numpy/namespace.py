"""Constants, dtypes and inspection of the NumPy namespace, and shape, size and text of arrays.

The constants include `newaxis`, which marks a new dimension; the dtypes include NumPy's aliases.
`__array_namespace_info__` answers what the Python array API standard (2024.12, "inspection") asks a
namespace about itself.  The functions look at what an array is like, not at its elements, but for
those that print an array or load it from a file.
"""

from __future__ import annotations

import builtins
import math
import os
from typing import IO, Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.dtype_queries import isdtype
from minijax.core.dtypes import SCALAR_TYPES
from minijax.lax import families
from minijax.numpy.creation import array_or_list, asarray
from minijax.runtime import client
from minijax.runtime.annotations import ArrayLike, Axis, Placement

e = math.e
euler_gamma = 0.5772156649015328606
inf = math.inf
nan = math.nan
newaxis = None
pi = math.pi


bool_ = SCALAR_TYPES["bool_"]
int2 = SCALAR_TYPES["int2"]
int4 = SCALAR_TYPES["int4"]
int8 = SCALAR_TYPES["int8"]
int16 = SCALAR_TYPES["int16"]
int32 = SCALAR_TYPES["int32"]
int64 = SCALAR_TYPES["int64"]
uint2 = SCALAR_TYPES["uint2"]
uint4 = SCALAR_TYPES["uint4"]
uint8 = SCALAR_TYPES["uint8"]
uint16 = SCALAR_TYPES["uint16"]
uint32 = SCALAR_TYPES["uint32"]
uint64 = SCALAR_TYPES["uint64"]
bfloat16 = SCALAR_TYPES["bfloat16"]
float16 = SCALAR_TYPES["float16"]
float32 = SCALAR_TYPES["float32"]
float64 = SCALAR_TYPES["float64"]
float4_e2m1fn = SCALAR_TYPES["float4_e2m1fn"]
float8_e3m4 = SCALAR_TYPES["float8_e3m4"]
float8_e4m3 = SCALAR_TYPES["float8_e4m3"]
float8_e4m3b11fnuz = SCALAR_TYPES["float8_e4m3b11fnuz"]
float8_e4m3fn = SCALAR_TYPES["float8_e4m3fn"]
float8_e4m3fnuz = SCALAR_TYPES["float8_e4m3fnuz"]
float8_e5m2 = SCALAR_TYPES["float8_e5m2"]
float8_e5m2fnuz = SCALAR_TYPES["float8_e5m2fnuz"]
float8_e8m0fnu = SCALAR_TYPES["float8_e8m0fnu"]
complex64 = SCALAR_TYPES["complex64"]
complex128 = SCALAR_TYPES["complex128"]

bool = bool_
single = float32
double = float64
csingle = complex64
cdouble = complex128

# NumPy's defaults; without x64 they become types of 32 bits where arrays are made.
int_ = int64
uint = uint64
float_ = float64
complex_ = complex128


__array_api_version__ = "2024.12"

_NAMED = (
    dtypes.bool_,
    dtypes.int8,
    dtypes.int16,
    dtypes.int32,
    dtypes.int64,
    dtypes.uint8,
    dtypes.uint16,
    dtypes.uint32,
    dtypes.uint64,
    dtypes.float32,
    dtypes.float64,
    dtypes.complex64,
    dtypes.complex128,
)
"""The dtypes that the standard knows."""


class __array_namespace_info__:  # noqa: N801  the standard's name
    """Inspection of `minijax.numpy` by the array API: devices, dtypes and capabilities.

    Source:     mirrors jax.numpy.__array_namespace_info__ (0.10); Python array API standard.

    Example:
        >>> jnp.__array_namespace_info__().default_dtypes()["real floating"]
        dtype('float32')
    """

    __slots__ = ()

    def capabilities(self) -> dict[str, Any]:
        """Returns what the namespace can do, under tracing too.

        Example:
            >>> jnp.__array_namespace_info__().capabilities()["data-dependent shapes"]
            False
        """
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self) -> None:
        """Returns None: arrays go where `default_device` or their operands say.

        Example:
            >>> jnp.__array_namespace_info__().default_device() is None
            True
        """
        return

    def devices(self) -> list[Any]:
        """Returns what the argument `device` may be: None, or a device of any platform.

        Example:
            >>> None in jnp.__array_namespace_info__().devices()
            True
        """
        return [None, *client.devices()]

    def default_dtypes(self, *, device: Placement = None) -> dict[str, Any]:
        """Returns the dtypes that functions use by default; x64 makes them twice as wide.

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

    def dtypes(
        self, *, device: Placement = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, Any]:
        """Returns the dtypes of the standard that arrays can have, by name, perhaps of one kind.

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


def ndim(a: ArrayLike) -> int:
    """Returns the number of dimensions of an array.

    Raises:
        TypeError: `a` is not an array.

    Example:
        >>> jnp.ndim(3.0), jnp.ndim(jnp.ones((2, 3)))
        (0, 2)
    """
    return len(shape(a))


def shape(a: ArrayLike) -> tuple[int, ...]:
    """Returns the shape of an array.

    Raises:
        TypeError: `a` is not an array.

    Example:
        >>> jnp.shape(3.0), jnp.shape(jnp.ones((2, 3)))
        ((), (2, 3))
    """
    if hasattr(a, "shape"):
        return a.shape
    return aval_of(array_or_list("shape", a, "a")).shape


def size(a: ArrayLike, axis: Axis = None) -> int:
    """Returns the number of elements of an array, or along the given axes.

    Raises:
        TypeError: `a` is not an array.
        ValueError: an axis is out of range.

    Example:
        >>> jnp.size(jnp.ones((2, 3))), jnp.size(jnp.ones((2, 3)), axis=1)
        (6, 3)
    """
    dims = shape(a)
    if axis is None:
        return math.prod(dims)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    return math.prod(dims[d] for d in families.canonicalize_axes(axes, len(dims), "numpy.size"))


def array_repr(
    arr: ArrayLike,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: builtins.bool | None = None,
) -> str:
    """Returns the string representation of an array.

    Example:
        >>> jnp.array_repr(jnp.array([0.5, 2.0]))
        'array([0.5, 2. ], dtype=float32)'
    """
    return np.array_repr(np.asarray(arr), max_line_width, precision, suppress_small)


def array_str(
    a: ArrayLike,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: builtins.bool | None = None,
) -> str:
    """Returns the elements of an array as a string.

    Example:
        >>> jnp.array_str(jnp.array([1 / 3, 2 / 3]), precision=2)
        '[0.33 0.67]'
    """
    return np.array_str(np.asarray(a), max_line_width, precision, suppress_small)


def load(file: IO[bytes] | str | os.PathLike[Any], *args: Any, **kwargs: Any) -> Any:
    """Loads an array from a file written by `save`, or NumPy's archive written by `savez`.

    Dtypes:     elements of two bytes that NumPy cannot name are those of bfloat16.

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
