"""The polar decomposition by the dynamically weighted Halley iteration.

Nakatsukasa, Bai and Gygi (2010), "Optimizing Halley's iteration for computing the matrix polar
decomposition"; Nakatsukasa and Higham (2013), §3, for its two forms.  The iteration
X ← X (a + b XᴴX) (1 + c XᴴX)⁻¹ drives all singular values to 1.  A lower bound of theirs gives the
weights, so these are known before anything is computed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.interpreters.structural import broadcast_in_dim, full
from minijax.lax import binary, reduction, unary
from minijax.lax.choice import select
from minijax.lax.control_flow.looping import while_loop
from minijax.lax.convert import convert_element_type
from minijax.lax.creation import broadcasted_iota
from minijax.lax.families import INEXACT
from minijax.lax.families import operand as as_operand
from minijax.lax.linalg import matrices
from minijax.lax.linalg.cholesky import cholesky
from minijax.lax.linalg.qr import qr
from minijax.lax.linalg.triangular import triangular_solve
from minijax.lax.power import sqrt, square
from minijax.lax.shape import concatenate
from minijax.lax.slicing import dynamic_index_in_dim, slice_in_dim
from minijax.lax.stacking import unstack
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array

Weights = tuple[float, float, float]

# Above this c the inverse is ill-conditioned, and QR takes the place of Cholesky's factors.
_LARGEST_FOR_CHOLESKY = 100.0
_ITERATIONS = 10


def qdwh(
    x: ArrayLike,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[int, int] | None = None,
) -> tuple[Array, Array, Array, Array]:
    """The polar decomposition of a matrix: (U, H, how many iterations, whether they converged).

    U has orthonormal columns, H is Hermitian and positive semidefinite, and U H = x.

    Shapes:     x: T[m, n], m >= n -> T[m, n], T[n, n], int32[], bool[].
    Dtypes:     float32, float64, complex64, complex128.
    Derivative: forward mode alone, through the loop.
    Source:     mirrors jax.lax.linalg.qdwh (0.10); Nakatsukasa, Bai and Gygi (2010).

    Args:
        x: a matrix.
        is_hermitian: whether x is Hermitian, which saves no work here.
        max_iterations: how many at most; 10 by default.
        eps: the relative precision wanted; that of the dtype by default.
        dynamic_shape: how many rows and columns count, where the others are padding.

    Raises:
        ValueError: the dtype is not inexact; x is no matrix, has more columns than rows, or is not
            square where it is Hermitian.

    Example:
        >>> u, h, count, converged = lax.linalg.qdwh(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
        >>> bool(converged)
        True
    """
    x = as_operand(x)
    _check(aval_of(x), is_hermitian)
    real = dtypes.real_dtype_of(x.dtype)
    if dynamic_shape is not None:
        x = _masked(x, dynamic_shape)
    precision = float(dtypes.finfo(real).eps) if eps is None else float(eps)
    limit = _ITERATIONS if max_iterations is None else max_iterations
    weights = _schedule(precision)
    first = sum(c > _LARGEST_FOR_CHOLESKY for _, _, c in weights[:limit])
    u = _scaled(x)
    for each in weights[:first]:
        u = _step_by_qr(u, *each)
    # The first steps change little where all singular values are alike, and prove nothing.
    change = full((), math.inf, real)
    tolerance = full((), (4 * precision) ** (1 / 3), real)

    def goes_on(state: tuple[Any, Any, Any]) -> Any:
        _, change, count = state
        return binary.bitwise_and(binary.lt(count, limit), binary.gt(change, tolerance))

    def step(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        u, _, count = state
        new = _step_by_cholesky(u, *_weights_at(weights[first:], binary.sub(count, first), real))
        return new, _norm(binary.sub(new, u)), binary.add(count, 1)

    u, change, count = while_loop(goes_on, step, (u, change, np.int32(first)))
    # What rounding has left is corrected by a step of Newton's and Schulz's iteration.
    cubed = matrices.product(u, matrices.product(matrices.adjoint(u), u))
    u = _combined(1.5, u, -0.5, cubed)
    h = matrices.symmetrized(matrices.product(matrices.adjoint(u), x))
    return u, h, count, unary.bitwise_not(binary.gt(change, tolerance))


def _check(aval: Any, is_hermitian: bool) -> None:
    if not any(dtypes.issubdtype(aval.dtype, kind) for kind in INEXACT):
        problem = "the dtype is not inexact."
    elif aval.ndim != 2:
        problem = "x is not a matrix."
    elif aval.shape[0] < aval.shape[1]:
        problem = "x has more columns than rows."
    elif is_hermitian and aval.shape[0] != aval.shape[1]:
        problem = "x cannot be Hermitian, as it is not square."
    else:
        return
    error(
        ValueError, "lax.linalg.qdwh", problem, got={"x": aval}, expected="x: T[m, n] with m >= n"
    )


def _schedule(precision: float) -> list[Weights]:
    """The weights of each iteration, if no singular value is less than `precision` at first."""
    bound, weights = precision, list[Weights]()
    while abs(1 - bound) > 4 * precision and len(weights) < _ITERATIONS:
        square = bound**2
        d = (4 * (1 - square) / square**2) ** (1 / 3)
        root = math.sqrt(1 + d)
        a = root + 0.5 * math.sqrt(8 - 4 * d + 8 * (2 - square) / (square * root))
        b = (a - 1) ** 2 / 4
        c = a + b - 1
        weights.append((a, b, c))
        bound = min(bound * (a + b * square) / (1 + c * square), 1.0)
    # Those of Halley's own iteration, to which all others tend.
    return [*weights, (3.0, 1.0, 3.0)]


def _weights_at(weights: list[Weights], index: Any, dtype: Any) -> tuple[Any, Any, Any]:
    last = binary.min(index, len(weights) - 1)
    a, b, c = unstack(dynamic_index_in_dim(np.array(weights, dtype), last, keepdims=False))
    return a, b, c


def _masked(x: Any, shape: tuple[int, int]) -> Any:
    """`x` with zeros behind so many rows and columns."""
    places = [broadcasted_iota("int32", x.shape, dim) for dim in range(2)]
    rows, columns = (
        binary.lt(place, convert_element_type(size, "int32"))
        for place, size in zip(places, shape, strict=True)
    )
    return select(binary.bitwise_and(rows, columns), x, full(x.shape, 0, x.dtype))


def _scaled(x: Any) -> Any:
    """`x` divided by a bound of its norm: the geometric mean of the largest sums of either side."""
    sizes = unary.abs(x)
    by_rows, by_columns = (
        reduction.reduce_max(reduction.reduce_sum(sizes, (dim,)), (0,)) for dim in range(2)
    )
    bound = binary.mul(sqrt(by_rows), sqrt(by_columns))
    one = full((), 1, bound.dtype)
    bound = select(binary.gt(bound, full((), 0, bound.dtype)), bound, one)
    return binary.div(x, _spread(bound, x))


def _step_by_qr(u: Any, a: float, b: float, c: float) -> Any:
    """By the orthonormal columns of √c X with the identity under it."""
    rows, columns = u.shape
    eye = matrices.identity_like(full((columns, columns), 0, u.dtype))
    stacked = concatenate([binary.mul(u, _spread(math.sqrt(c), u)), eye], 0)
    q, _ = qr(stacked, full_matrices=False)
    upper, lower = slice_in_dim(q, 0, rows), slice_in_dim(q, rows, rows + columns)
    turned = matrices.product(upper, matrices.adjoint(lower))
    return _combined(b / c, u, (a - b / c) / math.sqrt(c), turned)


def _step_by_cholesky(u: Any, a: Any, b: Any, c: Any) -> Any:
    """By the Cholesky factors of 1 + c XᴴX."""
    gram = matrices.product(matrices.adjoint(u), u)
    gram = binary.add(binary.mul(gram, _spread(c, gram)), matrices.identity_like(gram))
    factor = cholesky(gram, symmetrize_input=False)
    half = triangular_solve(factor, u, lower=True, transpose_a=True, conjugate_a=True)
    ratio = binary.div(b, c)
    return _combined(ratio, u, binary.sub(a, ratio), triangular_solve(factor, half, lower=True))


def _combined(s: Any, x: Any, t: Any, y: Any) -> Any:
    """s x + t y, for numbers s and t."""
    return binary.add(binary.mul(x, _spread(s, x)), binary.mul(y, _spread(t, y)))


def _spread(number: Any, like: Any) -> Any:
    """A number in each place of an array of the shape and dtype of another."""
    if isinstance(number, float):
        return full(like.shape, number, like.dtype)
    return broadcast_in_dim(matrices.converted(number, like.dtype), like.shape, ())


def _norm(x: Any) -> Any:
    """Frobenius' norm of a matrix."""
    return sqrt(reduction.reduce_sum(square(unary.abs(x)), (0, 1)))
