"""Distributions of numbers and of vectors, as `jax.scipy.stats` has them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import ClassVar

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.lax import linalg, special
from minijax.lax.binary import atan2, div, max, min, select
from minijax.lax.elementwise import Elementwise
from minijax.lax.shape import concatenate
from minijax.lax.special import epsilon, full_like
from minijax.lax.unary import abs, cos, exp, expm1, floor, log, log1p, sign, square, tan
from minijax.lax.unary import logistic as logistic_function
from minijax.numpy import creation, matrices, promotion, reductions, shaping
from minijax.numpy.elementary import clip
from minijax.numpy.logic import isnan
from minijax.numpy.promotion import check_that, one_program, strong
from minijax.numpy.selection import where
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.scipy.special import elementwise
from minijax.scipy.special.elementwise import real_operands
from minijax.scipy.special.gamma_functions import betainc, betaln, gammainc, gammaincc, gammaln
from minijax.scipy.special.hypergeometric import i0e
from minijax.scipy.special.integrals import log_ndtr_p, logit, ndtri_p, normal_cdf, xlog1py, xlogy
from minijax.scipy.stats import template


class Beta(template.Continuous):
    """The beta distribution with shape parameters `a` and `b`, from `loc` to `loc + scale`.

    Example:
        >>> minijax.scipy.stats.beta.cdf(1.0, 1.0, 1.0)
        Array(1., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.beta.logcdf(1.0, 2.0, 3.0)
        Array(0., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.beta.logpdf(2.0, 1.0, 1.0)
        Array(-inf, dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.beta.logsf(0.0, 2.0, 3.0)
        Array(0., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.beta.pdf(2.0, 1.0, 1.0)
        Array(0., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.beta.sf(1.0, 1.0, 1.0)
        Array(0., dtype=float32, weak_type=True)
    """

    _functions = "cdf logcdf logpdf logsf pdf sf"
    _shapes = "a b"
    _positive = "scale a b"

    def _logpdf(self, z: Array, a: Array, b: Array, scale: Array) -> Array:
        outside = (z < 0.0) | (z > 1.0)
        z = where(outside, 0.5, z)
        inside = xlogy(a - 1.0, z) + xlog1py(b - 1.0, -z) - betaln(a, b) - log(scale)
        return where(outside, -np.inf, inside)

    def _cdf(self, z: Array, a: Array, b: Array) -> Array:
        return betainc(a, b, clip(z, 0.0, 1.0))

    def _sf(self, z: Array, a: Array, b: Array) -> Array:
        return betainc(b, a, 1.0 - clip(z, 0.0, 1.0))


class _Symmetric(template.Continuous):
    """The template of a continuous distribution of which z and -z are equally likely."""

    _cdf: Callable[..., Array]
    _logcdf: Callable[..., Array]
    _ppf: Callable[..., Array]

    def _sf(self, z: Array) -> Array:
        return self._cdf(-z)

    def _logsf(self, z: Array) -> Array:
        return self._logcdf(-z)

    def _isf(self, q: Array) -> Array:
        return -self._ppf(q)


class Cauchy(_Symmetric):
    """The Cauchy distribution with median `loc` and half interquartile range `scale`.

    Example:
        >>> minijax.scipy.stats.cauchy.cdf(0.0)
        Array(0.5, dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.cauchy.isf(0.5, loc=3.0)
        Array(3., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.cauchy.logcdf(-jnp.inf)
        Array(-inf, dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.cauchy.logpdf(jnp.inf)
        Array(-inf, dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.cauchy.logsf(jnp.inf)
        Array(-inf, dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.cauchy.pdf(jnp.inf)
        Array(0., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.cauchy.ppf(0.5, loc=3.0)
        Array(3., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.cauchy.sf(0.0)
        Array(0.5, dtype=float32, weak_type=True)
    """

    _functions = "cdf isf logcdf logpdf logsf pdf ppf sf"

    def _logpdf(self, z: Array, scale: Array) -> Array:
        return -(log1p(square(z)) + log(scale * math.pi))

    def _cdf(self, z: Array) -> Array:
        # The angle from below, which is exact also where it is small.
        return atan2(1.0, -z) / math.pi

    def _logcdf(self, z: Array) -> Array:
        below, above = self._cdf(z), self._sf(z)
        # From the probability of the opposite event where that is the smaller one.
        near_one = above < 0.5
        return where(near_one, log1p(-where(near_one, above, 0.5)), log(below))

    def _ppf(self, q: Array) -> Array:
        # The tangent of an angle that is taken from the nearer end.
        center = tan((q - 0.5) * math.pi)
        tail = 1.0 / tan(min(q, 1.0 - q) * math.pi)
        return where(abs(q - 0.5) < 0.25, center, where(q < 0.5, -tail, tail))


def _gamma_logpdf(z: Array, a: Array, scale: Array) -> Array:
    outside = z < 0.0
    z = where(outside, 1.0, z)
    return where(outside, -np.inf, xlogy(a - 1.0, z) - z - gammaln(a) - log(scale))


def _gamma_cdf(z: Array, a: Array) -> Array:
    below = z <= 0.0
    return where(below, 0.0, gammainc(a, where(below, 1.0, z)))


def _gamma_sf(z: Array, a: Array) -> Array:
    below = z <= 0.0
    return where(below, 1.0, gammaincc(a, where(below, 1.0, z)))


class Chi2(template.Continuous):
    """The chi-squared distribution with `df` degrees of freedom.

    Example:
        >>> minijax.scipy.stats.chi2.cdf(0.0, 2.0)
        Array(0., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.chi2.logcdf(jnp.inf, 2.0)
        Array(0., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.chi2.logpdf(-1.0, 2.0)
        Array(-inf, dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.chi2.logsf(0.0, 2.0)
        Array(0., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.chi2.pdf(-1.0, 2.0)
        Array(0., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.chi2.sf(0.0, 2.0)
        Array(1., dtype=float32, weak_type=True)
    """

    _functions = "cdf logcdf logpdf logsf pdf sf"
    _shapes = "df"
    _positive = "scale df"
    _unit = 2.0

    def _logpdf(self, z: Array, df: Array, scale: Array) -> Array:
        return _gamma_logpdf(z, df * 0.5, scale)

    def _cdf(self, z: Array, df: Array) -> Array:
        return _gamma_cdf(z, df * 0.5)

    def _sf(self, z: Array, df: Array) -> Array:
        return _gamma_sf(z, df * 0.5)


class Expon(template.Continuous):
    """The exponential distribution with mean `scale`, from `loc` on.

    Example:
        >>> minijax.scipy.stats.expon.cdf(jnp.inf)
        Array(1., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.expon.logcdf(0.0)
        Array(-inf, dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.expon.logpdf(2.0)
        Array(-2., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.expon.logsf(2.0)
        Array(-2., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.expon.pdf(0.0)
        Array(1., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.expon.ppf(0.0)
        Array(0., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.expon.sf(0.0)
        Array(1., dtype=float32, weak_type=True)
    """

    _functions = "cdf logcdf logpdf logsf pdf ppf sf"
    _positive = "scale"

    def _logpdf(self, z: Array, scale: Array) -> Array:
        return where(z < 0.0, -np.inf, -(z + log(scale)))

    def _cdf(self, z: Array) -> Array:
        return where(z < 0.0, 0.0, -expm1(-z))

    def _logcdf(self, z: Array) -> Array:
        return template.log_complement(where(z < 0.0, 0.0, -z))

    def _sf(self, z: Array) -> Array:
        return where(z < 0.0, 1.0, exp(-z))

    def _logsf(self, z: Array) -> Array:
        return where(z < 0.0, 0.0, -z)

    def _ppf(self, q: Array) -> Array:
        return where((q < 0.0) | (q > 1.0), np.nan, -log1p(-q))


class Gamma(template.Continuous):
    """The gamma distribution with shape parameter `a`, from `loc` on.

    Example:
        >>> minijax.scipy.stats.gamma.cdf(0.0, 2.0)
        Array(0., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.gamma.logcdf(jnp.inf, 2.0)
        Array(0., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.gamma.logpdf(-1.0, 2.0)
        Array(-inf, dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.gamma.logsf(0.0, 2.0)
        Array(0., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.gamma.pdf(-1.0, 2.0)
        Array(0., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.gamma.sf(0.0, 2.0)
        Array(1., dtype=float32, weak_type=True)
    """

    _functions = "cdf logcdf logpdf logsf pdf sf"
    _shapes = "a"
    _positive = "scale a"

    _logpdf = staticmethod(_gamma_logpdf)
    _cdf = staticmethod(_gamma_cdf)
    _sf = staticmethod(_gamma_sf)


class GenNorm(template.Continuous):
    """The generalized normal distribution: normal for `beta` 2, Laplace's for 1.

    Example:
        >>> minijax.scipy.stats.gennorm.cdf(0.0, 2.0)
        Array(0.5, dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.gennorm.logpdf(jnp.inf, 2.0)
        Array(-inf, dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.gennorm.pdf(jnp.inf, 2.0)
        Array(0., dtype=float32, weak_type=True)
    """

    _functions = "cdf logpdf pdf"
    _shapes = "beta"
    _is_standardised = False

    def _logpdf(self, x: Array, beta: Array) -> Array:
        return log(beta * 0.5) - gammaln(div(1.0, beta)) - abs(x) ** beta

    def _cdf(self, x: Array, beta: Array) -> Array:
        return 0.5 * (1.0 + sign(x) * gammainc(div(1.0, beta), abs(x) ** beta))


class GumbelL(template.Continuous):
    """The left-skewed Gumbel distribution, of smallest values, with mode `loc`.

    Example:
        >>> minijax.scipy.stats.gumbel_l.cdf(jnp.inf)
        Array(1., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.gumbel_l.logcdf(jnp.inf)
        Array(-0., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.gumbel_l.logpdf(0.0)
        Array(-1., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.gumbel_l.logsf(0.0)
        Array(-1., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.gumbel_l.pdf(-jnp.inf)
        Array(0., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.gumbel_l.ppf(0.0)
        Array(-inf, dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.gumbel_l.sf(jnp.inf)
        Array(0., dtype=float32, weak_type=True)
    """

    _functions = "cdf logcdf logpdf logsf pdf ppf sf"
    _positive = "scale"
    _probability = "p"

    def _logpdf(self, z: Array, scale: Array) -> Array:
        # The exponential outgrows z.
        return where(z == np.inf, -np.inf, z - exp(z) - log(scale))

    def _cdf(self, z: Array) -> Array:
        return -expm1(-exp(z))

    def _logcdf(self, z: Array) -> Array:
        return template.log_complement(-exp(z))

    def _sf(self, z: Array) -> Array:
        return exp(-exp(z))

    def _logsf(self, z: Array) -> Array:
        return -exp(z)

    def _ppf(self, p: Array) -> Array:
        return log(-log1p(-p))


class GumbelR(template.Continuous):
    """The right-skewed Gumbel distribution, of largest values, with mode `loc`.

    Example:
        >>> minijax.scipy.stats.gumbel_r.cdf(jnp.inf)
        Array(1., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.gumbel_r.logcdf(0.0)
        Array(-1., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.gumbel_r.logpdf(0.0)
        Array(-1., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.gumbel_r.logsf(jnp.inf)
        Array(-inf, dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.gumbel_r.pdf(jnp.inf)
        Array(0., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.gumbel_r.ppf(0.0)
        Array(-inf, dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.gumbel_r.sf(jnp.inf)
        Array(0., dtype=float32, weak_type=True)
    """

    _functions = "cdf logcdf logpdf logsf pdf ppf sf"
    _positive = "scale"
    _probability = "p"

    def _logpdf(self, z: Array, scale: Array) -> Array:
        # The exponential outgrows z.
        return where(z == -np.inf, -np.inf, -(z + exp(-z) + log(scale)))

    def _cdf(self, z: Array) -> Array:
        return exp(-exp(-z))

    def _logcdf(self, z: Array) -> Array:
        return -exp(-z)

    def _sf(self, z: Array) -> Array:
        return -expm1(-exp(-z))

    def _logsf(self, z: Array) -> Array:
        return template.log_complement(-exp(-z))

    def _ppf(self, p: Array) -> Array:
        return -log(-log(p))


class Laplace(template.Continuous):
    """The Laplace distribution with mean `loc`.

    Example:
        >>> minijax.scipy.stats.laplace.cdf(0.0)
        Array(0.5, dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.laplace.logpdf(1.0, 0.0, 0.5)
        Array(-2., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.laplace.pdf(0.0)
        Array(0.5, dtype=float32, weak_type=True)
    """

    _functions = "cdf logpdf pdf"

    def _logpdf(self, z: Array, scale: Array) -> Array:
        return -(abs(z) + log(scale * 2.0))

    def _cdf(self, z: Array) -> Array:
        low = z <= 0.0
        tail = exp(where(low, z, -z)) * 0.5
        return where(low, tail, 1.0 - tail)


class Logistic(_Symmetric):
    """The logistic distribution with mean `loc`.

    Example:
        >>> minijax.scipy.stats.logistic.cdf(0.0)
        Array(0.5, dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.logistic.isf(0.5, loc=3.0)
        Array(3., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.logistic.logpdf(jnp.inf)
        Array(-inf, dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.logistic.pdf(0.0)
        Array(0.25, dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.logistic.ppf(0.5, loc=3.0)
        Array(3., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.logistic.sf(0.0)
        Array(0.5, dtype=float32, weak_type=True)
    """

    _functions = "cdf isf logpdf pdf ppf sf"
    _probability = "x"

    def _logpdf(self, z: Array, scale: Array) -> Array:
        z = abs(z)
        return -(z + log1p(exp(-z)) * 2.0 + log(scale))

    def _cdf(self, z: Array) -> Array:
        return logistic_function(z)

    def _ppf(self, x: Array) -> Array:
        return logit(x)


class Norm(_Symmetric):
    """The normal distribution with mean `loc` and standard deviation `scale`.

    Example:
        >>> minijax.scipy.stats.norm.cdf(0.0)
        Array(0.5, dtype=float32)
        >>> minijax.scipy.stats.norm.isf(0.5, loc=3.0)
        Array(3., dtype=float32)
        >>> minijax.scipy.stats.norm.logcdf(jnp.inf)
        Array(-0., dtype=float32)
        >>> minijax.scipy.stats.norm.logpdf(jnp.inf)
        Array(-inf, dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.norm.logsf(jnp.inf)
        Array(-inf, dtype=float32)
        >>> minijax.scipy.stats.norm.pdf(jnp.inf)
        Array(0., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.norm.ppf(0.5, loc=3.0)
        Array(3., dtype=float32)
        >>> minijax.scipy.stats.norm.sf(0.0)
        Array(0.5, dtype=float32)
    """

    _functions = "cdf isf logcdf logpdf logsf pdf ppf sf"

    def _logpdf(self, z: Array, scale: Array) -> Array:
        return _normal_logpdf(z, scale)

    def _cdf(self, z: Array) -> Array:
        return normal_cdf(strong(z))

    def _logcdf(self, z: Array) -> Array:
        return log_ndtr_p.bind(strong(z))

    def _ppf(self, q: Array) -> Array:
        return ndtri_p.bind(strong(q))


def _normal_logpdf(z: Array, scale: Array) -> Array:
    return square(z) * -0.5 - log(scale * math.sqrt(2 * math.pi))


class Pareto(template.Continuous):
    """The Pareto distribution with shape parameter `b`, from `loc + scale` on.

    Example:
        >>> minijax.scipy.stats.pareto.cdf(1.0, 1.0)
        Array(0., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.pareto.logcdf(jnp.inf, 1.0)
        Array(-0., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.pareto.logpdf(0.5, 1.0)
        Array(-inf, dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.pareto.logsf(1.0, 1.0)
        Array(-0., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.pareto.pdf(1.0, 1.0)
        Array(1., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.pareto.ppf(0.0, 1.0)
        Array(1., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.pareto.sf(1.0, 1.0)
        Array(1., dtype=float32, weak_type=True)
    """

    _functions = "cdf logcdf logpdf logsf pdf ppf sf"
    _shapes = "b"
    _positive = "scale"

    def _logpdf(self, z: Array, b: Array, scale: Array) -> Array:
        outside = z < 1.0
        inside = log(b) - log(scale) - (b + 1.0) * log(where(outside, 1.0, z))
        return where(outside, -np.inf, inside)

    def _cdf(self, z: Array, b: Array) -> Array:
        return where(z < 1.0, 0.0, -expm1(-b * log(where(z < 1.0, 1.0, z))))

    def _logcdf(self, z: Array, b: Array) -> Array:
        below = z < 1.0
        return where(below, -np.inf, template.log_complement(-b * log(where(below, 2.0, z))))

    def _sf(self, z: Array, b: Array) -> Array:
        return where(z < 1.0, 1.0, exp(-b * log(where(z < 1.0, 1.0, z))))

    def _logsf(self, z: Array, b: Array) -> Array:
        return where(z < 1.0, 0.0, -b * log(where(z < 1.0, 1.0, z)))

    def _ppf(self, q: Array, b: Array) -> Array:
        return where((q < 0.0) | (q > 1.0), np.nan, exp(-log1p(-q) / b))


class T(template.Continuous):
    """Student's t distribution with `df` degrees of freedom.

    Example:
        >>> minijax.scipy.stats.t.logpdf(jnp.inf, 2.0)
        Array(-inf, dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.t.pdf(jnp.inf, 2.0)
        Array(0., dtype=float32, weak_type=True)
    """

    _functions = "logpdf pdf"
    _shapes = "df"

    def _logpdf(self, z: Array, df: Array, scale: Array) -> Array:
        half = df * 0.5
        constant = betaln(0.5, half) + log(df) * 0.5 + log(scale)
        return -(constant + (half + 0.5) * log1p(square(z) / df))


class TruncNorm(template.Continuous):
    """The normal distribution truncated to `loc + scale z` with z from `a` to `b`.

    Example:
        >>> minijax.scipy.stats.truncnorm.cdf(1.0, -1.0, 1.0)
        Array(1., dtype=float32)
        >>> minijax.scipy.stats.truncnorm.logcdf(1.0, -1.0, 1.0)
        Array(0., dtype=float32)
        >>> minijax.scipy.stats.truncnorm.logpdf(2.0, -1.0, 1.0)
        Array(-inf, dtype=float32)
        >>> minijax.scipy.stats.truncnorm.logsf(-1.0, -1.0, 1.0)
        Array(0., dtype=float32)
        >>> minijax.scipy.stats.truncnorm.pdf(2.0, -1.0, 1.0)
        Array(0., dtype=float32)
        >>> minijax.scipy.stats.truncnorm.sf(-1.0, -1.0, 1.0)
        Array(1., dtype=float32)
    """

    _functions = "cdf logcdf logpdf logsf pdf sf"
    _shapes = "a b"

    def _logpdf(self, z: Array, a: Array, b: Array, scale: Array) -> Array:
        return where(a >= b, np.nan, _truncated_logpdf(z, a, b, scale))

    def _pdf(self, z: Array, a: Array, b: Array, scale: Array) -> Array:
        # The exponential comes first: XLA's is undefined where it finds a constant NaN.
        return where(a >= b, np.nan, exp(_truncated_logpdf(z, a, b, scale)))

    def _logcdf(self, z: Array, a: Array, b: Array) -> Array:
        return where(a >= b, np.nan, _truncated_logcdf(z, a, b))

    def _cdf(self, z: Array, a: Array, b: Array) -> Array:
        return where(a >= b, np.nan, exp(_truncated_logcdf(z, a, b)))

    def _logsf(self, z: Array, a: Array, b: Array) -> Array:
        return self._logcdf(-z, -b, -a)

    def _sf(self, z: Array, a: Array, b: Array) -> Array:
        return self._cdf(-z, -b, -a)


def _truncated_logpdf(z: Array, a: Array, b: Array, scale: Array) -> Array:
    z, a, b, scale = map(strong, (z, a, b, scale))
    density = _normal_logpdf(z, scale) - _log_probability(a, b)
    return where((z < a) | (z > b), -np.inf, density)


def _truncated_logcdf(z: Array, a: Array, b: Array) -> Array:
    z, a, b = map(strong, (z, a, b))
    z, whole = clip(z, a, b), _log_probability(a, b)
    below, above = _log_probability(a, z) - whole, _log_probability(z, b) - whole
    # The difference loses what is near 0, where the probability of the other side still has it.
    most = below > -0.7
    below = where(most, log1p(-exp(where(most, above, -1.0))), below)
    return where(z <= a, -np.inf, where(z >= b, 0.0, below))


def _log_probability(a: Array, b: Array) -> Array:
    """Log of the probability that a standard normal variable is between a and b.

    It is taken from whichever tails are exact.
    """
    left = _log_difference(log_ndtr_p.bind(b), log_ndtr_p.bind(a))
    right = _log_difference(log_ndtr_p.bind(-a), log_ndtr_p.bind(-b))
    astride = (a <= 0.0) & (b > 0.0)
    across = log1p(-where(astride, normal_cdf(a) + normal_cdf(-b), 0.0))
    return where(astride, across, where(b <= 0.0, left, right))


def _log_difference(large: Array, small: Array) -> Array:
    """`log(exp(large) - exp(small))`."""
    nothing = large <= small
    gap = where(nothing, -1.0, small - large)
    return where(nothing, -np.inf, large + template.log_complement(gap))


class Uniform(template.Continuous):
    """The uniform distribution from `loc` to `loc + scale`.

    Example:
        >>> minijax.scipy.stats.uniform.cdf(jnp.array([-1.0, 1.0, 3.0]), 0.0, 2.0)
        Array([0. , 0.5, 1. ], dtype=float32)
        >>> minijax.scipy.stats.uniform.logpdf(3.0)
        Array(-inf, dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.uniform.pdf(jnp.array([-1.0, 1.0, 3.0]), 0.0, 2.0)
        Array([0. , 0.5, 0. ], dtype=float32)
        >>> minijax.scipy.stats.uniform.ppf(0.5, loc=3.0)
        Array(3.5, dtype=float32, weak_type=True)
    """

    _functions = "cdf logpdf pdf ppf"
    # The ends are compared with as they are: what is standardised has been rounded.
    _shapes = "loc scale"
    _is_standardised = False

    def _logpdf(self, x: Array, loc: Array, scale: Array) -> Array:
        outside = (x < loc) | (x > loc + scale)
        return where(outside, -np.inf, -log(scale) + x * 0.0)

    def _cdf(self, x: Array, loc: Array, scale: Array) -> Array:
        z = (x - loc) / scale
        return where(z < 0.0, 0.0, where(z > 1.0, 1.0, z))

    def _ppf(self, q: Array, loc: Array, scale: Array) -> Array:
        return where((q < 0.0) | (q > 1.0), np.nan, q * scale + loc)


class VonMises(template.Continuous):
    """The von Mises distribution of angles with concentration `kappa`.

    Example:
        >>> minijax.scipy.stats.vonmises.logpdf(0.0, jnp.inf)
        Array(nan, dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.vonmises.pdf(0.0, jnp.inf)
        Array(nan, dtype=float32, weak_type=True)
    """

    _functions = "logpdf pdf"
    _shapes = "kappa"
    _is_standardised = False

    def _logpdf(self, x: Array, kappa: Array) -> Array:
        kappa = where(kappa < 0.0, np.nan, kappa)
        return kappa * (cos(x) - 1.0) - log(i0e(kappa) * (2.0 * math.pi))


class WrapCauchy(template.Continuous):
    """The Cauchy distribution wrapped around the circle, of angles from 0 to 2π.

    Example:
        >>> minijax.scipy.stats.wrapcauchy.logpdf(-1.0, 0.5)
        Array(-inf, dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.wrapcauchy.pdf(-1.0, 0.5)
        Array(0., dtype=float32, weak_type=True)
    """

    _functions = "logpdf pdf"
    _shapes = "c"
    _is_standardised = False

    def _logpdf(self, x: Array, c: Array) -> Array:
        outside = (x < 0.0) | (x > 2 * math.pi)
        distance = 1.0 + square(c) - 2.0 * c * cos(x)
        density = log1p(-square(c)) - log(distance) - math.log(2 * math.pi)
        return where((c > 0.0) & (c < 1.0), where(outside, -np.inf, density), np.nan)


beta = Beta("beta")
cauchy = Cauchy("cauchy")
chi2 = Chi2("chi2")
expon = Expon("expon")
gamma = Gamma("gamma")
gennorm = GenNorm("gennorm")
gumbel_l = GumbelL("gumbel_l")
gumbel_r = GumbelR("gumbel_r")
laplace = Laplace("laplace")
logistic = Logistic("logistic")
norm = Norm("norm")
pareto = Pareto("pareto")
t = T("t")
truncnorm = TruncNorm("truncnorm")
uniform = Uniform("uniform")
vonmises = VonMises("vonmises")
wrapcauchy = WrapCauchy("wrapcauchy")


class Bernoulli(template.Discrete):
    """The Bernoulli distribution: 1 with probability `p`, and 0 otherwise.

    Example:
        >>> minijax.scipy.stats.bernoulli.cdf(jnp.array([-1, 0, 1]), 0.25)
        Array([0.  , 0.75, 1.  ], dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.bernoulli.logpmf(jnp.arange(3), 0.5)
        Array([-0.6931472, -0.6931472,       -inf], dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.bernoulli.pmf(jnp.arange(3), 0.5)
        Array([0.5, 0.5, 0. ], dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.bernoulli.ppf(jnp.array([0.5, 0.9]), 0.25)
        Array([0., 1.], dtype=float32)
    """

    _functions = "cdf logpmf pmf ppf"
    _shapes = "p"
    _others: ClassVar[Mapping[str, str]] = {"cdf": "k p", "ppf": "q p"}

    def _logpmf(self, k: Array, p: Array) -> Array:
        mass = xlogy(k, p) + xlog1py(1.0 - k, -p)
        mass = where((k == 0.0) | (k == 1.0) | isnan(k), mass, -np.inf)
        return where((p >= 0.0) & (p <= 1.0), mass, np.nan)

    def _cdf(self, k: Array, p: Array) -> Array:
        inside = (p >= 0.0) & (p <= 1.0) & ~isnan(k)
        return where(inside, where(k < 0.0, 0.0, where(k < 1.0, 1.0 - p, 1.0)), np.nan)

    def _ppf(self, q: Array, p: Array) -> Array:
        inside = (p >= 0.0) & (p <= 1.0) & (q >= 0.0) & (q <= 1.0)
        return where(inside, where(q <= 1.0 - p, 0.0, elementwise.number_like(1.0, q)), np.nan)


class BetaBinom(template.Discrete):
    """The beta-binomial distribution: binomial, with a probability drawn from `beta(a, b)`.

    Example:
        >>> minijax.scipy.stats.betabinom.logpmf(3, 2, 1.0, 1.0)
        Array(-inf, dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.betabinom.pmf(3, 2, 1.0, 1.0)
        Array(0., dtype=float32, weak_type=True)
    """

    _functions = "logpmf pmf"
    _shapes = "n a b"

    def _logpmf(self, k: Array, n: Array, a: Array, b: Array) -> Array:
        outside = (k < 0.0) | (k > n)
        k = where(outside, 0.0, floor(k))
        mass = _log_choices(n, k) + betaln(k + a, n - k + b) - betaln(a, b)
        mass = where(outside, -np.inf, mass)
        return where((n >= 0.0) & (a > 0.0) & (b > 0.0), mass, np.nan)


class Binom(template.Discrete):
    """The binomial distribution of `n` trials with probability of success `p`.

    Example:
        >>> minijax.scipy.stats.binom.logpmf(3, 2, 0.5)
        Array(-inf, dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.binom.pmf(3, 2, 0.5)
        Array(0., dtype=float32, weak_type=True)
    """

    _functions = "logpmf pmf"
    _shapes = "n p"

    def _logpmf(self, k: Array, n: Array, p: Array) -> Array:
        outside = (k < 0.0) | (k > n)
        k = where(outside, 0.0, k)
        mass = _log_choices(n, k) + xlogy(k, p) + xlog1py(n - k, -p)
        return where(outside, -np.inf, mass)


def _log_choices(n: Array, k: Array) -> Array:
    """Log of the binomial coefficient."""
    return template.zero_where((k == 0.0) | (k == n), -betaln(n - k + 1.0, k + 1.0) - log(n + 1.0))


class Geom(template.Discrete):
    """The geometric distribution: the number of trials up to the first success.

    Example:
        >>> minijax.scipy.stats.geom.logpmf(0, 0.5)
        Array(-inf, dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.geom.pmf(jnp.arange(3), 0.5)
        Array([0.  , 0.5 , 0.25], dtype=float32, weak_type=True)
    """

    _functions = "logpmf pmf"
    _shapes = "p"

    def _logpmf(self, k: Array, p: Array) -> Array:
        return where(k <= 0.0, -np.inf, xlog1py(k - 1.0, -p) + log(p))


class NBinom(template.Discrete):
    """The negative binomial distribution: the number of failures before success `n`.

    Example:
        >>> minijax.scipy.stats.nbinom.logpmf(-1, 2, 0.5)
        Array(-inf, dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.nbinom.pmf(-1, 2, 0.5)
        Array(0., dtype=float32, weak_type=True)
    """

    _functions = "logpmf pmf"
    _shapes = "n p"

    def _logpmf(self, k: Array, n: Array, p: Array) -> Array:
        outside = k < 0.0
        k = where(outside, 0.0, k)
        choices = template.zero_where(k == 0.0, -betaln(k + 1.0, n) - log(k + n))
        return where(outside, -np.inf, choices + xlogy(n, p) + xlog1py(k, -p))


class Poisson(template.Discrete):
    """The Poisson distribution with mean `mu`.

    Example:
        >>> minijax.scipy.stats.poisson.cdf(-1, 2.0)
        Array(0., dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.poisson.entropy(0.0)
        Array(4.7683716e-07, dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.poisson.logpmf(-1, 2.0)
        Array(-inf, dtype=float32, weak_type=True)
        >>> minijax.scipy.stats.poisson.pmf(-1, 2.0)
        Array(0., dtype=float32, weak_type=True)
    """

    _functions = "cdf entropy logpmf pmf"
    _shapes = "mu"
    _others: ClassVar[Mapping[str, str]] = {"entropy": "mu loc"}

    def _logpmf(self, k: Array, mu: Array) -> Array:
        outside = (k < 0.0) | ((k != floor(k)) & ~isnan(k))
        k = where(outside, 0.0, k)
        return where(outside, -np.inf, xlogy(k, mu) - gammaln(k + 1.0) - mu)

    def _cdf(self, k: Array, mu: Array) -> Array:
        outside = k < 0.0
        return where(outside, 0.0, gammaincc(floor(where(outside, 0.0, k)) + 1.0, mu))

    def _entropy(self, mu: Array) -> Array:
        return poisson_entropy_p.bind(mu)


# The entropy H is a sum, or far off an asymptotic series: Evans and Boersma, SIAM Review 30
# (1988), 314.  H = ln √(2πe μ) + Σ cₖ μ⁻ᵏ for k = 1, 2, ...
_COEFFICIENTS = (-1 / 12, -1 / 24, -19 / 360, -9 / 80, -863 / 2520, -1375 / 1008)


def _far_from(mu: Array) -> float:
    """From where on the asymptotic series is as precise as the dtype."""
    return 30.0 if epsilon(mu) > 1e-8 else 150.0


def _expectation(mu: Array, value: Callable[[Array], Array]) -> Array:
    """The mean of `value(k)`, which grows slowly, for numbers `mu` that are not large."""

    def step(n: Array, state: elementwise.State) -> tuple[Array, elementwise.State]:
        mass, total = state
        k = n + 1.0
        mass = mass * mu / k
        part = mass * value(full_like(mu, 1.0) * k)
        changes = (k < mu + 2.0) | (abs(part) > abs(total) * (epsilon(mu) / 4))
        return changes, (mass, total + part)

    mass = exp(-mu)
    return elementwise.converge(step, (mass, mass * value(full_like(mu, 0.0))))[1]


def _split(mu: Array) -> tuple[Array, Array]:
    """Two numbers: one that is small enough to sum for, and one that is far."""
    limit = _far_from(mu)
    return min(max(mu, 0.0), limit), max(mu, limit)


def _entropy(mu: Array) -> Array:
    small, large = _split(mu)
    mean = _expectation(small, lambda k: special.lgamma(k + 1.0))
    logarithm = log(select(small == 0.0, full_like(mu, 1.0), small))
    near = small * (1.0 - logarithm) + mean
    inverse = 1.0 / large
    far = log(large) * 0.5 + (math.log(2 * math.pi) + 1) / 2
    far = far + inverse * elementwise.polynomial(inverse, *_COEFFICIENTS)
    result = select(mu < _far_from(mu), near, far)
    return select(mu >= 0.0, result, full_like(mu, np.nan))


def _entropy_slope(mu: Array) -> Array:
    # dH/dμ is the mean of ln(K + 1) - ln μ.
    small, large = _split(mu)
    near = _expectation(small, lambda k: log(k + 1.0)) - log(small)
    inverse = 1.0 / large
    weights = [-(k + 1) * c for k, c in enumerate(_COEFFICIENTS)]
    far = inverse * (inverse * elementwise.polynomial(inverse, *weights) + 0.5)
    return select(mu < _far_from(mu), near, far)


poisson_entropy_slope_p = Elementwise("poisson_entropy_slope", _entropy_slope, None)
poisson_entropy_p = Elementwise(
    "poisson_entropy", _entropy, lambda mu, y: poisson_entropy_slope_p.bind(mu)
)

bernoulli = Bernoulli("bernoulli")
betabinom = BetaBinom("betabinom")
binom = Binom("binom")
geom = Geom("geom")
nbinom = NBinom("nbinom")
poisson = Poisson("poisson")


class Dirichlet(template.Distribution):
    """The Dirichlet distribution of shares that sum to 1, with concentrations `alpha`."""

    _functions = "logpdf pdf"

    @staticmethod
    @one_program()
    def logpdf(x: ArrayLike, alpha: ArrayLike) -> Array:
        """Log of the probability density function.

        It is -inf where shares are negative or do not sum to 1.

        Shapes: x: T[n, *s], alpha: T[n] -> T[s]; the last of the n shares may be left out.
        Dtypes: real; integers and booleans become floats.
        Source: mirrors jax.scipy.stats.dirichlet.logpdf (0.10).

        Raises:
            ValueError: alpha is not one-dimensional, or x does not have n or n - 1 shares.

        Example:
            >>> minijax.scipy.stats.dirichlet.logpdf(jnp.array([0.5, 0.6]), jnp.ones(2))
            Array(-inf, dtype=float32)
        """
        shape, count = aval_of(x).shape, aval_of(alpha).shape
        problem = "alpha is not one-dimensional."
        fix = "minijax.vmap over the batch"
        check_that(len(count) == 1, "scipy.stats.dirichlet", problem, alpha=aval_of(alpha), fix=fix)
        if not shape or shape[0] not in (count[0], count[0] - 1):
            problem = "the shares do not fit alpha."
            got = {"x": aval_of(x), "alpha": aval_of(alpha)}
            expected = "as many shares, or one fewer, along the first dimension of x"
            error(ValueError, "scipy.stats.dirichlet", problem, got=got, expected=expected)
        name = "scipy.stats.dirichlet.logpdf"
        arrays = [*real_operands(name, x=x), *real_operands(name, alpha=alpha)]
        x, alpha = (creation.asarray(a, dtypes.result_type(*arrays)) for a in arrays)
        if shape[0] != count[0]:
            x = concatenate([x, 1.0 - reductions.sum(x, axis=0, keepdims=True)], 0)
        weights = shaping.reshape(alpha, (*count, *[1] * (len(shape) - 1)))
        constant = gammaln(reductions.sum(alpha)) - reductions.sum(gammaln(alpha))
        density = reductions.sum(xlogy(weights - 1.0, x), axis=0) + constant
        sums = abs(reductions.sum(x, axis=0) - 1.0)
        proper = reductions.all(x > 0.0, axis=0) & (sums < 1e-6)
        return where(proper, density, -np.inf)

    @staticmethod
    @one_program()
    def pdf(x: ArrayLike, alpha: ArrayLike) -> Array:
        """Probability density function.

        It is 0 where shares are negative or do not sum to 1.

        Shapes: x: T[n, *s], alpha: T[n] -> T[s]; the last of the n shares may be left out.
        Dtypes: real; integers and booleans become floats.
        Source: mirrors jax.scipy.stats.dirichlet.pdf (0.10).

        Raises:
            ValueError: alpha is not one-dimensional, or x does not have n or n - 1 shares.

        Example:
            >>> minijax.scipy.stats.dirichlet.pdf(jnp.array([0.5, 0.6]), jnp.ones(2))
            Array(0., dtype=float32)
        """
        return exp(dirichlet.logpdf(x, alpha))


class Multinomial(template.Distribution):
    """The multinomial distribution of the counts of `n` trials with probabilities `p`."""

    _functions = "logpmf pmf"

    @staticmethod
    @one_program()
    def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
        """Log of the probability mass function: -inf where counts do not sum to `n`.

        Shapes: x: I[..., k], n: I[...], p: T[..., k] -> T[...]; batches are broadcast.
        Dtypes: x and n of integers, p real.
        Source: mirrors jax.scipy.stats.multinomial.logpmf (0.10).

        Raises:
            ValueError: x or n is not of integers.

        Example:
            >>> minijax.scipy.stats.multinomial.logpmf(jnp.array([1, 1]), 3, jnp.array([0.5, 0.5]))
            Array(-inf, dtype=float32)
        """
        for name, value in (("x", x), ("n", n)):
            dtype = aval_of(value).dtype
            holds = dtype == np.bool_ or dtypes.issubdtype(dtype, np.integer)
            problem = f"{name} is not of integers."
            fix = f"{name}.astype(int)"
            check_that(
                holds, "scipy.stats.multinomial", problem, got={name: aval_of(value)}, fix=fix
            )
        fits = reductions.sum(x, axis=-1) == n
        operands = promotion.promote_all_inexact("scipy.stats.multinomial", x, p)
        counts, p = map(creation.asarray, operands)
        (trials,) = real_operands("scipy.stats.multinomial.logpmf", n=n)
        terms = xlogy(counts, p) - gammaln(counts + 1.0)
        return where(fits, gammaln(trials + 1.0) + reductions.sum(terms, axis=-1), -np.inf)

    @staticmethod
    @one_program()
    def pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
        """Probability mass function: 0 where counts do not sum to `n`.

        Shapes: x: I[..., k], n: I[...], p: T[..., k] -> T[...]; batches are broadcast.
        Dtypes: x and n of integers, p real.
        Source: mirrors jax.scipy.stats.multinomial.pmf (0.10).

        Raises:
            ValueError: x or n is not of integers.

        Example:
            >>> minijax.scipy.stats.multinomial.pmf(jnp.array([1, 1]), 3, jnp.array([0.5, 0.5]))
            Array(0., dtype=float32)
        """
        return exp(multinomial.logpmf(x, n, p))


class MultivariateNormal(template.Distribution):
    """The multivariate normal distribution with mean `mean` and covariance matrix `cov`."""

    _functions = "logpdf pdf"

    @staticmethod
    @one_program(static=("allow_singular",))
    def logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: None = None) -> Array:
        """Log of the probability density function: NaN where `cov` is not positive definite.

        Shapes: x: T[..., k], mean: T[..., k], cov: T[..., k, k] -> T[...]; batches are broadcast.
            With a scalar mean, the density of each element of x; then cov is a variance.
        Dtypes: real; integers and booleans become floats.
        Source: mirrors jax.scipy.stats.multivariate_normal.logpdf (0.10).

        Args:
            x: the points.
            mean: the mean.
            cov: the covariance matrix.
            allow_singular: not supported.

        Raises:
            NotImplementedError: allow_singular is given.
            ValueError: the shapes do not fit together.

        Example:
            >>> minijax.scipy.stats.multivariate_normal.logpdf(jnp.inf, 0.0, 1.0)
            Array(-inf, dtype=float32, weak_type=True)
        """
        if allow_singular is not None:
            problem = "covariances that are singular are not supported."
            got = {"allow_singular": allow_singular}
            fix = "leave allow_singular= away"
            error(NotImplementedError, "scipy.stats.multivariate_normal", problem, got=got, fix=fix)
        arrays = promotion.promote_dtypes("scipy.stats.multivariate_normal", x, mean, cov)
        floats = (promotion.inexact("scipy.stats.multivariate_normal", v) for v in arrays)
        x, mean, cov = map(creation.asarray, floats)
        if not mean.shape:
            return (square(x - mean) / cov + log(cov * (2 * math.pi))) * -0.5
        size = mean.shape[-1]
        if not cov.shape:
            distances = reductions.sum(square(x - mean) / cov, axis=-1)
            return (distances + log(cov * (2 * math.pi)) * size) * -0.5
        fits = len(cov.shape) >= 2 and cov.shape[-2:] == (size, size)
        problem = "the covariances do not fit the mean."
        expected = f"cov of shape (..., {size}, {size})"
        check_that(
            fits, "scipy.stats.multivariate_normal", problem, mean=mean, cov=cov, expected=expected
        )
        return _normal_logpdf_of_vectors(x - mean, cov, size)

    @staticmethod
    @one_program()
    def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array:
        """Probability density function: NaN where `cov` is not positive definite.

        Shapes: x: T[..., k], mean: T[..., k], cov: T[..., k, k] -> T[...]; batches are broadcast.
        Dtypes: real; integers and booleans become floats.
        Source: mirrors jax.scipy.stats.multivariate_normal.pdf (0.10).

        Raises:
            ValueError: the shapes do not fit together.

        Example:
            >>> minijax.scipy.stats.multivariate_normal.pdf(jnp.inf, 0.0, 1.0)
            Array(0., dtype=float32, weak_type=True)
        """
        return exp(multivariate_normal.logpdf(x, mean, cov))


def _normal_logpdf_of_vectors(offset: Array, cov: Array, size: int) -> Array:
    """By the triangular factor of the covariances, which takes offsets to independent ones."""
    factor = linalg.cholesky(cov)
    batch = np.broadcast_shapes(offset.shape[:-1], cov.shape[:-2])
    columns = shaping.expand_dims(shaping.broadcast_to(offset, (*batch, size)), -1)
    factors = shaping.broadcast_to(factor, (*batch, size, size))
    whitened = linalg.triangular_solve(factors, columns, left_side=True, lower=True)
    distance = reductions.sum(square(whitened), axis=(-2, -1))
    diagonal = matrices.diagonal(factor, axis1=-2, axis2=-1)
    half_log = reductions.sum(log(diagonal), axis=-1) + size / 2 * math.log(2 * math.pi)
    return distance * -0.5 - half_log


dirichlet = Dirichlet("dirichlet")
multinomial = Multinomial("multinomial")
multivariate_normal = MultivariateNormal("multivariate_normal")
