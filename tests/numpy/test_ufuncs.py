"""Elementwise functions: equal to NumPy's, the same under jit, and right at special points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp

TOLERANCE = {"float32": 3e-6, "complex64": 3e-6, "float16": 2e-3, "bfloat16": 2e-2}


def sample(dtype: str, limits: tuple[float, float], seed: int) -> np.ndarray[Any, Any]:
    """Numbers in the given range, with the range's ends among them, of the dtype."""
    low, high = limits
    if dtype == "bool":
        return np.array([[True, False, True], [False, True, bool(seed)]])
    low = max(low, 0) if dtype.startswith("uint") else low
    values = np.linspace(low, high, 6).reshape(2, 3)
    values = np.roll(values, seed)
    if dtype == "complex64":
        return (values + 0.3j * values[::-1]).astype(dtype)
    return values.astype(jnp.zeros((), dtype).dtype)


def assert_close(found: Any, wanted: Any, dtype: str) -> None:
    found, wanted = (x if isinstance(x, tuple) else (x,) for x in (found, wanted))
    tolerance = TOLERANCE.get(dtype, 3e-6)
    for a, b in zip(found, wanted, strict=True):
        wide = np.result_type(np.asarray(b).dtype, np.float32)
        np.testing.assert_allclose(np.asarray(a).astype(wide), b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod", "divmod"])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_division_rounds_as_numpy_for_all_signs(name: str, dtype: str) -> None:
    x, y = np.array([7, -7, 7, -7, 6, 0], dtype), np.array([2, 2, -2, -2, 3, 5], dtype)
    assert_close(getattr(jnp, name)(x, y), getattr(np, name)(x, y), dtype)


def test_remainder_of_integers_by_zero_is_zero() -> None:
    assert int(jnp.remainder(jnp.int32(5), 0)) == 0


def test_spacing_is_exact_for_all_numbers() -> None:
    bits = np.random.default_rng(0).integers(0, 2**32, 10_000, dtype=np.uint32)
    info = np.finfo(np.float32)
    ends = np.array([0, info.tiny / 2, -info.tiny, info.max, -np.inf], np.float32)
    x = np.concatenate([bits.view(np.float32), ends])
    with np.errstate(all="ignore"):
        expected = np.spacing(x)
    assert np.array_equal(np.asarray(jnp.spacing(x)), expected, equal_nan=True)


def test_frexp_splits_subnormal_numbers() -> None:
    x = np.array([1e-40, -3e-42], np.float32)
    mantissa, exponent = jnp.frexp(x)
    assert_close((mantissa, exponent), np.frexp(x), "float32")


def test_ldexp_neither_overflows_nor_underflows_in_between() -> None:
    x, e = np.array([0.5, 1.5, -2.0, 0.0], np.float32), np.array([128, -100, 3, 40], np.int32)
    assert_close(jnp.ldexp(x, e), np.ldexp(x, e), "float32")


def test_hypot_of_large_numbers_does_not_overflow() -> None:
    np.testing.assert_allclose(jnp.hypot(jnp.float32(2e38), jnp.float32(2e38)), 2.8284271e38)


def test_power_of_integers_is_exact() -> None:
    base, exponent = np.array([2, -1, 0, 3, 0, 7]), np.array([5, 7, 0, 3, 4, 9])
    np.testing.assert_array_equal(jnp.power(base, exponent), base**exponent)


@pytest.mark.parametrize("three", [3, np.int8(3), np.array(3), jnp.array(3, "uint8")], ids=repr)
def test_power_by_a_known_integer_is_multiplied_out(three: Any) -> None:
    jaxpr = minijax.make_jaxpr(lambda x: jnp.power(x, three))(1.0)
    assert [str(eqn.primitive) for eqn in jaxpr.eqns] == ["integer_pow"]


@pytest.mark.parametrize("negative", [-1, jnp.array(-1, "int16")], ids=repr)
def test_integers_refuse_known_negative_powers(negative: Any) -> None:
    with pytest.raises(TypeError, match="negative powers"):
        jnp.power(jnp.arange(3), negative)


def test_round_of_integers_to_tens_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="tens"):
        jnp.round(jnp.arange(3), -1)


def test_clip_refuses_complex_numbers() -> None:
    with pytest.raises(ValueError, match=r"numpy\.clip: complex"):
        jnp.clip(jnp.complex64(1j), 0, 1)


def test_isclose_takes_nan_for_nan_on_request() -> None:
    x = jnp.array([np.nan, 1.0])
    assert jnp.isclose(x, x, equal_nan=True).tolist() == [True, True]


def test_array_equal_of_different_shapes_is_false() -> None:
    assert not jnp.array_equal(jnp.ones(2), jnp.ones(3))


def test_array_equiv_broadcasts() -> None:
    assert jnp.array_equiv(jnp.ones(2), jnp.ones((3, 2)))


@pytest.mark.parametrize(
    ("function", "point", "slope"),
    [
        (jnp.sinc, 0.0, 0.0),
        (jnp.i0, 0.0, 0.0),
        (lambda x: jnp.logaddexp(x, 1.0), 1.0, 0.5),
        (lambda x: jnp.logaddexp(x, 0.0), -np.inf, 0.0),
        (lambda x: jnp.logaddexp2(x, 1.0), 1.0, 0.5),
        (lambda x: jnp.power(x, 2), 0.0, 0.0),
        (lambda x: jnp.frexp(x)[0], 8.0, 1 / 16),
        (lambda x: jnp.remainder(x, 3.0), 7.0, 1.0),
        (lambda x: jnp.clip(x, 0.0, 1.0), 0.5, 1.0),
        (lambda x: jnp.hypot(x, 4.0), 3.0, 0.6),
    ],
)
def test_derivative_at_a_delicate_point(function: Any, point: float, slope: float) -> None:
    np.testing.assert_allclose(minijax.grad(function)(point), slope, rtol=1e-6)


@pytest.mark.parametrize(
    ("function", "point", "curvature"),
    [
        (jnp.sinc, 0.0, -(np.pi**2) / 3),
        (jnp.i0, 0.0, 0.5),
        (lambda x: jnp.logaddexp(x, 1.0), 1.0, 0.25),
    ],
)
def test_second_derivative_at_a_delicate_point(
    function: Any, point: float, curvature: float
) -> None:
    found = minijax.grad(minijax.grad(function))(point)
    np.testing.assert_allclose(found, curvature, rtol=1e-5)
