"""Discrete distributions, permutations and choices, with the figures of `jax.random`.

Input: a key, a shape, parameters.  Output: samples.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import Shape, aval_of, canonicalize_shape
from minijax.core.errors import message
from minijax.lax import arguments, binary, convert, creation, reduction, slicing, sorting, unary
from minijax.lax import cumulative as lax_cumulative
from minijax.lax import shape as lax_shape
from minijax.lax.choice import select
from minijax.numpy import selection, shaping
from minijax.numpy.one_program import one_program
from minijax.random import distributions
from minijax.random.distributions import (
    broadcast,
    check_shape,
    parameter,
    sampler,
    scalar,
    split_keys,
)
from minijax.random.keys import random_bits_p


@sampler("bernoulli")
def bernoulli(
    key: Any,
    p: Any = 0.5,
    shape: Any = None,
    mode: str = "low",
    *,
    out_sharding: Any = None,
) -> Any:
    """Samples that are true with probability `p`.

    Shapes: key[], float[s] -> bool[shape], by default that of `p`.
    Source: mirrors jax.random.bernoulli (0.10); its mode "high" is not built.

    Raises:
        TypeError: `p` is no float.
        NotImplementedError: the mode is "high".
    """
    if mode != "low":
        raise NotImplementedError(
            message("random.bernoulli", f"mode {mode!r} is not built.", expected="'low'")
        )
    if not hasattr(p, "dtype"):
        p = scalar(p, dtypes.canonicalize_dtype(np.result_type(p)))
    if not dtypes.issubdtype(aval_of(p).dtype, np.floating):
        raise TypeError(
            message("random.bernoulli", "the probability must be a float.", got=str(aval_of(p)))
        )
    return _bernoulli(key, p, check_shape("bernoulli", shape, p))


@one_program(static=("dims",))
def _bernoulli(key: Any, p: Any, dims: Shape) -> Any:
    dtype = aval_of(p).dtype
    draws = distributions._uniform(key, scalar(0, dtype), scalar(1, dtype), dims, dtype)
    return binary.lt(draws, lax_shape.broadcast_to_rank(p, len(dims)))


@sampler("rademacher")
def rademacher(
    key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Samples of -1 and 1.

    Shapes: key[] -> int[shape].
    Source: mirrors jax.random.rademacher (0.10).
    """
    wanted = dtypes.default_int_dtype() if dtype is None else (
        dtypes.canonicalize_user_dtype(dtype, "random.rademacher")
    )
    flips = bernoulli(key, 0.5, canonicalize_shape(shape, "random.rademacher shape"))
    doubled = binary.mul(scalar(2, wanted), convert.convert_element_type(flips, wanted))
    return binary.sub(doubled, scalar(1, wanted))


@sampler("randint")
def randint(
    key: Any,
    shape: Any,
    minval: Any,
    maxval: Any,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Uniform integers from [minval, maxval).

    Shapes: key[], int[s], int[s] -> int[shape].
    Source: mirrors jax.random.randint (0.10).

    Raises:
        TypeError: the dtype or a bound is no integer.
        ValueError: the bounds do not fit the shape.
    """
    wanted = dtypes.default_int_dtype() if dtype is None else (
        dtypes.canonicalize_user_dtype(dtype, "random.randint")
    )
    if not dtypes.issubdtype(wanted, np.integer):
        raise TypeError(message("random.randint", "the dtype must be an integer.", got=str(dtype)))
    for name, bound in (("minval", minval), ("maxval", maxval)):
        if not isinstance(bound, int) and not dtypes.issubdtype(aval_of(bound).dtype, np.integer):
            raise TypeError(
                message("random.randint", f"{name} must be an integer.", got=str(aval_of(bound)))
            )
    minval, maxval = (_known_bound(b) for b in (minval, maxval))
    dims = canonicalize_shape(shape, "random.randint shape")
    check_shape("randint", dims, minval, maxval)
    return _randint(key, minval, maxval, dims, wanted)


def _known_bound(bound: Any) -> Any:
    """A Python integer as a NumPy one that holds it; other bounds pass."""
    if not isinstance(bound, int):
        return bound
    limits = dtypes.iinfo(dtypes.default_int_dtype())
    return scalar(min(max(bound, int(limits.min)), int(limits.max)), dtypes.default_int_dtype())


@one_program(static=("dims", "dtype"))
def _randint(key: Any, minval: Any, maxval: Any, dims: Shape, dtype: Any) -> Any:
    info = dtypes.iinfo(dtype)
    given = aval_of(maxval).dtype
    top = scalar(_clipped(int(info.max), given), given)
    overflow = binary.gt(maxval, top)
    low, high = (
        parameter(_clip_to(bound, info), dtype, dims) for bound in (minval, maxval)
    )
    unsigned = np.dtype(f"uint{info.bits}")
    first, second = split_keys(key, 2)
    upper, lower = (
        random_bits_p.bind(k, bit_width=info.bits, shape=dims) for k in (first, second)
    )
    span = convert.convert_element_type(binary.sub(high, low), unsigned)
    one = scalar(1, unsigned)
    span = select(
        *_alike(binary.le(high, low), creation.full_like(span, 1), span)
    )
    # One more where the upper bound lies beyond the dtype: its largest number is included.
    included = binary.bitwise_and(
        lax_shape.broadcast_to_rank(overflow, len(dims)), binary.gt(high, low)
    )
    span = select(*_alike(included, binary.add(span, one), span))
    # Two draws cover the span more evenly: (upper * 2**bits + lower) mod span.
    multiplier = binary.rem(scalar(2 ** (info.bits // 2), unsigned), span)
    multiplier = binary.rem(binary.mul(multiplier, multiplier), span)
    mixed = binary.add(
        binary.mul(binary.rem(upper, span), multiplier), binary.rem(lower, span)
    )
    offset = convert.convert_element_type(binary.rem(mixed, span), dtype)
    return binary.add(low, offset)


def _clipped(value: int, dtype: Any) -> int:
    limits = dtypes.iinfo(dtype)
    return min(max(value, int(limits.min)), int(limits.max))


def _clip_to(bound: Any, info: Any) -> Any:
    given = aval_of(bound).dtype
    low = scalar(_clipped(int(info.min), given), given)
    high = scalar(_clipped(int(info.max), given), given)
    return binary.min(high, binary.max(low, bound))


def _alike(*arrays: Any) -> list[Any]:
    """Arrays repeated to their common shape."""
    dims = lax_shape.broadcast_shapes(*(aval_of(x).shape for x in arrays))
    return [broadcast(x, dims) for x in arrays]


@sampler("categorical")
def categorical(
    key: Any,
    logits: Any,
    axis: int = -1,
    shape: Any = None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Samples of positions along `axis`, with the logarithms of their probabilities given.

    Shapes: key[], float[s] -> int[shape], by default s without `axis`.
    Source: mirrors jax.random.categorical (0.10).

    Raises:
        ValueError: the shape does not end in that of the batch.
    """
    aval = aval_of(logits)
    axis = arguments.canonicalize_axis(axis, aval.ndim, "random.categorical")
    batch = tuple(n for i, n in enumerate(aval.shape) if i != axis)
    dims = batch if shape is None else canonicalize_shape(shape, "random.categorical shape")
    lead = len(dims) - len(batch)
    if lead < 0 or any(b not in (1, d) for b, d in zip(batch, dims[lead:], strict=True)):
        raise ValueError(
            message(
                "random.categorical",
                "the shape does not end in that of the batch.",
                got={"shape": dims, "batch": batch},
            )
        )
    return _categorical(key, logits, axis, dims, replace)


@one_program(static=("axis", "dims", "replace"))
def _categorical(key: Any, logits: Any, axis: int, dims: Shape, replace: bool) -> Any:
    aval = aval_of(logits)
    lead = len(dims) - (aval.ndim - 1)
    index = dtypes.default_int_dtype()
    if replace:
        noise_dims = (*dims[:lead], *_insert(dims[lead:], axis, aval.shape[axis]))
        noise = distributions.gumbel(key, noise_dims, aval.dtype)
        wide = lax_shape.expand_dims(logits, tuple(range(lead)))
        return reduction.argmax(_added(noise, wide), lead + axis, index)
    noisy = _added(distributions.gumbel(key, aval.shape, aval.dtype), logits)
    count = math.prod(dims[:lead])
    _, chosen = sorting.top_k(shaping.moveaxis(noisy, axis, -1), count)
    return lax_shape.reshape(
        shaping.moveaxis(chosen, -1, 0), dims
    )


def _added(x: Any, y: Any) -> Any:
    return binary.add(*_alike(x, y))


def _insert(dims: Shape, axis: int, size: int) -> Shape:
    return (*dims[:axis], size, *dims[axis:])


@sampler("permutation")
def permutation(
    key: Any,
    x: Any,
    axis: int = 0,
    independent: bool = False,
    *,
    out_sharding: Any = None,
) -> Any:
    """The integers below `x`, or the slices of `x` along `axis`, in random order.

    Args:
        key: a random key.
        x: an integer or an array.
        axis: the dimension to permute.
        independent: whether every row has an order of its own.

    Source: mirrors jax.random.permutation (0.10).

    Raises:
        TypeError: `x` is a float scalar.
    """
    if not aval_of(x).ndim:
        if not dtypes.issubdtype(aval_of(x).dtype, np.integer):
            raise TypeError(
                message(
                    "random.permutation",
                    "x must be an integer or at least a vector.",
                    got=str(aval_of(x)),
                )
            )
        return shuffle(key, creation.iota(dtypes.default_int_dtype(), int(x)), axis=0)
    axis = arguments.canonicalize_axis(axis, aval_of(x).ndim, "random.permutation")
    if independent or aval_of(x).ndim == 1:
        return shuffle(key, x, axis=axis)
    order = shuffle(key, creation.iota(np.dtype(np.int32), aval_of(x).shape[axis]), axis=0)
    return shaping.slicing_take(x, order, axis)


@one_program(static=("axis",))
def shuffle(key: Any, x: Any, axis: int) -> Any:
    """`x` in random order along `axis`: sorted by random keys, often enough to avoid ties."""
    aval = aval_of(x)
    rounds = math.ceil(3 * math.log(max(1, aval.size)) / math.log(2**32 - 1))
    for _ in range(rounds):
        key, subkey = split_keys(key, 2)
        order = random_bits_p.bind(subkey, bit_width=32, shape=aval.shape)
        _, x = sorting.sort_key_val(order, x, axis)
    return x


def choice(
    key: Any,
    a: Any,
    shape: Any = (),
    replace: bool = True,
    p: Any = None,
    axis: int = 0,
    mode: str | None = None,
) -> Any:
    """A random sample from an array along `axis`, or from the integers below `a`.

    Args:
        key: a random key.
        a: an integer or an array.
        shape: of the sample.
        replace: whether an element may be drawn twice.
        p: the probabilities of the elements; uniform by default.
        axis: the dimension to draw along.

    Source: mirrors jax.random.choice (0.10).

    Raises:
        ValueError: there are too few elements, or the probabilities do not fit.
    """
    dims = canonicalize_shape(shape, "random.choice shape")
    aval = aval_of(a)
    if not aval.ndim:
        size = int(a)
    else:
        axis = arguments.canonicalize_axis(axis, aval.ndim, "random.choice")
        size = aval.shape[axis]
    count = math.prod(dims)
    if count and size <= 0:
        raise ValueError(message("random.choice", "there is nothing to choose from."))
    if not replace and count > size:
        raise ValueError(
            message(
                "random.choice",
                "cannot draw more elements than there are without replacement.",
                got=f"{count} of {size}",
            )
        )
    if p is None:
        if not replace:
            chosen = permutation(key, size if not aval.ndim else a, axis)
            picked = _first(chosen, count, 0 if not aval.ndim else axis)
            return _reshaped(picked, dims, 0 if not aval.ndim else axis)
        index = randint(key, dims, 0, size)
    else:
        index = _weighted(key, p, size, dims, count, replace)
    if not aval.ndim:
        return index
    return shaping.slicing_take(a, index, axis)


def _weighted(key: Any, p: Any, size: int, dims: Shape, count: int, replace: bool) -> Any:
    p = p if hasattr(p, "dtype") else np.asarray(p)
    if not dtypes.issubdtype(aval_of(p).dtype, np.floating):
        p = convert.convert_element_type(p, dtypes.default_float_dtype())
    if aval_of(p).shape != (size,):
        raise ValueError(
            message(
                "random.choice",
                "there must be one probability for each element.",
                got={"p": aval_of(p), "elements": size},
            )
        )
    if replace:
        total = lax_cumulative.cumsum(p)
        last = slicing.index_in_dim(total, size - 1, 0, keepdims=False)
        one = scalar(1, aval_of(p).dtype)
        draws = distributions.uniform(key, dims, aval_of(p).dtype)
        level = binary.mul(last, binary.sub(one, draws))
        return selection.searchsorted(total, level)
    noise = distributions.gumbel(key, (size,), aval_of(p).dtype)
    _, chosen = sorting.top_k(binary.add(noise, unary.log(p)), count)
    return lax_shape.reshape(chosen, dims)


def _first(x: Any, count: int, axis: int) -> Any:
    return slicing.slice_in_dim(x, 0, count, axis=axis)


def _reshaped(x: Any, dims: Shape, axis: int) -> Any:
    own = aval_of(x).shape
    return lax_shape.reshape(x, (*own[:axis], *dims, *own[axis + 1 :]))


def geometric(
    key: Any, p: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """The number of trials up to the first success of probability `p`.

    Shapes: key[], float[s] -> int[shape], by default that of `p`.
    Source: mirrors jax.random.geometric (0.10).
    """
    wanted = dtypes.default_int_dtype() if dtype is None else (
        dtypes.canonicalize_user_dtype(dtype, "random.geometric")
    )
    dims = check_shape("geometric", shape, p)
    p = convert.convert_element_type(p, dtypes.default_float_dtype())
    u = distributions.uniform(key, dims, aval_of(p).dtype)
    fails = unary.log1p(unary.neg(broadcast(p, dims)))
    trials = unary.ceil(binary.div(unary.log1p(unary.neg(u)), fails))
    return convert.convert_element_type(trials, wanted)

