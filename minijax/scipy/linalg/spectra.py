"""Eigenvalues and Schur forms of matrices, and functions of matrices by way of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, overload

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.lax.control_flow.branching import cond
from minijax.lax.control_flow.looping import fori_loop, while_loop
from minijax.lax.control_flow.scanning import scan
from minijax.lax.linalg import kernels
from minijax.lax.linalg.eigenvalues import eigh as eigh_decomposition
from minijax.lax.linalg.eigenvalues import hessenberg as hessenberg_form
from minijax.lax.linalg.eigenvalues import schur as schur_form
from minijax.lax.linalg.factorizations import householder_product
from minijax.lax.linalg.lu import solve_square, triangular_solve
from minijax.lax.slicing import dynamic_slice_in_dim, dynamic_update_slice_in_dim
from minijax.numpy import promotion
from minijax.numpy.creation import asarray, full, zeros_like
from minijax.numpy.elementary import ceil, log2, sqrt
from minijax.numpy.joining import stack
from minijax.numpy.logic import isfinite
from minijax.numpy.matrices import diag, eye, triu
from minijax.numpy.padding import pad
from minijax.numpy.promotion import check_choice, check_that, one_program
from minijax.numpy.ranges import arange
from minijax.numpy.selection import where
from minijax.numpy.ufuncs import vectorize
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.scipy.linalg.systems import check_square, inexact, inexact_or_nested, inexact_together
from minijax.transforms.autodiff import grad


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
    """Eigenvalues and eigenvectors of a Hermitian matrix: (w, V) with a V = V diag(w), or w.

    Shapes:     a: T[..., n, n] -> real T[..., n], T[..., n, n].
    Dtypes:     float32, float64 and complex; integers become floats.
    Derivative: as `lax.linalg.eigh`.

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
        TypeError: `a` is not a matrix.

    Example:
        >>> minijax.scipy.linalg.eigh(jnp.array([[3.0, 0.0], [0.0, 2.0]]), eigvals_only=True)
        Array([2., 3.], dtype=float32)
    """
    if b is not None or eigvals is not None or type != 1:
        problem = "generalized problems and subsets of the eigenvalues are not implemented."
        expected = "b=None, eigvals=None, type=1"
        error(NotImplementedError, "scipy.linalg.eigh", problem, expected=expected)
    return _eigh(a, lower, eigvals_only)


@one_program(static=("lower", "eigvals_only"))
def _eigh(a: ArrayLike, lower: bool, eigvals_only: bool) -> Any:
    vectors, values = eigh_decomposition(inexact_or_nested("eigh", a), lower=lower)
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
    """Hessenberg form H, zero below the first subdiagonal, and if wanted Q with Q H Qᴴ = a.

    Shapes:     a: T[..., n, n] -> T[..., n, n], T[..., n, n].
    Dtypes:     float32, float64, complex64, complex128.
    Derivative: none.

    Args:
        a: square matrices.
        calc_q: whether (H, Q) is wanted; else H.
        overwrite_a: ignored.
        check_finite: ignored.

    Raises:
        TypeError: `a` is not a matrix, or its dtype is not inexact.
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
    """Schur decomposition: an upper triangular T and a unitary Z with Z T Zᴴ = a.

    Real matrices have a real T with a block of two rows and columns for each pair of complex
    eigenvalues, unless `output` is "complex".

    Shapes:     a: T[..., n, n] -> T[..., n, n], T[..., n, n].
    Dtypes:     float32, float64, complex64, complex128.
    Derivative: none.

    Args:
        a: square matrices.
        output: "real" or "complex".

    Raises:
        TypeError: `a` is not a matrix, or its dtype is not inexact.
        ValueError: the matrices are not square, or the output is not known.

    Example:
        >>> minijax.scipy.linalg.schur(jnp.array([[1.0, 2.0], [0.0, 3.0]]))[0]
        Array([[1., 2.],
               [0., 3.]], dtype=float32)
    """
    check_choice("scipy.linalg.schur", "output", output, ("real", "complex"))
    if output == "complex":
        a = inexact("schur", a)
        a = a.astype(dtypes.to_complex_dtype(a.dtype))
    form, vectors = schur_form(a)
    return form, vectors


@one_program(static=("check_finite",))
def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """Converts a real Schur form to a complex one: Z T Zᴴ stays the same.

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
    form, vectors = inexact_together("rsf2csf", T, Z)
    check_square("rsf2csf", form, "T")
    check_square("rsf2csf", vectors, "Z")
    dtype = dtypes.to_complex_dtype(form.dtype)
    fits = form.shape[-1] == vectors.shape[-1]
    problem = "T and Z are of different sizes."
    check_that(fits, "scipy.linalg.rsf2csf", problem, T=aval_of(form), Z=aval_of(vectors))
    turned = vectorize(_without_blocks, signature="(n,n),(n,n)->(n,n),(n,n)")
    form, vectors = turned(form.astype(dtype), vectors.astype(dtype))
    return form, vectors


def complex_schur(x: Array) -> tuple[Array, Array]:
    """The complex Schur form and its vectors, with real eigenvalues of real matrices exactly so."""
    form, vectors = schur_form(x)
    return (form, vectors) if form.dtype.kind == "c" else rsf2csf(form, vectors)


def _without_blocks(form: Array, vectors: Array) -> tuple[Array, Array]:
    """Makes each block of two rows triangular, from the last one on."""
    size = form.shape[0]
    if size < 2:
        return form, vectors

    def step(i: ArrayLike, state: tuple[Any, Any]) -> tuple[Array, Array]:
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


def _turn_of_block(block: Array) -> Array:
    """A unitary matrix Q for which Qᴴ b Q is triangular: its first column is an eigenvector."""
    (a, b), (c, d) = block
    half = (a - d) / 2
    shift = half + sqrt(half * half + b * c)
    size = (abs(shift) ** 2 + abs(c) ** 2) ** 0.5
    negligible = abs(c) <= dtypes.finfo(block.dtype).eps * (abs(a) + abs(d))
    safe = where(negligible, 1, size)
    x, y = where(negligible, 1, shift / safe), where(negligible, 0, c / safe)
    return stack([stack([x, -y.conj()]), stack([y, x.conj()])])


_NAME = "scipy.linalg.eigh_tridiagonal"


@overload
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: Literal[False] = ...,
    select: str = ...,
    select_range: tuple[float, float] | None = ...,
    tol: float | None = ...,
    key: ArrayLike | None = ...,
) -> tuple[Array, Array]: ...
@overload
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: Literal[True],
    select: str = ...,
    select_range: tuple[float, float] | None = ...,
    tol: float | None = ...,
    key: ArrayLike | None = ...,
) -> Array: ...
@overload
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = ...,
    select: str = ...,
    select_range: tuple[float, float] | None = ...,
    tol: float | None = ...,
    key: ArrayLike | None = ...,
) -> Array | tuple[Array, Array]: ...


def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: ArrayLike | None = None,
) -> Array | tuple[Array, Array]:
    """Eigenvalues and eigenvectors of a Hermitian tridiagonal matrix: (w, V), or w.

    Shapes:     d: T[n], e: T[n - 1] -> real T[k], T[n, k].
    Dtypes:     float32, float64, complex64, complex128, the same of both.
    Derivative: that of `eigh`, if eigenvectors are wanted; else none in reverse mode.
    Source:     mirrors jax.scipy.linalg.eigh_tridiagonal (0.10); Barth, Martin and Wilkinson, 1967.

    Args:
        d: the diagonal, whose real part is taken.
        e: what stands above the diagonal; below stands its conjugate.
        eigvals_only: whether the eigenvalues alone are wanted, which takes far less work.
        select: "a" for all; "i" for those with indices in `select_range`.
        select_range: the first and the last index.
        tol: the absolute error of eigenvalues allowed, where they alone are wanted; by default what
            rounding leaves.
        key: a random key; not needed.

    Raises:
        TypeError: the dtypes differ, or are neither float32, float64 nor complex.
        ValueError: the shapes do not fit together, or the selection is not known.
        NotImplementedError: `select` is "v".

    Example:
        >>> minijax.scipy.linalg.eigh_tridiagonal(jnp.array([1.0, 1.0]), jnp.array([2.0]))[0]
        Array([-1.,  3.], dtype=float32)
    """
    d, e = (asarray(promotion.check_array(_NAME, x, n)) for x, n in ((d, "d"), (e, "e")))
    _check_diagonals(d, e)
    first, last = _selected(d.shape[0], select, select_range)
    if eigvals_only:
        return _values(d, e, first=first, last=last, tol=tol)
    return _vectors(d, e, first=first, last=last)


def _check_diagonals(d: Array, e: Array) -> None:
    got = {"d": aval_of(d), "e": aval_of(e)}
    fits = d.ndim == 1 and e.shape == (max(d.shape[0] - 1, 0),)
    problem = "the diagonals do not fit together."
    check_that(fits, _NAME, problem, got=got, expected="d: T[n], e: T[n - 1]")
    fits = d.dtype == e.dtype and dtypes.real_dtype_of(d.dtype).name in ("float32", "float64")
    problem = "there is no algorithm for these dtypes."
    expected = "float32, float64, complex64 or complex128, the same of both"
    check_that(fits, _NAME, problem, error=TypeError, got=got, expected=expected)


def _selected(size: int, select: str, select_range: tuple[float, float] | None) -> tuple[int, int]:
    """The first index wanted, and the one after the last."""
    check_choice("scipy.linalg.eigh_tridiagonal", "select", select, ("a", "i", "v"))
    fits = select != "v"
    problem = "values cannot be selected."
    check_that(fits, _NAME, problem, error=NotImplementedError, got="select: 'v'", fix="select='i'")
    if select == "a":
        return 0, size
    if select_range is None or not 0 <= select_range[0] <= select_range[1] < size:
        got = f"select_range: {select_range}"
        expected = f"two indices in order, from 0 to {size - 1}"
        error(ValueError, _NAME, "select_range is no range of indices.", got=got, expected=expected)
    return int(select_range[0]), int(select_range[1]) + 1


@one_program(static=("first", "last"))
def _vectors(d: Array, e: Array, first: int, last: int) -> tuple[Array, Array]:
    lower = e.conj() if e.dtype.kind == "c" else e
    vectors, values = eigh_decomposition(diag(d) + diag(lower, -1), symmetrize_input=False)
    return values[first:last], vectors[:, first:last]


@one_program(static=("first", "last", "tol"))
def _values(d: Array, e: Array, first: int, last: int, tol: float | None) -> Array:
    d, ends = d.real, pad(abs(e), (1, 1))
    if not d.shape[0]:
        return d
    # The circles of Gershgorin hold all eigenvalues: divided by the bound, these are at most 1.
    bound = (abs(d) + ends[:-1] + ends[1:]).max()
    scale = where(bound == 0, 1, bound)
    allowed: Any = float(dtypes.finfo(d.dtype).eps)
    if tol is not None:
        allowed = where(tol / scale > allowed, tol / scale, allowed)
    wanted = arange(first, last)
    rows = d / scale, (ends[:-1] / scale) ** 2

    def goes_on(state: tuple[Any, Any]) -> Array:
        low, high = state
        return (high - low > allowed).any()

    def step(state: tuple[Any, Any]) -> tuple[Array, Array]:
        low, high = state
        middle = (low + high) / 2
        is_above = _count_below(*rows, middle) <= wanted
        return where(is_above, middle, low), where(is_above, high, middle)

    start = full(wanted.shape, 1 + allowed, d.dtype)
    low, high = while_loop(goes_on, step, (-start, start))
    return scale * (low + high) / 2


def _count_below(d: Array, squares: Array, x: Array) -> Array:
    """How many eigenvalues, of at most 1, are less than each of some numbers x.

    By Sylvester's law of inertia it is the number of negative pivots of T - x.
    """
    # No pivot is so small that dividing by it overflows.
    smallest = float(dtypes.finfo(d.dtype).tiny)

    def step(state: tuple[Any, Any], row: tuple[Any, Any]) -> tuple[tuple[Array, Array], None]:
        pivot, count = state
        diagonal, square = row
        pivot = diagonal - x - square / pivot
        pivot = where(abs(pivot) < smallest, -smallest, pivot)
        return (pivot, count + (pivot < 0)), None

    start = zeros_like(x) + 1, zeros_like(x, dtype=np.int32)
    (_, count), _ = scan(step, start, (d, squares))
    return count


# The largest 1-norm for which Padé's approximant of a degree has an error of rounding (Higham,
# 2005, table 2.3; for float32, Al-Mohy and Higham, 2009).
_PADE = {"float32": (7, 3.925724783138660), "float64": (13, 5.371920351148152)}


@one_program(static=("upper_triangular", "max_squarings"))
def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """Matrix exponential, 1 + A + A² / 2 + A³ / 6 + ...

    Shapes:     A: T[..., n, n] -> T[..., n, n].
    Dtypes:     float32, float64, complex64, complex128; integers become floats.
    Source:     mirrors jax.scipy.linalg.expm (0.10); Higham, "The scaling and squaring method for
                the matrix exponential revisited", 2005.

    Args:
        A: square matrices.
        upper_triangular: whether only the upper triangle is read.
        max_squarings: how often an approximant may be squared; a matrix of so large a norm that it
            takes more has NaN for its exponential.

    Raises:
        TypeError: there is no approximant for the dtype.
        ValueError: the matrices are not square.

    Example:
        >>> minijax.scipy.linalg.expm(jnp.array([[0.0, 1.0], [0.0, 0.0]]))
        Array([[1., 1.],
               [0., 1.]], dtype=float32)
    """
    x = inexact("expm", A, "A")
    check_square("expm", x, "A")
    fits = dtypes.real_dtype_of(x.dtype).name in _PADE
    problem = f"there is no approximant for {x.dtype.name}."
    fix = "A.astype('float32')"
    check_that(fits, "scipy.linalg.expm", problem, error=TypeError, A=aval_of(x), fix=fix)
    if not x.shape[-1]:
        return x

    def exponential(x: Array) -> Array:
        return _expm(triu(x) if upper_triangular else x, upper_triangular, max_squarings)

    return vectorize(exponential, signature="(n,n)->(n,n)")(x)


def _expm(x: Array, upper_triangular: bool, max_squarings: int) -> Array:
    degree, largest = _PADE[dtypes.real_dtype_of(x.dtype).name]
    norm = abs(x).sum(0).max()
    halvings = ceil(log2(norm / largest))
    # What is not finite is no number of squarings; it makes the result NaN by itself.
    count = where(halvings > 0, halvings, 0).astype(np.int32)
    scaled = x * (0.5 ** count.astype(dtypes.real_dtype_of(x.dtype))).astype(x.dtype)
    numerator, denominator = _pade(scaled, degree)
    if upper_triangular:
        root = triangular_solve(denominator, numerator, left_side=True)
    else:
        root = solve_square(denominator, numerator)

    def squared_if_more(i: ArrayLike, y: Array) -> Array:
        return cond(i < count, lambda y: kernels.product(y, y), lambda y: y, y)

    # A loop of fixed length has a derivative in reverse mode.
    out = fori_loop(0, max_squarings, squared_if_more, root)
    return where(count > max_squarings, np.nan, out)


def _pade(x: Array, degree: int) -> tuple[Array, Array]:
    """Numerator and denominator of the approximant: V + U and V - U, U odd in x and V even."""
    b = _pade_coefficients(degree)
    square = kernels.product(x, x)
    powers = [eye(x.shape[0], dtype=x.dtype), square, kernels.product(square, square)]
    powers.append(kernels.product(powers[2], square))

    def combined(first: int, shift: int) -> Array:
        indices = range(first, degree + 1, 2)
        terms = [b[k] * power for k, power in zip(indices, powers[shift:], strict=False)]
        return sum(terms[1:], terms[0])

    odd, even = combined(1, 0), combined(0, 0)
    if degree > 7:
        odd = odd + kernels.product(powers[3], combined(9, 1))
        even = even + kernels.product(powers[3], combined(8, 1))
    odd = kernels.product(x, odd)
    return even + odd, even - odd


def _pade_coefficients(degree: int) -> list[float]:
    """(2m - k)! / ((m - k)! k!), scaled so that the last one is 1."""
    m = degree
    return [
        float(math.factorial(2 * m - k) // (math.factorial(m - k) * math.factorial(k)))
        for k in range(m + 1)
    ]


@overload
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = ..., compute_expm: Literal[True] = ...
) -> tuple[Array, Array]: ...
@overload
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = ..., compute_expm: Literal[False]
) -> Array: ...
@overload
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = ..., compute_expm: bool = ...
) -> Array | tuple[Array, Array]: ...


@one_program(static=("method", "compute_expm"))
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True
) -> Array | tuple[Array, Array]:
    """Matrix exponential, and its Fréchet derivative in a direction.

    Shapes:     A: T[..., n, n], E: T[..., n, n] -> T[..., n, n], T[..., n, n].
    Dtypes:     float32, float64, complex64, complex128, promoted.

    Args:
        A: square matrices.
        E: the directions.
        method: ignored: the derivative is that of `expm`.
        compute_expm: whether (exponential, derivative) is wanted; else the derivative.

    Raises:
        ValueError: A or E is not square, or their shapes differ.

    Example:
        >>> zero, one = jnp.zeros((1, 1)), jnp.ones((1, 1))
        >>> minijax.scipy.linalg.expm_frechet(zero, one, compute_expm=False)
        Array([[1.]], dtype=float32)
    """
    a, e = inexact_together("expm_frechet", A, E)
    check_square("expm_frechet", a, "A")
    check_square("expm_frechet", e, "E")
    problem = "A and E are of different shapes."
    check_that(a.shape == e.shape, "scipy.linalg.expm_frechet", problem, A=aval_of(a), E=aval_of(e))
    out, derivative = grad.jvp(expm, (a,), (e,))
    return (out, derivative) if compute_expm else derivative


@one_program(static=("blocksize",))
def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """Principal square root of a matrix: X X = A, with eigenvalues of nonnegative real part.

    Shapes:     A: T[..., n, n] -> complex T[..., n, n].
    Dtypes:     floats and complex; integers become floats; the result is complex.
    Derivative: none.
    Source:     mirrors jax.scipy.linalg.sqrtm (0.10), which takes no batches; Björck and
                Hammarling, "A Schur method for the square root of a matrix", 1983.

    Args:
        A: square matrices.
        blocksize: 1.

    Raises:
        TypeError: A is not a matrix.
        ValueError: the matrices are not square.
        NotImplementedError: the block size is greater than 1.

    Example:
        >>> minijax.scipy.linalg.sqrtm(jnp.array([[4.0, 0.0], [0.0, 9.0]]))
        Array([[2.+0.j, 0.+0.j],
               [0.+0.j, 3.+0.j]], dtype=complex64)
    """
    if blocksize > 1:
        problem = "there are no blocks."
        error(NotImplementedError, "scipy.linalg.sqrtm", problem, got=f"blocksize: {blocksize}")
    x = inexact("sqrtm", A, "A")
    # Narrow dtypes are computed with in float32.
    real = dtypes.real_dtype_of(dtypes.to_complex_dtype(x.dtype))
    form, vectors = complex_schur(x if x.dtype.kind == "c" else x.astype(real))
    root = vectorize(_root_of_triangle, signature="(n,n)->(n,n)")(form)
    return kernels.product(kernels.product(vectors, root), kernels.adjoint(vectors))


def _root_of_triangle(form: Array) -> Array:
    """R with R R = T, both upper triangular: (R + r_jj) r = t for column j above the diagonal."""
    places, roots = arange(form.shape[0]), sqrt(kernels.diagonal(form))
    if not form.shape[0]:
        return form

    def column(j: ArrayLike, root: Array) -> Array:
        sums = roots + roots[j]
        above = _solved_above(j, root + diag(places * 0 + roots[j]), form[:, j], 1)
        # No root solves 0 r = 1; where 0 r = 0, zero does.
        above = where((sums == 0) & (above != 0), np.nan, above)
        return root.at[:, j].set(where(places == j, roots[j], above))

    return fori_loop(0, form.shape[0], column, zeros_like(form))


def _solved_above(j: ArrayLike, matrix: Array, right: Array, for_zero: int) -> Array:
    """The solution of the leading j equations of a triangular system; zeros follow.

    Where the diagonal is zero, `for_zero` takes its place.
    """
    inside = arange(matrix.shape[0]) < j
    identity = eye(matrix.shape[0], dtype=bool)
    block = where(inside[:, None] & inside, matrix, identity)
    block = where(identity & (block == 0), for_zero, block)
    return triangular_solve(block, where(inside, right, 0), left_side=True)


def funm(
    A: ArrayLike, func: Callable[[Any], Any], disp: bool = True
) -> Array | tuple[Array, Array]:
    """Function of a square matrix, as the power series of the function defines it.

    Shapes:     A: T[n, n] -> complex T[n, n], and where not `disp` float[].
    Dtypes:     float32, float64, complex64, complex128; the result is complex.
    Derivative: none.
    Source:     mirrors jax.scipy.linalg.funm (0.10); Parlett, "A recurrence among the elements of
                functions of triangular matrices", 1976.

    Args:
        A: a square matrix.
        func: the function of numbers, applied to a vector of eigenvalues.
        disp: whether the result is the matrix alone; else it comes with an estimate of its relative
            error, which is large where eigenvalues are close to each other.

    Raises:
        ValueError: A is not a square matrix.

    Example:
        >>> minijax.scipy.linalg.funm(jnp.array([[4.0, 0.0], [0.0, 9.0]]), jnp.sqrt)
        Array([[2.+0.j, 0.+0.j],
               [0.+0.j, 3.+0.j]], dtype=complex64)
    """
    x = asarray(A)
    if x.ndim != 2 or x.shape[0] != x.shape[1]:
        error(ValueError, "scipy.linalg.funm", "A is no square matrix.", got={"A": aval_of(x)})
    form, vectors = complex_schur(x)
    values = asarray(func(kernels.diagonal(form)))
    image = _function_of_triangle(form, values.astype(form.dtype))
    out = kernels.product(kernels.product(vectors, image), kernels.adjoint(vectors))
    return out if disp else (out, _error_of_function(form, image))


@one_program()
def _function_of_triangle(form: Array, values: Array) -> Array:
    """F with F T = T F and a given diagonal: (T - t_jj) f = (F - f_jj) t in column j."""
    places = arange(form.shape[0])
    if not form.shape[0]:
        return form

    def column(j: ArrayLike, image: Array) -> Array:
        shifted = form - diag(places * 0 + form[j, j])
        right = kernels.times_vector(image, where(places < j, form[:, j], 0))
        right = right - values[j] * form[:, j]
        # Equal eigenvalues leave an element open: it is what it would be for a difference of 1.
        above = _solved_above(j, shifted, right, -1)
        return image.at[:, j].set(where(places == j, values[j], above))

    return fori_loop(0, form.shape[0], column, zeros_like(form))


@one_program()
def _error_of_function(form: Array, image: Array) -> Array:
    """An estimate of the relative error, from the least difference of eigenvalues."""
    eps = float(dtypes.finfo(form.dtype).eps)
    values = kernels.diagonal(form)
    gaps = abs(values[:, None] - values) + where(eye(form.shape[0], dtype=bool), np.inf, 0)
    gap = gaps.min(initial=np.inf)
    norm = abs(triu(form, 1)).sum(0).max(initial=0)
    error = eps / where(gap == 0, eps, gap) * norm
    error = where(error < eps, eps, where(error > 1, 1, error))
    return where(isfinite(image).all(), error, np.inf)
