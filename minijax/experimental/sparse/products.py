"""Arithmetic of sparse arrays: products of matrices, of elements, and sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import numpy
from minijax.core.errors import IncompatibleShapesError
from minijax.experimental.sparse import coordinates
from minijax.experimental.sparse.arrays import JAXSparse, is_sparse
from minijax.experimental.sparse.coordinates import BCOO, over_batch, refuse
from minijax.experimental.sparse.layouts import bcoo_update_layout
from minijax.runtime.array import Array
from minijax.transforms.vmap import vmap


def bcoo_dot_general(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: tuple[Any, Any],
    preferred_element_type: Any = None,
) -> Any:
    """A product as `lax.dot_general`'s, of which at least one operand is sparse.

    Args:
        lhs: an array.
        rhs: another.
        dimension_numbers: ((contracted of lhs, of rhs), (batch of lhs, of rhs)).
        preferred_element_type: the dtype of the result.

    Returns:
        A dense array, or a sparse one if both operands are sparse.

    Raises:
        TypeError: the sizes of dimensions that belong together differ.

    Example:
        >>> from minijax.experimental import sparse
        >>> numbers = (((1,), (0,)), ((), ()))
        >>> sparse.bcoo_dot_general(2 * sparse.eye(2), jnp.ones(2), dimension_numbers=numbers)
        Array([2., 2.], dtype=float32)
    """
    (lc, rc), (lb, rb) = [tuple(map(tuple, pair)) for pair in dimension_numbers]
    lhs, rhs = (x if is_sparse(x) else numpy.asarray(x) for x in (lhs, rhs))
    sizes = [[x.shape[i] for i in axes] for x, axes in ((lhs, lc + lb), (rhs, rc + rb))]
    if sizes[0] != sizes[1]:
        problem = "dimensions that are contracted, or are batches, differ in size."
        got = {"lhs": lhs.shape, "rhs": rhs.shape, "dimension_numbers": dimension_numbers}
        refuse("bcoo_dot_general", problem, got=got, kind=IncompatibleShapesError)
    dtype = preferred_element_type or numpy.result_type(lhs.dtype, rhs.dtype)
    lhs, rhs = lhs.astype(dtype), rhs.astype(dtype)
    if is_sparse(lhs) and is_sparse(rhs):
        return _sparse_product(_flat(lhs), _flat(rhs), (lc, rc), (lb, rb))
    if is_sparse(lhs):
        return _dense_product(_flat(lhs), rhs, (lc, rc), (lb, rb))
    found = _dense_product(_flat(rhs), lhs, (rc, lc), (rb, lb))
    # The free dimensions of the sparse operand come first there.
    count, of_rhs = len(lb), rhs.ndim - len(rb) - len(rc)
    axes = [*range(count), *range(count + of_rhs, found.ndim), *range(count, count + of_rhs)]
    return found.transpose(*axes)


def _flat(mat: BCOO) -> BCOO:
    return bcoo_update_layout(mat, n_batch=0, n_dense=0)


_Pair = tuple[tuple[int, ...], tuple[int, ...]]


def _dense_product(lhs: BCOO, rhs: Array, contracted: _Pair, batch: _Pair) -> Array:
    (lc, rc), (lb, rb) = contracted, batch
    rest = [i for i in range(rhs.ndim) if i not in rc + rb]
    met = coordinates.taken(rhs.transpose(*rb, *rc, *rest), lhs.indices[:, np.array(lb + lc, int)])
    terms = lhs.data.reshape(-1, *[1] * len(rest)) * met
    kept = lb + tuple(i for i in range(lhs.ndim) if i not in lc + lb)
    sizes = tuple(lhs.shape[i] for i in kept)
    return coordinates.placed(terms, lhs.indices[:, np.array(kept, int)], sizes)


def _sparse_product(lhs: BCOO, rhs: BCOO, contracted: _Pair, batch: _Pair) -> BCOO:
    (lc, rc), (lb, rb) = contracted, batch
    left = lhs.indices[:, None, np.array(lb + lc, int)]
    right = rhs.indices[None, :, np.array(rb + rc, int)]
    inside = _inside(lhs)[:, None] & _inside(rhs)[None, :]
    meets = (left == right).all(-1) & inside
    data = numpy.where(meets, lhs.data[:, None] * rhs.data[None], numpy.zeros((), lhs.dtype))
    kept = [i for i in range(lhs.ndim) if i not in lc + lb]
    rest = [i for i in range(rhs.ndim) if i not in rc + rb]
    shape = (*(lhs.shape[i] for i in (*lb, *kept)), *(rhs.shape[i] for i in rest))
    pairs = (lhs.nse, rhs.nse)
    of_lhs = numpy.broadcast_to(
        lhs.indices[:, None, np.array([*lb, *kept], int)], (*pairs, len(lb) + len(kept))
    )
    of_rhs = numpy.broadcast_to(rhs.indices[None, :, np.array(rest, int)], (*pairs, len(rest)))
    dtype = np.promote_types(of_lhs.dtype, of_rhs.dtype)
    indices = numpy.concatenate([of_lhs.astype(dtype), of_rhs.astype(dtype)], -1)
    indices = numpy.where(meets[..., None], indices, np.array(shape, dtype))
    count = pairs[0] * pairs[1]
    found = BCOO((data.reshape(count), indices.reshape(count, len(shape))), shape=shape)
    return coordinates.limited(found)


def _inside(mat: BCOO) -> Array:
    return (mat.indices < np.array(mat.sparse_shape, mat.indices.dtype)).all(-1)


def _matmul(lhs: Any, rhs: Any) -> Any:
    lhs, rhs = (x if is_sparse(x) else numpy.asarray(x) for x in (lhs, rhs))
    if not lhs.ndim or not rhs.ndim:
        refuse("matmul", "scalars have no product of matrices.", fix="x * y")
    count = max(0, min(lhs.ndim, rhs.ndim) - 2)
    if count and lhs.ndim != rhs.ndim:
        got = {"lhs": lhs.shape, "rhs": rhs.shape}
        problem = "batches of different ranks are not broadcast."
        refuse("matmul", problem, got=got, kind=NotImplementedError)
    batch = tuple(range(count))
    numbers = ((lhs.ndim - 1,), (max(rhs.ndim - 2, 0),)), (batch, batch)
    found = bcoo_dot_general(lhs, rhs, dimension_numbers=numbers)
    if rhs.ndim > lhs.ndim == 2:
        # The rows of the one matrix come behind the batch of the others.
        return found.transpose((*range(1, found.ndim - 1), 0, found.ndim - 1))
    return found


def bcoo_dot_general_sampled(
    A: Any, B: Any, indices: Array, *, dimension_numbers: tuple[Any, Any]
) -> Array:
    """Elements of a product of dense arrays, at some coordinates.

    Example:
        >>> from minijax.experimental import sparse
        >>> a = jnp.arange(4.0).reshape(2, 2)
        >>> places, numbers = jnp.array([[1, 1]]), (((1,), (0,)), ((), ()))
        >>> sparse.bcoo_dot_general_sampled(a, a, places, dimension_numbers=numbers)
        Array([11.], dtype=float32)
    """
    (lc, rc), (lb, rb) = [tuple(map(tuple, pair)) for pair in dimension_numbers]
    if lb or rb:
        problem = "products with batch dimensions are mapped by vmap."
        refuse("bcoo_dot_general_sampled", problem, kind=NotImplementedError)
    a, b = numpy.asarray(A), numpy.asarray(B)
    free = [[i for i in range(x.ndim) if i not in axes] for x, axes in ((a, lc), (b, rc))]
    left = coordinates.taken(a.transpose(*free[0], *lc), indices[:, : len(free[0])])
    right = coordinates.taken(b.transpose(*free[1], *rc), indices[:, len(free[0]) :])
    return (left * right).sum(tuple(range(1, left.ndim)))


def bcoo_extract(sparr: BCOO, arr: Any, *, assume_unique: bool | None = None) -> BCOO:
    """The elements of a dense array at the coordinates of a sparse one.

    Args:
        sparr: the array whose coordinates count.
        arr: the array whose elements count.
        assume_unique: whether no coordinates are taken to appear twice; as `sparr` says, if absent.

    Example:
        >>> from minijax.experimental import sparse
        >>> sparse.bcoo_extract(sparse.eye(2), jnp.array([[1, 2], [3, 4]])).data
        Array([1, 4], dtype=int32)
    """
    unique = sparr.unique_indices if assume_unique is None else assume_unique
    places = sparr if unique else bcoo_sum_all(sparr)
    arr = numpy.asarray(arr)
    _check_equal("bcoo_extract", sparr, arr)
    data = over_batch(coordinates.taken, places.n_batch)(arr, places.indices)
    return places.replaced(data)


def bcoo_sum_all(mat: BCOO) -> BCOO:
    """The same array, with each coordinate once and as many places as before."""
    return mat if mat.unique_indices else coordinates.bcoo_sum_duplicates(mat, mat.nse)


def _check_equal(name: str, x: Any, y: Any) -> None:
    if x.shape != y.shape:
        problem = "incompatible shapes for broadcasting."
        got = {"x": x.shape, "y": y.shape}
        refuse(name, problem, got=got, kind=IncompatibleShapesError)


def _looked_up(mat: BCOO, v: Array) -> Array:
    """The elements of an array that is broadcast, where those of a sparse array are."""
    ranks = mat.ndim - v.ndim
    if ranks < 0 or any(a not in (1, b) for a, b in zip(v.shape, mat.shape[ranks:], strict=True)):
        problem = "the dense array is not broadcast to the shape of the sparse one."
        got = {"sparse": mat.shape, "dense": v.shape}
        refuse("bcoo_multiply_dense", problem, got=got, kind=IncompatibleShapesError)
    v = v.reshape(*[1] * ranks, *v.shape)
    inner = v.shape[mat.n_batch :][: mat.n_sparse]
    same = [size == 1 for size in inner]

    def example(v: Array, indices: Array) -> Array:
        return coordinates.taken(v, numpy.where(np.array(same), 0, indices))

    for axis in reversed(range(mat.n_batch)):
        example = _mapped(example, v.shape[axis] == 1)
        if v.shape[axis] == 1:
            v = v.squeeze(axis)
    return example(v, mat.indices)


def _mapped(function: Callable[..., Array], is_shared: bool) -> Callable[..., Array]:
    return vmap(function, (None if is_shared else 0, 0))


def bcoo_multiply_dense(sp_mat: BCOO, v: Any) -> Array:
    """The elements of a sparse array, each times that of a dense one, which may be broadcast.

    Example:
        >>> from minijax.experimental import sparse
        >>> sparse.bcoo_multiply_dense(sparse.eye(2), jnp.array([3.0, 5.0]))
        Array([3., 5.], dtype=float32)
    """
    return sp_mat.data * _looked_up(sp_mat, numpy.asarray(v))


def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """The products of elements of two sparse arrays of one shape.

    Example:
        >>> from minijax.experimental import sparse
        >>> sparse.bcoo_multiply_sparse(sparse.eye(2), 3 * sparse.eye(2)).data
        Array([3., 3.], dtype=float32)
    """
    _check_equal("bcoo_multiply_sparse", lhs, rhs)
    if lhs.indices is rhs.indices and lhs.unique_indices:
        return lhs.replaced(lhs.data * rhs.data)
    n_batch, n_dense = min(lhs.n_batch, rhs.n_batch), min(lhs.n_dense, rhs.n_dense)
    lhs, rhs = (bcoo_update_layout(x, n_batch=n_batch, n_dense=n_dense) for x in (lhs, rhs))

    def example(x: Array, places: Array, y: Array, others: Array) -> Array:
        meets = (places[:, None] == others[None]).all(-1)
        met = numpy.where(meets.reshape(*meets.shape, *[1] * n_dense), y[None], 0).sum(1)
        return x * met.astype(y.dtype)

    data = over_batch(example, n_batch)(lhs.data, lhs.indices, rhs.data, rhs.indices)
    return lhs.replaced(data)


def _mul(x: BCOO, y: Any) -> BCOO:
    if is_sparse(y):
        return bcoo_multiply_sparse(x, y)
    return x.replaced(x.data * y if np.ndim(y) == 0 else bcoo_multiply_dense(x, y))


def _div(x: BCOO, y: Any) -> BCOO:
    if is_sparse(y):
        problem = "what is not stored would be divided by zero."
        refuse("divide", problem, fix="x / y.todense()", kind=NotImplementedError)
    return x.replaced(x.data / (y if np.ndim(y) == 0 else _looked_up(x, numpy.asarray(y))))


def _add(x: BCOO, y: Any) -> Any:
    if not is_sparse(y):
        y = numpy.asarray(y)
        if y.shape != x.shape:
            problem = "a sparse array plus a dense one of a smaller shape would be dense."
            fix = "x.todense() + y"
            got = {"x": repr(x), "y": y.shape}
            refuse("add", problem, got=got, fix=fix, kind=NotImplementedError)
        return x.todense() + y
    _check_equal("add", x, y)
    n_batch, n_dense = min(x.n_batch, y.n_batch), min(x.n_dense, y.n_dense)
    dtype = numpy.result_type(x.dtype, y.dtype)
    parts = [bcoo_update_layout(a, n_batch=n_batch, n_dense=n_dense).astype(dtype) for a in (x, y)]
    data = numpy.concatenate([a.data for a in parts], n_batch)
    indices = numpy.concatenate([a.indices for a in parts], n_batch)
    return BCOO((data, indices), shape=x.shape)


def _pow(x: BCOO, y: Any) -> BCOO:
    if np.ndim(y) or not float(y) > 0:
        problem = "only a positive power keeps zeros."
        refuse("power", problem, got={"power": y}, fix="x.todense() ** y", kind=NotImplementedError)
    x = bcoo_sum_all(x)
    return x.replaced(x.data**y)


def _nonlinear(function: Callable[[Array], Array]) -> Callable[[BCOO], BCOO]:
    def of_stored(x: BCOO) -> BCOO:
        x = bcoo_sum_all(x)
        return x.replaced(function(x.data))

    return of_stored


JAXSparse.operations.update(
    matmul=_matmul,
    rmatmul=lambda x, y: _matmul(y, x),
    mul=_mul,
    div=_div,
    add=_add,
    sub=lambda x, y: _add(x, -y),
    pow=_pow,
    neg=lambda x: x.replaced(-x.data),
    abs=_nonlinear(numpy.absolute),
)
