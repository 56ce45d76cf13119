"""Conversions between element types: by value, by bits, and to fewer bits of precision."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import dtypes, printing, vma
from minijax.core.aval import ShapedArray, aval_of, shaped_array
from minijax.core.errors import error, message
from minijax.core.meshes import PartitionSpec
from minijax.core.primitive import Primitive
from minijax.interpreters.jvp import Zero, jvp_of_constant, jvp_of_unary_linear
from minijax.interpreters.structural import moveaxis
from minijax.lax import families
from minijax.lax.arguments import is_array
from minijax.lax.families import FLOAT, check_dtype
from minijax.runtime.annotations import ArrayLike, DTypeLike
from minijax.runtime.array import Array
from minijax.sharding import rules


class ConvertElementType(Primitive):
    """Converts each element to `new_dtype`.

    Shapes: x: T[s] -> new_dtype[s].  Linear between floats and complex numbers, of which floats
    keep the real part.  Booleans say whether an element differs from zero.
    """

    name = "convert_element_type"
    shard = rules.elementwise

    def abstract_eval(
        self, x: ShapedArray, *, new_dtype: Any, weak_type: bool, sharding: Any
    ) -> ShapedArray:
        if dtypes.is_extended(x.dtype) or dtypes.is_extended(new_dtype):
            error(
                ValueError,
                "lax.convert_element_type",
                "random keys convert to and from nothing.",
                got={"operand": x, "new_dtype": new_dtype},
            )
        return shaped_array(x.shape, new_dtype, weak_type)

    def lower(self, ctx: Any, x: Any, *, new_dtype: Any, weak_type: bool, sharding: Any) -> Any:
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
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        new_dtype: Any,
        weak_type: bool,
        sharding: Any,
    ) -> tuple[Any, Any]:
        out = self.bind(*primals, new_dtype=new_dtype, weak_type=weak_type, sharding=sharding)
        (x_dot,) = tangents
        if type(x_dot) is Zero or not dtypes.issubdtype(new_dtype, np.inexact):
            return out, Zero.like(out)
        # The public function would warn of what transposing a conversion to complex drops.
        return out, self.bind(x_dot, new_dtype=new_dtype, weak_type=False, sharding=None)

    def transpose(
        self, ct: Any, x: Any, *, new_dtype: Any, weak_type: bool, sharding: Any
    ) -> tuple[Any]:
        # The parts that a conversion drops or makes up as zeros need no care: the pairing of
        # cotangents and tangents is the real part of their product.
        return (self.bind(ct, new_dtype=x.aval.dtype, weak_type=x.aval.weak_type, sharding=None),)

    def batch(
        self, size: int, args: Sequence[Any], dims: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        return self.bind(*args, **params), dims[0]


printing.hidden_params.set(frozenset({"sharding"}), ConvertElementType)
vma.keeps_unreduced.set(True, ConvertElementType)


convert_element_type_p = ConvertElementType()


def convert_element_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """Each element of `operand` converted to `new_dtype`.

    Floats become integers by dropping the fraction, complex numbers become real by dropping the
    imaginary part, booleans say whether an element differs from zero.

    Shapes:     operand: T[s] -> new_dtype[s].
    Derivative: linear between floats and complex numbers; zero from and to others.
    Lowers to:  stablehlo.convert; a comparison with 0 for booleans.
    Source:     mirrors jax.lax.convert_element_type.

    Raises:
        ValueError: `new_dtype` is None.
        TypeError: it is no dtype that arrays can have.

    Example:
        >>> lax.convert_element_type(jnp.array([1.9, -1.9]), jnp.int32)
        Array([ 1, -1], dtype=int32)
        >>> lax.convert_element_type(jnp.array([0.0, 0.5]), bool)
        Array([False,  True], dtype=bool)
    """
    if new_dtype is None:
        error(ValueError, "lax.convert_element_type", "new_dtype must be given.")
    dtype = dtypes.canonicalize_user_dtype(new_dtype, "lax.convert_element_type")
    return convert_to_type(operand, dtype, weak_type=False)


def convert_to_type(operand: Any, dtype: Any, weak_type: bool) -> Any:
    """`operand` with the dtype and weak type given; an array that has both is returned itself."""
    aval = aval_of(operand)
    if is_array(operand) and aval.dtype == dtype and aval.weak_type == weak_type:
        return operand
    if dtypes.issubdtype(aval.dtype, np.complexfloating) and not (
        dtypes.issubdtype(dtype, np.complexfloating) or dtype == dtypes.bool_
    ):
        warnings.warn(
            message(
                "lax.convert_element_type",
                "the imaginary parts are dropped.",
                got={"operand": aval, "new_dtype": dtype},
                fix="lax.real(x) says so",
            ),
            np.exceptions.ComplexWarning,
            stacklevel=3,
        )
    return convert_element_type_p.bind(operand, new_dtype=dtype, weak_type=weak_type, sharding=None)


class BitcastConvertType(Primitive):
    """Reads the bits of `x` as elements of `new_dtype`.

    Shapes: x: T[s] -> new_dtype[s]; narrower elements add a last dimension, wider ones use up
    the last dimension.  Its derivative is zero.
    """

    name = "bitcast_convert_type"
    jvp = jvp_of_constant

    def abstract_eval(self, x: ShapedArray, *, new_dtype: Any) -> ShapedArray:
        shape = _bitcast_shape(x, new_dtype)
        kinds = (np.bool_, np.complexfloating)
        special = any(dtypes.issubdtype(d, k) for d in (x.dtype, new_dtype) for k in kinds)
        if special and x.dtype != new_dtype:
            error(
                TypeError,
                "lax.bitcast_convert_type",
                "booleans and complex numbers have no bits to read.",
                got={"operand": x, "new_dtype": new_dtype},
                fix="convert_element_type for booleans; real and imag for complex numbers",
            )
        return shaped_array(shape, new_dtype)

    def shard(self, avals: Sequence[Any], outs: Sequence[Any], *, new_dtype: Any) -> PartitionSpec:
        (x,), (out,) = avals, outs
        spec = rules.spec_of(x)
        if out.ndim < x.ndim:
            rules.check_unsharded(self, avals, (x.ndim - 1,))
            return rules.dropped(spec, (x.ndim - 1,))
        return spec.inserted(x.ndim) if out.ndim > x.ndim else spec

    def lower(self, ctx: Any, x: Any, *, new_dtype: Any) -> Any:
        return ctx.op("stablehlo.bitcast_convert", [x])

    def batch(
        self, size: int, args: Sequence[Any], dims: Sequence[Any], *, new_dtype: Any
    ) -> tuple[Any, int]:
        (x,), (dim,) = args, dims
        if dim == aval_of(x).ndim - 1:
            x, dim = moveaxis(x, dim, 0), 0
        return self.bind(x, new_dtype=new_dtype), dim


def _bitcast_shape(x: ShapedArray, new_dtype: Any) -> tuple[int, ...]:
    old, new = dtypes.bit_width(x.dtype), dtypes.bit_width(new_dtype)
    if old == new:
        return x.shape
    if old > new:
        return (*x.shape, old // new)
    if not x.shape or x.shape[-1] * old != new:
        error(
            TypeError,
            "lax.bitcast_convert_type",
            "the last dimension does not hold the bits of one element.",
            got={"operand": x, "new_dtype": new_dtype},
            expected=f"a last dimension of size {new // old}",
        )
    return x.shape[:-1]


bitcast_convert_type_p = BitcastConvertType()


def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """The bits of `operand`, read as elements of `new_dtype`.

    Shapes:     operand: T[s] -> new_dtype[s] for equal widths; [*s, n] where n narrower elements
                make a wide one; [s] from [*s, n] in the other direction.
    Dtypes:     integer or floating; others only to themselves.
    Derivative: zero.
    Lowers to:  stablehlo.bitcast_convert.
    Source:     mirrors jax.lax.bitcast_convert_type.

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
    return bitcast_convert_type_p.bind(families.operand(operand), new_dtype=dtype)


class ReducePrecision(Primitive):
    """Rounds each element to a float of fewer exponent and mantissa bits.

    Shapes: x: T[s] -> T[s].  Derivatives are rounded likewise.
    """

    name = "reduce_precision"
    jvp = jvp_of_unary_linear
    shard = rules.elementwise

    def abstract_eval(
        self, x: ShapedArray, *, exponent_bits: int, mantissa_bits: int
    ) -> ShapedArray:
        check_dtype("reduce_precision", "operand", x, FLOAT)
        return x

    def lower(self, ctx: Any, x: Any, *, exponent_bits: int, mantissa_bits: int) -> Any:
        return ctx.op(
            "stablehlo.reduce_precision",
            [x],
            {
                "exponent_bits": ctx.integer(exponent_bits, 32),
                "mantissa_bits": ctx.integer(mantissa_bits, 32),
            },
        )

    def transpose(self, ct: Any, x: Any, **params: Any) -> tuple[Any]:
        return (self.bind(ct, **params),)

    def batch(
        self, size: int, args: Sequence[Any], dims: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        return self.bind(*args, **params), dims[0]


reduce_precision_p = ReducePrecision()


def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """Each element rounded to what a float with fewer bits can hold; the dtype stays.

    Shapes:     operand: T[s] -> T[s].
    Dtypes:     floating.
    Derivative: the tangent, rounded likewise.
    Lowers to:  stablehlo.reduce_precision.
    Source:     mirrors jax.lax.reduce_precision.

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
        error(
            ValueError,
            "lax.reduce_precision",
            "exponent_bits must be positive and mantissa_bits not negative.",
            got={"exponent_bits": exponent_bits, "mantissa_bits": mantissa_bits},
        )
    return reduce_precision_p.bind(
        families.operand(operand), exponent_bits=exponent_bits, mantissa_bits=mantissa_bits
    )
