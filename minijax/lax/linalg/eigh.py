"""Eigenvalues of Hermitian matrices, and tridiagonal matrices.

Tridiagonal matrices: how Hermitian ones become such, and systems of equations with them.

Eigenvalues and eigenvectors of Hermitian matrices.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import dtypes, vma
from minijax.core.aval import ShapedArray, aval_of, shaped_array
from minijax.core.errors import MissingRule, error
from minijax.interpreters.jvp import Zero, is_linear
from minijax.interpreters.structural import add_tangents, full, moveaxis
from minijax.lax import binary, unary
from minijax.lax.families import INEXACT, check_dtype
from minijax.lax.families import operand as as_operand
from minijax.lax.linalg import kernels
from minijax.lax.linalg.kernels import (
    BatchedPrimitive,
    check_matrices,
    check_together,
    weak_if_all,
    without_tangents,
)
from minijax.lax.padding import pad
from minijax.lax.shape import reshape
from minijax.lowering.module import lower_function
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array


class Tridiagonal(BatchedPrimitive):
    """Qᴴ x Q = T for Hermitian x: reflections that make up Q, the diagonals of T, and their scales.

    They are not unique: there is no jvp.

    Shapes: x: T[..., n, n] -> T[..., n, n], real T[..., n], real T[..., n - 1], T[..., n - 1].
    """

    name = "tridiagonal"
    multiple_results = True

    def abstract_eval(self, x: ShapedArray, *, lower: bool) -> list[ShapedArray]:
        check_dtype("linalg.tridiagonal", "a", x, INEXACT)
        check_matrices("tridiagonal", "a", x, square=True)
        if not x.shape[-1]:
            error(ValueError, "lax.linalg.tridiagonal", "the matrices have no rows.", got={"a": x})
        return [shaped_array(shape, dtype, x.weak_type) for shape, dtype in _results(x)]

    def lower(self, ctx: Any, x: Any, *, lower: bool) -> list[Any]:
        return lower_function(ctx, lambda x: self._reduce(ctx.platform, x, lower), x)

    def _reduce(self, platform: str, x: Any, lower: bool) -> list[Any]:
        target = kernels.routine("tridiagonal", platform, "sytrd", x.dtype)
        uplo = kernels.LOWER if lower else kernels.UPPER
        batch = x.shape[:-2]
        *outs, info = kernels.call(
            platform,
            target,
            [x],
            [*_results(x), (batch, "int32")],
            {"uplo": uplo} if platform == "cpu" else {"lower": lower},
            batch=len(batch),
            aliases={0: 0},
        )
        succeeded = binary.eq(info, full(batch, 0, info.dtype))
        return [kernels.nan_unless(succeeded, out) for out in outs]


def _results(x: Any) -> list[tuple[tuple[int, ...], Any]]:
    *batch, size, _ = x.shape
    real = dtypes.real_dtype_of(x.dtype)
    beside = (*batch, size - 1)
    return [(x.shape, x.dtype), ((*batch, size), real), (beside, real), (beside, x.dtype)]


tridiagonal_p = Tridiagonal()


def tridiagonal(a: ArrayLike, *, lower: bool = True) -> tuple[Array, Array, Array, Array]:
    """Reduces Hermitian matrices to tridiagonal ones, Qᴴ a Q = T.

    The results are the reflections whose product is Q, with T among them; the diagonal of T; what
    stands beside its diagonal; the scales of the reflections.

    Shapes:     a: T[..., n, n] -> T[..., n, n], real T[..., n], real T[..., n - 1], T[..., n - 1].
    Dtypes:     float32, float64, complex64, complex128; T is real.
    Derivative: none.
    Lowers to:  LAPACK's sytrd on CPU, cuSOLVER's on GPU.
    Source:     mirrors jax.lax.linalg.tridiagonal (0.10).

    Args:
        a: Hermitian matrices.
        lower: whether the lower triangle is read, and holds the reflections; else the upper one.

    Raises:
        TypeError: the dtype is not inexact, or `a` is no matrix.
        ValueError: the matrices are not square, or have no rows.

    Example:
        >>> lax.linalg.tridiagonal(jnp.array([[1.0, 2.0], [2.0, 3.0]]))[1]
        Array([1., 3.], dtype=float32)
    """
    reflections, diagonal, beside, scales = tridiagonal_p.bind(as_operand(a), lower=lower)
    return reflections, diagonal, beside, scales


class TridiagonalSolve(BatchedPrimitive):
    """Solves a x = b for x, where dl[i], d[i] and du[i] are what a[i] holds around its diagonal.

    Shapes: dl, d, du: T[..., n], b: T[..., n, m] -> T[..., n, m].
    """

    name = "tridiagonal_solve"
    core_ndims = (1, 1, 1, 2)

    def abstract_eval(
        self,
        dl: ShapedArray,
        d: ShapedArray,
        du: ShapedArray,
        b: ShapedArray,
        *,
        perturb_singular: bool,
    ) -> ShapedArray:
        avals = {"dl": dl, "d": d, "du": du, "b": b}
        for argument, aval in avals.items():
            check_dtype("linalg.tridiagonal_solve", argument, aval, INEXACT)
        check_together("tridiagonal_solve", self.core_ndims, **avals)
        if not dl.shape == d.shape == du.shape == b.shape[:-1]:
            error(
                TypeError,
                "lax.linalg.tridiagonal_solve",
                "the diagonals and the right-hand sides do not fit together.",
                got=avals,
                expected="dl, d, du: T[..., n], b: T[..., n, m]",
                fix="fill dl with an element in front, and du with one at its end",
            )
        return b.update(weak_type=weak_if_all(dl, d, du, b))

    def lower(self, ctx: Any, *operands: Any, perturb_singular: bool) -> Any:
        def solve(*operands: Any) -> list[Any]:
            return [_solved(ctx.platform, operands, perturb_singular)]

        return lower_function(ctx, solve, *operands)[0]

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: bool
    ) -> tuple[Any, Any]:
        # From a x = b follows a x' = b' - a' x.
        *diagonals, _ = primals
        *changes, b_dot = tangents
        x = self.bind(*primals, **params)
        right = b_dot
        for offset, change in zip((-1, 0, 1), changes, strict=True):
            if type(change) is not Zero:
                right = add_tangents(right, unary.neg(_times_diagonal(change, offset, x)))
        if type(right) is Zero:
            return x, Zero.like(x)
        return x, self.bind(*diagonals, right, **params)

    def transpose(self, ct: Any, dl: Any, d: Any, du: Any, b: Any, **params: bool) -> Any:
        assert not any(map(is_linear, (dl, d, du))), "it is linear in b alone"
        # What stands below the diagonal in row i stands above it in row i - 1 of the transpose.
        lower, upper = _shifted(du, 1), _shifted(dl, -1)
        return None, None, None, self.bind(lower, d, upper, ct, **params)

    def batch(
        self, size: int, args: Sequence[Any], dims: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        *diagonals, b = args
        if any(dim is not None for dim in dims[:-1]) or aval_of(b).split is not None:
            return super().batch(size, args, dims, **params)
        # Systems with one matrix are one system: the batch becomes more columns of it.
        last = b.ndim - 1
        b = moveaxis(b, dims[-1], last)
        joined = reshape(b, (*b.shape[: last - 1], b.shape[last - 1] * size))
        return reshape(self.bind(*diagonals, joined, **params), b.shape), last


vma.linear_in.set(((3,),), TridiagonalSolve)


def _solved(platform: str, operands: Sequence[Any], perturb_singular: bool) -> Any:
    b = operands[-1]
    batch = b.shape[:-2]
    kernels.routine("tridiagonal_solve", platform, "gtsv", b.dtype)
    result = [(b.shape, b.dtype)]
    if perturb_singular:
        prefix = f"{kernels.GPUS[platform]}_" if platform in kernels.GPUS else ""
        suffix = "" if prefix else "_ffi"
        target = f"{prefix}tridiagonal_solve_perturbed{suffix}"
        return kernels.call(platform, target, operands, result, batch=len(batch))[0]
    if platform in kernels.GPUS:
        target = f"{kernels.GPUS[platform]}sparse_gtsv2_ffi"
        return kernels.call(platform, target, operands, result, batch=len(batch), aliases={3: 0})[0]
    *_, x, info = kernels.call(
        platform,
        kernels.lapack("gtsv", b.dtype),
        operands,
        [*((each.shape, each.dtype) for each in operands), (batch, "int32")],
        batch=len(batch),
        aliases={i: i for i in range(4)},
    )
    return kernels.nan_unless(binary.eq(info, full(batch, 0, info.dtype)), x)


def _shifted(x: Any, offset: int) -> Any:
    """Elements moved towards the end of vectors, or the front, where zeros fill the place."""
    config = [(0, 0, 0)] * (x.ndim - 1) + [(offset, -offset, 0)]
    return pad(x, full((), 0, x.dtype), config)


def _times_diagonal(diagonal: Any, offset: int, x: Any) -> Any:
    """The product with a matrix that has elements next to its diagonal alone, or on it."""
    config = [(0, 0, 0)] * (x.ndim - 2) + [(-offset, offset, 0), (0, 0, 0)]
    return kernels.scaled_rows(pad(x, full((), 0, x.dtype), config), diagonal)


tridiagonal_solve_p = TridiagonalSolve()


def tridiagonal_solve(
    dl: ArrayLike, d: ArrayLike, du: ArrayLike, b: ArrayLike, *, perturb_singular: bool = False
) -> Array:
    """Solves a x = b for x, with tridiagonal matrices a.

    Row i of a holds dl[i] before the diagonal, d[i] on it and du[i] behind it; dl[0] and du[n - 1]
    stand outside and are not read.

    Shapes:     dl, d, du: T[..., n], b: T[..., n, m] -> T[..., n, m].
    Dtypes:     float32, float64, complex64, complex128.
    Derivative: linear in b.
    Lowers to:  LAPACK's gtsv on CPU, cuSPARSE's on GPU.
    Source:     mirrors jax.lax.linalg.tridiagonal_solve (0.10).

    Args:
        dl: what stands below the diagonal.
        d: the diagonal.
        du: what stands above it.
        b: right-hand sides.
        perturb_singular: whether pivots that are zero are replaced by the smallest number that has
            a reciprocal, as inverse iteration wants it; else the solution is NaN.

    Raises:
        TypeError: dtypes differ or are not inexact, or shapes do not fit together.
        ValueError: the sizes of batches differ.

    Example:
        >>> side, ones = jnp.array([0.0, 1.0]), jnp.array([2.0, 2.0])
        >>> lax.linalg.tridiagonal_solve(side, ones, side, jnp.array([[2.0], [5.0]]))
        Array([[1.],
               [2.]], dtype=float32)
    """
    operands = [as_operand(x) for x in (dl, d, du, b)]
    return tridiagonal_solve_p.bind(*operands, perturb_singular=perturb_singular)


class EighImplementation(enum.Enum):
    """How the eigenvalues of Hermitian matrices are found.

    Source: mirrors jax.lax.linalg.EighImplementation (0.10).

    Attributes:
        QR: by tridiagonal matrices: LAPACK's and cuSOLVER's syevd.
        JACOBI: by rotations, on GPU only.
        QDWH: by polar decompositions, which only TPUs do.

    Source:     mirrors jax.lax.linalg.EighImplementation.

    Example:
        >>> qr = lax.linalg.EighImplementation.QR
        >>> vectors, values = lax.linalg.eigh(jnp.diag(jnp.array([5.0, 2.0])), implementation=qr)
        >>> values
        Array([2., 5.], dtype=float32)

    Example:
        >>> lax.linalg.EighImplementation("qr")
        <EighImplementation.QR: 'qr'>
    """

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class Eigh(BatchedPrimitive):
    """Unitary V and ascending real w with x V = V diag(w).

    Shapes: x: T[..., n, n] -> T[..., n, k], real T[..., k]; k is n, or the size of the subset.
    """

    name = "eigh"
    multiple_results = True

    def abstract_eval(
        self, x: ShapedArray, *, subset_by_index: tuple[int, int] | None, **params: Any
    ) -> list[ShapedArray]:
        check_dtype("linalg.eigh", "x", x, INEXACT)
        check_matrices("eigh", "x", x, square=True)
        size = subset_size("eigh", x.shape[-1], subset_by_index)
        real = dtypes.real_dtype_of(x.dtype)
        batch = x.shape[:-2]
        return [
            shaped_array((*x.shape[:-1], size), x.dtype, x.weak_type),
            shaped_array((*batch, size), real, x.weak_type),
        ]

    def lower(self, ctx: Any, x: Any, **params: Any) -> list[Any]:
        return lower_function(ctx, lambda x: self._decompose(ctx.platform, x, **params), x)

    def _decompose(
        self,
        platform: str,
        x: Any,
        *,
        lower: bool,
        sort_eigenvalues: bool,
        subset_by_index: tuple[int, int] | None,
        algorithm: EighImplementation | None,
    ) -> list[Any]:
        # The kernels sort eigenvalues whether that is asked for or not.
        refuse_subset("eigh", x.shape[-1], subset_by_index)
        batch, size = x.shape[:-2], x.shape[-1]
        target = kernels.routine("eigh", platform, "syevd", x.dtype)
        on_gpu = platform in kernels.GPUS
        known = tuple(_NUMBERS_ON_GPU) if on_gpu else (None, EighImplementation.QR)
        if algorithm not in known:
            raise kernels.refuse_implementation("eigh", platform, algorithm, known)
        attributes: dict[str, Any]
        if on_gpu:
            attributes = {"lower": lower, "algorithm": _NUMBERS_ON_GPU[algorithm]}
        else:
            uplo = kernels.LOWER if lower else kernels.UPPER
            attributes = {"mode": kernels.VECTORS, "uplo": uplo}
        real = dtypes.real_dtype_of(x.dtype)
        results = [(x.shape, x.dtype), ((*batch, size), real), (batch, "int32")]
        vectors, values, info = kernels.call(
            platform, target, [x], results, attributes, batch=len(batch), aliases={0: 0}
        )
        succeeded = binary.eq(info, full(batch, 0, info.dtype))
        return [kernels.nan_unless(succeeded, vectors), kernels.nan_unless(succeeded, values)]

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[list[Any], list[Any]]:
        # With P = Vᴴ x' V: w' = diag(P), and V' = V (F ∘ P) where F_ij = 1 / (w_j - w_i) for i ≠ j
        # and zero otherwise (Giles, 2008, §3.1, with Vᴴ for V⁻¹).
        (x,), (x_dot,) = primals, tangents
        vectors, values = self.bind(x, **params)
        if type(x_dot) is Zero:
            return without_tangents([vectors, values])
        if vectors.shape[-1] != x.shape[-1]:
            error(
                MissingRule,
                "lax.linalg.eigh",
                "there is no derivative of some of the eigenvalues alone.",
                got=f"subset_by_index: {params['subset_by_index']}",
                fix="compute all of them and take those that you need",
            )
        inner = kernels.product(kernels.product(kernels.adjoint(vectors), x_dot), vectors)
        gaps = kernels.reciprocals_off_diagonal(binary.sub(*kernels.pairs(values)))
        turn = binary.mul(kernels.converted(gaps, inner.dtype), inner)
        vectors_dot = kernels.product(vectors, turn)
        values_dot = kernels.real_part(kernels.diagonal(inner))
        return [vectors, values], [vectors_dot, values_dot]


_NUMBERS_ON_GPU: dict[EighImplementation | None, np.uint8] = {
    None: np.uint8(0),
    EighImplementation.QR: np.uint8(1),
    EighImplementation.JACOBI: np.uint8(2),
}


def subset_size(name: str, size: int, subset: tuple[int, int] | None) -> int:
    """How many of `size` values a subset [start, end) of them has.

    Raises:
        ValueError: it is no range of their indices.
    """
    if subset is None:
        return size
    start, end = subset
    if not 0 <= start <= end <= size:
        error(
            ValueError,
            f"lax.linalg.{name}",
            "the subset is no range of indices.",
            got=f"subset_by_index: {subset}",
            expected=f"(start, end) with 0 <= start <= end <= {size}",
        )
    return end - start


def refuse_subset(name: str, size: int, subset: tuple[int, int] | None) -> None:
    """Refuses to compute less than everything, which no kernel of ours does.

    Raises:
        NotImplementedError: the subset is smaller.
    """
    if subset is not None and subset != (0, size):
        error(
            NotImplementedError,
            f"lax.linalg.{name}",
            "there is no kernel that computes a subset.",
            got=f"subset_by_index: {subset}",
            fix="compute everything and take a slice",
        )


eigh_p = Eigh()


def eigh(
    x: ArrayLike,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Array, Array]:
    """Eigenvectors and eigenvalues of Hermitian matrices: (V, w) with x V = V diag(w).

    The columns of V are orthonormal.  All are NaN where the iteration did not converge.

    Shapes:     x: T[..., n, n] -> T[..., n, n], real T[..., n].
    Dtypes:     float32, float64, complex64, complex128; the eigenvalues are real.
    Derivative: of V only where no eigenvalue is repeated; of w always.
    Lowers to:  LAPACK's syevd on CPU, cuSOLVER's on GPU.
    Source:     mirrors jax.lax.linalg.eigh (0.10).

    Args:
        x: Hermitian matrices.
        lower: whether the lower triangle is read, where `symmetrize_input` does not make both
            equal.
        symmetrize_input: whether (x + xᴴ) / 2 is decomposed.
        sort_eigenvalues: whether eigenvalues ascend; those of the kernels always do.
        subset_by_index: the indices [start, end) of the eigenvalues wanted; the kernels compute
            all of them only.
        implementation: which algorithm; the platform's usual one where None.

    Raises:
        TypeError: the dtype is not inexact, or `x` is no matrix.
        IncompatibleShapesError: the matrices are not square.
        NotImplementedError: the platform has not got the implementation, or a subset is asked for.

    Example:
        >>> lax.linalg.eigh(jnp.array([[3.0, 0.0], [0.0, 2.0]]))[1]
        Array([2., 3.], dtype=float32)
    """
    x = as_operand(x)
    check_dtype("linalg.eigh", "x", aval_of(x), INEXACT)
    check_matrices("eigh", "x", aval_of(x), square=True)
    if symmetrize_input:
        x = kernels.symmetrized(x)
    vectors, values = eigh_p.bind(
        x,
        lower=lower,
        sort_eigenvalues=sort_eigenvalues,
        subset_by_index=subset_by_index,
        algorithm=implementation,
    )
    return vectors, values
