"""Resampling of images, and of arrays of any rank.  Mirrors jax.image.

Each new sample is a weighted mean of the old samples around it.
Samples stand in the middle of cells: sample i at i + ½.  Along each dimension the weights are a
matrix, old samples by new ones, and the array is multiplied by one such matrix after another.  A
kernel says how much a sample counts, by its distance from where the value is wanted.

Sources: R. Keys, Cubic convolution interpolation for digital image processing, 1981; C. Duchon,
Lanczos filtering in one and two dimensions, 1979.
"""

from __future__ import annotations

import enum
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import deferral, dtypes
from minijax.core.aval import Shape, aval_of, canonicalize_shape
from minijax.core.errors import error
from minijax.lax.dots import Precision, PrecisionLike
from minijax.lax.families import canonicalize_axis
from minijax.lax.slicing import slice_in_dim
from minijax.numpy.contraction import tensordot
from minijax.numpy.elementary import absolute, clip, floor, sin
from minijax.numpy.promotion import check_choice, one_program
from minijax.numpy.ranges import arange
from minijax.numpy.selection import take, where
from minijax.numpy.shaping import array_argument, repeat, transpose
from minijax.numpy.ufuncs import maximum, minimum
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array


class ResizeMethod(enum.Enum):
    """Methods of resampling.

    NEAREST takes the nearest sample, AREA the mean over the area that a new sample covers; the
    others weigh samples around by a kernel: a triangle (LINEAR), Keys's cubic polynomials (CUBIC;
    CUBIC_PYTORCH is steeper where it does not smooth), or windowed sines (LANCZOS3, LANCZOS5).

    Example:
        >>> minijax.image.ResizeMethod.from_string("bilinear").name
        'LINEAR'
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method of a name, such as "linear", "bilinear", "trilinear" or "triangle".

        Raises:
            ValueError: the name is not known.
        """
        check_choice("image.resize", "method", s, _NAMES)
        return _NAMES[s]


_NAMES = {
    "nearest": ResizeMethod.NEAREST,
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR),
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), ResizeMethod.CUBIC),
    **dict.fromkeys(("cubic-pytorch", "bicubic-pytorch"), ResizeMethod.CUBIC_PYTORCH),
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    "area": ResizeMethod.AREA,
}


class Kernel(NamedTuple):
    """A method's weights: where it smooths as it shrinks, and where it only interpolates."""

    smoothing: Callable[[Array], Array]
    interpolating: Callable[[Array], Array]


def _triangle(x: Array) -> Array:
    return maximum(0, 1 - absolute(x))


def _keys(a: float) -> Callable[[Array], Array]:
    """Keys's kernel: cubic on [0, 1] and [1, 2], with slope `a` at 1."""

    def weight(x: Array) -> Array:
        x = absolute(x)
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return where(x >= 2, 0, where(x >= 1, far, near))

    return weight


def _lanczos(radius: int) -> Callable[[Array], Array]:
    """`sinc(x) sinc(x / radius)` within the radius, 0 beyond."""

    def weight(x: Array) -> Array:
        x = absolute(x)
        is_centre = x <= 1e-3
        turn = math.pi * where(is_centre, 1, x)
        wave = radius * sin(turn) * sin(turn / radius) / (turn * turn)
        return where(x > radius, 0, where(is_centre, 1, wave))

    return weight


KERNELS = {
    ResizeMethod.LINEAR: Kernel(_triangle, _triangle),
    ResizeMethod.CUBIC: Kernel(_keys(-0.5), _keys(-0.5)),
    ResizeMethod.CUBIC_PYTORCH: Kernel(_keys(-0.5), _keys(-0.75)),
    ResizeMethod.LANCZOS3: Kernel(_lanczos(3), _lanczos(3)),
    ResizeMethod.LANCZOS5: Kernel(_lanczos(5), _lanczos(5)),
}


# Weights that sum up to less than this see nothing of the image.
_NOTHING = 1000 * float(np.finfo(np.float32).eps)


def _method(name: str, method: str | ResizeMethod) -> ResizeMethod:
    if isinstance(method, str):
        return ResizeMethod.from_string(method)
    if not isinstance(method, ResizeMethod):
        problem = "the method is a name or a ResizeMethod."
        fix = '"linear", or image.ResizeMethod.LINEAR'
        error(TypeError, f"image.{name}", problem, got=f"method: {method!r}", fix=fix)
    return method


def _new_shape(name: str, image: Array, shape: Shape) -> Shape:
    sizes = canonicalize_shape(shape, f"image.{name}")
    if len(sizes) != image.ndim:
        problem = "the shape needs a size for each dimension."
        got = {"image": image.aval, "shape": sizes}
        error(ValueError, f"image.{name}", problem, got=got, expected=f"{image.ndim} sizes")
    return sizes


def _weights(
    count: int,
    size: int,
    scale: Array | float,
    shift: Array | None,
    method: ResizeMethod,
    antialias: bool,
) -> Array:
    """The weights of `count` old samples in `size` new ones, each column with sum 1 or 0.

    New sample i stands at `(i + ½ - shift) / scale` among the old ones; no shift means 0.  Where
    an array shrinks, `antialias` makes kernels as wide as the new cells.
    """
    step = 1 / scale
    dtype = aval_of(step).dtype
    new = arange(size, dtype=dtype)
    place, start = (new + 0.5) * step, new * step
    if shift is not None:
        place, start = place - shift * step, start - shift * step
    place = place - 0.5
    old = arange(count, dtype=dtype)[:, None]
    if method == ResizeMethod.CUBIC_PYTORCH and not antialias:
        return _with_repeated_ends(KERNELS[method].interpolating, place, old)
    if method == ResizeMethod.AREA:
        found = maximum(0, minimum(start + step, old + 1) - maximum(start, old))
    elif antialias:
        width = max(step, 1.0) if isinstance(step, float) else maximum(step, 1)
        found = KERNELS[method].smoothing((place - old) / width)
    else:
        found = KERNELS[method].interpolating(place - old)
    total = found.sum(0)
    is_seen = (absolute(total) > _NOTHING) & (place >= -0.5) & (place <= count - 0.5)
    return where(is_seen, found / where(is_seen, total, 1), 0)


def _with_repeated_ends(kernel: Callable[[Array], Array], place: Array, old: Array) -> Array:
    """Weights of the four samples around, where the first and last ones go on for ever outside."""
    before = floor(place)
    found: Any = 0
    for step in (-1, 0, 1, 2):
        neighbour = before + step
        inside = clip(neighbour, 0, old.shape[0] - 1)
        found = found + where(old == inside, kernel(place - neighbour), 0)
    return found


def _resampled(
    image: Array,
    sizes: Sequence[int],
    dims: Sequence[int],
    scales: Sequence[Array | float],
    shifts: Sequence[Array | None],
    method: ResizeMethod,
    antialias: bool,
    precision: PrecisionLike,
) -> Any:
    image = image.astype(dtypes.to_inexact_dtype(image.dtype))
    steps = list(zip(dims, scales, shifts, strict=True))
    # What shrinks most comes first, so that there is less to do for the others.
    steps.sort(key=lambda step: sizes[step[0]] / max(image.shape[step[0]], 1))
    places = list(range(image.ndim))
    found = image
    for i, (d, scale, shift) in enumerate(steps):
        weights = _weights(image.shape[d], sizes[d], scale, shift, method, antialias)
        weights, at = weights.astype(image.dtype), places.index(d)
        places.pop(at)
        # The new dimension comes first or last; the first product is the faster with it in front.
        if i == 0:
            found = tensordot(weights, found, (0, at), precision=precision)
            places.insert(0, d)
        else:
            found = tensordot(found, weights, (at, 0), precision=precision)
            places.append(d)
    order = sorted(range(image.ndim), key=places.__getitem__)
    return transpose(found, order)


def _nearest(image: Array, sizes: Sequence[int], dims: Sequence[int]) -> Any:
    """The old samples nearest to new ones; of two equally near ones the later."""
    for d in dims:
        count, size = image.shape[d], sizes[d]
        if size % count == 0:
            image = repeat(image, size // count, d)
        elif size and count % size == 0:
            stride = count // size
            image = slice_in_dim(image, stride // 2, count, stride, d)
        else:
            places = (2 * np.arange(size, dtype=np.int64) + 1) * count // (2 * size)
            image = take(image, places.astype(np.int32), d, mode="clip")
    return image


@one_program(static=("sizes", "method", "antialias", "precision"))
def _resized(
    image: Array, sizes: Shape, method: ResizeMethod, antialias: bool, precision: PrecisionLike
) -> Any:
    dims = [d for d, size in enumerate(sizes) if size != image.shape[d]]
    if method == ResizeMethod.NEAREST:
        return _nearest(image, sizes, dims)
    scales = [max(sizes[d], 1) / image.shape[d] for d in dims]
    return _resampled(image, sizes, dims, scales, [None] * len(dims), method, antialias, precision)


def resize(
    image: ArrayLike,
    shape: Shape,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: PrecisionLike = Precision.HIGHEST,
) -> Array:
    """Resizes an array, such as an image, by resampling it.

    Args:
        image: the array.
        shape: the new sizes of all dimensions.
        method: "nearest", "linear" (also "bilinear", "trilinear", "triangle"), "cubic" (also
            "bicubic", "tricubic"), "cubic-pytorch" (also "bicubic-pytorch"), "lanczos3",
            "lanczos5" or "area"; or a `ResizeMethod`.
        antialias: whether to smooth along dimensions that shrink.
        precision: that of the products.

    Shapes:     image: T[s] -> U[shape].
    Dtypes:     integers and booleans become floats, except by "nearest".
    Derivative: linear.
    Source:     mirrors jax.image.resize (0.10); see `ResizeMethod` for the methods.

    Raises:
        ValueError: the shape has another rank, the method is not known, or there is nothing to
            take samples of.
        TypeError: `image` is not an array, `shape` is invalid, or the method is neither a name nor
            `ResizeMethod`.

    Example:
        >>> minijax.image.resize(np.float32([0, 4]), (4,), "linear")
        Array([0., 1., 3., 4.], dtype=float32)
    """
    image = array_argument("image.resize", image)
    sizes = _new_shape("resize", image, shape)
    if any(n == 0 < size for n, size in zip(image.shape, sizes, strict=True)):
        problem = "a dimension without samples cannot grow."
        error(ValueError, "image.resize", problem, got={"image": image.aval, "shape": sizes})
    return _resized(image, sizes, _method("resize", method), bool(antialias), precision)


@one_program(static=("sizes", "dims", "method", "antialias", "precision"))
def _moved(
    image: Array,
    scale: Array,
    translation: Array,
    sizes: Shape,
    dims: Shape,
    method: ResizeMethod,
    antialias: bool,
    precision: PrecisionLike,
) -> Any:
    dtype = dtypes.to_inexact_dtype(dtypes.lattice_result_type(scale, translation)[0])
    scale, translation = scale.astype(dtype), translation.astype(dtype)
    places = range(len(dims))
    scales, shifts = [scale[i] for i in places], [translation[i] for i in places]
    return _resampled(image, sizes, dims, scales, shifts, method, antialias, precision)


def scale_and_translate(
    image: ArrayLike,
    shape: Shape,
    spatial_dims: Sequence[int],
    scale: ArrayLike,
    translation: ArrayLike,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: PrecisionLike = Precision.HIGHEST,
) -> Array:
    """Scales and translates an array along some dimensions; samples from outside of it are 0.

    Position x of the array comes to `x * scale + translation`, where sample i is at i + ½.

    Args:
        image: the array.
        shape: the sizes of the result; only those of `spatial_dims` count.
        spatial_dims: the dimensions to scale.
        scale: the factor for each of them.
        translation: by how much to move along each of them.
        method: as for `resize`, except "nearest".
        antialias: whether to smooth along dimensions that shrink.
        precision: that of the products.

    Shapes:     image: T[s], scale: U[n], translation: U[n] -> V[shape].
    Dtypes:     integers and booleans become floats.
    Derivative: linear in the image; scale and translation have theirs too.
    Source:     mirrors jax.image.scale_and_translate (0.10); see `ResizeMethod` for the methods.

    Raises:
        ValueError: shapes do not fit, a dimension is out of range or named twice, or the method
            is "nearest" or not known.
        TypeError: an argument is not an array, a shape or a method.

    Example:
        >>> scale, shift = np.float32([1]), np.float32([1])
        >>> minijax.image.scale_and_translate(
        ...     np.float32([1, 2, 3]), (4,), (0,), scale, shift, "linear"
        ... )
        Array([0., 1., 2., 3.], dtype=float32)
    """
    name = "scale_and_translate"
    image = array_argument(f"image.{name}", image)
    sizes = _new_shape(name, image, shape)
    dims = tuple(
        canonicalize_axis(d, image.ndim, f"image.{name}") for d in map(operator.index, spatial_dims)
    )
    kind = _method(name, method)
    if kind == ResizeMethod.NEAREST:
        problem = "the nearest sample is not taken here."
        fix = 'image.resize(image, shape, "nearest")'
        error(ValueError, f"image.{name}", problem, got=f"method: {method!r}", fix=fix)
    scale, translation = (array_argument(f"image.{name}", x) for x in (scale, translation))
    if not scale.shape == translation.shape == (len(dims),) or len(set(dims)) != len(dims):
        problem = "there must be one factor and one distance for each of several dimensions."
        got = {"spatial_dims": dims, "scale": scale.aval, "translation": translation.aval}
        error(ValueError, f"image.{name}", problem, got=got)
    return _moved(image, scale, translation, sizes, dims, kind, bool(antialias), precision)


deferral.publish(globals(), ["ResizeMethod", "resize", "scale_and_translate"])
