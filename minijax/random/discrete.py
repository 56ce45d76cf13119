"""Discrete distributions, permutations and choices, with the figures of `jax.random`.

Input: a key, a shape, parameters.  Output: samples.
"""

from __future__ import annotations

import math
import operator
from typing import Any, cast

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import Shape, aval_of, canonicalize_shape
from minijax.core.errors import error
from minijax.lax import binary, creation, families, reduction, slicing, sorting, window_reduction
from minijax.lax import shape as lax_shape
from minijax.lax.binary import select
from minijax.lax.creation import convert_element_type, full_like
from minijax.lax.unary import floor, log, log1p
from minijax.numpy import ordering, shaping
from minijax.numpy.creation import dtype_argument
from minijax.numpy.promotion import broadcast_to, check_array, one_program, pick
from minijax.random import continuous
from minijax.random import keys as random_keys
from minijax.random.continuous import converted, fitted, scalar, split_keys
from minijax.random.keys import FLOAT, INTEGER, distribution, sampler, standard, unchecked
from minijax.runtime.annotations import ArrayLike, DTypeLike, ShapeLike, ShardingLike
from minijax.runtime.array import Array

_INT32 = np.dtype(np.int32)


@distribution(None, "p")
def bernoulli(
    key: ArrayLike,
    p: ArrayLike = 0.5,
    shape: ShapeLike | None = None,
    mode: str = "low",
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Samples of the Bernoulli distribution: true with probability `p`.

    Shapes: key[], float[s] -> bool[shape], by default that of `p`.

    Args:
        key: a random key.
        p: the probability.
        shape: of the samples.
        mode: "low", or "high" for twice the random bits, which tiny probabilities need.
        out_sharding: how the samples are split over a mesh.

    Raises:
        TypeError: the dtype of `p` is not floating.
        ValueError: `p` does not fit the shape, or the mode is not known.

    Example:
        >>> draws = jax.random.bernoulli(jax.random.key(0), 0.25, (100_000,))
        >>> draws.dtype, draws.mean().round(2)
        (dtype('bool'), Array(0.25, dtype=float32))
    """
    given = aval_of(p)
    if not dtypes.issubdtype(given.dtype, np.floating):
        problem = "the probability must be a float."
        error(TypeError, "random.bernoulli", problem, got={"p": given})
    p, dims = fitted(p, shape, given.dtype), canonicalize_shape(shape)
    if mode == "low":
        return continuous.uniform_samples(key, dims, given.dtype) < p
    coarse, fine = continuous.two_uniforms(key, dims, given.dtype)
    return fine * scalar(2.0 ** -dtypes.finfo(given.dtype).nmant, given.dtype) < p - coarse


bernoulli_samples = unchecked(bernoulli)


@standard(random_keys.ANY_OR_INTEGER)
def rademacher(key: ArrayLike, shape: Shape, dtype: np.dtype[Any]) -> Array:
    """Samples of the Rademacher distribution: -1 and 1 with equal probability.

    Shapes: key[] -> T[shape], int by default.

    Example:
        >>> draws = jax.random.rademacher(jax.random.key(0), (1000,))
        >>> jnp.unique(draws)
        Array([-1,  1], dtype=int32)
    """
    half = scalar(0.5, dtypes.default_float_dtype())
    heads = convert_element_type(bernoulli_samples(key, half, shape, "low"), dtype)
    return scalar(2, dtype) * heads - scalar(1, dtype)


rademacher_samples = unchecked(rademacher)


@sampler("randint")
def randint(
    key: ArrayLike,
    shape: ShapeLike,
    minval: ArrayLike,
    maxval: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Uniform integers from [minval, maxval).

    Shapes: key[], int[s], int[s] -> int[shape].

    Raises:
        OverflowError: a Python integer does not fit the default integer dtype.
        TypeError: the dtype is not an integer dtype.
        ValueError: the bounds do not fit the shape.

    Example:
        >>> rolls = jax.random.randint(jax.random.key(0), (1000,), minval=1, maxval=7)
        >>> jnp.unique(rolls)
        Array([1, 2, 3, 4, 5, 6], dtype=int32)
    """
    wanted = dtype_argument("random.randint", dtype, dtypes.default_int_dtype())
    if not dtypes.issubdtype(wanted, np.integer):
        error(TypeError, "random.randint", "the dtype must be an integer.", got=f"dtype: {wanted}")
    dims = random_keys.check_shape("randint", shape, minval, maxval)
    low, high = (_integer_bound(x) for x in (minval, maxval))
    return _randint(key, low, high, dims, wanted)


def _integer_bound(bound: ArrayLike) -> ArrayLike:
    """A bound as a value of an integer dtype."""
    if isinstance(bound, int):
        return int(bound)
    if dtypes.issubdtype(aval_of(bound).dtype, np.integer):
        return bound
    return converted(bound, dtypes.default_int_dtype())


@one_program(static=("dims", "dtype"))
def _randint(
    key: ArrayLike, minval: ArrayLike, maxval: ArrayLike, dims: Shape, dtype: np.dtype[Any]
) -> Array:
    info = dtypes.iinfo(dtype)
    least, most = int(info.min), int(info.max)
    if info.bits < 32:
        # Narrow integers are drawn as int32, which holds one more than their largest as well.
        low, high = _clipped(minval, least, most), _clipped(maxval, least, most + 1)
        return convert_element_type(_randint(key, low, high, dims, _INT32), dtype)
    beyond = binary.gt(maxval, _limit(most, aval_of(maxval).dtype))
    low, high, beyond = (
        lax_shape.broadcast_to_rank(x, len(dims))
        for x in (
            converted(_clipped(minval, least, most), dtype),
            converted(_clipped(maxval, least, most), dtype),
            beyond,
        )
    )
    unsigned = np.dtype(f"uint{info.bits}")
    span = _span(low, high, beyond, unsigned)
    upper, lower = (random_keys.new_bits(k, info.bits, dims) for k in split_keys(key))
    # Two draws cover the span more evenly: (upper * 2**bits + lower) mod span.
    factor = binary.rem(scalar(2 ** (info.bits // 2), unsigned), span)
    factor = binary.rem(factor * factor, span)
    upper = binary.rem(upper, span) * factor
    offset = binary.rem(upper + binary.rem(lower, span), span)
    return low + convert_element_type(offset, dtype)


def _span(low: Array, high: Array, beyond: Array, unsigned: np.dtype[Any]) -> Array:
    """How many integers there are to draw from: at least one."""
    one = scalar(1, unsigned)
    span = convert_element_type(binary.sub(high, low), unsigned)
    span = pick(binary.le(high, low), one, span)
    # The largest number of the dtype is included where the upper bound lies beyond it.
    whole = binary.bitwise_and(beyond, binary.gt(high, low))
    return pick(whole, binary.add(span, one), span)


def _limit(value: int, dtype: np.dtype[Any]) -> Array:
    """The scalar of a dtype that is nearest to a Python integer."""
    limits = dtypes.iinfo(dtype)
    return scalar(min(max(value, int(limits.min)), int(limits.max)), dtype)


def _clipped(bound: ArrayLike, least: int, most: int) -> Array:
    """A bound between two limits, as a value of at least 32 bits."""
    if dtypes.iinfo(aval_of(bound).dtype).bits < 32:
        bound = converted(bound, _INT32)
    given = aval_of(bound).dtype
    return binary.min(_limit(most, given), binary.max(_limit(least, given), bound))


@sampler("categorical")
def categorical(
    key: ArrayLike,
    logits: ArrayLike,
    axis: int = -1,
    shape: ShapeLike | None = None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Samples of the categorical distribution whose log-probabilities are `logits` along `axis`.

    Shapes: key[], float[s] -> int[shape], by default s without `axis`.

    Args:
        key: a random key.
        logits: logarithms of probabilities, up to a constant.
        axis: the dimension of the categories.
        shape: of the samples; ends in that of the batch, which is s without `axis`.
        replace: whether a category may be drawn twice.
        mode: "low", or "high" for twice the random bits, which tiny probabilities need.
        out_sharding: how the samples are split over a mesh.

    Raises:
        ValueError: the shape does not end in that of the batch, the logits are not floats, there
            are too few categories, or the mode is not known.

    Example:
        >>> logits = jnp.log(jnp.array([0.25, 0.0, 0.75]))
        >>> draws = jax.random.categorical(jax.random.key(0), logits, shape=(100_000,))
        >>> (jnp.bincount(draws, length=3) / 100_000).round(2)
        Array([0.25, 0.  , 0.75], dtype=float32)
    """
    logits = check_array("categorical", logits)
    aval = aval_of(logits)
    random_keys.check_dtype("categorical", aval.dtype, FLOAT)
    axis = families.canonicalize_axis(axis, aval.ndim, "random.categorical")
    batch = tuple(n for i, n in enumerate(aval.shape) if i != axis)
    dims = batch if shape is None else canonicalize_shape(shape, "random.categorical shape")
    lead = len(dims) - len(batch)
    if lead < 0 or any(b not in (1, d) for b, d in zip(batch, dims[lead:], strict=True)):
        problem = "the shape does not end in that of the batch."
        error(ValueError, "random.categorical", problem, got={"shape": dims, "batch": batch})
    if not replace:
        _check_enough("categorical", math.prod(dims[:lead]), aval.shape[axis])
    return _categorical(
        key, logits, axis, dims, replace, random_keys.check_mode("categorical", mode)
    )


def _check_enough(name: str, count: int, size: int) -> None:
    if count > size:
        problem = "without replacement, no more can be drawn than there are."
        error(ValueError, f"random.{name}", problem, got=f"{count} of {size}")


@one_program(static=("axis", "dims", "replace", "mode"))
def _categorical(
    key: ArrayLike, logits: Array, axis: int, dims: Shape, replace: bool, mode: str
) -> Array:
    aval = aval_of(logits)
    lead = len(dims) - (aval.ndim - 1)
    if replace:
        batch = dims[lead:]
        noise_dims = (*dims[:lead], *batch[:axis], aval.shape[axis], *batch[axis:])
        noise = continuous.gumbel_samples(key, noise_dims, aval.dtype, mode)
        noisy = noise + lax_shape.broadcast_to_rank(logits, len(noise_dims))
        return reduction.argmax(noisy, lead + axis, dtypes.default_int_dtype())
    noisy = continuous.gumbel_samples(key, aval.shape, aval.dtype, mode) + logits
    _, chosen = sorting.top_k(shaping.moveaxis(noisy, axis, -1), math.prod(dims[:lead]))
    return lax_shape.reshape(shaping.moveaxis(chosen, -1, 0), dims)


@sampler("permutation")
def permutation(
    key: ArrayLike,
    x: int | ArrayLike,
    axis: int = 0,
    independent: bool = False,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """The integers below `x`, or the slices of `x` along `axis`, in random order.

    Args:
        key: a random key.
        x: an integer or an array.
        axis: the dimension to permute.
        independent: whether every row has an order of its own.
        out_sharding: how the samples are split over a mesh.

    Raises:
        TypeError: `x` is a scalar, but no integer.

    Example:
        >>> shuffled = jax.random.permutation(jax.random.key(0), 10)
        >>> jnp.sort(shuffled)
        Array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], dtype=int32)
    """
    x = check_array("permutation", x)
    if not aval_of(x).ndim:
        if not dtypes.issubdtype(aval_of(x).dtype, np.integer):
            problem = "x must be an integer or at least a vector."
            error(TypeError, "random.permutation", problem, got=str(aval_of(x)))
        return _permuted_range(key, max(operator.index(x), 0))
    axis = families.canonicalize_axis(axis, aval_of(x).ndim, "random.permutation")
    return _permuted(key, x, axis, bool(independent))


@one_program(static=("size",))
def _permuted_range(key: ArrayLike, size: int) -> Array:
    return _shuffled(key, creation.iota(dtypes.default_int_dtype(), size), 0)


@one_program(static=("axis", "independent"))
def _permuted(key: ArrayLike, x: Array, axis: int, independent: bool) -> Array:
    if independent or aval_of(x).ndim == 1:
        return _shuffled(key, x, axis)
    order = creation.iota(dtypes.default_int_dtype(), aval_of(x).shape[axis])
    return shaping.slicing_take(x, _shuffled(key, order, 0), axis)


def _shuffled(key: ArrayLike, x: Array, axis: int) -> Array:
    """`x` in random order along `axis`: sorted by random bits, often enough to make up for ties."""
    aval = aval_of(x)
    rounds = math.ceil(3 * math.log(max(1, aval.size)) / math.log(2**32 - 1))
    for _ in range(rounds):
        key, subkey = split_keys(key)
        order = random_keys.new_bits(subkey, 32, aval.shape)
        _, x = sorting.sort_key_val(order, x, axis)
    return x


@sampler("choice")
def choice(
    key: ArrayLike,
    a: int | ArrayLike,
    shape: ShapeLike = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
    mode: str | None = None,
) -> Array:
    """A random sample from an array along `axis`, or from the integers below `a`.

    Args:
        key: a random key.
        a: an integer or an array.
        shape: of the sample.
        replace: whether an element may be drawn twice.
        p: the probabilities of the elements; uniform by default.
        axis: the dimension to draw along.
        mode: "low", or "high" for twice the random bits where `p` is given and not `replace`.

    Raises:
        ValueError: there are too few elements, or the probabilities do not fit.

    Example:
        >>> hand = jax.random.choice(jax.random.key(0), 52, (5,), replace=False)
        >>> jnp.unique(hand).size
        5
    """
    a = check_array("choice", a)
    dims = canonicalize_shape(shape, "random.choice shape")
    aval = aval_of(a)
    elements = None
    size = int(a) if not aval.ndim else 0
    if aval.ndim:
        elements, axis = a, families.canonicalize_axis(axis, aval.ndim, "random.choice")
        size = aval.shape[axis]
    count = math.prod(dims)
    if count and size <= 0:
        error(ValueError, "random.choice", "there is nothing to choose from.", got={"a": aval})
    if not replace:
        _check_enough("choice", count, size)
    if p is not None:
        p = _probabilities(p, size)
    return _choice(
        key, elements, p, size, dims, axis, replace, random_keys.check_mode("choice", mode)
    )


def _probabilities(p: ArrayLike, size: int) -> Array:
    p = check_array("choice", p)
    if aval_of(p).shape != (size,):
        problem = "there must be one probability for each element."
        error(ValueError, "random.choice", problem, got={"p": aval_of(p), "elements": size})
    return p


@one_program(static=("size", "dims", "axis", "replace", "mode"))
def _choice(
    key: ArrayLike,
    a: Array | None,
    p: Array | None,
    size: int,
    dims: Shape,
    axis: int,
    replace: bool,
    mode: str,
) -> Array:
    count = math.prod(dims)
    if p is None and not replace:
        axis = 0 if a is None else axis
        mixed = _permuted_range(key, size) if a is None else _permuted(key, a, axis, False)
        picked = slicing.slice_in_dim(mixed, 0, count, axis=axis)
        own = aval_of(mixed).shape
        return lax_shape.reshape(picked, (*own[:axis], *dims, *own[axis + 1 :]))
    index = randint(key, dims, 0, size) if p is None else _weighted(key, p, dims, replace, mode)
    if a is None:
        return index
    if not size:
        own = aval_of(a).shape
        return lax_shape.reshape(a, (*own[:axis], *dims, *own[axis + 1 :]))
    return shaping.slicing_take(a, index, axis)


def _weighted(key: ArrayLike, p: Array, dims: Shape, replace: bool, mode: str) -> Array:
    p = converted(p, dtypes.to_inexact_dtype(p.dtype))
    size = p.shape[0]
    if replace:
        total = window_reduction.cumsum(p)
        last = slicing.index_in_dim(total, size - 1, 0, keepdims=False)
        places = ordering.searchsorted(
            total, last * (1 - continuous.uniform_samples(key, dims, p.dtype))
        )
        return convert_element_type(places, dtypes.default_int_dtype())
    noise = continuous.gumbel_samples(key, (size,), p.dtype, mode)
    _, chosen = sorting.top_k(noise + log(p), math.prod(dims))
    return lax_shape.reshape(convert_element_type(chosen, dtypes.default_int_dtype()), dims)


@distribution(INTEGER, "p")
def geometric(
    key: ArrayLike,
    p: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Samples of the geometric distribution: trials up to the first success of probability `p`.

    Shapes: key[], float[s] -> int[shape], by default that of `p`.

    Raises:
        ValueError: the dtype is not an integer dtype, or `p` does not fit the shape.

    Example:
        >>> jax.random.geometric(jax.random.key(0), 0.25, (100_000,)).mean().round(1)
        Array(4., dtype=float32)
    """
    p = converted(p, dtypes.to_inexact_dtype(aval_of(p).dtype))
    draws = aval_of(p).dtype
    u = continuous.uniform_samples(key, shape or (), draws)
    # The logarithm of 0 would be an infinite number of trials.
    u = select(u == 0, full_like(u, 1), u)
    failures = broadcast_to(log1p(-p), u.shape)
    return convert_element_type(floor(log(u) / failures) + 1, cast(DTypeLike, dtype))
