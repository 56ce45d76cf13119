"""What records do not say of convolutions: shapes told in advance, padding names, transposes."""

import ml_dtypes
import numpy as np
import pytest

import minijax
from minijax import lax

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 3, 6, 7)).astype(np.float32)
W = RNG.normal(size=(4, 3, 2, 3)).astype(np.float32)
NHWC = ("NHWC", "HWIO", "NHWC")


# Recorded from JAX 0.10.2.
@pytest.mark.feature("NP-01")
@pytest.mark.parametrize(
    ("strides", "padding", "direct", "transposed"),
    [
        ((2, 1), "SAME", (2, 4, 3, 7), (2, 4, 12, 7)),
        ((1, 3), "SAME", (2, 4, 6, 3), (2, 4, 6, 21)),
        ((2, 1), "VALID", (2, 4, 3, 5), (2, 4, 12, 9)),
        ((1, 3), "VALID", (2, 4, 5, 2), (2, 4, 7, 21)),
        ((2, 1), [(1, 0), (0, 2)], (2, 4, 3, 7), (2, 4, 11, 7)),
        ((1, 3), [(1, 0), (0, 2)], (2, 4, 6, 3), (2, 4, 6, 19)),
    ],
)
def test_shapes_are_told_in_advance(strides, padding, direct, transposed):
    letters = ("NCHW", "OIHW", "NCHW")
    assert lax.conv_shape_tuple(X.shape, W.shape, strides, padding) == direct
    assert lax.conv_general_shape_tuple(X.shape, W.shape, strides, padding, letters) == direct
    told = lax.conv_transpose_shape_tuple(X.shape, W.shape, strides, padding, letters)
    assert told == transposed
    assert lax.conv_transpose(X, W, strides, padding, None, letters).shape == transposed


def test_shape_is_told_in_the_order_of_the_result():
    args = (2, 6, 7, 3), (2, 3, 3, 4), (2, 1), "SAME", NHWC
    assert lax.conv_general_shape_tuple(*args) == (2, 3, 7, 4)
    assert lax.conv_transpose_shape_tuple(*args) == (2, 12, 7, 4)


def test_letters_become_numbers_corners_first():
    numbers = lax.conv_dimension_numbers((2, 6, 7, 3), (2, 3, 3, 4), NHWC)
    assert numbers == lax.ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    assert lax.conv_general_permutations(NHWC) == tuple(numbers)
    assert lax.conv_dimension_numbers(X.shape, W.shape, numbers) is numbers


@pytest.mark.parametrize(
    ("letters", "text"),
    [
        (("NHWW", "HWIO", "NHWC"), "the letters 'NHWW'"),
        (("NHHC", "HHIO", "NHHC"), "the letters 'NHHC'"),
        (("NHWC", "HWIO", "NHWX"), "the letters 'NHWX'"),
    ],
)
def test_letters_that_do_not_fit_are_refused(letters, text):
    with pytest.raises(TypeError, match=text):
        lax.conv_general_permutations(letters)


@pytest.mark.parametrize(
    ("padding", "pads"),
    [
        ("SAME", [(0, 1), (1, 1)]),
        ("SAME_LOWER", [(1, 0), (1, 1)]),
        ("VALID", [(0, 0), (0, 0)]),
        ("same", [(0, 1), (1, 1)]),
    ],
)
def test_named_padding_is_a_way_to_write_numbers(padding, pads):
    named = lax.conv_general_dilated(X, W, (1, 1), padding)
    assert np.array_equal(named, lax.conv_general_dilated(X, W, (1, 1), pads))


def test_short_forms_are_the_general_convolution():
    expected = lax.conv_general_dilated(X, W, (2, 1), [(1, 0), (0, 2)], (1, 2), (2, 1))
    actual = lax.conv_with_general_padding(X, W, (2, 1), [(1, 0), (0, 2)], (1, 2), (2, 1))
    assert np.array_equal(actual, expected)
    assert np.array_equal(
        lax.conv(X, W, (2, 1), "SAME"), lax.conv_general_dilated(X, W, (2, 1), "SAME")
    )


@pytest.mark.parametrize(
    ("lhs", "rhs"),
    [((0, 3, 6, 7), (4, 3, 2, 3)), ((2, 0, 6, 7), (4, 0, 2, 3)), ((2, 3, 6, 7), (0, 3, 2, 3))],
)
def test_empty_operands_give_zero_gradients(lhs, rhs):
    def total(x, w):
        return lax.reduce_sum(lax.conv(x, w, (1, 1), "SAME"), (0, 1, 2, 3))

    args = np.ones(lhs, np.float32), np.ones(rhs, np.float32)
    gradients = minijax.grad(total, (0, 1))(*args)
    assert [g.shape for g in gradients] == [lhs, rhs]
    assert not any(np.any(g) for g in gradients)


@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16])
def test_cotangents_have_the_dtype_of_the_operands(dtype):
    def function(x, w):
        return lax.conv(x, w, (1, 1), "SAME", preferred_element_type=np.float32)

    out, vjp = minijax.vjp(function, X.astype(dtype), W.astype(dtype))
    assert [ct.dtype for ct in vjp(np.ones_like(out))] == [np.dtype(dtype)] * 2


@pytest.mark.parametrize("preferred", [None, "float32"])
def test_weak_operands_give_a_weak_result(preferred):
    weak = minijax.jit(lambda: lax.broadcast(2.0, (1, 1, 3, 3)))()
    strong = np.ones((1, 1, 3, 3), np.float32)
    assert lax.conv(weak, weak, (1, 1), "VALID", None, preferred).weak_type
    assert not lax.conv(weak, strong, (1, 1), "VALID", None, preferred).weak_type


@pytest.mark.parametrize(("padding", "size"), [("SAME", 8), ("VALID", 10)])
def test_transposed_convolution_is_the_gradient_of_a_strided_one(padding, size):
    """With `transpose_kernel`, exactly."""
    kernel = RNG.normal(size=(4, 3, 5)).astype(np.float32)
    letters = ("NHC", "HIO", "NHC")

    def forward(image):
        return lax.conv_general_dilated(image, kernel, (2,), padding, None, None, letters)

    image = np.zeros((1, size, 3), np.float32)
    out, vjp = minijax.vjp(forward, image)
    ct = RNG.normal(size=out.shape).astype(np.float32)
    actual = lax.conv_transpose(ct, kernel, (2,), padding, None, letters, True)
    assert np.allclose(actual, vjp(ct)[0], atol=1e-5)


def test_consistent_padding_is_that_of_the_strided_convolution():
    kernel = RNG.normal(size=(4, 3, 5)).astype(np.float32)
    letters = ("NHC", "HIO", "NHC")
    image = np.zeros((1, 9, 3), np.float32)
    out, vjp = minijax.vjp(
        lambda x: lax.conv_general_dilated(x, kernel, (2,), [(2, 1)], None, None, letters), image
    )
    ct = RNG.normal(size=out.shape).astype(np.float32)
    actual = lax.conv_transpose(
        ct, kernel, (2,), [(2, 1)], None, letters, True, use_consistent_padding=True
    )
    assert np.allclose(actual, vjp(ct)[0], atol=1e-5)


def test_batched_kernels_become_features_and_batched_images_images():
    def function(x, w):
        return lax.conv(x, w, (1, 1), "SAME")

    shapes = {
        axes: minijax.make_jaxpr(minijax.vmap(function, axes))(
            np.stack([X] * 5) if axes[0] == 0 else X, np.stack([W] * 5) if axes[1] == 0 else W
        )
        for axes in ((0, None), (None, 0), (0, 0))
    }
    counts = {
        axes: [
            (eqn.outvars[0].aval.shape[:2], eqn.params["feature_group_count"])
            for eqn in closed.eqns
            if eqn.primitive.name == "conv_general_dilated"
        ]
        for axes, closed in shapes.items()
    }
    assert counts == {
        (0, None): [((10, 4), 1)],
        (None, 0): [((2, 20), 1)],
        (0, 0): [((2, 20), 5)],
    }


def test_patches_of_channels_last_are_features_last():
    image = np.moveaxis(X, 1, 3)
    last = lax.conv_general_dilated_patches(image, (2, 3), (1, 1), "VALID", dimension_numbers=NHWC)
    first = lax.conv_general_dilated_patches(X, (2, 3), (1, 1), "VALID")
    assert np.array_equal(last, np.moveaxis(first, 1, 3))


def test_local_convolution_with_one_kernel_everywhere_is_a_convolution():
    kernel = np.broadcast_to(W.reshape(4, 18)[:, :, None, None], (4, 18, 5, 5))
    local = lax.conv_general_dilated_local(X, kernel, (1, 1), "VALID", (2, 3))
    assert np.allclose(local, lax.conv(X, W, (1, 1), "VALID"), atol=1e-5)


def test_local_convolution_respects_orders_of_dimensions():
    kernel = RNG.normal(size=(4, 18, 5, 5)).astype(np.float32)
    first = lax.conv_general_dilated_local(X, kernel, (1, 1), "VALID", (2, 3))
    last = lax.conv_general_dilated_local(
        np.moveaxis(X, 1, 3),
        kernel.transpose(2, 3, 1, 0),
        (1, 1),
        "VALID",
        (2, 3),
        dimension_numbers=NHWC,
    )
    assert np.allclose(last, np.moveaxis(first, 1, 3), atol=1e-5)


def test_jaxpr_names_all_parameters():
    text = str(minijax.make_jaxpr(lambda x, w: lax.conv(x, w, (1, 1), "SAME"))(X, W))
    numbers = "lhs_spec=(0, 1, 2, 3), rhs_spec=(0, 1, 2, 3), out_spec=(0, 1, 2, 3)"
    for parameter in (
        "batch_group_count=1",
        f"dimension_numbers=ConvDimensionNumbers({numbers})",
        "feature_group_count=1",
        "lhs_dilation=(1, 1)",
        "padding=((0, 1), (1, 1))",
        "precision=None",
        "preferred_element_type=None",
        "rhs_dilation=(1, 1)",
        "window_strides=(1, 1)",
    ):
        assert parameter in text


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("in_axes", [(0, 0), (0, None), (None, 0)])
def test_convolutions_over_an_empty_batch(in_axes):
    image, kernel = np.ones((2, 3, 5), np.float32), np.ones((4, 3, 2), np.float32)
    operands = [
        x if axis is None else np.zeros((0, *x.shape), np.float32)
        for x, axis in zip((image, kernel), in_axes, strict=True)
    ]

    def convolve(x, w):
        return lax.conv_general_dilated(x, w, (1,), "VALID")

    mapped = minijax.vmap(convolve, in_axes)
    assert mapped(*operands).shape == (0, 2, 4, 4)
    grads = minijax.grad(lambda x, w: mapped(x, w).sum(), (0, 1))(*operands)
    for grad, operand in zip(grads, operands, strict=True):
        np.testing.assert_array_equal(grad, 0 * operand)


def test_a_kernel_without_elements_is_refused():
    with pytest.raises(ValueError, match="window has no elements"):
        lax.conv(np.ones((2, 3, 5), np.float32), np.ones((4, 3, 0), np.float32), (1,), "VALID")
