"""Systems of linear equations, solved by factors of their matrices."""

from __future__ import annotations

from typing import Any

from minijax.lax import sorting
from minijax.lax.creation import broadcasted_iota
from minijax.lax.linalg import matrices
from minijax.lax.linalg.lu import lu
from minijax.lax.linalg.triangular import triangular_solve


def solve(a: Any, b: Any) -> Any:
    """The solutions of a x = b: T[..., n, n], T[..., n, m] -> T[..., n, m]."""
    factors, _, permutation = lu(a)
    return solve_by_lu(factors, permutation, b)


def solve_by_lu(factors: Any, permutation: Any, b: Any, trans: int = 0) -> Any:
    """The solutions of op(a) x = b from the LU factors of matrices a.

    Args:
        factors: L and U in one matrix, T[..., n, n].
        permutation: the order of the rows of a that they are of, int[..., n].
        b: right-hand sides, T[..., n, m].
        trans: what op(a) is: a where 0, its transposed matrix where 1, its adjoint where 2.
    """
    if trans == 0:
        x = triangular_solve(
            factors,
            matrices.rows_at(b, permutation),
            left_side=True,
            lower=True,
            unit_diagonal=True,
        )
        return triangular_solve(factors, x, left_side=True)
    options = {"left_side": True, "transpose_a": True, "conjugate_a": trans == 2}
    x = triangular_solve(factors, b, **options)
    x = triangular_solve(factors, x, lower=True, unit_diagonal=True, **options)
    return matrices.rows_at(x, inverse_permutation(permutation))


def inverse_permutation(permutation: Any) -> Any:
    """The permutation that undoes another: int[..., n] -> int[..., n]."""
    last = permutation.ndim - 1
    places = broadcasted_iota(permutation.dtype, permutation.shape, last)
    return sorting.sort_key_val(permutation, places, dimension=last)[1]
