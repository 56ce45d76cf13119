"""Determinants, with derivatives that hold for singular matrices too."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.lax import unary
from minijax.lax.linalg import householder, matrices, solving
from minijax.lax.linalg.lu import lu
from minijax.lax.linalg.triangular import triangular_solve
from minijax.numpy.creation import ones
from minijax.numpy.joining import concatenate
from minijax.numpy.linalg import operands
from minijax.numpy.matrices import diagonal
from minijax.numpy.one_program import one_program
from minijax.numpy.ranges import arange
from minijax.numpy.reductions import any as any_of
from minijax.numpy.reductions import prod
from minijax.numpy.reductions import sum as sum_of
from minijax.numpy.selection import where
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.transforms.custom_jvp import custom_jvp


class SlogdetResult(NamedTuple):
    """What `slogdet` returns.

    Attributes:
        sign: a number of absolute value 1, or 0; T[...].
        logabsdet: the logarithm of the absolute determinant, real T[...].
    """

    sign: Array
    logabsdet: Array


@one_program()
def det(a: ArrayLike) -> Array:
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
    return prod(1 - 2 * is_exchange.astype(dtype), -1)


def _cofactors(factors: Any, pivots: Any, permutation: Any) -> Any:
    """The derivative of the determinant: adj(a)ᵀ, of matrices a with P a = L U.

    adj(a) = det(P) adj(U) L⁻¹ P.  Where the diagonal of U has no zero, adj(U) = det(U) U⁻¹.  Where
    it has one, in row k, let V be U with 1 in its place: then adj(U) = det(V) v wᵀ, with column k
    and row k of V⁻¹.  Where it has more, zeros are returned: right if two or more are missing from
    the rank.
    """
    on_diagonal = diagonal(factors, 0, -2, -1)
    is_zero = on_diagonal == 0
    zeros = is_zero.astype(factors.dtype)
    identity = matrices.identity_like(factors)
    start = triangular_solve(
        factors,
        matrices.rows_at(identity, permutation),
        left_side=True,
        lower=True,
        unit_diagonal=True,
    )
    regular = factors + identity * zeros[..., None, :]
    right = concatenate([start, zeros[..., :, None]], -1)
    solved = triangular_solve(regular, right, left_side=True)
    inverse, column = solved[..., :-1], solved[..., -1:]
    row = sum_of(zeros[..., :, None] * inverse, -2, keepdims=True)
    count = sum_of(is_zero, -1)
    scale = _sign_of_exchanges(pivots, factors.dtype) * prod(on_diagonal + zeros, -1)
    scale = where(count > 1, 0, scale)[..., None, None]
    adjugate = where((count > 0)[..., None, None], column * row, inverse)
    return matrices.transposed(scale * adjugate)


@one_program(static=("method",))
def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
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
        error(
            ValueError,
            "numpy.linalg.slogdet",
            "there is no such method.",
            got=f"method: {method!r}",
            expected="'lu', 'qr' or None",
        )
    if method != "qr":
        return SlogdetResult(*_slogdet_by_lu(a))
    if a.dtype.kind == "c":
        error(
            NotImplementedError,
            "numpy.linalg.slogdet",
            "method 'qr' is for real matrices.",
            got={"a": aval_of(a)},
            fix="method='lu'",
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
