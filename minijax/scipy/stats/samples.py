"""Statistics of samples: ranks, modes, standard errors, and estimates of their density."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from minijax.core import dtypes, source, tree_registry
from minijax.core.aval import aval_of
from minijax.core.errors import error, message
from minijax.lax import linalg, window_reduction
from minijax.lax.creation import broadcasted_iota, convert_element_type
from minijax.lax.unary import exp, log, square
from minijax.numpy import creation, elementary, promotion, reductions, selection, shaping
from minijax.numpy.contraction import matmul
from minijax.numpy.logic import isnan, logical_not
from minijax.numpy.matrices import diagonal, eye
from minijax.numpy.normalized_exponentials import logsumexp
from minijax.numpy.ordering import argsort, sort
from minijax.numpy.promotion import one_program
from minijax.numpy.samples import cov as covariance
from minijax.numpy.statistics import nanstd
from minijax.random import continuous, discrete, keys
from minijax.runtime.annotations import ArrayLike, ShapeLike
from minijax.runtime.array import Array
from minijax.scipy.special.integrals import normal_cdf

Bandwidth: TypeAlias = str | float | Callable[[Any], Any]
"""How wide kernels are: the name of a rule, a factor, or a function of the estimator."""


class ModeResult(NamedTuple):
    """The most frequent values, and how often they occur."""

    mode: Array
    count: Array  # type: ignore[assignment]


def _refuse_policy(name: str, policy: str, *known: str) -> None:
    if policy in known:
        return
    kind = NotImplementedError if policy in ("omit", "raise") else ValueError
    problem = f"nan_policy {policy!r} is not supported."
    fix = "look for NaNs before the call, outside of compiled functions"
    error(kind, f"scipy.stats.{name}", problem, expected=" or ".join(map(repr, known)), fix=fix)


def _along(name: str, a: Array, axis: int | None) -> tuple[Array, int]:
    """An array and the dimension to go along: None stands for that of the raveled array."""
    if axis is None:
        return shaping.ravel(a), 0
    axes = shaping.canonical_axes(f"scipy.stats.{name}", operator.index(axis), aval_of(a).ndim)
    return a, axes[0]


def _run_bounds(ordered: Array, axis: int) -> tuple[Array, Array, Array]:
    """Of sorted values: which begin a run of equal ones, and where their runs begin and end."""
    aval = aval_of(ordered)
    count = aval.shape[axis]
    places = broadcasted_iota(np.int32, aval.shape, axis)
    before = shaping.roll(ordered, 1, axis)
    begins = (places == 0) | (ordered != before)
    first = window_reduction.cummax(selection.where(begins, places, 0), axis)
    ends = shaping.roll(begins, -1, axis)
    ends = ends | (places == count - 1)
    last = window_reduction.cummin(selection.where(ends, places, count), axis, reverse=True)
    return begins, first, last


@one_program(static=("method", "axis", "nan_policy"))
def rankdata(
    a: ArrayLike, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate"
) -> Array:
    """Ranks of the elements, from 1 on; all are NaN if one element is.

    Shapes: a: T[s] -> F[s], or raveled where there is no axis.
    Dtypes: real; ranks are of the default float dtype.

    Args:
        a: what is ranked.
        method: the rank of equal elements: "average" of what they would have, "min", "max",
            "dense" without gaps, or "ordinal" by their order.
        axis: the dimension to rank along; all elements where None.
        nan_policy: "propagate" alone.

    Raises:
        NotImplementedError: another nan_policy is asked for.
        ValueError: the method is not known.

    Example:
        >>> minijax.scipy.stats.rankdata(jnp.array([30, 10, 20, 20]))
        Array([4. , 1. , 2.5, 2.5], dtype=float32)
    """
    a = promotion.check_array("scipy.stats.rankdata", a, "a")
    _refuse_policy("rankdata", nan_policy, "propagate")
    known = "average", "min", "max", "dense", "ordinal"
    promotion.check_choice("scipy.stats.rankdata", "method", method, known)
    a, axis = _along("rankdata", creation.asarray(a), axis)
    aval = aval_of(a)
    # Not that of the elements: short floats cannot count far.
    dtype = dtypes.default_float_dtype()
    if not math.prod(aval.shape):
        return creation.zeros(aval.shape, dtype)
    order = argsort(a, axis=axis)
    ordered = selection.take_along_axis(a, order, axis=axis)
    inverse = argsort(order, axis=axis)
    ranks = convert_element_type(_ranks(ordered, method, axis), dtype)
    found = selection.take_along_axis(ranks, inverse, axis=axis)
    if not dtypes.issubdtype(aval.dtype, np.inexact):
        return found
    unknown = reductions.any(isnan(a), axis=axis, keepdims=True)
    return selection.where(unknown, np.nan, found)


def _ranks(ordered: Array, method: str, axis: int) -> Array:
    """The ranks of sorted elements."""
    begins, first, last = _run_bounds(ordered, axis)
    if method == "ordinal":
        return broadcasted_iota(np.int32, aval_of(ordered).shape, axis) + 1
    if method == "dense":
        return window_reduction.cumsum(convert_element_type(begins, np.int32), axis)
    if method == "min":
        return first + 1
    if method == "max":
        return last + 1
    return (first + last) * 0.5 + 1


@one_program(static=("axis", "nan_policy", "keepdims"))
def mode(
    a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False
) -> ModeResult:
    """The modal (most frequent) value along an axis, the smallest if there are several.

    Shapes: a: T[s] -> (T[s without axis], I[s without axis]).
    Dtypes: any; counts are integers.  Nothing at all has the mode NaN.

    Args:
        a: values.
        axis: the dimension to go along; all elements where None.
        nan_policy: "propagate" alone.
        keepdims: whether the reduced dimension stays, of size 1.

    Raises:
        NotImplementedError: another nan_policy is asked for.

    Example:
        >>> minijax.scipy.stats.mode(jnp.array([3, 1, 2, 2])).count
        Array(2, dtype=int32)
    """
    a = promotion.check_array("scipy.stats.mode", a, "a")
    _refuse_policy("mode", nan_policy, "propagate")
    given = creation.asarray(a)
    rank = aval_of(given).ndim
    a, along = _along("mode", shaping.ravel(given) if not rank else given, axis)
    aval = aval_of(a)
    if not aval.shape[along]:
        rest = aval.shape[:along] + aval.shape[along + 1 :]
        dtype = dtypes.to_inexact_dtype(aval.dtype)
        value, count = creation.full(rest, np.nan, dtype), creation.zeros(rest, dtype)
    else:
        ordered = sort(a, axis=along)
        _, first, last = _run_bounds(ordered, along)
        counts = last - first + 1
        place = reductions.argmax(counts, axis=along, keepdims=True)
        value = shaping.squeeze(selection.take_along_axis(ordered, place, along), along)
        count = reductions.max(counts, axis=along)
    if keepdims:
        axes = tuple(range(rank)) if axis is None else (along,)
        value, count = shaping.expand_dims(value, axes), shaping.expand_dims(count, axes)
    return ModeResult(value, count)


@one_program(static=("axis", "ddof", "nan_policy", "keepdims"))
def sem(
    a: ArrayLike,
    axis: int | None = 0,
    ddof: int = 1,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Array:
    """Standard error of the mean: the standard deviation divided by the root of the count.

    Shapes: a: T[s] -> T[s without axis].
    Dtypes: inexact; integers and booleans become floats.

    Args:
        a: values.
        axis: the dimension to go along; all elements where None.
        ddof: what the count is less by in the deviation.
        nan_policy: "propagate", or "omit" to leave NaNs out.
        keepdims: whether the reduced dimension stays, of size 1.

    Raises:
        ValueError: another nan_policy is asked for.

    Example:
        >>> minijax.scipy.stats.sem(jnp.array([1.0, 3.0]))
        Array(0.99999994, dtype=float32)
    """
    a = promotion.inexact("scipy.stats.sem", a)
    if nan_policy == "omit":
        deviation = nanstd(a, axis, ddof=ddof, keepdims=keepdims)
        known = logical_not(isnan(a))
        count = reductions.sum(known, axis, keepdims=keepdims, dtype=aval_of(deviation).dtype)
        return deviation / elementary.sqrt(count)
    promotion.check_choice("scipy.stats.sem", "nan_policy", nan_policy, ("propagate", "omit"))
    aval = aval_of(a)
    number = math.prod(aval.shape) if axis is None else aval.shape[axis]
    deviation = reductions.std(a, axis, ddof=ddof, keepdims=keepdims)
    return deviation / math.sqrt(number)


@source.boundaries()
@tree_registry.register_pytree_node_class
class gaussian_kde:  # noqa: N801  mirrors jax.scipy.stats.gaussian_kde
    """Kernel density estimate with Gaussian kernels.

    Shapes: dataset: T[n] or T[d, n], for n points of d dimensions.
    Dtypes: real; integers and booleans become floats.
    Source: mirrors jax.scipy.stats.gaussian_kde (0.10); Silverman, Density Estimation (1986).

    Args:
        dataset: the points.
        bw_method: how wide the kernels are against the data: "scott", "silverman", a number, or
            a function of the estimator; "scott" by default.
        weights: of the points, equal by default.

    Raises:
        NotImplementedError: the data are complex.
        TypeError: the data are not an array.
        ValueError: there is one point only, or the weights or bw_method do not fit.

    Example:
        >>> minijax.scipy.stats.gaussian_kde(jnp.array([-1.0, 1.0])).integrate_box_1d(-jnp.inf, 0)
        Array(0.5, dtype=float32)
    """

    neff: Any
    dataset: Any
    weights: Any
    covariance: Any
    inv_cov: Any

    __slots__ = ("covariance", "dataset", "inv_cov", "neff", "weights")

    def __init__(
        self,
        dataset: ArrayLike,
        bw_method: str | float | Callable[[Any], Any] | None = None,
        weights: ArrayLike | None = None,
    ) -> None:
        dataset = _real("data", dataset)
        if aval_of(dataset).ndim < 2:
            dataset = shaping.reshape(dataset, (1, -1))
        if aval_of(dataset).ndim > 2 or aval_of(dataset).size <= 1:
            expected = "shape (n,) or (d, n) with n > 1"
            _refuse("the data set is not several points.", expected, dataset=aval_of(dataset))
        self.dataset = dataset
        aval = aval_of(dataset)
        if weights is None:
            self.weights = creation.full(self.n, 1.0 / self.n, dtype=aval.dtype)
        else:
            self.weights = _weights(weights, self.n, aval.dtype)
        self.neff = 1 / reductions.sum(square(self.weights))
        factor = self._bandwidth("scott" if bw_method is None else bw_method)
        self.covariance, self.inv_cov = _covariances(self.dataset, self.weights, factor)

    def _bandwidth(self, method: Bandwidth) -> Any:
        if method == "scott":
            return elementary.power(self.neff, -1.0 / (self.d + 4))
        if method == "silverman":
            base = self.neff * ((self.d + 2) / 4.0)
            return elementary.power(base, -1.0 / (self.d + 4))
        if callable(method):
            return method(self)
        if isinstance(method, str) or np.ndim(method):
            expected = "'scott', 'silverman', a number, or a function"
            _refuse("bw_method is not known.", expected, bw_method=repr(method))
        return method

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        """The arrays that the estimator is made of."""
        return (self.neff, self.dataset, self.weights, self.covariance, self.inv_cov), None

    @classmethod
    def tree_unflatten(cls, aux_data: None, children: Sequence[Array]) -> Any:
        """The estimator of given arrays."""
        kde = cls.__new__(cls)
        for name, value in zip(
            ("neff", "dataset", "weights", "covariance", "inv_cov"), children, strict=True
        ):
            setattr(kde, name, value)
        return kde

    @property
    def d(self) -> int:
        """The number of dimensions of a point."""
        return int(aval_of(self.dataset).shape[0])

    @property
    def n(self) -> int:
        """The number of points in the data set."""
        return int(aval_of(self.dataset).shape[1])

    def evaluate(self, points: ArrayLike) -> Array:
        """Evaluates the estimated density at points: T[m] or T[d, m] -> T[m]."""
        return exp(self.logpdf(points))

    def __call__(self, points: ArrayLike) -> Array:
        return self.evaluate(points)

    def pdf(self, x: ArrayLike) -> Array:
        """Evaluates the estimated density at points: T[m] or T[d, m] -> T[m]."""
        return self.evaluate(x)

    def logpdf(self, x: ArrayLike) -> Array:
        """Log of the estimated density at points: T[m] or T[d, m] -> T[m]."""
        return _log_density(self.covariance, self.dataset, self.weights, self._points(x))

    def integrate_gaussian(self, mean: ArrayLike, cov: ArrayLike) -> Array:
        """The integral of the density times a Gaussian of mean T[d] and covariance T[d, d]."""
        mean = shaping.atleast_1d(shaping.squeeze(creation.asarray(mean)))
        cov = shaping.atleast_2d(creation.asarray(cov))
        if aval_of(mean).shape != (self.d,):
            _refuse("the mean does not fit.", expected=f"shape ({self.d},)", mean=aval_of(mean))
        if aval_of(cov).shape != (self.d, self.d):
            expected = f"shape ({self.d}, {self.d})"
            _refuse("the covariance does not fit.", expected, cov=aval_of(cov))
        both = self.covariance + cov
        density = _log_density(both, self.dataset, self.weights, shaping.expand_dims(mean, 1))
        return exp(shaping.squeeze(density, 0))

    def integrate_box_1d(self, low: ArrayLike, high: ArrayLike) -> Array:
        """The integral of a one-dimensional density from `low` to `high`."""
        if self.d != 1:
            _refuse("only densities of one dimension have intervals.", dimensions=self.d)
        if np.ndim(low) or np.ndim(high):
            _refuse("the limits are no scalars.", low=aval_of(low), high=aval_of(high))
        deviation = elementary.sqrt(self.covariance[0, 0])
        points = shaping.squeeze(self.dataset, 0)

        def below(limit: ArrayLike) -> Array:
            offset = (limit - points) / deviation
            return normal_cdf(promotion.strong(offset))

        mass = below(high) - below(low)
        return reductions.sum(self.weights * mass)

    def integrate_kde(self, other: gaussian_kde) -> Array:
        """The integral of the product of two estimated densities of the same dimension."""
        if other.d != self.d:
            _refuse("the densities differ in dimension.", dimensions=f"{self.d} and {other.d}")
        both = self.covariance + other.covariance
        densities = exp(_log_density(both, self.dataset, self.weights, other.dataset))
        return reductions.sum(densities * other.weights)

    def resample(self, key: Array, shape: ShapeLike = ()) -> Array:
        """Random samples from the estimated density: T[d, *shape]."""
        place_key, noise_key = keys.split(key)
        places = discrete.choice(place_key, self.n, shape=shape, p=self.weights)
        center = creation.zeros(self.d, self.dataset.dtype)
        noise = continuous.multivariate_normal(
            noise_key, center, self.covariance, shape=shape, dtype=self.dataset.dtype
        )
        return selection.take(self.dataset, places, axis=1) + shaping.moveaxis(noise, -1, 0)

    def integrate_box(
        self, low_bounds: ArrayLike, high_bounds: ArrayLike, maxpts: int | None = None
    ) -> Array:
        """Not supported: see `integrate_box_1d`."""
        raise NotImplementedError(
            _text("boxes of several dimensions are not supported.", fix="integrate_box_1d")
        )

    def set_bandwidth(self, bw_method: Bandwidth | None = None) -> None:
        """Not supported: an estimator does not change."""
        raise NotImplementedError(
            _text("an estimator does not change.", fix="gaussian_kde(dataset, bw_method=...)")
        )

    def _points(self, points: ArrayLike) -> Array:
        points = shaping.atleast_2d(_real("coordinates", points))
        points = points.astype(dtypes.result_type(points, self.dataset))
        dimensions, count = aval_of(points).shape
        if dimensions == self.d:
            return points
        if dimensions == 1 and count == self.d:
            return shaping.reshape(points, (self.d, 1))
        expected = f"{self.d} rows"
        return _refuse("the points do not fit the data.", expected, points=aval_of(points))


def _text(problem: str, **parts: Any) -> str:
    return message("scipy.stats.gaussian_kde", problem, **parts)


def _refuse(problem: str, expected: str | None = None, **got: Any) -> Any:
    raise ValueError(_text(problem, got=got, expected=expected))


def _real(what: str, x: ArrayLike) -> Array:
    x = promotion.inexact("scipy.stats.gaussian_kde", x)
    if dtypes.issubdtype(aval_of(x).dtype, np.complexfloating):
        raise NotImplementedError(
            _text(f"complex {what} are not supported.", got=str(aval_of(x)), fix="numpy.real")
        )
    return creation.asarray(x)


def _weights(weights: ArrayLike, count: int, dtype: np.dtype[Any]) -> Array:
    weights = creation.asarray(weights, dtype=dtype)
    if aval_of(weights).shape != (count,):
        _refuse("the weights do not fit.", expected=f"shape ({count},)", weights=aval_of(weights))
    return weights / reductions.sum(weights)


@one_program()
def _covariances(dataset: Array, weights: Array, factor: ArrayLike) -> tuple[Array, Array]:
    """The covariances of kernels: those of the data, narrowed; and their inverse."""
    size = aval_of(dataset).shape[0]
    of_data = covariance(dataset, rowvar=True, bias=False, aweights=weights)
    of_data = shaping.reshape(of_data, (size, size))
    kernel = of_data * elementary.square(factor)
    identity = eye(size, dtype=aval_of(dataset).dtype)
    root = linalg.cholesky(kernel)
    inverse = linalg.triangular_solve(root, identity, left_side=True, lower=True)
    return kernel, matmul(shaping.swapaxes(inverse, -1, -2), inverse)


@one_program()
def _log_density(cov: Array, data: Array, weights: Array, points: Array) -> Array:
    """The logarithm of the weighted sum of normal densities around data, at points."""
    root = linalg.cholesky(cov)

    def whitened(x: Array) -> Array:
        return linalg.triangular_solve(root, x, left_side=True, lower=True)

    offsets = shaping.expand_dims(whitened(data), 2) - shaping.expand_dims(whitened(points), 1)
    exponents = reductions.sum(square(offsets), axis=0) * -0.5
    total = logsumexp(exponents, axis=0, b=shaping.expand_dims(weights, 1))
    half_log = reductions.sum(log(diagonal(root)))
    norm = half_log + aval_of(cov).shape[0] / 2 * math.log(2 * math.pi)
    return total - norm
