"""New arrays: filled with one value, counting up, of any content, or facts of others.

New arrays: filled with one value, counting up, or of any content.

Facts of values, and values of facts: dtypes, shapes as arrays, values in the current trace.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import Shape, ShapedArray, aval_of, canonicalize_shape, shaped_array
from minijax.core.errors import error
from minijax.core.primitive import Primitive
from minijax.interpreters import casts
from minijax.interpreters.structural import broadcast_in_dim_p
from minijax.lax import families, shape
from minijax.lax.arguments import is_array
from minijax.lax.convert import convert_element_type, convert_to_type
from minijax.lax.families import COMPLEX, REAL, check_dtype
from minijax.runtime.annotations import ArrayLike, DTypeLike, ShardingLike
from minijax.runtime.array import Array, array_from_host, physical_aval
from minijax.sharding import rules


class Iota(Primitive):
    """Counts up from 0 along `dimension`.

    Shapes: -> T[shape].  It takes no array, hence has nothing to differentiate or batch.
    """

    name = "iota"
    shard = rules.nothing_sharded

    def abstract_eval(
        self, *, dtype: Any, shape: Shape, dimension: int, sharding: Any
    ) -> ShapedArray:
        aval = shaped_array(shape, dtype)
        check_dtype("iota", "dtype", aval, (*REAL, *COMPLEX))
        if not 0 <= dimension < len(shape):
            error(
                ValueError,
                "lax.iota",
                f"dimension {dimension} is out of range.",
                got={"shape": shape, "dimension": dimension},
            )
        return aval

    def lower(self, ctx: Any, *, dtype: Any, shape: Shape, dimension: int, sharding: Any) -> Any:
        return ctx.op("stablehlo.iota", [], {"iota_dimension": ctx.integer(dimension)})


rules.sharding_param.set("sharding", Iota)


iota_p = Iota()


def iota(dtype: DTypeLike, size: int) -> Array:
    """The numbers 0, 1, … `size` - 1.

    Shapes:     -> dtype[size].
    Dtypes:     integer, floating or complex.
    Lowers to:  stablehlo.iota.
    Source:     mirrors jax.lax.iota.

    Raises:
        TypeError: the dtype is not numeric, or the size is not an integer of at least 0.

    Example:
        >>> lax.iota(jnp.float32, 3)
        Array([0., 1., 2.], dtype=float32)
    """
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(
    dtype: DTypeLike, shape: Shape, dimension: int, *, out_sharding: ShardingLike = None
) -> Array:
    """An array whose elements are their own index in `dimension`.

    Shapes:     -> dtype[shape].
    Dtypes:     integer, floating or complex.
    Lowers to:  stablehlo.iota.
    Source:     mirrors jax.lax.broadcasted_iota.

    Raises:
        TypeError: the dtype is not numeric, or the shape is no shape.
        ValueError: the dimension is out of range.

    Example:
        >>> lax.broadcasted_iota(jnp.int32, (2, 3), dimension=1)
        Array([[0, 1, 2],
               [0, 1, 2]], dtype=int32)
    """
    return iota_p.bind(
        dtype=dtypes.canonicalize_user_dtype(dtype, "lax.broadcasted_iota"),
        shape=canonicalize_shape(shape, "lax.broadcasted_iota"),
        dimension=operator.index(dimension),
        sharding=rules.resolve(out_sharding, "lax.broadcasted_iota"),
    )


class Empty(Primitive):
    """An array whose content nobody relies on; today it is zeros.

    Shapes: -> T[shape].  It takes no array, hence has nothing to differentiate or batch.
    """

    name = "empty"
    shard = rules.nothing_sharded

    def abstract_eval(self, *, shape: Shape, dtype: Any, out_sharding: Any) -> ShapedArray:
        return shaped_array(shape, dtype)

    def lower(self, ctx: Any, *, shape: Shape, dtype: Any, out_sharding: Any) -> Any:
        physical = physical_aval(ctx.avals_out[0])
        return ctx.full(physical.shape, 0, physical.dtype)


rules.sharding_param.set("out_sharding", Empty)


empty_p = Empty()


def empty(shape: Shape, dtype: DTypeLike, *, out_sharding: ShardingLike = None) -> Array:
    """An array of any content.

    Shapes:     -> dtype[shape].
    Source:     mirrors jax.lax.empty.

    Raises:
        TypeError: the shape is no shape, or the dtype no dtype.

    Example:
        >>> lax.empty((2, 3), jnp.float32).shape
        (2, 3)
    """
    return empty_p.bind(
        shape=canonicalize_shape(shape, "lax.empty"),
        dtype=dtypes.canonicalize_user_dtype(dtype, "lax.empty"),
        out_sharding=rules.resolve(out_sharding, "lax.empty"),
    )


def full(
    shape: Shape,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    sharding: ShardingLike = None,
) -> Array:
    """An array of one repeated value.

    Shapes:     -> T[shape]; fill_value is a scalar.
    Dtypes:     any; that of `fill_value` by default, and as weak.
    Derivative: linear in `fill_value`.
    Lowers to:  stablehlo.broadcast_in_dim.
    Source:     mirrors jax.lax.full.

    Raises:
        TypeError: `fill_value` is not a scalar, or the shape is no shape.

    Example:
        >>> lax.full((2, 2), 7)
        Array([[7, 7],
               [7, 7]], dtype=int32, weak_type=True)
        >>> lax.full((2,), 7, jnp.bfloat16)
        Array([7, 7], dtype=bfloat16)
    """
    shape = canonicalize_shape(shape, "lax.full")
    if np.ndim(fill_value):
        error(TypeError, "lax.full", "fill_value must be a scalar.", got={"fill_value": fill_value})
    weak_type = dtype is None and dtypes.is_weakly_typed(fill_value)
    if dtype is not None:
        dtype = dtypes.canonicalize_user_dtype(dtype, "lax.full")
    found = rules.resolve(sharding, "lax.full", "sharding")
    return _filled(shape, fill_value, dtype, weak_type, found)


def full_like(
    x: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: Shape | None = None,
    sharding: ShardingLike = None,
) -> Array:
    """An array of one repeated value, with the shape and dtype of `x` where none are given.

    Shapes:     x: T[s] -> T[s]; fill_value is a scalar.
    Derivative: linear in `fill_value`; `x` gives its type only.
    Source:     mirrors jax.lax.full_like.

    Args:
        x: an array, or anything with a shape and a dtype.
        fill_value: the value.
        dtype: the dtype of the result.
        shape: the shape of the result.
        sharding: where the result is placed.

    Raises:
        TypeError: `fill_value` is not a scalar.

    Example:
        >>> lax.full_like(jnp.arange(3), 9)
        Array([9, 9, 9], dtype=int32)
        >>> lax.full_like(jnp.arange(3), 0.5, dtype=jnp.float32, shape=(1,))
        Array([0.5], dtype=float32)
    """
    described = hasattr(x, "shape") and hasattr(x, "dtype")
    like: Any = x if described else aval_of(x)
    weak_type = dtype is None and bool(getattr(like, "weak_type", False))
    dtype = like.dtype if dtype is None else dtype
    if np.ndim(fill_value):
        error(
            TypeError,
            "lax.full_like",
            "fill_value must be a scalar.",
            got={"fill_value": fill_value},
        )
    made = _filled(
        canonicalize_shape(like.shape if shape is None else shape, "lax.full_like"),
        fill_value,
        dtypes.canonicalize_user_dtype(dtype, "lax.full_like"),
        weak_type,
        rules.resolve(sharding, "lax.full_like", "sharding") or _sharding_of(like, shape),
    )
    return casts.varying_as(made, like)


def _sharding_of(like: Any, shape: Shape | None) -> Any:
    aval = getattr(like, "aval", None)
    return None if shape is not None or aval is None else aval.split


def as_element(value: Any, dtype: Any) -> Any:
    """A number as an element of a dtype that it is to fill an array of; others as they are."""
    if not dtypes.is_extended(dtype) or dtypes.is_extended(getattr(value, "dtype", None)):
        return value
    return dtype.element(value)


def _filled(shape: Shape, value: Any, dtype: Any, weak_type: bool, sharding: Any) -> Any:
    value = as_element(value, dtype)
    if is_array(value):
        if dtype is not None:
            value = convert_to_type(value, dtype, weak_type)
    elif dtype is not None:
        value = np.asarray(value).astype(dtype)[()]
        # A Python scalar is what stands for a weak constant.
        if weak_type and aval_of(value.item()).dtype == dtype:
            value = value.item()
    return broadcast_in_dim_p.bind(value, shape=shape, broadcast_dimensions=(), sharding=sharding)


def dtype(x: Any) -> np.dtype[Any]:
    """The dtype that a value has as an array.

    Dtypes: of Python's scalars, the default one of their kind.
    Source: mirrors jax.lax.dtype (0.10).

    Raises:
        TypeError: `x` is neither an array nor a number.

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
        TypeError: `x` is neither an array nor a number.

    Example:
        >>> lax.stage(1.5)
        Array(1.5, dtype=float32, weak_type=True)
    """
    x = families.operand(x)
    return x if hasattr(x, "aval") else array_from_host(x)
