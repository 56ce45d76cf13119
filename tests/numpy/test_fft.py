"""Fourier transforms against NumPy's: axes, lengths, scales, dtypes, frequencies."""

from __future__ import annotations

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.core.config import enable_x64

RNG = np.random.default_rng(6)
X = RNG.standard_normal((3, 4, 5)).astype(np.float32)
Z = (X + 1j * RNG.standard_normal(X.shape)).astype(np.complex64)
NORMS = (None, "backward", "ortho", "forward")


def assert_same(actual, expected):
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=2e-4, atol=2e-5)


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_transforms_along_several_axes_match_numpy(name):
    x = X if name == "rfft" else Z

    def compute(xp, x):
        many, two = getattr(xp.fft, name + "n"), getattr(xp.fft, name + "2")
        large = xp.stack([x, 2 * x])
        return [
            many(x),
            many(x, norm="ortho"),
            many(x, (3, 6), axes=(2, 0), norm="forward"),
            many(x, axes=(1,)),
            many(large),
            many(xp.stack([large, -large, large]), (2, 2, 3, 4, 5), axes=(0, 1, 2, 3, 4)),
            two(x),
            two(x, (3, 4), axes=(0, -1), norm="ortho"),
        ]

    for actual, expected in zip(
        minijax.jit(lambda x: compute(jnp, x))(x), compute(np, x), strict=True
    ):
        assert_same(actual, expected)


def test_transforms_are_one_program_eagerly_and_keep_their_derivative():
    assert_same(jnp.fft.fftn(X, axes=[0, 1]), np.fft.fftn(X, axes=[0, 1]))
    weights = RNG.standard_normal((3, 4, 3)).astype(np.float32)

    def energy(x):
        return jnp.sum(weights * jnp.abs(jnp.fft.rfft(x, norm="ortho")) ** 2)

    step = 1e-2 * RNG.standard_normal(X.shape).astype(np.float32)
    slope = jnp.sum(minijax.grad(energy)(X) * step)
    # The function is quadratic, so that the central difference is exact.
    np.testing.assert_allclose(2 * slope, energy(X + step) - energy(X - step), rtol=2e-2, atol=1e-3)


def test_dtypes_of_transforms_follow_the_operand():
    for given, forth in [("bool", "complex64"), ("int32", "complex64"), ("bfloat16", "complex64")]:
        assert jnp.fft.fft(jnp.ones(4, given)).dtype == forth
    assert jnp.fft.irfft(jnp.ones(4, "float16")).dtype == "float32"
    with enable_x64(True):
        assert jnp.fft.rfft(np.arange(4)).dtype == "complex128"
        assert jnp.fft.hfft(np.ones(4, np.complex64)).dtype == "float32"


def test_transforms_without_axes_only_convert():
    assert jnp.fft.fftn(X, axes=()).dtype == "complex64"
    assert jnp.fft.rfftn(X, axes=()).dtype == "float32"
    assert jnp.fft.irfftn(1.0).dtype == "complex64"
    assert jnp.fft.fft(X[:0], axis=0).shape == (0, 4, 5)
    assert jnp.fft.irfft(X[:0], axis=0).shape == (0, 4, 5)


@pytest.mark.feature("NP-01")
def test_frequencies_and_shifts_match_numpy():
    for n in (1, 4, 5):
        assert_same(jnp.fft.fftfreq(n, 0.5), np.fft.fftfreq(n, 0.5))
        assert_same(jnp.fft.rfftfreq(n, 2), np.fft.rfftfreq(n, 2))
    assert jnp.fft.fftfreq(4, dtype="float16").dtype == "float16"
    assert jnp.fft.fftfreq(0).shape == (0,)
    assert minijax.jit(lambda d: jnp.fft.fftfreq(4, d))(2).tolist() == [0, 0.125, -0.25, -0.125]
    for axes in (None, 0, (1, 2), [2], (0, 0)):
        assert_same(jnp.fft.fftshift(X, axes), np.fft.fftshift(X, axes))
        assert_same(jnp.fft.ifftshift(X, axes), np.fft.ifftshift(X, axes))


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: jnp.fft.fft(X, 0), ValueError, "lengths must be positive"),
        (lambda: jnp.fft.ihfft(np.zeros(0)), ValueError, "lengths do not fit"),
        (lambda: jnp.fft.fft(X, axis=3), ValueError, r"numpy.fft.fft: axis 3 is out of range"),
        (lambda: jnp.fft.fft(X, axis=(0, 1)), ValueError, "numpy.fft.fftn"),
        (lambda: jnp.fft.hfft(X, axis=None), TypeError, "needs an axis"),
        (lambda: jnp.fft.ifft(X, norm="unit"), ValueError, 'expected  "backward", "ortho" or'),
        (lambda: jnp.fft.fft([1.0, 2.0]), TypeError, "numpy.asarray"),
        (lambda: jnp.fft.fft(X, 2.0), TypeError, "s must be a sequence of concrete integers"),
        (lambda: jnp.fft.rfft(Z), ValueError, "RFFT does not take complex64"),
        (lambda: jnp.fft.rfft(X[..., :0]), ValueError, "at least one value"),
        (lambda: jnp.fft.fftn(X, axes=(0, -3)), ValueError, "an axis is named twice"),
        (lambda: jnp.fft.fftn(X, (2, 3), axes=(0,)), ValueError, "one length for each axis"),
        (lambda: jnp.fft.fftn(X, (2, 3, 4, 5)), ValueError, "axis -4 is out of range"),
        (lambda: jnp.fft.fft2(X, axes=(0, 1, 2)), ValueError, "along two axes"),
        (lambda: jnp.fft.fft2(X, axes=None), TypeError, "axes must be a sequence"),
        (lambda: jnp.fft.fftfreq([3]), ValueError, "number of samples is one integer"),
        (lambda: jnp.fft.rfftfreq(3, d=[1.0]), ValueError, "distance of samples is one number"),
        (lambda: jnp.fft.fftshift(X, 3), ValueError, "axis 3 is out of range"),
        (lambda: jnp.fft.nothing, AttributeError, "nothing"),
    ],
)
def test_transforms_refuse_bad_arguments(call, error, match):
    with pytest.raises(error, match=match):
        call()


def test_explicit_shardings_stay_where_nothing_changes_length():
    with minijax.cpu_devices(4):
        mesh = minijax.make_mesh((4,), ("x",), (minijax.sharding.AxisType.Explicit,))
        with minijax.set_mesh(mesh):
            x = minijax.reshard(np.ones((4, 8), np.float32), minijax.P("x"))
            assert "c64[4@x,5]" in str(minijax.typeof(jnp.fft.rfft(x)))
            assert "f32[4@x,8]" in str(minijax.typeof(jnp.fft.irfft(jnp.fft.rfft(x))))
            grad = minijax.grad(lambda x: jnp.abs(jnp.fft.rfft(x)).sum())(x)
            assert "f32[4@x,8]" in str(minijax.typeof(grad))
            with pytest.raises(minijax.errors.ShardingTypeError, match="fft: dimension 1"):
                jnp.fft.rfft(minijax.reshard(x, minijax.P(None, "x")))
