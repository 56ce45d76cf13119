"""Conversions between element types: what records do not say.

Values marked "recorded" are those of JAX 0.10.2.
"""

from __future__ import annotations

import numpy as np
import pytest

import minijax
from minijax.lax import creation

NAN = np.nan


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("int32", [0, 0, -1, 2147483647]),
        ("uint8", [0, 0, 0, 255]),
        ("bool", [True, True, True, True]),
    ],
)
def test_floats_beyond_the_range_saturate(dtype: str, expected: list[int]) -> None:
    # Recorded.
    x = np.array([NAN, 0.5, -1, 3e10], "float32")
    assert np.asarray(creation.convert_element_type(x, dtype)).tolist() == expected


def test_conversion_to_the_same_dtype_returns_the_array_itself() -> None:
    x = creation.convert_element_type(np.ones(2), np.float32)
    assert creation.convert_element_type(x, np.float32) is x


def test_conversion_to_the_same_dtype_leaves_no_equation() -> None:
    jaxpr = minijax.make_jaxpr(lambda x: creation.convert_element_type(x, np.float32))
    assert jaxpr(np.ones(2, "float32")).eqns == []


def test_conversion_to_the_same_dtype_drops_the_weak_type() -> None:
    out = minijax.eval_shape(lambda x: creation.convert_element_type(x, np.float32), 1.0)
    assert not out.weak_type


def test_python_float_type_means_the_default_width() -> None:
    assert creation.convert_element_type(np.arange(3), float).dtype == np.float32


def test_convert_to_type_can_make_weak_arrays() -> None:
    weak = creation.convert_to_type(np.arange(3), np.dtype("float32"), weak_type=True)
    assert weak.weak_type
    assert weak.dtype == np.float32


def test_complex_to_real_warns_that_it_drops_imaginary_parts() -> None:
    with pytest.warns(np.exceptions.ComplexWarning, match="imaginary parts are dropped"):
        real = creation.convert_element_type(np.array([1 + 2j, 3j]), np.float32)
    assert np.asarray(real).tolist() == [1.0, 0.0]


def test_imaginary_number_is_true() -> None:
    assert bool(creation.convert_element_type(1j, bool))


def test_jaxpr_shows_dtype_and_weak_type() -> None:
    jaxpr = minijax.make_jaxpr(lambda x: creation.convert_element_type(x, np.int32))
    text = str(jaxpr(np.ones(2, "float32")))
    assert "convert_element_type[new_dtype=int32 weak_type=False] a" in text


def test_derivative_through_integers_is_zero() -> None:
    def function(x: float) -> object:
        return creation.convert_element_type(creation.convert_element_type(x, np.int32), np.float32)

    assert float(minijax.grad(function)(2.5)) == 0.0


def test_cotangent_has_the_dtype_of_the_operand() -> None:
    gradient = minijax.grad(lambda x: creation.convert_element_type(x, np.float32))
    assert gradient(np.float16(1)).dtype == np.float16


def test_bitcast_has_derivative_zero() -> None:
    def function(x: float) -> object:
        bits = creation.bitcast_convert_type(x, np.int32)
        return creation.bitcast_convert_type(bits, np.float32)

    assert float(minijax.grad(function)(np.float32(2))) == 0.0


def test_bitcast_of_scalar_adds_a_dimension() -> None:
    halves = creation.bitcast_convert_type(np.uint32(0x00020001), np.uint16)
    assert np.asarray(halves).tolist() == [1, 2]


def test_second_derivative_of_a_conversion_to_complex_warns_of_nothing() -> None:
    def slope(x):
        return minijax.grad(lambda x: minijax.lax.real(x.astype("complex64") ** 3))(x)

    assert float(minijax.jvp(slope, (np.float32(2),), (np.float32(1),))[1]) == 12


def test_bitcast_to_four_bits_splits_bytes() -> None:
    out = minijax.eval_shape(
        lambda x: creation.bitcast_convert_type(x, "int4"), np.zeros((1, 4), "uint8")
    )
    assert out.shape == (1, 4, 2)


def test_reduce_precision_rounds_to_nearest() -> None:
    assert float(creation.reduce_precision(np.float32(1 + 2**-12), 5, 10)) == 1.0


def test_reduce_precision_rounds_derivatives_likewise() -> None:
    slope = minijax.jvp(
        lambda x: creation.reduce_precision(x, 5, 10), (np.float32(1),), (np.float32(1 + 2**-12),)
    )[1]
    assert float(slope) == 1.0
