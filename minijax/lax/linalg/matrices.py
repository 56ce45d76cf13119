"""Small operations on matrices, in the last two dimensions, of which rules are made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minijax.interpreters.structural import broadcast_in_dim, full
from minijax.lax import binary, creation, dots, slicing, unary
from minijax.lax.choice import select
from minijax.lax.convert import convert_element_type
from minijax.lax.gather_numbers import GatherDimensionNumbers
from minijax.lax.gather_scatter import gather
from minijax.lax.power import reciprocal
from minijax.lax.precision import Precision
from minijax.lax.reduction import reduce_sum
from minijax.lax.shape import expand_dims
from minijax.lax.shape import transpose as permute


def transposed(x: Any) -> Any:
    """Rows and columns exchanged."""
    batch = tuple(range(x.ndim - 2))
    return permute(x, (*batch, x.ndim - 1, x.ndim - 2))


def adjoint(x: Any) -> Any:
    """The conjugate of the transposed matrix."""
    return transposed(conjugate(x))


def conjugate(x: Any) -> Any:
    """The complex conjugate; real arrays pass."""
    return unary.conj(x) if x.dtype.kind == "c" else x


def product(x: Any, y: Any) -> Any:
    """The product of matrices, as exactly as the hardware can."""
    batch = tuple(range(x.ndim - 2))
    numbers = (((x.ndim - 1,), (x.ndim - 2,)), (batch, batch))
    return dots.dot_general(x, y, numbers, precision=Precision.HIGHEST)


def times_vector(x: Any, v: Any) -> Any:
    """The products of matrices and vectors: T[..., m, n], T[..., n] -> T[..., m]."""
    batch = tuple(range(v.ndim - 1))
    numbers = (((x.ndim - 1,), (v.ndim - 1,)), (batch, batch))
    return dots.dot_general(x, v, numbers, precision=Precision.HIGHEST)


def symmetrized(x: Any) -> Any:
    """The Hermitian part, (x + xᴴ) / 2."""
    return halved(plus_adjoint(x))


def plus_adjoint(x: Any) -> Any:
    """x + xᴴ."""
    return binary.add(x, adjoint(x))


def halved(x: Any) -> Any:
    """x / 2."""
    return binary.div(x, 2.0)


def real_part(x: Any) -> Any:
    """The real part; real arrays pass."""
    return unary.real(x) if x.dtype.kind == "c" else x


def converted(x: Any, dtype: Any) -> Any:
    """`x` in another dtype."""
    return x if x.dtype == dtype else convert_element_type(x, dtype)


def only_diagonal(x: Any) -> Any:
    """`x` with zeros off the diagonal."""
    return select(_compared(binary.eq, x), x, full(x.shape, 0, x.dtype))


def diagonal(x: Any) -> Any:
    """The diagonals of square matrices: T[..., n, n] -> T[..., n]."""
    return reduce_sum(only_diagonal(x), (x.ndim - 2,))


def scaled_columns(x: Any, v: Any) -> Any:
    """x diag(v): each column of a matrix times an element of a vector."""
    return binary.mul(x, broadcast_in_dim(v, x.shape, (*range(x.ndim - 2), x.ndim - 1)))


def scaled_rows(x: Any, v: Any) -> Any:
    """diag(v) x: each row of a matrix times an element of a vector."""
    return binary.mul(x, broadcast_in_dim(v, x.shape, tuple(range(x.ndim - 1))))


def pairs(values: Any) -> tuple[Any, Any]:
    """v_j and v_i at (i, j), for all pairs of elements of vectors: T[..., n] -> T[..., n, n]."""
    batch, shape = tuple(range(values.ndim - 1)), (*values.shape, values.shape[-1])
    in_column = broadcast_in_dim(values, shape, (*batch, values.ndim))
    return in_column, broadcast_in_dim(values, shape, (*batch, values.ndim - 1))


def reciprocals_off_diagonal(x: Any) -> Any:
    """1 / x, and 0 on the diagonal, where x is zero."""
    eye = identity_like(x)
    # The identity keeps the diagonal away from a division by zero, in derivatives as well.
    return binary.sub(reciprocal(binary.add(x, eye)), eye)


def lower_triangle(x: Any, k: int = 0) -> Any:
    """`x` with zeros above diagonal `k`."""
    return select(_compared(binary.ge, x, k), x, full(x.shape, 0, x.dtype))


def strict_lower_triangle(x: Any) -> Any:
    """`x` with zeros on the diagonal and above."""
    return lower_triangle(x, -1)


def upper_triangle(x: Any, k: int = 0) -> Any:
    """`x` with zeros below diagonal `k`."""
    return select(_compared(binary.ge, x, k - 1), full(x.shape, 0, x.dtype), x)


def identity_like(x: Any) -> Any:
    """Identity matrices, of the shape and dtype of `x`; ones on the diagonal of other matrices."""
    return convert_element_type(_compared(binary.eq, x), x.dtype)


def block(x: Any, rows: tuple[int, int], columns: tuple[int, int]) -> Any:
    """The part of matrices from a row and a column up to others."""
    batch = x.shape[:-2]
    if (rows, columns) == ((0, x.shape[-2]), (0, x.shape[-1])):
        return x
    starts = (*[0] * len(batch), rows[0], columns[0])
    return slicing.slice(x, starts, (*batch, rows[1], columns[1]))


def columns_at(x: Any, places: Any) -> Any:
    """Columns in another order: T[..., m, n], int[..., n] -> T[..., m, n]."""
    return _reordered(x, places, x.ndim - 1, x.ndim - 2)


def rows_at(x: Any, places: Any) -> Any:
    """Rows in another order: T[..., m, n], int[..., m] -> T[..., m, n]."""
    return _reordered(x, places, x.ndim - 2, x.ndim - 1)


def _reordered(x: Any, places: Any, dim: int, other: int) -> Any:
    batch = tuple(range(x.ndim - 2))
    numbers = GatherDimensionNumbers(
        offset_dims=(other,),
        collapsed_slice_dims=(dim,),
        start_index_map=(dim,),
        operand_batching_dims=batch,
        start_indices_batching_dims=batch,
    )
    sizes = [min(size, 1) for size in x.shape]
    sizes[other] = x.shape[other]
    return gather(x, expand_dims(places, (places.ndim,)), numbers, sizes, unique_indices=True)


def _compared(comparison: Callable[[Any, Any], Any], x: Any, k: int = 0) -> Any:
    """A comparison of row + k with column, for each place of the matrices in `x`."""
    shape = x.shape[-2:]
    rows = creation.broadcasted_iota("int32", shape, 0)
    columns = creation.broadcasted_iota("int32", shape, 1)
    if k:
        rows = binary.add(rows, full(shape, k, rows.dtype))
    return broadcast_in_dim(comparison(rows, columns), x.shape, (x.ndim - 2, x.ndim - 1))
