"""The gamma distribution, and what follows from it, with the figures of `jax.random`.

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
from minijax.core.aval import Shape, ShapedArray, aval_of, shaped_array
from minijax.core.errors import error
from minijax.core.primitive import Primitive
from minijax.core.specs import PartitionSpec
from minijax.interpreters import lowering, staging
from minijax.interpreters.structural import broadcast_in_dim, moveaxis
from minijax.interpreters.tangents import Zero
from minijax.lax import binary, control_flow, creation, incomplete_gamma, reduction, slicing, unary
from minijax.lax import shape as lax_shape
from minijax.lax.choice import select
from minijax.numpy.one_program import one_program
from minijax.random.distributions import (
    check_float,
    check_shape,
    converted,
    exponential_samples,
    normal_samples,
    sampler,
    scalar,
    uniform_samples,
)
from minijax.random.generators import THREEFRY
from minijax.random.keys import new_keys
from minijax.runtime.annotations import ArrayLike, DTypeLike, ShapeLike, ShardingLike
from minijax.runtime.array import Array
from minijax.sharding import rules


class RandomGamma(Primitive):
    """Samples of the gamma distribution of scale 1, or their logarithms.

    Shapes: keys: key[s], a: T[s, t] -> T[s, t]; a key is split for the samples of each s.
    With its key a sample is a smooth function of `a`, whose slope `random_gamma_grad` is.
    """

    name = "random_gamma"
    knows_extended = True
    consumes_keys = (0,)

    def abstract_eval(self, keys: ShapedArray, a: ShapedArray, *, log_space: bool) -> ShapedArray:
        if not dtypes.issubdtype(a.dtype, np.floating) or a.shape[: keys.ndim] != keys.shape:
            error(
                TypeError,
                "random_gamma",
                "needs keys, and floats whose shape begins with theirs.",
                got={"keys": keys, "a": a},
            )
        return a.strip_weak_type()

    def shard(self, avals: Sequence[Any], outs: Sequence[Any], *, log_space: bool) -> PartitionSpec:
        return rules.spec_of(avals[1])

    def lower(self, ctx: Any, keys: Any, a: Any, *, log_space: bool) -> Any:
        def sample(keys: Any, a: Any) -> list[Any]:
            return [_samples(keys, a, log_space)]

        # The loop is written for types that do not speak of meshes; what it computes fits on any.
        avals = [shaped_array(aval.shape, aval.dtype) for aval in ctx.avals_in]
        jaxpr, consts = staging.stage(sample, avals)
        return lowering.lower_jaxpr(ctx, jaxpr, consts, [keys, a], location=ctx.location)[0]

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, log_space: bool
    ) -> tuple[Any, Any]:
        keys, a = primals
        out = self.bind(keys, a, log_space=log_space)
        if type(tangents[1]) is Zero:
            return out, Zero.like(out)
        if not log_space:
            return out, binary.mul(tangents[1], incomplete_gamma.random_gamma_grad(a, out))
        sample = unary.exp(out)
        # The slope of a logarithm at a sample that underflows is that at the least positive float.
        tiny = creation.full_like(sample, dtypes.finfo(aval_of(a).dtype).tiny)
        sample = select(binary.eq(sample, creation.full_like(sample, 0)), tiny, sample)
        slope = binary.div(incomplete_gamma.random_gamma_grad(a, sample), sample)
        return out, binary.mul(tangents[1], slope)

    def batch(
        self, size: int, args: Sequence[Any], dims: Sequence[Any], *, log_space: bool
    ) -> tuple[Any, int]:
        keys, a = (
            _repeated(x, size) if d is None else moveaxis(x, d, 0)
            for x, d in zip(args, dims, strict=True)
        )
        return self.bind(keys, a, log_space=log_space), 0


random_gamma_p = RandomGamma()


def _repeated(x: Any, size: int) -> Any:
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

    key: Any
    retry: Any
    retrying: Any
    pending: Any
    cube: Any


def _samples(keys: Any, a: Any, log_space: bool) -> Any:
    """Samples by rejection, at the places of an array."""
    aval = aval_of(a)
    lead = aval_of(keys).ndim
    count = math.prod(aval.shape[lead:])
    keys = lax_shape.reshape(new_keys(keys, (count,)), (aval.size,))
    a = lax_shape.reshape(a, (aval.size,))
    if aval_of(keys).dtype.impl == THREEFRY:
        out = _samples_of_keys(keys, a, log_space)
    else:
        # Keys that are used together would share one stream.
        out = control_flow.map(lambda x: _samples_of_keys(x[0], x[1], log_space), (keys, a))
    return lax_shape.reshape(out, aval.shape)


def _samples_of_keys(keys: Any, a: Any, log_space: bool) -> Any:
    """Samples of arrays of keys and parameters of one shape."""
    dtype = aval_of(a).dtype
    one = scalar(1, dtype)
    # Samples of a parameter below 1 are made from those of the parameter above.
    large = binary.ge(a, one)
    d = binary.sub(select(large, a, binary.add(a, one)), scalar(1 / 3, dtype))
    first, second = _keys_of(keys, 2)
    cube = _accepted_cubes(first, d)
    if log_space:
        logs = unary.neg(exponential_samples(second, (), dtype))
        # A logarithm of 0 stays so, whatever it is multiplied with.
        whole = binary.bitwise_or(large, binary.eq(logs, scalar(0, dtype)))
        boost = select(whole, creation.full_like(a, 0), binary.mul(logs, binary.div(one, a)))
        out = binary.add(binary.add(unary.log(d), unary.log(cube)), boost)
    else:
        u = binary.sub(one, uniform_samples(second, scalar(0, dtype), one, (), dtype))
        boost = select(large, creation.full_like(a, 1), unary.pow(u, binary.div(one, a)))
        out = binary.mul(binary.mul(d, cube), boost)
    return out


def _keys_of(keys: Any, count: int) -> list[Any]:
    """For each key several, in arrays of the same shape."""
    new = new_keys(keys, (count,))
    axis = aval_of(keys).ndim
    return [slicing.index_in_dim(new, i, axis, keepdims=False) for i in range(count)]


def _accepted_cubes(keys: Any, d: Any) -> Any:
    """Cubes v = (1 + c·x)³, such that d·v is a sample of the gamma distribution of d + 1/3.

    A candidate takes three steps: a normal variable x, drawn anew until v is positive, a uniform
    one, and a test.  All samples are at one of these steps of their own in each turn of one loop.
    """
    aval = aval_of(d)
    dtype = aval.dtype
    zero, one = scalar(0, dtype), scalar(1, dtype)
    c = binary.div(scalar(1 / 3, dtype), unary.sqrt(d))

    def unfinished(trial: _Trial) -> Any:
        return reduction.reduce_or(trial.pending, tuple(range(aval.ndim)))

    def step(trial: _Trial) -> _Trial:
        next_key, for_x, for_u = _keys_of(trial.key, 3)
        retry, subkey = _keys_of(select(trial.retrying, trial.retry, for_x), 2)
        x = normal_samples(subkey, (), dtype)
        v = binary.add(one, binary.mul(x, c))
        retrying = binary.le(v, zero)
        cube = binary.mul(binary.mul(v, v), v)
        u = uniform_samples(for_u, zero, one, (), dtype)
        refused = binary.bitwise_or(retrying, _is_refused(binary.mul(x, x), cube, u, d))
        return _Trial(
            select(retrying, trial.key, next_key),
            retry,
            retrying,
            binary.bitwise_and(trial.pending, refused),
            select(binary.bitwise_and(trial.pending, unary.bitwise_not(refused)), cube, trial.cube),
        )

    none = creation.full(aval.shape, False, np.dtype(bool))
    start = _Trial(keys, keys, none, unary.bitwise_not(none), creation.full_like(d, 1))
    return control_flow.while_loop(unfinished, step, start).cube


def _is_refused(square: Any, cube: Any, u: Any, d: Any) -> Any:
    """Whether a candidate fails: a quick test lets most pass, the other one is exact."""
    dtype = aval_of(d).dtype
    one = scalar(1, dtype)
    quick = binary.sub(one, binary.mul(scalar(0.0331, dtype), binary.mul(square, square)))
    bound = binary.add(
        binary.mul(square, scalar(0.5, dtype)),
        binary.mul(d, binary.add(binary.sub(one, cube), unary.log(cube))),
    )
    return binary.bitwise_and(binary.ge(u, quick), binary.ge(unary.log(u), bound))


@sampler("gamma")
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
        ValueError: the dtype is no float, or `a` does not fit the shape.

    Example:
        >>> samples = minijax.random.gamma(minijax.random.key(0), 4.0, (1000,))
        >>> bool(abs(samples.mean() - 4.0) < 0.2)
        True
    """
    wanted = check_float("gamma", dtype)
    return gamma_samples(key, a, check_shape("gamma", shape, a), wanted, False)


@sampler("loggamma")
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
    Source:     mirrors jax.random.loggamma (0.10).

    Raises:
        ValueError: the dtype is no float, or `a` does not fit the shape.

    Example:
        >>> key = minijax.random.key(0)
        >>> bool(minijax.random.gamma(key, 1e-3) == 0)
        True
        >>> bool(np.isfinite(minijax.random.loggamma(key, 1e-3)))
        True
    """
    wanted = check_float("loggamma", dtype)
    return gamma_samples(key, a, check_shape("loggamma", shape, a), wanted, True)


@one_program(static=("dims", "dtype", "log_space"))
def gamma_samples(key: Any, a: Any, dims: Shape, dtype: Any, log_space: bool) -> Any:
    """Samples of the gamma distribution or their logarithms, for checked arguments."""
    a = converted(a, dtype)
    lead = len(dims) - aval_of(a).ndim
    if aval_of(a).shape != dims:
        a = lax_shape.broadcast_in_dim(a, dims, range(lead, len(dims)))
    return random_gamma_p.bind(key, a, log_space=log_space)
