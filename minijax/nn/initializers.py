"""Initializers of parameters: functions of a key, a shape and a dtype.

Input: how the parameters shall vary.  Output: `init(key, shape, dtype) -> array`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import Shape, canonicalize_shape
from minijax.core.errors import message
from minijax.lax import binary, creation
from minijax.numpy.one_program import one_program
from minijax.random import distributions
from minijax.random.keys import as_keys


class Initializer(Protocol):
    """What makes parameters: a function of a key, a shape and a dtype."""

    def __call__(self, key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
        """The parameters."""


def _dtype(dtype: Any, default: Any) -> np.dtype[Any]:
    chosen = default if dtype is None else dtype
    if chosen is None:
        return dtypes.default_float_dtype()
    wanted: np.dtype[Any] = dtypes.canonicalize_user_dtype(chosen, "nn.initializers")
    return wanted


@one_program(static=("distribution", "dims", "dtype"))
def _samples(
    key: Any, factor: Any, bounds: tuple[Any, ...], distribution: str, dims: Shape, dtype: Any
) -> Any:
    """Samples times a factor, which may be of another dtype."""
    draw = getattr(distributions, f"{distribution}_samples")
    return binary.mul(draw(key, *bounds, dims, dtype), factor)


def _scaled_samples(
    distribution: str, key: Any, factor: Any, shape: Any, dtype: np.dtype[Any], *bounds: Any
) -> Any:
    keys, _ = as_keys(f"nn.initializers.{distribution}", key)
    dims = canonicalize_shape(shape, "nn.initializers shape")
    return _samples(keys, np.asarray(factor).astype(dtype)[()], bounds, distribution, dims, dtype)


def zeros(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
    """All zeros.  Mirrors jax.nn.initializers.zeros (0.10)."""
    return creation.full(canonicalize_shape(shape), 0, _dtype(dtype, None))


def ones(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
    """All ones.  Mirrors jax.nn.initializers.ones (0.10)."""
    return creation.full(canonicalize_shape(shape), 1, _dtype(dtype, None))


def constant(value: Any, dtype: Any = None) -> Initializer:
    """One value everywhere.  Mirrors jax.nn.initializers.constant (0.10)."""
    default = dtype

    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
        return creation.full(canonicalize_shape(shape), value, _dtype(dtype, default))

    return init


def uniform(scale: Any = 1e-2, dtype: Any = None) -> Initializer:
    """Uniform on [0, scale).  Mirrors jax.nn.initializers.uniform (0.10)."""
    default = dtype

    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
        return _scaled_samples("uniform", key, scale, shape, _dtype(dtype, default), 0, 1)

    return init


def normal(stddev: Any = 1e-2, dtype: Any = None) -> Initializer:
    """Normal of a standard deviation.  Mirrors jax.nn.initializers.normal (0.10)."""
    default = dtype

    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
        return _scaled_samples("normal", key, stddev, shape, _dtype(dtype, default))

    return init


# The standard deviation of the standard normal distribution between -2 and 2.
_TRUNCATED_STDDEV = 0.87962566103423978


def truncated_normal(
    stddev: Any = 1e-2, dtype: Any = None, lower: Any = -2.0, upper: Any = 2.0
) -> Initializer:
    """Normal, cut off at `lower` and `upper` standard deviations.

    Source: mirrors jax.nn.initializers.truncated_normal (0.10).
    """
    default = dtype

    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
        wanted = _dtype(dtype, default)
        return _scaled_samples("truncated_normal", key, stddev, shape, wanted, lower, upper)

    return init


def _as_axes(axis: int | Sequence[int]) -> tuple[int, ...]:
    return (axis,) if isinstance(axis, int) else tuple(axis)


def _fans(
    shape: Sequence[int], in_axis: Any, out_axis: Any, batch_axis: Any
) -> tuple[float, float]:
    """How many inputs and outputs each unit has."""
    if len(shape) <= 1:
        raise ValueError(
            message(
                "nn.initializers.variance_scaling",
                "needs shapes with at least two dimensions.",
                got=str(tuple(shape)),
                expected="a dimension of inputs and one of outputs",
            )
        )

    def size(axes: Any) -> int:
        return math.prod(shape[a] for a in _as_axes(axes))

    field = math.prod(shape) / size(in_axis) / size(out_axis) / size(batch_axis)
    return size(in_axis) * field, size(out_axis) * field


def variance_scaling(
    scale: Any,
    mode: str,
    distribution: str,
    in_axis: int | Sequence[int] = -2,
    out_axis: int | Sequence[int] = -1,
    batch_axis: int | Sequence[int] = (),
    dtype: Any = None,
) -> Initializer:
    """Samples of variance scale / fan, where fan counts inputs, outputs, or their mean.

    Args:
        scale: the numerator.
        mode: "fan_in", "fan_out", "fan_avg" or "fan_geo_avg".
        distribution: "truncated_normal", "normal" or "uniform".
        in_axis: dimensions of inputs.
        out_axis: dimensions of outputs.
        batch_axis: dimensions that count for neither.
        dtype: of the parameters.

    Source: mirrors jax.nn.initializers.variance_scaling (0.10).

    Raises:
        ValueError: the mode or the distribution is not known.
    """
    default = dtype

    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
        dims = canonicalize_shape(shape)
        wanted = _dtype(dtype, default)
        fan_in, fan_out = _fans(dims, in_axis, out_axis, batch_axis)
        fans = {
            "fan_in": fan_in,
            "fan_out": fan_out,
            "fan_avg": (fan_in + fan_out) / 2,
            "fan_geo_avg": math.sqrt(fan_in * fan_out),
        }
        if mode not in fans:
            raise ValueError(
                message(
                    "nn.initializers.variance_scaling",
                    f"unknown mode {mode!r}.",
                    expected="one of " + ", ".join(fans),
                )
            )
        variance = np.asarray(scale / fans[mode], wanted)
        if distribution == "truncated_normal":
            stddev = np.sqrt(variance) / np.asarray(_TRUNCATED_STDDEV, wanted)
            return _scaled_samples("truncated_normal", key, stddev, dims, wanted, -2, 2)
        if distribution == "normal":
            return _scaled_samples("normal", key, np.sqrt(variance), dims, wanted)
        if distribution == "uniform":
            return _scaled_samples("uniform", key, np.sqrt(3 * variance), dims, wanted, -1, 1)
        raise ValueError(
            message(
                "nn.initializers.variance_scaling",
                f"unknown distribution {distribution!r}.",
                expected="'truncated_normal', 'normal' or 'uniform'",
            )
        )

    return init


def _named(scale: float, mode: str, distribution: str, name: str, source: str) -> Any:
    def make(
        in_axis: int | Sequence[int] = -2,
        out_axis: int | Sequence[int] = -1,
        batch_axis: int | Sequence[int] = (),
        dtype: Any = None,
    ) -> Initializer:
        return variance_scaling(
            scale, mode, distribution, in_axis, out_axis, batch_axis, dtype
        )

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"""{distribution.replace("_", " ").capitalize()} of variance {scale} / {mode}.

    Source: {source}; mirrors jax.nn.initializers.{name} (0.10).
    """
    return make


_GLOROT = "Glorot and Bengio (2010)"
_LECUN = "LeCun et al. (1998)"
_HE = "He et al. (2015)"
glorot_uniform = _named(1.0, "fan_avg", "uniform", "glorot_uniform", _GLOROT)
glorot_normal = _named(1.0, "fan_avg", "truncated_normal", "glorot_normal", _GLOROT)
lecun_uniform = _named(1.0, "fan_in", "uniform", "lecun_uniform", _LECUN)
lecun_normal = _named(1.0, "fan_in", "truncated_normal", "lecun_normal", _LECUN)
he_uniform = _named(2.0, "fan_in", "uniform", "he_uniform", _HE)
he_normal = _named(2.0, "fan_in", "truncated_normal", "he_normal", _HE)
xavier_uniform = glorot_uniform
xavier_normal = glorot_normal
kaiming_uniform = he_uniform
kaiming_normal = he_normal
