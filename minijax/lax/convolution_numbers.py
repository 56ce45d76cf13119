"""The arithmetic of convolutions: orders of dimensions, windows, padding, sizes, and checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import Shape, ShapedArray, check_size
from minijax.core.errors import error
from minijax.lax import families
from minijax.lax.dots import CanonicalPrecision

Padding = tuple[tuple[int, int], ...]


class ConvDimensionNumbers(NamedTuple):
    """The positions of batch, feature and spatial dimensions in a convolution.

    Source:     mirrors jax.lax (0.10).

    Attributes:
        lhs_spec: batch, features, then spatial dimensions of the image.
        rhs_spec: output features, input features, then spatial dimensions of the kernel.
        out_spec: batch, features, then spatial dimensions of the result.

    Example:
        >>> lax.ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2)).lhs_spec
        (0, 3, 1, 2)
    """

    lhs_spec: Shape
    rhs_spec: Shape
    out_spec: Shape


ConvGeneralDilatedDimensionNumbers = tuple[str, str, str] | ConvDimensionNumbers | None


class Window(NamedTuple):
    """How a kernel moves over an image, in each spatial dimension."""

    strides: Shape
    padding: Padding
    image_dilation: Shape
    kernel_dilation: Shape

    def result_sizes(self, image: Sequence[int], kernel: Sequence[int]) -> list[int]:
        """The spatial sizes of the result."""
        sizes = []
        for n, k, s, (a, b), di, dk in zip(image, kernel, *self, strict=True):
            room = dilated(n, di) + a + b - dilated(k, dk)
            sizes.append(room // s + 1 if room >= 0 else 0)
        return sizes

    def padding_of_image_cotangent(
        self, image: Sequence[int], kernel: Sequence[int], result: Sequence[int]
    ) -> Padding:
        """The padding with which the convolution for the image's cotangent has its size."""
        pads = []
        for n, k, m, s, (a, _), di, dk in zip(image, kernel, result, *self, strict=True):
            reach = dilated(k, dk)
            before = reach - 1 - a
            after = dilated(n, di) - 1 - dilated(m, s) - before + reach
            pads.append((before, after))
        return tuple(pads)

    def padding_of_kernel_cotangent(
        self, image: Sequence[int], kernel: Sequence[int], result: Sequence[int]
    ) -> Padding:
        """The padding with which the convolution for the kernel's cotangent has its size."""
        pads = []
        for n, k, m, s, (a, _), di, dk in zip(image, kernel, result, *self, strict=True):
            pads.append((a, dilated(k, dk) - 1 + dilated(m, s) - dilated(n, di) - a))
        return tuple(pads)


class ConvParams(NamedTuple):
    """The parameters of a convolution, as its rules pass them on."""

    window_strides: Shape
    padding: Padding
    lhs_dilation: Shape
    rhs_dilation: Shape
    dimension_numbers: ConvDimensionNumbers
    feature_group_count: int
    batch_group_count: int
    precision: CanonicalPrecision
    preferred_element_type: Any
    out_sharding: Any = None

    @property
    def window(self) -> Window:
        """Strides, padding and dilations."""
        return Window(self.window_strides, self.padding, self.lhs_dilation, self.rhs_dilation)


def dilated(size: int, dilation: int) -> int:
    """The extent of `size` elements that stand `dilation` apart."""
    return 0 if size == 0 else (size - 1) * dilation + 1


def window_of(
    strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    image_dilation: Sequence[int] | None,
    kernel_dilation: Sequence[int] | None,
    image: Sequence[int],
    kernel: Sequence[int],
) -> Window:
    """The window of a convolution with these arguments, for spatial sizes of image and kernel.

    Raises:
        ValueError: a count is wrong, a stride is not positive, padding is none of the ways to
            write it, or a name for it does not say enough.
        TypeError: a dilation is not positive, or there are too many or too few pads.
    """
    name = "lax.conv_general_dilated"
    ones = (1,) * len(image)
    steps = families.int_tuple(strides, name, "window_strides")
    spread = ones if image_dilation is None else tuple(image_dilation)
    reach = ones if kernel_dilation is None else tuple(kernel_dilation)
    facts = {"window_strides": steps, "lhs_dilation": spread, "rhs_dilation": reach}
    if any(len(values) != len(image) for values in facts.values()):
        problem = "strides and dilations need one entry for each spatial dimension."
        fix = None
        if len(image) < len(steps):
            fix = "x[None, None], where the dimensions of batch and channels are missing"
        error(ValueError, name, problem, got=facts, expected=f"{len(image)} of each", fix=fix)
    if any(s < 1 for s in steps):
        error(ValueError, name, "strides must be positive.", got=facts)
    if any(d < 1 for d in (*spread, *reach)):
        error(TypeError, name, "dilations must be positive.", got=facts)
    if isinstance(padding, str) and set(spread) > {1}:
        problem = "named padding does not say how an image with lhs_dilation is padded."
        fix = "give numbers, or use lax.conv_transpose"
        error(ValueError, name, problem, got={"padding": padding, **facts}, fix=fix)
    return Window(steps, _padding(padding, image, kernel, steps, reach), spread, reach)


def _padding(
    padding: str | Sequence[tuple[int, int]],
    image: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    kernel_dilation: Sequence[int],
) -> Padding:
    """The padding of each spatial dimension, from numbers or from the name of a kind."""
    if isinstance(padding, str):
        reaches = [dilated(k, d) for k, d in zip(kernel, kernel_dilation, strict=True)]
        return tuple(families.padtype_to_pads(image, reaches, strides, padding))
    try:
        pads = tuple((int(a), int(b)) for a, b in padding)
    except (TypeError, ValueError):
        problem = "padding must be a name or a pair for each spatial dimension."
        got = repr(padding)
        expected = "'SAME', 'SAME_LOWER', 'VALID', or [(before, after), …]"
        error(
            ValueError, "lax.conv_general_dilated", problem, got=got, expected=expected, cause=None
        )
    if len(pads) != len(image):
        problem = "padding needs a pair for each spatial dimension."
        expected = f"{len(image)} pairs"
        error(TypeError, "lax.conv_general_dilated", problem, got=repr(padding), expected=expected)
    return pads


def transposed_padding(kernel: int, stride: int, padding: str) -> tuple[int, int]:
    """Padding with which an image grows by the stride ("SAME"), or by all that it touches.

    Raises:
        ValueError: the name is not known.
    """
    if padding.upper() == "SAME":
        total = kernel + stride - 2
        before = kernel - 1 if stride > kernel - 1 else -(-total // 2)
    elif padding.upper() == "VALID":
        total = kernel + stride - 2 + max(kernel - stride, 0)
        before = kernel - 1
    else:
        problem = "unknown kind of padding."
        expected = "'SAME', 'VALID', or [(before, after), …]"
        error(ValueError, "lax.conv_transpose", problem, got=repr(padding), expected=expected)
    return before, total - before


def check_convolution(lhs: ShapedArray, rhs: ShapedArray, p: ConvParams) -> None:
    """Refuses an image and a kernel that do not fit together.

    Raises:
        TypeError: dtypes differ, or the preferred type cannot hold the results.
        ValueError: features, groups or padding do not fit.
    """
    name = "lax.conv_general_dilated"
    facts = {"lhs": lhs, "rhs": rhs, "dimension_numbers": p.dimension_numbers}
    if lhs.dtype != rhs.dtype:
        error(TypeError, name, "operands have different dtypes.", got=facts)
    _check_preferred_type(lhs.dtype, p.preferred_element_type)
    lhs_spec, rhs_spec, _ = p.dimension_numbers
    images, features, *sizes = (lhs.shape[d] for d in lhs_spec)
    outputs, inputs, *window = (rhs.shape[d] for d in rhs_spec)
    groups, batches = p.feature_group_count, p.batch_group_count
    padded = [
        n + sum(pads)
        for n, pads in zip(map(dilated, sizes, p.lhs_dilation), p.padding, strict=True)
    ]
    reached = map(max, padded, map(dilated, window, p.rhs_dilation), p.window_strides)
    check_size(name, (max(images, outputs), features, *reached), lhs.dtype)
    problem = None
    if groups < 1 or batches < 1 or (groups > 1 and batches > 1):
        problem = "group counts must be positive, and one of them 1."
    elif features != inputs * groups:
        problem = (
            f"the image's {features} features are not the kernel's {inputs} input features "
            f"times feature_group_count {groups}."
        )
    elif outputs % groups or outputs % batches or images % batches:
        problem = "group counts must divide the kernel's output features and the batch."
    elif 0 in window:
        problem = "the kernel's window has no elements."
    elif any(n < 0 for n in padded):
        problem = f"the padding {p.padding} cuts off more than there is."
    if problem:
        error(ValueError, name, problem, got=facts)


def _check_preferred_type(dtype: np.dtype[Any], preferred: Any) -> None:
    if preferred is None:
        return
    kinds = (np.integer, np.floating, np.complexfloating)
    kind = next((i for i, k in enumerate(kinds) if dtypes.issubdtype(dtype, k)), 0)
    accepted = (np.integer, np.floating) if kind == 0 else (kinds[kind],)
    is_narrower = dtypes.bit_width(preferred) < dtypes.bit_width(dtype)
    if is_narrower or not any(dtypes.issubdtype(preferred, k) for k in accepted):
        problem = "preferred_element_type does not hold the results."
        got = f"preferred_element_type {preferred} for operands of dtype {dtype}"
        expected = "a dtype of the same kind, or a float for integers; and not narrower"
        error(TypeError, "lax.conv_general_dilated", problem, got=got, expected=expected)


def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: object
) -> ConvDimensionNumbers:
    """Converts dimension layouts that letters give, such as NHWC, to dimension numbers.

    Raises:
        TypeError: ranks differ, the letters do not fit the shapes or each other, or it is none of
            the ways to write dimension numbers.

    Example:
        >>> lax.conv_dimension_numbers((8, 28, 28, 3), (5, 5, 3, 16), ("NHWC", "HWIO", "NHWC"))
        ConvDimensionNumbers(lhs_spec=(0, 3, 1, 2), rhs_spec=(3, 2, 0, 1), out_spec=(0, 3, 1, 2))
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    rank = len(lhs_shape)
    if len(rhs_shape) != rank or rank < 2:
        problem = "image and kernel must have the same rank, of at least 2."
        got: Any = {"lhs": tuple(lhs_shape), "rhs": tuple(rhs_shape)}
        error(TypeError, "lax.conv_dimension_numbers", problem, got=got)
    if dimension_numbers is None:
        spec: Shape = tuple(range(rank))
        return ConvDimensionNumbers(spec, spec, spec)
    if not isinstance(dimension_numbers, (tuple, list)) or len(dimension_numbers) != 3:
        problem = "not a way to write dimension numbers."
        got = repr(dimension_numbers)
        expected = "three strings, such as ('NHWC', 'HWIO', 'NHWC'), or None"
        error(TypeError, "lax.conv_dimension_numbers", problem, got=got, expected=expected)
    if any(len(text) != rank for text in dimension_numbers):
        problem = "there must be one letter for each dimension."
        got = {"lhs": tuple(lhs_shape), "dimension_numbers": dimension_numbers}
        error(TypeError, "lax.conv_dimension_numbers", problem, got=got)
    return ConvDimensionNumbers(*conv_general_permutations(dimension_numbers))


def conv_general_permutations(dimension_numbers: Sequence[str]) -> tuple[Shape, ...]:
    """The dimension numbers of three layout strings: batch or output, feature, then spatial.

    Raises:
        TypeError: the strings do not fit each other.

    Example:
        >>> lax.conv_general_permutations(("NHWC", "HWIO", "NHWC"))
        ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    """
    lhs, rhs, out = dimension_numbers
    space = "".join(letter for letter in rhs if letter not in "OI")
    specs = []
    for text, corners in ((lhs, "NC"), (rhs, "OI"), (out, "NC")):
        wanted = corners + space
        if sorted(text) != sorted(wanted) or len(set(text)) != len(text):
            problem = f"the letters {text!r} do not fit."
            got = repr(tuple(dimension_numbers))
            expected = f"each of {', '.join(wanted)} once"
            error(TypeError, "lax.conv_dimension_numbers", problem, got=got, expected=expected)
        specs.append(tuple(text.index(letter) for letter in wanted))
    return tuple(specs)


def conv_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    strides: Sequence[int],
    pads: Any,
    batch_group_count: int = 1,
) -> Shape:
    """The shape of a convolution's result, with dimensions batch, features, spatial.

    Example:
        >>> lax.conv_shape_tuple((8, 3, 28, 28), (16, 3, 5, 5), (1, 1), pads=[(0, 0), (2, 2)])
        (8, 16, 24, 28)
    """
    window = window_of(strides, pads, None, None, lhs_shape[2:], rhs_shape[2:])
    spatial = window.result_sizes(lhs_shape[2:], rhs_shape[2:])
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *spatial)


def _in_order(
    numbers: ConvDimensionNumbers, lhs_shape: Sequence[int], rhs_shape: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Sizes of image and kernel, corners first."""
    return [lhs_shape[d] for d in numbers.lhs_spec], [rhs_shape[d] for d in numbers.rhs_spec]


def _placed(sizes: Sequence[int], spec: Shape) -> Shape:
    """Sizes, given corners first, where a specification has them."""
    dims = [0] * len(sizes)
    for d, size in zip(spec, sizes, strict=True):
        dims[d] = size
    return tuple(dims)


def result_shape(lhs: ShapedArray, rhs: ShapedArray, p: ConvParams) -> Shape:
    """The shape of a convolution's result."""
    image, kernel = _in_order(p.dimension_numbers, lhs.shape, rhs.shape)
    spatial = p.window.result_sizes(image[2:], kernel[2:])
    sizes = (image[0] // p.batch_group_count, kernel[0], *spatial)
    return _placed(sizes, p.dimension_numbers.out_spec)


def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: object,
    dimension_numbers: object,
) -> Shape:
    """The shape of a convolution's result, with any order of dimensions.

    Example:
        >>> images, kernel, orders = (8, 28, 28, 3), (5, 5, 3, 16), ("NHWC", "HWIO", "NHWC")
        >>> lax.conv_general_shape_tuple(images, kernel, (2, 2), "SAME", orders)
        (8, 14, 14, 16)
    """
    numbers = conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)
    image, kernel = _in_order(numbers, lhs_shape, rhs_shape)
    return _placed(conv_shape_tuple(image, kernel, window_strides, padding), numbers.out_spec)


def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    dimension_numbers: Any,
) -> Shape:
    """The shape of a transposed convolution's result, whose strides dilate the image.

    Example:
        >>> orders = ("NCH", "OIH", "NCH")
        >>> lax.conv_transpose_shape_tuple((8, 3, 4), (16, 3, 5), (1,), [(4, 4)], orders)
        (8, 16, 8)
    """
    numbers = conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)
    image, kernel = _in_order(numbers, lhs_shape, rhs_shape)
    if isinstance(padding, str):
        pairs = zip(kernel[2:], window_strides, strict=True)
        padding = [transposed_padding(k, s, padding) for k, s in pairs]
    ones = (1,) * len(window_strides)
    window = window_of(ones, padding, window_strides, None, image[2:], kernel[2:])
    sizes = (image[0], kernel[0], *window.result_sizes(image[2:], kernel[2:]))
    return _placed(sizes, numbers.out_spec)
