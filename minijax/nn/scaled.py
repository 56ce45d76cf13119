"""Products of numbers of eight or four bits, with a scale for each block of them.

Input: arrays; how they shall be quantized.  Output: their product.  A block is some neighbours
along the dimension that the product sums over.  "OCP microscaling formats (MX) specification"
(2023) has the format mxfp8.  JAX leaves these products to cuDNN, and to some GPUs; here they are
computed from the scaled numbers by plain XLA operations, on any device.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from minijax.core import dtypes
from minijax.core.aval import AbstractValue, aval_of
from minijax.core.errors import error
from minijax.lax import callbacks, dots, reduction, shape
from minijax.lax.binary import clamp, select
from minijax.lax.creation import bitcast_convert_type, convert_element_type
from minijax.numpy import creation
from minijax.numpy.promotion import check_array, check_choice
from minijax.runtime.annotations import ArrayLike, DTypeLike
from minijax.runtime.array import Array
from minijax.transforms.autodiff.custom_vjp import custom_vjp

_FLOAT32, _UINT32, _UINT8 = np.dtype(np.float32), np.dtype(np.uint32), np.dtype(np.uint8)
_SCALED_DOT = "nn.scaled_dot_general"


@dataclass(frozen=True, eq=False)
class BlockScaleConfig:
    """How an operand is quantized.

    Attributes:
        mode: the name of the format.
        block_size: how many numbers share a scale.
        data_type: of the numbers.
        scale_type: of the scales.
        global_scale: divides all numbers first; None for 1.
        infer_only: whether nobody differentiates.
    """

    mode: str
    block_size: int
    data_type: type[Any]
    scale_type: type[Any]
    global_scale: Array | None
    infer_only: bool


def get_scaled_dot_general_config(mode: str, global_scale: Array | None = None) -> BlockScaleConfig:
    """How operands of `scaled_dot_general` are quantized in a known format.

    Args:
        mode: "mxfp8": blocks of 32 float8_e4m3fn with powers of two as scales; "nvfp4": blocks of
            16 float4_e2m1fn with float8_e4m3fn as scales.
        global_scale: for "nvfp4", what all numbers are divided by first; 1 by default.

    Raises:
        ValueError: the format is not known.

    Example:
        >>> config = minijax.nn.get_scaled_dot_general_config("mxfp8")
        >>> config.block_size, config.data_type.__name__
        (32, 'float8_e4m3fn')
    """
    if mode == "mxfp8":
        types = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu
        return BlockScaleConfig(mode, 32, *types, global_scale=None, infer_only=False)
    if mode == "nvfp4":
        types = ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fn
        given = creation.ones((1,), _FLOAT32) if global_scale is None else global_scale
        return BlockScaleConfig(mode, 16, *types, global_scale=given, infer_only=False)
    problem = f"unknown mode {mode!r}."
    error(ValueError, "nn.get_scaled_dot_general_config", problem, expected="'mxfp8' or 'nvfp4'")


def scaled_matmul(
    lhs: ArrayLike,
    rhs: ArrayLike,
    lhs_scales: ArrayLike,
    rhs_scales: ArrayLike,
    preferred_element_type: DTypeLike = np.float32,
) -> Array:
    """Products of batches of matrices whose rows are scaled block by block.

    Shapes:     lhs: L[b, m, k], rhs: R[b, n, k], lhs_scales: S[b, m, k / p],
                rhs_scales: S[b, n, k / p] -> T[b, m, n], with blocks of p.
    Dtypes:     any of floats; sums are in float32.
    Derivative: by all four.

    Raises:
        ValueError: the shapes do not fit.

    Example:
        >>> x, scales = jnp.ones((1, 1, 32)), jnp.full((1, 1, 1), 2.0)
        >>> minijax.nn.scaled_matmul(x, x, scales, scales)
        Array([[[128.]]], dtype=float32)
    """
    lhs, rhs, lhs_scales, rhs_scales = (
        check_array("nn.scaled_matmul", x) for x in (lhs, rhs, lhs_scales, rhs_scales)
    )
    _check_matrices(*(aval_of(x) for x in (lhs, rhs, lhs_scales, rhs_scales)))
    numbers = ((2,), (2,)), ((0,), (0,))
    out = dots.dot_general(
        _unpacked(lhs, lhs_scales),
        _unpacked(rhs, rhs_scales),
        numbers,
        preferred_element_type=_FLOAT32,
    )
    return convert_element_type(out, np.dtype(preferred_element_type))


def _check_matrices(
    lhs: AbstractValue, rhs: AbstractValue, lhs_scales: AbstractValue, rhs_scales: AbstractValue
) -> None:
    avals = {"lhs": lhs, "rhs": rhs, "lhs_scales": lhs_scales, "rhs_scales": rhs_scales}
    if {aval.ndim for aval in avals.values()} != {3}:
        problem = "operands and scales must have three dimensions."
    elif (lhs.shape[0], lhs.shape[2]) != (rhs.shape[0], rhs.shape[2]):
        problem = "lhs and rhs must have the same batch and the same size to sum over."
    elif lhs_scales.shape[2] != rhs_scales.shape[2]:
        problem = "both operands must have as many scales in a row."
    elif lhs.shape[:2] != lhs_scales.shape[:2] or rhs.shape[:2] != rhs_scales.shape[:2]:
        problem = "scales must have the batch and the rows of their operands."
    elif not lhs_scales.shape[2] or lhs.shape[2] % lhs_scales.shape[2]:
        problem = "the scales of a row do not divide it into blocks."
    else:
        return
    error(ValueError, "nn.scaled_matmul", problem, got=avals)


def _unpacked(x: Array, scales: Array) -> Array:
    """float32: numbers times their scales."""
    (b, m, k), count = aval_of(x).shape, aval_of(scales).shape[2]
    blocks = (b, m, count, k // count)
    repeated = shape.broadcast_in_dim(convert_element_type(scales, _FLOAT32), blocks, (0, 1, 2))
    numbers = convert_element_type(x, _FLOAT32)
    return numbers * shape.reshape(repeated, (b, m, k))


def scaled_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: dots.DotDimensionNumbers,
    preferred_element_type: DTypeLike = np.float32,
    configs: Sequence[BlockScaleConfig] | None = None,
    implementation: str | None = None,
) -> Array:
    """The product of two arrays that are quantized block by block first.

    Shapes:     lhs: L[b, i, k], rhs: R[b, j, k] -> T[b, i, j], as for `lax.dot_general`.
    Dtypes:     floating; sums are in float32.
    Derivative: that of the product, straight through the quantization; cotangents are quantized
                as well.
    Source:     mirrors jax.nn.scaled_dot_general (0.10); "OCP microscaling formats (MX)
        specification" (2023).

    Args:
        lhs: the left operand.
        rhs: the right operand.
        dimension_numbers: `((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))`.
        preferred_element_type: of the result.
        configs: how the left operand, the right one, and cotangents are quantized, see
            `get_scaled_dot_general_config`; where None, nothing is, unless an implementation is
            named: then all are "mxfp8".
        implementation: None or "cudnn"; both are computed alike.

    Raises:
        ValueError: there are not three configs, the implementation is not known, or blocks do not
            divide the size that the product sums over.

    Example:
        >>> configs = [minijax.nn.get_scaled_dot_general_config("mxfp8")] * 3
        >>> x = jnp.ones((2, 32))
        >>> minijax.nn.scaled_dot_general(x, x, (((1,), (1,)), ((), ())), configs=configs)
        Array([[32., 32.],
               [32., 32.]], dtype=float32)
    """
    check_choice(_SCALED_DOT, "implementation", implementation, (None, "cudnn"))
    preferred = np.dtype(preferred_element_type)
    if configs is None and implementation is None:
        return dots.dot_general(lhs, rhs, dimension_numbers, preferred_element_type=preferred)
    chosen = tuple(configs or [get_scaled_dot_general_config("mxfp8")] * 3)
    if len(chosen) != 3:
        problem = "needs three configs."
        expected = "one for lhs, one for rhs, one for cotangents"
        error(ValueError, _SCALED_DOT, problem, got={"configs": len(chosen)}, expected=expected)
    lhs, rhs = check_array(_SCALED_DOT, lhs), check_array(_SCALED_DOT, rhs)
    (x_sum, y_sum), (x_batch, y_batch) = dimension_numbers
    x, kept = _as_matrices(lhs, x_sum, x_batch)
    y, others = _as_matrices(rhs, y_sum, y_batch)
    batch = tuple(aval_of(lhs).shape[d] for d in x_batch)
    out = shape.reshape(_quantized_product(*chosen)(x, y), (*batch, *kept, *others))
    return convert_element_type(out, preferred)


def _as_matrices(
    x: Array, summed: Sequence[int], batch: Sequence[int]
) -> tuple[Array, tuple[int, ...]]:
    """float32[b, m, k], and the sizes of the dimensions that make m."""
    sizes = aval_of(x).shape
    kept = [d for d in range(len(sizes)) if d not in (*summed, *batch)]
    groups = ([sizes[d] for d in dims] for dims in (batch, kept, summed))
    ordered = shape.transpose(x, (*batch, *kept, *summed))
    matrices = shape.reshape(ordered, tuple(map(math.prod, groups)))
    return convert_element_type(matrices, _FLOAT32), tuple(sizes[d] for d in kept)


def _quantized_product(
    of_lhs: BlockScaleConfig, of_rhs: BlockScaleConfig, of_ct: BlockScaleConfig
) -> Any:
    """The function of float32[b, m, k] and float32[b, n, k] to float32[b, m, n]."""

    @custom_vjp
    def product(x: Array, y: Array) -> Array:
        return _product(x, y, of_lhs, of_rhs)

    def forward(x: Array, y: Array) -> tuple[Array, tuple[Array, Array]]:
        return _product(x, y, of_lhs, of_rhs), (x, y)

    def backward(residuals: tuple[Array, Array], ct: Array) -> tuple[Array, Array]:
        x, y = (shape.transpose(z, (0, 2, 1)) for z in residuals)
        flipped = shape.transpose(ct, (0, 2, 1))
        return _product(ct, y, of_ct, of_rhs), _product(flipped, x, of_ct, of_lhs)

    product.defvjp(forward, backward)
    return product


def _product(x: Array, y: Array, of_x: BlockScaleConfig, of_y: BlockScaleConfig) -> Array:
    (x, x_scales), (y, y_scales) = _packed(x, of_x), _packed(y, of_y)
    out = scaled_matmul(x, y, x_scales, y_scales)
    factors = [c.global_scale for c in (of_x, of_y) if c.global_scale is not None]
    if not factors:
        return out
    return out * _everywhere(functools.reduce(operator.mul, factors), aval_of(out).shape)


def _everywhere(x: Array, dims: tuple[int, ...]) -> Array:
    return shape.broadcast_in_dim(shape.reshape(x, ()), dims, ())


def _packed(x: Array, config: BlockScaleConfig) -> tuple[Array, Array]:
    """Numbers of few bits, and the scales of their blocks."""
    b, m, k = aval_of(x).shape
    if not k or k % config.block_size:
        problem = "blocks do not divide the size that the product, or that of its derivative, sums."
        error(ValueError, _SCALED_DOT, problem, got={"size": k, "block_size": config.block_size})
    blocks = (b, m, k // config.block_size, config.block_size)
    x = shape.reshape(x, blocks)
    if config.global_scale is not None:
        x = x / _everywhere(config.global_scale, blocks)
    most = float(dtypes.finfo(config.data_type).max)
    needed = reduction.reduce_max(abs(x), (3,)) / most
    if config.mode == "mxfp8":
        scales, factors = _powers_of_two(needed)
    else:
        limit = float(dtypes.finfo(config.scale_type).max)
        # Rounding must not be optimized away.
        scales = callbacks.optimization_barrier(
            convert_element_type(clamp(0.0, needed, limit), np.dtype(config.scale_type))
        )
        factors = convert_element_type(scales, _FLOAT32)
    scaled = x / shape.broadcast_in_dim(factors, blocks, (0, 1, 2))
    # Blocks of zeros have a scale of 0 in formats that have one, and stay zeros.
    scaled = select(x == 0, x, clamp(-most, scaled, most))
    numbers = convert_element_type(scaled, np.dtype(config.data_type))
    return shape.reshape(numbers, (b, m, k)), scales


def _powers_of_two(needed: Array) -> tuple[Array, Array]:
    """The next powers of two that are not less, as float8_e8m0fnu and as float32."""
    bits = bitcast_convert_type(needed, _UINT32)
    exponent, fraction = bits >> 23, bits & 0x7FFFFF
    # 2**-127 is a subnormal float32: half the least normal one.
    fits = (exponent == 0) & (fraction <= 0x400000)
    rounds_up = (fraction > 0) & (exponent != 254) & ~fits
    exponent = select(rounds_up, exponent + 1, exponent)
    factors = bitcast_convert_type(exponent << 23, _FLOAT32)
    factors = select(exponent == 0, _full(factors, 2.0**-127), factors)
    scales = bitcast_convert_type(
        convert_element_type(exponent, _UINT8), np.dtype(ml_dtypes.float8_e8m0fnu)
    )
    return scales, factors


def _full(like: Array, value: float) -> Array:
    return creation.full(aval_of(like).shape, value, aval_of(like).dtype)
