"""Statistics of samples: covariances, correlation coefficients and histograms.

A histogram counts how many elements, or how much weight of them, fall into each bin.  A bin holds
its lower edge; the last one holds its upper edge too.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.lax import binary, shape, unary
from minijax.lax.creation import convert_to_type
from minijax.numpy import contraction, matrices, promotion, reductions, shaping
from minijax.numpy.creation import asarray, on_device, ones, zeros
from minijax.numpy.elementary import conjugate, each_part, is_kind, real
from minijax.numpy.joining import concatenate
from minijax.numpy.ordering import searchsorted
from minijax.numpy.ranges import linspace
from minijax.numpy.selection import where
from minijax.numpy.statistics import average
from minijax.runtime.annotations import ArrayLike, ArrayOrLists, DTypeLike, ShardingLike
from minijax.runtime.array import Array


@promotion.one_program(static=("rowvar", "bias", "ddof", "dtype"))
def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Estimates the covariance matrix of variables from observations of them.

    Args:
        m: a variable in each row, an observation in each column; or one variable.
        y: more variables, with as many observations.
        rowvar: False if observations are in rows.
        bias: whether to divide by the number of observations, rather than by one less.
        ddof: what is taken off the number of observations, in place of what `bias` says.
        fweights: how often each observation was made.
        aweights: how much each observation counts.
        dtype: the dtype of the result.

    Shapes:     m: T[n, k] -> T[n, n], or T[] for one variable.
    Dtypes:     inexact; integers and booleans become floats.

    Raises:
        ValueError: an array has more than two dimensions, or weights do not fit.
        TypeError: `fweights` are not integers.

    Example:
        >>> jnp.cov(jnp.array([[0.0, 1.0, 2.0], [4.0, 2.0, 0.0]]))
        Array([[ 1., -2.],
               [-2.,  4.]], dtype=float32)
    """
    rows = _variables(m, y, rowvar)
    if dtype is not None:
        dtype = dtypes.canonicalize_user_dtype(dtype, "numpy.cov")
        rows = convert_to_type(rows, dtype, weak_type=False)
    count = aval_of(rows).shape[1]
    weights = _observation_weights(rows, fweights, aweights)
    if weights is not None:
        wide, _ = dtypes.lattice_result_type(rows, weights)
        rows = convert_to_type(rows, wide, weak_type=False)
    # Without observations the mean is 0 / 0, and so is what is computed from it.
    off = 0 if not count else (0 if bias else 1) if ddof is None else ddof
    mean, total = average(rows, 1, weights, returned=True)
    whole: Any = reductions.max(real(total)) if aval_of(total).size else float(count)
    norm = binary.sub(whole, float(off))
    if weights is not None and aweights is not None and off:
        aweights = convert_to_type(aweights, aval_of(weights).dtype, weak_type=False)
        squares = reductions.sum(binary.mul(weights, aweights))
        norm = binary.sub(whole, binary.div(binary.mul(squares, float(off)), whole))
    centred = binary.sub(rows, shape.broadcast_in_dim(mean, aval_of(rows).shape, (0,)))
    weighted = centred
    if weights is not None:
        weights = convert_to_type(weights, aval_of(rows).dtype, weak_type=False)
        weighted = binary.mul(centred, shape.expand_dims(weights, (0,)))
    products = contraction.matmul(weighted, conjugate(shape.transpose(centred, (1, 0))))
    norm = convert_to_type(norm, aval_of(products).dtype, weak_type=False)
    return shaping.squeeze(binary.div(products, norm))


def _variables(m: ArrayLike, y: ArrayLike | None, rowvar: bool) -> Array:
    """A matrix with a variable in each row."""
    arrays = [promotion.inexact("cov", x) for x in (m, y) if x is not None]
    is_table = all(aval_of(x).ndim <= 2 for x in arrays)
    promotion.check_that(is_table, "cov", "variables are given as a vector or a matrix.", m=m, y=y)
    rows = [shaping.atleast_2d(x) for x in arrays]
    if not rowvar:
        # A vector is one variable, and so is what y gives as one row, as in NumPy.
        is_row = [aval_of(arrays[0]).ndim < 2, *(x.shape[0] == 1 for x in rows[1:])]
        rows = [
            x if as_is else shape.transpose(x, (1, 0))
            for x, as_is in zip(rows, is_row, strict=True)
        ]
    return rows[0] if len(rows) == 1 else concatenate(rows, 0)


def _observation_weights(
    rows: Array, fweights: ArrayLike | None, aweights: ArrayLike | None
) -> Array | None:
    """One weight for each observation, or None."""
    given = [promotion.check_array("cov", x) for x in (fweights, aweights) if x is not None]
    if fweights is not None and not is_kind(given[0], np.integer):
        got = {"fweights": aval_of(given[0])}
        fix = "aweights, for what they are worth"
        error(TypeError, "numpy.cov", "observations are counted by integers.", got=got, fix=fix)
    count = aval_of(rows).shape[1]
    for x in given:
        fits = aval_of(x).shape == (count,)
        problem = "there must be one weight for each observation."
        promotion.check_that(fits, "cov", problem, weights=x, observations=count)
    if not given:
        return None
    real_dtype = dtypes.real_dtype_of(aval_of(rows).dtype)
    if aweights is not None:
        real_dtype, _ = dtypes.lattice_result_type(real_dtype, given[-1])
    given = [convert_to_type(x, real_dtype, weak_type=False) for x in given]
    return given[0] if len(given) == 1 else binary.mul(*given)


@promotion.one_program(static=("rowvar", "dtype"))
def corrcoef(
    x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: DTypeLike | None = None
) -> Array:
    """Computes the Pearson correlation coefficients of variables; see `cov`.

    Shapes:     x: T[n, k] -> T[n, n], or T[] for one variable.
    Dtypes:     inexact; integers and booleans become floats.

    Raises:
        ValueError: an array has more than two dimensions.

    Example:
        >>> jnp.corrcoef(jnp.array([[0.0, 2.0], [4.0, 0.0]])).round()
        Array([[ 1., -1.],
               [-1.,  1.]], dtype=float32)
    """
    found = cov(x, y, rowvar, dtype=dtype)
    if aval_of(found).ndim == 0:
        return binary.div(found, found)
    spread = unary.sqrt(real(matrices.diagonal(found)))
    dims = aval_of(found).shape
    spread = convert_to_type(spread, aval_of(found).dtype, weak_type=False)
    found = binary.div(found, shape.broadcast_in_dim(spread, dims, (0,)))
    found = binary.div(found, shape.broadcast_in_dim(spread, dims, (1,)))
    # Rounding may have left them beyond [-1, 1].
    return each_part(lambda part: binary.max(binary.min(part, 1.0), -1.0), found)


def _is_count(bins: object) -> bool:
    return isinstance(bins, (int, np.integer))


def histogram_bin_edges(
    a: ArrayLike,
    bins: ArrayOrLists = 10,
    range: ArrayOrLists | None = None,
    weights: ArrayLike | None = None,
) -> Array:
    """Computes the edges of the bins of a histogram.

    Args:
        a: the elements.
        bins: how many bins of equal width; or the edges themselves.
        range: the lowest and the highest edge; the extremes of the elements by default.
        weights: have no influence.

    Shapes:     a: T[s] -> T[bins + 1].
    Dtypes:     inexact; integers become floats.

    Raises:
        NotImplementedError: `bins` is the name of a rule.
        ValueError: `range` does not have two elements.

    Example:
        >>> jnp.histogram_bin_edges(jnp.array([0.0, 3.0, 4.0]), bins=4)
        Array([0., 1., 2., 3., 4.], dtype=float32)
    """
    if isinstance(bins, str):
        problem = "bins are counted, or given."
        error(NotImplementedError, "numpy.histogram_bin_edges", problem, got=repr(bins))
    if range is not None:
        if np.shape(range) != (2,):
            error(ValueError, "numpy.histogram_bin_edges", "a range has two ends.", got=repr(range))
        range = tuple(cast(Sequence[Any], range))
    count, edges = (int(cast(int, bins)), None) if _is_count(bins) else (None, bins)
    return _edges(a, count, edges, range)


@promotion.one_program(static=("count",))
def _edges(a: ArrayLike, count: int | None, edges: Any, limits: Any) -> Any:
    a = asarray(promotion.check_array("histogram_bin_edges", a, "a"))
    dtype = dtypes.to_inexact_dtype(a.dtype)
    if count is None:
        return asarray(edges).astype(dtype)
    if limits is None:
        limits = (a.min(), a.max()) if a.size else (0, 1)
    low, high = (asarray(x).astype(dtype) for x in limits)
    # A single value lies in the middle of a range of width 1.
    flat = low == high
    low, high = where(flat, low - 0.5, low), where(flat, high + 0.5, high)
    return linspace(low, high, count + 1, dtype=dtype)


def histogram(
    a: ArrayLike,
    bins: ArrayOrLists = 10,
    range: ArrayOrLists | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array]:
    """Computes the histogram of an array, and the edges of its bins.

    Args:
        a: the elements.
        bins: how many bins of equal width; or the edges.
        range: the lowest and the highest edge; the extremes of the elements by default.
        weights: what each element counts.
        density: whether the result is a density, whose integral is 1.

    Shapes:     a: T[s] -> T[bins], T[bins + 1].
    Dtypes:     inexact; integers become floats.

    Raises:
        ValueError: the shape of the weights is not that of `a`.

    Example:
        >>> jnp.histogram(jnp.array([1, 2, 2, 5]), bins=jnp.array([0, 2, 4]))
        (Array([1., 2.], dtype=float32), Array([0., 2., 4.], dtype=float32))
    """
    promotion.check_array("histogram", a, "a")
    fits = weights is None or np.shape(weights) == np.shape(a)
    problem = "there must be one weight for each element."
    promotion.check_that(fits, "histogram", problem, a=a, weights=weights)
    if weights is not None:
        a, weights = promotion.promote_inexact("histogram", asarray(a), asarray(weights))
    edges = histogram_bin_edges(a, bins, range, weights)
    return _counted(a, edges, weights, bool(density)), edges


@promotion.one_program(static=("density",))
def _counted(a: ArrayLike, edges: ArrayLike, weights: ArrayLike | None, density: bool) -> Any:
    # Integers have edges that are floats, though nobody has combined them.
    with promotion.lenient():
        a, edges = (asarray(x) for x in promotion.promote_dtypes("histogram", a, edges, 1.0)[:2])
    weights = ones(a.shape, a.dtype) if weights is None else asarray(weights)
    counts = _sums_by_bin([shaping.ravel(a)], [edges], shaping.ravel(weights))
    counts = counts.astype(dtypes.to_inexact_dtype(counts.dtype))
    return counts / (edges[1:] - edges[:-1]) / counts.sum() if density else counts


def _sums_by_bin(columns: Sequence[Any], edges: Sequence[Any], weights: Array) -> Any:
    """The sums of weights over the bins into which points, given by coordinates, fall."""
    sums = zeros(tuple(e.size - 1 for e in edges), weights.dtype)
    places = []
    for x, e in zip(columns, edges, strict=True):
        inside = (x >= e[0]) & (x <= e[-1])
        weights = where(inside, weights, 0)
        places.append((searchsorted(e, x, side="right") - 1).clip(0, e.size - 2))
    return sums.at[tuple(places)].add(weights)


def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: ArrayOrLists = 10,
    range: ArrayOrLists | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array, Array]:
    """Computes the two-dimensional histogram of points, and the edges along both axes.

    Shapes:     x: T[n], y: T[n] -> T[a, b], T[a + 1], T[b + 1].

    Raises:
        ValueError: the bins, ranges or weights do not fit the points.

    Example:
        >>> x, y = jnp.array([0.0, 1.0, 1.0]), jnp.array([0.0, 0.0, 1.0])
        >>> counts, x_edges, y_edges = jnp.histogram2d(x, y, bins=2)
        >>> counts
        Array([[1, 0],
               [1, 1]], dtype=int32)
    """
    if not _is_count(bins) and len(cast(Sequence[Any], bins)) not in {1, 2}:
        bins = [bins, bins]
    x, y = promotion.promote_inexact("histogram2d", x, y)
    sample = shaping.moveaxis(asarray([x, y]), 0, 1)
    counts, (x_edges, y_edges) = histogramdd(sample, bins, range, weights, density)
    return counts, x_edges, y_edges


def histogramdd(
    sample: ArrayOrLists,
    bins: ArrayOrLists = 10,
    range: ArrayOrLists | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, list[Array]]:
    """Computes the multidimensional histogram of points, and the edges along all axes.

    Args:
        sample: a point in each row.
        bins: how many bins along all axes; or for each axis a number, or its edges.
        range: for each axis None, or the lowest and the highest edge.
        weights: what each point counts.
        density: whether the result is a density, whose integral is 1.

    Shapes:     sample: T[n, d] -> T[b_1, .., b_d], T[b_i + 1] for each axis.
    Dtypes:     int32 without weights and density.

    Raises:
        ValueError: the bins, ranges or weights do not fit the points.

    Example:
        >>> points = jnp.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
        >>> counts, edges = jnp.histogramdd(points, bins=2)
        >>> counts.shape, [e.shape for e in edges]
        ((2, 2, 2), [(3,), (3,), (3,)])
    """
    sample = asarray(promotion.check_array("histogramdd", sample, "sample"))
    promotion.check_that(
        sample.ndim == 2, "histogramdd", "points are rows of a matrix.", sample=sample
    )
    count, rank = sample.shape
    per_axis = [bins] * rank if _is_count(bins) else list(cast(Sequence[Any], bins))
    limits = [None] * rank if range is None else list(cast(Sequence[Any], range))
    fits = len(per_axis) == rank and len(limits) == rank
    if not fits or (weights is not None and np.shape(weights) != (count,)):
        problem = "bins, ranges and weights must fit the points."
        got = {"points": count, "axes": rank, "bins": len(per_axis), "ranges": len(limits)}
        error(ValueError, "numpy.histogramdd", problem, got=got)
    columns = [sample[:, d] for d in np.arange(rank)]
    edges = [
        histogram_bin_edges(x, b, r) for x, b, r in zip(columns, per_axis, limits, strict=True)
    ]
    return _counted_points(sample, edges, weights, bool(density)), edges


@promotion.one_program(static=("density",))
def _counted_points(sample: Any, edges: Any, weights: Any, density: bool) -> Any:
    rank = len(edges)
    if weights is None:
        weights = ones(sample.shape[0], int)
    else:
        sample, weights = promotion.promote_inexact_dtypes("histogramdd", sample, asarray(weights))
        weights = shaping.ravel(weights)
    columns = list(shaping.moveaxis(sample, 1, 0))
    counts = _sums_by_bin(columns, edges, weights)
    if not density:
        return counts
    counts = counts / reductions.sum(counts)
    for d, e in enumerate(edges):
        widths = e[1:] - e[:-1]
        counts = counts / shaping.expand_dims(
            widths, tuple(int(axis) for axis in np.arange(rank) if axis != d)
        )
    return counts


def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Counts the occurrences of each non-negative integer, or sums their weights.

    Args:
        x: numbers; negative ones count as 0.
        weights: what each one counts.
        minlength: the least size of the result.
        length: the size of the result; numbers beyond do not count.  Needed where `x` is traced.
        out_sharding: the sharding of the result.

    Shapes:     x: integer[n] -> T[max(max(x) + 1, minlength)], or T[length].

    Raises:
        TypeError: `x` does not hold integers.
        ValueError: `x` does not have one dimension, or the weights do not fit.
        ConcretizationTypeError: `x` is traced, and there is no `length`.

    Example:
        >>> jnp.bincount(jnp.array([0, 3, 3, 1]))
        Array([1, 1, 0, 2], dtype=int32)
        >>> jnp.bincount(jnp.array([0, 3, 3, 1]), length=3)  # what `jit` needs
        Array([1, 1, 0], dtype=int32)
    """
    x = asarray(promotion.check_array("bincount", x))
    is_whole = dtypes.issubdtype(x.dtype, np.integer) or x.dtype == dtypes.bool_
    promotion.check_that(
        is_whole, "bincount", "integers are counted.", error=TypeError, x=x, fix="x.astype"
    )
    fits = x.ndim == 1 and (weights is None or np.shape(weights) == x.shape)
    problem = "a vector is needed, and one weight for each element."
    promotion.check_that(fits, "bincount", problem, x=x, weights=weights)
    if length is None:
        problem = "the numbers decide on the size of the result, so they must be known."
        host = promotion.known("bincount", x, "length=...", problem)
        length = max(minlength, int(host.max(initial=0)) + 1 if x.size else 0)
    counts = _counted_numbers(x, weights, operator.index(length))
    return on_device(counts, None, out_sharding)


@promotion.one_program(static=("length",))
def _counted_numbers(x: Array, weights: ArrayLike | None, length: int) -> Any:
    weights = ones(x.shape, dtypes.default_int_dtype()) if weights is None else asarray(weights)
    places = x.astype(dtypes.default_int_dtype()) if x.dtype == dtypes.bool_ else x.clip(0)
    return zeros(length, weights.dtype).at[places].add(weights, mode="drop")
