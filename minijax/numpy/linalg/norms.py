"""Norms of vectors and matrices, and what follows from singular values: condition and rank."""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import error, message
from minijax.lax import unary
from minijax.numpy import reductions
from minijax.numpy.arithmetic import sqrt
from minijax.numpy.linalg import operands
from minijax.numpy.linalg.equations import inv
from minijax.numpy.linalg.factorizations import svd
from minijax.numpy.logic import isnan
from minijax.numpy.one_program import one_program
from minijax.numpy.selection import where
from minijax.numpy.shaping import canonical_axes, expand_dims, moveaxis
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array

_MATRIX_ORDERS = (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)


@one_program(static=("ord", "axis", "keepdims"))
def norm(
    x: ArrayLike,
    ord: int | str | None = None,
    axis: tuple[int, ...] | int | None = None,
    keepdims: bool = False,
) -> Array:
    """Norms of vectors or matrices.

    Shapes:     x: T[s] -> real T[s without axis].
    Dtypes:     inexact; integers become floats.
    Derivative: that of the formula; NaN for the length of a vector of zeros.
    Source:     mirrors jax.numpy.linalg.norm (0.10).

    Args:
        x: the array.
        ord: which norm.  None: the root of the sum of squares, of everything where `axis` is None.
            Of vectors: a number p, for the p-th root of the sum of p-th powers; infinity, -infinity
            and 0 mean the largest element, the smallest, and how many are not zero.  Of matrices:
            "fro", "nuc", or 1, -1, 2, -2, infinity, -infinity, as in NumPy.
        axis: an axis of vectors, or two of matrices; None: x is one vector or matrix.
        keepdims: whether reduced dimensions stay, with size 1.

    Raises:
        ValueError: `ord` is no norm of these, or an axis is out of range or named twice.

    Example:
        >>> jnp.linalg.norm(jnp.array([3.0, 4.0]))
        Array(5., dtype=float32)
        >>> jnp.linalg.norm(jnp.array([[1.0, -2.0], [3.0, 0.0]]), ord=1)
        Array(4., dtype=float32)
    """
    x = operands.inexact("norm", x)
    if axis is None and ord is None:
        return _length(x, tuple(range(x.ndim)), keepdims)
    axes = canonical_axes("linalg.norm", tuple(range(x.ndim)) if axis is None else axis, x.ndim)
    if len(axes) == 1:
        return _norm_of_vectors("norm", x, ord, axes, keepdims)
    if len(axes) == 2:
        return _norm_of_matrices("norm", x, ord, axes, keepdims)
    error(
        ValueError,
        "numpy.linalg.norm",
        "norms are of vectors or matrices.",
        got={"x": aval_of(x), "axis": axis},
        expected="one axis or two",
    )


@one_program(static=("keepdims", "ord"))
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: str | int = "fro") -> Array:
    """Norms of the matrices in the last two dimensions.

    Shapes:     x: T[..., m, n] -> real T[...].
    Source:     mirrors jax.numpy.linalg.matrix_norm (0.10).

    Args:
        x: matrices.
        keepdims: whether reduced dimensions stay, with size 1.
        ord: which norm, as in `norm`.

    Raises:
        ValueError: `x` is no matrix, or `ord` is no norm of matrices.

    Example:
        >>> jnp.linalg.matrix_norm(jnp.array([[3.0, 0.0], [0.0, 4.0]]))
        Array(5., dtype=float32)
    """
    x = operands.matrices("matrix_norm", x, "x")
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
    """Norms of the vectors that lie along one axis or several.

    Shapes:     x: T[s] -> real T[s without axis].
    Source:     mirrors jax.numpy.linalg.vector_norm (0.10).

    Args:
        x: the array.
        axis: where the components stand; None: everywhere.
        keepdims: whether reduced dimensions stay, with size 1.
        ord: which norm, as in `norm`.

    Raises:
        ValueError: `ord` is no norm of vectors, or an axis is out of range or named twice.

    Example:
        >>> jnp.linalg.vector_norm(jnp.array([[3.0, 0.0], [0.0, 4.0]]), axis=0)
        Array([3., 4.], dtype=float32)
    """
    x = operands.inexact("vector_norm", x)
    given = tuple(range(x.ndim)) if axis is None else axis
    axes = canonical_axes("linalg.vector_norm", given, x.ndim)
    return _norm_of_vectors("vector_norm", x, ord, axes, keepdims)


def _length(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """The root of the sum of squares."""
    return sqrt(reductions.sum(operands.squared(x), axes, keepdims=keepdims))


def _norm_of_vectors(name: str, x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    if isinstance(ord, str):
        raise _refuse_order(name, ord, "vectors", "a number or None")
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


def _norm_of_matrices(name: str, x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    if ord not in _MATRIX_ORDERS:
        raise _refuse_order(name, ord, "matrices", "'fro', 'nuc', 1, -1, 2, -2, inf or -inf")
    if ord in (None, "fro"):
        return _length(x, axes, keepdims)
    if ord in ("nuc", 2, -2):
        values = svd(moveaxis(x, axes, (-2, -1)), compute_uv=False)
        found = _extreme(values, ord) if ord != "nuc" else reductions.sum(values, -1)
    else:
        summed, compared = axes if abs(ord) == 1 else axes[::-1]
        sums = reductions.sum(unary.abs(x), summed, keepdims=True)
        found = _extreme(moveaxis(sums, (summed, compared), (-2, -1))[..., 0, :], ord)
    return expand_dims(found, axes) if keepdims else found


def _extreme(x: Any, sign: float) -> Any:
    """The largest or smallest element along the last axis, by a sign."""
    return reductions.max(x, -1, initial=0) if sign > 0 else reductions.min(x, -1)


def _refuse_order(name: str, given: Any, of: str, expected: str) -> ValueError:
    return ValueError(
        message(
            f"numpy.linalg.{name}",
            f"ord is no norm of {of}.",
            got=f"ord: {given!r}",
            expected=expected,
        )
    )


@one_program(static=("p",))
def cond(x: ArrayLike, p: int | float | str | None = None) -> Array:
    """The condition numbers of matrices.

    Shapes:     x: T[..., m, n] -> real T[...]; m = n but for p None, 2 or -2.
    Dtypes:     inexact; integers become floats.
    Source:     mirrors jax.numpy.linalg.cond (0.10).

    Args:
        x: matrices.
        p: the norm for the size of x and of its inverse, as in `norm`; None, 2 and -2: the ratio of
            extreme singular values.

    Raises:
        ValueError: `x` is no matrix, has no elements, or p is no norm of matrices.

    Example:
        >>> jnp.linalg.cond(jnp.array([[4.0, 0.0], [0.0, 2.0]]))
        Array(2., dtype=float32)
    """
    x = operands.matrices("cond", x, "x")
    if 0 in x.shape[-2:]:
        error(
            ValueError,
            "numpy.linalg.cond",
            "matrices without elements have none.",
            got={"x": aval_of(x)},
        )
    if p in (None, 2, -2):
        values = svd(x, compute_uv=False)
        largest, smallest = values[..., 0], values[..., -1]
        return smallest / largest if p == -2 else largest / smallest
    operands.check_square("cond", x, "x")
    axes = (x.ndim - 2, x.ndim - 1)
    sizes = (_norm_of_matrices("cond", y, p, axes, keepdims=False) for y in (x, inv(x)))
    ratio = next(sizes) * next(sizes)
    # The inverse of a singular matrix may hold NaN.
    return where(isnan(ratio) & ~reductions.any(isnan(x), axes), np.inf, ratio)


def matrix_rank(
    M: ArrayLike,  # noqa: N803  NumPy's name
    rtol: ArrayLike | None = None,
    *,
    hermitian: bool = False,
    tol: ArrayLike | None = None,
) -> Array:
    """The ranks of matrices: how many singular values are not zero.

    Shapes:     M: T[..., m, n] -> int32[...]; of a vector, whether it has an element besides zeros.
    Source:     mirrors jax.numpy.linalg.matrix_rank (0.10).

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
    if rtol is not None and tol is not None:
        error(
            ValueError,
            "numpy.linalg.matrix_rank",
            "rtol and tol are two names of one argument.",
            got={"rtol": rtol, "tol": tol},
            fix="give one",
        )
    return _matrix_rank(M, tol if rtol is None else rtol, hermitian)


@one_program(static=("hermitian",))
def _matrix_rank(x: Any, limit: Any, hermitian: bool) -> Any:
    x = operands.inexact("matrix_rank", x)
    if x.ndim < 2:
        return reductions.any(x != 0).astype(np.int32)
    s = svd(x, full_matrices=False, compute_uv=False, hermitian=hermitian)
    if limit is None:
        limit = reductions.max(s, -1) * (max(x.shape[-2:]) * float(dtypes.finfo(s.dtype).eps))
    return reductions.sum(s > expand_dims(limit, np.ndim(limit)), -1)
