"""Factorizations of matrices, their eigenvalues, singular values and determinants.

Determinants have derivatives that hold for singular matrices too.
It also holds what all functions of linear algebra make of their arguments, and refuse.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, overload

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import IncompatibleShapesError, error
from minijax.lax import binary, shape, unary
from minijax.lax import linalg as lax_linalg
from minijax.lax.binary import select
from minijax.lax.creation import broadcasted_iota, convert_to_type
from minijax.lax.linalg import kernels
from minijax.lax.linalg.eigenvalues import refuse_subset, subset_size
from minijax.lax.linalg.factorizations import geqrf
from minijax.lax.linalg.lu import lu, solve_by_lu, solve_square, triangular_solve
from minijax.lax.sorting import sort
from minijax.numpy import promotion
from minijax.numpy.creation import ones
from minijax.numpy.joining import concatenate
from minijax.numpy.matrices import diagonal
from minijax.numpy.promotion import check_choice, check_that, one_program
from minijax.numpy.ranges import arange
from minijax.numpy.reductions import any as any_of
from minijax.numpy.reductions import prod
from minijax.numpy.reductions import sum as sum_of
from minijax.numpy.selection import where
from minijax.numpy.shaping import array_argument
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.transforms.autodiff.custom_jvp import custom_jvp


def inexact(name: str, x: ArrayLike) -> Array:
    """An argument as an array of floats or complex numbers.

    Raises:
        TypeError: it is neither an array nor a number.
    """
    x = array_argument(f"linalg.{name}", x)
    return convert_to_type(x, dtypes.to_inexact_dtype(x.dtype), x.aval.weak_type)


def inexact_together(name: str, *arrays: Any) -> list[Array]:
    """Arguments as arrays of one dtype, of floats or complex numbers.

    Raises:
        TypeError: one of them is neither an array nor a number.
    """
    return [inexact(name, x) for x in promotion.promote_dtypes(f"linalg.{name}", *arrays)]


def matrices(name: str, x: ArrayLike, argument: str = "a") -> Array:
    """An argument as matrices of floats or complex numbers.

    Raises:
        TypeError: it is neither an array nor a number.
        ValueError: it has fewer than two dimensions.
    """
    x = inexact(name, x)
    check_matrices(name, x, argument)
    return x


def check_matrices(name: str, x: Array, argument: str = "a") -> None:
    """Refuses arrays of fewer than two dimensions.

    Raises:
        ValueError: it has fewer than two dimensions.
    """
    fits = x.ndim >= 2
    problem = f"{argument} is no matrix, nor a batch of matrices."
    expected = "two dimensions or more: T[..., m, n]"
    check_that(fits, f"numpy.linalg.{name}", problem, got={argument: aval_of(x)}, expected=expected)


def square_matrices(name: str, x: ArrayLike, argument: str = "a") -> Array:
    """An argument as square matrices of floats or complex numbers.

    Raises:
        TypeError: it is neither an array nor a number.
        ValueError: it has fewer than two dimensions.
        IncompatibleShapesError: the last two dimensions differ.
    """
    x = matrices(name, x, argument)
    check_square(name, x, argument)
    return x


def check_square(name: str, x: Array, argument: str = "a") -> None:
    """Refuses matrices that are not square.

    Raises:
        IncompatibleShapesError: the last two dimensions differ.
    """
    if x.shape[-1] != x.shape[-2]:
        problem = f"the matrices in {argument} are not square."
        got = {argument: aval_of(x)}
        expected = "T[..., n, n]"
        error(IncompatibleShapesError, f"numpy.linalg.{name}", problem, got=got, expected=expected)


def check_not_both(name: str, **arguments: object) -> None:
    """Refuses two names of one argument that are both given.

    Raises:
        ValueError: both are given.
    """
    if None not in arguments.values():
        first, second = arguments
        problem = f"{first} and {second} are two names of one argument."
        error(ValueError, f"numpy.linalg.{name}", problem, got=arguments, fix="give one")


def squared(x: Array) -> Array:
    """|x|², whose derivative is zero at zero."""
    return x * x if x.dtype.kind != "c" else unary.real(x * unary.conj(x))


class EigResult(NamedTuple):
    """The eigenvalues and eigenvectors that `eig` returns.

    Attributes:
        eigenvalues: complex, T[..., n].
        eigenvectors: one in each column, T[..., n, n].
    """

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """The eigenvalues and eigenvectors that `eigh` returns.

    Attributes:
        eigenvalues: real and ascending, T[..., n].
        eigenvectors: one in each column, T[..., n, n].
    """

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """The orthonormal and the triangular factor that `qr` returns.

    Attributes:
        Q: matrices with orthonormal columns.
        R: upper triangles.
    """

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """The singular vectors and values that `svd` returns.

    Attributes:
        U: matrices with orthonormal columns.
        S: the singular values, descending.
        Vh: matrices with orthonormal rows.
    """

    U: Array
    S: Array
    Vh: Array


@one_program(static=("upper", "symmetrize_input"))
def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """Computes the Cholesky factors of positive definite matrices; NaN of others.

    Shapes:     a: T[..., n, n] -> T[..., n, n].
    Dtypes:     float32, float64 and complex; integers become floats.

    Args:
        a: Hermitian positive definite matrices.
        upper: whether U with a = Uᴴ U is wanted in place of L with a = L Lᴴ.
        symmetrize_input: whether (a + aᴴ) / 2 is factored, instead of reading one triangle.

    Raises:
        TypeError: `a` is not a matrix.
        IncompatibleShapesError: the matrices are not square.
        NotImplementedError: there is no kernel for the dtype, such as bfloat16.

    Example:
        >>> jnp.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
        Array([[2., 0.],
               [1., 2.]], dtype=float32)
    """
    a = inexact("cholesky", a)
    factor = lax_linalg.cholesky(
        kernels.adjoint(a) if upper and not symmetrize_input else a,
        symmetrize_input=symmetrize_input,
    )
    return kernels.adjoint(factor) if upper else factor


@overload
def qr(a: ArrayLike, mode: Literal["reduced", "full", "complete", "raw"] = ...) -> QRResult: ...
@overload
def qr(a: ArrayLike, mode: Literal["r"]) -> Array: ...
@overload
def qr(a: ArrayLike, mode: str = ...) -> Array | QRResult: ...


@one_program(static=("mode",))
def qr(a: ArrayLike, mode: str = "reduced") -> Array | QRResult:
    """Computes the QR decomposition, Q R = a, with orthonormal Q and upper triangular R.

    Shapes:     a: T[..., m, n] -> Q: T[..., m, k], R: T[..., k, n], where k = min(m, n), or m.
    Dtypes:     float32, float64 and complex; integers become floats.

    Args:
        a: matrices.
        mode: "reduced" (or "full", its old name), k = min(m, n); "complete", k = m; "r", R alone;
            "raw", the reflections whose product is Q, in rows, and their scales.

    Raises:
        ValueError: the mode is not known.
        TypeError: `a` is not a matrix.
        NotImplementedError: there is no kernel for the dtype, such as bfloat16.

    Example:
        >>> q, r = jnp.linalg.qr(jnp.array([[0.0, 2.0], [1.0, 5.0]]))
        >>> r
        Array([[-1., -5.],
               [ 0., -2.]], dtype=float32)
    """
    a = inexact("qr", a)
    if mode == "raw":
        reflections, scales = geqrf(a)
        return QRResult(kernels.transposed(reflections), scales)
    check_choice("numpy.linalg.qr", "mode", mode, ("reduced", "full", "complete", "r", "raw"))
    q, r = lax_linalg.qr(a, full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = ...,
    compute_uv: Literal[True] = ...,
    hermitian: bool = ...,
    subset_by_index: tuple[int, int] | None = ...,
) -> SVDResult: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = ...,
    *,
    compute_uv: Literal[False],
    hermitian: bool = ...,
    subset_by_index: tuple[int, int] | None = ...,
) -> Array: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = ...,
    compute_uv: bool = ...,
    hermitian: bool = ...,
    subset_by_index: tuple[int, int] | None = ...,
) -> Array | SVDResult: ...


@one_program(static=("full_matrices", "compute_uv", "hermitian", "subset_by_index"))
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Array | SVDResult:
    """Computes the singular value decomposition, a = U diag(S) Vh.

    Shapes:     a: T[..., m, n] -> U: T[..., m, k], S: real T[..., k], Vh: T[..., k, n], where
                k = min(m, n); U and Vh are square with `full_matrices`.
    Dtypes:     float32, float64 and complex; integers become floats.

    Args:
        a: matrices.
        full_matrices: whether U and Vh are completed to square matrices.
        compute_uv: whether U and Vh are wanted, and not S alone.
        hermitian: whether a is Hermitian, so that its eigenvectors serve.
        subset_by_index: the indices [start, end) of the singular values wanted.

    Raises:
        TypeError: `a` is not a matrix.
        ValueError: full matrices and a subset are asked for.
        NotImplementedError: there is no kernel for the dtype, or for a subset.

    Example:
        >>> jnp.linalg.svd(jnp.array([[0.0, 2.0], [3.0, 0.0]])).S
        Array([3., 2.], dtype=float32)
    """
    a = inexact("svd", a)
    if hermitian:
        u, s, vh = _svd_of_hermitian(a, compute_uv, subset_by_index)
        return SVDResult(u, s, vh) if compute_uv else s
    found: Any = lax_linalg.svd(
        a, full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset_by_index
    )
    return SVDResult(*found) if compute_uv else found


def _svd_of_hermitian(
    a: Array, compute_uv: bool, subset: tuple[int, int] | None
) -> tuple[Any, Any, Any]:
    """Singular values are absolute eigenvalues; the signs of these go into the right vectors."""
    vectors, values = lax_linalg.eigh(a)
    subset_size("svd", values.shape[-1], subset)
    refuse_subset("svd", values.shape[-1], subset)
    last = values.ndim - 1
    places = broadcasted_iota("int32", values.shape, last)
    negated = unary.neg(unary.abs(values))
    negated, values, places = sort((negated, values, places), dimension=last, num_keys=1)
    s = unary.neg(negated)
    if not compute_uv:
        return None, s, None
    u = kernels.columns_at(vectors, places)
    flips = shape.broadcast_in_dim(binary.lt(values, 0.0), u.shape, (*range(last), last + 1))
    return u, s, kernels.adjoint(select(flips, unary.neg(u), u))


@one_program()
def svdvals(x: ArrayLike, /) -> Array:
    """Computes the singular values of matrices, in descending order.

    Shapes:     x: T[..., m, n] -> real T[..., min(m, n)].

    Raises:
        TypeError: `x` is not a matrix.
        NotImplementedError: there is no kernel for the dtype, such as bfloat16.

    Example:
        >>> jnp.linalg.svdvals(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
        Array([3., 2.], dtype=float32)
    """
    return lax_linalg.svd(inexact("svdvals", x), compute_uv=False)


@one_program(static=("UPLO", "symmetrize_input"))
def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Computes the eigenvalues and orthonormal eigenvectors of Hermitian matrices.

    Shapes:     a: T[..., n, n] -> real T[..., n], ascending, and T[..., n, n].
    Dtypes:     float32, float64 and complex; integers become floats.

    Args:
        a: Hermitian matrices.
        UPLO: which triangle is read where the input is not symmetrized, "L" or "U".
        symmetrize_input: whether (a + aᴴ) / 2 is decomposed.

    Raises:
        ValueError: UPLO is neither "L" nor "U" nor None.
        TypeError: `a` is not a matrix.
        IncompatibleShapesError: the matrices are not square.

    Example:
        >>> jnp.linalg.eigh(jnp.array([[3.0, 0.0], [0.0, 2.0]])).eigenvalues
        Array([2., 3.], dtype=float32)
    """
    return EighResult(*_eigh("eigh", a, UPLO, symmetrize_input))


def _eigh(name: str, a: ArrayLike, triangle: str | None, symmetrize_input: bool) -> tuple[Any, Any]:
    check_choice(f"numpy.linalg.{name}", "UPLO", triangle, ("L", "U", None))
    vectors, values = lax_linalg.eigh(
        inexact(name, a), lower=triangle != "U", symmetrize_input=symmetrize_input
    )
    return values, vectors


@one_program(static=("UPLO", "symmetrize_input"))
def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """Computes the eigenvalues of Hermitian matrices, in ascending order.

    Shapes:     a: T[..., n, n] -> real T[..., n].

    Args:
        a: Hermitian matrices.
        UPLO: which triangle is read where the input is not symmetrized, "L" or "U".
        symmetrize_input: whether the eigenvalues are those of (a + aᴴ) / 2.

    Raises:
        ValueError: UPLO is neither "L" nor "U" nor None.
        TypeError: `a` is not a matrix.
        IncompatibleShapesError: the matrices are not square.

    Example:
        >>> jnp.linalg.eigvalsh(jnp.array([[3.0, 0.0], [0.0, 2.0]]))
        Array([2., 3.], dtype=float32)
    """
    return _eigh("eigvalsh", a, UPLO, symmetrize_input)[0]


@one_program()
def eig(a: ArrayLike) -> EigResult:
    """Computes the eigenvalues and right eigenvectors of square matrices; they are complex.

    Shapes:     a: T[..., n, n] -> complex T[..., n], in no order, and complex T[..., n, n].

    Raises:
        TypeError: `a` is not a matrix.
        ValueError: the matrices are not square.

    Example:
        >>> jnp.linalg.eig(jnp.array([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues
        Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    a = inexact("eig", a)
    return EigResult(*lax_linalg.eig(a, compute_left_eigenvectors=False))


@one_program()
def eigvals(a: ArrayLike) -> Array:
    """Computes the eigenvalues of square matrices; they are complex, in no order.

    Shapes:     a: T[..., n, n] -> complex T[..., n].

    Raises:
        TypeError: `a` is not a matrix.
        ValueError: the matrices are not square.

    Example:
        >>> jnp.linalg.eigvals(jnp.array([[0.0, 1.0], [-1.0, 0.0]]))
        Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    a = inexact("eigvals", a)
    (values,) = lax_linalg.eig(a, compute_left_eigenvectors=False, compute_right_eigenvectors=False)
    return values


class SlogdetResult(NamedTuple):
    """The sign and the logarithm of the determinant that `slogdet` returns.

    Attributes:
        sign: a number of absolute value 1, or 0; T[...].
        logabsdet: the logarithm of the absolute determinant, real T[...].
    """

    sign: Array
    logabsdet: Array


@one_program()
def det(a: ArrayLike) -> Array:
    """Computes the determinants of square matrices.

    Shapes:     a: T[..., n, n] -> T[...].
    Dtypes:     float32, float64 and complex; integers become floats.
    Derivative: the cofactors, also of a singular matrix.

    Raises:
        ValueError: `a` is not a square matrix or a batch of them.

    Example:
        >>> jnp.linalg.det(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
        Array(-2., dtype=float32)
    """
    a = square_matrices("det", a)
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


def _minor(a: Array, rows: tuple[int, int], columns: tuple[int, int]) -> Any:
    """The determinant of the entries in two rows and two columns."""
    (top, bottom), (left, right) = rows, columns
    return a[..., top, left] * a[..., bottom, right] - a[..., top, right] * a[..., bottom, left]


@custom_jvp
def _det(a: Array) -> Any:
    return _det_of_factors(*lu(a)[:2])


@_det.defjvp
def _det_jvp(primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    (a,), (a_dot,) = primals, tangents
    factors, pivots, permutation = lu(a)
    cofactors = _cofactors(factors, pivots, permutation)
    return _det_of_factors(factors, pivots), sum_of(cofactors * a_dot, (-2, -1))


def _det_of_factors(factors: Array, pivots: Array) -> Any:
    sign, logarithm = _slogdet_of_factors(factors, pivots)
    return sign * unary.exp(logarithm)


def _slogdet_of_factors(factors: Array, pivots: Array) -> tuple[Any, Any]:
    on_diagonal = diagonal(factors, 0, -2, -1)
    sizes = unary.abs(on_diagonal)
    turns = where(sizes == 0, on_diagonal, on_diagonal / sizes)
    sign = _sign_of_exchanges(pivots, factors.dtype) * prod(turns, -1)
    # A sum of infinities of both signs would be NaN.
    logarithm = where(any_of(sizes == 0, -1), -np.inf, sum_of(unary.log(sizes), -1))
    return sign, logarithm


def _sign_of_exchanges(pivots: Array, dtype: np.dtype[Any]) -> Any:
    """The determinant of the permutation that a list of exchanges is, 1 or -1."""
    is_exchange = pivots != arange(pivots.shape[-1], dtype=pivots.dtype)
    return prod(1 - 2 * is_exchange.astype(dtype), -1)


def _cofactors(factors: Array, pivots: Array, permutation: Array) -> Any:
    """The derivative of the determinant: adj(a)ᵀ, of matrices a with P a = L U.

    adj(a) = det(P) adj(U) L⁻¹ P.  Where the diagonal of U has no zero, adj(U) = det(U) U⁻¹.  Where
    it has one, in row k, let V be U with 1 in its place: then adj(U) = det(V) v wᵀ, with column k
    and row k of V⁻¹.  Where it has more, zeros are returned: right if two or more are missing from
    the rank.
    """
    on_diagonal = diagonal(factors, 0, -2, -1)
    is_zero = on_diagonal == 0
    zeros = is_zero.astype(factors.dtype)
    identity = kernels.identity_like(factors)
    start = triangular_solve(
        factors,
        kernels.rows_at(identity, permutation),
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
    return kernels.transposed(scale * adjugate)


@one_program(static=("method",))
def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """Computes the signs and the logarithms of the determinants of square matrices.

    Shapes:     a: T[..., n, n] -> T[...], real T[...].
    Dtypes:     float32, float64 and complex; integers become floats.
    Derivative: the inverse; of a regular matrix.

    Args:
        a: square matrices.
        method: by which factorization, "lu" (or None) or, of real matrices, "qr".

    Raises:
        ValueError: `a` is not a square matrix or a batch of them; or the method is not known.
        NotImplementedError: method "qr" is asked for complex matrices.

    Example:
        >>> jnp.linalg.slogdet(jnp.array([[0.0, 1.0], [1.0, 0.0]]))
        SlogdetResult(sign=Array(-1., dtype=float32), logabsdet=Array(0., dtype=float32))
    """
    a = square_matrices("slogdet", a)
    check_choice("numpy.linalg.slogdet", "method", method, ("lu", "qr", None))
    if method != "qr":
        return SlogdetResult(*_slogdet_by_lu(a))
    fits = a.dtype.kind != "c"
    problem = "method 'qr' is for real matrices."
    fix = "method='lu'"
    check_that(
        fits, "numpy.linalg.slogdet", problem, error=NotImplementedError, a=aval_of(a), fix=fix
    )
    return SlogdetResult(*_slogdet_by_qr(a))


@custom_jvp
def _slogdet_by_lu(a: Array) -> tuple[Any, Any]:
    return _slogdet_of_factors(*lu(a)[:2])


@_slogdet_by_lu.defjvp
def _slogdet_by_lu_jvp(primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    factors, pivots, permutation = lu(primals[0])
    outs = _slogdet_of_factors(factors, pivots)
    identity = kernels.identity_like(factors)
    inverse = solve_by_lu(factors, permutation, identity)
    return outs, _slogdet_tangents(outs[0], inverse, tangents[0])


@custom_jvp
def _slogdet_by_qr(a: Array) -> tuple[Any, Any]:
    reflections, scales = geqrf(a)
    on_diagonal = diagonal(reflections, 0, -2, -1)
    # A reflection has determinant -1, but for scale 0 it is the identity.
    signs = unary.sign(on_diagonal) * where(scales == 0, 1, -1).astype(a.dtype)
    return prod(signs, -1), sum_of(unary.log(unary.abs(on_diagonal)), -1)


@_slogdet_by_qr.defjvp
def _slogdet_by_qr_jvp(primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    (a,) = primals
    outs = _slogdet_by_qr(a)
    inverse = solve_square(a, kernels.identity_like(a))
    return outs, _slogdet_tangents(outs[0], inverse, tangents[0])


def _slogdet_tangents(sign: Array, inverse: Array, a_dot: Array) -> tuple[Any, Any]:
    """Of log det(a) the tangent is tr(a⁻¹ a'): its real part moves the logarithm, i times the
    imaginary part turns the sign.
    """
    change = sum_of(kernels.transposed(inverse) * a_dot, (-2, -1))
    if change.dtype.kind != "c":
        return 0 * sign, change
    return sign * (1j * unary.imag(change)), unary.real(change)
