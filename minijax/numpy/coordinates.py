"""Functions between the coordinates of places and their numbers in row-major order.

Input: integers.  Output: coordinates, numbers, or index arrays for the open mesh of several.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of, canonicalize_shape
from minijax.core.errors import ConcretizationTypeError, error
from minijax.core.trace import Tracer
from minijax.lax import convert, creation, shape
from minijax.numpy import arithmetic
from minijax.numpy.one_program import one_program
from minijax.numpy.shaping import array_argument
from minijax.runtime.annotations import ArrayLike, DTypeLike, ShapeLike
from minijax.runtime.array import Array


def ix_(*args: ArrayLike) -> tuple[Array, ...]:
    """Vectors of positions as index arrays, whose selection is the product of all.

    Shapes:     int[n_i] for each of k vectors -> int[1, .., n_i, .., 1], with k dimensions.
    Source:     mirrors jax.numpy.ix_ (0.10).

    Raises:
        ValueError: an argument is no vector.
        NotImplementedError: an argument is a mask.

    Example:
        >>> x = jnp.arange(12).reshape(3, 4)
        >>> x[jnp.ix_(jnp.array([0, 2]), jnp.array([1, 3]))]
        Array([[ 1,  3],
               [ 9, 11]], dtype=int32)
    """
    vectors = [array_argument("ix_", x) for x in args]
    found = []
    for i, x in enumerate(vectors):
        if x.aval.ndim != 1:
            error(ValueError, "numpy.ix_", "needs vectors.", got=str(x.aval))
        if x.dtype == dtypes.bool_:
            error(
                NotImplementedError,
                "numpy.ix_",
                "masks are not understood.",
                fix="numpy.flatnonzero(mask)",
            )
        default = dtypes.default_int_dtype()
        positions = x if x.aval.size else convert.convert_element_type(x, default)
        found.append(shape.expand_dims(positions, [d for d in range(len(vectors)) if d != i]))
    return tuple(found)


@one_program(static=("shape",))
def unravel_index(indices: ArrayLike, shape: ShapeLike) -> tuple[Array, ...]:
    """The coordinates of places given by their numbers in row-major order.

    Args:
        indices: the numbers; negative ones count from the end, others are clamped.
        shape: of the array.

    Shapes:     indices: int[s] -> int[s] for each dimension.
    Source:     mirrors jax.numpy.unravel_index (0.10).

    Example:
        >>> jnp.unravel_index(jnp.array([5, 0]), (2, 3))
        (Array([1, 0], dtype=int32), Array([2, 0], dtype=int32))
    """
    indices = array_argument("unravel_index", indices)
    dims = canonicalize_shape(shape, "numpy.unravel_index")
    total = math.prod(dims)
    indices = arithmetic.clip(indices, -total, total - 1)
    place = arithmetic.remainder(indices, max(total, 1))
    found = []
    for size in dims[::-1]:
        place, coordinate = arithmetic.divmod(place, max(size, 1))
        found.append(coordinate)
    return tuple(found[::-1])


def ravel_multi_index(
    multi_index: Sequence[Any],
    dims: Sequence[int],
    mode: str = "raise",
    order: str = "C",
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """The numbers, in row-major order, of places given by their coordinates.

    Args:
        multi_index: integers, one array for each dimension.
        dims: the shape of the array.
        mode: what happens out of range: "raise", "clip" or "wrap".
        order: "C" for row-major order, "F" for column-major order.
        dtype: of the result.

    Shapes:     int[s] for each dimension -> int[s].
    Source:     mirrors jax.numpy.ravel_multi_index (0.10).

    Raises:
        ValueError: the arguments do not fit, or a place is out of range.
        ConcretizationTypeError: the mode is "raise", and coordinates are traced.

    Example:
        >>> jnp.ravel_multi_index((jnp.array([1, 0]), jnp.array([2, 0])), (2, 3))
        Array([5, 0], dtype=int32)
    """
    name = "numpy.ravel_multi_index"
    sizes = canonicalize_shape(dims, name)
    arrays = [array_argument("ravel_multi_index", x) for x in multi_index]
    if len(arrays) != len(sizes) or mode not in ("raise", "clip", "wrap") or order not in "CF":
        error(
            ValueError,
            name,
            "the arguments do not fit together.",
            got=f"{len(arrays)} arrays for {len(sizes)} dimensions, {mode=}, {order=}",
            expected="an array for each dimension, a mode of 'raise', 'clip' or 'wrap', and "
            "order 'C' or 'F'",
        )
    if not all(dtypes.issubdtype(x.dtype, np.integer) for x in arrays):
        error(ValueError, name, "coordinates must be integers.", got=", ".join(map(str, arrays)))
    if mode == "raise":
        _check_coordinates(arrays, sizes)
    if dtype is not None:
        dtype = dtypes.canonicalize_user_dtype(dtype, name)
    return _raveled(arrays, sizes, mode, order, dtype)


def _check_coordinates(arrays: Sequence[Any], sizes: Sequence[int]) -> None:
    for x, size in zip(arrays, sizes, strict=True):
        known = x.concrete() if isinstance(x, Tracer) else x
        if known is None:
            error(
                ConcretizationTypeError,
                "numpy.ravel_multi_index",
                "mode 'raise' needs known coordinates.",
                got=str(aval_of(x)),
                fix="mode='clip' or mode='wrap'",
            )
        host = np.asarray(known)
        if ((host < 0) | (host >= size)).any():
            error(
                ValueError,
                "numpy.ravel_multi_index",
                "a coordinate is out of range.",
                got=f"{host} for a dimension of size {size}",
            )


@one_program(static=("sizes", "mode", "order", "dtype"))
def _raveled(arrays: Any, sizes: tuple[int, ...], mode: str, order: str, dtype: Any) -> Any:
    pairs = list(zip(arrays, sizes, strict=True))
    number: Any = creation.full((), 0, dtypes.default_int_dtype())
    for x, size in pairs if order == "C" else pairs[::-1]:
        coordinate = x
        if mode == "clip":
            coordinate = arithmetic.clip(x, 0, size - 1)
        elif mode == "wrap":
            coordinate = arithmetic.remainder(x, size)
        number = number * size + coordinate
    return number if dtype is None else convert.convert_element_type(number, dtype)
