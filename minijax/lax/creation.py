"""Array creation (`full`, `iota`, `empty`) and conversion from one dtype to another.

New arrays are filled with one value, count up along a dimension, or have undefined elements.
Conversions keep the value, keep the bits, or round to fewer bits of precision.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from minijax.core import dtypes, printing, vma
from minijax.core.aval import (
    Shape,
    ShapedArray,
    aval_of,
    canonicalize_shape,
    has_aval,
    shaped_array,
)
from minijax.core.errors import error, warn
from minijax.core.meshes import PartitionSpec
from minijax.core.primitive import Batched, Cotangents, Dual, Primitive, Zero
from minijax.interpreters import casts
from minijax.interpreters.jvp import UndefinedPrimal, jvp_of_constant, jvp_of_linear
from minijax.interpreters.structural import broadcast_in_dim_p, moveaxis
from minijax.lax import families, shape
from minijax.lax.families import Avals, BatchDims, Values
from minijax.lowering import relocation
from minijax.lowering.stablehlo import LoweringContext, Value
from minijax.runtime.annotations import ArrayLike, DTypeLike, ShardingLike
from minijax.runtime.array import Array, array_from_host, physical_aval
from minijax.sharding import rules


class ConvertElementType(Primitive):
    """Converts each element to `new_dtype`.

    Shapes: x: T[s] -> new_dtype[s].  Linear between floats and complex numbers, of which floats
    keep the real part.  Booleans say whether an element differs from zero.
    """

    name = "convert_element_type"
    shard = rules.elementwise
    batch = families.batch_unary

    def abstract_eval(
        self, x: ShapedArray, *, new_dtype: np.dtype[Any], weak_type: bool, **_: Any
    ) -> ShapedArray:
        if dtypes.is_extended(x.dtype) or dtypes.is_extended(new_dtype):
            problem = "random keys convert to and from nothing."
            got = {"operand": x, "new_dtype": new_dtype}
            error(ValueError, "lax.convert_element_type", problem, got=got)
        return shaped_array(x.shape, new_dtype, weak_type)

    def lower(self, ctx: LoweringContext, x: Value, *, new_dtype: np.dtype[Any], **_: Any) -> Any:
        (aval,) = ctx.avals_in
        if aval.dtype == new_dtype:
            return x
        if new_dtype == dtypes.bool_:
            return ctx.compare("NE", x, ctx.full(aval.shape, 0, aval.dtype), aval)
        if dtypes.issubdtype(aval.dtype, np.complexfloating) and not dtypes.issubdtype(
            new_dtype, np.complexfloating
        ):
            part = ctx.tensor_type(aval.shape, dtypes.real_dtype_of(aval.dtype))
            x = ctx.op("stablehlo.real", [x], None, part)
        return ctx.convert(x, aval.shape, new_dtype)

    def jvp(
        self,
        primals: Sequence[Array],
        tangents: Sequence[Array],
        *,
        new_dtype: np.dtype[Any],
        **params: Any,
    ) -> Dual:
        out = self.bind(*primals, new_dtype=new_dtype, **params)
        (x_dot,) = tangents
        if not dtypes.issubdtype(new_dtype, np.inexact):
            return out, Zero.like(out)
        # The public function would warn of what transposing a conversion to complex drops.
        return out, self.bind(x_dot, new_dtype=new_dtype, weak_type=False, sharding=None)

    def transpose(self, ct: Array, x: UndefinedPrimal, **_: Any) -> Cotangents:
        # The parts that a conversion drops or makes up as zeros need no care: the pairing of
        # cotangents and tangents is the real part of their product.
        return (self.bind(ct, new_dtype=x.aval.dtype, weak_type=x.aval.weak_type, sharding=None),)


printing.hidden_params.set(frozenset({"sharding"}), ConvertElementType)
vma.keeps_unreduced.set(True, ConvertElementType)


convert_element_type_p = ConvertElementType()


def convert_element_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """Converts the elements of `operand` to `new_dtype`.

    Floats become integers by dropping the fraction, complex numbers become real by dropping the
    imaginary part, booleans say whether an element differs from zero.

    Shapes:     operand: T[s] -> new_dtype[s].
    Derivative: linear between floats and complex numbers; zero from and to others.
    Lowers to:  stablehlo.convert; a comparison with 0 for booleans.

    Raises:
        ValueError: `new_dtype` is None.
        TypeError: it is not a dtype that arrays can have.

    Example:
        >>> lax.convert_element_type(jnp.array([1.9, -1.9]), jnp.int32)
        Array([ 1, -1], dtype=int32)
        >>> lax.convert_element_type(jnp.array([0.0, 0.5]), bool)
        Array([False,  True], dtype=bool)
    """
    if new_dtype is None:
        error(ValueError, "lax.convert_element_type", "new_dtype must be given.")
    dtype = dtypes.canonicalize_user_dtype(new_dtype, "lax.convert_element_type")
    return convert_to_type(families.operand(operand), dtype, weak_type=False)


def convert_to_type(operand: Any, dtype: DTypeLike, weak_type: bool) -> Any:
    """`operand` with the dtype and weak type given; an array that has both is returned itself."""
    aval = aval_of(operand)
    if families.is_array(operand) and aval.dtype == dtype and aval.weak_type == weak_type:
        return operand
    if dtypes.issubdtype(aval.dtype, np.complexfloating) and not (
        dtypes.issubdtype(dtype, np.complexfloating) or dtype == dtypes.bool_
    ):
        warn(
            np.exceptions.ComplexWarning,
            "lax.convert_element_type",
            "the imaginary parts are dropped.",
            got={"operand": aval, "new_dtype": dtype},
            fix="lax.real(x) says so",
        )
    return convert_element_type_p.bind(operand, new_dtype=dtype, weak_type=weak_type, sharding=None)


class BitcastConvertType(Primitive):
    """Reads the bits of `x` as elements of `new_dtype`.

    Shapes: x: T[s] -> new_dtype[s]; narrower elements add a last dimension, wider ones use up
    the last dimension; an extended dtype is read as what it consists of.  Its derivative is zero.
    """

    name = "bitcast_convert_type"
    jvp = jvp_of_constant

    def abstract_eval(self, x: ShapedArray, *, new_dtype: np.dtype[Any]) -> ShapedArray:
        shape = _bitcast_shape(x, new_dtype)
        kinds = (np.bool_, np.complexfloating)
        special = any(dtypes.issubdtype(d, k) for d in (x.dtype, new_dtype) for k in kinds)
        if special and x.dtype != new_dtype:
            problem = "booleans and complex numbers have no bits to read."
            got = {"operand": x, "new_dtype": new_dtype}
            fix = "convert_element_type for booleans; real and imag for complex numbers"
            error(TypeError, "lax.bitcast_convert_type", problem, got=got, fix=fix)
        return shaped_array(shape, new_dtype)

    def shard(self, avals: Avals, outs: Avals, *, new_dtype: np.dtype[Any]) -> PartitionSpec:
        (x,), (out,) = avals, outs
        spec = rules.spec_of(x)
        if out.ndim < x.ndim:
            rules.check_unsharded(self, avals, (x.ndim - 1,))
            return rules.dropped(spec, (x.ndim - 1,))
        return spec.inserted(x.ndim) if out.ndim > x.ndim else spec

    def lower(self, ctx: LoweringContext, x: Value, *, new_dtype: np.dtype[Any]) -> Any:
        return ctx.op("stablehlo.bitcast_convert", [x])

    def batch(
        self, size: int, args: Values, dims: BatchDims, *, new_dtype: np.dtype[Any]
    ) -> Batched:
        (x,), (dim,) = args, dims
        if dim == aval_of(x).ndim - 1:
            x, dim = moveaxis(x, dim, 0), 0
        return self.bind(x, new_dtype=new_dtype), dim


def _bitcast_shape(x: ShapedArray, new_dtype: np.dtype[Any]) -> tuple[int, ...]:
    if x.is_extended:
        return (*x.shape, *cast("dtypes.ExtendedDType", x.dtype).physical_shape)
    old, new = dtypes.bit_width(x.dtype), dtypes.bit_width(new_dtype)
    if old == new:
        return x.shape
    if old > new:
        return (*x.shape, old // new)
    if not x.shape or x.shape[-1] * old != new:
        problem = "the last dimension does not hold the bits of one element."
        got = {"operand": x, "new_dtype": new_dtype}
        expected = f"a last dimension of size {new // old}"
        error(TypeError, "lax.bitcast_convert_type", problem, got=got, expected=expected)
    return x.shape[:-1]


bitcast_convert_type_p = BitcastConvertType()
dtypes.knows_extended.set(True, BitcastConvertType)


def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """Reinterprets the bits of `operand` as elements of `new_dtype`.

    Shapes:     operand: T[s] -> new_dtype[s] for equal widths; [*s, n] where n narrower elements
                make a wide one; [s] from [*s, n] in the other direction.
    Dtypes:     integer or floating; others only to themselves.
    Derivative: zero.
    Lowers to:  stablehlo.bitcast_convert.

    Raises:
        TypeError: one dtype is bool or complex, and the other is not the same; or the last
            dimension does not hold the bits of one wider element.

    Example:
        >>> [hex(n) for n in lax.bitcast_convert_type(jnp.array([1.0, -1.0]), jnp.uint32).tolist()]
        ['0x3f800000', '0xbf800000']
        >>> lax.bitcast_convert_type(jnp.array([1.0, -1.0]), jnp.uint8).shape
        (2, 4)
    """
    dtype = dtypes.canonicalize_user_dtype(new_dtype, "lax.bitcast_convert_type")
    x = families.operand(operand)
    dtypes.bit_width(aval_of(x).dtype)  # Refuses random keys.
    return bitcast_convert_type_p.bind(x, new_dtype=dtype)


class ReducePrecision(Primitive):
    """Rounds each element to a float of fewer exponent and mantissa bits.

    Shapes: x: T[s] -> T[s].  Derivatives are rounded likewise.
    """

    name = "reduce_precision"
    jvp = jvp_of_linear
    shard = rules.elementwise
    batch = families.batch_unary

    def abstract_eval(
        self, x: ShapedArray, *, exponent_bits: int, mantissa_bits: int
    ) -> ShapedArray:
        families.check_dtype("reduce_precision", "operand", x, families.FLOAT)
        return x

    def lower(
        self, ctx: LoweringContext, x: Value, *, exponent_bits: int, mantissa_bits: int
    ) -> Any:
        return ctx.op(
            "stablehlo.reduce_precision",
            [x],
            {
                "exponent_bits": ctx.integer(exponent_bits, 32),
                "mantissa_bits": ctx.integer(mantissa_bits, 32),
            },
        )

    def transpose(self, ct: Array, x: UndefinedPrimal, **params: Any) -> Cotangents:
        return (self.bind(ct, **params),)


reduce_precision_p = ReducePrecision()


def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """Rounds elements to a float format of fewer bits; the dtype stays.

    Shapes:     operand: T[s] -> T[s].
    Dtypes:     floating.
    Derivative: the tangent, rounded likewise.
    Lowers to:  stablehlo.reduce_precision.

    Raises:
        ValueError: `exponent_bits` is less than 1, or `mantissa_bits` less than 0.
        TypeError: the operand is not floating.

    Example:
        >>> x = jnp.array([1 + 2**-7, 1 + 2**-8])
        >>> lax.reduce_precision(x, exponent_bits=8, mantissa_bits=7) - 1 == x - 1
        Array([ True, False], dtype=bool)
    """
    exponent_bits, mantissa_bits = int(exponent_bits), int(mantissa_bits)
    if exponent_bits < 1 or mantissa_bits < 0:
        problem = "exponent_bits must be positive and mantissa_bits not negative."
        got = {"exponent_bits": exponent_bits, "mantissa_bits": mantissa_bits}
        error(ValueError, "lax.reduce_precision", problem, got=got)
    return reduce_precision_p.bind(
        families.operand(operand), exponent_bits=exponent_bits, mantissa_bits=mantissa_bits
    )


class Iota(Primitive):
    """Counts up from 0 along `dimension`.

    Shapes: -> T[shape].  It takes no array, hence has nothing to differentiate or batch.
    """

    name = "iota"
    shard = rules.nothing_sharded

    def abstract_eval(
        self, *, dtype: np.dtype[Any], shape: Shape, dimension: int, **_: Any
    ) -> ShapedArray:
        aval = shaped_array(shape, dtype)
        families.check_dtype("iota", "dtype", aval, (*families.REAL, *families.COMPLEX))
        if not 0 <= dimension < len(shape):
            problem = f"dimension {dimension} is out of range."
            error(ValueError, "lax.iota", problem, got={"shape": shape, "dimension": dimension})
        return aval

    def lower(self, ctx: LoweringContext, *, dimension: int, **_: Any) -> Any:
        return ctx.op("stablehlo.iota", [], {"iota_dimension": ctx.integer(dimension)})


rules.sharding_param.set("sharding", Iota)


iota_p = Iota()


def iota(dtype: DTypeLike, size: int) -> Array:
    """The integers from 0 to `size` - 1.

    Shapes:     -> dtype[size].
    Dtypes:     integer, floating or complex.
    Lowers to:  stablehlo.iota.

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
    """An array whose elements are their own index along `dimension`.

    Shapes:     -> dtype[shape].
    Dtypes:     integer, floating or complex.
    Lowers to:  stablehlo.iota.

    Raises:
        TypeError: the dtype is not numeric, or the shape is invalid.
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

    def abstract_eval(self, *, shape: Shape, dtype: np.dtype[Any], **_: Any) -> ShapedArray:
        return shaped_array(shape, dtype)

    def lower(self, ctx: LoweringContext, **_: Any) -> Any:
        physical = physical_aval(ctx.avals_out[0])
        return ctx.full(physical.shape, 0, physical.dtype)


rules.sharding_param.set("out_sharding", Empty)


empty_p = Empty()


def empty(shape: Shape, dtype: DTypeLike, *, out_sharding: ShardingLike = None) -> Array:
    """An array whose contents are undefined.

    Shapes:     -> dtype[shape].

    Raises:
        TypeError: the shape or the dtype is invalid.

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
    """An array filled with one value.

    Shapes:     -> T[shape]; fill_value is a scalar.
    Dtypes:     any; that of `fill_value` by default, and as weak.
    Derivative: linear in `fill_value`.
    Lowers to:  stablehlo.broadcast_in_dim.

    Raises:
        TypeError: `fill_value` is not a scalar, or the shape is invalid.

    Example:
        >>> lax.full((2, 2), 7)
        Array([[7, 7],
               [7, 7]], dtype=int32, weak_type=True)
        >>> lax.full((2,), 7, jnp.bfloat16)
        Array([7, 7], dtype=bfloat16)
    """
    shape = canonicalize_shape(shape, "lax.full")
    _check_scalar("lax.full", fill_value)
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
    """An array filled with one value, with the shape and dtype of `x` by default.

    Shapes:     x: T[s] -> T[s]; fill_value is a scalar.
    Derivative: linear in `fill_value`; `x` gives its type only.

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
    _check_scalar("lax.full_like", fill_value)
    made = _filled(
        canonicalize_shape(like.shape if shape is None else shape, "lax.full_like"),
        fill_value,
        dtypes.canonicalize_user_dtype(dtype, "lax.full_like"),
        weak_type,
        rules.resolve(sharding, "lax.full_like", "sharding") or _sharding_of(like, shape),
    )
    return casts.varying_as(relocation.beside(made, x) if sharding is None else made, like)


def _check_scalar(name: str, fill_value: ArrayLike) -> None:
    if np.ndim(fill_value):
        error(TypeError, name, "fill_value must be a scalar.", got={"fill_value": fill_value})


def _sharding_of(like: object, shape: Shape | None) -> Any:
    aval = getattr(like, "aval", None)
    return None if shape is not None or aval is None else aval.split


def as_element(value: Any, dtype: Any) -> Any:
    """A number as an element of a dtype that it is to fill an array of; others as they are."""
    if not dtypes.is_extended(dtype) or dtypes.is_extended(getattr(value, "dtype", None)):
        return value
    return dtype.element(value)


def _filled(
    shape: Shape, value: ArrayLike, dtype: DTypeLike | None, weak_type: bool, sharding: object
) -> Any:
    value = as_element(value, dtype)
    if families.is_array(value):
        if dtype is not None:
            value = convert_to_type(value, dtype, weak_type)
    elif dtype is not None:
        value = np.asarray(value).astype(dtype)[()]
        # A Python scalar is what stands for a weak constant.
        if weak_type and aval_of(value.item()).dtype == dtype:
            value = value.item()
    return broadcast_in_dim_p.bind(value, shape=shape, broadcast_dimensions=(), sharding=sharding)


def dtype(x: ArrayLike) -> np.dtype[Any]:
    """The dtype that a value has as an array, or that a type or a name stands for.

    Dtypes: of Python's scalars, the default one of their kind.

    Raises:
        TypeError: `x` is neither an array nor a number, nor a type of these.
        ValueError: `x` is None.

    Example:
        >>> lax.dtype(1.5), lax.dtype(jnp.int8)
        (dtype('float32'), dtype('int8'))
    """
    return aval_of(x).dtype if has_aval(x) else dtypes.dtype(x, canonicalize=True)


def shape_as_value(shape: Sequence[Any]) -> Array:  # noqa: A002 RUF100
    """A shape as an array of integers.

    Shapes: n sizes -> int[n].

    Raises:
        TypeError: a size is not an integer.

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


def stage(x: ArrayLike, /) -> Array:
    """`x` as an array, of a weak type if it is a Python scalar.

    Raises:
        TypeError: `x` is neither an array nor a number.

    Example:
        >>> lax.stage(1.5)
        Array(1.5, dtype=float32, weak_type=True)
    """
    x = families.operand(x)
    return x if hasattr(x, "aval") else array_from_host(x)
