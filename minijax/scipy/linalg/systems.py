"""Factorizations of matrices, and systems of linear equations, which are solved by them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal, overload

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import error, warn
from minijax.lax.control_flow.looping import fori_loop
from minijax.lax.linalg import kernels
from minijax.lax.linalg.eigenvalues import eig
from minijax.lax.linalg.eigenvalues import schur as schur_form
from minijax.lax.linalg.factorizations import cholesky as cholesky_factor
from minijax.lax.linalg.factorizations import qr as qr_decomposition
from minijax.lax.linalg.lu import lu as lu_decomposition
from minijax.lax.linalg.lu import (
    lu_pivots_to_permutation,
    solve_by_lu,
    solve_square,
    triangular_solve,
)
from minijax.lax.linalg.svd import SvdAlgorithm, qdwh
from minijax.lax.linalg.svd import svd as svd_decomposition
from minijax.lax.unary import stop_gradient
from minijax.numpy import linalg, promotion
from minijax.numpy.contraction import matmul
from minijax.numpy.creation import asarray
from minijax.numpy.linalg.equations import solve_by_factors
from minijax.numpy.matrices import eye, tril, triu
from minijax.numpy.promotion import check_choice, check_that, one_program
from minijax.numpy.ranges import arange
from minijax.numpy.selection import where
from minijax.numpy.shaping import expand_dims
from minijax.numpy.ufuncs import vectorize
from minijax.runtime.annotations import ArrayLike, ArrayOrLists
from minijax.runtime.array import Array


def inexact(name: str, x: ArrayOrLists, argument: str = "a") -> Array:
    """An argument as an array of floats or complex numbers.

    Raises:
        TypeError: it is neither an array nor a number.
    """
    x = promotion.check_array(f"scipy.linalg.{name}", x, argument)
    return asarray(promotion.inexact(f"scipy.linalg.{name}", x))


def inexact_or_nested(name: str, x: ArrayOrLists) -> Array:
    """As `inexact`; lists of numbers are arrays as well."""
    return inexact(name, asarray(x) if isinstance(x, list | tuple) else x)


def inexact_together(name: str, *arrays: Any) -> list[Array]:
    """Arguments as arrays of one dtype, of floats or complex numbers.

    Raises:
        TypeError: one of them is neither an array nor a number.
    """
    promoted = promotion.promote_dtypes(f"scipy.linalg.{name}", *arrays)
    return [inexact(name, x) for x in promoted]


def check_square(name: str, x: Array, argument: str = "a") -> None:
    """Refuses what is not a square matrix or a batch of them.

    Raises:
        ValueError: it has fewer than two dimensions, or the last two differ.
    """
    fits = x.ndim >= 2 and x.shape[-1] == x.shape[-2]
    problem = f"{argument} is no square matrix, nor a batch of them."
    expected = "T[..., n, n]"
    check_that(fits, f"scipy.linalg.{name}", problem, got={argument: aval_of(x)}, expected=expected)


_IGNORED = ("overwrite_a", "check_finite")


@one_program(static=("lower", *_IGNORED))
def cholesky(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array:
    """Cholesky factor of a Hermitian positive definite matrix: U with a = Uᴴ U, or L = Uᴴ.

    Shapes:     a: T[..., n, n] -> T[..., n, n].
    Dtypes:     float32, float64 and complex; integers become floats.
    Derivative: as `lax.linalg.cholesky`.

    Args:
        a: the matrices, of which one triangle is read.
        lower: whether that is the lower one, and the factor L.
        overwrite_a: ignored.
        check_finite: ignored: where a factorization fails, its elements are NaN.

    Raises:
        ValueError: `a` is not a square matrix or a batch of them.

    Example:
        >>> minijax.scipy.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
        Array([[2., 1.],
               [0., 2.]], dtype=float32)
    """
    return _cholesky("cholesky", a, lower)


def _cholesky(name: str, a: ArrayLike, lower: bool) -> Array:
    a = inexact_or_nested(name, a)
    check_square(name, a)
    factor = cholesky_factor(a if lower else kernels.adjoint(a), symmetrize_input=False)
    return factor if lower else kernels.adjoint(factor)


def cho_factor(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """Cholesky factorization, and whether the factor is the lower one, for `cho_solve`.

    Shapes:     a: T[..., n, n] -> T[..., n, n].
    Dtypes:     float32, float64 and complex; integers become floats.

    Args:
        a: Hermitian positive definite matrices, of which one triangle is read.
        lower: whether that is the lower one.
        overwrite_a: ignored.
        check_finite: ignored: where a factorization fails, its elements are NaN.

    Raises:
        ValueError: `a` is not a square matrix or a batch of them.

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
    """LU decomposition with pivoting: P L U = a, L with a diagonal of ones.

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
        TypeError: `a` is not a matrix.

    Example:
        >>> p, l, u = minijax.scipy.linalg.lu(jnp.array([[0.0, 1.0], [2.0, 0.0]]))
        >>> p, u
        (Array([[0., 1.],
               [1., 0.]], dtype=float32), Array([[2., 0.],
               [0., 1.]], dtype=float32))
    """
    a = inexact_or_nested("lu", a)
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
    """LU factorization: L and U in one matrix, and the pivots, for `lu_solve`.

    Row i was exchanged with row pivots[i], one after the other.

    Shapes:     a: T[..., m, n] -> T[..., m, n], int32[..., min(m, n)].
    Dtypes:     float32, float64 and complex; integers become floats.
    Derivative: as `lax.linalg.lu`.

    Args:
        a: matrices.
        overwrite_a: ignored.
        check_finite: ignored.

    Raises:
        TypeError: `a` is not a matrix.

    Example:
        >>> minijax.scipy.linalg.lu_factor(jnp.array([[0.0, 1.0], [2.0, 0.0]]))[1]
        Array([1, 1], dtype=int32)
    """
    factors, pivots, _ = lu_decomposition(inexact_or_nested("lu_factor", a))
    return factors, pivots


@one_program(static=("mode", "pivoting", "lwork", *_IGNORED))
def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: int | None = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Array, ...]:
    """QR decomposition: Q with orthonormal columns and an upper triangular R with Q R = a.

    Shapes:     a: T[..., m, n] -> T[..., m, m], T[..., m, n]; economic: T[..., m, k], T[..., k, n]
                with k = min(m, n); with pivoting also int32[..., n].
    Dtypes:     float32, float64 and complex; integers become floats.
    Derivative: as `lax.linalg.qr`.

    Args:
        a: matrices.
        overwrite_a: ignored.
        lwork: ignored.
        mode: "full", "economic", or "r" for R alone.
        pivoting: whether columns are exchanged so that the diagonal of R does not increase; the
            last result is their order.
        check_finite: ignored.

    Raises:
        TypeError: `a` is not a matrix.
        ValueError: the mode is not known.

    Example:
        >>> minijax.scipy.linalg.qr(jnp.array([[1.0, 2.0], [0.0, 3.0]]), mode="r")
        (Array([[1., 2.],
               [0., 3.]], dtype=float32),)
    """
    check_choice("scipy.linalg.qr", "mode", mode, ("full", "economic", "r"))
    a = inexact_or_nested("qr", a)
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
    """QR decomposition Q R = a, with Q multiplied by a matrix: c Q, or Q c, and R.

    Shapes:     a: T[..., m, n], k = min(m, n): c: T[..., l, m] or T[m] -> T[..., l, k] or T[k];
                "left": c: T[..., k, l] or T[k] -> T[..., m, l] or T[m]; and T[..., k, n]; with
                pivoting also int32[..., n].
    Dtypes:     float32, float64 and complex, promoted.
    Derivative: as `lax.linalg.qr`.

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
    check_choice("scipy.linalg.qr_multiply", "mode", mode, ("left", "right"))
    a, c = inexact_together("qr_multiply", a, c)
    q, *rest = qr_decomposition(a, pivoting=pivoting, full_matrices=False)
    q = kernels.conjugate(q) if conjugate else q
    size = q.shape[-1] if mode == "left" else q.shape[-2]
    fits = c.ndim > 0 and size == c.shape[0 if c.ndim == 1 else -2 if mode == "left" else -1]
    problem = "c does not fit the matrices."
    expected = f"{size} {'rows' if mode == 'left' else 'columns'} of c"
    check_that(
        fits, "scipy.linalg.qr_multiply", problem, a=aval_of(a), c=aval_of(c), expected=expected
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
    """Singular value decomposition: (U, s, Vᴴ) with a = U diag(s) Vᴴ, or s alone.

    Shapes:     a: T[..., m, n] -> T[..., m, m], real T[..., k], T[..., n, n] with k = min(m, n);
                T[..., m, k] and T[..., k, n] unless `full_matrices`.
    Dtypes:     float32, float64 and complex; integers become floats.
    Derivative: as `lax.linalg.svd`.

    Args:
        a: matrices.
        full_matrices: whether U and V are completed to square matrices.
        compute_uv: whether U and Vᴴ are wanted.
        overwrite_a: ignored.
        check_finite: ignored.
        lapack_driver: "gesvd" for QR iterations; else what the platform does by itself.

    Raises:
        TypeError: `a` is not a matrix.

    Example:
        >>> minijax.scipy.linalg.svd(jnp.array([[0.0, 2.0], [3.0, 0.0]]), compute_uv=False)
        Array([3., 2.], dtype=float32)
    """
    return svd_decomposition(
        inexact_or_nested("svd", a),
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
    """Polar decomposition: U with orthonormal columns or rows, and P, positive semidefinite.

    Shapes:     a: T[..., m, n] -> T[..., m, n], T[..., n, n] with a = U P; T[..., m, m] with
                a = P U where `side` is "left".
    Dtypes:     float32, float64 and complex.

    Args:
        a: matrices.
        side: on which side of U stands P.
        method: "qdwh", of tall matrices for "right" and of wide ones for "left"; or "svd".
        eps: the precision of "qdwh".
        max_iterations: the limit of "qdwh".

    Raises:
        ValueError: the side or the method is not known, or `a` is not a matrix of floats.
        NotImplementedError: "qdwh" for matrices of the other kind.

    Example:
        >>> u, p = minijax.scipy.linalg.polar(jnp.array([[0.0, 2.0], [3.0, 0.0]]), method="svd")
        >>> p
        Array([[3., 0.],
               [0., 2.]], dtype=float32)
    """
    check_choice("scipy.linalg.polar", "side", side, ("right", "left"))
    check_choice("scipy.linalg.polar", "method", method, ("qdwh", "svd"))
    a = inexact_or_nested("polar", a)
    if a.ndim < 2:
        error(ValueError, "scipy.linalg.polar", "a is no matrix.", got={"a": aval_of(a)})
    if method == "svd":
        return _polar_by_svd(a, side)
    rows, columns = a.shape[-2:]
    fits = (rows < columns) == (side == "left")
    problem = f"'qdwh' does not find the {side} polar decomposition of such matrices."
    fix = "method='svd'"
    check_that(
        fits, "scipy.linalg.polar", problem, error=NotImplementedError, a=aval_of(a), fix=fix
    )

    def tall(x: Array) -> tuple[Array, Array]:
        return qdwh(x, eps=eps, max_iterations=max_iterations)[:2]

    decompose = vectorize(tall, signature="(m,n)->(m,n),(n,n)")
    if side == "right":
        u, p = decompose(a)
        return u, p
    u, p = decompose(kernels.adjoint(a))
    return kernels.adjoint(u), p


def _polar_by_svd(a: Array, side: str) -> tuple[Array, Array]:
    u, values, vh = svd_decomposition(a, full_matrices=False)
    scaled = kernels.scaled_columns(
        u if side == "left" else kernels.adjoint(vh), kernels.converted(values, u.dtype)
    )
    other = kernels.adjoint(u) if side == "left" else vh
    return kernels.product(u, vh), kernels.product(scaled, other)


_IGNORED_BY_SOLVERS = ("overwrite_b", "debug", "check_finite")


@one_program(static=("overwrite_a", "check_finite"))
def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Determinant of a square matrix.

    Shapes:     a: T[..., n, n] -> T[...].
    Dtypes:     floats and complex; integers become floats.

    Args:
        a: square matrices.
        overwrite_a: ignored.
        check_finite: ignored.

    Raises:
        ValueError: `a` is not a square matrix or a batch of them.

    Example:
        >>> minijax.scipy.linalg.det(jnp.array([[3.0, 1.0], [1.0, 2.0]]))
        Array(5., dtype=float32)
    """
    return linalg.det(a)


@one_program(static=("overwrite_a", "check_finite"))
def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Inverse of a square matrix.

    Shapes:     a: T[..., n, n] -> T[..., n, n].
    Dtypes:     float32, float64 and complex; integers become floats.

    Args:
        a: square matrices.
        overwrite_a: ignored.
        check_finite: ignored.

    Raises:
        ValueError: `a` is not a square matrix or a batch of them.

    Example:
        >>> minijax.scipy.linalg.inv(jnp.array([[2.0, 0.0], [2.0, 1.0]]))
        Array([[ 0.5,  0. ],
               [-1. ,  1. ]], dtype=float32)
    """
    return linalg.inv(a)


@one_program(static=("lower", "assume_a", "overwrite_a", *_IGNORED_BY_SOLVERS))
def solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Array:
    """Solves the linear system a x = b for a nonsingular matrix a.

    Shapes:     a: T[..., n, n], b: T[n] -> T[..., n]; b: T[..., n, m] -> T[..., n, m].
    Dtypes:     float32, float64 and complex, promoted; integers become floats.
    Derivative: linear in b; a x' = b' - a' x.

    Args:
        a: matrices.
        b: right-hand sides.
        lower: which triangle of a is read where `assume_a` is "pos": the lower one, or the upper.
        overwrite_a: ignored.
        overwrite_b: ignored.
        debug: ignored.
        check_finite: ignored.
        assume_a: "pos" if the matrices are Hermitian positive definite, which saves work; "gen",
            "sym" and "her" are one.

    Raises:
        ValueError: a is not square, b does not fit, or the assumption is not known.

    Example:
        >>> minijax.scipy.linalg.solve(jnp.array([[2.0, 0.0], [1.0, 1.0]]), jnp.array([4.0, 5.0]))
        Array([2., 3.], dtype=float32)
    """
    check_choice("scipy.linalg.solve", "assume_a", assume_a, ("gen", "sym", "her", "pos"))
    if assume_a != "pos":
        return linalg.solve(a, b)
    a, b = inexact_together("solve", a, b)
    is_vector = _check_system("solve", a, b)
    return _mapped(is_vector, functools.partial(_solve_definite, lower=lower))(a, b)


def _solve_definite(a: Array, b: Array, lower: bool) -> Array:
    factor, solver = cholesky(stop_gradient(a), lower=lower), _cholesky_solver(lower)

    def solve_transposed(b: Array) -> Array:
        # The transpose of a Hermitian matrix is its conjugate.
        return kernels.conjugate(solver(factor, kernels.conjugate(b)))

    return solve_by_factors(a, b, functools.partial(solver, factor), solve_transposed)


@one_program(static=("trans", "lower", "unit_diagonal", *_IGNORED_BY_SOLVERS))
def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: object = None,
    check_finite: bool = True,
) -> Array:
    """Solves op(a) x = b for a triangular matrix a.

    Shapes:     a: T[..., n, n], b: T[n] -> T[..., n]; b: T[..., n, m] -> T[..., n, m].
    Dtypes:     floats and complex, promoted; integers become floats.
    Derivative: linear in b.

    Args:
        a: matrices, of which one triangle is read.
        b: right-hand sides.
        trans: what op(a) is: a where 0 or "N", its transpose where 1 or "T", its adjoint where 2
            or "C".
        lower: whether the lower triangle is read.
        unit_diagonal: whether the diagonal is taken for ones.
        overwrite_b: ignored.
        debug: ignored.
        check_finite: ignored.

    Raises:
        ValueError: a is not square, b does not fit, or `trans` is not known.

    Example:
        >>> a = jnp.array([[2.0, 0.0], [1.0, 1.0]])
        >>> minijax.scipy.linalg.solve_triangular(a, jnp.array([4.0, 5.0]), lower=True)
        Array([2., 3.], dtype=float32)
    """
    check_choice("scipy.linalg.solve_triangular", "trans", trans, (0, 1, 2, "N", "T", "C"))
    a, b = inexact_together("solve_triangular", a, b)
    is_vector = _check_system("solve_triangular", a, b)

    def solver(a: Array, b: Array) -> Array:
        return triangular_solve(
            a,
            b,
            left_side=True,
            lower=lower,
            transpose_a=trans not in (0, "N"),
            conjugate_a=trans in (2, "C"),
            unit_diagonal=unit_diagonal,
        )

    return _mapped(is_vector, solver)(a, b)


def cho_solve(
    c_and_lower: tuple[Any, bool],
    b: ArrayLike,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solves a x = b, given the Cholesky factorization of a.

    Shapes:     c: T[..., n, n], b: T[n] -> T[..., n]; b: T[..., n, m] -> T[..., n, m].
    Dtypes:     floats and complex, promoted; integers become floats.

    Args:
        c_and_lower: what `cho_factor` gives.
        b: right-hand sides.
        overwrite_b: ignored.
        check_finite: ignored.

    Raises:
        ValueError: c is not square, or b does not fit.

    Example:
        >>> factor = minijax.scipy.linalg.cho_factor(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
        >>> minijax.scipy.linalg.cho_solve(factor, jnp.array([8.0, 12.0]))
        Array([1., 2.], dtype=float32)
    """
    factor, lower = c_and_lower
    return _solved_by_cholesky(factor, b, lower=bool(lower))


@one_program(static=("lower",))
def _solved_by_cholesky(factor: ArrayLike, b: ArrayLike, lower: bool) -> Array:
    factor, b = inexact_together("cho_solve", factor, b)
    return _mapped(_check_system("cho_solve", factor, b), _cholesky_solver(lower))(factor, b)


def _cholesky_solver(lower: bool) -> Callable[[Any, Any], Any]:
    def solver(factor: Array, b: Array) -> Array:
        # a = L Lᴴ, or Uᴴ U: the factor that is transposed comes second, or first.
        for transposed in (not lower, lower):
            b = triangular_solve(
                factor,
                b,
                left_side=True,
                lower=lower,
                transpose_a=transposed,
                conjugate_a=transposed,
            )
        return b

    return solver


def lu_solve(
    lu_and_piv: tuple[Any, Any],
    b: ArrayLike,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solves op(a) x = b, given the LU factorization of a.

    Shapes:     lu: T[..., n, n], piv: int32[..., n], b: T[n] -> T[..., n];
                b: T[..., n, m] -> T[..., n, m].
    Dtypes:     floats and complex, promoted; integers become floats.

    Args:
        lu_and_piv: what `lu_factor` gives.
        b: right-hand sides.
        trans: what op(a) is: a where 0, its transpose where 1, its adjoint where 2.
        overwrite_b: ignored.
        check_finite: ignored.

    Raises:
        ValueError: the factors are not square, b does not fit, or `trans` is not known.

    Example:
        >>> factors = minijax.scipy.linalg.lu_factor(jnp.array([[0.0, 1.0], [2.0, 0.0]]))
        >>> minijax.scipy.linalg.lu_solve(factors, jnp.array([3.0, 4.0]))
        Array([2., 3.], dtype=float32)
    """
    check_choice("scipy.linalg.lu_solve", "trans", trans, (0, 1, 2))
    factors, pivots = lu_and_piv
    return _solved_by_lu(factors, pivots, b, trans=trans)


@one_program(static=("trans",))
def _solved_by_lu(factors: ArrayLike, pivots: ArrayLike, b: ArrayLike, trans: int) -> Array:
    factors, b = inexact_together("lu_solve", factors, b)
    is_vector = _check_system("lu_solve", factors, b)
    permutation = lu_pivots_to_permutation(asarray(pivots), factors.shape[-1])
    columns = "(n)" if is_vector else "(n,k)"

    def solver(factors: Array, permutation: Array, b: Array) -> Array:
        x = solve_by_lu(factors, permutation, b[:, None] if is_vector else b, trans)
        return x[:, 0] if is_vector else x

    mapped = vectorize(solver, signature=f"(n,n),(n),{columns}->{columns}")
    return mapped(factors, permutation, b)


def _check_system(name: str, a: Array, b: Array) -> bool:
    """Whether right-hand sides are vectors, where they fit to the matrices.

    Raises:
        ValueError: the matrices are not square, or the right-hand sides do not fit.
    """
    check_square(name, a)
    is_vector: bool = b.ndim == 1 or (1 < b.ndim == a.ndim - 1 and b.shape[-1] == a.shape[-1])
    fits = b.ndim > 0 and b.shape[-1 if is_vector else -2] == a.shape[-1]
    problem = "b does not fit the matrices."
    expected = "a: T[..., n, n], and b: T[n] or T[..., n, m]"
    check_that(fits, f"scipy.linalg.{name}", problem, a=aval_of(a), b=aval_of(b), expected=expected)
    if is_vector and b.ndim > 1 and name != "solve":
        problem = "batches of vectors are going to be taken for matrices."
        got = {"b": aval_of(b)}
        fix = "b[..., None], and the result [..., 0]"
        warn(FutureWarning, f"scipy.linalg.{name}", problem, got=got, fix=fix)
    return is_vector


def _mapped(is_vector: bool, solver: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A function of a matrix and columns, of batches of matrices and of vectors or columns."""
    if is_vector:
        return vectorize(lambda a, b: solver(a, b[:, None])[:, 0], signature="(n,n),(n)->(n)")
    return vectorize(solver, signature="(n,n),(n,k)->(n,k)")


@one_program(static=("method", "tol"))
def solve_sylvester(
    A: ArrayLike, B: ArrayLike, C: ArrayLike, *, method: str = "schur", tol: float = 1e-8
) -> Array:
    """Solves the Sylvester equation A X + X B = C.

    All elements are NaN where an eigenvalue of A and one of B add up to nothing.

    Shapes:     A: T[..., m, m], B: T[..., n, n], C: T[..., m, n] -> T[..., m, n].
    Dtypes:     float32, float64 and complex, promoted; integers become floats.
    Derivative: none by "schur".
    Source:     mirrors jax.scipy.linalg.solve_sylvester (0.10); Bartels and Stewart, 1972.

    Args:
        A: what stands on the left of X.
        B: what stands on the right of X.
        C: the right-hand side.
        method: "schur", for which triangular systems are solved, or "eigen", for matrices that can
            be diagonalized.
        tol: below which absolute value a sum of eigenvalues counts as nothing.

    Raises:
        ValueError: shapes do not fit together, or the method is not known.

    Example:
        >>> a = jnp.array([[1.0, 0.0], [0.0, 2.0]])
        >>> minijax.scipy.linalg.solve_sylvester(a, a, jnp.array([[2.0, 3.0], [6.0, 8.0]]))
        Array([[1., 1.],
               [2., 2.]], dtype=float32)
    """
    check_choice("scipy.linalg.solve_sylvester", "method", method, ("schur", "eigen"))
    a, b, c = inexact_together("solve_sylvester", A, B, C)
    check_square("solve_sylvester", a, "A")
    check_square("solve_sylvester", b, "B")
    if c.ndim < 2 or c.shape[-2:] != (a.shape[-1], b.shape[-1]):
        problem = "C does not fit the other matrices."
        got = {"A": aval_of(a), "B": aval_of(b), "C": aval_of(c)}
        expected = "A: T[..., m, m], B: T[..., n, n], C: T[..., m, n]"
        error(ValueError, "scipy.linalg.solve_sylvester", problem, got=got, expected=expected)
    dtype = c.dtype
    solver = _sylvester_by_schur if method == "schur" else _sylvester_by_eigenvectors

    def solve_one(a: Array, b: Array, c: Array) -> Array:
        x, sums = solver(a, b, c)
        x = where((abs(sums) < tol).any(), np.nan, x)
        return x if dtype.kind == "c" else x.real.astype(dtype)

    return vectorize(solve_one, signature="(m,m),(n,n),(m,n)->(m,n)")(a, b, c)


def _sylvester_by_schur(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    """The solution, and the sums of eigenvalues.

    With a = U R Uᴴ and b = V S Vᴴ, R Y + Y S = Uᴴ c V for Y = Uᴴ X V, column after column.
    """
    complex_ = np.result_type(a.dtype, np.complex64)
    r, u = schur_form(a.astype(complex_))
    s, v = schur_form(b.astype(complex_))
    right = kernels.product(kernels.product(kernels.adjoint(u), c.astype(complex_)), v)
    identity = eye(a.shape[0], dtype=complex_)

    def column(k: ArrayLike, y: Array) -> Array:
        # Columns from k on are zero still, so that the whole product has those before k alone.
        rest = right[:, k] - kernels.times_vector(y, s[:, k])
        solved = triangular_solve(r + s[k, k] * identity, rest, left_side=True)
        return y.at[:, k].set(solved)

    y = fori_loop(0, b.shape[0], column, right * 0)
    x = kernels.product(kernels.product(u, y), kernels.adjoint(v))
    return x, expand_dims(kernels.diagonal(r), 1) + kernels.diagonal(s)


def _sylvester_by_eigenvectors(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    """The solution, and the sums of eigenvalues: Y_ij = (U⁻¹ c V)_ij / (a_i + b_j)."""
    (a_values, u), (b_values, v) = (eig(x, compute_left_eigenvectors=False) for x in (a, b))
    sums = a_values[:, None] + b_values
    right = solve_square(u, kernels.product(c.astype(v.dtype), v))
    product = kernels.product(u, right / sums)
    x = kernels.transposed(solve_square(kernels.transposed(v), kernels.transposed(product)))
    return x, sums
