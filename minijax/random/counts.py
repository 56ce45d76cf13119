"""Numbers of events: the Poisson, binomial and multinomial distributions, as in `jax.random`.

Input: a key, parameters, a shape, a dtype.  Output: samples.  Where few events are expected, they
are counted one by one; elsewhere samples are found by rejection from a shape that covers the
distribution (Hörmann, "The transformed rejection method for generating Poisson random variables",
1993, and "The generation of binomial random variates", 1993).  All samples of an array are tried
together, as often as the last of them needs; the figures follow JAX's in this as well.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import Shape, aval_of, canonicalize_shape
from minijax.core.errors import error
from minijax.lax import cumulative, reduction, slicing
from minijax.lax import shape as lax_shape
from minijax.lax.binary import (
    add,
    bitwise_and,
    bitwise_or,
    div,
    eq,
    ge,
    gt,
    le,
    lt,
    mul,
    ne,
    sub,
)
from minijax.lax.binary import (
    max as maximum,
)
from minijax.lax.binary import (
    min as minimum,
)
from minijax.lax.choice import clamp, select
from minijax.lax.control_flow.looping import while_loop
from minijax.lax.control_flow.scanning import scan
from minijax.lax.convert import convert_element_type
from minijax.lax.creation import full_like
from minijax.lax.special import lgamma
from minijax.lax.unary import abs as absolute
from minijax.lax.unary import bitwise_not, ceil, floor, log, log1p, neg, sqrt
from minijax.numpy import shaping
from minijax.numpy.creation import asarray
from minijax.numpy.one_program import one_program
from minijax.numpy.promotion import check_array
from minijax.random.distributions import (
    check_float,
    check_kind,
    check_shape,
    program,
    sampler,
    scalar,
    uniform_samples,
)
from minijax.random.generators import THREEFRY
from minijax.random.keys import new_keys, random_clone_p
from minijax.runtime.annotations import ArrayLike, DTypeLike, ShapeLike, ShardingLike
from minijax.runtime.array import Array

_BOOL = np.dtype(bool)
_FLOAT32 = np.dtype(np.float32)


def _new_keys(key: Any, count: int) -> list[Any]:
    keys = new_keys(key, (count,))
    return [slicing.index_in_dim(keys, i, keepdims=False) for i in range(count)]


def _uniform(key: Any, like: Any) -> Any:
    """Uniform samples in place of an array."""
    aval = aval_of(like)
    one = scalar(1, aval.dtype)
    return uniform_samples(key, scalar(0, aval.dtype), one, aval.shape, aval.dtype)


def _any(flags: Any) -> Any:
    return reduction.reduce_or(flags, tuple(range(aval_of(flags).ndim)))


class _Candidate(NamedTuple):
    """What is tried for each sample: a value, and how it compares with the distribution.

    Attributes:
        value: the candidate.
        sure: whether it is accepted without further ado.
        impossible: whether it is not, whatever the exact test says.
        log_height: of the point under the covering shape.
        log_density: of the distribution at the value, up to the same constant.
    """

    value: Any
    sure: Any
    impossible: Any
    log_height: Any
    log_density: Any


def _rejected_until_accepted(key: Any, like: Any, candidate: Any) -> Any:
    """Candidates `candidate(u, v)` of two uniform numbers, until each place has had a good one.

    A place that has one takes later ones too, as long as others have none.
    """

    def unfinished(state: Any) -> Any:
        return _any(bitwise_not(state[1]))

    def step(state: Any) -> Any:
        chosen, accepted, key = state
        key, first, second = _new_keys(key, 3)
        found = candidate(sub(_uniform(first, like), 0.5), _uniform(second, like))
        exact = le(found.log_height, found.log_density)
        good = bitwise_or(found.sure, bitwise_and(bitwise_not(found.impossible), exact))
        return select(good, found.value, chosen), bitwise_or(accepted, good), key

    nowhere = full_like(like, False, _BOOL)
    return while_loop(unfinished, step, (full_like(like, -1), nowhere, key))[0]


@sampler("poisson")
def poisson(
    key: ArrayLike,
    lam: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """How many events happen where `lam` are expected: samples of the Poisson distribution.

    Shapes: key[], float[s] -> int[shape], by default that of `lam`.
    Dtypes: integers; the computation is in float32.  What does not fit is cut to the dtype's range;
        -1 stands where `lam` is negative or NaN.
    Source: mirrors jax.random.poisson (0.10); Knuth, "The art of computer programming" 2 (1969)
        below 10, elsewhere Hörmann, "The transformed rejection method for generating Poisson
        random variables" (1993).

    Raises:
        NotImplementedError: the key is of another generator than threefry2x32.
        ValueError: the dtype is no integer, or `lam` does not fit the shape.

    Example:
        >>> samples = minijax.random.poisson(minijax.random.key(0), 3.0, (1000,))
        >>> bool(abs(samples.mean() - 3.0) < 0.2), str(samples.dtype)
        (True, 'int32')
    """
    generator = aval_of(key).dtype.impl
    if generator != THREEFRY:
        error(
            NotImplementedError,
            "random.poisson",
            "is there for one generator only.",
            got=f"a key of {generator.name}",
            expected=f"a key of {THREEFRY.name}",
        )
    default = dtypes.default_int_dtype()
    wanted = check_kind("poisson", dtype, np.integer, "an integer", default)
    lam = check_array("poisson", lam)
    return _poisson(key, lam, check_shape("poisson", shape, lam), wanted)


@program
def _poisson(key: Any, lam: Any, dims: Shape, dtype: Any) -> Any:
    lam = convert_element_type(_spread(lam, dims), _FLOAT32)
    few = bitwise_or(ne(lam, lam), lt(lam, 10.0))
    # The key serves both methods, of which each place takes one.
    counted = _counted_by_products(
        random_clone_p.bind(key), select(few, lam, full_like(lam, 0)), dtype
    )
    # A parameter that no candidate of the other method has to fit is accepted at once.
    rejected = _poisson_by_rejection(key, select(few, full_like(lam, 1e5), lam))
    out = select(few, counted, convert_element_type(rejected, dtype))
    return select(eq(lam, 0.0), full_like(out, 0), out)


def _spread(x: Any, dims: Shape) -> Any:
    rank = aval_of(x).ndim
    return lax_shape.broadcast_in_dim(x, dims, range(len(dims) - rank, len(dims)))


def _counted_by_products(key: Any, lam: Any, dtype: Any) -> Any:
    """Knuth's method: so many uniform numbers as have a product above exp(-lam)."""

    def unfinished(state: Any) -> Any:
        return _any(gt(state[2], neg(lam)))

    def step(state: Any) -> Any:
        count, key, log_product = state
        key, subkey = _new_keys(key, 2)
        count = select(gt(log_product, neg(lam)), add(count, scalar(1, dtype)), count)
        return count, key, add(log_product, log(_uniform(subkey, lam)))

    none = full_like(lam, 0, dtype)
    count = while_loop(unfinished, step, (none, key, full_like(lam, 0)))[0]
    return sub(count, scalar(1, dtype))


def _poisson_by_rejection(key: Any, lam: Any) -> Any:
    """Hörmann's algorithm PTRS, for at least 10 events expected; names are the article's."""
    log_lam = log(lam)
    b = add(0.931, mul(2.53, sqrt(lam)))
    a = add(-0.059, mul(0.02483, b))
    inv_alpha = add(1.1239, div(1.1328, sub(b, 3.4)))
    v_r = sub(0.9277, div(3.6224, sub(b, 2.0)))

    def candidate(u: Any, v: Any) -> _Candidate:
        us = sub(0.5, absolute(u))
        k = floor(add(add(mul(add(div(mul(2.0, a), us), b), u), lam), 0.43))
        return _Candidate(
            value=k,
            sure=bitwise_and(ge(us, 0.07), le(v, v_r)),
            impossible=bitwise_or(lt(k, 0.0), bitwise_and(lt(us, 0.013), gt(v, us))),
            log_height=log(div(mul(v, inv_alpha), add(div(a, mul(us, us)), b))),
            log_density=sub(add(neg(lam), mul(k, log_lam)), lgamma(add(k, 1.0))),
        )

    return _rejected_until_accepted(key, lam, candidate)


@sampler("binomial")
def binomial(
    key: ArrayLike,
    n: ArrayLike,
    p: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """How many of `n` trials succeed, each with probability `p`.

    Shapes: key[], float[s], float[s] -> float[shape], by default that of the parameters.
    Dtypes: floating; the computation is in the dtype of the parameters.  NaN stands where `n` is
        negative, or `p` lies outside [0, 1], or one of them is NaN.
    Source: mirrors jax.random.binomial (0.10); the sum of geometric variables where at most 10
        successes are expected, elsewhere Hörmann, "The generation of binomial random variates"
        (1993).

    Raises:
        ValueError: the dtype is no float, or the parameters do not fit the shape.

    Example:
        >>> samples = minijax.random.binomial(minijax.random.key(0), 10, 0.3, (1000,))
        >>> bool(abs(samples.mean() - 3.0) < 0.2), bool(samples.max() <= 10)
        (True, True)
    """
    wanted = check_float("binomial", dtype)
    n, p = check_array("binomial", n), check_array("binomial", p)
    return binomial_samples(key, n, p, check_shape("binomial", shape, n, p), wanted)


@program
def binomial_samples(key: Any, n: Any, p: Any, dims: Shape, dtype: Any) -> Any:
    """Binomial samples, for checked arguments."""
    n, p = (_spread(x, dims) for x in _in_common_float(n, p))
    rare = lt(p, 0.5)
    # Of what is likely, the failures are counted.
    q = select(rare, p, sub(1.0, p))
    no_count = bitwise_or(ne(n, n), lt(n, 0.0))
    no_probability = bitwise_or(ne(q, q), lt(q, 0.0))
    endless = eq(absolute(n), np.inf)
    q = select(no_probability, full_like(q, 0.01), q)
    expected = mul(n, q)
    # Endlessly many trials that cannot succeed would be waited for, and tried, for ever.
    unknown = bitwise_or(no_count, ne(expected, expected))
    few = bitwise_or(unknown, le(expected, 10.0))
    whole = floor(n)
    # The key serves both methods, of which each place takes one.
    counted = _counted_by_waiting(
        random_clone_p.bind(key),
        select(bitwise_and(few, bitwise_not(unknown)), whole, full_like(n, 0)),
        q,
    )
    rejected = _binomial_by_rejection(
        key, select(few, full_like(n, 1e4), whole), select(few, full_like(q, 0.5), q)
    )
    successes = select(
        few, convert_element_type(counted, dtype), convert_element_type(rejected, dtype)
    )
    wrong = bitwise_or(no_probability, no_count)
    successes = select(wrong, full_like(successes, np.nan), successes)
    successes = select(
        bitwise_and(endless, bitwise_not(wrong)), full_like(successes, np.inf), successes
    )
    failures = sub(convert_element_type(whole, dtype), successes)
    return select(bitwise_or(bitwise_or(rare, wrong), endless), successes, failures)


def _in_common_float(*params: Any) -> list[Any]:
    """Parameters in one float dtype that holds all of them."""
    common = dtypes.to_inexact_dtype(dtypes.result_type(*params))
    return [convert_element_type(x, common) for x in params]


def _counted_by_waiting(key: Any, n: Any, p: Any) -> Any:
    """The successes among n trials: so many waiting times for the next one fit into them."""
    log_failure = log1p(neg(p))

    def unfinished(state: Any) -> Any:
        return _any(le(state[1], n))

    def step(state: Any) -> Any:
        count, trials, key = state
        subkey, key = _new_keys(key, 2)
        count = select(le(trials, n), add(count, 1.0), count)
        return count, add(trials, ceil(div(log(_uniform(subkey, n)), log_failure))), key

    count = while_loop(unfinished, step, (full_like(n, 0), full_like(n, 0), key))[0]
    return sub(count, 1.0)


def _binomial_by_rejection(key: Any, n: Any, p: Any) -> Any:
    """Hörmann's algorithm BTRS, for at least 10 successes expected; names are the article's."""
    deviation = sqrt(mul(mul(n, p), sub(1.0, p)))
    b = add(1.15, mul(2.53, deviation))
    a = add(add(-0.0873, mul(0.0248, b)), mul(0.01, p))
    c = add(mul(n, p), 0.5)
    v_r = sub(0.92, div(4.2, b))
    r = div(p, sub(1.0, p))
    alpha = mul(add(2.83, div(5.1, b)), deviation)
    m = floor(mul(add(n, 1.0), p))

    def candidate(u: Any, v: Any) -> _Candidate:
        us = sub(0.5, absolute(u))
        k = floor(add(mul(add(div(mul(2.0, a), us), b), u), c))
        return _Candidate(
            value=k,
            sure=bitwise_and(ge(us, 0.07), le(v, v_r)),
            impossible=bitwise_or(lt(k, 0.0), gt(k, n)),
            log_height=log(div(mul(v, alpha), add(div(a, mul(us, us)), b))),
            log_density=_log_of_binomial(n, m, r, k),
        )

    return _rejected_until_accepted(key, n, candidate)


def _log_of_binomial(n: Any, m: Any, r: Any, k: Any) -> Any:
    """The logarithm of the probability of k, less that of the mode m: Stirling's formula."""
    spare, rest = add(sub(n, m), 1.0), add(sub(n, k), 1.0)
    at_mode = mul(add(m, 0.5), log(div(add(m, 1.0), mul(r, spare))))
    out = add(at_mode, mul(add(n, 1.0), log(div(spare, rest))))
    out = add(out, mul(add(k, 0.5), log(div(mul(r, rest), add(k, 1.0)))))
    out = add(add(out, _stirling_tail(m)), _stirling_tail(sub(n, m)))
    return sub(sub(out, _stirling_tail(k)), _stirling_tail(sub(n, k)))


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


def _stirling_tail(k: Any) -> Any:
    """What Stirling's formula lacks of log k!: from a table, or the first terms of its series."""
    small = le(k, 9.0)
    k = clamp(0.0, k, 9.0)
    after = add(k, 1.0)
    square = mul(after, after)
    series = sub(1 / 12, div(sub(1 / 360, div(1 / 1260, square)), square))
    table = np.array(_TAILS, aval_of(k).dtype)
    place = convert_element_type(floor(k), np.dtype(np.int32))
    known = asarray(table).at[place].get(mode="promise_in_bounds")
    return select(small, known, div(series, after))


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
    """How many of `n` trials end in each of k outcomes, whose probabilities are `p`.

    The outcomes are drawn one after the other, each as a binomial number of the trials that are
    left.  Probabilities that do not sum to 1 are divided by their sum.

    Shapes: key[], float[s], float[s, k] -> float[shape], by default the parameters' shape.
    Dtypes: any numeric; the computation is in the dtype of the parameters.
    Source: mirrors jax.random.multinomial (0.10).

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
        error(
            ValueError,
            "random.multinomial",
            "the probabilities need an axis of outcomes.",
            got={"p": aval_of(p)},
        )
    outcomes = aval_of(p).shape[-1:]
    needed = lax_shape.broadcast_shapes(aval_of(n).shape, aval_of(p).shape[:-1]) + outcomes
    dims = needed if shape is None else canonicalize_shape(shape, "random.multinomial shape")
    if len(dims) < len(needed) or lax_shape.broadcast_shapes(dims, needed) != dims:
        error(
            ValueError,
            "random.multinomial",
            "the parameters do not fit the shape.",
            got={"shape": dims, "n": aval_of(n), "p": aval_of(p)},
            expected=f"a shape that ends in that of the parameters, {needed}",
        )
    wanted = dtypes.default_float_dtype()
    if dtype is not None:
        wanted = dtypes.canonicalize_user_dtype(dtype, "random.multinomial")
    return _multinomial(key, n, p, dims, wanted, unroll)


@one_program(static=("dims", "dtype", "unroll"))
def _multinomial(key: Any, n: Any, p: Any, dims: Shape, dtype: Any, unroll: int | bool) -> Any:
    n, p = _in_common_float(n, p)
    exact = aval_of(p).dtype
    p = shaping.moveaxis(_spread(p, dims), -1, 0)
    left = cumulative.cumsum(p, 0, reverse=True)
    left = select(eq(left, 0.0), full_like(left, 1), left)
    zero, one = scalar(0, exact), scalar(1, exact)

    def draw(trials: Any, outcome: Any) -> tuple[Any, Any]:
        share, key = outcome
        share = minimum(one, maximum(zero, share))
        count = binomial_samples(key, trials, share, dims[:-1], exact)
        return sub(trials, count), count

    keys = new_keys(key, dims[-1:])
    _, counts = scan(draw, _spread(n, dims[:-1]), (div(p, left), keys), unroll=unroll)
    return shaping.moveaxis(convert_element_type(counts, dtype), 0, -1)
