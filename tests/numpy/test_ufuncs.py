"""Elementwise functions: equal to NumPy's, the same under jit, and right at special points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp

INEXACT = ("float32", "bfloat16", "complex64")
FLOAT = ("float32", "float16")
REAL = ("float32", "int32", "uint8")
ALL = ("float32", "int8", "bool", "complex64")
BITS = ("int32", "uint8", "bool")
INTEGER = ("int32", "uint8")

# name, dtypes, and the range of the arguments where it is not (-3, 3)
UNARY: list[tuple[str, tuple[str, ...], tuple[float, float]]] = [
    ("absolute", ("float32", "int8", "complex64", "bool"), (-3, 3)),
    ("fabs", FLOAT, (-3, 3)),
    ("sign", ("float32", "int8", "complex64"), (-3, 3)),
    ("negative", ("float32", "int8", "complex64"), (-3, 3)),
    ("positive", ("float32", "int8"), (-3, 3)),
    ("reciprocal", ("float32", "complex64"), (0.5, 3)),
    ("square", ("float32", "int8", "complex64"), (-3, 3)),
    ("sqrt", (*FLOAT, "complex64"), (0.1, 3)),
    ("cbrt", FLOAT, (-3, 3)),
    ("exp", INEXACT, (-3, 3)),
    ("exp2", FLOAT, (-3, 3)),
    ("expm1", FLOAT, (-3, 3)),
    ("log", INEXACT, (0.1, 3)),
    ("log2", ("float32", "complex64"), (0.1, 3)),
    ("log10", ("float32", "complex64"), (0.1, 3)),
    ("log1p", FLOAT, (-0.9, 3)),
    ("sin", (*INEXACT, "int32"), (-3, 3)),
    ("cos", INEXACT, (-3, 3)),
    ("tan", ("float32", "complex64"), (-1, 1)),
    ("arcsin", ("float32", "complex64"), (-0.9, 0.9)),
    ("arccos", ("float32", "complex64"), (-0.9, 0.9)),
    ("arctan", ("float32", "complex64"), (-3, 3)),
    ("sinh", ("float32", "complex64"), (-3, 3)),
    ("cosh", ("float32", "complex64"), (-3, 3)),
    ("tanh", ("float32", "complex64"), (-3, 3)),
    ("arcsinh", ("float32", "complex64"), (-3, 3)),
    ("arccosh", ("float32",), (1.1, 3)),
    ("arctanh", ("float32",), (-0.9, 0.9)),
    ("degrees", FLOAT, (-3, 3)),
    ("radians", FLOAT, (-90, 90)),
    ("sinc", ("float32",), (-3, 3)),
    ("i0", ("float32",), (-3, 3)),
    ("floor", REAL, (-3, 3)),
    ("ceil", REAL, (-3, 3)),
    ("trunc", REAL, (-3, 3)),
    ("rint", ("float32", "complex64"), (-3, 3)),
    ("real", ALL, (-3, 3)),
    ("imag", ALL, (-3, 3)),
    ("conjugate", ALL, (-3, 3)),
    ("angle", ("complex64",), (-3, 3)),
    ("isnan", ALL, (-3, 3)),
    ("isfinite", ALL, (-3, 3)),
    ("isinf", ALL, (-3, 3)),
    ("iscomplex", ALL, (-3, 3)),
    ("isreal", ALL, (-3, 3)),
    ("logical_not", ALL, (-3, 3)),
    ("invert", BITS, (-3, 3)),
    ("bitwise_count", INTEGER, (-30, 30)),
    ("signbit", REAL, (-3, 3)),
    ("spacing", ("float32",), (-3, 3)),
    ("modf", ("float32",), (-3, 3)),
    ("frexp", FLOAT, (-30, 30)),
    ("nan_to_num", ("float32", "int32"), (-3, 3)),
]

BINARY: list[tuple[str, tuple[str, ...], tuple[float, float]]] = [
    ("add", ALL, (-3, 3)),
    ("subtract", ("float32", "int8", "complex64"), (-3, 3)),
    ("multiply", ALL, (-3, 3)),
    ("divide", ("float32", "complex64"), (0.5, 3)),
    ("floor_divide", REAL, (1, 9)),
    ("remainder", REAL, (1, 9)),
    ("fmod", REAL, (1, 9)),
    ("divmod", ("float32", "int32"), (1, 9)),
    ("power", ("float32", "int32"), (1, 5)),
    ("float_power", ("float32",), (0.5, 3)),
    ("maximum", ALL, (-3, 3)),
    ("minimum", ALL, (-3, 3)),
    ("fmax", REAL, (-3, 3)),
    ("fmin", REAL, (-3, 3)),
    ("hypot", FLOAT, (-3, 3)),
    ("heaviside", FLOAT, (-3, 3)),
    ("copysign", FLOAT, (-3, 3)),
    ("nextafter", ("float32",), (-3, 3)),
    ("arctan2", ("float32",), (-3, 3)),
    ("logaddexp", FLOAT, (-3, 3)),
    ("logaddexp2", FLOAT, (-3, 3)),
    ("equal", ALL, (-3, 3)),
    ("not_equal", ALL, (-3, 3)),
    ("less", ALL, (-3, 3)),
    ("less_equal", ALL, (-3, 3)),
    ("greater", ALL, (-3, 3)),
    ("greater_equal", ALL, (-3, 3)),
    ("logical_and", ALL, (-3, 3)),
    ("logical_or", ALL, (-3, 3)),
    ("logical_xor", ALL, (-3, 3)),
    ("bitwise_and", BITS, (-30, 30)),
    ("bitwise_or", BITS, (-30, 30)),
    ("bitwise_xor", BITS, (-30, 30)),
    ("left_shift", INTEGER, (0, 5)),
    ("right_shift", INTEGER, (0, 5)),
    ("isclose", ("float32", "int32", "complex64"), (-1, 1)),
    ("array_equal", ("float32",), (-3, 3)),
]

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


def cases(table: list[tuple[str, tuple[str, ...], tuple[float, float]]]) -> list[Any]:
    return [
        pytest.param(name, dtype, limits, id=f"{name}-{dtype}")
        for name, kinds, limits in table
        for dtype in kinds
    ]


def assert_close(found: Any, wanted: Any, dtype: str) -> None:
    found, wanted = (x if isinstance(x, tuple) else (x,) for x in (found, wanted))
    tolerance = TOLERANCE.get(dtype, 3e-6)
    for a, b in zip(found, wanted, strict=True):
        wide = np.result_type(np.asarray(b).dtype, np.float32)
        np.testing.assert_allclose(np.asarray(a).astype(wide), b, rtol=tolerance, atol=tolerance)


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize(("name", "dtype", "limits"), cases(UNARY))
def test_unary_function_is_that_of_numpy(
    name: str, dtype: str, limits: tuple[float, float]
) -> None:
    x = sample(dtype, limits, 0)
    oracle = x.astype(np.float32) if dtype == "bfloat16" else x
    assert_close(getattr(jnp, name)(x), getattr(np, name)(oracle), dtype)


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize(("name", "dtype", "limits"), cases(BINARY))
def test_binary_function_is_that_of_numpy(
    name: str, dtype: str, limits: tuple[float, float]
) -> None:
    x, y = sample(dtype, limits, 0), sample(dtype, limits, 1)
    assert_close(getattr(jnp, name)(x, y), getattr(np, name)(x, y), dtype)


@pytest.mark.parametrize("name", ["sinc", "logaddexp", "floor_divide", "hypot", "power", "frexp"])
def test_function_gives_the_same_within_jit(name: str) -> None:
    function = getattr(jnp, name)
    args = [sample("float32", (0.5, 3), i) for i in range(1 if name in {"sinc", "frexp"} else 2)]
    eager, jitted = function(*args), minijax.jit(function)(*args)
    assert_close(jitted, tuple(eager) if isinstance(eager, tuple) else eager, "float32")


SPECIAL = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1.5], np.float32)


@pytest.mark.parametrize(
    "name", ["isposinf", "isneginf", "isinf", "signbit", "nan_to_num", "modf", "trunc", "sign"]
)
def test_function_of_special_numbers_is_that_of_numpy(name: str) -> None:
    assert_close(getattr(jnp, name)(SPECIAL), getattr(np, name)(SPECIAL), "float32")


@pytest.mark.parametrize("name", ["fmax", "fmin", "maximum", "hypot", "logaddexp", "copysign"])
def test_function_of_pairs_of_special_numbers_is_that_of_numpy(name: str) -> None:
    x, y = np.meshgrid(SPECIAL, SPECIAL)
    with np.errstate(invalid="ignore"):
        wanted = getattr(np, name)(x, y)
    assert_close(getattr(jnp, name)(x, y), wanted, "float32")


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod", "divmod"])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_division_rounds_as_numpy_for_all_signs(name: str, dtype: str) -> None:
    x, y = np.array([7, -7, 7, -7, 6, 0], dtype), np.array([2, 2, -2, -2, 3, 5], dtype)
    assert_close(getattr(jnp, name)(x, y), getattr(np, name)(x, y), dtype)


def test_remainder_of_integers_by_zero_is_zero() -> None:
    assert int(jnp.remainder(jnp.int32(5), 0)) == 0


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


def test_power_by_python_integer_is_multiplied_out() -> None:
    jaxpr = minijax.make_jaxpr(lambda x: jnp.power(x, 3))(1.0)
    assert [str(eqn.primitive) for eqn in jaxpr.eqns] == ["integer_pow"]


def test_integers_refuse_negative_python_powers() -> None:
    with pytest.raises(TypeError, match="negative powers"):
        jnp.power(jnp.arange(3), -1)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64"])
def test_round_to_decimals_is_that_of_numpy(dtype: str) -> None:
    x = sample(dtype, (-3, 3), 0)
    wide = x.astype(np.float32) if dtype == "bfloat16" else x
    assert_close(jnp.round(x, 1), np.round(wide, 1), dtype)


def test_round_of_integers_to_tens_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="tens"):
        jnp.round(jnp.arange(3), -1)


@pytest.mark.parametrize("bounds", [(-1, 1), (None, 0.5), (0, None), (None, None)])
def test_clip_is_that_of_numpy(bounds: tuple[float | None, float | None]) -> None:
    x = sample("float32", (-3, 3), 0)
    wanted = x if bounds == (None, None) else np.clip(x, *bounds)
    np.testing.assert_array_equal(jnp.clip(x, *bounds), wanted)


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
