"""Elementwise functions of one array: what records do not say.

Values and texts marked "recorded" are those of JAX 0.10.2.
"""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import minijax
from minijax.core.config import enable_x64
from minijax.core.errors import MissingRule
from minijax.lax import binary, families, special, unary

INF, NAN = np.inf, np.nan
_POINTS = (0.0, -0.0, 1.0, -1.0, 2.5, INF)
# Recorded: the derivatives at 0, -0, 1, -1, 2.5 and infinity.
_DERIVATIVES = {
    unary.abs: (1, 1, 1, -1, 1, 1),
    unary.sign: (0, 0, 0, 0, 0, 0),
    unary.floor: (0, 0, 0, 0, 0, 0),
    unary.ceil: (0, 0, 0, 0, 0, 0),
    unary.round: (0, 0, 0, 0, 0, 0),
    unary.log: (INF, -INF, 1, -1, 0.4, 0),
    unary.log1p: (1, 1, 0.5, INF, 0.2857142857142857, 0),
    unary.logistic: (0.25, 0.25, 0.19661193324148185, 0.19661193324148185, 0.07010371654510807, 0),
    unary.exp2: (
        0.6931471805599453,
        0.6931471805599453,
        1.3862943611198906,
        0.34657359027997264,
        3.921032573874189,
        INF,
    ),
    unary.sqrt: (INF, -INF, 0.5, NAN, 0.31622776601683794, 0),
    unary.rsqrt: (-INF, -INF, -0.5, NAN, -0.12649110640673517, 0),
    unary.cbrt: (INF, INF, 1 / 3, 1 / 3, 0.18096117443966045, 0),
    unary.square: (0, 0, 2, -2, 5, INF),
    unary.reciprocal: (-INF, -INF, -1, -1, -0.16, 0),
    unary.acos: (-1, -1, -INF, -INF, NAN, NAN),
    unary.asin: (1, 1, INF, INF, NAN, NAN),
    unary.atanh: (1, 1, INF, INF, -0.19047619047619047, 0),
    unary.asinh: (1, 1, 0.5**0.5, 0.5**0.5, 0.3713906763541037, 0),
    unary.tanh: (1, 1, 0.419974341614026, 0.419974341614026, 0.02659222668316079, 0),
    special.erf_inv: (0.8862269254527579, 0.8862269254527579, INF, INF, NAN, NAN),
    special.bessel_i0e: (0, 0, -0.25784919224393194, 0.25784919224393194, -0.06346179208093622, 0),
    special.bessel_i1e: (
        0.5,
        0.5,
        0.049938776894223436,
        0.049938776894223436,
        -0.019172067731570375,
        0,
    ),
}


@pytest.mark.parametrize("function", _DERIVATIVES, ids=lambda f: f.__name__)
def test_derivative_at_special_points_is_that_of_jax(function: object) -> None:
    with enable_x64(True):
        slopes = minijax.jit(minijax.vmap(minijax.grad(function)))(np.array(_POINTS))
        np.testing.assert_allclose(np.asarray(slopes), _DERIVATIVES[function], rtol=1e-12)


@pytest.mark.parametrize(
    ("function", "at_zero", "at_two"),
    [
        (lambda x: unary.integer_pow(x, 0), 0.0, 0.0),
        (lambda x: unary.integer_pow(x, 1), 1.0, 1.0),
        (lambda x: unary.integer_pow(x, 3), 0.0, 12.0),
        (lambda x: unary.pow(x, 0), 0.0, 0.0),
        (lambda x: unary.pow(x, 1), 1.0, 1.0),
        (lambda x: unary.pow(x, 3), 0.0, 12.0),
    ],
)
def test_derivative_of_power_is_exact_at_zero(
    function: object, at_zero: float, at_two: float
) -> None:
    slopes = [float(minijax.grad(function)(x)) for x in (0.0, 2.0)]
    assert slopes == [at_zero, at_two]


def test_sign_of_zero_and_nan_is_kept() -> None:
    signs = np.asarray(unary.sign(np.array([-0.0, 0.0, NAN], "float32")))
    np.testing.assert_array_equal(signs, np.array([-0.0, 0.0, NAN], "float32"))
    assert np.signbit(signs[0])


def test_abs_of_complex_has_derivative_zero_at_zero() -> None:
    slope = minijax.jvp(unary.abs, (0j,), (1 + 0j,))[1]
    assert float(slope) == 0.0


def test_sqrt_of_negative_number_is_nan() -> None:
    assert np.isnan(np.asarray(unary.sqrt(-1.0)))


@pytest.mark.feature("CR-13")
@pytest.mark.parametrize(
    "function", [unary.neg, unary.abs, unary.exp, unary.sin, unary.square, unary.real]
)
def test_weak_type_is_kept(function: object) -> None:
    x = 1j if function is unary.real else 2.0
    assert minijax.eval_shape(function, x).weak_type


def test_is_finite_is_never_weak() -> None:
    assert not minijax.eval_shape(unary.is_finite, 2.0).weak_type


@pytest.mark.parametrize(
    ("function", "dtype", "equation"),
    [
        (unary.round, "float32", "round[rounding_method=0] a"),
        (unary.reciprocal, "float32", "integer_pow[y=-1] a"),
        (lambda x: unary.integer_pow(x, 3), "float32", "integer_pow[y=3] a"),
        (lambda x: unary.pow(x, 2), "float32", "pow a 2:i32[]"),
        (unary.conj, "complex64", "conj[input_dtype=complex64] a"),
        (unary.stop_gradient, "float32", "stop_gradient a"),
        (unary.bitwise_not, "int32", "not a"),
        (unary.sin, "float32", "sin a"),
        (
            lambda x: unary.exp(x, accuracy=families.AccuracyMode.HIGHEST),
            "float32",
            "exp[accuracy=AccuracyMode.HIGHEST] a",
        ),
    ],
)
def test_jaxpr_reads_as_that_of_jax(function: object, dtype: str, equation: str) -> None:
    assert equation in str(minijax.make_jaxpr(function)(np.ones(2, dtype)))


def test_stop_gradient_maps_over_trees() -> None:
    stopped = unary.stop_gradient({"a": 1.0, "b": (2, np.ones(3))})
    assert sorted(stopped) == ["a", "b"]


def test_stop_gradient_holds_its_argument_constant() -> None:
    def function(x: float) -> object:
        return binary.add(unary.square(x), unary.stop_gradient(unary.square(x)))

    assert float(minijax.grad(function)(3.0)) == 6.0


def test_stop_gradient_leaves_nothing_in_the_program() -> None:
    text = minijax.jit(unary.stop_gradient).lower(np.float32(1)).as_text()
    assert "stop_gradient" not in text.replace("@jit_stop_gradient", "")


ACCURATE = [
    name
    for name in dir(minijax.lax)
    if inspect.isfunction(function := getattr(minijax.lax, name))
    and "accuracy" in inspect.signature(function).parameters
]


@pytest.mark.parametrize("name", ACCURATE)
def test_accuracy_reaches_the_program(name: str) -> None:
    function = getattr(minijax.lax, name)
    tolerance = families.Tolerance(atol=1e-3, rtol=2e-3, ulps=3)
    lowered = minijax.jit(lambda x: function(x, accuracy=tolerance)).lower(np.float32(1))
    assert "atol = 1.000000e-03, rtol = 2.000000e-03, ulps = 3" in lowered.as_text()


def test_accuracy_is_known_to_13_functions() -> None:
    assert len(ACCURATE) == 13


def test_accuracy_of_several_operations_is_rejected() -> None:
    tolerance = families.Tolerance(ulps=3)
    with pytest.raises(NotImplementedError, match=r"lax\.square: accuracy is not supported"):
        minijax.jit(lambda x: unary.square_p.bind(x, accuracy=tolerance)).lower(np.float32(1))


@pytest.mark.feature("AD-07")
def test_functions_without_a_rule_for_derivatives_say_so() -> None:
    with pytest.raises(MissingRule, match="zeta: the primitive has no rule"):
        minijax.grad(special.zeta)(2.0, 1.5)


@pytest.mark.feature("AD-07")
@pytest.mark.parametrize(
    ("function", "args", "message"),
    [
        (special.polygamma, (1.0, 2.0), "lax.polygamma: the derivative with respect to m"),
        (special.betainc, (1.0, 2.0, 0.5), "lax.betainc: the derivative with respect to a and b"),
    ],
)
def test_unknown_derivatives_are_refused(
    function: object, args: tuple[float, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        minijax.grad(function)(*args)
