"""Products of matrices and vectors, and what the array standard puts beside them."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import Any

from minijax.core.aval import aval_of
from minijax.core.errors import IncompatibleShapesError, error
from minijax.lax.precision import PrecisionLike
from minijax.numpy import calculus, contraction, promotion, shaping
from minijax.numpy import matrices as numpy_matrices
from minijax.numpy.linalg import operands
from minijax.numpy.linalg.equations import inv
from minijax.numpy.matrices import eye
from minijax.numpy.one_program import one_program
from minijax.numpy.shaping import array_argument, broadcast_to
from minijax.runtime.annotations import ArrayLike, DTypeLike
from minijax.runtime.array import Array
from minijax.sharding.named import NamedSharding


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """Computes the cross product of vectors of three components.

    Shapes:     x1: T[.., 3, ..], x2: T[.., 3, ..] -> T[.., 3, ..].
    Source:     mirrors jax.numpy.linalg.cross (0.10).

    Raises:
        ValueError: the vectors do not have three components.

    Example:
        >>> jnp.linalg.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
        Array([0, 0, 1], dtype=int32)
    """
    x1, x2 = array_argument("linalg.cross", x1), array_argument("linalg.cross", x2)
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        error(
            ValueError,
            "numpy.linalg.cross",
            "vectors must have three components.",
            got={"x1": x1.aval, "x2": x2.aval, "axis": axis},
            fix="numpy.cross takes two as well",
        )
    return promotion.strong(calculus.cross(x1, x2, axis=axis))


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """Returns the diagonals of the matrices in the last two dimensions.

    Shapes:     x: T[..., m, n] -> T[..., k], where k is the length of the diagonal.
    Source:     mirrors jax.numpy.linalg.diagonal (0.10).

    Raises:
        ValueError: `x` has fewer than two dimensions.

    Example:
        >>> jnp.linalg.diagonal(jnp.array([[1, 2], [3, 4]]))
        Array([1, 4], dtype=int32)
    """
    x = array_argument("linalg.diagonal", x)
    operands.check_matrices("diagonal", x, "x")
    return numpy_matrices.diagonal(x, offset=offset, axis1=-2, axis2=-1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Sums the diagonals of the matrices in the last two dimensions.

    Shapes:     x: T[..., m, n] -> T[...].
    Source:     mirrors jax.numpy.linalg.trace (0.10).

    Raises:
        ValueError: `x` has fewer than two dimensions.

    Example:
        >>> jnp.linalg.trace(jnp.array([[1, 2], [3, 4]]))
        Array(5, dtype=int32)
    """
    x = array_argument("linalg.trace", x)
    operands.check_matrices("trace", x, "x")
    return numpy_matrices.trace(x, offset=offset, axis1=-2, axis2=-1, dtype=dtype)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """Transposes the matrices in the last two dimensions.

    Shapes:     x: T[..., m, n] -> T[..., n, m].
    Source:     mirrors jax.numpy.linalg.matrix_transpose (0.10).

    Raises:
        ValueError: `x` has fewer than two dimensions.

    Example:
        >>> jnp.linalg.matrix_transpose(jnp.array([[1, 2]]))
        Array([[1],
               [2]], dtype=int32)
    """
    return shaping.matrix_transpose(x)


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
    Source:     mirrors jax.numpy.linalg.matmul (0.10).

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


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Computes the outer product of two vectors.

    Shapes:     x1: T[n], x2: T[m] -> T[n, m].
    Source:     mirrors jax.numpy.linalg.outer (0.10).

    Raises:
        ValueError: an argument is no vector.

    Example:
        >>> jnp.linalg.outer(jnp.array([1, 2]), jnp.array([3, 4]))
        Array([[3, 4],
               [6, 8]], dtype=int32)
    """
    x1, x2 = array_argument("linalg.outer", x1), array_argument("linalg.outer", x2)
    if x1.ndim != 1 or x2.ndim != 1:
        error(
            ValueError,
            "numpy.linalg.outer",
            "both arguments must be vectors.",
            got={"x1": x1.aval, "x2": x2.aval},
            fix="numpy.outer flattens what it gets",
        )
    return contraction.outer(x1, x2)


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
    Source:     mirrors jax.numpy.linalg.tensordot (0.10).

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


def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Computes the dot product of vectors along `axis`; see `numpy.vecdot`.

    Shapes:     x1: T[.., n, ..], x2: T[.., n, ..] -> T[.., ..]; other dimensions are broadcast.
    Source:     mirrors jax.numpy.linalg.vecdot (0.10).

    Raises:
        ValueError: the shapes do not fit.

    Example:
        >>> jnp.linalg.vecdot(jnp.array([[1, 2], [3, 4]]), jnp.array([10, 1]))
        Array([12, 34], dtype=int32)
    """
    return contraction.vecdot(
        x1, x2, axis=axis, precision=precision, preferred_element_type=preferred_element_type
    )


@one_program(static=("n",))
def matrix_power(a: ArrayLike, n: int) -> Array:
    """Raises square matrices to an integer power; a negative one inverts them first.

    Shapes:     a: T[..., m, m] -> T[..., m, m].
    Dtypes:     numeric; integers become floats where n is negative.
    Source:     mirrors jax.numpy.linalg.matrix_power (0.10).

    Raises:
        TypeError: `a` is no square matrix, nor a batch of them, or n is no integer.

    Example:
        >>> jnp.linalg.matrix_power(jnp.array([[1, 1], [0, 1]]), 5)
        Array([[1, 5],
               [0, 1]], dtype=int32)
    """
    a = array_argument("linalg.matrix_power", a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        error(
            IncompatibleShapesError,
            "numpy.linalg.matrix_power",
            "a is no square matrix, nor a batch of them.",
            got={"a": a.aval},
            expected="T[..., m, m]",
        )
    exponent = operator.index(n)
    if exponent == 0:
        return broadcast_to(eye(a.shape[-1], dtype=a.dtype), a.shape)
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
    factors = [array_argument("linalg.multi_dot", x) for x in arrays]
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
