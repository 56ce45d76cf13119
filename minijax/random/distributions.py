"""Continuous distributions: functions of uniform bits, the same as `jax.random`'s.

Input: a key, a shape, parameters.  Output: samples.  Each function is one compiled program where
nothing is traced, and composes the same operations as JAX, so that the figures agree.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import Shape, aval_of, canonicalize_shape
from minijax.core.errors import message
from minijax.lax import binary, convert, power, reduction, special, trigonometry, unary
from minijax.lax import shape as lax_shape
from minijax.numpy.one_program import one_program
from minijax.random.keys import as_keys, random_bits_p, random_split_p


def check_shape(name: str, given: Any, *params: Any) -> Shape:
    """The shape of samples: as given, or that of the parameters where None.

    Raises:
        ValueError: the parameters do not fit the shape.
    """
    needed = lax_shape.broadcast_shapes(*(aval_of(p).shape for p in params)) if params else ()
    if given is None:
        return needed
    dims = canonicalize_shape(given, f"random.{name} shape")
    if params and np.broadcast_shapes(dims, needed) != dims:
        raise ValueError(
            message(
                f"random.{name}",
                "the parameters do not fit the shape.",
                got={"shape": dims, "parameters": needed},
                expected="parameters that broadcast to the shape",
            )
        )
    return dims


def check_float(name: str, dtype: Any) -> np.dtype[Any]:
    """The dtype of float samples; the default float for None.

    Raises:
        ValueError: the dtype is no float.
    """
    wanted = (
        dtypes.default_float_dtype()
        if dtype is None
        else dtypes.canonicalize_user_dtype(dtype, f"random.{name}")
    )
    if not dtypes.issubdtype(wanted, np.floating):
        raise ValueError(
            message(f"random.{name}", "the dtype must be a float.", got=str(dtype))
        )
    return wanted


def scalar(value: Any, dtype: np.dtype[Any]) -> Any:
    """A number as a NumPy scalar of a dtype."""
    return np.asarray(value).astype(dtype)[()]


def parameter(value: Any, dtype: np.dtype[Any], dims: Shape) -> Any:
    """A parameter in the dtype of the samples, with their rank."""
    value = convert.convert_element_type(value, dtype)
    return lax_shape.broadcast_to_rank(value, len(dims))


def broadcast(value: Any, dims: Shape) -> Any:
    """A parameter repeated to the shape of the samples."""
    own = aval_of(value).shape
    lead = len(dims) - len(own)
    return lax_shape.broadcast_in_dim(value, dims, tuple(range(lead, len(dims))))


def bits(
    key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Uniform random bits as unsigned integers.

    Shapes: key[] -> uint[shape].
    Source: mirrors jax.random.bits (0.10).

    Raises:
        ValueError: the dtype is no unsigned integer.
    """
    wanted = (
        np.dtype(np.uint32)
        if dtype is None
        else dtypes.canonicalize_user_dtype(dtype, "random.bits")
    )
    if not dtypes.issubdtype(wanted, np.unsignedinteger):
        raise ValueError(
            message("random.bits", "the dtype must be an unsigned integer.", got=str(dtype))
        )
    keys, _ = as_keys("random.bits", key)
    dims = canonicalize_shape(shape, "random.bits shape")
    return _bits(keys, dims, wanted)


@one_program(static=("dims", "dtype"))
def _bits(keys: Any, dims: Shape, dtype: Any) -> Any:
    return random_bits_p.bind(keys, bit_width=dtype.itemsize * 8, shape=dims)


def sampler(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator for public functions: checks the key, which comes first, and hides nothing else."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def sample(key: Any, *args: Any, **kwargs: Any) -> Any:
            keys, _ = as_keys(f"random.{name}", key)
            return function(keys, *args, **kwargs)

        return sample

    return decorate


@sampler("uniform")
def uniform(
    key: Any,
    shape: Any = (),
    dtype: Any = None,
    minval: Any = 0.0,
    maxval: Any = 1.0,
    *,
    out_sharding: Any = None,
) -> Any:
    """Uniform samples from [minval, maxval).

    Shapes: key[] -> float[shape]; bounds broadcast to the shape.
    Source: mirrors jax.random.uniform (0.10).

    Raises:
        ValueError: the dtype is no float, or the bounds do not fit the shape.
    """
    wanted = check_float("uniform", dtype)
    dims = canonicalize_shape(shape, "random.uniform shape")
    check_shape("uniform", dims, minval, maxval)
    return _uniform(key, minval, maxval, dims, wanted)


@one_program(static=("dims", "dtype"))
def _uniform(key: Any, minval: Any, maxval: Any, dims: Shape, dtype: Any) -> Any:
    low, high = parameter(minval, dtype, dims), parameter(maxval, dtype, dims)
    info = dtypes.finfo(dtype)
    # Eight random bits are enough for the mantissas of bfloat16 and the float8s.
    width = 8 if info.nmant < 8 else info.bits
    integer = np.dtype(f"uint{info.bits}")
    raw = random_bits_p.bind(key, bit_width=width, shape=dims)
    if width != info.bits:
        raw = convert.convert_element_type(raw, integer)
    # The mantissa is random and the exponent that of 1, which gives a float in [1, 2).
    drop = scalar(width - info.nmant, integer)
    one = np.ones((), dtype)
    mantissa = binary.shift_right_logical(raw, drop)
    pattern = binary.bitwise_or(mantissa, one.view(integer)[()])
    floats = binary.sub(convert.bitcast_convert_type(pattern, dtype), one[()])
    scaled = binary.add(binary.mul(floats, binary.sub(high, low)), low)
    return binary.max(low, lax_shape.reshape(scaled, dims))


@sampler("normal")
def normal(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Samples of the standard normal distribution; complex ones have variance 1 in all.

    Shapes: key[] -> float[shape] or complex[shape].
    Source: mirrors jax.random.normal (0.10).

    Raises:
        ValueError: the dtype is neither float nor complex.
    """
    wanted = (
        dtypes.default_float_dtype()
        if dtype is None
        else dtypes.canonicalize_user_dtype(dtype, "random.normal")
    )
    if not dtypes.issubdtype(wanted, np.inexact):
        raise ValueError(
            message("random.normal", "the dtype must be float or complex.", got=str(dtype))
        )
    return _normal(key, canonicalize_shape(shape, "random.normal shape"), wanted)


@one_program(static=("dims", "dtype"))
def _normal(key: Any, dims: Shape, dtype: Any) -> Any:
    if not dtypes.issubdtype(dtype, np.complexfloating):
        return normal_samples(key, dims, dtype)
    real = dtypes.real_dtype_of(dtype)
    first, second = split_keys(key, 2)
    pair = unary.complex(
        normal_samples(first, dims, real), normal_samples(second, dims, real)
    )
    return binary.div(pair, scalar(np.sqrt(2), dtype))


def split_keys(key: Any, count: int) -> list[Any]:
    """New keys from one, as a list."""
    keys = random_split_p.bind(key, shape=(count,))
    return [lax_shape.squeeze(part, (0,)) for part in lax_shape.split(keys, [1] * count, 0)]


def normal_samples(key: Any, dims: Shape, dtype: Any) -> Any:
    """Standard normal samples, by the inverse of the distribution function."""
    low = np.nextafter(np.array(-1.0, dtype), np.array(0.0, dtype), dtype=dtype)[()]
    samples = _uniform(key, low, np.ones((), dtype)[()], dims, dtype)
    return binary.mul(scalar(np.sqrt(2), dtype), special.erf_inv(samples))


@sampler("truncated_normal")
def truncated_normal(
    key: Any,
    lower: Any,
    upper: Any,
    shape: Any = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Samples of the standard normal distribution between `lower` and `upper`.

    Shapes: key[], float[s], float[s] -> float[shape], by default that of the bounds.
    Source: mirrors jax.random.truncated_normal (0.10).

    Raises:
        ValueError: the dtype is no float, or the bounds do not fit the shape.
    """
    wanted = check_float("truncated_normal", dtype)
    dims = check_shape("truncated_normal", shape, lower, upper)
    return _truncated_normal(key, lower, upper, dims, wanted)


@one_program(static=("dims", "dtype"))
def _truncated_normal(key: Any, lower: Any, upper: Any, dims: Shape, dtype: Any) -> Any:
    lower = convert.convert_element_type(lower, dtype)
    upper = convert.convert_element_type(upper, dtype)
    root = scalar(np.sqrt(2), dtype)
    low, high = (special.erf(binary.div(x, root)) for x in (lower, upper))
    samples = _uniform(key, low, high, dims, dtype)
    out = binary.mul(root, special.erf_inv(samples))
    infinity = scalar(np.inf, dtype)
    above = binary.nextafter(unary.stop_gradient(lower), infinity)
    below = binary.nextafter(unary.stop_gradient(upper), unary.neg(infinity))
    fitted = (lax_shape.broadcast_to_rank(x, len(dims)) for x in (above, below))
    above, below = fitted
    return binary.min(below, binary.max(above, out))


def _of_uniform(
    name: str, transform: Callable[[Any, Any], Any], doc: str
) -> Callable[..., Any]:
    """A distribution that is a function of one uniform sample and its dtype."""

    @one_program(static=("dims", "dtype"))
    def program(key: Any, dims: Shape, dtype: Any) -> Any:
        return transform(lambda low, high: _uniform(key, low, high, dims, dtype), dtype)

    def sample(
        key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None
    ) -> Any:
        keys, _ = as_keys(f"random.{name}", key)
        wanted = check_float(name, dtype)
        return program(keys, canonicalize_shape(shape, f"random.{name} shape"), wanted)

    sample.__name__ = sample.__qualname__ = name
    sample.__doc__ = f"""{doc}

    Shapes: key[] -> float[shape].
    Source: mirrors jax.random.{name} (0.10).

    Raises:
        ValueError: the dtype is no float.
    """
    return sample


def _exponential(draw: Any, dtype: Any) -> Any:
    return unary.neg(unary.log1p(unary.neg(draw(0.0, 1.0))))


def _gumbel(draw: Any, dtype: Any) -> Any:
    tiny = scalar(dtypes.finfo(dtype).tiny, dtype)
    return unary.neg(unary.log(unary.neg(unary.log(draw(tiny, 1.0)))))


def _laplace(draw: Any, dtype: Any) -> Any:
    low = scalar(-1.0 + float(dtypes.finfo(dtype).epsneg), dtype)
    u = draw(low, 1.0)
    return binary.mul(unary.sign(u), unary.log1p(unary.neg(unary.abs(u))))


def _logistic(draw: Any, dtype: Any) -> Any:
    u = draw(scalar(dtypes.finfo(dtype).tiny, dtype), 1.0)
    one = scalar(1, dtype)
    return unary.log(binary.div(u, binary.sub(one, u)))


def _cauchy(draw: Any, dtype: Any) -> Any:
    u = draw(scalar(dtypes.finfo(dtype).eps, dtype), 1.0)
    centred = binary.sub(u, scalar(0.5, dtype))
    return trigonometry.tan(binary.mul(scalar(np.pi, dtype), centred))


exponential = _of_uniform(
    "exponential", _exponential, "Samples of the exponential distribution of rate 1."
)
gumbel_low = _of_uniform("gumbel", _gumbel, "Samples of the Gumbel distribution.")
laplace = _of_uniform("laplace", _laplace, "Samples of the Laplace distribution of scale 1.")
logistic = _of_uniform("logistic", _logistic, "Samples of the logistic distribution.")
cauchy = _of_uniform("cauchy", _cauchy, "Samples of the Cauchy distribution.")


def gumbel(
    key: Any,
    shape: Any = (),
    dtype: Any = None,
    mode: str | None = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Samples of the Gumbel distribution.

    Shapes: key[] -> float[shape].
    Source: mirrors jax.random.gumbel (0.10); its mode "high" is not built.

    Raises:
        NotImplementedError: the mode is "high".
        ValueError: the dtype is no float.
    """
    if mode not in (None, "low"):
        raise NotImplementedError(
            message("random.gumbel", f"mode {mode!r} is not built.", expected="'low'")
        )
    return gumbel_low(key, shape, dtype)


def maxwell(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Samples of the Maxwell distribution: norms of standard normal vectors of length 3.

    Shapes: key[] -> float[shape].
    Source: mirrors jax.random.maxwell (0.10).
    """
    dims = canonicalize_shape(shape, "random.maxwell shape")
    vectors = normal(key, (*dims, 3), check_float("maxwell", dtype))
    squares = binary.mul(vectors, vectors)
    return unary.sqrt(reduction.reduce_sum(squares, (len(dims),)))


def rayleigh(
    key: Any, scale: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Samples of the Rayleigh distribution.

    Shapes: key[], float[s] -> float[shape], by default that of the scale.
    Source: mirrors jax.random.rayleigh (0.10).
    """
    wanted = check_float("rayleigh", dtype)
    dims = check_shape("rayleigh", shape, scale)
    u = uniform(key, dims, wanted)
    n = unary.log(binary.mul(u, u))
    root = unary.sqrt(unary.neg(n))
    return binary.mul(broadcast(convert.convert_element_type(scale, wanted), dims), root)


def pareto(
    key: Any, b: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Samples of the Pareto distribution of exponent `b`.

    Shapes: key[], float[s] -> float[shape], by default that of `b`.
    Source: mirrors jax.random.pareto (0.10).
    """
    wanted = check_float("pareto", dtype)
    dims = check_shape("pareto", shape, b)
    e = exponential(key, dims, wanted)
    return unary.exp(binary.div(e, broadcast(convert.convert_element_type(b, wanted), dims)))


def lognormal(
    key: Any, sigma: Any = 1.0, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Samples whose logarithms are normal with standard deviation `sigma`.

    Shapes: key[], float[s] -> float[shape], by default that of `sigma`.
    Source: mirrors jax.random.lognormal (0.10).
    """
    wanted = check_float("lognormal", dtype)
    dims = check_shape("lognormal", shape, sigma)
    factor = broadcast(convert.convert_element_type(sigma, wanted), dims)
    return unary.exp(binary.mul(normal(key, dims, wanted), factor))


def weibull_min(
    key: Any, scale: Any, concentration: Any, shape: Any = (), dtype: Any = None
) -> Any:
    """Samples of the Weibull distribution.

    Shapes: key[] -> float[shape]; parameters broadcast to the shape.
    Source: mirrors jax.random.weibull_min (0.10).
    """
    wanted = check_float("weibull_min", dtype)
    dims = canonicalize_shape(shape, "random.weibull_min shape")
    u = uniform(key, dims, wanted)
    factor = broadcast(convert.convert_element_type(scale, wanted), dims)
    exponent = broadcast(convert.convert_element_type(concentration, wanted), dims)
    base = unary.neg(unary.log1p(unary.neg(u)))
    return binary.mul(power.pow(base, binary.div(scalar(1, wanted), exponent)), factor)
