"""Elementwise functions of two arrays: what records do not say.

Values marked "recorded" are those of JAX 0.10.2.
"""

from __future__ import annotations

import numpy as np
import pytest

import minijax
from minijax.core.config import enable_x64
from minijax.core.errors import MissingRule
from minijax.lax import binary, incomplete_gamma, special, unary

INF, NAN = np.inf, np.nan
_X = (0.0, 1.0, 0.0, 2.0, -1.0, 0.0, 2.0, 3.0)
_Y = (0.0, 1.0, 2.0, 0.0, 2.0, -1.0, 0.5, 3.0)
# Recorded: the derivatives by x, then by y, at these points.
_DERIVATIVES = {
    binary.max: ((0.5, 0.5, 0, 1, 0, 1, 1, 0.5), (0.5, 0.5, 1, 0, 1, 0, 0, 0.5)),
    binary.min: ((0.5, 0.5, 1, 0, 1, 0, 0, 0.5), (0.5, 0.5, 0, 1, 0, 1, 1, 0.5)),
    binary.div: (
        (INF, 1, 0.5, INF, 0.5, -1, 2, 1 / 3),
        (NAN, -1, 0, -INF, 0.25, 0, -8, -1 / 3),
    ),
    binary.atan2: (
        (NAN, 0.5, 0.5, 0, 0.4, -1, 0.11764705882352941, 1 / 6),
        (NAN, -0.5, 0, -0.5, 0.2, 0, -0.47058823529411764, -1 / 6),
    ),
    unary.pow: (
        (NAN, 1, 0, 0, -2, -INF, 0.3535533905932738, 27),
        (0, 0, 0, 0.6931471805599453, NAN, NAN, 0.9802581434685472, 29.662531794038966),
    ),
}


@pytest.mark.parametrize("function", _DERIVATIVES, ids=lambda f: f.__name__)
def test_derivatives_at_special_points_are_those_of_jax(function: object) -> None:
    gradient = minijax.jit(minijax.vmap(minijax.grad(function, (0, 1))))
    with enable_x64(True):
        slopes = np.asarray(gradient(np.array(_X), np.array(_Y)))
    np.testing.assert_allclose(slopes, _DERIVATIVES[function], rtol=1e-12)


@pytest.mark.parametrize(
    ("bounds", "slopes"),
    [
        ((0.0, 0.0, 1.0), (0, 0, 0)),
        ((0.0, 1.0, 1.0), (0, 0, 0)),
        ((0.0, 0.5, 1.0), (0, 1, 0)),
        ((0.0, 2.0, 1.0), (0, 0, 1)),
        ((0.0, -1.0, 1.0), (1, 0, 0)),
        ((1.0, 0.5, 0.0), (0, 0, 1)),
    ],
)
def test_derivatives_of_clamp_are_those_of_jax(
    bounds: tuple[float, ...], slopes: tuple[float, ...]
) -> None:
    assert tuple(map(float, minijax.grad(binary.clamp, (0, 1, 2))(*bounds))) == slopes


def test_derivative_of_rem_counts_whole_divisors() -> None:
    slopes = [float(minijax.grad(binary.rem, 1)(x, y)) for x, y in ((5.5, 2.0), (-7.0, 2.0))]
    assert slopes == [-2.0, 3.0]


@pytest.mark.parametrize("function", [binary.max, binary.min])
def test_extremum_with_nan_is_nan(function: object) -> None:
    assert np.isnan(np.asarray(function(np.array([NAN, 1.0]), np.array([1.0, NAN])))).all()


def test_integer_division_by_zero_and_overflow_are_those_of_jax() -> None:
    low = np.iinfo("int32").min
    quotients = binary.div(np.array([5, low], "int32"), np.array([0, -1], "int32"))
    assert np.asarray(quotients).tolist() == [-1, low]


@pytest.mark.parametrize("dtype", ["int32", "int8", "uint16"])
@pytest.mark.parametrize("function", [binary.div, binary.rem])
def test_known_integers_are_divided_by_zero(function: object, dtype: str) -> None:
    # XLA divides what it knows while it compiles, and a division by zero ended the process.
    x, y = np.array([7, 0], dtype), np.zeros(2, dtype)
    known = minijax.jit(lambda z: function(x, y) + z)(y)
    assert np.asarray(known).tolist() == np.asarray(function(x, y)).tolist()
    assert known.tolist() == ([7, 0] if function is binary.rem else [int(~y[0])] * 2)


def test_shift_beyond_the_width_drops_all_bits() -> None:
    x, y = np.array([-8, -8], "int32"), np.array([40, -1], "int32")
    assert np.asarray(binary.shift_left(x, y)).tolist() == [0, 0]
    assert np.asarray(binary.shift_right_logical(x, y)).tolist() == [0, 0]
    assert np.asarray(binary.shift_right_arithmetic(x, y)).tolist() == [-1, -1]


@pytest.mark.feature("CR-13")
def test_scalar_takes_the_dtype_of_the_array() -> None:
    assert binary.add(np.ones(2, "float16"), 1).dtype == np.float16


def test_scalar_that_would_lose_its_meaning_is_refused() -> None:
    with pytest.raises(TypeError, match="different dtypes"):
        binary.add(np.ones(2, "int32"), 1.5)


@pytest.mark.feature("CR-13")
@pytest.mark.parametrize(
    ("x", "y", "weak"),
    [(1.0, 2.0, True), (1, 2, True), (np.float32(1), 2.0, False), (np.ones(2), 2.0, False)],
)
def test_sum_is_weak_where_both_operands_are(x: object, y: object, weak: bool) -> None:
    assert minijax.eval_shape(binary.add, x, y).weak_type == weak


def test_sum_of_weak_array_and_scalar_stays_weak() -> None:
    assert minijax.eval_shape(lambda x: binary.add(x, 1.0), 2.0).weak_type


def test_comparison_is_never_weak() -> None:
    assert not minijax.eval_shape(binary.lt, 1, 2).weak_type


def test_out_dtype_converts_before_multiplying() -> None:
    x = np.full(2, 300.0, "float16")
    product = binary.mul(x, x, out_dtype="float32")
    np.testing.assert_array_equal(np.asarray(product), np.full(2, 90000.0, "float32"))


def test_complex_maximum_compares_imaginary_parts_last() -> None:
    assert complex(binary.max(1 + 2j, 1 + 3j)) == 1 + 3j
    assert complex(binary.min(1 + 2j, 1 - 3j)) == 1 - 3j


def test_nextafter_has_no_derivative() -> None:
    with pytest.raises(MissingRule, match="nextafter"):
        minijax.grad(binary.nextafter)(1.0, 2.0)


def test_error_names_operands_and_remedy() -> None:
    with pytest.raises(TypeError) as caught:
        binary.mul(np.ones((4, 8), "float32"), np.ones(8, "float32"))
    lines = str(caught.value).splitlines()
    assert lines[0] == "lax.mul: operand ranks differ."
    assert "x: f32[4,8]   y: f32[8]" in lines[1]
    assert "lax.broadcast_in_dim" in lines[3]


@pytest.mark.parametrize(
    "function",
    [binary.bitwise_and, binary.bitwise_or, binary.bitwise_xor],
    ids=lambda f: f.__name__,
)
def test_error_names_the_public_function(function: object) -> None:
    with pytest.raises(TypeError, match=f"lax.{function.__name__}: does not accept dtype float32"):
        function(1.0, 2.0)


# Recorded: P, Q, dP/da and the derivative of samples.
_GAMMA = {
    (1.0, 1.0): (0.6321205588285577, 0.3678794411714423, -0.43172971063489896, None),
    (3.0, 3.0): (0.5768099188731572, 0.42319008112684414, -0.23681823213329314, None),
    (2.0, 0.0): (0.0, 1.0, 0.0, 0.0),
    (0.0, 2.0): (1.0, 0.0, NAN, NAN),
    (0.0, 0.0): (NAN, NAN, NAN, NAN),
    (-1.0, 2.0): (NAN, NAN, NAN, NAN),
    (1.0, -1.0): (NAN, NAN, NAN, NAN),
    (1.0, INF): (1.0, 0.0, None, None),
    (NAN, 1.0): (NAN, NAN, NAN, NAN),
    (1e5, 1e5): (
        0.5004205220662398,
        0.49957947784558915,
        -0.001261567312204976,
        1.0000016666684262,
    ),
}


@pytest.mark.parametrize(
    ("index", "function"),
    [
        (0, incomplete_gamma.igamma),
        (1, incomplete_gamma.igammac),
        (2, incomplete_gamma.igamma_grad_a),
        (3, incomplete_gamma.random_gamma_grad),
    ],
)
def test_incomplete_gamma_at_the_edges_of_its_domain(index: int, function: object) -> None:
    rows = [(a, x, values[index]) for (a, x), values in _GAMMA.items() if values[index] is not None]
    a, x, expected = np.array(rows).T
    with enable_x64(True):
        np.testing.assert_allclose(np.asarray(function(a, x)), expected, rtol=1e-8)


def test_betainc_at_the_edges_of_its_domain() -> None:
    # Recorded.
    rows = [
        (0.0, 1.0, 0.5, 1.0),
        (1.0, 0.0, 0.5, 0.0),
        (0.0, 0.0, 0.5, NAN),
        (1.0, 1.0, 0.0, 0.0),
        (1.0, 1.0, 1.0, 1.0),
        (1.0, 1.0, -0.1, NAN),
        (1.0, 1.0, 1.1, NAN),
        (-1.0, 1.0, 0.5, NAN),
        (INF, 1.0, 0.5, 0.0),
        (1.0, INF, 0.5, 1.0),
        (NAN, 1.0, 0.5, NAN),
    ]
    a, b, x, expected = np.array(rows, "float32").T
    np.testing.assert_array_equal(np.asarray(special.betainc(a, b, x)), expected)


def test_select_evaluates_gradient_of_the_case_taken_only() -> None:
    def function(x: float) -> object:
        return binary.select(binary.gt(x, 0.0), unary.neg(x), x)

    assert [float(minijax.grad(function)(x)) for x in (2.0, -2.0)] == [-1.0, 1.0]


def test_clamp_compares_complex_numbers_and_booleans_as_max_and_min_do() -> None:
    x = np.array([0.5 + 1j, -1.25, 2 - 3j], np.complex64)
    assert binary.clamp(x[0], x, x[2]).tolist() == [x[0], x[0], x[2]]
    mask = np.array([True, False])
    assert binary.clamp(False, mask, True).tolist() == [True, False]
    assert binary.clamp(False, mask, False).tolist() == [False, False]
