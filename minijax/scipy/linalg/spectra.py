"""Eigenvalues, and the forms of matrices that show them."""

from __future__ import annotations

from typing import Any, Literal, overload

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.lax.control_flow.looping import fori_loop
from minijax.lax.linalg import kernels
from minijax.lax.linalg.eig import hessenberg as hessenberg_form
from minijax.lax.linalg.eig import schur as schur_form
from minijax.lax.linalg.eigh import eigh as eigh_decomposition
from minijax.lax.linalg.qr import householder_product
from minijax.lax.slicing import dynamic_slice_in_dim, dynamic_update_slice_in_dim
from minijax.numpy.arithmetic import sqrt
from minijax.numpy.functional import vectorize
from minijax.numpy.joining import stack
from minijax.numpy.matrices import triu
from minijax.numpy.one_program import one_program
from minijax.numpy.padding import pad
from minijax.numpy.selection import where
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.scipy.linalg import operands


@overload
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = ...,
    lower: bool = ...,
    eigvals_only: Literal[False] = ...,
    overwrite_a: bool = ...,
    overwrite_b: bool = ...,
    turbo: bool = ...,
    eigvals: None = ...,
    type: int = ...,
    check_finite: bool = ...,
) -> tuple[Array, Array]: ...
@overload
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = ...,
    lower: bool = ...,
    *,
    eigvals_only: Literal[True],
    overwrite_a: bool = ...,
    overwrite_b: bool = ...,
    turbo: bool = ...,
    eigvals: None = ...,
    type: int = ...,
    check_finite: bool = ...,
) -> Array: ...
@overload
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = ...,
    lower: bool = ...,
    eigvals_only: bool = ...,
    overwrite_a: bool = ...,
    overwrite_b: bool = ...,
    turbo: bool = ...,
    eigvals: None = ...,
    type: int = ...,
    check_finite: bool = ...,
) -> Array | tuple[Array, Array]: ...


def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Array | tuple[Array, Array]:
    """The eigenvalues and eigenvectors of Hermitian matrices: (w, V) with a V = V diag(w), or w.

    Shapes:     a: T[..., n, n] -> real T[..., n], T[..., n, n].
    Dtypes:     float32, float64 and complex; integers become floats.
    Derivative: as `lax.linalg.eigh`.
    Source:     mirrors jax.scipy.linalg.eigh (0.10).

    Args:
        a: matrices, whose Hermitian part is taken.
        b: the other matrix of a generalized problem; not implemented.
        lower: which triangle the algorithm reads; both are equal.
        eigvals_only: whether the eigenvalues alone are wanted.
        overwrite_a: ignored.
        overwrite_b: ignored.
        turbo: ignored.
        eigvals: which eigenvalues are wanted; not implemented.
        type: of the generalized problem; 1.
        check_finite: ignored: where the iteration does not converge, the results are NaN.

    Raises:
        NotImplementedError: b, eigvals or another type is given.
        TypeError: `a` is no matrix.

    Example:
        >>> minijax.scipy.linalg.eigh(jnp.array([[3.0, 0.0], [0.0, 2.0]]), eigvals_only=True)
        Array([2., 3.], dtype=float32)
    """
    if b is not None or eigvals is not None or type != 1:
        error(
            NotImplementedError,
            "scipy.linalg.eigh",
            "generalized problems and subsets of the eigenvalues are not implemented.",
            expected="b=None, eigvals=None, type=1",
        )
    return _eigh(a, lower, eigvals_only)


@one_program(static=("lower", "eigvals_only"))
def _eigh(a: Any, lower: bool, eigvals_only: bool) -> Any:
    vectors, values = eigh_decomposition(operands.inexact_or_nested("eigh", a), lower=lower)
    return values if eigvals_only else (values, vectors)


@overload
def hessenberg(
    a: ArrayLike, *, calc_q: Literal[False] = ..., overwrite_a: bool = ..., check_finite: bool = ...
) -> Array: ...
@overload
def hessenberg(
    a: ArrayLike, *, calc_q: Literal[True], overwrite_a: bool = ..., check_finite: bool = ...
) -> tuple[Array, Array]: ...
@overload
def hessenberg(
    a: ArrayLike, *, calc_q: bool = ..., overwrite_a: bool = ..., check_finite: bool = ...
) -> Array | tuple[Array, Array]: ...


@one_program(static=("calc_q", "overwrite_a", "check_finite"))
def hessenberg(
    a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array | tuple[Array, Array]:
    """H, zero below its first subdiagonal, and if wanted the unitary Q: Q H Qᴴ = a.

    Shapes:     a: T[..., n, n] -> T[..., n, n], T[..., n, n].
    Dtypes:     float32, float64, complex64, complex128.
    Derivative: none.
    Source:     mirrors jax.scipy.linalg.hessenberg (0.10).

    Args:
        a: square matrices.
        calc_q: whether (H, Q) is wanted; else H.
        overwrite_a: ignored.
        check_finite: ignored.

    Raises:
        TypeError: `a` is no matrix, or its dtype is not inexact.
        ValueError: the matrices are not square.

    Example:
        >>> minijax.scipy.linalg.hessenberg(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
        Array([[1., 2.],
               [3., 4.]], dtype=float32)
    """
    reflections, scales = hessenberg_form(a)
    form = triu(reflections, -1)
    if not calc_q:
        return form
    if not form.shape[-1]:
        return form, form
    # The reflections leave the first dimension alone.
    inner = householder_product(reflections[..., 1:, :-1], scales)
    ends = [(0, 0)] * (form.ndim - 2) + [(1, 0), (1, 0)]
    return form, pad(inner, ends).at[..., 0, 0].set(1)


@one_program(static=("output",))
def schur(a: ArrayLike, output: str = "real") -> tuple[Array, Array]:
    """The Schur decomposition: T, upper triangular, and Z, unitary, with Z T Zᴴ = a.

    Real matrices have a real T with a block of two rows and columns for each pair of complex
    eigenvalues, unless `output` is "complex".

    Shapes:     a: T[..., n, n] -> T[..., n, n], T[..., n, n].
    Dtypes:     float32, float64, complex64, complex128.
    Derivative: none.
    Source:     mirrors jax.scipy.linalg.schur (0.10).

    Args:
        a: square matrices.
        output: "real" or "complex".

    Raises:
        TypeError: `a` is no matrix, or its dtype is not inexact.
        ValueError: the matrices are not square, or the output is not known.

    Example:
        >>> minijax.scipy.linalg.schur(jnp.array([[1.0, 2.0], [0.0, 3.0]]))[0]
        Array([[1., 2.],
               [0., 3.]], dtype=float32)
    """
    operands.check_choice("schur", "output", output, ("real", "complex"))
    if output == "complex":
        a = operands.inexact("schur", a)
        a = a.astype(dtypes.to_complex_dtype(a.dtype))
    form, vectors = schur_form(a)
    return form, vectors


@one_program(static=("check_finite",))
def rsf2csf(
    T: ArrayLike,  # noqa: N803  SciPy's name
    Z: ArrayLike,  # noqa: N803  SciPy's name
    check_finite: bool = True,
) -> tuple[Array, Array]:
    """The complex Schur form of matrices from their real one: Z T Zᴴ stays.

    Shapes:     T: T[..., n, n], Z: T[..., n, n] -> complex T[..., n, n], complex T[..., n, n].
    Dtypes:     floats and complex, promoted; the results are complex.
    Source:     mirrors jax.scipy.linalg.rsf2csf (0.10); Golub and Van Loan, §7.4.

    Args:
        T: the real Schur form.
        Z: the Schur vectors.
        check_finite: ignored.

    Raises:
        ValueError: `T` or `Z` is not square, or they are of different sizes.

    Example:
        >>> t, z = minijax.scipy.linalg.rsf2csf(jnp.array([[0.0, 2.0], [-2.0, 0.0]]), jnp.eye(2))
        >>> t[0, 0].round(3)
        Array(0.+2.j, dtype=complex64)
    """
    form, vectors = operands.inexact_together("rsf2csf", T, Z)
    operands.check_square("rsf2csf", form, "T")
    operands.check_square("rsf2csf", vectors, "Z")
    dtype = dtypes.to_complex_dtype(form.dtype)
    if form.shape[-1] != vectors.shape[-1]:
        error(
            ValueError,
            "scipy.linalg.rsf2csf",
            "T and Z are of different sizes.",
            got={"T": aval_of(form), "Z": aval_of(vectors)},
        )
    turned = vectorize(_without_blocks, signature="(n,n),(n,n)->(n,n),(n,n)")
    form, vectors = turned(form.astype(dtype), vectors.astype(dtype))
    return form, vectors


def complex_schur(x: Any) -> tuple[Any, Any]:
    """The complex Schur form and its vectors, with real eigenvalues of real matrices exactly so."""
    form, vectors = schur_form(x)
    return (form, vectors) if form.dtype.kind == "c" else rsf2csf(form, vectors)


def _without_blocks(form: Any, vectors: Any) -> tuple[Any, Any]:
    """Makes each block of two rows triangular, from the last one on."""
    size = form.shape[0]
    if size < 2:
        return form, vectors

    def step(i: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        form, vectors = state
        first = size - 2 - i
        turn = _turn_of_block(
            dynamic_slice_in_dim(dynamic_slice_in_dim(form, first, 2, 0), first, 2, 1)
        )
        rows = kernels.product(kernels.adjoint(turn), dynamic_slice_in_dim(form, first, 2, 0))
        form = dynamic_update_slice_in_dim(form, rows, first, 0)
        form, vectors = (
            dynamic_update_slice_in_dim(
                x, kernels.product(dynamic_slice_in_dim(x, first, 2, 1), turn), first, 1
            )
            for x in (form, vectors)
        )
        return form, vectors

    form, vectors = fori_loop(0, size - 1, step, (form, vectors))
    return triu(form), vectors


def _turn_of_block(block: Any) -> Any:
    """A unitary matrix Q for which Qᴴ b Q is triangular: its first column is an eigenvector."""
    (a, b), (c, d) = block
    half = (a - d) / 2
    shift = half + sqrt(half * half + b * c)
    size = (abs(shift) ** 2 + abs(c) ** 2) ** 0.5
    negligible = abs(c) <= dtypes.finfo(block.dtype).eps * (abs(a) + abs(d))
    safe = where(negligible, 1, size)
    x, y = where(negligible, 1, shift / safe), where(negligible, 0, c / safe)
    return stack([stack([x, -y.conj()]), stack([y, x.conj()])])
