"""Resampled arrays against recorded figures of JAX 0.10.2."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import image
from minijax.core.config import enable_x64

RECORDED = json.loads((Path(__file__).parent / "resampled.json").read_text())
X = np.float32([[0, 1, 3, 5], [8, 11, 14, -18], [22, 27, 31, 36]])
SCALE, SHIFT = np.float32([2.0, 0.5]), np.float32([0.3, -0.2])
SHAPES = ((5, 2), (2, 7))
_SLOPES = ("CUBIC True", "LANCZOS3 False")


def assert_close(actual, expected):
    expected = np.reshape(expected, np.shape(actual))
    scale = np.abs(expected).max()
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5 * max(1, scale))


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("key", RECORDED)
def test_resampled_arrays_match_recorded_ones(key):
    name, smooths = key.split()
    method, antialias = image.ResizeMethod[name], smooths == "True"
    recorded = RECORDED[key]

    def compute(x, scale, shift):
        resized = [image.resize(x, shape, method, antialias) for shape in SHAPES]
        if method is image.ResizeMethod.NEAREST:
            return resized, None, None

        def moved(scale, shift):
            return image.scale_and_translate(x, (5, 3), (0, -1), scale, shift, method, antialias)

        if key not in _SLOPES:
            return resized, moved(scale, shift), ()
        slopes = minijax.grad(lambda *args: jnp.sum(moved(*args) ** 2), (0, 1))(scale, shift)
        return resized, moved(scale, shift), slopes

    resized, moved, slopes = minijax.jit(compute)(X, SCALE, SHIFT)
    for actual, expected in zip(resized, recorded["resized"], strict=True):
        assert_close(actual, expected)
    if moved is not None:
        assert_close(moved, recorded["moved"])
    if slopes:
        for actual, expected in zip(slopes, recorded["slopes"], strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-3)


def test_nearest_samples_agree_by_every_way_to_take_them():
    def chosen(count, size):
        return [int((i + 0.5) * count / size) for i in range(size)]

    x = np.arange(24, dtype=np.int16).reshape(2, 12)
    for size in (24, 12, 6, 5, 1, 0):
        actual = image.resize(x, (2, size), "nearest")
        assert actual.dtype == "int16"
        assert np.array_equal(actual, x[:, chosen(12, size)])
    slope = minijax.grad(lambda x: jnp.sum(image.resize(x, (2, 4), "nearest") ** 2))(x * 1.0)
    assert np.array_equal(np.flatnonzero(slope), 1 + np.array([0, 3, 6, 9, 12, 15, 18, 21]))


def test_resized_arrays_keep_batches_and_dtypes():
    images = np.random.default_rng(0).standard_normal((2, 6, 5, 3)).astype(np.float32)
    whole = image.resize(images, (2, 4, 8, 3), "cubic")
    alone = minijax.vmap(lambda x: image.resize(x, (4, 8, 3), "cubic"))(images)
    np.testing.assert_allclose(whole, alone, rtol=1e-5, atol=1e-6)
    assert np.array_equal(image.resize(X, X.shape, "lanczos3"), X)
    for given, expected in [("int32", "float32"), ("bool", "float32"), ("bfloat16", "bfloat16")]:
        assert image.resize(jnp.ones(3, given), (2,), "linear").dtype == expected
    assert image.resize(1j * X, (3, 2), "linear").dtype == "complex64"
    assert image.resize(X, (0, 4), "cubic").shape == (0, 4)
    with enable_x64(True):
        assert image.resize(X, (3, 2), "linear").dtype == "float32"


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: image.resize(X, (3,), "linear"), ValueError, "needs a size for each dimension"),
        (lambda: image.resize(X, (3, 4), "sinc"), ValueError, "unknown method 'sinc'"),
        (lambda: image.resize(X, (3, 4), 1), TypeError, "image.ResizeMethod.LINEAR"),
        (lambda: image.resize(X, (3.0, 4.0), "linear"), TypeError, "concrete integers"),
        (lambda: image.resize(X[:0], (3, 4), "linear"), ValueError, "without samples"),
        (
            lambda: image.scale_and_translate(X, (3, 4), (0,), SCALE, SHIFT, "linear"),
            ValueError,
            "one factor and one distance",
        ),
        (
            lambda: image.scale_and_translate(X, (3, 4), (0, 0), SCALE, SHIFT, "linear"),
            ValueError,
            "one factor and one distance",
        ),
        (
            lambda: image.scale_and_translate(X, (3, 4), (0, 2), SCALE, SHIFT, "linear"),
            ValueError,
            "axis 2 is out of range",
        ),
        (
            lambda: image.scale_and_translate(X, (3, 4), (0, 1), SCALE, SHIFT, "nearest"),
            ValueError,
            "the nearest sample is not taken here",
        ),
    ],
)
def test_resampling_refuses_bad_arguments(call, error, match):
    with pytest.raises(error, match=match):
        call()


@pytest.mark.feature("UX-03")
@pytest.mark.parametrize("method", list(image.ResizeMethod))
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32])
def test_arrays_are_resampled_under_strict_settings(method, dtype):
    x = X.astype(dtype)
    with minijax.numpy_rank_promotion("raise"), minijax.numpy_dtype_promotion("strict"):
        assert minijax.jit(lambda x: image.resize(x, (5, 2), method))(x).shape == (5, 2)
        assert image.resize(x, (5, 2), method).shape == (5, 2)
