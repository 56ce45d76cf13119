"""Densities estimated from samples by normal kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.core import dtypes, tree
from minijax.core.aval import aval_of
from minijax.core.errors import message
from minijax.lax import linalg
from minijax.lax.unary import exp, log, square
from minijax.numpy import (
    arithmetic,
    contraction,
    creation,
    matrices,
    normalized_exponentials,
    promotion,
    reductions,
    samples,
    selection,
    shaping,
)
from minijax.numpy.one_program import one_program
from minijax.random import discrete, keys, multivariate
from minijax.scipy.special.normal_distribution import normal_cdf


@tree.register_pytree_node_class
class gaussian_kde:  # noqa: N801  mirrors jax.scipy.stats.gaussian_kde
    """The density of a data set: a normal kernel around each of its points.

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
        TypeError: the data are no array.
        ValueError: there is one point only, or the weights or bw_method do not fit.

    Example:
        >>> minijax.scipy.stats.gaussian_kde(jnp.array([-1.0, 1.0])).integrate_box_1d(-jnp.inf, 0)
        Array(0.5, dtype=float32)
    """

    neff: Any
    dataset: Any
    weights: Any
    samples: Any
    inv_cov: Any

    __slots__ = ("covariance", "dataset", "inv_cov", "neff", "weights")

    def __init__(
        self,
        dataset: Any,
        bw_method: str | float | Callable[[Any], Any] | None = None,
        weights: Any = None,
    ) -> None:
        dataset = _real("data", dataset)
        if aval_of(dataset).ndim < 2:
            dataset = shaping.reshape(dataset, (1, -1))
        if aval_of(dataset).ndim > 2 or aval_of(dataset).size <= 1:
            _refuse(
                "the data set is not several points.",
                expected="shape (n,) or (d, n) with n > 1",
                dataset=aval_of(dataset),
            )
        self.dataset = dataset
        aval = aval_of(dataset)
        if weights is None:
            self.weights = creation.full(self.n, 1.0 / self.n, dtype=aval.dtype)
        else:
            self.weights = _weights(weights, self.n, aval.dtype)
        self.neff = arithmetic.divide(1, reductions.sum(square(self.weights)))
        factor = self._bandwidth("scott" if bw_method is None else bw_method)
        self.covariance, self.inv_cov = _covariances(self.dataset, self.weights, factor)

    def _bandwidth(self, method: Any) -> Any:
        if method == "scott":
            return arithmetic.power(self.neff, -1.0 / (self.d + 4))
        if method == "silverman":
            base = arithmetic.multiply(self.neff, (self.d + 2) / 4.0)
            return arithmetic.power(base, -1.0 / (self.d + 4))
        if callable(method):
            return method(self)
        if isinstance(method, str) or np.ndim(method):
            _refuse(
                "bw_method is not known.",
                expected="'scott', 'silverman', a number, or a function",
                bw_method=repr(method),
            )
        return method

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        """The arrays that the estimator is made of."""
        return (self.neff, self.dataset, self.weights, self.covariance, self.inv_cov), None

    @classmethod
    def tree_unflatten(cls, aux_data: None, children: Any) -> Any:
        """The estimator of given arrays."""
        kde = cls.__new__(cls)
        for name, value in zip(
            ("neff", "dataset", "weights", "covariance", "inv_cov"), children, strict=True
        ):
            setattr(kde, name, value)
        return kde

    @property
    def d(self) -> int:
        """How many dimensions a point has."""
        return int(aval_of(self.dataset).shape[0])

    @property
    def n(self) -> int:
        """How many points there are."""
        return int(aval_of(self.dataset).shape[1])

    def evaluate(self, points: Any) -> Any:
        """The density at points: T[m] or T[d, m] -> T[m]."""
        return exp(self.logpdf(points))

    def __call__(self, points: Any) -> Any:
        return self.evaluate(points)

    def pdf(self, x: Any) -> Any:
        """The density at points: T[m] or T[d, m] -> T[m]."""
        return self.evaluate(x)

    def logpdf(self, x: Any) -> Any:
        """The logarithm of the density at points: T[m] or T[d, m] -> T[m]."""
        return _log_density(self.covariance, self.dataset, self.weights, self._points(x))

    def integrate_gaussian(self, mean: Any, cov: Any) -> Any:
        """The integral of the density times a normal one of mean T[d] and covariance T[d, d]."""
        mean = shaping.atleast_1d(shaping.squeeze(creation.asarray(mean)))
        cov = shaping.atleast_2d(creation.asarray(cov))
        if aval_of(mean).shape != (self.d,):
            _refuse("the mean does not fit.", expected=f"shape ({self.d},)", mean=aval_of(mean))
        if aval_of(cov).shape != (self.d, self.d):
            _refuse(
                "the covariance does not fit.",
                expected=f"shape ({self.d}, {self.d})",
                cov=aval_of(cov),
            )
        both = arithmetic.add(self.covariance, cov)
        density = _log_density(both, self.dataset, self.weights, shaping.expand_dims(mean, 1))
        return exp(shaping.squeeze(density, 0))

    def integrate_box_1d(self, low: Any, high: Any) -> Any:
        """The mass of a one-dimensional density from `low` to `high`."""
        if self.d != 1:
            _refuse("only densities of one dimension have intervals.", dimensions=self.d)
        if np.ndim(low) or np.ndim(high):
            _refuse("the limits are no scalars.", low=aval_of(low), high=aval_of(high))
        deviation = arithmetic.sqrt(self.covariance[0, 0])
        points = shaping.squeeze(self.dataset, 0)

        def below(limit: Any) -> Any:
            offset = arithmetic.divide(arithmetic.subtract(limit, points), deviation)
            return normal_cdf(promotion.strong(offset))

        mass = arithmetic.subtract(below(high), below(low))
        return reductions.sum(arithmetic.multiply(self.weights, mass))

    def integrate_kde(self, other: gaussian_kde) -> Any:
        """The integral of the product of two densities of one dimension."""
        if other.d != self.d:
            _refuse("the densities differ in dimension.", dimensions=f"{self.d} and {other.d}")
        both = arithmetic.add(self.covariance, other.covariance)
        densities = exp(_log_density(both, self.dataset, self.weights, other.dataset))
        return reductions.sum(arithmetic.multiply(densities, other.weights))

    def resample(self, key: Any, shape: Any = ()) -> Any:
        """Random points of the density: T[d, *shape]."""
        place_key, noise_key = keys.split(key)
        places = discrete.choice(place_key, self.n, shape=shape, p=self.weights)
        center = creation.zeros(self.d, self.dataset.dtype)
        noise = multivariate.multivariate_normal(
            noise_key, center, self.covariance, shape=shape, dtype=self.dataset.dtype
        )
        return arithmetic.add(
            selection.take(self.dataset, places, axis=1), shaping.moveaxis(noise, -1, 0)
        )

    def integrate_box(self, low_bounds: Any, high_bounds: Any, maxpts: Any = None) -> Any:
        """Not supported: see `integrate_box_1d`."""
        raise NotImplementedError(
            _text("boxes of several dimensions are not supported.", fix="integrate_box_1d")
        )

    def set_bandwidth(self, bw_method: Any = None) -> None:
        """Not supported: an estimator does not change."""
        raise NotImplementedError(
            _text("an estimator does not change.", fix="gaussian_kde(dataset, bw_method=...)")
        )

    def _points(self, points: Any) -> Any:
        points = shaping.atleast_2d(_real("coordinates", points))
        points = points.astype(dtypes.result_type(points, self.dataset))
        dimensions, count = aval_of(points).shape
        if dimensions == self.d:
            return points
        if dimensions == 1 and count == self.d:
            return shaping.reshape(points, (self.d, 1))
        return _refuse(
            "the points do not fit the data.",
            expected=f"{self.d} rows",
            points=aval_of(points),
        )


def _text(problem: str, **parts: Any) -> str:
    return message("scipy.stats.gaussian_kde", problem, **parts)


def _refuse(problem: str, expected: str | None = None, **got: Any) -> Any:
    raise ValueError(_text(problem, got=got, expected=expected))


def _real(what: str, x: Any) -> Any:
    x = promotion.inexact("scipy.stats.gaussian_kde", x)
    if dtypes.issubdtype(aval_of(x).dtype, np.complexfloating):
        raise NotImplementedError(
            _text(f"complex {what} are not supported.", got=str(aval_of(x)), fix="numpy.real")
        )
    return creation.asarray(x)


def _weights(weights: Any, count: int, dtype: Any) -> Any:
    weights = creation.asarray(weights, dtype=dtype)
    if aval_of(weights).shape != (count,):
        _refuse("the weights do not fit.", expected=f"shape ({count},)", weights=aval_of(weights))
    return arithmetic.divide(weights, reductions.sum(weights))


@one_program()
def _covariances(dataset: Any, weights: Any, factor: Any) -> tuple[Any, Any]:
    """The covariances of kernels: those of the data, narrowed; and their inverse."""
    size = aval_of(dataset).shape[0]
    of_data = samples.cov(dataset, rowvar=True, bias=False, aweights=weights)
    of_data = shaping.reshape(of_data, (size, size))
    kernel = arithmetic.multiply(of_data, arithmetic.square(factor))
    identity = matrices.eye(size, dtype=aval_of(dataset).dtype)
    root = linalg.cholesky(kernel)
    inverse = linalg.triangular_solve(root, identity, left_side=True, lower=True)
    return kernel, contraction.matmul(shaping.swapaxes(inverse, -1, -2), inverse)


@one_program()
def _log_density(cov: Any, data: Any, weights: Any, points: Any) -> Any:
    """The logarithm of the weighted sum of normal densities around data, at points."""
    root = linalg.cholesky(cov)

    def whitened(x: Any) -> Any:
        return linalg.triangular_solve(root, x, left_side=True, lower=True)

    offsets = arithmetic.subtract(
        shaping.expand_dims(whitened(data), 2), shaping.expand_dims(whitened(points), 1)
    )
    exponents = arithmetic.multiply(reductions.sum(square(offsets), axis=0), -0.5)
    total = normalized_exponentials.logsumexp(exponents, axis=0, b=shaping.expand_dims(weights, 1))
    half_log = reductions.sum(log(matrices.diagonal(root)))
    norm = arithmetic.add(half_log, aval_of(cov).shape[0] / 2 * math.log(2 * math.pi))
    return arithmetic.subtract(total, norm)
