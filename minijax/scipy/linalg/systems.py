"""Systems of linear equations, inverses, determinants, and Sylvester's equation."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.core.aval import aval_of
from minijax.core.errors import error, message
from minijax.core.trace import current
from minijax.interpreters import casts
from minijax.lax.control_flow.looping import fori_loop
from minijax.lax.control_flow.solving import custom_linear_solve
from minijax.lax.linalg import kernels
from minijax.lax.linalg.eig import eig
from minijax.lax.linalg.eig import schur as schur_form
from minijax.lax.linalg.lu import (
    lu_pivots_to_permutation,
    solve_by_lu,
    solve_square,
    triangular_solve,
)
from minijax.lax.unary import stop_gradient
from minijax.numpy import linalg
from minijax.numpy.creation import asarray
from minijax.numpy.functional import vectorize
from minijax.numpy.matrices import eye
from minijax.numpy.one_program import one_program
from minijax.numpy.selection import where
from minijax.numpy.shaping import expand_dims
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.scipy.linalg import operands
from minijax.scipy.linalg.factorizations import cholesky

_IGNORED = ("overwrite_b", "debug", "check_finite")


@one_program(static=("overwrite_a", "check_finite"))
def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The determinants of square matrices.

    Shapes:     a: T[..., n, n] -> T[...].
    Dtypes:     floats and complex; integers become floats.
    Source:     mirrors jax.scipy.linalg.det (0.10).

    Args:
        a: square matrices.
        overwrite_a: ignored.
        check_finite: ignored.

    Raises:
        ValueError: `a` is no square matrix, nor a batch of them.

    Example:
        >>> minijax.scipy.linalg.det(jnp.array([[3.0, 1.0], [1.0, 2.0]]))
        Array(5., dtype=float32)
    """
    return linalg.det(a)


@one_program(static=("overwrite_a", "check_finite"))
def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The inverses of square matrices.

    Shapes:     a: T[..., n, n] -> T[..., n, n].
    Dtypes:     float32, float64 and complex; integers become floats.
    Source:     mirrors jax.scipy.linalg.inv (0.10).

    Args:
        a: square matrices.
        overwrite_a: ignored.
        check_finite: ignored.

    Raises:
        ValueError: `a` is no square matrix, nor a batch of them.

    Example:
        >>> minijax.scipy.linalg.inv(jnp.array([[2.0, 0.0], [2.0, 1.0]]))
        Array([[ 0.5,  0. ],
               [-1. ,  1. ]], dtype=float32)
    """
    return linalg.inv(a)


@one_program(static=("lower", "assume_a", "overwrite_a", *_IGNORED))
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
    """The solutions x of a x = b, for regular matrices a.

    Shapes:     a: T[..., n, n], b: T[n] -> T[..., n]; b: T[..., n, m] -> T[..., n, m].
    Dtypes:     float32, float64 and complex, promoted; integers become floats.
    Derivative: linear in b; a x' = b' - a' x.
    Source:     mirrors jax.scipy.linalg.solve (0.10).

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
    operands.check_choice("solve", "assume_a", assume_a, ("gen", "sym", "her", "pos"))
    if assume_a != "pos":
        return linalg.solve(a, b)
    a, b = operands.inexact_together("solve", a, b)
    is_vector = _check_system("solve", a, b)
    return _mapped(is_vector, functools.partial(_solve_definite, lower=lower))(a, b)


def _solve_definite(a: Any, b: Any, lower: bool) -> Any:
    factor, solver = cholesky(stop_gradient(a), lower=lower), _cholesky_solver(lower)

    def transposed(_: Any, b: Any) -> Any:
        # The transpose of a Hermitian matrix is its conjugate.
        return kernels.conjugate(solver(factor, kernels.conjugate(b)))

    return custom_linear_solve(
        functools.partial(kernels.product, a),
        casts.varied(current.value, b, aval_of(a).vma),
        solve=lambda _, b: solver(factor, b),
        transpose_solve=transposed,
    )


@one_program(static=("trans", "lower", "unit_diagonal", *_IGNORED))
def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: Any = None,
    check_finite: bool = True,
) -> Array:
    """The solutions x of op(a) x = b, for triangular matrices a.

    Shapes:     a: T[..., n, n], b: T[n] -> T[..., n]; b: T[..., n, m] -> T[..., n, m].
    Dtypes:     floats and complex, promoted; integers become floats.
    Derivative: linear in b.
    Source:     mirrors jax.scipy.linalg.solve_triangular (0.10).

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
    operands.check_choice("solve_triangular", "trans", trans, (0, 1, 2, "N", "T", "C"))
    a, b = operands.inexact_together("solve_triangular", a, b)
    is_vector = _check_system("solve_triangular", a, b)

    def solver(a: Any, b: Any) -> Any:
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
    """The solutions x of a x = b, by the Cholesky factors of a.

    Shapes:     c: T[..., n, n], b: T[n] -> T[..., n]; b: T[..., n, m] -> T[..., n, m].
    Dtypes:     floats and complex, promoted; integers become floats.
    Source:     mirrors jax.scipy.linalg.cho_solve (0.10).

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
def _solved_by_cholesky(factor: Any, b: Any, lower: bool) -> Any:
    factor, b = operands.inexact_together("cho_solve", factor, b)
    return _mapped(_check_system("cho_solve", factor, b), _cholesky_solver(lower))(factor, b)


def _cholesky_solver(lower: bool) -> Callable[[Any, Any], Any]:
    def solver(factor: Any, b: Any) -> Any:
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
    """The solutions x of op(a) x = b, by the LU factors of a.

    Shapes:     lu: T[..., n, n], piv: int32[..., n], b: T[n] -> T[..., n];
                b: T[..., n, m] -> T[..., n, m].
    Dtypes:     floats and complex, promoted; integers become floats.
    Source:     mirrors jax.scipy.linalg.lu_solve (0.10).

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
    operands.check_choice("lu_solve", "trans", trans, (0, 1, 2))
    factors, pivots = lu_and_piv
    return _solved_by_lu(factors, pivots, b, trans=trans)


@one_program(static=("trans",))
def _solved_by_lu(factors: Any, pivots: Any, b: Any, trans: int) -> Any:
    factors, b = operands.inexact_together("lu_solve", factors, b)
    is_vector = _check_system("lu_solve", factors, b)
    permutation = lu_pivots_to_permutation(asarray(pivots), factors.shape[-1])
    columns = "(n)" if is_vector else "(n,k)"

    def solver(factors: Any, permutation: Any, b: Any) -> Any:
        x = solve_by_lu(factors, permutation, b[:, None] if is_vector else b, trans)
        return x[:, 0] if is_vector else x

    mapped = vectorize(solver, signature=f"(n,n),(n),{columns}->{columns}")
    return mapped(factors, permutation, b)


def _check_system(name: str, a: Any, b: Any) -> bool:
    """Whether right-hand sides are vectors, where they fit to the matrices.

    Raises:
        ValueError: the matrices are not square, or the right-hand sides do not fit.
    """
    operands.check_square(name, a)
    is_vector: bool = b.ndim == 1 or (1 < b.ndim == a.ndim - 1 and b.shape[-1] == a.shape[-1])
    if not b.ndim or b.shape[-1 if is_vector else -2] != a.shape[-1]:
        error(
            ValueError,
            f"scipy.linalg.{name}",
            "b does not fit the matrices.",
            got={"a": aval_of(a), "b": aval_of(b)},
            expected="a: T[..., n, n], and b: T[n] or T[..., n, m]",
        )
    if is_vector and b.ndim > 1 and name != "solve":
        warnings.warn(
            message(
                f"scipy.linalg.{name}",
                "batches of vectors are going to be taken for matrices.",
                got={"b": aval_of(b)},
                fix="b[..., None], and the result [..., 0]",
            ),
            FutureWarning,
            stacklevel=5,
        )
    return is_vector


def _mapped(is_vector: bool, solver: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A function of a matrix and columns, of batches of matrices and of vectors or columns."""
    if is_vector:
        return vectorize(lambda a, b: solver(a, b[:, None])[:, 0], signature="(n,n),(n)->(n)")
    return vectorize(solver, signature="(n,n),(n,k)->(n,k)")


@one_program(static=("method", "tol"))
def solve_sylvester(
    A: ArrayLike,  # noqa: N803  SciPy's name
    B: ArrayLike,  # noqa: N803  SciPy's name
    C: ArrayLike,  # noqa: N803  SciPy's name
    *,
    method: str = "schur",
    tol: float = 1e-8,
) -> Array:
    """The solutions X of A X + X B = C.

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
    operands.check_choice("solve_sylvester", "method", method, ("schur", "eigen"))
    a, b, c = operands.inexact_together("solve_sylvester", A, B, C)
    operands.check_square("solve_sylvester", a, "A")
    operands.check_square("solve_sylvester", b, "B")
    if c.ndim < 2 or c.shape[-2:] != (a.shape[-1], b.shape[-1]):
        error(
            ValueError,
            "scipy.linalg.solve_sylvester",
            "C does not fit the other matrices.",
            got={"A": aval_of(a), "B": aval_of(b), "C": aval_of(c)},
            expected="A: T[..., m, m], B: T[..., n, n], C: T[..., m, n]",
        )
    dtype = c.dtype
    solver = _sylvester_by_schur if method == "schur" else _sylvester_by_eigenvectors

    def solve_one(a: Any, b: Any, c: Any) -> Any:
        x, sums = solver(a, b, c)
        x = where((abs(sums) < tol).any(), np.nan, x)
        return x if dtype.kind == "c" else x.real.astype(dtype)

    return vectorize(solve_one, signature="(m,m),(n,n),(m,n)->(m,n)")(a, b, c)


def _sylvester_by_schur(a: Any, b: Any, c: Any) -> tuple[Any, Any]:
    """The solution, and the sums of eigenvalues.

    With a = U R Uᴴ and b = V S Vᴴ, R Y + Y S = Uᴴ c V for Y = Uᴴ X V, column after column.
    """
    complex_ = np.result_type(a.dtype, np.complex64)
    r, u = schur_form(a.astype(complex_))
    s, v = schur_form(b.astype(complex_))
    right = kernels.product(kernels.product(kernels.adjoint(u), c.astype(complex_)), v)
    identity = eye(a.shape[0], dtype=complex_)

    def column(k: Any, y: Any) -> Any:
        # Columns from k on are zero still, so that the whole product has those before k alone.
        rest = right[:, k] - kernels.times_vector(y, s[:, k])
        solved = triangular_solve(r + s[k, k] * identity, rest, left_side=True)
        return y.at[:, k].set(solved)

    y = fori_loop(0, b.shape[0], column, right * 0)
    x = kernels.product(kernels.product(u, y), kernels.adjoint(v))
    return x, expand_dims(kernels.diagonal(r), 1) + kernels.diagonal(s)


def _sylvester_by_eigenvectors(a: Any, b: Any, c: Any) -> tuple[Any, Any]:
    """The solution, and the sums of eigenvalues: Y_ij = (U⁻¹ c V)_ij / (a_i + b_j)."""
    (a_values, u), (b_values, v) = (eig(x, compute_left_eigenvectors=False) for x in (a, b))
    sums = a_values[:, None] + b_values
    right = solve_square(u, kernels.product(c.astype(v.dtype), v))
    product = kernels.product(u, right / sums)
    x = kernels.transposed(solve_square(kernels.transposed(v), kernels.transposed(product)))
    return x, sums
