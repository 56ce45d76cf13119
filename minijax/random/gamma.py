"""The gamma distribution and those that are made of its samples, with the figures of `jax.random`.

Input: a key, parameters, a shape, a dtype.  Output: samples.  Marsaglia and Tsang, "A simple
method for generating gamma variables" (ACM TOMS 26, 2000): the cube of a shifted normal variable
is accepted at the first trial mostly.  Each sample has a key of its own, so that the samples of an
array are tried together without depending on each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import Shape, ShapedArray, aval_of, canonicalize_shape, shaped_array
from minijax.core.errors import error
from minijax.core.meshes import PartitionSpec
from minijax.core.operators import BatchDims
from minijax.core.primitive import Batched, Dual, Primitive, Tangents, Zero
from minijax.interpreters import key_reuse, staging
from minijax.interpreters.structural import broadcast_in_dim, moveaxis
from minijax.lax import binary, creation, incomplete_gamma, reduction
from minijax.lax import shape as lax_shape
from minijax.lax.binary import select
from minijax.lax.control_flow import scanning
from minijax.lax.control_flow.looping import while_loop
from minijax.lax.creation import full_like
from minijax.lax.unary import exp, log, sqrt, stop_gradient
from minijax.lowering import module
from minijax.numpy import elementary
from minijax.numpy.promotion import broadcast_to, check_array, one_program
from minijax.random import continuous
from minijax.random import keys as random_keys
from minijax.random.continuous import converted, fitted, scalar, split_keys
from minijax.random.discrete import rademacher_samples
from minijax.random.generators import THREEFRY
from minijax.random.keys import FLOAT, distribution, sampler, unchecked
from minijax.runtime.annotations import ArrayLike, DTypeLike, ShapeLike, ShardingLike
from minijax.runtime.array import Array
from minijax.sharding import rules


class RandomGamma(Primitive):
    """Samples of the gamma distribution of scale 1, or their logarithms.

    Shapes: keys: key[s], a: T[s, t] -> T[s, t]; a key is split for the samples of each s.
    With its key a sample is a smooth function of `a`, whose slope `random_gamma_grad` is.
    """

    name = "random_gamma"

    def abstract_eval(self, keys: ShapedArray, a: ShapedArray, *, log_space: bool) -> ShapedArray:
        if not dtypes.issubdtype(a.dtype, np.floating) or a.shape[: keys.ndim] != keys.shape:
            problem = "needs keys, and floats whose shape begins with theirs."
            error(TypeError, "random_gamma", problem, got={"keys": keys, "a": a})
        return a.strip_weak_type()

    def shard(self, avals: Sequence[Any], outs: Sequence[Any], *, log_space: bool) -> PartitionSpec:
        return rules.spec_of(avals[1])

    def lower(self, ctx: Any, keys: Any, a: Any, *, log_space: bool) -> Any:
        def sample(keys: Any, a: Any) -> list[Any]:
            return [_samples(keys, a, log_space)]

        # The loop is written for types that do not speak of meshes; what it computes fits on any.
        avals = [shaped_array(aval.shape, aval.dtype) for aval in ctx.avals_in]
        jaxpr, consts = staging.stage(sample, avals)
        return module.lower_jaxpr(ctx, jaxpr, consts, [keys, a], location=ctx.location)[0]

    def jvp(self, primals: Sequence[Array], tangents: Tangents, *, log_space: bool) -> Dual:
        keys, a = primals
        out = self.bind(keys, a, log_space=log_space)
        if type(tangents[1]) is Zero:
            return out, Zero.like(out)
        if not log_space:
            return out, tangents[1] * incomplete_gamma.random_gamma_grad(a, out)
        sample = exp(out)
        # The slope of a logarithm at a sample that underflows is that at the least positive float.
        tiny = full_like(sample, dtypes.finfo(aval_of(a).dtype).tiny)
        sample = select(binary.eq(sample, full_like(sample, 0)), tiny, sample)
        return out, tangents[1] * (incomplete_gamma.random_gamma_grad(a, sample) / sample)

    def batch(
        self, size: int, args: Sequence[Array], dims: BatchDims, *, log_space: bool
    ) -> Batched:
        keys, a = (
            _repeated(x, size) if d is None else moveaxis(x, d, 0)
            for x, d in zip(args, dims, strict=True)
        )
        return self.bind(keys, a, log_space=log_space), 0


dtypes.knows_extended.set(True, RandomGamma)
key_reuse.consumes_keys.set((0,), RandomGamma)


random_gamma_p = RandomGamma()


def _repeated(x: Array, size: int) -> Array:
    aval = aval_of(x)
    return broadcast_in_dim(x, (size, *aval.shape), range(1, aval.ndim + 1))


class _Trial(NamedTuple):
    """Where the search for samples stands.

    Attributes:
        key: for the next candidates.
        retry: the key to go on with where the cube was not positive.
        retrying: whether it was not.
        pending: what has not been accepted yet.
        cube: of the shifted normal variable, where it has been accepted.
    """

    key: Array
    retry: Array
    retrying: Array
    pending: Array
    cube: Array


def _samples(keys: Array, a: Array, log_space: bool) -> Array:
    """Samples by rejection, at the places of an array."""
    aval = aval_of(a)
    lead = aval_of(keys).ndim
    count = math.prod(aval.shape[lead:])
    keys = lax_shape.reshape(random_keys.new_keys(keys, (count,)), (aval.size,))
    a = lax_shape.reshape(a, (aval.size,))
    if aval_of(keys).dtype.impl == THREEFRY:
        out = _samples_of_keys(keys, a, log_space)
    else:
        # Keys that are used together would share one stream.
        out = scanning.map(lambda x: _samples_of_keys(x[0], x[1], log_space), (keys, a))
    return lax_shape.reshape(out, aval.shape)


def _samples_of_keys(keys: Array, a: Array, log_space: bool) -> Array:
    """Samples of arrays of keys and parameters of one shape."""
    # Samples of a parameter below 1 are made from those of the parameter above.
    large = a >= 1
    d = select(large, a, a + 1) - scalar(1 / 3, a.dtype)
    first, second = split_keys(keys, 2)
    cube = _accepted_cubes(first, d)
    if log_space:
        logs = -continuous.exponential_samples(second, (), a.dtype)
        # A logarithm of 0 stays so, whatever it is multiplied with.
        boost = select(large | (logs == 0), full_like(a, 0), logs * (1 / a))
        return log(d) + log(cube) + boost
    u = 1 - continuous.uniform_samples(second, (), a.dtype)
    return d * cube * select(large, full_like(a, 1), u ** (1 / a))


def _accepted_cubes(keys: Array, d: Array) -> Array:
    """Cubes v = (1 + c·x)³, such that d·v is a sample of the gamma distribution of d + 1/3.

    A candidate takes three steps: a normal variable x, drawn anew until v is positive, a uniform
    one, and a test.  All samples are at one of these steps of their own in each turn of one loop.
    """
    c = scalar(1 / 3, d.dtype) / sqrt(d)

    def unfinished(trial: _Trial) -> Array:
        return reduction.reduce_or(trial.pending, tuple(range(d.ndim)))

    def step(trial: _Trial) -> _Trial:
        next_key, for_x, for_u = split_keys(trial.key, 3)
        retry, subkey = split_keys(select(trial.retrying, trial.retry, for_x), 2)
        x = continuous.normal_samples(subkey, (), d.dtype)
        v = 1 + x * c
        retrying = v <= 0
        cube = v * v * v
        u = continuous.uniform_samples(for_u, (), d.dtype)
        refused = retrying | _is_refused(x * x, cube, u, d)
        return _Trial(
            select(retrying, trial.key, next_key),
            retry,
            retrying,
            trial.pending & refused,
            select(trial.pending & ~refused, cube, trial.cube),
        )

    none = creation.full(d.shape, False, np.dtype(bool))
    start = _Trial(keys, keys, none, ~none, full_like(d, 1))
    return while_loop(unfinished, step, start).cube


def _is_refused(square: Array, cube: Array, u: Array, d: Array) -> Array:
    """Whether a candidate fails: a quick test lets most pass, the other one is exact."""
    quick = 1 - 0.0331 * (square * square)
    return (u >= quick) & (log(u) >= square * 0.5 + d * (1 - cube + log(cube)))


@one_program(static=("shape", "dtype", "log_space"))
def gamma_samples(
    key: ArrayLike, a: ArrayLike, shape: ShapeLike | None, dtype: DTypeLike | None, log_space: bool
) -> Array:
    """Samples of the gamma distribution or their logarithms, for checked arguments."""
    a = broadcast_to(converted(a, dtype), canonicalize_shape(shape))
    return random_gamma_p.bind(key, a, log_space=log_space)


@distribution(FLOAT, "a")
def gamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Samples of the gamma distribution of shape parameter `a` and scale 1.

    Their density is x**(a - 1) * exp(-x) / Gamma(a) for x > 0.  Multiply by a scale, or divide by
    a rate, for other members of the family.

    Shapes:     key[], float[s] -> float[shape], by default that of `a`.
    Dtypes:     floating; parameters are converted.
    Derivative: by `a`, that of the sample with its random numbers held fixed (`random_gamma_grad`).
    Source:     mirrors jax.random.gamma (0.10); Marsaglia and Tsang, "A simple method for
        generating gamma variables" (2000).

    Raises:
        ValueError: the dtype is not floating, or `a` does not fit the shape.

    Example:
        >>> samples = minijax.random.gamma(minijax.random.key(0), 4.0, (1000,))
        >>> bool(abs(samples.mean() - 4.0) < 0.2)
        True
    """
    return gamma_samples(key, a, shape, dtype, False)


@distribution(FLOAT, "a")
def loggamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Logarithms of samples of the gamma distribution, exact where samples themselves underflow.

    For a small `a` nearly all samples lie below the least positive float; their logarithms do not.

    Shapes:     key[], float[s] -> float[shape], by default that of `a`.
    Dtypes:     floating; parameters are converted.
    Derivative: as that of `gamma`, divided by the sample.

    Raises:
        ValueError: the dtype is not floating, or `a` does not fit the shape.

    Example:
        >>> key = minijax.random.key(0)
        >>> bool(minijax.random.gamma(key, 1e-3) == 0)
        True
        >>> bool(np.isfinite(minijax.random.loggamma(key, 1e-3)))
        True
    """
    return gamma_samples(key, a, shape, dtype, True)


@distribution(FLOAT, "a b", same_dtype=True)
def beta(
    key: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Samples of the beta distribution on [0, 1], with density x**(a - 1) * (1 - x)**(b - 1) / B.

    A sample is the share of one gamma variable in the sum of two.

    Shapes:     key[], float[s], float[s] -> float[shape], by default that of the parameters.
    Dtypes:     floating.
    Derivative: by both parameters, through `loggamma`.

    Raises:
        TypePromotionError: the dtype cannot hold a parameter.
        ValueError: the dtype is not floating, or the parameters do not fit the shape.

    Example:
        >>> samples = minijax.random.beta(minijax.random.key(0), 2.0, 6.0, (1000,))
        >>> bool(abs(samples.mean() - 0.25) < 0.02)
        True
    """
    keys = split_keys(key)
    logs = [gamma_samples(k, x, shape, dtype, True) for k, x in zip(keys, (a, b), strict=True)]
    largest = binary.max(*logs)
    first, second = (exp(x - largest) for x in logs)
    return first / (first + second)


@distribution(FLOAT, "df", same_dtype=True)
def chisquare(
    key: ArrayLike,
    df: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Samples of the chi-square distribution: sums of the squares of `df` standard normal numbers.

    Shapes:     key[], float[s] -> float[shape], by default that of `df`.
    Dtypes:     floating.
    Derivative: by `df`, through `loggamma`.

    Raises:
        TypePromotionError: the dtype cannot hold `df`.
        ValueError: the dtype is not floating, or `df` does not fit the shape.

    Example:
        >>> samples = minijax.random.chisquare(minijax.random.key(0), 3.0, (1000,))
        >>> bool(abs(samples.mean() - 3.0) < 0.3)
        True
    """
    return exp(gamma_samples(key, converted(df, dtype) / 2, shape, dtype, True)) * 2


chisquare_samples = unchecked(chisquare)


@distribution(FLOAT, "dfnum dfden", same_dtype=True)
def f(
    key: ArrayLike,
    dfnum: ArrayLike,
    dfden: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Samples of the F distribution: the ratio of two chi-square means.

    Shapes:     key[], float[s], float[s] -> float[shape], by default that of the parameters.
    Dtypes:     floating.
    Derivative: by both parameters, through `loggamma`.

    Raises:
        TypePromotionError: the dtype cannot hold a parameter.
        ValueError: the dtype is not floating, or the parameters do not fit the shape.

    Example:
        >>> samples = minijax.random.f(minijax.random.key(0), 4.0, 12.0, (2000,))
        >>> bool(abs(samples.mean() - 1.2) < 0.1)
        True
    """
    # The second key makes the numerator.
    denominator, numerator = (
        chisquare_samples(k, df, shape, dtype) / fitted(df, shape, dtype)
        for k, df in zip(split_keys(key), (dfden, dfnum), strict=True)
    )
    return numerator / denominator


@distribution(FLOAT, "df", same_dtype=True)
def t(
    key: ArrayLike,
    df: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Samples of Student's t distribution: a normal number over the root of a chi-square mean.

    Shapes:     key[], float[s] -> float[shape], by default that of `df`.
    Dtypes:     floating.
    Derivative: by `df`, through `gamma`.
    Source:     mirrors jax.random.t (0.10); Student, "The probable error of a mean" (1908).

    Raises:
        TypePromotionError: the dtype cannot hold `df`.
        ValueError: the dtype is not floating, or `df` does not fit the shape.

    Example:
        >>> samples = minijax.random.t(minijax.random.key(0), 8.0, (1000,))
        >>> bool(abs(samples.mean()) < 0.1)
        True
    """
    first, second = split_keys(key)
    normal = continuous.normal_samples(first, shape or (), dtype)
    half = fitted(df, shape, dtype) / 2
    return normal * sqrt(half / gamma_samples(second, half, shape, dtype, False))


@sampler("dirichlet")
def dirichlet(
    key: ArrayLike,
    alpha: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Samples of the Dirichlet distribution: random probabilities of k outcomes, which sum to 1.

    Shapes:     key[], float[s, k] -> float[shape, k], where `shape` is s by default.
    Dtypes:     floating; parameters are converted.
    Derivative: by `alpha`, through `loggamma`.

    Args:
        key: a random key.
        alpha: the parameters, along the last axis.
        shape: of the samples, without their last dimension.
        dtype: of the samples.
        out_sharding: how the samples are split over a mesh.

    Raises:
        ValueError: the dtype is not floating, or `alpha` is a scalar or does not fit the shape.

    Example:
        >>> p = minijax.random.dirichlet(minijax.random.key(0), jnp.ones(4), (3,))
        >>> p.shape, [round(float(x), 5) for x in p.sum(1)]
        ((3, 4), [1.0, 1.0, 1.0])
    """
    wanted = random_keys.check_dtype("dirichlet", dtype, FLOAT)
    alpha = check_array("dirichlet", alpha)
    aval = aval_of(alpha)
    if not aval.ndim:
        problem = "the parameters need an axis of outcomes."
        error(ValueError, "random.dirichlet", problem, got={"alpha": aval})
    batch = np.broadcast_to(np.zeros((), bool), aval.shape[:-1])
    dims = random_keys.check_shape("dirichlet", shape, batch)
    return _dirichlet(key, alpha, (*dims, aval.shape[-1]), wanted)


@one_program(static=("dims", "dtype"))
def _dirichlet(key: ArrayLike, alpha: ArrayLike, dims: Shape, dtype: np.dtype[Any]) -> Array:
    logs = gamma_samples(key, alpha, dims, dtype, True)
    last = len(dims) - 1

    def spread(x: Array) -> Array:
        return lax_shape.broadcast_in_dim(x, dims, range(last))

    largest = stop_gradient(reduction.reduce_max(logs, (last,)))
    shares = exp(logs - spread(largest))
    return shares / spread(reduction.reduce_sum(shares, (last,)))


@distribution(FLOAT, "p")
def generalized_normal(
    key: ArrayLike,
    p: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Samples of the generalized normal distribution, of density proportional to exp(-|x|**p).

    It is a normal distribution for p = 2, and Laplace's for p = 1.

    Shapes:     key[], float[s] -> float[shape].
    Dtypes:     floating.
    Derivative: by `p`, through `gamma`.

    Raises:
        ValueError: the dtype is not floating, or `p` does not fit the shape.

    Example:
        >>> samples = minijax.random.generalized_normal(minijax.random.key(0), 1.0, (1000,))
        >>> bool(abs(abs(samples).mean() - 1.0) < 0.1)
        True
    """
    first, second = split_keys(key)
    inverse = converted(elementary.divide(1.0, p), dtype)
    sizes = gamma_samples(first, inverse, shape, dtype, False) ** inverse
    return rademacher_samples(second, shape, dtype) * sizes


generalized_normal_samples = unchecked(generalized_normal)


@sampler("ball")
def ball(
    key: ArrayLike,
    d: int,
    p: float = 2,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Uniform samples from the unit ball of the p-norm in `d` dimensions.

    Shapes:     key[], int, float[] -> float[shape, d].
    Dtypes:     floating.
    Derivative: by `p`, through `gamma`.
    Source:     mirrors jax.random.ball (0.10); Barthe, Guédon, Mendelson and Naor, "A probabilistic
        approach to the geometry of the ℓₚⁿ-ball" (2005).

    Raises:
        TypeError: `d` is not an integer, or is negative.
        ValueError: the dtype is not floating.

    Example:
        >>> points = minijax.random.ball(minijax.random.key(0), 3, shape=(1000,))
        >>> points.shape, bool(((points**2).sum(1) <= 1.0).all())
        ((1000, 3), True)
    """
    wanted = random_keys.check_dtype("ball", dtype, FLOAT)
    dims = canonicalize_shape(shape, "random.ball shape")
    (size,) = canonicalize_shape((d,), "random.ball d")
    return _ball(key, p, dims, size, wanted)


@one_program(static=("dims", "size", "dtype"))
def _ball(key: ArrayLike, p: ArrayLike, dims: Shape, size: int, dtype: np.dtype[Any]) -> Array:
    first, second = split_keys(key)
    points = generalized_normal_samples(first, p, (*dims, size), dtype)
    total = reduction.reduce_sum(abs(points) ** converted(p, dtype), (len(dims),))
    total = total + continuous.exponential_samples(second, dims, dtype)
    norms = total ** converted(elementary.divide(1.0, p), dtype)
    return points / lax_shape.broadcast_in_dim(norms, (*dims, size), range(len(dims)))


@distribution(FLOAT)
def double_sided_maxwell(
    key: ArrayLike,
    loc: ArrayLike,
    scale: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
) -> Array:
    """Samples of the Maxwell distribution with a random sign, scaled and moved.

    Shapes: key[], float[s], float[s] -> float[*shape, *s], where `shape` is s by default.

    Raises:
        ValueError: the dtype is not floating, or the parameters do not fit each other.

    Example:
        >>> x = jax.random.double_sided_maxwell(jax.random.key(0), 5.0, 2.0, (100_000,))
        >>> x.mean().round(1), ((x - 5) ** 2).mean().round(0)
        (Array(5., dtype=float32), Array(12., dtype=float32))
    """
    each = random_keys.check_shape("double_sided_maxwell", None, loc, scale)
    dims = (canonicalize_shape(shape) or each) + each
    first, second = split_keys(key)
    norms = continuous.maxwell_samples(first, dims, dtype)
    return rademacher_samples(second, dims, dtype) * norms * scale + loc
