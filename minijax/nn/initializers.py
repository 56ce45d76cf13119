"""Initializers of parameters: functions of a key, a shape and a dtype.

Input: how the parameters shall vary.  Output: `init(key, shape, dtype) -> array`, which is one
compiled program where nothing is traced.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, cast

import numpy as np

from minijax.core import dtypes, source
from minijax.core.aval import Shape, canonicalize_shape
from minijax.core.errors import error
from minijax.lax import creation, slicing
from minijax.lax import shape as lax_shape
from minijax.lax.unary import exp, log, sqrt
from minijax.numpy import shaping
from minijax.numpy.creation import dtype_argument
from minijax.numpy.promotion import check_choice, named, one_program
from minijax.random import continuous
from minijax.random.keys import FLOAT, INEXACT, as_keys, check_dtype
from minijax.runtime.annotations import ArrayLike, DTypeLike, ShapeLike, ShardingLike
from minijax.runtime.array import Array

Axes: TypeAlias = int | Sequence[int]
"""One dimension or several."""


class Initializer(Protocol):
    """What makes parameters: a function of a key, a shape and a dtype.

    Source:     mirrors jax.nn.initializers.Initializer (0.10).

    Example:
        >>> def tenth(key, shape, dtype=jnp.float32, out_sharding=None):
        ...     return jnp.full(shape, 0.1, dtype)
        >>> make: jax.nn.initializers.Initializer = tenth
        >>> make(jax.random.key(0), (2,))
        Array([0.1, 0.1], dtype=float32)
    """

    def __call__(
        self,
        key: ArrayLike,
        shape: ShapeLike,
        dtype: DTypeLike | None = None,
        out_sharding: ShardingLike = None,
    ) -> Array:
        """The parameters."""


_Draw = Callable[[ArrayLike, Shape, np.dtype[Any]], Array]
"""What makes parameters, given a shape that is a tuple and a dtype of NumPy."""


def _initializer(draw: _Draw, default: DTypeLike | None = None) -> Initializer:
    """Decorator: what draws parameters, as an initializer that has a dtype of its own."""

    @source.boundary
    def init(
        key: ArrayLike,
        shape: ShapeLike,
        dtype: DTypeLike | None = None,
        out_sharding: ShardingLike = None,
    ) -> Array:
        dims = canonicalize_shape(shape, "nn.initializers shape")
        chosen = default if dtype is None else dtype
        wanted = dtype_argument("nn.initializers", chosen, dtypes.default_float_dtype())
        return draw(key, dims, wanted)

    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(init, name, getattr(draw, name))
    return init


@_initializer
def zeros(key: ArrayLike, dims: Shape, dtype: np.dtype[Any]) -> Array:
    """All zeros.

    Source:     mirrors jax.nn.initializers.zeros (0.10).

    Example:
        >>> jax.nn.initializers.zeros(jax.random.key(0), (2, 3))
        Array([[0., 0., 0.],
               [0., 0., 0.]], dtype=float32)
    """
    return creation.full(dims, 0, dtype)


@_initializer
def ones(key: ArrayLike, dims: Shape, dtype: np.dtype[Any]) -> Array:
    """All ones.

    Source:     mirrors jax.nn.initializers.ones (0.10).

    Example:
        >>> jax.nn.initializers.ones(jax.random.key(0), (3,), jnp.bfloat16)
        Array([1, 1, 1], dtype=bfloat16)
    """
    return creation.full(dims, 1, dtype)


def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer:
    """One value everywhere, or an array repeated.

    Source:     mirrors jax.nn.initializers.constant (0.10).

    Example:
        >>> jax.nn.initializers.constant(jnp.arange(3))(jax.random.key(0), (2, 3))
        Array([[0., 1., 2.],
               [0., 1., 2.]], dtype=float32)
    """

    def init(key: ArrayLike, dims: Shape, dtype: np.dtype[Any]) -> Array:
        if np.ndim(value):
            return shaping.broadcast_to(creation.convert_element_type(value, dtype), dims)
        return creation.full(dims, value, dtype)

    return _initializer(init, dtype)


def _complex_truncated_samples(
    key: ArrayLike, radius: ArrayLike, dims: Shape, dtype: np.dtype[Any]
) -> Array:
    """Complex normal samples of absolute value below `radius`."""
    first, second = continuous.split_keys(key)
    radius = creation.convert_element_type(radius, dtype)
    mass = 1 - exp(-(radius * radius))
    below = 1 - mass * _complex_uniforms(first, dims, dtype)
    return sqrt(-log(below)) * _directions(second, dims, dtype)


def _complex_disc_samples(key: ArrayLike, dims: Shape, dtype: np.dtype[Any]) -> Array:
    """Complex samples, uniform on the disc of radius sqrt(2), whose variance is 1."""
    first, second = continuous.split_keys(key)
    radii = sqrt(2 * continuous.uniform_samples(first, dims, dtypes.real_dtype_of(dtype)))
    return creation.convert_element_type(radii, dtype) * _directions(second, dims, dtype)


def _complex_uniforms(key: ArrayLike, dims: Shape, dtype: np.dtype[Any]) -> Array:
    uniforms = continuous.uniform_samples(key, dims, dtypes.real_dtype_of(dtype))
    return creation.convert_element_type(uniforms, dtype)


def _directions(key: ArrayLike, dims: Shape, dtype: np.dtype[Any]) -> Array:
    """Complex samples, uniform on the unit circle."""
    return exp(1j * (2 * math.pi * _complex_uniforms(key, dims, dtype)))


def _uniform_samples(
    key: ArrayLike, low: ArrayLike, high: ArrayLike, dims: Shape, dtype: np.dtype[Any]
) -> Array:
    return continuous.uniform_samples(key, dims, dtype, low, high)


_INEXACT = INEXACT._replace(word="float")
_DRAWS: dict[str, Callable[..., Any]] = {
    "uniform": _uniform_samples,
    "normal": continuous.normal_samples,
    "truncated_normal": continuous.truncated_normal_samples,
    "complex_truncated_normal": _complex_truncated_samples,
    "complex_uniform": _complex_disc_samples,
}


def _scaled_samples(
    draw: str,
    key: ArrayLike,
    factor: ArrayLike,
    dims: Shape,
    dtype: np.dtype[Any],
    *bounds: ArrayLike,
) -> Array:
    keys, _ = as_keys(f"nn.initializers.{draw}", key)
    check_dtype(draw, dtype, FLOAT if draw in ("uniform", "truncated_normal") else _INEXACT)
    if not hasattr(factor, "aval"):
        factor = continuous.scalar(factor, dtype)
    return _scaled_program(keys, factor, bounds, draw, dims, dtype)


@one_program(static=("draw", "dims", "dtype"))
def _scaled_program(
    key: ArrayLike,
    factor: ArrayLike,
    bounds: tuple[ArrayLike, ...],
    draw: str,
    dims: Shape,
    dtype: np.dtype[Any],
) -> Array:
    factor = creation.convert_element_type(factor, dtype)
    return _DRAWS[draw](key, *bounds, dims, dtype) * factor


def uniform(scale: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Uniform on [0, scale).

    Source:     mirrors jax.nn.initializers.uniform (0.10).

    Example:
        >>> x = jax.nn.initializers.uniform(scale=10.0)(jax.random.key(0), (10_000,))
        >>> x.min().round(2), x.max().round(2)
        (Array(0., dtype=float32), Array(10., dtype=float32))
    """

    def init(key: ArrayLike, dims: Shape, dtype: np.dtype[Any]) -> Array:
        return _scaled_samples("uniform", key, scale, dims, dtype, 0, 1)

    return _initializer(init, dtype)


def normal(stddev: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Normal of a standard deviation.

    Source:     mirrors jax.nn.initializers.normal (0.10).

    Example:
        >>> x = jax.nn.initializers.normal(stddev=5.0)(jax.random.key(0), (100_000,))
        >>> x.std().round(1)
        Array(5., dtype=float32)
    """

    def init(key: ArrayLike, dims: Shape, dtype: np.dtype[Any]) -> Array:
        return _scaled_samples("normal", key, stddev, dims, dtype)

    return _initializer(init, dtype)


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

    def init(key: ArrayLike, dims: Shape, dtype: np.dtype[Any]) -> Array:
        return _scaled_samples("truncated_normal", key, stddev, dims, dtype, lower, upper)

    return _initializer(init, dtype)


def _as_axes(axis: Axes) -> tuple[int, ...]:
    return (axis,) if isinstance(axis, int) else tuple(axis)


def _fan(mode: str, shape: Shape, in_axis: Axes, out_axis: Axes, batch_axis: Axes) -> float:
    """How many inputs or outputs each unit has."""
    if len(shape) <= 1:
        problem = "needs shapes with at least two dimensions."
        got = str(shape)
        expected = "a dimension of inputs and one of outputs"
        error(ValueError, "nn.initializers.variance_scaling", problem, got=got, expected=expected)

    def size(axes: Axes) -> int:
        return math.prod(shape[a] for a in _as_axes(axes))

    field = math.prod(shape) / size(in_axis) / size(out_axis) / size(batch_axis)
    fan_in, fan_out = size(in_axis) * field, size(out_axis) * field
    fans = {
        "fan_in": fan_in,
        "fan_out": fan_out,
        "fan_avg": (fan_in + fan_out) / 2,
        "fan_geo_avg": math.sqrt(fan_in * fan_out),
    }
    check_choice("nn.initializers.variance_scaling", "mode", mode, fans)
    return fans[mode]


# Standard deviations of the standard normal distribution between -2 and 2, and of the complex one
# within the radius 2.
_TRUNCATED_STDDEV = 0.87962566103423978
_COMPLEX_TRUNCATED_STDDEV = 0.95311164380491208


def variance_scaling(
    scale: ArrayLike,
    mode: str,
    distribution: str,
    in_axis: Axes = -2,
    out_axis: Axes = -1,
    batch_axis: Axes = (),
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

    def init(key: ArrayLike, dims: Shape, dtype: np.dtype[Any]) -> Array:
        fan = _fan(mode, dims, in_axis, out_axis, batch_axis)
        variance = np.asarray(scale / fan, dtype)
        is_complex = dtypes.issubdtype(dtype, np.complexfloating)
        if distribution == "normal":
            return _scaled_samples("normal", key, np.sqrt(variance), dims, dtype)
        if distribution == "uniform" and is_complex:
            return _scaled_samples("complex_uniform", key, np.sqrt(variance), dims, dtype)
        if distribution == "uniform":
            return _scaled_samples("uniform", key, np.sqrt(3 * variance), dims, dtype, -1, 1)
        if distribution == "truncated_normal" and is_complex:
            stddev = np.sqrt(variance) / np.asarray(_COMPLEX_TRUNCATED_STDDEV, dtype)
            return _scaled_samples("complex_truncated_normal", key, stddev, dims, dtype, 2)
        if distribution == "truncated_normal":
            stddev = np.sqrt(variance) / np.asarray(_TRUNCATED_STDDEV, dtype)
            return _scaled_samples("truncated_normal", key, stddev, dims, dtype, -2, 2)
        problem = f"unknown distribution {distribution!r}."
        expected = "'truncated_normal', 'normal' or 'uniform'"
        error(ValueError, "nn.initializers.variance_scaling", problem, expected=expected)

    return _initializer(init, dtype)


def _named(
    scale: int, mode: str, distribution: str, name: str, paper: str
) -> Callable[..., Initializer]:
    def make(
        in_axis: Axes = -2,
        out_axis: Axes = -1,
        batch_axis: Axes = (),
        dtype: DTypeLike | None = None,
    ) -> Initializer:
        """{kind} of variance {scale} / {mode}.

        Source: {paper}; mirrors jax.nn.initializers.{name} (0.10).

        Example:
            >>> weights = jax.nn.initializers.{name}()(jax.random.key(0), (300, 100))
            >>> weights.shape, (weights.var() * {fan}).round(1)
            ((300, 100), Array({scale}., dtype=float32))
        """
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    # Of the weights in the example: 300 inputs, 100 outputs.
    fan = {"fan_in": 300, "fan_avg": 200}[mode]
    kind = distribution.replace("_", " ").capitalize()
    return named(make, name, kind=kind, scale=scale, mode=mode, paper=paper, fan=fan)


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


def orthogonal(
    scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """Orthogonal matrices times `scale`: what they multiply keeps its length, but for the scale.

    Args:
        scale: the factor.
        column_axis: the dimension of the columns; the others together are that of the rows.
        dtype: of the parameters: float32, float64, complex64 or complex128.

    Source: mirrors jax.nn.initializers.orthogonal (0.10); Saxe, McClelland and Ganguli, "Exact
        solutions to the nonlinear dynamics of learning in deep linear neural networks" (2014).

    Raises:
        IndexError: the initializer is called for a shape without such a dimension.
        ValueError: it is called for fewer than two dimensions.

    Example:
        >>> w = minijax.nn.initializers.orthogonal(2.0)(minijax.random.key(0), (3, 3))
        >>> bool(abs(w.T @ w - 4 * jnp.eye(3)).max() < 1e-5)
        True
    """

    def init(key: ArrayLike, dims: Shape, dtype: np.dtype[Any]) -> Array:
        name = "nn.initializers.orthogonal"
        check_dtype(name, dtype, INEXACT)
        if len(dims) < 2:
            error(ValueError, name, "needs two dimensions at least.", got={"shape": dims})
        if not -len(dims) <= column_axis < len(dims):
            problem = "there is no such dimension."
            error(IndexError, name, problem, got={"shape": dims, "column_axis": column_axis})
        keys, _ = as_keys(name, key)
        return _orthogonal(keys, scale, dims, column_axis % len(dims), dtype)

    return _initializer(init, dtype)


def delta_orthogonal(
    scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """Kernels of convolutions that apply an orthogonal matrix to each position.

    All is zero but the middle of the window.  Shapes of parameters are those of convolutions of
    one to three dimensions, with inputs and outputs last.

    Args:
        scale: the factor.
        column_axis: the dimension of the columns.
        dtype: of the parameters: float32, float64, complex64 or complex128.

    Source: mirrors jax.nn.initializers.delta_orthogonal (0.10); Xiao et al., "Dynamical isometry
        and a mean field theory of CNNs" (2018).

    Raises:
        ValueError: the initializer is called for a shape of other than 3, 4 or 5 dimensions, or
            with more inputs than outputs.

    Example:
        >>> w = minijax.nn.initializers.delta_orthogonal()(minijax.random.key(0), (3, 2, 2))
        >>> [round(float(abs(m).sum()), 1) > 0 for m in w]
        [False, True, False]
    """

    def init(key: ArrayLike, dims: Shape, dtype: np.dtype[Any]) -> Array:
        name = "nn.initializers.delta_orthogonal"
        check_dtype(name, dtype, INEXACT)
        if len(dims) not in (3, 4, 5):
            error(ValueError, name, "needs a shape of 3, 4 or 5 dimensions.", got={"shape": dims})
        if dims[-1] < dims[-2]:
            problem = "there must not be more inputs than outputs."
            error(ValueError, name, problem, got={"shape": dims})
        keys, _ = as_keys(name, key)
        return _delta_orthogonal(keys, scale, dims, column_axis % 2, dtype)

    return _initializer(init, dtype)


@one_program(static=("dims", "axis", "dtype"))
def _orthogonal(
    key: ArrayLike, scale: ArrayLike, dims: Shape, axis: int, dtype: np.dtype[Any]
) -> Array:
    others = (*dims[:axis], *dims[axis + 1 :])
    samples = continuous.orthogonal_samples(key, (), (math.prod(others), dims[axis]), dtype)
    samples = lax_shape.reshape(samples, (*others, dims[axis]))
    return cast(Array, scale) * shaping.moveaxis(samples, -1, axis)


@one_program(static=("dims", "axis", "dtype"))
def _delta_orthogonal(
    key: ArrayLike, scale: ArrayLike, dims: Shape, axis: int, dtype: np.dtype[Any]
) -> Array:
    matrix = _orthogonal(key, scale, dims[-2:], axis, dtype)
    middle = tuple((size - 1) // 2 for size in dims[:-2])
    block = lax_shape.reshape(matrix, (*(1,) * len(middle), *dims[-2:]))
    zeros = creation.full(dims, 0, dtype)
    return slicing.dynamic_update_slice(zeros, block, (*middle, 0, 0))


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
__dir__ = source.shown(globals())
