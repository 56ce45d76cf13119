"""What operations on matrices share: a family, jaxlib's kernels, small products.

Input: matrices, with any number of leading batch dimensions.  `BatchedPrimitive` batches by moving
mapped dimensions to the front, and keeps the shardings of batch dimensions in types.

The kernels are LAPACK's on CPU, cuSOLVER's and the like on GPU.  They expect the columns of a
matrix to be contiguous, and devices may divide a batch among them.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np

from minijax.core.aval import AbstractValue, ShapedArray
from minijax.core.errors import IncompatibleShapesError, error
from minijax.core.meshes import PartitionSpec
from minijax.core.primitive import Batched, Primitive
from minijax.interpreters.structural import broadcast_in_dim, full, to_batch_dims
from minijax.lax import binary, creation, dots, foreign, slicing, unary
from minijax.lax.binary import select
from minijax.lax.creation import convert_element_type
from minijax.lax.dots import Precision
from minijax.lax.families import INEXACT, Avals, BatchDims, Values, check_dtype, check_same_dtype
from minijax.lax.gather_numbers import GatherDimensionNumbers
from minijax.lax.gather_scatter import gather
from minijax.lax.reduction import reduce_sum
from minijax.lax.shape import expand_dims
from minijax.lax.shape import transpose as permute
from minijax.lax.unary import reciprocal
from minijax.lowering import custom_calls
from minijax.lowering.module import lower_function
from minijax.lowering.stablehlo import LoweringContext
from minijax.runtime import call_targets
from minijax.runtime.array import Array
from minijax.sharding import rules


class BatchedPrimitive(Primitive):
    """Computes on the last dimensions of its operands, for each entry of the leading ones.

    All operands have the same leading dimensions.

    Attributes:
        core_ndims: for each operand, how many of its last dimensions one computation takes; a
            single number is for all operands.
    """

    core_ndims: ClassVar[tuple[int, ...]] = (2,)

    def compute(self, *args: Any, **params: Any) -> Any:
        """Its results on a platform, for operands: calls of kernels, and other operations."""
        raise NotImplementedError

    def lower(self, ctx: LoweringContext, *operands: Any, **params: Any) -> Any:
        def compute(*operands: Array) -> Any:
            outs = self.compute(ctx.platform, *operands, **params)
            return outs if self.multiple_results else [outs]

        outs = lower_function(ctx, compute, *operands)
        return outs if self.multiple_results else outs[0]

    def batch(self, size: int, args: Values, dims: BatchDims, **params: Any) -> Batched:
        fronted = to_batch_dims(args, dims, 0, size)
        outs = self.bind(*fronted, **params)
        return outs, [0] * len(outs) if self.multiple_results else 0

    def shard(
        self, avals: Avals, outs: Avals, **params: Any
    ) -> PartitionSpec | list[PartitionSpec]:
        cores = self.core_ndims * (len(avals) if len(self.core_ndims) == 1 else 1)
        for aval, core in zip(avals, cores, strict=True):
            rules.check_unsharded(self, [aval], range(aval.ndim - core, aval.ndim))
        batch = avals[0].ndim - cores[0]
        entries = rules.join_leading(self, avals, batch)
        specs = [PartitionSpec(*entries, *[None] * (out.ndim - batch)) for out in outs]
        return specs if self.multiple_results else specs[0]


def check_matrices(name: str, argument: str, aval: AbstractValue, *, square: bool = False) -> None:
    """Refuses what is not a matrix of inexact numbers or a batch of matrices.

    Raises:
        TypeError: it has another dtype, or fewer than two dimensions.
        IncompatibleShapesError: the last two differ and must not.
    """
    check_dtype(f"linalg.{name}", argument, aval, INEXACT)
    if aval.ndim < 2:
        problem = f"{argument} is no matrix, nor a batch of matrices."
        expected = "two dimensions or more: T[..., m, n]"
        error(TypeError, f"lax.linalg.{name}", problem, got={argument: aval}, expected=expected)
    if square and aval.shape[-1] != aval.shape[-2]:
        problem = f"the matrices in {argument} are not square."
        got = {argument: aval}
        expected = "T[..., n, n]"
        error(IncompatibleShapesError, f"lax.linalg.{name}", problem, got=got, expected=expected)


def check_together(
    primitive: BatchedPrimitive, kinds: tuple[type, ...], **avals: ShapedArray
) -> None:
    """Refuses operands of different dtypes, or with different leading dimensions.

    Args:
        primitive: the operation.
        kinds: of which kinds the dtypes may be.
        avals: the operands' types, by the names of the arguments.

    Raises:
        TypeError: their dtypes differ, or are of another kind, or how many leading dimensions they
            have.
        ValueError: the sizes of leading dimensions differ.
    """
    name, cores = primitive.name, primitive.core_ndims
    for argument, aval in avals.items():
        check_dtype(f"linalg.{name}", argument, aval, kinds)
    check_same_dtype(f"linalg.{name}", **avals)
    ranks = [aval.ndim - core for aval, core in zip(avals.values(), cores, strict=True)]
    batches = {
        aval.shape[:rank] for aval, rank in zip(avals.values(), ranks, strict=True) if rank >= 0
    }
    if min(ranks) >= 0 and len(batches) == 1:
        return
    of_one_rank = min(ranks) == max(ranks) >= 0
    own = [f"{core} of {argument}" for argument, core in zip(avals, cores, strict=True)]
    error(
        ValueError if of_one_rank else TypeError,
        f"lax.linalg.{name}",
        "the operands are not batches of one shape.",
        got=avals,
        expected=f"equal dimensions before the last {' and '.join(own)}",
    )


def weak_if_all(*avals: Any) -> bool:
    """Whether results of operands of these types are weakly typed."""
    return all(aval.weak_type for aval in avals)


LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
# What LAPACK calls orthogonal and symmetric of real matrices is unitary and Hermitian of others.
_NAMES_OF_COMPLEX = {"or": "un", "sy": "he"}
GPUS = {"cuda": "cu", "rocm": "hip"}

LOWER, UPPER = np.uint8(ord("L")), np.uint8(ord("U"))
VECTORS, NO_VECTORS = np.uint8(ord("V")), np.uint8(ord("N"))


def lapack(routine: str, dtype: np.dtype[Any]) -> str:
    """The name of a routine of LAPACK for a dtype: `potrf` is `lapack_spotrf_ffi` for float32."""
    letter = LETTERS[dtype.name]
    if letter in "cz":
        routine = _NAMES_OF_COMPLEX.get(routine[:2], routine[:2]) + routine[2:]
    return f"lapack_{letter}{routine}_ffi"


def solver(platform: str, routine: str) -> str:
    """The name of a routine of a GPU's dense solvers: `potrf` is `cusolver_potrf_ffi` on CUDA."""
    return f"{GPUS[platform]}solver_{routine}_ffi"


def call(
    platform: str,
    target: str,
    operands: Sequence[Any],
    results: Sequence[tuple[Sequence[int], Any]],
    attributes: Mapping[str, Any] | None = None,
    *,
    batch: int | None = None,
    aliases: Mapping[int, int] | None = None,
    by_rows: bool = False,
) -> list[Any]:
    """Calls a kernel for each entry of a batch.

    Args:
        platform: what the program is for.
        target: the kernel's name.
        operands: arrays whose leading dimensions are the batch.
        results: shape and dtype of each result, with the batch.
        attributes: what the kernel gets besides arrays.
        batch: how many dimensions the batch has; None for kernels that take everything as it lies
            in C, and whose work devices do not divide.
        aliases: which operands the kernel overwrites with which result.
        by_rows: whether it gets and gives the rows of matrices contiguous, in place of columns.
    """
    order = row_major_layout if by_rows else layout
    call_targets.provide_linear_algebra(platform)
    return foreign.call(
        target,
        operands,
        [ShapedArray(tuple(shape), np.dtype(dtype)) for shape, dtype in results],
        attributes=attributes,
        input_layouts=[order(x.ndim, batch) for x in operands],
        output_layouts=[order(len(shape), batch) for shape, _ in results],
        aliases=aliases,
        num_batch_dims=batch,
    )


def checked_call(
    platform: str,
    target: str,
    x: Array,
    results: Sequence[tuple[Sequence[int], Any]],
    attributes: Mapping[str, Any],
) -> list[Any]:
    """What `call` makes of matrices in place of them, with NaN where the kernel has failed.

    The kernel has one more result than `results`: a number for each matrix, which is 0 if all went
    well.
    """
    batch = x.shape[:-2]
    *outs, info = call(
        platform,
        target,
        [x],
        [*results, (batch, "int32")],
        attributes,
        batch=len(batch),
        aliases={0: 0},
    )
    return nan_where_failed(info, *outs)


def layout(ndim: int, batch: int | None) -> tuple[int, ...]:
    """Minor to major: matrices by columns, everything else as in C."""
    is_matrix = batch is not None and ndim - batch == 2
    order = custom_calls.column_major(ndim) if is_matrix else custom_calls.row_major(ndim)
    return tuple(order)


def row_major_layout(ndim: int, batch: int | None) -> tuple[int, ...]:
    """Minor to major: everything as in C."""
    return tuple(custom_calls.row_major(ndim))


def routine(name: str, platform: str, routine: str, dtype: np.dtype[Any]) -> str:
    """The kernel of a routine: LAPACK's on CPU, the dense solvers' on GPU.

    Args:
        name: the function of lax.linalg, for messages.
        platform: what the program is for.
        routine: what LAPACK calls it, without the letter of the dtype.
        dtype: that of the matrices.

    Raises:
        NotImplementedError: there is none for the dtype, or for the platform.
    """
    if dtype.name not in LETTERS:
        problem, fix = f"there is no kernel for {dtype.name}.", "x.astype(numpy.float32) first"
        expected = f"one of {', '.join(LETTERS)}"
        error(NotImplementedError, f"lax.linalg.{name}", problem, expected=expected, fix=fix)
    if platform == "cpu":
        return lapack(routine, dtype)
    if platform in GPUS:
        return solver(platform, routine)
    refuse_platform(name, platform)


def refuse_platform(name: str, platform: str) -> NoReturn:
    """Refuses a platform for which there is no kernel."""
    problem = f"there is no kernel for {platform}."
    fix = "compute it on the host: jax.device_put(x, jax.devices('cpu')[0])"
    error(NotImplementedError, f"lax.linalg.{name}", problem, fix=fix)


def refuse_implementation(
    name: str,
    platform: str,
    given: enum.Enum | None,
    known: Sequence[Any],
    exception: type[Exception] = NotImplementedError,
) -> NoReturn:
    """Refuses an algorithm that a platform has not got."""
    problem = f"{given} is not available on {platform}."
    error(exception, f"lax.linalg.{name}", problem, expected=" or ".join(map(str, known)))


def triangle(platform: str, *, lower: bool) -> dict[str, Any]:
    """The attribute that says which triangle of symmetric matrices is read."""
    return {"uplo": LOWER if lower else UPPER} if platform == "cpu" else {"lower": lower}


def nan_unless(succeeded: Array, x: Array) -> Any:
    """`x`, with NaN in those entries of the batch for which the kernel failed.

    Args:
        succeeded: bool[batch].
        x: T[batch, ...].
    """
    whole = broadcast_in_dim(succeeded, x.shape, tuple(range(succeeded.ndim)))
    return select(whole, x, full(x.shape, math.nan, x.dtype))


def nan_where_failed(info: Array, *outs: Array) -> list[Any]:
    """Results of a kernel, with NaN in those entries of the batch for which `info` is not zero."""
    succeeded = binary.eq(info, full(info.shape, 0, info.dtype))
    return [nan_unless(succeeded, out) for out in outs]


def transposed(x: Array) -> Any:
    """Rows and columns exchanged."""
    batch = tuple(range(x.ndim - 2))
    return permute(x, (*batch, x.ndim - 1, x.ndim - 2))


def adjoint(x: Array) -> Any:
    """The conjugate of the transposed matrix."""
    return transposed(conjugate(x))


def conjugate(x: Array) -> Any:
    """The complex conjugate; real arrays pass."""
    return unary.conj(x) if x.dtype.kind == "c" else x


def product(x: Array, y: Array) -> Any:
    """The product of matrices, as exactly as the hardware can."""
    batch = tuple(range(x.ndim - 2))
    numbers = (((x.ndim - 1,), (x.ndim - 2,)), (batch, batch))
    return dots.dot_general(x, y, numbers, precision=Precision.HIGHEST)


def times_vector(x: Array, v: Array) -> Any:
    """The products of matrices and vectors: T[..., m, n], T[..., n] -> T[..., m]."""
    batch = tuple(range(v.ndim - 1))
    numbers = (((x.ndim - 1,), (v.ndim - 1,)), (batch, batch))
    return dots.dot_general(x, v, numbers, precision=Precision.HIGHEST)


def symmetrized(x: Array) -> Any:
    """The Hermitian part, (x + xᴴ) / 2."""
    return halved(plus_adjoint(x))


def plus_adjoint(x: Array) -> Any:
    """x + xᴴ."""
    return binary.add(x, adjoint(x))


def halved(x: Array) -> Any:
    """x / 2."""
    return binary.div(x, 2.0)


def real_part(x: Array) -> Any:
    """The real part; real arrays pass."""
    return unary.real(x) if x.dtype.kind == "c" else x


def converted(x: Array, dtype: np.dtype[Any]) -> Any:
    """`x` in another dtype."""
    return x if x.dtype == dtype else convert_element_type(x, dtype)


def only_diagonal(x: Array) -> Any:
    """`x` with zeros off the diagonal."""
    return select(_compared(binary.eq, x), x, full(x.shape, 0, x.dtype))


def diagonal(x: Array) -> Any:
    """The diagonals of square matrices: T[..., n, n] -> T[..., n]."""
    return reduce_sum(only_diagonal(x), (x.ndim - 2,))


def scaled_columns(x: Array, v: Array) -> Any:
    """x diag(v): each column of a matrix times an element of a vector."""
    return binary.mul(x, broadcast_in_dim(v, x.shape, (*range(x.ndim - 2), x.ndim - 1)))


def scaled_rows(x: Array, v: Array) -> Any:
    """diag(v) x: each row of a matrix times an element of a vector."""
    return binary.mul(x, broadcast_in_dim(v, x.shape, tuple(range(x.ndim - 1))))


def pairs(values: Array) -> tuple[Any, Any]:
    """v_j and v_i at (i, j), for all pairs of elements of vectors: T[..., n] -> T[..., n, n]."""
    batch, shape = tuple(range(values.ndim - 1)), (*values.shape, values.shape[-1])
    in_column = broadcast_in_dim(values, shape, (*batch, values.ndim))
    return in_column, broadcast_in_dim(values, shape, (*batch, values.ndim - 1))


def reciprocals_off_diagonal(x: Array) -> Any:
    """1 / x, and 0 on the diagonal, where x is zero."""
    eye = identity_like(x)
    # The identity keeps the diagonal away from a division by zero, in derivatives as well.
    return binary.sub(reciprocal(binary.add(x, eye)), eye)


def lower_triangle(x: Array, k: int = 0) -> Any:
    """`x` with zeros above diagonal `k`."""
    return select(_compared(binary.ge, x, k), x, full(x.shape, 0, x.dtype))


def strict_lower_triangle(x: Array) -> Any:
    """`x` with zeros on the diagonal and above."""
    return lower_triangle(x, -1)


def upper_triangle(x: Array, k: int = 0) -> Any:
    """`x` with zeros below diagonal `k`."""
    return select(_compared(binary.ge, x, k - 1), full(x.shape, 0, x.dtype), x)


def identity_like(x: Array) -> Any:
    """Identity matrices, of the shape and dtype of `x`; ones on the diagonal of other matrices."""
    return convert_element_type(_compared(binary.eq, x), x.dtype)


def block(x: Array, rows: tuple[int, int], columns: tuple[int, int]) -> Any:
    """The part of matrices from a row and a column up to others."""
    batch = x.shape[:-2]
    if (rows, columns) == ((0, x.shape[-2]), (0, x.shape[-1])):
        return x
    starts = (*[0] * len(batch), rows[0], columns[0])
    return slicing.slice(x, starts, (*batch, rows[1], columns[1]))


def columns_at(x: Array, places: Array) -> Any:
    """Columns in another order: T[..., m, n], int[..., n] -> T[..., m, n]."""
    return _reordered(x, places, x.ndim - 1, x.ndim - 2)


def rows_at(x: Array, places: Array) -> Any:
    """Rows in another order: T[..., m, n], int[..., m] -> T[..., m, n]."""
    return _reordered(x, places, x.ndim - 2, x.ndim - 1)


def _reordered(x: Array, places: Array, dim: int, other: int) -> Any:
    batch = tuple(range(x.ndim - 2))
    numbers = GatherDimensionNumbers(
        offset_dims=(other,),
        collapsed_slice_dims=(dim,),
        start_index_map=(dim,),
        operand_batching_dims=batch,
        start_indices_batching_dims=batch,
    )
    sizes = [min(size, 1) for size in x.shape]
    sizes[other] = x.shape[other]
    return gather(x, expand_dims(places, (places.ndim,)), numbers, sizes, unique_indices=True)


def _compared(comparison: Callable[[Any, Any], Any], x: Array, k: int = 0) -> Any:
    """A comparison of row + k with column, for each place of the matrices in `x`."""
    shape = x.shape[-2:]
    rows = creation.broadcasted_iota("int32", shape, 0)
    columns = creation.broadcasted_iota("int32", shape, 1)
    if k:
        rows = binary.add(rows, full(shape, k, rows.dtype))
    return broadcast_in_dim(comparison(rows, columns), x.shape, (x.ndim - 2, x.ndim - 1))
