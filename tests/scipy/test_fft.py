"""Cosine transforms against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft

import minijax
import minijax.numpy as jnp
from minijax.core.config import enable_x64
from minijax.scipy import fft

RNG = np.random.default_rng(5)
LENGTHS = (1, 2, 3, 4, 7, 8)


def transformed(xp, xs):
    """Results of all functions: lengths odd and even, axes, scales, complex values."""
    found = []
    for norm in (None, "ortho"):
        found += [f(x, norm=norm) for x in xs for f in (xp.dct, xp.idct)]
        x = xs[-1]
        for one, many in ((xp.dct, xp.dctn), (xp.idct, xp.idctn)):
            found += [one(x, n=3, axis=0, norm=norm), one(x + 1j * x[::-1], norm=norm)]
            found += [many(x, norm=norm), many(x, s=(4, 5), axes=(1, 0), norm=norm)]
            found += [many(x, s=5, axes=0, norm=norm)]
    return found


@pytest.mark.feature("NP-01")
def test_cosine_transforms_match_scipy():
    xs = [RNG.standard_normal((2, n)).astype(np.float32) for n in LENGTHS]
    actual = minijax.jit(lambda xs: transformed(fft, xs))(xs)
    for a, e in zip(actual, transformed(scipy.fft, xs), strict=True):
        assert a.dtype == ("complex64" if np.iscomplexobj(e) else "float32")
        np.testing.assert_allclose(a, e, rtol=1e-4, atol=2e-5)


def test_cosine_transform_of_unit_scale_keeps_lengths_and_angles():
    x = RNG.standard_normal(9).astype(np.float32)
    y = fft.dct(x, norm="ortho")
    np.testing.assert_allclose(jnp.sum(y**2), np.sum(x**2), rtol=1e-5)
    slope = minijax.grad(lambda x: jnp.sum(fft.dct(x, norm="ortho") ** 2))(x)
    np.testing.assert_allclose(slope, 2 * x, rtol=1e-4, atol=1e-5)
    assert fft.dct(x.astype(np.float16)).dtype == "float32"
    with enable_x64(True):
        assert fft.idct(np.arange(3)).dtype == "float64"


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda x: fft.dct(x, 3), NotImplementedError, "only type 2"),
        (lambda x: fft.dctn(x, 1), NotImplementedError, "only type 2"),
        (lambda x: fft.idct(x, norm="forward"), ValueError, "'backward' or 'ortho'"),
        (lambda x: fft.dct(x, n=0), ValueError, "lengths must be positive"),
        (lambda x: fft.dct(x, axis=2), ValueError, "axis 2 is out of range"),
        (lambda x: fft.dctn(x, axes=(0, -2)), ValueError, "an axis is named twice"),
        (lambda x: fft.idctn(x, s=(2, 3), axes=(0,)), ValueError, "one length for each axis"),
        (lambda x: fft.dctn(x, s=(2, 2, 3)), ValueError, "one length for each axis"),
        (lambda x: fft.dct([1.0]), TypeError, "arrays or numbers"),
    ],
)
def test_cosine_transforms_refuse_bad_arguments(call, error, match):
    with pytest.raises(error, match=match):
        call(np.ones((2, 3), np.float32))


def test_inverse_transforms_of_no_vectors_are_no_vectors():
    assert minijax.scipy.fft.idct(np.zeros((0, 4), np.float32)).shape == (0, 4)
