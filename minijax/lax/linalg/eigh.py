"""Eigenvalues and eigenvectors of Hermitian matrices."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import ShapedArray, aval_of, shaped_array
from minijax.core.errors import MissingRule, error
from minijax.interpreters.lowering import lower_function
from minijax.interpreters.structural import full
from minijax.interpreters.tangents import Zero
from minijax.lax import binary
from minijax.lax.families import INEXACT, check_dtype
from minijax.lax.families import operand as as_operand
from minijax.lax.linalg import kernels, matrices
from minijax.lax.linalg.families import BatchedPrimitive, check_matrices, without_tangents
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array


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
        inner = matrices.product(matrices.product(matrices.adjoint(vectors), x_dot), vectors)
        gaps = matrices.reciprocals_off_diagonal(binary.sub(*matrices.pairs(values)))
        turn = binary.mul(matrices.converted(gaps, inner.dtype), inner)
        vectors_dot = matrices.product(vectors, turn)
        values_dot = matrices.real_part(matrices.diagonal(inner))
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
        x = matrices.symmetrized(x)
    vectors, values = eigh_p.bind(
        x,
        lower=lower,
        sort_eigenvalues=sort_eigenvalues,
        subset_by_index=subset_by_index,
        algorithm=implementation,
    )
    return vectors, values
