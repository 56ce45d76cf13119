"""Determinants, with derivatives that hold for singular matrices too."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from minijax.core.aval import aval_of
from minijax.core.errors import message
from minijax.lax import unary
from minijax.lax.linalg import householder, matrices, solving
from minijax.lax.linalg.lu import lu
from minijax.lax.linalg.triangular import triangular_solve
from minijax.numpy.creation import ones
from minijax.numpy.joining import concatenate
from minijax.numpy.linalg import operands
from minijax.numpy.matrices import diagonal, eye
from minijax.numpy.one_program import one_program
from minijax.numpy.ranges import arange
from minijax.numpy.reductions import any as any_of
from minijax.numpy.reductions import argmin, prod
from minijax.numpy.reductions import sum as sum_of
from minijax.numpy.selection import where
from minijax.transforms.custom_jvp import custom_jvp


class SlogdetResult(NamedTuple):
    """What `slogdet` returns.

    Attributes:
        sign: a number of absolute value 1, or 0; T[...].
        logabsdet: the logarithm of the absolute determinant, real T[...].
    """

    sign: Any
    logabsdet: Any


@one_program()
def det(a: Any) -> Any:
    """The determinants of square matrices.

    Shapes:     a: T[..., n, n] -> T[...].
    Dtypes:     float32, float64 and complex; integers become floats.
    Derivative: the cofactors, also of a singular matrix.
    Source:     mirrors jax.numpy.linalg.det (0.10).

    Raises:
        ValueError: `a` is no square matrix, nor a batch of them.

    Example:
        >>> jnp.linalg.det(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
        Array(-2., dtype=float32)
    """
    a = operands.square_matrices("det", a)
    size = a.shape[-1]
    if size == 0:
        return ones(a.shape[:-2], a.dtype)
    # The polynomials of small matrices have derivatives everywhere.
    if size == 1:
        return a[..., 0, 0]
    if size == 2:
        return _minor(a, (0, 1), (0, 1))
    if size == 3:
        others = (1, 2), (0, 2), (0, 1)
        first, second, third = (a[..., 0, k] * _minor(a, (1, 2), others[k]) for k in range(3))
        return first - second + third
    return _det(a)


def _minor(a: Any, rows: tuple[int, int], columns: tuple[int, int]) -> Any:
    """The determinant of the entries in two rows and two columns."""
    (top, bottom), (left, right) = rows, columns
    return a[..., top, left] * a[..., bottom, right] - a[..., top, right] * a[..., bottom, left]


@custom_jvp
def _det(a: Any) -> Any:
    return _det_of_factors(*lu(a)[:2])


@_det.defjvp
def _det_jvp(primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    (a,), (a_dot,) = primals, tangents
    factors, pivots, permutation = lu(a)
    cofactors = _cofactors(factors, pivots, permutation)
    return _det_of_factors(factors, pivots), sum_of(cofactors * a_dot, (-2, -1))


def _det_of_factors(factors: Any, pivots: Any) -> Any:
    sign, logarithm = _slogdet_of_factors(factors, pivots)
    return sign * unary.exp(logarithm)


def _slogdet_of_factors(factors: Any, pivots: Any) -> tuple[Any, Any]:
    on_diagonal = diagonal(factors, 0, -2, -1)
    sizes = unary.abs(on_diagonal)
    turns = where(sizes == 0, on_diagonal, on_diagonal / sizes)
    sign = _sign_of_exchanges(pivots, factors.dtype) * prod(turns, -1)
    # A sum of infinities of both signs would be NaN.
    logarithm = where(any_of(sizes == 0, -1), -np.inf, sum_of(unary.log(sizes), -1))
    return sign, logarithm


def _sign_of_exchanges(pivots: Any, dtype: Any) -> Any:
    """The determinant of the permutation that a list of exchanges is, 1 or -1."""
    is_exchange = pivots != arange(pivots.shape[-1], dtype=pivots.dtype)
    return 1 - 2 * (sum_of(is_exchange, -1) % 2).astype(dtype)


def _cofactors(factors: Any, pivots: Any, permutation: Any) -> Any:
    """The derivative of the determinant: adj(a)ᵀ, of matrices a with P a = L U.

    adj(a) = det(P) adj(U) L⁻¹ P.  Let d be the least element on the diagonal of U, in row and
    column k, and V the matrix U with a row and a column of the identity there.  With the vectors
    v = eₖ - V⁻¹ uₖ and w = eₖ - V⁻ᵀ u'ₖ, where uₖ and u'ₖ are that column and row of U without d,

        adj(U) = det(V) (v wᵀ + d (V⁻¹ - eₖ eₖᵀ)),

    where nothing is divided by d.  If the diagonal has more zeros than one, zeros result.
    """
    upper = matrices.upper_triangle(factors)
    on_diagonal = diagonal(upper, 0, -2, -1)
    size = upper.shape[-1]
    chosen = arange(size) == argmin(unary.abs(on_diagonal), -1, keepdims=True)
    in_row, in_column = chosen[..., :, None], chosen[..., None, :]
    least = sum_of(where(chosen, on_diagonal, 0), -1)[..., None, None]
    others = where(chosen, 1, on_diagonal)
    remaining = where(in_row | in_column, eye(size, dtype=upper.dtype), upper)
    remaining = where((others == 0)[..., None, :] & eye(size, dtype=bool), 1, remaining)
    column = sum_of(where(in_column & ~in_row, upper, 0), -1)
    row = sum_of(where(in_row & ~in_column, upper, 0), -2)
    start = triangular_solve(
        factors,
        matrices.rows_at(matrices.identity_like(factors), permutation),
        left_side=True,
        lower=True,
        unit_diagonal=True,
    )
    right = concatenate([where(in_row, 0, start), column[..., :, None]], -1)
    solved = triangular_solve(remaining, right, left_side=True)
    inner, v = solved[..., :-1], chosen - solved[..., -1]
    w = sum_of(where(in_row, start, 0) - row[..., :, None] * inner, -2)
    scale = _sign_of_exchanges(pivots, upper.dtype) * prod(others, -1)
    adjugate = v[..., :, None] * w[..., None, :] + least * inner
    return matrices.transposed(scale[..., None, None] * adjugate)


@one_program(static=("method",))
def slogdet(a: Any, *, method: str | None = None) -> SlogdetResult:
    """The signs and the logarithms of the determinants of square matrices.

    Shapes:     a: T[..., n, n] -> T[...], real T[...].
    Dtypes:     float32, float64 and complex; integers become floats.
    Derivative: the inverse; of a regular matrix.
    Source:     mirrors jax.numpy.linalg.slogdet (0.10).

    Args:
        a: square matrices.
        method: by which factorization, "lu" (or None) or, of real matrices, "qr".

    Raises:
        ValueError: `a` is no square matrix, nor a batch of them; or the method is not known.
        NotImplementedError: method "qr" is asked for complex matrices.

    Example:
        >>> jnp.linalg.slogdet(jnp.array([[0.0, 1.0], [1.0, 0.0]]))
        SlogdetResult(sign=Array(-1., dtype=float32), logabsdet=Array(0., dtype=float32))
    """
    a = operands.square_matrices("slogdet", a)
    if method not in (None, "lu", "qr"):
        raise ValueError(
            message(
                "numpy.linalg.slogdet",
                "there is no such method.",
                got=f"method: {method!r}",
                expected="'lu', 'qr' or None",
            )
        )
    if method != "qr":
        return SlogdetResult(*_slogdet_by_lu(a))
    if a.dtype.kind == "c":
        raise NotImplementedError(
            message(
                "numpy.linalg.slogdet",
                "method 'qr' is for real matrices.",
                got={"a": aval_of(a)},
                fix="method='lu'",
            )
        )
    return SlogdetResult(*_slogdet_by_qr(a))


@custom_jvp
def _slogdet_by_lu(a: Any) -> tuple[Any, Any]:
    return _slogdet_of_factors(*lu(a)[:2])


@_slogdet_by_lu.defjvp
def _slogdet_by_lu_jvp(primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    factors, pivots, permutation = lu(primals[0])
    outs = _slogdet_of_factors(factors, pivots)
    identity = matrices.identity_like(factors)
    inverse = solving.solve_by_lu(factors, permutation, identity)
    return outs, _slogdet_tangents(outs[0], inverse, tangents[0])


@custom_jvp
def _slogdet_by_qr(a: Any) -> tuple[Any, Any]:
    reflections, scales = householder.geqrf(a)
    on_diagonal = diagonal(reflections, 0, -2, -1)
    # A reflection has determinant -1, but for scale 0 it is the identity.
    signs = unary.sign(on_diagonal) * where(scales == 0, 1, -1).astype(a.dtype)
    return prod(signs, -1), sum_of(unary.log(unary.abs(on_diagonal)), -1)


@_slogdet_by_qr.defjvp
def _slogdet_by_qr_jvp(primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    (a,) = primals
    outs = _slogdet_by_qr(a)
    inverse = solving.solve(a, matrices.identity_like(a))
    return outs, _slogdet_tangents(outs[0], inverse, tangents[0])


def _slogdet_tangents(sign: Any, inverse: Any, a_dot: Any) -> tuple[Any, Any]:
    """Of log det(a) the tangent is tr(a⁻¹ a'): its real part moves the logarithm, i times the
    imaginary part turns the sign.
    """
    change = sum_of(matrices.transposed(inverse) * a_dot, (-2, -1))
    if change.dtype.kind != "c":
        return 0 * sign, change
    return sign * (1j * unary.imag(change)), unary.real(change)
