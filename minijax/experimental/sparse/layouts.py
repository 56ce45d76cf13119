"""Functions of one sparse array: other orders, shapes and layouts, parts, sums."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax, numpy
from minijax.core.errors import IncompatibleShapesError
from minijax.experimental.sparse import coordinates
from minijax.experimental.sparse.arrays import (
    JAXSparse,
    SparseEfficiencyError,
    SparseEfficiencyWarning,
)
from minijax.experimental.sparse.coordinates import BCOO, over_batch, refuse
from minijax.runtime.array import Array


def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """The array with its dimensions in another order, each within its group.

    Raises:
        TypeError: it is no permutation.
        NotImplementedError: a dimension would change from one group to another.

    Example:
        >>> from minijax.experimental import sparse
        >>> sparse.bcoo_transpose(sparse.empty((2, 3)), permutation=(1, 0))
        BCOO(float32[3, 2], nse=0)
    """
    axes = tuple(int(axis) for axis in permutation)
    got = {"permutation": axes, "shape": mat.shape}
    if sorted(axes) != list(range(mat.ndim)):
        refuse("bcoo_transpose", "it is no permutation of dimensions.", got=got, kind=TypeError)
    n_batch, last = mat.n_batch, mat.n_batch + mat.n_sparse
    groups = axes[:n_batch], axes[n_batch:last], axes[last:]
    if [axis for group in groups for axis in sorted(group)] != list(range(mat.ndim)):
        problem = "batch, sparse and dense dimensions change places with their like only."
        fix = "x.update_layout(n_batch=0, n_dense=0) first"
        refuse("bcoo_transpose", problem, got=got, fix=fix, kind=NotImplementedError)
    batch, columns, dense = groups
    dense_axes = [axis - last + n_batch + 1 for axis in dense]
    data = mat.data.transpose(*batch, n_batch, *dense_axes)
    indices = mat.indices.transpose(*batch, n_batch, n_batch + 1)
    indices = indices[..., np.array(columns, int) - n_batch]
    shape = [mat.shape[axis] for axis in axes]
    is_sorted = mat.indices_sorted and columns == tuple(range(n_batch, last))
    flags = {"indices_sorted": is_sorted, "unique_indices": mat.unique_indices}
    return BCOO((data, indices), shape=shape, **flags)


def bcoo_update_layout(
    mat: BCOO,
    *,
    n_batch: int | None = None,
    n_dense: int | None = None,
    on_inefficient: str | None = "error",
) -> BCOO:
    """The same array with other numbers of batch and dense dimensions.

    Args:
        mat: the array.
        n_batch: how many of the first dimensions are batch dimensions; as many as now, if absent.
        n_dense: how many of the last dimensions are dense; as many as now, if absent.
        on_inefficient: "error", "warn" or None, where more has to be stored than now.

    Raises:
        SparseEfficiencyError: more has to be stored, and that is an error.
        ValueError: there are not so many dimensions.

    Example:
        >>> from minijax.experimental import sparse
        >>> rows = sparse.BCOO.fromdense(jnp.eye(3), n_batch=1)
        >>> sparse.bcoo_update_layout(rows, n_batch=0).indices.tolist()
        [[0, 0], [1, 1], [2, 2]]
    """
    n_batch = mat.n_batch if n_batch is None else int(n_batch)
    n_dense = mat.n_dense if n_dense is None else int(n_dense)
    coordinates.check_layout("bcoo_update_layout", mat.ndim, n_batch, n_dense)
    if n_batch > mat.n_batch or n_dense > mat.n_dense:
        problem = f"more batch or dense dimensions than {mat!r} has take more memory."
        if on_inefficient == "error":
            fix = "on_inefficient=None, or 'warn'"
            refuse("bcoo_update_layout", problem, fix=fix, kind=SparseEfficiencyError)
        if on_inefficient == "warn":
            warnings.warn(problem, SparseEfficiencyWarning, stacklevel=3)
    while mat.n_dense > n_dense:
        mat = _dense_to_sparse(mat)
    while mat.n_batch > n_batch:
        mat = _batch_to_sparse(mat)
    while mat.n_dense < n_dense:
        mat = _sparse_to_dense(mat)
    while mat.n_batch < n_batch:
        mat = _sparse_to_batch(mat)
    return mat


def _batch_to_sparse(mat: BCOO) -> BCOO:
    """The last batch dimension becomes the first sparse one."""
    n_batch, nse, shape = mat.n_batch, mat.nse, mat.shape
    batch, size = shape[: n_batch - 1], shape[n_batch - 1]
    data = mat.data.reshape(*batch, size * nse, *mat.dense_shape)
    numbers = numpy.arange(size, dtype=mat.indices.dtype).reshape(size, 1, 1)
    column = numpy.broadcast_to(numbers, (*batch, size, nse, 1))
    indices = numpy.concatenate([column, mat.indices], -1)
    # What fills up an example is beyond the shape in some dimension still.
    indices = indices.reshape(*batch, size * nse, mat.n_sparse + 1)
    return BCOO((data, indices), shape=shape, unique_indices=mat.unique_indices)


def _dense_to_sparse(mat: BCOO) -> BCOO:
    """The first dense dimension becomes the last sparse one."""
    n_batch, nse, shape = mat.n_batch, mat.nse, mat.shape
    size, *rest = mat.dense_shape
    data = mat.data.reshape(*shape[:n_batch], nse * size, *rest)
    numbers = numpy.arange(size, dtype=mat.indices.dtype)[:, None]
    column = numpy.broadcast_to(numbers, (*shape[:n_batch], nse, size, 1))
    wide = (*shape[:n_batch], nse, size, mat.n_sparse)
    repeated = numpy.broadcast_to(mat.indices[..., None, :], wide)
    indices = numpy.concatenate([repeated, column], -1)
    indices = indices.reshape(*shape[:n_batch], nse * size, mat.n_sparse + 1)
    flags = {"indices_sorted": mat.indices_sorted, "unique_indices": mat.unique_indices}
    return BCOO((data, indices), shape=shape, **flags)


def _sparse_to_dense(mat: BCOO) -> BCOO:
    """The last sparse dimension becomes the first dense one."""
    if not mat.n_sparse:
        refuse("bcoo_update_layout", "there is no sparse dimension left.", got=repr(mat))
    size = mat.sparse_shape[-1]

    def example(data: Array, indices: Array) -> tuple[Array, Array]:
        def spread(x: Array, i: Array) -> Array:
            return numpy.zeros((size, *x.shape), x.dtype).at[i].set(x, mode="drop")

        beyond = np.array(mat.sparse_shape[:-1], indices.dtype)
        outside = (indices[:, -1:] >= size) & (beyond.size > 0)
        return over_batch(spread, 1)(data, indices[:, -1]), numpy.where(
            outside, beyond, indices[:, :-1]
        )

    buffers = over_batch(example, mat.n_batch)(mat.data, mat.indices)
    return BCOO(buffers, shape=mat.shape, indices_sorted=mat.indices_sorted)


def _sparse_to_batch(mat: BCOO) -> BCOO:
    """The first sparse dimension becomes the last batch one."""
    if not mat.n_sparse:
        refuse("bcoo_update_layout", "there is no sparse dimension left.", got=repr(mat))
    size = mat.sparse_shape[0]

    def example(data: Array, indices: Array) -> tuple[Array, Array]:
        numbers = numpy.arange(size, dtype=indices.dtype)

        def row(number: Array) -> tuple[Array, Array]:
            mine = indices[:, 0] == number
            kept = mine.reshape(-1, *[1] * (data.ndim - 1))
            beyond = np.array(mat.sparse_shape[1:], indices.dtype)
            places = numpy.where(mine[:, None], indices[:, 1:], beyond)
            return numpy.where(kept, data, numpy.zeros((), data.dtype)), places

        return over_batch(row, 1)(numbers)

    buffers = over_batch(example, mat.n_batch)(mat.data, mat.indices)
    return BCOO(buffers, shape=mat.shape, unique_indices=False)


def bcoo_reshape(mat: BCOO, *, new_sizes: Sequence[int]) -> BCOO:
    """The array in another shape, of which the first dimensions are still the batch.

    Raises:
        TypeError: the numbers of elements differ.
        NotImplementedError: there are dense dimensions, or a batch would be divided otherwise.

    Example:
        >>> from minijax.experimental import sparse
        >>> sparse.bcoo_reshape(sparse.eye(4), new_sizes=(2, 8)).indices.tolist()
        [[0, 0], [0, 5], [1, 2], [1, 7]]
    """
    sizes = tuple(map(int, new_sizes))
    if sizes.count(-1) == 1:
        rest = math.prod(size for size in sizes if size != -1)
        sizes = tuple(mat.size // max(rest, 1) if size == -1 else size for size in sizes)
    got = {"shape": mat.shape, "new_sizes": sizes}
    if math.prod(sizes) != mat.size:
        problem = "the numbers of elements differ."
        refuse("bcoo_reshape", problem, got=got, kind=IncompatibleShapesError)
    products = list(itertools.accumulate(sizes, initial=1, func=lambda a, b: a * b))
    count = math.prod(mat.shape[: mat.n_batch])
    if mat.n_dense or (count not in products):
        problem = "batch dimensions stay apart, and dense ones as they are."
        fix = "x.update_layout(n_batch=0, n_dense=0) first"
        refuse("bcoo_reshape", problem, got=got, fix=fix, kind=NotImplementedError)
    n_batch = 0 if not mat.n_batch else products.index(count)
    inner = sizes[n_batch:]
    if math.prod(inner) > np.iinfo(mat.indices.dtype).max:
        problem = "the places cannot be counted in the dtype of the indices."
        refuse("bcoo_reshape", problem, got={**got, "indices": mat.indices.dtype})

    def example(indices: Array) -> Array:
        place = numpy.zeros(indices.shape[0], indices.dtype)
        inside = numpy.ones(indices.shape[0], np.bool_)
        for i, size in enumerate(mat.sparse_shape):
            place, inside = place * size + indices[:, i], inside & (indices[:, i] < size)
        columns = []
        for size in reversed(inner):
            columns.append(numpy.where(inside, place % max(size, 1), size))
            place = place // max(size, 1)
        found = numpy.stack(columns[::-1], -1) if columns else indices[:, :0]
        return found.astype(indices.dtype)

    indices = over_batch(example, mat.n_batch)(mat.indices)
    batch = sizes[:n_batch]
    buffers = (mat.data.reshape(*batch, mat.nse), indices.reshape(*batch, mat.nse, len(inner)))
    return BCOO(buffers, shape=sizes, unique_indices=mat.unique_indices)


def bcoo_slice(
    mat: BCOO,
    *,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> BCOO:
    """The part of the array from `start_indices` up to, and without, `limit_indices`.

    Example:
        >>> from minijax.experimental import sparse
        >>> part = sparse.bcoo_slice(sparse.eye(4), start_indices=(1, 0), limit_indices=(3, 4))
        >>> part.todense().tolist()
        [[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]
    """
    steps = tuple(strides or [1] * mat.ndim)
    if not len(start_indices) == len(limit_indices) == len(steps) == mat.ndim:
        problem = "there has to be a start and a limit for each dimension."
        refuse("bcoo_slice", problem, got={"shape": mat.shape, "start_indices": start_indices})
    cuts = [slice(*cut) for cut in zip(start_indices, limit_indices, steps, strict=True)]
    n_batch, last = mat.n_batch, mat.n_batch + mat.n_sparse
    data = mat.data[(*cuts[:n_batch], slice(None), *cuts[last:])]
    indices = mat.indices[tuple(cuts[:n_batch])]
    inside = numpy.ones(indices.shape[:-1], np.bool_)
    columns, sizes = [], []
    for i, cut in enumerate(cuts[n_batch:last]):
        column = indices[..., i] - cut.start
        size = max(0, -(-(min(cut.stop, mat.sparse_shape[i]) - cut.start) // cut.step))
        inside &= (column >= 0) & (column % cut.step == 0) & (column < size * cut.step)
        columns.append(column // cut.step)
        sizes.append(size)
    columns = [numpy.where(inside, c, size) for c, size in zip(columns, sizes, strict=True)]
    indices = numpy.stack(columns, -1).astype(indices.dtype) if columns else indices
    kept = inside.reshape(*inside.shape, *[1] * mat.n_dense)
    data = numpy.where(kept, data, numpy.zeros((), data.dtype))
    shape = (*data.shape[:n_batch], *sizes, *data.shape[n_batch + 1 :])
    found = BCOO((data, indices), shape=shape, unique_indices=mat.unique_indices)
    return coordinates.limited(found)


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """The array without dimensions of size 1.

    Example:
        >>> from minijax.experimental import sparse
        >>> sparse.bcoo_squeeze(sparse.empty((1, 3)), dimensions=(0,)).shape
        (3,)
    """
    axes = sorted(axis % arr.ndim for axis in dimensions)
    if any(arr.shape[axis] != 1 for axis in axes):
        problem = "only dimensions of size 1 can be left out."
        refuse("bcoo_squeeze", problem, got={"shape": arr.shape, "dimensions": tuple(dimensions)})
    n_batch, last = arr.n_batch, arr.n_batch + arr.n_sparse
    batch = tuple(axis for axis in axes if axis < n_batch)
    dense = tuple(axis - arr.n_sparse + 1 for axis in axes if axis >= last)
    columns = [i for i in range(arr.n_sparse) if i + n_batch not in axes]
    lost = [i for i in range(arr.n_sparse) if i + n_batch in axes]
    # Elements beyond the shape in what is left out contribute nothing.
    outside = (arr.indices[..., np.array(lost, int)] >= 1).any(-1)
    kept = ~outside.reshape(*outside.shape, *[1] * arr.n_dense)
    data = numpy.where(kept, arr.data, numpy.zeros((), arr.dtype)).squeeze((*batch, *dense))
    indices = arr.indices[..., np.array(columns, int)].squeeze(batch)
    shape = [size for axis, size in enumerate(arr.shape) if axis not in axes]
    return BCOO((data, indices), shape=shape)


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """Joins arrays of one layout along a batch or a sparse dimension.

    Raises:
        ValueError: there are none, or their shapes or layouts differ.
        NotImplementedError: the dimension is dense.

    Example:
        >>> from minijax.experimental import sparse
        >>> sparse.bcoo_concatenate([sparse.eye(2), sparse.eye(2)], dimension=1)
        BCOO(float32[2, 4], nse=4)
    """
    operands = list(operands)
    if not operands:
        refuse("bcoo_concatenate", "there is nothing to join.")
    first = operands[0]
    axis = dimension % first.ndim
    rests = {(x.n_batch, x.n_dense, *x.shape[:axis], *x.shape[axis + 1 :]) for x in operands}
    if len(rests) > 1 or axis >= first.n_batch + first.n_sparse:
        dense = len(rests) == 1
        problem = "a dense dimension is none to join along." if dense else "the shapes differ."
        kind = NotImplementedError if dense else IncompatibleShapesError
        got = ", ".join(map(repr, operands))
        refuse("bcoo_concatenate", problem, got=got, kind=kind)
    shape = list(first.shape)
    shape[axis] = sum(x.shape[axis] for x in operands)
    if axis < first.n_batch:
        nse = max(x.nse for x in operands)
        parts = [_filled(x, nse) for x in operands]
        data = numpy.concatenate([p[0] for p in parts], axis)
        return BCOO((data, numpy.concatenate([p[1] for p in parts], axis)), shape=shape)
    starts = itertools.accumulate((x.shape[axis] for x in operands), initial=0)
    columns = []
    for x, start in zip(operands, starts, strict=False):
        i = axis - x.n_batch
        column = x.indices[..., i]
        moved = numpy.where(column < x.shape[axis], column + start, shape[axis])
        columns.append(x.indices.at[..., i].set(moved.astype(column.dtype)))
    data = numpy.concatenate([x.data for x in operands], first.n_batch)
    indices = numpy.concatenate(columns, first.n_batch)
    unique = all(x.unique_indices for x in operands)
    return BCOO((data, indices), shape=shape, unique_indices=unique)


def _filled(mat: BCOO, nse: int) -> tuple[Array, Array]:
    """The buffers with room for more elements."""
    more, n_batch = nse - mat.nse, mat.n_batch
    batch = mat.shape[:n_batch]
    beyond = np.array(mat.sparse_shape, mat.indices.dtype)
    rest = numpy.broadcast_to(beyond, (*batch, more, mat.n_sparse))
    zeros = numpy.zeros((*batch, more, *mat.dense_shape), mat.dtype)
    data = numpy.concatenate([mat.data, zeros], n_batch)
    return data, numpy.concatenate([mat.indices, rest], n_batch)


def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """The sum over dimensions.

    Example:
        >>> from minijax.experimental import sparse
        >>> sparse.bcoo_reduce_sum(sparse.eye(3), axes=(0,)).todense()
        Array([1., 1., 1.], dtype=float32)
    """
    summed = {axis % mat.ndim for axis in axes}
    n_batch, last = mat.n_batch, mat.n_batch + mat.n_sparse
    if any(axis < n_batch for axis in summed):
        mat = bcoo_update_layout(mat, n_batch=min(axis for axis in summed if axis < n_batch))
        return bcoo_reduce_sum(mat, axes=tuple(summed))
    dense = tuple(axis - mat.n_sparse + 1 for axis in summed if axis >= last)
    lost = np.array([axis - n_batch for axis in summed if n_batch <= axis < last], int)
    columns = np.array([i for i in range(mat.n_sparse) if i not in lost], int)
    sizes = np.array(mat.sparse_shape, mat.indices.dtype)
    outside = (mat.indices[..., lost] >= sizes[lost]).any(-1)
    kept = ~outside.reshape(*outside.shape, *[1] * mat.n_dense)
    data = numpy.where(kept, mat.data, numpy.zeros((), mat.dtype)).sum(dense)
    shape = [size for axis, size in enumerate(mat.shape) if axis not in summed]
    return coordinates.limited(BCOO((data, mat.indices[..., columns]), shape=shape))


def _sum(mat: BCOO, axis: Any) -> Any:
    axes = range(mat.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    dtype = numpy.zeros(0, mat.dtype).sum().dtype
    mat = mat.replaced(mat.data.astype(dtype))
    found = bcoo_reduce_sum(mat, axes=tuple(axes))
    return found if found.n_sparse else found.todense()


def _getitem(mat: BCOO, index: Any) -> Any:
    entries = index if isinstance(index, tuple) else (index,)
    got = {"index": index, "shape": mat.shape}
    if any(not isinstance(e, slice | int | np.integer) and e is not Ellipsis for e in entries):
        problem = "sparse arrays are indexed by integers and slices that are known."
        fix = "x.todense()[index]"
        refuse("BCOO", problem, got=got, fix=fix, kind=NotImplementedError)
    if len([e for e in entries if e is not Ellipsis]) > mat.ndim:
        refuse("BCOO", "there are more indices than dimensions.", got=got, kind=IndexError)
    where = entries.index(Ellipsis) if Ellipsis in entries else len(entries)
    given = [e for e in entries if e is not Ellipsis]
    every = [slice(None)] * (mat.ndim - len(given))
    starts, limits, steps, single = [], [], [], []
    for axis, entry in enumerate([*given[:where], *every, *given[where:]]):
        size = mat.shape[axis]
        if not isinstance(entry, slice):
            single.append(axis)
        start, stop, step = _bounds(entry, axis, size, got)
        starts.append(start)
        limits.append(max(start, stop))
        steps.append(step)
    cut = bcoo_slice(mat, start_indices=starts, limit_indices=limits, strides=steps)
    return bcoo_squeeze(cut, dimensions=single) if single else cut


def _bounds(entry: Any, axis: int, size: int, got: dict[str, Any]) -> tuple[int, int, int]:
    """Where the part begins that an index or a slice takes, where it ends, and its steps."""
    if not isinstance(entry, slice):
        if not -size <= entry < size:
            problem = f"index {entry} is out of range for dimension {axis} of size {size}."
            refuse("BCOO", problem, got=got, kind=IndexError)
        return int(entry) % size, int(entry) % size + 1, 1
    start, stop, step = entry.indices(size)
    if step < 0:
        problem = "slices of sparse arrays go forward."
        fix = "sparse.bcoo_rev(x, dimensions)"
        refuse("BCOO", problem, got=got, fix=fix, kind=NotImplementedError)
    return start, stop, step


def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """The array with dimensions in reverse.

    Example:
        >>> from minijax.experimental import sparse
        >>> sparse.bcoo_rev(sparse.eye(2), (1,)).todense().tolist()
        [[0.0, 1.0], [1.0, 0.0]]
    """
    n_batch, last = operand.n_batch, operand.n_batch + operand.n_sparse
    axes = sorted(axis % operand.ndim for axis in dimensions)
    batch = [axis for axis in axes if axis < n_batch]
    data = lax.rev(operand.data, [*batch, *(a - operand.n_sparse + 1 for a in axes if a >= last)])
    indices = lax.rev(operand.indices, batch)
    for axis in axes:
        if n_batch <= axis < last:
            column, size = indices[..., axis - n_batch], operand.shape[axis]
            turned = numpy.where(column < size, size - 1 - column, size)
            indices = indices.at[..., axis - n_batch].set(turned)
    return BCOO((data, indices), shape=operand.shape, unique_indices=operand.unique_indices)


JAXSparse.operations["update_layout"] = lambda mat, n_batch, n_dense, on_inefficient: (
    bcoo_update_layout(mat, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient)
)
JAXSparse.operations["transpose"] = lambda mat, axes: bcoo_transpose(
    mat, permutation=tuple(reversed(range(mat.ndim))) if axes is None else axes
)
JAXSparse.operations["reshape"] = lambda mat, *shape: bcoo_reshape(
    mat, new_sizes=shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
)
JAXSparse.operations["sum"] = _sum
JAXSparse.operations["getitem"] = _getitem
JAXSparse.operations["astype"] = lambda mat, dtype: mat.replaced(mat.data.astype(dtype))
