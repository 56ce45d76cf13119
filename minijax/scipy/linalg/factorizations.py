"""Factorizations of matrices: Cholesky, LU, QR, singular values, and the polar decomposition."""

from __future__ import annotations

from typing import Any, Literal, overload

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.lax.linalg import kernels
from minijax.lax.linalg.cholesky import cholesky as cholesky_factor
from minijax.lax.linalg.lu import lu as lu_decomposition
from minijax.lax.linalg.qr import qr as qr_decomposition
from minijax.lax.linalg.svd import SvdAlgorithm, qdwh
from minijax.lax.linalg.svd import svd as svd_decomposition
from minijax.numpy.contraction import matmul
from minijax.numpy.functional import vectorize
from minijax.numpy.matrices import eye, tril, triu
from minijax.numpy.one_program import one_program
from minijax.numpy.ranges import arange
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.scipy.linalg import operands

_IGNORED = ("overwrite_a", "check_finite")


@one_program(static=("lower", *_IGNORED))
def cholesky(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array:
    """The Cholesky factor of Hermitian positive definite matrices: U with a = Uᴴ U, or L = Uᴴ.

    Shapes:     a: T[..., n, n] -> T[..., n, n].
    Dtypes:     float32, float64 and complex; integers become floats.
    Derivative: as `lax.linalg.cholesky`.
    Source:     mirrors jax.scipy.linalg.cholesky (0.10).

    Args:
        a: the matrices, of which one triangle is read.
        lower: whether that is the lower one, and the factor L.
        overwrite_a: ignored.
        check_finite: ignored: where a factorization fails, its elements are NaN.

    Raises:
        ValueError: `a` is no square matrix, nor a batch of them.

    Example:
        >>> minijax.scipy.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
        Array([[2., 1.],
               [0., 2.]], dtype=float32)
    """
    return _cholesky("cholesky", a, lower)


def _cholesky(name: str, a: Any, lower: bool) -> Any:
    a = operands.inexact_or_nested(name, a)
    operands.check_square(name, a)
    factor = cholesky_factor(a if lower else kernels.adjoint(a), symmetrize_input=False)
    return factor if lower else kernels.adjoint(factor)


def cho_factor(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """The Cholesky factor of matrices, and whether it is the lower one, for `cho_solve`.

    Shapes:     a: T[..., n, n] -> T[..., n, n].
    Dtypes:     float32, float64 and complex; integers become floats.
    Source:     mirrors jax.scipy.linalg.cho_factor (0.10).

    Args:
        a: Hermitian positive definite matrices, of which one triangle is read.
        lower: whether that is the lower one.
        overwrite_a: ignored.
        check_finite: ignored: where a factorization fails, its elements are NaN.

    Raises:
        ValueError: `a` is no square matrix, nor a batch of them.

    Example:
        >>> minijax.scipy.linalg.cho_factor(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
        (Array([[2., 1.],
               [0., 2.]], dtype=float32), False)
    """
    return cholesky(a, lower=lower), lower


@one_program(static=("permute_l", *_IGNORED))
def lu(
    a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, ...]:
    """P, L and U with P L U = a: a permutation, a lower triangle with ones, and an upper one.

    Shapes:     a: T[..., m, n] -> T[..., m, m], T[..., m, k], T[..., k, n] with k = min(m, n).
    Dtypes:     float32, float64 and complex; P is real.
    Derivative: as `lax.linalg.lu`.
    Source:     mirrors jax.scipy.linalg.lu (0.10), which takes no batches.

    Args:
        a: matrices.
        permute_l: whether the results are P L and U.
        overwrite_a: ignored.
        check_finite: ignored.

    Raises:
        TypeError: `a` is no matrix.

    Example:
        >>> p, l, u = minijax.scipy.linalg.lu(jnp.array([[0.0, 1.0], [2.0, 0.0]]))
        >>> p, u
        (Array([[0., 1.],
               [1., 0.]], dtype=float32), Array([[2., 0.],
               [0., 1.]], dtype=float32))
    """
    a = operands.inexact_or_nested("lu", a)
    factors, _, permutation = lu_decomposition(a)
    rows, columns = a.shape[-2:]
    size = min(rows, columns)
    unit = eye(rows, size, dtype=a.dtype)
    lower, upper = tril(factors, -1)[..., :size] + unit, triu(factors)[..., :size, :]
    places = arange(rows)[:, None] == permutation[..., None, :]
    real = places.astype(dtypes.real_dtype_of(a.dtype))
    if permute_l:
        return matmul(real.astype(a.dtype), lower, precision="highest"), upper
    return real, lower, upper


@one_program(static=_IGNORED)
def lu_factor(
    a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array]:
    """L and U in one matrix, and the rows that were exchanged, for `lu_solve`.

    Row i was exchanged with row pivots[i], one after the other.

    Shapes:     a: T[..., m, n] -> T[..., m, n], int32[..., min(m, n)].
    Dtypes:     float32, float64 and complex; integers become floats.
    Derivative: as `lax.linalg.lu`.
    Source:     mirrors jax.scipy.linalg.lu_factor (0.10).

    Args:
        a: matrices.
        overwrite_a: ignored.
        check_finite: ignored.

    Raises:
        TypeError: `a` is no matrix.

    Example:
        >>> minijax.scipy.linalg.lu_factor(jnp.array([[0.0, 1.0], [2.0, 0.0]]))[1]
        Array([1, 1], dtype=int32)
    """
    factors, pivots, _ = lu_decomposition(operands.inexact_or_nested("lu_factor", a))
    return factors, pivots


@one_program(static=("mode", "pivoting", "lwork", *_IGNORED))
def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Array, ...]:
    """Q and R with Q R = a: orthonormal columns, and an upper triangle.

    Shapes:     a: T[..., m, n] -> T[..., m, m], T[..., m, n]; economic: T[..., m, k], T[..., k, n]
                with k = min(m, n); with pivoting also int32[..., n].
    Dtypes:     float32, float64 and complex; integers become floats.
    Derivative: as `lax.linalg.qr`.
    Source:     mirrors jax.scipy.linalg.qr (0.10).

    Args:
        a: matrices.
        overwrite_a: ignored.
        lwork: ignored.
        mode: "full", "economic", or "r" for R alone.
        pivoting: whether columns are exchanged so that the diagonal of R does not increase; the
            last result is their order.
        check_finite: ignored.

    Raises:
        TypeError: `a` is no matrix.
        ValueError: the mode is not known.

    Example:
        >>> minijax.scipy.linalg.qr(jnp.array([[1.0, 2.0], [0.0, 3.0]]), mode="r")
        (Array([[1., 2.],
               [0., 3.]], dtype=float32),)
    """
    operands.check_choice("qr", "mode", mode, ("full", "economic", "r"))
    a = operands.inexact_or_nested("qr", a)
    results = qr_decomposition(a, pivoting=pivoting, full_matrices=mode != "economic")
    return tuple(results[1:] if mode == "r" else results)


@one_program(static=("mode", "pivoting", "conjugate", "overwrite_a", "overwrite_c"))
def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Array, ...]:
    """c Q, or Q c, and R, for Q and R with Q R = a.

    Shapes:     a: T[..., m, n], k = min(m, n): c: T[..., l, m] or T[m] -> T[..., l, k] or T[k];
                "left": c: T[..., k, l] or T[k] -> T[..., m, l] or T[m]; and T[..., k, n]; with
                pivoting also int32[..., n].
    Dtypes:     float32, float64 and complex, promoted.
    Derivative: as `lax.linalg.qr`.
    Source:     mirrors jax.scipy.linalg.qr_multiply (0.10).

    Args:
        a: matrices.
        c: what Q is multiplied by.
        mode: "right" for c Q, "left" for Q c.
        pivoting: as in `qr`.
        conjugate: whether the conjugate of Q is taken.
        overwrite_a: ignored.
        overwrite_c: ignored.

    Raises:
        ValueError: the mode is not known, or c does not fit.

    Example:
        >>> minijax.scipy.linalg.qr_multiply(jnp.eye(2), jnp.array([3.0, 4.0]))[1]
        Array([[1., 0.],
               [0., 1.]], dtype=float32)
    """
    operands.check_choice("qr_multiply", "mode", mode, ("left", "right"))
    a, c = operands.inexact_together("qr_multiply", a, c)
    q, *rest = qr_decomposition(a, pivoting=pivoting, full_matrices=False)
    q = kernels.conjugate(q) if conjugate else q
    size = q.shape[-1] if mode == "left" else q.shape[-2]
    if not c.ndim or size != c.shape[0 if c.ndim == 1 else -2 if mode == "left" else -1]:
        error(
            ValueError,
            "scipy.linalg.qr_multiply",
            "c does not fit the matrices.",
            got={"a": aval_of(a), "c": aval_of(c)},
            expected=f"{size} {'rows' if mode == 'left' else 'columns'} of c",
        )
    factors = (q, c) if mode == "left" else (c, q)
    return matmul(*factors, precision="highest"), *rest


@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = ...,
    compute_uv: Literal[True] = ...,
    overwrite_a: bool = ...,
    check_finite: bool = ...,
    lapack_driver: str = ...,
) -> tuple[Array, Array, Array]: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = ...,
    *,
    compute_uv: Literal[False],
    overwrite_a: bool = ...,
    check_finite: bool = ...,
    lapack_driver: str = ...,
) -> Array: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = ...,
    compute_uv: bool = ...,
    overwrite_a: bool = ...,
    check_finite: bool = ...,
    lapack_driver: str = ...,
) -> Array | tuple[Array, Array, Array]: ...


@one_program(static=("full_matrices", "compute_uv", "lapack_driver", *_IGNORED))
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Array | tuple[Array, Array, Array]:
    """The singular value decomposition: (U, s, Vᴴ) with a = U diag(s) Vᴴ, or s alone.

    Shapes:     a: T[..., m, n] -> T[..., m, m], real T[..., k], T[..., n, n] with k = min(m, n);
                T[..., m, k] and T[..., k, n] unless `full_matrices`.
    Dtypes:     float32, float64 and complex; integers become floats.
    Derivative: as `lax.linalg.svd`.
    Source:     mirrors jax.scipy.linalg.svd (0.10).

    Args:
        a: matrices.
        full_matrices: whether U and V are completed to square matrices.
        compute_uv: whether U and Vᴴ are wanted.
        overwrite_a: ignored.
        check_finite: ignored.
        lapack_driver: "gesvd" for QR iterations; else what the platform does by itself.

    Raises:
        TypeError: `a` is no matrix.

    Example:
        >>> minijax.scipy.linalg.svd(jnp.array([[0.0, 2.0], [3.0, 0.0]]), compute_uv=False)
        Array([3., 2.], dtype=float32)
    """
    return svd_decomposition(
        operands.inexact_or_nested("svd", a),
        full_matrices=full_matrices,
        compute_uv=compute_uv,
        algorithm=SvdAlgorithm.QR if lapack_driver == "gesvd" else None,
    )


@one_program(static=("side", "method", "eps", "max_iterations"))
def polar(
    a: ArrayLike,
    side: str = "right",
    *,
    method: str = "qdwh",
    eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Array, Array]:
    """The polar decomposition: U with orthonormal columns or rows, and P, positive semidefinite.

    Shapes:     a: T[..., m, n] -> T[..., m, n], T[..., n, n] with a = U P; T[..., m, m] with
                a = P U where `side` is "left".
    Dtypes:     float32, float64 and complex.
    Source:     mirrors jax.scipy.linalg.polar (0.10).

    Args:
        a: matrices.
        side: on which side of U stands P.
        method: "qdwh", of tall matrices for "right" and of wide ones for "left"; or "svd".
        eps: the precision of "qdwh".
        max_iterations: the limit of "qdwh".

    Raises:
        ValueError: the side or the method is not known, or `a` is no matrix of floats.
        NotImplementedError: "qdwh" for matrices of the other kind.

    Example:
        >>> u, p = minijax.scipy.linalg.polar(jnp.array([[0.0, 2.0], [3.0, 0.0]]), method="svd")
        >>> p
        Array([[3., 0.],
               [0., 2.]], dtype=float32)
    """
    operands.check_choice("polar", "side", side, ("right", "left"))
    operands.check_choice("polar", "method", method, ("qdwh", "svd"))
    a = operands.inexact_or_nested("polar", a)
    if a.ndim < 2:
        error(ValueError, "scipy.linalg.polar", "a is no matrix.", got={"a": aval_of(a)})
    if method == "svd":
        return _polar_by_svd(a, side)
    rows, columns = a.shape[-2:]
    if (rows < columns) != (side == "left"):
        error(
            NotImplementedError,
            "scipy.linalg.polar",
            f"'qdwh' does not find the {side} polar decomposition of such matrices.",
            got={"a": aval_of(a)},
            fix="method='svd'",
        )

    def tall(x: Any) -> Any:
        return qdwh(x, eps=eps, max_iterations=max_iterations)[:2]

    decompose = vectorize(tall, signature="(m,n)->(m,n),(n,n)")
    if side == "right":
        u, p = decompose(a)
        return u, p
    u, p = decompose(kernels.adjoint(a))
    return kernels.adjoint(u), p


def _polar_by_svd(a: Any, side: str) -> tuple[Any, Any]:
    u, values, vh = svd_decomposition(a, full_matrices=False)
    scaled = kernels.scaled_columns(
        u if side == "left" else kernels.adjoint(vh), kernels.converted(values, u.dtype)
    )
    other = kernels.adjoint(u) if side == "left" else vh
    return kernels.product(u, vh), kernels.product(scaled, other)
