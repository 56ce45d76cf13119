"""Discrete Fourier transforms over the last one, two or three dimensions.

What `fft` computes, for one dimension of length n with ω = exp(-2πi/n):

    FFT    y[k] = Σ x[j] ωʲᵏ             IFFT   x[j] = 1/n Σ y[k] ω⁻ʲᵏ
    RFFT   FFT of real x, for k ≤ n/2    IRFFT  real IFFT of y, whose missing half is conjugate

The choice of axes, lengths and scales is made in `numpy/fft`.
"""

from __future__ import annotations

import enum
import math
import operator
from collections.abc import Sequence
from typing import Any

from minijax.core import dtypes, vma
from minijax.core.aval import Shape, ShapedArray, aval_of, shaped_array
from minijax.core.errors import error
from minijax.core.primitive import Batched, Cotangents, Primitive
from minijax.interpreters.jvp import UndefinedPrimal, jvp_of_linear
from minijax.interpreters.structural import full, moveaxis
from minijax.lax.binary import bitwise_or, eq, mul, select
from minijax.lax.creation import broadcasted_iota, convert_element_type
from minijax.lax.families import Avals, int_tuple, operand
from minijax.lax.shape import broadcast_in_dim
from minijax.lax.unary import conj
from minijax.lowering import stablehlo
from minijax.lowering.stablehlo import LoweringContext, Value
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.sharding import rules

_MAX_RANK = 3
_RFFT_DTYPES = (dtypes.float32, dtypes.float64)


class FftType(enum.IntEnum):
    """Kinds of Fourier transforms: to frequencies or back, of complex or of real values.

    Example:
        >>> lax.FftType.RFFT.name
        'RFFT'
    """

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


class Fft(Primitive):
    """A Fourier transform over the last dimensions, as many as there are lengths.

    Shapes: x: T[b, s] -> U[b, t], where t is `fft_lengths`; real values have n//2 + 1 frequencies
            in the last dimension.  Linear over the reals.
    """

    name = "fft"
    jvp = jvp_of_linear

    def abstract_eval(
        self, x: ShapedArray, *, fft_type: FftType, fft_lengths: Shape
    ) -> ShapedArray:
        _check_lengths(x, fft_type, fft_lengths)
        if fft_type == FftType.RFFT:
            shape = (*x.shape[:-1], fft_lengths[-1] // 2 + 1)
            return shaped_array(shape, dtypes.complex_dtype_of(x.dtype), False)
        if fft_type == FftType.IRFFT:
            shape = (*x.shape[:-1], fft_lengths[-1])
            return shaped_array(shape, dtypes.real_dtype_of(x.dtype), False)
        return x

    def shard(self, avals: Avals, outs: Avals, *, fft_type: FftType, fft_lengths: Shape) -> Any:
        # XLA gathers what it transforms; a dimension of another length cannot be split as before.
        if fft_type in (FftType.RFFT, FftType.IRFFT):
            rules.check_unsharded(self, avals, (avals[0].ndim - 1,))
        return rules.spec_of(avals[0])

    def lower(
        self, ctx: LoweringContext, x: Value, *, fft_type: FftType, fft_lengths: Shape
    ) -> Any:
        kind = stablehlo.attribute(f"#stablehlo<fft_type {fft_type.name}>")
        lengths = ctx.i64_array(fft_lengths)
        ndim = ctx.avals_in[0].ndim
        # XLA gathers what is split, and may leave it in an order that its transform refuses.
        x = ctx.module.partitioning.whole_along(ctx, x, range(ndim), ndim)
        return ctx.op("stablehlo.fft", [x], {"fft_type": kind, "fft_length": lengths})

    def transpose(
        self, ct: Array, x: UndefinedPrimal, *, fft_type: FftType, fft_lengths: Shape
    ) -> Cotangents:
        count = math.prod(fft_lengths)
        if fft_type == FftType.RFFT:
            # Re Σ ct[k] ωʲᵏ over k ≤ n/2, where IRFFT counts all but the outermost twice.
            halves = mul(conj(ct), _weights(ct, fft_lengths[-1], count, count / 2))
            return (self.bind(halves, fft_type=FftType.IRFFT, fft_lengths=fft_lengths),)
        if fft_type == FftType.IRFFT:
            forth = self.bind(ct, fft_type=FftType.RFFT, fft_lengths=fft_lengths)
            return (mul(conj(forth), _weights(forth, fft_lengths[-1], 1 / count, 2 / count)),)
        # The matrices of both complex transforms are symmetric.
        return (self.bind(ct, fft_type=fft_type, fft_lengths=fft_lengths),)

    def batch(
        self,
        size: int,
        args: Sequence[Array],
        dims: Sequence[int],
        *,
        fft_type: FftType,
        fft_lengths: Shape,
    ) -> Batched:
        (x,), (dim,) = args, dims
        if dim >= x.ndim - len(fft_lengths):
            x, dim = moveaxis(x, dim, 0), 0
        return self.bind(x, fft_type=fft_type, fft_lengths=fft_lengths), dim


vma.keeps_unreduced.set(True, Fft)


fft_p = Fft()


def _weights(spectrum: Array, n: int, alone: float, paired: float) -> Any:
    """One number for frequencies 0 and n/2 of n real values, another for those that have a twin."""
    aval = aval_of(spectrum)
    half = aval.shape[-1]
    k = broadcasted_iota(dtypes.int32, (half,), 0)
    is_alone = eq(k, full((half,), 0, dtypes.int32))
    if n % 2 == 0:
        is_alone = bitwise_or(is_alone, eq(k, full((half,), half - 1, dtypes.int32)))
    alone, paired = (full((half,), weight, aval.dtype) for weight in (alone, paired))
    weights = select(is_alone, alone, paired)
    return broadcast_in_dim(weights, aval.shape, (aval.ndim - 1,), out_sharding=aval.split)


def fft(x: ArrayLike, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Array:
    """The discrete Fourier transform over the last dimensions, one to three of them.

    Args:
        x: the values, or frequencies.
        fft_type: an `FftType` or its name: FFT, IFFT, RFFT or IRFFT.
        fft_lengths: the lengths of the dimensions of values that are transformed.

    Shapes:     x: T[b, s] -> U[b, t]: s and t are `fft_lengths`, but for real transforms the last
                dimension of frequencies is n//2 + 1 where the length is n.
    Dtypes:     FFT, IFFT: to complex; RFFT: float to complex; IRFFT: complex to float.
    Derivative: linear; FFT and IFFT transpose to themselves, RFFT and IRFFT to each other.
    Lowers to:  stablehlo.fft.
    Source:     mirrors jax.lax.fft (0.10); J. Cooley and J. Tukey, An algorithm for the machine
                calculation of complex Fourier series, 1965.

    Raises:
        ValueError: the kind is not known, the lengths do not fit the shape, or RFFT is given
            complex numbers or short floats.
        TypeError: the lengths are not a sequence of integers.

    Example:
        >>> lax.fft(np.float32([1, 0, 0, 0]), "RFFT", (4,))
        Array([1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    kind = _kind(fft_type)
    lengths = int_tuple(fft_lengths, "lax.fft", "fft_lengths")
    x = _of_dtype(operand(x), kind)
    if not lengths:
        return x
    return fft_p.bind(x, fft_type=kind, fft_lengths=lengths)


def _kind(given: FftType | str) -> FftType:
    if isinstance(given, FftType):
        return given
    if isinstance(given, str):
        try:
            return FftType[given.upper()]
        except KeyError:
            exception: type[Exception] = ValueError
    else:
        exception = TypeError
    problem = "unknown kind of transform."
    expected = "FFT, IFFT, RFFT or IRFFT, by name or as a lax.FftType"
    error(exception, "lax.fft", problem, got=f"fft_type: {given!r}", expected=expected, cause=None)


def _of_dtype(x: Array, kind: FftType) -> Array:
    aval = aval_of(x)
    if kind != FftType.RFFT:
        return convert_element_type(x, dtypes.to_complex_dtype(aval.dtype))
    dtype = dtypes.to_inexact_dtype(aval.dtype)
    if dtype not in _RFFT_DTYPES:
        problem = f"RFFT does not take {dtype}."
        expected = "float32 or float64 values"
        fix = "FFT for complex values; x.astype(float32) for short floats"
        error(ValueError, "lax.fft", problem, got={"x": aval}, expected=expected, fix=fix)
    return convert_element_type(x, dtype)


def _check_lengths(aval: ShapedArray, kind: FftType, lengths: tuple[int, ...]) -> None:
    count = len(lengths)
    if count > _MAX_RANK or count > aval.ndim:
        problem = "too many dimensions are to be transformed."
        got = {"x": aval, "fft_lengths": lengths}
        expected = f"at most {min(_MAX_RANK, aval.ndim)} lengths"
        fix = "numpy.fft.fftn for more than three" if count > _MAX_RANK else None
        error(ValueError, "lax.fft", problem, got=got, expected=expected, fix=fix)
    needed = lengths
    if kind == FftType.IRFFT:
        needed = (*lengths[:-1], lengths[-1] // 2 + 1)
    empty = kind == FftType.RFFT and operator.index(lengths[-1]) == 0
    if aval.shape[-count:] != needed or empty:
        error(
            ValueError,
            "lax.fft",
            "the lengths do not fit the operand.",
            got={"x": aval, "fft_lengths": lengths},
            expected="at least one value for each real transform"
            if empty
            else f"last dimensions {needed} for {kind.name} of lengths {lengths}",
        )
