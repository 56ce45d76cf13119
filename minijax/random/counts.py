"""Numbers of events: the Poisson, binomial and multinomial distributions, as in `jax.random`.

Input: a key, parameters, a shape, a dtype.  Output: samples.  Where few events are expected, they
are counted one by one; elsewhere samples are found by rejection from a shape that covers the
distribution (Hörmann, "The transformed rejection method for generating Poisson random variables",
1993, and "The generation of binomial random variates", 1993).  All samples of an array are tried
together, as often as the last of them needs; the figures follow JAX's in this as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import Shape, aval_of, canonicalize_shape
from minijax.core.errors import error
from minijax.lax import reduction, window_reduction
from minijax.lax import shape as lax_shape
from minijax.lax.binary import clamp, select
from minijax.lax.binary import max as maximum
from minijax.lax.binary import min as minimum
from minijax.lax.control_flow.looping import while_loop
from minijax.lax.control_flow.scanning import scan
from minijax.lax.creation import convert_element_type, full_like
from minijax.lax.special import lgamma
from minijax.lax.unary import ceil, floor, log, log1p, sqrt
from minijax.numpy import shaping
from minijax.numpy.creation import asarray, dtype_argument
from minijax.numpy.logic import isnan
from minijax.numpy.promotion import broadcast_to, check_array, one_program
from minijax.random import keys as random_keys
from minijax.random.continuous import scalar, split_keys, uniform_samples
from minijax.random.generators import THREEFRY
from minijax.random.keys import FLOAT, INTEGER, distribution, sampler, unchecked
from minijax.runtime.annotations import ArrayLike, DTypeLike, ShapeLike, ShardingLike
from minijax.runtime.array import Array

_BOOL = np.dtype(bool)
_FLOAT32 = np.dtype(np.float32)

_State = tuple[Array, Array, Array]
"""What a loop carries."""


def _uniform(key: Array, like: Array) -> Array:
    """Uniform samples in place of an array."""
    return uniform_samples(key, like.shape, like.dtype)


def _any(flags: Array) -> Array:
    return reduction.reduce_or(flags, tuple(range(flags.ndim)))


class _Candidate(NamedTuple):
    """What is tried for each sample: a value, and how it compares with the distribution.

    Attributes:
        value: the candidate.
        sure: whether it is accepted without further ado.
        impossible: whether it is not, whatever the exact test says.
        log_height: of the point under the covering shape.
        log_density: of the distribution at the value, up to the same constant.
    """

    value: Array
    sure: Array
    impossible: Array
    log_height: Array
    log_density: Array


def _rejected_until_accepted(
    key: Array, like: Array, candidate: Callable[[Array, Array], _Candidate]
) -> Array:
    """Candidates `candidate(u, v)` of two uniform numbers, until each place has had a good one.

    A place that has one takes later ones too, as long as others have none.
    """

    def unfinished(state: _State) -> Array:
        return _any(~state[1])

    def step(state: _State) -> _State:
        chosen, accepted, key = state
        key, first, second = split_keys(key, 3)
        found = candidate(_uniform(first, like) - 0.5, _uniform(second, like))
        exact = found.log_height <= found.log_density
        good = found.sure | ~found.impossible & exact
        return select(good, found.value, chosen), accepted | good, key

    nowhere = full_like(like, False, _BOOL)
    return while_loop(unfinished, step, (full_like(like, -1), nowhere, key))[0]


@distribution(INTEGER, "lam")
def poisson(
    key: ArrayLike,
    lam: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Samples of the Poisson distribution with mean `lam`.

    Shapes: key[], float[s] -> int[shape], by default that of `lam`.
    Dtypes: integers; the computation is in float32.  What does not fit is cut to the dtype's range;
        -1 stands where `lam` is negative or NaN.
    Source: mirrors jax.random.poisson (0.10); Knuth, "The art of computer programming" 2 (1969)
        below 10, elsewhere Hörmann, "The transformed rejection method for generating Poisson
        random variables" (1993).

    Raises:
        NotImplementedError: the key is of another generator than threefry2x32.
        ValueError: the dtype is not an integer dtype, or `lam` does not fit the shape.

    Example:
        >>> samples = minijax.random.poisson(minijax.random.key(0), 3.0, (1000,))
        >>> bool(abs(samples.mean() - 3.0) < 0.2), str(samples.dtype)
        (True, 'int32')
    """
    generator = aval_of(key).dtype.impl
    if generator != THREEFRY:
        problem = "is there for one generator only."
        got = f"a key of {generator.name}"
        expected = f"a key of {THREEFRY.name}"
        error(NotImplementedError, "random.poisson", problem, got=got, expected=expected)
    rates = convert_element_type(broadcast_to(lam, canonicalize_shape(shape)), _FLOAT32)
    few = isnan(rates) | (rates < 10)
    # The key serves both methods, of which each place takes one.
    counted = _counted_by_products(
        random_keys.random_clone_p.bind(key), select(few, rates, full_like(rates, 0)), dtype
    )
    # A parameter that no candidate of the other method has to fit is accepted at once.
    rejected = _poisson_by_rejection(cast(Array, key), select(few, full_like(rates, 1e5), rates))
    out = select(few, counted, convert_element_type(rejected, cast(DTypeLike, dtype)))
    return select(rates == 0, full_like(out, 0), out)


def _counted_by_products(key: Array, lam: Array, dtype: DTypeLike | None) -> Array:
    """Knuth's method: so many uniform numbers as have a product above exp(-lam)."""

    def unfinished(state: _State) -> Array:
        return _any(state[2] > -lam)

    def step(state: _State) -> _State:
        count, key, log_product = state
        key, subkey = split_keys(key, 2)
        count = select(log_product > -lam, count + 1, count)
        return count, key, log_product + log(_uniform(subkey, lam))

    none = full_like(lam, 0, dtype)
    return while_loop(unfinished, step, (none, key, full_like(lam, 0)))[0] - 1


def _poisson_by_rejection(key: Array, lam: Array) -> Array:
    """Hörmann's algorithm PTRS, for at least 10 events expected; names are the article's."""
    log_lam = log(lam)
    b = 0.931 + 2.53 * sqrt(lam)
    a = -0.059 + 0.02483 * b
    inv_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)

    def candidate(u: Array, v: Array) -> _Candidate:
        us = 0.5 - abs(u)
        k = floor((2 * a / us + b) * u + lam + 0.43)
        return _Candidate(
            value=k,
            sure=(us >= 0.07) & (v <= v_r),
            impossible=(k < 0) | (us < 0.013) & (v > us),
            log_height=log(v * inv_alpha / (a / (us * us) + b)),
            log_density=-lam + k * log_lam - lgamma(k + 1),
        )

    return _rejected_until_accepted(key, lam, candidate)


@distribution(FLOAT, "n p")
def binomial(
    key: ArrayLike,
    n: ArrayLike,
    p: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Samples of the binomial distribution: successes in `n` trials of probability `p` each.

    Shapes: key[], float[s], float[s] -> float[shape], by default that of the parameters.
    Dtypes: floating; the computation is in the dtype of the parameters.  NaN stands where `n` is
        negative, or `p` lies outside [0, 1], or one of them is NaN.
    Source: mirrors jax.random.binomial (0.10); the sum of geometric variables where at most 10
        successes are expected, elsewhere Hörmann, "The generation of binomial random variates"
        (1993).

    Raises:
        ValueError: the dtype is not floating, or the parameters do not fit the shape.

    Example:
        >>> samples = minijax.random.binomial(minijax.random.key(0), 10, 0.3, (1000,))
        >>> bool(abs(samples.mean() - 3.0) < 0.2), bool(samples.max() <= 10)
        (True, True)
    """
    n, p = (broadcast_to(x, canonicalize_shape(shape)) for x in _in_common_float(n, p))
    rare = p < 0.5
    # Of what is likely, the failures are counted.
    q = select(rare, p, 1 - p)
    no_count = isnan(n) | (n < 0)
    no_probability = isnan(q) | (q < 0)
    endless = abs(n) == np.inf
    q = select(no_probability, full_like(q, 0.01), q)
    expected = n * q
    # Endlessly many trials that cannot succeed would be waited for, and tried, for ever.
    unknown = no_count | isnan(expected)
    few = unknown | (expected <= 10)
    whole = floor(n)
    # The key serves both methods, of which each place takes one.
    same_key = random_keys.random_clone_p.bind(key)
    counted = _counted_by_waiting(same_key, select(few & ~unknown, whole, full_like(n, 0)), q)
    rejected = _binomial_by_rejection(
        cast(Array, key), select(few, full_like(n, 1e4), whole), select(few, full_like(q, 0.5), q)
    )
    wanted = cast(DTypeLike, dtype)
    successes = select(
        few, convert_element_type(counted, wanted), convert_element_type(rejected, wanted)
    )
    wrong = no_probability | no_count
    successes = select(wrong, full_like(successes, np.nan), successes)
    successes = select(endless & ~wrong, full_like(successes, np.inf), successes)
    failures = convert_element_type(whole, wanted) - successes
    return select(rare | wrong | endless, successes, failures)


binomial_samples = unchecked(binomial)


def _in_common_float(*params: ArrayLike) -> list[Array]:
    """Parameters in one float dtype that holds all of them."""
    common = dtypes.to_inexact_dtype(dtypes.result_type(*params))
    return [convert_element_type(x, common) for x in params]


def _counted_by_waiting(key: Array, n: Array, p: Array) -> Array:
    """The successes among n trials: so many waiting times for the next one fit into them."""
    log_failure = log1p(-p)

    def unfinished(state: _State) -> Array:
        return _any(state[1] <= n)

    def step(state: _State) -> _State:
        count, trials, key = state
        subkey, key = split_keys(key, 2)
        count = select(trials <= n, count + 1, count)
        return count, trials + ceil(log(_uniform(subkey, n)) / log_failure), key

    return while_loop(unfinished, step, (full_like(n, 0), full_like(n, 0), key))[0] - 1


def _binomial_by_rejection(key: Array, n: Array, p: Array) -> Array:
    """Hörmann's algorithm BTRS, for at least 10 successes expected; names are the article's."""
    deviation = sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    v_r = 0.92 - 4.2 / b
    r = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * deviation
    m = floor((n + 1) * p)

    def candidate(u: Array, v: Array) -> _Candidate:
        us = 0.5 - abs(u)
        k = floor((2 * a / us + b) * u + c)
        return _Candidate(
            value=k,
            sure=(us >= 0.07) & (v <= v_r),
            impossible=(k < 0) | (k > n),
            log_height=log(v * alpha / (a / (us * us) + b)),
            log_density=_log_of_binomial(n, m, r, k),
        )

    return _rejected_until_accepted(key, n, candidate)


def _log_of_binomial(n: Array, m: Array, r: Array, k: Array) -> Array:
    """The logarithm of the probability of k, less that of the mode m: Stirling's formula."""
    spare, rest = n - m + 1, n - k + 1
    out = (m + 0.5) * log((m + 1) / (r * spare)) + (n + 1) * log(spare / rest)
    out = out + (k + 0.5) * log(r * rest / (k + 1)) + _stirling_tail(m) + _stirling_tail(n - m)
    return out - _stirling_tail(k) - _stirling_tail(n - k)


_TAILS = (
    0.0810614667953272,
    0.0413406959554092,
    0.0276779256849983,
    0.02079067210376509,
    0.0166446911898211,
    0.0138761288230707,
    0.0118967099458917,
    0.010411265261972,
    0.00925546218271273,
    0.00833056343336287,
)
"""What Stirling's formula lacks of log k!, for k up to 9, as the article has it."""


def _stirling_tail(k: Array) -> Array:
    """What Stirling's formula lacks of log k!: from a table, or the first terms of its series."""
    small = k <= 9
    k = clamp(0.0, k, 9.0)
    after = k + 1
    square = after * after
    series = 1 / 12 - (1 / 360 - 1 / 1260 / square) / square
    place = convert_element_type(floor(k), np.dtype(np.int32))
    known = asarray(np.array(_TAILS, k.dtype)).at[place].get(mode="promise_in_bounds")
    return select(small, known, series / after)


@sampler("multinomial")
def multinomial(
    key: ArrayLike,
    n: ArrayLike,
    p: ArrayLike,
    *,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    unroll: int | bool = 1,
) -> Array:
    """Samples of the multinomial distribution: how many of `n` trials end in each of k outcomes.

    The outcomes are drawn one after the other, each as a binomial number of the trials that are
    left.  Probabilities that do not sum to 1 are divided by their sum.

    Shapes: key[], float[s], float[s, k] -> float[shape], by default the parameters' shape.
    Dtypes: any numeric; the computation is in the dtype of the parameters.

    Args:
        key: a random key.
        n: the number of trials.
        p: the probabilities of the outcomes, along the last axis.
        shape: of the samples; its last dimension is that of the outcomes.
        dtype: of the samples.
        unroll: how many outcomes a step of the loop over them draws.

    Raises:
        ValueError: `p` is a scalar, or the parameters do not fit the shape.

    Example:
        >>> p = jnp.array([0.25, 0.25, 0.5])
        >>> counts = minijax.random.multinomial(minijax.random.key(0), 100, p)
        >>> counts.shape, float(counts.sum())
        ((3,), 100.0)
    """
    n, p = check_array("multinomial", n), check_array("multinomial", p)
    if not aval_of(p).ndim:
        problem = "the probabilities need an axis of outcomes."
        error(ValueError, "random.multinomial", problem, got={"p": aval_of(p)})
    outcomes = aval_of(p).shape[-1:]
    needed = lax_shape.broadcast_shapes(aval_of(n).shape, aval_of(p).shape[:-1]) + outcomes
    dims = needed if shape is None else canonicalize_shape(shape, "random.multinomial shape")
    if len(dims) < len(needed) or lax_shape.broadcast_shapes(dims, needed) != dims:
        problem = "the parameters do not fit the shape."
        got = {"shape": dims, "n": aval_of(n), "p": aval_of(p)}
        expected = f"a shape that ends in that of the parameters, {needed}"
        error(ValueError, "random.multinomial", problem, got=got, expected=expected)
    wanted = dtype_argument("random.multinomial", dtype, dtypes.default_float_dtype())
    return _multinomial(key, n, p, dims, wanted, unroll)


@one_program(static=("dims", "dtype", "unroll"))
def _multinomial(
    key: ArrayLike,
    n: ArrayLike,
    p: ArrayLike,
    dims: Shape,
    dtype: np.dtype[Any],
    unroll: int | bool,
) -> Array:
    n, p = _in_common_float(n, p)
    exact = p.dtype
    p = shaping.moveaxis(broadcast_to(p, dims), -1, 0)
    left = window_reduction.cumsum(p, 0, reverse=True)
    left = select(left == 0, full_like(left, 1), left)

    def draw(trials: Array, outcome: tuple[Array, Array]) -> tuple[Array, Array]:
        share, key = outcome
        share = minimum(scalar(1, exact), maximum(scalar(0, exact), share))
        count = binomial_samples(key, trials, share, dims[:-1], exact)
        return trials - count, count

    keys = random_keys.new_keys(key, dims[-1:])
    _, counts = scan(draw, broadcast_to(n, dims[:-1]), (p / left, keys), unroll=unroll)
    return shaping.moveaxis(convert_element_type(counts, dtype), 0, -1)
