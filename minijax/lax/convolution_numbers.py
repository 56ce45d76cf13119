"""The arithmetic of convolutions: orders of dimensions, windows, padding, sizes of results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from minijax.core.aval import Shape
from minijax.core.errors import message
from minijax.lax import arguments

Padding = tuple[tuple[int, int], ...]


class ConvDimensionNumbers(NamedTuple):
    """Where batch, features and spatial dimensions stand.  Mirrors jax.lax (0.10).

    Attributes:
        lhs_spec: batch, features, then spatial dimensions of the image.
        rhs_spec: output features, input features, then spatial dimensions of the kernel.
        out_spec: batch, features, then spatial dimensions of the result.
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


def dilated(size: int, dilation: int) -> int:
    """The extent of `size` elements that stand `dilation` apart."""
    return 0 if size == 0 else (size - 1) * dilation + 1


def spatial_padding(
    padding: str | Sequence[tuple[int, int]],
    image: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    image_dilation: Sequence[int],
    kernel_dilation: Sequence[int],
) -> Padding:
    """The padding of each spatial dimension, from numbers or from the name of a kind.

    Raises:
        ValueError: it is neither.
    """
    if isinstance(padding, str):
        extents = [dilated(n, d) for n, d in zip(image, image_dilation, strict=True)]
        reaches = [dilated(k, d) for k, d in zip(kernel, kernel_dilation, strict=True)]
        return tuple(arguments.padtype_to_pads(extents, reaches, strides, padding))
    try:
        return tuple((int(a), int(b)) for a, b in padding)
    except (TypeError, ValueError):
        raise ValueError(
            message(
                "lax.conv_general_dilated",
                "padding must be a name or a pair for each spatial dimension.",
                got=repr(padding),
                expected="'SAME', 'SAME_LOWER', 'VALID', or [(before, after), …]",
            )
        ) from None


def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Any
) -> ConvDimensionNumbers:
    """Orders of dimensions, given by letters, as numbers.

    Source: mirrors jax.lax.conv_dimension_numbers (0.10).

    Raises:
        ValueError: the letters do not fit the shapes or each other.
        TypeError: it is none of the ways to write dimension numbers.
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    rank = len(lhs_shape)
    if len(rhs_shape) != rank:
        raise ValueError(
            message(
                "lax.conv_dimension_numbers",
                "image and kernel must have the same rank.",
                got={"lhs": tuple(lhs_shape), "rhs": tuple(rhs_shape)},
            )
        )
    if dimension_numbers is None:
        spec: Shape = tuple(range(rank))
        return ConvDimensionNumbers(spec, spec, spec)
    if not isinstance(dimension_numbers, (tuple, list)) or len(dimension_numbers) != 3:
        raise TypeError(
            message(
                "lax.conv_dimension_numbers",
                "not a way to write dimension numbers.",
                got=repr(dimension_numbers),
                expected="three strings, such as ('NHWC', 'HWIO', 'NHWC'), or None",
            )
        )
    return ConvDimensionNumbers(*conv_general_permutations(dimension_numbers, rank))


_CORNERS = ("NC", "OI", "NC")


def conv_general_permutations(
    dimension_numbers: Sequence[str], rank: int | None = None
) -> list[Shape]:
    """For each of three strings, where its dimensions stand: the two corners, then space.

    Source: mirrors jax.lax.conv_general_permutations (0.10).

    Raises:
        ValueError: the strings do not fit each other.
    """
    kernel = dimension_numbers[1]
    space = [letter for letter in kernel if letter not in "OI"]
    specs = []
    for text, corners in zip(dimension_numbers, _CORNERS, strict=True):
        wanted = [*corners, *space]
        if sorted(text) != sorted(wanted) or (rank is not None and len(text) != rank):
            raise ValueError(
                message(
                    "lax.conv_dimension_numbers",
                    f"the letters {text!r} do not fit.",
                    got=repr(tuple(dimension_numbers)),
                    expected=f"each of {', '.join(wanted)} once"
                    + (f", for arrays of rank {rank}" if rank is not None else ""),
                )
            )
        specs.append(tuple(text.index(letter) for letter in wanted))
    return specs


def conv_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    strides: Sequence[int],
    pads: Any,
    batch_group_count: int = 1,
) -> Shape:
    """The shape of a convolution in the order batch, features, space.

    Source: mirrors jax.lax.conv_shape_tuple (0.10).
    """
    ones = (1,) * len(strides)
    padding = spatial_padding(pads, lhs_shape[2:], rhs_shape[2:], strides, ones, ones)
    window = Window(tuple(strides), padding, ones, ones)
    spatial = window.result_sizes(lhs_shape[2:], rhs_shape[2:])
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *spatial)


def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    dimension_numbers: Any,
) -> Shape:
    """The shape of a convolution.  Mirrors jax.lax.conv_general_shape_tuple (0.10)."""
    numbers = conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)
    image = [lhs_shape[d] for d in numbers.lhs_spec]
    kernel = [rhs_shape[d] for d in numbers.rhs_spec]
    sizes = conv_shape_tuple(image, kernel, window_strides, padding)
    dims = [0] * len(sizes)
    for d, size in zip(numbers.out_spec, sizes, strict=True):
        dims[d] = size
    return tuple(dims)
