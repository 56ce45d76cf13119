"""Continuous distributions without parameters: functions of uniform bits, as in `jax.random`.

Input: a key, a shape, a dtype.  Output: samples.  Each function is one compiled program where
nothing is traced, and composes the same operations as JAX, so that the figures agree.  Families
with parameters are in `parametric.py`, integers in `discrete.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import Shape, aval_of, canonicalize_shape
from minijax.core.errors import IncompatibleShapesError, error
from minijax.lax import binary, convert, reduction, slicing, special, unary
from minijax.lax import shape as lax_shape
from minijax.lax.choice import select
from minijax.numpy.one_program import one_program
from minijax.random.keys import as_keys, new_bits, new_keys
from minijax.runtime.annotations import ArrayLike, DTypeLike, ShapeLike, ShardingLike
from minijax.runtime.array import Array
from minijax.transforms import explicit

F = TypeVar("F", bound=Callable[..., Any])

program = one_program(static=("dims", "dtype"))
"""Decorator: samples of a known shape and dtype, as one compiled program."""


def sampler(name: str) -> Callable[[F], F]:
    """Decorator for public functions: checks the key, which comes first, and hides nothing else."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def sample(key: Any, *args: Any, **kwargs: Any) -> Any:
            keys, _ = as_keys(f"random.{name}", key)
            out = function(keys, *args, **kwargs)
            return explicit.placed(out, kwargs.get("out_sharding"), f"random.{name}")

        return cast(F, sample)

    return decorate


def check_shape(name: str, given: Any, *params: Any) -> Shape:
    """The shape of samples: as given, or that of the parameters where None.

    Raises:
        ValueError: the parameters do not fit the shape.
    """
    shapes = [aval_of(param).shape for param in params]
    needed = lax_shape.broadcast_shapes(*shapes) if any(shapes) else ()
    if given is None:
        return needed
    dims = canonicalize_shape(given, f"random.{name} shape")
    if not needed:
        return dims
    lead = len(dims) - len(needed)
    if lead < 0 or any(n not in (1, d) for n, d in zip(needed, dims[lead:], strict=True)):
        error(
            IncompatibleShapesError,
            f"random.{name}",
            "the parameters do not fit the shape.",
            got={"shape": dims, "parameters": needed},
            expected="parameters that broadcast to the shape",
        )
    return dims


def check_float(name: str, dtype: Any) -> np.dtype[Any]:
    """The dtype of float samples; the default float for None.

    Raises:
        ValueError: the dtype is no float.
    """
    return check_kind(name, dtype, np.floating, "float", dtypes.default_float_dtype())


def check_inexact(name: str, dtype: Any) -> np.dtype[Any]:
    """The dtype of float or complex samples; the default float for None.

    Raises:
        ValueError: the dtype is neither.
    """
    default = dtypes.default_float_dtype()
    return check_kind(name, dtype, np.inexact, "float or complex", default)


def check_kind(
    name: str, dtype: Any, kind: type, word: str, default: np.dtype[Any]
) -> np.dtype[Any]:
    """The dtype that a user means, which must be of a kind.

    Raises:
        ValueError: it is not.
    """
    if dtype is None:
        return default
    wanted = dtypes.canonicalize_user_dtype(dtype, f"random.{name}")
    if not dtypes.issubdtype(wanted, kind):
        error(ValueError, f"random.{name}", f"the dtype must be {word}.", got=f"dtype: {wanted}")
    return cast("np.dtype[Any]", wanted)


def scalar(value: Any, dtype: np.dtype[Any]) -> Any:
    """A number as a NumPy scalar of a dtype."""
    return np.asarray(value).astype(dtype)[()]


def converted(value: Any, dtype: np.dtype[Any]) -> Any:
    """A parameter in a dtype; one that is no array yet is converted on the host."""
    if hasattr(value, "aval"):
        return convert.convert_element_type(value, dtype)
    return scalar(value, dtype)


@sampler("bits")
def bits(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Uniform random bits as unsigned integers.

    Shapes: key[] -> uint[shape].
    Source: mirrors jax.random.bits (0.10).

    Raises:
        ValueError: the dtype is no unsigned integer.

    Example:
        >>> jax.random.bits(jax.random.key(0), (3,), jnp.uint8).dtype
        dtype('uint8')
    """
    default = dtypes.default_uint_dtype()
    wanted = check_kind("bits", dtype, np.unsignedinteger, "an unsigned integer", default)
    return _bits(key, canonicalize_shape(shape, "random.bits shape"), wanted)


@program
def _bits(key: Any, dims: Shape, dtype: Any) -> Any:
    return new_bits(key, dtype.itemsize * 8, dims)


def split_keys(key: Any) -> tuple[Any, Any]:
    """Two new keys from one."""
    keys = new_keys(key, (2,))
    first, second = (slicing.index_in_dim(keys, i, keepdims=False) for i in range(2))
    return first, second


@sampler("uniform")
def uniform(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Uniform samples from [minval, maxval).

    Shapes: key[] -> float[shape]; the bounds broadcast to the shape.
    Source: mirrors jax.random.uniform (0.10).

    Raises:
        ValueError: the dtype is no float, or the bounds do not fit the shape.

    Example:
        >>> x = jax.random.uniform(jax.random.key(0), (10_000,), minval=-1.0, maxval=1.0)
        >>> x.min().round(2), x.max().round(2)
        (Array(-1., dtype=float32), Array(1., dtype=float32))
    """
    wanted = check_float("uniform", dtype)
    dims = check_shape("uniform", shape, minval, maxval)
    return uniform_samples(key, minval, maxval, dims, wanted)


@program
def uniform_samples(key: Any, minval: Any, maxval: Any, dims: Shape, dtype: Any) -> Any:
    """Uniform samples, for checked arguments."""
    low, high = (
        lax_shape.broadcast_to_rank(converted(bound, dtype), len(dims))
        for bound in (minval, maxval)
    )
    info = dtypes.finfo(dtype)
    # Eight random bits are enough for the mantissas of bfloat16 and the float8s.
    width = 8 if info.nmant < 8 else info.bits
    integer = np.dtype(f"uint{info.bits}")
    raw = new_bits(key, width, dims)
    if width != info.bits:
        raw = convert.convert_element_type(raw, integer)
    # The mantissa is random and the exponent that of 1, which gives a float in [1, 2).
    one = np.ones((), dtype)
    mantissa = binary.shift_right_logical(raw, scalar(width - info.nmant, integer))
    pattern = binary.bitwise_or(mantissa, one.view(integer)[()])
    fraction = binary.sub(convert.bitcast_convert_type(pattern, dtype), one[()])
    scaled = binary.add(binary.mul(fraction, binary.sub(high, low)), low)
    # Rounding may take a sample below the bound.
    return binary.max(low, scaled)


@sampler("normal")
def normal(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Samples of the standard normal distribution; complex ones have variance 1 in all.

    Shapes: key[] -> float[shape] or complex[shape].
    Source: mirrors jax.random.normal (0.10).

    Raises:
        ValueError: the dtype is neither float nor complex.

    Example:
        >>> x = jax.random.normal(jax.random.key(0), (100_000,))
        >>> x.std().round(1), (x > 0).mean().round(1)
        (Array(1., dtype=float32), Array(0.5, dtype=float32))
    """
    wanted = check_inexact("normal", dtype)
    return normal_samples(key, canonicalize_shape(shape, "random.normal shape"), wanted)


@program
def normal_samples(key: Any, dims: Shape, dtype: Any) -> Any:
    """Standard normal samples, by the inverse of the distribution function."""
    if dtypes.issubdtype(dtype, np.complexfloating):
        part = dtypes.real_dtype_of(dtype)
        parts = [normal_samples(k, dims, part) for k in split_keys(key)]
        return binary.div(unary.complex(*parts), scalar(np.sqrt(2), dtype))
    low = np.nextafter(np.array(-1, dtype), np.array(0, dtype), dtype=dtype)[()]
    samples = uniform_samples(key, low, scalar(1, dtype), dims, dtype)
    return binary.mul(scalar(np.sqrt(2), dtype), special.erf_inv(samples))


@sampler("truncated_normal")
def truncated_normal(
    key: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Samples of the standard normal distribution between `lower` and `upper`.

    Shapes: key[], float[s], float[s] -> float[shape], by default that of the bounds.
    Source: mirrors jax.random.truncated_normal (0.10).

    Raises:
        ValueError: the dtype is no float, or the bounds do not fit the shape.

    Example:
        >>> x = jax.random.truncated_normal(jax.random.key(0), -1.0, 2.0, (10_000,))
        >>> x.min().round(1), x.max().round(1)
        (Array(-1., dtype=float32), Array(2., dtype=float32))
    """
    wanted = check_float("truncated_normal", dtype)
    dims = check_shape("truncated_normal", shape, lower, upper)
    return truncated_normal_samples(key, lower, upper, dims, wanted)


@program
def truncated_normal_samples(key: Any, lower: Any, upper: Any, dims: Shape, dtype: Any) -> Any:
    """Truncated normal samples, for checked arguments."""
    lower, upper = (converted(x, dtype) for x in (lower, upper))
    root = scalar(np.sqrt(2), dtype)
    low, high = (special.erf(binary.div(x, root)) for x in (lower, upper))
    samples = uniform_samples(key, low, high, dims, dtype)
    out = binary.mul(root, special.erf_inv(samples))
    infinity = scalar(np.inf, dtype)
    above = binary.nextafter(unary.stop_gradient(lower), infinity)
    below = binary.nextafter(unary.stop_gradient(upper), -infinity)
    above, below = (lax_shape.broadcast_to_rank(x, len(dims)) for x in (above, below))
    return binary.min(below, binary.max(above, out))


@sampler("exponential")
def exponential(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Samples of the exponential distribution of rate 1.

    Shapes: key[] -> float[shape].
    Source: mirrors jax.random.exponential (0.10).

    Raises:
        ValueError: the dtype is no float.

    Example:
        >>> jax.random.exponential(jax.random.key(0), (100_000,)).mean().round(1)
        Array(1., dtype=float32)
    """
    wanted = check_float("exponential", dtype)
    return exponential_samples(key, canonicalize_shape(shape, "random.exponential shape"), wanted)


@program
def exponential_samples(key: Any, dims: Shape, dtype: Any) -> Any:
    """Exponential samples: -log(1 - u)."""
    u = uniform_samples(key, scalar(0, dtype), scalar(1, dtype), dims, dtype)
    return unary.neg(unary.log1p(unary.neg(u)))


@sampler("gumbel")
def gumbel(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    mode: str | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Samples of the Gumbel distribution.

    Shapes: key[] -> float[shape].
    Source: mirrors jax.random.gumbel (0.10).

    Args:
        key: a random key.
        shape: of the samples.
        dtype: of the samples.
        mode: "low" (the default), or "high" for twice the random bits: a finer tail.
        out_sharding: how the samples are split over a mesh.

    Raises:
        ValueError: the dtype is no float, or the mode is not known.

    Example:
        >>> logits = jnp.log(jnp.array([0.25, 0.75]))
        >>> noise = jax.random.gumbel(jax.random.key(0), (100_000, 2))
        >>> (jnp.argmax(logits + noise, axis=1) == 1).mean().round(2)
        Array(0.75, dtype=float32)
    """
    wanted = check_float("gumbel", dtype)
    dims = canonicalize_shape(shape, "random.gumbel shape")
    return gumbel_samples(key, dims, wanted, check_mode("gumbel", mode))


def check_mode(name: str, mode: str | None) -> str:
    """The mode of a sampler: "low" by default.

    Raises:
        ValueError: it is neither "low" nor "high".
    """
    if mode not in (None, "low", "high"):
        error(ValueError, f"random.{name}", f"unknown mode {mode!r}.", expected="'low' or 'high'")
    return mode or "low"


@one_program(static=("dims", "dtype", "mode"))
def gumbel_samples(key: Any, dims: Shape, dtype: Any, mode: str) -> Any:
    """Gumbel samples: -log(-log(u)), for checked arguments."""
    one, tiny = scalar(1, dtype), scalar(dtypes.finfo(dtype).tiny, dtype)
    if mode == "low":
        u = uniform_samples(key, tiny, one, dims, dtype)
        return unary.neg(unary.log(unary.neg(unary.log(u))))
    coarse, fine = two_uniforms(key, dims, dtype)
    # Where the sample is small enough to hold them, the second draw gives it more bits.
    step = scalar(dtypes.finfo(dtype).eps, dtype)
    finer = binary.add(binary.add(coarse, binary.mul(step, fine)), tiny)
    u = select(binary.ge(coarse, scalar(0.5, dtype)), coarse, finer)
    return unary.neg(unary.log(unary.neg(unary.log1p(unary.neg(u)))))


def two_uniforms(key: Any, dims: Shape, dtype: Any) -> tuple[Any, Any]:
    """Two independent arrays of uniform samples from one key."""
    both = uniform_samples(key, scalar(0, dtype), scalar(1, dtype), (2, *dims), dtype)
    first, second = (slicing.index_in_dim(both, i, keepdims=False) for i in range(2))
    return first, second


@sampler("laplace")
def laplace(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Samples of the Laplace distribution of scale 1.

    Shapes: key[] -> float[shape].
    Source: mirrors jax.random.laplace (0.10).

    Raises:
        ValueError: the dtype is no float.

    Example:
        >>> x = jax.random.laplace(jax.random.key(0), (100_000,))
        >>> jnp.abs(x).mean().round(1)
        Array(1., dtype=float32)
    """
    wanted = check_float("laplace", dtype)
    return _laplace(key, canonicalize_shape(shape, "random.laplace shape"), wanted)


@program
def _laplace(key: Any, dims: Shape, dtype: Any) -> Any:
    low = scalar(-1 + float(dtypes.finfo(dtype).epsneg), dtype)
    u = uniform_samples(key, low, scalar(1, dtype), dims, dtype)
    return binary.mul(unary.sign(u), unary.log1p(unary.neg(unary.abs(u))))


@sampler("logistic")
def logistic(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Samples of the logistic distribution.

    Shapes: key[] -> float[shape].
    Source: mirrors jax.random.logistic (0.10).

    Raises:
        ValueError: the dtype is no float.

    Example:
        >>> x = jax.random.logistic(jax.random.key(0), (100_000,))
        >>> (x < jnp.log(3.0)).mean().round(2)
        Array(0.75, dtype=float32)
    """
    wanted = check_float("logistic", dtype)
    return _logistic(key, canonicalize_shape(shape, "random.logistic shape"), wanted)


@program
def _logistic(key: Any, dims: Shape, dtype: Any) -> Any:
    tiny = scalar(dtypes.finfo(dtype).tiny, dtype)
    u = uniform_samples(key, tiny, scalar(1, dtype), dims, dtype)
    return binary.sub(unary.log(u), unary.log1p(unary.neg(u)))


@sampler("cauchy")
def cauchy(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Samples of the Cauchy distribution.

    Shapes: key[] -> float[shape].
    Source: mirrors jax.random.cauchy (0.10).

    Raises:
        ValueError: the dtype is no float.

    Example:
        >>> x = jax.random.cauchy(jax.random.key(0), (100_000,))
        >>> (jnp.abs(x) < 1).mean().round(2)
        Array(0.5, dtype=float32)
    """
    wanted = check_float("cauchy", dtype)
    return _cauchy(key, canonicalize_shape(shape, "random.cauchy shape"), wanted)


@program
def _cauchy(key: Any, dims: Shape, dtype: Any) -> Any:
    eps = scalar(dtypes.finfo(dtype).eps, dtype)
    u = uniform_samples(key, eps, scalar(1, dtype), dims, dtype)
    centred = binary.sub(u, scalar(0.5, dtype))
    return unary.tan(binary.mul(scalar(np.pi, dtype), centred))


@sampler("maxwell")
def maxwell(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Samples of the Maxwell distribution: norms of standard normal vectors of length 3.

    Shapes: key[] -> float[shape].
    Source: mirrors jax.random.maxwell (0.10).

    Raises:
        ValueError: the dtype is no float.

    Example:
        >>> x = jax.random.maxwell(jax.random.key(0), (100_000,))
        >>> (x**2).mean().round(1)
        Array(3., dtype=float32)
    """
    wanted = check_float("maxwell", dtype)
    return maxwell_samples(key, canonicalize_shape(shape, "random.maxwell shape"), wanted)


@program
def maxwell_samples(key: Any, dims: Shape, dtype: Any) -> Any:
    """Maxwell samples, for checked arguments."""
    vectors = normal_samples(key, (*dims, 3), dtype)
    return unary.sqrt(reduction.reduce_sum(binary.mul(vectors, vectors), (len(dims),)))
