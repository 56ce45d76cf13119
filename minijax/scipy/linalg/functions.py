"""Functions of matrices: exponential, square root, and any other."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, overload

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.lax.control_flow.branching import cond
from minijax.lax.control_flow.looping import fori_loop
from minijax.lax.linalg import kernels
from minijax.lax.linalg.lu import solve_square, triangular_solve
from minijax.numpy.arithmetic import sqrt
from minijax.numpy.creation import asarray, zeros_like
from minijax.numpy.elementary import ceil, log2
from minijax.numpy.functional import vectorize
from minijax.numpy.logic import isfinite
from minijax.numpy.matrices import diag, eye, triu
from minijax.numpy.one_program import one_program
from minijax.numpy.ranges import arange
from minijax.numpy.selection import where
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.scipy.linalg import operands
from minijax.scipy.linalg.spectra import complex_schur
from minijax.transforms import grad

# The largest 1-norm for which Padé's approximant of a degree has an error of rounding (Higham,
# 2005, table 2.3; for float32, Al-Mohy and Higham, 2009).
_PADE = {"float32": (7, 3.925724783138660), "float64": (13, 5.371920351148152)}


@one_program(static=("upper_triangular", "max_squarings"))
def expm(
    A: ArrayLike,  # noqa: N803  SciPy's name
    *,
    upper_triangular: bool = False,
    max_squarings: int = 16,
) -> Array:
    """The exponential of square matrices, 1 + A + A² / 2 + A³ / 6 + ...

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
    x = operands.inexact("expm", A, "A")
    operands.check_square("expm", x, "A")
    if dtypes.real_dtype_of(x.dtype).name not in _PADE:
        error(
            TypeError,
            "scipy.linalg.expm",
            f"there is no approximant for {x.dtype.name}.",
            got={"A": aval_of(x)},
            fix="A.astype('float32')",
        )
    if not x.shape[-1]:
        return x

    def exponential(x: Any) -> Any:
        return _expm(triu(x) if upper_triangular else x, upper_triangular, max_squarings)

    return vectorize(exponential, signature="(n,n)->(n,n)")(x)


def _expm(x: Any, upper_triangular: bool, max_squarings: int) -> Any:
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

    def squared_if_more(i: Any, y: Any) -> Any:
        return cond(i < count, lambda y: kernels.product(y, y), lambda y: y, y)

    # A loop of fixed length has a derivative in reverse mode.
    out = fori_loop(0, max_squarings, squared_if_more, root)
    return where(count > max_squarings, np.nan, out)


def _pade(x: Any, degree: int) -> tuple[Any, Any]:
    """Numerator and denominator of the approximant: V + U and V - U, U odd in x and V even."""
    b = _pade_coefficients(degree)
    square = kernels.product(x, x)
    powers = [eye(x.shape[0], dtype=x.dtype), square, kernels.product(square, square)]
    powers.append(kernels.product(powers[2], square))

    def combined(first: int, shift: int) -> Any:
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
    A: ArrayLike,  # noqa: N803
    E: ArrayLike,  # noqa: N803
    *,
    method: str | None = ...,
    compute_expm: Literal[True] = ...,
) -> tuple[Array, Array]: ...
@overload
def expm_frechet(
    A: ArrayLike,  # noqa: N803
    E: ArrayLike,  # noqa: N803
    *,
    method: str | None = ...,
    compute_expm: Literal[False],
) -> Array: ...
@overload
def expm_frechet(
    A: ArrayLike,  # noqa: N803
    E: ArrayLike,  # noqa: N803
    *,
    method: str | None = ...,
    compute_expm: bool = ...,
) -> Array | tuple[Array, Array]: ...


def expm_frechet(
    A: ArrayLike,  # noqa: N803  SciPy's name
    E: ArrayLike,  # noqa: N803  SciPy's name
    *,
    method: str | None = None,
    compute_expm: bool = True,
) -> Array | tuple[Array, Array]:
    """The exponential of square matrices, and its derivative in a direction.

    Shapes:     A: T[..., n, n], E: T[..., n, n] -> T[..., n, n], T[..., n, n].
    Dtypes:     float32, float64, complex64, complex128, promoted.
    Source:     mirrors jax.scipy.linalg.expm_frechet (0.10).

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
    return _expm_frechet(A, E, compute_expm=compute_expm)


@one_program(static=("compute_expm",))
def _expm_frechet(a: Any, e: Any, compute_expm: bool) -> Any:
    a, e = operands.inexact_together("expm_frechet", a, e)
    operands.check_square("expm_frechet", a, "A")
    operands.check_square("expm_frechet", e, "E")
    if a.shape != e.shape:
        error(
            ValueError,
            "scipy.linalg.expm_frechet",
            "A and E are of different shapes.",
            got={"A": aval_of(a), "E": aval_of(e)},
        )
    out, derivative = grad.jvp(expm, (a,), (e,))
    return (out, derivative) if compute_expm else derivative


@one_program(static=("blocksize",))
def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:  # noqa: N803  SciPy's name
    """The principal square root of square matrices: X X = A, with no eigenvalue of negative part.

    Shapes:     A: T[..., n, n] -> complex T[..., n, n].
    Dtypes:     floats and complex; integers become floats; the result is complex.
    Derivative: none.
    Source:     mirrors jax.scipy.linalg.sqrtm (0.10), which takes no batches; Björck and
                Hammarling, "A Schur method for the square root of a matrix", 1983.

    Args:
        A: square matrices.
        blocksize: 1.

    Raises:
        TypeError: A is no matrix.
        ValueError: the matrices are not square.
        NotImplementedError: the block size is greater than 1.

    Example:
        >>> minijax.scipy.linalg.sqrtm(jnp.array([[4.0, 0.0], [0.0, 9.0]]))
        Array([[2.+0.j, 0.+0.j],
               [0.+0.j, 3.+0.j]], dtype=complex64)
    """
    if blocksize > 1:
        error(
            NotImplementedError,
            "scipy.linalg.sqrtm",
            "there are no blocks.",
            got=f"blocksize: {blocksize}",
        )
    x = operands.inexact("sqrtm", A, "A")
    # Narrow dtypes are computed with in float32.
    real = dtypes.real_dtype_of(dtypes.to_complex_dtype(x.dtype))
    form, vectors = complex_schur(x if x.dtype.kind == "c" else x.astype(real))
    root = vectorize(_root_of_triangle, signature="(n,n)->(n,n)")(form)
    return kernels.product(kernels.product(vectors, root), kernels.adjoint(vectors))


def _root_of_triangle(form: Any) -> Any:
    """R with R R = T, both upper triangular: (R + r_jj) r = t for column j above the diagonal."""
    places, roots = arange(form.shape[0]), sqrt(kernels.diagonal(form))
    if not form.shape[0]:
        return form

    def column(j: Any, root: Any) -> Any:
        sums = roots + roots[j]
        above = _solved_above(j, root + diag(places * 0 + roots[j]), form[:, j], 1)
        # No root solves 0 r = 1; where 0 r = 0, zero does.
        above = where((sums == 0) & (above != 0), np.nan, above)
        return root.at[:, j].set(where(places == j, roots[j], above))

    return fori_loop(0, form.shape[0], column, zeros_like(form))


def _solved_above(j: Any, matrix: Any, right: Any, for_zero: int) -> Any:
    """The solution of the leading j equations of a triangular system; zeros follow.

    Where the diagonal is zero, `for_zero` takes its place.
    """
    inside = arange(matrix.shape[0]) < j
    identity = eye(matrix.shape[0], dtype=bool)
    block = where(inside[:, None] & inside, matrix, identity)
    block = where(identity & (block == 0), for_zero, block)
    return triangular_solve(block, where(inside, right, 0), left_side=True)


def funm(
    A: ArrayLike,  # noqa: N803  SciPy's name
    func: Callable[[Any], Any],
    disp: bool = True,
) -> Array | tuple[Array, Array]:
    """A function of a square matrix, as its power series defines it.

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
        ValueError: A is no square matrix.

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
def _function_of_triangle(form: Any, values: Any) -> Any:
    """F with F T = T F and a given diagonal: (T - t_jj) f = (F - f_jj) t in column j."""
    places = arange(form.shape[0])
    if not form.shape[0]:
        return form

    def column(j: Any, image: Any) -> Any:
        shifted = form - diag(places * 0 + form[j, j])
        right = kernels.times_vector(image, where(places < j, form[:, j], 0))
        right = right - values[j] * form[:, j]
        # Equal eigenvalues leave an element open: it is what it would be for a difference of 1.
        above = _solved_above(j, shifted, right, -1)
        return image.at[:, j].set(where(places == j, values[j], above))

    return fori_loop(0, form.shape[0], column, zeros_like(form))


@one_program()
def _error_of_function(form: Any, image: Any) -> Any:
    """An estimate of the relative error, from the least difference of eigenvalues."""
    eps = float(dtypes.finfo(form.dtype).eps)
    values = kernels.diagonal(form)
    gaps = abs(values[:, None] - values) + where(eye(form.shape[0], dtype=bool), np.inf, 0)
    gap = gaps.min(initial=np.inf)
    norm = abs(triu(form, 1)).sum(0).max(initial=0)
    error = eps / where(gap == 0, eps, gap) * norm
    error = where(error < eps, eps, where(error > 1, 1, error))
    return where(isfinite(image).all(), error, np.inf)
