"""Reductions of floats that have no infinity, which would be NaN."""

import ml_dtypes
import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import lax


@pytest.mark.parametrize(
    "dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3b11fnuz, ml_dtypes.float8_e5m2]
)
def test_extremes_of_short_floats_are_those_of_wide_ones(dtype) -> None:
    wide = np.array([[4, 1], [0, -4]], np.float32)
    short = wide.astype(dtype)
    for function in (jnp.max, jnp.min, jnp.argmax, jnp.argmin):
        found, expected = function(short, 0), function(wide, 0)
        np.testing.assert_array_equal(np.asarray(found).astype(expected.dtype), expected)
    for function in (lax.cummax, lax.cummin):
        found, expected = np.asarray(function(short, 0)), np.asarray(function(wide, 0))
        np.testing.assert_array_equal(found.astype(expected.dtype), expected)
