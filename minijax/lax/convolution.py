"""Convolution: the primitive with all its rules, and its public forms.

Both derivatives of a convolution are convolutions again: with respect to the image, of the
cotangent by the turned kernel; with respect to the kernel, of the image by the cotangent, where
batch and features change places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import vma
from minijax.core.aval import AbstractValue, Shape, ShapedArray, aval_of, result_types, shaped_array
from minijax.core.errors import error
from minijax.core.meshes import PartitionSpec
from minijax.core.primitive import Batched, Cotangents, Primitive
from minijax.interpreters.jvp import is_linear
from minijax.interpreters.reshard import reshard_to
from minijax.interpreters.structural import moveaxis, transpose, zeros
from minijax.lax import convolution_numbers, dots, families, shape
from minijax.lax.convolution_numbers import ConvDimensionNumbers, ConvParams, conv_dimension_numbers
from minijax.lax.creation import convert_element_type
from minijax.lax.families import Avals, jvp_of_product
from minijax.lowering.stablehlo import LoweringContext, Value
from minijax.runtime.annotations import ArrayLike, DTypeLike, ShardingLike
from minijax.runtime.array import Array
from minijax.sharding import rules


class ConvGeneralDilated(Primitive):
    """Slides a kernel over an image and sums products.

    Shapes: lhs: T[batch, features, spatial], rhs: T[out features, in features, spatial] ->
    T[batch, out features, spatial], each in the order of the dimension numbers.  Bilinear.
    """

    name = "conv_general_dilated"
    jvp = jvp_of_product

    @result_types.function
    def abstract_eval(self, lhs: ShapedArray, rhs: ShapedArray, **params: Any) -> ShapedArray:
        p = ConvParams(**params)
        convolution_numbers.check_convolution(lhs, rhs, p)
        dtype = lhs.dtype if p.preferred_element_type is None else p.preferred_element_type
        is_weak = lhs.weak_type and rhs.weak_type
        return shaped_array(convolution_numbers.result_shape(lhs, rhs, p), np.dtype(dtype), is_weak)

    def shard(self, avals: Avals, outs: Avals, **params: Any) -> PartitionSpec:
        p = ConvParams(**params)
        if p.out_sharding is not None:
            return rules.given_spec(self, outs[0], p.out_sharding)
        numbers = p.dimension_numbers
        (left, right), n = map(rules.spec_of, avals), numbers.lhs_spec
        kernel = [d for d in range(len(right)) if d != numbers.rhs_spec[0]]
        rules.check_unsharded(self, avals[1:], kernel)
        rules.check_unsharded(self, avals[:1], n[1:2] if p.batch_group_count == 1 else n[:2])
        if p.feature_group_count > 1 or p.batch_group_count > 1:
            rules.check_unsharded(self, avals[1:])
        entries = [left[n[0]], right[numbers.rhs_spec[0]], *(left[d] for d in n[2:])]
        placed = dict(zip(numbers.out_spec, entries, strict=True))
        return PartitionSpec(*[placed[d] for d in range(len(entries))])

    def lower(self, ctx: LoweringContext, lhs: Value, rhs: Value, **params: Any) -> Any:
        p = ConvParams(**params)
        n = p.dimension_numbers
        text = (
            f"#stablehlo.conv<raw input_batch_dimension = {n.lhs_spec[0]}, "
            f"input_feature_dimension = {n.lhs_spec[1]}, "
            f"input_spatial_dimensions = {list(n.lhs_spec[2:])}, "
            f"kernel_output_feature_dimension = {n.rhs_spec[0]}, "
            f"kernel_input_feature_dimension = {n.rhs_spec[1]}, "
            f"kernel_spatial_dimensions = {list(n.rhs_spec[2:])}, "
            f"output_batch_dimension = {n.out_spec[0]}, "
            f"output_feature_dimension = {n.out_spec[1]}, "
            f"output_spatial_dimensions = {list(n.out_spec[2:])}>"
        )
        # XLA miscounts where both operands are split along the window, as in gradients of kernels.
        spatial = n.rhs_spec[2:]
        rhs = ctx.module.partitioning.whole_along(ctx, rhs, spatial, len(n.rhs_spec))
        rank = len(p.window_strides)
        pads = np.array(p.padding, np.int64).reshape(rank, 2)
        return ctx.op(
            "stablehlo.convolution",
            [lhs, rhs],
            {
                "window_strides": ctx.i64_array(p.window_strides),
                "padding": ctx.dense(pads),
                "lhs_dilation": ctx.i64_array(p.lhs_dilation),
                "rhs_dilation": ctx.i64_array(p.rhs_dilation),
                "window_reversal": ctx.bool_array((False,) * rank),
                "dimension_numbers": ctx.attribute(text),
                "feature_group_count": ctx.integer(p.feature_group_count),
                "batch_group_count": ctx.integer(p.batch_group_count),
                "precision_config": dots.precision_config(ctx, p.precision),
            },
        )

    def transpose(self, ct: Array, lhs: Array, rhs: Array, **params: Any) -> Cotangents:
        p = ConvParams(**params)
        # Where products are added in a wider dtype, cotangents come in it.
        kind = aval_of(ct).dtype
        if is_linear(lhs):
            p = p._replace(out_sharding=_of_cotangent(lhs.aval, rhs, ct))
            grad = _transpose_image(ct, lhs.aval, _converted(rhs, kind), p)
            return _converted(grad, lhs.aval.dtype), None
        p = p._replace(out_sharding=_of_cotangent(rhs.aval, lhs, ct))
        grad = _transpose_kernel(ct, _converted(lhs, kind), rhs.aval, p)
        return None, _converted(grad, rhs.aval.dtype)

    def batch(
        self, size: int, args: Sequence[Array], dims: Sequence[Any], **params: Any
    ) -> Batched:
        p = ConvParams(**params)
        lhs, rhs = args
        wanted, p = p.out_sharding, p._replace(out_sharding=None)
        if not size:
            avals: Any = zip(map(aval_of, args), dims, strict=True)
            one = self.abstract_eval(
                *(x if d is None else x.without_dim(d) for x, d in avals), **params
            )
            return zeros(one.with_dim(0, size)), 0
        if dims[1] is None:
            out, dim = _batch_image(size, lhs, dims[0], rhs, p)
        elif dims[0] is None:
            out, dim = _batch_kernel(size, lhs, rhs, dims[1], p)
        else:
            out, dim = _batch_both(size, lhs, dims[0], rhs, dims[1], p)
        return out if wanted is None else reshard_to(out, rules.batched(wanted, dim)), dim


vma.linear_in.set(((0,), (1,)), ConvGeneralDilated)
rules.sharding_param.set("out_sharding", ConvGeneralDilated)


conv_general_dilated_p = ConvGeneralDilated()


def _of_cotangent(primal: AbstractValue, *others: Any) -> Any:
    return rules.of_cotangent(primal, rules.mesh_of(map(aval_of, others)))


def _bind(lhs: ArrayLike, rhs: ArrayLike, p: ConvParams, **changes: Any) -> Any:
    return conv_general_dilated_p.bind(lhs, rhs, **p._asdict() | changes)


def _converted(x: Array, dtype: np.dtype[Any]) -> Any:
    return x if aval_of(x).dtype == dtype else convert_element_type(x, dtype)


def _spatial(x: ArrayLike, spec: Shape) -> list[int]:
    return [aval_of(x).shape[d] for d in spec[2:]]


def _transpose_image(ct: Array, lhs: AbstractValue, rhs: Array, p: ConvParams) -> Any:
    """The cotangent of the image: the cotangent of the result, by the turned kernel."""
    n = p.dimension_numbers
    if aval_of(ct).size == 0 or aval_of(rhs).size == 0:
        return zeros(lhs.tangent_aval())
    kernel_sizes = _spatial(rhs, n.rhs_spec)
    image_sizes = [lhs.shape[d] for d in n.lhs_spec[2:]]
    groups = max(p.feature_group_count, p.batch_group_count)
    if groups > 1:
        rhs = _merge(_split(rhs, n.rhs_spec[0], groups), n.rhs_spec[1])
    turned = shape.rev(rhs, n.rhs_spec[2:])
    kernel_spec = (n.rhs_spec[1], n.rhs_spec[0], *n.rhs_spec[2:])
    out_sizes = _spatial(ct, n.out_spec)
    out = _bind(
        ct,
        turned,
        p,
        window_strides=p.lhs_dilation,
        padding=p.window.padding_of_image_cotangent(image_sizes, kernel_sizes, out_sizes),
        lhs_dilation=p.window_strides,
        dimension_numbers=ConvDimensionNumbers(n.out_spec, kernel_spec, n.lhs_spec),
        feature_group_count=groups,
        batch_group_count=1,
        preferred_element_type=None,
    )
    if p.batch_group_count > 1:
        out = _merge(_split(out, n.lhs_spec[1], p.batch_group_count), n.lhs_spec[0])
    return out


def _transpose_kernel(ct: Array, lhs: Array, rhs: AbstractValue, p: ConvParams) -> Any:
    """The cotangent of the kernel: the image by the cotangent, batch and features exchanged."""
    n = p.dimension_numbers
    if aval_of(ct).size == 0 or aval_of(lhs).size == 0:
        return zeros(rhs.tangent_aval())
    image_spec, result_spec, kernel_spec = (
        (spec[1], spec[0], *spec[2:]) for spec in (n.lhs_spec, n.out_spec, n.rhs_spec)
    )
    kernel_sizes = [rhs.shape[d] for d in n.rhs_spec[2:]]
    sizes = _spatial(lhs, n.lhs_spec), kernel_sizes, _spatial(ct, n.out_spec)
    return _bind(
        lhs,
        ct,
        p,
        window_strides=p.rhs_dilation,
        padding=p.window.padding_of_kernel_cotangent(*sizes),
        rhs_dilation=p.window_strides,
        dimension_numbers=ConvDimensionNumbers(image_spec, result_spec, kernel_spec),
        feature_group_count=p.batch_group_count,
        batch_group_count=p.feature_group_count,
        preferred_element_type=None,
    )


def _split(x: Array, axis: int, groups: int) -> Any:
    """`x` with a dimension cut into (groups, rest); the groups become dimension 0."""
    dims = list(aval_of(x).shape)
    dims[axis : axis + 1] = [groups, dims[axis] // groups]
    return moveaxis(shape.reshape(x, tuple(dims)), axis, 0)


def _merge(x: Array, axis: int) -> Any:
    """`x` with its dimension 0 merged, as the slower one, into dimension `axis` of the rest."""
    size, *dims = aval_of(x).shape
    dims[axis] *= size
    return shape.reshape(moveaxis(x, 0, axis), tuple(dims))


def _merge_inside(x: Array, dim: int, axis: int, groups: int) -> Any:
    """A batch merged into a dimension of groups, between group and rest."""
    x = moveaxis(x, dim, 0)
    if groups == 1:
        return _merge(x, axis)
    size, *dims = aval_of(x).shape
    split = [size, *dims[:axis], groups, dims[axis] // groups, *dims[axis + 1 :]]
    moved = moveaxis(shape.reshape(x, tuple(split)), 0, axis + 1)
    return shape.reshape(moved, (*dims[:axis], size * dims[axis], *dims[axis + 1 :]))


def _split_inside(x: Array, axis: int, size: int, groups: int) -> tuple[Any, int]:
    """The inverse of `_merge_inside`: the parts, and where the batch is."""
    dims = aval_of(x).shape
    rest = dims[axis] // size
    if groups == 1:
        return shape.reshape(x, (*dims[:axis], size, rest, *dims[axis + 1 :])), axis
    split = (*dims[:axis], groups, size, rest // groups, *dims[axis + 1 :])
    moved = moveaxis(shape.reshape(x, split), axis + 1, 0)
    return shape.reshape(moved, (size, *dims[:axis], rest, *dims[axis + 1 :])), 0


def _batch_image(size: int, lhs: Array, dim: int, rhs: Array, p: ConvParams) -> tuple[Any, int]:
    """A batch of images by one kernel: more images."""
    n = p.dimension_numbers
    merged = _merge_inside(lhs, dim, n.lhs_spec[0], p.batch_group_count)
    return _split_inside(_bind(merged, rhs, p), n.out_spec[0], size, 1)


def _batch_kernel(size: int, lhs: Array, rhs: Array, dim: int, p: ConvParams) -> tuple[Any, int]:
    """One image by a batch of kernels: more features of the result."""
    n = p.dimension_numbers
    groups = max(p.feature_group_count, p.batch_group_count)
    merged = _merge_inside(rhs, dim, n.rhs_spec[0], groups)
    return _split_inside(_bind(lhs, merged, p), n.out_spec[1], size, groups)


def _batch_both(
    size: int, lhs: Array, lhs_dim: int, rhs: Array, rhs_dim: int, p: ConvParams
) -> tuple[Any, int]:
    """A batch of images, each by its own kernel: one group of features, or of images, for each."""
    n = p.dimension_numbers
    kernels = _merge(moveaxis(rhs, rhs_dim, 0), n.rhs_spec[0])
    if p.batch_group_count > 1:
        images = _merge(moveaxis(lhs, lhs_dim, 0), n.lhs_spec[0])
        p = p._replace(batch_group_count=p.batch_group_count * size)
    else:
        images = _merge(moveaxis(lhs, lhs_dim, 0), n.lhs_spec[1])
        p = p._replace(feature_group_count=p.feature_group_count * size)
    return _split_inside(_bind(images, kernels, p), n.out_spec[1], size, 1)


def conv_general_dilated(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: object = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Computes an n-dimensional convolution; the kernel is not flipped (a cross-correlation).

    Args:
        lhs: the images.
        rhs: the kernel.
        window_strides: steps of the kernel, one for each spatial dimension.
        padding: (before, after) for each spatial dimension, or "SAME", "SAME_LOWER", "VALID".
        lhs_dilation: steps between pixels; zeros stand in between.
        rhs_dilation: steps between the kernel's elements.
        dimension_numbers: orders of dimensions, such as ("NHWC", "HWIO", "NHWC"); None is
            ("NCHW", "OIHW", "NCHW") for any number of spatial dimensions.
        feature_group_count: groups of features that are convolved apart.
        batch_group_count: groups of images that are convolved apart.
        precision: how exactly an accelerator multiplies.
        preferred_element_type: the dtype in which products are added, and of the result.
        out_sharding: the sharding of the result.

    Shapes:     lhs: T[batch, features, space], rhs: T[out features, in features, space] ->
                T[batch, out features, space], each in the order that dimension_numbers gives.
    Dtypes:     any, equal.
    Derivative: both transposes are convolutions.
    Lowers to:  stablehlo.convolution.

    Raises:
        TypeError: dtypes or ranks differ, or dimension numbers or padding do not fit them.
        ValueError: features, group counts, strides and padding do not fit.
        RuntimeError: there is no padding of this name.

    Example:
        >>> images, kernel = jnp.ones((8, 28, 28, 3)), jnp.ones((5, 5, 3, 16))
        >>> orders = ("NHWC", "HWIO", "NHWC")
        >>> lax.conv_general_dilated(images, kernel, (2, 2), "SAME", dimension_numbers=orders).shape
        (8, 14, 14, 16)
    """
    name = "lax.conv_general_dilated"
    left, right = aval_of(lhs).shape, aval_of(rhs).shape
    numbers = conv_dimension_numbers(left, right, dimension_numbers)
    window = convolution_numbers.window_of(
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        [left[d] for d in numbers.lhs_spec[2:]],
        [right[d] for d in numbers.rhs_spec[2:]],
    )
    return _bind(
        lhs,
        rhs,
        ConvParams(
            *window,
            dimension_numbers=numbers,
            feature_group_count=int(feature_group_count),
            batch_group_count=int(batch_group_count),
            precision=dots.canonicalize_precision(precision, name),
            preferred_element_type=dots.canonicalize_preferred_type(preferred_element_type, name),
            out_sharding=rules.resolve(out_sharding, name),
        ),
    )


def conv(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Computes a convolution with strides and padding, without dilation and groups.

    Example:
        >>> x, kernel = jnp.array([[[1.0, 2.0, 3.0, 4.0]]]), jnp.array([[[1.0, 10.0]]])
        >>> lax.conv(x, kernel, window_strides=(1,), padding="VALID")
        Array([[[21., 32., 43.]]], dtype=float32)
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_with_general_padding(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Computes a convolution with strides, padding and dilation, without groups.

    Example:
        >>> x, kernel = jnp.array([[[1.0, 2.0, 3.0]]]), jnp.array([[[1.0, 10.0]]])
        >>> lax.conv_with_general_padding(x, kernel, (1,), [(1, 0)], None, None)
        Array([[[10., 21., 32.]]], dtype=float32)
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_transpose(
    lhs: ArrayLike,
    rhs: ArrayLike,
    strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: object = None,
    transpose_kernel: bool = False,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
    use_consistent_padding: bool = False,
) -> Array:
    """Computes a transposed convolution: the gradient of a strided one by its image.

    Args:
        lhs: the images.
        rhs: the kernel.
        strides: by how much images grow.
        padding: "SAME", "VALID", or (before, after) for each spatial dimension.
        rhs_dilation: steps between the kernel's elements.
        dimension_numbers: orders of dimensions; None is channels last.
        transpose_kernel: whether to turn the kernel and exchange its features, which gives the
            exact gradient of `conv_general_dilated`.
        precision: how exactly an accelerator multiplies.
        preferred_element_type: the dtype of the result.
        use_consistent_padding: whether explicit padding is that of the convolution whose gradient
            this is.

    Example:
        >>> x, kernel = jnp.array([[[1.0], [2.0]]]), jnp.array([[[1.0]], [[10.0]]])
        >>> lax.conv_transpose(x, kernel, strides=(2,), padding="SAME").ravel()
        Array([10.,  1., 20.,  2.], dtype=float32)
    """
    rank = aval_of(lhs).ndim
    if dimension_numbers is None:
        if not 2 <= rank <= 5:
            error(ValueError, "lax.conv_transpose", "needs dimension_numbers.", got=f"rank {rank}")
        letters = "DHW"[5 - rank :]
        dimension_numbers = (f"N{letters}C", f"{letters}IO", f"N{letters}C")
    numbers = conv_dimension_numbers(aval_of(lhs).shape, aval_of(rhs).shape, dimension_numbers)
    spread = (1,) * (rank - 2) if rhs_dilation is None else tuple(rhs_dilation)
    kernel = [(k - 1) * d + 1 for k, d in zip(_spatial(rhs, numbers.rhs_spec), spread, strict=True)]
    if isinstance(padding, str):
        pads = [
            convolution_numbers.transposed_padding(k, s, padding)
            for k, s in zip(kernel, strides, strict=True)
        ]
    elif use_consistent_padding:
        pads = [(k - 1 - a, k - 1 - b) for k, (a, b) in zip(kernel, padding, strict=True)]
    else:
        pads = [(int(a), int(b)) for a, b in padding]
    if transpose_kernel:
        rhs = shape.rev(rhs, numbers.rhs_spec[2:])
        spec = numbers.rhs_spec
        numbers = numbers._replace(rhs_spec=(spec[1], spec[0], *spec[2:]))
    return conv_general_dilated(
        lhs,
        rhs,
        (1,) * (rank - 2),
        pads,
        strides,
        spread,
        numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_general_dilated_patches(
    lhs: ArrayLike,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: object = None,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Extracts the patches that a convolution sees, as features of the result.

    Shapes: lhs: T[batch, features, space] -> T[batch, features * window, space], in the orders
            of dimension_numbers; the image's features are the slower part.

    Example:
        >>> x = jnp.array([[[1.0, 2.0, 3.0]]])
        >>> lax.conv_general_dilated_patches(x, (2,), (1,), "VALID")
        Array([[[1., 2.],
                [2., 3.]]], dtype=float32)
    """
    sizes = families.int_tuple(filter_shape, "lax.conv_general_dilated_patches", "filter_shape")
    rank = aval_of(lhs).ndim
    if dimension_numbers is None:
        spec: Shape = tuple(range(rank))
        numbers = ConvDimensionNumbers(spec, spec, spec)
    else:
        numbers = conv_dimension_numbers(aval_of(lhs).shape, (1,) * rank, dimension_numbers)
    features = aval_of(lhs).shape[numbers.lhs_spec[1]]
    count = int(np.prod(sizes, dtype=np.int64))
    eye = np.eye(count, dtype=aval_of(lhs).dtype).reshape(count, 1, *sizes)
    kernel = np.tile(eye, (features, 1, *[1] * len(sizes)))
    return conv_general_dilated(
        lhs,
        np.transpose(kernel, np.argsort(numbers.rhs_spec)),
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        numbers,
        feature_group_count=features,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_general_dilated_local(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: object = None,
    precision: object = None,
) -> Array:
    """Computes a convolution with unshared weights: a kernel for each position of the result.

    Args:
        lhs: the images.
        rhs: the kernels: input features and filter elements in one dimension (features slower),
            and the spatial dimensions of the result.
        window_strides: steps of the window.
        padding: as in `conv_general_dilated`.
        filter_shape: the window's spatial sizes.
        lhs_dilation: steps between pixels.
        rhs_dilation: steps between the window's elements.
        dimension_numbers: orders of dimensions.
        precision: how exactly an accelerator multiplies.

    Example:
        >>> x, kernels = jnp.array([[[1.0, 2.0, 3.0]]]), jnp.array([[[1.0, 100.0], [10.0, 1000.0]]])
        >>> lax.conv_general_dilated_local(x, kernels, (1,), "VALID", filter_shape=(2,))
        Array([[[  21., 3200.]]], dtype=float32)
    """
    numbers = conv_dimension_numbers(aval_of(lhs).shape, aval_of(rhs).shape, dimension_numbers)
    patches = conv_general_dilated_patches(
        lhs, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation, numbers, precision
    )
    batch, features, *space = numbers.out_spec
    _, inputs, *kernel_space = numbers.rhs_spec
    product = dots.dot_general(
        patches, rhs, (((features,), (inputs,)), (space, kernel_space)), precision
    )
    # The product has space first, then the batch, then the features.
    return transpose(product, np.argsort((*space, batch, features)).tolist())
