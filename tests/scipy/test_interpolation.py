"""Reading between samples: `ndimage`, `interpolate`, `integrate` and the nearest code."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.cluster.vq
import scipy.integrate
import scipy.interpolate
import scipy.ndimage

import minijax
import minijax.numpy as jnp
from minijax.scipy.cluster.vq import vq
from minijax.scipy.integrate import trapezoid
from minijax.scipy.interpolate import RegularGridInterpolator
from minijax.scipy.ndimage import map_coordinates

RNG = np.random.default_rng(8)
DATA = RNG.standard_normal((4, 5)).astype(np.float32)
INSIDE = [RNG.uniform(0, n - 1, (2, 6)).astype(np.float32) for n in DATA.shape]
AROUND = [RNG.uniform(-3 * n, 3 * n, (2, 40)).astype(np.float32) for n in DATA.shape]
MODES = {"nearest": "nearest", "mirror": "mirror", "reflect": "reflect", "wrap": "grid-wrap"}


@pytest.mark.feature("NP-01")
def test_coordinates_of_every_mode_match_scipy():
    def compute(xp_map, names):
        found = [xp_map(DATA, AROUND, order=order, mode=mode) for order in (0, 1) for mode in names]
        return [*found, xp_map(DATA, INSIDE, order=1, cval=7.0)]

    actual = minijax.jit(lambda: compute(map_coordinates, MODES))()
    expected = compute(scipy.ndimage.map_coordinates, MODES.values())
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-4, atol=1e-5)


def test_coordinates_outside_mix_in_the_constant():
    # As JAX does, and unlike SciPy, which jumps to the constant at the last sample.
    line = np.float32([1, 2, 3])
    places = [np.float32([-0.5, 1.5, 2.5, 4.0])]
    assert map_coordinates(line, places, 1, cval=10.0).tolist() == [5.5, 2.5, 6.5, 10]
    assert map_coordinates(line, places, 0, "wrap").tolist() == [3, 3, 1, 2]
    assert map_coordinates(np.int32([0, 5]), [np.float32([0.5, 0.1])], 1).tolist() == [3, 1]


def test_gradients_go_to_samples_and_coordinates():
    def value(data, x):
        return map_coordinates(data, [x], 1)

    data, x = np.float32([1, 4, 9]), np.float32(1.25)
    assert minijax.grad(value)(data, x).tolist() == [0, 0.75, 0.25]
    assert minijax.grad(value, 1)(data, x) == 5
    rows = minijax.vmap(value, (None, 0))(data, np.float32([0.5, 1.5]))
    assert rows.tolist() == [2.5, 6.5]


GRID = (np.float32([0, 1, 3, 4]), np.float32([-1, 0, 2, 3, 7]))
PLACES = np.stack([RNG.uniform(-1, 5, 30), RNG.uniform(-2, 8, 30)], -1).astype(np.float32)


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("method", ["linear", "nearest"])
def test_functions_through_a_grid_match_scipy(method):
    values = np.stack([DATA, DATA**2], -1)

    def compute(kind):
        options = {"method": method, "bounds_error": False}
        return [
            kind(GRID, DATA, **options)(PLACES),
            kind(GRID, DATA, **options, fill_value=None)(PLACES),
            kind(GRID, values, **options, fill_value=2.0)(PLACES[None]),
            kind(GRID[:1], DATA[:, 0], **options)(PLACES[:, :1]),
            kind(GRID, DATA, **options)((PLACES[:, 0], np.float32(1.2))),
        ]

    actual = minijax.jit(lambda: compute(RegularGridInterpolator))()
    for a, e in zip(actual, compute(scipy.interpolate.RegularGridInterpolator), strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-4, atol=1e-5)


@pytest.mark.feature("NP-01")
def test_codes_and_integrals_match_scipy():
    codes = DATA[1:3] + 0.1
    for args in ((DATA, codes), (DATA[0], codes[0])):
        for actual, expected in zip(vq(*args), scipy.cluster.vq.vq(*args), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-5)
    slope = minijax.grad(lambda x: jnp.sum(vq(x, codes)[1] ** 2))(DATA)
    np.testing.assert_allclose(slope, 2 * (DATA - codes[vq(DATA, codes)[0]]), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(
        trapezoid(DATA, GRID[1]), scipy.integrate.trapezoid(DATA, GRID[1]), rtol=1e-5
    )


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: map_coordinates(DATA, INSIDE, 2), NotImplementedError, "order 0 or 1"),
        (lambda: map_coordinates(DATA, INSIDE, 1, "grid"), NotImplementedError, "unknown mode"),
        (lambda: map_coordinates(DATA, INSIDE[:1], 1), ValueError, "for each dimension"),
        (lambda: map_coordinates(DATA > 0, INSIDE, 1), TypeError, "booleans"),
        (lambda: map_coordinates(DATA[:0], INSIDE, 1), ValueError, "there is no sample"),
        (lambda: RegularGridInterpolator(GRID, DATA, "cubic"), ValueError, "unknown method"),
        (lambda: RegularGridInterpolator(GRID, DATA)(PLACES, "a"), ValueError, "unknown method"),
        (
            lambda: RegularGridInterpolator(GRID, DATA, bounds_error=True),
            NotImplementedError,
            "fill_value for what is outside",
        ),
        (lambda: RegularGridInterpolator(GRID, DATA[0]), ValueError, "more arrays of points"),
        (lambda: RegularGridInterpolator(GRID, DATA.T), ValueError, r"points\[0\]"),
        (lambda: RegularGridInterpolator(GRID, DATA, fill_value=1j), ValueError, "fill value"),
        (lambda: RegularGridInterpolator(GRID, DATA)(PLACES[:, :1]), ValueError, "coordinates"),
        (lambda: vq(DATA, DATA[0]), ValueError, "both must be vectors"),
        (lambda: vq(DATA, DATA[:, :2]), TypeError, "rows must have one length"),
        (lambda: vq(DATA, DATA[:0]), ValueError, "there is no code"),
    ],
)
def test_interpolation_refuses_bad_arguments(call, error, match):
    with pytest.raises(error, match=match):
        call()
