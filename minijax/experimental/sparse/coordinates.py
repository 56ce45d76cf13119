"""BCOO: sparse arrays that store the coordinates of each element.

Stored are `data`, T[batch, nse, dense], and `indices`, int[batch, nse, sparse].  Elements of the
same coordinates add up.  Coordinates beyond the shape stand for nothing: they fill up an example
that has fewer elements than others.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from minijax import lax, numpy
from minijax.core import dtypes, source
from minijax.core.aval import aval_of
from minijax.core.errors import ConcretizationTypeError, error
from minijax.core.trace import Tracer
from minijax.core.tree_registry import register_pytree_node_class
from minijax.experimental.sparse.arrays import NAME, JAXSparse, Shape
from minijax.runtime.array import Array
from minijax.transforms.vmap import vmap


def over_batch(function: Callable[..., Any], depth: int) -> Callable[..., Any]:
    """A function of the buffers of an example, as one of buffers with batch dimensions."""
    for _ in range(depth):
        function = vmap(function)
    return function


def refuse(name: str, problem: str, **more: Any) -> NoReturn:
    """Raises an error about a function of sparse arrays."""
    kind = more.pop("kind", ValueError)
    error(kind, f"{NAME}.{name}", problem, **more)


def known(name: str, x: Any, what: str) -> Any:
    """The value of an array that decides how much is stored."""
    value = x.concrete() if isinstance(x, Tracer) else x
    if value is None:
        problem = f"{what} depends on traced values, and decides the size of the result."
        fix = "nse=n, with room for all elements"
        refuse(name, problem, got={"nse": None}, fix=fix, kind=ConcretizationTypeError)
    return value


@source.boundaries()
@register_pytree_node_class
class BCOO(JAXSparse):
    """A sparse array in the format of coordinates, with batch and dense dimensions.

    Attributes:
        data: the elements, T[batch, nse, dense].
        indices: their coordinates, int[batch, nse, sparse].
        indices_sorted: whether the coordinates are known to be in lexicographic order.
        unique_indices: whether no coordinates are known to appear twice.

    Args:
        args: (data, indices).
        shape: the shape of the array.
        indices_sorted: as the attribute.
        unique_indices: as the attribute.

    Raises:
        ValueError: the shapes of buffers do not fit.
        TypeError: indices are no integers.

    Example:
        >>> from minijax.experimental import sparse
        >>> x = sparse.BCOO.fromdense(jnp.array([[0, 1, 0], [2, 0, 3]]))
        >>> x
        BCOO(int32[2, 3], nse=3)
        >>> x @ jnp.array([1, 10, 100])
        Array([ 10, 302], dtype=int32)
    """

    def __init__(
        self,
        args: tuple[Any, Any],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> None:
        data, indices = (numpy.asarray(x) for x in args)
        shape = tuple(map(int, shape))
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)
        n_batch = indices.ndim - 2
        n_sparse = indices.shape[-1] if indices.ndim else 0
        got = {"data": aval_of(data), "indices": aval_of(indices), "shape": shape}
        if not dtypes.issubdtype(indices.dtype, np.integer):
            refuse("BCOO", "indices must be integers.", got=got, kind=TypeError)
        if n_batch < 0 or data.ndim != n_batch + 1 + len(shape) - n_batch - n_sparse:
            expected = "data[batch, nse, dense], indices[batch, nse, sparse]"
            refuse("BCOO", "the ranks do not fit.", got=got, expected=expected)
        dense = shape[n_batch + n_sparse :]
        batches = [x.shape[:n_batch] for x in (data, indices)]
        fits = all(b in (1, n) for batch in batches for b, n in zip(batch, shape, strict=False))
        if not fits or data.shape[n_batch:] != (indices.shape[-2], *dense):
            expected = f"data{[*shape[:n_batch], 'nse', *dense]}".replace("'", "")
            refuse("BCOO", "the shapes do not fit.", got=got, expected=expected)
        batch = shape[:n_batch]
        self.data = _with_batch(data, batch)
        self.indices = _with_batch(indices, batch)
        self.example_shape = shape[n_batch:]

    def tree_flatten(self) -> tuple[tuple[Any, Any], tuple[Any, ...]]:
        """The buffers, and what a tree remembers besides."""
        return (
            (self.data, self.indices),
            (self.example_shape, self.indices_sorted, self.unique_indices),
        )

    @classmethod
    def tree_unflatten(cls, aux_data: tuple[Any, ...], children: Sequence[Any]) -> BCOO:
        """An array of these buffers."""
        found = object.__new__(cls)
        found.data, found.indices = children
        found.example_shape, found.indices_sorted, found.unique_indices = aux_data
        return found

    def replaced(self, data: Any) -> BCOO:
        """The array with other elements at the same coordinates."""
        return BCOO.tree_unflatten(self.tree_flatten()[1], (data, self.indices))

    @property
    def n_batch(self) -> int:
        """The number of batch dimensions."""
        return np.ndim(self.indices) - 2

    @property
    def n_sparse(self) -> int:
        """The number of sparse dimensions."""
        return int(np.shape(self.indices)[-1])

    @property
    def nse(self) -> int:
        """The number of elements that are stored, for each example of a batch."""
        return int(np.shape(self.indices)[-2])

    @property
    def sparse_shape(self) -> Shape:
        """The sizes of the sparse dimensions."""
        return self.example_shape[: self.n_sparse]

    @property
    def dense_shape(self) -> Shape:
        """The sizes of the dense dimensions."""
        return self.example_shape[self.n_sparse :]

    @classmethod
    def fromdense(
        cls,
        mat: Any,
        *,
        nse: int | None = None,
        index_dtype: Any = np.int32,
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> BCOO:
        """What `bcoo_fromdense` returns."""
        return bcoo_fromdense(
            mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch
        )

    @classmethod
    def from_scipy_sparse(
        cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0
    ) -> BCOO:
        """The elements of a matrix of SciPy's, in the same order."""
        if n_dense or n_batch:
            problem = "SciPy's matrices have neither batch nor dense dimensions."
            got = {"n_batch": n_batch, "n_dense": n_dense}
            refuse("BCOO.from_scipy_sparse", problem, got=got, kind=NotImplementedError)
        mat = mat.tocoo()
        indices = np.column_stack([mat.row, mat.col]).astype(index_dtype or np.int32)
        return cls((mat.data, indices), shape=mat.shape)

    def to_bcoo(self) -> BCOO:
        """The array itself."""
        return self

    def sort_indices(self) -> BCOO:
        """The same elements, in the order of their coordinates."""
        return bcoo_sort_indices(self)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """The same array, with each coordinate once.

        Args:
            nse: how many elements are stored, which has to be given under `jit`.
            remove_zeros: whether elements that are zero are left out.
        """
        return without_zeros(self, nse) if remove_zeros else bcoo_sum_duplicates(self, nse)

    def update_layout(
        self,
        *,
        n_batch: int | None = None,
        n_dense: int | None = None,
        on_inefficient: str | None = "error",
    ) -> BCOO:
        """What `bcoo_update_layout` returns."""
        return JAXSparse.operations["update_layout"](self, n_batch, n_dense, on_inefficient)


def _with_batch(buffer: Array, batch: Shape) -> Array:
    wanted = (*batch, *buffer.shape[len(batch) :])
    return buffer if buffer.shape == wanted else numpy.broadcast_to(buffer, wanted)


def check_layout(name: str, ndim: int, n_batch: int, n_dense: int) -> None:
    """Refuses numbers of dimensions that no array of this rank has."""
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > ndim:
        problem = f"an array of rank {ndim} has no such layout."
        got = {"n_batch": n_batch, "n_dense": n_dense}
        refuse(name, problem, got=got, expected="n_batch + n_dense of at most the rank")


def bcoo_fromdense(
    mat: Any,
    *,
    nse: int | None = None,
    n_batch: int = 0,
    n_dense: int = 0,
    index_dtype: Any = np.int32,
) -> BCOO:
    """A dense array as a sparse one.

    Args:
        mat: the array.
        nse: how many elements are stored for each example; as many as are not zero, where absent.
            Elements beyond are left out.
        n_batch: how many of the first dimensions are batch dimensions.
        n_dense: how many of the last dimensions are dense.
        index_dtype: the dtype of indices.

    Raises:
        ConcretizationTypeError: `nse` is absent where the array is traced.
        ValueError: there are not so many dimensions.

    Example:
        >>> from minijax.experimental import sparse
        >>> sparse.bcoo_fromdense(jnp.eye(3), nse=5).indices.tolist()
        [[0, 0], [1, 1], [2, 2], [3, 3], [3, 3]]
    """
    mat = numpy.asarray(mat)
    check_layout("bcoo_fromdense", mat.ndim, n_batch, n_dense)
    shape, last = mat.shape, mat.ndim - n_dense
    present = (mat != 0).any(tuple(range(last, mat.ndim))) if n_dense else mat != 0
    if nse is None:
        counts = present.sum(tuple(range(n_batch, last))) if last > n_batch else present
        counts = np.asarray(known("bcoo_fromdense", counts, "the number of elements"))
        nse = int(counts.max(initial=0))
    nse = int(nse)
    sparse_shape = shape[n_batch:last]

    def example(mat: Array, present: Array) -> tuple[Array, Array]:
        if not sparse_shape:
            indices = numpy.zeros((nse, 0), index_dtype)
            return numpy.concatenate([mat[None], numpy.zeros_like(mat[None])])[:nse], indices
        places = numpy.nonzero(present, size=nse, fill_value=sparse_shape)
        indices = numpy.stack(places, -1).astype(index_dtype)
        return taken(mat, indices), indices

    data, indices = over_batch(example, n_batch)(mat, present)
    return BCOO((data, indices), shape=shape, indices_sorted=True, unique_indices=True)


def taken(mat: Array, indices: Array) -> Array:
    """The elements of an array at coordinates in its first dimensions; 0 beyond its shape."""
    if not indices.shape[-1]:
        return numpy.broadcast_to(mat, (indices.shape[0], *mat.shape))
    places = tuple(indices[:, i] for i in range(indices.shape[1]))
    return mat.at[places].get(mode="fill", fill_value=0)


def placed(data: Array, indices: Array, sparse_shape: Shape) -> Array:
    """A dense array of elements that add up at their coordinates; those beyond it are left out."""
    if not indices.shape[-1]:
        return data.sum(0, dtype=data.dtype)
    start = numpy.zeros((*sparse_shape, *data.shape[1:]), data.dtype)
    places = tuple(indices[:, i] for i in range(indices.shape[1]))
    if data.dtype == np.bool_:
        return start.at[places].max(data, mode="drop")
    return start.at[places].add(data, mode="drop")


def bcoo_todense(mat: BCOO) -> Array:
    """The dense array.

    Example:
        >>> from minijax.experimental import sparse
        >>> sparse.bcoo_todense(sparse.eye(2))
        Array([[1., 0.],
               [0., 1.]], dtype=float32)
    """
    place = functools.partial(placed, sparse_shape=mat.sparse_shape)
    return over_batch(place, mat.n_batch)(mat.data, mat.indices)


JAXSparse.operations["todense"] = bcoo_todense


def _is_beyond(indices: Array, sparse_shape: Shape) -> Array:
    return (indices >= np.array(sparse_shape, indices.dtype)).any(-1)


def _sorted(indices: Array) -> tuple[Array, Array]:
    """Coordinates in order, and where each was."""
    count = indices.shape[0]
    columns = [indices[:, i] for i in range(indices.shape[1])]
    *found, order = lax.sort([*columns, numpy.arange(count)], num_keys=max(1, len(columns)))
    return (numpy.stack(found, -1) if found else indices), order


def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """The same elements, in the lexicographic order of their coordinates.

    Example:
        >>> from minijax.experimental import sparse
        >>> x = sparse.BCOO((jnp.array([1, 2]), jnp.array([[3], [1]])), shape=(4,))
        >>> sparse.bcoo_sort_indices(x).data
        Array([2, 1], dtype=int32)
    """
    if mat.indices_sorted:
        return mat

    def example(data: Array, indices: Array) -> tuple[Array, Array]:
        indices, order = _sorted(indices)
        return data[order], indices

    buffers = over_batch(example, mat.n_batch)(mat.data, mat.indices)
    flags = mat.example_shape, True, mat.unique_indices
    return BCOO.tree_unflatten(flags, buffers)


def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None) -> BCOO:
    """The same array, with each coordinate once, in order.

    Args:
        mat: the array.
        nse: how many elements are stored for each example; as many as there are different
            coordinates, where absent.

    Raises:
        ConcretizationTypeError: `nse` is absent where the array is traced.

    Example:
        >>> from minijax.experimental import sparse
        >>> x = sparse.BCOO((jnp.array([1, 2, 3]), jnp.array([[1], [0], [1]])), shape=(4,))
        >>> sparse.bcoo_sum_duplicates(x).data
        Array([2, 4], dtype=int32)
    """
    sparse_shape = mat.sparse_shape

    def numbered(indices: Array) -> tuple[Array, Array, Array, Array]:
        """Coordinates in order, where each was, the number of each, and how many there are."""
        beyond = np.array(sparse_shape, indices.dtype)
        indices = numpy.where(_is_beyond(indices, sparse_shape)[:, None], beyond, indices)
        indices, order = _sorted(indices)
        differ = (indices[1:] != indices[:-1]).any(-1)
        first = numpy.ones(min(1, indices.shape[0]), np.bool_)
        is_new = numpy.concatenate([first, differ])
        ids = numpy.cumsum(is_new) - 1
        count = (is_new & ~_is_beyond(indices, sparse_shape)).sum()
        return indices, order, ids, count

    indices, order, ids, counts = over_batch(numbered, mat.n_batch)(mat.indices)
    if nse is None:
        counts = known("bcoo_sum_duplicates", counts, "the number of elements")
        nse = int(np.asarray(counts).max(initial=0))
    count = int(nse)

    def example(data: Array, indices: Array, order: Array, ids: Array) -> tuple[Array, Array]:
        beyond = numpy.broadcast_to(
            np.array(sparse_shape, indices.dtype), (count, len(sparse_shape))
        )
        places = beyond.at[ids].set(indices, mode="drop")
        is_there = ~_is_beyond(indices, sparse_shape)
        data = _masked(data[order], is_there)
        return placed(data, ids[:, None], (count,)), places

    data, places = over_batch(example, mat.n_batch)(mat.data, indices, order, ids)
    return BCOO.tree_unflatten((mat.example_shape, True, True), (data, places))


def _masked(data: Array, mask: Array) -> Array:
    mask = mask.reshape(mask.shape + (1,) * (data.ndim - mask.ndim))
    return numpy.where(mask, data, numpy.zeros((), data.dtype))


def without_zeros(mat: BCOO, nse: int | None = None) -> BCOO:
    """The array, with each coordinate once, and without elements that are zero."""
    sparse_shape = mat.sparse_shape

    def example(data: Array, indices: Array) -> Array:
        is_zero = (data == 0).all(tuple(range(1, data.ndim)))
        return numpy.where(is_zero[:, None], np.array(sparse_shape, indices.dtype), indices)

    indices = over_batch(example, mat.n_batch)(mat.data, mat.indices)
    return bcoo_sum_duplicates(BCOO.tree_unflatten(mat.tree_flatten()[1], (mat.data, indices)), nse)


def limited(mat: BCOO) -> BCOO:
    """The same array, stored with no more elements than there are places."""
    places = math.prod(mat.sparse_shape)
    return mat if mat.nse <= places else bcoo_sum_duplicates(mat, places)
