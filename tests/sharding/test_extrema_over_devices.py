"""A value split over devices has the value of one device: NaNs, infinities, signs of zero."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.sharding import AxisType, NamedSharding
from minijax.sharding import PartitionSpec as P

pytestmark = pytest.mark.feature("RB-02")

nan, inf = np.nan, np.inf
ROWS = [
    [1, nan, 3, 2, 5, 4, 7, 8],
    [1, 2, 3, 2, nan, 4, 7, 9],
    [-inf, 1, 2, inf, nan, 0, 0, 0],
    [-inf, 1, 2, 3, 4, 5, 6, inf],
    [inf] * 8,
    [-inf] * 8,
    [nan] * 8,
    [-0.0, 0.0, -0.0, 0.0, -0.0, -0.0, -0.0, -0.0],
    [-0.0] * 8,
    [1, 2, 3, 4, 5, 6, -0.0, 0.0],
]
DTYPES = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
PLACES = np.array([0, 1, 1, 2, 3, 3, 0, 5])

REDUCTIONS: dict[str, Callable[[Any], Any]] = {
    "max": jnp.max,
    "min": jnp.min,
    "ptp": jnp.ptp,
    "argmax": jnp.argmax,
    "argmin": jnp.argmin,
    "nanmax": jnp.nanmax,
    "norm": lambda x: jnp.linalg.norm(x, inf),
    "norm of rows": lambda x: jnp.max(x.reshape(4, 2), axis=0),
    "cummax": lax.cummax,
    "cummin": lax.cummin,
    "reduce": lambda x: lax.reduce(x, np.asarray(-inf, x.dtype), lax.max, (0,)),
    "window": lambda x: lax.reduce_window(x, -inf, lax.max, (3,), (1,), "SAME"),
    "scatter max": lambda x: jnp.zeros(8, x.dtype).at[PLACES].max(x),
    "scatter min": lambda x: jnp.zeros(8, x.dtype).at[PLACES].min(x),
    "scatter into": lambda x: x.at[PLACES].max(x[::-1]),
    "segments": lambda x: minijax.ops.segment_max(x, PLACES, 6),
    "in a loop": lambda x: lax.map(jnp.max, x.reshape(2, 4)),
    "gather": lambda x: x[PLACES],
    "sort": jnp.sort,
    "empty": lambda x: jnp.max(x.reshape(8, 1)[:, :0], axis=1, initial=-inf),
}


@pytest.fixture(autouse=True)
def devices():
    with minijax.cpu_devices(4), minijax.enable_x64(True):
        yield


def bits(x):
    """What tells values apart, signs of zero too; all NaNs are one."""
    x = np.asarray(x)
    if x.dtype.kind in "iub":
        return x.tolist()
    x = x.astype(np.float64)
    return [("nan",) if np.isnan(v) else (v, bool(np.signbit(v))) for v in x.ravel().tolist()]


def mesh(axis_type=AxisType.Auto):
    return minijax.make_mesh((4,), ("x",), axis_types=(axis_type,))


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reduction_of_a_split_value_is_that_of_one_device(name, dtype):
    f = minijax.jit(REDUCTIONS[name])
    split = NamedSharding(mesh(), P("x"))
    for row in ROWS:
        x = np.array(row).astype(dtype)
        assert bits(f(minijax.device_put(x, split))) == bits(f(jnp.asarray(x))), row


def test_reduction_on_explicit_axes_keeps_nan():
    for row in ROWS:
        x = np.array(row, np.float32)
        with minijax.set_mesh(mesh(AxisType.Explicit)):
            got = minijax.jit(jnp.max)(minijax.device_put(x, P("x")))
        assert bits(got) == bits(jnp.max(jnp.asarray(x)))


SMALL = [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fnuz]


@pytest.mark.parametrize("dtype", [*DTYPES, *SMALL], ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("name", ["pmax", "pmin"])
def test_extremum_among_devices_is_that_of_numpy(name, dtype):
    collective = getattr(lax, name)
    f = lambda x: collective(x, "x")
    ways = [
        minijax.pmap(f, axis_name="x"),
        minijax.jit(minijax.shard_map(f, mesh=mesh(), in_specs=P("x"), out_specs=P())),
        minijax.vmap(f, axis_name="x"),
    ]
    for row in ROWS:
        x = np.array(row).astype(dtype).reshape(4, 2)
        wide = x.astype(np.float64)
        keys = np.copysign(1, wide) if not wide.any() else wide
        want = keys.max(0) if name == "pmax" else keys.min(0)
        want = np.copysign(0.0, want) if not wide.any() else want
        for way in ways:
            got = np.asarray(way(x)).astype(np.float64)[0]
            assert bits(got) == bits(want), row


SIGNED = [np.float16, np.float32, np.float64, np.complex64, np.complex128, jnp.float8_e5m2]


@pytest.mark.parametrize("dtype", SIGNED)
@pytest.mark.parametrize("axis_type", [AxisType.Auto, AxisType.Explicit])
def test_gather_of_split_values_keeps_signs_of_zero(dtype, axis_type):
    x = np.zeros(8, dtype)
    for part in (x.real, x.imag) if dtype in (np.complex64, np.complex128) else (x,):
        part[:] = [-0.0, 0.0, -0.0, nan, -inf, 1.0, 0.0, -0.0]
    at = np.array([7, 0, 3, 4])
    f = minijax.jit(
        lambda x: x.at[at].get(out_sharding=P("x")) if axis_type != AxisType.Auto else x[at]
    )
    with minijax.set_mesh(mesh(axis_type)):
        got = np.asarray(f(minijax.device_put(x, NamedSharding(mesh(axis_type), P("x")))))
    for part in (np.real, np.imag):
        assert bits(part(got)) == bits(part(x[at]))


def test_extrema_within_groups_keep_nan():
    f = minijax.pmap(lambda x: lax.pmax(x, "x", axis_index_groups=[[0, 1], [2, 3]]), axis_name="x")
    np.testing.assert_array_equal(f(np.array([1, nan, 3, 2.0])), [nan, nan, 3, 3])


def test_debug_nans_sees_the_nan_of_a_maximum():
    x = minijax.device_put(np.array(ROWS[0], np.float32), NamedSharding(mesh(), P("x")))
    with minijax.debug_nans(True), pytest.raises(FloatingPointError):
        minijax.jit(jnp.max)(x)


@pytest.mark.parametrize("updates", [[2.0, 0.0, 1.0], [2.0, nan, 1.0], [nan, nan, nan]])
@pytest.mark.parametrize("name", ["max", "min"])
def test_derivative_of_updates_reaches_nan(name, updates):
    x, at = jnp.array([1.0, nan, 3.0, nan]), jnp.array([0, 1, 1])

    def update(x, y):
        return getattr(x.at[at], name)(y)

    y = jnp.array(updates)
    out, tangent = minijax.jvp(update, (x, y), (jnp.ones(4), jnp.ones(3)))
    assert np.isnan(out).tolist() == [bool(np.isnan(updates[0])), True, False, True]
    # All that take part move by one, and so does each result, touched or not.
    np.testing.assert_array_equal(tangent, np.ones(4))
    gradient = minijax.grad(lambda x, y: update(x, y).sum(), (0, 1))(x, y)
    assert np.sum(gradient[0]) + np.sum(gradient[1]) == pytest.approx(4)
    assert gradient[0][3] == 1


def test_maximum_of_split_values_costs_one_collective():
    x = minijax.device_put(np.ones(8, np.float32), NamedSharding(mesh(), P("x")))
    text = minijax.jit(jnp.max).lower(x).compile().as_text()
    assert text.count("all-reduce(") == 1
