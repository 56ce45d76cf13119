"""Systems of linear equations, inverses and least squares."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.core.trace import current
from minijax.interpreters import casts
from minijax.lax.control_flow.solving import custom_linear_solve
from minijax.lax.linalg import matrices, solving
from minijax.lax.linalg.lu import lu
from minijax.lax.precision import Precision
from minijax.lax.unary import stop_gradient
from minijax.numpy.contraction import matmul
from minijax.numpy.creation import asarray
from minijax.numpy.linalg import operands
from minijax.numpy.linalg.factorizations import svd
from minijax.numpy.matrices import eye
from minijax.numpy.one_program import one_program
from minijax.numpy.reductions import sum as sum_of
from minijax.numpy.selection import where
from minijax.numpy.shaping import array_argument, broadcast_shapes, broadcast_to, moveaxis
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.transforms.custom_jvp import custom_jvp


@one_program()
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """The solutions x of a x = b, for regular matrices a.

    Shapes:     a: T[..., n, n], b: T[n] -> T[..., n]; b: T[..., n, m] -> T[..., n, m].  Leading
                dimensions are broadcast.
    Dtypes:     float32, float64 and complex, promoted; integers become floats.
    Derivative: linear in b; a x' = b' - a' x.
    Lowers to:  an LU factorization and triangular systems.
    Source:     mirrors jax.numpy.linalg.solve (0.10).

    Raises:
        ValueError: `a` is no square matrix, nor a batch of them, or b does not fit.

    Example:
        >>> jnp.linalg.solve(jnp.array([[2.0, 0.0], [1.0, 1.0]]), jnp.array([4.0, 5.0]))
        Array([2., 3.], dtype=float32)
    """
    a, b = operands.inexact_together("solve", a, b)
    a = operands.square_matrices("solve", a)
    size, is_vector = a.shape[-1], b.ndim == 1
    if b.ndim == 0 or b.shape[-1 if is_vector else -2] != size:
        error(
            ValueError,
            "numpy.linalg.solve",
            "b does not fit the matrices.",
            got={"a": aval_of(a), "b": aval_of(b)},
            expected="a: T[..., n, n], and b: T[n] or T[..., n, m]",
            fix="b[..., None], for a batch of vectors" if a.ndim == b.ndim + 1 else None,
        )
    if is_vector:
        return _solve(a, b[:, None])[..., 0]
    if a.ndim == 2 < b.ndim:
        # Systems with one matrix are one system.
        columns = moveaxis(b, -2, 0)
        x = _solve(a, columns.reshape(size, math.prod(columns.shape[1:])))
        return moveaxis(x.reshape(columns.shape), 0, -2)
    return _solve(a, b)


def _solve(a: Any, b: Any) -> Any:
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    factors, _, permutation = lu(stop_gradient(a))
    a, b, factors = (broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b, factors))
    permutation = broadcast_to(permutation, (*batch, permutation.shape[-1]))
    # Solutions vary between devices where a does, and are to be of the type of b.
    b = casts.varied(current.value, b, aval_of(a).vma)

    def solver(trans: int) -> Any:
        return lambda _, b: solving.solve_by_lu(factors, permutation, b, trans)

    return custom_linear_solve(
        functools.partial(matrices.product, a), b, solve=solver(0), transpose_solve=solver(1)
    )


@one_program()
def inv(a: ArrayLike) -> Array:
    """The inverses of square matrices.

    Shapes:     a: T[..., n, n] -> T[..., n, n].
    Dtypes:     float32, float64 and complex; integers become floats.
    Source:     mirrors jax.numpy.linalg.inv (0.10).

    Raises:
        ValueError: `a` is no square matrix, nor a batch of them.

    Example:
        >>> jnp.linalg.inv(jnp.array([[2.0, 0.0], [2.0, 1.0]]))
        Array([[ 0.5,  0. ],
               [-1. ,  1. ]], dtype=float32)
    """
    a = operands.square_matrices("inv", a)
    return _solve(a, eye(a.shape[-1], dtype=a.dtype))


@one_program(static=("ind",))
def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """The inverse of an array as a linear map of its last dimensions onto its first ones.

    Shapes:     a: T[s, t] -> T[t, s], with `ind` dimensions in s, and equal products of s and t.
    Source:     mirrors jax.numpy.linalg.tensorinv (0.10).

    Raises:
        ValueError: `ind` is not positive, or the dimensions do not make a square matrix.

    Example:
        >>> jnp.linalg.tensorinv(2.0 * jnp.eye(4).reshape(2, 2, 4)).shape
        (4, 2, 2)
    """
    a = operands.inexact("tensorinv", a)
    count = operator.index(ind)
    rows, columns = a.shape[: max(count, 0)], a.shape[max(count, 0) :]
    if count <= 0 or math.prod(rows) != math.prod(columns):
        error(
            ValueError,
            "numpy.linalg.tensorinv",
            "the dimensions before and after `ind` do not make a square matrix.",
            got={"a": aval_of(a), "ind": ind},
            expected="equal products of both, and ind at least 1",
        )
    return inv(a.reshape(math.prod(rows), math.prod(columns))).reshape(*columns, *rows)


@one_program(static=("axes",))
def tensorsolve(a: ArrayLike, b: ArrayLike, axes: tuple[int, ...] | None = None) -> Array:
    """The solution x of tensordot(a, x, x.ndim) = b.

    Shapes:     a: T[s, t], b: T[s] -> T[t], with as many elements in s as in t.
    Source:     mirrors jax.numpy.linalg.tensorsolve (0.10).

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
    a, b = operands.inexact_together("tensorsolve", a, b)
    if axes is not None:
        a = moveaxis(a, axes, tuple(range(a.ndim - len(axes), a.ndim)))
    shape = a.shape[b.ndim :]
    if a.shape[: b.ndim] != b.shape or math.prod(shape) != b.size:
        error(
            ValueError,
            "numpy.linalg.tensorsolve",
            "the dimensions do not make a square system of equations.",
            got={"a": aval_of(a), "b": aval_of(b)},
            expected="a: T[s, t] and b: T[s], with equal products of s and of t",
        )
    return solve(a.reshape(b.size, b.size), b.ravel()).reshape(shape)


def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """The x that make |a x - b| least, and of these the shortest.

    Shapes:     a: T[m, n], b: T[m] or T[m, k] -> x: T[n] or T[n, k], the squared residuals, T[1] or
                T[k], the rank, int32[], and the singular values, T[min(m, n)].
    Dtypes:     float32, float64 and complex, promoted; integers become floats.
    Source:     mirrors jax.numpy.linalg.lstsq (0.10).

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
    a, b = operands.inexact_together("lstsq", a, b)
    _check_least_squares(a, b)
    right = b[:, None] if b.ndim == 1 else b
    epsilon = float(dtypes.finfo(a.dtype).eps)
    if rcond is None:
        rcond = epsilon * max(a.shape)
    else:
        rcond = where(array_argument("linalg.lstsq", rcond) < 0, epsilon, rcond)
    u, s, vh = svd(a, full_matrices=False)
    counts = (s > 0) & (s >= rcond * s[:1])
    scales = where(counts, 1 / where(counts, s, 1), 0)[:, None]
    projected = scales * matrices.product(matrices.adjoint(u), right)
    x = matrices.product(matrices.adjoint(vh), projected)
    residuals = sum_of(operands.squared(right - matrices.product(a, x)), 0)
    return x[:, 0] if b.ndim == 1 else x, residuals, sum_of(counts), s


def _check_least_squares(a: Any, b: Any) -> None:
    got = {"a": aval_of(a), "b": aval_of(b)}
    if b.ndim == 0 or a.shape[:1] != b.shape[:1]:
        error(
            ValueError,
            "numpy.linalg.lstsq",
            "b does not have as many rows as a.",
            got=got,
            expected="a: T[m, n], and b: T[m] or T[m, k]",
        )
    if a.ndim != 2 or b.ndim > 2:
        error(
            TypeError,
            "numpy.linalg.lstsq",
            "a and b are no matrices.",
            got=got,
            fix="minijax.vmap, for batches",
        )


def pinv(
    a: ArrayLike,
    rtol: ArrayLike | None = None,
    hermitian: bool = False,
    *,
    rcond: ArrayLike | None = None,
) -> Array:
    """The pseudoinverses of matrices, by Moore and Penrose.

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
        ValueError: `a` is no matrix, or both names are given.

    Example:
        >>> jnp.linalg.pinv(jnp.array([[2.0], [0.0]]))
        Array([[0.5, 0. ]], dtype=float32)
    """
    if rtol is not None and rcond is not None:
        error(
            ValueError,
            "numpy.linalg.pinv",
            "rtol and rcond are two names of one argument.",
            got={"rtol": rtol, "rcond": rcond},
            fix="give one",
        )
    return _pinv(a, rcond if rtol is None else rtol, hermitian)


@one_program(static=("hermitian",))
def _pinv(a: Any, rtol: Any, hermitian: bool) -> Any:
    a = operands.matrices("pinv", a)
    if rtol is None:
        rtol = 10 * max(a.shape[-2:]) * float(dtypes.finfo(a.dtype).eps)
    return _pseudoinverse(a, stop_gradient(array_argument("linalg.pinv", rtol)), hermitian)


# Tolerances, and with them results, may have more leading dimensions than matrices.
_product = functools.partial(matmul, precision=Precision.HIGHEST)


@functools.partial(custom_jvp, nondiff_argnums=(2,))
def _pseudoinverse(a: Any, rtol: Any, hermitian: bool) -> Any:
    u, s, vh = svd(a, full_matrices=False, hermitian=hermitian)
    scales = where(s > rtol[..., None] * s[..., :1], s, np.inf).astype(a.dtype)
    return _product(matrices.adjoint(vh), matrices.adjoint(u) / scales[..., None])


@_pseudoinverse.defjvp
def _pseudoinverse_jvp(
    hermitian: bool, primals: tuple[Any, Any], tangents: tuple[Any, Any]
) -> tuple[Any, Any]:
    # P' = -P a' P + P Pᴴ a'ᴴ (I - a P) + (I - P a) a'ᴴ Pᴴ P, with small products first.
    (a, rtol), (a_dot, _) = primals, tangents
    p = _pseudoinverse(a, rtol, hermitian)
    if hermitian:
        # The eigenvalues are those of the Hermitian part.
        a, a_dot = matrices.symmetrized(a), matrices.symmetrized(a_dot)
    adjoint, adjoint_dot = matrices.adjoint(p), matrices.adjoint(a_dot)
    inside = _product(_product(p, a_dot), p)
    left = _product(_product(p, adjoint), adjoint_dot)
    left = left - _product(_product(left, a), p)
    right = _product(_product(adjoint_dot, adjoint), p)
    right = right - _product(_product(p, a), right)
    return p, left + right - inside
