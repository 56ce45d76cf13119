"""BCSR: sparse matrices that store their elements row by row.

Stored are `data`, T[batch, nse, dense], the columns of elements, int[batch, nse], and `indptr`,
int[batch, rows + 1]: the elements of row i stand at `indptr[i]` up to, and without,
`indptr[i + 1]`.  What stands behind the last row fills up.

What is computed is computed in the format of coordinates, which costs a gather each way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import numpy
from minijax.core import dtypes, source
from minijax.core.aval import aval_of
from minijax.core.tree_registry import register_pytree_node_class
from minijax.experimental.sparse import coordinates, layouts, products
from minijax.experimental.sparse.arrays import JAXSparse, by_places
from minijax.experimental.sparse.coordinates import BCOO, over_batch, refuse
from minijax.runtime.array import Array


@source.boundaries()
@register_pytree_node_class
class BCSR(JAXSparse):
    """A sparse matrix in the format of compressed rows, with batch and dense dimensions.

    Attributes:
        data: the elements, T[batch, nse, dense].
        indices: their columns, int[batch, nse].
        indptr: where each row begins, and where the last ends, int[batch, rows + 1].
        indices_sorted: whether the columns are known to be in order within each row.
        unique_indices: whether no place is known to appear twice.

    Args:
        args: (data, indices, indptr).
        shape: the shape of the array.
        indices_sorted: as the attribute.
        unique_indices: as the attribute.

    Raises:
        ValueError: the shapes of buffers do not fit.
        TypeError: indices are no integers.

    Example:
        >>> from minijax.experimental import sparse
        >>> x = sparse.BCSR.fromdense(jnp.array([[0, 1, 0], [2, 0, 3]]))
        >>> x
        BCSR(int32[2, 3], nse=3)
        >>> x.indptr.tolist()
        [0, 1, 3]
        >>> x @ jnp.array([1, 10, 100])
        Array([ 10, 302], dtype=int32)
    """

    def __init__(
        self,
        args: tuple[Any, Any, Any],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> None:
        data, indices, indptr = (numpy.asarray(x) for x in args)
        shape = tuple(map(int, shape))
        got = {
            "data": aval_of(data),
            "indices": aval_of(indices),
            "indptr": aval_of(indptr),
            "shape": shape,
        }
        if not all(dtypes.issubdtype(x.dtype, np.integer) for x in (indices, indptr)):
            refuse("BCSR", "indices must be integers.", got=got, kind=TypeError)
        n_batch = indices.ndim - 1
        batch, rows, dense = shape[:n_batch], shape[n_batch : n_batch + 1], shape[n_batch + 2 :]
        stored = indices.shape[n_batch:]
        wanted = (*batch, *stored, *dense), (*batch, *stored), (*batch, *(n + 1 for n in rows))
        if len(shape) < n_batch + 2 or (data.shape, indices.shape, indptr.shape) != wanted:
            expected = "data[batch, nse, dense], indices[batch, nse], indptr[batch, rows + 1]"
            refuse("BCSR", "the shapes do not fit.", got=got, expected=expected)
        self.data, self.indices, self.indptr = data, indices, indptr
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)
        self.example_shape = shape[n_batch:]

    def tree_flatten(self) -> tuple[tuple[Any, Any, Any], tuple[Any, ...]]:
        """The buffers, and what a tree remembers besides."""
        return (
            (self.data, self.indices, self.indptr),
            (self.example_shape, self.indices_sorted, self.unique_indices),
        )

    @classmethod
    def tree_unflatten(cls, aux_data: tuple[Any, ...], children: Sequence[Any]) -> BCSR:
        """An array of these buffers."""
        found = object.__new__(cls)
        found.data, found.indices, found.indptr = children
        found.example_shape, found.indices_sorted, found.unique_indices = aux_data
        return found

    def replaced(self, data: Any) -> BCSR:
        """The array with other elements at the same places."""
        return BCSR.tree_unflatten(self.tree_flatten()[1], (data, self.indices, self.indptr))

    @property
    def n_batch(self) -> int:
        """The number of batch dimensions."""
        return np.ndim(self.indices) - 1

    @property
    def n_sparse(self) -> int:
        """The number of sparse dimensions, which is 2."""
        return 2

    @property
    def nse(self) -> int:
        """The number of elements that are stored, for each example of a batch."""
        return int(np.shape(self.indices)[-1])

    @classmethod
    def fromdense(
        cls,
        mat: Any,
        *,
        nse: int | None = None,
        index_dtype: Any = np.int32,
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> BCSR:
        """What `bcsr_fromdense` returns."""
        return bcsr_fromdense(
            mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch
        )

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """The same array in another format.

        Raises:
            NotImplementedError: it has not two sparse dimensions.
        """
        if arr.n_sparse != 2:
            problem = "there have to be two sparse dimensions."
            refuse("BCSR.from_bcoo", problem, got=repr(arr), kind=NotImplementedError)
        arr = coordinates.bcoo_sort_indices(arr)
        rows = arr.sparse_shape[0]

        def example(indices: Array) -> tuple[Array, Array]:
            # What fills up a row, with a column beyond the shape, stays in it.
            counts = numpy.zeros(rows + 1, indices.dtype)
            counts = counts.at[indices[:, 0] + 1].add(1, mode="drop")
            return indices[:, 1], numpy.cumsum(counts, dtype=indices.dtype)

        buffers = over_batch(example, arr.n_batch)(arr.indices)
        flags = arr.example_shape, True, arr.unique_indices
        return cls.tree_unflatten(flags, (arr.data, *buffers))

    @classmethod
    def from_scipy_sparse(
        cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0
    ) -> BCSR:
        """The elements of a matrix of SciPy's, row by row."""
        return cls.from_bcoo(
            BCOO.from_scipy_sparse(mat, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)
        )

    def to_bcoo(self) -> BCOO:
        """The same array, stored by coordinates."""
        rows, columns = self.example_shape[:2]

        def example(indices: Array, indptr: Array) -> Array:
            places = numpy.arange(indices.shape[0], dtype=indptr.dtype)
            row = numpy.searchsorted(indptr, places, side="right").astype(indices.dtype) - 1
            column = numpy.where(row < rows, indices, columns)
            return numpy.stack([row, column], -1)

        indices = over_batch(example, self.n_batch)(self.indices, self.indptr)
        return BCOO.tree_unflatten(self.tree_flatten()[1], (self.data, indices))

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """The same array, with each place once.

        Args:
            nse: how many elements are stored, which has to be given under `jit`.
            remove_zeros: whether elements that are zero are left out.
        """
        return BCSR.from_bcoo(self.to_bcoo().sum_duplicates(nse, remove_zeros))

    def _computed(self, name: str, *args: Any) -> Any:
        return by_rows(self.to_bcoo()._computed(name, *args))


def by_rows(x: Any) -> Any:
    """What is stored by coordinates, stored by rows where it can be."""
    is_matrix = isinstance(x, BCOO) and x.n_sparse == 2
    return BCSR.from_bcoo(x) if is_matrix else x


def bcsr_fromdense(
    mat: Any,
    *,
    nse: int | None = None,
    n_batch: int = 0,
    n_dense: int = 0,
    index_dtype: Any = np.int32,
) -> BCSR:
    """A dense array as a sparse one, stored by rows.

    Args:
        mat: the array, with two dimensions besides those below.
        nse: how many elements are stored for each example; as many as are not zero, where absent.
        n_batch: how many of the first dimensions are batch dimensions.
        n_dense: how many of the last dimensions are dense.
        index_dtype: the dtype of indices.

    Raises:
        ConcretizationTypeError: `nse` is absent where the array is traced.
        ValueError: two dimensions are not left for rows and columns.

    Example:
        >>> from minijax.experimental import sparse
        >>> sparse.bcsr_fromdense(jnp.eye(3)).indptr.tolist()
        [0, 1, 2, 3]
    """
    mat = numpy.asarray(mat)
    if mat.ndim - n_batch - n_dense != 2:
        problem = "two dimensions have to be left for rows and columns."
        got = {"mat": aval_of(mat), "n_batch": n_batch, "n_dense": n_dense}
        refuse("bcsr_fromdense", problem, got=got)
    return BCSR.from_bcoo(
        coordinates.bcoo_fromdense(
            mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype
        )
    )


def bcsr_todense(mat: BCSR) -> Array:
    """The dense array.

    Example:
        >>> from minijax.experimental import sparse
        >>> sparse.bcsr_todense(sparse.bcsr_fromdense(jnp.eye(2))).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    return mat.todense()


def bcsr_dot_general(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: tuple[Any, Any],
    preferred_element_type: Any = None,
) -> Any:
    """A product as `lax.dot_general`'s, of which at least one operand is sparse.

    Raises:
        TypeError: the sizes of dimensions that belong together differ.

    Example:
        >>> from minijax.experimental import sparse
        >>> x, numbers = sparse.bcsr_fromdense(2 * jnp.eye(2)), (((1,), (0,)), ((), ()))
        >>> sparse.bcsr_dot_general(x, jnp.ones(2), dimension_numbers=numbers)
        Array([2., 2.], dtype=float32)
    """
    return by_rows(
        products.bcoo_dot_general(
            by_places(lhs),
            by_places(rhs),
            dimension_numbers=dimension_numbers,
            preferred_element_type=preferred_element_type,
        )
    )


def bcsr_extract(mat: BCSR, arr: Any) -> BCSR:
    """The elements of a dense array at the places of a sparse one.

    Example:
        >>> from minijax.experimental import sparse
        >>> x = sparse.bcsr_fromdense(jnp.eye(2))
        >>> sparse.bcsr_extract(x, jnp.array([[1, 2], [3, 4]])).data
        Array([1, 4], dtype=int32)
    """
    return mat.replaced(products.bcoo_extract(mat.to_bcoo(), arr, assume_unique=True).data)


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """Joins arrays of one layout along a batch or a sparse dimension.

    Raises:
        ValueError: there are none, or their shapes or layouts differ.

    Example:
        >>> from minijax.experimental import sparse
        >>> x = sparse.bcsr_fromdense(jnp.eye(2))
        >>> sparse.bcsr_concatenate([x, x], dimension=0)
        BCSR(float32[4, 2], nse=4)
    """
    return BCSR.from_bcoo(
        layouts.bcoo_concatenate([x.to_bcoo() for x in operands], dimension=dimension)
    )


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """The same array, with each place once, in order.

    Example:
        >>> from minijax.experimental import sparse
        >>> x = sparse.BCSR(([1, 2], [0, 0], [0, 2]), shape=(1, 3))
        >>> sparse.bcsr_sum_duplicates(x).data
        Array([3], dtype=int32)
    """
    return mat.sum_duplicates(nse, remove_zeros=False)
