"""Factorizations of matrices, their eigenvalues and singular values.

It also holds what all functions of linear algebra make of their arguments, and refuse.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, overload

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
from minijax.lax.sorting import sort
from minijax.numpy import promotion
from minijax.numpy.promotion import check_choice, check_that, one_program
from minijax.numpy.shaping import array_argument
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array


def inexact(name: str, x: Any) -> Array:
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


def matrices(name: str, x: Any, argument: str = "a") -> Array:
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


def square_matrices(name: str, x: Any, argument: str = "a") -> Array:
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
        error(
            IncompatibleShapesError,
            f"numpy.linalg.{name}",
            f"the matrices in {argument} are not square.",
            got={argument: aval_of(x)},
            expected="T[..., n, n]",
        )


def check_not_both(name: str, **arguments: object) -> None:
    """Refuses two names of one argument that are both given.

    Raises:
        ValueError: both are given.
    """
    if None not in arguments.values():
        first, second = arguments
        error(
            ValueError,
            f"numpy.linalg.{name}",
            f"{first} and {second} are two names of one argument.",
            got=arguments,
            fix="give one",
        )


def squared(x: Array) -> Array:
    """|x|², whose derivative is zero at zero."""
    return x * x if x.dtype.kind != "c" else unary.real(x * unary.conj(x))


class EigResult(NamedTuple):
    """What `eig` returns.

    Attributes:
        eigenvalues: complex, T[..., n].
        eigenvectors: one in each column, T[..., n, n].
    """

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """What `eigh` returns.

    Attributes:
        eigenvalues: real and ascending, T[..., n].
        eigenvectors: one in each column, T[..., n, n].
    """

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """What `qr` returns.

    Attributes:
        Q: matrices with orthonormal columns.
        R: upper triangles.
    """

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """What `svd` returns.

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
    Source:     mirrors jax.numpy.linalg.cholesky (0.10).

    Args:
        a: Hermitian positive definite matrices.
        upper: whether U with a = Uᴴ U is wanted in place of L with a = L Lᴴ.
        symmetrize_input: whether (a + aᴴ) / 2 is factored, instead of reading one triangle.

    Raises:
        TypeError: `a` is no matrix.
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
    Source:     mirrors jax.numpy.linalg.qr (0.10).

    Args:
        a: matrices.
        mode: "reduced" (or "full", its old name), k = min(m, n); "complete", k = m; "r", R alone;
            "raw", the reflections whose product is Q, in rows, and their scales.

    Raises:
        ValueError: the mode is not known.
        TypeError: `a` is no matrix.
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
    Source:     mirrors jax.numpy.linalg.svd (0.10).

    Args:
        a: matrices.
        full_matrices: whether U and Vh are completed to square matrices.
        compute_uv: whether U and Vh are wanted, and not S alone.
        hermitian: whether a is Hermitian, so that its eigenvectors serve.
        subset_by_index: the indices [start, end) of the singular values wanted.

    Raises:
        TypeError: `a` is no matrix.
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
    Source:     mirrors jax.numpy.linalg.svdvals (0.10).

    Raises:
        TypeError: `x` is no matrix.
        NotImplementedError: there is no kernel for the dtype, such as bfloat16.

    Example:
        >>> jnp.linalg.svdvals(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
        Array([3., 2.], dtype=float32)
    """
    return lax_linalg.svd(inexact("svdvals", x), compute_uv=False)


@one_program(static=("UPLO", "symmetrize_input"))
def eigh(
    a: ArrayLike,
    UPLO: str | None = None,  # noqa: N803  NumPy's name
    symmetrize_input: bool = True,
) -> EighResult:
    """Computes the eigenvalues and orthonormal eigenvectors of Hermitian matrices.

    Shapes:     a: T[..., n, n] -> real T[..., n], ascending, and T[..., n, n].
    Dtypes:     float32, float64 and complex; integers become floats.
    Source:     mirrors jax.numpy.linalg.eigh (0.10).

    Args:
        a: Hermitian matrices.
        UPLO: which triangle is read where the input is not symmetrized, "L" or "U".
        symmetrize_input: whether (a + aᴴ) / 2 is decomposed.

    Raises:
        ValueError: UPLO is neither "L" nor "U" nor None.
        TypeError: `a` is no matrix.
        IncompatibleShapesError: the matrices are not square.

    Example:
        >>> jnp.linalg.eigh(jnp.array([[3.0, 0.0], [0.0, 2.0]])).eigenvalues
        Array([2., 3.], dtype=float32)
    """
    return EighResult(*_eigh("eigh", a, UPLO, symmetrize_input))


def _eigh(name: str, a: Any, triangle: str | None, symmetrize_input: bool) -> tuple[Any, Any]:
    check_choice(f"numpy.linalg.{name}", "UPLO", triangle, ("L", "U", None))
    vectors, values = lax_linalg.eigh(
        inexact(name, a), lower=triangle != "U", symmetrize_input=symmetrize_input
    )
    return values, vectors


@one_program(static=("UPLO", "symmetrize_input"))
def eigvalsh(
    a: ArrayLike,
    UPLO: str | None = "L",  # noqa: N803  NumPy's name
    *,
    symmetrize_input: bool = True,
) -> Array:
    """Computes the eigenvalues of Hermitian matrices, in ascending order.

    Shapes:     a: T[..., n, n] -> real T[..., n].
    Source:     mirrors jax.numpy.linalg.eigvalsh (0.10).

    Args:
        a: Hermitian matrices.
        UPLO: which triangle is read where the input is not symmetrized, "L" or "U".
        symmetrize_input: whether the eigenvalues are those of (a + aᴴ) / 2.

    Raises:
        ValueError: UPLO is neither "L" nor "U" nor None.
        TypeError: `a` is no matrix.
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
    Source:     mirrors jax.numpy.linalg.eig (0.10).

    Raises:
        TypeError: `a` is no matrix.
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
    Source:     mirrors jax.numpy.linalg.eigvals (0.10).

    Raises:
        TypeError: `a` is no matrix.
        ValueError: the matrices are not square.

    Example:
        >>> jnp.linalg.eigvals(jnp.array([[0.0, 1.0], [-1.0, 0.0]]))
        Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    a = inexact("eigvals", a)
    (values,) = lax_linalg.eig(a, compute_left_eigenvectors=False, compute_right_eigenvectors=False)
    return values
