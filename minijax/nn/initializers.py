"""Initializers of parameters: functions of a key, a shape and a dtype.

Input: how the parameters shall vary.  Output: `init(key, shape, dtype) -> array`, which is one
compiled program where nothing is traced.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from minijax.core import deferral, dtypes
from minijax.core.aval import Shape, canonicalize_shape
from minijax.core.errors import error
from minijax.lax import binary, convert, creation, unary
from minijax.nn.initializer import Initializer
from minijax.numpy import arithmetic, shaping
from minijax.numpy.one_program import one_program
from minijax.random.distributions import (
    check_kind,
    normal_samples,
    scalar,
    split_keys,
    truncated_normal_samples,
    uniform_samples,
)
from minijax.random.keys import as_keys
from minijax.runtime.annotations import ArrayLike, DTypeLike, ShapeLike, ShardingLike
from minijax.runtime.array import Array

if TYPE_CHECKING:
    from minijax.nn.orthogonality import delta_orthogonal, orthogonal


def _dtype(dtype: Any, default: Any) -> np.dtype[Any]:
    chosen = default if dtype is None else dtype
    if chosen is None:
        return dtypes.default_float_dtype()
    wanted: np.dtype[Any] = dtypes.canonicalize_user_dtype(chosen, "nn.initializers")
    return wanted


def zeros(
    key: ArrayLike,
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """All zeros.

    Source:     mirrors jax.nn.initializers.zeros (0.10).

    Example:
        >>> jax.nn.initializers.zeros(jax.random.key(0), (2, 3))
        Array([[0., 0., 0.],
               [0., 0., 0.]], dtype=float32)
    """
    return creation.full(canonicalize_shape(shape), 0, _dtype(dtype, None))


def ones(
    key: ArrayLike,
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """All ones.

    Source:     mirrors jax.nn.initializers.ones (0.10).

    Example:
        >>> jax.nn.initializers.ones(jax.random.key(0), (3,), jnp.bfloat16)
        Array([1, 1, 1], dtype=bfloat16)
    """
    return creation.full(canonicalize_shape(shape), 1, _dtype(dtype, None))


def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer:
    """One value everywhere, or an array repeated.

    Source:     mirrors jax.nn.initializers.constant (0.10).

    Example:
        >>> jax.nn.initializers.constant(jnp.arange(3))(jax.random.key(0), (2, 3))
        Array([[0., 1., 2.],
               [0., 1., 2.]], dtype=float32)
    """
    default = dtype

    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
        dims, wanted = canonicalize_shape(shape), _dtype(dtype, default)
        if np.ndim(value):
            return shaping.broadcast_to(convert.convert_element_type(value, wanted), dims)
        return creation.full(dims, value, wanted)

    return init


def _complex_truncated_samples(key: Any, radius: Any, dims: Shape, dtype: Any) -> Any:
    """Complex normal samples of absolute value below `radius`."""
    first, second = split_keys(key)
    radius = convert.convert_element_type(radius, dtype)
    one = scalar(1, dtype)
    mass = binary.sub(one, unary.exp(unary.neg(binary.mul(radius, radius))))
    below = binary.sub(one, binary.mul(mass, _complex_uniforms(first, dims, dtype)))
    return binary.mul(unary.sqrt(unary.neg(unary.log(below))), _directions(second, dims, dtype))


def _complex_disc_samples(key: Any, dims: Shape, dtype: Any) -> Any:
    """Complex samples, uniform on the disc of radius sqrt(2), whose variance is 1."""
    first, second = split_keys(key)
    part = dtypes.real_dtype_of(dtype)
    uniforms = uniform_samples(first, scalar(0, part), scalar(1, part), dims, part)
    radii = unary.sqrt(binary.mul(scalar(2, part), uniforms))
    radii = convert.convert_element_type(radii, dtype)
    return binary.mul(radii, _directions(second, dims, dtype))


def _complex_uniforms(key: Any, dims: Shape, dtype: Any) -> Any:
    part = dtypes.real_dtype_of(dtype)
    uniforms = uniform_samples(key, scalar(0, part), scalar(1, part), dims, part)
    return convert.convert_element_type(uniforms, dtype)


def _directions(key: Any, dims: Shape, dtype: Any) -> Any:
    """Complex samples, uniform on the unit circle."""
    angles = binary.mul(scalar(2 * np.pi, dtype), _complex_uniforms(key, dims, dtype))
    return unary.exp(binary.mul(scalar(1j, dtype), angles))


_DRAWS: dict[str, Callable[..., Any]] = {
    "uniform": uniform_samples,
    "normal": normal_samples,
    "truncated_normal": truncated_normal_samples,
    "complex_truncated_normal": _complex_truncated_samples,
    "complex_uniform": _complex_disc_samples,
}


def _scaled_samples(
    draw: str, key: Any, factor: Any, shape: Any, dtype: np.dtype[Any], *bounds: Any
) -> Any:
    keys, _ = as_keys(f"nn.initializers.{draw}", key)
    kind = np.floating if draw in ("uniform", "truncated_normal") else np.inexact
    check_kind(draw, dtype, kind, "float", dtype)
    if not hasattr(factor, "aval"):
        factor = np.asarray(factor).astype(dtype)[()]
    dims = canonicalize_shape(shape, "nn.initializers shape")
    return _scaled_program(keys, factor, bounds, draw, dims, dtype)


@one_program(static=("draw", "dims", "dtype"))
def _scaled_program(
    key: Any, factor: Any, bounds: tuple[Any, ...], draw: str, dims: Shape, dtype: Any
) -> Any:
    factor = convert.convert_element_type(factor, dtype)
    return arithmetic.multiply(_DRAWS[draw](key, *bounds, dims, dtype), factor)


def uniform(scale: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Uniform on [0, scale).

    Source:     mirrors jax.nn.initializers.uniform (0.10).

    Example:
        >>> x = jax.nn.initializers.uniform(scale=10.0)(jax.random.key(0), (10_000,))
        >>> x.min().round(2), x.max().round(2)
        (Array(0., dtype=float32), Array(10., dtype=float32))
    """
    default = dtype

    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
        return _scaled_samples("uniform", key, scale, shape, _dtype(dtype, default), 0, 1)

    return init


def normal(stddev: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Normal of a standard deviation.

    Source:     mirrors jax.nn.initializers.normal (0.10).

    Example:
        >>> x = jax.nn.initializers.normal(stddev=5.0)(jax.random.key(0), (100_000,))
        >>> x.std().round(1)
        Array(5., dtype=float32)
    """
    default = dtype

    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
        return _scaled_samples("normal", key, stddev, shape, _dtype(dtype, default))

    return init


def truncated_normal(
    stddev: ArrayLike = 1e-2,
    dtype: DTypeLike | None = None,
    lower: ArrayLike = -2.0,
    upper: ArrayLike = 2.0,
) -> Initializer:
    """Normal, cut off at `lower` and `upper` standard deviations.

    Source: mirrors jax.nn.initializers.truncated_normal (0.10).

    Example:
        >>> init = jax.nn.initializers.truncated_normal(stddev=1.0, lower=-1.0, upper=3.0)
        >>> x = init(jax.random.key(0), (10_000,))
        >>> x.min().round(1), x.max().round(1)
        (Array(-1., dtype=float32), Array(3., dtype=float32))
    """
    default = dtype

    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
        wanted = _dtype(dtype, default)
        return _scaled_samples("truncated_normal", key, stddev, shape, wanted, lower, upper)

    return init


def _as_axes(axis: int | Sequence[int]) -> tuple[int, ...]:
    return (axis,) if isinstance(axis, int) else tuple(axis)


def _fan(mode: str, shape: Shape, in_axis: Any, out_axis: Any, batch_axis: Any) -> float:
    """How many inputs or outputs each unit has."""
    if len(shape) <= 1:
        error(
            ValueError,
            "nn.initializers.variance_scaling",
            "needs shapes with at least two dimensions.",
            got=str(shape),
            expected="a dimension of inputs and one of outputs",
        )

    def size(axes: Any) -> int:
        return math.prod(shape[a] for a in _as_axes(axes))

    field = math.prod(shape) / size(in_axis) / size(out_axis) / size(batch_axis)
    fan_in, fan_out = size(in_axis) * field, size(out_axis) * field
    fans = {
        "fan_in": fan_in,
        "fan_out": fan_out,
        "fan_avg": (fan_in + fan_out) / 2,
        "fan_geo_avg": math.sqrt(fan_in * fan_out),
    }
    if mode not in fans:
        error(
            ValueError,
            "nn.initializers.variance_scaling",
            f"unknown mode {mode!r}.",
            expected="one of " + ", ".join(fans),
        )
    return fans[mode]


# Standard deviations of the standard normal distribution between -2 and 2, and of the complex one
# within the radius 2.
_TRUNCATED_STDDEV = 0.87962566103423978
_COMPLEX_TRUNCATED_STDDEV = 0.95311164380491208


def variance_scaling(
    scale: ArrayLike,
    mode: str,
    distribution: str,
    in_axis: int | Sequence[int] = -2,
    out_axis: int | Sequence[int] = -1,
    batch_axis: int | Sequence[int] = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """Samples of variance scale / fan, where fan counts inputs, outputs, or their mean.

    Args:
        scale: the numerator.
        mode: "fan_in", "fan_out", "fan_avg" or "fan_geo_avg".
        distribution: "truncated_normal", "normal" or "uniform".
        in_axis: dimensions of inputs.
        out_axis: dimensions of outputs.
        batch_axis: dimensions that count for neither.
        dtype: of the parameters, float or complex.

    Source: mirrors jax.nn.initializers.variance_scaling (0.10).

    Raises:
        ValueError: the mode or the distribution is not known.

    Example:
        >>> init = jax.nn.initializers.variance_scaling(1.0, "fan_in", "normal")
        >>> weights = init(jax.random.key(0), (400, 100))
        >>> (weights.var() * 400).round(1)
        Array(1., dtype=float32)
    """
    default = dtype

    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
        dims, wanted = canonicalize_shape(shape), _dtype(dtype, default)
        fan = _fan(mode, dims, in_axis, out_axis, batch_axis)
        variance = np.asarray(scale / fan, wanted)
        is_complex = dtypes.issubdtype(wanted, np.complexfloating)
        if distribution == "normal":
            return _scaled_samples("normal", key, np.sqrt(variance), dims, wanted)
        if distribution == "uniform" and is_complex:
            return _scaled_samples("complex_uniform", key, np.sqrt(variance), dims, wanted)
        if distribution == "uniform":
            return _scaled_samples("uniform", key, np.sqrt(3 * variance), dims, wanted, -1, 1)
        if distribution == "truncated_normal" and is_complex:
            stddev = np.sqrt(variance) / np.asarray(_COMPLEX_TRUNCATED_STDDEV, wanted)
            return _scaled_samples("complex_truncated_normal", key, stddev, dims, wanted, 2)
        if distribution == "truncated_normal":
            stddev = np.sqrt(variance) / np.asarray(_TRUNCATED_STDDEV, wanted)
            return _scaled_samples("truncated_normal", key, stddev, dims, wanted, -2, 2)
        error(
            ValueError,
            "nn.initializers.variance_scaling",
            f"unknown distribution {distribution!r}.",
            expected="'truncated_normal', 'normal' or 'uniform'",
        )

    return init


def _named(scale: int, mode: str, distribution: str, name: str, source: str) -> Any:
    def make(
        in_axis: int | Sequence[int] = -2,
        out_axis: int | Sequence[int] = -1,
        batch_axis: int | Sequence[int] = (),
        dtype: Any = None,
    ) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    # Of the weights in the example: 300 inputs, 100 outputs.
    fan = {"fan_in": 300, "fan_avg": 200}[mode]
    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"""{distribution.replace("_", " ").capitalize()} of variance {scale} / {mode}.

    Source: {source}; mirrors jax.nn.initializers.{name} (0.10).

    Example:
        >>> weights = jax.nn.initializers.{name}()(jax.random.key(0), (300, 100))
        >>> weights.shape, (weights.var() * {fan}).round(1)
        ((300, 100), Array({scale}., dtype=float32))
    """
    return make


_GLOROT = "Glorot and Bengio (2010)"
_LECUN = "LeCun et al. (1998)"
_HE = "He et al. (2015)"
glorot_uniform = _named(1, "fan_avg", "uniform", "glorot_uniform", _GLOROT)
glorot_normal = _named(1, "fan_avg", "truncated_normal", "glorot_normal", _GLOROT)
lecun_uniform = _named(1, "fan_in", "uniform", "lecun_uniform", _LECUN)
lecun_normal = _named(1, "fan_in", "truncated_normal", "lecun_normal", _LECUN)
he_uniform = _named(2, "fan_in", "uniform", "he_uniform", _HE)
he_normal = _named(2, "fan_in", "truncated_normal", "he_normal", _HE)
xavier_uniform = glorot_uniform
xavier_normal = glorot_normal
kaiming_uniform = he_uniform
kaiming_normal = he_normal


__getattr__ = deferral.attributes(
    __name__, names={"nn.orthogonality": "delta_orthogonal orthogonal"}
)


__all__ = [
    "Initializer",
    "constant",
    "delta_orthogonal",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "kaiming_normal",
    "kaiming_uniform",
    "lecun_normal",
    "lecun_uniform",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "variance_scaling",
    "xavier_normal",
    "xavier_uniform",
    "zeros",
]


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
