"""Linear equations, inverses, norms, ranks and products of matrices.

The products are those that the array standard puts into this package.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from minijax.core import dtypes, source
from minijax.core.aval import aval_of
from minijax.core.errors import IncompatibleShapesError, error
from minijax.core.trace import current
from minijax.interpreters import casts
from minijax.lax import unary
from minijax.lax.control_flow.solving import custom_linear_solve
from minijax.lax.dots import Precision, PrecisionLike
from minijax.lax.linalg import kernels
from minijax.lax.linalg.lu import lu, solve_by_lu
from minijax.lax.unary import stop_gradient
from minijax.numpy import calculus, contraction, matrices, promotion, reductions, shaping
from minijax.numpy.creation import asarray
from minijax.numpy.elementary import sqrt
from minijax.numpy.linalg import factorizations
from minijax.numpy.linalg.factorizations import svd
from minijax.numpy.logic import isnan
from minijax.numpy.promotion import check_that, one_program
from minijax.numpy.reductions import sum as sum_of
from minijax.numpy.selection import where
from minijax.runtime.annotations import ArrayLike, DTypeLike
from minijax.runtime.array import Array
from minijax.sharding.named import NamedSharding
from minijax.transforms.autodiff.custom_jvp import custom_jvp


@one_program()
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """Solves the linear systems `a x = b`, for nonsingular matrices `a`.

    Shapes:     a: T[..., n, n], b: T[n] -> T[..., n]; b: T[..., n, m] -> T[..., n, m].  Leading
                dimensions are broadcast.
    Dtypes:     float32, float64 and complex, promoted; integers become floats.
    Derivative: linear in b; a x' = b' - a' x.
    Lowers to:  an LU factorization and triangular systems.

    Raises:
        ValueError: `a` is not a square matrix or a batch of them, or b does not fit.

    Example:
        >>> jnp.linalg.solve(jnp.array([[2.0, 0.0], [1.0, 1.0]]), jnp.array([4.0, 5.0]))
        Array([2., 3.], dtype=float32)
    """
    a, b = factorizations.inexact_together("solve", a, b)
    a = factorizations.square_matrices("solve", a)
    size, is_vector = a.shape[-1], b.ndim == 1
    fits = b.ndim != 0 and b.shape[-1 if is_vector else -2] == size
    problem = "b does not fit the matrices."
    expected = "a: T[..., n, n], and b: T[n] or T[..., n, m]"
    fix = "b[..., None], for a batch of vectors" if a.ndim == b.ndim + 1 else None
    check_that(
        fits, "numpy.linalg.solve", problem, a=aval_of(a), b=aval_of(b), expected=expected, fix=fix
    )
    if is_vector:
        return _solve(a, b[:, None])[..., 0]
    if a.ndim == 2 < b.ndim:
        # Systems with one matrix are one system.
        columns = shaping.moveaxis(b, -2, 0)
        x = _solve(a, columns.reshape(size, math.prod(columns.shape[1:])))
        return shaping.moveaxis(x.reshape(columns.shape), 0, -2)
    return _solve(a, b)


def _solve(a: Array, b: Array) -> Any:
    batch = shaping.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    factors, _, permutation = lu(stop_gradient(a))
    a, b, factors = (shaping.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b, factors))
    permutation = shaping.broadcast_to(permutation, (*batch, permutation.shape[-1]))
    return solve_by_factors(
        a,
        b,
        lambda b: solve_by_lu(factors, permutation, b, 0),
        lambda b: solve_by_lu(factors, permutation, b, 1),
    )


def solve_by_factors(
    a: Array, b: Array, solve: Callable[[Array], Any], solve_transposed: Callable[[Array], Any]
) -> Any:
    """Solves `a @ x = b` with a factorization of `a`, which is not differentiated.

    Args:
        a: the matrix, whose derivatives are taken.
        b: the columns on the right.
        solve: returns `x` for such columns.
        solve_transposed: returns `x` of `a.T @ x = b`.
    """
    # The solution varies over the axes that `a` varies over, and must have the type of `b`.
    b = casts.varied(current.value, b, aval_of(a).vma)
    return custom_linear_solve(
        functools.partial(kernels.product, a),
        b,
        solve=lambda _, b: solve(b),
        transpose_solve=lambda _, b: solve_transposed(b),
    )


@one_program()
def inv(a: ArrayLike) -> Array:
    """Computes the inverses of square matrices.

    Shapes:     a: T[..., n, n] -> T[..., n, n].
    Dtypes:     float32, float64 and complex; integers become floats.

    Raises:
        ValueError: `a` is not a square matrix or a batch of them.

    Example:
        >>> jnp.linalg.inv(jnp.array([[2.0, 0.0], [2.0, 1.0]]))
        Array([[ 0.5,  0. ],
               [-1. ,  1. ]], dtype=float32)
    """
    a = factorizations.square_matrices("inv", a)
    return _solve(a, matrices.eye(a.shape[-1], dtype=a.dtype))


@one_program(static=("ind",))
def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """Computes the inverse of an array as a linear map of its last dimensions to its first.

    Shapes:     a: T[s, t] -> T[t, s], with `ind` dimensions in s, and equal products of s and t.

    Raises:
        ValueError: `ind` is not positive, or the dimensions do not make a square matrix.

    Example:
        >>> jnp.linalg.tensorinv(2.0 * jnp.eye(4).reshape(2, 2, 4)).shape
        (4, 2, 2)
    """
    a = factorizations.inexact("tensorinv", a)
    count = operator.index(ind)
    rows, columns = a.shape[: max(count, 0)], a.shape[max(count, 0) :]
    fits = count > 0 and math.prod(rows) == math.prod(columns)
    problem = "the dimensions before and after `ind` do not make a square matrix."
    expected = "equal products of both, and ind at least 1"
    check_that(fits, "numpy.linalg.tensorinv", problem, a=aval_of(a), ind=ind, expected=expected)
    return inv(a.reshape(math.prod(rows), math.prod(columns))).reshape(*columns, *rows)


@one_program(static=("axes",))
def tensorsolve(a: ArrayLike, b: ArrayLike, axes: tuple[int, ...] | None = None) -> Array:
    """Solves the tensor equation `tensordot(a, x, x.ndim) = b` for `x`.

    Shapes:     a: T[s, t], b: T[s] -> T[t], with as many elements in s as in t.

    Args:
        a: the array of coefficients.
        b: the right-hand side.
        axes: dimensions of `a` that are moved to the end first.

    Raises:
        ValueError: the shapes do not fit.

    Example:
        >>> a = 2.0 * jnp.eye(4).reshape(2, 2, 4)
        >>> jnp.linalg.tensorsolve(a, jnp.array([[2.0, 4.0], [6.0, 8.0]]))
        Array([1., 2., 3., 4.], dtype=float32)
    """
    a, b = factorizations.inexact_together("tensorsolve", a, b)
    if axes is not None:
        a = shaping.moveaxis(a, axes, tuple(range(a.ndim - len(axes), a.ndim)))
    shape = a.shape[b.ndim :]
    fits = a.shape[: b.ndim] == b.shape and math.prod(shape) == b.size
    problem = "the dimensions do not make a square system of equations."
    expected = "a: T[s, t] and b: T[s], with equal products of s and of t"
    check_that(
        fits, "numpy.linalg.tensorsolve", problem, a=aval_of(a), b=aval_of(b), expected=expected
    )
    return solve(a.reshape(b.size, b.size), b.ravel()).reshape(shape)


def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """Computes the least-squares solution of `a x = b` of the smallest norm.

    Shapes:     a: T[m, n], b: T[m] or T[m, k] -> x: T[n] or T[n, k], the squared residuals, T[1] or
                T[k], the rank, int32[], and the singular values, T[min(m, n)].
    Dtypes:     float32, float64 and complex, promoted; integers become floats.

    Args:
        a: a matrix.
        b: right-hand sides.
        rcond: singular values less than this times the largest count as zero; None: the machine
            precision times max(m, n); below zero: the machine precision.
        numpy_resid: whether there are no residuals where a has not full column rank, or no more
            rows than columns, as in NumPy; their number is then not known to `jit`.

    Raises:
        ValueError: b does not have as many rows as a.
        TypeError: they are batches of matrices.

    Example:
        >>> x, *_ = jnp.linalg.lstsq(jnp.array([[2.0], [0.0]]), jnp.array([4.0, 1.0]))
        >>> x
        Array([2.], dtype=float32)
    """
    x, residuals, rank, s = _lstsq(a, b, rcond)
    rows, columns = np.shape(a)
    if numpy_resid and (rows <= columns or int(rank) < columns):
        residuals = asarray(np.empty(0, residuals.dtype))
    return x, residuals, rank, s


@one_program()
def _lstsq(a: Any, b: Any, rcond: Any) -> tuple[Any, Any, Any, Any]:
    a, b = factorizations.inexact_together("lstsq", a, b)
    _check_least_squares(a, b)
    right = b[:, None] if b.ndim == 1 else b
    epsilon = float(dtypes.finfo(a.dtype).eps)
    if rcond is None:
        rcond = epsilon * max(a.shape)
    else:
        rcond = where(shaping.array_argument("linalg.lstsq", rcond) < 0, epsilon, rcond)
    u, s, vh = svd(a, full_matrices=False)
    counts = (s > 0) & (s >= rcond * s[:1])
    scales = where(counts, 1 / where(counts, s, 1), 0)[:, None]
    projected = scales * kernels.product(kernels.adjoint(u), right)
    x = kernels.product(kernels.adjoint(vh), projected)
    residuals = sum_of(factorizations.squared(right - kernels.product(a, x)), 0)
    return x[:, 0] if b.ndim == 1 else x, residuals, sum_of(counts), s


def _check_least_squares(a: Array, b: Array) -> None:
    name = "numpy.linalg.lstsq"
    expected = "a: T[m, n], and b: T[m] or T[m, k]"
    fit = b.ndim > 0 and a.shape[:1] == b.shape[:1]
    check_that(fit, name, "b does not have as many rows as a.", a=a, b=b, expected=expected)
    are_matrices = a.ndim == 2 and b.ndim <= 2
    fix = "minijax.vmap, for batches"
    check_that(are_matrices, name, "a and b are no matrices.", error=TypeError, a=a, b=b, fix=fix)


def pinv(
    a: ArrayLike,
    rtol: ArrayLike | None = None,
    hermitian: bool = False,
    *,
    rcond: ArrayLike | None = None,
) -> Array:
    """Computes the Moore-Penrose pseudoinverses of matrices.

    Shapes:     a: T[..., m, n] -> T[..., n, m].
    Dtypes:     float32, float64 and complex; integers become floats.
    Derivative: where the rank does not change.
    Source:     mirrors jax.numpy.linalg.pinv (0.10); the derivative: Golub and Pereyra, The
                differentiation of pseudo-inverses (1973).

    Args:
        a: matrices.
        rtol: singular values less than this times the largest count as zero; None: ten times the
            machine precision times max(m, n).  T[], or T[...] for each matrix.
        hermitian: whether a is Hermitian.
        rcond: another name of `rtol`.

    Raises:
        ValueError: `a` is not a matrix, or both names are given.

    Example:
        >>> jnp.linalg.pinv(jnp.array([[2.0], [0.0]]))
        Array([[0.5, 0. ]], dtype=float32)
    """
    factorizations.check_not_both("pinv", rtol=rtol, rcond=rcond)
    return _pinv(a, rcond if rtol is None else rtol, hermitian)


@one_program(static=("hermitian",))
def _pinv(a: Any, rtol: Any, hermitian: bool) -> Any:
    a = factorizations.matrices("pinv", a)
    if rtol is None:
        rtol = 10 * max(a.shape[-2:]) * float(dtypes.finfo(a.dtype).eps)
    return _pseudoinverse(a, stop_gradient(shaping.array_argument("linalg.pinv", rtol)), hermitian)


# Tolerances, and with them results, may have more leading dimensions than matrices.
_product = functools.partial(contraction.matmul, precision=Precision.HIGHEST)


@functools.partial(custom_jvp, nondiff_argnums=(2,))
def _pseudoinverse(a: Array, rtol: Array, hermitian: bool) -> Any:
    u, s, vh = svd(a, full_matrices=False, hermitian=hermitian)
    scales = where(s > rtol[..., None] * s[..., :1], s, np.inf).astype(a.dtype)
    return _product(kernels.adjoint(vh), kernels.adjoint(u) / scales[..., None])


@_pseudoinverse.defjvp
def _pseudoinverse_jvp(
    hermitian: bool, primals: tuple[Any, Any], tangents: tuple[Any, Any]
) -> tuple[Any, Any]:
    # P' = -P a' P + P Pᴴ a'ᴴ (I - a P) + (I - P a) a'ᴴ Pᴴ P, with small products first.
    (a, rtol), (a_dot, _) = primals, tangents
    p = _pseudoinverse(a, rtol, hermitian)
    if hermitian:
        # The eigenvalues are those of the Hermitian part.
        a, a_dot = kernels.symmetrized(a), kernels.symmetrized(a_dot)
    adjoint, adjoint_dot = kernels.adjoint(p), kernels.adjoint(a_dot)
    inside = _product(_product(p, a_dot), p)
    left = _product(_product(p, adjoint), adjoint_dot)
    left = left - _product(_product(left, a), p)
    right = _product(_product(adjoint_dot, adjoint), p)
    right = right - _product(_product(p, a), right)
    return p, left + right - inside


_MATRIX_ORDERS = (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)


@one_program(static=("ord", "axis", "keepdims"))
def norm(
    x: ArrayLike,
    ord: int | str | None = None,
    axis: tuple[int, ...] | int | None = None,
    keepdims: bool = False,
) -> Array:
    """Computes norms of vectors or matrices.

    Shapes:     x: T[s] -> real T[s without axis].
    Dtypes:     inexact; integers become floats.
    Derivative: that of the formula; NaN for the length of a vector of zeros.

    Args:
        x: the array.
        ord: which norm.  None: the root of the sum of squares, of everything where `axis` is None.
            Of vectors: a number p, for the p-th root of the sum of p-th powers; infinity, -infinity
            and 0 mean the largest element, the smallest, and how many are not zero.  Of matrices:
            "fro", "nuc", or 1, -1, 2, -2, infinity, -infinity, as in NumPy.
        axis: an axis of vectors, or two of matrices; None: x is one vector or matrix.
        keepdims: whether reduced dimensions stay, with size 1.

    Raises:
        ValueError: `ord` is not a norm of these, or an axis is out of range or named twice.

    Example:
        >>> jnp.linalg.norm(jnp.array([3.0, 4.0]))
        Array(5., dtype=float32)
        >>> jnp.linalg.norm(jnp.array([[1.0, -2.0], [3.0, 0.0]]), ord=1)
        Array(4., dtype=float32)
    """
    x = factorizations.inexact("norm", x)
    if axis is None and ord is None:
        return _length(x, tuple(range(x.ndim)), keepdims)
    axes = shaping.canonical_axes(
        "linalg.norm", tuple(range(x.ndim)) if axis is None else axis, x.ndim
    )
    if len(axes) == 1:
        return _norm_of_vectors("norm", x, ord, axes, keepdims)
    if len(axes) == 2:
        return _norm_of_matrices("norm", x, ord, axes, keepdims)
    problem = "norms are of vectors or matrices."
    got = {"x": aval_of(x), "axis": axis}
    error(ValueError, "numpy.linalg.norm", problem, got=got, expected="one axis or two")


@one_program(static=("keepdims", "ord"))
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: str | int = "fro") -> Array:
    """Computes norms of the matrices in the last two dimensions.

    Shapes:     x: T[..., m, n] -> real T[...].

    Args:
        x: matrices.
        keepdims: whether reduced dimensions stay, with size 1.
        ord: which norm, as in `norm`.

    Raises:
        ValueError: `x` is not a matrix, or `ord` is not a norm of matrices.

    Example:
        >>> jnp.linalg.matrix_norm(jnp.array([[3.0, 0.0], [0.0, 4.0]]))
        Array(5., dtype=float32)
    """
    x = factorizations.matrices("matrix_norm", x, "x")
    return _norm_of_matrices("matrix_norm", x, ord, (x.ndim - 2, x.ndim - 1), keepdims)


@one_program(static=("axis", "keepdims", "ord"))
def vector_norm(
    x: ArrayLike,
    /,
    *,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
    ord: int | str = 2,
) -> Array:
    """Computes norms of the vectors along one axis or several.

    Shapes:     x: T[s] -> real T[s without axis].

    Args:
        x: the array.
        axis: where the components stand; None: everywhere.
        keepdims: whether reduced dimensions stay, with size 1.
        ord: which norm, as in `norm`.

    Raises:
        ValueError: `ord` is not a norm of vectors, or an axis is out of range or named twice.

    Example:
        >>> jnp.linalg.vector_norm(jnp.array([[3.0, 0.0], [0.0, 4.0]]), axis=0)
        Array([3., 4.], dtype=float32)
    """
    x = factorizations.inexact("vector_norm", x)
    given = tuple(range(x.ndim)) if axis is None else axis
    axes = shaping.canonical_axes("linalg.vector_norm", given, x.ndim)
    return _norm_of_vectors("vector_norm", x, ord, axes, keepdims)


def _length(x: Array, axes: tuple[int, ...], keepdims: bool) -> Any:
    """The root of the sum of squares."""
    return sqrt(reductions.sum(factorizations.squared(x), axes, keepdims=keepdims))


def _norm_of_vectors(
    name: str, x: Array, ord: int | str | None, axes: tuple[int, ...], keepdims: bool
) -> Any:
    if isinstance(ord, str):
        _refuse_order(name, ord, "vectors", "a number or None")
    if ord is None or ord == 2:
        return _length(x, axes, keepdims)
    sizes = unary.abs(x)
    if ord == np.inf:
        return reductions.max(sizes, axes, keepdims=keepdims, initial=0)
    if ord == -np.inf:
        return reductions.min(sizes, axes, keepdims=keepdims)
    if ord == 0:
        return reductions.sum((x != 0).astype(sizes.dtype), axes, keepdims=keepdims)
    if ord == 1:
        return reductions.sum(sizes, axes, keepdims=keepdims)
    power = np.asarray(ord, sizes.dtype)
    return reductions.sum(sizes**power, axes, keepdims=keepdims) ** (1 / power)


def _norm_of_matrices(name: str, x: Array, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    if ord not in _MATRIX_ORDERS:
        _refuse_order(name, ord, "matrices", "'fro', 'nuc', 1, -1, 2, -2, inf or -inf")
    if ord in (None, "fro"):
        return _length(x, axes, keepdims)
    if ord in ("nuc", 2, -2):
        values = svd(shaping.moveaxis(x, axes, (-2, -1)), compute_uv=False)
        found = _extreme(values, ord) if ord != "nuc" else reductions.sum(values, -1)
    else:
        summed, compared = axes if abs(ord) == 1 else axes[::-1]
        sums = reductions.sum(unary.abs(x), summed, keepdims=True)
        found = _extreme(shaping.moveaxis(sums, (summed, compared), (-2, -1))[..., 0, :], ord)
    return shaping.expand_dims(found, axes) if keepdims else found


def _extreme(x: Any, sign: float) -> Any:
    """The largest or smallest element along the last axis, by a sign."""
    return reductions.max(x, -1, initial=0) if sign > 0 else reductions.min(x, -1)


def _refuse_order(name: str, given: object, of: str, expected: str) -> NoReturn:
    problem = f"ord is no norm of {of}."
    error(ValueError, f"numpy.linalg.{name}", problem, got=f"ord: {given!r}", expected=expected)


@one_program(static=("p",))
def cond(x: ArrayLike, p: int | float | str | None = None) -> Array:
    """Computes the condition numbers of matrices.

    Shapes:     x: T[..., m, n] -> real T[...]; m = n but for p None, 2 or -2.
    Dtypes:     inexact; integers become floats.

    Args:
        x: matrices.
        p: the norm for the size of x and of its inverse, as in `norm`; None, 2 and -2: the ratio of
            extreme singular values.

    Raises:
        ValueError: `x` is not a matrix or has no elements, or p is not a norm of matrices.

    Example:
        >>> jnp.linalg.cond(jnp.array([[4.0, 0.0], [0.0, 2.0]]))
        Array(2., dtype=float32)
    """
    x = factorizations.matrices("cond", x, "x")
    check_that(
        0 not in x.shape[-2:], "numpy.linalg.cond", "matrices without elements have none.", x=x
    )
    if p in (None, 2, -2):
        values = svd(x, compute_uv=False)
        largest, smallest = values[..., 0], values[..., -1]
        return smallest / largest if p == -2 else largest / smallest
    factorizations.check_square("cond", x, "x")
    axes = (x.ndim - 2, x.ndim - 1)
    sizes = (_norm_of_matrices("cond", y, p, axes, keepdims=False) for y in (x, inv(x)))
    ratio = next(sizes) * next(sizes)
    # The inverse of a singular matrix may hold NaN.
    return where(isnan(ratio) & ~reductions.any(isnan(x), axes), np.inf, ratio)


def matrix_rank(
    M: ArrayLike,
    rtol: ArrayLike | None = None,
    *,
    hermitian: bool = False,
    tol: ArrayLike | None = None,
) -> Array:
    """Computes the ranks of matrices: the number of singular values above a tolerance.

    Shapes:     M: T[..., m, n] -> int32[...]; of a vector, whether it has an element besides zeros.

    Args:
        M: matrices.
        rtol: singular values up to this count as zero; None: the largest one times the machine
            precision times max(m, n).  T[], or T[...] for each matrix.
        hermitian: whether M is Hermitian.
        tol: another name of `rtol`.

    Raises:
        ValueError: both names are given, or there are no singular values.

    Example:
        >>> jnp.linalg.matrix_rank(jnp.array([[1.0, 2.0], [2.0, 4.0]]))
        Array(1, dtype=int32)
    """
    factorizations.check_not_both("matrix_rank", rtol=rtol, tol=tol)
    return _matrix_rank(M, tol if rtol is None else rtol, hermitian)


@one_program(static=("hermitian",))
def _matrix_rank(x: Any, limit: Any, hermitian: bool) -> Any:
    x = factorizations.inexact("matrix_rank", x)
    if x.ndim < 2:
        return reductions.any(x != 0).astype(np.int32)
    s = svd(x, full_matrices=False, compute_uv=False, hermitian=hermitian)
    if limit is None:
        limit = reductions.max(s, -1) * (max(x.shape[-2:]) * float(dtypes.finfo(s.dtype).eps))
    return reductions.sum(s > shaping.expand_dims(limit, np.ndim(limit)), -1)


@source.hands_over
def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """Computes the cross product of vectors of three components.

    Shapes:     x1: T[.., 3, ..], x2: T[.., 3, ..] -> T[.., 3, ..].

    Raises:
        ValueError: the vectors do not have three components.

    Example:
        >>> jnp.linalg.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
        Array([0, 0, 1], dtype=int32)
    """
    x1, x2 = shaping.array_argument("linalg.cross", x1), shaping.array_argument("linalg.cross", x2)
    fit = x1.shape[axis] == x2.shape[axis] == 3
    fix = "numpy.cross takes two as well"
    problem = "vectors must have three components."
    check_that(fit, "numpy.linalg.cross", problem, x1=x1, x2=x2, axis=axis, fix=fix)
    return promotion.strong(calculus.cross(x1, x2, axis=axis))


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """Returns the diagonals of the matrices in the last two dimensions.

    Shapes:     x: T[..., m, n] -> T[..., k], where k is the length of the diagonal.

    Raises:
        ValueError: `x` has fewer than two dimensions.

    Example:
        >>> jnp.linalg.diagonal(jnp.array([[1, 2], [3, 4]]))
        Array([1, 4], dtype=int32)
    """
    x = shaping.array_argument("linalg.diagonal", x)
    factorizations.check_matrices("diagonal", x, "x")
    return matrices.diagonal(x, offset=offset, axis1=-2, axis2=-1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Sums the diagonals of the matrices in the last two dimensions.

    Shapes:     x: T[..., m, n] -> T[...].

    Raises:
        ValueError: `x` has fewer than two dimensions.

    Example:
        >>> jnp.linalg.trace(jnp.array([[1, 2], [3, 4]]))
        Array(5, dtype=int32)
    """
    x = shaping.array_argument("linalg.trace", x)
    factorizations.check_matrices("trace", x, "x")
    return matrices.trace(x, offset=offset, axis1=-2, axis2=-1, dtype=dtype)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """Transposes the matrices in the last two dimensions.

    Shapes:     x: T[..., m, n] -> T[..., n, m].

    Raises:
        ValueError: `x` has fewer than two dimensions.

    Example:
        >>> jnp.linalg.matrix_transpose(jnp.array([[1, 2]]))
        Array([[1],
               [2]], dtype=int32)
    """
    return shaping.matrix_transpose(x)


@source.hands_over
def matmul(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Computes matrix products, broadcasting the leading dimensions; see `numpy.matmul`.

    Shapes:     x1: T[..., m, k], x2: T[..., k, n] -> T[..., m, n]; a vector is a row, or a column.

    Raises:
        ValueError: an operand is a scalar, or leading dimensions do not fit.
        TypeError: the inner sizes differ.

    Example:
        >>> jnp.linalg.matmul(jnp.array([[1, 2], [3, 4]]), jnp.array([10, 1]))
        Array([12, 34], dtype=int32)
    """
    return contraction.matmul(
        x1, x2, precision=precision, preferred_element_type=preferred_element_type
    )


@source.hands_over
def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Computes the outer product of two vectors.

    Shapes:     x1: T[n], x2: T[m] -> T[n, m].

    Raises:
        ValueError: an argument is not a vector.

    Example:
        >>> jnp.linalg.outer(jnp.array([1, 2]), jnp.array([3, 4]))
        Array([[3, 4],
               [6, 8]], dtype=int32)
    """
    x1, x2 = shaping.array_argument("linalg.outer", x1), shaping.array_argument("linalg.outer", x2)
    fit = x1.ndim == x2.ndim == 1
    fix = "numpy.outer flattens what it gets"
    check_that(fit, "numpy.linalg.outer", "both arguments must be vectors.", x1=x1, x2=x2, fix=fix)
    return contraction.outer(x1, x2)


@source.hands_over
def tensordot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axes: int | tuple[Sequence[int], Sequence[int]] = 2,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: NamedSharding | Any | None = None,
) -> Array:
    """Computes the tensor dot product along the given axes; see `numpy.tensordot`.

    Shapes:     x1: T[s, k], x2: T[k, t] -> T[s, t], where s, t and k are any number of dimensions.

    Raises:
        TypeError: `axes` does not fit the operands.
        ValueError: an axis is out of range, or named twice.

    Example:
        >>> jnp.linalg.tensordot(jnp.array([[1, 2]]), jnp.array([[3, 4]]))
        Array(11, dtype=int32)
    """
    return contraction.tensordot(
        x1,
        x2,
        axes,
        precision=precision,
        preferred_element_type=preferred_element_type,
        out_sharding=out_sharding,
    )


@one_program(static=("n",))
def matrix_power(a: ArrayLike, n: int) -> Array:
    """Raises square matrices to an integer power; a negative one inverts them first.

    Shapes:     a: T[..., m, m] -> T[..., m, m].
    Dtypes:     numeric; integers become floats where n is negative.

    Raises:
        TypeError: `a` is not a square matrix or a batch of them, or n is not an integer.

    Example:
        >>> jnp.linalg.matrix_power(jnp.array([[1, 1], [0, 1]]), 5)
        Array([[1, 5],
               [0, 1]], dtype=int32)
    """
    a = shaping.array_argument("linalg.matrix_power", a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        name, problem = "numpy.linalg.matrix_power", "a is no square matrix, nor a batch of them."
        got = {"a": a.aval}
        error(IncompatibleShapesError, name, problem, got=got, expected="T[..., m, m]")
    exponent = operator.index(n)
    if exponent == 0:
        return shaping.broadcast_to(matrices.eye(a.shape[-1], dtype=a.dtype), a.shape)
    square = inv(a) if exponent < 0 else a
    result: Any = None
    for digit in bin(abs(exponent))[:1:-1]:
        if digit == "1":
            result = square if result is None else contraction.matmul(result, square)
        if digit == "b":
            break
        square = contraction.matmul(square, square)
    return result


def multi_dot(arrays: Sequence[Any], *, precision: PrecisionLike = None) -> Array:
    """Computes the product of several matrices in the order of the fewest multiplications.

    Shapes:     T[m, k], T[k, l], …, T[r, n] -> T[m, n]; the first may be a vector, and the last.
    Dtypes:     promoted.
    Source:     mirrors jax.numpy.linalg.multi_dot (0.10); the order: Cormen et al., Introduction
                to algorithms, chapter 14.

    Args:
        arrays: two matrices or more.
        precision: of the products.

    Raises:
        ValueError: there are fewer than two, or they do not fit together.

    Example:
        >>> jnp.linalg.multi_dot([jnp.ones((2, 3)), jnp.ones((3, 4)), jnp.ones(4)])
        Array([12., 12.], dtype=float32)
    """
    factors = [shaping.array_argument("linalg.multi_dot", x) for x in arrays]
    _check_chain(factors)
    return _multi_dot(*factors, precision=precision)


def _check_chain(factors: Sequence[Any]) -> None:
    inner = factors[1:-1]
    fits = len(factors) > 1 and all(x.ndim == 2 for x in inner)
    fits = fits and all(x.ndim in (1, 2) for x in (factors[0], factors[-1]))
    pairs = itertools.pairwise(factors)
    if not (fits and all(x.shape[-1] == y.shape[0] for x, y in pairs)):
        error(
            ValueError,
            "numpy.linalg.multi_dot",
            "the arrays are no chain of matrices.",
            got=f"arrays: {', '.join(str(aval_of(x)) for x in factors) or 'none'}",
            expected="two or more: matrices, the first and the last maybe vectors, each with "
            "as many columns as the next has rows",
        )


@one_program(static=("precision",))
def _multi_dot(*factors: Any, precision: PrecisionLike) -> Any:
    matrices = promotion.promote_dtypes("linalg.multi_dot", *factors)
    sizes = [*(x.shape[0] if x.ndim > 1 else 1 for x in matrices[:1])]
    sizes += [x.shape[0] for x in matrices[1:]]
    sizes.append(matrices[-1].shape[1] if matrices[-1].ndim > 1 else 1)
    splits = _best_splits(sizes)

    def multiply(first: int, last: int) -> Any:
        if first == last:
            return matrices[first]
        middle = splits[first, last]
        left, right = multiply(first, middle), multiply(middle + 1, last)
        return contraction.matmul(left, right, precision=precision)

    return multiply(0, len(matrices) - 1)


def _best_splits(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """For each part of a chain of matrices, after which one to divide it.

    Args:
        sizes: the rows of each matrix, and the columns of the last one.
    """
    count = len(sizes) - 1
    costs = {(i, i): 0 for i in range(count)}
    splits = {}
    for length in range(1, count):
        for first in range(count - length):
            last = first + length

            def cost(k: int, first: int = first, last: int = last) -> int:
                own = sizes[first] * sizes[k + 1] * sizes[last + 1]
                return costs[first, k] + costs[k + 1, last] + own

            splits[first, last] = min(range(first, last), key=cost)
            costs[first, last] = cost(splits[first, last])
    return splits
